"""`sojourn adhoc`: be a device of a group that has no broker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sojourn.adhoc.election.timing import Meeting, Timing
from sojourn.cli.logs import LogFormat, set_up_logs
from sojourn.errors import SojournError, typed
from sojourn.live.adhoc.device import Settings
from sojourn.live.adhoc.running import Status, run
from sojourn.live.adhoc.segment import Segment
from sojourn.live.client.link import Address as ClientAddress
from sojourn.live.config import parse_address

GROUP = "239.255.18.3:7018"


class AdhocCommandError(SojournError):
    """The options of `sojourn adhoc` cannot be used."""


def adhoc(  # noqa: PLR0913 - each is an option of the command
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="Where the device keeps what must not be lost; made if it is not there."
        ),
    ],
    *,
    name: Annotated[str | None, typer.Option(help="The device's name; the folder's if left out.")] = None,
    segment: Annotated[
        str, typer.Option(help="A multicast group, or a file with the address of a device a line.")
    ] = GROUP,
    listen: Annotated[
        str, typer.Option(help="Where other devices reach this one; port 0 is any that is free.")
    ] = "127.0.0.1:0",
    door: Annotated[
        str, typer.Option(help="Where MQTT clients reach it; port 0 is any that is free.")
    ] = "127.0.0.1:0",
    fixed: Annotated[
        str | None, typer.Option(metavar="URL", help="A broker of the fixed network, in reach or not.")
    ] = None,
    secret: Annotated[
        Path | None, typer.Option(help="A file that devices of the group share; see `sojourn secret`.")
    ] = None,
    meeting: Annotated[Meeting, typer.Option(help="What two elected brokers do that meet.")] = Meeting.MERGE,
    refresh_s: Annotated[
        float, typer.Option(min=0.05, help="Seconds between two beacons, refreshes and attempts.")
    ] = Timing().refresh_s,
    power_safe: Annotated[
        bool, typer.Option("--power-safe", help="Let every note wait for the disk.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log more.")] = False,
) -> None:
    """Meet other devices where there is no broker: elect one, share events, join the fixed network.

    Any MQTT client may use the device's door, and gets what clients of other devices publish. Examples:

    sojourn adhoc ann

    sojourn adhoc bob --fixed mqtt://10.0.0.1:1883 --listen 10.0.0.7:7018
    """
    set_up_logs(LogFormat.TEXT, verbose=verbose)
    if fixed is not None:
        ClientAddress.parse(fixed)  # what is no address is refused here
    settings = Settings(
        name=name or folder.absolute().name,
        folder=folder,
        segment=Segment.parse(segment),
        listen=parse_address(listen, "listen"),
        door=parse_address(door, "door"),
        timing=Timing(refresh_s=refresh_s, meeting=meeting),
        fixed=fixed,
        secret=b"" if secret is None else _read(secret),
        power_safe=power_safe,
    )
    console = Console(stderr=True, highlight=False)

    def announce(status: Status) -> None:
        console.print(
            f"sojourn: device {status.name} serves MQTT clients on {status.door}; other devices reach it at "
            f"{status.listen} (Ctrl-C stops it)",
            soft_wrap=True,
            markup=False,
        )

    run(settings, announce)


def _read(path: Path) -> bytes:
    try:
        secret = path.read_bytes().strip()
    except OSError as error:
        raise AdhocCommandError(f"The secret {path} cannot be read: {error.strerror}.") from None
    if not secret:
        raise AdhocCommandError(f"The secret {path} is empty; `sojourn secret {typed(path)}` writes one.")
    return secret

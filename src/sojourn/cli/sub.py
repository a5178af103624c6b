"""`sojourn sub`: print events as they come."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
from contextlib import suppress
from typing import Annotated

import typer

from sojourn.cli.shell_client import (
    CaFileOption,
    CertificateOption,
    KeyOption,
    QosOption,
    UrlArgument,
    UserOption,
    client_for,
    connected,
)
from sojourn.live.client.client import Client
from sojourn.live.client.inbox import Received

NOT_KEPT = "what was published meanwhile was not kept, and does not come: with --id NAME it is"


def sub(  # noqa: PLR0913 - each is an option of the command
    url: UrlArgument,
    filter_text: Annotated[
        str, typer.Argument(metavar="FILTER", help="What to want of an event, such as 'speed > 80'.")
    ] = "",
    *,
    topic: Annotated[str, typer.Option(help="A topic filter; + and # are wildcards.")] = "#",
    qos: QosOption = 1,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many events.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    client_id: Annotated[
        str | None,
        typer.Option("--id", help="A name, under which the broker keeps events while you are away."),
    ] = None,
    keep_s: Annotated[int, typer.Option("--keep", min=0, help="With --id: for how many seconds.")] = 3600,
    user: UserOption = None,
    ca_file: CaFileOption = None,
    certificate: CertificateOption = None,
    key: KeyOption = None,
) -> None:
    """Print the events that match a filter, until Ctrl-C.

    What was published while you were away is printed too if you were here before under the same --id. For
    example:

    sojourn sub localhost:1883 "speed > 80 AND road = 'A2'"

    sojourn sub localhost:1883 --topic 'cars/#' --json --count 10
    """
    client = client_for(
        url,
        client_id=client_id,
        session_expiry_s=keep_s if client_id else 0,
        user=user,
        ca_file=ca_file,
        certificate=certificate,
        key=key,
    )
    is_kept = bool(client_id and keep_s)
    asyncio.run(_subscribe(client, filter_text, topic, qos, count, as_json=as_json, is_kept=is_kept))


async def _subscribe(
    client: Client,
    wanted: str,
    topic: str,
    qos: int,
    count: int | None,
    *,
    as_json: bool,
    is_kept: bool,
) -> None:
    def tell() -> None:
        if client.connected:
            name = f"{client.broker} at " if client.broker else ""
            typer.echo(f"sojourn: connected to {name}{client.address}", err=True)
            if is_kept and not client.resumed:
                typer.echo(f"sojourn: {client.client_id} is new there: nothing was kept for it", err=True)
            elif not is_kept and len(client.connections) > 1:
                typer.echo(f"sojourn: {NOT_KEPT}", err=True)
            if client.dropped:
                typer.echo(f"sojourn: {_missed(client.dropped)}", err=True)
        else:
            lost = f"the connection to {client.address} is lost ({client.connections[-1].ended})"
            typer.echo(f"sojourn: {lost}" + ("" if client.gave_up else "; it is tried again"), err=True)

    client.on_change = tell
    async with connected(client):
        await client.subscribe(wanted, topic=topic, qos=qos)
        typer.echo(f"sojourn: subscribed to {_wish(wanted, topic)}; Ctrl-C ends it", err=True)
        printing = asyncio.create_task(_print(client, count, as_json=as_json))
        for number in (signal.SIGINT, signal.SIGTERM):  # the usual end: say goodbye, and no error
            asyncio.get_running_loop().add_signal_handler(number, printing.cancel)
        with suppress(asyncio.CancelledError):
            await printing


def _missed(dropped: int) -> str:
    """What is lost to a reader whose queue was full, and who can do something about it."""
    events = "1 event was" if dropped == 1 else f"{dropped:,} events were"
    return f"{events} dropped, for more than the broker's limits (queue_messages_max, queue_bytes_max) waited"


def _wish(wanted: str, topic: str) -> str:
    """What was subscribed to, in words."""
    if not wanted:
        return "every event" if topic == "#" else topic
    return wanted if topic == "#" else f"{topic} WHERE {wanted}"


async def _print(client: Client, count: int | None, *, as_json: bool) -> None:
    printed = 0
    while count is None or printed < count:
        event, settle = await client.take()
        typer.echo(_line(event, as_json=as_json))
        settle()  # only now: what was not printed stays with the broker
        printed += 1


def _line(event: Received, *, as_json: bool) -> str:
    if not as_json:
        return f"{event.topic} {event.payload.decode(errors='replace')}"
    line: dict[str, object] = {"topic": event.topic}
    try:
        line["payload"] = event.payload.decode()
    except UnicodeDecodeError:
        line["payload_base64"] = base64.b64encode(event.payload).decode()
    line["attributes"] = dict(event.attributes)
    if event.retained:
        line["retained"] = True
    if event.source:
        line |= {"source": event.source, "sequence": event.sequence}
    return json.dumps(line, ensure_ascii=False)

"""A device as a process: signals, an orderly end, and a file that says how it stands.

`status.json` in the device's folder is replaced whole whenever that changes, and every second.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec

from sojourn.live.adhoc.device import Device, Settings

STATUS_S = 1.0
STATUS_NAME = "status.json"

_log = logging.getLogger("sojourn.adhoc")


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """How a device stands."""

    name: str
    pid: int
    number: int
    """What others know it by."""
    state: str
    broker: int | None
    """The device that is the broker, if one is known."""
    listen: str
    """Where other devices reach it."""
    door: str
    """Where MQTT clients reach it."""
    reaches_fixed: bool
    kept: int
    """Events that it keeps as a broker."""
    unoffered: int
    """Of those, what the fixed network is still to be offered."""
    pending: int
    """Events of its own clients that no broker has stored yet."""
    dropped: int
    """Events of its own clients that were given up because too many were pending."""
    counts: dict[str, int]
    """Floods and frames that were said, heard and dropped."""


def status_of(device: Device) -> Status:
    """How a device stands now."""
    node = device.node
    return Status(
        name=device.settings.name,
        pid=os.getpid(),
        number=node.number,
        state=node.state.value,
        broker=node.broker,
        listen=str(device.address),
        door=device.door.url,
        reaches_fixed=node.reaches_fixed,
        kept=0 if node.table is None else node.table.events,
        unoffered=0 if node.table is None else len(node.table.unseen_to()),
        pending=len(node.user.pending),
        dropped=node.user.dropped,
        counts=device.counts,
    )


def read_status(folder: Path) -> Status | None:
    """What the device of a folder said last, if it said anything."""
    try:
        return msgspec.json.decode((folder / STATUS_NAME).read_bytes(), type=Status)
    except (OSError, msgspec.MsgspecError):
        return None


def run(settings: Settings, announce: Callable[[Status], None]) -> None:
    """Run a device until it is interrupted."""
    asyncio.run(_run(settings, announce))


async def _run(settings: Settings, announce: Callable[[Status], None]) -> None:
    device = Device(settings)
    ended, changed = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    device.on_change = changed.set
    try:
        await device.open()
        announce(status_of(device))
        while not ended.is_set():
            changed.clear()
            _write(settings.folder, status_of(device))
            failure = device.failure or device.door.failure
            if failure is not None:
                raise failure
            await _first_of(ended, changed, STATUS_S)
    finally:
        await device.close()


async def _first_of(one: asyncio.Event, other: asyncio.Event, timeout_s: float) -> None:
    tasks = [asyncio.ensure_future(event.wait()) for event in (one, other)]
    await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


def _write(folder: Path, status: Status) -> None:
    beside = folder / f"{STATUS_NAME}.new"
    try:
        beside.write_bytes(msgspec.json.encode(status))
        beside.replace(folder / STATUS_NAME)
    except OSError as error:  # who looks is not told; who is served is served all the same
        _log.warning("The status cannot be written: %s", error.strerror)

"""Revives brokers from journals that a process holds, a little at a time, so that nobody else waits for it.

The journal is the one that the process keeps open as a copy, so nothing is closed and read anew; nobody
writes to it meanwhile, for a process that is to play a broker takes no lines of it. What is not cut
is one line, and of the snapshot what is quick: a twentieth of the time that it takes.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from sojourn.errors import SojournError
from sojourn.live.addresses import AddressBook
from sojourn.live.brokers.node import Node
from sojourn.live.brokers.outbox import Copying
from sojourn.live.brokers.reloading import apply, prepared_for_guest
from sojourn.live.brokers.rights_today import rights_today
from sojourn.live.config import Config
from sojourn.live.learning import paths_at_start
from sojourn.live.store.errors import JournalError
from sojourn.live.store.journal import Journal
from sojourn.live.store.keeper import Keeper
from sojourn.live.tracing import Tracer

AGAIN_S = 10.0
"""How soon it is tried again to play a broker that could not be played, though its journal is whole."""

_log = logging.getLogger("sojourn.seats")

T = TypeVar("T")

SLICE_S = 0.01
"""How long a revival goes on before others have their turn."""


async def in_slices(work: Generator[None, None, T]) -> T:
    """Do something that stops now and then, and let others have their turn at some of the stops."""
    until = time.perf_counter() + SLICE_S
    try:
        while True:
            try:
                next(work)
            except StopIteration as end:
                result: T = end.value
                return result
            if time.perf_counter() >= until:
                await asyncio.sleep(0)
                until = time.perf_counter() + SLICE_S
    finally:
        work.close()


async def revived(
    in_force: Callable[[], Config], name: str, book: AddressBook, copying: Copying, journal: Journal
) -> Node:
    """Return a broker at work, as its journal leaves it and the configuration of this moment has it.

    A broker of another process, of which everything is here, may want for something else: a file that the
    configuration names, say. That is told and tried again, for nobody else could play it from nothing.
    """
    while True:
        try:
            return await _revived(in_force, name, book, copying, journal)
        except JournalError:
            raise  # what is here cannot be read, and is copied anew
        except SojournError as error:
            if name == copying.process:
                raise
            _log.error("%s cannot be played here for now: %s", name, error)
        await asyncio.sleep(AGAIN_S)


async def _revived(
    in_force: Callable[[], Config], name: str, book: AddressBook, copying: Copying, journal: Journal
) -> Node:
    config = in_force()
    opening = Keeper.opening(
        journal,
        replace(config.settings(name), learnt=paths_at_start(config, name)),
        secrets.token_hex(8),
        time.time,
        partial(rights_today, config),
        is_copied=True,
    )
    keeper, broker = await in_slices(opening)
    tracer = None
    if config.trace is not None:
        tracer = await Tracer.opened(config.trace, name, max(time.time(), broker.now_s))
    loop = asyncio.get_running_loop()
    node = Node(config, name, loop, book, copying=copying, revived=(keeper, broker, tracer))
    if in_force() is not config:  # it was read anew meanwhile
        renewed = prepared_for_guest(node.config, in_force(), name, copying.process)
        if node.links is not None:
            node.links.proof = renewed.proof
        apply(node, renewed)
    return node

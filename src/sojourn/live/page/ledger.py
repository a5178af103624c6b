"""Which brokers have lost their stores, what that cost as far as anybody knows, and who counts it.

Every broker keeps of every other, and of itself, what its last report told: what its memory is called, its
sessions, and the events that waited there (`Known`). One that comes back with another memory has lost its
store (`Loss`). Everybody who knew it says so. To have it counted once, brokers tell each other in their
reports which losses they noticed; after a while the one whose knowledge is the latest counts it, and says
that it has. Of several that know the same a neighbour of the lost store goes first, then the lowest number.
A broker that is not in the configuration any more is a loss too, if sessions or events were there when it
last told: what its store has nobody can reach.

What a broker told is as old as its last report. One that is stopped tells its last figures before it closes
its links; of one that was killed they are a second old or so, and nobody knows what came after that. So
figures are never said without the moment that they are of (`in_words`).

All of it is written beside the broker's store now and then, in a file of its own that survives the store: a
broker that was down as well still knows. That file is no promise: without it less is known, and nothing else.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Lock

import msgspec
from msgspec.structs import replace

from sojourn.live.seldom import Seldom

SETTLE_S = 3.0
"""How long others are given to say what they know of a loss."""
REMOVED_SETTLE_S = 60.0
"""The same for a broker that was removed: that is noticed at the start, before links stand."""
FRESH_S = 5.0
"""For how long what another broker told of losses stands: who is silent longer counts none of them."""
LOSSES_MAX = 32
"""Losses that are remembered and told: the last ones."""
FILE_BYTES_MAX = 4 << 20
REFRESH_S = 60.0
"""After so long the file is written again although brokers told nothing new: it says when they last did."""

LOST = "has lost its store, and with it what only that had"
REMOVED = "is not in the configuration any more, and out of reach is what only its store has"

_seldom = Seldom(logging.getLogger("sojourn.ledger"))


class Known(msgspec.Struct, frozen=True, array_like=True):
    """What a broker last told of itself."""

    memory: str
    sessions: int | None
    """None if it has not told yet, in this memory."""
    held: int | None
    at_s: float
    """When it told, by its own clock."""
    is_last: bool = False
    """Whether it told this when it was stopped."""
    heard_s: float = 0.0
    """When that was heard, by the clock of who keeps it; 0 if that was in an earlier life."""


class Loss(msgspec.Struct, frozen=True, array_like=True):
    """A store that is gone."""

    broker: str
    memory: str
    """What the memory is called that the broker came back with: another one for every loss."""
    sessions: int | None
    """None if nobody told this broker."""
    events: int | None
    as_of_s: float
    """When the lost broker told of them; 0 if it is not known."""
    noticed_s: float
    is_counted: bool = False
    is_removed: bool = False
    """Whether the store may well be there, but its broker was taken out of the configuration."""
    is_of_stop: bool = False
    """Whether the lost broker told of them when it was stopped."""
    silent_s: float | None = None
    """How long before its link went down the lost broker had told of them; None if nobody here saw that."""


class Written(msgspec.Struct, frozen=True):
    """What the file holds."""

    known: dict[str, Known]
    losses: list[Loss]
    removed: dict[str, Known] = {}
    """Of brokers that are not in the configuration any more: what each last told."""


class Ledger:
    """What one broker knows of all of them; it is told the time and touches no file."""

    def __init__(
        self, rank: Callable[[str, str], tuple[bool, int]], began_s: float, written: Written | None = None
    ) -> None:
        """Begin with what was written; `rank(one, lost)` is the lower, the sooner a broker counts a loss."""
        self._rank = rank
        self._began_s = began_s
        self.known: dict[str, Known] = dict(written.known) if written is not None else {}
        """By broker: what it last told."""
        self.losses: dict[tuple[str, str], Loss] = {}
        """By broker and its new memory: what this broker noticed, the oldest first."""
        for loss in written.losses if written is not None else ():
            self._keep(loss)
        self.removed = [
            self._removed(broker, told)
            for broker, told in (written.removed.items() if written is not None else ())
            if told.sessions or told.held
        ]
        """What is lost because brokers were taken out of the configuration since the last start."""
        self._others: dict[str, tuple[float, list[Loss]]] = {}
        """By broker: when it last told of losses, and which."""

    def written(self) -> Written:
        """What is to be known again after a restart."""
        return Written(self.known, list(self.losses.values()))

    def take(self, broker: str, told: Known, now: float, gone_s: float = 0.0) -> Loss | None:
        """A broker told of itself; return what it has lost since it last did.

        `gone_s` is when the link to it last went down, 0 if that is not known.
        """
        before = self.known.get(broker)
        self.known[broker] = replace(told, heard_s=now)
        if before is None or before.memory == told.memory:
            return None
        return self._noticed(
            Loss(
                broker,
                told.memory,
                before.sessions,
                before.held,
                before.at_s if before.sessions is not None else 0.0,
                noticed_s=now,
                is_of_stop=before.is_last,
                silent_s=gone_s - before.heard_s if 0.0 < before.heard_s <= gone_s else None,
            )
        )

    def forgot(self, broker: str, memory: str, now: float, gone_s: float = 0.0) -> Loss | None:
        """A neighbour came back with another memory; return what it has lost, unless that is known."""
        nothing_told = Known(memory, None, None, now)
        if broker in self.known:
            return self.take(broker, nothing_told, now, gone_s)
        self.known[broker] = nothing_told
        return self._noticed(Loss(broker, memory, None, None, 0.0, noticed_s=now))

    def _noticed(self, loss: Loss) -> Loss | None:
        if (loss.broker, loss.memory) in self.losses:
            return None
        self._keep(loss)
        return loss

    def _removed(self, broker: str, told: Known) -> Loss:
        memory = f"{told.memory} removed"  # another name than that of the loss with which the memory began
        loss = Loss(
            broker,
            memory,
            told.sessions,
            told.held,
            told.at_s,
            self._began_s,
            is_removed=True,
            is_of_stop=told.is_last,
        )
        self._keep(loss)
        return loss

    def _keep(self, loss: Loss) -> None:
        self.losses[loss.broker, loss.memory] = loss
        while len(self.losses) > LOSSES_MAX:
            del self.losses[next(iter(self.losses))]

    def told(self, broker: str, losses: list[Loss], now: float) -> None:
        """Another broker says which losses it noticed."""
        self._others[broker] = (now, losses)

    def due(self, own: str, now: float) -> list[Loss]:
        """The losses that this broker has to count now; they are counted then."""
        found = []
        for key, loss in list(self.losses.items()):
            if loss.is_counted:
                continue
            rivals = {
                name: other
                for name, (at_s, theirs) in self._others.items()
                for other in theirs
                if (other.broker, other.memory) == key and (other.is_counted or now - at_s <= FRESH_S)
            }
            is_counted = any(other.is_counted for other in rivals.values())
            is_mine = not is_counted and self._first({own: loss} | rivals) == own
            settle_s = REMOVED_SETTLE_S if loss.is_removed else SETTLE_S
            if is_mine and now - max(loss.noticed_s, self._began_s) >= settle_s:
                found.append(loss)
                is_counted = True
            if is_counted:
                self.losses[key] = replace(loss, is_counted=True)
        return found

    def _first(self, knowing: dict[str, Loss]) -> str:
        """Who of several that noticed a loss is to count it."""
        return min(knowing, key=lambda name: (-knowing[name].as_of_s, self._rank(name, knowing[name].broker)))


def in_words(loss: Loss) -> str:
    """Return what is known of a loss as a sentence: what was there, and when that was."""
    said = f"{loss.broker} {REMOVED if loss.is_removed else LOST}: "
    if loss.sessions is None or loss.events is None:
        return f"{said}how many sessions and events, it has not told here"
    when = datetime.fromtimestamp(loss.as_of_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if loss.silent_s is not None and not loss.is_of_stop:
        when += f", {loss.silent_s:.1f} s before its link went down"
    return (
        f"{said}{_many(loss.sessions, 'session')} and {_many(loss.events, 'event')} when it "
        f"{'was stopped' if loss.is_of_stop else 'last told'} ({when}), some of them perhaps elsewhere too; "
        "what came after that is not counted"
    )


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _at_once(work: Callable[[], None]) -> None:
    work()


class LedgerFile:
    """The file of a ledger, beside the store of its broker; none without a store."""

    def __init__(self, store: str | None) -> None:
        self.path = None if store is None else Path(store).with_name(f"{Path(store).name}.known")
        self._last = b""
        self._last_s = 0.0
        """The latest time in what was last written."""
        self._writing = Lock()

    def read(self, names: Iterable[str], left: Collection[str] = ()) -> Written | None:
        """What was written; what other brokers than those with these names told is apart (`removed`).

        Of those that have `left` the network, and were stopped without sessions, nothing is kept: they gave
        all they had away first. None if nothing can be read.
        """
        if self.path is None:
            return None
        try:
            with self.path.open("rb") as file:
                found = msgspec.json.decode(file.read(FILE_BYTES_MAX), type=Written)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            _seldom.warning("read", "What %s says of other brokers is ignored: %s", self.path, error)
            return None
        kept = set(names)
        return Written(
            {name: replace(known, heard_s=0.0) for name, known in found.known.items() if name in kept},
            [loss for loss in found.losses if loss.broker in kept or loss.is_removed],
            {
                name: known
                for name, known in found.known.items()
                if name not in kept and not (name in left and known.is_last and not known.sessions)
            },
        )

    def write(self, written: Written, aside: Callable[[Callable[[], None]], object] = _at_once) -> None:
        """Replace the file as a whole, if anything has changed; only its owner reads it.

        `aside` has it done elsewhere: some disks take milliseconds to let one file take the place of another.
        """
        if self.path is None:
            return
        data = msgspec.json.encode(_without_times(written))
        latest_s = max((one.at_s for one in written.known.values()), default=0.0)
        if data == self._last and latest_s - self._last_s < REFRESH_S:
            return
        self._last, self._last_s = data, latest_s
        aside(partial(self._replace, self.path, msgspec.json.encode(written)))

    def _replace(self, path: Path, data: bytes) -> None:
        new = path.with_name(f"{path.name}.new")
        try:
            with self._writing:
                new.unlink(missing_ok=True)  # one that another made might be readable by others
                file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(file, "wb") as out:
                    out.write(data)
                new.replace(path)
        except OSError as error:
            why = error.strerror or error
            _seldom.warning("write", "What is known of other brokers cannot go to %s: %s", path, why)


def _without_times(written: Written) -> Written:
    """What is worth a new file at once: that a broker still says the same is not."""
    known = {name: replace(one, at_s=0.0, heard_s=0.0) for name, one in written.known.items()}
    return Written(known, written.losses)

"""Which brokers have lost their stores, what that cost as far as anybody knows, and who counts it.

Every broker keeps of every other, and of itself, what its last report told: what its memory is called, its
sessions, and the events that waited there (`Known`). One that comes back with another memory has lost its
store (`Loss`). Everybody who knew it says so. To have it counted once, brokers tell each other in their
reports which losses they noticed; after a while the one whose knowledge is the latest counts it, and says
that it has. Of several that know the same a neighbour of the lost store goes first, then the lowest number.
A broker that is not in the configuration any more is a loss too, if sessions or events were there when it
last told: what its store has nobody can reach.

All of it is written beside the broker's store now and then, in a file of its own that survives the store: a
broker that was down as well still knows. That file is no promise: without it less is known, and nothing else.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path

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

_seldom = Seldom(logging.getLogger("sojourn.ledger"))


class Known(msgspec.Struct, frozen=True, array_like=True):
    """What a broker last told of itself."""

    memory: str
    sessions: int
    held: int
    at_s: float


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

    def take(self, broker: str, told: Known, now: float) -> Loss | None:
        """A broker told of itself; return what it has lost since it last did."""
        before = self.known.get(broker)
        self.known[broker] = told
        if before is None or before.memory == told.memory:
            return None
        return self._noticed(
            Loss(broker, told.memory, before.sessions, before.held, before.at_s, noticed_s=now)
        )

    def forgot(self, broker: str, memory: str, now: float) -> Loss | None:
        """A neighbour came back with another memory; return what it has lost, unless that is known."""
        if broker in self.known:
            return self.take(broker, Known(memory, 0, 0, now), now)
        self.known[broker] = Known(memory, 0, 0, now)
        return self._noticed(Loss(broker, memory, None, None, 0.0, noticed_s=now))

    def _noticed(self, loss: Loss) -> Loss | None:
        if (loss.broker, loss.memory) in self.losses:
            return None
        self._keep(loss)
        return loss

    def _removed(self, broker: str, told: Known) -> Loss:
        memory = f"{told.memory} removed"  # another name than that of the loss with which the memory began
        loss = Loss(broker, memory, told.sessions, told.held, told.at_s, self._began_s, is_removed=True)
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


class LedgerFile:
    """The file of a ledger, beside the store of its broker; none without a store."""

    def __init__(self, store: str | None) -> None:
        self.path = None if store is None else Path(store).with_name(f"{Path(store).name}.known")
        self._last = b""

    def read(self, names: Iterable[str]) -> Written | None:
        """What was written; what other brokers than those with these names told is apart (`removed`).

        None if nothing can be read.
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
            {name: known for name, known in found.known.items() if name in kept},
            [loss for loss in found.losses if loss.broker in kept or loss.is_removed],
            {name: known for name, known in found.known.items() if name not in kept},
        )

    def write(self, written: Written) -> None:
        """Replace the file as a whole, if anything has changed; only its owner reads it."""
        if self.path is None or (data := msgspec.json.encode(_without_times(written))) == self._last:
            return
        self._last = data
        new = self.path.with_name(f"{self.path.name}.new")
        try:
            new.unlink(missing_ok=True)  # one that another made might be readable by others
            file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(file, "wb") as out:
                out.write(msgspec.json.encode(written))
            new.replace(self.path)
        except OSError as error:
            why = error.strerror or error
            _seldom.warning("write", "What is known of other brokers cannot go to %s: %s", self.path, why)


def _without_times(written: Written) -> Written:
    """What is worth a new file: that a broker still says the same is not."""
    return Written({name: replace(one, at_s=0.0) for name, one in written.known.items()}, written.losses)

"""Quenching at a broker: publishers that ask for it are told what anybody wants (paper 003, section 3.2).

A publisher that sends `sojourn-quench` on CONNECT is sent the combined interest (`edge/quench.py`) on the
topic `$sojourn/quench`, as JSON: first the whole, then differences. The rules:

- The combined interest covers what this broker would deliver or send on: the subscriptions of its clients,
  also of those who are away, and in a network those heard from neighbours, as an event's way begins here.
- A new interest is told at the end of the loop turn that brought it; one that ended is told with the next
  that is new, or when several ended. Wider is safe: it only costs bytes.
- Combining takes time, so beyond `INTERESTS_MAX` different interests, or where it takes more than
  `STEPS_MAX`, sources are told to send everything.
- Where events are flooded a broker does not know what others want, and quenches nobody.

Nothing here is kept over a restart: connections are not either, and each begins with the whole.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from sojourn.broker.network import Network
from sojourn.edge.quench import UNKNOWN, CombinedInterest, QuenchUpdate
from sojourn.errors import SojournError
from sojourn.interest import Filter
from sojourn.interest.work import Work, within
from sojourn.mqtt.connection import Connection, State
from sojourn.mqtt.content import interest_of
from sojourn.mqtt.conventions import QUENCH_TOPIC
from sojourn.mqtt.core import Core
from sojourn.mqtt.message import write_publish
from sojourn.mqtt.rights import may_see_all

INTERESTS_MAX = 200
"""Different interests that are combined."""
STEPS_MAX = 30_000
"""Work that combining them, or all changes of a turn, may take (`interest/work.py`): some ten ms."""
NARROW_AFTER = 20
RETRY_SHARE = 0.75
"""To what share the interests must fall before combining them is tried again."""
CHANGES_MAX = 10
"""Changes in one turn that are entered one by one; for more, all is combined anew."""
CHANGE_STEPS_MAX = STEPS_MAX // 3
"""Work that entering them one by one may take. Beyond it all is combined anew, which takes less where many
patterns stand beside each other: otherwise it would depend on which changes share a turn whether sources
are told anything."""
EVERYTHING = QuenchUpdate(0, UNKNOWN, (), ((0, "TRUE"),))


def as_json(update: QuenchUpdate) -> bytes:
    """An update as a message carries it."""
    return msgspec.json.encode(update._asdict())


class Quencher:
    """Tells the sources of one broker what is wanted."""

    def __init__(self, core: Core, network: Network | None) -> None:
        self._core, self._network = core, network
        self._told: dict[int, int] = {}
        """By connection of a source: the version it was told; `UNKNOWN` before the first."""
        self._wanted: Counter[Filter] = Counter()
        self._heard: dict[int, Filter] = {}
        """In a network: the subscriptions that are in `_wanted`, by number, which the network may forget."""
        self._other: set[int] = set()
        """Those that are about no events."""
        self._combined: CombinedInterest | None = None
        """None where there are too many interests to combine."""
        self._retry_at = INTERESTS_MAX
        self._is_guess = False
        """Whether a neighbour has not said yet what it wants: then everything may be wanted."""

    def settle(self) -> None:
        """At the end of a loop turn: tell sources what is new to them."""
        effects, connections = self._core.effects, self._core.state.connections
        if effects.sources:
            # Rights are looked at first: who may not know what others want must not have it combined.
            fresh = [connection for connection in effects.sources if self._may_know(connection)]
            effects.sources.clear()
            if fresh and not self._told:
                self._begin()
            self._told.update((connection.number, UNKNOWN) for connection in fresh)
        if not self._told:
            return
        for number in list(self._told):
            connection = connections.get(number)
            if connection is None or not self._may_know(connection):
                del self._told[number]
        if not self._told:
            self._end()
            return
        self._follow()
        is_guess = self._network is not None and bool(self._network.clients.broker.router.untold)
        if is_guess != self._is_guess:
            self._is_guess = is_guess
            self._told = dict.fromkeys(self._told, UNKNOWN)
        combined = None if is_guess else self._combined
        version = combined.version if combined is not None else EVERYTHING.version
        for number, told in list(self._told.items()):
            if told != version and not connections[number].blocked:
                self._tell(number, told)

    def _may_know(self, connection: Connection) -> bool:
        """Whether a source may know what others want; one that may not is told to send everything."""
        session = connection.session
        if session is not None and may_see_all(session.permissions):
            return True
        if connection.state is State.OPEN:
            self._core.deliverer.write(connection, _frame(EVERYTHING))
        return False

    def _tell(self, number: int, told: int) -> None:
        connection = self._core.state.connections[number]
        if connection.state is not State.OPEN:
            return
        combined = None if self._is_guess else self._combined
        update = EVERYTHING if combined is None else combined.update_from(told)
        frame = _frame(update)
        if connection.packet_bytes_max and len(frame) > connection.packet_bytes_max:
            # It takes no such packet: it is told to send everything, and nothing further.
            self._core.deliverer.write(connection, _frame(EVERYTHING))
            del self._told[number]
            return
        self._core.deliverer.write(connection, frame)
        self._told[number] = update.version

    # What is wanted ------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._wanted.clear()
        if self._network is not None:
            self._heard.clear()
            self._network.clients.interests_changed = True
        else:
            self._core.effects.interests = []
            for session in self._core.state.sessions.values():
                for one in session.subscriptions.values():
                    self._wanted[interest_of(one.pattern, one.filter)] += 1
        self._retry_at = INTERESTS_MAX
        self._combine()

    def _end(self) -> None:
        self._core.effects.interests = None
        self._combined = None
        self._wanted.clear()
        self._heard.clear()

    def _follow(self) -> None:
        """Take in what changed since the last turn."""
        changes = self._changes()
        fresh, gone = [], []
        for interest, by in changes.items():
            before = self._wanted[interest]
            self._wanted[interest] += by
            if self._wanted[interest] <= 0:
                del self._wanted[interest]
            if before <= 0 < by:
                fresh.append(interest)
            elif before > 0 and before + by <= 0:
                gone.append(interest)
        if not fresh and not gone:
            return
        if (
            self._combined is None
            or len(fresh) + len(gone) > CHANGES_MAX
            or len(self._wanted) > INTERESTS_MAX
        ):
            self._combine()
            return
        try:
            with within(Work(CHANGE_STEPS_MAX)):
                for interest in fresh:
                    self._combined.add(interest)
                for interest in gone:
                    self._combined.remove(interest)
        except SojournError:  # it takes too long
            self._combine()

    def _changes(self) -> Counter[Filter]:
        found: Counter[Filter] = Counter()
        network = self._network
        if network is None:
            interests = self._core.effects.interests or []
            for subscription, by in interests:
                found[interest_of(subscription.pattern, subscription.filter)] += by
            interests.clear()
        elif network.clients.interests_changed:
            network.clients.interests_changed = False
            present = network.clients.broker.router.subs.keys()
            self._other &= present
            for number in present - self._heard.keys() - self._other:
                wanted = network.clients.shares.wanted_by(number)
                if wanted is None:
                    self._other.add(number)
                else:
                    self._heard[number] = wanted
                    found[wanted] += 1
            for number in self._heard.keys() - present:
                found[self._heard.pop(number)] -= 1
        return found

    def _combine(self) -> None:
        """Combine all interests anew, if there are not too many; every source is then told the whole."""
        if self._combined is None and self._told and len(self._wanted) > self._retry_at:
            return
        if len(self._wanted) > INTERESTS_MAX:
            self._give_up()
            return
        self._combined = CombinedInterest(narrow_after=NARROW_AFTER, steps_max=STEPS_MAX)
        self._retry_at = INTERESTS_MAX
        try:
            self._combined.add_all(self._wanted)
        except SojournError:
            self._give_up()
            return
        self._told = dict.fromkeys(self._told, UNKNOWN)

    def _give_up(self) -> None:
        self._combined = None
        self._retry_at = min(INTERESTS_MAX, int(len(self._wanted) * RETRY_SHARE))
        self._told = dict.fromkeys(self._told, UNKNOWN)


def _frame(update: QuenchUpdate) -> bytes:
    return write_publish(QUENCH_TOPIC, as_json(update), qos=0)[0]

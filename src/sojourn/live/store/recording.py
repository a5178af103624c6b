"""What a broker writes into its journal, and how it comes back to life from it.

Every fact that changes what a broker must remember is an entry: packets, connections that come and go, who
was let in, frames of neighbours, the passing of time. Pings and events of QoS 0 are not: nobody was promised
anything about them; but one that is stored for a client that may come is, for what brokers hand one another
follows from what they have stored. What was decided by those too is an entry of its own: who was silent, who
broke the protocol, for whom more waited than may. Since the cores are deterministic, the same entries lead to
the same sessions, queues and links.

Nothing leaves the broker before the entries that led to it are committed (`Node.flush`).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import msgspec
from mqtt5 import ConnAckReasonCode

from sojourn.broker.channel import Position
from sojourn.broker.state_codec import dump_admission, dump_state, load_admission, load_state
from sojourn.broker.state_kinds import StateError
from sojourn.errors import SojournError
from sojourn.live.store.journal import Journal, JournalError
from sojourn.mqtt.core import Core
from sojourn.mqtt.handshake import Admission

if TYPE_CHECKING:
    from sojourn.broker.network import Network

SNAPSHOT_ENTRIES = 200_000
SNAPSHOT_BYTES = 64 << 20
"""A snapshot takes the place of the entries when there are so many, or so large."""

OPENED, RECEIVED, BLOCKED, DRAINED, LOST, TICK, ADMITTED, REFUSED, FRAME, LINK = range(10)
OVERFLOWED, REFUSING, STOPPED = range(10, 13)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class Recording:
    """One broker's journal, in terms of what its node is told."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    # Writing -------------------------------------------------------------------------------------------

    def note(self, kind: int, now: float, *what: Any) -> None:
        """Append an entry; it is safe after the next commit."""
        self.journal.append(_encode((kind, now, *what)))

    def admitted(self, number: int, admission: Admission, now: float) -> None:
        """Append that a client was let in."""
        self.note(ADMITTED, now, number, dump_admission(admission))

    @property
    def wants_snapshot(self) -> bool:
        """Whether there is enough in the journal to be worth a snapshot."""
        return self.journal.entries > SNAPSHOT_ENTRIES or self.journal.bytes > SNAPSHOT_BYTES

    def keep(self, core: Core, network: Network | None) -> None:
        """Let a snapshot take the place of all entries."""
        self.journal.keep(dump_state(core, network))

    # Coming back ---------------------------------------------------------------------------------------

    def revive(self, core: Core, network: Network | None) -> tuple[Core, Network | None, int]:
        """Bring fresh cores to where the journal leaves them; return them, and how many entries it took."""
        state, entries = self.journal.replay()
        if state is not None:
            _load(state, core, network)
        count = 0
        for entry in entries:
            _feed(core, network, entry)
            count += 1
        return core, network, count


def _load(state: bytes, core: Core, network: Network | None) -> None:
    try:
        load_state(state, core, network)
    except StateError as error:
        raise JournalError(
            f"The store's snapshot cannot be used, for {error} `sojourn store export` writes what is in it."
        ) from None


def _feed(core: Core, network: Network | None, entry: bytes) -> None:
    """Tell the cores one thing again; what they want done was done before."""
    try:
        kind, now, *what = _decode(entry)
    except (msgspec.MsgspecError, TypeError, ValueError):
        raise JournalError(
            "The store has an entry that does not read; look at it with `sojourn store check`."
        ) from None
    with contextlib.suppress(SojournError):  # what is refused now was refused then
        _retell(core, network, kind, now, what)
    if network is not None:
        network.report(now)
        network.stored_unsure.clear()
    effects = core.effects
    for connection in effects.touched:
        connection.output.clear()
    effects.touched.clear()
    effects.knocks.clear()
    effects.unread.clear()
    effects.overflowing.clear()
    effects.sources.clear()


def _retell(core: Core, network: Network | None, kind: int, now: float, what: list[Any]) -> None:
    if kind in (FRAME, LINK):
        assert network is not None, "only a broker with neighbours has links"
        _retell_link(network, kind, now, what)
    elif kind in (TICK, REFUSING, STOPPED):
        _retell_turn(core, network, kind, now, what)
    else:
        _retell_client(core, network, kind, now, what)


def _retell_client(core: Core, network: Network | None, kind: int, now: float, what: list[Any]) -> None:
    match kind:
        case 0:
            core.opened(what[0], what[1], what[2], now)
        case 1:
            core.received_again(what[0], what[1], now)
        case 2:
            core.blocked(what[0])
        case 3:
            core.drained(what[0], now)
        case 4:
            core.lost(what[0], now)
        case 6:
            admission = load_admission(what[1])
            if network is not None:
                network.admit(what[0], admission, now)
            else:
                core.admit(what[0], admission, now)
        case 7:
            core.refuse(what[0], ConnAckReasonCode(what[1]), what[2])
        case 10:
            core.overflowed(what[0], now)


def _retell_turn(core: Core, network: Network | None, kind: int, now: float, what: list[Any]) -> None:
    if kind == REFUSING:
        core.state.refusing = what[0]
    elif kind == STOPPED:
        core.stop(what[0], now)
    else:
        core.time_passed(now, what[0])
        if network is not None:
            network.time_passed(now)


def _retell_link(network: Network, kind: int, now: float, what: list[Any]) -> None:
    if kind == FRAME:
        network.frame_arrived(what[0], Position(what[1]), what[2], now)
    else:
        network.linked(what[0], now, up=what[1])

"""One whole live broker behind one call: facts and time in, effects out.

    broker = LiveBroker(settings, life)             # or LiveBroker.revived(…) from what a store holds
    broker.handle(fact, now)                        # as often as something happens
    broker.knocks                                   # clients to be let in or refused, by further facts
    turn = broker.turn(now)                         # once a loop turn: what to do, in order
    broker.has_slices                               # something waits its turn: tell it `ReadyForMore`
    broker.next_moment()                            # when to say `TimePassed` at the latest

The same with neighbours and without, with a store and without. A broker that `remembers` notes every fact
that matters after its death; what it notes stands in `turn.entries` and is to be safe before anything else of
the turn leaves. Replay feeds the same call: since nothing here waits, draws or looks at a clock, a broker
that is told again what it noted, at the same times, ends in the same state.

Pings and events of QoS 0 are not noted: nobody was promised anything about them. But one that is stored for a
client that may come is, for what brokers hand one another follows from what they have stored. What was
decided by those too is noted as a fact of its own: who was silent, who broke the protocol, for whom too much
waited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar

from mqtt5 import ConnAckReasonCode as ConnectCode
from msgspec.structs import replace

from sojourn.broker import facts, regrouping, session_facts
from sojourn.broker.carried import Carried
from sojourn.broker.effects import Turn
from sojourn.broker.frame_heads import Position
from sojourn.broker.meetings import Meetings, arranged
from sojourn.broker.network import TIMERS_MAX, Network
from sojourn.broker.passing_on import PASSED_ON
from sojourn.broker.quenching import Quencher
from sojourn.broker.reviving import at_once, forget_effects, reviving
from sojourn.broker.ruling import Rights, Ruling
from sojourn.broker.settings import Settings
from sojourn.broker.slices import DELIVERIES_A_FRAME, EVENTS_A_FRAME, FRAMES_A_SLICE, Slices
from sojourn.broker.snapshot import Snapshot
from sojourn.broker.state_codec import dump_state
from sojourn.broker.transplanting import is_another_network, transplant
from sojourn.errors import SojournError
from sojourn.mqtt.core import Core
from sojourn.mqtt.costs import OUTPUT_A_TURN, UNSLICED_MAX
from sojourn.mqtt.effects import Knock
from sojourn.mqtt.state import UNNOTED_NUMBERS_MAX


class LiveBroker:
    """One broker: sessions, routing, moving clients and links."""

    def __init__(self, settings: Settings, life: str, *, remembers: bool = False) -> None:
        self.settings = self.settings_before = settings
        """What it is told now, and was told in its last life."""
        self.life, self.remembers = life, remembers
        self.core = Core(
            settings.name,
            settings.limits,
            shared_subscriptions=settings.shares,
            session_expiry_max_s=settings.session_expiry_max_s,
        )
        self.network = Network(settings, self.core, life) if settings.routes else None
        self._meetings = arranged(self.network, self._note, partial(setattr, self, "settings"))
        self.core.state.origin = f"{settings.name}~{life[:8]}"
        self.core.state.quenches = settings.quenches
        self.core.kept = [] if remembers else None
        self.knocks: list[Knock] = self.core.effects.knocks
        """Clients that want to be let in: each is answered by `ClientAdmitted` or `ClientRefused`."""
        self.now_s = self._before_s = 0.0
        """The time of the last fact."""
        self._quencher: Quencher | None = None
        self._slices = Slices(self.core, settings.at_once)
        self.ruling = Ruling(self.core, self._slices.clients)
        self.core.begin_turn()
        self._turn = Turn()
        self.to_pump: list[int] = []
        """Connections for which a turn left something to the next one, which should come soon."""
        self._is_replaying = False
        self.refused_again = 0
        """How many facts of earlier lives were refused when they were told again."""
        self._sequence = self._noted_to = 0
        """The number of the last message before the present fact; one that a restart is sure to go beyond."""

    # The door ------------------------------------------------------------------------------------------

    def handle(self, fact: facts.Fact, now: float) -> None:
        """Take one fact; what it leads to is in `knocks` at once and in the next `turn`."""
        self._before_s, self.now_s = self.now_s, now
        self._sequence = self.core.state.sequence
        self._HANDLERS[type(fact)](self, fact, now)
        wants, network = self.core.effects, self.network
        has_news = wants.published or wants.settled or wants.changes
        if has_news or (network is not None and network.clients.stored_unsure):
            self._report(now)
        if self._is_replaying:
            forget_effects(self.core, self.network)
        elif wants.unread or wants.overflowing or wants.dismissals or wants.subacks or wants.adopted:
            self._follow_up(now)

    def _report(self, now: float) -> None:
        """Tell the mobility core what the session core's last call led to."""
        if self.network is not None:
            self.network.clients.report(now)
            self.network.clients.stored_unsure.clear()

    def turn(self, now: float) -> Turn:
        """End a loop turn: return everything that is to be done, in order."""
        network = self.network
        if self.to_pump:
            self._pump(now)
        slices = self._slices
        if self.core.gate.unsliced > 0 and self.has_slices:
            self.handle(facts.ReadyForMore(), now)
        if self.core.state.sequence - self._noted_to > UNNOTED_NUMBERS_MAX and self.remembers:
            if not self._turn.entries and self.core.state.refusing is None:
                self.handle(facts.NumbersGiven(), now)
            self._noted_to = max(self.core.state.sequence, int(now * 1e6))
        if self.core.gate.unsliced != UNSLICED_MAX:
            self.core.begin_turn()
        if network is not None:
            confirming = network.confirming
            is_unconfirmed = confirming.waiting or confirming.confirmed
            if is_unconfirmed or network.links.congested or network.pressure.held:
                for answer in network.settle(now):
                    self.core.answer(answer.connection, answer.packet)
        if self._quencher is not None or self.core.effects.sources:
            self._quench()
        turn, self._turn = self._turn, Turn()
        effects = self.core.effects
        waiting = turn.collect_writes(effects.touched, has_large=effects.has_large)
        self.to_pump, effects.has_large = [*dict.fromkeys(self.to_pump + waiting)], False
        self.core.state.put_out = 0
        pressure = network.pressure if network is not None else None
        is_pressed = pressure is not None and (pressure.holds or pressure.releases)
        if is_pressed or slices.has_held or self.core.effects.waiting:
            self._hold_and_release(turn)
        turn.leaves_more = self.has_work
        if network is not None:
            turn.notes, network.clients.notes = network.clients.notes, []
            self._end_links_turn(network, turn, now)
        return turn

    def _end_links_turn(self, network: Network, turn: Turn, now: float) -> None:
        """Write what is due to neighbours, and note what they acknowledged."""
        meetings = self._meetings
        assert meetings is not None, "only a broker with neighbours meets one"
        turn.peer_writes, meetings.writes = meetings.writes, []
        turn.peer_closes, meetings.closes = meetings.closes, []
        for peer, channel in network.links.channels.items():
            if self.remembers:
                number = channel.acknowledgement(is_free=bool(turn.entries))
                if number is not None:
                    fact = facts.FramesAcknowledged(peer, number)
                    turn.entries.append(facts.write_entry((now, self.core.state.sequence, fact)))
            data = channel.outgoing()
            if data:
                turn.peer_writes.append((peer, data))

    def _hold_and_release(self, turn: Turn) -> None:
        """Say which clients are not to be read from for now."""
        pressure = self.network.pressure if self.network is not None else None
        holds, releases = (pressure.holds, pressure.releases) if pressure is not None else ([], [])
        turn.holds, turn.releases = self._slices.settle(holds, releases)
        if pressure is not None:
            pressure.holds, pressure.releases = [], []

    @property
    def has_slices(self) -> bool:
        """Whether something waits its turn, to be taken in (`ReadyForMore`) while there is time."""
        line, ring = self._slices, self.core.state.input.ring
        return line.frames_wait or bool(ring.count or line.late or line.clients.waiting or line.telling.left)

    @property
    def has_work(self) -> bool:
        """Whether a turn left something to the next one, which should come soon."""
        return bool(self.to_pump or self.knocks) or self.has_slices

    def next_moment(self) -> float | None:
        """When `TimePassed` is to be said at the latest."""
        moments = (self.core.next_moment(), self.network.next_moment() if self.network is not None else None)
        return min((moment_s for moment_s in moments if moment_s is not None), default=None)

    # Life ----------------------------------------------------------------------------------------------

    @classmethod
    def revived(
        cls,
        settings: Settings,
        life: str,
        now: float,
        snapshot: bytes | None,
        entries: Iterable[bytes],
        rights: Rights = lambda _: (),
    ) -> LiveBroker:
        """Return the broker that a store leaves, begun a new life with these settings and `rights`."""
        return at_once(reviving(cls, settings, life, lambda: now, snapshot, entries, rights))

    def replay(self, entry: facts.Entry) -> None:
        """Tell a fact again that was noted in an earlier life."""
        self._is_replaying = True
        # Never back: of two facts that one call noted, the later may speak of a number before both.
        self.core.state.sequence = max(entry.sequence, self.core.state.sequence)
        try:
            self.handle(entry.fact, entry.now)
        except SojournError:
            forget_effects(self.core, self.network)  # what is refused now was refused then
            self.refused_again += 1
        finally:
            self._is_replaying = False

    def snapshot(self) -> bytes:
        """Return the whole state as bytes; to be taken between two turns."""
        assert not self._turn.entries, "a line that is told after the snapshot is not in it"
        state = dump_state(self.core, self.network)
        return Snapshot(self.settings, self.now_s, state).written()

    def _on_started(self, fact: facts.Started, now: float) -> None:
        self.life, self.core.state.bans.hush = fact.life, fact.hushes_banned
        self.core.state.number_anew(now, self._before_s)
        if self.network is not None:
            self.network.restarted(fact.life, now)
        for number in list(self.core.state.connections):
            self.core.lost(number, now)
        self._slices.restarted()
        self.core.state.refusing = None
        self._note(fact, now)
        if fact.settings != self.settings:
            self._reconfigure(fact.settings, now)
        if self.network is not None:
            for peer in list(self.network.links.channels):
                self.network.link_changed(peer, now, up=False)
            self.network.reconciling.begin(fact.life, now)

    def _reconfigure(self, settings: Settings, now: float) -> None:
        """Take in settings that have changed since the last life."""
        before = self.settings
        settings = self.settings = regrouping.as_told(settings, before)
        self.core.reconfigure(settings.limits, settings.session_expiry_max_s)
        self.core.state.quenches = settings.quenches
        if is_another_network(before, settings):
            self.network = transplant(self.core, self.network, settings, self.life, now)
            self._meetings = arranged(self.network, self._note, partial(setattr, self, "settings"))
        elif self.network is not None:
            self.network.settings = settings
            self.network.clients.foresee(settings)

    def _on_network(self, fact: Any, now: float) -> None:
        regrouping.told_by_operator(self.network, fact, now)
        self._note(fact, now)

    # Clients -------------------------------------------------------------------------------------------

    def _on_session_fact(self, fact: facts.Remembered, now: float) -> None:
        session_facts.tell(self.core, fact, now)
        self._note(fact, now)

    def _on_sent(self, fact: facts.ClientSent, now: float) -> None:
        """Take what a client sent, and note its packets once it is known which events are stored."""
        core = self.core
        core.received(fact.connection, fact.data, now)
        if not core.kept:
            return
        stored: list[int] = []
        if self.network is not None:
            self.network.clients.report(now)
            stored = self.network.clients.stored_unsure
        kept = core.take_kept(stored)
        if kept:
            self._note(facts.PacketsTaken(fact.connection, kept), now)

    def _on_packets(self, fact: facts.PacketsTaken, now: float) -> None:
        self.core.received_again(fact.connection, fact.packets, now)

    def _on_lost(self, fact: facts.ClientLost, now: float) -> None:
        """Note that a connection is gone, once what its client had said before has been taken in."""
        if self.network is not None:
            self.network.pressure.lost(fact.connection)
        is_waiting = self._slices.lost(fact.connection)
        if not self._is_replaying and (is_waiting or self._slices.is_put_off(fact.connection)):
            return  # it is noted when it happens: what waited in a snapshot was taken in before this line
        self._lose(fact, now)

    def _lose(self, fact: facts.ClientLost, now: float) -> None:
        self.core.lost(fact.connection, now)
        self._note(fact, now)

    def _on_ready(self, _fact: facts.ReadyForMore, now: float) -> None:
        """Take a slice of what waits."""
        if self._slices.frames_wait:
            self._take_waiting_frames(now)
        if (connection := self.core.take_turn(now)) is not None:
            self._on_sent(facts.ClientSent(connection.number, b""), now)
            self._report(now)
        if self._slices.clients.waiting and (ready := self._slices.clients.next_ready()) is not None:
            self._sequence = self.core.state.sequence
            self._on_admitted(ready, now)
            self._report(now)
        if self._slices.telling.left:
            self._slices.telling.go_on(now)
        for number in self._slices.left():
            self._sequence = self.core.state.sequence
            self._lose(facts.ClientLost(number), now)
            self._report(now)

    def _on_admitted(self, fact: facts.ClientAdmitted, now: float) -> None:
        network = self.network
        if network is not None and not self._is_replaying and network.is_deaf_about(fact.connection):
            text = "Your session may be at another broker, which this one cannot hear at present; try again."
            self.handle(facts.ClientRefused(fact.connection, int(ConnectCode.SERVER_UNAVAILABLE), text), now)
            return
        if not self._is_replaying and self._slices.clients.is_put_off(fact):
            return
        self._note(fact, now)
        if network is not None:
            network.arrivals.admit(fact.connection, fact.admission(), now)
        else:
            self.core.admit(fact.connection, fact.admission(), now)

    def _on_learnt(self, fact: facts.PathsLearnt, now: float) -> None:
        self._reconfigure(replace(self.settings, learnt=fact.rows), now)
        self._note(fact, now)

    def _on_ruling(self, fact: Any, now: float) -> None:
        self.ruling.rule(self.network, fact, now)
        self._note(fact, now)

    # Neighbours ----------------------------------------------------------------------------------------

    def _on_meeting(self, fact: facts.Fact, now: float) -> None:
        assert self._meetings is not None, "only a broker with neighbours meets one"
        self._meetings.handle(fact, now)

    def _on_peer_sent(self, fact: facts.PeerSent, now: float) -> None:
        """Take what a neighbour sent, frame by frame; close a connection that brings what no broker sends."""
        network, meetings, peer = self.network, self._meetings, fact.peer
        assert network is not None, "only a broker with neighbours hears from one"
        assert meetings is not None, "only a broker with neighbours meets one"
        links, pressure = network.links, network.pressure
        channel = links.channels[peer]
        if not channel.open and not channel.is_connected:
            return  # the connection was given up, and what it brings comes again on the next one
        try:
            data = fact.data
            if not channel.open:
                if not meetings.meet(peer, data, now):
                    return
                data = b""
            left = FRAMES_A_SLICE
            for position, body in channel.arrived(data):
                must_look = left <= 0 or pressure.frames or self.core.state.refusing is not None
                must_look = must_look or pressure.prepared.is_dear(body)
                is_open = not must_look and links.is_open_for(peer)
                if is_open or not pressure.hold_frame(peer, (position, body), is_turn=left > 0):
                    left -= self._take_frame(peer, position, body, now)
            if pressure.frames:
                self._take_waiting_frames(now, left)
        except SojournError as error:
            meetings.give_up(peer, str(error), now)

    def _take_waiting_frames(self, now: float, most: int = FRAMES_A_SLICE) -> None:
        """Go on with frames that waited for room, or for their turn."""
        pressure = self._network.pressure
        while most > 0 and (found := pressure.next_frame()) is not None:
            waited, (position, body) = found
            most -= self._take_frame(waited, position, body, now)
        self._slices.frames_wait = pressure.has_frames

    def _on_acknowledged(self, fact: facts.FramesAcknowledged, _now: float) -> None:
        self._network.links.channels[fact.peer].acknowledged(fact.number)

    def _take_frame(self, peer: str, position: Position, body: bytes, now: float) -> int:
        """Take in a frame of a neighbour, and remember it; return how many ordinary ones it counts for.

        A volatile one is not remembered, unless its event is stored for somebody: what brokers hand one
        another, and number, depends on what they have stored.
        """
        network, effects = self.network, self.core.effects
        assert network is not None, "only a broker with neighbours gets frames"
        clients, before = network.clients, self.core.state.counters.delivered
        events: Sequence[Carried] | None = ()
        if body[1:2] in PASSED_ON and network.links.pass_on(body):
            message = None
        elif isinstance(message := network.links.wire.read(body, now), Carried):
            events = (message,)
            clients.events.arrived(message, network.links.bits[peer], now)
        else:
            most = None if self._is_replaying else FRAMES_A_SLICE * DELIVERIES_A_FRAME
            events = network.take_in(peer, position, message, now, most)
        if events is None:
            return 1
        network.links.channels[peer].took(position, body)
        store = clients.broker.subscribers.store
        if not position.rank or any(event in store for event in events):
            self._note(facts.FrameTaken(peer, position.number, position.rank, body), now)
        if effects.published or effects.settled or effects.changes:
            clients.report(now)
        delivered = self.core.state.counters.delivered - before
        return 1 + len(events) // EVENTS_A_FRAME + delivered // DELIVERIES_A_FRAME

    def _on_frame(self, fact: facts.FrameTaken, now: float) -> None:
        self._take_frame(fact.peer, Position(fact.number, fact.rank), fact.body, now)

    def _on_status(self, fact: facts.StatusMade, now: float) -> None:
        if self.network is not None:
            self.network.tell_status(fact.report, now)

    def _on_system(self, _fact: facts.SystemDue, now: float) -> None:
        self._slices.telling.begin(now)

    # The broker itself ---------------------------------------------------------------------------------

    def _on_time(self, fact: facts.TimePassed, now: float) -> None:
        silent, sessions = self.core.time_passed(now, fact.silent, fact.sessions)
        timers = 0
        if self.network is not None:
            most = TIMERS_MAX if fact.silent is None else fact.timers
            timers = self.network.time_passed(now, most)
        self._note(facts.TimePassed(silent, sessions, timers), now)

    def _on_store_mended(self, fact: facts.StoreMended, now: float) -> None:
        self.core.state.refusing = None
        self._note(fact, now)
        if self.network is not None and not self._is_replaying:
            self._take_waiting_frames(now)

    # What follows --------------------------------------------------------------------------------------

    @property
    def _network(self) -> Network:
        assert self.network is not None, "only a broker with neighbours has links"
        return self.network

    def _note(self, fact: facts.Remembered, now: float) -> None:
        if self.remembers and not self._is_replaying:
            self._turn.entries.append(facts.write_entry((now, self._sequence, fact)))

    def _follow_up(self, now: float) -> None:
        """Do what the session core leaves to its driver, and would do at once if nobody took notes."""
        effects = self.core.effects
        for fact in self.ruling.of_adopted() if effects.adopted else ():
            self._sequence = self.core.state.sequence
            self._on_ruling(fact, now)
            self._report(now)
        while effects.unread or effects.overflowing or effects.dismissals:
            self._sequence = self.core.state.sequence
            if effects.unread:
                self._on_sent(facts.ClientSent(effects.unread.pop(0), b""), now)
            elif effects.dismissals:
                number = next(iter(effects.dismissals))
                self._on_session_fact(facts.ClientDismissed(number, *effects.dismissals.pop(number)), now)
            else:
                number = next(iter(effects.overflowing))
                del effects.overflowing[number]
                self._on_session_fact(facts.Overflowed(number), now)
            self._report(now)
        due, effects.subacks = effects.subacks, []
        for one in due:  # when all brokers in reach know of the subscriptions
            if self.network is not None and self.network.confirms:
                self.network.confirm(one)
            else:
                self.core.answer(one.number, one.packet)

    def _pump(self, now: float) -> None:
        """Go on with queues that were cut off because a connection had been given enough for a turn."""
        state, numbers, self.to_pump = self.core.state, self.to_pump, []
        for number in numbers:
            connection = state.connections.get(number)
            if state.put_out >= OUTPUT_A_TURN:
                self.to_pump.append(number)
            elif connection is not None and not connection.blocked:
                self.handle(facts.ClientDrained(number), now)

    def _quench(self) -> None:
        """Tell publishers that asked for it what is wanted."""
        self._quencher = self._quencher or Quencher(self.core, self.network)
        self._quencher.settle()

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any, float], None]]] = {
        **dict.fromkeys(session_facts.FACTS, _on_session_fact),
        **dict.fromkeys(Meetings.FACTS, _on_meeting),
        **dict.fromkeys(regrouping.FACTS, _on_network),
        facts.ClientSent: _on_sent,
        facts.PacketsTaken: _on_packets,
        facts.ClientLost: _on_lost,
        facts.ReadyForMore: _on_ready,
        facts.ClientAdmitted: _on_admitted,
        facts.PathsLearnt: _on_learnt,
        **dict.fromkeys((facts.RightsChanged, facts.OrderGiven), _on_ruling),
        facts.PeerSent: _on_peer_sent,
        facts.FrameTaken: _on_frame,
        facts.FramesAcknowledged: _on_acknowledged,
        facts.Started: _on_started,
        facts.TimePassed: _on_time,
        facts.StoreMended: _on_store_mended,
        facts.StatusMade: _on_status,
        facts.SystemDue: _on_system,
    }

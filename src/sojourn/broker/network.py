"""What a broker with neighbours has beside its sessions: links, moving clients, and what neighbours send.

| part | its business |
| --- | --- |
| `links` | channels to neighbours, and how messages go out |
| `clients` | sessions and the mobility core tell each other what happens |
| `arrivals` | where the session of a client is that comes |
| `confirming` | what SUBACK promises |
| `reconciling` | a neighbour has forgotten something |
| `pressure` | who waits when a link is full |
| `forgetting` | when names are forgotten that nobody speaks of |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sojourn.broker import offering, regrouping, ruling
from sojourn.broker.arrivals import Arrivals
from sojourn.broker.carried import Carried, WireError
from sojourn.broker.clients import Clients
from sojourn.broker.confirming import Answer, Confirming
from sojourn.broker.effects import Note
from sojourn.broker.forgetting import Forgetting
from sojourn.broker.frame_heads import Position
from sojourn.broker.links import Links
from sojourn.broker.messages import (
    ECHO,
    OFFER,
    ORDER,
    PART,
    REACH,
    RETAIN,
    RETAIN_ASK,
    ROLL,
    SETTLED,
    SLOW,
    SPREAD,
    STATUS,
    SYNC_END,
    WAVE,
    Part,
    Reach,
    Retain,
    RetainAsk,
    Run,
    Spread,
    Status,
)
from sojourn.broker.pressure import Frame, Pressure
from sojourn.broker.reconciling import Reconciling
from sojourn.broker.settings import Settings
from sojourn.mobility import facts
from sojourn.mobility.finding_messages import CLEARED, FIND, FORGOT, FOUND
from sojourn.mqtt.core import Core
from sojourn.mqtt.effects import SubAckDue
from sojourn.mqtt.session import Session
from sojourn.routing.messages import Kind

UNREADABLE = "frame that does not read"
"""Why what a neighbour sent was let go."""
RETAINED_LOOK_S = 10.0
"""How often a broker that lacks retained values looks whether there is room for them."""
TIMERS_MAX = 200
"""Timers that run out at once; each may end what is stored for a client."""
VOLATILE = (STATUS, WAVE, ECHO, SLOW)
"""Kinds of messages that change nothing a broker remembers."""


class Network:
    """One broker's place among its neighbours."""

    def __init__(self, settings: Settings, core: Core, life: str) -> None:
        self.core, self.settings = core, settings
        self.on_settings: Callable[[Settings], None] = lambda _settings: None
        """Is told of other settings when brokers have joined or left."""
        self.farewells: set[str] = set()
        """Neighbours that have said that they leave, and this broker itself, if it has."""
        self.links = Links(settings, life)
        self.clients = Clients(settings, core, self.links)
        self.arrivals = Arrivals(settings, core, self.links, self.clients)
        self.confirming = Confirming(self.links)
        self.reconciling = Reconciling(
            core, self.links, self.clients, lambda: regrouping.told(self), settings.at_once.told
        )
        self.pressure = Pressure(core, self.links, settings.at_once)
        self.forgetting = Forgetting(settings.mobility.timeout_s)
        self.confirms = settings.routing.mode == "content"
        """Whether subscriptions travel at all; where events are flooded they do not."""
        self.retained_look_s = 0.0
        """When it is next looked whether there is room for retained values that are lacking."""
        self.seen = self.clients.seen

    # Frames --------------------------------------------------------------------------------------------

    def take_in(
        self, peer: str, position: Position, message: Any, now: float, most: int | None
    ) -> Sequence[Carried] | None:
        """Take in what a neighbour says; return the events that were routed for that, or that are retained.

        A run that would lead to more than so many deliveries is taken apart, and its events wait their turn
        before all that came later: None is returned.
        """
        if isinstance(message, WireError):
            self.skipped(peer, message)
            return ()
        if not isinstance(message, Run):
            self.receive(message, peer, now)
            return message.publications if message.kind == RETAIN else ()
        run = message.publications
        if most is not None and len(run) * self.clients.broker.router.audience(run[0]) > most:
            self._take_apart(peer, position, run, now)
            return None
        self.clients.events.run_arrived(run, self.links.bits[peer], now)
        return run

    def _take_apart(self, peer: str, position: Position, run: Sequence[Carried], now: float) -> None:
        """Let the events of a run wait one by one, but for those that were taken in before."""
        number, rank = position
        taken = self.links.channels[peer].taken
        frames: list[Frame] = []
        for back, event in zip(range(len(run) - 1, -1, -1), run, strict=True):
            place = Position(number, rank - back) if rank else Position(number - back)
            if place > taken:
                frames.append((place, self.links.wire.encode(event, now)))
        self.pressure.put_first(peer, frames)

    def receive(self, message: Any, peer: str, now: float) -> None:
        """Take in what a neighbour says."""
        kind, sender = message.kind, self.links.numbers[peer]
        if kind == Kind.PUBLISH:
            self.clients.events.arrived(message, self.links.bits[peer], now)
        elif kind == PART:
            self._receive_part(message, peer, now)
        elif kind in (FIND, FOUND):
            self.arrivals.received(message, sender, now)
        elif kind == RETAIN:
            self._on_retain(message, sender, now)
        elif kind == SPREAD:
            self._on_spread(message, sender, now)
        elif kind == RETAIN_ASK:
            self.reconciling.tell_retained(sender, now)
        elif kind == REACH:
            self._on_reach(message, sender, now)
        elif kind == ORDER:
            ruling.heard(self.core, self.links, message, sender, now)
        elif kind == SYNC_END:
            self.reconciling.on_end(sender, now)
        elif kind == ROLL:
            regrouping.heard(self, message, sender, now)
        elif kind in VOLATILE:
            self._receive_volatile(message, sender, now)
        else:
            self._receive_interest(message, sender, now)

    def _receive_interest(self, message: Any, sender: int, now: float) -> None:
        """Take in what brokers tell each other of interests, clients that move and members of groups."""
        kind = message.kind
        if kind == SETTLED:
            self.clients.members.received(message, now)
        elif kind == OFFER:
            offering.offered(self.arrivals, message, now)
        elif kind == CLEARED:
            self.arrivals.endings.on_cleared(message, now)
        elif kind == FORGOT:
            self.reconciling.doubt_copies(sender, now)
        else:
            if kind <= Kind.UNSUBSCRIBE:
                self.reconciling.heard(message, sender)
            self.clients.tell(facts.Received(message, sender), now)
            if kind == Kind.ADVERTISE:
                self.reconciling.advertised(now)

    def _receive_part(self, part: Part, peer: str, now: float) -> None:
        """Take in a piece of a message, and the message once its last piece is there."""
        whole = self.links.whole(peer, part)
        if whole is None:
            return
        try:
            message = self.links.wire.decode(whole, now)
        except WireError as error:
            self.skipped(peer, error)
            return
        if message.kind == PART:
            self.skipped(peer, WireError("A peer sent a piece of a message within another."))
        else:
            self.receive(message, peer, now)

    def skipped(self, peer: str, error: WireError) -> None:
        """Count a frame that does not read.

        It is taken in as if it said nothing: otherwise it would be sent again on every connection, and
        nothing behind it would ever come.
        """
        self.clients.drops[UNREADABLE] += 1
        self.clients.notes.append(Note("skipped", (peer, str(error))))

    def _receive_volatile(self, message: Any, sender: int, now: float) -> None:
        kind = message.kind
        if kind == STATUS:
            self._on_status(message, sender, now)
        elif kind == WAVE:
            self.confirming.on_wave(message, sender, now)
        elif kind == ECHO:
            self.confirming.on_echo(message, sender, now)
        else:
            self.pressure.on_slow(message, self.links.names.client_name(message.client), now)

    def forget_seen(self, before: int) -> None:
        """Forget how far sources had come that have long been silent."""
        for source in [source for source, last in self.seen.items() if last < before]:
            del self.seen[source]

    def _on_retain(self, message: Retain, sender: int, now: float) -> None:
        news = tuple(one for one in message.publications if self.core.retain(one.message))
        if news:
            self.links.flood(Retain(news), sender, now)
            for one in news:
                if one.message.payload_at < len(one.message.frame):
                    self.core.subscriber.greeter.greet_late(one.message, self._here_since, now)

    def _here_since(self, session: Session) -> float | None:
        """Since when a client is here, if it is."""
        roamer = self.clients.roamers.get(self.links.names.client_number(session.client_id))
        return roamer.since if roamer is not None and roamer.arrived else None

    def _on_spread(self, message: Spread, sender: int, now: float) -> None:
        for one in message.publications:
            if not self.clients.events.came_before(one.message):
                self.core.retain(one.message)
                self.clients.events.spread(one, sender, now)

    def is_deaf_about(self, connection: int) -> bool:
        """Whether a client comes for a session here that another broker may have asked for meanwhile.

        That is so while the store is full, and what neighbours say waits.
        """
        client_id = self.arrivals.resumes(connection) if self.core.state.refusing is not None else None
        return client_id is not None and self.pressure.may_speak_of(client_id)

    def _ask_for_retained(self, now: float) -> None:
        """Ask for the retained values again that there was no room for, now and then, once there is."""
        if self.core.state.retained.lacks and now >= self.retained_look_s:
            self.retained_look_s = now + RETAINED_LOOK_S
            if self.core.state.retained.wants_again(now):
                self.links.flood(RetainAsk(), None, now)

    # Reports -------------------------------------------------------------------------------------------

    def tell_status(self, report: bytes, now: float) -> None:
        """Let every broker know how this one is doing."""
        self.links.flood_volatile(Status(self.links.number, report), None, now)

    def _on_status(self, message: Status, sender: int, now: float) -> None:
        if 0 <= message.sender != self.links.number:
            note = Note("heard", (self.links.names_of[message.sender], message.report, now))
            self.clients.notes.append(note)
        self.links.flood_volatile(message, sender, now)

    # Links ---------------------------------------------------------------------------------------------

    def _on_reach(self, message: Reach, sender: int, now: float) -> None:
        self.reconciling.heard_of(message, sender)
        self.links.heard_of(message, now)
        self.links.flood(message, sender, now)
        self.arrivals.time_passed(now)

    def link_changed(self, peer: str, now: float, *, up: bool) -> None:
        """A link is in use, or no longer: everybody is told, for sessions may be behind it."""
        self.links.changed(peer, now, up=up)
        number = self.links.numbers[peer]
        if up:
            self.arrivals.doubts.met(number)
        self.links.flood(Reach(self.links.number, number, up), number, now)
        self.arrivals.time_passed(now)
        if not up:
            self.pressure.forget(peer)
            self.confirming.lost(self.links.numbers[peer], now)
            regrouping.parted(self, peer, now)

    # Time ----------------------------------------------------------------------------------------------

    def next_moment(self) -> float | None:
        """When `time_passed` has something to do, at the latest."""
        moments = [
            self.arrivals.next_moment(),
            self.clients.timers.next_moment(),
            self.confirming.next_moment(),
            self.pressure.next_moment(),
            self.forgetting.next_moment(self),
            0.0 if self.clients.broker.router.leaving or self.reconciling.telling else None,
            0.0 if self.clients.broker.subscribers.is_giving or self.clients.shares.left else None,
            self.retained_look_s if self.core.state.retained.lacks else None,
        ]
        return min((moment for moment in moments if moment is not None), default=None)

    def time_passed(self, now: float, most: int | None = None) -> int:
        """Let timers run out, so many at the most; return how many did."""
        clients, fired = self.clients, 0
        while fired != most and (due := clients.timers.due(now)) is not None:
            clients.tell(facts.TimerFired(*due), now)
            fired += 1
        self.arrivals.time_passed(now)
        clients.report(now)
        self.confirming.time_passed(now)
        self.forgetting.time_passed(self, now)
        self._go_on_withdrawing(now)
        self._go_on_giving(now)
        if clients.shares.left:
            clients.members.go_on(now)
        self.reconciling.go_on_telling(now)
        self._ask_for_retained(now)
        return fired

    def _go_on_withdrawing(self, now: float) -> None:
        """Do a part of what is left to do for subscriptions that covered many others, and are gone."""
        broker = self.clients.broker
        if broker.router.leaving:
            broker.router.go_on_withdrawing()
            self.clients.interests_changed = True
            self.clients.carry_out(broker.effects, now)

    def _go_on_giving(self, now: float) -> None:
        """Give a part of what is stored for clients that have come, here or elsewhere."""
        broker = self.clients.broker
        if broker.subscribers.is_giving:
            broker.subscribers.go_on_giving(now)
            self.clients.carry_out(broker.effects, now)
            self.clients.report(now)

    def settle(self, now: float) -> list[Answer]:
        """End a turn: begin what waits for it; return the answers that clients may be given now."""
        if self.confirms:
            self.confirming.settle(now)
        self.pressure.settle(now)
        confirmed, self.confirming.confirmed = self.confirming.confirmed, []
        for answer in confirmed:
            self.clients.tell_trace("in_force", answer.connection, now)
        return confirmed

    def confirm(self, due: SubAckDue) -> None:
        """Answer a SUBSCRIBE when every broker in reach knows of it."""
        self.confirming.ask(Answer(due.number, due.packet))
        self.clients.tell_trace("awaits", due.client_id, due.number)

    def restarted(self, life: str, now: float) -> None:
        """The broker was killed and is back from its journal: no connection is left."""
        self.links.life = life
        self.links.restarted(now)
        for channel in self.links.channels.values():
            channel.reborn(life)
        for number in list(self.core.state.connections):
            self.core.lost(number, now)
        self.arrivals.restarted(now)
        self.clients.broker.subscribers.restarted()
        self.confirming.restarted()
        self.pressure.restarted()
        self.clients.report(now)

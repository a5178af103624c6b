"""Drives one broker: what sockets, clocks and files say becomes facts, and what the broker wants is done.

No decision is taken here. The beats are always the same:

    broker.handle(fact, now)      # as often as something happens
    … answer its knocks           # passwords are compared in threads
    broker.turn(now)              # once a loop turn; entries are made safe, then the rest is carried out

Time is the loop's clock, moved so that it reads as seconds since 1970; it never goes back, and begins no
earlier than the last fact in the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from mqtt5 import ConnAckReasonCode
from msgspec.structs import replace

from sojourn.broker import facts
from sojourn.broker.addresses import Addresses, Refused
from sojourn.broker.effects import Turn
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.logins import Verdict
from sojourn.broker.roll import roll_of
from sojourn.errors import SojournError
from sojourn.live.addresses import AddressBook, book_of, true_address
from sojourn.live.brokers.admission import Doorkeeper, Entry, Question, Refusal, Welcome
from sojourn.live.brokers.doors import Guest
from sojourn.live.brokers.login_desk import LoginDesk
from sojourn.live.brokers.outbox import Copying, Outbox
from sojourn.live.brokers.reading import FrameLine, ReadingLine
from sojourn.live.brokers.recording import Recording
from sojourn.live.brokers.regrouped import Regrouping, following
from sojourn.live.brokers.rights_today import rights_today
from sojourn.live.brokers.warming import Warmer
from sojourn.live.brokers.witnesses import Witnesses
from sojourn.live.brokers.writing import Moment, WritingLine
from sojourn.live.config import Address, Config, parse_address
from sojourn.live.learning import paths_at_start
from sojourn.live.links.knowing import proof_for
from sojourn.live.links.peers import PeerLinks
from sojourn.live.links.proofs import Proof
from sojourn.live.page.status import Tally
from sojourn.live.store.keeper import Keeper, NoRoomError
from sojourn.live.tracing import Tracer
from sojourn.mqtt.core import Core
from sojourn.mqtt.effects import Knock
from sojourn.mqtt.parties import party_of

if TYPE_CHECKING:
    from sojourn.broker.network import Network
    from sojourn.live.brokers.connection import ClientConnection

ACCEPT_MARGIN = 100
"""Connections beyond the limit that are accepted to be told so; the rest are closed at once."""
LINGER_S = 5.0
"""How long a connection that is closed may take to read what it was told."""
TOO_MANY_LOGINS = Refusal(
    ConnAckReasonCode.CONNECTION_RATE_EXCEEDED, "Too many passwords of your address wait; try again later."
)
LOOK_S = 0.02
"""How soon after something happened it is looked whether anything is due because of it."""
TURN_S = 0.01
"""How long a turn takes in what waits, at the most; then others are looked at."""

Revived = tuple[Keeper, LiveBroker, Tracer | None]
"""What was made of a store before, and the trace if there is to be one."""

_log = logging.getLogger("sojourn.node")


class Node:
    """One broker of a configuration, at work."""

    def __init__(  # noqa: PLR0915  (a broker's parts are put together here)
        self,
        config: Config,
        name: str,
        loop: asyncio.AbstractEventLoop,
        book: AddressBook | None = None,
        copying: Copying | None = None,
        revived: Revived | None = None,
    ) -> None:
        self.config = config
        self.book = book if book is not None else book_of(config)
        """Where the other brokers listen."""
        self.place = config.broker(name)
        if copying is not None:
            self.place = replace(self.place, store=copying.store)
        self.outbox = None if copying is None else Outbox(self, copying)
        """What waits until other processes have a copy of what led to it."""
        self.loop = loop
        self.doorkeeper = Doorkeeper(config, name)
        self.guests: dict[int, Guest] = {}
        """By connection: how it came."""
        self.entries: dict[int, Entry] = {}
        """By connection that was let in: what it proved its name by."""
        proof = proof_for(config, name, None if copying is None else copying.process)
        self.connections: dict[int, ClientConnection] = {}
        self.reading_line, self.frame_line = ReadingLine(loop), FrameLine(loop)
        self.writing = WritingLine(loop, self.connections, lambda: self.config.limits, self.worked)
        self.files_room: int | None = None
        """How many connections of clients the limit on open files leaves room for, if that is known."""
        self.handshakes = 0
        """Connections whose handshake of TLS is under way; they count as those of clients do."""
        self.closed_at_once: Counter[str] = Counter()
        """Connections that were not even taken, by reason."""
        self.failure: SojournError | None = None
        """Why the broker cannot go on; it takes in and does nothing any more."""
        self.on_failure: Callable[[], None] = lambda: None
        self._epoch_s = time.time() - loop.time()
        life = secrets.token_hex(8)
        settings = replace(config.settings(name), learnt=paths_at_start(config, name))
        self.keeper: Keeper | None = None
        if revived is not None:
            self.keeper, self.broker, _ = revived
        elif self.place.store is not None:
            self.keeper, self.broker = Keeper.open(
                self.place.store,
                settings,
                life,
                self.now(),
                power_safe=self.place.power_safe,
                rights=partial(rights_today, config),
            )
        else:
            self.broker = LiveBroker(settings, life)
            self.broker.handle(facts.Started(life, settings, hushes_banned=True), self.now())
        self.broker.ruling.rights = partial(rights_today, config)
        self._epoch_s += max(0.0, self.broker.now_s - self.now())
        self.witnesses = Witnesses(config, name, self.core)
        self.regrouping = Regrouping(self)
        if self.network is not None and roll_of(self.network.settings) != roll_of(settings):
            self.config = following(config, self.network.settings)
        self.witnesses.on_regrouped = self.regrouping.regrouped
        self.links = self._make_links(self.network, proof) if self.network is not None else None
        self.regrouping.expect(config)
        if self.links is not None:
            self.links.on_refusal = lambda peer, why: self.witnesses.note_stranger(self.now(), peer, why)
        self.handled = 0
        """Facts that the broker was told."""
        self._last_number, self._timer_s = 0, 0.0
        self._has_ended = self._flushing = False
        self.warmer = Warmer(self.broker)
        self._began = 0.0, 0.0
        """When the present turn began, by a clock that goes on while it lasts and by the processor's."""
        self.turns, self.turns_cpu = Tally(), Tally()
        self._took_s: list[tuple[float, float]] = []
        """How long turns took that are not counted yet, and how much of the processor."""
        self._timer: asyncio.TimerHandle | None = None
        self._addresses = Addresses()
        self._parties: dict[int, str] = {}
        """By connection: what the address counts as that it comes from."""
        self._too_many: dict[int, Refused] = {}
        """By connection: why it is one too many of its address; it is told when it has said who it is."""
        self._desk = LoginDesk(loop, config.limits, self._compared, self.connections.__contains__)
        self._tasks: set[asyncio.Task[None]] = set()
        self._emptied: asyncio.Event | None = None
        if config.trace is not None:
            self.witnesses.recording = Recording(self, config.trace, None if revived is None else revived[2])
        self._schedule()

    @property
    def core(self) -> Core:
        """The broker's sessions, for whoever reports on them."""
        return self.broker.core

    @property
    def network(self) -> Network | None:
        """The broker's links and moving clients, for whoever reports on them."""
        return self.broker.network

    @property
    def logins_waiting(self) -> int:
        """Passwords that wait to be compared."""
        return self._desk.logins.waiting

    def now(self) -> float:
        """Return the time in seconds since 1970; it never goes back."""
        return self._epoch_s + self.loop.time()

    # Facts -------------------------------------------------------------------------------------------

    def tell(self, fact: facts.Fact) -> None:
        """Tell the broker what happened, answer its questions, and have the rest done soon."""
        if self.failure is not None:
            return
        now = self._epoch_s + self.loop.time()
        if not self._flushing:  # as `_schedule` does; every packet comes this way
            self._flushing, self._began = True, (time.perf_counter(), time.thread_time())
            self.loop.call_soon(self.flush)
        self.handled += 1
        broker = self.broker
        broker.handle(fact, now)
        while broker.knocks:
            self._answer(broker.knocks.pop(0), now)

    def has_room_for_another(self) -> bool:
        """Whether another connection may be accepted; if not, that is said now and then.

        Files, pages and neighbours need descriptors too, so those are never all given to clients.
        """
        count = len(self.connections) + self.handshakes
        if self.is_out_of_files:
            self.closed_at_once["no file left for a connection"] += 1
            self.witnesses.out_of_files(count)
            return False
        if count >= self.config.limits.connections_max + ACCEPT_MARGIN:
            self.closed_at_once["far too many connections"] += 1
            return False
        return True

    @property
    def is_out_of_files(self) -> bool:
        """Whether the limit on open files leaves no room for another client."""
        count = len(self.connections) + self.handshakes
        return self.files_room is not None and count >= self.files_room

    def knocked(self, peer: str) -> bool:
        """Count a connection that begins with a handshake of TLS; if there is no room, say so and do not."""
        if not self.has_room_for_another():
            return False
        party = party_of(peer)
        refused = self._addresses.opened(party, self.config.limits, self.now())
        if refused is not None:
            self._addresses.lost(party, self.now())
            self.closed_at_once[refused.code.name.lower()] += 1  # as where it is told why
            return False
        self.handshakes += 1
        return True

    def turned_away(self, peer: str) -> None:
        """Count a connection no longer whose handshake came to nothing."""
        self.handshakes -= 1
        self._addresses.lost(party_of(peer), self.now())

    def shut_out(self, peer: str, why: str, sentence: str) -> None:
        """Count, note and say now and then why a handshake of TLS came to nothing."""
        self.closed_at_once[why] += 1
        self.witnesses.shut_out(self.now(), peer, why, sentence)

    def opened(self, client: ClientConnection, peer: str, guest: Guest, *, is_counted: bool = False) -> int:
        """Take a new connection, and number it; one that came by TLS counts already."""
        self._last_number += 1
        number = self._last_number
        self.connections[number] = client
        self.guests[number] = guest
        party = self._parties[number] = party_of(peer)
        if is_counted:
            self.handshakes -= 1
        elif (refused := self._addresses.opened(party, self.config.limits, self.now())) is not None:
            self._too_many[number] = refused
        self.tell(facts.ClientOpened(number, peer, f"auto-{secrets.token_hex(12)}"))
        return number

    def blocked(self, number: int) -> None:
        """Note that a client does not read."""
        self.tell(facts.ClientBlocked(number))

    def drained(self, number: int) -> None:
        """Note that a client reads again."""
        self.tell(facts.ClientDrained(number))

    def lost(self, number: int) -> None:
        """Note that a connection is gone."""
        del self.connections[number]
        del self.guests[number]
        self.entries.pop(number, None)
        self._too_many.pop(number, None)
        self._addresses.lost(self._parties.pop(number), self.now())
        if self._emptied is not None and not self.connections:
            self._emptied.set()
        self.tell(facts.ClientLost(number))

    # Effects -----------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        """Have the turn end once everything that came together has been told."""
        self._flushing, self._began = True, (time.perf_counter(), time.thread_time())
        self.loop.call_soon(self.flush)

    def flush(self) -> None:
        """End a loop turn: make safe what was promised, then do what the broker wants."""
        self._flushing = False
        if self.failure is not None or self._has_ended:
            return
        now = self._epoch_s + self.loop.time()
        broker = self.broker
        began = self._began
        while broker.knocks:  # of what the last turn took in at its end
            self._answer(broker.knocks.pop(0), now)
        while broker.has_slices and time.perf_counter() < began[0] + TURN_S:
            broker.handle(facts.ReadyForMore(), now)
            while broker.knocks:
                self._answer(broker.knocks.pop(0), now)
        turn = broker.turn(now)
        if self.keeper is not None and (turn.entries or self.keeper.is_gone):
            try:
                fact = self.keeper.commit(broker, turn.entries)
            except NoRoomError as error:
                self.fail(error)
                return
            if fact is not None:
                self.tell(fact)
        if self._timer is None or self._timer_s > now + LOOK_S:
            self._look_by(now + LOOK_S)
        if self.outbox is None:
            self.carry_out(turn)
        else:
            self.outbox.put(turn)
        if broker.core.effects.refusals:
            self.witnesses.note_refusals(now)
        if turn.leaves_more and not self._flushing:
            self._schedule()
        self._took_s.append((time.perf_counter() - began[0], time.thread_time() - began[1]))

    def worked(self, began: Moment) -> None:
        """Note that something was done besides turns that kept the broker busy since a moment."""
        self._took_s.append((time.perf_counter() - began[0], time.thread_time() - began[1]))

    def fail(self, error: SojournError) -> None:
        """End without a further word: what the broker has in mind is not safe, so nobody hears of it."""
        self.failure = error
        for client in list(self.connections.values()):
            client.abort()
        if self.links is not None:
            self.links.abort()
        self.on_failure()

    def abandon(self, error: SojournError) -> None:
        """End the same way, and let the store go as it is: another process plays this broker."""
        self.fail(error)
        self._has_ended = True
        self._desk.stop()
        for task in self._tasks:
            task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        if self.keeper is not None:
            self.keeper.abandon()
        self.witnesses.close(goes_on=True)

    def carry_out(self, turn: Turn) -> None:
        """Do what a turn leads to; its lines are safe."""
        connections = self.connections
        if turn.writes or turn.closes:
            self.writing.write(turn.writes, turn.closes)
        if self.links is not None:
            for peer, data in turn.peer_writes:
                self.links.write(peer, data)
            for peer, why in turn.peer_closes:
                self.links.close(peer, why)
        for number in connections.keys() & turn.holds:  # what waited for copies may come late
            connections[number].hold()
        for number in connections.keys() & turn.releases:
            connections[number].release()
        for note in turn.notes:
            self.witnesses.tell(note)

    def _make_links(self, network: Network, proof: Proof) -> PeerLinks:
        """Take the broker's place among its neighbours."""
        numbers, joined = network.links.numbers, {row[0] for row in network.settings.joined}
        calls = {}
        for peer in network.links.channels:
            address = self.config.broker(peer).peers
            # Of two neighbours the one that comes first calls the other, but one that joined calls itself.
            first, last = sorted((peer, self.place.name), key=numbers.__getitem__)
            if address is not None and self.place.name == (last if last in joined else first):
                calls[peer] = parse_address(address, f"peers of {peer}")
        peers = tuple(network.links.channels)
        links = PeerLinks(self.place.name, peers, self.tell, proof, calls=calls, find=self._find)
        links.may_connect = self.regrouping.may_connect
        if self.outbox is not None:
            links.process_of = self.outbox.copying.process_of
        return links

    def _find(self, peer: str, configured: Address) -> Address | None:
        """Return where a neighbour listens at this moment."""
        found: Address | None = configured
        if not configured.port:
            said = self.book.find(peer)
            found = None if said is None else true_address(configured, said.peers, peer)
        return found if self.outbox is None else self.outbox.copying.find(peer, found)

    def _look_by(self, moment_s: float) -> None:
        """Look at the latest at this moment whether something is due."""
        if self._timer is not None:
            if self._timer_s <= moment_s:
                return
            self._timer.cancel()
        self._timer_s = moment_s
        self._timer = self.loop.call_at(moment_s - self._epoch_s, self._look)

    def _look(self) -> None:
        """Say that time has passed if something is due, and look again when the next thing is."""
        self._timer = None
        self.count_turns()
        if self.warmer.is_due:
            self.begin(self.warmer.warm())
        now = self.now()
        if self.witnesses.recording is not None:
            self.witnesses.recording.look(now)
        if self.keeper is not None:
            fact = self.keeper.look_for_room(now)
            if fact is not None:
                self.tell(fact)
            if self.keeper.is_gone and not self._flushing:
                self._schedule()
        moment_s = self.broker.next_moment()
        if moment_s is not None and moment_s <= now:
            self.tell(facts.TimePassed())
            moment_s = self.broker.next_moment()
        room_s = self.keeper.next_look_s if self.keeper is not None else None
        moments = [one for one in (moment_s, room_s) if one is not None]
        if moments:
            self._look_by(max(min(moments), now + LOOK_S))

    def count_turns(self) -> None:
        """Count how long turns took that are not counted yet."""
        for took_s, used_s in self._took_s:
            self.turns.add(took_s)
            self.turns_cpu.add(used_s)
        self._took_s.clear()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done aside, until the broker stops."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Admission ---------------------------------------------------------------------------------------

    def _answer(self, knock: Knock, now: float) -> None:
        guest = self.guests.get(knock.number)
        if guest is None:
            return  # it has gone
        refused = self._too_many.pop(knock.number, None)
        if refused is None and self.outbox is not None:
            refused = self.outbox.refusal(knock.number)
        decision = Refusal(*refused) if refused else self.doorkeeper.ask(knock.packet, guest)
        if isinstance(decision, Question):
            verdict = self._desk.ask(knock.number, self._parties.get(knock.number, ""), decision)
            if verdict is Verdict.WAITS:
                return
            decision = (
                self.doorkeeper.answer(decision, fits=True) if verdict is Verdict.FITS else TOO_MANY_LOGINS
            )
        self.broker.handle(self._decided(knock.number, decision), now)

    def _compared(self, number: int, question: Question, fits: bool) -> None:  # noqa: FBT001 - a callback
        self.tell(self._decided(number, self.doorkeeper.answer(question, fits=fits)))

    def _decided(self, number: int, decision: Welcome | Refusal) -> facts.Fact:
        if isinstance(decision, Refusal):
            return facts.ClientRefused(number, int(decision.code), decision.text)
        if number in self.connections:
            self.entries[number] = decision.entry
        return facts.ClientAdmitted.of(number, decision.at(self.now()))

    # The end -----------------------------------------------------------------------------------------

    def dismiss(self, reference: str | None = None) -> None:
        """Tell all clients that the broker stops and where to go; links still stand."""
        _log.info("stopping", extra={"clients": len(self.connections)})
        self.tell(facts.Stopping(reference))
        self.flush()

    async def stop(self) -> None:
        """End the links, and wait until clients have read what they were told."""
        self.flush()
        if self.links is not None:
            await self.links.stop()
        self._desk.stop()
        for task in self._tasks:
            task.cancel()
        if self.connections:
            self._emptied = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LINGER_S):
                    await self._emptied.wait()
        for client in list(self.connections.values()):
            client.abort()
        self.flush()
        if self._timer is not None:
            self._timer.cancel()
        if self.keeper is not None and self.failure is None:
            self.keeper.close(self.broker)
        self._has_ended = True
        self.witnesses.close(goes_on=False)
        await self.witnesses.closed()

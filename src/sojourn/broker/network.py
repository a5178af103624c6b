"""A broker among others: where a client's session is, and what neighbours send.

The session core knows clients and packets, `mobility.Broker` knows where events go and what follows a client
that moves (`serving.py` ties the two together), the finder knows where a session is:

| what happens | what the cores are told |
| --- | --- |
| a client is admitted | its session is found (here, elsewhere, nowhere), then it enters |
| another broker asks for a session | it is given away, and forgotten here |
| a frame came | its message, to the finder or the broker |
| time passed | timers that ran out; what nobody speaks of is forgotten |

State is plain and can be pickled with everything it holds; time and bytes come in as arguments.
"""

from __future__ import annotations

from typing import Any

import msgspec
from mqtt5 import ConnAckReasonCode as ConnectCode

from sojourn.broker.channel import Position
from sojourn.broker.forgetting import Forgetting
from sojourn.broker.roamers import Roamer, Waiting, read_marks
from sojourn.broker.serving import Serving
from sojourn.broker.settings import Settings
from sojourn.broker.wire import RETAIN, STATUS, Carried
from sojourn.mobility import facts
from sojourn.mobility.finding import EVERYBODY, FIND, FOUND, Find, Finder, Result
from sojourn.mqtt import conventions
from sojourn.mqtt.content import property_values
from sojourn.mqtt.core import Core
from sojourn.mqtt.handshake import Admission
from sojourn.mqtt.packets import decode
from sojourn.mqtt.session_state import SessionState


class Network(Serving):
    """One broker's place among its neighbours."""

    def __init__(self, settings: Settings, core: Core, life: str) -> None:
        super().__init__(settings, core, life)
        self.finder = Finder(self.number, len(self.names_of))
        self.waiting: dict[int, Waiting] = {}
        self.forgetting = Forgetting(settings.mobility.timeout_s)

    # Clients that come ---------------------------------------------------------------------------------

    def admit(self, number: int, admission: Admission, now: float) -> None:
        """Let in a client whose name and password are in order, once its session is found."""
        connection = self.core.state.connections.get(number)
        if connection is None or connection.connect is None:
            return
        packet: Any = decode(connection.connect)
        client_id = packet.client_id or connection.fresh_id
        client = self.names.client_number(client_id)
        known = self.roamers.get(client)
        epoch = self.finder.next_epoch(client, now, known.epoch if known is not None else 0)
        marks = read_marks(property_values(packet.user_properties, conventions.MARKS))
        named = property_values(packet.user_properties, conventions.PREVIOUS)
        previous = self.numbers.get(named[0]) if named else None
        waiting = Waiting(number, admission, epoch, previous, marks)
        self.finder.out_of_reach = self._out_of_reach(now)
        session = self.core.state.sessions.get(client_id)
        is_over = session is not None and (packet.clean_start or not session.expiry)
        if is_over:
            # It ends under its own epoch: cleared, or with its connection, which this one takes over.
            self.core.end_session(client_id, now, publishes_will=True)
            self.report(now)
        if client_id in self.core.state.sessions:
            self._enter(client, waiting, self.number, None, now)
        elif not packet.client_id or not self.follows or (is_over and not packet.clean_start):
            self._enter(client, waiting, None, None, now)
        elif packet.clean_start:
            # Wherever there is a session, it ends; nobody waits for that.
            self.finder.claim(client, epoch, now)
            self._enter(client, waiting, None, None, now)
        else:
            self.waiting[client] = waiting
            self.finder.seek(client, epoch, previous, now)
        self._follow_finder(now)

    def _enter(
        self, client: int, waiting: Waiting, previous: int | None, state: SessionState | None, now: float
    ) -> None:
        if waiting.connection not in self.core.state.connections:
            if state is not None:
                self._adopt(client, waiting.epoch, previous, state, now)
            return
        self._expect(client, waiting, previous, now, resumes=state is not None or previous == self.number)
        admission = waiting.admission
        if state is not None:
            admission = Admission(
                username=admission.username,
                attributes=admission.attributes,
                may_state=admission.may_state,
                permissions=admission.permissions,
                state=state,
            )
        self.core.admit(waiting.connection, admission, now)
        self.report(now)

    def _expect(
        self, client: int, waiting: Waiting, previous: int | None, now: float, *, resumes: bool
    ) -> None:
        """Note under which epoch the client that is about to be admitted comes."""
        old = self.roamers.get(client)
        fresh = Roamer(waiting.epoch, previous, waiting.marks, now)
        fresh.resumes = resumes
        if old is not None and previous == self.number:
            # The session is here; the old connection, if there still is one, ends first under its own epoch.
            if old.arrived:
                self._lost(client, old, now)
            fresh.held = old.held
        elif old is not None and old.arrived:
            self._lost(client, old, now)
        self.roamers[client] = fresh

    def _adopt(self, client: int, epoch: int, previous: int | None, state: SessionState, now: float) -> None:
        """Keep a session whose client has gone again before its session came."""
        if state.client_id in self.core.state.sessions:
            return
        roamer = self.roamers[client] = Roamer(epoch, previous, None, now)
        session = self.core.adopt(state, now)
        self.report(now)
        self._arrive(client, session, roamer, now)
        self._lost(client, roamer, now)

    # Other brokers -------------------------------------------------------------------------------------

    def frame_arrived(self, peer: str, position: Position, body: bytes, now: float) -> bool:
        """Take in a frame of a neighbour; return whether that is to be remembered.

        A volatile frame is not, unless its event is stored for somebody: what brokers hand one another, and
        number, depends on what they have stored.
        """
        sender = self.numbers[peer]
        message = self.wire.decode(body, now)
        if message.kind == FIND:
            self._on_find(message, sender, now)
        elif message.kind == FOUND:
            if message.destination == self.number:
                held_epoch, present = self._held(message.client)
                self.finder.answered(message, held_epoch, now, present=present)
            else:
                self._forward(message, now)
        elif message.kind == RETAIN:
            for publication in message.publications:
                self.core.retain(publication.message)
            self._flood(message, sender, now)
        elif message.kind == STATUS:
            self._on_status(message, sender, now)
        else:
            self._tell(facts.Received(message, sender), now)
        self.channels[peer].took(position)
        self._follow_finder(now)
        return not position.rank or (
            isinstance(message, Carried) and message in self.broker.subscribers.store
        )

    def _on_find(self, message: Find, sender: int, now: float) -> None:
        if message.destination == EVERYBODY:
            self._flood(message, sender, now)
        elif message.destination != self.number:
            self._forward(message, now)
            return
        held_epoch, present = self._held(message.client)
        self.finder.asked(message, held_epoch, now, present=present)

    def _held(self, client: int) -> tuple[int | None, bool]:
        """The epoch of a client's session here, if there is one, and whether the client is connected."""
        roamer = self.roamers.get(client)
        if roamer is None or self.names.client_name(client) not in self.core.state.sessions:
            return None, False
        return roamer.epoch, roamer.arrived

    def _follow_finder(self, now: float) -> None:
        finder = self.finder
        while finder.gives or finder.sends or finder.results:
            gives, finder.gives = finder.gives, []
            for give in gives:
                self._give(give.client, give.epoch, give.to, now)
            sends, finder.sends = finder.sends, []
            for message in sends:
                if message.destination == EVERYBODY:
                    self._flood(message, None, now)
                else:
                    self._forward(message, now)
            results, finder.results = finder.results, []
            for result in results:
                self._found(result, now)

    def _give(self, client: int, epoch: int, to: int, now: float) -> None:
        """Hand a session to the broker that its client is with now."""
        client_id = self.names.client_name(client)
        roamer = self.roamers[client]
        session = self.core.state.sessions[client_id]
        if not session.expiry:  # it ends with its connection, which the other one takes over
            self.core.end_session(client_id, now, publishes_will=True)
            self.report(now)
            self.finder.give(client, epoch, to, None)
            return
        self.core.forget_queue(session)  # the mobility core has those events, and brings them along
        if roamer.arrived:
            session.left_s = now
        state = self.core.export_session(client_id, now)
        self.giving.add(client)
        if roamer.arrived:
            self._lost(client, roamer, now)
        self.core.end_session(client_id, now)
        self.report(now)
        self.giving.discard(client)
        del self.roamers[client]
        self.finder.give(client, epoch, to, msgspec.msgpack.encode(state))

    def _found(self, result: Result, now: float) -> None:
        waiting = self.waiting.get(result.client)
        state = None
        if result.state is not None:
            try:
                state = msgspec.msgpack.decode(result.state, type=SessionState)
            except msgspec.MsgspecError:
                self.drops["unreadable session"] += 1
        if waiting is None or waiting.epoch != result.asked:
            if state is not None:
                self._adopt(result.client, result.epoch, result.holder, state, now)
            elif result.superseded and not result.asked:
                self._yield(result.client, now)
            return
        del self.waiting[result.client]
        if result.unreachable:
            names = " or ".join(self.names_of[number] for number in sorted(result.unreachable))
            text = f"Your session may be at {names}, which is out of reach; try again."
            self.core.refuse(waiting.connection, ConnectCode.SERVER_UNAVAILABLE, text)
            return
        if result.superseded:
            self.core.refuse(
                waiting.connection, ConnectCode.SERVER_BUSY, "The same client is connected to another broker."
            )
            return
        previous = result.holder if state is not None else waiting.previous
        self._enter(result.client, waiting._replace(epoch=result.epoch), previous, state, now)

    def _yield(self, client: int, now: float) -> None:
        """End a session that another broker has a later one beside."""
        roamer = self.roamers.get(client)
        if roamer is not None:
            self._close(client, roamer.epoch, now)

    # Time ----------------------------------------------------------------------------------------------

    def next_moment(self) -> float | None:
        """When `time_passed` has something to do, at the latest."""
        moments = [
            self.finder.next_moment(),
            self.timers.next_moment(),
            self.forgetting.next_moment(self),
        ]
        return min((moment for moment in moments if moment is not None), default=None)

    def time_passed(self, now: float) -> None:
        """Let timers run out."""
        while (due := self.timers.due(now)) is not None:
            self._tell(facts.TimerFired(*due), now)
        self.finder.out_of_reach = self._out_of_reach(now)
        self.finder.time_passed(now)
        self._follow_finder(now)
        self.report(now)
        self.forgetting.time_passed(self, now)

    def restarted(self, life: str, now: float) -> None:
        """The broker was killed and is back from its journal: no connection is left."""
        for channel in self.channels.values():
            channel.reborn(life)
        for number in list(self.core.state.connections):
            self.core.lost(number, now)
        self.waiting.clear()
        self.report(now)

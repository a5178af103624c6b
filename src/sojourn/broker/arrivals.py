"""Clients that come: where the session of each one is, and how it changes hands between brokers.

| what happens | what the cores are told |
| --- | --- |
| a client is admitted | its session is found (here, elsewhere, nowhere), then it enters |
| another broker asks for a session | it is given away, and forgotten here |

The questions and answers between brokers are the finder's (`mobility/finding.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec
from mqtt5 import ConnAckReasonCode as ConnectCode

from sojourn.broker.clients import Clients
from sojourn.broker.doubting import Doubts
from sojourn.broker.endings import Endings
from sojourn.broker.links import Links
from sojourn.broker.owners import Owners
from sojourn.broker.roamers import Roamer, Waiting, read_marks
from sojourn.broker.settings import Settings
from sojourn.mobility.copies import State
from sojourn.mobility.facts import NO_EPOCH
from sojourn.mobility.finding import Finder, Result
from sojourn.mobility.finding_messages import EVERYBODY, Discard, Ending, Find, Found
from sojourn.mqtt import conventions
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.content import property_values, unclear_content
from sojourn.mqtt.core import Core
from sojourn.mqtt.handshake import is_over
from sojourn.mqtt.packets import decode
from sojourn.mqtt.rights import FOREIGN, why_not
from sojourn.mqtt.session_state import SessionState

DOWN_S = 3.0
"""Who has been out of reach for so long is not waited for; a broker that is restarted is back before that."""


class Arrivals:
    """The clients that wait for their sessions at one broker, and the sessions that leave it."""

    def __init__(self, settings: Settings, core: Core, links: Links, clients: Clients) -> None:
        self.core = core
        self.links = links
        self.clients = clients
        self.finder = Finder(links.number, len(links.names_of), give_up_s=settings.mobility.give_up_s)
        self.doubts = Doubts(
            links.number, len(links.names_of), links.neighbours.brokers, settings.mobility.give_up_s
        )
        if links.left:
            self.finder.regroup(len(links.names_of), links.left, 0.0)
            self.doubts.regroup(len(links.names_of), links.neighbours.brokers, links.left)
        self.endings = Endings(core, clients)
        self.owners = Owners(core, clients, self.finder)
        self._keeps_copies = settings.mobility.copies > 0
        self.waiting: dict[int, Waiting] = {}
        self.given_up = 0
        """Clients that began anew although a broker that may have their session is out of reach."""
        core.timekeeper.awaits_session = self._awaits_session

    def admit(self, number: int, admission: Admission, now: float) -> None:
        """Let in a client whose name and password are in order, once its session is found."""
        connection = self.core.state.connections.get(number)
        if connection is None or connection.connect is None:
            return
        packet: Any = decode(connection.connect)
        client_id = packet.client_id or connection.fresh_id
        client = self.clients.names.client_number(client_id)
        epoch = self.next_epoch(client, now)
        marks = read_marks(property_values(packet.user_properties, conventions.MARKS))
        named = property_values(packet.user_properties, conventions.PREVIOUS)
        previous = self.links.numbers.get(named[0]) if named else None
        if previous in self.links.left:
            previous = None
        session = self.core.state.sessions.get(client_id)
        here = None if session is None or is_over(session, now) else session
        if (why := why_not(admission, here, now)) is not None:
            self.core.refuse(number, ConnectCode.NOT_AUTHORIZED, why)
            return
        unclear = unclear_content(packet, in_network=True)
        if unclear is not None:  # refused before anybody gives or ends a session for it
            self.core.refuse(number, ConnectCode.IMPLEMENTATION_SPECIFIC_ERROR, unclear)
            return
        if not self._make_way(client, number, admission):
            return
        waiting = Waiting(
            number,
            admission,
            epoch,
            previous,
            marks,
            is_clean=packet.clean_start,
            owned_s=None if here is None else here.owned_s,
        )
        self.finder.out_of_reach = self.missing(now)
        ends_now = session is not None and (packet.clean_start or not session.expiry)
        if not ends_now and self.clients.follows and self._is_in_doubt(client, now):
            self.waiting[client] = waiting
            self.doubts.held.add(client)
            self._settle_doubts(now)
            return
        if ends_now:
            # It ends under its own epoch: cleared, or with its connection, which this one takes over.
            self.core.custody.end_session(client_id, now)
            self.clients.report(now)
        if client_id in self.core.state.sessions:
            self._enter(client, waiting, self.links.number, None, now)
        elif not packet.client_id or not self.clients.follows or (ends_now and not packet.clean_start):
            self._enter(client, waiting, None, None, now)
        elif packet.clean_start and (session is not None or not admission.among_others):
            # Wherever there is a session, it ends; nobody waits for that, as it is the same owner's.
            self.finder.begin_anew(client, epoch, now)
            self._enter(client, waiting, None, None, now)
        else:
            self.waiting[client] = waiting
            self.finder.seek(client, epoch, self._likely(client) if previous is None else previous, now)
        self.follow_finder(now)

    def _awaits_session(self, number: int) -> bool:
        return any(one.connection == number for one in self.waiting.values())

    def _likely(self, client: int) -> int | None:
        """Return the broker that has a client's session, if a copy here tells; it may be wrong.

        A copy that stores was activated by the broker that the client left. If it has gone on from there
        meanwhile, that broker says no, and all are asked.
        """
        copy = self.clients.broker.subscribers.main.get(client)
        return copy.controller if copy is not None and copy.state is State.ACTIVE else None

    def resumes(self, number: int) -> str | None:
        """Return the client that wants to go on with its session here; None if it has none or begins anew."""
        connection = self.core.state.connections.get(number)
        if connection is None or connection.connect is None:
            return None
        packet: Any = decode(connection.connect)
        has_session = packet.client_id in self.core.state.sessions and not packet.clean_start
        return packet.client_id if has_session and self.clients.follows else None

    def _make_way(self, client: int, number: int, admission: Admission) -> bool:
        """Let a connection that waits for the same session make way; say whether this one may go on.

        Both are told at once. One of somebody else waits in peace: nobody is kept out by others' attempts.
        """
        older = self.waiting.get(client)
        if older is None or older.connection not in self.core.state.connections:
            return True
        if older.admission.owner != admission.owner:
            text = "Another client with your identifier is about to be let in; try again."
            self.core.refuse(number, ConnectCode.SERVER_BUSY, text)
            return False
        del self.waiting[client]
        self.core.refuse(older.connection, ConnectCode.SERVER_BUSY, "The same client connected again.")
        return True

    def confront(self, now: float) -> None:
        """Let every session here meet any other that there is of its client.

        This broker has forgotten something, perhaps that it had given a session away: it would serve the
        client again with what it had then. The later one stays.
        """
        self.finder.out_of_reach = self.missing(now)
        for client, roamer in list(self.clients.roamers.items()):
            if self._held(client)[0] is not None and roamer.roams:
                self.finder.claim(client, roamer.epoch, now)
                if roamer.since <= self.doubts.began_s:
                    self.doubts.confronted(client, now)
        self.follow_finder(now)

    def _is_in_doubt(self, client: int, now: float) -> bool:
        """Whether a session here may be one that was given away and forgotten to be (`doubting.py`)."""
        roamer = self.clients.roamers.get(client)
        if roamer is None or not roamer.roams or self._held(client)[0] is None:
            self.doubts.forget(client)
            return False
        return self.doubts.is_in_doubt(client, roamer.since, now)

    def _settle_doubts(self, now: float) -> None:
        """Let those go on who wait for a session that is no longer in doubt."""
        doubts, missing = self.doubts, self.finder.out_of_reach.keys()
        for client, broker in doubts.to_ask_again(missing, now):
            if self._is_in_doubt(client, now):
                epoch = self.clients.roamers[client].epoch
                find = Find(destination=broker, sender=self.links.number, client=client, epoch=epoch)
                self.finder.sends.append(find)
        for client in sorted(doubts.held):
            is_in_doubt = self._is_in_doubt(client, now)
            if is_in_doubt and not doubts.is_hopeless(client, missing):
                continue
            doubts.held.discard(client)
            waiting = self.waiting.pop(client, None)
            if waiting is not None and is_in_doubt:
                self._refuse_for_now(waiting, doubts.silent[client])
            elif waiting is not None:
                self.admit(waiting.connection, waiting.admission, now)
        for client in [one for one in doubts.deferred if not self._is_in_doubt(one, now)]:
            for message in doubts.deferred.pop(client):
                self._answer_find(message, now)
                self.follow_finder(now)

    def _refuse_for_now(self, waiting: Waiting, brokers: Iterable[int]) -> None:
        """Tell a client that its session may be with brokers that are out of reach."""
        names = ", ".join(self.links.names_of[broker] for broker in sorted(brokers))
        text = f"Your session may be at {names}, out of reach at present; try again."
        self.core.refuse(waiting.connection, ConnectCode.SERVER_UNAVAILABLE, text)

    def restarted(self, now: float) -> None:
        """A life begins: no client waits any more."""
        self.waiting.clear()
        self.doubts.restarted(now)

    def next_moment(self) -> float | None:
        """When `time_passed` has something to do, at the latest."""
        moments = (self.finder.next_moment(), self.doubts.next_moment())
        return min((moment_s for moment_s in moments if moment_s is not None), default=None)

    def next_epoch(self, client: int, now: float) -> int:
        """Return the epoch of a new connection of a client, later than all that is known of it."""
        known = self.clients.roamers.get(client)
        latest = self.clients.broker.subscribers.latest(client)
        return self.finder.next_epoch(client, now, max(latest, known.epoch if known is not None else 0))

    def _enter(
        self, client: int, waiting: Waiting, previous: int | None, state: SessionState | None, now: float
    ) -> None:
        if waiting.connection not in self.core.state.connections:
            if state is not None:
                self._adopt(client, waiting.epoch, previous, state, now)
            return
        before = self.clients.roamers.get(client)
        resumes = (state is not None or previous == self.links.number) and not waiting.is_clean
        self._expect(client, waiting, previous, now, resumes=resumes)
        self.clients.roamers[client].last_epoch = self._last_epoch(state, now)
        admission = waiting.admission
        if state is not None:
            admission = replace(admission, state=state)
        is_in = self.core.admit(waiting.connection, admission, now)
        if is_in:
            self._note_owned(client, waiting)
        self.clients.report(now)
        if is_in:
            return
        if state is not None:
            self._adopt(client, waiting.epoch, previous, state, now)
        elif before is not None and before is not self.clients.roamers.get(client):
            self.clients.roamers[client] = before  # its session, if it has one, is as it was
        else:
            self.clients.roamers.pop(client, None)

    def _expect(
        self, client: int, waiting: Waiting, previous: int | None, now: float, *, resumes: bool
    ) -> None:
        """Note under which epoch the client that is about to be admitted comes."""
        old = self.clients.roamers.get(client)
        fresh = Roamer(waiting.epoch, previous, waiting.marks, now)
        fresh.resumes = resumes
        if old is not None and previous == self.links.number:
            # The session is here; the old connection, if there still is one, ends first under its own epoch.
            if old.arrived:
                self.clients.lost(client, old, now)
            fresh.held = old.held
        elif old is not None and old.arrived:
            self.clients.lost(client, old, now)
        self.clients.roamers[client] = fresh

    def _adopt(self, client: int, epoch: int, previous: int | None, state: SessionState, now: float) -> None:
        """Keep a session whose client has gone again before its session came."""
        session = self.core.custody.adopt(state, now)
        if session is None:
            self.clients.report(now)
            self.endings.clear(client, previous, state, now, is_lost=True)
            return
        roamer = self.clients.roamers[client] = Roamer(epoch, previous, None, now)
        roamer.last_epoch = self._last_epoch(state, now)
        self.clients.report(now)
        self.clients.arrive(client, session, roamer, now)
        self.clients.lost(client, roamer, now)

    def _last_epoch(self, state: SessionState | None, now: float) -> int | None:
        """Return under which epoch a session that was given was kept.

        None that a copy here can have while this broker may have forgotten events of such a copy.
        """
        if self.doubts.may_have_forgotten(now):
            return NO_EPOCH
        return state.epoch if state is not None and state.epoch else None

    # Other brokers -------------------------------------------------------------------------------------

    def received(self, message: Find | Found, sender: int, now: float) -> None:
        """Take a question or an answer of another broker."""
        self.finder.out_of_reach = self.missing(now)
        if isinstance(message, Find):
            self._on_find(message, sender, now)
        elif message.destination == self.links.number:
            if message.refused is not None:
                self._refused(message, now)
            if not message.is_passed_on:
                held_epoch, present = self._held(message.client)
                self.finder.answered(message, held_epoch, now, present=present)
                self.doubts.answered(message)
        else:
            self.links.forward(message, now)
        self.follow_finder(now)
        self._settle_doubts(now)
        self.follow_finder(now)

    def _on_find(self, message: Find, sender: int, now: float) -> None:
        if message.destination == EVERYBODY:
            self.links.flood(message, sender, now)
        elif message.destination != self.links.number:
            self.links.forward(message, now)
            return
        if message.since_s is None and self._is_in_doubt(message.client, now):
            self.doubts.deferred.setdefault(message.client, []).append(message)
        else:
            self._answer_find(message, now)

    def _answer_find(self, message: Find, now: float) -> None:
        if self.owners.keep_from(message, now):
            return
        held_epoch, present = self._held(message.client)
        self.finder.asked(message, held_epoch, now, present=present)

    def _refused(self, message: Found, now: float) -> None:
        """Another broker has a session of this client that is somebody else's, and keeps it."""
        waiting = self.waiting.get(message.client)
        if waiting is not None and waiting.admission.owner == message.refused:
            del self.waiting[message.client]
            self.finder.abandon(message.client)
            self.core.refuse(waiting.connection, ConnectCode.NOT_AUTHORIZED, FOREIGN)
        else:
            self.owners.refused(message, self._held(message.client)[0], now)

    def _note_owned(self, client: int, waiting: Waiting) -> None:
        """Note since when a session is its owner's that ended its own, here or elsewhere, and began anew."""
        session = self.core.state.sessions.get(self.clients.names.client_name(client))
        if session is not None:
            session.owned_since(waiting.owned_s)

    def _signed(self, message: Find | Found) -> Find | Found:
        """Return a question of this broker with whom it is for."""
        if not isinstance(message, Find) or message.sender != self.links.number:
            return message
        waiting = self.waiting.get(message.client)
        if waiting is not None and message.client not in self.doubts.held:
            return replace(message, owner=waiting.admission.owner)
        session = self.core.state.sessions.get(self.clients.names.client_name(message.client))
        if session is None:
            return message
        return replace(message, owner=session.owner, since_s=session.owned_s)

    def _held(self, client: int) -> tuple[int | None, bool]:
        """The epoch of a client's session here, None without one, and whether the client is connected."""
        roamer = self.clients.roamers.get(client)
        session = self.core.state.sessions.get(self.clients.names.client_name(client))
        if roamer is None or session is None:
            return None, False
        return roamer.epoch, session.connection is not None

    def follow_finder(self, now: float) -> None:
        """Do what the finder asks for."""
        finder = self.finder
        while finder.gives or finder.sends or finder.discards or finder.results:
            gives, finder.gives = finder.gives, []
            for give in gives:
                self._give(give.client, give.epoch, give.to, now)
            sends = finder.sends[:]
            finder.sends.clear()
            for message in map(self._signed, sends):
                if message.destination == EVERYBODY:
                    self.links.flood(message, None, now)
                else:
                    self.links.forward(message, now)
            discards, finder.discards = finder.discards, []
            for discard in discards:
                if not self._later_came(discard, now):
                    self.endings.discarded(discard, now)
            results, finder.results = finder.results, []
            for result in results:
                self._found(result, now)

    def _give(self, client: int, epoch: int, to: int, now: float) -> None:
        """Hand a session to the broker that its client is with now."""
        client_id = self.clients.names.client_name(client)
        roamer = self.clients.roamers[client]
        session = self.core.state.sessions[client_id]
        if not session.expiry:  # it ends with its connection, which the other one takes over
            self.core.custody.end_session(client_id, now)
            self.clients.report(now)
            self.finder.give(client, epoch, to, None)
            return
        self.core.forget_queue(session)  # the mobility core has those events, and brings them along
        if roamer.arrived:
            session.left_s = now
        state = self.core.custody.export_session(client_id, now)
        assert state is not None, "only a session that is here is given"
        self.clients.giving.add(client)
        if roamer.arrived:
            self.clients.lost(client, roamer, now)
        stored = self.clients.broker.subscribers.stored_for(client, roamer.epoch)
        state = msgspec.structs.replace(state, epoch=roamer.epoch, stored=len(stored))
        self.core.custody.end_session(client_id, now)
        self.clients.report(now)
        self.clients.giving.discard(client)
        del self.clients.roamers[client]
        self.finder.give(client, epoch, to, msgspec.msgpack.encode(state))

    def _found(self, result: Result, now: float) -> None:
        state = self.endings.read_state(result.state)
        waiting = self.waiting.get(result.client)
        if waiting is None or waiting.epoch != result.asked:
            self._found_late(result, state, now)
            return
        del self.waiting[result.client]
        if result.superseded:
            text = "The same client is connected to another broker."
            self.core.refuse(waiting.connection, ConnectCode.SERVER_BUSY, text)
            return
        if result.unreachable and waiting.is_clean and not self._keeps_copies:
            # Who is out of reach may stay so. With copies it is played by another process soon, and until
            # then nobody takes the name of somebody whose session is there.
            self.finder.begin_anew(result.client, result.epoch, now)
        elif result.unreachable:
            self._refuse_for_now(waiting, result.unreachable)
            return
        self.given_up += bool(result.given_up)
        if state is not None and (why := why_not(waiting.admission, state, now)) is not None:
            # It was given to its owner, who was overtaken here: nobody else ends it by a clean start.
            self.core.refuse(waiting.connection, ConnectCode.NOT_AUTHORIZED, why)
            self._adopt(result.client, result.epoch, result.holder, state, now)
            return
        owned_s = state.owned_s if state is not None and waiting.is_clean else waiting.owned_s
        epoch = result.epoch
        if state is None and epoch <= (latest := self.clients.broker.subscribers.latest(result.client)):
            # Meanwhile this broker heard how the last stay ended, and that was the later one: a client
            # whose broker's clock is behind would be sent away again as one who comes late.
            epoch = self.finder.outdo(result.client, latest, now)
        waiting = waiting._replace(epoch=epoch, owned_s=owned_s)
        previous = result.holder if state is not None and not waiting.is_clean else None
        if state is not None and waiting.is_clean:
            self.endings.clear(result.client, result.holder, state, now, is_lost=False)
        self._enter(result.client, waiting, previous, state, now)

    def _found_late(self, result: Result, state: SessionState | None, now: float) -> None:
        """Something came of a search that nobody waits for any more."""
        if state is not None:
            self._adopt(result.client, result.epoch, result.holder, state, now)
        elif result.superseded and not result.asked:
            # Another broker has a later session of the client, begun while this one was out of reach.
            self.endings.superseded(result.client, now, is_copy=result.client in self.doubts.silent)

    def _later_came(self, discard: Discard, now: float) -> bool:
        """Take in a session that its client was served in after the one that came before it; say whether.

        A client that begins anew twice, here and there, may come to a broker that one of these sessions is on
        its way to, and is let in with the first that comes. It is told to come again if that is the earlier.
        """
        client, client_id = discard.client, self.clients.names.client_name(discard.client)
        roamer, session = self.clients.roamers.get(client), self.core.state.sessions.get(client_id)
        if discard.ending is not Ending.REPEATED or roamer is None or session is None:
            return False
        state = self.endings.read_state(discard.state)
        if state is None or state.owner != session.owner:
            return False
        if roamer.last_epoch in (None, NO_EPOCH) or state.epoch <= roamer.last_epoch:
            return False
        self.core.custody.end_session(client_id, now)
        self.clients.report(now)
        epoch = self.finder.outdo(client, self.clients.broker.subscribers.latest(client), now)
        self._adopt(client, epoch, discard.holder, state, now)
        return True

    def missing(self, now: float) -> dict[int, float]:
        """The brokers that have been out of reach for a while, and since when."""
        since = self.links.out_of_reach()
        return {broker: since_s for broker, since_s in since.items() if now - since_s >= DOWN_S}

    # Time ----------------------------------------------------------------------------------------------

    def time_passed(self, now: float) -> None:
        """Give up on brokers that do not answer, or are out of reach."""
        self.finder.out_of_reach = self.missing(now)
        self.finder.time_passed(now)
        self.follow_finder(now)
        self._settle_doubts(now)
        self.follow_finder(now)

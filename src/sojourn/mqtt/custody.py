"""What the rest of a broker does with the sessions of single clients: hold, send away, give, take, end.

A session is kept by one broker at a time and follows its client (`mobility/finding.py`); what is stored for
it may have to come before what is new. The rest of the broker knows clients by name and decides all that;
here it is done to the session. Wills that become due are published before a call returns.

    custody.hold(client_id) / custody.release(client_id, now)   something else must reach it first
    custody.thin(client_id, now)                                what it does not want of what it missed
    custody.withdraw(client_id, addresses)                      what waits for it as a member that has left
    custody.rejoin(client_id)                                   it is another member of its groups from now on
    custody.deliver_to(client_id, message, now)                 an event for it alone
    custody.missed(client_id, message)                          an event for it found no room elsewhere
    custody.dismiss(client_id, reason, text, now)               it is sent away
    custody.redirect(client_id, reference, now)                 it is to go to another server
    custody.export_session(client_id, now), then end_session    another broker has its client now
    custody.adopt(state, now)                                   another broker gave its session away
    custody.discard(state, now)                                 the same, and its client has a later one
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from mqtt5 import DisconnectReasonCode as Reason

from sojourn.mqtt.delivery import Deliverer
from sojourn.mqtt.handshake import Handshake
from sojourn.mqtt.message import Message
from sojourn.mqtt.room import replace_queue
from sojourn.mqtt.session import Session
from sojourn.mqtt.session_state import SessionState
from sojourn.mqtt.state import State


class Custody:
    """The sessions of one broker, each in the hands of whoever its client concerns."""

    def __init__(
        self, state: State, deliverer: Deliverer, handshake: Handshake, settle: Callable[[float], None]
    ) -> None:
        """See to the sessions in `state`; `settle` publishes wills that are due."""
        self.state, self.deliverer, self.handshake = state, deliverer, handshake
        self._settle = settle

    def deliver_to(self, client_id: str, message: Message, now: float) -> int:
        """Hand an event to one client; return the QoS of that, or -1 if it does not want the event."""
        session = self.state.sessions.get(client_id)
        return -1 if session is None else self.deliverer.deliver_to_each(message, [session], now)[0]

    def hold(self, client_id: str) -> None:
        """Let everything for a client wait, because something else must reach it first."""
        session = self.state.sessions[client_id]
        session.held = True
        if session.connection is not None:
            session.connection.direct = False

    def release(self, client_id: str, now: float) -> None:
        """Send what waited."""
        session = self.state.sessions.get(client_id)
        if session is not None and session.held:
            session.held = False
            self.deliverer.pump(session, now)
            self._settle(now)

    def thin(self, client_id: str, now: float) -> list[tuple[Message, str]]:
        """Drop what a client does not want of what it missed; return that, with the reasons."""
        return self.deliverer.thin(self.state.sessions[client_id], now, is_back=True)

    def thin_part(self, client_id: str) -> list[tuple[Message, str]]:
        """The same with what a client that is held was given so far, as far as that is certain."""
        return self.deliverer.thinning.part_of(self.state.sessions[client_id])

    def withdraw(self, client_id: str, addresses: AbstractSet[str]) -> list[Message]:
        """Take out of a session's queue what was for members of groups that have left; return it.

        What its client was sent already is its to acknowledge.
        """
        session = self.state.sessions[client_id]
        gone = [one for one in session.queue if one.message.address in addresses]
        if gone:
            kept = [one for one in session.queue if one.message.address not in addresses]
            replace_queue(self.state, session, kept)
        return [one.message for one in gone]

    def rejoin(self, client_id: str) -> bool:
        """Make a session another member of all groups that it is in; say whether it is in any."""
        memberships = [one for one in self.state.sessions[client_id].subscriptions.values() if one.share]
        for one in memberships:
            self.handshake.subscriber.enter(one.renewed())
        return bool(memberships)

    def missed(self, client_id: str, message: Message, *, overflows: bool) -> None:
        """Note that there was no room for an event; a client that does not read is closed if it overflows."""
        session = self.state.sessions.get(client_id)
        if session is None:
            return
        session.missed += message.qos > 0
        connection = session.connection
        if overflows and connection is not None and connection.blocked:
            self.state.effects.overflowing[connection.number] = None

    def dismiss(self, client_id: str, reason: Reason, text: str, now: float) -> bool:
        """Send a client away; its session stays. Return whether it was here."""
        session = self.state.sessions.get(client_id)
        if session is None or session.connection is None:
            return False
        self.handshake.dismiss(session.connection, reason, text, now)
        self._settle(now)
        return True

    def redirect(
        self, client_id: str, reference: str | None, now: float, *, moved: bool = False, text: str = ""
    ) -> None:
        """Send a client to another server, for now or for good."""
        session = self.state.sessions.get(client_id)
        if session is not None and session.connection is not None:
            reason = Reason.SERVER_MOVED if moved else Reason.USE_ANOTHER_SERVER
            said = text or "Use another server."
            self.handshake.dismiss(session.connection, reason, said, now, reference)
            self._settle(now)

    def export_session(self, client_id: str, now: float) -> SessionState | None:
        """Return a session as plain data, for another broker, which has its client now.

        Its will goes along, or is published if it is due. `end_session` is to follow.
        """
        session = self.state.sessions.get(client_id)
        if session is None:
            return None
        state = self.handshake.export(session, now)
        self._settle(now)
        return state

    def adopt(self, state: SessionState, now: float) -> Session | None:
        """Keep a session that another broker gave away, although its client is not here.

        What is left of its will's delay goes on. Return None if the client has another session here: the one
        that came has ended then, and its will is published.
        """
        session = self.handshake.adopt(state, now)
        if session is not None:
            self.state.effects.adopted.append(session)
        self._settle(now)
        return session

    def discard(self, state: SessionState, now: float) -> None:
        """End a session that another broker gave away, and that nobody goes on with: its will is due."""
        self.handshake.discard(state, now)
        self._settle(now)

    def end_session(self, client_id: str, now: float) -> None:
        """End a session: its client started anew elsewhere, or another broker has it (`export_session`).

        A will that did not go along with it is published, as with every session that ends.
        """
        session = self.state.sessions.get(client_id)
        if session is None:
            return
        if session.connection is not None:
            text = "The session has moved to another broker."
            self.handshake.dismiss(session.connection, Reason.SESSION_TAKEN_OVER, text, now)
        if not session.ended:
            self.handshake.end(session, now)
        self._settle(now)

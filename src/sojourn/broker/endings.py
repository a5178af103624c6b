"""Sessions that end because their client has another one, and what is lost with them.

A client that begins anew elsewhere leaves a session behind: that was wanted, or the session was out of reach
for so long that it was *given up* (`mobility/finding.py`). Either way it comes to the client's broker of
today when both are in reach again, or hears of its rival where it is, and ends: its will is published, and
what was stored for it is let go. What nobody meant to lose is counted, once, by whoever has it:

| what | who has it |
| --- | --- |
| what the client was sent and had not acknowledged | the session, wherever that ends |
| what was stored | the broker that had the session; `Cleared` says how much of it was there when it left |

Events that came after that are not counted: the client's next session may have got them. Those of groups
neither: other members do.
"""

from __future__ import annotations

import msgspec

from sojourn.broker.carried import Carried
from sojourn.broker.clients import Clients
from sojourn.broker.effects import Note
from sojourn.mobility import facts
from sojourn.mobility.finding_messages import Cleared, Discard, Ending
from sojourn.mobility.queues import GIVEN_UP
from sojourn.mqtt.core import Core
from sojourn.mqtt.message import Message
from sojourn.mqtt.session_state import SessionState, message_of
from sojourn.routing.effects import Dropped


class Endings:
    """The sessions that end at one broker because there are later ones."""

    def __init__(self, core: Core, clients: Clients) -> None:
        self._core, self._clients, self._links = core, clients, clients.links

    def read_state(self, data: bytes | None) -> SessionState | None:
        """Return the session that another broker gave, if there is one."""
        if data is None:
            return None
        try:
            return msgspec.msgpack.decode(data, type=SessionState)
        except msgspec.MsgspecError:
            self._clients.drops["unreadable session"] += 1
            return None

    def discarded(self, discard: Discard, now: float) -> None:
        """End a session that came for a client which has a later one."""
        state = self.read_state(discard.state)
        if state is None:
            return
        later = self._core.state.sessions.get(self._clients.names.client_name(discard.client))
        if later is not None and later.owner == state.owner:
            later.owned_since(state.owned_s)
        if discard.ending is not Ending.REPEATED:
            self._core.custody.discard(state, now)
            self._clients.report(now)
        is_lost = discard.ending is Ending.GIVEN_UP
        self.clear(discard.client, discard.holder, state, now, is_lost=is_lost)

    def clear(
        self, client: int, holder: int | None, state: SessionState, now: float, *, is_lost: bool
    ) -> None:
        """Let who had a session that has ended here let go of what it stores for it."""
        if is_lost:
            sent = {one.message for one in (*state.inflight, *state.queue) if one.message >= 0}
            messages = [message_of(state.messages[place], now) for place in sorted(sent)]
            self._lose(client, messages, now)
        if holder is not None:
            lost = state.stored if is_lost else None
            self.on_cleared(Cleared(destination=holder, client=client, epoch=state.epoch, lost=lost), now)

    def on_cleared(self, message: Cleared, now: float) -> None:
        """Let go of what is stored for a session that was given away, and that has ended."""
        clients, client = self._clients, message.client
        if message.destination != self._links.number:
            self._links.forward(message, now)
            return
        roamer = clients.roamers.get(client)
        if roamer is None or roamer.epoch != message.epoch:
            before = clients.drops[GIVEN_UP]
            clients.tell(facts.SubscriberGone(client, message.epoch, lost=message.lost or 0), now)
            self._tell(client, before, now)

    def superseded(self, client: int, now: float, *, is_copy: bool) -> None:
        """End a session here, since another broker has a later one of the client.

        If it is the copy of one that was given away, which this broker has forgotten, nothing is lost.
        """
        client_id = self._clients.names.client_name(client)
        session, roamer = self._core.state.sessions.get(client_id), self._clients.roamers.get(client)
        messages: dict[tuple[str, int], Message] = {}
        if session is not None and roamer is not None and not is_copy:
            found = [one.message for one in session.inflight.values() if one is not None]
            stored = self._clients.broker.subscribers.stored_for(client, roamer.epoch)
            found += [one.message for one in stored if isinstance(one, Carried)]
            found += [one.message for one in session.queue if one.qos]
            messages = {(message.source, message.sequence): message for message in found}
            self._core.forget_queue(session)
        self._core.custody.end_session(client_id, now)
        self._clients.report(now)
        self._lose(client, [*messages.values()], now)

    def _lose(self, client: int, messages: list[Message], now: float) -> None:
        """Count events that a client does not get, as the session that had them was given up."""
        before = self._clients.drops[GIVEN_UP]
        for message in messages:
            self._clients.dropped(Dropped(client, Carried(message), GIVEN_UP), now)
        self._tell(client, before, now)

    def _tell(self, client: int, before: int, now: float) -> None:
        """Have people told how many events were lost with a session."""
        events = self._clients.drops[GIVEN_UP] - before
        if events:
            name = self._clients.names.client_name(client)
            self._clients.notes.append(Note("gave_up", (name, events, now)))

"""What time brings: silent connections are closed, sessions end, wills and rights fall due."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence

from mqtt5 import ConnAckReasonCode as ConnectCode
from mqtt5 import DisconnectReasonCode as Reason

from sojourn.mqtt.connection import Connection
from sojourn.mqtt.connection import State as Phase
from sojourn.mqtt.handshake import Handshake
from sojourn.mqtt.session import Session
from sojourn.mqtt.state import Due, State

DUE_MAX = 200
"""What is due and is looked at, at once: sessions that end take most time, some ten milliseconds in all."""


class Timekeeper:
    """Looks at what is due."""

    def __init__(self, shared: State, handshake: Handshake) -> None:
        self._shared, self._handshake = shared, handshake
        self.awaits_session: Callable[[int], bool] = lambda _number: False
        """Whether a client may come in, and waits for its session from another broker."""

    def time_passed(
        self, now: float, silent: Sequence[int] | None = None, sessions: Sequence[str] | None = None
    ) -> tuple[list[int], list[str]]:
        """Close silent connections, end sessions and publish wills whose time has come, some of them at once.

        Return the connections that were closed, and the sessions that were looked at. When that is told again
        from a journal both are given: pings and events of QoS 0 are in no journal, so that every client would
        seem silent, and who was closed later may have said something first. Journals of earlier builds name
        no connections that were closed for anything but their silence, which were lost soon after, or do not
        name sessions: all that were due.
        """
        shared = self._shared
        if sessions is not None:
            due = shared.due_again(now, sessions)
        else:
            due = shared.due(now, DUE_MAX if silent is None else sys.maxsize)
        overdue = [whom for about, whom in due if about is Due.KEEP_ALIVE and isinstance(whom, int)]
        closing = [number for number in overdue if self._is_silent(number, now)] if silent is None else silent
        closed = list(closing)
        for number in closing:
            self._close_for_silence(number, now)
        for about, whom in due:
            if isinstance(whom, int) and (
                (about is Due.CONNECT and self._look_at_newcomer(whom, now))
                or (about is Due.RIGHTS and self._look_at_rights(whom, now))
            ):
                closed.append(whom)
        looked_at: list[str] = []
        for about, whom in due:
            if about is Due.PACKET and isinstance(whom, int):
                self._look_at_packet(whom, now)
            elif isinstance(whom, str):
                session = shared.sessions.get(whom)
                if session is not None:
                    looked_at.append(whom)
                    self._look_at_session(session, now)
        return closed, looked_at

    def _look_at_newcomer(self, number: int, now: float) -> bool:
        """Close a connection on which no client was let in in time; return whether it was."""
        connection = self._shared.connections.get(number)
        if (
            connection is None
            or connection.state not in (Phase.NEW, Phase.KNOCKING)
            or connection.deadline_s > now
        ):
            return False
        self._close_newcomer(connection)
        return True

    def _close_newcomer(self, connection: Connection) -> None:
        """Close a connection on which no client was let in; who said CONNECT is told why."""
        timeout_s = self._shared.limits.connect_timeout_s
        if connection.state is Phase.NEW:
            self._shared.counters.refused["no CONNECT in time"] += 1
            self._handshake.close_silently(connection)
        elif self.awaits_session(connection.number):
            text = (
                f"Your session did not come from another broker within {timeout_s} seconds; try again later."
            )
            self._handshake.refuse(
                connection, ConnectCode.SERVER_UNAVAILABLE, text, why="session_not_in_time"
            )
        else:
            text = (
                f"Too many wait here: it was not decided within {timeout_s} seconds who you are; try again."
            )
            self._handshake.refuse(
                connection, ConnectCode.CONNECTION_RATE_EXCEEDED, text, why="login_not_in_time"
            )

    def _look_at_packet(self, number: int, now: float) -> None:
        """Have a connection closed whose packet takes too long to come whole."""
        shared, connection = self._shared, self._shared.connections.get(number)
        if connection is None or connection.state is not Phase.OPEN:
            return
        connection.reminded = False
        timeout_s = shared.limits.packet_timeout_s
        until_s = shared.input.since.get(number, math.inf) + timeout_s
        if until_s <= now and not connection.waits:
            text = f"A packet comes whole within {timeout_s} seconds here."
            shared.effects.dismissals[number] = int(Reason.QUOTA_EXCEEDED), text
        elif until_s < math.inf:
            connection.reminded = True
            shared.remind(max(until_s, now + 1.0), Due.PACKET, number)

    def _look_at_rights(self, number: int, now: float) -> bool:
        """Close a connection whose client's rights have run out; return whether it was."""
        connection = self._shared.connections.get(number)
        if connection is None or connection.until_s is None or connection.until_s > now:
            return False
        text = "What you proved your name by has run out; connect with a fresh one."
        self._handshake.dismiss(connection, Reason.MAX_CONNECT_TIME, text, now)
        return True

    def _is_silent(self, number: int, now: float) -> bool:
        """Whether nothing came of a client for too long; if not, it is looked at again in time."""
        connection = self._shared.connections.get(number)
        if connection is None or connection.state is not Phase.OPEN:
            return False
        until = connection.seen_s + 1.5 * connection.keep_alive_s
        if until > now:
            self._shared.remind(until, Due.KEEP_ALIVE, number)
        return until <= now

    def _close_for_silence(self, number: int, now: float) -> None:
        """Close a connection for its silence, or, when that is told again, for whatever it was."""
        connection = self._shared.connections.get(number)
        if connection is None:
            return
        if connection.state is Phase.OPEN:
            text = "Nothing came for 1.5 times the keep-alive."
            self._handshake.dismiss(connection, Reason.KEEP_ALIVE_TIMEOUT, text, now)
        elif connection.state in (Phase.NEW, Phase.KNOCKING):
            self._close_newcomer(connection)

    def _look_at_session(self, session: Session, now: float) -> None:
        if session.reminded_s is not None and session.reminded_s <= now:
            session.reminded_s = None
        if session.connection is not None:
            return
        # A will is due before the session that ends at the same moment.
        if (session.will_s or math.inf) <= now:
            self._handshake.publish_will(session)
        if (session.expires_s or math.inf) <= now:
            self._handshake.end(session, now)
        else:
            self._handshake.remind(session)

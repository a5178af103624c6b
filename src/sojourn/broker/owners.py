"""Whose a name is, where two owners have sessions of one client identifier at two brokers.

That can only be after parts of the network were out of each other's reach. When they meet, brokers compare
since when the name is whose (`Session.owned_s`): the session of who had it first stays, and the other one
ends. An owner that began anew has had the name for as long as it had the session before.
"""

from __future__ import annotations

from dataclasses import replace

from mqtt5 import DisconnectReasonCode as Reason

from sojourn.broker.clients import Clients
from sojourn.mobility.finding import Finder
from sojourn.mobility.finding_messages import Find, Found, refusal
from sojourn.mqtt.core import Core
from sojourn.mqtt.handshake import is_over
from sojourn.mqtt.rights import FOREIGN
from sojourn.mqtt.session import Session


class Owners:
    """What one broker says when somebody asks for a session of somebody else, and does when it is refused."""

    def __init__(self, core: Core, clients: Clients, finder: Finder) -> None:
        self._core, self._clients, self._finder = core, clients, finder
        self._here = clients.links.number

    def keep_from(self, message: Find, now: float) -> bool:
        """Say whether a session is somebody else's than the asker's, and stays here; the asker is told."""
        client_id = self._clients.names.client_name(message.client)
        session = self._core.state.sessions.get(client_id)
        if session is None or None in (message.owner, session.owner):
            return False
        if message.owner == session.owner:
            session.owned_since(message.since_s)
            return False
        if is_over(session, now):
            return False
        own, other = (session.owned_s, self._here), (message.since_s, message.sender)
        if message.since_s is not None and other < own:
            self._dismiss(client_id, now)
            return False
        self._finder.sends.append(refusal(message, self._here, session.owned_s))
        return True

    def refused(self, message: Found, epoch: int | None, now: float) -> None:
        """Another broker keeps its session of a client from the owner of one that is, or was, here.

        `epoch` is that of the session here, None without one.
        """
        client_id = self._clients.names.client_name(message.client)
        session = self._core.state.sessions.get(client_id)
        if session is None:
            self._pass_on(message)
        elif session.owner != message.refused:
            return
        elif epoch is not None and self._was_first(session, message):
            self._finder.claim(message.client, epoch, now)
        else:
            self._dismiss(client_id, now)

    def _was_first(self, session: Session, message: Found) -> bool:
        """Whether the name was the owner's here before, though it was refused.

        What was asked is old then: there was no session here yet, or it was not known for how long the name
        had been its owner's.
        """
        return message.since_s is not None and (session.owned_s, self._here) < (
            message.since_s,
            message.sender,
        )

    def _pass_on(self, message: Found) -> None:
        """The session in question was here and has been given away since: tell the broker that has it.

        It goes the way that the session went, and so comes after it; ever later epochs end its journey.
        """
        epoch, broker = self._finder.latest(message.client)
        if broker not in (self._here, message.sender) and epoch > message.epoch:
            further = replace(message, destination=broker, epoch=epoch, holder=self._here)
            self._finder.sends.append(further)

    def _dismiss(self, client_id: str, now: float) -> None:
        """End a session that somebody else has at another broker, and had before."""
        self._core.custody.dismiss(client_id, Reason.NOT_AUTHORIZED, FOREIGN, now)
        self._core.custody.end_session(client_id, now)
        self._clients.report(now)

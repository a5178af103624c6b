"""What owners of stored sessions may do by the configuration that a broker starts with.

A configuration may have changed while its broker was down. Sessions keep to the rights of today from the
first moment, so that no will is published, and nothing kept for anybody, by rights of an earlier life.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from sojourn.broker import facts
from sojourn.live.brokers.admission import permissions_of
from sojourn.live.config import Config, GuestConfig
from sojourn.mqtt.rights import ANONYMOUS, NOTHING
from sojourn.mqtt.session import Session


def rights_today(config: Config, sessions: Iterable[Session]) -> Iterator[facts.RightsChanged]:
    """Say what owners may do now whose sessions have other rights; who is not known any more may do nothing.

    What the bearer of a token may do is not known before it comes, and stays as it was.
    """
    users = {user.name: user for user in config.users}
    certifies = any(one.certificates != "ignored" for one in config.brokers)
    knows_others = config.security.jwt is not None or (certifies and not users)
    owned: defaultdict[str, list[Session]] = defaultdict(list)
    for session in sessions:
        if session.owner is not None:
            owned[session.owner].append(session)
    for owner, theirs in owned.items():
        user = users.get(owner)
        attributes = dict(user.attributes) if user is not None else {}
        if user is not None:
            permissions = permissions_of(user)
        elif owner == ANONYMOUS:
            permissions = permissions_of(config.security.guests or GuestConfig())
        elif knows_others:
            continue
        else:
            permissions = NOTHING
        if any(
            one.permissions != permissions or one.stated != {**one.stated, **attributes} for one in theirs
        ):
            yield facts.RightsChanged.of(owner, permissions, attributes=attributes)

"""What owners of sessions may do by a configuration: the one that a broker starts with, or has read anew.

Both go by the same rule, for sessions of clients that are here and away and for clients that wait to be let
in. So sessions keep to the rights of today from the first moment, no will is published, and nothing kept for
anybody, by rights of earlier, and a way in that is withdrawn ends the rights of those who came by it.

All that a session says of the way by which its client came is its owner. What that does not tell is read so
that nobody loses what today's configuration may still give:

| owner | may do |
| --- | --- |
| a user | what the configuration says of it |
| nobody in particular | what guests may, while a listener of some broker lets clients without a name in |
| another name, with tokens, or certificates that prove any name (no `[[users]]`) | what it could before |
| another name otherwise, or who was a user until the configuration was read anew | nothing |
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from sojourn.broker import facts
from sojourn.interest.values import Scalar
from sojourn.live.brokers.admission import permissions_of
from sojourn.live.brokers.doors import lets_in_without_name
from sojourn.live.config import Config, GuestConfig, UserConfig
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.rights import ANONYMOUS, NOTHING
from sojourn.mqtt.session import Permissions, Session

Entitled = Session | Admission


def rights_today(
    config: Config, entitled: Iterable[Entitled], before: Config | None = None
) -> Iterator[facts.RightsChanged]:
    """Say what owners may do now who have other rights; `before` is what held until now, if that is known.

    A user of whom nothing has changed but the password keeps what it has: that may be of a token in its name.
    """
    users, were = _users_of(config), {} if before is None else _users_of(before)
    certifies = any(one.certificates != "ignored" for one in config.brokers)
    knows_others = config.security.jwt is not None or (certifies and not users)
    owned: defaultdict[str, list[Entitled]] = defaultdict(list)
    for one in entitled:
        if one.owner is not None:
            owned[one.owner].append(one)
    unknown = []
    for owner, theirs in owned.items():
        user, was = users.get(owner), were.get(owner)
        if (
            user is not None
            and was is not None
            and msgspec.structs.replace(was, password=user.password) == user
        ):
            continue
        attributes = dict(user.attributes) if user is not None else {}
        lost = sorted(set(was.attributes if was is not None else ()) - attributes.keys())
        if user is not None:
            permissions = permissions_of(user)
        elif owner == ANONYMOUS and lets_in_without_name(config):
            permissions = permissions_of(config.security.guests or GuestConfig())
        elif owner != ANONYMOUS and was is None and knows_others:
            continue
        else:
            permissions = NOTHING
        if not any(_differs(one, permissions, attributes, lost) for one in theirs):
            continue
        if permissions is NOTHING and not lost:
            unknown.append(owner)  # as one fact, since there may be many of them
        else:
            yield facts.RightsChanged.of(owner, permissions, attributes=attributes, lost=lost)
    if unknown:
        yield facts.RightsChanged.of(unknown[0], NOTHING, also=unknown[1:])


def _users_of(config: Config) -> dict[str, UserConfig]:
    return {user.name: user for user in config.users}


def _differs(
    one: Entitled, permissions: Permissions | None, attributes: Mapping[str, Scalar], lost: list[str]
) -> bool:
    said = one.stated if isinstance(one, Session) else one.attributes
    return (
        one.permissions != permissions or said != {**said, **attributes} or any(name in said for name in lost)
    )

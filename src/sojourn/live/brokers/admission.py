"""Who is let in: names, passwords, and what the configuration says about each.

A password is kept as `scrypt$SALT$HASH`, both in base64. Checking one takes some hundredths of a second of a
processor on purpose, so that is done in a thread, a few at a time, and the client waits for its answer.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING, NamedTuple

import mqtt5

from sojourn.errors import SojournError
from sojourn.interest import Filter, TopicPattern
from sojourn.live.config import Config, ConfigError, UserConfig
from sojourn.mqtt.handshake import Admission
from sojourn.mqtt.session import Permissions

if TYPE_CHECKING:
    from sojourn.live.brokers.tokens import Tokens

_PREFIX = "scrypt"
_COST, _BLOCK, _LANES, _SALT_BYTES = 1 << 14, 8, 1, 16
PASSWORD_BYTES_MAX = 1_024


class Refusal(NamedTuple):
    """Why a client is not let in."""

    code: mqtt5.ConnAckReasonCode
    text: str


class Question(NamedTuple):
    """A password that has to be compared with its hash, which takes a while."""

    user: UserConfig
    password: bytes


class Doorkeeper:
    """Decides about clients that knock."""

    def __init__(self, config: Config, *, on_loopback: bool) -> None:
        self._users = {user.name: user for user in config.users}
        self._permissions = {user.name: permissions_of(user) for user in config.users}
        wanted = config.security.anonymous
        self._anonymous = wanted if wanted is not None else on_loopback
        self._states = config.security.clients_state_attributes
        self._tokens: Tokens | None = None
        if config.security.jwt is not None:
            from sojourn.live.brokers.tokens import Tokens  # noqa: PLC0415 - cryptography takes a while to load

            self._tokens = Tokens(config.security.jwt)

    def ask(self, packet: mqtt5.ConnectPacket) -> Admission | Refusal | Question:
        """Decide, or say which password is to be checked first."""
        name, password = packet.username, packet.password
        user = self._users.get(name) if name is not None else None
        if user is not None and password is not None and len(password) <= PASSWORD_BYTES_MAX:
            return Question(user, password)
        if self._tokens is not None and user is None and password is not None:
            return self._tokens.ask(name, password)
        if self._anonymous and user is None and (not self._users or name is None):
            # Without users a name is only a name; with users a wrong one is a mistake to tell.
            return Admission(username=name or "", may_state=self._states is not False)
        if name is None:
            return Refusal(
                mqtt5.ConnAckReasonCode.NOT_AUTHORIZED, "Clients without a user name are not let in here."
            )
        return wrong()

    def answer(self, user: UserConfig, *, fits: bool) -> Admission | Refusal:
        """Decide about a user whose password was compared."""
        if not fits:
            return wrong()
        return Admission(
            username=user.name,
            attributes=user.attributes,
            may_state=self._states is True,
            permissions=self._permissions[user.name],
        )


def wrong() -> Refusal:
    """Refuse whoever gave a name or a password that is not right, without saying which."""
    return Refusal(
        mqtt5.ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD, "The user name or the password is wrong."
    )


def permissions_of(user: UserConfig) -> Permissions | None:
    """Return what a user may do; None if that is everything."""
    try:
        permissions = Permissions(
            _patterns(user.publish),
            _patterns(user.subscribe),
            Filter.parse(user.publish_if) if user.publish_if is not None else None,
            Filter.parse(user.subscribe_if) if user.subscribe_if is not None else None,
        )
    except SojournError as error:
        raise ConfigError(f"The permissions of user {user.name!r} cannot be read: {error}") from None
    return permissions if any(part is not None for part in permissions) else None


def _patterns(texts: list[str] | None) -> tuple[TopicPattern, ...] | None:
    return None if texts is None else tuple(TopicPattern.parse(text) for text in texts)


def hash_password(password: str, salt: bytes | None = None) -> str:
    """Return a password as it is kept in a configuration."""
    salt = salt if salt is not None else secrets.token_bytes(_SALT_BYTES)
    hashed = hashlib.scrypt(password.encode(), salt=salt, n=_COST, r=_BLOCK, p=_LANES)
    return "$".join((_PREFIX, base64.b64encode(salt).decode(), base64.b64encode(hashed).decode()))


def password_fits(kept: str, password: bytes) -> bool:
    """Whether a password is the one that was hashed; takes a while."""
    try:
        prefix, salt, hashed = kept.split("$")
        wanted = base64.b64decode(hashed, validate=True)
        if prefix != _PREFIX:
            return False
        found = hashlib.scrypt(
            password, salt=base64.b64decode(salt, validate=True), n=_COST, r=_BLOCK, p=_LANES
        )
    except ValueError:
        return False
    return hmac.compare_digest(found, wanted)

"""Who is let in: names, passwords, and what the configuration says about each.

A password is kept as `scrypt$SALT$HASH`, both in base64. Checking one takes some hundredths of a second of a
processor on purpose, so that is done in a thread, a few at a time, and the client waits for its answer.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from pathlib import Path
from typing import NamedTuple

import jwt
import mqtt5
import msgspec

from sojourn.errors import SojournError
from sojourn.interest import Filter, TopicPattern
from sojourn.live.config import Config, ConfigError, JwtConfig, UserConfig
from sojourn.mqtt.handshake import Admission
from sojourn.mqtt.session import Permissions

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


class Tokens:
    """Checks passwords that are tokens."""

    def __init__(self, config: JwtConfig) -> None:
        self._config = config
        try:
            self._key = Path(config.key).read_text().strip()
        except OSError as error:
            raise ConfigError(
                f"The key {config.key} of [security.jwt] cannot be read: {error.strerror}."
            ) from None

    def ask(self, name: str | None, token: bytes) -> Admission | Refusal:
        """Decide about a client that brings a token."""
        config = self._config
        try:
            claims = jwt.decode(
                token,
                self._key,
                algorithms=[config.algorithm],
                audience=config.audience,
                issuer=config.issuer,
                options={"require": ["exp", "sub"]},
            )
            user = msgspec.convert(claims, TokenUser)
            if name is not None and name != user.sub:
                return _wrong()
            return Admission(
                username=user.sub,
                attributes=user.attributes,
                may_state=False,
                permissions=_permissions(
                    UserConfig(
                        name=user.sub,
                        password="",
                        publish=user.publish,
                        subscribe=user.subscribe,
                        publish_if=user.publish_if,
                        subscribe_if=user.subscribe_if,
                    )
                ),
            )
        except (jwt.PyJWTError, msgspec.ValidationError, ConfigError, UnicodeDecodeError) as error:
            return Refusal(
                mqtt5.ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD, f"The token is not accepted: {error}."
            )


class TokenUser(msgspec.Struct, frozen=True, kw_only=True):
    """What a token says of its bearer; other claims are ignored."""

    sub: str
    attributes: dict[str, str | int | float | bool] = {}
    publish: list[str] | None = None
    subscribe: list[str] | None = None
    publish_if: str | None = None
    subscribe_if: str | None = None


class Doorkeeper:
    """Decides about clients that knock."""

    def __init__(self, config: Config, *, on_loopback: bool) -> None:
        self._users = {user.name: user for user in config.users}
        self._permissions = {user.name: _permissions(user) for user in config.users}
        wanted = config.security.anonymous
        self._anonymous = wanted if wanted is not None else on_loopback
        self._states = config.security.clients_state_attributes
        self._tokens = Tokens(config.security.jwt) if config.security.jwt is not None else None

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
        return _wrong()

    def answer(self, user: UserConfig, *, fits: bool) -> Admission | Refusal:
        """Decide about a user whose password was compared."""
        if not fits:
            return _wrong()
        return Admission(
            username=user.name,
            attributes=user.attributes,
            may_state=self._states is True,
            permissions=self._permissions[user.name],
        )


def _wrong() -> Refusal:
    return Refusal(
        mqtt5.ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD, "The user name or the password is wrong."
    )


def _permissions(user: UserConfig) -> Permissions | None:
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

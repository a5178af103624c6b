"""Passwords that are tokens: signed JSON, whose claims say who the bearer is and what it may do."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import jwt
import mqtt5
import msgspec
from cryptography.exceptions import UnsupportedAlgorithm

from sojourn.broker.proof import SECRET_BYTES_MIN
from sojourn.errors import SojournError, typed
from sojourn.interest.events import Event
from sojourn.live.brokers.admission import Refusal, permissions_of, wrong
from sojourn.live.config import ConfigError, JwtConfig, UserConfig
from sojourn.live.links.secret import OTHERS
from sojourn.mqtt.admission import Admission

BAD = mqtt5.ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD
KEY_BYTES_MAX = 64 << 10
_ODD = (OverflowError, RecursionError)
"""What a date beyond all dates, and claims that are nested without end, are refused by."""


class Tokens:
    """Checks passwords that are tokens."""

    def __init__(self, config: JwtConfig) -> None:
        self._config = config
        self._key = _read_key(config)
        rules = repr((self._key, config.algorithm, config.audience, config.issuer))
        self.fingerprint = hashlib.sha256(rules.encode()).hexdigest()
        """Another one where tokens are judged by another key or other rules."""

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
            if not user.sub:
                return Refusal(BAD, "The token is not accepted: its claim sub is empty, so it names nobody.")
            _check(user)
            if name is not None and name != user.sub:
                return wrong()
            return Admission(
                username=user.sub,
                attributes=user.attributes,
                may_state=False,
                permissions=permissions_of(
                    UserConfig(
                        name=user.sub,
                        publish=user.publish,
                        subscribe=user.subscribe,
                        publish_if=user.publish_if,
                        subscribe_if=user.subscribe_if,
                    )
                ),
                until_s=float(claims["exp"]),
            )
        except (jwt.PyJWTError, msgspec.ValidationError, SojournError, UnicodeError, *_ODD) as error:
            return Refusal(BAD, f"The token is not accepted: {error}.")


def _check(user: TokenUser) -> None:
    """Refuse what JSON can say and no name or attribute can be, though it is signed."""
    user.sub.encode()
    Event(user.attributes)


def _read_key(config: JwtConfig) -> str:
    """Return a key by which tokens can be told from forgeries, or refuse what cannot do that."""
    path, algorithm = config.key, config.algorithm
    the_key = f"The key {path} of [security.jwt]"
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            key = file.read(KEY_BYTES_MAX).decode().strip()
    except OSError as error:
        raise ConfigError(f"{the_key} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigError(
            f"{the_key} is no text: write a public key in PEM, or a secret as `sojourn secret` does."
        ) from None
    if algorithm == "HS256" and mode & OTHERS:
        raise ConfigError(f"Others than its owner can use the key {path}; `chmod 600 {path}` mends that.")
    if algorithm == "HS256" and len(key.encode()) < SECRET_BYTES_MIN:
        raise ConfigError(
            f"{the_key} has {len(key.encode())} bytes, fewer than {SECRET_BYTES_MIN}, so that tokens could "
            f"be forged: delete it, and `sojourn secret {typed(path)}` writes a better one, to sign by "
            "too."
        )
    try:
        parsed = jwt.get_algorithm_by_name(algorithm).prepare_key(key)
    except (jwt.PyJWTError, ValueError, TypeError, UnsupportedAlgorithm):
        wanted = "a secret, and no key in PEM" if algorithm == "HS256" else "a public key in PEM"
        raise ConfigError(
            f"{the_key} does not fit {algorithm}, which needs {wanted}: name another `key` or `algorithm`."
        ) from None
    if algorithm != "HS256" and not hasattr(parsed, "verify"):
        raise ConfigError(
            f"{the_key} is a private key, which only who signs tokens should have: write the public one, as "
            f"`openssl pkey -in {path} -pubout` prints it."
        )
    return key


class TokenUser(msgspec.Struct, frozen=True, kw_only=True):
    """What a token says of its bearer; other claims are ignored."""

    sub: str
    attributes: dict[str, str | int | float | bool] = {}
    publish: list[str] | None = None
    subscribe: list[str] | None = None
    publish_if: str | None = None
    subscribe_if: str | None = None

"""Passwords that are tokens: signed JSON, whose claims say who the bearer is and what it may do."""

from __future__ import annotations

import hashlib
from pathlib import Path

import jwt
import mqtt5
import msgspec

from sojourn.live.brokers.admission import Refusal, permissions_of, wrong
from sojourn.live.config import ConfigError, JwtConfig, UserConfig
from sojourn.mqtt.admission import Admission

BAD = mqtt5.ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD
_ODD = (OverflowError, RecursionError)
"""What a date beyond all dates, and claims that are nested without end, are refused by."""


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
        except (jwt.PyJWTError, msgspec.ValidationError, ConfigError, UnicodeDecodeError, *_ODD) as error:
            return Refusal(BAD, f"The token is not accepted: {error}.")


class TokenUser(msgspec.Struct, frozen=True, kw_only=True):
    """What a token says of its bearer; other claims are ignored."""

    sub: str
    attributes: dict[str, str | int | float | bool] = {}
    publish: list[str] | None = None
    subscribe: list[str] | None = None
    publish_if: str | None = None
    subscribe_if: str | None = None

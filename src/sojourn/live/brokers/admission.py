"""Who is let in: names, passwords, and what the configuration says about each.

A password is kept as `scrypt$SALT$HASH`, both in base64. Checking one takes some hundredths of a second of a
processor on purpose, so that is done in a thread, a few at a time, and the client waits for its answer.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import mqtt5

from sojourn.errors import SojournError
from sojourn.interest import Filter, TopicPattern
from sojourn.live.brokers.doors import Certificate, Guest, doors_of
from sojourn.live.config import Config, ConfigError, GuestConfig, UserConfig
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.rights import ANONYMOUS
from sojourn.mqtt.session import Permissions

if TYPE_CHECKING:
    from sojourn.live.brokers.tokens import Tokens

_PREFIX = "scrypt"
_COST, _BLOCK, _LANES, _SALT_BYTES = 1 << 14, 8, 1, 16
PASSWORD_BYTES_MAX = 1_024


NOT_AUTHORIZED = mqtt5.ConnAckReasonCode.NOT_AUTHORIZED


class Refusal(NamedTuple):
    """Why a client is not let in."""

    code: mqtt5.ConnAckReasonCode
    text: str


NEEDS_CERTIFICATE = Refusal(NOT_AUTHORIZED, "Clients without a certificate are not let in here.")


class Question(NamedTuple):
    """A password that has to be compared with its hash, which takes a while."""

    user: UserConfig
    password: bytes
    guest: Guest


class Entry(NamedTuple):
    """How a client that was let in proved who it is; looked at again when the configuration changes."""

    guest: Guest
    by: Literal["password", "token", "certificate", "nothing"]
    name: str = ""
    against: str = ""
    """What the proof was compared with: a user's hash, or which key signs tokens."""


class Welcome(NamedTuple):
    """A client is let in."""

    admission: Admission
    """What was found out; when that runs out is said by the clock that tokens and certificates go by."""
    entry: Entry

    def at(self, now: float) -> Admission:
        """Return it by a broker's clock, which may be ahead: the same time is left."""
        until_s = self.admission.until_s
        if until_s is None:
            return self.admission
        return replace(self.admission, until_s=now + until_s - time.time())


class Doorkeeper:
    """Decides about clients that knock, by the rules of the door that each came by."""

    def __init__(self, config: Config, broker: str) -> None:
        for user in config.users:
            if user.password is not None and not is_hash(user.password):
                raise ConfigError(
                    f"The password of user {user.name!r} is no hash, so nobody could log in: write what "
                    "`sojourn password` prints."
                )
        self._users = {user.name: user for user in config.users}
        self._permissions = {user.name: permissions_of(user) for user in config.users}
        self._doors = doors_of(config, broker)
        guests = config.security.guests
        self._guests = None if guests is None else permissions_of(guests)
        self._states = config.security.clients_state_attributes
        self._tokens: Tokens | None = None
        if config.security.jwt is not None:
            from sojourn.live.brokers.tokens import Tokens  # noqa: PLC0415 - cryptography takes a while to load

            self._tokens = Tokens(config.security.jwt)
        certifies = any(one.certificates != "ignored" for one in config.brokers)
        self.authority = fingerprint(config.tls.client_authority if config.tls is not None else None)
        """Whose certificates prove names, as a digest."""
        self._knows_names = bool(self._users or self._tokens or certifies)

    def ask(self, packet: mqtt5.ConnectPacket, guest: Guest) -> Welcome | Refusal | Question:
        """Decide, or say which password is to be checked first."""
        name, password = packet.username, packet.password
        user = self._users.get(name) if name is not None else None
        if self._lacks_certificate(guest):  # it was not asked for one when it shook hands
            return NEEDS_CERTIFICATE
        if guest.certificate is not None:
            if name not in (None, guest.certificate.name):
                return wrong()
            return self._by_certificate(guest, guest.certificate)
        if user is not None and password is not None and len(password) <= PASSWORD_BYTES_MAX:
            return Question(user, password, guest) if user.password is not None else wrong()
        if self._tokens is not None and user is None and password is not None:
            return self._by_token(self._tokens, name, password, guest)
        if self._doors[guest.door].anonymous and (name is None or not self._knows_names):
            # Where nobody can prove a name it is only a name; else one without a proof is a mistake.
            return self._by_nothing(name or "", guest)
        if name is None:
            return Refusal(NOT_AUTHORIZED, "Clients without a user name are not let in here.")
        return wrong()

    def answer(self, question: Question, *, fits: bool) -> Welcome | Refusal:
        """Decide about a user whose password was compared; meanwhile it may have got another one."""
        user = self._users.get(question.user.name)
        if not fits or user is None or user.password != question.user.password:
            return wrong()
        if self._lacks_certificate(question.guest):
            return NEEDS_CERTIFICATE
        entry = Entry(question.guest, "password", user.name, user.password or "")
        return Welcome(self._of(user), entry)

    def _lacks_certificate(self, guest: Guest) -> bool:
        """Whether somebody came without a certificate where everybody needs one by now."""
        door = self._doors.get(guest.door)
        return guest.certificate is None and door is not None and door.certificates == "required"

    def _by_certificate(self, guest: Guest, certificate: Certificate) -> Welcome | Refusal:
        name = certificate.name
        user = self._users.get(name)
        counts = self._doors[guest.door].certificates != "ignored" and self.authority == guest.authority != ""
        if not name or not counts:
            return Refusal(NOT_AUTHORIZED, "Your certificate proves no name here.")
        if user is None and self._users:
            return Refusal(NOT_AUTHORIZED, "The name of your certificate is not among the users.")
        if certificate.until_s <= time.time():  # since the handshake of TLS
            return Refusal(NOT_AUTHORIZED, "Your certificate has run out; connect with a fresh one.")
        known = user if user is not None else UserConfig(name=name)
        admission = replace(self._of(known), until_s=certificate.until_s)
        return Welcome(admission, Entry(guest, "certificate", name, self.authority))

    def _by_token(self, tokens: Tokens, name: str | None, token: bytes, guest: Guest) -> Welcome | Refusal:
        found = tokens.ask(name, token)
        if isinstance(found, Refusal):
            return found
        admission = replace(found, owner=found.username, among_others=True)
        return Welcome(admission, Entry(guest, "token", found.username, tokens.fingerprint))

    def _by_nothing(self, name: str, guest: Guest) -> Welcome:
        admission = Admission(
            username=name,
            # Their own word counts only where nobody else's attributes are vouched for.
            may_state=self._states is True or (self._states is None and not self._knows_names),
            permissions=self._guests,
            owner=ANONYMOUS,
            among_others=self._knows_names,
        )
        return Welcome(admission, Entry(guest, "nothing", name))

    def _of(self, user: UserConfig) -> Admission:
        return Admission(
            username=user.name,
            attributes=user.attributes,
            may_state=self._states is True,
            permissions=self._permissions.get(user.name),
            owner=user.name,
            among_others=True,
        )

    def still(self, entry: Entry) -> Refusal | None:
        """Why a client that was let in before would not be let in now; None if it would."""
        guest, by, name, against = entry
        door = self._doors.get(guest.door)
        user = self._users.get(name)
        if by == "token":
            holds = self._tokens is not None and self._tokens.fingerprint == against
        elif by == "password":
            holds = user is not None and user.password == against
        elif by == "certificate":
            certificates = door.certificates if door is not None else "ignored"
            is_known = user is not None or not self._users
            holds = certificates != "ignored" and is_known and against == self.authority
        else:
            holds = door is not None and door.anonymous and not (name and self._knows_names)
        if holds and not self._lacks_certificate(guest):
            return None
        return Refusal(NOT_AUTHORIZED, "What you came in by is not valid any more; connect again.")


def fingerprint(path: str | None) -> str:
    """What tells an authority from another one: a digest of its file; empty where there is none to read."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path is not None else ""
    except OSError:
        return ""


def wrong() -> Refusal:
    """Refuse whoever gave a name or a password that is not right, without saying which."""
    return Refusal(
        mqtt5.ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD, "The user name or the password is wrong."
    )


def permissions_of(user: UserConfig | GuestConfig) -> Permissions | None:
    """Return what somebody may do; None if that is everything."""
    try:
        permissions = Permissions(
            _patterns(user.publish),
            _patterns(user.subscribe),
            Filter.parse(user.publish_if) if user.publish_if is not None else None,
            Filter.parse(user.subscribe_if) if user.subscribe_if is not None else None,
        )
    except SojournError as error:
        whose = f"user {user.name!r}" if isinstance(user, UserConfig) else "[security.guests]"
        raise ConfigError(f"The permissions of {whose} cannot be read: {error}") from None
    return permissions if any(part is not None for part in permissions) else None


def _patterns(texts: list[str] | None) -> tuple[TopicPattern, ...] | None:
    return None if texts is None else tuple(TopicPattern.parse(text) for text in texts)


def hash_password(password: str, salt: bytes | None = None) -> str:
    """Return a password as it is kept in a configuration."""
    salt = salt if salt is not None else secrets.token_bytes(_SALT_BYTES)
    hashed = hashlib.scrypt(password.encode(), salt=salt, n=_COST, r=_BLOCK, p=_LANES)
    return "$".join((_PREFIX, base64.b64encode(salt).decode(), base64.b64encode(hashed).decode()))


def is_hash(kept: str) -> bool:
    """Whether this is a password as it is kept in a configuration."""
    try:
        prefix, *parts = kept.split("$")
        return (
            prefix == _PREFIX and [bool(base64.b64decode(one, validate=True)) for one in parts] == [True] * 2
        )
    except ValueError:
        return False


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

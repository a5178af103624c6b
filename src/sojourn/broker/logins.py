"""Whose password is compared next: comparing one takes long on purpose, so that has to be shared, too.

    logins.ask(login, now)        # FITS: it was compared before; WAITS; or TOO_MANY
    logins.next(now)              # whose turn it is, or None
    logins.answered(login, now, fits=…)
    logins.next_moment(now)       # when to ask for the next one again, if all have to wait

Addresses have their turn in a circle, and within an address the users it names: so one that tries passwords
takes its own time and nobody else's. Every third turn is a user's, in another circle, whichever addresses
name it: so many addresses that try passwords of one user take the time of that one. After `FREE` wrong ones
for a user an address waits before the next one is compared, twice as long with each, up to a limit. A
password that was right once is known again by a digest that its driver makes with a secret of its own;
nothing here holds a password.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

USERS_TURN = 3
"""Every so many turns is for the user who has waited for longest, the others for the address."""
FREE = 3
"""Wrong passwords after which pauses begin."""
PAUSE_S = 0.1
"""The first pause."""
KNOWN_MAX = 10_000
FAILURES_MAX = 10_000
FORGET_S = 60.0
"""How long after its last pause a failure is remembered."""

Work = TypeVar("Work")


class Verdict(Enum):
    """What comes of a password that is to be compared."""

    FITS = "fits"
    WAITS = "waits"
    TOO_MANY = "too many"


class Login(NamedTuple, Generic[Work]):
    """A password that is to be compared."""

    address: str
    user: str
    digest: bytes
    """Of the password and what it is compared with, made with a secret."""
    work: Work
    """What the driver needs to compare it."""


class _Failures:
    __slots__ = ("count", "until_s")

    def __init__(self) -> None:
        self.count = 0
        self.until_s = 0.0


class Logins(Generic[Work]):
    """The passwords that wait at one broker."""

    def __init__(self, waiting_max: int, pause_max_s: float) -> None:
        self.waiting_max, self.pause_max_s = waiting_max, pause_max_s
        self._lines: dict[str, dict[str, deque[Login[Work]]]] = {}
        """By address, the one whose turn is next first: by user, as well."""
        self._users: dict[str, dict[str, None]] = {}
        """By user, the one whose turn is next first: the addresses that name it, in the same order."""
        self._turns = 0
        self._waiting: dict[str, int] = {}
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._failures: OrderedDict[tuple[str, str], _Failures] = OrderedDict()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return sum(self._waiting.values())

    def ask(self, login: Login[Work], now: float) -> Verdict:
        """Take a password in line, unless it is known or its address has too many there."""
        if login.digest in self._known:
            self._known.move_to_end(login.digest)
            return Verdict.FITS
        count = self._waiting.get(login.address, 0)
        if count >= self.waiting_max:
            return Verdict.TOO_MANY
        self._waiting[login.address] = count + 1
        self._lines.setdefault(login.address, {}).setdefault(login.user, deque()).append(login)
        self._users.setdefault(login.user, {})[login.address] = None
        self._forget(now)
        return Verdict.WAITS

    def next(self, now: float) -> Login[Work] | None:
        """Return the password that is to be compared now; its address and user go to the circles' ends."""
        is_users = self._turns % USERS_TURN == USERS_TURN - 1
        found = self._of_user(now) if is_users else self._of_address(now)
        if found is None:
            return None
        self._turns += 1
        return self._take(*found)

    def _of_address(self, now: float) -> tuple[str, str] | None:
        """Whose turn it is where addresses have theirs."""
        for address, users in self._lines.items():
            for user in users:
                if self._until(address, user) <= now:
                    return address, user
        return None

    def _of_user(self, now: float) -> tuple[str, str] | None:
        """Whose turn it is where users have theirs."""
        for user, addresses in self._users.items():
            for address in addresses:
                if self._until(address, user) <= now:
                    return address, user
        return None

    def _take(self, address: str, user: str) -> Login[Work]:
        users, addresses = self._lines.pop(address), self._users.pop(user)
        line = users.pop(user)
        del addresses[address]
        login = line.popleft()
        if line:
            users[user], addresses[address] = line, None
        if users:
            self._lines[address] = users
        if addresses:
            self._users[user] = addresses
        self._waiting[address] -= 1
        if not self._waiting[address]:
            del self._waiting[address]
        return login

    def answered(self, login: Login[Work], now: float, *, fits: bool) -> None:
        """Note what came of a comparison."""
        key = login.address, login.user
        if fits:
            self._failures.pop(key, None)
            self._known[login.digest] = None
            if len(self._known) > KNOWN_MAX:
                self._known.popitem(last=False)
            return
        failures = self._failures.setdefault(key, _Failures())
        self._failures.move_to_end(key)
        failures.count += 1
        if failures.count >= FREE:
            pause_s = min(self.pause_max_s, PAUSE_S * 2 ** min(30, failures.count - FREE))
            failures.until_s = now + pause_s
        if len(self._failures) > FAILURES_MAX:
            self._failures.popitem(last=False)

    def next_moment(self, now: float) -> float | None:
        """Return when the next may be compared; None if nobody waits."""
        moments = [self._until(address, user) for address, users in self._lines.items() for user in users]
        return max(now, min(moments)) if moments else None

    def _until(self, address: str, user: str) -> float:
        failures = self._failures.get((address, user))
        return failures.until_s if failures is not None else 0.0

    def _forget(self, now: float) -> None:
        """Forget the oldest failures that were long ago."""
        while self._failures:
            key, failures = next(iter(self._failures.items()))
            if failures.until_s + FORGET_S > now or failures.count < FREE:
                break
            del self._failures[key]

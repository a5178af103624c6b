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

import heapq
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
        self._paused: dict[tuple[str, str], deque[Login[Work]]] = {}
        """By address and user: those that are in neither circle, as they have to pause."""
        self._pauses: list[tuple[float, str, str]] = []
        """When pauses end, a heap; some of them have ended otherwise."""
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
        line = self._paused.get((login.address, login.user))
        line = line or self._lines.get(login.address, {}).get(login.user)
        if line is None:
            self._put(login.address, login.user, deque([login]), now)
        else:
            line.append(login)
        self._forget(now)
        return Verdict.WAITS

    def next(self, now: float) -> Login[Work] | None:
        """Return the password that is to be compared now; its address and user go to the circles' ends."""
        self._wake(now)
        if not self._lines:
            return None
        if self._turns % USERS_TURN == USERS_TURN - 1:
            user, addresses = next(iter(self._users.items()))
            address = next(iter(addresses))
        else:
            address, users = next(iter(self._lines.items()))
            user = next(iter(users))
        self._turns += 1
        return self._take(address, user)

    def _put(self, address: str, user: str, line: deque[Login[Work]], now: float) -> None:
        """Take passwords into the circles, at their ends, or let them pause."""
        until_s = self._until(address, user)
        if until_s > now:
            self._paused[address, user] = line
            heapq.heappush(self._pauses, (until_s, address, user))
        else:
            self._lines.setdefault(address, {})[user] = line
            self._users.setdefault(user, {})[address] = None

    def _wake(self, now: float) -> None:
        """Take those into the circles whose pauses are over."""
        while self._pauses and self._pauses[0][0] <= now:
            _, address, user = heapq.heappop(self._pauses)
            line = self._paused.pop((address, user), None)
            if line is not None:
                self._put(address, user, line, now)

    def _take(self, address: str, user: str) -> Login[Work]:
        """Take the first password of a line; what is behind it, and its circles, go to the ends."""
        line = self._take_out(address, user)
        login = line.popleft()
        if line:
            self._lines.setdefault(address, {})[user] = line
            self._users.setdefault(user, {})[address] = None
        self._waiting[address] -= 1
        if not self._waiting[address]:
            del self._waiting[address]
        return login

    def _take_out(self, address: str, user: str) -> deque[Login[Work]]:
        """Take a line out of both circles; others of its address and of its user go to their ends."""
        users, addresses = self._lines.pop(address), self._users.pop(user)
        line = users.pop(user)
        del addresses[address]
        if users:
            self._lines[address] = users
        if addresses:
            self._users[user] = addresses
        return line

    def answered(self, login: Login[Work], now: float, *, fits: bool) -> None:
        """Note what came of a comparison."""
        key = login.address, login.user
        if fits:
            self._failures.pop(key, None)
            line = self._paused.pop(key, None)
            if line is not None:
                self._put(*key, line, now)
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
            if login.user in self._lines.get(login.address, ()):
                self._put(*key, self._take_out(*key), now)
        if len(self._failures) > FAILURES_MAX:
            self._failures.popitem(last=False)

    def next_moment(self, now: float) -> float | None:
        """Return when the next may be compared; None if nobody waits."""
        self._wake(now)
        if self._lines:
            return now
        while self._pauses and self._pauses[0][1:] not in self._paused:
            heapq.heappop(self._pauses)
        return self._pauses[0][0] if self._pauses else None

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

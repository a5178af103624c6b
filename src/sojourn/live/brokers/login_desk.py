"""Compares passwords in threads, each in its turn (`broker/logins.py`), while the loop goes on."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable

from sojourn.broker.logins import Login, Logins, Verdict
from sojourn.live.brokers.admission import Question, password_fits
from sojourn.mqtt.limits import Limits

AT_ONCE_MAX = 2
"""Passwords that are compared at the same time."""


class LoginDesk:
    """Where clients with passwords wait."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: Limits,
        tell: Callable[[int, Question, bool], None],
        is_here: Callable[[int], bool],
    ) -> None:
        """Tell whether a password fits; who has gone meanwhile (`is_here`) is passed over."""
        self._loop, self._tell, self._is_here = loop, tell, is_here
        self.logins: Logins[tuple[int, Question]] = Logins(
            limits.logins_waiting_max, limits.login_pause_max_s
        )
        self._secret = secrets.token_bytes(32)
        self._running: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def ask(self, number: int, address: str, question: Question) -> Verdict:
        """Have a password compared, unless it was found right before or too many wait."""
        now = self._loop.time()
        said = (question.user.name.encode(), (question.user.password or "").encode(), question.password)
        text = b"".join(len(one).to_bytes(4) + one for one in said)
        digest = hashlib.blake2b(text, key=self._secret, digest_size=32).digest()
        verdict = self.logins.ask(Login(address, question.user.name, digest, (number, question)), now)
        if verdict is Verdict.WAITS:
            self._go_on()
        return verdict

    def _go_on(self) -> None:
        """Compare what may be compared now, and look again when more may be."""
        now = self._loop.time()
        while len(self._running) < AT_ONCE_MAX and (login := self.logins.next(now)) is not None:
            if self._is_here(login.work[0]):
                task = self._loop.create_task(self._compare(login))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
        moment_s = self.logins.next_moment(now)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if moment_s is not None and moment_s > now:
            self._timer = self._loop.call_at(moment_s, self._go_on)

    async def _compare(self, login: Login[tuple[int, Question]]) -> None:
        number, question = login.work
        fits = await self._loop.run_in_executor(
            None, password_fits, question.user.password or "", question.password
        )
        self.logins.answered(login, self._loop.time(), fits=fits)
        self._tell(number, question, fits)
        self._loop.call_soon(self._go_on)

    def stop(self) -> None:
        """Compare no more."""
        for task in self._running:
            task.cancel()
        if self._timer is not None:
            self._timer.cancel()

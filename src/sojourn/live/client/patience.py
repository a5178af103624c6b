"""How a client tries again: after pauses that grow, never in step with others, and not for ever."""

from __future__ import annotations

import asyncio
import random
import time

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0


def jittered(pause_s: float) -> float:
    """Return about as long a pause: clients that lost the same broker must not come back in step."""
    return pause_s * random.uniform(0.5, 1.5)  # noqa: S311 - no secret


def longer(pause_s: float) -> float:
    """Return the pause that follows a pause."""
    return min(max(2 * pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)


class Patience:
    """One attempt to do something that may take several tries."""

    def __init__(self, limit_s: float) -> None:
        self._until_s = time.monotonic() + limit_s
        self._pause_s = FIRST_PAUSE_S

    async def lasts(self) -> bool:
        """Pause before the next try; return False, at once, when there is to be none."""
        pause_s = jittered(self._pause_s)
        if time.monotonic() + pause_s > self._until_s:
            return False
        await asyncio.sleep(pause_s)
        self._pause_s = longer(self._pause_s)
        return True

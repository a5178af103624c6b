"""Byte pipes: what is written arrives in order, late, cut into pieces anywhere, or not at all."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

from sojourn.sim.clock import Clock

CUT_SHARE = 0.25
"""How often a write arrives in several pieces."""
PIECES_MAX = 3


class Pipe:
    """One direction of a connection."""

    __slots__ = ("_clock", "_draw", "_due", "_last_s", "_latency_s", "_paused", "_pieces", "_take", "is_cut")

    def __init__(
        self,
        clock: Clock,
        draw: random.Random,
        latency_s: tuple[float, float],
        take: Callable[[bytes | None], None],
    ) -> None:
        """Make a pipe; `take` is given each piece, and None at the end of what was written."""
        self._clock, self._draw, self._latency_s, self._take = clock, draw, latency_s, take
        self._pieces: deque[bytes | None] = deque()
        self._last_s = 0.0
        self._paused = 0
        self._due = 0
        """Pieces that would have arrived but for a pause."""
        self.is_cut = False

    @property
    def waiting(self) -> int:
        """How many pieces are on their way."""
        return len(self._pieces)

    def write(self, data: bytes) -> None:
        """Send bytes, in one piece or a few."""
        if self.is_cut or not data:
            return
        draw = self._draw
        if len(data) > 1 and draw.random() < CUT_SHARE:
            cuts = sorted(draw.randrange(1, len(data)) for _ in range(draw.randrange(1, PIECES_MAX)))
            start = 0
            for cut in (*cuts, len(data)):
                if cut > start:
                    self._push(data[start:cut])
                    start = cut
        else:
            self._push(data)

    def end(self) -> None:
        """Say that nothing more comes."""
        if not self.is_cut:
            self._push(None)

    def _push(self, piece: bytes | None) -> None:
        low, high = self._latency_s
        clock = self._clock
        self._last_s = max(self._last_s, clock.now + low + (high - low) * self._draw.random())
        self._pieces.append(piece)
        clock.plan(self._last_s, self._arrive)

    def _arrive(self, _thing: object) -> None:
        if self.is_cut:
            return
        if self._paused:
            self._due += 1
        else:
            self._take(self._pieces.popleft())

    def cut(self) -> None:
        """Lose whatever is on its way."""
        self.is_cut = True
        self._pieces.clear()

    def pause(self) -> None:
        """Let nothing arrive until as many resumes as pauses came."""
        self._paused += 1

    def resume(self, _thing: object = None) -> None:
        """Let what was held back arrive, unless it is paused otherwise too."""
        self._paused -= 1
        while self._due and not self._paused and not self.is_cut:
            self._due -= 1
            self._take(self._pieces.popleft())

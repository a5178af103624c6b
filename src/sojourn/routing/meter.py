"""A limit on the work of a search."""


class Meter:
    """Counts the steps of a search, and says when there were enough."""

    __slots__ = ("_left",)

    def __init__(self, steps_max: float) -> None:
        self._left = steps_max

    def step(self) -> bool:
        """Whether there is one more step to go."""
        self._left -= 1
        return self._left >= 0

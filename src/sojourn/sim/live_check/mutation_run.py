"""Which of the known mistakes are found, and after how many seeds.

A seed counts for a mistake only if whole brokers pass it: otherwise nobody knows what was found. A mistake
that was found is not run any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sojourn.sim.live_check.check import Found, check
from sojourn.sim.live_check.mutations import MUTATIONS, broken
from sojourn.sim.live_check.script import Spec

Task = tuple[Spec, str]
"""A world, and the mistake of its brokers; empty for none."""
WHOLE = ""


def run_task(task: Task) -> tuple[str, Found]:
    """Run a world with a mistake."""
    spec, name = task
    with broken(name or None):
        return name, check(spec)


@dataclass
class Hunt:
    """How far the search for mistakes is."""

    specs: list[Spec]
    names: tuple[str, ...] = tuple(MUTATIONS)
    failed_whole: set[int] = field(default_factory=set)
    """Seeds that whole brokers fail."""
    failures: dict[str, dict[int, str]] = field(default_factory=dict)
    """By mistake and seed: what was found."""

    def tasks(self) -> Iterator[Task]:
        """Yield what is to be run, as long as some mistake was not found."""
        for spec in self.specs:
            missing = [name for name in self.names if not self._found(name)]
            if not missing:
                return
            for name in (WHOLE, *missing):
                yield spec, name

    def took(self, result: tuple[str, Found]) -> None:
        """Note what came of a world."""
        name, found = result
        if found.failure is None:
            return
        if name == WHOLE:
            self.failed_whole.add(found.spec.seed)
        else:
            self.failures.setdefault(name, {})[found.spec.seed] = found.failure

    def _found(self, name: str) -> set[int]:
        return self.failures.get(name, {}).keys() - self.failed_whole

    def rows(self) -> Iterable[tuple[str, int | None, str]]:
        """Yield each mistake, after how many seeds it was found (None if it was not), and by what."""
        good = [spec.seed for spec in self.specs if spec.seed not in self.failed_whole]
        for name in self.names:
            found = self._found(name)
            place = next((place for place, seed in enumerate(good, 1) if seed in found), None)
            text = self.failures[name][good[place - 1]] if place is not None else ""
            yield name, place, text

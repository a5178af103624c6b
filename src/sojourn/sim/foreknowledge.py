"""A predictor that is never wrong, since it looks up the paths that a simulated world will take.

It is the bound that learnt predictions are measured against: one copy, where the client will be next, and
none where it will never come again.
"""

from collections.abc import Iterator

from sojourn.sim.roaming.run import Paths, Sojourn


class Foreknowledge:
    """Where each subscriber of a run goes next."""

    def __init__(self, paths: Paths, subscribers: int) -> None:
        self._coming: list[Iterator[Sojourn]] = [paths.sojourns(client) for client in range(subscribers)]
        self._known: list[list[Sojourn]] = [[] for _ in range(subscribers)]

    def next_brokers(self, client: int, at: int, before: int | None, now: float) -> tuple[int, ...] | None:  # noqa: ARG002 - who knows the way need not ask
        """The one broker that the client connects to after its stay here; none if it never does."""
        if client >= len(self._known):
            return None  # publishers have paths of their own
        known, coming = self._known[client], self._coming[client]
        while not known or known[-1].from_s <= now or known[-1].broker == at:
            stay = next(coming, None)
            if stay is None:
                break
            known.append(stay)
        here = max(
            (n for n, stay in enumerate(known) if stay.broker == at and stay.from_s <= now), default=-1
        )
        del known[: max(0, here - 1)]
        here = min(here, 1)
        return next(((stay.broker,) for stay in known[here + 1 :] if stay.broker != at), ())

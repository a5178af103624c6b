"""Who is at which broker, out of reports that were made at different moments.

Every broker reports once a second, at a moment of its own. A client that changes brokers in between is named
by both of them or by neither, so that summed up as they are, reports would have clients come and go that only
walk. Therefore a client that several brokers name is where it came last, and one that nobody names any more
counts where it was for `ON_THE_WAY_S`, unless it turns up before.

Only names tell that. Where a broker has so many clients that it does not name all of them, those it does not
name are counted as it counts them; and names that were cut are nobody's for certain.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from sojourn.live.page.status import NAME_MAX, Report

ON_THE_WAY_S = 3.0
"""How long a client may be named by nobody before it counts as away."""


class Left(NamedTuple):
    """A client that its broker does not name any more."""

    broker: str
    since_s: float
    """When it had come there."""
    at_s: float
    """When it was found missing."""


class Whereabouts:
    """Settles who is where. It remembers nobody for longer than `ON_THE_WAY_S`."""

    def __init__(self) -> None:
        self._left: dict[str, Left] = {}

    def take(self, broker: str, before: Report | None, report: Report, now: float) -> None:
        """Note who is missing in a broker's report that was in the one before."""
        self._left = {name: left for name, left in self._left.items() if now - left.at_s < ON_THE_WAY_S}
        here = {name for name, _ in report.present}
        for name in here:
            self._left.pop(name, None)
        if before is None or not (_names_all(before) and _names_all(report)):
            return
        for name, since_s in before.present:
            if name not in here and _is_whole(name):
                self._left[name] = Left(broker, since_s, now)

    def settled(self, reports: dict[str, Report], now: float) -> dict[str, Report]:
        """The same reports, with every client at one broker."""
        places: dict[str, tuple[float, float, str]] = {}
        for broker, report in reports.items():
            for name, since_s in report.present:
                if _is_whole(name):
                    places[name] = max(places.get(name, (0.0, 0.0, "")), (since_s, report.at_s, broker))
        walking: dict[str, list[tuple[str, float]]] = {}
        for name, left in self._left.items():
            if name not in places and now - left.at_s < ON_THE_WAY_S:
                walking.setdefault(left.broker, []).append((name, left.since_s))
        return {
            broker: _with(report, [*_staying(broker, report, places), *walking.get(broker, [])])
            for broker, report in reports.items()
        }


def _staying(
    broker: str, report: Report, places: dict[str, tuple[float, float, str]]
) -> list[tuple[str, float]]:
    return [one for one in report.present if not _is_whole(one[0]) or places[one[0]][2] == broker]


def _with(report: Report, present: list[tuple[str, float]]) -> Report:
    clients = report.clients + len(present) - len(report.present)
    return replace(report, present=present, clients=clients, sessions=max(report.sessions, clients))


def _names_all(report: Report) -> bool:
    return len(report.present) == report.clients


def _is_whole(name: str) -> bool:
    return len(name) < NAME_MAX

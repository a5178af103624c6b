"""What routing computations cost: the service time of a broker for each kind of work.

Paper 000, sections 3 and 5.2.2. A publication costs one match; a subscription a covering test and an
insertion, twice a match; an advertisement an intersection test, once a match. Section 3 makes an insertion
proportional to a match; section 5.2.2 says of the complex class that matching alone differs, which leaves an
insertion at the fast class's 2 ms: `insertion_ms` is that reading. The paper leaves open what
withdrawals cost; they search the same tables and are charged like what they withdraw, or with
`withdrawals_charged` off not at all (fast and complex; `measured` knows what ours cost).

- none: nothing.
- fast: a match takes 2 ms.
- complex: a match takes N/1000 + 40 ms for N subscriptions.
- measured: what our own tables take, read from a calibration file that `sojourn bench calibrate` writes. It
  holds, for each kind of work, seconds at some table sizes; between them it is interpolated, beyond them
  the outermost value holds. The size is `total_subscriptions`, as for complex, or, if that is 0, the number
  of subscriptions in the broker's own table.

Work that changes no table, such as passing on a prefetch or greeting a publisher whose tree stands, is free.
"""

import json
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path

from sojourn.errors import SojournError
from sojourn.routing.messages import Kind
from sojourn.sim.scenario import Scenario

FAST_MATCH_S = 0.002
WORKS = ("publication", "subscription", "advertisement")
_WORK_OF = {
    Kind.ADVERTISE: "advertisement",
    Kind.UNADVERTISE: "advertisement",
    Kind.SUBSCRIBE: "subscription",
    Kind.UNSUBSCRIBE: "subscription",
    Kind.PUBLISH: "publication",
}

_WITHDRAWALS = (Kind.UNADVERTISE, Kind.UNSUBSCRIBE)

Curve = tuple[list[float], list[float]]
ServiceTime = Callable[[int, int], float]
"""Seconds for a kind of work at a broker with so many subscriptions."""


class CalibrationError(SojournError):
    """A calibration file that does not say what work costs."""


def complex_match_s(total_subscriptions: int) -> float:
    """A match of the complex class (section 5.2.2)."""
    return (total_subscriptions / 1000 + 40) / 1000


def service_times(scenario: Scenario) -> ServiceTime | None:
    """The service times of a scenario, or None where computations take no time."""
    if scenario.computations == "none":
        return None
    if scenario.computations == "measured":
        curves = load_calibration(Path(scenario.calibration_file))
        measured = _measured(curves, scenario.total_subscriptions)
        if scenario.withdrawals_charged:
            return measured
        return lambda work, size: 0.0 if work in _WITHDRAWALS else measured(work, size)
    match_s = FAST_MATCH_S
    if scenario.computations == "complex":
        match_s = complex_match_s(scenario.total_subscriptions)
    insertion_s = scenario.insertion_ms / 1000 or match_s
    seconds = {
        "publication": match_s,
        "subscription": match_s + insertion_s,
        "advertisement": match_s,
    }
    by_kind = [seconds[_WORK_OF[Kind(kind)]] for kind in range(Kind.PUBLISH + 1)]
    if not scenario.withdrawals_charged:
        by_kind[Kind.UNADVERTISE] = by_kind[Kind.UNSUBSCRIBE] = 0.0
    return lambda work, _size: by_kind[work]


def load_calibration(path: Path) -> dict[str, Curve]:
    """The curves of a calibration file: for each kind of work, table sizes and seconds."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise CalibrationError(
            f"calibration_file {path} cannot be read; make one with `sojourn bench calibrate`."
        ) from None
    except ValueError:
        raise CalibrationError(
            f"calibration_file {path} is not JSON; make one with `sojourn bench calibrate`."
        ) from None
    return {work: _curve(data, work, path) for work in WORKS}


def _curve(data: object, work: str, path: Path) -> Curve:
    try:
        points = data[work]  # type: ignore[index]  # whatever the file holds; what does not fit is refused below
        sizes, seconds = [float(point[0]) for point in points], [float(point[1]) for point in points]
        lowest = min(seconds)
    except (TypeError, ValueError, LookupError):
        raise CalibrationError(
            f"calibration_file {path} must give {work} as a list of [table size, seconds]."
        ) from None
    if sizes != sorted(set(sizes)) or lowest < 0:
        raise CalibrationError(
            f"calibration_file {path} must give {work} with rising table sizes and no negative seconds."
        )
    return sizes, seconds


def _measured(curves: dict[str, Curve], total_subscriptions: int) -> ServiceTime:
    by_kind = [curves[_WORK_OF[Kind(kind)]] for kind in range(Kind.PUBLISH + 1)]
    if total_subscriptions:
        fixed = [interpolate(curve, total_subscriptions) for curve in by_kind]
        return lambda work, _size: fixed[work]
    return lambda work, size: interpolate(by_kind[work], size)


def interpolate(curve: Curve, size: float) -> float:
    """The value of a curve at a table size."""
    sizes, seconds = curve
    at = bisect_left(sizes, size)
    if at == 0:
        return seconds[0]
    if at == len(sizes):
        return seconds[-1]
    share = (size - sizes[at - 1]) / (sizes[at] - sizes[at - 1])
    return seconds[at - 1] + share * (seconds[at] - seconds[at - 1])

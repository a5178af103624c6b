"""Runs a grid of simulations, each in its own process slot, and returns one flat row per run.

The boundary is kept plain so that any other engine can stand behind it: a run specification is a flat row
(its scenario as JSON text beside the labels), the result of a run is a flat row of measures with the same
`run_id`. A run that fails becomes a row with its error while the others finish. Equal scenarios are run
once however many experiments ask for them. The order of the result does not depend on who finished first.
"""

import hashlib
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice

import msgspec

from sojourn.errors import SojournError
from sojourn.pipeline.progress import Listener, Pace, Progress

Row = dict[str, float | int | str | None]
Simulate = Callable[[str], Row]
"""From a scenario's JSON text to the run's measures; importable by name, since it is sent to a process."""


class RunnerError(SojournError):
    """The processes that simulate cannot go on."""


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a study: its labels in the grid, and all it takes to repeat it."""

    run_id: str
    """A digest of the scenario; equal scenarios are one run."""
    experiment: str
    series: str
    """What a line in a figure stands for: the protocol, mostly."""
    computations: str
    axis: str
    x: float
    seed: int
    cost: float
    """Estimated message-hops, to start the longest first and to tell the time left."""
    spec_json: str


def run_id_of(spec_json: str) -> str:
    """The name of a run: a digest of its scenario."""
    return hashlib.sha256(spec_json.encode()).hexdigest()[:16]


def specify(
    scenario: msgspec.Struct,
    *,
    experiment: str,
    series: str,
    axis: str,
    x: float,
    seed: int,
    cost: float,
    computations: str = "none",
) -> RunSpec:
    """The run of a scenario, with its labels."""
    text = msgspec.json.encode(scenario, order="sorted").decode()
    return RunSpec(
        run_id=run_id_of(text),
        experiment=experiment,
        series=series,
        computations=computations,
        axis=axis,
        x=x,
        seed=seed,
        cost=cost,
        spec_json=text,
    )


def run_grid(
    specs: Iterable[RunSpec],
    simulate: Simulate,
    *,
    workers: int | None = None,
    progress: Listener | None = None,
) -> list[Row]:
    """Simulate every distinct run of a grid and return its measures by ascending run_id."""
    distinct = {spec.run_id: spec for spec in specs}
    # Longest first: a long run started last would leave the other processes idle.
    queue = sorted(distinct.values(), key=lambda spec: (-spec.cost, spec.run_id))
    slots = max(1, min(workers or os.cpu_count() or 1, len(queue)))
    rows = (
        _in_this_process(queue, simulate, progress)
        if slots == 1
        else _in_pool(queue, simulate, slots, progress)
    )
    return sorted(rows, key=lambda row: str(row["run_id"]))


def run_one(spec: RunSpec, simulate: Simulate) -> Row:
    """One run's row: its measures, or its error beside the seed that repeats it."""
    started = time.perf_counter()
    row: Row = {"run_id": spec.run_id, "seed": spec.seed, "error": None}
    try:
        row.update(simulate(spec.spec_json))
    except Exception as error:  # noqa: BLE001  whatever a run raises, the other runs go on
        row["error"] = f"{type(error).__name__}: {error}"
    row["wall_s"] = time.perf_counter() - started
    return row


class _Meter:
    """Counts runs and tells the listener."""

    def __init__(self, queue: list[RunSpec], workers: int, progress: Listener | None) -> None:
        self._progress = progress
        self._pace = Pace(workers)
        self._total = len(queue)
        self._cost = sum(spec.cost for spec in queue) or 1.0
        self._spent = 0.0
        self._done = self._failed = 0
        self._started = time.perf_counter()

    def finished(self, spec: RunSpec, row: Row) -> None:
        self._done += 1
        self._failed += row["error"] is not None
        self._spent += spec.cost

    def tell(self, running: int) -> None:
        if self._progress is not None:
            elapsed = time.perf_counter() - self._started
            share = self._spent / self._cost
            left_s = self._pace.left_s(self._done, share, elapsed)
            self._progress(Progress(self._total, self._done, running, self._failed, share, elapsed, left_s))


def _in_this_process(queue: list[RunSpec], simulate: Simulate, progress: Listener | None) -> list[Row]:
    meter = _Meter(queue, 1, progress)
    rows = []
    for spec in queue:
        meter.tell(1)
        rows.append(run_one(spec, simulate))
        meter.finished(spec, rows[-1])
    meter.tell(0)
    return rows


def _in_pool(queue: list[RunSpec], simulate: Simulate, slots: int, progress: Listener | None) -> list[Row]:
    meter = _Meter(queue, slots, progress)
    rows: list[Row] = []
    # Fresh interpreters: a fork would copy the parent's threads' locks in whatever state they are.
    with ProcessPoolExecutor(slots, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = iter(queue)
        running: dict[Future[Row], RunSpec] = {}
        while True:
            # No more than the slots at a time, so that `running` says what runs and not what is queued.
            for spec in islice(waiting, slots - len(running)):
                running[pool.submit(run_one, spec, simulate)] = spec
            meter.tell(len(running))
            if not running:
                return rows
            for future in wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done:
                spec = running.pop(future)
                rows.append(_result(future))
                meter.finished(spec, rows[-1])


def _result(future: Future[Row]) -> Row:
    try:
        return future.result()
    except BrokenProcessPool:
        raise RunnerError(
            "A simulating process ended abruptly, for want of memory most likely; try fewer --workers."
        ) from None

"""How far a sweep or an audit is: the numbers, and the watches over Spark that keep them up to date.

The numbers are for a person's eye. A run that Spark had to start again may be counted twice for a moment;
results never depend on them. Spark is needed by those only who watch a sweep on it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.accumulators import Accumulator
    from pyspark.sql import SparkSession

PERIOD_S = 0.5


class Progress(NamedTuple):
    """How far a sweep is."""

    total: int
    done: int
    running: int
    failed: int
    share: float
    """Of the estimated cost that is done."""
    elapsed_s: float

    left_s: float | None = None
    """Estimated seconds until the end, or None while there is no ground for an estimate."""


class Pace:
    """Estimates the time left from the pace since the first runs have ended.

    What is before that says little of the rest: processes start, code is compiled, and of the runs that
    go side by side some cost has been spent while none of it counts as done. So nothing is estimated
    before every worker has ended one run and, on the average, one more since; and while no further run
    ends, the estimate stays.
    """

    def __init__(self, workers: int) -> None:
        self._workers = max(1, workers)
        self._begun: tuple[int, float, float] | None = None
        """Runs and share done, and seconds gone by, where the pace is measured from."""
        self._told: tuple[int, float | None] = (0, None)
        """The last estimate, and how many runs were done then."""

    def left_s(self, done: int, share: float, elapsed_s: float) -> float | None:
        """Estimated seconds until the end, or None."""
        if share >= 1:
            return 0.0
        if done != self._told[0]:
            self._told = (done, self._estimate(done, share, elapsed_s))
        return self._told[1]

    def _estimate(self, done: int, share: float, elapsed_s: float) -> float | None:
        if self._begun is None:
            if done >= self._workers:
                self._begun = (done, share, elapsed_s)
            return None
        begun, begun_share, begun_s = self._begun
        if done - begun < self._workers or share <= begun_share:
            return None
        return (elapsed_s - begun_s) * (1 - share) / (share - begun_share)


Listener = Callable[[Progress], None]


class Counters(NamedTuple):
    """What tasks add to as they finish."""

    done: Accumulator[int]
    failed: Accumulator[int]
    cost: Accumulator[float]


class Watch:
    """Tells a listener, while the `with` block runs, how far the jobs of this thread are.

    The context's job group is what ties the status tracker's stages to this sweep.
    """

    def __init__(self, context: SparkContext, total: int, cost: float, listener: Listener) -> None:
        self.counters = Counters(context.accumulator(0), context.accumulator(0), context.accumulator(0.0))
        self._context = context
        self._total = total
        self._cost = cost or 1.0
        self._pace = Pace(context.defaultParallelism)
        self._listener = listener
        self._group = f"sojourn-sweep-{id(self)}"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_telling, daemon=True)
        self._started = time.perf_counter()

    def __enter__(self) -> Self:
        self._context.setJobGroup(self._group, "sweep", interruptOnCancel=False)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._tell(running=0)

    def _keep_telling(self) -> None:
        while not self._over.wait(PERIOD_S):
            self._tell(running=self._running())

    def _running(self) -> int:
        tracker = self._context.statusTracker()
        stages = [
            tracker.getStageInfo(stage)
            for job in tracker.getJobIdsForGroup(self._group)
            for stage in getattr(tracker.getJobInfo(job), "stageIds", ())
        ]
        active = sum(stage.numActiveTasks for stage in stages if stage is not None)
        # The tracker hears of a task's end a little late and of the next one's start at once.
        return min(active, self._context.defaultParallelism)

    def _tell(self, running: int) -> None:
        done, failed = min(self._total, self.counters.done.value), self.counters.failed.value
        share = min(1.0, self.counters.cost.value / self._cost)
        elapsed_s = time.perf_counter() - self._started
        left_s = self._pace.left_s(done, share, elapsed_s)
        self._listener(Progress(self._total, done, running, failed, share, elapsed_s, left_s))


def watch_tasks(
    spark: SparkSession, tasks: int, tell: Callable[[float], None]
) -> AbstractContextManager[object]:
    """Watch the tasks of a block, where they can be seen: by Spark Connect a client sees none."""
    from pyspark.sql.utils import is_remote  # noqa: PLC0415 - see above

    return nullcontext() if is_remote() else TaskWatch(spark, tasks, tell)


class TaskWatch:
    """Tells a listener, while the `with` block runs, which share of the tasks of this thread's jobs is done.

    `tasks` is how many there will be, about: Spark learns of a stage's tasks only when it comes to it.
    """

    def __init__(self, spark: SparkSession, tasks: int, tell: Callable[[float], None]) -> None:
        self._context = spark.sparkContext
        self._tasks = max(1, tasks)
        self._tell = tell
        self._group = f"sojourn-tasks-{id(self)}"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_telling, daemon=True)

    def __enter__(self) -> Self:
        self._context.setJobGroup(self._group, "audit", interruptOnCancel=False)
        self._tell(0.0)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None clears it

    def _keep_telling(self) -> None:
        while not self._over.wait(PERIOD_S):
            self._tell(min(0.99, self._done() / self._tasks))

    def _done(self) -> int:
        tracker = self._context.statusTracker()
        jobs = (tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group))
        stages = {stage for job in jobs if job is not None for stage in job.stageIds}
        told = (tracker.getStageInfo(stage) for stage in stages)
        return sum(stage.numCompletedTasks for stage in told if stage is not None)

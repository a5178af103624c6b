"""Worlds in several processes: a few are under way, and more are begun as long as they are wanted."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

AHEAD = 2
"""How many worlds a process has been given at the most: the one that it runs, and the next."""
ORPHANED_S = 2.0
"""How soon a process ends whose parent was killed."""


class Ran(NamedTuple, Generic[Result]):
    """A world that was run."""

    found: Result
    processor_s: float


@contextmanager
def ran(job: Callable[[Task], Result], tasks: Iterator[Task], jobs: int) -> Iterator[Iterator[Ran[Result]]]:
    """Run worlds, each as soon as there is a process for it; yield what came of them, as they end.

    Nothing is begun before it is asked for; when the reader has enough or fails, what is under way is
    given up.
    """
    if jobs == 1:
        yield (_timed(job, task) for task in tasks)
        return
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, _prepare, (os.getpid(),))
    try:
        yield _as_they_end(pool, job, tasks, jobs * AHEAD)
    finally:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        pool.shutdown(cancel_futures=True)


def _as_they_end(
    pool: ProcessPoolExecutor, job: Callable[[Task], Result], tasks: Iterator[Task], ahead: int
) -> Iterator[Ran[Result]]:
    under_way: set[Future[Ran[Result]]] = {pool.submit(_timed, job, task) for task in islice(tasks, ahead)}
    while under_way:
        ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
        for one in ended:
            yield one.result()
        under_way |= {pool.submit(_timed, job, task) for task in islice(tasks, len(ended))}


def _timed(job: Callable[[Task], Result], task: Task) -> Ran[Result]:
    began_s = time.process_time()
    found = job(task)
    return Ran(found, time.process_time() - began_s)


def _prepare(parent: int) -> None:
    """Leave Ctrl-C to the parent, and do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(ORPHANED_S)
    os._exit(1)

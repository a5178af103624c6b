"""A broker of `sojourn bench floods`, run as a file: `python -P bench_floods_broker.py FILE BROKER NOTES …`.

Beside the broker, in the same loop, a timer is due every two milliseconds. How late it comes is how long the
loop was held, whatever held it, and what its thread used of the processor meanwhile is what the turn cost,
however busy the machine is. The most of both is written to the file NOTES five times a second, and what
the broker used of the processor in all; a file beside it that ends in .reset begins anew. Nothing here needs
more of Sojourn than its command, so that brokers of earlier releases are measured in the same way
(`--against`).
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import uvloop

BEAT_S = 0.002
NOTE_S = 0.2

_run = uvloop.run


async def _watch(notes: Path) -> None:
    """Note how late the loop is, again and again."""
    longest_s, longest_cpu_s, noted_s = 0.0, 0.0, time.perf_counter()
    start_s = noted_s
    while True:
        began_s, began_cpu_s = time.perf_counter(), time.thread_time()
        await asyncio.sleep(BEAT_S)
        now_s = time.perf_counter()
        longest_s = max(longest_s, now_s - began_s - BEAT_S)
        longest_cpu_s = max(longest_cpu_s, time.thread_time() - began_cpu_s)
        if now_s - noted_s >= NOTE_S:
            noted_s = now_s
            found = {"longest_s": longest_s, "longest_cpu_s": longest_cpu_s, "cpu_s": time.process_time()}
            text = json.dumps({"s": now_s - start_s, **found})
            new = notes.with_suffix(".new")
            new.write_text(text)
            new.replace(notes)
            if notes.with_suffix(".reset").exists():
                notes.with_suffix(".reset").unlink()
                longest_s = longest_cpu_s = 0.0


def _watched(work: Coroutine[Any, Any, Any], notes: Path) -> Any:
    async def both() -> Any:
        watching = asyncio.ensure_future(_watch(notes))
        try:
            return await work
        finally:
            watching.cancel()

    return _run(both())


def main() -> None:
    """Run the broker as its command does, in a loop that is watched."""
    config, broker, notes = sys.argv[1:4]
    uvloop.run = lambda work, **_: _watched(work, Path(notes))
    from sojourn.cli.main import main as command

    sys.argv = ["sojourn", "serve", config, "--broker", broker, *sys.argv[4:]]
    command()


if __name__ == "__main__":
    main()

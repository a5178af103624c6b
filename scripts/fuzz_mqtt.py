"""Sends mutated MQTT packets to the session core; the seed repeats a run.

    python scripts/fuzz_mqtt.py --count 1000000 --seed 1

Every hundred packets another client must still be served. Prints what the core refused, by reason.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.mqtt.test_parts import flood


def main() -> None:
    """Run it and print the outcome as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    sys.stderr.write(f"seed {given.seed}, {given.count:,} packets\n")
    start = time.monotonic()
    refused: dict[str, int] = {}
    for at in range(0, given.count, 50_000):
        size = min(50_000, given.count - at)
        counters = flood(size, given.seed * 1_000_003 + at).core.state.counters
        for reason, number in counters.refused.items():
            refused[reason] = refused.get(reason, 0) + number
        sys.stderr.write(f"\r{at + size:,} of {given.count:,}")
    sys.stderr.write("\n")
    seconds = round(time.monotonic() - start, 1)
    sys.stdout.write(
        json.dumps({"seed": given.seed, "packets": given.count, "seconds": seconds, "refused": refused})
        + "\n"
    )


if __name__ == "__main__":
    main()

"""Two brokers that stand in for one another: each event is shown once, also when one of them is gone.

    sojourn serve --port 1883
    sojourn serve --port 1884
    python examples/replicas.py mqtt://127.0.0.1:1883 mqtt://127.0.0.1:1884

The brokers are not linked and know nothing of each other; the clients publish to both and subscribe at both.
Stop either broker while the program runs: nothing is missing as long as the other one serves.
"""

from __future__ import annotations

import asyncio
import sys

from sojourn import ReplicaClient, UnreachableError

EVENTS = 20


async def talk(urls: list[str]) -> None:
    """Publish a few events and show what arrives."""
    speaker = ReplicaClient(urls, client_id="speaker")
    display = ReplicaClient(urls, client_id="display", filter="ordered")
    async with speaker, display:
        await display.subscribe(topic="news/#")
        for number in range(EVENTS):
            await speaker.publish("news/today", {"number": number})
        shown = [(await display.next(timeout_s=60)).attributes["number"] for _ in range(EVENTS)]
        print(f"shown from {len(display.connected)} replicas: {shown[0]} to {shown[-1]}, {len(shown)} events")
        print("each once and in order" if shown == [*range(EVENTS)] else f"{shown}")


if __name__ == "__main__":
    try:
        asyncio.run(talk(sys.argv[1:] or ["mqtt://127.0.0.1:1883", "mqtt://127.0.0.1:1884"]))
    except UnreachableError as error:
        sys.exit(f"{error} `sojourn serve` starts a broker.")

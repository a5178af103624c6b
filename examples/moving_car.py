"""A car drives from broker to broker and misses nothing that a camera says about fast cars.

    sojourn init line line.toml && sojourn serve line.toml --all
    python examples/moving_car.py mqtt://127.0.0.1:1883 mqtt://127.0.0.1:1884 mqtt://127.0.0.1:1885

The camera stays at the last broker and publishes all the time, also while the car is between two brokers.
"""

from __future__ import annotations

import asyncio
import sys

from sojourn import Client, UnreachableError

EVENTS = 30
FAST_KMH = 80


async def film(camera: Client) -> list[int]:
    """Publish what the camera sees; return the numbers of what is fast."""
    fast = []
    for number in range(EVENTS):
        speed = 70 + number % 3 * 10  # 70, 80, 90 and again
        await camera.publish("cameras/2", {"number": number, "speed": speed, "road": "A2"})
        if speed > FAST_KMH:
            fast.append(number)
        await asyncio.sleep(0.02)
    return fast


async def drive(urls: list[str]) -> None:
    """Let both do their work, and compare what was said with what was heard."""
    car, camera = Client(urls[0], client_id="car-7"), Client(urls[-1], client_id="camera-2")
    async with car, camera:
        await car.subscribe(f"speed > {FAST_KMH} AND road = 'A2'")
        filming = asyncio.create_task(film(camera))
        for url in urls[1:]:
            await asyncio.sleep(0.2)
            await car.move_to(url)
        fast = await filming
        heard = [(await car.next(timeout_s=60)).attributes["number"] for _ in fast]
    way = " -> ".join(line.broker for line in car.connections)
    print(f"the car drove {way} and heard {len(heard)} of {len(fast)} fast cars")
    print("each once and in order" if heard == fast else f"{heard} instead of {fast}")


if __name__ == "__main__":
    try:
        asyncio.run(drive(sys.argv[1:] or [f"mqtt://127.0.0.1:{1883 + number}" for number in range(3)]))
    except UnreachableError as error:
        sys.exit(f"{error} `sojourn serve` starts a broker.")

"""A sensor keeps back what nobody wants: its broker tells it what anybody, at any broker, has asked for.

sojourn serve
python examples/quenching_sensor.py mqtt://127.0.0.1:1883
"""

from __future__ import annotations

import asyncio
import sys

from sojourn import Client, UnreachableError

DEGREES = (18, 21, 35, 24, 41, 19)


async def measure(sensor_url: str, reader_url: str) -> None:
    """Measure before and after somebody is interested in heat."""
    sensor = Client(sensor_url, client_id="sensor-1", quench=True)
    reader = Client(reader_url, client_id="reader-1")
    async with sensor, reader:
        for degrees in DEGREES:
            await sensor.publish("rooms/7", {"degrees": degrees})
        print(f"nobody asked: {sensor.quenched} of {len(DEGREES)} kept back")

        await reader.subscribe("degrees > 30")
        heard: list[int] = []
        # The interest travels to the sensor: until it is there, a hot room may be kept back.
        while not heard:
            await sensor.publish("rooms/7", {"degrees": max(DEGREES)})
            try:
                heard.append((await reader.next(timeout_s=0.5)).attributes["degrees"])
            except TimeoutError:
                continue
        before = sensor.quenched
        for degrees in DEGREES:
            await sensor.publish("rooms/7", {"degrees": degrees})
        heard = [(await reader.next(timeout_s=60)).attributes["degrees"] for _ in range(2)]
        print(f"somebody asked: {sensor.quenched - before} of {len(DEGREES)} kept back, {heard} heard")


if __name__ == "__main__":
    given = sys.argv[1:] or ["mqtt://127.0.0.1:1883"]
    try:
        asyncio.run(measure(given[0], given[-1]))
    except UnreachableError as error:
        sys.exit(f"{error} `sojourn serve` starts a broker.")

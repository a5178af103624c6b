"""Cars that SUMO drives through a city move between live brokers, one for each strip of the map.

    make sumo                                            # makes out/sumo/1/fcd.xml
    sojourn init line line.toml && sojourn serve line.toml --all
    python examples/sumo_city.py out/sumo/1/fcd.xml mqtt://127.0.0.1:188{3,4,5}

Each car is a client: it says where it is, wants to hear of cars that stand, and connects to the broker of the
strip that it is in. At the end every car has to have heard of each standing car once. The program goes
through the file as fast as brokers answer; a second of SUMO's takes as long as it takes.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sojourn import Client, UnreachableError

STANDING_MS = 0.5
WAIT_S = 60


class Seen(NamedTuple):
    """A car at one moment."""

    name: str
    x_m: float
    speed_ms: float


def moments(path: Path, every_s: float) -> Iterator[list[Seen]]:
    """What SUMO wrote (`--fcd-output`), every so many seconds."""
    due_s = 0.0
    for _, element in ET.iterparse(path):  # noqa: S314 - a file that you made; entities are not resolved
        if element.tag == "timestep":
            if float(element.attrib["time"]) >= due_s:
                due_s = float(element.attrib["time"]) + every_s
                yield [
                    Seen(one.attrib["id"], float(one.attrib["x"]), float(one.attrib["speed"]))
                    for one in element.iter("vehicle")
                ]
            element.clear()


class City:
    """All cars, and the brokers of the strips."""

    def __init__(self, urls: list[str], width_m: float) -> None:
        self._urls, self._width_m = urls, width_m
        self.cars: dict[str, Client] = {}
        self._strips: dict[str, int] = {}
        self.due: Counter[str] = Counter()
        """How many events each car has to have heard."""
        self.moves = 0

    def strip(self, x_m: float) -> int:
        """Which broker a place belongs to."""
        return max(0, min(len(self._urls) - 1, int(x_m / self._width_m * len(self._urls))))

    async def see(self, one: Seen) -> None:
        """Let a car be where it is: come, move, and say how fast it is."""
        strip = self.strip(one.x_m)
        if one.name not in self.cars:
            car = Client(self._urls[strip], client_id=f"car-{one.name}")
            await car.connect()
            await car.subscribe(f"speed < {STANDING_MS}", topic="cars/#")
            self.cars[one.name], self._strips[one.name] = car, strip
        elif strip != self._strips[one.name]:
            await self.cars[one.name].move_to(self._urls[strip])
            self._strips[one.name] = strip
            self.moves += 1
        await self.cars[one.name].publish(f"cars/{one.name}", {"speed": one.speed_ms, "x": one.x_m})
        if one.speed_ms < STANDING_MS:
            self.due.update(list(self.cars))

    async def end(self) -> tuple[int, int]:
        """Read what every car heard; return how much was heard and how much was due."""
        heard = 0
        for name, car in self.cars.items():
            for _ in range(self.due[name]):
                await car.next(timeout_s=WAIT_S)
                heard += 1
            await car.close()
        return heard, self.due.total()


async def drive(path: Path, urls: list[str], width_m: float, every_s: float, cars_max: int) -> None:
    """Drive through the file."""
    city = City(urls, width_m)
    for moment in moments(path, every_s):
        for one in moment:
            if one.name in city.cars or len(city.cars) < cars_max:
                await city.see(one)
    heard, due = await city.end()
    print(f"{len(city.cars)} cars moved {city.moves} times and heard {heard} of {due} events")


def main() -> None:
    """Read the command line and drive."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("fcd", type=Path, help="the file of SUMO")
    parser.add_argument("brokers", nargs="+", help="their addresses, from west to east")
    parser.add_argument("--width-m", type=float, default=1050.0, help="the width of the map")
    parser.add_argument("--every-s", type=float, default=5.0, help="seconds of SUMO between two looks")
    parser.add_argument("--cars-max", type=int, default=50)
    asked = parser.parse_args()
    try:
        asyncio.run(drive(asked.fcd, asked.brokers, asked.width_m, asked.every_s, asked.cars_max))
    except UnreachableError as error:
        sys.exit(f"{error} `sojourn serve` starts a broker.")


if __name__ == "__main__":
    main()

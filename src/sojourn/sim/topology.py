"""The broker network: who is whose neighbour, and which brokers stand in the street.

Brokers are numbered from 0. `leaves` are the brokers that clients connect to, in order from west to east;
two leaves next to each other in that list are next to each other in the city. A topology is any connected
graph without a link from a broker to itself; links are two-way and all alike.

A topology file is TOML: `links = [["a", "b"], ["b", "c"]]`, and if wished `brokers = [...]` (the allowed
names, which catches a typing error in a link) and `leaves = [...]` from west to east. Without `leaves`,
the brokers with one neighbour are the leaves, in the order in which the file names them.
"""

import dataclasses
import tomllib
from collections.abc import Sequence
from pathlib import Path

from sojourn.errors import SojournError
from sojourn.sim.scenario import Scenario

BROKERS_MAX = 1_000_000


class TopologyError(SojournError):
    """A broker network that cannot be built as described."""


@dataclasses.dataclass(frozen=True, slots=True)
class Topology:
    """A connected broker network; `names` are only for people and traces."""

    neighbours: list[list[int]]
    leaves: list[int]
    names: list[str]

    @property
    def brokers(self) -> int:
        """How many brokers there are."""
        return len(self.neighbours)

    @property
    def links(self) -> int:
        """How many two-way links there are."""
        return sum(map(len, self.neighbours)) // 2


def make_topology(scenario: Scenario) -> Topology:
    """The network a scenario describes."""
    if scenario.topology == "file":
        return load_topology(Path(scenario.topology_file))
    if scenario.topology == "tree":
        return tree(scenario.tree_height, scenario.tree_degree)
    count = scenario.brokers
    if scenario.topology == "ring" and count < 3:
        raise TopologyError(f"brokers must be 3 or more for a ring, not {count}.")
    chain = [(at, at + 1) for at in range(count - 1)]
    if scenario.topology == "chain":
        return build(count, chain, leaves=range(count))
    if scenario.topology == "ring":
        return build(count, [*chain, (count - 1, 0)], leaves=range(count))
    star = [(0, at) for at in range(1, count)]
    return build(count, star, leaves=range(1, count) if count > 1 else (0,))


def tree(height: int, degree: int) -> Topology:
    """A tree of that many levels, numbered from the root downwards and from west to east."""
    widths = [degree**level for level in range(height)]
    count = sum(widths)
    if count > BROKERS_MAX:
        raise TopologyError(
            f"tree_height and tree_degree must give at most {BROKERS_MAX} brokers, not {count}."
        )
    links = [((child - 1) // degree, child) for child in range(1, count)]
    return build(count, links, leaves=range(count - widths[-1], count))


def build(
    count: int, links: Sequence[tuple[int, int]], *, leaves: Sequence[int], names: Sequence[str] | None = None
) -> Topology:
    """A checked topology from numbered links."""
    labels = list(names) if names is not None else [f"b{broker}" for broker in range(count)]
    neighbours: list[set[int]] = [set() for _ in range(count)]
    for one, other in links:
        if one == other:
            raise TopologyError(
                f"links must join two different brokers; {labels[one]!r} is linked to itself."
            )
        neighbours[one].add(other)
        neighbours[other].add(one)
    _check_connected(neighbours, labels)
    if not leaves:
        raise TopologyError("leaves must name at least one broker that clients can connect to.")
    return Topology([sorted(near) for near in neighbours], list(leaves), labels)


def load_topology(path: Path) -> Topology:
    """The topology of a TOML file, or one sentence about what is wrong with it."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise TopologyError(f"topology_file {path} cannot be read; give the path of a TOML file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TopologyError(f"topology_file {path} is not TOML: {error}.") from None
    links = _pairs(data.get("links"))
    named = data.get("brokers")
    order = _labels("brokers", named) if named is not None else [end for link in links for end in link]
    names = list(dict.fromkeys(order))
    number = {name: broker for broker, name in enumerate(names)}
    if not names:
        raise TopologyError("brokers must name at least one broker; the topology file names none.")
    for end in (end for link in links for end in link):
        if end not in number:
            raise TopologyError(f"links may only join the listed brokers; {end!r} is not one of them.")
    numbered = [(number[one], number[other]) for one, other in links]
    return build(len(names), numbered, leaves=_leaves(data, number, numbered), names=names)


def _leaves(data: dict[str, object], number: dict[str, int], links: list[tuple[int, int]]) -> list[int]:
    if "leaves" in data:
        wanted = _labels("leaves", data["leaves"])
        for name in wanted:
            if name not in number:
                raise TopologyError(
                    f"leaves may only name brokers of the network; {name!r} is not one of them."
                )
        if len(set(wanted)) != len(wanted):
            raise TopologyError("leaves must name each broker once, from west to east.")
        return [number[name] for name in wanted]
    degree = [0] * len(number)
    for one, other in links:
        degree[one] += 1
        degree[other] += 1
    ends = [broker for broker, links_here in enumerate(degree) if links_here <= 1]
    return ends or list(range(len(number)))


def _pairs(value: object) -> list[tuple[str, str]]:
    if not isinstance(value, list) or not all(isinstance(link, list) and len(link) == 2 for link in value):
        raise TopologyError(
            'links must be a list of pairs of brokers, as in links = [["a", "b"], ["b", "c"]].'
        )
    return [(str(one), str(other)) for one, other in value]


def _labels(parameter: str, value: object) -> list[str]:
    if not isinstance(value, list):
        raise TopologyError(f"{parameter} must be a list of broker names.")
    return [str(name) for name in value]


def _check_connected(neighbours: list[set[int]], labels: list[str]) -> None:
    reached = {0}
    waiting = [0]
    while waiting:
        for near in neighbours[waiting.pop()]:
            if near not in reached:
                reached.add(near)
                waiting.append(near)
    if len(reached) < len(neighbours):
        lost = next(broker for broker in range(len(neighbours)) if broker not in reached)
        raise TopologyError(
            f"links must connect every broker; {labels[lost]!r} cannot be reached from {labels[0]!r}."
        )

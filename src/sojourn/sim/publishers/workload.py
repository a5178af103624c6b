"""What clients say: advertisements, subscriptions and events, and where subscribers sit.

Paper 000, section 5.2.1: each publisher has one publication of its own and advertises exactly it; each
subscriber asks for the publication of a random publisher, from a random leaf. The locality factors of
section 5.1 bend those choices: publication locality makes a share of the publishers publish the same,
interest locality makes a share of the subscribers ask for the same, subscriber locality seats a share of
them downtown, and a specificity below 1 widens what a subscription asks for.

Texts are kept once and named by their position; this module neither parses nor matches them.
"""

import dataclasses

from sojourn.sim.scenario import Scenario
from sojourn.sim.streams import Streams
from sojourn.sim.topology import Topology

ATTRIBUTE = "publication"
DOWNTOWN_SHARE = 8
"""Downtown is this fraction of the leaves, in the middle: a district of 4 km in the 32 km city."""


@dataclasses.dataclass(frozen=True, slots=True)
class Workload:
    """Everything clients will say, by numbered client."""

    advertisements: list[str]
    """The distinct advertisements; an advertisement's id is its position."""
    subscriptions: list[str]
    """The distinct subscriptions; a subscription's id is its position."""
    publisher_ad: list[int]
    publisher_event: list[dict[str, int]]
    """The attributes of every event a publisher sends."""
    subscriber_sub: list[int]
    subscriber_broker: list[int]
    publish_phase_s: list[float]
    """When in each publishing interval a publisher sends."""


def make_workload(scenario: Scenario, topology: Topology, streams: Streams) -> Workload:
    """The workload a scenario describes."""
    publications = _publications(scenario, streams)
    texts = _Interned()
    publisher_ad = [texts.number(f"{ATTRIBUTE} = {publication}") for publication in publications]
    interests = _Interned()
    subscriber_sub = [interests.number(text) for text in _interests(scenario, streams, publications)]
    phases = streams.fresh("workload.phase").random(scenario.publishers) * scenario.publish_interval_s
    return Workload(
        advertisements=texts.texts,
        subscriptions=interests.texts,
        publisher_ad=publisher_ad,
        publisher_event=[{ATTRIBUTE: publication} for publication in publications],
        subscriber_sub=subscriber_sub,
        subscriber_broker=_seats(scenario, topology, streams),
        publish_phase_s=[float(phase) for phase in phases],
    )


class _Interned:
    """Texts numbered in the order of their first use."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        known = self._numbers.setdefault(text, len(self.texts))
        if known == len(self.texts):
            self.texts.append(text)
        return known


def _publications(scenario: Scenario, streams: Streams) -> list[int]:
    """What each publisher publishes: a share of them, drawn at random, all publish number 0."""
    publications = list(range(1, scenario.publishers + 1))
    alike = round(scenario.publication_locality * scenario.publishers)
    for publisher in streams.fresh("workload.locality").permutation(scenario.publishers)[:alike]:
        publications[int(publisher)] = 0
    return publications


def _interests(scenario: Scenario, streams: Streams, publications: list[int]) -> list[str]:
    """What each subscriber asks for, as text."""
    draw = streams.fresh("workload.interest")
    # The same draws whatever the factors, so that one factor leaves the others' draws alone.
    chosen = draw.integers(len(publications), size=scenario.subscribers)
    popular = draw.random(scenario.subscribers) < scenario.interest_locality
    favourite = publications[int(draw.integers(len(publications)))]
    wider = round((1.0 - scenario.specificity) * scenario.publishers)
    texts = []
    for subscriber in range(scenario.subscribers):
        wanted = favourite if popular[subscriber] else publications[int(chosen[subscriber])]
        if wider == 0:
            texts.append(f"{ATTRIBUTE} = {wanted}")
        else:
            # A window of neighbouring publications, pushed inside the range at its ends.
            low = max(0, min(wanted - wider // 2, scenario.publishers - wider))
            texts.append(f"{ATTRIBUTE} BETWEEN {low} AND {low + wider}")
    return texts


def _seats(scenario: Scenario, topology: Topology, streams: Streams) -> list[int]:
    """Each subscriber's leaf."""
    leaves = topology.leaves
    width = max(1, len(leaves) // DOWNTOWN_SHARE)
    first = (len(leaves) - width) // 2
    draw = streams.fresh("workload.seat")
    anywhere = draw.integers(len(leaves), size=scenario.subscribers)
    downtown = first + draw.integers(width, size=scenario.subscribers)
    central = draw.random(scenario.subscribers) < scenario.subscriber_locality
    return [leaves[int(place)] for place in _choose(central.tolist(), downtown.tolist(), anywhere.tolist())]


def _choose(which: list[bool], yes: list[int], no: list[int]) -> list[int]:
    return [one if flag else other for flag, one, other in zip(which, yes, no, strict=True)]

from collections import Counter
from typing import Any

import pytest

from sojourn.sim.publishers.workload import Workload, make_workload
from sojourn.sim.scenario import scenario_from
from sojourn.sim.streams import Streams
from sojourn.sim.topology import make_topology


def _workload(**values: Any) -> tuple[Workload, list[int]]:
    scenario = scenario_from(values)
    topology = make_topology(scenario)
    return make_workload(scenario, topology, Streams(scenario.seed)), topology.leaves


def test_publishers_are_unique_and_every_interest_has_one() -> None:
    """Each publisher advertises its own publication, and each subscriber asks for one that is published."""
    workload, leaves = _workload()
    assert len(set(workload.publisher_ad)) == 50
    assert set(workload.subscriptions) <= set(workload.advertisements)
    assert len(workload.subscriber_sub) == len(workload.subscriber_broker) == 500
    assert set(workload.subscriber_broker) <= set(leaves)
    assert len(set(workload.subscriber_broker)) > 50
    assert workload.advertisements[workload.publisher_ad[3]] == "publication = 4"
    assert workload.publisher_event[3] == {"publication": 4}


@pytest.mark.parametrize("locality", [0.0, 0.3, 0.9])
def test_publication_locality(locality: float) -> None:
    """That share of the publishers publishes one and the same thing, the others something unique."""
    workload, _ = _workload(publication_locality=locality)
    counts = Counter(workload.publisher_ad)
    alike = round(50 * locality)
    assert sorted(counts.values()) == sorted([1] * (50 - alike) + ([alike] if alike else []))


def test_locality_factors_leave_each_other_alone() -> None:
    """Seating subscribers downtown changes nobody's interest, and the other way round."""
    plain, leaves = _workload()
    seated, _ = _workload(subscriber_locality=1.0)
    alike, _ = _workload(interest_locality=1.0)
    assert seated.subscriber_sub == plain.subscriber_sub
    assert alike.subscriber_broker == plain.subscriber_broker
    assert set(seated.subscriber_broker) == set(leaves[28:36])
    assert len(set(alike.subscriber_sub)) == 1


def test_specificity_widens() -> None:
    """Less specific subscriptions ask for a window of publications around the chosen one."""
    workload, _ = _workload(specificity=0.8, publishers=50)
    assert all(" BETWEEN " in text for text in workload.subscriptions)
    low, high = workload.subscriptions[0].removeprefix("publication BETWEEN ").split(" AND ")
    assert int(high) - int(low) == 10
    everything, _ = _workload(specificity=0.0)
    assert everything.subscriptions == ["publication BETWEEN 0 AND 50"]


def test_phases_spread_over_the_interval() -> None:
    """Publishers do not all publish in the same instant."""
    workload, _ = _workload(publish_interval_s=2.0)
    assert len(set(workload.publish_phase_s)) == 50
    assert all(0 <= phase < 2 for phase in workload.publish_phase_s)

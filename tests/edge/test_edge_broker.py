"""Edge brokers under every architecture: the same deliveries; quenching holds back only the unwanted."""

import numpy as np
import pytest

from sojourn.edge.broker import (
    BrokerRules,
    DisplayerArrived,
    EventBroker,
    EventBrokerError,
    SourceArrived,
    SourceLeft,
    Subscribed,
    ToSource,
    Unsubscribed,
)
from sojourn.edge.displayer import EventDisplayer
from sojourn.edge.quench import UNKNOWN
from sojourn.edge.source import EventSource, SourceRules
from sojourn.interest.filters import Filter
from sojourn.routing.architectures import ArchitectureError, routers_for
from sojourn.routing.effects import Effects
from sojourn.routing.filter_interests import FilterInterests
from sojourn.routing.mesh_flooding import MeshFloodingRouter
from sojourn.routing.messages import Publish
from sojourn.routing.neighbours import Neighbours
from sojourn.sim.edge.workload import ADVERTISEMENT, Workload, draw_event, draw_filter
from sojourn.sim.edge.world import EdgeWorld, Links

RING = [[(broker - 1) % 6, (broker + 1) % 6] for broker in range(6)]


def _world(
    architecture: str, *, quench: bool = False, loss: float = 0.0, replicas: bool = False
) -> EdgeWorld:
    graph: list[list[int]] = [[]] if architecture == "central" and not replicas else RING
    return EdgeWorld(
        graph,
        architecture,
        stream=np.random.default_rng(4),
        rules=BrokerRules(quench=quench),
        links=Links(jitter_s=0.02, loss=loss),
        advertises=ADVERTISEMENT,
        replicas=replicas,
    )


def _play(world: EdgeWorld, *, quench: bool = False) -> list[tuple[int, str, int]]:
    """Twenty displayers, four sources, two hundred events; who was shown what."""
    draw = np.random.default_rng(11)
    workload = Workload(areas=4, width=100, wanted_share=0.5)
    count = len(world.brokers)
    for client in range(20):
        number = world.subscription(draw_filter(workload, draw))
        world.add_displayer(EventDisplayer((number,)))
        world.connect(client, client % count)
    for source in range(4):
        world.add_source(EventSource(SourceRules(quench=quench)), source % count)
        world.connect_source(source)
    world.settle()
    for number in range(200):
        source = number % 4
        world.generate(source, draw_event(workload, draw, f"s{source}", number // 4), 200)
        world.run_until(world.clock.now + 0.01)
    world.settle()
    return sorted((each.client, each.source, each.sequence) for each in world.shown)


def test_all_architectures_deliver_the_same() -> None:
    """Central, broadcast, flooding and multicast, with and without quenching: one and the same answer."""
    wanted = _play(_world("central"))
    assert len(wanted) > 80
    worlds = {name: _world(name) for name in ("broadcast", "flooding", "multicast")}
    for name, world in worlds.items():
        assert _play(world) == wanted, name
    assert worlds["multicast"].hops["event"] < worlds["broadcast"].hops["event"]
    assert worlds["broadcast"].hops["event"] == 200 * 5
    assert worlds["flooding"].hops["event"] == 200 * 7, "each link once, and the last one both ways"
    for name in ("central", "multicast"):
        quenched = _world(name, quench=True)
        assert _play(quenched, quench=True) == wanted, name
        assert quenched.discards["quenched"] > 50
        assert quenched.bytes["published"] < 200 * 224


def test_replicas_show_what_one_of_them_received() -> None:
    """Two brokers that know nothing of each other, duplicates removed: all that either got is shown once."""
    world = EdgeWorld(
        [(), ()],
        "central",
        stream=np.random.default_rng(5),
        links=Links(jitter_s=0.5, loss=0.2),
        replicas=True,
    )
    everything = world.subscription(Filter.parse("value >= 0"))
    world.add_displayer(EventDisplayer((everything,), "duplicates"))
    world.connect(0, 0)
    world.connect(0, 1)
    world.add_source(EventSource(), 0, 1)
    world.connect_source(0)
    world.settle()
    draw = np.random.default_rng(6)
    for number in range(300):
        world.generate(0, draw_event(Workload(), draw, "s0", number), 100)
        world.run_until(world.clock.now + 0.05)
    world.settle()
    shown = [(each.source, each.sequence) for each in world.shown]
    assert len(shown) == len(set(shown))
    assert set(shown) == world.received[0] | world.received[1]
    assert len(world.received[0]) < 300
    assert shown != sorted(shown), "an event that one broker missed comes late from the other"


def test_a_source_that_comes_back_uploads_its_buffer() -> None:
    """Nothing generated while disconnected is missing afterwards, with and without quenching."""
    for quench in (False, True):
        world = _world("central", quench=quench)
        number = world.subscription(Filter.parse("value < 500"))
        world.add_displayer(EventDisplayer((number,)))
        world.connect(0, 0)
        world.add_source(EventSource(SourceRules(quench=quench)), 0)
        world.connect_source(0)
        world.settle()
        world.disconnect_source(0)
        draw = np.random.default_rng(6)
        for sequence in range(100):
            world.generate(0, draw_event(Workload(), draw, "s0", sequence), 100)
        world.settle()
        assert world.shown == []
        world.connect_source(0)
        world.settle()
        wanted = [key[1] for key, (_, event) in world.generated.items() if int(event.flat["value"]) < 500]
        assert [each.sequence for each in world.shown] == wanted
        assert bool(world.discards["quenched"]) == quench


def test_a_broker_tells_sources_what_changed_and_no_more() -> None:
    """A source that arrives is told all; afterwards each change is told from the version it has."""
    interests = FilterInterests()
    plan = routers_for("central", [()], interests)
    broker = EventBroker(0, plan.routers[0], BrokerRules(quench=True), filter_of=interests.subs.__getitem__)
    first, second = (interests.subscription(Filter.parse(text)) for text in ("a = 1", "b = 2 AND c = 3"))
    broker.handle(DisplayerArrived(9, 1, (first,)), 0.0)
    (told,) = broker.handle(SourceArrived(1, None, UNKNOWN), 1.0)
    assert isinstance(told, ToSource)
    assert (told.update.base, [text for _, text in told.update.added]) == (UNKNOWN, ["a = 1"])
    (told,) = broker.handle(Subscribed(9, second), 2.0)
    assert isinstance(told, ToSource)
    assert [text for _, text in told.update.added] == ["b = 2 AND c = 3"]
    (told,) = broker.handle(Unsubscribed(9, first), 3.0)
    assert isinstance(told, ToSource)
    assert (len(told.update.dropped), told.update.added) == (1, ())
    broker.handle(SourceLeft(1), 4.0)
    assert broker.handle(Unsubscribed(9, second), 5.0) == [], "nobody is there to be told"


def test_flooding_over_a_graph_forgets_after_a_limit() -> None:
    """Copies are dropped as long as the event is remembered."""
    router = MeshFloodingRouter(Neighbours((1, 2)), FilterInterests(), Effects())
    router.remembered_max = 2
    draw = np.random.default_rng(1)
    events = [Publish(draw_event(Workload(), draw, "s", number)) for number in range(3)]
    for message in (*events, events[2], events[0]):
        router.publish(message, 2)
    assert router.copies == 1
    assert len(router.effects.sends) == 4


def test_refusals_are_one_sentence() -> None:
    """What cannot be built is named."""
    with pytest.raises(ArchitectureError, match="architecture may be central, broadcast"):
        routers_for("none", [()], FilterInterests())
    with pytest.raises(ArchitectureError, match="brokers = 1, not 6"):
        routers_for("central", RING, FilterInterests())
    plan = routers_for("central", [()], FilterInterests())
    with pytest.raises(EventBrokerError, match="quench needs filter_of"):
        EventBroker(0, plan.routers[0], BrokerRules(quench=True))

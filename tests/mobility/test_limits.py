"""Limits of what is stored for subscribers: they hold, what they refuse is reported, and transfers pass."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.interest.events import Event
from sojourn.mobility.giving import FORWARD_BYTES_MAX, FORWARD_EVENTS_MAX
from sojourn.mobility.holdings import Holding
from sojourn.mobility.queues import Queues
from sojourn.mobility.schemes import Scheme, SchemeError
from sojourn.routing.effects import Effects
from sojourn.routing.messages import Forward, Publish
from tests.mobility.roaming import S, Watched
from tests.routing.network import chain

FULL = "queue full"


def numbers(net: Watched) -> list[int]:
    """The numbers of the events that S was given."""
    return [number for _, number in net.got]


def stored_bytes(holding: Holding) -> int:
    """The bytes in a queue, counted one by one."""
    return sum(one.size for one in holding.queue)


def test_the_bytes_of_one_subscriber_have_a_limit_while_it_is_away() -> None:
    """What does not fit is refused and reported; what is smaller and fits is stored."""
    net = Watched(chain(1), Scheme.named("reactive", queue_bytes_each_max=1000))
    net.arrive(0, 1)
    net.lose(0, 1)
    for size in (600, 500, 400, 1):
        net.say(size=size)
    assert net.dropped() == [("p", 1, FULL), ("p", 3, FULL)]
    assert net.holding(0).bytes == stored_bytes(net.holding(0)) == 1000
    net.arrive(0, 2, 0)
    assert numbers(net) == [0, 2]


def test_a_client_that_does_not_acknowledge_is_not_given_what_cannot_be_stored() -> None:
    """It is connected and served, but an event that could be lost with its connection is not given at all."""
    net = Watched(chain(1), Scheme.named("reactive", queue_bytes_each_max=1000))
    net.arrive(0, 1)
    for _ in range(4):
        net.say(size=400)
    assert numbers(net) == [0, 1]
    assert net.dropped() == [("p", 2, FULL), ("p", 3, FULL)]
    net.consume(0, 1)
    net.say(size=400)
    assert numbers(net) == [0, 1, 4]
    assert net.holding(0).bytes == 400


def test_the_number_of_events_of_one_subscriber_is_such_a_limit_too() -> None:
    """Connected or away, the third event is refused; another subscriber is not concerned."""
    net = Watched(chain(1), Scheme.named("reactive", queue_events_max=2))
    net.arrive(0, 1)
    for _ in range(3):
        net.say()
    assert numbers(net) == [0, 1]
    assert net.dropped() == [("p", 2, FULL)]


def test_without_acknowledgements_a_client_that_is_there_has_no_limit() -> None:
    """Nothing is stored for it."""
    net = Watched(chain(1), Scheme.named("reactive", queue_events_max=1, acknowledged=False))
    net.arrive(0, 1)
    for _ in range(3):
        net.say()
    assert numbers(net) == [0, 1, 2]
    assert not net.drops


def test_consumed_events_behind_one_that_is_not_make_room() -> None:
    """One source's first event is never acknowledged; those of another go on."""
    net = Watched(chain(1), Scheme.named("reactive", queue_events_max=10))
    net.arrive(0, 1)
    net.say("slow")
    for number in range(200):
        net.say("fast")
        net.consume(0, number, "fast")
    assert not net.drops
    assert len(net.got) == 201
    assert net.holding(0).bytes == 1024 * len(net.holding(0).queue)


def test_a_transfer_is_taken_in_whatever_the_limits_say() -> None:
    """What was promised at the old broker is kept at the new one, which refuses new events instead."""
    net = Watched(chain(2), Scheme.named("reactive", queue_events_max=3))
    net.arrive(0, 1)
    net.lose(0, 1)
    for _ in range(3):
        net.say()
    net.scheme = Scheme.named("reactive", queue_events_max=2, queue_bytes_max=1024, queue_bytes_each_max=1024)
    net.brokers[1] = net.new_broker(1)
    net.arrive(1, 2, 0)
    assert numbers(net) == [0, 1, 2]
    assert not net.drops
    half = net.brokers[1].subscribers
    assert half.store.bytes == net.holding(1).bytes == 3 * 1024
    net.say()
    assert net.dropped() == [("p", 3, FULL)]
    net.consume(1, 2)
    net.say()
    assert numbers(net) == [0, 1, 2, 4]


def test_a_broker_without_room_gives_those_who_are_ready_their_events() -> None:
    """Whoever is away cannot silence them; for who is away the event is dropped."""
    net = Watched(chain(1), Scheme.named("reactive", queue_bytes_max=1024))
    net.arrive(0, 1)
    net.say()
    net.say()
    assert numbers(net) == [0, 1]
    net.lose(0, 1)
    net.say()
    assert net.dropped() == [("p", 2, FULL)]


def test_what_comes_during_a_transfer_is_cut_to_the_limit_afterwards() -> None:
    """A client that moves on and on without reading does not collect more at each broker."""
    net = Watched(chain(3), Scheme.named("reactive", queue_events_max=4))
    net.arrive(0, 1)
    net.lose(0, 1)
    for _ in range(4):
        net.say(broker=2)
    for epoch, (broker, previous) in enumerate([(1, 0), (0, 1), (1, 0), (0, 1)], 2):
        net.arrive(broker, epoch, previous, settles=False)
        for _ in range(3):  # these come by themselves while the transfer is under way
            net.say(broker=broker, settles=False)
        net.settle()
        assert [one.event.sequence for one in net.holding(broker).queue] == [0, 1, 2, 3]
        assert net.holding(broker).bytes == 4 * 1024
        net.lose(broker, epoch)
    assert {reason for _, _, reason in net.dropped()} == {FULL}
    assert {number for _, number, _ in net.dropped()} == set(range(4, 16))


def test_forty_events_of_a_mebibyte_arrive_in_order() -> None:
    """Each message between brokers carries few enough of them."""
    net = Watched(chain(2), Scheme.named("reactive"))
    net.arrive(0, 1)
    net.lose(0, 1)
    for _ in range(40):
        net.say(size=1 << 20)
    net.arrive(1, 2, 0, settles=False)
    net.step((1, 0))
    forwards = net.under_way((0, 1), Forward)
    assert len(forwards) == 40
    net.settle()
    assert numbers(net) == list(range(40))
    assert net.ready[-1].complete


@given(st.lists(st.integers(0, 400_000), max_size=200))
@settings(max_examples=50, deadline=None)
def test_messages_between_brokers_are_bounded_and_bring_everything(sizes: list[int]) -> None:
    """By events and by bytes, unless one event alone has more bytes than that."""
    net = Watched(chain(2), Scheme.named("reactive", event_bytes=100_000))
    net.arrive(0, 1)
    net.lose(0, 1)
    for size in sizes:
        net.say(size=size)
    net.arrive(1, 2, 0, settles=False)
    net.step((1, 0))
    for message in net.under_way((0, 1), Forward):
        bytes_in_it = sum(one.size or 100_000 for one in message.publications)
        assert 1 <= len(message.publications) <= FORWARD_EVENTS_MAX
        assert bytes_in_it <= FORWARD_BYTES_MAX
    net.settle()
    assert numbers(net) == list(range(len(sizes)))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("ab"), st.integers(0, 500)),
        st.tuples(st.just("take in"), st.sampled_from("ab"), st.integers(0, 500)),
        st.tuples(st.just("consume"), st.sampled_from("ab"), st.integers(0, 60)),
        st.tuples(st.sampled_from(["settle", "empty"]), st.just(""), st.just(0)),
    ),
    max_size=60,
)


@given(STEPS, st.booleans())
@settings(max_examples=200, deadline=None)
def test_the_running_counts_are_what_counting_gives(steps: list[tuple[str, str, int]], evicts: bool) -> None:
    """The bytes of a queue and of the store follow whatever goes in and out."""
    scheme = Scheme.named("reactive", queue_bytes_max=3_000, event_bytes=100, evicts=evicts)
    queues, holding = Queues(scheme, Effects()), Holding(S, 1, ())
    last = {"a": -1, "b": -1}
    for what, source, number in steps:
        if what in ("put", "take in"):
            last[source] += 1
            publication = Publish(Event({}, source=source, sequence=last[source]), size=number)
            if what == "put":
                queues.put([holding], publication, number or 100)
            else:
                queues.take_in(holding, [publication])
        elif what == "consume":
            queues.consume(holding, source, number)
        else:
            getattr(queues, what)(holding)
        assert holding.bytes == sum(one.size or 100 for one in holding.queue)
        everything = {*holding.queue, *holding.forwarded}
        assert queues.store.bytes == sum(one.size or 100 for one in everything)
        assert queues.store.events == len(everything)
    queues.empty(holding)
    assert (queues.store.bytes, queues.store.events, holding.bytes) == (0, 0, 0)


def test_a_limit_of_no_bytes_is_refused() -> None:
    """The sentence names the parameter."""
    with pytest.raises(SchemeError, match="queue_bytes_each_max must be 1 or more"):
        Scheme.named("reactive", queue_bytes_each_max=0)

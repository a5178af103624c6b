"""Moving subscribers, case by case: what each scheme keeps, sends and delivers (paper 001, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from sojourn.interest.events import Event
from sojourn.mobility import facts
from sojourn.mobility.broker import Broker
from sojourn.mobility.copies import TABLE, Feed, State, Turn, Wait, follow
from sojourn.mobility.facts import How
from sojourn.mobility.learnt_graph import Edge, LearntGraph, Pair
from sojourn.mobility.neighbour_table import NeighbourTable
from sojourn.mobility.policies import Policy
from sojourn.mobility.prediction import PredictionError, Predictor, foreseen
from sojourn.mobility.schemes import Scheme, SchemeError
from sojourn.mobility.stays import IllegalTurnError
from sojourn.routing.effects import Dropped, Ready, Redirect
from sojourn.routing.messages import Moved, Publish
from sojourn.routing.neighbours import Neighbours
from sojourn.routing.overlay import Overlay
from tests.routing.network import Network, SetInterests, chain

S = 7


class Roaming(Network):
    """The network of the routing tests, with brokers that serve moving subscribers over flooded events."""

    def __init__(self, graph: Sequence[Sequence[int]], scheme: Scheme, **options: Any) -> None:
        super().__init__(graph)
        self.brokers = [
            Broker(
                number,
                Neighbours(near),
                self.interests,
                Policy(),
                self.overlay.next_hop,
                scheme=scheme,
                flooding=True,
                **options,
            )
            for number, near in enumerate(self.overlay.neighbours)
        ]
        self.ready: list[Ready] = []
        self.drops: list[Dropped] = []
        self.redirects: list[Redirect] = []
        self.sequence = 0

    def forward(self, broker: int) -> None:
        """Carry out a broker's effects, and note what it says."""
        effects = self.brokers[broker].effects
        self.ready += effects.ready
        self.drops += effects.drops
        self.redirects += effects.redirects
        super().forward(broker)

    def arrive(self, broker: int, epoch: int, previous: int | None = None, **more: Any) -> None:
        """S connects and the network settles."""
        given = {"subscriptions": (self.interests.sub(1),), **more}
        self.feed(broker, facts.SubscriberArrived(S, epoch, previous=previous, **given))
        self.settle()

    def lose(self, broker: int, epoch: int) -> None:
        """S is lost and the network settles."""
        self.feed(broker, facts.SubscriberLost(S, epoch))
        self.settle()

    def say(self, broker: int = 0, number: int = 1) -> None:
        """One more event, which S wants, and the network settles."""
        event = Event({"n": number}, source="p", sequence=self.sequence)
        self.sequence += 1
        self.feed(broker, facts.ClientPublished(Publish(event)))
        self.settle()

    def states(self) -> list[str]:
        """What each broker holds for S."""
        found = []
        for broker in self.brokers:
            one = broker.subscribers.main.get(S)
            found.append(one.state.name if one is not None else "-")
        return found


def kinds(net: Roaming) -> list[str]:
    """The kinds of messages sent about subscribers, in order, each hop once."""
    return [kind for _, _, kind in net.hops if kind != "Publish"]


def test_durable_brokers_store_wherever_the_client_has_been() -> None:
    """Nobody is told of a move: what is published meanwhile waits at every old broker and comes again."""
    net = Roaming(chain(2), Scheme.named("durable"))
    net.arrive(0, 1)
    net.lose(0, 1)
    net.arrive(1, 2, previous=0, marks={})
    net.say()
    assert net.states() == ["AWAY", "PRESENT"]
    assert net.delivered == [(1, S, 1)]
    net.lose(1, 2)
    net.arrive(0, 3, previous=1, marks={"p": 0})
    assert net.delivered == [(1, S, 1), (0, S, 1)], "a duplicate, as durable subscriptions have it"
    assert kinds(net) == []


def test_reactive_fetches_after_the_arrival() -> None:
    """Subscriptions first if the client does not name them, then what was stored, then the end."""
    net = Roaming(chain(2), Scheme.named("reactive"))
    net.arrive(0, 1)
    net.lose(0, 1)
    net.say()
    net.arrive(1, 2, previous=0, subscriptions=None, marks={})
    assert kinds(net) == ["Ask", "Context", "Moved", "Forward", "ForwardEnd"]
    assert net.delivered == [(1, S, 1)]
    assert net.states() == ["-", "PRESENT"]
    assert net.ready[-1] == Ready(S, 2, How.FETCHED, complete=True)
    net.hops.clear()
    net.lose(1, 2)
    net.arrive(0, 3, previous=1, marks={"p": 0})
    assert kinds(net) == ["Moved", "ForwardEnd"]


def test_proactive_is_reactive_on_the_first_crossing_and_then_ahead() -> None:
    """Both ends learn the edge; the next time an active copy waits, and is served from at once."""
    net = Roaming(chain(2), Scheme.named("proactive"))
    net.arrive(0, 1)
    net.lose(0, 1)
    assert net.states() == ["AWAY", "-"]
    net.arrive(1, 2, previous=0, marks={})
    assert net.ready[-1].how == How.FETCHED
    assert [broker.subscribers.table.neighbours(0.0) for broker in net.brokers] == [(1,), (0,)]
    assert net.states() == ["PASSIVE", "PRESENT"]
    net.lose(1, 2)
    assert net.states() == ["ACTIVE", "AWAY"]
    net.say()
    net.delivered.clear()
    net.feed(0, facts.SubscriberArrived(S, 3, (net.interests.sub(1),), 1, {}))
    assert net.delivered == [(0, S, 1)], "before any message went"
    assert net.ready[-1] == Ready(S, 3, How.COPY, complete=True)
    net.settle()
    assert net.states() == ["PRESENT", "PASSIVE"]


def test_back_at_the_same_broker_the_copies_are_passive_again() -> None:
    """Case 3: deactivated and emptied, while the broker delivers what it stored."""
    net = Roaming(chain(2), Scheme.named("proactive"))
    net.brokers[0].subscribers.table.cross(1, 0.0)
    net.arrive(0, 1)
    net.lose(0, 1)
    net.say()
    assert net.brokers[1].subscribers.store.events == 1
    net.arrive(0, 2, previous=0, marks={})
    assert net.states() == ["PRESENT", "PASSIVE"]
    assert net.brokers[1].subscribers.store.events == 0
    assert net.delivered == [(0, S, 1)]
    assert net.ready[-1].how == How.SAME


def test_a_passive_copy_goes_after_its_time_and_is_made_anew_when_it_is_wanted() -> None:
    """Its broker may be gone for good; if not, a further message brings the copy back and nothing is lost."""
    net = Roaming(chain(2), Scheme.named("proactive", passive_s=30.0))
    net.brokers[0].subscribers.table.cross(1, 0.0)
    net.arrive(0, 1)
    (copy,) = net.brokers[1].subscribers.timers.values()
    assert copy.state is State.PASSIVE
    net.feed(1, facts.TimerFired(S, copy.token))
    assert net.states() == ["PRESENT", "-"]
    assert not net.brokers[1].subscribers.timers
    net.lose(0, 1)
    net.say()
    assert net.states() == ["AWAY", "ACTIVE"]
    net.arrive(1, 2, previous=0, marks={})
    assert net.ready[-1] == Ready(S, 2, How.COPY, complete=True)
    assert net.delivered == [(1, S, 1)]


def test_a_missing_copy_is_noticed_and_delivered() -> None:
    """Activating what is not there is answered with a notice, and the context follows."""
    net = Roaming(chain(2), Scheme.named("proactive"))
    net.arrive(0, 1)
    net.brokers[0].subscribers.table.cross(1, 0.0)  # learnt after S came, so that 1 has no copy
    net.feed(0, facts.SubscriberLost(S, 1))
    net.settle()
    assert kinds(net) == ["Activate", "Activated", "Activate", "Activated", "ForwardEnd"]
    assert net.states() == ["AWAY", "ACTIVE"]


def test_a_copy_that_was_never_made_may_be_given_along() -> None:
    """Whoever knows that it made no copy there need not be told so."""
    net = Roaming(chain(2), Scheme.named("proactive", gives_along=True))
    net.arrive(0, 1)
    net.brokers[0].subscribers.table.cross(1, 0.0)  # learnt after S came, so that 1 has no copy
    net.feed(0, facts.SubscriberLost(S, 1))
    net.settle()
    assert kinds(net) == ["Activate", "Activated", "ForwardEnd"]
    assert net.states() == ["AWAY", "ACTIVE"]


def test_a_copy_that_stored_for_less_is_given_the_rest_before_it_serves() -> None:
    """It still stores for an earlier session, which wanted less than the one that it is activated for."""
    net = Roaming(chain(2), Scheme.named("proactive", timeout_s=60, grace_s=0.5, gives_along=True))
    net.brokers[0].subscribers.table.cross(1, 0.0)
    one, both = net.interests.sub(1), (net.interests.sub(1), net.interests.sub(2))
    net.arrive(0, 1, subscriptions=(one,))
    net.lose(0, 1)
    net.expire(next(iter(net.timers)))
    net.settle()
    assert net.states() == ["AWAY", "ACTIVE"]
    net.arrive(0, 2, subscriptions=both)  # it begins anew
    net.lose(0, 2)
    net.say(number=2)
    net.expire(max(net.timers, key=lambda key: -net.timers[key]))
    net.settle()
    net.arrive(1, 3, previous=0, marks={}, subscriptions=both)
    assert (1, S, 2) in net.delivered
    assert net.ready[-1] == Ready(S, 3, How.COPY, complete=True)


def test_who_is_elsewhere_within_the_grace_bothers_no_copies() -> None:
    """Copies are told to store only if the subscriber is still away then, and so not to stop it either."""
    net = Roaming(chain(3), Scheme.named("proactive", timeout_s=60, grace_s=0.5))
    for number in (0, 2):
        net.brokers[1].subscribers.table.cross(number, 0.0)
    net.arrive(1, 1)
    net.hops.clear()
    net.lose(1, 1)
    net.say()
    assert kinds(net) == []
    assert net.states() == ["PASSIVE", "AWAY", "PASSIVE"]
    net.arrive(0, 2, previous=1, marks={})
    assert "Deactivate" not in kinds(net)
    assert net.delivered == [(0, S, 1)]
    assert net.ready[-1] == Ready(S, 2, How.FETCHED, complete=True)


def test_who_is_still_away_after_the_grace_has_copies_that_store() -> None:
    """They are given what came meanwhile; and from then on the time of the stay itself runs."""
    net = Roaming(chain(2), Scheme.named("proactive", timeout_s=60, grace_s=0.5))
    net.brokers[0].subscribers.table.cross(1, 0.0)
    net.arrive(0, 1)
    net.lose(0, 1)
    net.say()
    (timer,) = [key for key in net.timers if key[0] == 0]
    assert net.timers[timer] == 0.5
    net.expire(timer)
    net.settle()
    assert net.states() == ["AWAY", "ACTIVE"]
    (timer,) = [key for key in net.timers if key[0] == 0]
    assert net.timers[timer] == 60
    net.arrive(1, 2, previous=0, marks={})
    assert net.ready[-1] == Ready(S, 2, How.COPY, complete=True)
    assert net.delivered == [(1, S, 1)]


def test_who_comes_back_within_the_grace_is_served_and_bothers_nobody() -> None:
    """Nor does the timer that was set for it."""
    net = Roaming(chain(2), Scheme.named("proactive", timeout_s=60, grace_s=0.5))
    net.brokers[0].subscribers.table.cross(1, 0.0)
    net.arrive(0, 1)
    net.lose(0, 1)
    net.hops.clear()
    net.say()
    net.arrive(0, 2, previous=0, marks={})
    assert kinds(net) == []
    assert net.delivered == [(0, S, 1)]
    assert net.states() == ["PRESENT", "PASSIVE"]
    assert not [key for key in net.timers if key[0] == 0]


def test_who_moves_within_the_grace_takes_the_messages_that_it_takes_without_copies() -> None:
    """Copies that are given what they need when they are activated are not made before."""
    said = {}
    for scheme in (
        Scheme.named("reactive"),
        Scheme.named("proactive", timeout_s=60, grace_s=0.5, gives_along=True),
    ):
        net = Roaming(chain(4), scheme)
        for number in (0, 2, 3):
            net.brokers[1].subscribers.table.cross(number, 0.0)
        net.arrive(1, 1)
        net.lose(1, 1)
        net.say()
        net.arrive(2, 2, previous=1, marks={})
        assert net.delivered == [(2, S, 1)]
        assert net.states() == ["-", "-", "PRESENT", "-"]
        said[scheme.ahead] = kinds(net)
    assert said[True] == said[False]


def test_copies_that_were_never_made_go_when_the_subscriber_came_to_one_of_them() -> None:
    """After the grace they are given what it wants and store; whoever it does not come to forgets it."""
    net = Roaming(chain(3), Scheme.named("proactive", timeout_s=60, grace_s=0.5, gives_along=True))
    for number in (0, 2):
        net.brokers[1].subscribers.table.cross(number, 0.0)
    net.arrive(1, 1)
    assert net.states() == ["-", "PRESENT", "-"]
    net.lose(1, 1)
    net.say()
    (timer,) = [key for key in net.timers if key[0] == 1]
    net.expire(timer)
    net.settle()
    assert net.states() == ["ACTIVE", "AWAY", "ACTIVE"]
    net.arrive(0, 2, previous=1, marks={})
    assert net.ready[-1] == Ready(S, 2, How.COPY, complete=True)
    assert net.delivered == [(0, S, 1)]
    assert net.states() == ["PRESENT", "-", "-"]


def test_timeout_ends_everything() -> None:
    """Case 8: the stay, its events and the copies go, and a late return is told that it is not complete."""
    net = Roaming(chain(2), Scheme.named("proactive", timeout_s=5))
    net.brokers[0].subscribers.table.cross(1, 0.0)
    net.arrive(0, 1)
    net.lose(0, 1)
    net.say()
    (timer,) = [key for key in net.timers if key[0] == 0]
    assert net.timers[timer] == 5
    net.expire(timer)
    net.settle()
    assert net.states() == ["-", "-"]
    assert [drop.reason for drop in net.drops] == ["timeout"]
    net.arrive(1, 2, previous=0, marks={})
    assert net.ready[-1].complete is False


def test_a_broker_that_does_not_answer_is_waited_for_so_long() -> None:
    """After its patience the new broker serves with what there is, and says so."""
    net = Roaming(chain(2), Scheme.named("reactive", patience_s=3))
    net.arrive(0, 1)
    net.feed(1, facts.SubscriberArrived(S, 2, (net.interests.sub(1),), 0, {}))
    (timer,) = [key for key in net.timers if key[0] == 1]
    assert net.timers[timer] == 3
    net.expire(timer)
    assert net.ready[-1] == Ready(S, 2, How.FETCHED, complete=False)
    net.settle()
    assert net.states() == ["-", "PRESENT"]


def test_an_event_is_stored_once_for_many_and_only_while_there_is_room() -> None:
    """The budget counts distinct events; what finds no room is dropped, and the drop says for whom."""
    scheme = Scheme.named("reactive", queue_bytes_max=2048, event_bytes=1024)
    net = Roaming(chain(1), scheme)
    sub = net.interests.sub(1)
    for client in range(50):
        net.feed(0, facts.SubscriberArrived(client, 1, (sub,)))
        net.feed(0, facts.SubscriberLost(client, 1))
    net.say()
    net.say()
    half = net.brokers[0].subscribers
    assert (half.store.events, half.store.bytes, half.stored) == (2, 2048, 50)
    net.say()
    assert [(drop.client, drop.reason) for drop in net.drops] == [(one, "queue full") for one in range(50)]
    for client in range(50):
        net.feed(0, facts.SubscriberArrived(client, 2, (sub,), 0, {}))
        net.feed(0, facts.Consumed(client, "p", 1))
    assert half.store.bytes == 0
    assert len(net.delivered) == 100


def test_one_queue_has_a_limit_of_its_own() -> None:
    """The third event of one subscriber is dropped for it alone."""
    net = Roaming(chain(1), Scheme.named("reactive", queue_events_max=2))
    net.arrive(0, 1)
    net.lose(0, 1)
    for _ in range(3):
        net.say()
    assert [(drop.client, drop.publication.event.sequence) for drop in net.drops] == [(S, 2)]


def test_without_acknowledgements_nothing_is_kept_for_who_is_there() -> None:
    """Handing an event to the link is enough, and the fast way needs no queue."""
    net = Roaming(chain(1), Scheme.named("reactive", acknowledged=False))
    net.arrive(0, 1)
    net.say()
    assert net.delivered == [(0, S, 1)]
    assert net.brokers[0].subscribers.store.events == 0
    net.lose(0, 1)
    net.say()
    assert net.brokers[0].subscribers.store.events == 1


def test_what_was_not_acknowledged_is_delivered_again_to_a_client_that_lacks_it() -> None:
    """The marks of the client decide, event by event."""
    net = Roaming(chain(2), Scheme.named("reactive"))
    net.arrive(0, 1)
    net.say()
    net.say()
    net.delivered.clear()
    net.lose(0, 1)
    net.arrive(1, 2, previous=0, marks={"p": 0})
    assert len(net.delivered) == 1


def test_a_changed_wish_reaches_the_copies() -> None:
    """A connected client wants something else: its copies follow."""
    net = Roaming(chain(2), Scheme.named("proactive"))
    net.brokers[0].subscribers.table.cross(1, 0.0)
    net.arrive(0, 1)
    other = net.interests.sub(2)
    net.feed(0, facts.SubscriberChanged(S, 1, (other,)))
    net.settle()
    assert net.brokers[1].subscribers.main[S].subscriptions == (other,)
    net.feed(0, facts.SubscriberGone(S, 1))
    net.settle()
    assert net.states() == ["-", "-"]


def test_a_broker_may_send_a_client_elsewhere() -> None:
    """Redirected, it leaves no trace; insisting, it is served."""
    net = Roaming(chain(2), Scheme.named("reactive"), placement=lambda _client, _broker, _present: 1)
    net.arrive(0, 1)
    assert net.redirects == [Redirect(S, 1)]
    assert net.states() == ["-", "-"]
    net.arrive(0, 2, stays_here=True)
    assert net.states() == ["PRESENT", "-"]


def test_a_request_passes_on_along_the_way_of_the_events() -> None:
    """The client was taken in by 1 without knowing it; 2 asks 0, and 1 answers."""
    net = Roaming(chain(3), Scheme.named("reactive"))
    net.arrive(0, 1)
    net.lose(0, 1)
    net.say()
    net.arrive(1, 2, previous=0, marks={})
    net.lose(1, 2)
    net.delivered.clear()
    net.arrive(2, 3, previous=0, marks={})
    assert net.delivered == [(2, S, 1)]
    assert net.states() == ["-", "-", "PRESENT"]


def test_a_request_that_comes_after_a_later_one_is_superseded() -> None:
    """Broker 1 took the client in, but 2 asked first: 1 forgets it."""
    net = Roaming(chain(3), Scheme.named("reactive"))
    net.arrive(1, 1)
    net.lose(1, 1)
    net.feed(0, facts.SubscriberArrived(S, 2, (net.interests.sub(1),), 1, {}))
    net.feed(2, facts.SubscriberArrived(S, 3, (net.interests.sub(1),), 1, {}))
    net.step((2, 1))
    net.settle()
    assert net.states() == ["-", "-", "PRESENT"]


def test_who_waits_for_a_stay_that_came_to_nothing_is_sent_on() -> None:
    """An arrival reaches 1 after the client went on to 2: who then asks 1 is not told that all is lost."""
    net = Roaming(chain(3), Scheme.named("reactive"))
    net.arrive(1, 1)
    net.lose(1, 1)
    net.say()
    net.arrive(2, 2, previous=1, marks={})
    net.arrive(2, 4, previous=1, marks={})
    net.lose(2, 4)
    net.delivered.clear()
    net.feed(1, facts.SubscriberArrived(S, 3, (net.interests.sub(1),), 1, {}))
    net.feed(0, facts.SubscriberArrived(S, 5, (net.interests.sub(1),), 1, {}))
    net.step((0, 1))
    net.settle()
    assert net.ready[-1] == Ready(S, 5, How.FETCHED, complete=True)
    assert net.delivered == [(0, S, 1)]
    assert net.states() == ["PRESENT", "-", "-"]


def test_a_repeated_request_is_harmless() -> None:
    """The same `Moved` once more changes nothing: who has its answer takes no notice of a second one."""
    net = Roaming(chain(2), Scheme.named("reactive"))
    net.arrive(0, 1)
    net.feed(1, facts.SubscriberArrived(S, 2, (net.interests.sub(1),), 0, {}))
    (moved,) = [one for one in net.links[1, 0] if isinstance(one, Moved)]
    net.settle()
    before = net.ready[:], net.delivered[:]
    net.feed(0, facts.Received(moved, 1))
    net.settle()
    assert (net.ready, net.delivered) == before
    assert net.states() == ["-", "PRESENT"]


# The table ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("turn", Turn)
def test_every_turn_in_every_state_is_in_the_table_or_refused(state: State, turn: Turn) -> None:
    """Who stores feeds, who leaves stops feeding and waiting; an illegal pair raises."""
    if (state, turn) not in TABLE:
        with pytest.raises(IllegalTurnError, match=state.name):
            follow(state, turn)
        return
    following = follow(state, turn)
    feeds = {State.ACTIVE, State.PRESENT, State.AWAY}
    if following.state in feeds and state not in feeds:
        assert following.feed is Feed.START
    if state in feeds and following.state not in feeds:
        assert following.feed is Feed.STOP
    if following.state is State.ABSENT and state is not State.ABSENT and turn is not Turn.EXPIRED:
        assert following.wait is Wait.STOP
    times_out = (State.PASSIVE, State.ACTIVE, State.AWAY, State.LEAVING)
    if following.state in times_out and state is not following.state:
        assert following.wait is Wait.TIMEOUT


# The neighbour graph --------------------------------------------------------------------------------------


def test_edges_go_by_least_recent_use() -> None:
    """The table keeps the edges crossed last, and none that nobody crossed for the timeout."""
    table = NeighbourTable(2, timeout_s=10)
    assert table.cross(1, 0.0)
    assert table.cross(2, 1.0)
    assert not table.cross(1, 2.0)
    assert table.cross(3, 3.0)
    assert table.neighbours(3.0) == (1, 3)
    assert table.neighbours(12.5) == (3,)
    assert table.neighbours(13.5) == ()


def learnt() -> LearntGraph:
    """From B0 most go to B1 and some to B2; those that came from B2 all go on to B3."""
    edges = [
        Edge(at="B0", to="B1", crossings=8, probability=0.8, last_s=5),
        Edge(at="B0", to="B2", crossings=1, probability=0.1, last_s=5),
        Edge(at="B0", to="B3", crossings=1, probability=0.1, last_s=5),
        Edge(at="B3", to="B0", crossings=1, probability=1.0, last_s=5),
    ]
    pairs = [Pair(before="B2", at="B0", to="B3", crossings=1, probability=1.0, last_s=5)]
    return LearntGraph(edges=edges, pairs=pairs, stays=[], away_s=1.0)


NAMES = ["B0", "B1", "B2", "B3"]


def test_a_broker_may_start_from_a_learnt_graph() -> None:
    """Both directions of an edge count, since the graph is undirected."""
    brokers = [
        Broker(
            number,
            Neighbours(()),
            SetInterests(),
            Policy(),
            Overlay([[]]).next_hop,
            scheme=Scheme.named("proactive"),
        )
        for number in (0, 3)
    ]
    for broker in brokers:
        broker.load_graph(learnt(), NAMES, 0.0)
    assert brokers[0].subscribers.table.neighbours(0.0) == (1, 2, 3)
    assert brokers[1].subscribers.table.neighbours(0.0) == (0,)


def test_a_predictor_names_the_fewest_likely_brokers() -> None:
    """The path is asked first, then the broker; None where nothing was seen."""
    predictor = Predictor(foreseen(learnt(), share=0.8), NAMES)
    assert predictor.likely(0, None) == (1,)
    assert predictor.likely(0, 2) == (3,)
    assert predictor.likely(0, 1) == (1,)
    assert predictor.likely(1, None) is None
    assert Predictor(foreseen(learnt(), share=0.9), NAMES).likely(0, None) == (1, 2)
    assert Predictor(foreseen(learnt(), order=1, share=0.8), NAMES).likely(0, 2) == (1,)
    assert Predictor(foreseen(learnt(), evidence_min=2, share=0.8), NAMES).likely(0, 2) == (1,)
    with pytest.raises(PredictionError, match="share must be more than 0"):
        foreseen(learnt(), share=0)
    with pytest.raises(PredictionError, match="order may be 1 or 2"):
        foreseen(learnt(), order=3)


def test_a_predictor_narrows_the_copies() -> None:
    """Only the likely next broker gets one."""
    net = Roaming(
        chain(4), Scheme.named("proactive"), foresight=Predictor(foreseen(learnt(), share=0.8), NAMES)
    )
    for neighbour in (1, 2, 3):
        net.brokers[0].subscribers.table.cross(neighbour, 0.0)
    net.arrive(0, 1)
    assert net.states() == ["PRESENT", "PASSIVE", "-", "-"]


def test_bad_schemes_are_refused() -> None:
    """The sentence names the parameter."""
    with pytest.raises(SchemeError, match="scheme may be durable, reactive, proactive"):
        Scheme.named("fast")
    with pytest.raises(SchemeError, match="timeout_s must be more than 0"):
        Scheme.named("reactive", timeout_s=0)
    with pytest.raises(SchemeError, match="queue_bytes_max must be 1 or more"):
        Scheme.named("reactive", queue_bytes_max=0)
    with pytest.raises(SchemeError, match="ahead needs follows"):
        Scheme(follows=False, ahead=True)


def test_a_broker_that_evicts_gives_up_the_oldest() -> None:
    """The newest events stay, shared as before; whoever lost the oldest is named."""
    net = Roaming(chain(1), Scheme.named("durable", queue_bytes_max=2048, event_bytes=1024, evicts=True))
    sub = net.interests.sub(1)
    for client in (1, 2):
        net.feed(0, facts.SubscriberArrived(client, 1, (sub,)))
        net.feed(0, facts.SubscriberLost(client, 1))
    for _ in range(3):
        net.say()
    assert [(drop.client, drop.publication.event.sequence) for drop in net.drops] == [(1, 0), (2, 0)]
    half = net.brokers[0].subscribers
    assert half.store.bytes == 2048
    net.feed(0, facts.SubscriberArrived(1, 2, (sub,)))
    net.say()
    assert [(drop.client, drop.publication.event.sequence) for drop in net.drops[2:]] == [(2, 1)]
    net.feed(0, facts.SubscriberGone(1, 2))
    net.feed(0, facts.SubscriberArrived(2, 2, (sub,)))
    net.feed(0, facts.SubscriberGone(2, 2))
    assert (half.store.events, half.store.bytes, half.store.owners) == (0, 0, {})
    assert [number for _, client, number in net.delivered if client == 2] == [1, 1]

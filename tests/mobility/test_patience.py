"""Waiting ends: what a broker does when another one is slow, silent, or has forgotten everything."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from sojourn.interest.events import Event
from sojourn.mobility import facts
from sojourn.mobility.copies import State
from sojourn.mobility.facts import How
from sojourn.mobility.late import Late, Verdict
from sojourn.mobility.schemes import Scheme
from sojourn.routing.effects import Close, Ended, Ready
from sojourn.routing.messages import Context, Forward, Handoff, Publish
from tests.mobility.roaming import S, Watched
from tests.routing.network import chain, joined

TOO_LATE = "came too late"


def moves_with(net: Watched, events: int, *, size: int = 1 << 20) -> None:
    """S leaves 0, so many events wait for it there, each a message of its own, and it arrives at 1."""
    net.arrive(0, 1)
    net.lose(0, 1)
    for _ in range(events):
        net.say(size=size)
    net.arrive(1, 2, 0, settles=False)
    net.step((1, 0))
    assert len(net.under_way((0, 1), Forward)) == events


# The end of a stay ----------------------------------------------------------------------------------------


def test_a_driver_is_told_when_everything_of_a_subscriber_is_gone() -> None:
    """Timeout(S) ends the stay, and with it the session that the driver has."""
    net = Watched(chain(1), Scheme.named("reactive", timeout_s=5))
    net.arrive(0, 3)
    net.lose(0, 3)
    net.say()
    net.expire(net.timer(0))
    assert net.ends == [Ended(S, 3)]
    assert net.dropped() == [("p", 0, "timeout")]
    assert not net.brokers[0].effects.ends, "cleared like all others"


def test_no_session_ends_when_a_copy_times_out_or_a_stay_is_handed_over() -> None:
    """The first is nobody's session; the second goes on elsewhere."""
    net = Watched(chain(2), Scheme.named("proactive", timeout_s=5))
    net.brokers[0].subscribers.table.cross(1, 0.0)
    net.arrive(0, 1)
    net.lose(0, 1)
    assert net.holding(1).state is State.ACTIVE
    net.expire(net.timer(1))
    assert not net.brokers[1].subscribers.main
    net.arrive(1, 2, 0)
    assert net.ends == []


# Patience -------------------------------------------------------------------------------------------------


def test_patience_may_be_without_end() -> None:
    """No timer runs, and the answer is taken whenever it comes."""
    net = Watched(chain(2), Scheme.named("reactive", patience_s=math.inf))
    moves_with(net, 3)
    assert [key for key in net.timers if key[0] == 1] == []
    net.settle()
    assert [number for _, number in net.got] == [0, 1, 2]
    assert net.ready[-1] == Ready(S, 2, How.FETCHED, complete=True)


def test_who_waits_without_end_is_served_when_the_old_broker_has_forgotten_its_copy_too() -> None:
    """A copy's transfer never ended; the broker that owed it says that it knows nothing, and that is all."""
    net = Watched(chain(2), Scheme.named("proactive", patience_s=math.inf))
    net.brokers[0].subscribers.table.cross(1, 0.0)
    net.arrive(0, 1)
    net.feed(0, facts.SubscriberLost(S, 1))
    net.step((0, 1))
    net.links[1, 0].clear()  # the copy is active, and nobody hears of it
    net.brokers[0] = net.new_broker(0)
    net.arrive(1, 2, 0)
    assert net.ready[-1] == Ready(S, 2, How.COPY, complete=False)
    net.say()
    assert net.got == [("p", 0)]


def test_a_transfer_that_has_begun_is_waited_for() -> None:
    """Patience runs out between two of its messages: they are the sign that the old broker is there."""
    net = Watched(chain(2), Scheme.named("reactive", patience_s=3))
    moves_with(net, 4)
    for _ in range(4):
        net.step((0, 1))
        net.expire(net.timer(1))
        assert net.got == []
    net.settle()
    assert [number for _, number in net.got] == [0, 1, 2, 3]
    assert net.ready[-1] == Ready(S, 2, How.FETCHED, complete=True)
    assert not net.timers
    assert not net.drops


def give_up_after(net: Watched, messages: int) -> None:
    """So many messages of the transfer come, and then nothing for longer than patience lasts."""
    for _ in range(messages):
        net.step((0, 1))
    net.expire(net.timer(1))
    if messages:
        net.expire(net.timer(1))
    assert net.ready[-1] == Ready(S, 2, How.FETCHED, complete=False)


def test_what_comes_too_late_is_reported_event_by_event() -> None:
    """Later events of the source were given meanwhile; those that the client has are not reported."""
    net = Watched(chain(2), Scheme.named("reactive", patience_s=3))
    moves_with(net, 4)
    own = net.say(broker=1, settles=False)  # number 4, which comes by itself
    give_up_after(net, 1)
    assert [number for _, number in net.got] == [0, 4]
    late = net.under_way((0, 1), Forward)
    net.settle()
    assert net.dropped() == [("p", 1, TOO_LATE), ("p", 2, TOO_LATE), ("p", 3, TOO_LATE)]
    net.feed(1, facts.Received(late[0], 0))
    net.feed(1, facts.Received(replace(late[0], publications=(own,)), 0))
    assert len(net.drops) == 3, "a repetition is not a second loss"
    assert [number for _, number in net.got] == [0, 4]
    net.say(broker=1)
    assert [number for _, number in net.got] == [0, 4, 5]


@pytest.mark.parametrize("acknowledged", [True, False])
def test_what_comes_late_but_in_order_is_given(acknowledged: bool) -> None:
    """Nothing of that source was given since, so nothing is lost; and it comes once."""
    net = Watched(chain(2), Scheme.named("reactive", patience_s=3, acknowledged=acknowledged))
    moves_with(net, 3)
    give_up_after(net, 1)
    net.say("q", broker=1)
    late = net.under_way((0, 1), Forward)
    net.settle()
    for message in late:
        net.feed(1, facts.Received(message, 0))
    assert net.got == [("p", 0), ("q", 0), ("p", 1), ("p", 2)]
    assert not net.drops
    assert net.holding(1).late is None, "the end of the transfer is the end of that"
    net.say("p", broker=1)
    net.say("p", broker=1)
    assert net.got[4:] == [("p", 3), ("p", 4)]
    assert [one.event.sequence for one in net.holding(1).queue] == (
        [0, 0, 1, 2, 3, 4] if acknowledged else []
    )


def test_what_comes_late_for_a_client_that_left_again_waits_for_it() -> None:
    """It is stored if it is in order, and reported if it is not."""
    net = Watched(chain(2), Scheme.named("reactive", patience_s=3))
    net.arrive(0, 1)
    net.lose(0, 1)
    for source in "pq":
        net.say(source)
    net.arrive(1, 2, 0, settles=False)
    net.step((1, 0))
    net.expire(net.timer(1))
    net.feed(1, facts.SubscriberLost(S, 2))
    net.say("q", broker=1, settles=False)
    net.settle()
    assert net.dropped() == [("q", 0, TOO_LATE)]
    net.arrive(1, 3, 1)
    assert net.got == [("q", 1), ("p", 0)]


def test_subscriptions_that_come_late_are_made_and_their_events_follow() -> None:
    """The client did not name them, and the old broker took longer than patience lasts to do so."""
    net = Watched(chain(2), Scheme.named("reactive", patience_s=3))
    net.arrive(0, 1)
    net.lose(0, 1)
    net.say()
    net.arrive(1, 2, 0, settles=False, subscriptions=None)
    net.step((1, 0))
    assert net.under_way((0, 1), Context)
    net.expire(net.timer(1))
    assert net.ready[-1] == Ready(S, 2, How.FETCHED, complete=False)
    net.settle()
    net.say()
    assert net.got == [("p", 0), ("p", 1)]
    assert not net.drops


def test_a_late_event_is_known_lost_or_in_time() -> None:
    """By source: up to the floor and from the first one on it is known, between them it is lost."""

    def event(source: str, number: int) -> Publish:
        return Publish(Event({}, source=source, sequence=number))

    late = Late.of(
        [2], {"a": 3}, forwarded=[event("a", 5), event("b", 1)], own=[event("a", 4), event("a", 9)]
    )
    assert late.first == {"a": 9}
    verdicts = [late.judge(event("a", number), {"a": 20}) for number in (3, 5, 6, 6, 8, 9, 12)]
    known, lost, in_time = Verdict.KNOWN, Verdict.LOST, Verdict.IN_TIME
    assert verdicts == [known, known, lost, known, lost, known, known]
    assert late.judge(event("b", 2), {"b": 2}) is known, "consumed elsewhere, as the client says"
    assert late.judge(event("b", 3), {"b": 2}) is in_time
    late.note([event("b", 5)], {"b": 3})
    assert late.judge(event("b", 4), {"b": 5}) is lost
    assert late.judge(event("b", 5), {"b": 5}) is known


def test_a_stay_that_owes_something_does_not_wait_for_ever_where_absence_may_last() -> None:
    """The broker that it waits for itself is gone: whoever waits for it is told what there is."""
    net = Watched(chain(3), Scheme.named("reactive", timeout_s=math.inf, patience_s=3))
    net.arrive(0, 1)
    net.lose(0, 1)
    net.arrive(1, 2, 0, settles=False)
    net.links[1, 0].clear()
    net.lose(1, 2)
    net.arrive(2, 3, 1)
    (leaving,) = net.brokers[1].subscribers.older[S]
    assert leaving.state is State.LEAVING
    net.expire(net.timer(1))
    net.settle()
    assert not net.brokers[1].subscribers.older
    assert net.ready[-1] == Ready(S, 3, How.FETCHED, complete=False)


def wait_in_a_chain(net: Watched, brokers: int) -> None:
    """S goes from one broker to the next, and the first, which has an event for it, says nothing yet."""
    net.arrive(0, 1)
    net.lose(0, 1)
    net.say()
    for broker in range(1, brokers):
        net.arrive(broker, broker + 1, broker - 1, settles=False)
        net.links[1, 0].clear()  # what asks the first broker is on its way for long
        net.settle()
        if broker < brokers - 1:
            net.lose(broker, broker + 1)


def test_who_waits_behind_others_is_given_a_sign_when_they_hear_something() -> None:
    """Events come to the second broker only, and all brokers behind it keep their patience."""
    net = Watched(chain(4), Scheme.named("reactive", patience_s=8, signs=True))
    wait_in_a_chain(net, 4)
    stays = [net.brokers[1].subscribers.older[S][0], net.brokers[2].subscribers.older[S][0], net.holding(3)]
    assert [stay.heard for stay in stays] == [False, True, True], "each was told that it is waited for"
    for number, now in enumerate((3.0, 6.0), start=1):
        for stay in stays:
            stay.heard = False
        event = Event({"n": 1}, source="q", sequence=number)
        part = Forward(destination=1, sender=0, client=S, epoch=2, cause=0, publications=(Publish(event),))
        for _ in range(5):
            net.links[0, 1].append(part)
        net.now = now
        net.step((0, 1))
        assert len(net.under_way((1, 2), Forward)) == 1
        while net.links[0, 1]:
            net.step((0, 1))
        assert len(net.under_way((1, 2), Forward)) == 1, "one sign in a while is enough"
        net.settle()
        assert [stay.heard for stay in stays] == [True, True, True]
        assert not any(stay.complete for stay in stays)
    for stay in stays:
        stay.heard = False
    net.now = 1.0  # somebody set the clock back
    net.links[0, 1].append(part)
    net.settle()
    assert [stay.heard for stay in stays] == [True, True, True]


def test_nobody_gives_up_for_the_time_in_which_its_own_broker_was_down() -> None:
    """A broker that comes back finds its timers run out, and has had no chance to hear anything."""
    net = Watched(chain(2), Scheme.named("reactive", patience_s=3))
    moves_with(net, 1)
    net.brokers[1].subscribers.restarted()
    net.expire(net.timer(1))
    assert net.ready[-1].epoch == 1, "it waits for another while"
    net.settle()
    assert net.ready[-1] == Ready(S, 2, How.FETCHED, complete=True)
    assert net.got == [("p", 0)]


def test_behind_a_dead_broker_patience_ends_in_the_order_of_the_chain() -> None:
    """The broker that waits for the dead one gives what there is before those behind it give up."""
    net = Watched(chain(3), Scheme.named("reactive", timeout_s=100, patience_s=3, signs=True))
    wait_in_a_chain(net, 2)
    net.say("q", broker=1)
    net.lose(1, 2)
    net.arrive(2, 3, 1)
    net.say("q", broker=1)
    assert net.timers[net.timer(1)] == net.timers[net.timer(2)] == 3
    net.expire(net.timer(2))  # it asked earlier than it was asked for, so this one is first
    assert net.ready[-1].epoch == 1
    net.expire(net.timer(1))
    net.settle()
    assert net.ready[-1] == Ready(S, 3, How.FETCHED, complete=False)
    assert net.got == [("q", 0), ("q", 1)]
    assert net.dropped() == []


def test_a_connection_ends_when_a_later_stay_elsewhere_makes_its_broker_keep_a_copy() -> None:
    """S is still connected to 0 when 2, its next broker but one, has a copy made there; then 1 asks."""
    net = Watched(joined(3, [(0, 1), (0, 2)]), Scheme.named("proactive"))
    net.brokers[2].subscribers.table.cross(0, 0.0)
    net.arrive(0, 1)
    net.arrive(1, 2, 0, settles=False)
    net.arrive(2, 3, 1, settles=False)
    while net.links[2, 0]:
        net.step((2, 0))
    net.settle()
    assert Close(S, 1) in net.closes
    assert not net.brokers[0].subscribers.older


def test_a_client_that_is_back_is_given_what_went_elsewhere_in_between() -> None:
    """Its stay at 0 asks 1 so slowly that 2, where it was meanwhile, got everything; then it is back at 0."""
    net = Watched(chain(3), Scheme.named("reactive"))
    net.arrive(1, 1)
    net.lose(1, 1)
    net.say(broker=1)
    net.arrive(0, 2, 1, settles=False)
    net.feed(0, facts.SubscriberLost(S, 2))
    net.arrive(2, 3, 1, settles=False)
    net.step((2, 1))
    while net.links[1, 2]:
        net.step((1, 2))
    net.feed(2, facts.SubscriberLost(S, 3))
    net.got.clear()
    net.arrive(0, 4, 0)
    assert net.got == [("p", 0)]
    assert net.ready[-1] == Ready(S, 4, How.SAME, complete=True)
    assert net.closes == []
    assert not net.brokers[2].subscribers.main


# Brokers that forget and links that lose -------------------------------------------------------------------


class Chaos:
    """One run from a seed: S moves while brokers die without a memory and links lose what they like."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = random.Random(seed)
        self.count = draw.randrange(2, 5)
        edges = [(draw.randrange(one), one) for one in range(1, self.count)]
        scheme = Scheme.named(
            draw.choice(["reactive", "proactive"]),
            timeout_s=50.0,
            passive_s=100.0,
            patience_s=draw.choice([3.0, 9.0]),
            signs=draw.choice([False, True]),
        )
        self.net = Watched(joined(self.count, edges), scheme)
        self.epoch = 0
        self.at: int | None = None
        self.previous: int | None = None
        self.forgot = False
        """Whether the broker that S is connected to has forgotten that."""
        self.marks: dict[str, int] = {}
        self.last: dict[str, int] = {}
        """By source: the last event that S has of those that this connection brought, or stated as a mark."""
        self.judged = 0

    def run_impatiently(self) -> None:
        """Two hundred things, none of which loses a message, but waits end early."""
        self.come_honestly()
        self.net.settle()
        things = [self.say, self.say, self.step, self.step, self.step, self.lose_patience]
        things += [self.come_honestly, self.leave, self.consume]
        for _ in range(200):
            self.draw.choice(things)()
            self.judge()
        self.come_honestly()
        self.net.settle()
        while waiting := self.waiting():
            self.net.expire(min(waiting))
            self.net.settle()

    def run(self) -> None:
        """Two hundred things, of all kinds."""
        for _ in range(200):
            self.draw.choice(
                [self.say, self.say, self.step, self.step, self.step, self.fire, self.lose_messages]
                + [self.come, self.leave, self.repeat, self.consume]
                + ([self.forget] if self.draw.random() < 0.3 else [])
            )()
            self.judge()

    def judge(self) -> None:
        """What a connection brings is in order, once, and beyond the marks that the client stated."""
        for source, number in self.net.got[self.judged :]:
            assert number > self.last.get(source, -1)
            self.last[source] = number
        self.judged = len(self.net.got)

    def say(self) -> None:
        """Somebody publishes."""
        broker = self.draw.randrange(2)
        self.net.say("pq"[broker], broker, settles=False)

    def step(self) -> None:
        """A link delivers a message."""
        if self.net.waiting():
            self.net.step(self.draw.choice(self.net.waiting()))

    def repeat(self) -> None:
        """A message about S comes a second time."""
        for link in self.net.waiting():
            message = self.net.links[link][0]
            if isinstance(message, Handoff):
                self.net.links[link].append(message)
                return

    def lose_messages(self) -> None:
        """A link loses all messages about S that are on it."""
        if self.net.waiting() and self.draw.random() < 0.5:
            link = self.draw.choice(self.net.waiting())
            kept = [one for one in self.net.links[link] if not isinstance(one, Handoff)]
            self.net.links[link].clear()
            self.net.links[link].extend(kept)

    def fire(self) -> None:
        """A timer runs out."""
        if self.net.timers and self.draw.random() < 0.5:
            self.net.expire(self.draw.choice(sorted(self.net.timers)))

    def forget(self) -> None:
        """A broker dies and begins anew."""
        broker = self.draw.randrange(self.count)
        self.net.brokers[broker] = self.net.new_broker(broker)
        for key in [key for key in self.net.timers if key[0] == broker]:
            del self.net.timers[key]
        self.forgot = self.forgot or broker == self.at

    def lose_patience(self) -> None:
        """Some broker waited for another long enough."""
        waiting = self.waiting()
        if waiting and self.draw.random() < 0.5:
            self.net.expire(self.draw.choice(sorted(waiting)))

    def waiting(self) -> list[tuple[int, int, int]]:
        """The timers of brokers that wait for another one."""
        return [key for key, delay_s in self.net.timers.items() if delay_s == self.net.scheme.patience_s]

    def come_honestly(self) -> None:
        """S connects somewhere, and names what it wants and the broker that took it in last."""
        self.leave()
        self.epoch += 1
        self.at, self.last = self.draw.randrange(self.count), dict(self.marks)
        self.net.arrive(self.at, self.epoch, self.previous, settles=False, marks=dict(self.marks))
        self.previous = self.at

    def come(self) -> None:
        """S connects somewhere; it may name no subscriptions and a broker that does not know it."""
        self.leave()
        self.epoch += 1
        self.at, self.forgot, self.last = self.draw.randrange(self.count), False, dict(self.marks)
        previous = self.draw.choice([self.previous, self.draw.randrange(self.count)])
        more = {"subscriptions": None} if self.draw.random() < 0.2 and previous is not None else {}
        self.net.arrive(self.at, self.epoch, previous, settles=False, marks=dict(self.marks), **more)
        self.previous = self.at

    def leave(self) -> None:
        """S loses its connection, and its broker notices."""
        if self.at is not None and not self.forgot:
            self.net.feed(self.at, facts.SubscriberLost(S, self.epoch))
        self.at = None

    def consume(self) -> None:
        """S says what it has got."""
        if self.at is not None and self.net.got:
            source, number = self.net.got[-1]
            self.marks[source] = max(number, self.marks.get(source, -1))
            self.net.consume(self.at, number, source)

    def rest(self) -> None:
        """All messages come, and all timers run out, until there are none."""
        self.net.settle()
        for _ in range(1_000):
            if not self.net.timers:
                return
            self.net.expire(min(self.net.timers, key=lambda key: (self.net.timers[key], key)))
            self.net.settle()
            self.judge()
        raise AssertionError("timers set timers for ever")


@pytest.mark.parametrize("seed", range(300))
def test_every_wait_ends_whatever_is_forgotten_or_lost(seed: int) -> None:
    """Who is connected is served in the end, and after everybody has left nothing is kept of anybody."""
    chaos = Chaos(seed)
    chaos.run()
    chaos.come()
    assert chaos.at is not None
    chaos.rest()
    assert Close(S, chaos.epoch) not in chaos.net.closes, "it is connected nowhere else"
    assert any(one.epoch == chaos.epoch for one in chaos.net.ready)
    chaos.leave()
    chaos.rest()
    for broker in chaos.net.brokers:
        half = broker.subscribers
        assert not half.main
        assert not half.older
        assert not half.timers
        assert not half.fed
        assert (half.store.events, half.store.bytes, half.present) == (0, 0, 0)
        assert not broker.router.local_subs


@pytest.mark.parametrize("seed", range(100))
def test_what_impatience_costs_is_reported(seed: int) -> None:
    """Where no link loses anything, each event is given to the client, or some broker says that it is not."""
    chaos = Chaos(seed)
    chaos.run_impatiently()
    told = {*chaos.net.got, *((source, number) for source, number, _ in chaos.net.dropped())}
    published = {(source, number) for source, last in chaos.net.last.items() for number in range(last + 1)}
    assert told == published
    assert {reason for _, _, reason in chaos.net.dropped()} <= {TOO_LATE}

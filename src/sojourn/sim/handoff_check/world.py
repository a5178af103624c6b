"""A small world in which everything that may go wrong between moving subscribers and brokers does.

Brokers' links are FIFO with delays drawn anew for each message; a message about a subscriber may come a
second time, much later. Brokers stall for seconds with all that waits for them. Clients' connections break
at any time, in the middle of anything, with what was under way lost on either side; a broker notices late.
Nothing takes processor time here; what that does is the matter of the timed world.

A client behaves as the protocol asks it to: it counts its connections, knows the last broker that took it
in, gives its marks, and sends what it has consumed now and then. It never looks into a broker.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from sojourn.interest.events import Event
from sojourn.mobility import facts
from sojourn.mobility.broker import Broker
from sojourn.mobility.copies import State
from sojourn.mobility.policies import Policy
from sojourn.mobility.schemes import Scheme
from sojourn.routing.effects import Effects
from sojourn.routing.messages import Handoff, Kind, Message, Publish
from sojourn.routing.neighbours import Neighbours
from sojourn.routing.overlay import Overlay
from sojourn.sim.clock import Clock
from sojourn.sim.handoff_check.oracle import Oracle, Routing, Witness
from sojourn.sim.handoff_check.script import FLOODING, Script, Step, vocabulary
from sojourn.sim.streams import Streams

TIMEOUT_S = 600.0
PATIENCE_S = 300.0
GRACE_S = 0.2
"""After which copies are activated in half of the worlds; in the others at once."""
REST_S = 120.0
"""After the last step of the script everybody connects and stays; after so long everything is at rest."""
REPEATED = 0.05
"""The share of messages about subscribers that come twice."""
REPEAT_DELAY_S = 40.0
EVENTS_MAX = 400_000
"""What may happen in one check before it counts as one that never ends."""

DRAWS = 4_093

MakeBroker = Callable[..., Broker]


class FailedCheckError(Exception):
    """A check found something wrong; its text says what."""


class Draws:
    """Uniform numbers of one stream, looked up by time.

    What a moment brings does not depend on how much was drawn before it, so a script with fewer steps meets
    the same delays with those that are left, and a failure can be cut down.
    """

    __slots__ = ("_numbers",)

    def __init__(self, streams: Streams, name: str, index: int = 0) -> None:
        self._numbers: list[float] = streams.get(name, index).random(DRAWS).tolist()

    def at(self, now: float, salt: int = 0) -> float:
        """The number in [0, 1) of a moment; one moment has others under other salts."""
        return self._numbers[(int(now * 65_536) + 389 * salt) % DRAWS]


class Client:
    """One subscriber and its present connection."""

    __slots__ = (
        "at",
        "beginnings",
        "changed",
        "cut_s",
        "down_s",
        "draws",
        "epoch",
        "interests",
        "is_over",
        "marks",
        "number",
        "previous",
        "up_s",
        "witness",
    )

    def __init__(self, number: int, interests: tuple[int, ...], draws: Draws) -> None:
        self.number = number
        self.interests = interests
        self.draws = draws
        self.epoch = 0
        self.at: int | None = None
        """The broker that the present connection goes to, whether or not it has answered."""
        self.previous: int | None = None
        """The last broker known to have taken the client in."""
        self.marks: dict[str, int] = {}
        self.changed = False
        """Whether its broker may not know all its interests."""
        self.is_over = False
        self.beginnings = 0
        """How many brokers took it in as one that had been nowhere before."""
        self.up_s = self.down_s = 0.0
        self.cut_s: dict[int, float] = {}
        """By epoch of a broken connection: until when what was under way upwards still arrives."""
        self.witness = Witness(number)


class CheckWorld:
    """One script, run once."""

    def __init__(self, script: Script, make_broker: MakeBroker = Broker) -> None:
        self.script = script
        spec = script.spec
        streams = Streams(spec.seed)
        self.clock = Clock()
        interests, filters, self.subs, self.ads = vocabulary()
        self.oracle = Oracle(filters, is_flooded=spec.routing == FLOODING)
        overlay = Overlay(script.graph)
        scheme = Scheme.named(
            spec.scheme,
            gives_along=bool(spec.seed % 2),
            grace_s=GRACE_S if spec.seed % 4 > 1 else 0.0,
            timeout_s=TIMEOUT_S,
            patience_s=PATIENCE_S,
            signs=True,
        )
        self.brokers = [
            make_broker(
                number,
                Neighbours(near),
                interests,
                Policy(),
                overlay.next_hop,
                scheme=scheme,
                flooding=spec.routing == FLOODING,
            )
            for number, near in enumerate(overlay.neighbours)
        ]
        self.inbox: list[deque[facts.Fact]] = [deque() for _ in self.brokers]
        self.stalled_s = [0.0] * len(self.brokers)
        pace = Draws(streams, "pace").at(0)
        self.slowest_s = 0.02 if pace < 0.3 else 0.3 if pace < 0.7 else 2.0
        """The longest delay of a link: some checks have slow networks and some fast ones."""
        pairs = [(one, other) for one, near in enumerate(overlay.neighbours) for other in near]
        self.delays = {pair: Draws(streams, "link", place) for place, pair in enumerate(pairs)}
        self.free_s = dict.fromkeys(pairs, 0.0)
        self.clients = [
            Client(number, wanted, Draws(streams, "client", number))
            for number, wanted in enumerate(script.first_interests)
        ]
        self.sequences = [0] * len(script.publishers)
        self.timers: list[set[int]] = [set() for _ in self.brokers]
        self.sessions: list[dict[int, int]] = [{} for _ in self.brokers]
        """By broker and client: the epoch of the connection that the broker knows last."""
        self.routing = Routing(len(self.brokers))
        self.handoffs = 0
        self.happened = 0

    # The run -----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the script to its end and judge; a `FailedCheckError` says what is wrong."""
        for publisher, (broker, advertised) in enumerate(self.script.publishers):
            self._feed(broker, facts.ClientArrived(1_000 + publisher, (self.ads[advertised],)))
        self._run_until(self.clock.now + REST_S)
        start_s = self.clock.now
        for step in self.script.steps:
            self._run_until(start_s + step.time_s)
            self._do(step)
        self._run_until(self.clock.now + REST_S)
        for client in self.clients:
            if not client.is_over and client.at is None:
                self._connect(client, client.number % len(self.brokers))
        self._run_until(self.clock.now + REST_S)
        self._judge()
        self._end_all()

    def _run_until(self, time_s: float) -> None:
        self.happened += self.clock.run_through(time_s, most=EVENTS_MAX + 1 - self.happened)
        if self.happened > EVENTS_MAX:
            raise FailedCheckError(f"the check is not over after {EVENTS_MAX} events")

    def _judge(self) -> None:
        for client in self.clients:
            problem = self.oracle.judge(client.witness)
            if problem is not None:
                raise FailedCheckError(problem)
            if not client.is_over and client.beginnings <= 1:
                self._expect_calm(client)

    def _expect_calm(self, client: Client) -> None:
        """At rest a client that is connected is so at one broker, and at others there are passive copies."""
        for broker in self.brokers:
            half = broker.subscribers
            holding = half.main.get(client.number)
            wanted = State.PRESENT if broker.number == client.at else State.PASSIVE
            is_right = holding is None if wanted is State.PASSIVE else False
            if client.number in half.older or not (is_right or (holding and holding.state is wanted)):
                state = holding.state.name if holding else "nothing"
                raise FailedCheckError(
                    f"broker {broker.number} has {state} of client {client.number}, which is at {client.at}"
                )

    def _end_all(self) -> None:
        """Everybody says goodbye, all times run out, and nothing is to be left."""
        for client in self.clients:
            if not client.is_over:
                self._say_goodbye(client)
        self._run_until(self.clock.now + REST_S)
        for broker in self.brokers:
            for copies in (broker.subscribers.main, broker.subscribers.older):
                for number in copies:
                    # A broker that took a client in which never heard of it can only wait for Timeout(S).
                    if self.clients[number].beginnings <= 1 and not self._died(number):
                        raise FailedCheckError(
                            f"broker {broker.number} still holds client {number}, which said goodbye"
                        )
        self._run_until(self.clock.now + 10 * TIMEOUT_S)
        for broker in self.brokers:
            self._expect_nothing(broker)

    def _died(self, number: int) -> bool:
        return any(step.what == "die" and step.who == number for step in self.script.steps)

    def _expect_nothing(self, broker: Broker) -> None:
        half = broker.subscribers
        for what, left in (
            ("a copy or stay", [*half.main, *half.older]),
            ("a subscription", [*half.fed, *broker.router.local_subs]),
            ("a timer", [*half.timers, *self.timers[broker.number]]),
            ("an interest of another broker", broker.router.subs),
        ):
            if left:
                raise FailedCheckError(
                    f"broker {broker.number} still has {what} after everybody has gone: {left}"
                )
        if half.store.events or half.store.bytes:
            raise FailedCheckError(f"broker {broker.number} still stores {half.store.events} events")

    # Brokers -----------------------------------------------------------------------------------------

    def _feed(self, broker: int, fact: facts.Fact) -> None:
        """Give a broker a fact, or let it wait while the broker stalls."""
        if self.stalled_s[broker] > self.clock.now or self.inbox[broker]:
            self.inbox[broker].append(fact)
        else:
            self._handle(broker, fact)

    def _wake(self, broker: int) -> None:
        if self.stalled_s[broker] > self.clock.now:
            return
        inbox = self.inbox[broker]
        while inbox:
            self._handle(broker, inbox[0])
            inbox.popleft()

    def _handle(self, number: int, fact: facts.Fact) -> None:
        broker = self.brokers[number]
        if isinstance(fact, facts.TimerFired):
            if fact.token not in self.timers[number]:
                return
            self.timers[number].discard(fact.token)
        effects = broker.handle(fact, self.clock.now)
        for mask, message in effects.sends:
            for neighbour in broker.router.neighbours.named(mask):
                self._send(number, neighbour, message)
        if isinstance(fact, facts.SubscriberArrived):
            self._took_in(number, fact, {close.epoch for close in effects.closes})
        elif isinstance(fact, facts.Received) and fact.message.kind < Kind.PUBLISH:
            self.routing.handled(fact.message.cause, self.clock.now)
        for delivery in effects.deliveries:
            for client in delivery.clients:
                epoch = self.sessions[number][client]
                self._down(self.clients[client], epoch, self._see, (client, epoch, delivery.publication))
        for cancel in effects.cancels:
            self.timers[number].discard(cancel.token)
        for timer in effects.timers:
            self.timers[number].add(timer.token)
            self._later(timer.delay_s, self._fire, (number, timer.client, timer.token))
        self._heed(number, effects)
        effects.clear()

    def _heed(self, number: int, effects: Effects) -> None:
        """What a broker says of its own work must be true."""
        for drop in effects.drops:
            if drop.reason != "timeout":
                raise FailedCheckError(
                    f"broker {number} dropped an event of client {drop.client}: {drop.reason}"
                )
        for one in effects.ready:
            client = self.clients[one.client]
            if not one.complete and client.epoch == one.epoch and client.at == number:
                raise FailedCheckError(f"broker {number} served client {one.client} without all its events")
        for close in effects.closes:
            client = self.clients[close.client]
            if client.epoch == close.epoch and client.at is not None and not client.is_over:
                raise FailedCheckError(
                    f"broker {number} closed the connection that client {close.client} has"
                )

    def _fire(self, which: tuple[int, int, int]) -> None:
        broker, client, token = which
        if token in self.timers[broker]:
            self._feed(broker, facts.TimerFired(client, token))

    def _send(self, sender: int, receiver: int, message: Message) -> None:
        pair = (sender, receiver)
        draws = self.delays[pair]
        if message.kind < Kind.PUBLISH:
            self.routing.sent(message.cause)
        now = self.clock.now
        arrival = max(self.free_s[pair], now + draws.at(now, message.kind) ** 2 * self.slowest_s)
        self.free_s[pair] = arrival
        thing = (receiver, facts.Received(message, sender))
        self.clock.plan(arrival, self._arrive, thing)
        if isinstance(message, Handoff) and draws.at(now, 20 + message.kind) < REPEATED:
            self.clock.plan(
                arrival + draws.at(now, 40 + message.kind) ** 3 * REPEAT_DELAY_S, self._arrive, thing
            )

    def _arrive(self, which: tuple[int, facts.Fact]) -> None:
        self._feed(*which)

    def _later(self, delay_s: float, what: Callable[[Any], None], thing: object) -> None:
        self.clock.plan(self.clock.now + delay_s, what, thing)

    # Steps -------------------------------------------------------------------------------------------

    def _do(self, step: Step) -> None:
        if step.what == "publish":
            self._publish(step.who, step.where)
            return
        if step.what == "stall":
            self.stalled_s[step.who] = max(self.stalled_s[step.who], self.clock.now + step.seconds)
            self.clock.plan(self.stalled_s[step.who], self._wake, step.who)
            return
        client = self.clients[step.who]
        if client.is_over:
            return
        if step.what == "connect":
            self._connect(client, step.where)
        elif step.what == "change":
            self._change(client, step.interests)
        elif step.what == "goodbye":
            self._say_goodbye(client)
        else:
            self._break(client, step.seconds, is_told=step.what == "move out")
            if step.what == "die":
                client.is_over = client.witness.is_gone = True

    def _publish(self, publisher: int, number: int) -> None:
        event = Event({"n": number}, source=f"p{publisher}", sequence=self.sequences[publisher])
        self.sequences[publisher] += 1
        self.oracle.publish(event, self.clock.now)
        broker, _ = self.script.publishers[publisher]
        self._feed(broker, facts.ClientPublished(Publish(event)))

    # Clients -----------------------------------------------------------------------------------------

    def _connect(self, client: Client, broker: int) -> None:
        if client.at is not None:
            self._break(client, 0.5, is_told=False)
        client.epoch += 1
        client.at = broker
        client.up_s = client.down_s = self.clock.now
        if not client.witness.wanted:
            client.witness.wants(client.interests)
        # A client whose broker knows its interests may leave it to the brokers to pass them on.
        is_silent = (
            client.previous is not None and not client.changed and client.draws.at(self.clock.now) < 0.3
        )
        numbers = tuple(self.subs[place] for place in client.interests)
        fact = facts.SubscriberArrived(
            client.number,
            client.epoch,
            None if is_silent else numbers,
            client.previous,
            dict(client.marks),
            self.routing.new_cause(),
        )
        self._send_up(client, fact)

    def _took_in(self, broker: int, fact: facts.SubscriberArrived, closed: set[int]) -> None:
        """A broker has handled an arrival: unless it refused, the client will know."""
        client = self.clients[fact.client]
        if fact.epoch in closed:
            return
        self.sessions[broker][fact.client] = fact.epoch
        client.beginnings += fact.previous is None
        self._down(client, fact.epoch, self._accepted, (client, fact.epoch, broker, fact.subscriptions))

    def _accepted(self, which: tuple[Client, int, int, tuple[int, ...] | None]) -> None:
        client, epoch, broker, numbers = which
        if client.epoch != epoch or client.at != broker:
            return
        self.handoffs += client.previous not in (None, broker)
        client.previous = broker
        # Before the client knows of it, its interests are with a broker that it may never come back to.
        taken = tuple(self.subs.index(number) for number in numbers or ())
        for wanted in client.witness.taken(taken):
            self.routing.watch(wanted, self.clock.now)

    def _break(self, client: Client, noticed_s: float, *, is_told: bool) -> None:
        """The connection is gone, now for the client, later for the broker."""
        if client.at is None:
            return
        cut_s = self.clock.now + (
            REPEAT_DELAY_S if is_told else client.draws.at(self.clock.now, 1) ** 2 * 0.3
        )
        client.cut_s[client.epoch] = cut_s
        lost = (client.at, facts.SubscriberLost(client.number, client.epoch, self.routing.new_cause()))
        # The broker can't lose a connection that it will still hear from.
        noticed = max(self.clock.now + noticed_s, min(client.up_s, cut_s))
        self.clock.plan(noticed, self._arrive, lost)
        client.at = None

    def _change(self, client: Client, interests: tuple[int, ...]) -> None:
        if client.at is None or interests == client.interests:
            return
        client.interests = interests
        client.changed = True
        client.witness.wants(interests)
        numbers = tuple(self.subs[place] for place in interests)
        self._send_up(
            client, facts.SubscriberChanged(client.number, client.epoch, numbers, self.routing.new_cause())
        )

    def _say_goodbye(self, client: Client) -> None:
        if client.at is None:
            return
        client.is_over = client.witness.is_gone = True
        self._send_up(client, facts.SubscriberGone(client.number, client.epoch))

    def _send_up(self, client: Client, fact: facts.Fact) -> None:
        client.up_s = max(client.up_s, self.clock.now + client.draws.at(self.clock.now, 2) ** 2 * 0.2)
        self.clock.plan(client.up_s, self._sent_up, (client, client.epoch, client.at, fact))

    def _sent_up(self, which: tuple[Client, int, int, facts.Fact]) -> None:
        client, epoch, broker, fact = which
        if self.clock.now <= client.cut_s.get(epoch, self.clock.now):
            self._feed(broker, fact)

    def _down(self, client: Client, epoch: int, what: Callable[[Any], None], thing: object) -> None:
        if client.epoch == epoch:
            client.down_s = max(client.down_s, self.clock.now + client.draws.at(self.clock.now, 3) ** 2 * 0.2)
            self.clock.plan(client.down_s, what, thing)

    def _see(self, which: tuple[int, int, Publish]) -> None:
        """An event reaches the client's eyes, if its connection still is what it came by."""
        number, epoch, publication = which
        client = self.clients[number]
        if client.epoch != epoch or client.at is None or client.is_over:
            return
        event = publication.event
        client.witness.seen.setdefault(event.source, []).append(event.sequence)
        client.marks[event.source] = max(client.marks.get(event.source, -1), event.sequence)
        if client.draws.at(self.clock.now, 4) < 0.6:
            self._send_up(client, facts.Consumed(client.number, event.source, event.sequence))

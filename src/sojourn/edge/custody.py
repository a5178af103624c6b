"""What a broker keeps for one displayer that comes and goes, to deliver each event once (section 4.3).

Several brokers may watch the same subscriptions for one displayer: the one it is at, and those it left that
could not be told yet. When it connects, it uploads its log. The new broker asks every other one in the log
(`Fetch`) for what is kept there and for what was delivered there. Until the answer comes, an event of its own
is delivered only if the log proves that nobody else has delivered it: it was generated after the
displayer's last connection to each broker that has not answered (and `skew_s` more, for clocks that differ).
Everything else waits. So new events flow although an old broker is down, and none is delivered twice.

Why nothing is lost. The new broker subscribes before it asks, and both go along the same FIFO links of an
acyclic overlay. So when the old broker reads the question, every event that the new one does not get by
itself has come in. What an old broker gets afterwards on the displayer's behalf (another broker's late
answer) it passes on to where it last knew the displayer to be; that broker does the same, so an event is
always with a broker that the displayer's log still names, or on its way to one.

Events sent into a connection that broke are settled by the count of those received, which the log tells.

Limits: the queue has those of its policy; of delivered events the newest `delivered_max` are remembered.
A custody knows no other displayer, no routing and no clock.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from sojourn.edge.connections import Connection, Fetch, Handed, event_id
from sojourn.edge.properties import EventId
from sojourn.edge.queues import Dropped, PolicyQueue, Queued, QueuePolicy


class CustodyRules(NamedTuple):
    """How brokers look after displayers."""

    uses_log: bool = True
    """Whether the log lets events through before all others have answered; off, everything waits."""
    asks_others: bool = True
    """Whether other brokers are asked at all; off, each delivers what it has (and doubles it)."""
    skew_s: float = 0.0
    """By how much two clocks may differ."""
    delivered_max: int = 100_000


class Deliver(NamedTuple):
    """Send an event over the connection of that number, as its `position`-th."""

    number: int
    position: int
    item: Queued


class Settled(NamedTuple):
    """Tell the displayer: the log's lines of that broker below this connection are done with."""

    number: int
    broker: int


Effect = Deliver | Settled | Fetch | Handed | Dropped


class Custody:
    """One displayer as one broker sees it."""

    def __init__(self, client: int, broker: int, rules: CustodyRules, policy: QueuePolicy) -> None:
        self.client = client
        self.broker = broker
        self._rules = rules
        self.number = -1
        """The latest connection heard of."""
        self.at = broker
        """Where the displayer was last known to be."""
        self.here = False
        self._queue = PolicyQueue(policy)
        """What waits while the displayer is away."""
        self._queued_ids: set[EventId] = set()
        self._held: OrderedDict[EventId, Queued] = OrderedDict()
        """While it is here: what waits for other brokers' answers."""
        self._unanswered: dict[int, float] = {}
        """By broker that was asked and has not answered: when the displayer last left it."""
        self._sent: dict[int, list[Queued]] = {}
        """By connection: what was sent over it, in order, until the log tells how much arrived."""
        self._sent_ids: set[EventId] = set()
        self._delivered: OrderedDict[EventId, float] = OrderedDict()
        self.deliveries_held = 0
        """Events that had to wait for an answer."""

    @property
    def waiting(self) -> int:
        """Events kept, whatever they wait for."""
        return len(self._queue) + len(self._held)

    # What happens -----------------------------------------------------------------------------------

    def arrive(self, number: int, log: Iterable[Connection], policy: QueuePolicy, now: float) -> list[Effect]:
        """The displayer connected here and uploaded its log."""
        if number <= self.number:
            return []  # an attempt that a later one overtook
        lines = [line for line in log if line.number < number]
        self.number, self.at, self.here = number, self.broker, True
        mine = tuple((line.number, line.received) for line in lines if line.broker == self.broker)
        returned = self._settle(mine)
        kept, dropped = self._drain(now)
        self._queue = PolicyQueue(policy)
        self._sent[number] = []
        self._unanswered.clear()
        others: dict[int, list[Connection]] = {}
        for line in lines:
            if line.broker != self.broker:
                others.setdefault(line.broker, []).append(line)
        effects: list[Effect] = [*dropped, Settled(number, self.broker)]
        if self._rules.asks_others:
            for broker, theirs in others.items():
                self._unanswered[broker] = max(now if line.to_s is None else line.to_s for line in theirs)
                received = tuple((line.number, line.received) for line in theirs)
                effects.append(Fetch(broker, self.broker, self.client, number, received))
        self._hold([*returned, *kept])
        return effects + self._release()

    def lose(self, number: int, now: float) -> list[Effect]:
        """The connection broke."""
        if not self.here or number != self.number:
            return []
        self.here = False
        effects: list[Effect] = []
        held = list(self._held.values())
        self._held.clear()
        for item in held:
            effects += self._enqueue(item, now)
        return effects

    def event(self, item: Queued, now: float) -> list[Effect]:
        """An event came that the displayer wants."""
        if self._is_known(event_id(item)):
            return []
        if not self.here:
            return list(self._enqueue(item, now))
        self._hold([item])
        return self._release()

    def fetched(self, fetch: Fetch, now: float) -> list[Effect] | None:
        """Another broker has the displayer; None means that the question is out of date."""
        if fetch.number <= self.number:
            return None
        self.number, self.at, self.here = fetch.number, fetch.asker, False
        returned = self._settle(fetch.received)
        kept, dropped = self._drain(now)
        items = (*returned, *self._held.values(), *kept)
        self._held.clear()
        known = tuple(self._delivered.items())
        answer = Handed(fetch.asker, self.broker, self.client, fetch.number, items, known)
        return [*dropped, answer]

    def handed(self, handed: Handed, now: float) -> list[Effect]:
        """Another broker handed over what it kept."""
        for event, generated_s in handed.delivered:
            self._remember(event, generated_s)
            self._held.pop(event, None)
        if self.at != self.broker:
            # The displayer has gone on, and so must this. It counts for the connection it was asked for only.
            return [handed._replace(destination=self.at, holder=self.broker)]
        new = [item for item in handed.items if not self._is_known(event_id(item))]
        if not self.here:
            return [drop for item in new for drop in self._enqueue(item, now)]
        effects: list[Effect] = []
        if handed.number == self.number and self._unanswered.pop(handed.holder, None) is not None:
            effects.append(Settled(self.number, handed.holder))
        self._hold(new)
        return effects + self._release()

    # How --------------------------------------------------------------------------------------------

    def _settle(self, received: Iterable[tuple[int, int]]) -> list[Queued]:
        """Learn what arrived over past connections; what did not is returned."""
        lost = []
        for number, count in received:
            for position, item in enumerate(self._sent.pop(number, ())):
                self._sent_ids.discard(event_id(item))
                if position < count:
                    self._remember(event_id(item), item.generated_s)
                else:
                    lost.append(item)
        return lost

    def _enqueue(self, item: Queued, now: float) -> list[Dropped]:
        self._queued_ids.add(event_id(item))
        dropped = self._queue.add(item, now)
        self._queued_ids.difference_update(event_id(drop.item) for drop in dropped)
        return dropped

    def _drain(self, now: float) -> tuple[list[Queued], list[Dropped]]:
        self._queued_ids.clear()
        return self._queue.drain(now)

    def _hold(self, items: Iterable[Queued]) -> None:
        for item in items:
            self._held[event_id(item)] = item

    def _release(self) -> list[Effect]:
        effects: list[Effect] = []
        sent = self._sent[self.number]
        for event, item in list(self._held.items()):
            if event in self._delivered:
                del self._held[event]
            elif self._is_safe(item):
                del self._held[event]
                effects.append(Deliver(self.number, len(sent), item))
                sent.append(item)
                self._sent_ids.add(event)
            else:
                self.deliveries_held += 1
        return effects

    def _is_safe(self, item: Queued) -> bool:
        if not self._unanswered:
            return True
        last = max(self._unanswered.values())
        return self._rules.uses_log and item.generated_s > last + self._rules.skew_s

    def _is_known(self, event: EventId) -> bool:
        return any(event in kept for kept in (self._delivered, self._sent_ids, self._held, self._queued_ids))

    def _remember(self, event: EventId, generated_s: float) -> None:
        self._delivered[event] = generated_s
        if len(self._delivered) > self._rules.delivered_max:
            self._delivered.popitem(last=False)

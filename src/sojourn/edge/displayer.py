"""An Event Displayer: it carries its subscriptions and its log along, and shows what its filter lets through.

    effects = displayer.handle(fact, now)

It may be connected to one broker after the other, or to several replicas at once; each connection has a
number of its own. What arrives over a connection that has ended is not shown: the broker will learn from the
log that it did not arrive, and send it again. The log holds one line per connection that some broker may
still have to be told of; lines that brokers have settled are struck out.
"""

from typing import NamedTuple

from sojourn.edge.connections import Connection
from sojourn.edge.custody import Deliver, Settled
from sojourn.edge.filters import DisplayerError, FilterName, displayer_filter
from sojourn.edge.queues import Queued, QueuePolicy

LOG_MAX = 1000


class Connected(NamedTuple):
    """The displayer reached a broker."""

    broker: int


class Disconnected(NamedTuple):
    """The displayer lost a broker."""

    broker: int


class Arrived(NamedTuple):
    """Something came from a broker."""

    broker: int
    what: Deliver | Settled


class Upload(NamedTuple):
    """Tell the broker who is here, what is wanted, and where the displayer has been."""

    broker: int
    number: int
    subscriptions: tuple[int, ...]
    log: tuple[Connection, ...]
    policy: QueuePolicy


class Show(NamedTuple):
    """Show an event to the user."""

    item: Queued
    broker: int


Fact = Connected | Disconnected | Arrived
Effect = Upload | Show


class EventDisplayer:
    """One displayer: facts in, effects out."""

    def __init__(
        self,
        subscriptions: tuple[int, ...],
        filter_name: FilterName = "none",
        policy: QueuePolicy | None = None,
        log_max: int = LOG_MAX,
    ) -> None:
        if log_max < 1:
            raise DisplayerError(f"log_max must be at least 1, not {log_max}.")
        self.subscriptions = subscriptions
        self.filter = displayer_filter(filter_name)
        self.log: list[Connection] = []
        self._policy = policy or QueuePolicy()
        self._log_max = log_max
        self._number = 0
        self._open: dict[int, int] = {}
        """By broker: the number of the connection that lasts."""

    def handle(self, fact: Fact, now: float) -> list[Effect]:
        """Take one fact; the effects are to be carried out in their order."""
        match fact:
            case Connected(broker):
                return [self._on_connected(broker, now)]
            case Disconnected(broker):
                self._close(broker, now)
                return []
            case Arrived(broker, Deliver() as deliver):
                return self._on_deliver(broker, deliver)
            case Arrived(broker, Settled(number, of)):
                self.log = [line for line in self.log if line.broker != of or line.number >= number]
                return []
            case _:
                raise AssertionError(fact)

    def number_at(self, broker: int) -> int | None:
        """The number of the connection to a broker, if there is one."""
        return self._open.get(broker)

    def _on_connected(self, broker: int, now: float) -> Upload:
        self._close(broker, now)
        self._number += 1
        self._open[broker] = self._number
        # A replica it is still with is no broker it has left.
        told = tuple(line for line in self.log if line.to_s is not None)
        self.log.append(Connection(self._number, broker, now, None, 0))
        del self.log[: -self._log_max]
        return Upload(broker, self._number, self.subscriptions, told, self._policy)

    def _close(self, broker: int, now: float) -> None:
        number = self._open.pop(broker, None)
        self.log = [line._replace(to_s=now) if line.number == number else line for line in self.log]

    def _on_deliver(self, broker: int, deliver: Deliver) -> list[Effect]:
        if self._open.get(broker) != deliver.number:
            return []
        for place, line in enumerate(self.log):
            if line.number == deliver.number:
                assert line.received == deliver.position, "a connection delivers in order"
                self.log[place] = line._replace(received=line.received + 1)
        event = deliver.item.event
        return [Show(deliver.item, broker)] if self.filter.accept(event.source, event.sequence) else []

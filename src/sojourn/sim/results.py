"""What a run measured, as plain columns and a few sums over them.

A move is counted if its publisher left the old broker within the measured time. After the measured time no
publisher moves or publishes, but the world runs on until it is quiet, so that every counted move has an end;
a move that has none (the drain has a limit) is marked, and its time is how long it had lasted, a lower
bound. Hops and load are those of the measured time alone.
"""

from dataclasses import dataclass, field

from sojourn.routing.messages import Kind
from sojourn.sim.causes import KINDS, NEVER, Causes

HOP_NAMES = ("advertise", "unadvertise", "subscribe", "unsubscribe", "publish", "prefetch", "release")


@dataclass(slots=True)
class MoveTable:
    """One row per counted move, as columns of equal length."""

    number: list[int] = field(default_factory=list)
    publisher: list[int] = field(default_factory=list)
    from_broker: list[int] = field(default_factory=list)
    to_broker: list[int] = field(default_factory=list)
    left_s: list[float] = field(default_factory=list)
    arrived_s: list[float] = field(default_factory=list)
    rebuild_s: list[float] = field(default_factory=list)
    """From the new broker's receipt to the last advertisement or subscription processed; 0 without work."""
    visible_wait_s: list[float] = field(default_factory=list)
    """From the publisher's arrival, its own link included, to the standing tree; 0 if it stood by then."""
    teardown_s: list[float] = field(default_factory=list)
    finished: list[bool] = field(default_factory=list)
    """Whether everything the move set off was processed before the world stopped."""
    advertise: list[int] = field(default_factory=list)
    unadvertise: list[int] = field(default_factory=list)
    subscribe: list[int] = field(default_factory=list)
    unsubscribe: list[int] = field(default_factory=list)
    prefetch: list[int] = field(default_factory=list)
    client_messages: list[int] = field(default_factory=list)
    """What the publisher sent over its own link, in none of the counts above."""

    def __len__(self) -> int:
        return len(self.number)

    @property
    def hops(self) -> list[int]:
        """Each move's hops between brokers, prefetches included."""
        columns = (self.advertise, self.unadvertise, self.subscribe, self.unsubscribe, self.prefetch)
        return [sum(row) for row in zip(*columns, strict=True)]


@dataclass(slots=True)
class BrokerLoad:
    """What one broker had to do in the measured time."""

    broker: int
    handled: int
    busy_s: float
    utilisation: float
    queue_max: int
    queue_mean: float


@dataclass(slots=True, kw_only=True)
class RunResult:
    """Everything one run measured."""

    warmup_s: float
    duration_s: float
    moves: MoveTable
    hops_by_kind: dict[str, int]
    """Hops between brokers within the measured time."""
    hops_total: int
    """Hops between brokers of the whole run, warm-up and drain included, set-up not."""
    setup_hops: int
    publications: int
    """Events published within the measured time."""
    deliveries_expected: int
    """What the oracle expects of them: the subscribers whose interest matches."""
    delivered: int
    """What reached subscribers until the world was quiet."""
    delivered_in_time: int
    """What reached them within the measured time."""
    duplicates: int
    """Deliveries of an event to a subscriber that had it already."""
    load: list[BrokerLoad]
    drained_s: float
    """Simulated time after which the world was quiet, or was stopped."""
    quiet: bool
    """Whether the world came to rest; if not, unfinished moves are lower bounds."""
    backlog_max: int
    """The most messages that ever waited in all brokers together."""

    @property
    def delivery_ratio(self) -> float:
        """Deliveries over what the oracle expects; 1 if it expects none."""
        return self.delivered / self.deliveries_expected if self.deliveries_expected else 1.0

    @property
    def tree_messages(self) -> int:
        """Hops that build and tear down trees within the measured time, prefetches included."""
        names = ("advertise", "unadvertise", "subscribe", "unsubscribe", "prefetch", "release")
        return sum(self.hops_by_kind[name] for name in names)

    @property
    def rebuild_mean_s(self) -> float:
        """The mean rebuilding time of the counted moves."""
        return _mean(self.moves.rebuild_s)

    @property
    def visible_wait_mean_s(self) -> float:
        """The mean time a publisher had to wait after its arrival."""
        return _mean(self.moves.visible_wait_s)

    @property
    def teardown_mean_s(self) -> float:
        """The mean teardown time of the counted moves."""
        return _mean(self.moves.teardown_s)

    @property
    def unfinished(self) -> int:
        """Counted moves that had not ended when the world stopped."""
        return self.moves.finished.count(False)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def spell_s(causes: Causes, cause: int, now: float, waiting_since: dict[int, float]) -> tuple[float, bool]:
    """How long a cause was active, and whether it is over."""
    active = causes.active_s[cause]
    if causes.pending[cause]:
        return active + now - causes.opened_s[cause], False
    if cause in waiting_since:
        return active + now - waiting_since[cause], False
    return active, True


def add_move(
    table: MoveTable,
    causes: Causes,
    number: int,
    move: tuple[int, float, float, int, int],
    now: float,
    waiting_since: dict[int, float],
) -> None:
    """Add the row of one move; `move` is (publisher, left_s, arrived_s, from, to)."""
    build, teardown = 2 * number, 2 * number + 1
    publisher, left_s, arrived_s, from_broker, to_broker = move
    rebuild_s, is_built = spell_s(causes, build, now, waiting_since)
    teardown_s, is_torn_down = spell_s(causes, teardown, now, waiting_since)
    ended = causes.ended_s[build] if is_built else now
    hops = causes.hops
    table.number.append(number)
    table.publisher.append(publisher)
    table.left_s.append(left_s)
    table.arrived_s.append(arrived_s)
    table.from_broker.append(from_broker)
    table.to_broker.append(to_broker)
    table.rebuild_s.append(rebuild_s)
    table.visible_wait_s.append(max(0.0, ended - arrived_s) if ended != NEVER else 0.0)
    table.teardown_s.append(teardown_s)
    table.finished.append(is_built and is_torn_down)
    for kind, column in (
        (Kind.ADVERTISE, table.advertise),
        (Kind.UNADVERTISE, table.unadvertise),
        (Kind.SUBSCRIBE, table.subscribe),
        (Kind.UNSUBSCRIBE, table.unsubscribe),
        (Kind.PREPARE, table.prefetch),
    ):
        column.append(hops[build * KINDS + kind] + hops[teardown * KINDS + kind])
    table.client_messages.append(causes.client_hops[build])

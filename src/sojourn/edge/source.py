"""An Event Source that comes and goes: what it sends, keeps back, buffers and discards (section 3.1 and 3.2).

    effects = source.handle(fact, now)

While connected, a source sends its events at once, but for those that the combined expression rejects if it
quenches. While disconnected it keeps everything it generates, wanted or not, since a subscription it has not
heard of may want it. When the buffer is full it discards: with `oldest`, the oldest event; with `quench`,
the oldest that its last known expression rejects, and only if there is none, the oldest.

On connecting, a quenching source names the version it knows and waits for the broker's answer before it
uploads: what nobody wants by now need not be sent. If the answer does not come within `answer_timeout_s`, it
uploads all. Events go up in the order they were generated, so a source's sequence never runs backwards.
"""

from collections import OrderedDict
from typing import Literal, NamedTuple

from sojourn.edge.quench import UNKNOWN, QuenchFilter, QuenchUpdate
from sojourn.errors import SojournError
from sojourn.interest.events import Event

Discarding = Literal["oldest", "quench"]


class SourceError(SojournError):
    """A source cannot be set up as asked."""


# ------------------------------------------------------------------------------ facts


class Generated(NamedTuple):
    """The variable that the source watches has changed."""

    event: Event
    size_bytes: int


class Connected(NamedTuple):
    """The source reached a broker."""


class Disconnected(NamedTuple):
    """The source lost its broker."""


class Quenched(NamedTuple):
    """The broker told the combined expression, or what changed in it."""

    update: QuenchUpdate


class AnswerTimedOut(NamedTuple):
    """The broker did not answer in time."""

    token: int


# ------------------------------------------------------------------------------ effects


class Publish(NamedTuple):
    """Send an event to the broker."""

    event: Event
    size_bytes: int


class AskQuench(NamedTuple):
    """Ask the broker for what changed since a version, and call back after a while."""

    version: int
    token: int
    timeout_s: float


class Discard(NamedTuple):
    """An event is let go for ever."""

    event: Event
    reason: Literal["quenched", "buffer_full"]


Fact = Generated | Connected | Disconnected | Quenched | AnswerTimedOut
Effect = Publish | AskQuench | Discard


class SourceRules(NamedTuple):
    """How a source behaves."""

    quench: bool = False
    discarding: Discarding = "oldest"
    buffer_events_max: int = 1000
    buffer_bytes_max: int = 1 << 20
    answer_timeout_s: float = 5.0


class EventSource:
    """One source: facts in, effects out."""

    def __init__(self, rules: SourceRules | None = None) -> None:
        self.rules = rules or SourceRules()
        _check(self.rules)
        self.filter = QuenchFilter()
        self.connected = False
        self._waiting = False
        """Whether the buffer waits for the broker's answer."""
        self._token = 0
        self._buffer: OrderedDict[int, Generated] = OrderedDict()
        self._bytes = 0
        self._next_key = 0
        self._rejected: OrderedDict[int, None] | None = None
        """The buffered events that the known expression rejects; None until the buffer first overflows."""

    @property
    def buffered(self) -> int:
        """Events in the buffer."""
        return len(self._buffer)

    def handle(self, fact: Fact, now: float) -> list[Effect]:  # noqa: ARG002  the shape of all cores
        """Take one fact; the effects are to be carried out in their order."""
        match fact:
            case Generated():
                return self._on_generated(fact)
            case Connected():
                return self._on_connected()
            case Disconnected():
                self.connected = self._waiting = False
                return []
            case Quenched(update):
                return self._on_quenched(update)
            case AnswerTimedOut(token):
                return self._upload() if self._waiting and token == self._token else []

    def _on_generated(self, fact: Generated) -> list[Effect]:
        if self.connected and not self._waiting:
            return [self._sent_or_quenched(fact)]
        return self._keep(fact)

    def _on_connected(self) -> list[Effect]:
        self.connected = True
        if not self.rules.quench:
            return self._upload()
        self._waiting = True
        return [self._ask(self.filter.version)]

    def _on_quenched(self, update: QuenchUpdate) -> list[Effect]:
        if not self.filter.apply(update):
            return [self._ask(UNKNOWN)]
        self._rejected = None  # judged by an expression that is no longer known
        return self._upload() if self._waiting else []

    def _ask(self, version: int) -> AskQuench:
        self._token += 1
        return AskQuench(version, self._token, self.rules.answer_timeout_s)

    def _sent_or_quenched(self, fact: Generated) -> Effect:
        if self.rules.quench and not self.filter.wants(fact.event):
            return Discard(fact.event, "quenched")
        return Publish(fact.event, fact.size_bytes)

    def _upload(self) -> list[Effect]:
        self._waiting = False
        effects = [self._sent_or_quenched(fact) for fact in self._buffer.values()]
        self._buffer.clear()
        self._rejected = None
        self._bytes = 0
        return effects

    # The buffer -------------------------------------------------------------------------------------

    def _keep(self, fact: Generated) -> list[Effect]:
        self._buffer[self._next_key] = fact
        self._bytes += fact.size_bytes
        if self._rejected is not None and not self.filter.wants(fact.event):
            self._rejected[self._next_key] = None
        self._next_key += 1
        discarded: list[Effect] = []
        while len(self._buffer) > self.rules.buffer_events_max or self._bytes > self.rules.buffer_bytes_max:
            gone = self._buffer.pop(self._least_wanted())
            self._bytes -= gone.size_bytes
            discarded.append(Discard(gone.event, "buffer_full"))
        return discarded

    def _least_wanted(self) -> int:
        if self.rules.discarding == "quench":
            if self._rejected is None:
                self._rejected = OrderedDict(
                    (key, None) for key, fact in self._buffer.items() if not self.filter.wants(fact.event)
                )
            if self._rejected:
                return self._rejected.popitem(last=False)[0]
        return next(iter(self._buffer))


def _check(rules: SourceRules) -> None:
    if rules.discarding not in ("oldest", "quench"):
        raise SourceError(f"discarding may be oldest or quench, not {rules.discarding!r}.")
    for name in ("buffer_events_max", "buffer_bytes_max"):
        if getattr(rules, name) < 1:
            raise SourceError(f"{name} must be at least 1, not {getattr(rules, name)}.")
    if rules.discarding == "quench" and not rules.quench:
        raise SourceError("discarding by quench needs quench to be on, or nothing is known to discard by.")

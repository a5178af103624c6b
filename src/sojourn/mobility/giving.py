"""Everything that is stored for a subscriber goes to whoever has the subscriber: the client, or a broker.

That happens when a holding is *complete*: it has all that the client has not consumed. Until then it holds
everything back (`transfers.py` says why). A holding whose wait came to nothing is completed *short*.
"""

from collections.abc import Iterator, Sequence

from sojourn.mobility.copies import State, Turn, Wait
from sojourn.mobility.holdings import Holding, in_order
from sojourn.mobility.keeping import Shelf
from sojourn.mobility.late import Late, Verdict
from sojourn.mobility.post import Post
from sojourn.mobility.queues import Queues
from sojourn.mobility.schemes import Scheme
from sojourn.routing.effects import Deliver, Effects, Ready
from sojourn.routing.messages import Forward, ForwardEnd, Marks, Outcome, Publish

FORWARD_EVENTS_MAX = 64
"""Events in one message between brokers."""
FORWARD_BYTES_MAX = 1 << 20
"""Bytes of them, unless one alone has more: a driver's frames have a limit, and others wait behind them."""
TOO_LATE = "came too late"


class Giving:
    """Gives out what is stored."""

    __slots__ = ("_effects", "_post", "_queues", "_scheme", "_shelf")

    def __init__(self, scheme: Scheme, shelf: Shelf, queues: Queues, post: Post, effects: Effects) -> None:
        self._scheme = scheme
        self._shelf = shelf
        self._queues = queues
        self._post = post
        self._effects = effects

    def complete(self, holding: Holding, *, short: bool = False) -> None:
        """Nothing is waited for any more: put what came in order, and serve whoever waits."""
        holding.waits.clear()
        holding.complete = True
        if holding.forwarded:
            self._queues.settle(holding)
        if holding.state is State.PRESENT:
            self._shelf.rewind(holding, Wait.STOP)
            self.serve(holding, complete=not short)
        outcome = Outcome.UNKNOWN if short else Outcome.COMPLETE
        for broker in sorted(holding.acked):
            self.give(holding, broker, holding.epoch, holding.marks, outcome)
        holding.acked.clear()
        if holding.successor is not None:
            moved = holding.successor
            marks = moved.marks if moved.marks is not None else holding.marks
            self.give(holding, moved.sender, moved.epoch, marks, outcome)
            self._shelf.turn(holding, Turn.HANDED_OVER, moved.cause)

    def give_up(self, stay: Holding) -> None:
        """Patience has run out: serve with what there is, and be prepared for what comes late."""
        stay.late = Late.of(stay.waits, stay.marks, stay.forwarded, stay.queue)
        self.complete(stay, short=True)

    # To the client -----------------------------------------------------------------------------------

    def serve(self, stay: Holding, *, complete: bool) -> None:
        """Deliver what is stored, and from now on what comes."""
        client = stay.client
        self._queues.settle(stay)
        ceiling = dict(stay.marks) if self._scheme.follows else {}
        for publication in stay.queue:
            self._effects.deliveries.append(Deliver((client,), publication))
            ceiling[publication.source] = publication.sequence
        if stay.late is not None:
            stay.late.note(stay.queue, stay.marks)
        stay.ceiling = ceiling
        stay.checks = bool(ceiling) or stay.late is not None
        stay.ready = True
        if not self._scheme.acknowledged:
            self._queues.empty(stay)
            self._shelf.set_open(stay, is_open=not stay.checks)
        self._effects.ready.append(Ready(client, stay.epoch, int(stay.how), complete))

    def take_late(self, stay: Holding, publications: Sequence[Publish]) -> None:
        """The old broker's events came after the stay was served without them: give those still in order."""
        late = stay.late
        assert late is not None, "only who gave up gets something late"
        if not stay.ready:
            late.note(stay.queue, stay.marks)
        for publication in publications:
            verdict = late.judge(publication, stay.marks)
            if verdict is Verdict.LOST:
                self._queues.drop(stay.client, [publication], TOO_LATE)
            elif verdict is Verdict.IN_TIME:
                if stay.ready:
                    stay.ceiling[publication.source] = publication.sequence
                    self._effects.deliveries.append(Deliver((stay.client,), publication))
                if self._scheme.acknowledged or not stay.ready:
                    self._queues.take_in_late(stay, publication)

    def drop_late(self, client: int, late: Late, publications: Sequence[Publish]) -> None:
        """The old broker's events came after the stay was over: report those that it did not have."""
        lost = [one for one in publications if late.judge(one, {}) is not Verdict.KNOWN]
        self._queues.drop(client, lost, TOO_LATE)

    # To a broker -------------------------------------------------------------------------------------

    def give(self, holding: Holding, to: int, epoch: int, marks: Marks, outcome: Outcome) -> None:
        """Send what is stored beyond the marks, and the end."""
        for batch in _batches(in_order(holding.queue, marks), self._scheme.event_bytes):
            self._post.send(
                Forward(
                    destination=to,
                    sender=self._post.number,
                    client=holding.client,
                    epoch=epoch,
                    cause=holding.cause,
                    publications=batch,
                )
            )
        self.end(holding.client, to, epoch, outcome, holding.marks, holding.cause)

    def end(self, client: int, to: int, epoch: int, outcome: Outcome, marks: Marks, cause: int) -> None:
        """Send FORWARD-END."""
        self._post.send(
            ForwardEnd(
                destination=to,
                sender=self._post.number,
                client=client,
                epoch=epoch,
                cause=cause,
                outcome=int(outcome),
                marks=dict(marks),
            )
        )


def _batches(publications: list[Publish], event_bytes: int) -> Iterator[tuple[Publish, ...]]:
    """The events in groups that fit one message each, at least one event a group."""
    batch: list[Publish] = []
    batch_bytes = 0
    for publication in publications:
        size = publication.size or event_bytes
        if batch and (len(batch) == FORWARD_EVENTS_MAX or batch_bytes + size > FORWARD_BYTES_MAX):
            yield tuple(batch)
            batch, batch_bytes = [], 0
        batch.append(publication)
        batch_bytes += size
    if batch:
        yield tuple(batch)

"""Everything that is stored for a subscriber goes to whoever has the subscriber: the client, or a broker.

That happens when a holding is *complete*: it has all that the client has not consumed. Until then it holds
everything back (`transfers.py` says why). A holding whose wait came to nothing is completed *short*.

Where a driver says so (`part_max`), much is given in parts, one each time that the driver says so
(`go_on`), so that others have their turn in between. What comes in between is stored behind the rest, as for
a subscriber that is not ready yet. Three things go in parts:

| what | how far it is |
| --- | --- |
| a client that arrived is given its queue | `Holding.served`; it is ready after the last part |
| the subscriber's next broker is given the queue | what was given is let go; the stay is LEAVING so long |
| a copy is given the queue of a stay that is AWAY | `Holding.gives`; nothing is consumed meanwhile |

If the client breaks off, comes back or moves on before the end, what was under way is not gone on with: what
it has not consumed is still stored, and whoever has the client next is given all of that.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

from sojourn.mobility.copies import State, Turn, Wait
from sojourn.mobility.holdings import NOT_SERVED, Holding, in_order
from sojourn.mobility.keeping import Shelf
from sojourn.mobility.late import Late, Verdict
from sojourn.mobility.memory import Moment
from sojourn.mobility.post import Post
from sojourn.mobility.queues import Queues
from sojourn.mobility.schemes import Scheme
from sojourn.routing.effects import Deliver, Effects, Ready
from sojourn.routing.messages import Forward, ForwardEnd, Marks, Moved, Outcome, Publish

FORWARD_EVENTS_MAX = 64
"""Events in one message between brokers."""
FORWARD_BYTES_MAX = 1 << 20
"""Bytes of them, unless one alone has more: a driver's frames have a limit, and others wait behind them."""
TOO_LATE = "came too late"
SIGNS = 4
"""How many signs are given while patience lasts, at the most."""


class Giving:
    """Gives out what is stored."""

    __slots__ = ("_effects", "_moment", "_post", "_queues", "_scheme", "_shelf", "part_max", "under_way")

    def __init__(
        self, scheme: Scheme, shelf: Shelf, queues: Queues, post: Post, moment: Moment, effects: Effects
    ) -> None:
        self._scheme = scheme
        self._moment = moment
        self._shelf = shelf
        self._queues = queues
        self._post = post
        self._effects = effects
        self.part_max: int | None = None
        """How many events are given at once; None for all of them."""
        self.under_way: deque[Holding] = deque()
        """Those whose events are given in parts, the one whose turn it is first."""

    def complete(self, holding: Holding, *, short: bool = False) -> None:
        """Nothing is waited for any more: put what came in order, and serve whoever waits."""
        holding.waits.clear()
        holding.complete = True
        holding.is_short = holding.is_short or short
        if holding.forwarded and holding.state is not State.PRESENT:
            self._queues.settle(holding)  # else that is done by who serves it
        if holding.state is State.PRESENT:
            self._shelf.rewind(holding, Wait.STOP)
            self.serve(holding)
        for broker in sorted(holding.acked):
            self.give_copy(holding, broker)
        holding.acked.clear()
        if holding.successor is not None:
            self.hand_over(holding)

    def give_up(self, stay: Holding) -> None:
        """Patience has run out: serve with what there is, and be prepared for what comes late."""
        stay.late = Late.of(stay.waits, stay.marks, stay.forwarded, stay.queue)
        self.complete(stay, short=True)

    # To the client -----------------------------------------------------------------------------------

    def serve(self, stay: Holding) -> None:
        """Deliver what is stored, and from now on what comes."""
        self._queues.settle(stay)
        stay.ceiling = dict(stay.marks) if self._scheme.follows else {}
        stay.served = 0
        if self.is_long(stay):
            self._effects.begun.append(stay.client)
            self.under_way.append(stay)
        self._serve_part(stay)

    def _serve_part(self, stay: Holding) -> None:
        """Deliver some of what is stored; after the last of it the client is ready."""
        client, ceiling, marks = stay.client, stay.ceiling, stay.marks
        most = self.part_max if self.is_long(stay) else None
        part = list(islice(stay.queue, stay.served, None if most is None else stay.served + most))
        for publication in part:
            source, sequence = publication.source, publication.sequence
            # Else it came twice meanwhile, or the client had it on its way before, and has answered.
            if sequence > ceiling.get(source, -1) and sequence > marks.get(source, -1):
                self._effects.deliveries.append(Deliver((client,), publication))
                ceiling[source] = sequence
        stay.served += len(part)
        if stay.served < len(stay.queue):
            return
        stay.served = NOT_SERVED
        if stay.late is not None:
            stay.late.note(stay.queue, stay.marks)
        stay.checks = bool(ceiling) or stay.late is not None
        stay.ready = True
        if not self._scheme.acknowledged:
            self._queues.empty(stay)
            self._shelf.set_open(stay, is_open=not stay.checks)
        self._effects.ready.append(Ready(client, stay.epoch, int(stay.how), not stay.is_short))
        stay.is_short = False  # said once

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

    def give(self, holding: Holding, to: int, epoch: int, marks: Marks) -> None:
        """Send what is stored beyond the marks, and the end."""
        self._send(holding, to, epoch, in_order(holding.queue, marks))
        self.end(holding.client, to, epoch, _outcome(holding), holding.marks, holding.cause)

    def give_copy(self, stay: Holding, to: int) -> None:
        """Bring a copy up to date that another broker has activated."""
        if not self.is_long(stay):
            self.give(stay, to, stay.epoch, stay.marks)
            return
        if not stay.gives:
            self._queues.settle(stay)
            self.under_way.append(stay)
        stay.gives[to] = 0

    def hand_over(self, stay: Holding) -> None:
        """Send what is stored to the broker that a LEAVING subscriber is with, and forget it."""
        moved = stay.successor
        assert moved is not None, "only who was asked hands over"
        if self.is_long(stay):
            self._queues.settle(stay)
            self.under_way.append(stay)
            return
        self.give(stay, moved.sender, moved.epoch, _marks_at(stay))
        self._shelf.turn(stay, Turn.HANDED_OVER, moved.cause)

    def is_long(self, holding: Holding) -> bool:
        """Whether what is stored for a subscriber is too much to be given at once."""
        return self.part_max is not None and len(holding.queue) > self.part_max

    def go_on(self) -> None:
        """Give a part of what is under way."""
        holding, most = self.under_way.popleft(), self.part_max
        assert most is not None, "somebody said how long parts are"
        if holding.state is State.PRESENT and holding.served != NOT_SERVED:
            self._serve_part(holding)
            goes_on = holding.served != NOT_SERVED
        elif holding.state is State.LEAVING and holding.complete:
            goes_on = self._hand_over_part(holding, most)
        elif holding.state is State.AWAY and holding.gives:
            goes_on = self._give_copy_part(holding, most)
        else:
            return  # its client broke off, came back or moved on
        if goes_on:
            self.under_way.append(holding)

    def _hand_over_part(self, stay: Holding, most: int) -> bool:
        """Send some of what the subscriber's next broker asked for; say whether there is more."""
        moved, marks = stay.successor, _marks_at(stay)
        assert moved is not None, "only who was asked hands over"
        part = self._queues.take_out(stay, most)
        beyond = [one for one in part if one.sequence > marks.get(one.source, -1)]
        self._send(stay, moved.sender, moved.epoch, beyond)
        stay.heard = True
        if stay.queue:
            return True
        self.end(stay.client, moved.sender, moved.epoch, _outcome(stay), stay.marks, stay.cause)
        self._shelf.turn(stay, Turn.HANDED_OVER, moved.cause)
        return False

    def _give_copy_part(self, stay: Holding, most: int) -> bool:
        """Send some of what a copy lacks; say whether there is more, for this one or another."""
        to, at = next(iter(stay.gives.items()))
        part = list(islice(stay.queue, at, at + most))
        self._send(stay, to, stay.epoch, part)
        del stay.gives[to]
        if at + len(part) < len(stay.queue):
            stay.gives[to] = at + len(part)  # after the others
        else:
            self.end(stay.client, to, stay.epoch, _outcome(stay), stay.marks, stay.cause)
        return bool(stay.gives)

    def _send(self, holding: Holding, to: int, epoch: int, publications: list[Publish]) -> None:
        for batch in _batches(publications, self._scheme.event_bytes):
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

    def hear(self, holding: Holding) -> None:
        """What a holding waits for is under way: so is what the subscriber's next broker waits for."""
        holding.heard = True
        if holding.successor is not None:
            since_s = self._moment.now - holding.signed_s
            # A clock that was set back is no reason to be silent.
            if not 0 <= since_s < self._scheme.patience_s / SIGNS:
                self.sign(holding, holding.successor)

    def sign(self, stay: Holding, moved: Moved) -> None:
        """Tell the broker that a LEAVING subscriber is with that its events are not here yet."""
        if not self._scheme.signs:
            return
        stay.signed_s = self._moment.now
        self._post.send(
            Forward(
                destination=moved.sender,
                sender=self._post.number,
                client=stay.client,
                epoch=moved.epoch,
                cause=moved.cause,
                publications=(),
            )
        )

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


def _marks_at(stay: Holding) -> Marks:
    """How far the client had come when it arrived at the next broker, as far as that is known."""
    moved = stay.successor
    return stay.marks if moved is None or moved.marks is None else moved.marks


def _outcome(stay: Holding) -> Outcome:
    return Outcome.UNKNOWN if stay.is_short else Outcome.COMPLETE


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

"""What the oracle knows of shared subscriptions: each event of a group is for one of its members.

- An event that was acknowledged arrives at some member, if one that was granted its subscription before the
  event was sent, and that wants it, has been a member ever since.
- It arrives at one member alone. A second one gets it only marked as such (`sojourn-again`), and only if the
  first is a member no longer: it left the group, or its session ended. And never if the first had long had
  the time to acknowledge it.
- At one member events that were sent once, on one connection, come in the order in which they were sent,
  unless they are so marked.

What a broker's loss of memory excuses is excused here too, wherever that broker was: any may have had to tell
of an event, or of a member.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sojourn.sim.live_check.events import Event

if TYPE_CHECKING:
    from sojourn.sim.live_check.oracle import Diary, Granted, Oracle, Session


ACKNOWLEDGED_S = 7.0
"""Who stays connected for so long after an event came has acknowledged it, and its broker knows."""


class Arrival(NamedTuple):
    """An event that came to a member of a group."""

    diary: Diary
    session: Session
    fitting: tuple[Granted, ...]
    """The subscriptions by which it may have come, one after the other; none where that is in doubt."""
    is_again: bool
    """Whether it was marked as one that another member may have had."""
    sent_s: float
    at_s: float

    @property
    def is_over(self) -> bool:
        """Whether the member is one no longer, as far as its client knows."""
        if not self.fitting or self.diary.session is not self.session or self.diary.may_have_ended:
            return True
        if all(one.ended_s is None for one in self.fitting):
            return False
        # It asked for something else, or no more; and for the same again before it was told of that.
        last = self.fitting[-1]
        return last.ended_s is not None or last.granted_s is None or self.sent_s <= last.granted_s

    @property
    def is_acknowledged(self) -> bool:
        """Whether the client had the time to acknowledge it."""
        until_s, diary = self.at_s + ACKNOWLEDGED_S, self.diary
        if diary.now <= until_s or diary.was_deaf(self.at_s, until_s):
            return False
        return not any(self.at_s < one <= until_s for one in diary.leavings)


class Groups:
    """What came to the members of all groups."""

    def __init__(self) -> None:
        self.arrivals: dict[tuple[str, str], list[Arrival]] = {}
        """By group and event, in the order of time."""
        self.judged: set[tuple[str, str]] = set()
        """What was promised to a group, and looked for."""


class Memberships:
    """One client as a member of groups."""

    def __init__(self, oracle: Oracle, diary: Diary) -> None:
        self._oracle, self._diary = oracle, diary
        self._last: dict[tuple[Session, str, str, int], int] = {}
        """By session, group, publisher and its connection: the last place in order that arrived."""

    def arrived(
        self, group: str, name: str, topic: str, qos: int, *, is_repeated: bool, is_again: bool
    ) -> None:
        """Note an event that came to a member of a group, and judge it."""
        diary, oracle = self._diary, self._oracle
        event, session = oracle.events.get(name), diary.session
        assert session is not None, "only who was welcomed is sent anything"
        if event is None or event.topic != topic:
            diary.fail("unknown", f"was sent {name!r} on {topic} for {group}, which nobody published")
            return
        oracle.deliveries += 1
        oracle.world.counts["events of groups"] += 1
        oracle.world.counts["events of groups again"] += is_again
        fitting = [one for one in session.subscriptions if one.wish.pattern == group and one.wish.fits(event)]
        if not fitting and not session.is_doubtful:
            diary.fail("unasked", f"was sent {name} for {group}, which it never asked for")
        if fitting and not session.is_doubtful and qos > min(event.qos, max(one.wish.qos for one in fitting)):
            diary.fail("qos", f"was sent {name} for {group} at QoS {qos}")
        before = oracle.groups.arrivals.setdefault((group, name), [])
        # A client that does not know whether its session is the same has forgotten what of QoS 2 it has.
        is_second = is_repeated and any(
            one.diary is diary and (qos == 1 or (session.is_doubtful and one.session is not session))
            for one in before
        )
        if not before and not is_again:
            self._judge_order(session, group, event)
        sent_s = event.sends[0].at_s if event.sends else 0.0
        arrival = Arrival(diary, session, tuple(fitting), is_again, sent_s, diary.now)
        if not is_second:
            self._judge_sole(group, event, [*before, arrival])
            before.append(arrival)

    def _judge_sole(self, group: str, event: Event, arrivals: list[Arrival]) -> None:
        """Judge an event that came to several: sent one by one, it may come in another order."""
        first, unmarked = arrivals[0], sum(not one.is_again for one in arrivals)
        members = sum(not one.is_over for one in arrivals)
        acknowledged = sum(one.is_acknowledged for one in arrivals)
        if len(arrivals) == 1 or event.may_repeat or (unmarked <= 1 and members <= 1 and not acknowledged):
            return
        if self._is_excused(event):
            self._oracle.excused["repetition in a group"] += 1
            return
        self._diary.fail(
            "shared",
            f"was sent {event.name} for {group}, as were {len(arrivals) - 1} before, the first of them "
            f"{first.diary.name} at {first.at_s:.3f} s; {unmarked} unmarked, {members} still members, "
            f"{acknowledged} acknowledged",
        )

    def _judge_order(self, session: Session, group: str, event: Event) -> None:
        if len(event.sends) != 1:
            return
        key = session, group, event.publisher, event.sends[0].connection
        last = self._last.get(key, 0)
        if event.order > last:
            self._last[key] = event.order
        elif self._is_excused(event):
            self._oracle.excused["order in a group"] += 1
        else:
            self._diary.fail("order", f"was sent {event.name} for {group} after {event.publisher}.{last}")

    def judge(self) -> None:
        """Look for every event that was promised to a group because this client is a member of it."""
        session, oracle = self._diary.session, self._oracle
        if session is None:
            return
        for one in session.subscriptions:
            if one.wish.is_shared:
                for event in oracle.events.values():
                    if event.acked_s is not None and event.qos and not event.is_doubtful:
                        self._judge_promise(one, event)

    def _judge_promise(self, one: Granted, event: Event) -> None:
        oracle, key = self._oracle, (one.wish.pattern, event.name)
        if key in oracle.groups.judged or not self._diary.is_promised(one, event):
            return
        oracle.groups.judged.add(key)
        oracle.promises += 1
        oracle.world.counts["promises to groups"] += 1
        if key in oracle.groups.arrivals:
            return
        if self._is_excused(event):
            oracle.excused["event of a group"] += 1
            return
        self._diary.fail(
            "lost",
            f"and all of {one.wish.pattern} never got {event.name} ({event.topic}, {event.value}, QoS "
            f"{event.qos}), sent at {event.sends[0].at_s:.3f} s to {event.sends[0].broker}",
        )

    def _is_excused(self, event: Event) -> bool:
        everybody = set(range(self._oracle.world.script.brokers))
        began_s = event.sends[0].at_s if event.sends else 0.0
        return self._oracle.forgetting(everybody, began_s, self._diary.now) is not None

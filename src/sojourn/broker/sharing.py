"""Shared subscriptions in a network of brokers: each event of a group goes to one of its members.

Who chooses is the broker that an event was published at. It knows all members, since every broker is told of
their addresses as of any interest (`mqtt/members.py`). It *picks* a member, and sends the event to that
address. From there on it is an event like any other for one session: it is stored for it, moves with it, and
repetitions of it are known by its source and number, which are the event's own and the member's.

Who picked remembers that until the member's broker says that it is `Settled`:

- *done*: acknowledged, or dropped for a reason that no other member would mend;
- *declined*: the member has no room, may not see it or takes none so large. Somebody else is picked who was
  not asked before, those first who did not decline what they were sent last. An event that all declined, or
  `ASKED_MAX` of them, is dropped, and counted.

A member that ends leaves what it had not acknowledged, and each such event is picked again, in parts: with a
number of its own, since it comes after later ones, and marked `sojourn-again`, since the one before may have
had it.
What its broker had to say of events it said before it withdrew the address, over the same links, which are
FIFO: so nothing that was acknowledged is picked again.

Members whose clients are connected, to a broker in reach, come first. In turns for events of QoS 1 and 2; for
those of QoS 0, of which no journal tells, by their number.

While a neighbour has not told what it wants (`Router.untold`) there may be groups behind it that nobody here
knows of. Events of that time are kept within a limit, and picked for such groups once it has told.

A session may end where its client begins anew while it is on its way to another broker, and be found there
after all. What was sent to where it ended is with nobody then. The broker that served it there says so when
it is asked for what it stored (`Moved.last_epoch`), or nobody answers; so the session's client is told that
something is lacking, and is another member from then on (`Clients._rejoin`): its old address ends, as above.

What is not promised: order among an event that is picked again, or was kept so, and others; and that members
get the same number of events. An event that waits for a member at a broker that is down waits on, until that
broker is back. Of picks beyond `queue_bytes_max_all` the oldest are forgotten, and are not made again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from sojourn.broker.carried import Carried
from sojourn.broker.crews import AskedConditions, Crew
from sojourn.broker.links import Links
from sojourn.interest import Filter
from sojourn.mqtt import costs
from sojourn.mqtt.conventions import AGAIN
from sojourn.mqtt.core import Core
from sojourn.mqtt.members import (
    Group,
    Member,
    addressed_by,
    client_of,
    group_of,
    is_member,
    member_of,
    source_for,
    told_by,
)
from sojourn.mqtt.message import Message
from sojourn.routing.router import Router

NOBODY_LEFT = "no member of the group is left"
ALL_DECLINED = "every member of the group declined"
NETWORK_LEFT = "member of a group in a network that was left"
"""Why an event that a member elsewhere had not acknowledged may be lost: the most that can be."""
UNTOLD_GROUPS = "neighbour had not said which groups it has"
"""Why an event is not kept for groups that may turn up."""
KEPT_BYTES_MAX = 16 << 20
"""Bytes of events that are kept for groups that may turn up."""
ASKED_MAX = 16
"""How many members may decline an event before it is given up: each costs as much as an event."""
DECLINED_OFTEN = f"{ASKED_MAX} members of the group declined"
AGAIN_CHARS = 4_096
"""So many characters of a group's conditions cost as much as an event that is picked again."""
TOPICS_MAX = 10_000
"""Topics of which it is remembered which groups want them."""
TOPIC_WEIGHT_MAX = 2 << 20
"""What these may have together: a topic its characters, and `GROUP_WEIGHT` for each group that wants it."""
GROUP_WEIGHT = 8


class Pick:
    """An event, and the member that it was sent to."""

    __slots__ = ("address", "asked", "message")

    def __init__(self, message: Message, address: str, asked: tuple[str, ...] = ()) -> None:
        self.message = message
        """As it was published."""
        self.address = address
        self.asked = asked
        """The members that declined it."""


class Kept(NamedTuple):
    """An event that was published when there may have been groups that this broker did not know of."""

    message: Message
    served: tuple[str, ...]
    """The groups that had it, as texts."""


class Shares:
    """The groups of a network as one broker knows them, and the events for which it chose a member."""

    def __init__(
        self, core: Core, links: Links, router: Router, drops: Counter[str], again_at_once: int
    ) -> None:
        self._core, self._links, self._router = core, links, router
        self._drops = drops
        self._again_at_once = again_at_once
        self.groups: dict[Group, dict[str, Member]] = {}
        """By group its members by address."""
        self._crews: dict[Group, Crew] = {}
        """The same, for whoever picks one of them."""
        self.conditions = AskedConditions()
        self.unwilling: set[str] = set()
        """Members that declined what they were sent last."""
        self._brokers: dict[str, set[int]] = {}
        """By address: where the member's client is connected, if it is."""
        self._by_topic: dict[str, list[Group]] = {}
        self._topic_weight = 0
        self.picks: dict[tuple[str, int], Pick] = {}
        """By source and number, under which the member has it: what is not settled, the oldest first."""
        self._of: dict[str, dict[tuple[str, int], None]] = {}
        """The same by address."""
        self.left: deque[tuple[str, int]] = deque()
        """Of those, what members declined or left that are no more, and is to be picked again, in parts."""
        self.bytes = 0
        self.turns: dict[str, int] = {}
        """By text of a group: how many events of QoS 1 and 2 it had."""
        self.kept: list[Kept] = []
        self.kept_bytes = 0
        self.made = self.again = self.dropped = self.forgotten = 0
        """Events of QoS 1 and 2: for which a member was picked, and another one, and nobody any more; and
        picks that there was no room to remember. Of QoS 0 no journal tells, so they are not counted."""
        self.here: dict[int, tuple[int, ...]] = {}
        """By client connected here: the interests that say so of its memberships."""
        router.turned = []

    # Members -------------------------------------------------------------------------------------------

    def rebuild(self) -> None:
        """Find out again what follows from what is stored."""
        self._links.interests.try_only(self._router.subs)
        for number in self._router.subs:
            self._turn(number)
        self._sort_picks()
        self.bytes = sum(pick.message.size for pick in self.picks.values())
        self.kept_bytes = sum(one.message.size for one in self.kept)

    def _sort_picks(self) -> None:
        left = {*self.left}
        for key, pick in self.picks.items():
            if key not in left:
                self._of.setdefault(pick.address, {})[key] = None

    def wanted_by(self, number: int) -> Filter | None:
        """Return what an interest stands for; None for one that is about no events."""
        wanted = self._links.interests.subs[number]
        told = told_by(wanted)
        if told is None:
            return wanted
        return member_of(told.address).wanted if told.broker is None else None

    def follow(self, now: float) -> Iterator[Carried]:
        """Take in which members came and went; yield what is picked again, to be sent."""
        turned = self._router.turned
        while turned:
            numbers = turned[:]
            turned.clear()
            ended = [address for number in numbers if (address := self._turn(number)) is not None]
            yield from self._leave(ended, now)

    def _leave(self, ended: Iterable[str], now: float) -> Iterator[Carried]:
        """Pick again what members had not acknowledged that are no more: some at once, the rest later."""
        yield from self._again([key for address in ended for key in self._of.pop(address, ())], now)

    def _again(self, keys: Iterable[tuple[str, int]], now: float) -> Iterator[Carried]:
        """Pick members for events anew: for some at once, for the rest later."""
        is_first = not self.left
        self.left.extend(keys)
        if is_first:
            yield from self.go_on(now)

    def go_on(self, now: float) -> Iterator[Carried]:
        """Pick again a part of what members left that are no more."""
        keys: list[tuple[str, int]] = []
        room = self._again_at_once
        while self.left and room > 0:
            keys.append(self.left.popleft())
            room -= self._cost_again(keys[-1])
        yield from self._pick_again(keys, now)

    def _cost_again(self, key: tuple[str, int]) -> int:
        """What it costs to pick again, in events that any member may get."""
        pick = self.picks.get(key)
        crew = None if pick is None else self._crews.get(group_of(pick.address))
        return 1 if crew is None else 1 + crew.size // AGAIN_CHARS

    def _turn(self, number: int) -> str | None:
        """Take in whether an interest in a member is there; return the address if that has just ended."""
        wanted = self._links.interests.subs.get(number)
        told = None if wanted is None else addressed_by(wanted)
        if told is None:
            return None
        address, is_there = told.address, number in self._router.subs
        # Conditions may be long, and are read once, when a member comes.
        if not (self._knows(address) or address in self._brokers or is_member(address)):
            return None
        if told.broker is not None:
            brokers = self._brokers.setdefault(address, set())
            (brokers.add if is_there else brokers.discard)(told.broker)
            if not brokers:
                del self._brokers[address]
            if self._knows(address):
                crew = self._crews[group_of(address)]
                crew.turned(address, is_here=self._is_here(address, crew.far))
            return None
        if is_there == self._knows(address):
            return None
        if not is_there:
            self._remove(group_of(address), address)
            return address
        member = member_of(address)
        members = self.groups.get(member.group, {})
        if not members:
            self.groups[member.group] = members
            self._crews[member.group] = Crew(member.group.pattern)
            self._forget_topics()
        members[address] = member
        crew = self._crews[member.group]
        crew.add(
            address,
            None if member.condition is None else self.conditions.take(member.group.text, member.condition),
            is_willing=address not in self.unwilling,
            is_here=self._is_here(address, crew.far),
        )
        return None

    def _knows(self, address: str) -> bool:
        """Whether there is a member with an address, of those that are taken in."""
        return address in self.groups.get(group_of(address), ())

    def _is_here(self, address: str, far: AbstractSet[int]) -> bool:
        """Whether a member's client is connected, and not to a broker that is out of reach."""
        brokers = self._brokers.get(address)
        return brokers is not None and not brokers <= far

    def _remove(self, group: Group, address: str) -> None:
        members = self.groups[group]
        del members[address]
        condition = self._crews[group].remove(address)
        if condition is not None:
            self.conditions.let_go(group.text, condition)
        self.unwilling.discard(address)
        if not members:
            del self.groups[group], self._crews[group]
            self.turns.pop(group.text, None)
            self._forget_topics()

    def _declined(self, address: str, *, has_declined: bool) -> None:
        """Note whether a member declined what it was sent last."""
        if has_declined == (address in self.unwilling):
            return
        (self.unwilling.add if has_declined else self.unwilling.discard)(address)
        crew = self._crews[group_of(address)]
        crew.declined(address, is_here=self._is_here(address, crew.far), has_declined=has_declined)

    def told(self, now: float) -> Iterator[Carried]:
        """All neighbours have told what they want: pick for groups, and instead of members, accordingly."""
        if self._router.untold:
            return
        kept, self.kept, self.kept_bytes = self.kept, [], 0
        for message, served in kept:
            for group in self._wanting(message.topic):
                # A group whose members all came later does not want what was before them.
                oldest = min(member.since for member in self.groups[group].values())
                if group.text not in served and oldest <= message.sequence:
                    yield from self._picked(message, group, (), now, is_late=True)
        gone = (one for one in self._of if one not in self.groups.get(group_of(one), {}))
        yield from self._leave(sorted(gone), now)

    # Events --------------------------------------------------------------------------------------------

    def pick(self, message: Message, now: float) -> Iterator[Carried]:
        """Choose a member of each group that wants an event; yield what is to be sent."""
        groups = self._wanting(message.topic)
        if self._router.untold and message.qos:
            self._keep(Kept(message, tuple(group.text for group in groups)))
        for group in groups:
            yield from self._picked(message, group, (), now)

    def cost_of(self, topic: str) -> int:
        """What choosing members for an event on a topic costs (`mqtt/costs.py`)."""
        looked = 0 if topic in self._by_topic else len(self.groups) // costs.TRIALS
        crews = [self._crews[group] for group in self._wanting(topic)]
        conditions = sum([crew.conditions for crew in crews])
        asking = min(self.conditions.size, sum([crew.size for crew in crews])) // costs.CONDITION_CHARS
        return looked + costs.PICK * len(crews) + conditions // costs.TRIALS + asking

    def _wanting(self, topic: str) -> list[Group]:
        found = self._by_topic.get(topic)
        if found is None:
            # In an order that does not tell who was a member first: a broker that comes back knows none.
            levels = topic.split("/")
            crews = self._crews.items()
            found = sorted(group for group, crew in crews if crew.shape.meets(topic, levels))
            weight = len(topic) + GROUP_WEIGHT * len(found)
            if len(self._by_topic) >= TOPICS_MAX or self._topic_weight + weight > TOPIC_WEIGHT_MAX:
                self._forget_topics()
            self._by_topic[topic] = found
            self._topic_weight += weight
        return found

    def _forget_topics(self) -> None:
        self._by_topic.clear()
        self._topic_weight = 0

    def _keep(self, one: Kept) -> None:
        if self.kept_bytes + one.message.size > KEPT_BYTES_MAX:
            self._drops[UNTOLD_GROUPS] += 1
            return
        self.kept.append(one)
        self.kept_bytes += one.message.size

    def _picked(
        self, message: Message, group: Group, asked: tuple[str, ...], now: float, *, is_late: bool = False
    ) -> Iterator[Carried]:
        address = self._choose(message, group, asked)
        if address is None:
            return
        if is_late:
            origin = f"{'again' if asked else 'late'}@{self._core.state.origin}"
            source, number = source_for(address, origin), self._core.publisher.next_sequence(now)
        else:
            source, number = source_for(address, message.source), message.sequence
        said = (AGAIN, "1") if asked else None
        if message.qos:
            self.made += not asked
            self.again += bool(asked)
            self._remember((source, number), Pick(message, address, asked))
        yield Carried(message.addressed(address, source, number, said))

    def _choose(self, message: Message, group: Group, asked: tuple[str, ...]) -> str | None:
        """Return the address of the member whose turn it is, or None."""
        crew = self._crews.get(group)
        if crew is None:
            return None
        far = self._links.out_of_reach().keys()
        if crew.far != far:
            crew.find_here(self._is_here, frozenset(far))
        found = crew.candidates(self.conditions.about(message), asked)
        if found is None:
            return None
        if not message.qos:
            return found.at(message.sequence % found.count)
        turn = self.turns[group.text] = self.turns.get(group.text, 0) + 1
        return found.at(turn % found.count)

    def _remember(self, key: tuple[str, int], pick: Pick) -> None:
        self.picks[key] = pick
        self._of.setdefault(pick.address, {})[key] = None
        self.bytes += pick.message.size
        while self.bytes > self._core.state.limits.queue_bytes_max_all and len(self.picks) > 1:
            self._forget(next(iter(self.picks)))
            self.forgotten += 1

    def _forget(self, key: tuple[str, int]) -> Pick | None:
        pick = self.picks.pop(key, None)
        if pick is None:
            return None
        self.bytes -= pick.message.size
        self._not_with(pick.address, key)
        return pick

    def _not_with(self, address: str, key: tuple[str, int]) -> None:
        """A member is sent an event no more, or it is known that another one is."""
        mine = self._of.get(address)
        if mine is not None:
            mine.pop(key, None)
            if not mine:
                del self._of[address]

    def settled(
        self, source: str, done: Iterable[int], declined: Iterable[int], now: float
    ) -> Iterator[Carried]:
        """Take in what became of picks; yield what is sent to another member instead."""
        for number in done:
            pick = self._forget((source, number))
            if pick is not None:
                self._declined(pick.address, has_declined=False)
        yield from self._again(
            [key for number in declined if self._has_declined(key := (source, number))], now
        )

    def _has_declined(self, key: tuple[str, int]) -> bool:
        """Note that a member declined what it was sent; say whether that was not settled before."""
        pick = self.picks.get(key)
        if pick is None or pick.address in pick.asked:
            return False
        pick.asked = (*pick.asked, pick.address)
        self._not_with(pick.address, key)
        if self._knows(pick.address):
            self._declined(pick.address, has_declined=True)
        return True

    def _pick_again(self, keys: Iterable[tuple[str, int]], now: float) -> Iterator[Carried]:
        for key in keys:
            pick = self._forget(key)
            if pick is None or pick.message.expires_s <= now:
                continue
            group, has_declined = group_of(pick.address), pick.address in pick.asked
            asked = pick.asked if has_declined else (*pick.asked, pick.address)
            is_given_up = has_declined and len(asked) >= ASKED_MAX
            found = () if is_given_up else tuple(self._picked(pick.message, group, asked, now, is_late=True))
            if not found:
                why = ALL_DECLINED if has_declined else NOBODY_LEFT
                self.dropped += 1
                self._drops[DECLINED_OFTEN if is_given_up else why] += 1
            yield from found

    def take_over(self, old: Shares) -> None:
        """Go on with the picks of the network that the broker was in before."""
        self.picks, self.bytes, self.turns = dict(old.picks), old.bytes, dict(old.turns)
        self.kept, self.kept_bytes = old.kept, old.kept_bytes
        self.made, self.again = old.made, old.again
        self.dropped, self.forgotten = old.dropped, old.forgotten
        self.left = old.left
        self._sort_picks()

    def elsewhere(self) -> int:
        """Count the events that members at other brokers were sent, and have not settled."""
        sessions = self._core.state.sessions
        return sum(client_of(pick.address) not in sessions for pick in self.picks.values())

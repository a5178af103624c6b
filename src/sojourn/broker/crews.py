"""The members of one group, and whose turn it is: found without looking at each.

Members that want the same are alike, so an event is compared with each distinct condition once, however many
groups and members have it, and nobody else is looked at. Of those that are alike there are lists, in an order
that is the same at every broker: of all, and of those whose clients are connected, to a broker in reach.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain

from sojourn.interest import Filter
from sojourn.interest.filter_tests import Test, test_of
from sojourn.mqtt.conditions import EACH, Conditions
from sojourn.mqtt.content import attributes_of
from sojourn.mqtt.message import Message
from sojourn.mqtt.topic_tree import Shape

ANSWERS_MAX = 8
"""Events of which it is remembered which conditions they meet: groups ask one after the other."""


class Condition:
    """What some members want."""

    __slots__ = ("size", "test", "wanted")

    def __init__(self, wanted: Filter) -> None:
        self.wanted = wanted
        self.size = EACH + len(str(wanted))
        self.test: Test = test_of(wanted)
        """Made when a member comes, and not when an event waits for it."""


class AskedConditions(Conditions):
    """The distinct conditions of all members of all groups, and which of them events meet."""

    __slots__ = ("_answers", "_known", "asked")

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[Filter, Condition] = {}
        self._answers: dict[Message, dict[Condition, bool]] = {}
        self.asked = 0
        """How often an event was compared with a condition."""

    def take(self, group: str, wanted: Filter) -> Condition:
        """Count a member of a group that wants something; return the one object that stands for that."""
        if self.add(group, wanted):
            self._known[wanted] = Condition(wanted)
        return self._known[wanted]

    def let_go(self, group: str, condition: Condition) -> None:
        """Count a member less."""
        if self.remove(group, condition.wanted):
            del self._known[condition.wanted]

    def about(self, message: Message) -> Callable[[Condition], bool]:
        """Return a function that says whether an event meets a condition; compared once for a while."""
        answers = self._answers.get(message)
        if answers is None:
            if len(self._answers) >= ANSWERS_MAX:
                del self._answers[next(iter(self._answers))]
            answers = self._answers[message] = {}

        def meets(condition: Condition) -> bool:
            answer = answers.get(condition)
            if answer is None:
                self.asked += 1
                answer = answers[condition] = condition.test(*attributes_of(message))
            return answer

        return meets


class _Alike:
    """Members of one group that want the same."""

    __slots__ = ("lists",)

    def __init__(self) -> None:
        self.lists: tuple[list[str], ...] = ([], [], [], [])
        """Those that are here, and all, of those that did not decline what they were sent last; then of those
        that did. An event is for one of the first that there are."""

    def lists_of(self, *, is_willing: bool) -> tuple[list[str], list[str]]:
        """Who is here, and everybody."""
        here, everyone = self.lists[:2] if is_willing else self.lists[2:]
        return here, everyone


class Crew:
    """The members of one group, by their addresses."""

    __slots__ = ("_alike", "_of", "far", "shape", "size")

    def __init__(self, pattern: str) -> None:
        self.shape = Shape(pattern)
        self._of: dict[str, tuple[Condition | None, bool]] = {}
        """By address: what the member wants, and whether it is willing."""
        self._alike: dict[Condition | None, _Alike] = {}
        self.far: frozenset[int] = frozenset()
        """The brokers that were out of reach when it was found out who is here."""
        self.size = 0
        """Of its distinct conditions."""

    def __len__(self) -> int:
        return len(self._of)

    @property
    def conditions(self) -> int:
        """How many distinct ones its members have."""
        return len(self._alike) - (None in self._alike)

    def add(self, address: str, condition: Condition | None, *, is_willing: bool, is_here: bool) -> None:
        """Take in a member."""
        self._of[address] = condition, is_willing
        alike = self._alike.get(condition)
        if alike is None:
            alike = self._alike[condition] = _Alike()
            self.size += 0 if condition is None else condition.size
        here, everyone = alike.lists_of(is_willing=is_willing)
        bisect.insort(everyone, address)
        if is_here:
            bisect.insort(here, address)

    def remove(self, address: str) -> Condition | None:
        """Forget a member; return what it wanted."""
        condition, _ = self._of.pop(address)
        alike = self._alike[condition]
        for each in alike.lists:
            _take_out(each, address)
        if not any(alike.lists):
            del self._alike[condition]
            self.size -= 0 if condition is None else condition.size
        return condition

    def turned(self, address: str, *, is_here: bool) -> None:
        """A member's client has come, or is gone."""
        condition, is_willing = self._of[address]
        here, _ = self._alike[condition].lists_of(is_willing=is_willing)
        _take_out(here, address)
        if is_here:
            bisect.insort(here, address)

    def declined(self, address: str, *, is_here: bool, has_declined: bool) -> None:
        """A member has declined what it was sent last, or has not."""
        condition, is_willing = self._of[address]
        if is_willing == has_declined:
            self.remove(address)
            self.add(address, condition, is_willing=not has_declined, is_here=is_here)

    def find_here(self, is_here: Callable[[str, AbstractSet[int]], bool], far: frozenset[int]) -> None:
        """Find out anew who is here, other brokers being out of reach than before."""
        self.far = far
        for alike in self._alike.values():
            for is_willing in (True, False):
                here, everyone = alike.lists_of(is_willing=is_willing)
                here[:] = [address for address in everyone if is_here(address, far)]

    def candidates(self, meets: Callable[[Condition], bool], asked: Sequence[str]) -> Candidates | None:
        """The members that come first of those that an event fits, and that were not asked before."""
        fitting = [
            alike.lists for condition, alike in self._alike.items() if condition is None or meets(condition)
        ]
        for together in zip(*fitting, strict=True):
            found = Candidates([each for each in together if each], asked)
            if found.count:
                return found
        return None


class Candidates:
    """Some members, in their order."""

    __slots__ = ("_lists", "_without", "count")

    def __init__(self, lists: Sequence[list[str]], asked: Sequence[str]) -> None:
        self._lists = lists
        self._without = [address for address in asked if any(_holds(each, address) for each in lists)]
        self.count = sum(map(len, lists)) - len(self._without)
        """How many there are."""

    def at(self, place: int) -> str:
        """Return the one at a place."""
        order = self._lists[0] if len(self._lists) == 1 else sorted(chain.from_iterable(self._lists))
        for before in sorted(bisect.bisect_left(order, address) for address in self._without):
            place += before <= place
        return order[place]


def _holds(order: list[str], address: str) -> bool:
    at = bisect.bisect_left(order, address)
    return at < len(order) and order[at] == address


def _take_out(order: list[str], address: str) -> None:
    if _holds(order, address):
        del order[bisect.bisect_left(order, address)]

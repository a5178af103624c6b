"""Who may see events with an access policy, decided once for all subscribers who are alike.

An event may go to thousands of subscribers, a subscriber may be in a thousand groups, and thousands of
retained events may have one policy. So what was decided is remembered, for the policy that was asked last:
by subscriber, and by the values of the attributes that the policy speaks of, where these are few.
"""

from __future__ import annotations

from sojourn.interest import Event, Filter, Policy
from sojourn.interest.alternatives import test_of_many
from sojourn.interest.filter_tests import Test
from sojourn.interest.filter_tests import test_of as test_of_few

VERDICTS_MAX = 20_000
"""Subscribers, or combinations of values, that are remembered."""
NAMES_MAX = 4
"""Of more attributes it takes longer to compare the values than to decide."""
FEW = 4
"""Alternatives that are tried one by one."""


def test_of(condition: Filter) -> Test:
    """Return what a policy says as a function that is quick about thousands of subscribers."""
    many = test_of_many(condition) if len(condition.conjunctions) > FEW else None
    return many or test_of_few(condition)


class Judges:
    """Decides by any policy, and remembers the last one."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: Judge | None = None

    def permits(self, policy: Policy, subscriber: Event) -> bool:
        """Whether a policy lets a subscriber with these attributes see an event."""
        judge = self._last
        if judge is None or judge.policy is not policy:
            judge = self._last = Judge(policy)
        return judge.permits(subscriber)


class Judge:
    """Decides by one policy."""

    __slots__ = ("_by_subscriber", "_by_values", "_names", "_test", "policy")

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._test = test_of(policy.condition)
        conjunctions = policy.condition.conjunctions
        self._names = sorted({path for one in conjunctions for path, _ in one.constraints})
        self._by_subscriber: dict[int, tuple[Event, bool]] = {}
        """By identity, with what has it, so that nothing else can."""
        self._by_values: dict[tuple[object, ...], bool] = {}

    def permits(self, subscriber: Event) -> bool:
        """Whether a subscriber with these attributes may see events with the policy."""
        known = self._by_subscriber.get(id(subscriber))
        if known is not None:
            return known[1]
        verdict = self._decide(subscriber)
        if len(self._by_subscriber) >= VERDICTS_MAX:
            self._by_subscriber.clear()
        self._by_subscriber[id(subscriber)] = subscriber, verdict
        return verdict

    def _decide(self, subscriber: Event) -> bool:
        flat = subscriber.flat
        if len(self._names) > NAMES_MAX or subscriber.objects:
            return self._test(flat, subscriber.objects)
        # With their types: True is no 1 for a policy.
        values = tuple([(type(value := flat.get(name)), value) for name in self._names])
        verdict = self._by_values.get(values)
        if verdict is None:
            verdict = self._test(flat, subscriber.objects)
            if len(self._by_values) >= VERDICTS_MAX:
                self._by_values.clear()
            self._by_values[values] = verdict
        return verdict

"""Policies are asked once for all subscribers who are alike, and answer as they would for each."""

from __future__ import annotations

import pytest
from mqtt5 import PublishPacket

from sojourn.interest import Event, Policy
from sojourn.mqtt import costs, judging
from sojourn.mqtt.judging import Judge
from tests.broker.alone import Alone, patterns
from tests.counting import counted

TEXT = " OR ".join(f"(a <> 'b{one}' AND x <> {-one} AND q = 1)" for one in range(60))


def test_a_judge_says_what_its_policy_says() -> None:
    """Whoever is asked about, in whatever order; True is no 1."""
    values = [None, 1, 0, True, False, 1.5, "1", "b1", -3]
    for text in (
        "q = 1",
        "q = TRUE OR a = 'b1'",
        "NOT q = 1",
        "q IS NULL",
        TEXT,
        "a = 1 AND b = 1 AND c = 1",
    ):
        policy = Policy.parse(text)
        judge = Judge(policy)
        for _ in range(2):
            for q in values:
                for a in values:
                    who = Event(
                        {name: one for name, one in (("q", q), ("a", a), ("x", a)) if one is not None}
                    )
                    assert judge.permits(who) == policy.permits(who), (text, who)


def test_a_policy_is_asked_once_for_all_who_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """And once for a subscriber, in however many groups it is and whatever it says of itself."""
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(judging, "test_of", lambda _wanted: counted(lambda _flat, _objects: False, asked))
    judge = Judge(Policy.parse(TEXT))
    alike = [Event({"a": "zz", "x": 5, "other": number}) for number in range(100)]
    for who in alike * 5:
        assert not judge.permits(who)
    assert len(asked) == 1
    judge = Judge(Policy.parse(" AND ".join(f"a{one} = 1" for one in range(9))))
    for who in alike * 5:
        assert not judge.permits(who)
    assert len(asked) == 1 + 100


def test_what_is_remembered_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of either kind."""
    monkeypatch.setattr(judging, "VERDICTS_MAX", 10)
    judge = Judge(Policy.parse("x = 1"))
    for number in range(100):
        assert judge.permits(Event({"x": number})) == (number == 1)
    assert len(judge._by_subscriber) <= 10
    assert len(judge._by_values) <= 10


def test_who_a_policy_is_asked_about_counts_for_its_publisher() -> None:
    """Of events with one, for many subscribers, fewer are read at once."""
    hall = Alone()
    for number in range(40):
        hall.send(hall.client(f"reader{number}"), patterns(10))
    publisher, alone = hall.client("publisher"), hall.client("alone")
    packet = PublishPacket("d/1/1/x", b"x", user_properties=[("policy", TEXT)])
    hall.send(alone, PublishPacket("nobody", b"x", user_properties=[("policy", TEXT)]))
    hall.settle()
    before = hall.broker.core.gate.unsliced
    hall.send(publisher, packet)
    spent = before - hall.broker.core.gate.unsliced
    assert spent >= 40 // costs.RECIPIENTS * 60 // costs.JUDGED

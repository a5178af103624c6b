"""Queue policies: each keeps what a reader who had seen everything would ask for."""

import random
from typing import Any

import pytest

from sojourn.edge.queues import PolicyQueue, Queued, QueuePolicy, QueuePolicyError
from sojourn.interest.events import Event


def _stream(seed: int, count: int = 120) -> list[tuple[float, Queued]]:
    """Events of a few keys and values, some of them late, with the time each reaches the broker."""
    draw = random.Random(seed)
    items = []
    for number in range(count):
        generated = number * 1.0 - draw.choice([0, 0, 0, 5, 20])
        attributes: dict[str, Any] = {
            "key": draw.choice(["a", "b", None]),
            "value": draw.choice([1, 2, 5, None]),
        }
        event = Event(attributes, source="s", sequence=number)
        items.append((float(number), Queued(event, generated, draw.choice([10, 50, 400]))))
    return items


def _informed(policy: QueuePolicy, stream: list[tuple[float, Queued]], now: float) -> list[Queued]:
    """What a reader wants who sees the whole stream at once, straight from the policy's words."""
    wanted = [
        item for _, item in stream if policy.expiry_s is None or now - item.generated_s <= policy.expiry_s
    ]
    if policy.keep != "all":
        groups: dict[Any, list[Queued]] = {}
        for item in wanted:
            if policy.keep == "last" or item.event.get("value") is not None:
                groups.setdefault(item.event.get("key") if policy.key else None, []).append(item)
        chosen = []
        for group in groups.values():
            if policy.keep == "last":
                newest = max(item.generated_s for item in group)
                chosen.append([item for item in group if item.generated_s == newest][-1])
            else:
                pick = max if policy.keep == "highest" else min
                extreme = pick(item.event.flat["value"] for item in group)
                chosen.append(next(item for item in group if item.event.flat["value"] == extreme))
        wanted = [item for item in wanted if item in chosen]
    if policy.reconnect_bytes_max is not None:
        room, kept = policy.reconnect_bytes_max, []
        for item in reversed(wanted):
            if item.size_bytes > room:
                break
            room -= item.size_bytes
            kept.append(item)
        wanted = kept[::-1]
    return wanted


POLICIES = [
    QueuePolicy(),
    QueuePolicy(expiry_s=30),
    QueuePolicy(keep="last", key="key"),
    QueuePolicy(keep="last", key="key", expiry_s=10),
    QueuePolicy(keep="highest", value="value"),
    QueuePolicy(keep="highest", value="value", key="key"),
    QueuePolicy(keep="lowest", value="value", key="key"),
    QueuePolicy(keep="highest", value="value", key="key", expiry_s=15),
    QueuePolicy(keep="lowest", value="value", expiry_s=7),
    QueuePolicy(reconnect_bytes_max=700),
    QueuePolicy(expiry_s=40, reconnect_bytes_max=300),
    QueuePolicy(keep="last", key="key", reconnect_bytes_max=60),
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_each_policy_keeps_what_an_informed_reader_would(policy: QueuePolicy) -> None:
    """Event by event or all at once: the same events in the same order, and the others named as dropped."""
    for seed in range(40):
        stream = _stream(seed)
        queue = PolicyQueue(policy)
        dropped = []
        for now, item in stream:
            dropped += queue.add(item, now)
            if seed % 2:
                dropped += queue.expire(now)
        kept, more = queue.drain(125.0)
        assert kept == _informed(policy, stream, 125.0)
        named = sorted(drop.item.event.sequence for drop in [*dropped, *more])
        assert named == sorted({item.event.sequence for _, item in stream} - {k.event.sequence for k in kept})
        assert (len(queue), queue.bytes) == (0, 0)


def test_what_may_outlive_an_extreme_is_hardly_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of thousands that fall is kept beside those before it: a newcomer is compared with few of them."""
    compared = 0
    score = PolicyQueue._score

    def counting(queue: PolicyQueue, item: Queued) -> float | None:
        nonlocal compared
        compared += 1
        return score(queue, item)

    monkeypatch.setattr(PolicyQueue, "_score", counting)
    queue, count = PolicyQueue(QueuePolicy(keep="highest", value="value", expiry_s=1e6)), 3_000
    for number in range(count):
        event = Event({"value": count - number}, source="s", sequence=number)
        assert not queue.add(Queued(event, float(number), 10), float(number))
    assert compared < 10 * count
    best = Queued(Event({"value": count + 1}, source="s", sequence=count), float(count), 10)
    assert len(queue.add(best, float(count))) == count
    assert queue.drain(float(count))[0] == [best]


def test_limits_drop_the_oldest() -> None:
    """Events and bytes are bounded whatever the policy; what goes is named."""
    stream = [item for _, item in _stream(3)]
    queue = PolicyQueue(QueuePolicy(events_max=10))
    reasons = {drop.reason for item in stream for drop in queue.add(item, 0.0)}
    assert reasons == {"queue_full"}
    assert queue.drain(0.0)[0] == stream[-10:]
    tight = PolicyQueue(QueuePolicy(bytes_max=500))
    for item in stream:
        tight.add(item, 0.0)
        assert tight.bytes <= 500
    assert len(tight)


def test_the_extreme_stays_within_the_limit_of_keys() -> None:
    """A thousand keys with room for ten: ten are kept, and a key that fell out may come back."""
    queue = PolicyQueue(QueuePolicy(keep="last", key="key", events_max=10))
    for number in range(1000):
        queue.add(Queued(Event({"key": number % 100}, sequence=number), float(number), 10), float(number))
    assert [item.event.sequence for item in queue.drain(0.0)[0]] == list(range(990, 1000))


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (QueuePolicy(keep="highest"), "needs value"),
        (QueuePolicy(keep="last"), "needs key"),
        (QueuePolicy(expiry_s=0), "expiry_s must be above 0"),
        (QueuePolicy(events_max=0), "events_max must be at least 1"),
        (QueuePolicy(keep="some"), "keep may be all"),  # type: ignore[arg-type]  # refused when it runs
    ],
)
def test_contradictions_are_one_sentence(policy: QueuePolicy, sentence: str) -> None:
    """A policy that means nothing is refused by name."""
    with pytest.raises(QueuePolicyError, match=sentence):
        PolicyQueue(policy)

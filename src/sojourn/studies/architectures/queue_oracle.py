"""A reader who saw everything: what each queue policy should leave for it, straight from the policy's words.

Written apart from `edge/queues.py`, which decides event by event with what it has kept so far; the claim on
queues holds if both agree.
"""

from collections.abc import Sequence

from sojourn.edge.queues import Queued, QueuePolicy


def oracle_choice(policy: QueuePolicy, missed: Sequence[Queued], now: float) -> list[Queued]:
    """Of all that was missed, what a reader who comes back now wants, in order."""
    wanted = [item for item in missed if policy.expiry_s is None or now - item.generated_s <= policy.expiry_s]
    if policy.keep != "all":
        wanted = _extremes(policy, wanted)
    if policy.reconnect_bytes_max is None:
        return wanted
    room, kept = policy.reconnect_bytes_max, []
    for item in reversed(wanted):
        if item.size_bytes > room:
            break
        room -= item.size_bytes
        kept.append(item)
    return kept[::-1]


def _extremes(policy: QueuePolicy, wanted: list[Queued]) -> list[Queued]:
    groups: dict[object, list[Queued]] = {}
    for item in wanted:
        groups.setdefault(item.event.get(policy.key) if policy.key else None, []).append(item)
    chosen = [_one_of(policy, group) for group in groups.values()]
    return [item for item in wanted if any(item is each for each in chosen)]


def _one_of(policy: QueuePolicy, group: list[Queued]) -> Queued | None:
    if policy.keep == "last":
        newest = max(item.generated_s for item in group)
        return [item for item in group if item.generated_s == newest][-1]
    numbers = [(float(str(item.event.get(policy.value or ""))), item) for item in group]
    extreme = (max if policy.keep == "highest" else min)(number for number, _ in numbers)
    return next(item for number, item in numbers if number == extreme)

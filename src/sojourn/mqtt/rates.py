"""How often something may be done: a bucket that fills with time, and that everything done takes from."""

from __future__ import annotations

from typing import Protocol

BURST_S = 2.0
"""For how many seconds' worth a bucket has room: so much may be done at once after a rest."""


class Bucket(Protocol):
    """Whoever has a bucket."""

    tokens: float
    tokens_s: float


def spend(bucket: Bucket, count: int, per_s: float, now: float, room: float = 0.0) -> bool:
    """Take from a bucket; say whether that is within the rate. What is not allowed is not taken.

    The bucket has room for what may be done in `BURST_S`, unless another is given.
    """
    room = room or per_s * BURST_S
    bucket.tokens = min(room, bucket.tokens + max(0.0, now - bucket.tokens_s) * per_s)
    bucket.tokens_s = now
    if count > bucket.tokens:
        return False
    bucket.tokens -= count
    return True

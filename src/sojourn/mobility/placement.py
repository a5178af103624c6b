"""Which broker is to serve a client that arrived: the system may choose (paper 001 leaves it open).

A client that arrives at a crowded broker is asked to connect to a neighbouring one that has fewer clients, by
more than a margin, so that nobody is sent to and fro over a difference of one. Only brokers in reach are
choices: where the client stands, and those next to it. How a broker knows its neighbours' loads is the
driver's business.
"""

from collections.abc import Mapping


def least_loaded(broker: int, present: int, others: Mapping[int, int], margin: int) -> int:
    """The broker to serve a client at `broker`, given how many clients it and those in reach have."""
    if not others:
        return broker
    best = min(others, key=lambda other: (others[other], other))
    return best if others[best] + margin < present else broker

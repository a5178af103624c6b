"""What to say of brokers that were part of another network when they last ran, and have stores of then."""

from __future__ import annotations

from collections.abc import Iterable

from sojourn.live.addresses import Listening


def brought_along(brokers: Iterable[Listening]) -> list[str]:
    """A sentence for those of each network: what went over, and how to begin anew if that was not meant."""
    found: dict[str, list[Listening]] = {}
    for one in brokers:
        if one.came_from is not None:
            found.setdefault(one.came_from.network, []).append(one)
    return [_sentence(network, some) for network, some in found.items()]


def _sentence(network: str, brokers: list[Listening]) -> str:
    kept = [one.came_from for one in brokers if one.came_from is not None]
    sessions = sum(one.sessions for one in kept)
    retained = max(one.retained for one in kept)  # every broker of a network has them all
    what = " and ".join(
        f"{count:,} {word}{'' if count == 1 else 's'}"
        for count, word in ((sessions, "session"), (retained, "retained message"))
        if count
    )
    names = ", ".join(one.broker for one in brokers)
    if len(brokers) == 1:
        return (
            f"{names} was part of another network when it last ran ({network}) and goes on with what its "
            f"store holds, {what}; to begin anew instead, stop it and move its store away"
        )
    return (
        f"{names} were part of another network when they last ran ({network}) and go on with what their "
        f"stores hold, {what}; to begin anew instead, stop them and move their stores away"
    )

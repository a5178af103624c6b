"""A broker leaves the network: its doors close, its sessions go to a neighbour, and then it says farewell.

    leaving = Leaving(node, close_doors)
    leaving.go_on()         # as often as somebody asks: what is still here, nothing in the end
    await leaving.farewell()

With copies its process is on the roll of those that vote (`broker/seats/rolls.py`), and stays until it is not
any more. A broker whose process is gone for good leaves from where it is played.

Each step may be taken again, after whatever happened in between. A broker that was killed on the way opens
its doors again when it is started, unless it has said farewell: then it does not start.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from sojourn.broker import facts
from sojourn.broker.offering import left_behind
from sojourn.broker.regrouping import check_may_leave
from sojourn.live.brokers.control import ControlError
from sojourn.live.brokers.node import Node

OFFERS = 200
"""Sessions that are offered at once."""
HEARD_S = 20.0
"""How long a neighbour may take to acknowledge a farewell."""
LOOK_S = 0.05


class Leaving:
    """How one broker leaves."""

    def __init__(
        self, node: Node, close_doors: Callable[[], None], reference: Callable[[], str | None]
    ) -> None:
        self._node, self._close_doors, self._reference = node, close_doors, reference
        self._has_begun = False

    def check(self) -> str:
        """Return the neighbour that takes over; refuse where this broker cannot leave."""
        node, network = self._node, self._node.network
        name = node.place.name
        if network is None or not network.links.channels:
            raise ControlError(f"{name} has no neighbour that could take over what it has.")
        check_may_leave(network.settings, name)
        if not network.clients.follows:
            raise ControlError(
                f"{name} cannot give its sessions away: with durable subscribers every broker keeps its own."
            )
        return next(iter(network.links.channels))

    def go_on(self) -> dict[str, int]:
        """Let nobody in any more, and give away what is here; return what is left."""
        to, node = self.check(), self._node
        if not self._has_begun:
            self._has_begun = True
            self._close_doors()
            node.dismiss(self._reference())
        assert node.network is not None, "it has a neighbour"
        left = left_behind(node.network)
        if left.get("sessions") and node.network.links.channels[to].waiting < OFFERS:
            node.tell(facts.SessionsOffered(to, OFFERS))
            node.flush()
        return left_behind(node.network)

    async def farewell(self) -> None:
        """Tell the neighbour, and wait until it has noted that."""
        node, left = self._node, self.go_on()
        with suppress(TimeoutError):
            async with asyncio.timeout(HEARD_S):  # frames come and go: the last ones are on their way
                while left:
                    await asyncio.sleep(LOOK_S)
                    left = self.go_on()
        if left:
            raise ControlError(f"{node.place.name} still has something: {in_words(left)}.")
        node.witnesses.tell_last()  # that nothing is here: who has read the farewell listens no more
        node.tell(facts.FarewellSaid())
        node.flush()
        try:
            async with asyncio.timeout(HEARD_S):
                while node.network is not None and left_behind(node.network):  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            raise ControlError(
                f"The neighbour of {node.place.name} does not answer; try again when it is back."
            ) from None
        if node.outbox is not None and node.links is not None:
            # Its process goes on until others have the copies that it keeps; the neighbour tells all now.
            await node.links.stop()


def in_words(left: dict[str, int]) -> str:
    """What is left, in a few words."""
    return ", ".join(f"{count} {what}" for what, count in left.items())

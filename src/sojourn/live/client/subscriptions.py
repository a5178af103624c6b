"""What a client has subscribed to: one wish for each topic filter, and none lost by mistake.

MQTT knows a subscription by its topic filter, so a second one to the same topic filter takes the place of the
first. Whoever asks by content hardly thinks of topics (they are all `#`), and would no longer get what was
asked for first; so that is refused, unless it is said to be meant.
"""

from __future__ import annotations

from dataclasses import dataclass

import mqtt5

from sojourn.interest import Filter
from sojourn.live.client.link import ClientError
from sojourn.live.client.packets import queue_properties, subscribe_packet
from sojourn.mqtt import conventions


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """One subscription, as it was asked for; `Client.subscribe` tells what each part means."""

    filter: str
    topic: str
    qos: int
    keep: str | None
    expiry_s: float | None
    budget_bytes: int | None

    def packet(self, packet_id: int) -> mqtt5.SubscribePacket:
        """The subscription as a packet, or why it cannot be one."""
        properties = queue_properties(self.keep, self.expiry_s, self.budget_bytes)
        if self.filter:
            properties.append((conventions.FILTER, str(Filter.parse(self.filter))))
        return subscribe_packet(packet_id, self.topic, properties, qos=self.qos)

    def check_room(self, before: Wish | None) -> None:
        """Refuse to take the place of another filter."""
        if before is not None and before.filter != self.filter:
            was = f"the filter {before.filter!r}" if before.filter else "no filter"
            raise ClientError(
                f"There is a subscription to {self.topic!r} already, with {was}, which this one would take "
                "the place of: join the filters with OR, give each a topic of its own, or say replace=True."
            )


class Subscriptions:
    """The wishes of a client that a broker has confirmed, by topic filter."""

    def __init__(self) -> None:
        self._confirmed: dict[str, tuple[Wish, mqtt5.SubscribePacket]] = {}

    def wish_for(self, topic: str) -> Wish | None:
        """What was asked for with a topic filter, if anything was."""
        found = self._confirmed.get(topic)
        return None if found is None else found[0]

    def confirmed(self, wish: Wish, packet: mqtt5.SubscribePacket) -> None:
        """Note that a broker has said yes."""
        self._confirmed[wish.topic] = wish, packet

    def dropped(self, topic: str) -> None:
        """Note that one was taken back."""
        self._confirmed.pop(topic, None)

    @property
    def packets(self) -> list[mqtt5.SubscribePacket]:
        """All of them, for a broker that knows none."""
        return [packet for _, packet in self._confirmed.values()]

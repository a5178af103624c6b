"""A core with clients that need no sockets: packets in, packets out, time as the test wants it."""

from __future__ import annotations

from collections import deque
from typing import Any, TypeVar

import mqtt5
from mqtt5 import ConnAckPacket, ConnectPacket, PublishPacket, QoS, SubAckPacket, SubscribePacket, TopicFilter

from sojourn.broker.state_codec import dump_state, load_state
from sojourn.mqtt.admission import Admission
from sojourn.mqtt.connection import State
from sojourn.mqtt.core import Core
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.packets import REFUSED_3_1_1

Packet = TypeVar("Packet")


def again(core: Core) -> Core:
    """A core as a snapshot brings it back, once what it had led to was carried out."""
    effects, state = core.effects, core.state
    for done in (effects.changes, effects.published, effects.settled):
        done.clear()
    restored = Core(state.name, state.limits, shared_subscriptions=state.shared_subscriptions)
    restored.effects.collects = effects.collects
    load_state(dump_state(core, None), restored, None)
    return restored


class World:
    """One core, its clients, and the time."""

    def __init__(self, limits: Limits | None = None, name: str = "B1", **options: Any) -> None:
        self.core = Core(name, limits if limits is not None else Limits(), **options)
        self.now = 1_000.0
        self.clients: dict[int, Client] = {}
        self.admission = Admission()
        self.answers = True
        """Whether a SUBSCRIBE is answered at once where the core leaves that to somebody else."""
        self.written: list[tuple[int, bytes]] = []
        """Everything that was ever written, in order."""

    def client(self, address: str = "here") -> Client:
        """Open a connection, of some address."""
        number = len(self.clients) + 1
        client = self.clients[number] = Client(self, number)
        self.core.opened(number, address, f"fresh-{number}", self.now)
        self.carry_out()
        return client

    def carry_out(self) -> None:
        """Admit who knocks, read on, close what overflows, answer, and hand out what was written."""
        effects = self.core.effects
        while effects.knocks or effects.unread or effects.overflowing:
            if effects.knocks:
                self.core.admit(effects.knocks.pop(0).number, self.admission, self.now)
            elif effects.unread:
                self.core.received(effects.unread.pop(0), b"", self.now)
            else:
                self.core.overflowed(effects.overflowing.popitem()[0], self.now)
        while effects.subacks and self.answers:
            due = effects.subacks.pop(0)
            self.core.answer(due.number, due.packet)
        for connection in effects.touched:
            data = b"".join(connection.output)
            connection.output.clear()
            self.written.append((connection.number, data))
            client = self.clients.get(connection.number)
            if client is not None:
                client.take(data)
                client.closed = connection.state is State.CLOSED
        effects.touched.clear()

    def wait(self, seconds: float) -> None:
        """Let time pass, in steps as small as the core asks for."""
        until = self.now + seconds
        while True:
            moment = self.core.next_moment()
            self.now = min(until, max(self.now, moment)) if moment is not None else until
            self.core.time_passed(self.now)
            self.carry_out()
            if self.now >= until:
                return


class Client:
    """One connection of a client."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.inbox: deque[mqtt5.Packet] = deque()
        self.closed = False

    def take(self, data: bytes) -> None:
        """Decode what the core wrote."""
        if data == REFUSED_3_1_1:
            return  # in words that the codec does not know
        while data:
            packet, length = mqtt5.read(memoryview(data))
            self.inbox.append(packet)
            data = data[length:]

    def send(self, packet: Any) -> None:
        """Send a packet, or bytes."""
        data = packet if isinstance(packet, bytes) else packet.write()
        self.world.core.received(self.number, data, self.world.now)
        self.world.carry_out()

    def next(self, kind: type[Packet]) -> Packet:
        """Return the next packet, which is of this kind."""
        packet = self.inbox.popleft()
        assert isinstance(packet, kind), f"{kind.__name__} was expected, {packet} came"
        return packet

    def connect(self, client_id: str = "", **options: Any) -> ConnAckPacket:
        """Connect, with a clean start unless said otherwise."""
        options.setdefault("clean_start", True)
        self.send(ConnectPacket(client_id, **options))
        return self.next(ConnAckPacket)

    def subscribe(self, topic: str, qos: int = 2, **options: Any) -> int:
        """Subscribe and return the code."""
        wanted = TopicFilter(topic, max_qos=QoS(qos), retain_as_published=False)
        self.send(SubscribePacket(1, [wanted], **options))
        return int(self.next(SubAckPacket).reason_codes[0])

    def publish(
        self, topic: str, payload: bytes = b"", qos: int = 0, number: int = 1, **options: Any
    ) -> None:
        """Publish; the answer stays in the inbox."""
        self.send(PublishPacket(topic, payload, qos=QoS(qos), packet_id=number if qos else None, **options))

    def messages(self) -> list[PublishPacket]:
        """Take the messages out of the inbox."""
        found = [packet for packet in self.inbox if isinstance(packet, PublishPacket)]
        self.inbox.clear()
        return found

    def payloads(self) -> list[bytes]:
        """Take the messages' payloads out of the inbox."""
        return [message.payload for message in self.messages()]

    def lose(self) -> None:
        """Lose the connection without a word."""
        self.closed = True
        self.world.core.lost(self.number, self.world.now)
        self.world.carry_out()

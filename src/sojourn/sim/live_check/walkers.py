"""Clients on the move: where each one goes, when it tries again, how long it takes to answer.

A walker wants to be with one broker, or away. It connects, waits a limited time for a welcome, and tries
again after a pause if it is refused or its connection breaks: at the same broker, or at any, as is its way.
One that goes without leaving keeps its old connection open and pings on it, but reads nothing of it any more:
that connection is the brokers' to end.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import mqtt5
from mqtt5 import ConnAckPacket, DisconnectPacket, SubAckPacket

from sojourn.sim.live_check.clients import REFUSED, Client
from sojourn.sim.live_check.events import Wish
from sojourn.sim.live_check.oracle import Diary, FailedCheckError
from sojourn.sim.live_check.script import Persona
from sojourn.sim.live_check.steps import VALUES, Step
from sojourn.sim.live_check.wires import ClientWire

if TYPE_CHECKING:
    from sojourn.sim.live_check.world import World

WELCOME_S = 12.0
"""How long a client waits for an answer to its CONNECT."""
PAUSE_S = (0.1, 1.0)
"""How long it waits before it tries again."""
PING = b"\xc0\x00"
RETRY_CODES = (0x88, 0x89, 0x97)
"""Server unavailable, server busy, quota exceeded: to be tried again later."""
TOGETHER_SHARE, TOGETHER_MAX = 0.3, 20
"""How often somebody who publishes says more in the same breath, and how much more."""
MIXED_SHARE = 0.3
"""How much of that has QoS of all kinds."""
BROKEN_CODES = (0x81, 0x82)
"""What a broker says to a client that broke the protocol, which none here does."""


class Walker:
    """One client that moves."""

    def __init__(self, world: World, number: int, persona: Persona) -> None:
        self.world, self.number, self.persona = world, number, persona
        self.draw = random.Random(f"{world.script.spec.seed}/walker/{number}")
        self.diary = Diary(world.oracle, persona)
        self.client = Client(persona, self.diary)
        self.goal = -1
        """The broker that it wants to be with; -1 for none."""
        self.wire: ClientWire | None = None
        self.abandoned: list[ClientWire] = []
        """Connections that it left open."""
        self.ack_s = persona.ack_s
        self.tries = 0
        """How often it tried since it was last welcomed."""
        self._friends: dict[str, int] = {}
        """By pattern: who waits for its subscription, to publish something."""
        self._last: str | None = None
        """The broker that it was with last."""
        self._buffer = b""
        self._answers: deque[bytes] = deque()
        self._answers_s = 0.0
        self._is_waiting = False

    @property
    def is_served(self) -> bool:
        """Whether it is welcome where it wants to be, or anywhere if it looks elsewhere."""
        return self.wire is not None and self.client.is_open

    # Moving --------------------------------------------------------------------------------------------

    def go(self, step: Step) -> None:
        """Go to a broker."""
        how = step.detail[0]
        if how == "clean":
            self.client.wants_clean = True
        self._part(how, step.seconds)
        self.goal = step.where
        self.tries = 0
        self._connect(step.where)

    def away(self, step: Step) -> None:
        """Go nowhere for now."""
        self._part(step.detail[0], step.seconds)
        self.goal = -1

    def _part(self, how: str, notice_s: float) -> None:
        wire, self.wire = self.wire, None
        if wire is None:
            return
        self.diary.left()
        if how == "leave" and self.client.is_open:
            self._say(wire, DisconnectPacket().write())
            wire.close()
        elif how == "stay":
            self.abandoned.append(wire)
            self._keep_alive((wire, True))
        else:
            wire.vanish(notice_s)
        self.client.is_open = False

    def leave_for_good(self) -> None:
        """End the session and go."""
        self.goal = -1
        wire, self.wire = self.wire, None
        if wire is not None:
            self._say(wire, DisconnectPacket(session_expiry_interval=0).write())
            wire.close()
        self.client.is_open = False
        self.diary.ends()

    def _connect(self, broker: int) -> None:
        world = self.world
        self._is_waiting = False
        process = world.processes[broker]
        self.tries += 1
        if process.broker is None:
            world.counts["connections refused by nobody"] += 1
            self._retry_later()
            return
        self._buffer = b""
        self._answers.clear()
        wire = self.wire = ClientWire(world, process, self.draw, self._arrived, self._ended)
        self._say(wire, self.client.connect(broker, self._last))
        world.clock.plan(world.now + WELCOME_S, self._check_welcome, wire)

    def _check_welcome(self, wire: object) -> None:
        if wire is self.wire and not self.client.is_open and self.wire is not None:
            self.world.counts["connections not answered"] += 1
            self.wire.vanish(0.0)
            self._ended(self.wire)

    def _retry_later(self) -> None:
        if self.goal >= 0 and not self._is_waiting:
            self._is_waiting = True
            low, high = PAUSE_S
            self.world.clock.plan(self.world.now + low + (high - low) * self.draw.random(), self._retry)

    def _retry(self, _thing: object) -> None:
        if not self._is_waiting:
            return
        self._is_waiting = False
        if self.goal >= 0 and self.wire is None:
            elsewhere = self.persona.tries_elsewhere and self.draw.random() < 0.5
            self._connect(self.draw.randrange(self.world.script.brokers) if elsewhere else self.goal)

    # The connection ------------------------------------------------------------------------------------

    def _say(self, wire: ClientWire, data: bytes) -> None:
        self.world.saw(self.persona.name, wire.number, data)
        wire.write(data)

    def _ended(self, wire: ClientWire) -> None:
        if wire in self.abandoned:
            self.abandoned.remove(wire)
        if wire is not self.wire:
            return
        self.wire = None
        self.client.is_open = False
        self.diary.left()
        self._retry_later()

    def _arrived(self, wire: ClientWire, data: bytes) -> None:
        if wire is not self.wire:
            return
        self._buffer = data = self._buffer + data
        at = 0
        view = memoryview(data)
        while at < len(data):
            try:
                packet, length = mqtt5.read(view[at:])
            except IndexError:
                break
            at += length
            self._take(wire, packet)
            if wire is not self.wire:
                return
        self._buffer = data[at:]

    def _take(self, wire: ClientWire, packet: mqtt5.Packet) -> None:
        if isinstance(packet, ConnAckPacket):
            self._answered(wire, packet)
        elif isinstance(packet, DisconnectPacket):
            code = int(packet.reason_code)
            if code in BROKEN_CODES:
                text = f"{self.persona.name} was told that it broke the protocol: {packet}"
                raise FailedCheckError("protocol", text)
            self.world.counts[f"disconnected with {code:#x}"] += 1
        else:
            answer = self.client.take(packet)
            if answer is not None:
                self._answer(wire, answer)
            if isinstance(packet, SubAckPacket):
                self._tell_friends()

    def _answered(self, wire: ClientWire, packet: ConnAckPacket) -> None:
        code = int(packet.reason_code)
        if code >= REFUSED:
            if code not in RETRY_CODES:
                raise FailedCheckError("refused", f"{self.persona.name} was refused: {packet}")
            self.world.counts[f"refused with {code:#x}"] += 1
            self.wire = None
            wire.vanish(0.0)
            self.diary.left()
            self._retry_later()
            return
        self.tries = 0
        self.goal = self.client.broker
        for data in self.client.welcomed(packet):
            self._say(wire, data)
        self._last = wire.process.name
        self._keep_alive((wire, False))

    def _answer(self, wire: ClientWire, answer: bytes) -> None:
        """Answer in order, after a while."""
        self._answers_s = max(self._answers_s, self.world.now + self.ack_s * self.draw.random())
        self._answers.append(answer)
        self.world.clock.plan(self._answers_s, self._send_answer, wire)

    def _send_answer(self, wire: object) -> None:
        if wire is self.wire and self.wire is not None and self._answers:
            self._say(self.wire, self._answers.popleft())

    def _keep_alive(self, what: Any) -> None:
        wire, is_abandoned = what
        if not wire.is_open or (not is_abandoned and wire is not self.wire):
            return
        wire.write(PING)
        self.world.clock.plan(self.world.now + 0.7 * self.persona.keep_alive_s, self._keep_alive, what)

    # What it says --------------------------------------------------------------------------------------

    def subscribe(self, step: Step) -> None:
        """Want something."""
        *wanted, friend = step.detail
        wish = Wish(*wanted)
        self._friends.pop(wish.pattern, None)
        if friend >= 0:
            self._friends[wish.pattern] = friend
        self._say_all(self.client.want(wish))

    def _tell_friends(self) -> None:
        """Let those publish who waited until a subscription was granted."""
        for pattern in [one for one in self._friends if self.client.is_granted(one)]:
            friend = self.world.walkers[self._friends.pop(pattern)]
            friend.publish_for(self.client.wishes[pattern])

    def publish_for(self, wish: Wish) -> None:
        """Publish what somebody has just been granted."""
        self.world.counts["published upon a SUBACK"] += 1
        detail = (wish.pattern, self.draw.randrange(VALUES), 1, False)
        self.publish(Step(self.world.now, "publish", self.number, detail=detail))

    def unsubscribe(self, step: Step) -> None:
        """Want something no longer."""
        self._say_all(self.client.want_no_more(step.detail[0]))

    def publish(self, step: Step) -> None:
        """Publish an event."""
        topic, value, qos, retain = step.detail
        data = self.client.publish(topic, value, qos, retain=retain)
        if data is not None and self.wire is not None:
            self._say(self.wire, data + b"".join(self._more(topic, qos)))

    def _more(self, topic: str, qos: int) -> Iterator[bytes]:
        """Sometimes say more on a topic in the same breath: such events travel together."""
        if self.draw.random() >= TOGETHER_SHARE:
            return
        is_mixed = self.draw.random() < MIXED_SHARE
        for _ in range(self.draw.randint(1, TOGETHER_MAX)):
            self.world.counts["published in one breath"] += 1
            level = self.draw.randrange(3) if is_mixed else qos
            data = self.client.publish(topic, self.draw.randrange(VALUES), level, retain=False)
            if data is not None:
                yield data

    def _say_all(self, packets: object) -> None:
        for data in packets:  # type: ignore[attr-defined]  # a list, planned so
            if self.wire is not None:
                self._say(self.wire, data)

    # Faults --------------------------------------------------------------------------------------------

    def cut(self, step: Step) -> None:
        """Lose the connection."""
        if self.wire is not None and self.wire.is_open:
            self.world.counts["clients cut off"] += 1
            self.wire.cut(step.seconds)

    def stall(self, step: Step) -> None:
        """Read nothing for a while."""
        if self.wire is not None and self.wire.is_open:
            self.world.counts["clients stalled"] += 1
            self.wire.stall(step.seconds)

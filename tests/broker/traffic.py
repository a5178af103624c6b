"""Random traffic through a few brokers, every byte of which is noted."""

from __future__ import annotations

import random
from typing import Any

import mqtt5
from mqtt5 import ConnectPacket, PublishPacket, QoS, SubscribePacket, TopicFilter, Will

from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.state_codec import dump_state, load_state
from sojourn.live.config import Config
from sojourn.mqtt import conventions, members
from tests.live.hall import Desk, Hall, Visitor

TOPICS = ("news", "news/local", "sport", "a/b/c", "a/x/c", "weather")
PATTERNS = ("news", "news/#", "+/b/c", "#", "sport", "a/+/c", "weather", "$share/g/news/#", "$share/g/#")
FILTERS = ("", "", "n > 3", "n < 7 AND kind = 'x'", "kind IN ('x', 'y') OR n = 5", "n BETWEEN 2 AND 8")


class NotedHall(Hall):
    """A hall in which every byte on links and connections is noted."""

    def __init__(self, config: Config) -> None:
        self.noted: list[tuple[str, str, bytes]] = []
        super().__init__(config)

    def carry(self, end: str, far: str) -> bool:
        """Note what a link carries."""
        data = bytes(self.by_name[end].peer_writes.get(far, b""))
        if data:
            self.noted.append((end, far, data))
        return super().carry(end, far)


class NotedVisitor(Visitor):
    """A client whose connection is noted."""

    def take(self, data: bytes, *, is_over: bool) -> None:
        """Note what the broker wrote."""
        hall = self.desk.hall
        assert isinstance(hall, NotedHall)
        hall.noted.append((self.desk.name, str(self.number), data))
        super().take(data, is_over=is_over)


def fresh(config: Config, name: str) -> LiveBroker:
    """A broker as it is made."""
    return LiveBroker(config.settings(name), "another life", remembers=True)


def swap(desk: Desk) -> bytes:
    """Let another broker take a broker's place that was made from its state alone; return the state."""
    state = dump_state(desk.core, desk.network)
    broker = fresh(desk.hall.config, desk.name)
    load_state(state, broker.core, broker.network)
    desk.broker = broker
    return state


class Traffic:
    """What a few clients do, drawn from a seed."""

    def __init__(self, hall: NotedHall, seed: int, *, levels: tuple[int, ...] = (0, 1, 1, 2)) -> None:
        self.hall = hall
        self.draw = random.Random(seed)
        self.visitors: dict[str, Visitor] = {}
        self.published = 0
        self.levels = levels
        """The qualities of service that events are published at."""

    def step(self) -> None:
        """One thing happens."""
        draw, hall = self.draw, self.hall
        what = draw.choices(
            ("come", "go", "subscribe", "publish", "carry", "time", "advertise", "break", "mend", "forget"),
            (30, 20, 40, 140, 140, 20, 10, 5, 10, 2),
        )[0]
        here = [name for name, one in self.visitors.items() if not one.is_over]
        hall.now += draw.choice((0.0, 0.001, 0.2))
        if what == "come":
            self.come(f"c{draw.randrange(7)}")
        elif what == "carry":
            for _ in range(draw.randrange(1, 5)):
                hall.step(draw)
            if draw.random() < 0.4:
                hall.settle()
        elif what == "time":
            hall.now += draw.choice((0.5, 0.5, 3.0, 20.0))
            hall.tick()
        elif what == "break":
            hall.unlink(draw.choice(hall.desks).name)
        elif what == "mend":
            hall.relink()
        elif what == "forget":
            self.forget()
        elif here:
            visitor = self.visitors[draw.choice(here)]
            getattr(self, what)(visitor)

    def forget(self) -> None:
        """A broker dies, and has lost its store or only its connections."""
        desk = self.hall.desks[self.draw.randrange(3)]
        self.hall.unlink(desk.name)
        if self.draw.random() < 0.7:
            desk.delete_store()
        self.hall.restart(desk.name)

    def come(self, name: str) -> None:
        """A client connects somewhere, perhaps while it is elsewhere."""
        draw, hall = self.draw, self.hall
        hall.now += 0.01
        before = self.visitors.get(name)
        visitor = NotedVisitor(hall.desks[draw.randrange(len(hall.desks))], [])
        options: dict[str, Any] = {}
        if before is not None and draw.random() < 0.5:
            options["user_properties"] = [(conventions.PREVIOUS, before.desk.name)]
        if draw.random() < 0.3:
            options["will"] = Will(
                "sport", payload=b"last words", qos=QoS.AT_LEAST_ONCE, will_delay_interval=draw.choice((0, 5))
            )
        packet = ConnectPacket(
            name,
            clean_start=draw.random() < 0.15,
            session_expiry_interval=draw.choice((0, 300, 300, 0xFFFF_FFFF)),
            keep_alive=draw.choice((0, 30)),
            receive_max=draw.choice((2, 100)),
            topic_alias_max=draw.choice((0, 2)),
            **options,
        )
        self.visitors[name] = visitor
        visitor.send(packet)

    def go(self, visitor: Visitor) -> None:
        """A client leaves, with a word or without."""
        if self.draw.random() < 0.3:
            visitor.leave()
        else:
            visitor.lose()
        visitor.is_over = True

    def subscribe(self, visitor: Visitor) -> None:
        """A client wants something, or no longer."""
        draw = self.draw
        pattern = draw.choice(PATTERNS)
        if draw.random() < 0.25:
            visitor.send(mqtt5.UnsubscribePacket(2, [pattern]))
            return
        text = draw.choice(FILTERS)
        properties = [(conventions.FILTER, text)] if text else []
        if draw.random() < 0.2:
            properties.append((conventions.KEEP, "last:kind"))
        level, no_local = QoS(draw.randrange(min(self.levels), 2)), draw.random() < 0.2
        wanted = TopicFilter(
            pattern, max_qos=level, no_local=no_local and not pattern.startswith(members.SHARE)
        )
        visitor.send(
            SubscribePacket(1, [wanted], subscription_id=draw.choice((None, 7)), user_properties=properties)
        )

    def publish(self, visitor: Visitor) -> None:
        """A client says something."""
        draw = self.draw
        self.published += 1
        level = draw.choice(self.levels)
        properties = [("n", str(draw.randrange(10))), ("kind", draw.choice("xyz"))]
        if draw.random() < 0.1:
            properties.append((conventions.POLICY, "client <> 'c3'"))
        number = draw.randrange(1, 100) if level else None
        expiry = draw.choice((None, None, 5, 1_000))
        visitor.send(
            PublishPacket(
                draw.choice(TOPICS),
                b'{"count": %d}' % self.published,
                qos=QoS(level),
                packet_id=number,
                retain=draw.random() < 0.2,
                message_expiry_interval=expiry,
                user_properties=properties,
            )
        )
        if level == 2 and draw.random() < 0.7 and not visitor.is_over:
            assert number is not None
            visitor.send(mqtt5.PubRelPacket(number))

    def advertise(self, visitor: Visitor) -> None:
        """A client says what it will publish."""
        text = self.draw.choice((b"topic = 'news' AND n > 1", b"topic = 'sport'", b""))
        visitor.send(PublishPacket(conventions.ADVERTISE_TOPIC, text, qos=QoS.AT_LEAST_ONCE, packet_id=100))

"""Clients of a network that say strange things in good packets: no broker and no link fails over them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from mqtt5 import (
    ConnectPacket,
    DisconnectPacket,
    PubCompPacket,
    PublishPacket,
    PubRecPacket,
    PubRelPacket,
    QoS,
    RetainHandling,
    SubscribePacket,
    TopicFilter,
    UnsubscribePacket,
    Will,
)

from sojourn.broker.live_broker import LiveBroker
from sojourn.mqtt import conventions
from tests.live.hall import Hall, Visitor, line

NAMES = [text for name, text in vars(conventions).items() if name.isupper() and isinstance(text, str)]
HUGE = "9" * 30
TEXTS = [
    "", "0", "1", "-1", "true", HUGE, "1e999", "nan", "(", "x" * 5_000, "it's", "\u2028", "[]", "null",
    '{"a": 1}', f'{{"a": {HUGE}, "b": -{HUGE}}}', '{"w@B3": 1.5}', "B1", "B3", "B9", "w:1", f"r0:{HUGE}",
    "x = 1", "x > 1 AND (a = 1 OR b = 2)", "topic = 'a'", "topic LIKE 'a/#'", "NOT topic LIKE '#'", "TRUE",
    "FALSE", "a IN (1, 2)", "a LIKE 'x%' OR a IS NULL", "a.b.c = 1", "last:x", "highest:x",
    " AND ".join(f"(a{number} = 1 OR b{number} = 1)" for number in range(6)),
]  # fmt: skip
PATTERNS = ["+/b", "#", "a/#", "$SYS/#", "$share/g/a", "+", "a/+/c", "/" * 300]
TOPICS = ["a", "a/b", "$sojourn/advertise", "$sojourn/x", "it's/100%", "\\", "x" * 5_000, "/", "%", "ü/😀"]
PAYLOADS = [b"", b"x", b'{"x": 2}', b'{"topic": 5, "a": {"b": {"c": 1}}}', b'{"x": 1e400}', b"x = 1\nFALSE"]


class Strangers:
    """Clients that come, speak and go at random."""

    def __init__(self, seed: int) -> None:
        draw = self.draw = random.Random(seed)
        scheme = draw.choice(("proactive", "reactive", "durable"))
        mode = draw.choice(("content", "content", "flooding"))
        self.hall = Hall(line(3, scheme, mode, timeout_s=draw.choice((1.0, 60.0))))
        self.here: list[Visitor] = []

    def properties(self) -> list[tuple[str, str]]:
        """A few user properties."""
        draw = self.draw
        return [
            (draw.choice([*NAMES, "x", "a", "a.b", ""]), draw.choice(TEXTS))
            for _ in range(draw.choice((0, 0, 1, 2, 4)))
        ]

    def come(self) -> None:
        """Let one connect."""
        draw = self.draw
        will = Will(
            draw.choice(TOPICS),
            payload=draw.choice(PAYLOADS),
            user_properties=self.properties(),
            will_delay_interval=draw.choice((0, 5)),
        )
        self.hall.now += 0.01
        visitor = Visitor(draw.choice(self.hall.desks), [])
        visitor.send(
            ConnectPacket(
                draw.choice(("r0", "r1", "w", "it's", "")),
                clean_start=draw.random() < 0.3,
                session_expiry_interval=draw.choice((0, 10, 0xFFFF_FFFF)),
                keep_alive=draw.choice((0, 1)),
                receive_max=draw.choice((1, 65_535)),
                max_packet_size=draw.choice((None, None, 60, 5)),
                topic_alias_max=draw.choice((0, 2)),
                will=draw.choice((None, None, will)),
                user_properties=self.properties(),
            )
        )
        self.here.append(visitor)

    def packet(self) -> Any:
        """Something that a client may send."""
        draw = self.draw
        qos = draw.randrange(3)
        wanted = TopicFilter(
            draw.choice(PATTERNS + TOPICS),
            max_qos=QoS(qos),
            retain_handling=RetainHandling(draw.randrange(3)),
        )
        published = PublishPacket(
            draw.choice(TOPICS),
            draw.choice(PAYLOADS),
            qos=QoS(qos),
            packet_id=draw.randrange(1, 9) if qos else None,
            retain=draw.random() < 0.2,
            message_expiry_interval=draw.choice((None, 0, 1, 0xFFFF_FFFF)),
            user_properties=self.properties(),
        )
        answer = draw.choice((PubRecPacket, PubRelPacket, PubCompPacket))(draw.randrange(1, 9))
        subscribe = SubscribePacket(1, [wanted], user_properties=self.properties())
        leave = DisconnectPacket(session_expiry_interval=draw.choice((None, 0, 5)))
        choices = (subscribe, published, UnsubscribePacket(1, [wanted.pattern]), answer, leave)
        return draw.choices(choices, (5, 6, 1, 1, 1))[0]

    def step(self) -> None:
        """Let something happen."""
        draw = self.draw
        if not self.here or draw.random() < 0.25:
            self.come()
        else:
            visitor = draw.choice(self.here)
            if visitor.number not in visitor.desk.visitors:
                self.here.remove(visitor)
            elif draw.random() < 0.05:
                visitor.lose()
            else:
                visitor.send(self.packet())
        if draw.random() < 0.5:
            self.hall.settle()
        if draw.random() < 0.1:
            self.hall.wait(draw.choice((0.5, 2, 8)))


def remembered(broker: LiveBroker) -> dict[str, Any]:
    """What a broker must know after a restart: sessions, interests, how far it got with its neighbours."""
    assert broker.network is not None
    links, clients = broker.network.links, broker.network.clients
    return {
        "sessions": {
            name: (
                sorted(one.subscriptions),
                one.advertisements,
                one.expires_s,
                one.will_s,
                one.inflight.keys(),
            )
            for name, one in broker.core.state.sessions.items()
        },
        "clients": {
            links.names.client_name(client): (one.epoch, one.arrived, one.roams, one.previous)
            for client, one in clients.roamers.items()
        },
        "interests": {links.names.subscription_text(number) for number in clients.broker.router.subs},
        "frames": {peer: channel.last for peer, channel in links.channels.items()},
    }


def see_to_it(hall: Hall) -> None:
    """An event crosses the network, and each broker's journal leads to what the broker knows."""
    hall.wait(20)
    reader, writer = hall.visit(0, "reader"), hall.visit(2, "writer")
    hall.settle()
    reader.subscribe("a plain topic")
    hall.settle()
    writer.publish("a plain topic", b"hello")
    hall.settle()
    assert reader.got == [b"hello"]
    for desk in hall.desks:
        assert remembered(desk.replayed()) == remembered(desk.broker)


@pytest.mark.parametrize("seed", range(30))
def test_brokers_stand_whatever_clients_say(seed: int) -> None:
    """Afterwards events still cross the network, and each broker's journal can be told again."""
    strangers = Strangers(seed)
    for _ in range(120):
        strangers.step()
    see_to_it(strangers.hall)


@pytest.mark.parametrize("seed", range(20))
def test_brokers_that_are_killed_meanwhile_come_back(seed: int) -> None:
    """They agree with their neighbours about what was said between them, or no link would begin again."""
    strangers = Strangers(seed)
    hall, draw = strangers.hall, strangers.draw
    for _ in range(120):
        strangers.step()
        if draw.random() < 0.04:
            hall.restart(draw.choice(hall.desks).name)
            strangers.here = [visitor for visitor in strangers.here if not visitor.is_over]
    see_to_it(hall)

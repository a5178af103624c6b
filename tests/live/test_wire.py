"""Messages between brokers: there and back, and whatever a hostile peer may send."""

import random
from typing import Any

import msgspec
import pytest

from sojourn.broker.carried import Carried, WireError
from sojourn.broker.wire import MESSAGES, Wire
from sojourn.interest import Advertisement, Filter
from sojourn.mqtt.content import parse_policy
from sojourn.mqtt.message import Properties, new_message
from sojourn.routing import messages

EPOCH: Any = {"destination": 1, "sender": 2, "client": 0, "epoch": 7}


class Names:
    """The numbers of one process."""

    def __init__(self) -> None:
        self.clients: list[str] = []
        self.subscriptions: list[str] = []
        self.advertisements: list[str] = []

    def client_name(self, number: int) -> str:
        """By number."""
        return self.clients[number]

    def client_number(self, name: str) -> int:
        """By name."""
        return _number(self.clients, name)

    def subscription_text(self, number: int) -> str:
        """By number."""
        return self.subscriptions[number]

    def subscription_number(self, text: str) -> int:
        """By canonical text."""
        return _number(self.subscriptions, str(Filter.parse(text)))

    def advertisement_text(self, number: int) -> str:
        """By number."""
        return self.advertisements[number]

    def advertisement_number(self, text: str) -> int:
        """By canonical text."""
        return _number(self.advertisements, str(Advertisement.parse(text)))


def _number(known: list[str], name: str) -> int:
    if name not in known:
        known.append(name)
    return known.index(name)


def event(number: int) -> Carried:
    """An event with everything that travels."""
    message = new_message(
        f"cars/{number}",
        b'{"speed": 93}',
        qos=1,
        now=10.0,
        publisher="car",
        retain=True,
        expiry=60,
        properties=Properties(1, "application/json", "answers", b"\x01", (("road", "A2"),)),
        policy=parse_policy("rank > 3"),
    )
    message.source, message.sequence, message.party = "car@B1", number, "192.0.2.7"
    return Carried(message)


def all_messages(names: Names) -> list[object]:
    """One message of every kind, with every field that may be empty also empty."""
    sub, other = names.subscription_number("speed > 80"), names.subscription_number("topic = 'a/b'")
    ad = names.advertisement_number("speed > 0")
    names.client_number("phone")
    return [
        messages.Advertise(ad),
        messages.Unadvertise(ad, 4),
        messages.Subscribe(sub),
        messages.Unsubscribe(other, 9),
        messages.Prepare(1, 0, (ad,), keep=True),
        messages.Release(1, 0, everywhere=True),
        messages.Copy(**EPOCH, subscriptions=(sub, other), version=3, others=(0, 2)),
        messages.Activate(**EPOCH, marks={"car@B1": 5}, others=(0,), version=1 << 61),
        messages.Activate(**EPOCH, marks={}, others=(), version=2, subscriptions=(other,)),
        messages.Activated(**EPOCH, found=False),
        messages.Deactivate(**EPOCH),
        messages.Delete(**EPOCH, for_good=True),
        messages.Moved(
            **EPOCH, marks=None, holders=(1,), wants=True, subscriptions=(sub,), version=1, after=3
        ),
        messages.ForwardEnd(**EPOCH, outcome=2, marks={"x": 1}),
        messages.Ask(**EPOCH),
        messages.Context(**EPOCH, subscriptions=(sub,), version=4, holder=2),
    ]


def test_every_kind_of_message_comes_back_as_it_was() -> None:
    """Between two processes that number everything differently, too."""
    here, there = Names(), Names()
    there.clients = ["somebody else"]
    there.subscriptions = [str(Filter.parse("x = 1")), str(Filter.parse("topic = 'a/b'"))]
    sender, receiver = Wire(here, 3), Wire(there, 3)
    back = Wire(here, 3)
    for message in all_messages(here):
        body = sender.encode(message, 0.0)
        assert back.decode(body, 0.0) == message
        elsewhere = receiver.decode(body, 0.0)
        assert back.decode(receiver.encode(elsewhere, 0.0), 0.0) == message


def test_an_event_keeps_everything_on_its_way() -> None:
    """Its number, attributes, options, policy and what is left of its life."""
    wire = Wire(Names(), 3)
    sent = event(3)
    got = wire.decode(wire.encode(sent, 30.0), 1_000.0)
    assert (got.event, got.event.source, got.event.sequence) == (sent.event, "car@B1", 3)
    assert got.event.get("speed") == 93
    assert got.event.get("road") == "A2"
    message = got.message
    assert (message.topic, message.payload, message.qos, message.retain) == (
        "cars/3",
        b'{"speed": 93}',
        1,
        True,
    )
    assert message.properties == sent.message.properties
    assert (message.publisher, message.party) == ("car", "192.0.2.7")
    assert message.expires_s == 1_040.0
    assert str(message.policy) == str(sent.message.policy)
    forward = messages.Forward(**EPOCH, publications=(event(1), event(2)))
    wire._names.client_number("phone")
    assert [one.event.sequence for one in wire.decode(wire.encode(forward, 0.0), 0.0).publications] == [1, 2]


def test_events_of_brokers_that_know_no_parties_are_on_nobodys_account() -> None:
    """Journals hold such frames too."""
    wire = Wire(Names(), 3)
    fields = msgspec.msgpack.decode(wire.encode(event(3), 30.0))
    assert fields.pop() == "192.0.2.7"
    got = wire.decode(msgspec.msgpack.encode(fields), 1_000.0)
    assert (got.message.topic, got.message.party) == ("cars/3", "")


@pytest.mark.parametrize("seed", range(4))
def test_mutated_frames_become_messages_or_wire_errors(seed: int) -> None:
    """No bytes from a peer raise anything else."""
    draw = random.Random(seed)
    names = Names()
    wire = Wire(names, 3)
    bodies = [wire.encode(message, 0.0) for message in [*all_messages(names), event(1)]]
    refused: list[str] = []
    for _ in range(4_000):
        body = bytearray(draw.choice(bodies))
        for _ in range(draw.randrange(1, 4)):
            body[draw.randrange(len(body))] = draw.randrange(256)
        if draw.random() < 0.2:
            del body[draw.randrange(len(body)) :]
        try:
            wire.decode(bytes(body), 0.0)
        except WireError as error:
            refused.append(str(error))
    assert len(refused) > 1_000
    assert all(sentence.startswith("A peer ") for sentence in refused)


def test_no_two_messages_are_of_the_same_kind() -> None:
    """Or one would be read as the other."""
    kinds = [one.kind for one in MESSAGES]  # type: ignore[attr-defined]  # every message has a kind
    assert len({*kinds, int(messages.Kind.PUBLISH)}) == len(kinds) + 1

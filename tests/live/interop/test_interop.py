"""What people try first with a new broker, by paho: MQTT 3.1.1 and 5, over TCP and over WebSockets.

The behaviours are those that interoperability suites for MQTT look at; the tests are our own. One broker of a
network of two publishes, at the other one the client under test sits, unless a behaviour is of one broker.
"""

from __future__ import annotations

from typing import Any

import pytest
from paho.mqtt.enums import MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes

from tests.live.interop.pahos import NEW, PATIENCE_S, WAYS, Network, Paho, names, properties_of

# Both versions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_of_every_quality_cross_the_network(
    client: Paho, source: Paho, topic: str, qos: int
) -> None:
    """Both ways; the quality is the lower of what is published and what is asked for."""
    assert client.subscribe(f"{topic}/down/#", qos) == [qos]
    assert source.subscribe(f"{topic}/up/#", 2) == [2]
    for published in range(3):
        source.publish(f"{topic}/down/{published}", b"%d" % published, published)
        client.publish(f"{topic}/up/{published}", b"%d" % published, published)
    assert client.take(3) == [(f"{topic}/down/{n}", b"%d" % n, min(n, qos)) for n in range(3)]
    assert source.take(3) == [(f"{topic}/up/{n}", b"%d" % n, n) for n in range(3)]


def test_overlapping_subscriptions_bring_a_message_once_at_the_highest_quality(
    client: Paho, source: Paho, topic: str
) -> None:
    """3.3.4 of MQTT 5, 3.3.5 of 3.1.1: one copy for all of them is allowed, and what we send."""
    client.subscribe(f"{topic}/#", 0)
    client.subscribe(f"{topic}/+", 2)
    client.subscribe(f"{topic}/a", 1)
    source.publish(f"{topic}/a", b"x", 2)
    assert client.take() == [(f"{topic}/a", b"x", 2)]
    client.heard_nothing_but(f"{topic}/a", source)


def test_wildcards_and_topics_with_a_dollar(client: Paho, source: Paho, topic: str) -> None:
    """+ stands for an empty level too, # for its parent, and neither for a first level with a dollar."""
    client.subscribe(f"{topic}/+/c", 0)
    client.subscribe(f"{topic}/p/#", 0)
    for ending in ("a/c", "/c", "c", "a/b/c", "p", "p/q/r"):
        source.publish(f"{topic}/{ending}", b"", 1)
    assert [name for name, _, _ in client.take(4)] == [
        f"{topic}/{ending}" for ending in ("a/c", "/c", "p", "p/q/r")
    ]


def test_retained_messages(client: Paho, source: Paho, topic: str) -> None:
    """They greet whoever subscribes, with the flag; an empty one ends them."""
    for ending, qos in (("a", 0), ("b", 1), ("c", 2)):
        source.publish(f"{topic}/{ending}", b"kept", qos, retain=True)
    client.subscribe(f"{topic}/+")
    found = [client.got.get(timeout=PATIENCE_S) for _ in range(3)]
    assert {(one.topic[-1], one.qos) for one in found} == {("a", 0), ("b", 1), ("c", 2)}
    assert all(one.retain for one in found)
    for ending in ("a", "b", "c"):
        source.publish(f"{topic}/{ending}", b"", 1, retain=True)
    assert [payload for _, payload, _ in client.take(3)] == [b"", b"", b""]
    client.client.unsubscribe(f"{topic}/+")
    assert client.subscribe(f"{topic}/#") == [2]
    client.heard_nothing_but(f"{topic}/a", source)


@pytest.mark.parametrize(("version", "way"), WAYS)
def test_messages_wait_for_a_session_that_is_kept(
    network: Network, source: Paho, topic: str, version: MQTTProtocolVersion, way: str
) -> None:
    """Also when the client comes back at another broker, and by another way and in the other version."""
    name = f"keeper-{next(names)}"
    others = [(version, way), *(one for one in WAYS if one != (version, way))]
    for turn, (one, by) in enumerate(others):
        client = Paho(one, by, name)
        flags, _, _ = client.connect(network.place(turn % 2), clean=False, SessionExpiryInterval=600)
        assert bool(flags.session_present) == (turn > 0)
        if turn:
            assert client.take(2) == [(topic, b"%d" % turn, 1), (topic, b"%d" % turn, 2)]
        else:
            client.subscribe(topic, 2)
        client.leave()
        for qos in (1, 2):  # whether one of QoS 0 waits too is the brokers' choice
            source.publish(topic, b"%d" % (turn + 1), qos)
    client = Paho(version, way, name)
    flags, _, _ = client.connect(network.place(0), clean=True)
    assert not flags.session_present
    client.leave()


@pytest.mark.parametrize(("version", "way"), WAYS)
def test_a_lost_client_leaves_its_will(
    network: Network, source: Paho, topic: str, version: MQTTProtocolVersion, way: str
) -> None:
    """And one that disconnects does not."""
    source.subscribe(topic)
    polite, lost = Paho(version, way), Paho(version, way)
    for one in (polite, lost):
        one.client.will_set(topic, b"gone", 1)
        one.connect(network.place(0))
    polite.leave()
    lost.vanish()
    assert source.take() == [(topic, b"gone", 1)]
    source.heard_nothing_but(topic, source)


# MQTT 5 alone ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["tcp", "websockets"])
class TestMqtt5:
    """What only MQTT 5 has."""

    def test_the_broker_names_a_client_and_shortens_its_keep_alive(self, network: Network, way: str) -> None:
        """Assigned client identifier and server keep alive; both are told."""
        client = Paho(NEW, way)
        client.client._client_id = b""
        _, code, said = client.connect(network.place(0), keep_alive=500)
        assert code == 0
        assert said.AssignedClientIdentifier
        assert said.ServerKeepAlive == 30
        assert said.ReceiveMaximum == 20
        assert said.TopicAliasMaximum == 10
        client.leave()

    def test_a_will_waits_for_its_delay_and_is_cancelled_by_a_return(
        self, network: Network, source: Paho, topic: str, way: str
    ) -> None:
        """A client that is back in time takes it back; one that is not has it published."""
        source.subscribe(topic)
        name = f"delayed-{next(names)}"
        for payload, is_back in ((b"first", True), (b"second", False)):
            client = Paho(NEW, way, name)
            will = properties_of(PacketTypes.WILLMESSAGE, WillDelayInterval=600 if is_back else 1)
            client.client.will_set(topic, payload, 1, properties=will)
            client.connect(network.place(0), clean=False, SessionExpiryInterval=600)
            client.vanish()
        assert source.take() == [(topic, b"second", 1)]
        source.heard_nothing_but(topic, source)

    def test_topic_aliases_both_ways(self, network: Network, source: Paho, topic: str, way: str) -> None:
        """The broker follows a client's, and uses its own where the client allows it."""
        client = Paho(NEW, way)
        client.connect(network.place(0), TopicAliasMaximum=5)
        client.subscribe(f"{topic}/#", 1)
        client.publish(f"{topic}/a", b"1", 1, TopicAlias=3)
        client.publish("", b"2", 1, TopicAlias=3)
        source.publish(f"{topic}/b", b"3", 1)
        source.publish(f"{topic}/b", b"4", 1)
        found = [client.got.get(timeout=PATIENCE_S) for _ in range(4)]
        # paho shows an alias as the topic's absence: the second of each pair came without one.
        assert sorted(bytes(one.payload) for one in found) == [b"1", b"2", b"3", b"4"]
        assert {getattr(one.properties, "TopicAlias", 0) for one in found} == {1, 2}
        client.leave()

    def test_retain_handling_and_retain_as_published(
        self, network: Network, source: Paho, topic: str, way: str
    ) -> None:
        """0 greets every time, 1 only a new subscription, 2 never; the flag is kept where asked for."""
        source.publish(topic, b"kept", 1, retain=True)
        client = Paho(NEW, way)
        client.connect(network.place(0))
        for handling, is_greeted in ((2, False), (1, False), (0, True), (0, True)):
            client.subscribe(topic, 1, retainHandling=handling, retainAsPublished=True)
            if is_greeted:
                assert client.take() == [(topic, b"kept", 1)]
        source.publish(topic, b"live", 1, retain=True)
        live = client.got.get(timeout=PATIENCE_S)
        assert (bytes(live.payload), live.retain) == (b"live", True)
        client.leave()

    def test_subscription_identifiers_and_user_properties(
        self, network: Network, source: Paho, topic: str, way: str
    ) -> None:
        """All identifiers that fit are told; properties arrive as they were sent."""
        client = Paho(NEW, way)
        client.connect(network.place(0))
        client.subscribe(f"{topic}/#", 1, identifier=7)
        client.subscribe(f"{topic}/a", 1, identifier=9)
        pairs = [("a", "1"), ("a", "2"), ("b", "3")]
        source.publish(f"{topic}/a", b"x", 1, UserProperty=pairs, ContentType="text", ResponseTopic="r")
        told: Any = client.got.get(timeout=PATIENCE_S).properties
        assert set(told.SubscriptionIdentifier) == {7, 9}
        assert told.UserProperty == pairs
        assert (told.ContentType, told.ResponseTopic) == ("text", "r")
        client.leave()

    def test_the_window_of_a_client_is_respected(
        self, network: Network, source: Paho, topic: str, way: str
    ) -> None:
        """No more messages come than the client said it takes before it has answered."""
        client = Paho(NEW, way)
        client.client.manual_ack_set(on=True)
        client.connect(network.place(0), ReceiveMaximum=2)
        client.subscribe(topic, 1)
        for number in range(5):
            source.publish(topic, b"%d" % number, 1)
        got: list[bytes] = []
        while len(got) < 5:
            message = client.got.get(timeout=PATIENCE_S)
            got.append(bytes(message.payload))
            assert client.got.qsize() <= 1
            client.client.ack(message.mid, message.qos)
        assert got == [b"%d" % number for number in range(5)]
        client.leave()

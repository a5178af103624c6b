"""Clients that we did not write: Mosquitto's command-line programs and paho."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from tests.live.mosquitto import MOSQUITTO, Mosquitto
from tests.live.raw_client import Raw

SUB, PUB = shutil.which("mosquitto_sub") or "", shutil.which("mosquitto_pub") or ""
LINEWISE = shutil.which("stdbuf") or "stdbuf"
needs_mosquitto = pytest.mark.skipif(
    not (SUB and PUB), reason="scripts/mosquitto installs Mosquitto's clients"
)
PATIENCE_S = 10.0


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Wait until something is true."""
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, f"{what} did not happen"
        time.sleep(0.01)


# Mosquitto -----------------------------------------------------------------------------------------


def listen(port: int, *arguments: str) -> subprocess.Popen[str]:
    """Start mosquitto_sub; it has subscribed when this returns."""
    process = subprocess.Popen(
        # A line at a time, or it would tell only in the end that it had subscribed.
        [LINEWISE, "-oL", SUB, "-V", "5", "-p", str(port), "-W", "10", "-d", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "Subscribed" in line or "received SUBACK" in line:
            return process
    raise AssertionError("mosquitto_sub did not subscribe")


def heard(process: subprocess.Popen[str]) -> list[str]:
    """What mosquitto_sub printed of messages until it ended."""
    assert process.stdout is not None
    with process.stdout as output:
        lines = output.read().splitlines()
    process.wait(20)
    return [line for line in lines if line.startswith("|")]


def say(port: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run mosquitto_pub."""
    command = [PUB, "-V", "5", "-p", str(port), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)


@needs_mosquitto
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_mosquitto_publishes_and_subscribes(port: int, qos: int) -> None:
    """All three qualities, with properties of the message."""
    process = listen(port, "-t", f"m/{qos}/#", "-q", "2", "-C", "3", "-F", "|%t %q %p %P")
    for number in range(3):
        done = say(
            port,
            *("-t", f"m/{qos}/{number}", "-m", f"hello {number}", "-q", str(qos)),
            *("-D", "publish", "user-property", "number", str(number)),
        )
        assert done.returncode == 0, done.stderr
    assert heard(process) == [f"|m/{qos}/{n} {qos} hello {n} number:{n}" for n in range(3)]


@needs_mosquitto
def test_mosquitto_subscribes_by_content(port: int) -> None:
    """The filter is a user property of SUBSCRIBE; attributes are user properties and fields of JSON."""
    wanted = ("-D", "subscribe", "user-property", "filter", "speed > 80 AND road = 'A2'")
    process = listen(port, "-t", "cars/#", *wanted, "-C", "2", "-F", "|%p")
    for speed, road in ((90, "A2"), (70, "A2"), (95, "A3")):
        say(port, "-t", "cars/1", "-m", f'{{"speed": {speed}, "road": "{road}"}}')
    properties = [("speed", "81.5"), ("road", "A2")]
    options = [part for name, value in properties for part in ("-D", "publish", "user-property", name, value)]
    say(port, "-t", "cars/2", "-m", "plain", *options)
    assert heard(process) == ['|{"speed": 90, "road": "A2"}', "|plain"]


@needs_mosquitto
def test_mosquitto_of_the_oldest_version_is_refused(port: int) -> None:
    """It says so in its own words."""
    done = subprocess.run(
        [PUB, "-V", "mqttv31", "-p", str(port), "-t", "a", "-m", "b"],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode != 0
    assert "unacceptable protocol version" in done.stderr


@needs_mosquitto
def test_mosquitto_retains_and_leaves_a_will(port: int) -> None:
    """A retained message greets a later subscriber; a killed client's will is published."""
    say(port, "-t", "keep/me", "-m", "kept", "-r", "-q", "1")
    process = listen(port, "-t", "keep/me", "-C", "1", "-F", "|%r %p")
    assert heard(process) == ["|1 kept"]
    watcher = listen(port, "-t", "last/words", "-C", "1", "-F", "|%p")
    dying = listen(port, "-t", "x", "--will-topic", "last/words", "--will-payload", "aargh")
    dying.kill()
    heard(dying)
    assert heard(watcher) == ["|aargh"]


@needs_mosquitto
def test_mosquitto_keeps_a_session(port: int) -> None:
    """What came while it was away is there when it is back."""
    session = ("-i", "commuter", "-c", "-x", "300", "-q", "1", "-t", "news")
    heard(listen(port, *session, "-E"))
    for number in range(5):
        say(port, "-t", "news", "-m", f"item {number}", "-q", "1")
    again = subprocess.run(
        [SUB, "-V", "5", "-p", str(port), "-W", "10", *session, "-C", "5"],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert again.stdout.split("\n")[:5] == [f"item {number}" for number in range(5)]


@pytest.mark.skipif(MOSQUITTO is None, reason="scripts/setup installs Mosquitto")
@pytest.mark.parametrize("version", ["mqttv50", "mqttv311"])
def test_mosquitto_builds_a_bridge(port: int, tmp_path: Path, version: str) -> None:
    """As a broker it is our client: messages cross both ways, once, and it tells and wills its state."""
    bridge = (
        f"connection ours\naddress 127.0.0.1:{port}\n"
        f"bridge_protocol_version {version}\ntopic bridge/# both 2\n"
        f"local_clientid local\nremote_clientid far-{version}\nrestart_timeout 1 1\n"
    )
    with Raw(port) as ours:
        ours.connect("near the bridge")
        ours.subscribe("bridge/#", f"$SYS/broker/connection/far-{version}/state")
        far = Mosquitto(tmp_path, bridge)
        try:
            assert ours.message().payload == b"1"
            with Raw(far.port) as theirs:
                theirs.connect("across the bridge")
                theirs.subscribe("bridge/#")
                theirs.publish("bridge/a", b"from there", 2)
                assert (ours.message().payload, theirs.message().payload) == (b"from there", b"from there")
                ours.publish("bridge/b", b"from here", 1)
                assert (ours.message().payload, theirs.message().payload) == (b"from here", b"from here")
        finally:
            far.kill()
        assert ours.message().payload == b"0"
        ours.expect_nothing()


# paho ----------------------------------------------------------------------------------------------


def _properties(kind: int) -> Properties:
    return Properties(kind)  # type: ignore[no-untyped-call]  # paho types it not


class Paho:
    """A paho client with its network thread and what it was told."""

    def __init__(self, port: int, client_id: str, *, clean: bool = True, expiry: int = 0) -> None:
        self.messages: list[paho.MQTTMessage] = []
        self.granted: list[list[Any]] = []
        self.connected = threading.Event()
        self.flags: Any = None
        self.client = paho.Client(
            CallbackAPIVersion.VERSION2, client_id=client_id, protocol=MQTTProtocolVersion.MQTTv5
        )
        self.client.on_message = lambda _c, _u, message: self.messages.append(message)
        self.client.on_subscribe = lambda _c, _u, _m, codes, _p: self.granted.append(codes)
        self.client.on_connect = self._on_connect
        properties = _properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval = expiry
        self.client.connect("127.0.0.1", port, clean_start=clean, properties=properties)
        self.client.loop_start()
        assert self.connected.wait(PATIENCE_S)

    def _on_connect(self, _client: Any, _data: Any, flags: Any, _code: Any, _properties: Any) -> None:
        self.flags = flags
        self.connected.set()

    def subscribe(self, topic: str, qos: int = 2, text: str | None = None, **options: Any) -> list[Any]:
        """Subscribe, with a filter if one is given; return the codes."""
        properties = _properties(PacketTypes.SUBSCRIBE)
        if text is not None:
            properties.UserProperty = ("filter", text)
        before = len(self.granted)
        self.client.subscribe(topic, options=SubscribeOptions(qos, **options), properties=properties)
        wait_for(lambda: len(self.granted) > before, "SUBACK")
        return self.granted[-1]

    def publish(self, topic: str, payload: bytes, qos: int = 0, **attributes: object) -> None:
        """Publish with attributes as user properties, and wait until it is done."""
        properties = _properties(PacketTypes.PUBLISH)
        for name, value in attributes.items():
            properties.UserProperty = (name, str(value))
        self.client.publish(topic, payload, qos, properties=properties).wait_for_publish(PATIENCE_S)

    def leave(self) -> None:
        """Disconnect normally."""
        self.client.disconnect()
        self.client.loop_stop()


def test_paho_publishes_and_subscribes(port: int) -> None:
    """All qualities, many messages, in order."""
    one, other = Paho(port, "paho1"), Paho(port, "paho2")
    one.subscribe("p/#")
    for number in range(300):
        other.publish("p/x", b"%d" % number, number % 3)
    wait_for(lambda: len(one.messages) == 300, "delivery")
    by_qos = {qos: [int(m.payload) for m in one.messages if m.qos == qos] for qos in range(3)}
    assert all(by_qos[qos] == list(range(qos, 300, 3)) for qos in range(3))
    one.leave()
    other.leave()


def test_paho_filters_by_content(port: int) -> None:
    """Only what satisfies the filter comes; one that does not parse is refused and the session goes on."""
    client = Paho(port, "paho-filter")
    assert client.subscribe("f/#", text="temperature > ")[0].value == 0x83
    assert client.subscribe("f/#", text="temperature > 30 AND indoors = true")[0].value == 2
    for temperature, indoors in ((31, "true"), (29, "true"), (40, "false"), (30.5, "true")):
        client.publish("f/x", str(temperature).encode(), 1, temperature=temperature, indoors=indoors)
    wait_for(lambda: len(client.messages) == 2, "delivery")
    assert [message.payload for message in client.messages] == [b"31", b"30.5"]
    client.leave()


def test_paho_keeps_a_session(port: int) -> None:
    """A clean start of false finds the session and what waited in it."""
    client = Paho(port, "paho-session", expiry=300)
    assert not client.flags.session_present
    client.subscribe("s/#")
    client.leave()
    sender = Paho(port, "paho-sender")
    for number in range(10):
        sender.publish("s/x", b"%d" % number, 2)
    client = Paho(port, "paho-session", clean=False, expiry=300)
    assert client.flags.session_present
    wait_for(lambda: len(client.messages) == 10, "delivery")
    assert [int(message.payload) for message in client.messages] == list(range(10))
    client.leave()
    sender.leave()

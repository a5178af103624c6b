"""Devices that speak MQTT 3.1.1 and little else, and Mosquitto's programs in both versions."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from mqtt5 import DisconnectPacket

from tests.live.old_client import OldRaw
from tests.live.raw_client import BrokerProcess, Raw

SUB, PUB = shutil.which("mosquitto_sub") or "", shutil.which("mosquitto_pub") or ""
needs_mosquitto = pytest.mark.skipif(
    not (SUB and PUB), reason="scripts/mosquitto installs Mosquitto's clients"
)
VERSIONS = ["311", "5"]


@pytest.mark.parametrize("bytes_at_once", [1, 3, 0])
def test_a_sensor_that_sends_tiny_packets(port: int, bytes_at_once: int) -> None:
    """It connects, publishes readings that others find by content, pings, and hears its commands."""
    with OldRaw(port, bytes_at_once) as sensor, Raw(port) as watcher:
        watcher.connect("watcher")
        watcher.subscribe("sensors/#", user_properties=[("filter", "celsius > 30")])
        name = f"esp-{bytes_at_once}"
        assert sensor.connect(name, keep_alive=15, will=(f"sensors/{name}", b"dead", 1, True)) == (0, 0)
        assert sensor.subscribe((f"commands/{name}", 1)) == (1,)
        for celsius in (20, 35, 10, 40):
            sensor.publish(f"sensors/{name}/t", json.dumps({"celsius": celsius}).encode(), 0)
        sensor.ping()
        assert [json.loads(watcher.message().payload)["celsius"] for _ in range(2)] == [35, 40]
        watcher.publish(f"commands/{name}", b"blink", 2)
        assert sensor.messages(1) == [b"blink"]
        sensor.ping()  # after its answer was read
        assert sensor.got == []


def test_a_device_that_falls_silent_is_missed(port: int) -> None:
    """After one and a half of its keep-alive the connection is closed and its will published."""
    with OldRaw(port) as device, Raw(port) as watcher:
        watcher.connect("watcher of silence")
        watcher.subscribe("devices/silent")
        device.connect("silent", keep_alive=1, will=("devices/silent", b"missed", 1, False))
        began = time.monotonic()
        assert watcher.message().payload == b"missed"
        assert time.monotonic() - began > 1.0
        device.expect_end()


def test_a_device_that_sleeps_finds_its_commands(port: int) -> None:
    """Deep sleep between connections with a session that is not clean; every quality of command."""
    with Raw(port) as master:
        master.connect("master")
        for turn in range(3):
            with OldRaw(port) as device:
                assert device.connect("sleeper", clean=False) == (min(turn, 1), 0)
                if not turn:
                    device.subscribe(("sleeper/#", 2))
                else:
                    assert device.messages(2) == [b"%d-1" % turn, b"%d-2" % turn]
                    device.ping()
            for qos in (1, 2):
                master.publish("sleeper/do", b"%d-%d" % (turn + 1, qos), qos)


def test_a_session_survives_the_death_of_its_broker(tmp_path: Path) -> None:
    """Kill -9 between what is acknowledged and what is heard; the other version finds the session too."""
    file = tmp_path / "kept.toml"
    file.write_text('[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\nstore = "store"\n')
    heard: list[bytes] = []
    for life in range(4):
        broker = BrokerProcess(str(file))
        try:
            if life % 2:
                with Raw(broker.port) as newer:
                    answer = newer.connect("survivor", clean_start=False, session_expiry_interval=600)
                    assert answer.session_present
                    heard += [newer.message().payload for _ in range(2)]
                    newer.send(DisconnectPacket())
                    newer.expect_end()
            else:
                with OldRaw(broker.port) as older:
                    assert older.connect("survivor", clean=False) == (1 if life else 0, 0)
                    if life:
                        heard += older.messages(2)
                        older.ping()
                    else:
                        older.subscribe(("kept/#", 2))
            with OldRaw(broker.port) as source:
                source.connect("source")
                for qos in (1, 2):
                    source.publish("kept/a", b"%d-%d" % (life, qos), qos, number=qos)
        finally:
            broker.process.kill()
            broker.process.wait()
            assert broker.process.stderr is not None
            broker.process.stderr.close()
    assert heard == [b"%d-%d" % (life, qos) for life in range(3) for qos in (1, 2)]


@needs_mosquitto
@pytest.mark.parametrize("reader", VERSIONS)
@pytest.mark.parametrize("writer", VERSIONS)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_mosquitto_in_both_versions(port: int, reader: str, writer: str, qos: int) -> None:
    """Each hears the other, and a retained message."""
    topic = f"mosquitto/{reader}/{writer}/{qos}"
    wrote = subprocess.run(
        [PUB, "-V", writer, "-p", str(port), "-t", topic, "-m", "kept", "-r", "-q", str(qos)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert wrote.returncode == 0, wrote.stderr
    with Raw(port) as other:
        other.connect()
        other.publish(topic, b"later", 1, retain=True)
    read = subprocess.run(
        [SUB, "-V", reader, "-p", str(port), "-t", topic, "-q", "2", "-C", "1", "-W", "30", "-F", "%r %q %p"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert read.stdout == "1 1 later\n"


@needs_mosquitto
def test_mosquitto_of_3_1_1_keeps_a_session(port: int) -> None:
    """What came while it was away is there when it is back."""
    session = [SUB, "-V", "311", "-p", str(port), "-i", "commuter of old", "-c", "-q", "1", "-t", "old news"]
    subprocess.run([*session, "-E"], timeout=60, check=True)
    for number in range(5):
        subprocess.run(
            [PUB, "-V", "311", "-p", str(port), "-t", "old news", "-m", f"item {number}", "-q", "1"],
            timeout=60,
            check=True,
        )
    again = subprocess.run(
        [*session, "-C", "5", "-W", "30"], capture_output=True, text=True, timeout=60, check=False
    )
    assert again.stdout.splitlines() == [f"item {number}" for number in range(5)]

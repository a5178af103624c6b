"""Who is let in, and what the configuration and the commands say when something is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mqtt5 import ConnAckPacket, ConnectPacket, PingReqPacket, PingRespPacket
from typer.testing import CliRunner

from sojourn.cli.main import app
from sojourn.errors import SojournError
from sojourn.live.brokers.admission import Doorkeeper, hash_password, password_fits
from sojourn.live.config import BrokerConfig, Config, ConfigError, UserConfig, parse_address, read_config
from sojourn.live.templates import TEMPLATES, template
from tests.live.raw_client import BrokerProcess, Raw, running_broker

USERS = """
[[brokers]]
name = "B1"
listen = "127.0.0.1:0"

[security]
anonymous = false

[[users]]
name = "medic"
password = "{medic}"
attributes = {{ role = "medic", clearance = 3 }}

[[users]]
name = "sensor"
password = "{sensor}"
publish = ["ward/+/pulse"]
subscribe = []
publish_if = "bpm BETWEEN 0 AND 300"
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that knows two users and lets nobody else in."""
    path = tmp_path_factory.mktemp("guarded") / "users.toml"
    path.write_text(USERS.format(medic=hash_password("first aid"), sensor=hash_password("beep")))
    with running_broker(str(path)) as broker:
        yield broker


def code(broker: BrokerProcess, **options: object) -> int:
    """The answer to a CONNECT."""
    with Raw(broker.port) as client:
        return int(client.connect("who", **options).reason_code)


def test_passwords_are_compared_with_their_hashes() -> None:
    """Salted, so that equal passwords look different; what is no hash fits nothing."""
    one, other = hash_password("secret"), hash_password("secret")
    assert one != other
    assert password_fits(one, b"secret")
    assert not password_fits(one, b"Secret")
    for broken in ("", "secret", "scrypt$x$y", "scrypt$$", "md5$aaaa$aaaa"):
        assert not password_fits(broken, b"secret")


def test_who_is_let_in(guarded: BrokerProcess) -> None:
    """A name and its password, nothing else."""
    assert code(guarded, username="medic", password=b"first aid") == 0
    assert code(guarded, username="medic", password=b"wrong") == 0x86
    assert code(guarded, username="nobody", password=b"first aid") == 0x86
    assert code(guarded, username="medic") == 0x86
    assert code(guarded) == 0x87


def test_permissions_and_policies_of_users(guarded: BrokerProcess) -> None:
    """A sensor publishes what it may; only those whom a policy permits see it."""
    with Raw(guarded.port) as medic, Raw(guarded.port) as sensor:
        medic.connect("m", username="medic", password=b"first aid")
        medic.subscribe("ward/#", user_properties=[("filter", "bpm > 120")])
        sensor.connect("s", username="sensor", password=b"beep")
        assert sensor.subscribe("ward/#") == [0x87]
        assert sensor.publish("ward/1/pulse", b"", 1, user_properties=[("bpm", "130")]) == 0
        assert sensor.publish("ward/1/door", b"", 1, user_properties=[("bpm", "130")]) == 0x87
        assert sensor.publish("ward/1/pulse", b"", 1, user_properties=[("bpm", "999")]) == 0x87
        assert sensor.publish("ward/1/pulse", b"", 1, user_properties=[("bpm", "60")]) == 0
        for clearance in (3, 4):
            policy = f"role = 'medic' AND clearance >= {clearance}"
            pairs = [("bpm", str(140 + clearance)), ("policy", policy)]
            assert sensor.publish("ward/1/pulse", b"", 1, user_properties=pairs) == 0
        got = [dict(medic.message().user_properties)["bpm"] for _ in range(2)]
        assert got == ["130", "143"]
        medic.expect_nothing()


def test_who_may_not_subscribe_is_not_told_what_others_subscribe_to(guarded: BrokerProcess) -> None:
    """A publisher that asks to be quenched is told to send everything, whatever others want now or later."""
    with Raw(guarded.port) as medic, Raw(guarded.port) as sensor, Raw(guarded.port) as other:
        medic.connect("m", username="medic", password=b"first aid")
        medic.subscribe("ward/1/#", user_properties=[("filter", "patient = 'Miller'")])
        asks = [("sojourn-quench", "1")]
        sensor.connect("s", username="sensor", password=b"beep", user_properties=asks)
        told = sensor.message()
        assert told.topic == "$sojourn/quench"
        assert b"Miller" not in told.payload
        assert b"ward" not in told.payload
        medic.subscribe("ward/2/#", user_properties=[("filter", "patient = 'Jones'")])
        sensor.expect_nothing()
        other.connect("o", username="medic", password=b"first aid", user_properties=asks)
        assert b"Miller" in other.message().payload


def test_a_client_that_does_not_wait_for_its_answer(guarded: BrokerProcess) -> None:
    """What it sends while its password is compared is served after that."""
    with Raw(guarded.port) as client:
        packet = ConnectPacket("hasty", clean_start=True, username="medic", password=b"first aid")
        client.send(packet.write() + PingReqPacket().write())
        client.expect(ConnAckPacket)
        client.expect(PingRespPacket)


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_are_configurations(name: str) -> None:
    """What `sojourn init` writes can be read, and its clients are where they should be."""
    config = read_config(template(name))
    assert [broker.listen for broker in config.brokers] == [
        f"127.0.0.1:{1883 + number}" for number in range(len(config.brokers))
    ]
    assert config.brokers[0].page == "127.0.0.1:8080"
    assert len(config.brokers) == {"building": 6, "line": 3, "tree": 6, "single": 1}[name]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "brokers"),
        ("brokers = []", "at least one"),
        ("x = 1", "x"),
        ("[[brokers]]\nname = 'B1'\nlisten = 'here'", "HOST:PORT"),
        ("[[brokers]]\nname = 'B1'\nlisten = '127.0.0.1:99999'", "HOST:PORT"),
        ("[[brokers]]\nname = 'B1'\nlisten = 'h:1'\nlimit = 3", "limit"),
        ("links = [['B1', 'B2']]\n[[brokers]]\nname = 'B1'\nlisten = 'h:1'", "B2"),
        ("links = [['B1', 'B1']]\n[[brokers]]\nname = 'B1'\nlisten = 'h:1'", "itself"),
        ("[[brokers]]\nname = 'B1'\nlisten = 'h:1'\n[[brokers]]\nname = 'B1'\nlisten = 'h:2'", "twice"),
        ("[[brokers]]\nname = 'B1'\nlisten = 'h:1'\n[limits]\nreceive_max = 'many'", "receive_max"),
        ("not toml", "TOML"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_place(text: str, complaint: str) -> None:
    """One sentence that names what is wrong."""
    with pytest.raises(ConfigError, match=complaint):
        read_config(text)


def test_addresses() -> None:
    """Also of IPv6."""
    assert parse_address("[::1]:1883", "listen") == ("::1", 1883)
    assert str(parse_address("[::1]:1883", "listen")) == "[::1]:1883"
    assert parse_address("127.0.0.1:0", "listen").is_loopback
    assert not parse_address("0.0.0.0:1883", "listen").is_loopback


def test_the_commands_complain_in_a_sentence(tmp_path: Path) -> None:
    """What is wrong and the way out."""
    file = tmp_path / "line.toml"
    runner = CliRunner()
    assert runner.invoke(app, ["init", "line", str(file)]).exit_code == 0
    for arguments, complaint in (
        (["init", "star"], "building, line, tree, single"),
        (["init", "line", str(file)], "already"),
        (["serve", str(tmp_path / "none.toml")], "sojourn init single"),
        (["serve", str(tmp_path)], f"sojourn init single {tmp_path / 'sojourn.toml'}"),
        (["serve", str(file)], "B1, B2, B3"),
        (["serve", str(file), "--broker", "B9"], "B1, B2, B3"),
        (["serve", str(file), "--port", "1883"], "--port"),
        (["serve", "--broker", "B1"], "configuration"),
    ):
        done = runner.invoke(app, arguments)
        assert isinstance(done.exception, SojournError), arguments
        assert complaint in str(done.exception)


def test_a_taken_port_is_told(guarded: BrokerProcess) -> None:
    """With the address and the way out."""
    done = CliRunner().invoke(app, ["serve", "--port", str(guarded.port)])
    assert isinstance(done.exception, SojournError)
    assert f"127.0.0.1:{guarded.port}" in str(done.exception)


def test_many_wrong_passwords_do_not_keep_others_from_logging_in(guarded: BrokerProcess) -> None:
    """Somebody else's login is answered long before all wrong ones are, and one that was right before too."""
    assert code(guarded, username="medic", password=b"first aid") == 0
    attackers = [Raw(guarded.port) for _ in range(90)]
    for number, one in enumerate(attackers):
        one.send(ConnectPacket(f"a{number}", username="medic", password=b"guess %d" % number))
    assert code(guarded, username="sensor", password=b"beep") == 0
    assert code(guarded, username="medic", password=b"first aid") == 0
    waiting = 0
    for one in attackers:
        try:
            one.expect_nothing(0.0)
        except AssertionError:
            continue
        waiting += 1
    assert waiting > 45, "most of the wrong ones still wait"
    for one in attackers:
        one.drop()


def test_too_many_logins_of_an_address_are_told_so(tmp_path: Path) -> None:
    """The right code, and a count of it."""
    path = tmp_path / "users.toml"
    limits = "[limits]\nlogins_waiting_max = 5\n"
    path.write_text(USERS.format(medic=hash_password("first aid"), sensor=hash_password("beep")) + limits)
    with running_broker(str(path)) as broker:
        attackers = [Raw(broker.port) for _ in range(30)]
        for number, one in enumerate(attackers):
            one.send(ConnectPacket(f"a{number}", username="medic", password=b"guess %d" % number))
        told = [int(one.expect(ConnAckPacket).reason_code) for one in attackers[-10:]]
        assert set(told) == {0x9F}
        for one in attackers:
            one.drop()


@pytest.mark.parametrize("kept", ["plain", "scrypt$", "scrypt$YQ==", "scrypt$!$YQ==", "other$YQ==$YQ=="])
def test_a_password_that_is_no_hash_is_refused_at_once(kept: str) -> None:
    """Nobody could ever log in by it, so the configuration is not taken, and says which command helps."""
    config = Config(
        brokers=[BrokerConfig(name="B1", listen="127.0.0.1:0")], users=[UserConfig(name="ann", password=kept)]
    )
    with pytest.raises(ConfigError, match=r"'ann' is no hash.*`sojourn password`"):
        Doorkeeper(config, "B1")

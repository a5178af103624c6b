"""A changed configuration takes effect in a running broker, by `sojourn reload` and by SIGHUP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sojourn.cli.main import app
from sojourn.errors import SojournError
from sojourn.live.brokers.admission import hash_password
from sojourn.live.brokers.control import Answer, Control, ControlError, ask, socket_path
from sojourn.live.brokers.operating import reloaded
from sojourn.live.brokers.server import Server
from sojourn.live.config import Address, Config, ConfigError, load_config, single_broker
from tests.live.raw_client import BrokerProcess, Raw, running_broker
from tests.live.test_security import Authority

NOT_AUTHORIZED, ADMINISTRATIVE, BANNED = 0x87, 0x98, 0x8A
PASSWORD = hash_password("secret")
OTHER = hash_password("another")


def write(path: Path, users: str, more: str = "") -> None:
    """Write a configuration of one broker."""
    store = path.parent / "store"
    path.write_text(f'[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\nstore = "{store}"\n{more}\n{users}')


def ann(**more: str) -> str:
    """A user, as a piece of configuration."""
    keys = {"name": '"ann"', "password": f'"{PASSWORD}"', **more}
    return "[[users]]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())


def sojourn(*arguments: str) -> str:
    """Run a command that has to succeed."""
    done = CliRunner().invoke(app, [*arguments])
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done.output


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def entered(
    broker: BrokerProcess, name: str = "phone", password: bytes = b"secret", **options: object
) -> Raw:
    """Ann, connected."""
    client = Raw(broker.port)
    connack = client.connect(name, username="ann", password=password, **options)
    assert int(connack.reason_code) == 0
    return client


def test_narrower_rights_hold_at_once(tmp_path: Path) -> None:
    """For who is connected and for who is away: subscriptions end, and nothing more is delivered by them."""
    path = tmp_path / "one.toml"
    write(path, ann())
    with running_broker(str(path)) as broker:
        away = entered(broker, "away", session_expiry_interval=600)
        here, publisher = entered(broker), entered(broker, "publisher")
        for client in (away, here):
            assert client.subscribe("open/#", "closed/#") == [2, 2]
        away.drop()
        write(path, ann(subscribe='["open/#"]', publish='["open/#", "closed/1"]'))
        assert "read its configuration anew" in sojourn("reload", str(path))
        assert publisher.publish("closed/1", b"secret", 1) == 0
        assert publisher.publish("closed/2", b"secret", 1) == NOT_AUTHORIZED
        publisher.publish("open/1", b"public", 1)
        assert here.message().payload == b"public"
        here.expect_nothing()
        assert here.subscribe("closed/#") == [NOT_AUTHORIZED]
        back = entered(broker, "away", clean_start=False, session_expiry_interval=600)
        assert back.message().payload == b"public", "the rest was not kept for it"
        back.expect_nothing()
        for client in (here, publisher, back):
            client.drop()


def test_who_gave_a_name_without_a_proof_is_sent_away_once_names_are_proved(tmp_path: Path) -> None:
    """Until somebody can prove one, it is only a name; a client without any may stay."""
    path = tmp_path / "one.toml"
    write(path, "")
    with running_broker(str(path)) as broker:
        named, nobody = Raw(broker.port), Raw(broker.port)
        named.connect("named", username="ann")
        nobody.connect("nobody")
        write(path, ann())
        assert "; 1 clients were sent away" in sojourn("reload", str(path))
        named.expect_end(NOT_AUTHORIZED)
        assert nobody.publish("open/1", b"", 1) in (0, 0x10)
        nobody.drop()


def test_who_would_not_be_let_in_any_more_is_sent_away(tmp_path: Path) -> None:
    """A user that is gone, a password that is another one, an address that is not open any more."""
    path = tmp_path / "one.toml"
    write(path, ann(), "anonymous = true")
    with running_broker(str(path)) as broker:
        client = entered(broker)
        nobody = Raw(broker.port)
        nobody.connect("nobody")
        write(path, ann(password=f'"{OTHER}"'), "anonymous = false")
        broker.process.send_signal(signal.SIGHUP)
        client.expect_end(NOT_AUTHORIZED)
        nobody.expect_end(NOT_AUTHORIZED)
        with Raw(broker.port) as old:
            assert int(old.connect("phone", username="ann", password=b"secret").reason_code) == 0x86
        client = entered(broker, password=b"another")
        write(path, "", "anonymous = false")
        sojourn("reload", str(path))
        client.expect_end(NOT_AUTHORIZED)


def test_what_clients_without_a_name_may_do_is_reloaded(tmp_path: Path) -> None:
    """Narrower rights of guests hold for those who are here."""
    path = tmp_path / "one.toml"
    write(path, "")
    with running_broker(str(path)) as broker, Raw(broker.port) as guest:
        guest.connect("guest")
        assert guest.subscribe("closed/#") == [2]
        write(path, "", '[security.guests]\nsubscribe = ["open/#"]\npublish = ["open/#", "closed/#"]')
        sojourn("reload", str(path))
        assert guest.publish("closed/1", b"secret", 1) == 0
        guest.expect_nothing()
        assert guest.publish("other", b"", 1) == NOT_AUTHORIZED


def test_a_wrong_configuration_changes_nothing(tmp_path: Path) -> None:
    """It is refused with its sentence; what needs a restart is named."""
    path = tmp_path / "one.toml"
    write(path, ann())
    with running_broker(str(path)) as broker:
        client = entered(broker)
        write(path, ann(publish_if='"level <"'))
        done = CliRunner().invoke(app, ["reload", str(path)])
        assert isinstance(done.exception, ControlError)
        assert "The permissions of user 'ann' cannot be read" in str(done.exception)
        assert client.publish("a", b"", 1) == 0
        write(path, ann(), "[limits]\nreceive_max = 7")
        assert "limits changed too and needs a restart" in sojourn("reload", str(path))
        client.drop()


def test_another_file_is_not_said_to_have_been_read(tmp_path: Path) -> None:
    """It leads to the same brokers, and they read their own; a copy of it, or a link to it, will do."""
    path, other, way = (tmp_path / f"{name}.toml" for name in ("one", "other", "way"))
    write(path, ann())
    way.symlink_to(path)
    with running_broker(str(path)):
        write(other, ann(publish='["open/#"]'))
        done = CliRunner().invoke(app, ["reload", str(other)])
        assert isinstance(done.exception, ControlError)
        assert f"B1 was started with {path} and reads that anew, and {other} says" in str(done.exception)
        for same in (path, way, other):
            other.write_bytes(path.read_bytes())
            assert "read its configuration anew" in sojourn("reload", str(same))
        write(path, ann(publish='["open/#"]'))
        assert "read its configuration anew" in sojourn("reload", str(path))


def test_kicks_and_bans_from_the_command_line(tmp_path: Path) -> None:
    """They end connections at once; a ban is there after a restart and can be ended."""
    path = tmp_path / "one.toml"
    write(path, ann())
    with running_broker(str(path)) as broker:
        client = entered(broker)
        assert "1 connection ended" in sojourn("kick", "phone", str(path))
        client.expect_end(ADMINISTRATIVE)
        client = entered(broker)
        sojourn("ban", "user:ann", str(path))
        client.expect_end(ADMINISTRATIVE)
    with running_broker(str(path)) as broker:
        with Raw(broker.port) as banned:
            assert int(banned.connect("x", username="ann", password=b"secret").reason_code) == BANNED
        assert sojourn("bans", str(path)).split() == ["user:ann"]
        sojourn("unban", "user:ann", str(path))
        assert sojourn("bans", str(path)) == ""
        entered(broker).drop()
        assert stat.S_IMODE((tmp_path / "control").stat().st_mode) == 0o700
        assert stat.S_IMODE(socket_path(tmp_path / "control", "B1").stat().st_mode) == 0o600
        for wrong in ({"command": "dance"}, {"command": "ban", "scope": "planet", "whom": "x"},
                      {"command": "ban", "scope": "address", "whom": "x"}, {"command": "kick"}):  # fmt: skip
            with pytest.raises(ControlError, match="refuses"):
                ask(tmp_path / "control", "B1", wrong)
    done = CliRunner().invoke(app, ["kick", "phone", str(path)])
    assert isinstance(done.exception, ControlError)
    assert "does not run here" in str(done.exception)


@pytest.mark.parametrize("line", [b"[" * 60_000, b"dance", b"\xff", b"[]", b"1"])
def test_an_operator_who_asks_for_nonsense_is_told_so(
    line: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In one sentence, and nothing is logged."""

    async def scenario() -> dict[str, str]:
        control = Control(tmp_path, "B1", {})
        await control.start()
        try:
            reader, writer = await asyncio.open_unix_connection(control.path)
            writer.write(line + b"\n")
            answer: dict[str, str] = json.loads(await reader.readline())
            writer.close()
            return answer
        finally:
            await control.stop()

    answer = asyncio.run(scenario())
    assert set(answer) == {"refused"}
    assert not caplog.records


@pytest.mark.parametrize("kind", [OSError, RuntimeError, TimeoutError])
def test_whoever_asks_hears_of_errors_that_nobody_expected(kind: type[Exception], tmp_path: Path) -> None:
    """A sentence comes back, and never silence; what is asked next is answered."""

    async def on_reload(_asked: Mapping[str, Any]) -> Answer:
        raise kind("a slip")

    async def on_bans(_asked: Mapping[str, Any]) -> Answer:
        return Answer("nobody", {})

    async def talk() -> None:
        control = Control(tmp_path, "B1", {"reload": on_reload, "bans": on_bans})
        await control.start()
        try:
            with pytest.raises(
                ControlError, match=r"B1 refuses: (An unexpected error.*a slip|It took longer)"
            ):
                await asyncio.to_thread(ask, tmp_path, "B1", {"command": "reload"})
            assert (await asyncio.to_thread(ask, tmp_path, "B1", {"command": "bans"})).said == "nobody"
        finally:
            await control.stop()

    asyncio.run(talk())


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied", "b1.pem"), ValueError("no JSON")])
def test_a_reload_that_nobody_thought_of_is_refused_in_a_sentence(error: Exception) -> None:
    """The configuration of before holds, whatever a file that is named there leads to."""

    async def scenario() -> None:
        config = single_broker(Address("127.0.0.1", 0))
        server = Server(config, "B1")
        await server.start()
        node = server.node
        assert node is not None

        def reread() -> Config:
            raise error

        server.reread = reread
        with pytest.raises(SojournError, match=r"cannot be taken in: .*\.$"):
            await server.reload()
        assert (server.config, node.config) == (config, config)
        await server.stop()

    asyncio.run(scenario())


def test_a_signal_that_leads_to_an_error_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody else would hear of it."""

    async def reload() -> str:
        raise RuntimeError("a slip")

    asyncio.run(reloaded(reload))
    assert "a slip" in caplog.text


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """With the line that is none, by command and by signal; the broker goes on."""
    path = tmp_path / "one.toml"
    write(path, ann())
    with running_broker(str(path)) as broker:
        path.write_bytes(path.read_bytes() + b"# caf\xe9\n")
        sentence = r"is no text in UTF-8: line \d+ has a byte that is none"
        with pytest.raises(ControlError, match=sentence):
            ask(tmp_path / "control", "B1", {"command": "reload"})
        with pytest.raises(ConfigError, match=sentence):
            load_config(path)
        broker.process.send_signal(signal.SIGHUP)
        assert broker.process.stderr is not None
        assert "The configuration is as it was" in broker.process.stderr.readline()
        entered(broker).drop()


def test_certificates_are_renewed_without_a_restart(tmp_path: Path) -> None:
    """New connections see the new one; those that stand go on."""
    path = tmp_path / "one.toml"
    authority = Authority(tmp_path)
    authority.issue("B1")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    tls = f'listen_tls = "127.0.0.1:{port}"\n[tls]\ncertificate = "B1.pem"\nkey = "B1.key"\n'
    write(path, "", tls)

    def seen() -> str:
        return ssl.get_server_certificate(("127.0.0.1", port))

    with running_broker(str(path)) as broker:
        before = seen()
        client = Raw(broker.port)
        client.connect("phone")
        authority.issue("B1")
        sojourn("reload", str(path))
        until(lambda: seen() != before)
        (tmp_path / "B1.key").write_text("no key")
        done = CliRunner().invoke(app, ["reload", str(path)])
        assert isinstance(done.exception, ControlError)
        assert client.publish("a", b"", 1) == 0
        client.drop()


def test_long_paths_have_sockets_too(tmp_path: Path) -> None:
    """A folder far down is no reason to do without."""
    folder = tmp_path / ("x" * 100) / ("y" * 100)
    folder.mkdir(parents=True)
    path = folder / "one.toml"
    write(path, "")
    with running_broker(str(path)):
        assert "read its configuration anew" in sojourn("reload", str(path))
    assert len(os.fsencode(path)) > 108

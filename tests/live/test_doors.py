"""Who comes in is decided at each address by itself; certificates and tokens are names for a time."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Mapping
from pathlib import Path

import jwt
import mqtt5
import pytest
from mqtt5 import ConnAckPacket, ConnectPacket
from msgspec.structs import replace

from sojourn.live.brokers import node as node_module
from sojourn.live.brokers.admission import hash_password
from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.client.link import ClientError, RefusedError
from sojourn.live.config import Config, ConfigError, read_config
from tests.live.copied_network import until
from tests.live.test_security import SECRET, Authority

TLS = """
[tls]
certificate = "{folder}/{{broker}}.pem"
key = "{folder}/{{broker}}.key"
client_authority = "{folder}/clients.pem"
[[brokers]]
name = "B1"
listen = "127.0.0.1:0"
"""


def a_user(name: str, **more: str) -> str:
    """A piece of configuration."""
    return "[[users]]\n" + "".join(
        f"{key} = {value}\n" for key, value in {"name": f'"{name}"', **more}.items()
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of a broker and of two clients, by two authorities."""
    path = tmp_path_factory.mktemp("certificates")
    Authority(path).issue("B1")
    clients = Authority(path, "clients")
    for name in ("ann", "eve"):
        clients.issue(name)
    Authority(path, "strangers").issue("mallory")
    return path


def context(folder: Path, name: str | None = None) -> ssl.SSLContext:
    """What a client trusts, and what it shows."""
    made = ssl.create_default_context(cafile=folder / "authority.pem")
    if name is not None:
        made.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return made


def test_an_open_address_lets_nobody_in_because_another_one_is_on_loopback(folder: Path) -> None:
    """Beside `listen` on loopback, `listen_tls` that others can reach asks everybody for a name."""
    text = TLS.format(folder=folder) + 'listen_tls = "0.0.0.0:0"\n'
    config = read_config(text + a_user("ann", password=f'"{hash_password(SECRET)}"', subscribe="[]"))

    async def scenario() -> None:
        server = Server(config, "B1")
        address = await server.start()
        assert server.listening is not None
        there = f"mqtts://localhost:{str(server.listening.tls).rpartition(':')[2]}"
        with pytest.raises(RefusedError, match="without a user name are not let in"):
            await Client(there, tls=context(folder)).connect()
        async with (
            Client(f"mqtt://{address}"),
            Client(there, tls=context(folder), username="ann", password=SECRET),
        ):
            pass
        await server.stop()

    asyncio.run(asyncio.wait_for(scenario(), 60))


@pytest.mark.parametrize(
    ("keys", "plain", "encrypted"),
    [
        ("", True, True),
        ("anonymous = false\n", False, True),
        ("anonymous_tls = false\n", True, False),
        ("anonymous = false\nanonymous_tls = true\n", False, True),
    ],
)
def test_each_address_says_for_itself_who_comes_in(
    keys: str, folder: Path, *, plain: bool, encrypted: bool
) -> None:
    """On loopback both are open unless they say otherwise."""
    config = read_config(TLS.format(folder=folder) + 'listen_tls = "127.0.0.1:0"\n' + keys)

    async def scenario() -> None:
        server = Server(config, "B1")
        address = await server.start()
        assert server.listening is not None
        there = f"mqtts://localhost:{str(server.listening.tls).rpartition(':')[2]}"
        clients = (Client(f"mqtt://{address}"), plain), (Client(there, tls=context(folder)), encrypted)
        for client, is_open in clients:
            if is_open:
                async with client:
                    pass
            else:
                with pytest.raises(RefusedError):
                    await client.connect()
        await server.stop()

    asyncio.run(asyncio.wait_for(scenario(), 60))


def certified(folder: Path, more: str = "") -> Config:
    """A broker that takes certificates for names."""
    return read_config(
        TLS.format(folder=folder) + 'listen_tls = "127.0.0.1:0"\ncertificates = "required"\n' + more
    )


def test_certificates_prove_names(folder: Path) -> None:
    """The name of the certificate is the user's, with what that may do; no other name or signer will do."""
    config = certified(folder, a_user("ann", publish='["open/#"]'))

    async def scenario() -> None:
        server = Server(config, "B1")
        await server.start()
        assert server.listening is not None
        assert server.node is not None
        there = f"mqtts://localhost:{str(server.listening.tls).rpartition(':')[2]}"
        async with Client(there, client_id="phone", tls=context(folder, "ann")) as ann:
            await ann.publish("open/1", b"")
            with pytest.raises(RefusedError, match="You may not publish"):
                await ann.publish("closed/1", b"")
            session = server.node.core.state.sessions["phone"]
            assert (session.owner, session.username) == ("ann", "ann")
            assert session.connection is not None
            assert session.connection.until_s is not None
            assert session.connection.until_s > time.time()
        for name, user, why in (("ann", "eve", "is wrong"), ("eve", None, "not among the users")):
            with pytest.raises(RefusedError, match=why):
                await Client(there, tls=context(folder, name), username=user).connect()
        for stranger in ("mallory", None):
            with pytest.raises((ssl.SSLError, OSError, ClientError)):
                await Client(there, tls=context(folder, stranger)).connect()
        await server.stop()

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_client_cannot_pose_as_a_broker_by_its_certificate(folder: Path) -> None:
    """One authority for both is refused where nothing else tells them apart."""
    text = TLS.format(folder=folder).replace(
        "client_authority", f'authority = "{folder}/clients.pem"\nclient_authority'
    )
    with pytest.raises(ConfigError, match="could pose as one"):
        read_config(text + 'listen_tls = "127.0.0.1:0"\ncertificates = "optional"\n')
    with pytest.raises(ConfigError, match="needs listen_tls"):
        read_config(TLS.format(folder=folder) + 'certificates = "optional"\n')


def test_a_token_that_runs_out_ends_its_connection(tmp_path: Path) -> None:
    """It is checked when the client comes, and once more when its time is over."""
    (tmp_path / "key").write_text(SECRET)
    (tmp_path / "key").chmod(0o600)
    config = read_config(
        f'[security]\nanonymous = false\njwt.key = "{tmp_path / "key"}"\n'
        '[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\n'
    )

    async def scenario() -> None:
        server = Server(config, "B1")
        address = await server.start()
        assert server.node is not None
        token = jwt.encode({"sub": "ann", "exp": int(time.time()) + 2}, SECRET, algorithm="HS256")
        async with Client(
            f"mqtt://{address}", client_id="phone", password=token, session_expiry_s=600
        ) as client:
            await client.subscribe(topic="a")
            session = server.node.core.state.sessions["phone"]
            async with asyncio.timeout(30):
                while session.connection is not None:  # noqa: ASYNC110 - it has no event
                    await asyncio.sleep(0.02)
        await server.stop()

    asyncio.run(asyncio.wait_for(scenario(), 60))


class Ahead:
    """Stands for the module `time` in another one, with a clock that can be set ahead."""

    ahead_s = 0.0
    perf_counter, thread_time = staticmethod(time.perf_counter), staticmethod(time.thread_time)

    def time(self) -> float:
        """Return the seconds since 1970."""
        return time.time() + self.ahead_s


def test_a_token_holds_as_long_as_it_says_where_a_clock_was_once_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker's time never goes back behind its store's; what tokens say is compared with the clock."""
    (tmp_path / "key").write_text(SECRET)
    (tmp_path / "key").chmod(0o600)
    config = read_config(
        f'[security]\nanonymous = false\njwt.key = "{tmp_path / "key"}"\n'
        f'[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\nstore = "{tmp_path / "store"}"\n'
    )
    clock = Ahead()
    monkeypatch.setattr(node_module, "time", clock)

    async def scenario() -> None:
        clock.ahead_s = 86_400
        server = Server(config, "B1")
        await server.start()
        await server.stop()
        clock.ahead_s = 0
        server = Server(config, "B1")
        address = await server.start()
        node = server.node
        assert node is not None
        assert node.now() > time.time() + 80_000
        exp = int(time.time()) + 3_600
        token = jwt.encode({"sub": "ann", "exp": exp}, SECRET, algorithm="HS256")
        async with Client(f"mqtt://{address}", client_id="phone", password=token):
            connection = node.core.state.sessions["phone"].connection
            assert connection is not None
            assert connection.until_s is not None
            assert abs(connection.until_s - node.now() - (exp - time.time())) < 60
        await server.stop()

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_nobody_gets_a_name_or_an_attribute_by_saying_so(tmp_path: Path) -> None:
    """Where names can be proved, who proves none has none, and what it says of itself does not count."""
    (tmp_path / "key").write_text(SECRET)
    (tmp_path / "key").chmod(0o600)
    jwt_only = read_config(
        f'security.jwt.key = "{tmp_path / "key"}"\n[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\n'
    )
    nobody_known = read_config('[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\n')

    async def scenario(config: Config, *, is_open: bool) -> Mapping[str, object]:
        server = Server(config, "B1")
        address = await server.start()
        assert server.node is not None
        if is_open:
            async with Client(f"mqtt://{address}", client_id="x", username="ann"):
                pass
        else:
            with pytest.raises(RefusedError, match="is wrong"):
                await Client(f"mqtt://{address}", username="ann").connect()
        said = {"role": "medic", "user": "ann", "client": "other"}
        async with Client(f"mqtt://{address}", client_id="phone", attributes=said):
            stated: dict[str, object] = dict(server.node.core.state.sessions["phone"].stated)
        await server.stop()
        return stated

    run = asyncio.run
    assert run(scenario(jwt_only, is_open=False)) == {"client": "phone", "user": ""}
    assert run(scenario(nobody_known, is_open=True)) == {"client": "phone", "user": "", "role": "medic"}


def test_a_certificate_counts_for_the_authority_that_was_asked_about_it(folder: Path) -> None:
    """Who shook hands before another authority was named, and says who it is after that, is refused."""
    config = certified(folder)
    assert config.tls is not None
    tls = replace(config.tls, client_authority=str(folder / "strangers.pem"))

    async def scenario() -> list[int]:
        server = Server(config, "B1")
        server.reread = lambda: replace(config, tls=tls)
        await server.start()
        assert server.listening is not None
        node = server.node
        assert node is not None
        port, codes = str(server.listening.tls).rpartition(":")[2], []
        for is_renewed in (False, True):
            reader, writer = await asyncio.open_connection("localhost", int(port), ssl=context(folder, "ann"))
            await until(lambda: node.guests)
            if is_renewed:
                await server.reload()
            writer.write(ConnectPacket("phone").write())
            packet, _ = mqtt5.read(memoryview(await reader.read(1_000)))
            assert isinstance(packet, ConnAckPacket)
            codes.append(int(packet.reason_code))
            writer.close()
            await until(lambda: not node.guests)
        await server.stop()
        return codes

    assert asyncio.run(asyncio.wait_for(scenario(), 60)) == [0, 0x87]

"""Who is let in: certificates, passwords, tokens, and what each may do."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
import time
from collections.abc import Sequence
from pathlib import Path

import jwt
import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sojourn.live.brokers.admission import hash_password
from sojourn.live.brokers.server import Server
from sojourn.live.client.client import Client
from sojourn.live.client.link import RefusedError
from sojourn.live.config import BrokerConfig, Config, ConfigError, TlsConfig, read_config
from sojourn.live.links.tls import TlsError, for_clients
from sojourn.mqtt.limits import Limits
from tests.live.building import ANY_PORT, address, building, url
from tests.live.test_roaming import started, stop

SECRET = "a shared secret of at least 32 bytes for HS256"  # noqa: S105 - of this test alone


class Authority:
    """Issues certificates for brokers into a folder."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.path = folder / f"{name}.pem"
        certificate = self._sign(self._name, self._key.public_key(), authority=True, names=[])
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(
        self, broker: str, *, days: float = 30, names: Sequence[str] = (), file: str | None = None
    ) -> None:
        """Write BROKER.pem and BROKER.key, good for so many days; less than 0 is in the past.

        `names` are others than those that a broker is usually found under; `file` is written instead.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, broker)])
        names, file = names or [broker, "localhost"], file or broker
        certificate = self._sign(subject, key.public_key(), authority=False, names=names, days=days)
        (self._folder / f"{file}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        (self._folder / f"{file}.key").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        *,
        authority: bool,
        names: Sequence[str],
        days: float = 30,
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=30))
            .not_valid_after(now + dt.timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        )
        if names:
            alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
            builder = builder.add_extension(alternatives, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def encrypted(config: Config, folder: Path) -> Config:
    """The same brokers with TLS for clients and among themselves."""
    tls = TlsConfig(
        certificate=f"{folder}/{{broker}}.pem",
        key=f"{folder}/{{broker}}.key",
        authority=str(folder / "authority.pem"),
    )
    brokers = [msgspec.structs.replace(broker, listen_tls=ANY_PORT) for broker in config.brokers]
    return msgspec.structs.replace(config, tls=tls, brokers=brokers)


def test_clients_and_brokers_speak_tls(tmp_path: Path) -> None:
    """Events cross encrypted links to an encrypted client."""
    authority = Authority(tmp_path)
    for number in range(1, 7):
        authority.issue(f"B{number}")
    config = encrypted(building(), tmp_path)
    context = ssl.create_default_context(cafile=authority.path)

    async def scenario() -> None:
        servers = await started(config)
        there = f"mqtts://localhost:{address(config, 4, 'tls').rpartition(':')[2]}"
        async with Client(there, tls=context) as reader, Client(url(config, 0)) as writer:
            await reader.subscribe()
            await asyncio.sleep(0.1)
            await writer.publish("t", b"across")
            assert (await reader.next(5)).payload == b"across"
        with pytest.raises(ssl.SSLError):
            await Client(there).connect()
        await stop(servers)

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_broker_of_another_authority_is_no_neighbour(tmp_path: Path) -> None:
    """Its certificate is refused, and the link stays down."""
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    for folder in (right, wrong):
        folder.mkdir()
        Authority(folder).issue("B1")
        Authority(folder).issue("B2") if folder is wrong else None
    config = building()
    two = msgspec.structs.replace(config, brokers=config.brokers[:2], links=[("B1", "B2")])

    async def scenario() -> None:
        first = Server(encrypted(two, right), "B1")
        second = Server(encrypted(two, wrong), "B2")
        await first.start()
        await second.start()
        await asyncio.sleep(0.5)
        for server in (first, second):
            assert server.node is not None
            assert server.node.network is not None
            assert not any(channel.open for channel in server.node.network.links.channels.values())
        await first.stop()
        await second.stop()

    asyncio.run(asyncio.wait_for(scenario(), 30))


def single(extra: str) -> Config:
    """One broker on a free port, with a piece of configuration."""
    return read_config(f'{extra}\n[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\n')


async def outcome(
    config: Config, *, username: str | None, password: str | None, topic: str = "open/a"
) -> str:
    """What becomes of a client that connects and publishes."""
    server = Server(config, "B1")
    address = await server.start()
    try:
        async with Client(f"mqtt://{address}", username=username, password=password) as client:
            await client.publish(topic, {"level": 3})
            await client.subscribe(topic="open/#")
    except RefusedError as error:
        return str(error)
    else:
        return "served"
    finally:
        await server.stop()


def test_users_have_passwords_and_permissions() -> None:
    """A wrong password, a topic that is not allowed, an attribute that is not allowed."""
    config = single(
        "[[users]]\n"
        f'name = "ann"\npassword = "{hash_password(SECRET)}"\n'
        'publish = ["open/+"]\nsubscribe = ["open/#"]\npublish_if = "level < 5"\n'
    )
    run = asyncio.run
    assert run(outcome(config, username="ann", password=SECRET)) == "served"
    assert "user name or the password is wrong" in run(outcome(config, username="ann", password=SECRET[1:]))
    assert "user name or the password is wrong" in run(outcome(config, username="eve", password=SECRET))
    refusal = run(outcome(config, username="ann", password=SECRET, topic="closed/a"))
    assert "You may not publish to 'closed/a'" in refusal


def test_tokens_say_who_their_bearer_is_and_what_it_may_do(tmp_path: Path) -> None:
    """Signed by the key, not expired, and with permissions of their own."""
    secret = SECRET
    (tmp_path / "key").write_text(secret)
    (tmp_path / "key").chmod(0o600)
    config = single(f'[security]\nanonymous = false\n[security.jwt]\nkey = "{tmp_path / "key"}"\n')

    def token(key: str = secret, **claims: object) -> str:
        return jwt.encode({"sub": "ann", "exp": time.time() + 60, **claims}, key, algorithm="HS256")

    run = asyncio.run
    assert run(outcome(config, username="ann", password=token())) == "served"
    assert run(outcome(config, username=None, password=token())) == "served", "the token has the name"
    assert "not let in" in run(outcome(config, username=None, password=None))
    assert "Signature" in run(
        outcome(config, username="ann", password=token("another secret of 32 bytes or more"))
    )
    assert "expired" in run(outcome(config, username="ann", password=token(exp=time.time() - 60)))
    limited = token(publish=["closed/+"])
    assert "You may not publish" in run(outcome(config, username="ann", password=limited))
    assert "password is wrong" in run(outcome(config, username="eve", password=token()))
    for name in (None, ""):
        assert "names nobody" in run(outcome(config, username=name, password=token(sub="")))


def test_nobody_is_a_user_without_a_name() -> None:
    """Sessions of clients that prove no name would be that user's too."""
    with pytest.raises(ConfigError, match="empty name"):
        single('[[users]]\nname = ""\n')


def test_what_others_can_reach_is_not_open_by_default(tmp_path: Path) -> None:
    """Anonymous clients only on loopback; peers beyond it only with certificates; missing files named."""
    open_to_all = read_config('[[brokers]]\nname = "B1"\nlisten = "0.0.0.0:0"\n')
    assert open_to_all.security.anonymous is None

    async def scenario() -> None:
        server = Server(open_to_all, "B1")
        address = await server.start()
        with pytest.raises(RefusedError, match="without a user name are not let in"):
            await Client(f"mqtt://127.0.0.1:{address.port}").connect()
        await server.stop()

    asyncio.run(scenario())
    with pytest.raises(ConfigError, match="by certificate"):
        read_config('[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:1"\npeers = "0.0.0.0:2"\n')
    with pytest.raises(ConfigError, match=r"needs a \[tls\] table"):
        read_config('[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:1"\nlisten_tls = "127.0.0.1:2"\n')
    with pytest.raises(TlsError, match="is not there"):
        for_clients(TlsConfig(certificate=str(tmp_path / "no.pem"), key="no.key"), "B1")
    with pytest.raises(TlsError, match="cannot be read"):  # as in a folder that is closed
        for_clients(TlsConfig(certificate=str(tmp_path / ("x" * 300)), key="no.key"), "B1")


def test_a_handshake_takes_no_longer_than_a_connect_may(tmp_path: Path) -> None:
    """Also once other certificates are shown; what happens then is in `test_handshakes.py`."""
    Authority(tmp_path).issue("B1")
    tls = TlsConfig(certificate=f"{tmp_path}/{{broker}}.pem", key=f"{tmp_path}/{{broker}}.key", peers=False)
    broker = BrokerConfig(name="B1", listen=ANY_PORT, listen_tls=ANY_PORT, listen_wss=ANY_PORT)
    config = Config(brokers=[broker], tls=tls, limits=Limits(connect_timeout_s=7))

    async def scenario() -> None:
        server = Server(config, "B1")
        await server.start()
        doors = server.tls_doors
        shown = {name: door.tls for name, door in doors.items()}
        server.reread = lambda: config
        await server.reload()
        assert [*doors] == ["listen_tls", "listen_wss"]
        for name, door in doors.items():
            assert door.handshake_s == 7.0
            assert door.tls is not shown[name]
        await server.stop()

    asyncio.run(scenario())

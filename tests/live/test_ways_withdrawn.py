"""A way in that a configuration withdraws ends the rights of who came by it, read anew or at a start."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from pathlib import Path

import pytest
from mqtt5 import ConnAckPacket, ConnectPacket, QoS, SubscribePacket, TopicFilter, Will
from msgspec.structs import replace

from sojourn.broker import arrivals, facts
from sojourn.broker.live_broker import LiveBroker
from sojourn.live.brokers import login_desk
from sojourn.live.brokers.admission import hash_password, password_fits
from sojourn.live.brokers.node import Node
from sojourn.live.brokers.reloading import apply, prepared
from sojourn.live.brokers.rights_today import rights_today
from sojourn.live.brokers.server import Server
from sojourn.live.config import BrokerConfig, Config, UserConfig, read_config
from tests.live.building import a_secret, an_address_folder, url
from tests.live.copied_network import until
from tests.live.hall import START_S
from tests.live.raw_client import Raw, running_broker
from tests.live.test_reloading import sojourn

NOT_AUTHORIZED = 0x87
ONE = '[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\n'
OTHER = ONE.replace("B1", "B2")
TWO = 'links = [["B1", "B2"]]\n[network]\nsecret = "SECRET"\n' + ONE + ONE.replace("B1", "B2")
CLOSED = "[security]\nanonymous = false\n"
TOKENS = '[security.jwt]\nkey = "KEY"\n'
WS = ONE + 'listen_ws = "127.0.0.1:0"\n'
TLS = ONE + 'listen_tls = "127.0.0.1:0"\ncertificates = "{}"\n'
AUTHORITY = '[tls]\ncertificate = "a"\nkey = "b"\nclient_authority = "c"\n'
MAY, MUST = (TLS.format(what) for what in ("optional", "required"))
NO, NO_BUT_TLS = "anonymous = false\n", "anonymous = false\nanonymous_tls = true\n"
PASSWORD = hash_password("secret")
ANN, BOB = (f'[[users]]\nname = "{name}"\npassword = "{PASSWORD}"\n' for name in ("ann", "bob"))
CASES = {
    "tokens": (ONE + TOKENS, ONE, "tina", False),
    "tokens stay": (ONE + TOKENS, ONE + TOKENS + BOB, "tina", True),
    "a token, and now a user": (ONE + TOKENS, ONE + ANN, "ann", True),
    "a token, or a certificate": (MAY + AUTHORITY + TOKENS, MAY + AUTHORITY, "tina", True),
    "no name": (ONE, ONE + CLOSED, "", False),
    "no name, the only address": (ONE, ONE + NO, "", False),
    "no name, another address": (WS, WS + "anonymous_ws = true\n" + CLOSED, "", True),
    "no name, another broker": (TWO, TWO + "anonymous = true\n" + CLOSED, "", True),
    "no name, a certificate needed": (MUST + AUTHORITY, MUST + NO_BUT_TLS + AUTHORITY, "", False),
    "certificates": (MUST + AUTHORITY, MUST + AUTHORITY + BOB, "cora", False),
    "certificates of users": (MUST + AUTHORITY + ANN + BOB, MUST + AUTHORITY + BOB, "ann", False),
    "certificates stay": (MUST + AUTHORITY, MUST + AUTHORITY, "cora", True),
    "users": (ONE + ANN, ONE + BOB, "ann", False),
}
A_WILL = Will("any/will", payload=b"gone", will_delay_interval=60)
CONNECT = ConnectPacket("phone", clean_start=True, will=A_WILL, session_expiry_interval=600)
WANTED = SubscribePacket(1, [TopicFilter("any/#", max_qos=QoS.AT_LEAST_ONCE)])


def came(owner: str) -> list[facts.Fact]:
    """Somebody came, subscribed, and is away; what it asks for leaves a will."""
    return [
        facts.ClientOpened(1, "here", "fresh"),
        facts.ClientSent(1, CONNECT.write()),
        facts.ClientAdmitted(1, owner, owner=owner),
        facts.ClientSent(1, WANTED.write()),
        facts.ClientLost(1),
    ]


def kept(broker: LiveBroker) -> bool:
    """Whether the session has what it had; else it has nothing and may do nothing."""
    session = broker.core.state.sessions["phone"]
    has = session.will is not None, bool(session.subscriptions)
    assert has[0] == has[1]
    return has[0]


def read(text: str, folder: Path) -> Config:
    """A configuration, with a key for tokens and a secret."""
    key = folder / "key"
    key.write_text("k" * 40)
    key.chmod(0o600)
    return read_config(text.replace("KEY", str(key)).replace("SECRET", a_secret()))


@pytest.mark.parametrize(("before", "after", "owner", "stays"), CASES.values(), ids=[*CASES])
def test_a_start_and_a_reload_go_by_the_same_rule(
    tmp_path: Path, before: str, after: str, owner: str, *, stays: bool
) -> None:
    """What is read of a session's owner, by either."""
    first, second = read(before, tmp_path), read(after, tmp_path)

    async def reloaded() -> bool:
        node = Node(first, "B1", asyncio.get_running_loop())
        for fact in came(owner):
            node.tell(fact)
        assert kept(node.broker)
        apply(node, prepared(node.config, second, node.broker.settings))
        await node.stop()
        return kept(node.broker)

    assert asyncio.run(reloaded()) == stays
    settings = first.settings("B1")
    broker = LiveBroker.revived(settings, "first", START_S, None, [])
    for fact in came(owner):
        broker.handle(fact, START_S)
        broker.knocks.clear()
    entries = broker.turn(START_S).entries
    again = LiveBroker.revived(settings, "next", START_S, None, entries, partial(rights_today, second))
    assert kept(again) == stays


def test_who_came_by_a_way_that_is_withdrawn_gets_and_leaves_nothing(tmp_path: Path) -> None:
    """Nothing is stored for it, and its will is not published; let in again, it begins with nothing."""
    path = tmp_path / "one.toml"
    begin = f'{ONE}store = "{tmp_path / "store"}"\n'
    path.write_text(begin + BOB)
    with running_broker(str(path)) as broker:
        bob = Raw(broker.port)
        bob.connect("bob", username="bob", password=b"secret")
        assert bob.subscribe("will/#") == [2]
        for name in ("one", "two"):
            will = Will(f"will/{name}", payload=b"gone", qos=QoS.AT_LEAST_ONCE, will_delay_interval=600)
            with Raw(broker.port) as away:
                away.connect(name, will=will, session_expiry_interval=600)
                assert away.subscribe("any/#") == [2]
        path.write_text(begin + CLOSED + BOB)
        sojourn("reload", str(path))
        bob.publish("any/1", b"stored for nobody", 1)
        path.write_text(begin + BOB)
        sojourn("reload", str(path))
        one, two = Raw(broker.port), Raw(broker.port)
        assert one.connect("one", clean_start=False).session_present
        assert one.subscribe("any/#") == [2]
        two.connect("two", clean_start=True)  # the session ends, and so its will would be due
        for topic in ("any/2", "will/3"):
            bob.publish(topic, b"now", 1)
        assert (one.message().topic, bob.message().topic) == ("any/2", "will/3")
        for client in (bob, one, two):
            client.drop()


def two(*topics: str) -> Config:
    """Two brokers, one of which may be waited for, and who may do what."""
    brokers = [BrokerConfig(name=name, listen="127.0.0.1:0", peers="127.0.0.1:0") for name in ("B1", "B2")]
    user = UserConfig(name="ann", password=hash_password("secret"), publish=[*topics], subscribe=[*topics])
    bob = replace(user, name="bob")
    return Config(brokers=brokers, links=[("B1", "B2")], users=[user, bob], network=an_address_folder())


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_reload_reaches_who_waits_to_be_let_in(
    monkeypatch: pytest.MonkeyPatch, *, is_removed: bool
) -> None:
    """A client that waits for a broker which may have its session: a user with fewer rights, one removed."""
    monkeypatch.setattr(arrivals, "DOWN_S", 1_000.0)
    first = two("#")
    users = first.users[1:] if is_removed else [replace(first.users[0], subscribe=["open/#"])]
    narrower = replace(first, users=users)

    async def scenario() -> list[int]:
        servers = [Server(first, name) for name in ("B1", "B2")]
        await servers[0].start()
        raw = await asyncio.to_thread(Raw, int(url(first, 0).rpartition(":")[2]))
        raw.send(ConnectPacket("phone", username="ann", password=b"secret", session_expiry_interval=600))
        node = servers[0].node
        assert node is not None
        network = node.network
        assert network is not None
        await until(lambda: network.arrivals.waiting)
        servers[0].reread = lambda: narrower
        await servers[0].reload()
        if not is_removed:
            await servers[1].start()
        found = [int((await asyncio.to_thread(raw.expect, ConnAckPacket)).reason_code)]
        if not is_removed:
            found += await asyncio.to_thread(raw.subscribe, "closed/#", "open/#")
        await asyncio.to_thread(raw.drop)
        for server in servers[: 1 if is_removed else 2]:
            await server.stop()
        return found

    assert asyncio.run(scenario()) == ([NOT_AUTHORIZED] if is_removed else [0, NOT_AUTHORIZED, 2])


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_password_that_is_compared_meanwhile_counts_for_today(
    monkeypatch: pytest.MonkeyPatch, *, is_removed: bool
) -> None:
    """A reload comes while it is compared: its user has other rights then, or is none any more."""
    begun, goes_on = threading.Event(), threading.Event()

    def slowly(kept: str, password: bytes) -> bool:
        begun.set()
        return goes_on.wait(60) and password_fits(kept, password)

    monkeypatch.setattr(login_desk, "password_fits", slowly)
    first = replace(two("#"), links=[], brokers=[BrokerConfig(name="B1", listen="127.0.0.1:0")])
    users = first.users[1:] if is_removed else [replace(first.users[0], subscribe=["open/#"])]

    async def scenario() -> list[int]:
        server = Server(first, "B1")
        server.reread = lambda: replace(first, users=users)
        await server.start()
        raw = await asyncio.to_thread(Raw, int(url(first, 0).rpartition(":")[2]))
        raw.send(ConnectPacket("phone", username="ann", password=b"secret"))
        await until(begun.is_set)
        await server.reload()
        goes_on.set()
        found = [int((await asyncio.to_thread(raw.expect, ConnAckPacket)).reason_code)]
        if not is_removed:
            found += await asyncio.to_thread(raw.subscribe, "closed/#", "open/#")
        raw.drop()
        await server.stop()
        return found

    assert asyncio.run(scenario()) == ([0x86] if is_removed else [0, NOT_AUTHORIZED, 2])

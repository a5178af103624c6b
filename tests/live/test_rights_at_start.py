"""Rights that were changed while a broker was down hold from its first moment on."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from mqtt5 import ConnectPacket, QoS, Will

from sojourn.broker import facts
from sojourn.broker.live_broker import LiveBroker
from sojourn.live.brokers.admission import hash_password
from sojourn.live.brokers.rights_today import rights_today
from sojourn.live.config import read_config
from tests.live.hall import Hall, line
from tests.live.raw_client import Raw, running_broker

START_S = 1_700_000_000.0
ONE = '[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\n'
ANN = '[[users]]\nname = "ann"\n'
TOKENS = '[security.jwt]\nkey = "key"\n'


def has_will(config: str, owner: str = "ann") -> bool:
    """Whether the delayed will of a client is still there after a restart with a configuration."""
    settings = read_config(ONE).settings("B1")
    first = LiveBroker.revived(settings, "first", START_S, None, [])
    first.handle(facts.ClientOpened(1, "here", "fresh"), START_S)
    will = Will("closed/will", payload=b"gone", will_delay_interval=60)
    packet = ConnectPacket("phone", will=will, session_expiry_interval=600).write()
    first.handle(facts.ClientSent(1, packet), START_S)
    first.knocks.clear()
    first.handle(facts.ClientAdmitted(1, owner, owner=owner), START_S)
    first.handle(facts.ClientLost(1), START_S)
    entries = first.turn(START_S).entries
    rights = partial(rights_today, read_config(config))
    second = LiveBroker.revived(settings, "second", START_S + 1, None, entries, rights)
    third = LiveBroker.revived(settings, "third", START_S + 1, None, entries + second.turn(START_S).entries)
    kept = [broker.core.state.sessions["phone"].will is not None for broker in (second, third)]
    assert kept[0] == kept[1], "the journal holds it too"
    return kept[0]


@pytest.mark.parametrize(
    ("config", "owner", "kept"),
    [
        (ONE + ANN, "ann", True),
        (ONE + ANN + 'publish = ["closed/#"]\n', "ann", True),
        (ONE + ANN + 'publish = ["open/#"]\n', "ann", False),
        (ONE + ANN.replace("ann", "bob"), "ann", False),
        (ONE + TOKENS, "ann", True),
        (ONE, "", True),
        (ONE + '[security.guests]\npublish = ["open/#"]\n', "", False),
    ],
    ids=["as before", "allowed", "narrowed", "unknown", "perhaps by token", "guest", "narrowed guest"],
)
def test_a_delayed_will_keeps_to_the_rights_of_the_next_start(config: str, owner: str, *, kept: bool) -> None:
    """Of a user, of one that is not known any more, and of a client without a name."""
    assert has_will(config, owner) == kept


def test_a_subscription_in_a_network_ends_with_the_right_to_it() -> None:
    """Its broker starts anew with fewer rights for its client, and goes on with its neighbours."""
    hall = Hall(line(2), lambda knock: facts.ClientAdmitted(knock.number, "ann", owner="ann"))
    got: list[bytes] = []
    reader = hall.visit(0, "reader", lasts_s=600, got=got)
    for topic in ("open/#", "closed/#"):
        reader.subscribe(topic)
    hall.settle()
    desk = reader.desk
    reader.lose()
    desk.keep()
    narrowed = read_config(ONE + ANN + 'subscribe = ["open/#"]\n')
    state, written = desk.store.state, list(desk.store.written)
    rights = partial(rights_today, narrowed)
    broker = LiveBroker.revived(desk.settings, "next", hall.now, state, written, rights)
    noted = broker.turn(hall.now).entries
    again = LiveBroker.revived(desk.settings, "last", hall.now, state, written + noted)
    for one in (broker, again):
        assert set(one.core.state.sessions["reader"].subscriptions) == {"open/#"}


def entered(port: int, client_id: str, username: str, **options: object) -> Raw:
    """A user, connected."""
    client = Raw(port)
    answer = client.connect(
        client_id, username=username, password=b"secret", session_expiry_interval=600, **options
    )
    assert int(answer.reason_code) == 0
    return client


def test_the_will_of_who_was_connected_keeps_to_the_rights_of_the_next_start(tmp_path: Path) -> None:
    """It is due as soon as the broker is back from being killed."""
    path = tmp_path / "one.toml"
    password = f'password = "{hash_password("secret")}"\n'
    begin = f'{ONE}store = "{tmp_path / "store"}"\n' + ANN.replace("ann", "bob") + password + ANN + password
    path.write_text(begin)
    with running_broker(str(path)) as broker:
        bob = entered(broker.port, "bob", "bob")
        assert bob.subscribe("#") == [2]
        bob.drop()
        dying = [
            entered(broker.port, topic, "ann", will=Will(topic, payload=b"gone", qos=QoS.AT_LEAST_ONCE))
            for topic in ("closed/will", "open/will")
        ]
        broker.process.kill()
        broker.process.wait()
        for ann in dying:
            ann.drop()
    path.write_text(begin + 'publish = ["open/#"]\n')
    with running_broker(str(path)) as broker:
        bob = entered(broker.port, "bob", "bob", clean_start=False)
        assert bob.message().topic == "open/will"
        bob.expect_nothing()
        bob.drop()

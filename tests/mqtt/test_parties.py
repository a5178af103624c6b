"""All addresses that one host can have by IPv6 count as one; bans and logs name the address itself."""

from __future__ import annotations

import random

import pytest
from mqtt5 import PubAckPacket, Will

from sojourn.mqtt.bans import Bans, Order
from sojourn.mqtt.input import Input
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.parties import party_of
from tests.mqtt.address_uses import uses, uses_by_hand
from tests.mqtt.world import Client, World, again

QUOTA = 0x97
HOST = "2001:db8:1:2"
PARTY = "2001:db8:1:2::/64"


@pytest.mark.parametrize(
    ("address", "party"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("::FFFF:c000:0207", "192.0.2.7"),
        (f"{HOST}::1", PARTY),
        (f"{HOST}:ffff:ffff:ffff:ffff", PARTY),
        ("2001:DB8:0001:0002:0:0:0:9", PARTY),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1", "fe80::/64"),
        ("fe80::1%eth0", "fe80::/64%eth0"),
        ("fe80::2%eth1", "fe80::/64%eth1"),
        ("::1", "::/64"),
        ("here", "here"),
        ("a:name", "a:name"),
        ("", ""),
    ],
)
def test_an_address_counts_as_whose_it_is(address: str, party: str) -> None:
    """What it counts as counts as itself."""
    assert party_of(address) == party
    assert party_of(party) == party


def test_equal_prefixes_count_as_one_and_no_others_do() -> None:
    """Compared with the first four groups of random addresses, however they are written."""
    draw = random.Random(4)
    for _ in range(500):
        one, two = ([draw.randrange(1, 4) for _ in range(8)] for _ in range(2))
        texts = [":".join(f"{group:{draw.choice(('x', '04x', 'X'))}}" for group in it) for it in (one, two)]
        assert (party_of(texts[0]) == party_of(texts[1])) == (one[:4] == two[:4])


def clients(world: World, count: int) -> list[Client]:
    """Connections from addresses of one host, no two alike, and one from elsewhere."""
    addresses = [f"{HOST}::{number + 1:x}" for number in range(count - 1)]
    return [world.client(address) for address in (*addresses, "2001:db8:1:3::1")]


def test_a_host_has_one_share_of_subscriptions_however_many_addresses_it_has() -> None:
    """Also where its client comes back from another of them, and after a restart."""
    world = World(Limits(subscriptions_address_max=3))
    one, two, other = clients(world, 3)
    for client, name in ((one, "one"), (two, "two"), (other, "other")):
        client.connect(name, session_expiry_interval=900, clean_start=False)
    assert [one.subscribe(topic) for topic in "xy"] == [2, 2]
    assert [two.subscribe(topic) for topic in "xy"] == [2, QUOTA]
    assert [other.subscribe(topic) for topic in "xyz"] == [2, 2, 2]
    one.lose()
    back = world.client(f"{HOST}::9")
    back.connect("one", session_expiry_interval=900, clean_start=False)
    assert back.subscribe("z") == QUOTA
    assert world.core.state.sessions["one"].address == f"{HOST}::9"
    assert {*uses(world.core)} == {PARTY, "2001:db8:1:3::/64"}
    assert uses(world.core) == uses_by_hand(world.core)
    assert uses(again(world.core)) == uses(world.core)


def test_it_has_one_share_of_retained_messages_and_of_wills() -> None:
    """What is retained says whose it is at all brokers."""
    world = World(Limits(retained_messages_address_max=2, will_bytes_address_max=1_500))
    codes = []
    for number, client in enumerate(clients(world, 4)):
        client.connect(f"c{number}")
        client.publish(f"t/{number}", b"x", 1, retain=True)
        codes.append(int(client.next(PubAckPacket).reason_code))
    assert codes == [0, 0, QUOTA, 0]
    assert {*world.core.state.retained.shares.by_party} == {PARTY, "2001:db8:1:3::/64"}
    will = Will("will", payload=bytes(900), will_delay_interval=600)
    answers = [
        int(client.connect(f"w{number}", clean_start=False, will=will).reason_code)
        for number, client in enumerate(clients(world, 3))
    ]
    assert answers == [0, QUOTA, 0]


def test_it_has_one_turn_and_one_rate() -> None:
    """Its connections are served as those of one address, and change as many subscriptions in a second."""
    world = World(Limits(subscribes_address_per_s_max=2))
    one, two, three, other = clients(world, 4)
    for number, client in enumerate((one, two, three, other)):
        client.connect(f"c{number}")
    codes = [client.subscribe(topic) for client in (one, two, three) for topic in "xy"]
    assert codes == [2, 2, 2, 2, QUOTA, QUOTA]
    assert other.subscribe("x") == 2
    two.send(b"\x30\x7f\x00")
    three.send(b"\x30\x7f\x00")
    assert world.core.state.input.by_address == {PARTY: 6}


def test_what_an_earlier_build_counted_by_address_is_counted_by_host() -> None:
    """Its snapshot names each; what ends is taken off where it is counted now."""
    waiting = Input()
    waiting.by_address = {f"{HOST}::1": 3, f"{HOST}::2": 4, "192.0.2.1": 5}
    waiting.rename()
    assert waiting.by_address == {PARTY: 7, "192.0.2.1": 5}


def test_bans_and_refusals_name_the_address_itself() -> None:
    """A ban of one is of one; a ban of its prefix is of the host."""
    world = World(Limits())
    world.core.effects.refusals = []
    bans: Bans = world.core.state.bans
    bans.take(Order("address", f"{HOST}::1", 1, banned=True))
    one, two, other = clients(world, 3)
    codes = [int(client.connect(f"c{at}").reason_code) for at, client in enumerate((one, two, other))]
    assert codes == [0x8A, 0, 0]
    assert [refusal.address for refusal in world.core.effects.refusals] == [f"{HOST}::1"]
    bans.take(Order("address", PARTY, 2, banned=True))
    one, two, other = clients(world, 3)
    codes = [int(client.connect(f"d{at}").reason_code) for at, client in enumerate((one, two, other))]
    assert codes == [0x8A, 0x8A, 0]

"""Subscribers of one party have a share of what a broker stores, whether they are there or away."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.interest.events import Event
from sojourn.mobility import facts
from sojourn.mobility.accounts import Accounts
from sojourn.mobility.holdings import Holding
from sojourn.mobility.queues import PARTY_FULL, Queues
from sojourn.mobility.schemes import Scheme
from sojourn.routing.effects import Effects
from sojourn.routing.messages import Activate, Publish
from tests.mobility.roaming import S, Watched
from tests.routing.network import chain

SHARE = 4_096
"""Bytes that a party may have stored; an event has 1024."""


def come(net: Watched, client: int, party: str, *, broker: int = 0, previous: int | None = None) -> None:
    """Let a client arrive, from somewhere, that wants what S wants."""
    epoch = 2 if previous is not None else 1
    wanted = (net.interests.sub(1),)
    net.feed(broker, facts.SubscriberArrived(client, epoch, wanted, previous, {}, party=party))
    net.settle()


def leave(net: Watched, client: int, *, broker: int = 0) -> None:
    """Let its connection be lost."""
    net.feed(broker, facts.SubscriberLost(client, net.brokers[broker].subscribers.main[client].epoch))
    net.settle()


def accounts(net: Watched, broker: int = 0) -> dict[str, int]:
    """The bytes on each party's account."""
    return {party: one.bytes for party, one in net.brokers[broker].subscribers.accounts.by_party.items()}


def stored(net: Watched, client: int, broker: int = 0) -> int:
    """How many events are stored for a client."""
    return len(net.brokers[broker].subscribers.main[client].queue)


def test_clients_of_one_party_leave_others_their_room() -> None:
    """Its share is the same however many of them are away; what is refused is reported with its reason."""
    net = Watched(chain(1), Scheme.named("reactive", queue_bytes_max=100_000, queue_bytes_party_max=SHARE))
    for client in (20, 21, 22):
        come(net, client, "greedy")
        leave(net, client)
    for _ in range(4):
        net.say()
    come(net, 30, "modest")
    leave(net, 30)
    for _ in range(3):
        net.say()
    assert accounts(net) == {"greedy": SHARE, "modest": 3 * 1024}
    assert [stored(net, client) for client in (20, 21, 22, 30)] == [4, 4, 4, 3]
    assert [(one.client, one.reason) for one in net.drops] == [
        (client, PARTY_FULL) for _ in range(3) for client in (20, 21, 22)
    ]


def test_who_is_there_gets_what_its_party_has_no_room_for() -> None:
    """It loses the second chance only; otherwise those that are away could silence it."""
    net = Watched(chain(1), Scheme.named("reactive", queue_bytes_party_max=SHARE))
    come(net, 20, "one")
    leave(net, 20)
    for _ in range(4):
        net.say()
    come(net, S, "one")
    net.say()
    assert net.got == [("p", 4)]
    assert [(one.client, one.reason) for one in net.drops] == [(20, PARTY_FULL)]
    assert accounts(net) == {"one": SHARE}


def test_what_is_consumed_or_forgotten_makes_room_and_no_account_stays() -> None:
    """Also when a client comes back from somewhere else: its events go to the other account."""
    net = Watched(chain(1), Scheme.named("reactive", queue_bytes_party_max=SHARE))
    come(net, S, "here")
    for _ in range(4):
        net.say()
    assert accounts(net) == {"here": SHARE}
    net.consume(0, 1)
    assert accounts(net) == {"here": SHARE // 2}
    net.lose(0, 1)
    wanted = (net.interests.sub(1),)
    net.feed(0, facts.SubscriberArrived(S, 2, wanted, 0, {}, party="there"))
    assert accounts(net) == {"there": SHARE // 2}
    net.feed(0, facts.SubscriberGone(S, 2))
    net.settle()
    assert accounts(net) == {}


def test_copies_at_other_brokers_are_on_the_same_account() -> None:
    """They store while the client is away, and are told whose it is when they begin to."""
    net = Watched(chain(2), Scheme.named("proactive", queue_bytes_party_max=SHARE))
    come(net, S, "here", broker=1)
    net.lose(1, 1)
    come(net, S, "here", broker=0, previous=1)  # so that both brokers know the edge
    net.feed(0, facts.SubscriberLost(S, 2))
    (activate,) = net.under_way((0, 1), Activate)
    assert activate.party == "here"
    net.settle()
    for _ in range(5):
        net.say()
    assert accounts(net, 0) == accounts(net, 1) == {"here": SHARE}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "take in", "consume", "settle", "empty", "come", "leave", "make room"]),
        st.sets(st.integers(0, 3), min_size=1),
        st.integers(1, 500),
    ),
    max_size=60,
)


@given(STEPS, st.booleans())
@settings(max_examples=200, deadline=None)
def test_accounts_are_what_counting_gives(steps: list[tuple[str, set[int], int]], evicts: bool) -> None:
    """Whatever goes in and out, whoever comes and goes; what is new never makes it more than its share."""
    scheme = Scheme.named("reactive", queue_bytes_max=4_000, queue_bytes_party_max=900, evicts=evicts)
    effects = Effects()
    queues = Queues(scheme, effects)
    holdings = [Holding(number, 1, ()) for number in range(4)]
    last = -1
    for what, numbers, size in steps:
        chosen = [holdings[number] for number in sorted(numbers)]
        if what in ("put", "take in"):
            last += 1
            event = Publish(Event({}, source="a", sequence=last), size=size)
            if what == "put":
                kept = queues.within_shares(chosen, event, size or scheme.event_bytes)
                if kept and queues.put(kept, event, size or scheme.event_bytes):
                    tops = [one.account.bytes for one in kept if one.account is not None]
                    assert all(top <= 900 for top in tops)
                check(queues.accounts, holdings)
                continue
        for holding in chosen:
            if what == "take in":
                queues.take_in(holding, [event])
            elif what == "consume":
                queues.consume(holding, "a", size % 60)
            elif what == "come":
                queues.accounts.enter(holding, "xyz"[size % 3])
            elif what == "leave":
                queues.accounts.leave(holding)
            elif what == "make room":
                queues.make_room(holding, 1)
            else:
                getattr(queues, what)(holding)
        check(queues.accounts, holdings)
    for holding in holdings:
        queues.empty(holding)
        queues.accounts.leave(holding)
    assert not queues.accounts.by_party


def check(accounts: Accounts, holdings: list[Holding]) -> None:
    """Count every account by hand, and once more as after a restart."""
    counted = {party: one.bytes for party, one in accounts.by_party.items()}
    for party, account in accounts.by_party.items():
        members = [one for one in holdings if one.account is account]
        events = [event for one in members for event in (*one.queue, *one.forwarded)]
        assert account.bytes == sum(one.size for one in (set(events) if account.is_shared else events)), party
        assert account.is_shared or len(members) == 1
        assert account.holdings == set(members)
    accounts.rebuild(holdings)
    assert counted == {party: one.bytes for party, one in accounts.by_party.items()}

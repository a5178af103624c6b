"""A broker without infrastructure: one is found, elected, merged, and nothing owed is lost on the way."""

from functools import cache

import pytest

from sojourn.adhoc.election.messages import (
    Beacon,
    Candidacy,
    Effect,
    Fact,
    Flood,
    Heard,
    Keep,
    Kept,
    Published,
    Refresh,
    Say,
    Search,
    SetTimer,
    Show,
    Shown,
    Started,
    Subscribed,
    TimerFired,
)
from sojourn.adhoc.election.node import Node
from sojourn.adhoc.election.office import Office
from sojourn.adhoc.election.portions import MESSAGE_BYTES_MAX, portion
from sojourn.adhoc.election.states import TRANSITIONS, IllegalOccasionError, Occasion, Role, follow
from sojourn.adhoc.election.table import BrokerTable
from sojourn.adhoc.election.timing import Timing
from sojourn.adhoc.election.user import SHOWING_MAX
from sojourn.adhoc.errors import AdhocError
from sojourn.interest.events import Event
from sojourn.interest.filters import Filter
from sojourn.sim.election.history import Healed, History
from sojourn.sim.election.world import ElectionWorld, heal
from tests.seeds import seeds

EVERYTHING = Filter.parse("value >= 0")


def _kept(number: int, published_s: float = 1.0) -> Kept:
    return Kept(Event({"value": number}, source="s", sequence=number), published_s)


def _state(node: Node) -> Role:
    return node.state


@cache
def _healed(seed: int) -> Healed:
    """What became of the history of a seed; several tests look at it."""
    return heal(History(seed=seed))


def _refresh(*seen: tuple[str, int], whole: bool = False) -> Refresh:
    return Refresh(1, EVERYTHING, 0.0, seen, whole)


@pytest.mark.parametrize("seed", seeds(12, 40, first=1))
def test_any_history_heals(seed: int) -> None:
    """One broker, every live subscription on it, everything owed shown once; and it stays so."""
    healed = _healed(seed)
    assert healed.healed_s is not None
    assert healed.delivered_s is not None
    assert (healed.brokers, healed.missing, healed.lost) == (1, 0, 0)
    assert (healed.duplicated, healed.unwanted) == (0, 0)


def test_histories_contain_what_they_are_about() -> None:
    """There are several brokers at once, merges, and events owed over partitions."""
    found = [_healed(seed) for seed in range(1, 9)]
    assert max(healed.most_brokers for healed in found) >= 3
    assert sum(healed.merges for healed in found) > 8
    assert sum(healed.owed for healed in found) > 200


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_radio_that_loses_something_heals_too(seed: int) -> None:
    """What is lost on the air is said again."""
    healed = heal(History(seed=seed, loss=0.03))
    assert healed.delivered_s is not None
    assert healed.lost == 0


def test_a_merge_that_forgets_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let brokers take over nothing, and histories lose events: the check can fail."""
    monkeypatch.setattr(BrokerTable, "take_over", lambda _self, _entries, _events: ([], []))
    assert any(heal(History(seed=seed)).lost for seed in range(1, 9))


def test_a_history_repeats_itself() -> None:
    """One seed, one outcome."""
    assert heal(History(seed=3)) == _healed(3)


def test_without_a_partition_there_is_one_election() -> None:
    """Ten nodes together: one of those that asked is elected, and never another one."""
    world = ElectionWorld(History(seed=2, publish_s=1e9))
    world.deal(1, 0.0)
    world.start()
    world.run_until(60.0)
    assert len(world.brokers()) == 1
    assert world.is_healed()
    assert world.merges <= 1


@pytest.mark.parametrize("state", Role)
@pytest.mark.parametrize("turn", Occasion)
def test_every_state_and_turn_is_in_the_table_or_refused(state: Role, turn: Occasion) -> None:
    """An illegal pair raises; a legal one gives the table's answer."""
    if (state, turn) in TRANSITIONS:
        assert follow(state, turn) is TRANSITIONS[state, turn]
    else:
        with pytest.raises(IllegalOccasionError, match="cannot come while"):
            follow(state, turn)


def test_search_election_and_merge_step_by_step() -> None:
    """A lonely displayer searches, offers itself, serves; a senior's beacon makes it hand over."""
    node = Node(5, Timing(refresh_s=2.0))
    effects = node.handle(Subscribed(EVERYTHING), 0.0)
    assert [type(effect) for effect in effects] == [Keep, Say, SetTimer]
    assert isinstance(effects[1], Say)
    assert effects[1].message == Flood(5, 5, 1, Search())
    node.handle(TimerFired("search"), 0.5)
    assert _state(node) is Role.CANDIDATE
    node.handle(Heard(Flood(7, 7, 1, Candidacy())), 0.6)
    assert _state(node) is Role.CANDIDATE, "a higher number gives way to this one"
    node.handle(TimerFired("election"), 1.0)
    assert _state(node) is Role.BROKER
    assert node.table is not None
    assert node.table.displayers == {5}
    node.handle(Heard(Flood(9, 9, 1, Beacon((2.0, 9)))), 3.0)
    assert _state(node) is Role.BROKER, "the other one is junior"
    node.handle(Heard(Flood(9, 3, 1, Beacon((0.5, 3)))), 3.5)
    assert _state(node) is Role.MERGING
    node.handle(TimerFired("silence"), 9.0)
    assert _state(node) is Role.BROKER, "the senior one has gone before it took over"
    assert node.table.displayers == {5}
    rival = Node(6)
    rival.handle(Subscribed(EVERYTHING), 0.0)
    rival.handle(TimerFired("search"), 0.5)
    rival.handle(Heard(Flood(5, 5, 2, Candidacy())), 0.6)
    assert _state(rival) is Role.SEARCHING


def test_a_broker_owes_until_it_is_told() -> None:
    """Events are due again after a while until a refresh names them as seen; older ones are not for it."""
    table = BrokerTable(lifetime_s=10.0)
    assert not table.refresh(1, _refresh(), 0.0), "an unknown displayer must tell all it has seen"
    table.store([_kept(1), _kept(2), _kept(3, published_s=-1.0)])
    assert table.refresh(1, _refresh(("s", 2), whole=True), 1.0)
    assert [kept.id for kept in table.due(1, 1.0, 2.0)] == [("s", 1)]
    assert table.due(1, 2.0, 2.0) == ()
    assert [kept.id for kept in table.due(1, 3.0, 2.0)] == [("s", 1)]
    table.refresh(1, _refresh(("s", 1)), 4.0)
    assert table.due(1, 9.0, 2.0) == ()
    table.expire(20.0)
    assert table.displayers == frozenset()


def test_merged_tables_owe_what_each_side_lacked() -> None:
    """One side's events meet the other side's displayers; what was seen on either side is not owed."""
    one, other = BrokerTable(10.0), BrokerTable(10.0)
    one.refresh(1, _refresh(whole=True), 0.0)
    one.store([_kept(1), _kept(2)])
    one.refresh(1, _refresh(("s", 1)), 0.5)
    other.refresh(2, _refresh(whole=True), 0.0)
    other.refresh(1, _refresh(whole=True), 0.1)
    other.store([_kept(3)])
    other.take_over(*one.contents())
    assert {kept.id for kept in other.due(1, 5.0, 1.0)} == {("s", 2), ("s", 3)}
    assert {kept.id for kept in other.due(2, 5.0, 1.0)} == {("s", 1), ("s", 2), ("s", 3)}


def test_limits_are_kept() -> None:
    """Of too many events the oldest go, and are owed no more; a timing of nothing is refused."""
    table = BrokerTable(10.0, events_max=3)
    table.refresh(1, _refresh(whole=True), 0.0)
    table.store([_kept(number) for number in range(10)])
    assert table.events == 3
    assert [kept.id[1] for kept in table.due(1, 1.0, 1.0)] == [7, 8, 9]
    source = Node(1, Timing(pending_max=2))
    for number in range(5):
        source.handle(Published(_kept(number).event), float(number))
    assert [number for _, number in source.user.pending] == [3, 4]
    assert source.user.dropped == 3
    with pytest.raises(AdhocError, match="refresh_s must be above 0"):
        Node(1, Timing(refresh_s=0))


@pytest.mark.parametrize("meeting", ["merge", "coordinate"])
@pytest.mark.parametrize("seed", seeds(3, 8, first=1))
def test_nodes_that_die_and_a_fixed_network_that_comes_and_goes_cost_nothing(seed: int, meeting: str) -> None:
    """Killed between any two effects, out of reach at any time: everything arrives, here and there, once."""
    healed = heal(History(seed=seed, kills=2, fixed=True, meeting=meeting))
    assert healed.deaths > 0
    assert healed.offered > 0
    assert healed.delivered_s is not None
    assert (healed.lost, healed.duplicated, healed.unwanted, healed.fixed_lost) == (0, 0, 0, 0)


def test_a_node_that_notes_nothing_loses_what_it_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what it took as a broker a node that dies costs events: the check can fail."""
    monkeypatch.setattr(Office, "store", lambda self, events: (self.table.store(events), []))
    assert any(heal(History(seed=seed, kills=3)).lost for seed in range(1, 9))


def test_a_later_term_under_an_old_name_is_lost_in_the_fixed_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """If all terms of a broker were one stream, what it gave away would be taken for repetitions."""
    right = Office._named

    def wrong(self: Office, kept: Kept) -> Kept:
        named = right(self, kept)
        return named if named.custody is None else named._replace(custody=named.custody._replace(term=1))

    monkeypatch.setattr(Office, "_named", wrong)
    assert any(heal(History(seed=seed, fixed=True)).fixed_lost for seed in range(1, 31))


def test_notes_lead_to_what_a_node_knew() -> None:
    """A broker that comes back keeps what it kept, shows again what was not seen, and counts on."""
    node = Node(5)
    notes = [e.note for e in node.handle(Started(), 0.0) if isinstance(e, Keep)]

    def tell(fact: Fact, now: float) -> list[Effect]:
        effects = node.handle(fact, now)
        notes.extend(effect.note for effect in effects if isinstance(effect, Keep))
        return effects

    tell(Subscribed(EVERYTHING), 0.0)
    tell(TimerFired("search"), 0.5)
    tell(TimerFired("election"), 1.0)
    shown = tell(Published(Event({"value": 7}, source="s", sequence=1)), 2.0)
    assert [e.number for e in shown if isinstance(e, Show)] == [1]
    for told in (notes, list(node.memory())):
        again = Node(5, notes=told)
        assert _state(again) is Role.BROKER
        assert again.table is not None
        assert node.table is not None
        assert again.table.contents()[1] == node.table.contents()[1]
        effects = again.handle(Started(), 3.0)
        assert [e.number for e in effects if isinstance(e, Show)] == [1]
        assert again.life == 2
    again.handle(Shown(1), 4.0)
    assert not [e for e in Node(5, notes=list(again.memory())).handle(Started(), 5.0) if isinstance(e, Show)]


def test_a_user_who_sees_nothing_is_shown_so_much_and_the_rest_later() -> None:
    """A broker that is its own displayer goes on owing what its user had no room for."""
    node = Node(5)
    for fact, now in ((Started(), 0.0), (Subscribed(EVERYTHING), 0.0), (TimerFired("search"), 0.5)):
        node.handle(fact, now)
    node.handle(TimerFired("election"), 1.0)
    shown: list[int] = []

    def tell(fact: Fact, now: float) -> None:
        shown.extend(effect.number for effect in node.handle(fact, now) if isinstance(effect, Show))

    for number in range(SHOWING_MAX + 5):
        tell(Published(Event({"value": number}, source="s", sequence=number)), 2.0)
    assert len(shown) == SHOWING_MAX
    tell(TimerFired("refresh"), 4.0)
    assert len(shown) == SHOWING_MAX
    for number in range(1, 4):
        tell(Shown(number), 5.0)
    tell(TimerFired("refresh"), 6.0)
    assert len(shown) == SHOWING_MAX + 3


def test_messages_and_tables_have_a_size() -> None:
    """What has no room in a message goes with the next; of too many bytes the oldest events go."""
    large = [_kept(number)._replace(body=bytes(3 << 20)) for number in range(20)]
    assert len(list(portion(large))) == 2
    alone = _kept(0)._replace(body=bytes(MESSAGE_BYTES_MAX))
    assert list(portion([alone, *large])) == [alone]
    table = BrokerTable(10.0)
    table.refresh(1, _refresh(whole=True), 0.0)
    table.store(large)
    assert [kept.id[1] for kept in table.contents()[1]] == list(range(10, 20))
    assert [kept.id[1] for kept in table.due(1, 1.0, 1.0)] == [10, 11]
    assert [kept.id[1] for kept in table.due(1, 1.5, 1.0)] == [12, 13]

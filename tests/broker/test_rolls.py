"""Who votes: processes join, leave and are gone for good while all else breaks; nothing promised is lost."""

from __future__ import annotations

from typing import Any

import pytest

from sojourn.broker.seats import messages as say
from sojourn.broker.seats.council import Council
from sojourn.broker.seats.desk import Terms
from sojourn.broker.seats.effects import Effect, Save, Send, Unship
from sojourn.broker.seats.messages import ROLL, Ballots, Joined, Seat, Stamp
from sojourn.broker.seats.register import Entry, Register
from sojourn.broker.seats.shipping import Session
from tests.broker import seat_world
from tests.broker.seat_world import World, WorldError

NAMES = ("B1", "B2", "B3")
LINKS = (("B1", "B2"), ("B2", "B3"))
BASE = Seat("B3", 1, "B3", ("B2",))
NEXT = Seat("B3", 2, "B2", ("B1",))


@pytest.mark.parametrize(
    ("brokers", "copies", "death_share", "seed"),
    [(4, 1, 0.0, 0), (3, 1, 0.0008, 104), (3, 1, 0.0008, 112), (3, 1, 0.0008, 146), (6, 2, 0.0005, 202)],
)
def test_who_joins_and_leaves_loses_nothing(brokers: int, copies: int, death_share: float, seed: int) -> None:
    """Processes come and go for good between deaths and lost disks; in the end all who stay are at home."""
    world = World(seed, brokers=brokers, copies=copies, death_share=death_share, losses=True, changes_s=4.0)
    world.run(seconds=40.0)
    assert world.counts["joins"] > 0
    assert world.counts["leaves"] > 0
    assert world.latest[ROLL].term > 3


def test_a_joined_process_that_is_taken_for_new_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The world can fail: who joined, lost its disk and passes for the one that joined loses promises."""

    def same(*fields: Any) -> Terms:
        return Terms(*fields)._replace(birth="always the same")

    monkeypatch.setattr(seat_world, "Terms", same)
    found = 0
    for seed in range(8, 16):
        try:
            World(seed, brokers=4, changes_s=4.0).run(seconds=40.0)
        except WorldError:
            found += 1
    assert found


class Nothing:
    """No journals at all."""

    def next(self, _name: str) -> int:
        """Nothing is held."""
        return 0

    def incoming(self, _name: str) -> int:
        """Nor is it about to be."""
        return 0

    def first(self, _name: str) -> int:
        """And so it has no first batch."""
        return 0

    def check(self, _name: str, _number: int) -> int | None:
        """Nor can anything be told of it."""
        return None

    def is_trusted(self, _name: str) -> bool:
        """What is not there lacks nothing."""
        return True


def council_of(name: str) -> Council:
    """A process of three that votes, connected to the others."""
    register = Register(1, may_vote=True, birth=f"of {name}")
    register.entries = {
        ROLL: Entry(Seat(ROLL, 1, "B1", ("B2", "B3"))),
        "B1": Entry(Seat("B1", 1, "B1", ("B2",))),
        "B2": Entry(Seat("B2", 1, "B2", ("B1",))),
        "B3": Entry(BASE),
    }
    council = Council(Terms(name, NAMES, LINKS, 1), register, Nothing(), 0.0)
    for other in NAMES:
        if other != name:
            council.connected(other, 0.0)
    council.take_effects()
    return council


def said(effects: list[Effect], peer: str) -> list[say.Message]:
    """What a process is told."""
    return [one.message for one in effects if isinstance(one, Send) and one.peer == peer]


def test_who_has_sealed_a_roll_votes_about_seats_under_the_next_one_only() -> None:
    """It notes that before it says so, and neither answers under the sealed roll nor under an earlier one."""
    council = council_of("B1")
    council.heard("B2", say.Seal(1), 0.1)
    effects = council.take_effects()
    (answer,) = said(effects, "B2")
    assert isinstance(answer, say.Sealed)
    first = next(place for place, one in enumerate(effects) if isinstance(one, Send))
    saved = [one for one in effects[:first] if isinstance(one, Save)]
    assert Register.read(saved[-1].register).is_sealed
    council.heard("B2", say.Prepare(BASE, (1, "B2"), 1), 0.2)
    council.heard("B2", say.Accept(BASE, (1, "B2"), NEXT, 1), 0.2)
    assert not said(council.take_effects(), "B2")
    council.heard("B2", say.Decided(Seat(ROLL, 2, "B1", ("B2", "B3"))), 0.3)
    council.take_effects()
    council.heard("B2", say.Prepare(BASE, (2, "B2"), 1), 0.4)
    assert not said(council.take_effects(), "B2"), "it was asked under the roll before"
    council.heard("B2", say.Prepare(BASE, (2, "B2"), 2), 0.4)
    assert any(isinstance(one, say.Promise) for one in said(council.take_effects(), "B2"))


def proposed(council: Council, voted: tuple[say.Ballot, Seat] | None) -> Seat:
    """What a process has voted about, for B4 to join, when B2 has sealed the roll and told its vote."""
    council.invite({"B4": ("B1",)})
    council.connected("B4", 0.1)
    council.heard("B4", say.Hello(0, enrols=True, seats=(), standings=(), birth="of B4"), 0.1)
    council.tick(0.2)
    assert say.Seal(1) in said(council.take_effects(), "B2")
    council.lost("B3", 0.3)
    ballots = (Ballots(BASE, (1, "B3"), voted),)
    council.heard("B2", say.Sealed(1, ballots, Stamp(1, {})), 0.3)
    council.tick(0.4)
    attempt = council.attempt(ROLL)
    assert attempt is not None
    return attempt.wanted


def test_a_roll_changes_when_nothing_can_have_been_decided_that_is_not_known() -> None:
    """One who sealed has a vote of which nobody knows what became of it: the same processes go on."""
    changed = proposed(council_of("B1"), None)
    assert changed.members == ("B1", "B2", "B3", "B4")
    assert changed.joined == (Joined("B4", ("B1",), "of B4"),)
    assert [seat.name for seat in changed.seats] == ["B1", "B2", "B3", "B4"]
    assert changed.seats[3].host == "B4"
    assert proposed(council_of("B1"), ((1, "B3"), NEXT)).members == NAMES


def test_who_learns_of_a_roll_learns_all_seats_with_it() -> None:
    """So nobody votes under it about a term that was decided before."""
    council = council_of("B1")
    seats = (Seat("B1", 1, "B1", ("B2",)), Seat("B2", 1, "B2", ("B1",)), Seat("B3", 7, "B2", ("B1",)))
    council.heard("B2", say.Prepare(Seat(ROLL, 4, "B1", ("B2", "B3"), seats=seats), (1, "B2"), 4), 0.1)
    assert council.seat("B3").term == 7
    assert council.register.number == 4


def test_who_is_killed_while_it_learns_of_a_roll_has_noted_all_seats_with_it_or_none() -> None:
    """Whatever is noted with the new roll has its seats: they are not noted one after the other."""
    council = council_of("B1")
    council.shipping.sessions["B1", "B3"] = session = Session(1, 1)
    session.is_shipping = True
    seats = (Seat("B1", 4, "B1", ("B2",)), Seat("B2", 5, "B2", ("B1",)))
    roll = Seat(ROLL, 2, "B1", ("B2",), left=("B3",), seats=seats)
    # A memory that was not known here is noted, too.
    council.heard("B2", say.Hello(2, enrols=False, seats=(roll, *seats), standings=()), 0.1)
    effects = council.take_effects()
    assert any(isinstance(one, Unship) for one in effects), "who has left is told no more lines"
    for one in effects:
        if isinstance(one, Save) and (noted := Register.read(one.register)).number == 2:
            assert {name: entry.seat.term for name, entry in noted.seats.items()} == {"B1": 4, "B2": 5}


def test_a_vote_from_before_a_change_of_the_roll_is_void() -> None:
    """It named one that has left, and would hold up its seat for ever; with the same processes it counts."""
    vote = say.Accept(BASE, (1, "B2"), NEXT, 1)
    for members, left, is_void in ((("B2", "B3"), (), False), (("B2", "B3", "B4"), (), True)):
        council = council_of("B1")
        council.heard("B2", vote, 0.1)
        assert council.register.entries["B3"].voted is not None
        joined = (Joined("B4", ("B1",), "of B4"),) if is_void else ()
        council.heard("B2", say.Decided(Seat(ROLL, 2, "B1", members, joined, left, (BASE,))), 0.2)
        assert (council.register.entries["B3"].voted is None) == is_void


def test_who_cannot_read_its_journal_any_more_does_not_count_as_whole() -> None:
    """Others would make it a member without bringing it up to date."""
    council = council_of("B2")
    council.register.entries["B3"].whole = 1
    council.tick(0.1)
    assert council.register.entries["B3"].whole == 0


def part_while_a_roll_is_decided(world: World) -> None:
    """Of two who let a third one in, cut off the one that has voted for that and not heard the outcome."""
    world.begin()
    world.run_until(10.0)
    first = world.processes["B0"].register
    assert first is not None
    before = first.number
    world._join("B0")
    for _ in range(100_000):
        world.run_until(world._heap[0][0])
        numbers = [world.processes[name].register.number for name in ("B0", "B1")]  # type: ignore[union-attr]  # both run
        if numbers == [before + 1, before]:
            break
    assert numbers == [before + 1, before]
    world._part([frozenset(("B1", other)) for other in ("B0", "B2")], 10.0)
    world.rest(40.0)


def test_who_has_voted_for_a_roll_decides_nothing_under_the_one_before() -> None:
    """It alone could have decided that it plays the other's broker, which goes on with the third."""
    part_while_a_roll_is_decided(World(1, brokers=2))


def test_a_roll_that_is_not_sealed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The world can fail: who votes on under a roll that another has followed decides a term twice."""
    monkeypatch.setattr(Register, "is_sealed", property(lambda _: False))
    with pytest.raises(WorldError, match="two seatings"):
        part_while_a_roll_is_decided(World(1, brokers=2))


@pytest.mark.parametrize("seed", [1000, 1016, 1044])
def test_the_last_one_that_remembers_tells_others_although_it_has_sealed_the_roll(seed: int) -> None:
    """Of two that let others in one loses its disk: neither could vote without the other, for good."""
    World(seed, brokers=2, changes_s=4.0).run(seconds=40.0)

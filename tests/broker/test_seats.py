"""Seats: whatever is killed, wiped, parted or held up, nothing that was promised is lost, and all goes on."""

from __future__ import annotations

import pytest

from sojourn.broker.seats.attempt import Attempt
from sojourn.broker.seats.choosing import Order, first_seat, next_seat
from sojourn.broker.seats.enrolling import Enrolling
from sojourn.broker.seats.messages import (
    ROLL,
    Accept,
    Accepted,
    Held,
    Message,
    MessageReader,
    Prepare,
    Promise,
    Refuse,
    Seat,
    SeatError,
    Stamp,
    write_message,
)
from sojourn.broker.seats.register import Entry, Register, consistent, enough_to_enrol, majority
from sojourn.broker.seats.shipping import Shipping
from tests.broker.seat_world import Process, World, WorldError

BASE = Seat("B1", 1, "B1", ("B2",))
OTHER = Seat("B1", 2, "B2", ("B3",))
STAMP = Stamp(1, {})


@pytest.mark.parametrize(
    ("brokers", "copies", "death_share", "seed"),
    [(5, 1, 0.0, 1), (6, 2, 0.0, 2), (3, 1, 0.001, 7), (5, 1, 0.0005, 206), (2, 1, 0.0005, 3)],
)
def test_nothing_promised_is_lost(brokers: int, copies: int, death_share: float, seed: int) -> None:
    """Processes die between any two effects and lose their disks; in the end every broker is at home."""
    world = World(seed, brokers=brokers, copies=copies, death_share=death_share)
    world.run(seconds=40.0)
    assert sum(map(len, world.promised.values())) > 100
    deaths = ("wipe", "kill", "died between effects")
    assert sum(world.counts[how] for how in deaths) > 0


def test_a_journal_that_is_lost_alone_comes_back_from_a_copy() -> None:
    """Its process remembers its votes, and lost its store or its end: it tells nothing to who holds more."""
    lost = 0
    for brokers, seed in ((3, 1), (5, 2), (6, 3)):
        world = World(seed, brokers=brokers, losses=True)
        world.run(seconds=40.0)
        assert sum(map(len, world.promised.values())) > 100
        lost += world.counts["lose store"] + world.counts["lose end"]
    assert lost > 0


@pytest.mark.parametrize("seed", range(4))
def test_an_older_store_in_place_of_the_last_one_comes_back_from_a_copy(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup was put there, or a repair gave up its end: nothing tells the process that power was lost."""
    monkeypatch.setattr(Process, "is_trusted", lambda *_: True)
    world = World(seed, brokers=3)
    world.begin()
    for name in ("B0", "B1", "B2"):
        world.run_until(world.now + 20.0)
        assert world.may_lose(name), "copies are whole"
        promised = list(world.promised[name])
        process = world.processes[name]
        process.die(wipes=False)
        process.lose("lose end")
        del process.disk.logs[name].batches[-20:]
        process.start()
        world.run_until(world.now + 20.0)
        assert process.disk.logs[name].holds(promised)
        process.disk.hurt.discard(name)
    world.rest(30.0)


def test_a_copy_that_cannot_be_read_is_copied_anew() -> None:
    """Its end may fit what the host has: it is not gone on with, and stays aside until another is there."""
    world = World(1, brokers=3)
    world.begin()
    world.run_until(20.0)
    host = world.processes["B0"]
    assert host.register is not None
    (follower,) = (world.processes[name] for name in host.register.entries["B0"].seat.followers)
    world.rot(follower)
    host.die(wipes=False)
    world.run_until(world.now + 20.0)
    assert world.counts["found rot"] > 0
    assert follower.register is not None
    assert follower.register.entries["B0"].whole == 0
    assert follower.disk.aside["B0"].is_rotten, "no other copy is there"
    host.start()
    world.rest(30.0)
    assert world.may_lose("B0"), "its copy is whole again"
    assert not follower.disk.aside


def test_a_broker_that_nobody_plays_is_known_to_all_until_somebody_does() -> None:
    """From the death of its host to the next term, and again if the one that takes over dies."""
    world = World(1, brokers=5)
    world.begin()
    world.run_until(20.0)
    councils = {name: one.council for name, one in world.processes.items() if one.council is not None}
    assert all(one.unplayed() == () for one in councils.values())
    for _ in range(2):
        host = councils["B1"].seat("B0").host
        world.processes[host].die(wipes=True)
        del councils[host]
        world.run_until(world.now + 0.2)
        assert all("B0" in one.unplayed() for one in councils.values())
        world.run_until(world.now + 20.0)
        assert all(one.unplayed() == () for one in councils.values())


def test_copies_rot_unnoticed_and_nothing_is_lost() -> None:
    """As long as another copy can be read; in the end every broker is at home."""
    found = 0
    for brokers, copies, seed in ((3, 1, 1), (5, 1, 2), (6, 2, 3)):
        world = World(seed, brokers=brokers, copies=copies, rots=True)
        world.run(seconds=60.0)
        assert sum(map(len, world.promised.values())) > 100
        found += world.counts["found rot"]
    assert found > 0


@pytest.mark.parametrize("first", ["away", "back"])
def test_disks_that_are_lost_one_after_the_other_are_survived(first: str) -> None:
    """Of three two lose theirs, with copies whole in between, whether or not the first is back by then."""
    world = World(1, brokers=3, votes_go=True)
    world.begin()
    world.run_until(20.0)
    for name in ("B0", "B1"):
        assert world.may_lose(name), "copies are whole"
        world.processes[name].die(wipes=True)
        if first == "back":
            world.processes[name].start()
        world.run_until(world.now + 20.0)
    for name in ("B0", "B1"):
        world.processes[name].start()
    world.rest(30.0)
    assert all(process.register.may_vote for process in world.processes.values() if process.register)


def test_nothing_is_lost_with_the_votes_of_most() -> None:
    """However few remember their votes: as long as copies are whole, everything is there when all are."""
    too_few = 0
    for brokers, copies, seed in ((3, 1, 1), (3, 1, 2), (4, 1, 3), (5, 2, 4), (5, 1, 5), (6, 1, 6)):
        world = World(seed, brokers=brokers, copies=copies, death_share=0.0005, votes_go=True)
        world.run(seconds=60.0)
        assert sum(map(len, world.promised.values())) > 100
        too_few += world.counts["too few remember"] > 0
    assert too_few > 0


def test_who_asks_only_some_of_those_who_remember_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The world can fail: one process that remembers is not enough while others may remember more."""

    def hasty(self: Enrolling) -> bool:
        return any(one.is_enrolled for one in self._answers.values())

    monkeypatch.setattr(Enrolling, "_is_all_there_is", hasty)
    monkeypatch.setattr(Enrolling, "_is_everybody", lambda *_: True)
    assert found_by(range(16), brokers=3, votes_go=True)


def found_by(seeds: range, brokers: int, *, votes_go: bool = False) -> int:
    """How many worlds break a promise."""
    found = 0
    for seed in seeds:
        try:
            World(seed, brokers=brokers, votes_go=votes_go).run(seconds=40.0)
        except (WorldError, AssertionError):
            found += 1
    return found


def test_promises_without_followers_that_are_away_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The world can fail: a host that does not wait for a follower which is away loses what it promised."""
    held = Shipping.held

    def impatient(self: Shipping, name: str, peer: str, term: int) -> int:
        return held(self, name, peer, term) if self._desk.is_up(peer) else self._desk.logs.next(name)

    monkeypatch.setattr(Shipping, "held", impatient)
    assert found_by(range(4), brokers=3)


def test_new_members_that_are_not_brought_up_to_date_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The world can fail: who is made a follower without a copy is no follower."""
    monkeypatch.setattr(Attempt, "unready", lambda _: [])
    assert found_by(range(4), brokers=5)


def test_one_attempt_at_a_term_is_decided() -> None:
    """Who promised a later attempt does not vote in an earlier one, and says what it voted for."""
    entry = Entry(BASE)
    assert entry.prepare(Prepare(BASE, (1, "B2")), STAMP) == Promise("B1", 2, (1, "B2"), None, STAMP)
    assert isinstance(entry.accept(Accept(BASE, (1, "B2"), OTHER), STAMP), Accepted)
    assert isinstance(entry.prepare(Prepare(BASE, (1, "B1")), STAMP), Refuse)
    voted = ((1, "B2"), OTHER)
    assert entry.prepare(Prepare(BASE, (2, "B1")), STAMP) == Promise("B1", 2, (2, "B1"), voted, STAMP)
    assert isinstance(entry.accept(Accept(BASE, (1, "B2"), OTHER), STAMP), Refuse)


def test_who_lost_its_memory_takes_over_the_votes_that_others_know() -> None:
    """It takes part in no attempt earlier than one which others promised, and says what they voted for."""
    roll = Seat(ROLL, 1, "B1", ("B2", "B3"))
    other = Register(may_vote=True, entries={ROLL: Entry(roll), "B1": Entry(BASE)})
    other.entries["B1"].prepare(Prepare(BASE, (2, "B2")), STAMP)
    other.entries["B1"].accept(Accept(BASE, (2, "B2"), OTHER), STAMP)
    fresh = Register(2, entries={"B1": Entry(BASE)})
    for ballots in other.enrolled(2).ballots:
        fresh.adopt(ballots)
    entry = fresh.entries["B1"]
    assert isinstance(entry.prepare(Prepare(BASE, (1, "B1")), STAMP), Refuse)
    answer = entry.prepare(Prepare(BASE, (3, "B1")), STAMP)
    assert isinstance(answer, Promise)
    assert answer.voted == ((2, "B2"), OTHER)
    assert Register.read(fresh.written()) == fresh


def test_no_majority_counts_a_memory_that_another_voter_knew_to_be_lost() -> None:
    """An answer from before the loss counts only with those who had not heard of it."""
    before, after = Stamp(1, {}), Stamp(1, {"B1": 2})
    assert consistent({"B1": before, "B2": before}) == {"B1", "B2"}
    assert consistent({"B1": before, "B2": after}) == {"B2"}
    assert consistent({"B1": Stamp(2, {}), "B2": after}) == {"B1", "B2"}


@pytest.mark.parametrize("count", range(2, 12))
def test_those_who_are_asked_know_of_every_majority(count: int) -> None:
    """Whichever majority a process voted with, one of the others in it is among those it asks."""
    others = count - 1
    assert (majority(count) - 1) + enough_to_enrol(count) > others
    assert 2 * enough_to_enrol(count) > others


def test_neighbours_follow_first_and_only_who_is_there() -> None:
    """A follower that is gone makes way for another; with nobody else there it stays."""
    order = Order(("B1", "B2", "B3", "B4"), (("B1", "B3"), ("B3", "B4"), ("B2", "B4")))
    assert first_seat(order, "B1", 1) == Seat("B1", 1, "B1", ("B3",))
    seat = first_seat(order, "B1", 2)
    assert seat.followers == ("B3", "B4")
    there = next_seat(order, seat, "B1", 2, there=["B1", "B2", "B4"], kept=["B4"])
    assert there is not None
    assert set(there.followers) == {"B4", "B2"}
    alone = next_seat(order, seat, "B1", 2, there=["B1"], kept=[])
    assert alone is not None
    assert alone.followers == seat.followers


def test_messages_are_read_in_whatever_pieces_they_come() -> None:
    """Every cut gives the same messages, and what is none is refused."""
    sent: list[Message] = [Held("B1", 7, 120), Prepare(BASE, (3, "B2"))]
    data = b"".join(map(write_message, sent))
    for cut in range(len(data)):
        reader = MessageReader()
        assert [*reader.arrived(data[:cut]), *reader.arrived(data[cut:])] == sent
    with pytest.raises(SeatError, match="cannot be read"):
        list(MessageReader().arrived(b"\0\0\0\1x"))
    with pytest.raises(SeatError, match="bytes, over"):
        list(MessageReader().arrived(b"\xff\xff\xff\xffx"))

"""What a broker that is not played at home says that it waits for."""

from __future__ import annotations

from sojourn.broker.seats.desk import Desk, Peer, Terms, roll_of
from sojourn.broker.seats.messages import ROLL, Seat, Standing
from sojourn.broker.seats.register import Entry, Register
from sojourn.broker.seats.waiting import why_not

NAMES = ("B3", "B4", "B5")
PLAYED = Seat("B3", 5, "B5", ("B4",))


class Nothing:
    """Journals of a process that holds none."""

    def next(self, _name: str) -> int:
        """Nothing."""
        return 0

    def incoming(self, _name: str) -> int:
        """Nothing."""
        return 0

    def first(self, _name: str) -> int:
        """Nothing."""
        return 0

    def check(self, _name: str, _number: int) -> int | None:
        """Nothing."""
        return None

    def is_trusted(self, _name: str) -> bool:
        """There is nothing to trust."""
        return True


def told(whole: dict[str, int], up: tuple[str, ...] = ("B4", "B5")) -> Desk:
    """B3's process, back without its store, when others have said up to which term they hold it."""
    register = Register()
    register.entries = {ROLL: Entry(roll_of(NAMES, 1)), "B3": Entry(PLAYED)}
    register.may_vote = True
    desk = Desk(Terms("B3", NAMES, (), 1), register, Nothing(), 0.0)
    for name in ("B4", "B5"):
        peer = desk.peers[name] = Peer(0.0, 0.0)
        peer.is_up = name in up
        peer.votes = True
        if name in whole:
            peer.standings["B3"] = Standing("B3", PLAYED.term, whole[name], 0)
    return desk


def test_who_plays_it_gives_it_back() -> None:
    """Also where it has not said yet how it stands."""
    for whole in ({"B4": 5, "B5": 5}, {}):
        assert "B5 plays it, in term 5, and gives it back" in why_not(told(whole), "B3")


def test_what_all_have_lost_is_not_waited_for_in_vain() -> None:
    """Who was to play it, and who followed, came back without their disks: nobody plays it."""
    said = why_not(told({"B4": 0, "B5": 0}), "B3")
    assert "plays it" not in said
    assert "more disks were lost than there are copies" in said
    assert "The guide to copies says how to begin anew" in said


def test_a_follower_gives_back_what_the_other_lost() -> None:
    """It is named, and not the one that has nothing."""
    said = why_not(told({"B4": 5, "B5": 0}), "B3")
    assert "B4 gives it back" in said
    assert "B5" not in said


def test_who_is_away_does_not_play() -> None:
    """Somebody else may have a copy; or else that one is to be started."""
    said = why_not(told({"B4": 5, "B5": 5}, up=("B4",)), "B3")
    assert said == "B5 played it last, in term 5, and is away. B4 has a copy, and takes over."
    said = why_not(told({"B4": 0}, up=("B4",)), "B3")
    assert said == "B5 played it last, in term 5, and is away. Nobody in reach has a copy."


def test_a_disk_without_room_is_named() -> None:
    """What it waits for is room here, whoever plays it meanwhile."""
    desk = told({"B4": 5, "B5": 5})
    desk.has_room = False
    assert "no room for that on the disk of this process" in why_not(desk, "B3")

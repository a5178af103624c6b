"""A client that walks from broker to broker counts once, whatever the moments at which brokers report."""

from __future__ import annotations

import random

import pytest

from sojourn.live.page.board import Board
from sojourn.live.page.status import CLIENTS_MAX, NAME_MAX
from sojourn.live.page.whereabouts import ON_THE_WAY_S
from tests.live.building import building
from tests.live.test_page import report

NAMES = [f"B{number}" for number in range(1, 7)]


@pytest.fixture
def board() -> Board:
    """What the first of six brokers shows."""
    return Board(building(), "B1")


def tell(board: Board, broker: str, now: float, **came: float) -> None:
    """Let a broker report who is there, and when each came."""
    board.take(broker, report(now, clients=len(came), sessions=len(came), present=list(came.items())), now)


def counts(board: Board, now: float) -> dict[str, int]:
    """How many clients each broker is shown with, where there are any."""
    return {name: one.clients for name, one in board.fresh(now).items() if one.clients}


def test_a_client_that_two_brokers_name_is_where_it_came_last(board: Board) -> None:
    """It went from the first to the second after the first had reported."""
    tell(board, "B1", 10.0, phone=3.0, lamp=1.0)
    tell(board, "B2", 10.5, phone=10.2)
    assert counts(board, 10.5) == {"B1": 1, "B2": 1}
    shown = {one["name"]: one["report"] for one in board.state(10.5)["brokers"] if one["report"]}
    assert shown["B1"].present == [("lamp", 1.0)]
    assert shown["B2"].present == [("phone", 10.2)]


def test_a_client_that_nobody_names_counts_where_it_was_for_a_while(board: Board) -> None:
    """It went from the second to the first after the first had reported; one that stays away is away."""
    tell(board, "B1", 10.0)
    tell(board, "B2", 10.1, phone=3.0)
    tell(board, "B1", 11.0)
    tell(board, "B2", 11.1)
    assert counts(board, 11.1) == {"B2": 1}
    tell(board, "B1", 12.0, phone=11.05)
    assert counts(board, 12.0) == {"B1": 1}
    tell(board, "B1", 13.0)
    assert counts(board, 13.0) == {"B1": 1}
    tell(board, "B1", 13.0 + ON_THE_WAY_S)
    assert counts(board, 13.0 + ON_THE_WAY_S) == {}


def test_walking_clients_are_always_as_many_as_they_are(board: Board) -> None:
    """Twenty clients that walk, six brokers that report at moments of their own."""
    draw = random.Random(1)
    offsets = {name: draw.random() for name in NAMES}
    places = {f"c{number}": (draw.choice(NAMES), 0.0) for number in range(20)}
    due = sorted((second + offsets[name], name) for second in range(100) for name in NAMES)
    last = 0.0
    for now, reporter in due:
        for client in places:
            if draw.random() < (now - last) / 4:  # every four seconds or so
                places[client] = (draw.choice(NAMES), draw.uniform(last, now))
        last = now
        tell(
            board, reporter, now, **{who: came for who, (where, came) in places.items() if where == reporter}
        )
        if now > 4:  # by then everybody was named
            assert sum(counts(board, now).values()) == 20


def test_clients_without_a_whole_name_are_counted_as_brokers_count_them(board: Board) -> None:
    """Names that were cut may be two clients', and of a crowd some are not named at all."""
    cut = "x" * NAME_MAX
    tell(board, "B1", 10.0, **{cut: 1.0})
    tell(board, "B2", 10.0, **{cut: 2.0})
    assert counts(board, 10.0) == {"B1": 1, "B2": 1}
    crowd = [(f"c{number}", 1.0) for number in range(CLIENTS_MAX)]
    board.take("B3", report(10.0, clients=CLIENTS_MAX + 50, present=crowd), 10.0)
    board.take("B3", report(11.0, clients=CLIENTS_MAX + 50, present=crowd[1:]), 11.0)
    assert counts(board, 11.0)["B3"] == CLIENTS_MAX + 50


def test_there_are_never_fewer_sessions_than_clients(board: Board) -> None:
    """Who is on the way has its session with it, so nobody is shown as away because of it."""
    tell(board, "B1", 10.0, phone=1.0)
    tell(board, "B1", 11.0)
    (shown,) = (one["report"] for one in board.state(11.0)["brokers"] if one["report"])
    assert (shown.clients, shown.sessions) == (1, 1)

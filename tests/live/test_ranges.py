"""Every number of a configuration has a range, and a file with another number is refused."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.settings import MobilityConfig, Settings
from sojourn.cli.main import app
from sojourn.errors import SojournError
from sojourn.live.brokers.control import ask
from sojourn.live.config import Config, ConfigError, TraceConfig, load_config, read_config
from sojourn.mqtt.limits import Limits
from sojourn.mqtt.ranges import ENOUGH, Range, numbers, range_of
from tests.live.raw_client import Raw, running_broker

BROKER = '[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\nstore = "store"\n'
FREE = {"users.attributes"}
"""Attributes of users may be any numbers."""


def every_number(kind: type, table: str = "") -> Iterator[tuple[str, Any]]:
    """Where each key stands whose value may be a number, with its type."""
    for field in msgspec.structs.fields(kind):
        place = f"{table}.{field.name}" if table else field.name
        yield from within(field.type, place)


def within(kind: Any, place: str) -> Iterator[tuple[str, Any]]:
    """The same of one type."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield from every_number(kind, place)
    elif kind in (int, float) or (typing.get_origin(kind) is Annotated and kind.__origin__ in (int, float)):
        yield place, kind
    elif typing.get_origin(kind) in (list, tuple, dict, types.UnionType, typing.Union):
        for one in typing.get_args(kind):
            yield from within(one, place)


def places() -> list[tuple[str, Range]]:
    """Every key with a number, and what it may be."""
    return [
        (place, found)
        for place, kind in every_number(Config)
        if place not in FREE and (found := range_of(kind)) is not None
    ]


def text(place: str, value: float) -> str:
    """A configuration with one number that is not the default."""
    table, key = place.split(".")
    said = f"{value}" if math.isfinite(value) else f"{value:f}"
    folder = 'folder = "trace"\n' if table == "trace" else ""
    return f"{BROKER}[{table}]\n{folder}{key} = {said}\n"


class Careless(msgspec.Struct, frozen=True):
    """A table whose writer forgot something."""

    seats_max: int | None = None
    seats_min: Annotated[int, "some"] = 0
    seats: Annotated[int, Range(1)] = 1


def test_every_number_has_a_range() -> None:
    """Also one that is added later, in whichever table; text and choices need none."""
    lacking = {place for place, kind in every_number(Config) if range_of(kind) is None}
    assert lacking == FREE
    assert [place for place, kind in every_number(Careless) if range_of(kind) is None] == [
        "seats_max",
        "seats_min",
    ]
    assert len(places()) > len(msgspec.structs.fields(Limits)), "those of other tables are among them"


def test_every_number_is_looked_at() -> None:
    """Where the file has its table, however deep that is; defaults are within their ranges."""
    config = replace(read_config(BROKER), trace=TraceConfig(folder="trace"))
    found = list(numbers(config))
    assert {f"{one.table}.{one.key}" for one in found} == {place for place, _ in places()}
    assert all(one.range.holds(one.value) for one in found)


@pytest.mark.parametrize(("place", "allowed"), places())
def test_a_number_out_of_its_range_is_refused(place: str, allowed: Range) -> None:
    """One sentence names the key, its table, the range and the number; what is just within is taken."""
    table, key = place.split(".")
    wrong = [-1, allowed.least if allowed.without_least else allowed.least - 1]
    if allowed.most < math.inf:
        wrong.append(int(allowed.most) + 1)
    for value in wrong:
        with pytest.raises(ConfigError) as refused:
            read_config(text(place, value))
        words = str(refused.value)
        assert words.startswith(f"{key} of [{table}] is "), words
        assert words.endswith(f", not {value:g}." if f"{value:g}" in words else f", not {value}."), words
        assert str(allowed) in words or f"at most {ENOUGH}" in words
    for edge in (max(1, allowed.least), min(allowed.most, ENOUGH)):
        if key != "copies":  # there are as many as other brokers
            read_config(text(place, edge))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_none(value: float) -> None:
    """NaN is in no range; no end is only where waiting for ever means something."""
    takes = set()
    for place, kind in every_number(Config):
        if place not in FREE and kind.__origin__ is float:
            try:
                read_config(text(place, value))
            except ConfigError:
                continue
            takes.add(place)
    assert takes == ({"mobility.timeout_s", "mobility.give_up_s"} if value == math.inf else set())


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        ("mobility.timeout_s", -1, "timeout_s of [mobility] is more than 0 seconds, not -1."),
        ("mobility.gone_s", 0.1, "gone_s of [mobility] is at least 1 seconds, not 0.1."),
        ("limits.connections_max", -1, "connections_max of [limits] is at least 1, not -1."),
        ("limits.receive_max", 70_000, "receive_max of [limits] is from 1 to 65535, not 70000."),
        ("prediction.share", 1.5, "share of [prediction] is more than 0 and at most 1, not 1.5."),
        ("trace.sample", 0.0, "sample of [trace] is more than 0 and at most 1, not 0."),
        ("limits.queue_bytes_max", 10**18, f"queue_bytes_max of [limits] is at most {ENOUGH}, not {10**18}."),
    ],
)
def test_the_sentence(place: str, value: float, sentence: str) -> None:
    """It reads as one."""
    with pytest.raises(ConfigError) as refused:
        read_config(text(place, value))
    assert str(refused.value) == sentence


@pytest.mark.parametrize("end", ["least", "most"])
@pytest.mark.parametrize("brokers", [1, 2])
def test_a_broker_begins_with_numbers_at_the_ends_of_their_ranges(brokers: int, end: str) -> None:
    """In a network too, where they are limits of what is stored for those who move."""
    names = ("B1", "B2")[:brokers]
    for table, key, _, allowed in numbers(Settings(name="B1", brokers=names)):
        value = getattr(allowed, end) if not allowed.without_least or end == "most" else 0.001
        settings = with_number(names, table, key, value)
        broker = LiveBroker.revived(settings, "life", 1e9, None, [])
        assert broker.turn(1e9).entries
        again = LiveBroker.revived(settings, "next", 1e9 + 1, broker.snapshot(), [])
        assert again.settings == settings


@pytest.mark.parametrize("keeps", [False, True], ids=["lines", "snapshot"])
@pytest.mark.parametrize("value", [-1, 0])
def test_a_store_with_odd_numbers_is_opened(value: int, *, keeps: bool) -> None:
    """An earlier build let them pass; what the configuration says now holds."""
    plain = Settings(name="B1", brokers=("B1",))
    for table, key, _, allowed in numbers(plain):
        if allowed.holds(value):
            continue
        odd = LiveBroker.revived(with_number(("B1",), table, key, value), "first", 1e9, None, [])
        entries = odd.turn(1e9).entries
        snapshot, entries = (odd.snapshot(), []) if keeps else (None, entries)
        broker = LiveBroker.revived(plain, "second", 1e9 + 1, snapshot, entries)
        assert broker.settings == plain, f"{key} of {table}"
        joined = replace(plain, brokers=("B1", "B2"), links=(("B1", "B2"),))
        assert LiveBroker.revived(joined, "third", 1e9 + 2, snapshot, entries).network is not None


def with_number(names: tuple[str, ...], table: str, key: str, value: float) -> Settings:
    """The settings of a broker, linked to the next one if there is one, with one number that is not usual."""
    settings = Settings(name="B1", brokers=names, links=(("B1", "B2"),) if len(names) > 1 else ())
    if table == "limits":
        return replace(settings, limits=replace(Limits(), **{key: value}))
    return replace(settings, mobility=replace(MobilityConfig(), **{key: value}))


def test_commands_refuse_such_a_file_and_write_nothing(tmp_path: Path) -> None:
    """Whichever reads it, and also if it is for one broker of several."""
    file = tmp_path / "city.toml"
    file.write_text(text("mobility.timeout_s", -1))
    for command in (
        ["serve", f"{file}"],
        ["serve", f"{file}", "--all"],
        ["join", f"{file}", "B2", "--link", "B1"],
        ["leave", f"{file}", "B1"],
        ["reload", f"{file}"],
        ["learn", f"{tmp_path}", "--into", f"{file}"],
    ):
        done = CliRunner().invoke(app, command)
        assert isinstance(done.exception, ConfigError), command
        assert "timeout_s of [mobility] is more than 0 seconds, not -1" in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["city.toml"]


def test_a_reload_leaves_what_was_there_in_force(tmp_path: Path) -> None:
    """The broker says no for itself, whoever read the file before."""
    file = tmp_path / "city.toml"
    file.write_text(BROKER)
    control = load_config(file).network.control
    assert control is not None
    with running_broker(f"{file}") as broker:
        file.write_text(text("limits.queue_messages_max", -5))
        with pytest.raises(SojournError, match=r"queue_messages_max of \[limits\] is at least 1, not -5"):
            ask(control, "B1", {"command": "reload"})
        Raw(broker.port).connect("still-served")
        file.write_text(BROKER)
        ask(control, "B1", {"command": "reload"})

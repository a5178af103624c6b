"""Strangers that keep no rule in worlds of live brokers: seeds repeat, honest clients are judged."""

from __future__ import annotations

import random

import pytest
from typer.testing import CliRunner

from sojourn.cli.main import app
from sojourn.mqtt.subscribing import Subscriber
from sojourn.sim.live_check import hostility
from sojourn.sim.live_check.check import check
from sojourn.sim.live_check.script import Spec
from sojourn.sim.live_check.strangers import STEPS

SPEC = Spec(seed=5, seconds=10.0, brokers=2, faults=("client", "break", "kill"), hostile=400)


def test_a_seed_says_the_same_twice_and_honest_clients_are_served() -> None:
    """Every byte that anybody wrote is the same; strangers took their steps; nothing was promised in vain."""
    one, other = check(SPEC), check(SPEC)
    assert one.failure is None, one.trace
    assert one.digest == other.digest
    assert one.counts[STEPS] == SPEC.hostile
    assert one.counts["deliveries"] > 0


def test_what_strangers_say_is_of_all_kinds() -> None:
    """A thousand draws hold every kind of packet that a client sends, and bytes that are none."""
    draw = random.Random(1)
    firsts = {hostility.said(draw)[0] >> 4 for _ in range(1_000)}
    assert {1, 3, 4, 5, 6, 7, 8, 10, 12, 14} <= firsts


def test_a_broker_that_trips_over_a_stranger_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure names the seed's command, and the trace says where."""
    subscribe = Subscriber.subscribe

    def trips(self: Subscriber, connection: object, session: object, packet: object, now: float) -> None:
        if any("very" in one.pattern for one in packet.topic_filters):  # type: ignore[attr-defined]  # of its kind
            raise KeyError("very")
        subscribe(self, connection, session, packet, now)  # type: ignore[arg-type]  # as the method it stands for

    monkeypatch.setattr(Subscriber, "subscribe", trips)
    found = check(SPEC)
    assert found.failure is not None
    assert found.kind == "KeyError"
    assert "trips" in found.trace
    assert found.spec.command().startswith("sojourn check fuzz --first-seed 5 --seeds 1 --seconds 10")


def test_the_command_counts_steps() -> None:
    """`sojourn check fuzz` goes on with further seeds until so many steps were taken."""
    options = ["--steps", "250", "--world-steps", "150", "--seconds", "5", "--jobs", "1", "--brokers", "2"]
    ran = CliRunner().invoke(app, ["check", "fuzz", *options])
    assert ran.exit_code == 0, ran.output
    assert "2 seeds, 300 hostile steps" in ran.output

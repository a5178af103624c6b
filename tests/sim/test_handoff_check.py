"""The checks of the hand-off: they pass, they repeat themselves, and they catch brokers that are broken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner

from sojourn.cli.main import app
from sojourn.interest.events import Event
from sojourn.mobility import queues
from sojourn.mobility.copy_requests import CopyRequests
from sojourn.mobility.deliveries import Deliveries
from sojourn.mobility.holdings import Holding
from sojourn.mobility.memory import Memory
from sojourn.mobility.requests import Requests
from sojourn.mobility.visits import Visits
from sojourn.routing.messages import Activated, Publish
from sojourn.sim.handoff_check.check import check, run, shorten
from sojourn.sim.handoff_check.oracle import Oracle, Wanted, Witness
from sojourn.sim.handoff_check.script import (
    CHECKED_SCHEMES,
    ROUTINGS,
    CheckError,
    CheckSpec,
    vocabulary,
    write_script,
)
from sojourn.sim.handoff_check.world import CheckWorld

LONG_RUN = 100_000


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("scheme", CHECKED_SCHEMES)
def test_nothing_is_lost_doubled_out_of_order_or_left(scheme: str, routing: str) -> None:
    """With ample room, events flooded or routed by content, whatever crosses, repeats, stalls or dies."""
    handoffs = 0
    for seed in range(15):
        found = check(CheckSpec(seed=seed, scheme=scheme, routing=routing))
        assert found.failure is None, f"{found.failure}: {found.command()}"
        handoffs += found.handoffs
    assert handoffs > 300


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_hundred_thousand_handoffs() -> None:
    """The long run."""
    handoffs, seed = 0, 10_000
    while handoffs < LONG_RUN:
        scheme, routing = CHECKED_SCHEMES[seed % 2], ROUTINGS[seed // 2 % 2]
        found = check(CheckSpec(seed=seed, scheme=scheme, routing=routing))
        assert found.failure is None, f"{found.failure}: {found.command()}"
        handoffs += found.handoffs
        seed += 1


def test_an_asker_follows_a_stay_that_is_handed_over_before_it_can_answer() -> None:
    """The stay still asks what the client wants when a third broker takes it over."""
    found = check(CheckSpec(seed=871, scheme="proactive", routing="content"))
    assert found.failure is None


@pytest.mark.parametrize("seed", [10_508, 11_340, 11_659, 11_914])
def test_a_late_repetition_makes_no_copy_after_a_stay(seed: int) -> None:
    """A copy from before a stay is repeated after the subscriber has left it for another broker."""
    for routing in ROUTINGS:
        assert check(CheckSpec(seed=seed, scheme="proactive", routing=routing)).failure is None


def test_the_same_specification_is_the_same_run() -> None:
    """Every client sees the same events in the same order."""
    spec = CheckSpec(seed=4, scheme="proactive", routing="content")
    seen = []
    for _ in range(2):
        world = CheckWorld(write_script(spec))
        world.run()
        seen.append(([client.witness.seen for client in world.clients], world.happened, world.clock.now))
    assert seen[0] == seen[1]


# Broken brokers -------------------------------------------------------------------------------------------


def _no_wait_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A subscriber is served before FORWARD-END."""
    welcome: Callable[..., None] = Visits._welcome

    def hasty(self: Visits, stay: Holding, fact: Any) -> None:
        welcome(self, stay, fact)
        if stay.waits:
            self._giving.complete(stay)

    monkeypatch.setattr(Visits, "_welcome", hasty)


def _no_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes by itself after it was forwarded is delivered again."""
    monkeypatch.setattr(Deliveries, "_is_news", lambda *_: True)


def _no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was forwarded and what came by itself is delivered as it came."""

    def as_it_came(publications: Iterable[Publish], marks: Any) -> list[Publish]:
        return [one for one in publications if one.event.sequence > marks.get(one.event.source, -1)]

    monkeypatch.setattr(queues, "in_order", as_it_came)


def _no_memory_of_what_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that comes again after its copy was deleted is obeyed again."""
    monkeypatch.setattr(Memory, "is_closed", lambda *_: False)


def _answer_before_the_copy_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to an activation overtakes the subscription: it is no fence."""
    answer: Callable[..., None] = CopyRequests._answer

    def early(self: CopyRequests, message: Any, *, found: bool) -> None:
        answer(self, message, found=found)
        sends = self._effects.sends
        if isinstance(sends[-1][1], Activated):
            sends.insert(0, sends.pop())

    monkeypatch.setattr(CopyRequests, "_answer", early)


def _no_copies_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old broker forgets to tidy up."""
    monkeypatch.setattr(Requests, "delete", lambda *_args, **_kwargs: None)


@pytest.mark.parametrize(
    ("mutate", "routing"),
    [
        (_no_wait_for_the_end, "flooding"),
        (_no_ceiling, "flooding"),
        (_no_order, "flooding"),
        (_no_memory_of_what_is_over, "flooding"),
        (_answer_before_the_copy_stores, "content"),
        (_no_copies_deleted, "flooding"),
    ],
)
def test_a_broken_broker_is_caught(
    mutate: Callable[[pytest.MonkeyPatch], None], routing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part that correctness rests on is missed within a few dozen seeds when it is taken out."""
    mutate(monkeypatch)
    for seed in range(120):
        if check(CheckSpec(seed=seed, scheme="proactive", routing=routing)).failure is not None:
            return
    pytest.fail(f"no seed noticed: {mutate.__doc__}")


def test_a_failure_is_cut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shortened script fails with a small part of the steps, and does so again."""
    _no_wait_for_the_end(monkeypatch)
    specs = (CheckSpec(seed=seed, scheme="reactive") for seed in range(50))
    failed = next(found for found in map(check, specs) if found.failure is not None)
    short = shorten(failed)
    assert short.failure is not None
    assert len(short.script.steps) < len(failed.script.steps) / 4
    assert run(short.script).failure == short.failure


# The oracle -----------------------------------------------------------------------------------------------


def _judged(seen: list[int]) -> str | None:
    _, filters, _, _ = vocabulary()
    oracle = Oracle(filters, is_flooded=True)
    for sequence, number in enumerate([1, 9, 2, 3, 9, 1]):
        oracle.publish(Event({"n": number}, source="p", sequence=sequence), float(sequence))
    witness = Witness(0, [Wanted(1, is_taken=True, force_s=1.5)], {"p": seen})
    return oracle.judge(witness)


def test_the_oracle_judges() -> None:
    """Interest 1 is 0 to 7 and in force since 1.5 s: events 2, 3 and 5 must come, 0 may, 1 and 4 may not."""
    assert _judged([2, 3, 5]) is None
    assert "never got event 2" in str(_judged([0, 3, 5]))
    assert _judged([0, 2, 3, 5]) is None
    assert "never got event 3" in str(_judged([2, 5]))
    assert "twice" in str(_judged([2, 3, 3, 5]))
    assert "twice" in str(_judged([2, 3, 5, 2]))
    assert "after event" in str(_judged([3, 2, 5]))
    assert "never wanted" in str(_judged([2, 3, 4, 5]))


# The command ----------------------------------------------------------------------------------------------


def test_the_command_passes() -> None:
    """It says what it ran."""
    result = CliRunner().invoke(app, ["check", "handoff", "--seeds", "2", "--seconds", "20"])
    assert result.exit_code == 0
    assert "2 seeds, 8 worlds" in result.output
    assert "0 lost, 0 doubled, 0 out of order, no copy left behind" in result.output


def test_the_command_keeps_all_cores_busy_with_many_seeds() -> None:
    """In processes of their own the checks find the same as here."""
    options = ["--seeds", "16", "--seconds", "5"]
    result = CliRunner().invoke(app, ["check", "handoff", *options])
    kinds = [(scheme, routing) for scheme in CHECKED_SCHEMES for routing in ROUTINGS]
    handoffs = sum(
        check(CheckSpec(seed=seed, scheme=scheme, routing=routing, duration_s=5.0)).handoffs
        for seed in range(16)
        for scheme, routing in kinds
    )
    assert f"16 seeds, 64 worlds, {handoffs} hand-offs" in result.output


def test_the_command_fails_with_the_seed_a_history_and_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1, few steps, and a command that repeats it."""
    _no_wait_for_the_end(monkeypatch)
    result = CliRunner().invoke(app, ["check", "handoff", "--seeds", "30", "--scheme", "reactive"])
    assert result.exit_code == 1
    assert "Cut down from" in result.output
    assert "connect to broker" in result.output
    assert "To repeat it: sojourn check handoff --first-seed" in result.output


def test_bad_specifications_are_refused() -> None:
    """One sentence each."""
    with pytest.raises(CheckError, match="scheme may be reactive or proactive"):
        CheckSpec(seed=0, scheme="durable")
    with pytest.raises(CheckError, match="routing may be flooding or content"):
        CheckSpec(seed=0, routing="gossip")
    with pytest.raises(CheckError, match="duration must be more than 0"):
        replace(CheckSpec(seed=0), duration_s=0)

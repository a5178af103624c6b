"""Networks of whole live brokers keep their promises, whatever breaks; and a broken broker is found."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.seeds import seeds

from sojourn.broker import facts
from sojourn.broker.arrivals import Arrivals
from sojourn.broker.carried import Carried, WireError
from sojourn.broker.live_broker import LiveBroker
from sojourn.broker.wire import Wire
from sojourn.errors import SojournError
from sojourn.mobility.copy_requests import CopyRequests
from sojourn.sim.live_check.check import check, run
from sojourn.sim.live_check.mutations import HARMLESS, MUTATIONS, UnknownMutationError, broken
from sojourn.sim.live_check.players import Player
from sojourn.sim.live_check.script import FAULTS, Spec
from sojourn.sim.live_check.shrink import shrink

SECONDS = 40.0


@pytest.mark.parametrize("seed", seeds(5, 12))
def test_whatever_breaks_promises_are_kept(seed: int) -> None:
    """What was acknowledged arrives once and in order, and in the end nothing is left behind."""
    found = check(Spec(seed=seed, seconds=SECONDS))
    assert found.failure is None, f"{found.failure}\n{found.trace}\n{found.spec.command()}"
    assert found.counts["deliveries"] > 0


def test_the_same_seed_writes_the_same_bytes() -> None:
    """On every link and connection."""
    spec = Spec(seed=3, seconds=10.0)
    digest = check(spec).digest
    assert digest == check(spec).digest
    assert digest != check(Spec(seed=4, seconds=10.0)).digest


def test_worlds_without_faults_have_none() -> None:
    """No fault is counted, and no loss is excused by one."""
    found = check(Spec(seed=5, seconds=SECONDS, faults=()))
    assert found.failure is None
    assert not any("store" in name or "power" in name for name in found.excused)
    assert not any("kill" in name or "broken" in name for name in found.counts)


@pytest.mark.parametrize("name", ["acknowledge-early", "lose-the-last-stored-event", "give-an-empty-session"])
def test_a_broken_broker_is_found(name: str) -> None:
    """Within a few seeds."""
    with broken(name):
        assert any(check(Spec(seed=seed, seconds=SECONDS)).failure is not None for seed in range(40))


def test_copies_that_a_forgetful_broker_left_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients leave and return just before power is lost; such a copy serves one again when all is well."""
    spec = Spec(seed=74, seconds=25.0, faults=("power",))
    assert check(spec).failure is None
    monkeypatch.setattr(CopyRequests, "on_doubted", lambda *_: None)
    monkeypatch.setattr(Arrivals, "_last_epoch", lambda *_: None)
    failure = check(spec).failure
    assert failure is not None
    assert "again" in failure


def test_a_failing_world_is_cut_down() -> None:
    """To fewer steps, in which the same promise is broken."""
    with broken("lose-the-last-stored-event"):
        failing = (check(Spec(seed=seed, seconds=12.0)) for seed in range(60))
        found = next(one for one in failing if one.failure is not None)
        short = shrink(found, runs_max=16)
        assert short.kind == found.kind
        assert len(short.script.steps) < len(found.script.steps)
        assert run(short.script).failure == short.failure


def test_a_frame_that_is_skipped_fails_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers skip what they cannot read, and none sends such a thing."""
    right = Wire.read

    def wrong(self: Wire, body: bytes, now: float) -> Any:
        message = right(self, body, now)
        if isinstance(message, Carried) and message.message.sequence % 5 == 0:
            return WireError("This is no message.")
        return message

    monkeypatch.setattr(Wire, "read", wrong)
    found = next(one for seed in range(20) if (one := check(Spec(seed=seed, seconds=10.0))).failure)
    assert found.kind == "skipped", found.failure


def test_a_fact_that_is_refused_when_it_is_told_again_fails_the_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a broker noted it had taken in."""

    def wrong(*_args: object) -> None:
        raise SojournError("This was never said.")

    monkeypatch.setitem(LiveBroker._HANDLERS, facts.FrameTaken, wrong)
    worlds = (check(Spec(seed=seed, seconds=20.0, faults=("kill",))) for seed in range(20))
    found = next(one for one in worlds if one.failure)
    assert found.kind == "replay", found.failure


def test_a_mistake_that_nobody_made_is_refused() -> None:
    """With the names of those that there are."""
    with pytest.raises(UnknownMutationError, match="acknowledge-early"), broken("nothing"):
        pass
    assert len(MUTATIONS) >= 10
    assert len(FAULTS) >= 9


@pytest.mark.parametrize("name", [*MUTATIONS, *HARMLESS])
def test_every_mistake_can_be_made_and_is_taken_back(name: str) -> None:
    """The code that it breaks is where it was."""
    where, what, _spoil = (MUTATIONS | HARMLESS)[name]
    right = getattr(where, what)
    with broken(name):
        assert getattr(where, what) is not right
    assert getattr(where, what) is right


def test_machines_that_keep_copies_lose_disks_and_nothing_else() -> None:
    """Machines are killed, wiped, parted and silenced, and play each other's brokers; promises are kept."""
    counts: Counter[str] = Counter()
    for seed in range(4):
        found = check(Spec(seed=seed, seconds=25.0, copies=1, brokers=3))
        assert found.failure is None, f"{found.failure}\n{found.trace}\n{found.spec.command()}"
        counts += found.counts
    assert sum(count for name, count in counts.items() if name.startswith("wipe")) > 2
    assert counts["brokers played by others"] > 0


def test_worlds_with_copies_repeat_themselves_too() -> None:
    """To the byte."""
    spec = Spec(seed=1, seconds=15.0, copies=1, brokers=3)
    assert check(spec).digest == check(spec).digest


def test_turns_that_do_not_wait_for_copies_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something that was acknowledged is lost with a disk, within a few seeds."""
    leave = Player.leave
    monkeypatch.setattr(Player, "leave", lambda self, _released: leave(self, 1 << 60))
    specs = [Spec(seed=seed, seconds=25.0, copies=1, brokers=3) for seed in range(2, 12)]
    assert any(check(spec).failure is not None for spec in specs)

"""Paper 001, section 4.1: every interleaving of the four races ends as the text demands."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sojourn.mobility.copies import State
from sojourn.mobility.holdings import Holding
from sojourn.sim.handoff_check import races
from sojourn.sim.handoff_check.races import RACES, RaceFound

WITHOUT_DELETE = [race for race in RACES if race is not races.delete_against_activate]


@pytest.mark.parametrize("race", WITHOUT_DELETE, ids=lambda race: str(race.__name__))
def test_every_interleaving_of_a_race_ends_as_it_must(race: Callable[[], RaceFound]) -> None:
    """The copies are the right ones under the right control, and after a goodbye none is left."""
    found = race()
    print(f"{found.name}: {found.interleavings} interleavings, {found.states} states")
    assert found.failure is None
    assert found.interleavings > 50


def test_every_interleaving_of_delete_against_activate_ends_as_it_must() -> None:
    """Race 2 has ends with a copy at N, found or missing and then delivered, and ends with none."""
    seen = set()
    explore = races._explore

    def watching(name: str, mesh: races.Mesh, at_end: Callable[[races.Mesh], None]) -> RaceFound:
        def noting(end: races.Mesh) -> None:
            seen.add(end.held()[races.N])
            at_end(end)

        return explore(name, mesh, noting)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(races, "_explore", watching)
        found = races.delete_against_activate()
    print(f"{found.name}: {found.interleavings} interleavings, {found.states} states")
    assert found.failure is None
    assert seen == {None, (State.ACTIVE, races.K)}


@pytest.mark.parametrize("race", [races.deactivate_against_activate, races.timeout_against_activate])
def test_without_the_id_of_the_broker_in_control_a_race_ends_wrong(
    race: Callable[[], RaceFound], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If any broker may act on any copy, the old one undoes what the new one did."""
    monkeypatch.setattr(Holding, "yields_to", lambda _self, _request: True)
    assert race().failure is not None

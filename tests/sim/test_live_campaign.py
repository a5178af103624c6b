"""Campaigns of `sojourn check live` go on where they were stopped, and keep apart what different code did."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sojourn.cli.check import app
from sojourn.sim.live_check.campaign import Campaign, StateError, code_digest
from sojourn.sim.live_check.check import Found, check
from sojourn.sim.live_check.running import ran
from sojourn.sim.live_check.script import Spec, write_script

SPEC = Spec(seed=5, seconds=10.0, restless=True)


def _found(seed: int, failure: str | None = None, hand_offs: int = 10) -> Found:
    spec = replace(SPEC, seed=seed)
    return Found(
        spec=spec,
        script=write_script(spec),
        failure=failure,
        kind="lost" if failure else "",
        trace="",
        digest="",
        ended_s=10.0,
        counts=Counter({"hand-offs": hand_offs}),
        excused=Counter({"event": 1}),
    )


def _seeds(campaign: Campaign, count: int) -> list[int]:
    return [spec.seed for spec in islice(campaign.specs(), count)]


def test_a_campaign_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    """Seeds that ended out of order leave gaps, which are run first."""
    file = tmp_path / "campaign.json"
    first = Campaign(SPEC, "code", file)
    for seed in (5, 6, 8):
        first.took(_found(seed), 0.5)
    again = Campaign(SPEC, "code", file)
    assert (again.seeds, again.hand_offs) == (3, 30)
    assert _seeds(again, 3) == [7, 9, 10]
    assert again.state.parts[0].processor_s == 1.5


def test_what_different_code_did_is_kept_apart(tmp_path: Path) -> None:
    """Each version has its own counts."""
    file = tmp_path / "campaign.json"
    Campaign(SPEC, "old", file).took(_found(5), 1.0)
    new = Campaign(SPEC, "new", file)
    new.took(_found(6, hand_offs=7), 1.0)
    assert [(part.code, part.counts["hand-offs"]) for part in new.state.parts] == [("old", 10), ("new", 7)]
    assert new.as_dict()["counts"] == {"hand-offs": 17}


def test_what_failed_is_run_again_by_other_code_only(tmp_path: Path) -> None:
    """And is no failure any more once it passes."""
    file = tmp_path / "campaign.json"
    Campaign(SPEC, "old", file).took(_found(5, failure="It was lost."), 1.0)
    assert _seeds(Campaign(SPEC, "old", file), 1) == [6]
    new = Campaign(SPEC, "new", file)
    assert [one.seed for one in new.failures] == [5]
    assert _seeds(new, 2) == [5, 6]
    new.took(_found(5), 1.0)
    assert Campaign(SPEC, "new", file).failures == []


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "is not the state of a check"), ('{"spec": {"seed": 1}, "version": 99}', "is of version 99")],
)
def test_a_file_that_is_no_state_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """In one sentence that names the file and the way out."""
    file = tmp_path / "campaign.json"
    file.write_text(text)
    with pytest.raises(StateError, match=said) as caught:
        Campaign(SPEC, "code", file)
    assert "--state" in str(caught.value)


def test_a_file_of_other_options_is_refused(tmp_path: Path) -> None:
    """Worlds of different kinds are not added up."""
    file = tmp_path / "campaign.json"
    Campaign(SPEC, "code", file).took(_found(5), 1.0)
    with pytest.raises(StateError, match="--restless"):
        Campaign(replace(SPEC, restless=False), "code", file)


def test_the_digest_is_that_of_the_code() -> None:
    """It does not change while nothing does."""
    assert code_digest() == code_digest()


def test_worlds_run_in_several_processes_as_in_one() -> None:
    """Whatever the order in which they end; and nothing is begun that nobody asked for."""
    specs = [Spec(seed=seed, seconds=5.0) for seed in range(3)]
    with ran(check, iter(specs), 2) as worlds:
        many = {world.found.spec.seed: world.found.digest for world in worlds}
    with ran(check, iter(specs), 1) as worlds:
        assert {world.found.spec.seed: world.found.digest for world in worlds} == many


def test_restless_clients_go_far_more_often() -> None:
    """Among as many faults."""

    def steps(what: str, *, restless: bool) -> int:
        scripts = (write_script(Spec(seed=seed, restless=restless)) for seed in range(20))
        return sum(step.what == what for script in scripts for step in script.steps)

    assert steps("go", restless=True) > 5 * steps("go", restless=False)
    assert steps("kill", restless=True) == steps("kill", restless=False)


def test_the_command_counts_hand_offs_and_says_by_which_code(tmp_path: Path) -> None:
    """It ends when there are enough, and a second call has nothing to do."""
    file = tmp_path / "campaign.json"
    options = [
        "live",
        "--restless",
        "--seconds",
        "8",
        "--jobs",
        "1",
        "--hand-offs",
        "60",
        "--state",
        str(file),
    ]
    call = partial(CliRunner().invoke, app, [*options, "--json"])
    first = call()
    assert first.exit_code == 0, first.output
    told = json.loads(first.stdout)
    assert told["counts"]["hand-offs"] >= 60
    assert told["by_code"][0]["code"] == code_digest()
    assert json.loads(call().stdout)["seeds"] == told["seeds"]

"""`sojourn check election` and what it says of histories that heal and of one that would not."""

import pytest
from typer.testing import CliRunner

from sojourn.cli.check import app
from sojourn.cli.check_election import fault_of
from sojourn.sim.election.history import Healed, History
from sojourn.sim.election.world import heal


def _healed(**changes: object) -> Healed:
    values = {name: getattr(heal(History(seed=1)), name) for name in Healed.__struct_fields__}
    return Healed(**{**values, **changes})


def test_a_few_histories_heal() -> None:
    """The summary counts them, and the exit code is 0."""
    told = CliRunner().invoke(app, ["election", "--seeds", "3", "--workers", "1"])
    assert told.exit_code == 0, told.output
    assert "3 of 3 histories healed" in told.output


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, None),
        ({"brokers": 2}, "2 brokers"),
        ({"missing": 1}, "1 live subscriptions are on no broker"),
        ({"lost": 3}, "3 events lost"),
        ({"duplicated": 3}, "3 events duplicated"),
        ({"healed_s": None}, "did not stay healed"),
    ],
)
def test_every_fault_has_a_name(changes: dict[str, object], fault: str | None) -> None:
    """A history that goes wrong is told with what went wrong."""
    assert fault_of(_healed(**changes)) == fault

"""Commands that an installed package does not have say where they are to be had."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

from sojourn.cli import check
from sojourn.cli.workshop import NotInstalledError


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[typer.Typer]:
    """The checks that there are where no module of the workshop is."""
    with monkeypatch.context() as patched:
        patched.setattr(importlib.util, "find_spec", lambda _name: None)
        yield importlib.reload(check).app
    importlib.reload(check)


def test_installed_packages_name_all_checks(installed: typer.Typer) -> None:
    """Also those that are in the sources alone, with a word on it."""
    shown = " ".join(CliRunner().invoke(installed, ["--help"]).output.replace("│", " ").split())
    assert {"election", "handoff", "properties", *check.IN_THE_SOURCES} <= set(shown.split())
    assert shown.count("Part of the sources alone.") == len(check.IN_THE_SOURCES)


@pytest.mark.parametrize("name", check.IN_THE_SOURCES)
def test_a_check_that_is_not_installed_says_where_it_is(name: str, installed: typer.Typer) -> None:
    """Whatever options it is given."""
    result = CliRunner().invoke(installed, [name, "--seeds", "3", "stores"])
    assert isinstance(result.exception, NotInstalledError)
    assert f"`sojourn check {name}` is part of the sources" in str(result.exception)


def test_a_checkout_has_them_with_their_own_sentences() -> None:
    """What is said of a check that is not there is the first line of what it says of itself."""
    for where, summary in check.IN_THE_SOURCES.values():
        module, function = where.split(":")
        said = getattr(importlib.import_module(module), function).__doc__
        assert said.splitlines()[0] == summary

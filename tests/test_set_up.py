"""`scripts/setup`: what is installed for what, once, by one at a time, from where pip would take it."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import threading
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sojourn.cli.doctor import EXTRAS

ROOT = Path(__file__).parent.parent


def _read() -> ModuleType:
    spec = importlib.util.spec_from_file_location("set_up", ROOT / "scripts" / "set_up.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


set_up = _read()


class Installed:
    """Counts installations instead of making them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.needs: list[str] = []
        for name in set_up.WATCHED:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(name)
        (folder / "scripts" / "mosquitto").write_text("#!/bin/sh\n")
        (folder / "scripts" / "mosquitto").chmod(0o755)
        monkeypatch.setattr(set_up, "make_environment", self._make)
        monkeypatch.setattr(set_up, "install", lambda _python, need: self.needs.append(need))
        monkeypatch.setattr(set_up, "see_to_java", lambda _environment: None)

    def _make(self, environment: Path) -> Path:
        environment.mkdir(exist_ok=True)
        return Path(sys.executable)

    def set_up(self, need: str) -> list[str]:
        """Set up; return what was installed since the last time."""
        before = len(self.needs)
        set_up.set_up(self.folder, need)
        return self.needs[before:]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    """A folder with nothing installed."""
    return Installed(tmp_path, monkeypatch)


def test_the_wheel_is_tried_without_a_set_up() -> None:
    """`make wheel` measures what a stranger needs, and so must need no more itself."""
    planned = subprocess.run(
        ["/usr/bin/env", "make", "--dry-run", "wheel"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "try_wheel.py" in planned
    assert "setup" not in planned
    assert ".venv" not in planned


def test_nothing_is_installed_twice(installed: Installed) -> None:
    """What is there already is found by its stamp; more is added when more is asked, and never taken away."""
    assert installed.set_up("broker") == ["broker"]
    assert installed.set_up("broker") == []
    assert installed.set_up("demo") == ["demo"]
    assert installed.set_up("broker") == []
    assert installed.set_up("all") == ["all"]
    (installed.folder / "requirements.txt").write_text("something newer")
    assert installed.set_up("demo") == ["all"], "what was there stays"


def test_a_set_up_that_fails_is_made_again(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stamp is written at the end, and taken away at the beginning."""
    installed.set_up("all")
    (installed.folder / "pyproject.toml").write_text("changed")

    def fail(_python: Path, _need: str) -> None:
        raise set_up.SetUpError("no network")

    with monkeypatch.context() as patch:
        patch.setattr(set_up, "install", fail)
        with pytest.raises(set_up.SetUpError):
            installed.set_up("demo")
    assert installed.set_up("demo") == ["demo"]


@pytest.mark.parametrize("stamp", ["", "0123abcd", "[]", '{"digest": 1}', '{"need": "everything"}'])
def test_a_stamp_that_says_nothing_is_no_stamp(installed: Installed, stamp: str) -> None:
    """As earlier releases wrote it, or cut short."""
    (installed.folder / ".venv").mkdir()
    (installed.folder / ".venv" / ".setup-stamp").write_text(stamp)
    assert installed.set_up("broker") == ["broker"]


def test_of_two_at_once_one_installs(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other waits, and finds all done."""
    waiting = threading.Event()

    def install(_python: Path, need: str) -> None:
        installed.needs.append(need)
        assert waiting.wait(60), "the second one waits for the first"

    monkeypatch.setattr(set_up, "install", install)
    monkeypatch.setattr(set_up, "say", lambda text: waiting.set() if "another" in text else None)
    both = [threading.Thread(target=set_up.set_up, args=(installed.folder, "demo")) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(60)
    assert installed.needs == ["demo"]
    assert json.loads((installed.folder / ".venv" / ".setup-stamp").read_text())["need"] == "demo"


def test_uv_is_told_what_pip_was_told() -> None:
    """Other indexes, folders and certificates, from any of pip's places."""
    listed = """:env:.cert='/etc/ours.pem'
:env:.disable-pip-version-check='1'
global.extra-index-url='file:///one\\nfile:///other'
install.find-links='/wheels'
global.index-url='https://packages.test/simple'
"""
    assert set_up.pip_settings(listed) == {
        "cert": ["/etc/ours.pem"],
        "extra-index-url": ["file:///one", "file:///other"],
        "find-links": ["/wheels"],
        "index-url": ["https://packages.test/simple"],
    }


def _project() -> dict[str, Any]:
    loaded: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return loaded


def _name(requirement: str) -> str:
    return re.split(r"[\[<>=]", requirement)[0].lower().replace("_", "-")


def test_everything_that_is_installed_has_a_pin() -> None:
    """Whatever the package and its extras ask for, besides those that have targets of their own."""
    pins = (ROOT / "requirements.txt").read_text().split()
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9a-z.]+", pin) for pin in pins)
    project = _project()
    wanted = {_name(one) for one in project["dependencies"]} | _named(project["optional-dependencies"])
    assert wanted <= {_name(pin) for pin in pins}


def _named(extras: dict[str, list[str]]) -> set[str]:
    """All libraries of extras, besides those that are installed by targets of their own."""
    return {_name(one) for name in extras if name not in ("sumo", "ns3") for one in extras[name]} - {
        "sojourn"
    }


def test_the_last_extra_has_all_that_is_measured_and_studied() -> None:
    """Extras build on one another, and `all` on the last."""
    extras = _project()["optional-dependencies"]

    def reached(name: str) -> set[str]:
        found: set[str] = set()
        for one in extras[name]:
            if _name(one) == "sojourn":
                for inner in one.partition("[")[2].rstrip("]").split(","):
                    found |= reached(inner)
            else:
                found.add(_name(one))
        return found

    assert reached("all") == _named(extras)
    assert reached("demo") < reached("studies")
    assert reached("spark") < reached("studies") < reached("bench")
    assert {extra: set(libraries) for extra, libraries in EXTRAS.items()} == {
        extra: reached(extra) for extra in EXTRAS
    }, "what the doctor looks for"


def test_what_brokers_load_is_kept_compiled_where_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images often say that Python is to keep nothing; each start would take three times as long."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    set_up.keep_compiled(Path(sys.executable))
    kept = {path.name.split(".")[0] for path in tmp_path.rglob("*.pyc")}
    assert {"node", "live_broker", "core", "serve", "client"} <= kept

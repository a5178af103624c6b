"""The list of commands: what it says of each, what each loads, and what is said if a library is missing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.running import running

from sojourn.cli.commands import COMMANDS, load
from sojourn.errors import LIBRARIES
from sojourn.live.links.secret import write_secret

HEAVY = (
    "numba",
    "llvmlite",
    "numpy",
    "pyarrow",
    "pandas",
    "pyspark",
    "py4j",
    "plotly",
    "scipy",
    "duckdb",
    "highspy",
)
"""What a client and a broker do without."""
ENDS_S = 60
"""Far more than anything here takes."""

RUN = """
import atexit, json, os, sys

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in os.environ.get("REFUSED", "").split():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refusing())
atexit.register(lambda: open(os.environ["LOADED"], "w").write(json.dumps(list(sys.modules))))
from sojourn.cli.main import main
main()
"""
"""Runs the command with some libraries refused, and writes down what was loaded in the end."""


def command(*arguments: str) -> list[str]:
    """The command line, run so that what it loads is written down."""
    return [sys.executable, "-c", RUN, *arguments]


def surroundings(folder: Path, refused: str = "") -> dict[str, str]:
    """The environment of such a run."""
    return {**os.environ, "LOADED": str(folder / "loaded.json"), "REFUSED": refused}


def loaded(folder: Path) -> set[str]:
    """The heavy libraries that a run has loaded."""
    modules = json.loads((folder / "loaded.json").read_text())
    return {name.split(".")[0] for name in modules} & set(HEAVY)


def run(folder: Path, *arguments: str, refused: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    environment = surroundings(folder, refused)
    return subprocess.run(
        command(*arguments), env=environment, capture_output=True, text=True, timeout=ENDS_S, check=False
    )


@contextmanager
def broker(folder: Path, *arguments: str, refused: str = "") -> Iterator[tuple[str, int]]:
    """A broker process; its address and its process id."""
    environment = surroundings(folder, refused)
    given = arguments or ("--port", "0", "--addresses", str(folder))
    with running(command("serve", *given), env=environment, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        found = re.search(r"listens on (mqtt://\S+)", process.stderr.readline())
        assert found is not None
        try:
            yield found[1], process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(ENDS_S) == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_what_each_command_says_of_itself(name: str) -> None:
    """Its summary is the first paragraph of its help."""
    said = " ".join(load(name).help.split("\n\n")[0].split()).replace("\\[", "[")
    assert COMMANDS[name].summary == said


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_fit_to_be_read(name: str) -> None:
    """No command offers completion of its own, gives a switch a type or keeps the source's line ends."""
    waiting = [(name, load(name))]
    while waiting:
        words, one = waiting.pop()
        waiting += [(f"{words} {below}", inner) for below, inner in getattr(one, "commands", {}).items()]
        context = one.make_context(words, [], resilient_parsing=True)
        params = one.get_params(context)
        assert not [flag for param in params for flag in param.opts if "completion" in flag], words
        assert not [param.name for param in params if getattr(param, "is_flag", False) and param.metavar], (
            words
        )
        assert "<bool>" not in one.get_help(context), words
        assert not [part for part in one.help.split("\n\n") if "\n" in part and part[0] != "\b"], words
        arguments = [param.metavar for param in params if param.param_type_name == "argument"]
        assert all(shown and shown.isupper() and "[" not in shown for shown in arguments), (words, arguments)


def test_help_loads_no_command(tmp_path: Path) -> None:
    """It lists all of them without their libraries, and even without any of ours."""
    done = run(tmp_path, "--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in COMMANDS)
    assert "[[users]]" in done.stdout
    assert loaded(tmp_path) == set()
    modules = json.loads((tmp_path / "loaded.json").read_text())
    assert "markdown_it" not in modules
    ours = {name for name in modules if name.startswith("sojourn.")}
    rooms = {"sojourn.cli", "sojourn.cli.main", "sojourn.cli.commands", "sojourn.cli.help_texts"}
    assert ours == rooms | {"sojourn.errors"}
    assert "<bool>" not in done.stdout


def test_who_only_starts_brokers_loads_no_broker(tmp_path: Path) -> None:
    """`serve --all` watches over processes; what a broker is made of is loaded by each of these."""
    assert run(tmp_path, "serve", "--help").returncode == 0
    modules = json.loads((tmp_path / "loaded.json").read_text())
    assert not [
        name for name in modules if name.startswith(("sojourn.broker.live", "sojourn.mqtt.core", "sqlglot"))
    ]


def test_brackets_of_a_help_text_are_printed(tmp_path: Path) -> None:
    """Rich would take [[users]] for a mark of its own."""
    assert "[[users]]" in run(tmp_path, "password", "--help").stdout


def test_a_mistyped_command_is_answered_with_its_like(tmp_path: Path) -> None:
    """As it is with options."""
    done = run(tmp_path, "serv")
    assert done.returncode == 2
    assert "'serve'" in done.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [("sojourn se", "serve"), ("sojourn serve --ver", "--verbose"), ("sojourn store re", "repair")],
)
def test_shells_complete_commands_and_options(words: str, expected: str, tmp_path: Path) -> None:
    """What a shell asks on TAB is answered with what can follow."""
    asked = {"_SOJOURN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    code = "import sys; sys.argv[0] = 'sojourn'\n" + textwrap.dedent(RUN)
    done = subprocess.run(
        [sys.executable, "-c", code], env={**surroundings(tmp_path), **asked}, capture_output=True, text=True,
        timeout=ENDS_S, check=False,
    )  # fmt: skip
    assert expected in done.stdout.split()
    assert loaded(tmp_path) == set()


def test_brokers_and_clients_work_without_the_large_libraries(tmp_path: Path) -> None:
    """With all of them refused an event goes from `pub` over a broker to `sub`; none asks for any."""
    refused = " ".join(HEAVY)
    (tmp_path / "sub").mkdir()
    (tmp_path / "pub").mkdir()
    with broker(tmp_path, refused=refused) as (url, pid):
        resting_kib = int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])  # type: ignore[index]  # it is there, or the test fails
        assert resting_kib < 100 * 1024
        with running(
            command("sub", url, "speed > 80", "--count", "1"),
            env=surroundings(tmp_path / "sub", refused),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as subscriber:
            assert subscriber.stderr is not None
            assert "subscribed" in "".join(subscriber.stderr.readline() for _ in range(2))
            done = run(tmp_path / "pub", "pub", url, "cars/7", '{"speed": 93}', refused=refused)
            assert (done.returncode, done.stderr) == (0, "")
            out, _ = subscriber.communicate(timeout=ENDS_S)
            assert out == 'cars/7 {"speed": 93}\n'
    assert loaded(tmp_path) == loaded(tmp_path / "sub") == loaded(tmp_path / "pub") == set()


def test_a_broker_of_a_network_loads_none_of_them_either(tmp_path: Path) -> None:
    """One that routes by content, with a page and a store, before anybody has subscribed."""
    path = tmp_path / "one.toml"
    assert write_secret(tmp_path / "network.secret")
    text = 'links = [["B1", "B2"]]\nnetwork = {secret = "network.secret"}\n'
    for name in ("B1", "B2"):
        text += (
            f'[[brokers]]\nname = "{name}"\nlisten = "127.0.0.1:0"\npeers = "127.0.0.1:0"\nstore = "{name}"\n'
        )
        text += 'page = "127.0.0.1:0"\n'
    path.write_text(text)
    with broker(tmp_path, str(path), "--broker", "B1"):
        pass
    assert loaded(tmp_path) == set()


@pytest.mark.parametrize("name", [name for name, one in COMMANDS.items() if one.extra])
def test_a_missing_library_is_one_sentence(name: str, tmp_path: Path) -> None:
    """It says what is needed and how to get it."""
    (tmp_path / "runs" / "run_id=1").mkdir(parents=True)  # looks like a trace
    trace = str(tmp_path)
    given = {
        "bench": ["match"],  # what it needs depends on what is measured
        "audit": [trace],
        "plan": [trace, "--subscribers", "10"],
        "sql": ["select 1", "--from", trace],
        "compact": [trace, "--into", trace + "2"],
    }.get(name, [])
    done = run(tmp_path, name, *given, refused=" ".join(HEAVY))
    assert done.returncode == 2
    assert re.fullmatch(
        rf"sojourn: sojourn {name} needs \w+: pip install 'sojourn\[{COMMANDS[name].extra}\]'\n", done.stderr
    )
    assert done.stdout == ""


@pytest.mark.parametrize("name", [name for name, one in COMMANDS.items() if one.extra])
def test_help_is_shown_without_the_libraries_too(name: str, tmp_path: Path) -> None:
    """What the command is for, and what it needs if its options cannot be known without."""
    done = run(tmp_path, name, "--help", refused=" ".join(HEAVY))
    assert (done.returncode, done.stderr) == (0, "")
    shown = " ".join(re.sub(r"[│╭╰─╮╯]", " ", done.stdout).split())
    assert COMMANDS[name].summary in shown
    assert f"pip install 'sojourn[{COMMANDS[name].extra}]'" in shown or "--json" in shown


@pytest.mark.parametrize(
    "asked",
    [
        ("audit",),
        ("audit", "--follow"),
        ("plan", "--subscribers", "10"),
        ("check", "properties"),
        ("sql", "select 1", "--from"),
    ],
)
def test_no_library_is_loaded_for_a_trace_that_is_not_there(asked: tuple[str, ...], tmp_path: Path) -> None:
    """Spark alone takes seconds to load, for a sentence that needs none of it."""
    done = run(tmp_path, *asked, str(tmp_path / "nosuch"))
    assert done.returncode == 2
    assert done.stderr == (
        f"sojourn: {tmp_path / 'nosuch'} is not there; name the directory a run was written to.\n"
    )
    assert loaded(tmp_path) == set()


@pytest.mark.parametrize("check", ["live", "replay", "handoff", "election"])
def test_every_check_explains_itself_without_the_libraries(check: str, tmp_path: Path) -> None:
    """With its own options."""
    done = run(tmp_path, "check", check, "--help", refused=" ".join(HEAVY))
    assert (done.returncode, done.stderr) == (0, "")
    assert f"check {check} [OPTIONS]" in done.stdout


def test_live_brokers_are_checked_without_the_libraries(tmp_path: Path) -> None:
    """What checks them needs nothing that they do without."""
    asked = ("--seeds", "1", "--seconds", "1", "--brokers", "2", "--jobs", "1")
    done = run(tmp_path, "check", "live", *asked, refused=" ".join(HEAVY))
    assert done.returncode == 0, done.stderr
    assert "0 lost" in done.stdout
    asked = ("--seeds", "1", "--seconds", "1", "--world-steps", "20", "--jobs", "1")
    done = run(tmp_path, "check", "fuzz", *asked, refused=" ".join(HEAVY))
    assert done.returncode == 0, done.stderr
    done = run(tmp_path, "check", "replay", str(tmp_path), refused=" ".join(HEAVY))
    assert "NumPy" not in done.stderr


@pytest.mark.parametrize(
    ("check", "sentence"),
    [
        (("handoff", "--seeds", "1"), "NumPy: pip install 'sojourn[index]'"),
        (("election", "--seeds", "1"), "NumPy: pip install 'sojourn[index]'"),
    ],
)
def test_a_check_says_what_it_needs(check: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    """In the last line, for one says first what it will do."""
    done = run(tmp_path, "check", *check, refused=" ".join(HEAVY))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"sojourn: sojourn check needs {sentence}"


def test_the_broker_is_for_both_versions_of_mqtt(tmp_path: Path) -> None:
    """As its help says."""
    assert "of version 3.1.1 or 5" in " ".join(run(tmp_path, "serve", "--help").stdout.split())


@pytest.mark.parametrize("given", ["", "\n", "\r\n"])
def test_nothing_is_no_password(given: str, tmp_path: Path) -> None:
    """Its hash would let in who knows none."""
    done = subprocess.run(
        command("password"), env=surroundings(tmp_path), input=given, capture_output=True, text=True,
        timeout=ENDS_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "sojourn: There is no password: the first line of the input is empty.\n"


def test_the_audit_says_that_it_needs_spark(tmp_path: Path) -> None:
    """Whatever of it is imported first."""
    (tmp_path / "runs" / "run_id=1").mkdir(parents=True)
    done = run(tmp_path, "audit", str(tmp_path), refused="pyspark py4j")
    *_, last = done.stderr.splitlines()  # a slow machine says before that it starts Spark
    assert last == "sojourn: sojourn audit needs Spark: pip install 'sojourn[spark]'"


def test_every_large_library_has_an_extra() -> None:
    """Those that are refused here are those that the sentence knows."""
    assert set(HEAVY) == set(LIBRARIES)

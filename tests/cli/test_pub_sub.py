"""`sojourn pub` and `sojourn sub` against a real broker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from tests.live.raw_client import BrokerProcess, Raw, running_broker, single_config
from tests.running import running

from sojourn.cli.main import main
from sojourn.cli.pub import why_no_json
from sojourn.live.brokers.admission import hash_password

SOJOURN = [sys.executable, "-m", "sojourn.cli.main"]


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerProcess]:
    """A single broker."""
    with running_broker() as process:
        yield process


def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*SOJOURN, *arguments], input=text, capture_output=True, text=True, timeout=60, check=False
    )


def test_what_is_published_is_printed(broker: BrokerProcess) -> None:
    """A subscriber with a filter prints what matches, as JSON with attributes, and ends after its count."""
    url = f"127.0.0.1:{broker.port}"
    wanted = ["sub", url, "speed > 80 AND road = 'A2'", "--json", "--count", "2", "--topic", "cars/#"]
    with running([*SOJOURN, *wanted], stdout=subprocess.PIPE) as subscriber:
        wait_for_subscriber(broker.port)
        assert run("pub", url, "cars/7", '{"speed": 70}', "-a", "road=A2").returncode == 0
        assert run("pub", url, "cars/7", '{"speed": 93}', "-a", "road=A2", "--qos", "2").returncode == 0
        lines = '{"speed": 10}\n{"speed": 99}\n'
        done = run("pub", url, "cars/8", "-", "--lines", "--attribute", "road=A2", text=lines)
        assert (done.returncode, done.stderr) == (0, "")
        out, _ = subscriber.communicate(timeout=30)
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["topic"] for event in events] == ["cars/7", "cars/8"]
    assert [event["attributes"]["speed"] for event in events] == [93, 99]
    assert events[0]["attributes"]["road"] == "A2"
    assert events[0]["payload"] == '{"speed": 93}'
    assert subscriber.returncode == 0


def test_who_has_a_name_is_told_whether_anything_was_kept(broker: BrokerProcess) -> None:
    """At the first time nothing was; at the second it goes on with what it asked for."""
    url = f"mqtt://127.0.0.1:{broker.port}"
    said = []
    for _ in range(2):
        with running(
            [*SOJOURN, "sub", url, "--topic", "named", "--id", "reader-7", "--count", "1"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as subscriber:  # fmt: skip
            assert subscriber.stderr is not None
            heard = [subscriber.stderr.readline()]
            while "subscribed" not in heard[-1]:
                heard.append(subscriber.stderr.readline())
                assert heard[-1], heard
            assert run("pub", url, "named", "news").returncode == 0
            subscriber.communicate(timeout=60)
            said.append("".join(heard))
    assert "sojourn: reader-7 is new there: nothing was kept for it\n" in said[0]
    assert "reader-7" not in said[1]


def test_a_reader_is_told_what_did_not_fit_while_it_was_away(tmp_path: Path) -> None:
    """Of five events three fit; a single broker says so to whoever comes back, by `sub` in a line."""
    with running_broker(single_config(tmp_path, queue_messages_max=3)) as small:
        url = f"mqtt://127.0.0.1:{small.port}"
        with Raw(small.port) as reader:
            reader.connect("reader-8", session_expiry_interval=3600)
            reader.subscribe("t")
        run("pub", url, "t", "-", "--lines", text="1\n2\n3\n4\n5\n")
        done = run("sub", url, "--topic", "t", "--id", "reader-8", "--count", "3")
        assert done.stdout == "t 1\nt 2\nt 3\n"
        assert "sojourn: 2 events were dropped, for more than the broker's limits" in done.stderr


def test_a_reader_without_a_name_is_told_that_it_missed_something() -> None:
    """When its broker goes it hears why, and when it is back that nothing was kept, with the way out."""
    with running_broker() as first:
        url = f"mqtt://127.0.0.1:{first.port}"
        with running([*SOJOURN, "sub", url], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as subscriber:
            assert subscriber.stderr is not None
            _read_until(subscriber.stderr, "subscribed")
            first.stop()
            lost = _read_until(subscriber.stderr, "is lost")
            assert lost.endswith("; it is tried again\n")
            assert "(" in lost, "it says why"
            with running_broker("--port", str(first.port)):
                _read_until(subscriber.stderr, "connected to")
                assert "with --id NAME" in _read_until(subscriber.stderr, "was not kept")


def _read_until(lines: IO[str], wanted: str) -> str:
    """Read on to the line that says something."""
    heard = []
    for line in lines:
        heard.append(line)
        if wanted in line:
            return line
    raise AssertionError(heard)


def test_retained_events_and_the_end_by_ctrl_c(broker: BrokerProcess) -> None:
    """A retained event waits for a later subscriber; Ctrl-C ends it without an error or a traceback."""
    url = f"mqtt://127.0.0.1:{broker.port}"
    assert run("pub", url, "kept", "-", "--retain", text="old news").returncode == 0
    with running(
        [*SOJOURN, "sub", url, "--topic", "kept"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as subscriber:
        assert subscriber.stdout is not None
        assert subscriber.stdout.readline() == "kept old news\n"
        subscriber.send_signal(signal.SIGINT)
        _, said = subscriber.communicate(timeout=30)
    assert subscriber.returncode == 0
    assert said == f"sojourn: connected to B1 at {url}\nsojourn: subscribed to kept; Ctrl-C ends it\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["pub", "127.0.0.1:1", "x"], "cannot be reached"),
        (["pub", "http://127.0.0.1", "x"], "is no broker's address"),
        (["pub", "URL", "x", "-a", "speed"], "NAME=VALUE"),
        (["pub", "URL", "x/#"], "a topic has no wildcards"),
        (["sub", "URL", "speed >"], "speed >"),
        (["sub", "URL", "--topic", "a/#/b"], "is no topic filter"),
    ],
)
def test_errors_are_one_sentence(
    broker: BrokerProcess,
    arguments: list[str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What a user can mend is said in a sentence, with exit code 2."""
    url = f"127.0.0.1:{broker.port}"
    monkeypatch.setattr(
        sys, "argv", ["sojourn", *(url if argument == "URL" else argument for argument in arguments)]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


def test_broken_json_is_sent_as_text_and_that_is_said(broker: BrokerProcess) -> None:
    """Once, whatever the number of lines; of what is JSON, and of other text, nothing is said."""
    lines = '{"speed": 93}\n93 km\n[1, 2]\n{speed: 94}\n{speed: 95}\n'
    done = run("pub", f"127.0.0.1:{broker.port}", "cars/9", "-", "--lines", text=lines)
    assert done.returncode == 0
    assert "looks like JSON and is none" in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_looks_like_json_and_is_none() -> None:
    """The sentence says where it goes wrong."""
    assert why_no_json(b"") is None
    assert why_no_json(b" {} ") is None
    assert why_no_json(b"\xff\xfe") is None
    for broken in (b"{speed: 93}", b'{"speed": NaN}', b"[1, 2", b'{"a": "\xff"}', b"[" * 100_000):
        assert why_no_json(broken), broken[:20]


def wait_for_subscriber(port: int) -> None:
    """Wait until somebody subscribed: an event of ours reaches a subscriber other than us."""
    until = time.monotonic() + 30
    with Raw(port) as probe:
        probe.connect("probe")
        while probe.publish("cars/0", b"{}", qos=1) == 0x10:  # no matching subscribers
            assert time.monotonic() < until
            time.sleep(0.1)


def test_a_password_that_was_not_given_is_not_called_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who gives a name alone is told where the password is read from; one that is wrong is wrong."""
    file = tmp_path / "one.toml"
    file.write_text(
        '[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\n'
        f'[[users]]\nname = "ann"\npassword = "{hash_password("secret")}"\n'
    )
    monkeypatch.delenv("SOJOURN_PASSWORD", raising=False)
    with running_broker(str(file)) as small:
        url = f"mqtt://127.0.0.1:{small.port}"
        for command in (["pub", url, "t"], ["sub", url]):
            done = run(*command, "--user", "ann")
            assert done.returncode == 2
            assert "none was given: it is read from the variable SOJOURN_PASSWORD." in done.stderr
        monkeypatch.setenv("SOJOURN_PASSWORD", "guess")
        assert "The user name or the password is wrong" in run("pub", url, "t", "--user", "ann").stderr


def test_a_topic_cannot_be_empty(broker: BrokerProcess) -> None:
    """Nothing is said of aliases, of which nobody spoke."""
    done = run("pub", f"127.0.0.1:{broker.port}", "", "news")
    assert (done.returncode, done.stderr) == (
        2,
        "sojourn: An event needs a topic, and a topic cannot be empty.\n",
    )

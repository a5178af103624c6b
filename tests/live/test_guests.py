"""Clients without a user name, where the configuration says what they may do: refusals in both versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn.live.brokers.admission import Doorkeeper
from sojourn.live.config import ConfigError, read_config
from sojourn.live.templates import template
from tests.live.old_client import OldRaw
from tests.live.raw_client import Raw, running_broker


def guarded() -> str:
    """The template of a single broker in which the part on guests is no comment; on any port, no page."""
    text = template("single").replace('listen = "127.0.0.1:1883"', 'listen = "127.0.0.1:0"')
    lines = [
        "# " + line if line.startswith("page = ") else line.replace("# ", "", 1) if is_about_guests else line
        for line, is_about_guests in _lines(text)
    ]
    return "\n".join(lines)


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    is_about_guests = False
    for line in text.splitlines():
        is_about_guests = line == "# [security.guests]" or (is_about_guests and bool(line))
        yield line, is_about_guests


@pytest.fixture(scope="module")
def guarded_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A broker where guests may do something and not everything."""
    file = tmp_path_factory.mktemp("guarded") / "guarded.toml"
    file.write_text(guarded())
    with running_broker(str(file)) as process:
        yield process.port


def test_a_refused_topic_filter_is_told_by_its_code(guarded_port: int) -> None:
    """0x87 in MQTT 5, one by one; 0x80 in 3.1.1, whatever the reason."""
    with Raw(guarded_port) as client:
        client.connect("guest")
        assert client.subscribe("public/a", "private/a", "#", "public/#", "$share/g/private/#") == [
            2,
            0x87,
            0x87,
            2,
            0x87,
        ]
    with OldRaw(guarded_port) as older:
        assert older.connect("old guest") == (0, 0)
        assert older.subscribe(("public/a", 1), ("private/a", 1)) == (1, 0x80)


def test_a_refused_publish_is_told_or_ends_the_connection(guarded_port: int) -> None:
    """0x87 in MQTT 5; 3.1.1 has no words for it and finds the connection closed."""
    with Raw(guarded_port) as client, OldRaw(guarded_port) as older:
        client.connect("guest")
        assert client.publish("public/a", b"", 1) == 0
        assert client.publish("private/a", b"", 1) == 0x87
        assert client.publish("private/a", b"", 2) == 0x87
        older.connect("old guest")
        older.publish("private/a", b"", 0)
        older.publish("public/a", b"", 1)
        older.send_publish("private/a", b"", 1)
        older.expect_end()


def test_permissions_that_do_not_parse_are_refused(tmp_path: Path) -> None:
    """The sentence names the table."""
    config = read_config(
        '[security.guests]\npublish_if = "a >"\n[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\n'
    )
    with pytest.raises(ConfigError, match=r"permissions of \[security.guests\] cannot be read"):
        Doorkeeper(config, "B1")

"""What a reload says after brokers joined and left: what changed of those that stay, and nothing else."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from sojourn.broker.roll import Roll, roll_of, with_roll
from sojourn.live.brokers.regrouped import following
from sojourn.live.brokers.reloading import Reload, prepared
from sojourn.live.config import BrokerConfig, Config, load_config
from sojourn.live.rewriting import with_broker, without_broker
from sojourn.live.templates import template


def joined(path: Path, name: str, port: int, *links: str) -> None:
    """Write a broker into a file, as `sojourn join` does."""
    address = f"127.0.0.1:{port}"
    written = {"name": name, "listen": address, "peers": f"{address}1", "store": f"stores/{name}"}
    written |= {"seats": f"{address}2", "metrics": f"{address}3"}
    text = with_broker(path.read_text(), msgspec.convert(written, BrokerConfig), links, written)
    path.write_text(text)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of three brokers in a line."""
    tmp_path.joinpath("network.secret").write_text("s" * 64)
    tmp_path.joinpath("network.secret").chmod(0o600)
    file = tmp_path / "network.toml"
    file.write_text(template("line"))
    return file


def reloaded(config: Config, name: str, path: Path, roll: Roll) -> Reload:
    """A broker with a configuration, that was told a roll since it was started, reads the file."""
    settings = with_roll(config.settings(name), roll)
    if settings != config.settings(name):
        config = following(config, settings)
    return prepared(config, load_config(path), settings)


@pytest.mark.parametrize("name", ["B1", "B3"])
def test_who_joined_and_left_needs_no_restart(path: Path, name: str) -> None:
    """Whatever of it the file says, one after the other; and after that the broker knows where others are."""
    founded = load_config(path)
    joined(path, "B4", 311, "B3")
    joined(path, "B5", 312, "B4")
    both = roll_of(load_config(path).settings(name))
    for roll in (Roll(), both._replace(joined=both.joined[:1]), both):
        found = reloaded(founded, name, path, roll)
        assert not found.waits
        known = {one.name: one for one in load_config(path).brokers}
        assert all(one == known[one.name] for one in found.config.brokers)
    for gone in ("B5", "B4"):
        path.write_text(without_broker(path.read_text(), gone))
    assert not reloaded(founded, name, path, both._replace(left=("B4", "B5"))).waits
    started = load_config(path)
    joined(path, "B6", 313, "B3")
    assert not reloaded(started, name, path, roll_of(started.settings(name))).waits
    assert not reloaded(started, name, path, roll_of(load_config(path).settings(name))).waits


def test_what_truly_changed_is_said_whoever_joined(path: Path) -> None:
    """The broker's own address, or that of one that it knows, also of one that joined."""
    founded = load_config(path)
    joined(path, "B4", 311, "B3")
    roll = roll_of(load_config(path).settings("B1"))
    now = load_config(path)
    text = path.read_text()
    path.write_text(text.replace('listen = "127.0.0.1:1883"', 'listen = "127.0.0.1:9999"'))
    for name in ("B1", "B2"):
        assert reloaded(founded, name, path, roll).waits == ["listen of brokers"]
    path.write_text(text.replace("127.0.0.1:3111", "127.0.0.1:9999"))
    assert reloaded(now, "B4", path, roll).waits == ["peers of brokers"]
    assert reloaded(now, "B1", path, roll).waits == ["peers of brokers"]
    path.write_text(text.replace("[network]", '[network]\nname = "other"'))
    assert reloaded(founded, "B1", path, roll).waits == ["network"]

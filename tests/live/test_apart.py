"""Brokers of one file that would be in each other's way are refused when it is read, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.live.config import ConfigError, load_config
from sojourn.live.templates import TEMPLATES, template


def written(folder: Path, *brokers: str, tls: bool = False) -> Path:
    """A file with brokers, each as `key=value` words."""
    text = ""
    for number, one in enumerate(brokers, 1):
        rows = dict(word.split("=") for word in one.split())
        text += f'[[brokers]]\nname = "B{number}"\n'
        text += "".join(f'{key} = "{value}"\n' for key, value in rows.items())
    if tls:
        text += '[tls]\ncertificate = "{broker}.pem"\nkey = "{broker}.key"\nauthority = "authority.pem"\n'
    path = folder / "brokers.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("brokers", "sentence"),
    [
        (("listen=127.0.0.1:1", "listen=127.0.0.1:1"), "listen of B1 and listen of B2 are both 127.0.0.1:1"),
        (("listen=127.0.0.1:1", "listen=127.0.0.1:2 peers=127.0.0.1:1"), "listen of B1 and peers of B2 are"),
        (("listen=127.0.0.1:1 metrics=127.0.0.1:1",), "listen of B1 and metrics of B1 are both"),
        (("listen=127.0.0.1:1 page=localhost:1",), "listen of B1 .127.0.0.1:1. and page of B1 .localhost:1."),
        (("listen=0.0.0.0:1 page=127.0.0.1:1",), "both need port 1: give each its own"),
        (("listen=[::]:1 page=[::1]:1",), "both need port 1"),
        (("listen=127.0.0.1:1 store=a", "listen=127.0.0.1:2 store=./b/../a"), "B1 and B2 have one store, "),
    ],
)
def test_two_in_one_place_are_refused(tmp_path: Path, brokers: tuple[str, ...], sentence: str) -> None:
    """With who they are; also one broker's own addresses, and other names of one address or folder."""
    with pytest.raises(ConfigError, match=sentence):
        load_config(written(tmp_path, *brokers))


def test_a_store_by_two_ways_is_one(tmp_path: Path) -> None:
    """A link to a folder is that folder."""
    (tmp_path / "other").symlink_to(tmp_path / "store")
    with pytest.raises(ConfigError, match="have one store"):
        load_config(written(tmp_path, "listen=127.0.0.1:1 store=store", "listen=127.0.0.1:2 store=other"))


def test_brokers_of_one_machine_among_others_are_refused(tmp_path: Path) -> None:
    """Two on one host, told by where others reach them."""
    common = "listen=0.0.0.0:1 store=/var/store"
    brokers = (f"{common} peers=roof:2", f"{common} peers=cellar:2", f"{common} peers=Roof:3")
    with pytest.raises(ConfigError, match="B1 and B3 have one store"):
        load_config(written(tmp_path, *brokers, tls=True))


@pytest.mark.parametrize(
    "brokers",
    [
        ("listen=127.0.0.1:0 page=127.0.0.1:0", "listen=127.0.0.1:0 page=127.0.0.1:0"),
        ("listen=127.0.0.1:1", "listen=127.0.0.2:1"),
        ("listen=0.0.0.0:1 metrics=[::]:1",),
        ("listen=0.0.0.0:1 store=s peers=roof:2", "listen=0.0.0.0:1 store=s peers=cellar:2"),
        (
            "listen=127.0.0.1:1 store=s",
            "listen=127.0.0.1:1 store=s",
            "listen=127.0.0.1:1 store=s peers=hub:2",
        ),
        ("listen=0.0.0.0:1 store=s seats=roof:2", "listen=0.0.0.0:1 store=s seats=cellar:2"),
    ],
)
def test_what_may_be_on_several_machines_is_taken(tmp_path: Path, brokers: tuple[str, ...]) -> None:
    """The same ports and stores on different hosts, ports that are any, and several addresses of one."""
    assert load_config(written(tmp_path, *brokers, tls=True)).brokers


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_are_taken(tmp_path: Path, name: str) -> None:
    """All of them, with their own ports and any."""
    path = tmp_path / "network.toml"
    for text in (template(name), template(name, 0)):
        path.write_text(text)
        assert load_config(path).brokers

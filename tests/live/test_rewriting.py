"""Configuration files with a broker more or less, whatever else stands in them."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from sojourn.live.config import BrokerConfig, ConfigError, load_config, read_config
from sojourn.live.rewriting import with_broker, without_broker, write
from sojourn.live.templates import TEMPLATES, template

NEW = BrokerConfig(name="B9", listen="127.0.0.1:1999", peers="127.0.0.1:2999", store="stores/B9")
WRITTEN = {"name": "B9", "listen": "127.0.0.1:1999", "peers": "127.0.0.1:2999", "store": "stores/B9"}
BY_HAND = """\
# ours
links = [
    ["B1", "B2"],  # the stairs
    ["B2", "B3"],
]

[[brokers]]
name = "B1"
listen = "127.0.0.1:1"
# above the second

[[brokers]]
name = "B2"
listen = "127.0.0.1:2"

[[brokers]] # the third
name = "B3"
listen = "127.0.0.1:3"

# people
[[users]]
name = "ann"
password = "x"
"""


@pytest.mark.parametrize("name", [name for name, one in TEMPLATES.items() if one.links])
def test_templates_grow_and_shrink_with_all_their_comments(name: str) -> None:
    """What is written reads as it should, and no comment is lost."""
    text = template(name, 0)
    before = read_config(text)
    grown = with_broker(text, NEW, ["B3", "B1"], WRITTEN)
    config = read_config(grown)
    assert config.brokers == [*before.brokers, NEW]
    assert config.network.joined == ["B9"]
    assert config.links[-2:] == [("B3", "B9"), ("B1", "B9")]
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            assert line in grown.splitlines()
    shrunk = without_broker(grown, "B9")
    after = read_config(shrunk)
    assert after.brokers == before.brokers
    assert after.links == before.links
    assert after.network == replace(before.network, joined=["B9"], left={"B9": ["B1", "B3"]})


def test_a_file_by_hand_keeps_what_people_wrote() -> None:
    """Lists over several lines, tables without a network, comments above what follows."""
    text = without_broker(BY_HAND, "B3")
    for line in ("# ours", "# above the second", "# people", 'name = "ann"'):
        assert line in text
    assert read_config(text).network.left == {"B3": ["B2"]}
    again = with_broker(text, NEW, ["B2"], WRITTEN)
    assert read_config(again).settings("B1").brokers == ("B1", "B2", "B3", "B9")


def test_a_file_that_cannot_be_changed_safely_is_left_alone() -> None:
    """Brokers as an array of inline tables are for people to change."""
    brokers = ", ".join(f'{{name = "{name}", listen = "127.0.0.1:1"}}' for name in "AB")
    text = f'links = [["A", "B"]]\nbrokers = [{brokers}]\n'
    with pytest.raises(ConfigError, match="by hand"):
        with_broker(text, NEW, ["A"], WRITTEN)
    with pytest.raises(ConfigError, match="by hand"):
        without_broker(text, "B")


def test_a_file_is_replaced_for_the_same_readers(tmp_path: Path) -> None:
    """Its mode stays, and nothing is left beside it."""
    path = tmp_path / "line.toml"
    path.write_text(BY_HAND)
    path.chmod(0o640)
    write(path, without_broker(BY_HAND, "B1"))
    assert path.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["line.toml"]
    assert [one.name for one in load_config(path).brokers] == ["B2", "B3"]

"""The configurations that `sojourn init` writes say what is true."""

import re
from pathlib import Path

import pytest

from sojourn.live.config import Config, NetworkConfig, load_config, read_config
from sojourn.live.links.secret import SECRET_NAME
from sojourn.live.templates import TEMPLATES, TemplateError, template
from sojourn.mqtt.limits import Limits

COMMENTED = re.compile(r"^# (\[+[a-z.]+\]+|[a-z_]+ = .*)$", re.MULTILINE)
"""A line that is configuration once its comment sign is gone."""


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_line_in_a_comment_could_be_used(name: str) -> None:
    """With every comment sign taken away it is still a configuration, so each option exists as written."""
    text = COMMENTED.sub(r"\1", template(name))
    config = read_config(text)
    assert config.trace is not None
    assert config.trace.folder == "trace"
    assert config.tls is not None
    assert config.users
    assert config.security.jwt is not None
    assert all(broker.store and broker.listen_tls for broker in config.brokers)
    assert config.limits == Limits(), "the limits in comments are the defaults"


@pytest.mark.parametrize("name", TEMPLATES)
def test_what_is_stated_is_the_default(name: str) -> None:
    """What stands there without a comment sign is what holds without it; only the first broker has a page."""
    config = read_config(template(name))
    secret = SECRET_NAME if config.links else None
    plain = Config(brokers=config.brokers, links=config.links, network=NetworkConfig(secret=secret))
    assert config == plain
    pages = [broker.page for broker in config.brokers]
    assert pages[0] == "127.0.0.1:8080"
    assert not any(pages[1:])
    assert [broker.listen for broker in config.brokers] == [
        f"127.0.0.1:{1883 + number}" for number in range(len(config.brokers))
    ]


def test_an_unknown_template_is_refused() -> None:
    """The refusal names those that there are."""
    with pytest.raises(TemplateError, match="building, line, tree, single"):
        template("castle")


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_broker_has_a_store_of_its_own(name: str, tmp_path: Path) -> None:
    """Untouched, a template keeps what was acknowledged over a restart, beside the file itself."""
    file = tmp_path / "brokers.toml"
    file.write_text(template(name))
    stores = [broker.store for broker in load_config(file).brokers]
    assert stores == [str(tmp_path / "stores" / f"B{number + 1}") for number in range(len(stores))]

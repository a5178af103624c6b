"""The configurations that `sojourn init` writes say what is true."""

import re
from pathlib import Path

import pytest

from sojourn.broker.settings import MobilityConfig
from sojourn.live.brokers.admission import hash_password
from sojourn.live.config import Config, NetworkConfig, load_config, read_config
from sojourn.live.links.secret import SECRET_NAME
from sojourn.live.templates import TEMPLATES, TemplateError, copies_for, template
from sojourn.mqtt.limits import Limits
from tests.live.raw_client import Raw, running_broker

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
    mobility = MobilityConfig(copies=1 if config.links else 0)
    plain = Config(
        brokers=config.brokers, links=config.links, network=NetworkConfig(secret=secret), mobility=mobility
    )
    assert config == plain
    pages = [broker.page for broker in config.brokers]
    assert pages[0] == "127.0.0.1:8080"
    assert not any(pages[1:])
    assert [broker.listen for broker in config.brokers] == [
        f"127.0.0.1:{1883 + number}" for number in range(len(config.brokers))
    ]


def test_copies_are_kept_where_a_majority_can_do_without_one() -> None:
    """Networks of three brokers and more begin with a copy of each, smaller ones without; or as is asked."""
    assert [copies_for(count) for count in (1, 2, 3, 6)] == [0, 0, 1, 1]
    assert read_config(template("line", 0)).mobility.copies == 0
    assert read_config(template("building", 2)).mobility.copies == 2
    for name, copies in (("line", 3), ("single", 1)):
        with pytest.raises(TemplateError, match="at most"):
            template(name, copies)
    with pytest.raises(TemplateError, match="There cannot be -1 copies; 0 writes"):
        template("line", -1)


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


@pytest.mark.parametrize(("security", "code"), [("", 0), ("[security]\nanonymous = false\n", 0x87)])
def test_users_alone_keep_nobody_out_as_is_said_beside_them(security: str, code: int, tmp_path: Path) -> None:
    """Who has no user name is let in on loopback until `anonymous = false` is said."""
    before, _, _ = template("single").partition("# [[users]]")
    assert "unless `anonymous = false`" in before.rpartition("\n\n")[2]
    path = tmp_path / "one.toml"
    user = f'[[users]]\nname = "ann"\npassword = "{hash_password("secret")}"\n'
    path.write_text(f'[[brokers]]\nname = "B1"\nlisten = "127.0.0.1:0"\n{user}{security}')
    with running_broker(str(path)) as broker, Raw(broker.port) as guest:
        assert int(guest.connect("guest").reason_code) == code

"""The live page in real Chromium: dots travel, numbers change, nobody complains, nobody else is asked."""

import subprocess
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from tests.live.moving import Moving, moving

ROOT = Path(__file__).parents[2]
LIVE = "document.documentElement?.dataset.live === 'yes'"
DOTS = "document.querySelectorAll('#dots .dot').length"
NUMBER = "Number(document.getElementById('{}').textContent.replace(/[^0-9.]/g, ''))"


def _browser() -> Any:
    """The reports' browser, which is a file beside their tests."""
    spec = util.spec_from_file_location("browser", ROOT / "tests" / "report" / "browser.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tab() -> Iterator[Any]:
    """A tab of a fresh headless Chromium."""
    browser = _browser()
    command = browser.find_chromium()
    if command is None:
        subprocess.run([ROOT / "scripts" / "browser"], check=False, timeout=250)
        command = browser.find_chromium()
    if command is None:
        pytest.skip("no Chromium, and it may not be installed here: run scripts/browser to see why")
    with browser.chromium(command) as opened:
        yield opened


@pytest.fixture(scope="module")
def world() -> Iterator[Moving]:
    """Six brokers and clients that move."""
    with moving(18, 0.6) as running:
        yield running


def test_a_person_sees_clients_move(tab: Any, world: Moving) -> None:
    """Every client is a dot, those that move travel, and the numbers grow; on a desk by day."""
    tab.resize(1360, 900)
    tab.theme("light")
    tab.call("Page.navigate", url=world.page + "/")
    tab.wait_for(LIVE)
    tab.wait_for(f"{DOTS} >= 18")
    tab.value(
        "window.before = new Map([...document.querySelectorAll('#dots .dot')]"
        ".map(d => [d.textContent, d.style.transform]))"
    )
    published = tab.value(NUMBER.format("published-all"))
    tab.wait_for("document.querySelectorAll('#dots .moving').length > 0")
    tab.wait_for(
        "[...document.querySelectorAll('#dots .moving')]"
        ".some(d => before.has(d.textContent) && before.get(d.textContent) !== d.style.transform)"
    )
    tab.wait_for("document.querySelectorAll('#moves li').length >= 5")
    tab.wait_for(f"{NUMBER.format('published-all')} > {published}")
    tab.wait_for("document.querySelector('#chart-rate polyline').points.numberOfItems > 1")
    assert tab.value("document.querySelectorAll('#nodes .node.up').length") == 6
    assert tab.value("document.querySelectorAll('#links .link.up').length") == 5
    assert tab.value("document.querySelectorAll('#links .link.spare').length") == 3
    assert tab.value("document.querySelectorAll('#brokers tbody tr').length") == 6
    assert tab.complaints() == []
    assert all(url.startswith(world.page + "/") for url in tab.requests()), "nobody else is asked"


def test_it_fits_a_phone_at_night(tab: Any, world: Moving) -> None:
    """On a narrow window nothing sticks out, every dot is inside the map, and the ground is dark."""
    tab.resize(390, 844)
    tab.theme("dark")
    tab.wait_for(LIVE)
    assert tab.value("document.documentElement.scrollWidth") <= 390
    tab.wait_for(
        "(() => { const box = document.getElementById('map').getBoundingClientRect();"
        "return [...document.querySelectorAll('#nodes .node circle')].every(n => {"
        "const at = n.getBoundingClientRect();"
        "return at.left >= box.left && at.right <= box.right && at.bottom <= box.bottom; }); })()"
    )
    dark = tab.value("getComputedStyle(document.body).backgroundColor")
    tab.value("document.getElementById('theme').click()")
    assert tab.value("getComputedStyle(document.body).backgroundColor") != dark
    tab.value("document.getElementById('theme').click()")
    assert tab.value("getComputedStyle(document.body).backgroundColor") == dark
    assert tab.complaints() == []


def test_a_broker_that_falls_silent_is_shown(tab: Any, world: Moving) -> None:
    """A broker that stops is marked, its link is down, and the others go on."""
    tab.wait_for(LIVE)
    world.stop_broker(3)
    tab.wait_for("document.querySelectorAll('#links .link.down').length === 1")
    tab.wait_for("document.querySelectorAll('#nodes .node.silent').length === 1")
    assert "1 broker not heard of" in tab.value("document.getElementById('title').textContent")
    assert "silent" in tab.value("document.querySelectorAll('#brokers tbody tr')[3].textContent")
    assert tab.value("document.querySelectorAll('#nodes .node.up').length") == 5
    assert tab.complaints() == []

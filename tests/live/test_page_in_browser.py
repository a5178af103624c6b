"""The live page in real Chromium: dots travel, numbers change, nobody complains, nobody else is asked."""

import subprocess
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.live.moving import Moving, moving

ROOT = Path(__file__).parents[2]
LIVE = "document.documentElement?.dataset.live === 'yes'"
DOTS = "document.querySelectorAll('#dots .dot').length"
FILLED = (
    "[...document.querySelectorAll('main > section:not([hidden]) table')]"
    ".every(t => t.id === 'trail-table' || t.tBodies[0].rows.length > 0)"
)
"""Every table of the view has something in it."""
TOO_WIDE = (
    "[...document.querySelectorAll('main > section:not([hidden]) .scroll, .tile, .tile b, .tile i')]"
    ".filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)"
)
"""What has more in it than it shows."""
NUMBER = "Number(document.getElementById('{}').textContent.replace(/[^0-9.]/g, ''))"
FIND = (
    "(() => {{ const find = document.getElementById('find'); find.elements.q.value = '{}';"
    "find.requestSubmit(); }})()"
)


def _browser() -> Any:
    """The reports' browser, which is a file beside their tests."""
    spec = util.spec_from_file_location("browser", ROOT / "tests" / "report" / "browser.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def world() -> Iterator[Moving]:
    """Six brokers and clients that move."""
    with moving(18, 0.6) as running:
        yield running


@pytest.fixture(scope="module")
def tab(world: Moving) -> Iterator[Any]:
    """A tab of a fresh headless Chromium that shows the page."""
    browser = _browser()
    command = browser.find_chromium()
    if command is None:
        subprocess.run([ROOT / "scripts" / "browser"], check=False, timeout=250)
        command = browser.find_chromium()
    if command is None:
        pytest.skip("no Chromium, and it may not be installed here: run scripts/browser to see why")
    with browser.chromium(command) as opened:
        opened.call("Page.navigate", url=world.page + "/")
        opened.wait_for(LIVE)
        yield opened


def go(tab: Any, view: str) -> None:
    """Show a view, and wait until the page has turned to it."""
    tab.wait_for(LIVE)
    tab.value(f"location.hash = {view!r}")
    name = view.removeprefix("#/").partition("?")[0] or "overview"
    shown = "client" if name.startswith("clients/") else name
    tab.wait_for(f"!document.getElementById('view-{shown}').hidden")


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


VIEWS = ("#/", "#/clients", "#/clients/phone-003", "#/filters", "#/topics", "#/links", "#/tester?topic=news")


WIDEST = (
    "not heard of yet", "10,000", "10,000", "123,456", "123,456", "1,023 MiB", "123,456", "123,456",
    "123,456", "40.0 s", "1,023 MiB, full; copies at B10, B11", "B10 down 120 s B11 B12 down 120 s",
)  # fmt: skip
"""What the cells of a busy network in trouble say, after the broker's name and address."""
WITH_THE_WIDEST = (
    "(() => {{ const cells = [...document.querySelectorAll('#brokers tbody tr:first-child td')];"
    "{}.forEach((text, k) => {{ cells[k + 1].textContent = text; }});"
    "document.getElementById('risk-tile').hidden = false;"
    "document.querySelectorAll('.tile b').forEach(b => {{ b.textContent = '< 123,456 ms'; }});"
    "return {}; }})()"
)
"""Look at the page with those cells and as many tiles as there may be, before news write them anew."""


@pytest.mark.parametrize("width", [390, 840, 1024, 1100, 1250, 1280, 1360])
def test_the_first_view_fits_whatever_is_said(tab: Any, world: Moving, width: int) -> None:
    """Long states, large numbers and many links take more lines, not more than the window or a tile."""
    tab.resize(width, 844)
    go(tab, "#/")
    tab.wait_for(FILLED)
    assert tab.value(WITH_THE_WIDEST.format(list(WIDEST), TOO_WIDE)) == []


@pytest.mark.parametrize("width", [390, 900, 1024])
def test_every_view_fits_its_window(tab: Any, world: Moving, width: int) -> None:
    """On a narrow window nothing sticks out in any view, and rows of tables are cards with names."""
    tab.resize(width, 844)
    tab.theme("dark")
    for view in VIEWS:
        go(tab, view)
        tab.wait_for(FILLED)
        assert tab.value("document.documentElement.scrollWidth") <= width, view
        assert tab.value(TOO_WIDE) == [], view
    if width == 390:
        assert tab.value("getComputedStyle(document.querySelector('nav')).position") == "fixed"
        go(tab, "#/clients")
        tab.wait_for("document.querySelectorAll('#clients-table a.client').length > 10")
        cell = "document.querySelector('#clients-table td:nth-child(2)')"
        assert tab.value(f"getComputedStyle({cell}, '::before').content") == '"broker"'
    assert tab.complaints() == []


def test_it_fits_a_phone_at_night(tab: Any, world: Moving) -> None:
    """Every broker is inside the map, the ground is dark, and the reader may turn on the light."""
    tab.resize(390, 844)
    tab.theme("dark")
    go(tab, "#/")
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


def test_a_client_is_found_and_followed(tab: Any, world: Moving) -> None:
    """Typing a part of a name lists who fits; one of them is followed from broker to broker."""
    tab.resize(1400, 900)
    go(tab, "#/")
    tab.value(FIND.format("PHONE-00"))
    tab.wait_for("document.querySelectorAll('#clients-table a.client').length === 10")
    names = tab.value("[...document.querySelectorAll('#clients-table a.client')].map(a => a.textContent)")
    assert names == [f"phone-00{number}" for number in range(10)]
    tab.value("document.querySelectorAll('#clients-table a.client')[4].click()")
    tab.wait_for("document.getElementById('client-name').textContent === 'phone-004'")
    tab.wait_for("!document.getElementById('client-body').hidden")
    tab.wait_for("document.querySelectorAll('#client-trail .stay').length >= 3")
    assert tab.value("document.querySelector('#wants-table .code').textContent") == "news"
    assert "kind = 4" in tab.value("document.getElementById('wants-table').textContent")
    before = tab.value("document.querySelectorAll('#client-trail .hop').length")
    tab.wait_for(f"document.querySelectorAll('#client-trail .hop').length > {before}")
    tab.value("location.hash = '#/'")
    tab.wait_for("document.querySelectorAll('#dots .followed').length === 1")
    assert tab.complaints() == []


def test_a_whole_name_leads_to_its_client(tab: Any, world: Moving) -> None:
    """There is no list of one to choose from."""
    go(tab, "#/")
    tab.value(FIND.format("phone-005"))
    tab.wait_for("location.hash.startsWith('#/clients')")
    assert tab.value("location.hash") == "#/clients/phone-005"
    tab.wait_for("document.getElementById('client-name').textContent === 'phone-005'")
    assert tab.complaints() == []


def test_the_tester_says_who_would_get_an_event(tab: Any, world: Moving) -> None:
    """A topic and a JSON object: the clients whose filter it passes; what is no JSON is said in words."""
    go(tab, "#/tester")
    fill = (
        "(() => {{ const form = document.getElementById('tester-form'); form.elements.topic.value = 'news';"
        "form.elements.event.value = {!r}; form.requestSubmit(); }})()"
    )
    tab.value(fill.format('{"kind": 2}'))
    tab.wait_for("document.querySelectorAll('#tester-table a.client').length > 0")
    names = set(tab.value("[...document.querySelectorAll('#tester-table a.client')].map(a => a.textContent)"))
    assert names <= {"phone-002", "phone-007", "phone-012", "phone-017"}
    assert "would get this" in tab.value("document.getElementById('tester-summary').textContent")
    assert tab.value("document.getElementById('tester-empty').hidden")
    tab.value(fill.format('{"kind": 77}'))
    tab.wait_for("document.getElementById('tester-summary').textContent === 'Nobody would get this.'")
    heard = len(tab.complaints())
    tab.value(fill.format("{kind: 2}"))
    tab.wait_for("document.getElementById('tester-error').textContent.includes('no JSON')")
    assert tab.value("document.getElementById('tester-empty').offsetHeight") > 0, "an empty box says why"
    assert all("400" in said for said in tab.complaints()[heard:]), (
        "the browser itself logs a refused request"
    )
    del tab.events[:]


def test_charts_have_axes_and_can_be_read_by_keys(tab: Any, world: Moving) -> None:
    """Clock times below, values at the side, the hour on demand; arrow keys read one moment."""
    tab.resize(1400, 900)
    go(tab, "#/")
    chart = "document.getElementById('chart-rate')"
    tab.wait_for(f"{chart}.querySelector('polyline')?.points.numberOfItems > 5")
    ticks = tab.value(f"[...{chart}.querySelectorAll('.tick')].map(t => t.textContent)")
    assert "0" in ticks
    assert any(":" in tick for tick in ticks), ticks
    fewest = tab.value(
        "import('./charts.js').then(charts => Math.min(...[180, 3600].flatMap(span => [...Array(span).keys()]"
        ".map(at => charts.timeTicks(at, at + span, 200).length))))"
    )
    assert fewest >= 2, "however narrow the chart and whatever the time"
    tab.value(f"{chart}.focus()")
    tab.call("Input.dispatchKeyEvent", type="keyDown", key="ArrowLeft", code="ArrowLeft")
    tab.wait_for("document.querySelector('#now-rate .when') !== null")
    tab.value("document.activeElement.blur(); document.querySelector('[data-range=\"3600\"]').click()")
    tab.wait_for(f"{chart}.querySelector('polyline')?.points.numberOfItems >= 1")
    assert tab.value("document.querySelector('[data-range=\"3600\"]').getAttribute('aria-pressed')") == "true"
    tab.value(
        "(() => { const of = document.getElementById('of-broker'); of.value = 'B2';"
        "of.dispatchEvent(new Event('change')); })()"
    )
    tab.wait_for(f"{chart}.querySelector('polyline') !== null")
    tab.value("document.querySelector('[data-range=\"180\"]').click()")
    assert tab.complaints() == []


def test_explanations_come_with_the_focus_and_go_with_escape(tab: Any, world: Moving) -> None:
    """What has an explanation can be reached by keys, and is described to screen readers by it."""
    go(tab, "#/")
    tab.value("document.querySelector('.tile').focus()")
    tab.wait_for("!document.getElementById('hint').hidden")
    assert "connected" in tab.value("document.getElementById('hint').textContent")
    assert tab.value("document.querySelector('.tile').getAttribute('aria-describedby')") == "hint"
    tab.call("Input.dispatchKeyEvent", type="keyDown", key="Escape", code="Escape")
    tab.wait_for("document.getElementById('hint').hidden")
    unnamed = tab.value(
        "[...document.querySelectorAll('button, input, select, textarea')].filter(e =>"
        "!(e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim())).map(e => e.outerHTML)"
    )
    assert unnamed == []


def test_hostile_names_are_text(tab: Any, world: Moving) -> None:
    """A client whose name is markup, and hides what follows, is shown as text and runs nothing."""
    name = "<img src=x onerror='window.hit=1'>\u202e\u0007evil"
    with world.client(name, 1, topic="<b>news</b>/#"):
        go(tab, "#/clients?q=" + quote("<img"))
        tab.wait_for("document.querySelectorAll('#clients-table a.client').length === 1")
        text = tab.value("document.querySelector('#clients-table a.client').textContent")
        assert text == "<img src=x onerror='window.hit=1'>··evil"
        tab.value("document.querySelector('#clients-table a.client').click()")
        tab.wait_for("document.getElementById('wants-table').textContent.includes('<b>news</b>/#')")
        go(tab, "#/filters?q=b")
        tab.wait_for("document.getElementById('filters-table').textContent.includes('<b>news</b>/#')")
        go(tab, "#/")
        tab.wait_for(
            "[...document.querySelectorAll('#dots title')].some(t => t.textContent.startsWith('<img'))"
        )
        assert tab.value("document.querySelectorAll('main img, main b:not([id])').length") == 0
        assert tab.value("window.hit === undefined")
    assert tab.complaints() == []


def test_a_broker_that_falls_silent_is_shown(tab: Any, world: Moving) -> None:
    """A broker that stops is marked, its link is down in every view, and the others go on."""
    go(tab, "#/")
    world.stop_broker(3)
    tab.wait_for("document.querySelectorAll('#links .link.down').length === 1")
    tab.wait_for("document.querySelectorAll('#nodes .node.silent').length === 1")
    assert "1 broker not heard of" in tab.value("document.getElementById('title').textContent")
    assert "silent" in tab.value("document.querySelectorAll('#brokers tbody tr')[3].textContent")
    assert tab.value("document.querySelectorAll('#nodes .node.up').length") == 5
    go(tab, "#/links")
    tab.wait_for(
        "[...document.querySelectorAll('#links-table .state')].some(s => /^down for /.test(s.textContent))"
    )
    assert "not known" not in tab.value("document.getElementById('links-table').textContent")
    assert tab.complaints() == []


def test_a_reader_with_the_password_sees_the_page(tab: Any, world: Moving) -> None:
    """Name and password in the address are enough for the page, its parts, its stream and its questions."""
    page = world.guarded_page("open sesame").replace("http://", f"http://me:{quote('open sesame')}@")
    tab.call("Page.navigate", url=page + "/#/clients")
    tab.wait_for(LIVE)
    tab.wait_for("document.querySelectorAll('#clients-table tbody tr').length > 0")
    assert "answers" not in tab.value("document.getElementById('clients-note').textContent")


def test_a_page_whose_broker_is_gone_says_so(tab: Any, world: Moving) -> None:
    """The broker that serves the page is not shown as up when it answers no more."""
    tab.call("Page.navigate", url=world.page + "/")
    tab.wait_for(LIVE)
    tab.wait_for("document.querySelectorAll('#nodes .node.up').length >= 1")
    world.stop_broker(0)
    tab.wait_for("document.getElementById('pulse').textContent === 'the broker does not answer'")
    own = "[...document.querySelectorAll('#brokers tbody tr')].find(r => r.textContent.startsWith('B1'))"
    assert "silent" in tab.value(f"{own}.textContent")

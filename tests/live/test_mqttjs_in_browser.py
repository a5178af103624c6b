"""A web page in real Chromium with MQTT.js: both versions over WebSockets, moving between two brokers."""

from __future__ import annotations

import functools
import http.server
import json
import subprocess
import threading
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from tests.live.interop.pahos import Network, Place
from tests.live.raw_client import Raw
from tests.live.web_client import port_in, web_broker

ROOT = Path(__file__).parents[2]
PAGE = "<!doctype html><title>MQTT.js</title><script src=mqtt.min.js></script>"
CONNECTED = """
window.got = [];
window.open_client = (url, options) => new Promise((done, fail) => {
    const client = mqtt.connect(url, {reconnectPeriod: 0, connectTimeout: 30000, ...options});
    client.on('message', (topic, payload) => got.push([topic, payload.toString()]));
    client.on('connect', answer => done({client, present: answer.sessionPresent}));
    client.on('error', error => fail(error));
    client.on('close', () => fail(new Error('closed')));
});
"""


def _browser() -> Any:
    """The reports' browser, which is a file beside their tests."""
    spec = util.spec_from_file_location("browser", ROOT / "tests" / "report" / "browser.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page with MQTT.js."""
    found = subprocess.run(
        [ROOT / "scripts" / "mqttjs"], capture_output=True, text=True, check=False, timeout=250
    )
    if found.returncode:
        pytest.skip(f"no MQTT.js: {found.stderr.strip() or 'run scripts/mqttjs to see why'}")
    folder = tmp_path_factory.mktemp("page")
    (folder / "mqtt.min.js").write_bytes(Path(found.stdout.strip()).read_bytes())
    (folder / "index.html").write_text(PAGE)
    (folder / "favicon.ico").write_bytes(b"")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def tab(page: str) -> Iterator[Any]:
    """A tab of a fresh headless Chromium."""
    browser = _browser()
    command = browser.find_chromium()
    if command is None:
        subprocess.run([ROOT / "scripts" / "browser"], check=False, timeout=250)
        command = browser.find_chromium()
    if command is None:
        pytest.skip("no Chromium, and it may not be installed here: run scripts/browser to see why")
    with browser.chromium(command) as opened:
        opened.call("Page.navigate", url=page)
        opened.wait_for("typeof mqtt === 'object'")
        opened.value(CONNECTED)
        yield opened


def connected(tab: Any, port: int, **options: Any) -> bool:
    """Connect the page's client; return whether there was a session."""
    url = f"ws://127.0.0.1:{port}/mqtt"
    keep = "one => { window.client = one.client; return one.present; }"
    return bool(tab.value(f"open_client('{url}', {json.dumps(options)}).then({keep})"))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Place]]:
    """Where two linked brokers listen."""
    network = Network(tmp_path_factory.mktemp("brokers"))
    yield [network.place(0), network.place(1)]
    network.stop()


@pytest.mark.parametrize("version", [4, 5])
def test_a_page_publishes_subscribes_and_moves(tab: Any, places: list[Place], version: int) -> None:
    """Every quality both ways, binary payloads, and a session that follows the page to the other broker."""
    name, topic = f"page-{version}", f"web/{version}"
    options = {"protocolVersion": version, "clientId": name, "clean": False}
    if version == 5:
        options["properties"] = {"sessionExpiryInterval": 600}
    tab.value("got.length = 0")
    assert not connected(tab, places[0].ws, **options)
    granted = tab.value(
        f"client.subscribeAsync('{topic}/#', {{qos: 2}}).then(all => all.map(one => one.qos))"
    )
    assert granted == [2]
    with Raw(places[1].tcp) as other:
        other.connect(f"far from {name}")
        other.subscribe(f"{topic}/up")
        for qos in range(3):
            payload = f"new Uint8Array([{qos}, 255])"
            tab.value(f"client.publishAsync('{topic}/up', {payload}, {{qos: {qos}}}).then(() => 0)")
            assert other.message().payload == bytes((qos, 255))
        tab.wait_for("got.length === 3")
        tab.value("got.length = 0")
        for number in range(20):
            other.publish(f"{topic}/down", b"%d" % number, 1)
        tab.wait_for("got.length === 20")
        tab.value("client.endAsync().then(() => 0)")
        other.publish(f"{topic}/down", b"20", 1)
        assert connected(tab, places[1].ws, **options)
        other.publish(f"{topic}/down", b"21", 1)
        tab.wait_for("got.length >= 22")
        assert tab.value("got") == [[f"{topic}/down", str(number)] for number in range(22)]
        large = tab.value(
            f"client.publishAsync('{topic}/up', 'x'.repeat(1000000), {{qos: 1}}).then(() => true)"
        )
        assert large
        assert len(other.message().payload) == 1_000_000
        tab.value("client.endAsync().then(() => 0)")


def test_a_page_of_another_host_is_not_let_in(tab: Any, tmp_path: Path) -> None:
    """The browser tells it no more than that the connection failed."""
    with web_broker(tmp_path, security='origins = ["https://app.example"]') as (_, said):
        failed = tab.value(
            f"open_client('ws://127.0.0.1:{port_in(said.ws)}/mqtt', {{}}).then(() => false, () => true)"
        )
        assert failed

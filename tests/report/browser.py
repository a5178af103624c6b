"""A headless Chromium driven over a pipe: no driver program, no port, no package.

Chromium's DevTools protocol speaks JSON messages that end with a zero byte; with --remote-debugging-pipe it
reads them from descriptor 3 and answers on descriptor 4.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
]
ANSWER_S_MAX = 60.0

Message = dict[str, Any]


def find_chromium() -> str | None:
    """The command of a Chromium, or None."""
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if name and (found := shutil.which(name))), None)


class Tab:
    """One page of a browser, and everything it was heard to say."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._number = 0
        self._unread = b""
        self._session = ""
        self.events: list[Message] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: object) -> Message:
        """Ask the browser for something and wait for its answer."""
        self._number += 1
        message: Message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + ANSWER_S_MAX
        while True:
            answer = self._read(deadline)
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: Message = answer["result"]
                return result
            self.events.append(answer)

    def _read(self, deadline: float) -> Message:
        while b"\0" not in self._unread:
            ready, _, _ = select([self._from], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser did not answer in time"
            data = os.read(self._from, 1 << 20)
            assert data, "the browser has gone"
            self._unread += data
        whole, self._unread = self._unread.split(b"\0", 1)
        message: Message = json.loads(whole)
        return message

    def resize(self, width: int, height: int) -> None:
        """Give the page a window of this size."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def theme(self, name: str) -> None:
        """Let the page believe that the reader prefers light or dark."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def open(self, path: Path) -> None:
        """Open a file and wait until it is loaded."""
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        """What an expression of the page's script gives."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + ANSWER_S_MAX
        while not self.value(expression):
            assert time.monotonic() < deadline, f"never true: {expression}"
            time.sleep(0.05)

    def complaints(self) -> list[str]:
        """Errors, warnings and exceptions that the page has put on its console."""
        self.value("0")
        said = []
        for event in self.events:
            params = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                said.append(str(params["exceptionDetails"]))
            elif event["method"] == "Runtime.consoleAPICalled" and params["type"] in {
                "error",
                "warning",
                "assert",
            }:
                said.append(str(params["args"]))
            elif event["method"] == "Log.entryAdded" and params["entry"]["level"] in {"error", "warning"}:
                said.append(params["entry"]["text"])
        return said

    def requests(self) -> list[str]:
        """Every address that the page asked for."""
        self.value("0")
        asked = (event["params"]["request"]["url"] for event in self.events if event["method"] == _REQUEST)
        return [url for url in asked if not url.startswith(("data:", "blob:"))]

    def screenshot(self, path: Path) -> None:
        """Save the whole page as a PNG."""
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self, path: Path) -> None:
        """Print the page."""
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"]))


_REQUEST = "Network.requestWillBeSent"

_LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for number, end in zip((3, 4), ends):
    os.dup2(end, number)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Puts the pipe's ends where Chromium wants them: subprocess can only keep their numbers."""


@contextmanager
def chromium(command: str) -> Iterator[Tab]:
    """A fresh browser with one tab, gone at the end."""
    browser_in, to_browser = os.pipe()
    from_browser, browser_out = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                *(sys.executable, "-c", _LAUNCH, str(browser_in), str(browser_out)),
                *(command, *FLAGS, f"--user-data-dir={profile}", "about:blank"),
            ],
            pass_fds=(browser_in, browser_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(browser_in)
        os.close(browser_out)
        try:
            yield Tab(to_browser, from_browser)
        finally:
            process.kill()
            process.wait()
            os.close(to_browser)
            os.close(from_browser)

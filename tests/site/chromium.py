"""A headless Chromium, driven over pipes: what a page says to the console, asks of the network, and looks like."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

_RETRIES = 3
"""Times that a script is run again where the page was just left."""

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")


def find_chromium() -> str | None:
    """The browser of this machine; None if it has none."""
    return os.environ.get("WARPSMITH_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """One browser with one page; a context manager."""

    def __init__(self, program: str) -> None:
        self.messages: list[str] = []
        """What pages wrote to the console as warnings and errors, with what failed to load."""
        self.requests: list[str] = []
        """Addresses that pages asked for."""
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        flags = (
            "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--hide-scrollbars", "--disable-dev-shm-usage", f"--user-data-dir={self._profile.name}", "about:blank",
        )  # fmt: skip

        def connect() -> None:
            # The browser reads commands from descriptor 3 and answers on 4.
            os.dup2(to_browser, 103)
            os.dup2(from_browser, 104)
            os.dup2(103, 3)
            os.dup2(104, 4)

        self._process = subprocess.Popen(
            [program, *flags], preexec_fn=connect, close_fds=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._number, self._events = b"", 0, []
        targets = self._send("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        self._session = self._send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setFocusEmulationEnabled", enabled=True)

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        self._send("Browser.close")
        self._process.wait(20)
        os.close(self._out)
        os.close(self._in)
        self._profile.cleanup()

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command to the page and return its result."""
        return self._send(method, session=self._session, **params)

    def open(self, page: Path | str, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Open a page and wait until it is loaded."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        # From an empty page: another anchor of the same page would load nothing.
        for address in ("about:blank", page.absolute().as_uri() if isinstance(page, Path) else page):
            self._events.clear()
            self.send("Page.navigate", url=address)
            self._wait("Page.loadEventFired")

    def run(self, script: str) -> Any:
        """Run a script in the page and return its value; it may be a promise."""
        for retry in range(_RETRIES, -1, -1):
            try:
                result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
                break
            except AssertionError as error:  # a link that the script before followed is still loading
                if "navigated" not in str(error) or not retry:
                    raise
        if "exceptionDetails" in result:
            raise AssertionError(result["exceptionDetails"])
        return result["result"].get("value")

    def screenshot(self, path: Path, whole: bool = False) -> None:
        """Write what the page looks like as a PNG."""
        picture = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(picture["data"]))

    def _send(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def _wait(self, event: str, seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while event not in self._events:
            self._read(max(0.1, end - time.monotonic()))

    def _read(self, seconds: float = 30) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], seconds)[0]:
                raise AssertionError("the browser does not answer")
            self._buffer += os.read(self._in, 1 << 20)
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        if method := message.get("method"):
            self._events.append(method)
            self._note(method, message["params"])
        return message

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.messages.append(json.dumps(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.messages.append(json.dumps(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.messages.append(json.dumps(params["entry"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Network.loadingFailed":
            self.messages.append(json.dumps(params))

"""A real browser by the W3C WebDriver protocol: Debian's chromium and chromedriver, no library."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

REQUIRED = "KCONFORM_REQUIRE_BROWSER"
"""Set in CI: there a test without a browser is a failure."""
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


def find_driver() -> str:
    """The path of chromedriver; skips, or in CI fails, without it or without chromium."""
    driver = shutil.which("chromedriver")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if driver is None or browser is None:
        reason = "no chromium and chromedriver here (Debian: chromium chromium-driver)"
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(f"{REQUIRED} is set, and there is {reason}")
        pytest.skip(reason)
    return driver


class Browser:
    """One session."""

    def __init__(self, port: int, profile: Path) -> None:
        self._root = f"http://127.0.0.1:{port}"
        options = {"args": [*_ARGUMENTS, f"--user-data-dir={profile}"]}
        wanted = {"goog:loggingPrefs": {"browser": "ALL"}, "goog:chromeOptions": options}
        session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._root += f"/session/{session['sessionId']}"

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._root + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def cdp(self, command: str, **params: Any) -> Any:
        """A command of Chromium's own protocol."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def open(self, page: Path, fragment: str = "") -> None:
        """Load a file."""
        self._call("POST", "/url", {"url": "about:blank"})
        self._call("POST", "/url", {"url": f"{page.as_uri()}{fragment}"})

    def visit(self, url: str) -> None:
        """Load a page of a server."""
        self._call("POST", "/url", {"url": url})

    def run(self, script: str, *args: Any) -> Any:
        """The value that a script returns."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def type(self, selector: str, keys: str) -> None:
        """Press keys in the first element that the selector finds."""
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        self._call("POST", f"/element/{found[ELEMENT]}/value", {"text": keys})

    def click(self, selector: str) -> None:
        """Click the first element that the selector finds."""
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        self._call("POST", f"/element/{found[ELEMENT]}/click", {})

    def errors(self) -> list[str]:
        """What the console has complained about since it was asked last."""
        return [entry["message"] for entry in self._call("POST", "/se/log", {"type": "browser"})]

    def emulate(self, width: int, scheme: str = "light") -> None:
        """A window of so many pixels, light or dark."""
        self.cdp(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.cdp("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, path: Path) -> None:
        """The whole page as PNG."""
        shot = self.cdp("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def quit(self) -> None:
        """End the session."""
        self._call("DELETE", "")


@contextmanager
def browser_here() -> Iterator[Browser]:
    """A browser on a free port; it and its profile are gone afterwards."""
    driver = find_driver()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL)
    try:
        with tempfile.TemporaryDirectory(prefix="kconform-browser-") as profile:
            _await(port)
            browser = Browser(port, Path(profile))
            try:
                yield browser
            finally:
                browser.quit()
    finally:
        process.terminate()
        process.wait(10)


def _await(port: int) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=5).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)

"""Headless Chromium spoken to over its DevTools pipe: no driver, no port, no package, nothing but the browser itself.

Protocol: https://chromedevtools.github.io/devtools-protocol/ ; messages are JSON, ended by a NUL, on the browser's
file descriptors 3 (in) and 4 (out).
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netwarp.core.executables import find_executable

ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # tests run as root in containers
    "--disable-gpu",
    "--disable-dev-shm-usage",  # /dev/shm is 64 MB in containers
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--proxy-server=127.0.0.1:9",  # nothing listens there: a request to the net fails and is seen
    "--remote-debugging-pipe",
)
DEADLINE_S = 240.0
"""For one answer. Only a hung browser takes that long; no test passes or fails by time."""

WAIT = """new Promise((done, never) => {
  const end = performance.now() + %d;
  const look = () => {
    let found = false;
    try { found = (%s); } catch {}
    if (found) done(found);
    else if (performance.now() > end) never(new Error(%s));
    else requestAnimationFrame(look);
  };
  look();
})"""
STILL = """(async () => {
  const element = document.querySelector(%s);
  for (let last = ""; ;) {
    // again and again: a smooth scroll of before may still be on its way
    element.scrollIntoView({ block: "center", behavior: "instant" });
    await new Promise(requestAnimationFrame);
    const box = element.getBoundingClientRect();
    const middle = [box.x + box.width / 2, box.y + box.height / 2];
    if (String(middle) === last && element.contains(document.elementFromPoint(...middle))) return middle;
    last = String(middle);
  }
})()"""


def find_chromium() -> str | None:
    """The browser's executable, or None: $NETWARP_CHROMIUM, else Debian's or Google's name."""
    names = (
        os.environ.get("NETWARP_CHROMIUM"),
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
    )
    return next((path for name in names if name and (path := find_executable(name))), None)


class BrowserError(Exception):
    """The browser refused a command, or the page threw."""


@dataclass
class Page:
    """One tab. Everything it asked for, and everything it complained about, is kept."""

    browser: Browser
    session: str
    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a DevTools command to this tab and return its result."""
        return self.browser.command(method, parameters, self.session)

    def open(self, address: str) -> None:
        """Load an address and wait for its load event."""
        self.browser.loaded.discard(self.session)
        if "loaderId" not in self.command("Page.navigate", url=address):
            return  # only the part after # differs: the document stays
        self.browser.pump(lambda: self.session in self.browser.loaded)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression (a promise is waited for); raises BrowserError if it throws."""
        answer = self.command("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise BrowserError(answer["exceptionDetails"].get("exception", {}).get("description", str(answer)))
        return answer["result"].get("value")

    def wait(self, condition: str) -> Any:
        """Wait until a JavaScript expression is true; one that throws is not yet. The page looks at each frame."""
        return self.evaluate(WAIT % (DEADLINE_S * 900, condition, json.dumps(condition)))

    def click(self, selector: str) -> None:
        """A real mouse click in the middle of the first element that fits, once it stands still and is uncovered."""
        x, y = self.evaluate(STILL % json.dumps(selector))
        for kind in ("mousePressed", "mouseReleased"):
            self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def drag(self, x: float, y: float, to_x: float, to_y: float) -> None:
        """A real mouse drag, in two steps."""
        middle = ((x + to_x) / 2, (y + to_y) / 2)
        for kind, (at_x, at_y), buttons in (
            ("mouseMoved", (x, y), 0),
            ("mousePressed", (x, y), 1),
            ("mouseMoved", middle, 1),
            ("mouseMoved", (to_x, to_y), 1),
            ("mouseReleased", (to_x, to_y), 0),
        ):
            self.command(
                "Input.dispatchMouseEvent", type=kind, x=at_x, y=at_y, button="left", buttons=buttons, clickCount=1
            )

    def close(self) -> None:
        """Close the tab."""
        self.command("Page.close")

    def press(self, key: str, code: int, text: str = "") -> None:
        """A real key press: ("Tab", 9), ("Enter", 13, "\\r")."""
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.command("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.command("Input.dispatchKeyEvent", type="keyUp", **common)

    def emulate(self, *, width: int, height: int, mobile: bool = False, scheme: str = "light", media: str = "") -> None:
        """Window size in CSS pixels, colour scheme (light, dark) and medium ("" or print)."""
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.command("Emulation.setEmulatedMedia", media=media, features=features)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """A PNG of the window, or of the whole page."""
        data = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def pdf(self, path: Path) -> None:
        """The page as it prints on A4."""
        data = self.command("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=False)["data"]
        path.write_bytes(base64.b64decode(data))


class Browser:
    """A running Chromium. One reader, one writer; events are sorted to their pages as they come."""

    def __init__(self, process: subprocess.Popen[bytes], to_it: int, from_it: int) -> None:
        self._process = process
        self._to, self._from = to_it, from_it
        self._number = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._buffer = b""
        self.pages: dict[str, Page] = {}
        self.loaded: set[str] = set()

    @property
    def pid(self) -> int:
        """The process of the browser; its others are below it."""
        return self._process.pid

    def page(self) -> Page:
        """A fresh tab that records requests, exceptions and log entries."""
        target = self.command("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.command("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = self.pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.command(f"{domain}.enable")
        return page

    def command(self, method: str, parameters: Mapping[str, Any], session: str | None = None) -> dict[str, Any]:
        """Send a command, wait for its answer. Raises BrowserError with the browser's words."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        self.pump(lambda: number in self._answers)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def pump(self, done: Any) -> None:
        """Read messages until `done()`; raises BrowserError if the browser ends or falls silent."""
        end = time.monotonic() + DEADLINE_S
        while not done():
            ready, _, _ = select.select([self._from], [], [], max(0.0, end - time.monotonic()))
            chunk = os.read(self._from, 1 << 20) if ready else b""
            if not chunk:
                raise BrowserError(f"chromium gave no answer (exit status {self._process.poll()})")
            self._buffer += chunk
            *messages, self._buffer = self._buffer.split(b"\0")
            for message in messages:
                self._take(json.loads(message))

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self._answers[message["id"]] = message
            return
        session, method, what = message.get("sessionId", ""), message["method"], message.get("params", {})
        page = self.pages.get(session)
        if page is None:
            return
        if method == "Page.loadEventFired":
            self.loaded.add(session)
        elif method == "Network.requestWillBeSent":
            page.requests.append(what["request"]["url"])
        elif method == "Network.loadingFailed":
            page.problems.append(f"failed to load: {what.get('errorText')}")
        elif method == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            page.problems.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
            page.problems.append("console: " + " ".join(str(one.get("value")) for one in what["args"]))
        elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            page.problems.append(f"log: {what['entry']['text']} {what['entry'].get('url', '')}")


@contextlib.contextmanager
def chromium(executable: str) -> Iterator[Browser]:
    """Start a browser with a profile of its own; it is gone, with all its processes, when the block ends."""
    with contextlib.ExitStack() as stack:
        # the browser's children may still write into the profile while it is removed
        profile = tempfile.mkdtemp(prefix="netwarp-chromium-")
        stack.callback(shutil.rmtree, profile, ignore_errors=True)
        its_in, to_it = os.pipe()
        from_it, its_out = os.pipe()
        stack.callback(os.close, to_it)
        stack.callback(os.close, from_it)
        command = [executable, *ARGUMENTS, f"--user-data-dir={profile}", "about:blank"]
        # a shell puts the pipes where Chromium wants them: 3 and 4
        script = f'exec "$@" 3<&{its_in} 4>&{its_out}'
        process = subprocess.Popen(
            ["bash", "-c", script, "chromium", *command],
            pass_fds=(its_in, its_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"HOME": profile, "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8"},
        )
        os.close(its_in)
        os.close(its_out)
        browser = Browser(process, to_it, from_it)
        try:
            yield browser
        finally:
            with contextlib.suppress(BrowserError, OSError):
                browser.command("Browser.close", {})
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

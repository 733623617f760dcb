"""A headless Chromium, driven through its own pipe: no driver program, no port, no package.

    browser = Browser()                         starts it with an empty profile
    page = browser.open(path)                   a file; waits until it is loaded
    page.run("document.title")                  a JavaScript expression, its value as JSON gives it
    page.key("ArrowRight")                      a key as a person presses it
    page.complaints, page.requests              what the console said, and every address that was asked for

The messages are those of the DevTools protocol, each ended by a zero byte; Chromium reads them from
file descriptor 3 and writes to 4.
"""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-default-apps", "--mute-audio",
    "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE = 30
"""Seconds for one answer."""
CODES = {
    "ArrowRight": 39,
    "ArrowLeft": 37,
    "Home": 36,
    "End": 35,
    "PageDown": 34,
    "PageUp": 33,
    "Tab": 9,
    "Enter": 13,
    " ": 32,
}


START = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(word), fcntl.F_DUPFD, 10) for word in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""What becomes the browser: the two pipes must have just these numbers."""


def find():
    """The program, or None."""
    return next((found for found in map(shutil.which, NAMES) if found), None)


class Browser:
    """A running Chromium."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="kemu-browser-")
        read, self.to = os.pipe()
        self.back, write = os.pipe()
        words = [
            sys.executable,
            "-c",
            START,
            str(read),
            str(write),
            find(),
            *FLAGS,
            f"--user-data-dir={self.profile}",
        ]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(
            words,
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
            pass_fds=(read, write),
            start_new_session=True,
        )
        os.close(read)
        os.close(write)
        self.rest, self.number, self.pages = b"", 0, {}

    def send(self, method, session=None, **params):
        """Ask, and wait for the answer; what comes in between is noted."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.note(answer)

    def receive(self):
        """The next message."""
        until = time.monotonic() + PATIENCE
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.back], [], [], max(until - time.monotonic(), 0))
            part = os.read(self.back, 1 << 20) if ready else b""
            assert part, "the browser does not answer"
            self.rest += part
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def note(self, message):
        """A message that nobody asked for: a line of the console, an exception, a request."""
        page, params = self.pages.get(message.get("sessionId")), message.get("params", {})
        if page is None:
            return
        method = message["method"]
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            page.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in (
            "error",
            "warning",
            "assert",
        ):
            page.complaints.append(str([argument.get("value") for argument in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            page.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            page.requests.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            page.loaded = True

    def open(self, path, *, width=1280, height=900, dark=False, fragment=""):
        """A page of its own with the file, loaded."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.send(f"{domain}.enable")
        page.look(width, height, dark=dark)
        page.send("Page.navigate", url=Path(path).absolute().as_uri() + fragment)
        while not page.loaded:
            self.note(self.receive())
        page.run("1")
        return page

    def close(self):
        """End it, and everything that it started."""
        os.close(self.to)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)
        os.close(self.back)
        shutil.rmtree(self.profile, ignore_errors=True)


class Page:
    """A tab."""

    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        self.complaints, self.requests, self.loaded = [], [], False

    def send(self, method, **params):
        return self.browser.send(method, self.session, **params)

    def run(self, expression):
        """The value of a JavaScript expression."""
        found = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def key(self, name):
        """Press and release a key."""
        text = {"Enter": "\r", " ": " "}.get(name, "")
        for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=name,
                code=name,
                windowsVirtualKeyCode=CODES[name],
                text=text,
            )

    def look(self, width, height, *, dark=False):
        """The size of the window, and what the reader prefers."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path, *, whole=True):
        """A screenshot as a PNG file."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)[
            "data"
        ]
        Path(path).write_bytes(base64.b64decode(data))

    def paper(self, path=None):
        """The page printed on A4, as the bytes of a PDF."""
        data = base64.b64decode(
            self.send("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=False)[
                "data"
            ]
        )
        if path:
            Path(path).write_bytes(data)
        return data

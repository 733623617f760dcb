"""How large a report is, how long it takes to make and to open: ``python -m tests.bench.report``.

A page of 2,000 events, and one of the 10,000 that another session of the same kind has; opened in a
headless Chromium with an empty profile, from the click to the end of the load event, in which the
page has drawn itself. A step is one press of a key.
"""

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from kemu.api import Session
from kemu.front.terminal.reporting import write_report
from tests.bench.table import Row
from tests.report import browser as chromium

OPEN_BAR, SIZE_BAR = 2000.0, 5_000_000
"""Milliseconds and bytes for 2,000 events."""
START = "spawn app; mmap app 0x100000 512p rw; fork app as child"


def session_of(events):
    """A session of at least so many events: parent and child write to one page after the other."""
    session = Session()
    session.run(START)
    page = 0
    while session.end < events:
        for who in ("app", "child"):
            session.run(f"write {who} {0x100000 + page * 4096:#x} {page}")
        page += 1
    return session


def measure(events, repeat):
    """Numbers of one page by name; those of the browser only where there is one."""
    session = session_of(events)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "story.html")
        start = time.perf_counter()
        write_report(session, str(path), "a long session")
        found = {
            "events": session.end,
            "make": (time.perf_counter() - start) * 1000,
            "bytes": path.stat().st_size,
        }
        return found | opened(path, repeat) if chromium.find() else found


def opened(path, repeat):
    """Milliseconds to open the page and to make a step, medians."""
    browser = chromium.Browser()
    try:
        opens, steps = [], []
        for _ in range(repeat):
            page = browser.open(path)
            opens.append(page.run("performance.getEntriesByType('navigation')[0].loadEventEnd"))
            page.run("window.began = performance.now(); step(-1); 0")
            steps.append(page.run("performance.now() - window.began"))
    finally:
        browser.close()
    return {"open": median(opens), "step": median(steps)}


def rows(found, *, bars):
    """The rows of one page; the bars are those of 2,000 events."""
    name = f"report of {found['events']:,} events"
    yield Row(f"{name}, made", f"{found['make']:.0f} ms")
    kept = found["bytes"] <= SIZE_BAR if bars else None
    yield Row(
        f"{name}, size",
        f"{found['bytes'] / 1000:.0f} kB",
        bar="at most 5 MB" if bars else "",
        kept=kept,
    )
    if "open" in found:
        kept = found["open"] <= OPEN_BAR if bars else None
        yield Row(
            f"{name}, opened in Chromium",
            f"{found['open']:.0f} ms",
            bar="at most 2 s" if bars else "",
            kept=kept,
        )
        yield Row(f"{name}, a step", f"{found['step']:.0f} ms")


def main(argv):
    repeat = int(argv[0]) if argv else 5
    if chromium.find() is None:
        sys.stdout.write("no Chromium here: opening is not measured\n")
    for events, bars in ((2000, True), (10_000, False)):
        for row in rows(measure(events, repeat), bars=bars):
            sys.stdout.write("| " + " | ".join(row.cells()) + " |\n")


if __name__ == "__main__":
    main(sys.argv[1:])

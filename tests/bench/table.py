"""The measurements as a table in Markdown: what, how much, beside the real kernel, the bar, and
whether it is kept."""

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from kemu.trace.tape import WHY_PLAIN
from tests.bench.measure import LINUX, PLAIN, RECORDED

GIB_PAGES = 262144
USUAL = 16384
"""The size at which single numbers are taken (64 MiB), if it was measured."""

SEEK_BAR = 100 if WHY_PLAIN else 5
"""Milliseconds of a jump, median."""


TITLES = {"fault": "demand-zero write fault", "cow": "copy-on-write fault"}
GIVEN_BACK = {"exit": "exit", "dontneed": "MADV_DONTNEED", "munmap": "munmap"}


@dataclass
class Row:
    """One line: ``shown`` with its unit; ``real`` the same by the real kernel; ``bar`` as text and
    whether it is kept."""

    what: str
    shown: str
    real: str = ""
    ratio: str = ""
    bar: str = ""
    kept: bool | None = None

    def cells(self):
        verdict = {None: "", True: "kept", False: "MISSED"}[self.kept]
        return [self.what, self.shown, self.real, self.ratio, self.bar, verdict]


def rows(measured):
    """All rows, in the order of the table."""
    usual = USUAL if USUAL in measured.sizes else measured.sizes[-1]
    found = []
    for what in TITLES:
        found.append(against_linux(measured, usual, PLAIN, what, 10))
        found.append(against_linux(measured, usual, RECORDED, what, 25 if WHY_PLAIN else 12))
    found += [fork(measured, pages) for pages in measured.sizes]
    for what in GIVEN_BACK:
        found += [given_back(measured, pages, what) for pages in measured.sizes]
    found += [growth(measured, what) for what in ("fault", "cow", "fork", *GIVEN_BACK)]
    found += [
        *memory(measured, measured.sizes[-1]),
        *journal(measured, usual),
        *seek(measured, usual),
    ]
    found += replay(measured)
    return [
        *found,
        start_up(measured, "help", "`kemu --help`", 5),
        start_up(measured, "ps", "`kemu -c ps`", 15),
    ]


def against_linux(measured, pages, who, what, bar):
    ratio = measured.ratio(pages, who, what)
    return Row(
        f"{TITLES[what]}, {who}, {size(pages)}",
        f"{measured.value(pages, who, what):.1f} us",
        microseconds(measured.value(pages, LINUX, what)),
        times(ratio),
        f"at most {bar}x",
        None if ratio is None else ratio <= bar,
    )


def fork(measured, pages):
    value = measured.value(pages, RECORDED, "fork")
    return Row(
        f"fork, a page-table entry, recorded, {size(pages)}",
        f"{value:.2f} us",
        microseconds(measured.value(pages, LINUX, "fork")),
        times(measured.ratio(pages, RECORDED, "fork")),
        "at most 1 us",
        value <= 1,
    )


def given_back(measured, pages, what):
    ratio = measured.ratio(pages, RECORDED, what)
    return Row(
        f"{GIVEN_BACK[what]}, a page-table entry, recorded, {size(pages)}",
        f"{measured.value(pages, RECORDED, what):.2f} us",
        microseconds(measured.value(pages, LINUX, what)),
        times(ratio),
        "at most 12x",
        None if ratio is None else ratio <= 12,
    )


def growth(measured, what):
    """The time for one page in the largest process against that in the smallest one of at least
    1,024 pages' kind."""
    first, last = measured.sizes[0], measured.sizes[-1]
    value = measured.value(last, RECORDED, what) / measured.value(first, RECORDED, what)
    real = [measured.value(pages, LINUX, what) for pages in (last, first)]
    return Row(
        f"{what}, recorded: a page of {size(last)} against a page of {size(first)}",
        f"{value:.2f}x",
        f"{real[0] / real[1]:.2f}x" if all(real) else "",
        bar="linear: at most 2x",
        kept=value <= 2,
    )


def memory(measured, pages):
    bar = "under 3.5 GiB" if pages == GIB_PAGES else ""
    for who in (PLAIN, RECORDED):
        used = measured.value(pages, who, "rss")
        kept = used < 3.5 * (1 << 30) if bar and who == RECORDED else None
        title = f"host memory, {size(pages)} written, forked, half copied, {who}"
        yield Row(
            title, f"{used / (1 << 30):.2f} GiB", bar=bar if who == RECORDED else "", kept=kept
        )


def journal(measured, pages):
    events = measured.value(pages, RECORDED, "events")
    extra = measured.value(pages, RECORDED, "rss") - measured.value(pages, PLAIN, "rss")
    yield Row(
        f"journal, an event, all that recording costs in host memory, {size(pages)}",
        f"{extra / events:.0f} bytes",
    )
    for what, title in (*TITLES.items(), ("exit", "exit, an entry")):
        count, frames = (
            measured.value(pages, RECORDED, what + kind) for kind in ("_events", "_frames")
        )
        yield Row(f"journal, {title}", f"{count:.1f} events, {frames:.1f} calls")


def seek(measured, pages):
    events = measured.value(pages, RECORDED, "events")
    title = f"among {events / 1e6:.2f} million events"
    for what, said in (
        ("seek", f"jump to a random event {title}, median"),
        ("seek_max", f"jump to a random event {title}, longest"),
        ("rewind", f"from the end to event 0 {title}"),
        ("replay", f"from event 0 to the end {title}"),
        ("step_back", "one event back"),
    ):
        value = measured.value(pages, RECORDED, what)
        bar = SEEK_BAR if what == "seek" and pages == USUAL else None
        yield Row(
            said,
            f"{value:.3g} ms",
            bar=f"at most {bar} ms" if bar else "",
            kept=value <= bar if bar else None,
        )


def replay(measured):
    done = measured.replay
    rate = done["operations"] / done["seconds"]
    yield Row(
        f"replay of {done['programs']} recorded programs, {done['operations']} operations, two "
        "processes",
        f"{done['seconds']:.1f} s, {rate:.0f} operations a second",
        bar="the whole set under 60 s",
        kept=done["seconds"] < 60,
    )


def start_up(measured, name, title, bar):
    value, python = measured.startup[name], measured.startup["python"]
    return Row(
        f"{title}, beside `python3 -c pass`",
        f"{value:.0f} ms",
        f"{python:.0f} ms",
        times(value / python),
        f"at most {bar}x",
        value / python <= bar,
    )


# ---------------------------------------------------------------- text


def size(pages):
    if pages * 4096 >= 1 << 30:
        return f"{pages * 4096 / (1 << 30):g} GiB"
    return f"{pages * 4096 / (1 << 20):g} MiB"


def microseconds(value):
    return "" if value is None else f"{value:.2f} us"


def times(ratio):
    return "" if ratio is None else f"{ratio:.1f}x"


def render(measured):
    """The table, under a paragraph that says on what it was measured."""
    head = ["what", "kemu", "real kernel", "ratio", "bar", ""]
    lines = [machine(measured), "", line(head), line(["---"] * len(head))]
    return "\n".join(lines + [line(row.cells()) for row in rows(measured)]) + "\n"


def line(cells):
    return "| " + " | ".join(cells) + " |"


def machine(measured):
    python = f"{platform.python_implementation()} {platform.python_version()}"
    kernel = f"{platform.system()} {platform.release()}"
    real = measured.how or "none: this is not Linux"
    return (
        f"{cpu_model()}, {os.cpu_count()} CPUs, one used; {kernel}; {python}; load "
        f"{measured.load[0]:.1f} before, "
        f"{measured.load[1]:.1f} after; medians of {measured.repeat}; real kernel: {real}; recorded "
        f"in {'Python' if WHY_PLAIN else 'C'}."
    )


def cpu_model():
    """The processor's name as the system gives it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for text in info.read_text(encoding="utf-8").splitlines():
            if text.startswith("model name"):
                return text.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()

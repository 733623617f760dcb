"""Going through time in a long session: jumps, steps, why, watch, and what the journal costs.

    python -m tests.bench.timetravel [--events 1000000]

The session is one of commands, as a person would give them: a process fills 24 MiB at once, forks,
parent and child write page by page, rights change, grandchildren come and go, until there are so
many events. What is timed is what happens between a line typed and its answer drawn, in CPU time,
with all that `context short` shows. *First* is with nothing prepared: no net effects of blocks, no
index.
"""

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import time

from tests.bench.measure import ROOT
from tests.bench.table import Row, line

PAGES = 6000
BASE = 0x10000000


def things(pages):
    """What `why` is asked about: things that were written a moment ago, and things that were last
    written at the beginning."""
    old, new, nowhere = f"{BASE:#x}", f"{BASE + pages // 2 * 4096:#x}", f"{BASE * 9:#x}"
    return [
        f"pte app {old}", f"pte kid {old}", ("pte "
                                            "app "
                                            f"{new}"), f"frame pfn(app,{old})", f"frame pfn(app,{new}) _mapcount",
        f"frame pfn(app,{new}) flags", f"vma app {old}", ("vma "
                                                         "app "
                                                         f"{old} "
                                                         "vm_flags"), f"vma app {nowhere}", "mm app total_vm",
        "mm app MM_ANONPAGES", "mm app brk", "task app", ("task "
                                                         "app "
                                                         "min_flt"), "task app mm", "task kid exit_state", f"tlb {old}",
        f"tlb {old} 1",
    ]  # fmt: skip


def commands(pages):
    """The commands of the session, without an end."""
    yield f"spawn app; mmap app {BASE:#x} {pages}p rw populate"
    yield f"fork app as kid; madvise kid {BASE:#x} {pages // 2}p populate_write"
    number = 0
    while True:
        at = BASE + (pages // 2 + number % (pages // 2)) * 4096
        yield f"write app {at:#x} {number}; write kid {at:#x} {number + 1}"
        number += 1
        if number % 500 == 0:
            part = 1 + number // 100 % (pages // 8)
            yield f"mprotect app {BASE:#x} {part}p r; mprotect app {BASE:#x} {part}p rw"
        if number % 1000 == 0:
            yield f"fork app as c{number}; exit c{number}; wait app"


def clock(action, *arguments):
    """Milliseconds of CPU time that the action takes."""
    start = time.process_time()
    action(*arguments)
    return (time.process_time() - start) * 1e3


class Journey:
    """A session with so many events, and the times that were taken in it (milliseconds)."""

    def __init__(self, events, pages):
        from kemu.api import Session

        self.session = Session(mem=256 << 20)
        self.session.desk.context = "short"
        self.before = peak()
        self.pages, self.given = pages, 0
        for text in commands(pages):
            self.session.run(text)
            self.given += 1
            if self.session.end >= events:
                break
        self.random = random.Random(1)
        self.found = {}

    def drawn(self, text):
        """Run a line and draw what it gives."""
        from kemu.views.terminal import render

        for result in self.session.run(text):
            render(result.reading)

    def note(self, name, times):
        ordered = sorted(times)
        self.found[name] = statistics.median(ordered)
        self.found[name + "_p95"] = ordered[int(len(ordered) * 0.95)]
        self.found[name + "_max"] = ordered[-1]

    def somewhere(self):
        return self.random.randrange(1, self.session.end)

    def run(self, repeat):
        session = self.session
        asked = [f"why {thing}" for thing in things(self.pages)]
        self.found["first_why"] = max(clock(self.drawn, text) for text in asked)
        session.journal.blocks.made.clear()
        self.found["first_jump"] = clock(session.goto, 0)
        self.note("jump", [clock(session.goto, self.somewhere()) for _ in range(repeat)])
        steps, backs = [], []
        for _ in range(repeat // 2):
            session.goto(self.somewhere())
            backs.append(clock(self.drawn, "back"))
            steps.append(clock(self.drawn, "step"))
        self.note("step", steps)
        self.note("back", backs)
        session.goto(session.end)
        self.note("why", [clock(self.drawn, text) for text in asked for _ in range(3)])
        session.run("watch tasks() > 90; goto 0")
        self.found["watch"] = clock(self.drawn, "continue")
        self.found["events"] = session.end
        self.found["commands"] = self.given
        self.found["calls"] = len(session.journal.marks) // 4
        self.found["rss"] = peak() - self.before
        return self.found


def peak():
    """The most memory that this process held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def without_journal(given, pages):
    """The memory that the same commands take unrecorded."""
    from kemu.commands.run import run
    from kemu.experiment.session import Session

    session = Session(mem=256 << 20, record=False)
    before = peak()
    for number, text in enumerate(commands(pages)):
        if number >= given:
            break
        run(session, text)
    return {"rss": peak() - before}


def measure(events, pages, repeat):
    """All figures; each in a process of its own."""
    found = _process("--journey", events, pages, repeat)
    plain = _process("--unrecorded", found["commands"], pages, repeat)
    found["bytes"] = (found["rss"] - plain["rss"]) / found["events"]
    return found


def _process(how, *numbers):
    command = [sys.executable, "-m", "tests.bench.timetravel", how, *map(str, numbers)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=3600, cwd=ROOT
    )
    assert not done.returncode, f"{' '.join(command)} failed:\n{done.stderr}"
    return json.loads(done.stdout)


def rows(found):
    """The lines of the table."""
    session = f"{found['events'] / 1e6:.2f} million events"

    def row(what, key, bar=None):
        value = found[key]
        return Row(
            what,
            f"{value:.3g} ms",
            bar=f"under {bar} ms" if bar else "",
            kept=value < bar if bar else None,
        )

    yield row(f"jump to a random event of {session}, median", "jump", 100)
    yield row("jump to a random event, 95th percentile", "jump_p95", 250)
    yield row("jump to a random event, longest", "jump_max")
    yield row("from the end to event 0, nothing prepared", "first_jump")
    yield row("step, with its drawing, median", "step", 20)
    yield row("step, with its drawing, longest", "step_max")
    yield row("back, with its drawing, median", "back", 20)
    yield row("why, median of all kinds of things", "why", 100)
    yield row("why, longest", "why_max", 100)
    yield row("why, longest, nothing prepared", "first_why")
    yield row("continue to the end past a watch of tasks()", "watch")
    text = f"{found['bytes']:.0f} bytes"
    kept = found["bytes"] <= 200
    yield Row(
        "journal, an event, calls and prepared blocks included",
        text,
        bar="at most 200 bytes",
        kept=kept,
    )
    yield Row("calls of kernel functions, an event", f"{found['calls'] / found['events']:.2f}")


def options(argv):
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.timetravel", description="kemu's speed in a long session."
    )
    parser.add_argument(
        "--events", type=int, default=1_000_000, metavar="N", help="events of the session (1000000)"
    )
    parser.add_argument(
        "--pages", type=int, default=PAGES, metavar="N", help=f"pages of the process ({PAGES})"
    )
    parser.add_argument(
        "--repeat", type=int, default=121, metavar="N", help="jumps that are timed (121)"
    )
    parser.add_argument("--journey", type=int, nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--unrecorded", type=int, nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv):
    args = options(argv)
    if args.journey:
        events, pages, repeat = args.journey
        sys.stdout.write(json.dumps(Journey(events, pages).run(repeat)))
    elif args.unrecorded:
        given, pages, _ = args.unrecorded
        sys.stdout.write(json.dumps(without_journal(given, pages)))
    else:
        head = ["what", "kemu", "real kernel", "ratio", "bar", ""]
        lines = [line(head), line(["---"] * len(head))]
        lines += [line(row.cells()) for row in rows(measure(args.events, args.pages, args.repeat))]
        sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])

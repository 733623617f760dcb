"""Run random programs in kemu and on the host's kernel until the two differ; then find the smallest
program that still shows the difference.

    strategies.programs() -> replay (kemu) and run_on_host -> compare -> shrink.smallest -> a
    recording

The host is a real computer: now and then a drained batch or a late write-back shows up.  A
difference counts only if the host repeats it every time (``ASKED`` times).  Differences of one kind
(``signature``) are shown once.

    kemu conform fuzz --seed S --count N [--jobs J] [--out FOLDER]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from importlib.util import find_spec
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import attrs

from kemu import interrupts
from kemu.conform.compare import Difference
from kemu.conform.host import HostRun, compare_with, run_on_host
from kemu.conform.hostworker import Crew
from kemu.conform.program import Program
from kemu.conform.replay import replay
from kemu.conform.shrink import smallest
from kemu.errors import HostUnavailable, UsageError

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

ASKED = 4
"""How often the host must show the same difference."""

STOPPED = 130
"""The exit status after Ctrl-C, as everywhere in kemu."""

CHUNK = 250
"""Programs in one run of Hypothesis."""


@attrs.frozen
class Finding:
    """A program on which the two sides differ, made as small as possible, and what the host
    did."""

    program: Program
    difference: str
    signature: str


@attrs.define
class Tally:
    """``tried``: the number of programs; ``unsteady``: those on which the host's answers varied;
    ``known``: those with a difference of a kind already found; ``findings``; ``stopped``: by Ctrl-C
    before the end."""

    tried: int = 0
    operations: int = 0
    unsteady: int = 0
    known: int = 0
    findings: list[Finding] = attrs.Factory(list)
    stopped: bool = False

    def add(self, other: Tally) -> None:
        """Add the counts of ``other``."""
        self.tried += other.tried
        self.operations += other.operations
        self.unsteady += other.unsteady
        self.known += other.known
        self.findings += other.findings


def programs() -> SearchStrategy[Program]:
    """The strategy for programs; without Hypothesis, a ``HostUnavailable`` that says how to install
    it."""
    if not _has_hypothesis():
        raise HostUnavailable("random programs need Hypothesis: python -m pip install 'kemu[fuzz]'")
    from kemu.conform import strategies

    made: SearchStrategy[Program] = strategies.programs()
    return made


def _has_hypothesis() -> bool:
    return find_spec("hypothesis") is not None


def signature(difference: Difference) -> str:
    """The kind of the difference: the operation, the field without numbers, and for results what
    each side returned."""
    op = difference.op
    where = re.sub(r"-?\d+", "#", re.sub(r"^[A-H] ", "", difference.where))
    said = (
        f": {difference.linux} / {difference.kemu}"
        if difference.where.startswith("result.err")
        else ""
    )
    return " ".join(filter(None, [op.kind, op.get("advice", ""), where])) + said


@attrs.frozen
class _Asked:
    """Both sides of one program: what the host did, and the difference in words and its kind, ""
    if there is none."""

    host: HostRun
    kind: str = ""
    said: str = ""
    step: int = 0


def _ask(program: Program, slot: int) -> _Asked:
    """Run ``program`` on both sides.  A failure of kemu itself counts as a difference."""
    host = run_on_host(program, slot)
    try:
        kemu = replay(program)
    except Exception as error:  # noqa: BLE001 -- whatever goes wrong in kemu's kernel is what is searched for: it is reported
        place = traceback.extract_tb(error.__traceback__)[-1]
        kind = f"{type(error).__name__} in {Path(place.filename).name} {place.name}"
        return _Asked(host, kind, f"kemu failed: {kind}: {error}", len(host.steps) - 1)
    found = compare_with(program, host, kemu).difference
    return _Asked(host) if found is None else _Asked(host, signature(found), str(found), found.step)


@attrs.define
class _Hunt:
    """One run of Hypothesis: the kinds already known, and what was found."""

    slot: int
    known: frozenset[str]
    tally: Tally = attrs.Factory(Tally)

    def check(self, program: Program) -> None:
        """Run ``program`` on both sides, and note a difference of a new kind that is steady."""
        if _stopping is not None and _stopping.is_set():
            return
        self.tally.tried += 1
        self.tally.operations += len(program.ops)
        kind = _ask(program, self.slot).kind
        if kind in self.known:
            self.tally.known += 1
        elif kind and not self._always(program, kind):
            self.tally.unsteady += 1
        elif kind:
            self.known |= {kind}
            self.tally.findings.append(self._finding(program, kind))

    def _always(self, program: Program, kind: str) -> bool:
        """True if ``program`` shows a difference of this kind every time."""
        return all(_ask(program, self.slot).kind == kind for _ in range(ASKED - 1))

    def _finding(self, program: Program, kind: str) -> Finding:
        """The smallest program with such a difference, and the host's steps up to it."""
        least = smallest(program, lambda smaller: _ask(smaller, self.slot).kind == kind)
        asked = _ask(least, self.slot)
        if asked.kind != kind or not self._always(least, kind):
            least, asked = program, _ask(program, self.slot)
        end = asked.step + 1
        return Finding(
            attrs.evolve(least, ops=least.ops[:end], steps=asked.host.steps[:end]), asked.said, kind
        )


def hunt(seed: int, count: int, slot: int = 0, known: frozenset[str] = frozenset()) -> Tally:
    """Try ``count`` programs made from ``seed``; differences of a ``known`` kind are only
    counted."""
    import hypothesis
    from hypothesis import HealthCheck, Phase, given, settings

    one = _Hunt(slot, known)
    usual = settings(
        max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,), report_multiple_bugs=False, print_blob=False,
    )  # fmt: skip
    search = hypothesis.seed(seed)(usual(given(program=programs())(one.check)))
    search()
    return one.tally


_stopping: Event | None = None
"""Set by the main process on Ctrl-C: the others then stop after their current program."""


def _begin(stopping: Event) -> None:
    """Set up a worker process: it ignores Ctrl-C, which the main process handles."""
    global _stopping  # noqa: PLW0603 - a process of the pool gets it once, before its first task
    _stopping = stopping
    if hasattr(os, "setpgrp"):
        os.setpgrp()


def fuzz(
    seed: int, count: int, jobs: int = 1, progress: Callable[[Tally], None] = lambda _: None
) -> Tally:
    """Try at least ``count`` programs on ``jobs`` processes, fewer if interrupted by Ctrl-C."""
    with Crew():
        programs()
    total = Tally()
    chunks = _seeds(seed)
    context = multiprocessing.get_context("spawn")
    stopping = context.Event()
    with ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_begin, initargs=(stopping,)
    ) as pool:
        while total.tried < count and not stopping.is_set():
            kinds = frozenset(finding.signature for finding in total.findings)
            share = min(CHUNK, (count - total.tried + jobs - 1) // jobs)
            with interrupts.deaf():
                runs = [pool.submit(hunt, next(chunks), share, slot, kinds) for slot in range(jobs)]
            try:
                for run in runs:
                    _merge(total, _result(run, stopping))
                progress(total)
            except BaseException:
                stopping.set()
                raise
            total.stopped = stopping.is_set()
    return total


def _result(run: Future[Tally], stopping: Event) -> Tally:
    """What the run has found; after Ctrl-C, what it had found by then."""
    try:
        return run.result()
    except KeyboardInterrupt:
        stopping.set()
        return run.result()


def _seeds(seed: int) -> Iterator[int]:
    number = 0
    while True:
        yield seed * 1_000_003 + number
        number += 1


def _merge(total: Tally, part: Tally) -> None:
    """Add the results of ``part``; of two findings of one kind the smaller one is kept."""
    for finding in part.findings:
        twins = [other for other in total.findings if other.signature == finding.signature]
        if twins and len(twins[0].program.ops) <= len(finding.program.ops):
            continue
        total.findings = [other for other in total.findings if other not in twins] + [finding]
    total.add(attrs.evolve(part, findings=[]))


def as_json(program: Program) -> dict[str, Any]:
    """``program`` in the form of a recording."""
    ops = [dict(op.fields) for op in program.ops]
    more = {"q": program.question, "window": program.window}
    return {
        "name": program.name,
        **{key: text for key, text in more.items() if text},
        "ops": ops,
        "steps": list(program.steps),
    }


# ---------------------------------------------------------------- kemu conform fuzz


class _Words(argparse.ArgumentParser):
    """Reports a mistake in one line, as everywhere in kemu."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(
            f"conform fuzz: {message.removeprefix('argument ')}", hint="kemu conform fuzz --help"
        )


def _from(low: int, high: int) -> Callable[[str], int]:
    """The argparse type of a number from ``low`` to ``high``."""

    def number(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high):
            raise argparse.ArgumentTypeError(
                f"expected a number from {low} to {high}, got '{text[:20]}'"
            )
        return int(text)

    return number


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = _Words(
        prog="conform fuzz", description="Run random programs in kemu and on the host's kernel."
    )
    parser.add_argument(
        "--seed",
        type=_from(0, 2**63),
        default=0,
        help="the same seed makes the same programs (default 0)",
    )
    parser.add_argument(
        "--count", type=_from(1, 10**9), default=1000, help="how many programs (default 1000)"
    )
    parser.add_argument(
        "--jobs", type=_from(1, 256), default=min(2, os.cpu_count() or 1), help="how many processes"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(),
        help="the folder for the smallest programs that differ (default .)",
    )
    return parser.parse_args(words)


def main(words: list[str], out: TextIO = sys.stdout, err: TextIO = sys.stderr) -> int:
    """``conform fuzz``: the exit status, 0 if there was no difference, 2 if it cannot run here, 3
    if there was a difference, 130 if stopped by Ctrl-C."""
    asked = _arguments(words)
    start = time.monotonic()
    written: dict[str, str] = {}

    def tell(tally: Tally) -> None:
        err.write(f"{_counts(tally, start)}\n")
        err.flush()
        _write_new(asked.out, asked.seed, tally, written)

    try:
        asked.out.mkdir(parents=True, exist_ok=True)
        total = fuzz(asked.seed, asked.count, asked.jobs, tell)
    except (HostUnavailable, UsageError) as error:
        err.write(f"conform fuzz: {error}\n")
        return 2
    except OSError as error:
        err.write(
            f"conform fuzz: cannot write to '{asked.out}': {error.strerror}; name another folder "
            "with --out\n"
        )
        return 2
    out.writelines(
        f"{written[finding.signature]}: {finding.difference}\n" for finding in total.findings
    )
    out.write(f"{_counts(total, start)}\n")
    if total.stopped:
        out.flush()
        err.write(f"stopped: {total.tried} of {asked.count} programs were tried\n")
        return STOPPED
    return 3 if total.findings else 0


def _write_new(folder: Path, seed: int, tally: Tally, written: dict[str, str]) -> None:
    """Write each finding to a file of its own; a smaller one replaces an earlier one of the same
    kind."""
    for finding in tally.findings:
        file = Path(
            written.setdefault(finding.signature, str(folder / f"fuzz-{seed}-{len(written)}.json"))
        )
        program = attrs.evolve(finding.program, name=file.stem, question=finding.difference)
        file.write_text(json.dumps(as_json(program)) + "\n")


def _counts(total: Tally, start: float) -> str:
    seconds = time.monotonic() - start
    return (
        f"{total.tried} programs, {total.operations} operations, {seconds:.0f} s "
        f"({total.tried / max(seconds, 1e-9):.1f} a second): "
        f"{len(total.findings)} kinds of difference, {total.known} more of a known kind, "
        f"{total.unsteady} unsteady"
    )

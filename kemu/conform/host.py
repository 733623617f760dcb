"""Run a program on the kernel of the computer that kemu runs on, and compare with kemu.

    program -> HostCast (processes of the host) -> perform each operation -> look at every live
    process -> steps

The steps have the form of a recording, so compare.py can compare them and they can be saved as one.
This needs neither a compiler nor root; what only root can see is left out and listed
(``HostRun.left_out``).  ``HostUnavailable`` says why this host cannot be used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TextIO

import attrs

from kemu.conform.compare import Difference, first_difference
from kemu.conform.hostcast import HostCast
from kemu.conform.hostops import HostAct
from kemu.conform.hostsee import HostPage
from kemu.conform.hostworker import SECONDS, Ended
from kemu.conform.perform import perform
from kemu.conform.program import Op, Program, load_programs, recordings
from kemu.conform.replay import Run, happened, replay
from kemu.conform.steps import Observation, PageSeen, Step
from kemu.errors import HostUnavailable, UsageError

FOR_ROOT = ("page identity", "mapcount", "page flags")
"""What cannot be seen without root."""

TRIES = 3
"""How often the host runs a program at most."""


@attrs.frozen
class HostRun:
    """``steps``: those of the operations that the host performed; ``left_out``: what could not be
    seen; ``stopped``: why the run ended early, "" if it did not."""

    steps: tuple[Step, ...]
    left_out: tuple[str, ...] = ()
    stopped: str = ""


def run_on_host(program: Program, slot: int = 0, seconds: float = SECONDS) -> HostRun:
    """Run ``program`` on the host's kernel.  ``slot`` selects the allowed CPU that is the program's
    CPU 0."""
    try:
        with HostCast(program, slot, seconds) as cast:
            return _HostReplay(program, cast).run()
    except Ended as error:
        raise HostUnavailable(f"the worker cannot start on this host: {error}") from None


class _HostReplay:
    """One run, and what was observed last."""

    def __init__(self, program: Program, cast: HostCast) -> None:
        self.program = program
        self.cast = cast
        self.last: Mapping[str, Observation] = {}
        self.steps: list[Step] = []

    def run(self) -> HostRun:
        left_out = () if self.cast.eyes.rooted else FOR_ROOT
        for number, op in enumerate(self.program.ops):
            try:
                self.steps.append(self._step(op))
            except (Ended, HostUnavailable) as error:
                return HostRun(
                    tuple(self.steps), left_out, f"operation {number} ({op.kind}): {error}"
                )
        return HostRun(tuple(self.steps), left_out)

    def _step(self, op: Op) -> Step:
        cast = self.cast
        if op.p not in cast.crew.members or op.get("t", op.p) not in cast.crew.members:
            return {"res": {"skipped": "no such process"}, "live": cast.live(), "obs": {}}
        res = perform(HostAct(cast, op))
        if op.kind == "exec" and "sig" in res and "I" not in res["pf"]:
            raise Ended("the code there is no RET (write 195 first)")
        looked = self._look(op, res) if self.program.observed and not op.get("noobs") else {}
        return {"res": res, "live": cast.live(), "obs": looked}

    def _look(self, op: Op, res: dict[str, Any]) -> dict[str, Observation]:
        """The observations that are new, or differ from the previous ones."""
        seen: dict[str, Observation] = {}
        found: dict[str, list[HostPage]] = {}
        for name in self.cast.live():
            seen[name], found[name] = self.cast.sights[name].look(self.cast.start)
        self.cast.identities.name_pages(found, happened(self.cast.identities, op, res))
        changed = {
            name: observation
            for name, observation in seen.items()
            if self.last.get(name) != observation
        }
        self.last = seen
        return changed


# ---------------------------------------------------------------- comparing


@attrs.frozen
class Meeting:
    """One program on both sides; ``difference`` is the first one in the fields that both have."""

    program: Program
    host: HostRun
    kemu: Run
    difference: Difference | None


def meet(program: Program, slot: int = 0) -> Meeting:
    """Run ``program`` on the host and in kemu, and compare the steps that both reached.  If they
    differ, the host runs it again: other work on its CPU can empty a batch of pages a little
    earlier."""
    kemu = replay(program)
    meeting = compare_with(program, run_on_host(program, slot), kemu)
    for _ in range(TRIES - 1):
        if meeting.difference is None or meeting.host.stopped:
            break
        meeting = compare_with(program, run_on_host(program, slot), kemu)
    return meeting


def compare_with(program: Program, host: HostRun, kemu: Run) -> Meeting:
    """Compare two runs in the fields that the host could see."""
    linux, mine = without_own_locks(program, host.steps), without_own_locks(program, kemu.steps)
    if host.left_out:
        linux, mine = without_root(linux), without_root(mine)
    found = first_difference(attrs.evolve(program, steps=linux), mine)
    return Meeting(program, host, kemu, found)


def without_own_locks(program: Program, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """``steps`` without VmLck from the first mlockall(current) on, which also locks the worker's
    own memory: that is smaller than the stand-in's."""
    first = next(
        (number for number, op in enumerate(program.ops) if "current" in op.get("flags", ())),
        len(program.ops),
    )
    later: list[Step] = [{**step, "obs": _no_locks(step["obs"])} for step in steps[first:]]
    return (*steps[:first], *later)


def _no_locks(seen: Mapping[str, Observation]) -> dict[str, Observation]:
    return {
        name: {**one, "mm": {key: value for key, value in one["mm"].items() if key != "VmLck"}}
        for name, one in seen.items()
    }


def without_root(steps: Iterable[Step]) -> tuple[Step, ...]:
    """``steps`` without what only root can see."""
    return tuple(
        {**step, "obs": {name: _plain(seen) for name, seen in step["obs"].items()}}
        for step in steps
    )


def _plain(seen: Observation) -> Observation:
    pages: dict[str, PageSeen] = {key: {"pm": page["pm"]} for key, page in seen["pages"].items()}
    return {**seen, "pages": pages}


# ---------------------------------------------------------------- kemu conform host FILE


def show(meeting: Meeting, out: TextIO) -> None:
    """Print what the host and kemu did, step by step, and the first difference."""
    host, kemu = meeting.host, meeting.kemu
    out.write(f"{meeting.program.name}\n")
    for number, op in enumerate(meeting.program.ops[: max(len(host.steps), len(kemu.steps))]):
        theirs, mine = (
            outcome(run.steps[number]) if number < len(run.steps) else "-" for run in (host, kemu)
        )
        mark = " " if theirs == mine else "*"
        both = f"host and kemu: {theirs}" if theirs == mine else f"host: {theirs}   kemu: {mine}"
        out.write(f"{mark}{number:4} {op!s:<60} {both}\n")
    if host.left_out:
        out.write(f"left out, because only root can see it: {', '.join(host.left_out)}\n")
        out.write(
            "limits that do not apply to root (locked memory, low addresses) apply here; in kemu "
            "every process is root\n"
        )
    if host.stopped:
        out.write(f"the host's run ended: {host.stopped}\n")
    out.write(
        f"first difference: {_plainly(meeting.difference)}\n"
        if meeting.difference
        else "no difference\n"
    )


def _plainly(difference: Difference) -> str:
    return str(difference).replace(": Linux ", ": host ", 1)


def outcome(step: Step) -> str:
    """The result of a step in a few words."""
    res = step["res"]
    if "sig" in res:
        where = (
            res["addr"]
            if isinstance(res["addr"], str)
            else f"page {res['addr'][0]}+{res['addr'][1]}"
        )
        text = f"{res['sig']} {res['code']} at {where} ({res['pf'] or '-'})"
    elif "err" in res:
        text = str(res["err"])
    else:
        shown = {key: value for key, value in res.items() if key not in ("flt", "ok")}
        text = " ".join(f"{key} {_short(value)}" for key, value in shown.items()) or "ok"
    faults = res.get("flt", [0, 0])
    return (
        text
        + (f", {faults[0]} minor" if faults[0] else "")
        + (f", {faults[1]} major" if faults[1] else "")
    )


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return "+".join(str(part) for part in value.values())
    text = str(value)
    return text if len(text) <= 32 else text[:29] + "..."


def main(words: list[str], out: TextIO = sys.stdout, err: TextIO = sys.stderr) -> int:
    """``conform host FILE...``: the exit status, 0 if nothing differs, 2 if it cannot run here, 3
    if something differs."""
    if not words:
        err.write("conform host FILE...: expected a file with a program\n")
        return 2
    status = 0
    try:
        for word in words:
            for file in recordings(Path(word)):
                for program in load_programs(file):
                    meeting = meet(program)
                    show(meeting, out)
                    status = 3 if meeting.difference else status
    except UsageError as error:
        err.write(f"{error.what}; {error.hint}\n")
        return 2
    except HostUnavailable as error:
        err.write(f"{error}\n")
        return 2
    return status

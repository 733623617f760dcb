"""Run a recorded program in kemu, and observe it after each operation as the recorder observed
Linux.

    program -> Cast (a fresh machine, process A) -> perform each operation -> observe every live
    process -> steps

The steps have the form of a recording, so they can be compared with one (compare.py) or saved as
one.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kemu.abi.uapi import PAGE_SIZE
from kemu.conform.act import Result
from kemu.conform.cast import Cast
from kemu.conform.identity import Happened, Identities
from kemu.conform.kemuops import KemuAct
from kemu.conform.observation import Mapped
from kemu.conform.perform import perform
from kemu.conform.program import Op, Program
from kemu.conform.steps import Observation, Step

CUTTING = frozenset({"ftruncate", "fallocate"})
"""Operations that remove pages of a file if they succeed; madvise(REMOVE) does so too."""


@attrs.frozen
class Run:
    """The results of a program, step by step."""

    steps: tuple[Step, ...]


def replay(program: Program) -> Run:
    """Run ``program`` on a fresh machine."""
    return Replay(program).run()


class Replay:
    """One run: the cast (a fresh one unless given), and what was observed last."""

    def __init__(self, program: Program, cast: Cast | None = None) -> None:
        self.program = program
        self.cast = cast or Cast(program)
        self.last: Mapping[str, Observation] = {}

    def run(self) -> Run:
        """Perform all operations."""
        return Run(tuple(map(self.step, self.program.ops)))

    def step(self, op: Op) -> Step:
        """Perform ``op`` and observe."""
        cast = self.cast
        if op.p not in cast.processes or op.get("t", op.p) not in cast.processes:
            return {"res": {"skipped": "no such process"}, "live": cast.live(), "obs": {}}
        res = perform(KemuAct(cast, op))
        cast.bury()
        looked = self._look(op, res) if self.program.observed and not op.get("noobs") else {}
        return {"res": res, "live": cast.live(), "obs": looked}

    def _look(self, op: Op, res: Result) -> dict[str, Observation]:
        """The observations that are new, or differ from the previous ones."""
        seen: dict[str, Observation] = {}
        found: dict[str, list[Mapped]] = {}
        for name in self.cast.live():
            seen[name], found[name] = self.cast.observe(name)
        self.cast.identities.name_pages(found, happened(self.cast.identities, op, res))
        changed = {
            name: observation
            for name, observation in seen.items()
            if self.last.get(name) != observation
        }
        self.last = seen
        return changed


def happened(identities: Identities, op: Op, res: Result) -> Happened:
    """What ``op`` did to pages, judged by its result."""
    remove = op.kind == "madvise" and op.fields["advice"] == "REMOVE"
    if "err" in res:
        return Happened(mover=op.p if op.kind == "mremap" else "", half_cut=remove)
    if op.kind == "mmap":
        return _mapped_anew(identities, op, res)
    if op.kind == "fork":
        return Happened(parent=op.p, child=op.fields["child"])
    return Happened(mover=op.p if op.kind == "mremap" else "", cut=remove or op.kind in CUTTING)


def _mapped_anew(identities: Identities, op: Op, res: Result) -> Happened:
    first = res["ret"]["page"]
    if first == "outside":
        return Happened()
    return Happened(
        fresh_in=identities.spaces[op.p],
        fresh=(first, first + (op.length() + PAGE_SIZE - 1) // PAGE_SIZE),
    )

"""Compare two runs of one program: the recorded one of the real kernel, and kemu's.

    result, live processes          exactly
    VMAs                            bounds, rights, offset, file, flags, every number of smaps
    pages                           pagemap letters, mapcount, flags, and *which* pages are the same
    mm                              every counter

The numbers that a run gives to its pages mean nothing by themselves: one renaming must fit the
whole program (``Renaming``).  Page flags that depend on the timing of per-CPU batches are not
compared: unevictable and mlocked, and from the program's first MADV_FREE on also swap-backed and
LazyFree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import attrs

from kemu.conform.program import Op, Program
from kemu.conform.steps import Observation, PageSeen, Step, VmaSeen

COMPARED_FLAGS = "UDMabxE"
"""Letters of ``kf`` that are compared; ``b`` only before the first MADV_FREE."""

VMA_FIELDS = ("perm", "off", "file", "fl")
NOTHING = "nothing"


@attrs.frozen
class Difference:
    """One field in which the two runs differ: number and operation of the step, the field, what
    Linux did, what kemu did."""

    step: int
    op: Op
    where: str
    linux: Any
    kemu: Any

    def __str__(self) -> str:
        return f"step {self.step} ({self.op}): {self.where}: Linux {self.linux}, kemu {self.kemu}"


class Renaming:
    """A one-to-one correspondence between the page names of the two runs, built as names are
    met."""

    def __init__(self) -> None:
        self._kemu: dict[int | str, int | str] = {"zero": "zero"}
        self._linux: dict[int | str, int | str] = {"zero": "zero"}

    def agree(self, linux: int | str | None, kemu: int | str | None) -> bool:
        """True if the two names can denote one page; two names met for the first time are
        paired."""
        if linux is None or kemu is None:
            return linux is kemu
        if linux not in self._kemu and kemu not in self._linux:
            self._kemu[linux] = kemu
            self._linux[kemu] = linux
        return self._kemu.get(linux) == kemu

    def explain(self, linux: int | str | None, kemu: int | str | None) -> tuple[str, str]:
        """Both names in words, for a pair that does not agree; kemu's page is given the name that
        it has in the recording."""
        known = self._linux.get(kemu) if kemu is not None else None
        if known is None:
            return f"page {linux}", "a page not seen before" if kemu is not None else NOTHING
        return f"page {linux}" if linux is not None else NOTHING, f"page {known}"


def differences(program: Program, steps: tuple[Step, ...]) -> Iterator[Difference]:
    """Every difference between the recorded steps of ``program`` and ``steps``, in order.
    ``steps`` may be shorter, if its run ended at an operation that could not be performed."""
    return _Comparison(program).run(steps)


def first_difference(program: Program, steps: tuple[Step, ...]) -> Difference | None:
    """The first difference, or None."""
    return next(iter(islice(differences(program, steps), 1)), None)


class _Comparison:
    """The state of the comparison as it goes through the steps."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.names = Renaming()
        self.first_free = program.first("madvise", advice="FREE")
        self.number = 0
        self.linux: dict[str, Observation] = {}
        self.kemu: dict[str, Observation] = {}

    def run(self, steps: tuple[Step, ...]) -> Iterator[Difference]:
        for number, (linux, kemu) in enumerate(zip(self.program.steps, steps, strict=False)):
            self.number = number
            yield from self._step(linux, kemu)

    def _differ(self, where: str, linux: Any, kemu: Any) -> Difference:
        return Difference(self.number, self.program.ops[self.number], where, linux, kemu)

    def _step(self, linux: Step, kemu: Step) -> Iterator[Difference]:
        yield from self._mapping("result", linux["res"], kemu["res"])
        if linux["live"] != kemu["live"]:
            yield self._differ("live processes", linux["live"], kemu["live"])
        self.linux.update(linux["obs"])
        self.kemu.update(kemu["obs"])
        for name in linux["live"]:
            if name in kemu["live"] and (name in linux["obs"] or name in kemu["obs"]):
                yield from self._process(name)

    def _process(self, name: str) -> Iterator[Difference]:
        """Compare the present state of a process that changed on either side."""
        linux, kemu = self.linux.get(name), self.kemu.get(name)
        if linux is None or kemu is None:
            yield self._differ(
                name, "observed" if linux else NOTHING, "observed" if kemu else NOTHING
            )
            return
        yield from self._vmas(name, linux["vmas"], kemu["vmas"])
        yield from self._pages(name, linux["pages"], kemu["pages"])
        yield from self._mapping(f"{name} mm", linux["mm"], kemu["mm"])

    def _mapping(
        self, where: str, linux: Mapping[str, Any], kemu: Mapping[str, Any]
    ) -> Iterator[Difference]:
        """Compare two objects, field by field."""
        if linux == kemu:
            return
        for key in sorted({*linux, *kemu}):
            mine, theirs = kemu.get(key, NOTHING), linux.get(key, NOTHING)
            if mine != theirs:
                yield self._differ(f"{where}.{key}", theirs, mine)

    def _vmas(self, name: str, linux: list[VmaSeen], kemu: list[VmaSeen]) -> Iterator[Difference]:
        if linux == kemu:
            return
        if [_bounds(vma) for vma in linux] != [_bounds(vma) for vma in kemu]:
            yield self._differ(f"{name} VMAs", _outline(linux), _outline(kemu))
            return
        for theirs, mine in zip(linux, kemu, strict=True):
            where = f"{name} VMA {theirs['s']}-{theirs['e']}"
            yield from self._mapping(where, _plain_fields(theirs), _plain_fields(mine))
            yield from self._mapping(
                f"{where} smaps", self._numbers(theirs["st"]), self._numbers(mine["st"])
            )

    def _numbers(self, smaps: dict[str, int]) -> dict[str, int]:
        if self.number < self.first_free:
            return smaps
        return {key: value for key, value in smaps.items() if key != "LazyFree"}

    def _pages(
        self, name: str, linux: dict[str, PageSeen], kemu: dict[str, PageSeen]
    ) -> Iterator[Difference]:
        for key in sorted({*linux, *kemu}, key=int):
            theirs, mine = linux.get(key), kemu.get(key)
            where = f"{name} page {key}"
            if theirs is None or mine is None:
                yield self._differ(where, _summary(theirs), _summary(mine))
            else:
                yield from self._page(where, theirs, mine)

    def _page(self, where: str, linux: PageSeen, kemu: PageSeen) -> Iterator[Difference]:
        if linux["pm"] != kemu["pm"]:
            yield self._differ(f"{where} pagemap", linux["pm"], kemu["pm"])
        if not self.names.agree(linux.get("id"), kemu.get("id")):
            yield self._differ(
                f"{where} identity", *self.names.explain(linux.get("id"), kemu.get("id"))
            )
        if linux.get("mc") != kemu.get("mc"):
            yield self._differ(
                f"{where} mapcount", linux.get("mc", NOTHING), kemu.get("mc", NOTHING)
            )
        theirs, mine = self._flags(linux), self._flags(kemu)
        if theirs != mine:
            yield self._differ(f"{where} flags", theirs, mine)

    def _flags(self, page: PageSeen) -> str:
        seen = page.get("kf", "")
        compared = (
            COMPARED_FLAGS if self.number < self.first_free else COMPARED_FLAGS.replace("b", "")
        )
        return "".join(letter for letter in compared if letter in seen)


def _bounds(vma: VmaSeen) -> tuple[int | str, int]:
    return vma["s"], vma["e"]


def _plain_fields(vma: VmaSeen) -> dict[str, Any]:
    fields: Mapping[str, Any] = vma
    return {name: fields[name] for name in VMA_FIELDS}


def _outline(vmas: list[VmaSeen]) -> str:
    """All VMAs on one line."""
    return " ".join(f"{vma['s']}-{vma['e']}:{vma['perm']}:{vma['file']}" for vma in vmas) or NOTHING


def _summary(page: PageSeen | None) -> str:
    if page is None:
        return NOTHING
    return f"{page['pm']} page {page['id']}" if "id" in page else page["pm"]

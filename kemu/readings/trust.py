"""Whether the kernel is right: invariants that do not hold, wrong kernels."""

from __future__ import annotations

from kemu.readings.base import Reading


class ViolationReading(Reading):
    """An invariant that does not hold. ``place``: where; ``has``: what is there; ``wants``: what it
    is compared with."""

    invariant: str
    reason: str
    place: str
    has: str
    wants: str


class VerifyReading(Reading):
    """Invariants checked at one moment, or after each of ``events`` events up to ``event``;
    ``function``: the innermost kernel function of the first event that broke one, or ""."""

    event: int
    events: int
    checked: int
    function: str
    violations: tuple[ViolationReading, ...]


class MutantRow(Reading):
    """A wrong kernel. ``place``: the function that is wrong; ``caught``: what notices it."""

    name: str
    place: str
    story: str
    caught: str


class MutantList(Reading):
    """All wrong kernels, and how many are planted now."""

    mutants: tuple[MutantRow, ...]
    planted: int


class MutantReading(Reading):
    """A mutant and its patch: the lines of a unified diff against the kernel's source.
    ``planted``: it has just been planted."""

    mutant: MutantRow
    diff: tuple[str, ...]
    planted: bool = False

"""Comparisons with the real kernel."""

from __future__ import annotations

from kemu.readings.base import Reading


class DifferenceRow(Reading):
    """A place in which kemu and Linux disagree: ``program``, number of the ``step``, its
    ``operation``, the field ``where`` they do, and both values as text."""

    program: str
    step: int
    operation: str
    where: str
    linux: str
    kemu: str


class Conformance(Reading):
    """The results of recorded programs. ``agree``, ``differ`` and ``stopped`` (those that took too
    long) count programs; ``differences`` holds the first one of each that differs, or all."""

    programs: int
    operations: int
    agree: int
    differ: int
    stopped: int
    differences: tuple[DifferenceRow, ...]


class RealRow(Reading):
    """One operation on the host and in kemu: the ``command`` of the experiment that it came from,
    ``operation`` as it was asked, and what each side gave."""

    command: str
    operation: str
    host: str
    kemu: str
    same: bool


class RealReading(Reading):
    """The experiment on the host, compared with kemu. ``difference``: the first one in results or
    observations, or "". ``unexpressed``: (command, why) of what could not be repeated;
    ``left_out``: what the host does not show; ``stopped``: why its run ended early, or ""."""

    kernel: str
    rows: tuple[RealRow, ...]
    difference: str
    unexpressed: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()
    stopped: str = ""

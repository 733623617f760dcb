"""Schedules of kernel paths as text, to be read, kept and played again.

    0*12,1*30,0*5        CPU 0 takes 12 steps, CPU 1 takes 30, CPU 0 takes 5
    011010               one digit per step, as the litmus programs write it

If the text ends before the run, the CPU that ran last continues, then the others.
"""

from __future__ import annotations

import re
from itertools import groupby

from kemu.errors import UsageError

LONGEST = 100_000
"""The most steps of a schedule; a longer one is a typing error."""

_RUN = re.compile(r"(?P<cpu>[0-7])\*(?P<steps>[0-9]{1,6})\Z", re.ASCII)
_DIGITS = re.compile(r"[0-7]+\Z", re.ASCII)


def write(choices: list[int]) -> str:
    """The text of a schedule."""
    return ",".join(f"{cpu}*{len(list(run))}" for cpu, run in groupby(choices))


def looks_like_one(text: str) -> bool:
    """True for a text that could be a schedule, right or wrong."""
    return bool(text) and text[0] in "01234567" and not text.strip("0123456789*,")


def read(text: str, cpus: int) -> list[int]:
    """The choices of a schedule for ``cpus`` CPUs.  ``UsageError`` names the part that cannot be
    read."""
    choices: list[int] = []
    for part in text.split(","):
        choices += _part(part)
        if len(choices) > LONGEST:
            raise UsageError(
                f"schedule: more than {LONGEST} steps",
                hint="0*12 is twelve steps of CPU 0",
                about="schedule",
            )
    wrong = next((cpu for cpu in choices if cpu >= cpus), None)
    if wrong is not None:
        raise UsageError(
            f"schedule: no CPU {wrong} in this race",
            hint=f"{cpus} CPUs race here, 0 to {cpus - 1}",
            about="schedule",
        )
    return choices


def _part(part: str) -> list[int]:
    match = _RUN.match(part)
    if match is not None:
        return [int(match["cpu"])] * min(int(match["steps"]), LONGEST + 1)
    if _DIGITS.match(part):
        return [int(digit) for digit in part[: LONGEST + 1]]
    hint = "0*12,1*30 is twelve steps of CPU 0, then thirty of CPU 1; or one digit per step: 0110"
    raise UsageError(f"schedule: cannot read '{part[:40]}'", hint=hint, about="schedule")

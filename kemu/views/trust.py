"""Invariants and wrong kernels for the terminal."""

from __future__ import annotations

from textwrap import wrap

from kemu.readings import MutantList, MutantReading, VerifyReading, ViolationReading
from kemu.views.style import Style, plural

SHOWN = 20
"""Maximum number of violations shown; the rest are counted."""


def verify(reading: VerifyReading, style: Style) -> str:
    """verify: that all invariants hold, or each that does not, with both values."""
    r = reading
    where = f"at each of {plural(r.events, 'event')}" if r.events else f"at #{r.event}"
    if not r.violations:
        return f"{plural(r.checked, 'invariant')} hold {where}"
    head = (
        f"first broken by #{r.event}" + (f" in {r.function}" if r.function else "")
        if r.events
        else f"broken at #{r.event}"
    )
    lines = [f"{head}: {plural(len(r.violations), 'violation')}"]
    named = ""
    for violation in r.violations[:SHOWN]:
        if violation.invariant != named:
            named = violation.invariant
            lines += [f"{style.paint(named, 'name')}", *indented(violation.reason, style)]
        lines += _violation(violation, style)
    if len(r.violations) > SHOWN:
        lines.append(f"and {len(r.violations) - SHOWN} more")
    return "\n".join(lines)


def indented(text: str, style: Style) -> list[str]:
    """The text, two columns in."""
    return wrap(text, style.width, initial_indent="  ", subsequent_indent="  ")


def _violation(violation: ViolationReading, style: Style) -> list[str]:
    text = f"{violation.place}: {violation.has}, but {violation.wants}"
    return wrap(
        text, style.width, initial_indent="    ", subsequent_indent="      ", break_on_hyphens=False
    )


def mutant_list(reading: MutantList, style: Style) -> str:
    """Mutant list: name and story of every wrong kernel, and what notices it."""
    lines: list[str] = []
    for mutant in reading.mutants:
        lines.append(f"{style.paint(mutant.name, 'name')}  noticed by {mutant.caught}")
        lines += wrap(mutant.story, style.width, initial_indent="    ", subsequent_indent="    ")
    planted = "one is planted: find it" if reading.planted else "none is planted"
    return "\n".join([*lines, f"{plural(len(reading.mutants), 'wrong kernel')}; {planted}"])


def mutant(reading: MutantReading, style: Style) -> str:
    """What is wrong, where, the patch, and what would notice it."""
    m = reading.mutant
    head = "planted: " if reading.planted else ""
    lines = [f"{head}{style.paint(m.name, 'name')} in {m.place}", *indented(m.story, style)]
    return "\n".join([*lines, *reading.diff, f"noticed by: {m.caught}"])

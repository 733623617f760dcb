"""Comparisons with the real kernel, for the terminal."""

from __future__ import annotations

from textwrap import wrap

from kemu.readings import Conformance, DifferenceRow, RealReading, RealRow
from kemu.views.style import Style, plural


def difference_row(row: DifferenceRow, style: Style) -> str:
    """One difference: where, and both sides below each other."""
    head = f"{style.paint(row.program, 'name')}: step {row.step}, {row.operation}"
    return "\n".join([head, f"  {row.where}", f"    Linux  {row.linux}", f"    kemu   {row.kemu}"])


def conformance(reading: Conformance, style: Style) -> str:
    """All differences, and the totals."""
    return "\n".join(
        [*(difference_row(row, style) for row in reading.differences), summary(reading)]
    )


def summary(reading: Conformance) -> str:
    """One line: how many programs agree."""
    counts = f"{plural(reading.programs, 'program')}, {plural(reading.operations, 'operation')}"
    return f"{counts}: {reading.agree} agree, {reading.differ} differ" + (
        f", {reading.stopped} stopped: timed out" if reading.stopped else ""
    )


def real(reading: RealReading, style: Style) -> str:
    """The host's answers next to kemu's; ``*`` where they differ."""
    lines = [f"on this host ({reading.kernel}) and in kemu:"]
    for row in reading.rows:
        lines += _row(row, style)
    for command, why in reading.unexpressed:
        lines += wrap(
            f"not repeated: {command}: {why}",
            style.width,
            subsequent_indent="  ",
            break_long_words=False,
        )
    if reading.left_out:
        lines.append(f"not compared, since it needs root: {', '.join(reading.left_out)}")
    if reading.stopped:
        lines.append(f"the host's run ended early: {reading.stopped}")
    lines.append(
        f"first difference: {reading.difference}" if reading.difference else "no difference"
    )
    return "\n".join(lines)


def _row(row: RealRow, style: Style) -> list[str]:
    """The command with the common result, or both results."""
    if row.same:
        return [f"  {row.command}", f"      both  {row.host}"]
    return [
        style.paint(f"* {row.command}", "changed"),
        f"      host  {row.host}",
        f"      kemu  {row.kemu}",
    ]

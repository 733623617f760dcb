"""One page as three lines, before and after.

    kid 0x10000
      VMA    0x10000-0x11000 rw-p anonymous
    * PTE    pfn 0x112  P-UAD---N          -> pfn 0x117  PWUAD---N
    * frame  0x112  ref 2 map 2  app kid   -> 0x117  ref 1 map 1 exclusive  kid

A line that did not change is drawn once; a changed one begins with ``*``, with the new state after
the arrow. Where the two do not fit side by side, the newer one is below.
"""

from __future__ import annotations

from kemu.readings import EntryReading, FrameReading, PagePicture, PageState, ThreeLines, VmaReading
from kemu.views.style import Style, plural

LABELS = ("VMA", "PTE", "frame")
NONE = "none"


def three_lines(reading: ThreeLines, style: Style) -> str:
    """All pages of the picture."""
    lines = [line for page in reading.pages for line in page_lines(page, style)]
    if reading.more:
        lines.append(f"{style.glyphs.more} and {plural(reading.more, 'page')} more")
    return "\n".join(lines)


def page_lines(reading: PagePicture, style: Style) -> list[str]:
    """One page: whose it is, and the three lines."""
    before, after = _texts(reading.before), _texts(reading.after)
    changed = [old for old, new in zip(before, after, strict=True) if old != new]
    column = max(map(len, changed), default=0)
    room = style.width - 9 - 4
    beside = (
        column
        + max((len(new) for old, new in zip(before, after, strict=True) if old != new), default=0)
        <= room
    )
    lines = [f"{reading.name} {reading.address:#x}"]
    for label, old, new in zip(LABELS, before, after, strict=True):
        lines += _line(label, old, new, column if beside else -1, style)
    return lines


def _line(label: str, old: str, new: str, column: int, style: Style) -> list[str]:
    if old == new:
        return [f"  {label:<5}  {new}"]
    head = f"{style.paint('*', 'changed')} {label:<5}  "
    if column >= 0:
        return [f"{head}{old:<{column}} -> {new}"]
    return [head + old, f"      -> {new}"]


def _texts(state: PageState | None) -> tuple[str, str, str]:
    """The three lines at one moment."""
    if state is None:
        return ("no address space", NONE, NONE)
    return _vma(state.vma), _entry(state.entry), _frame(state.frame)


def _vma(vma: VmaReading | None) -> str:
    if vma is None:
        return NONE
    return f"{vma.start:#x}-{vma.end:#x} {vma.perm} {vma.name or 'anonymous'}"


def _entry(entry: EntryReading) -> str:
    if entry.kind == "none":
        return NONE if entry.level == "pte" else f"no table below {entry.level}"
    text = (
        f"pfn {entry.pfn:#x}  {entry.letters}"
        if entry.pfn is not None
        else f"{entry.kind} {entry.value:#x}"
    )
    return f"{text}  {entry.note}" if entry.note else text


def _frame(frame: FrameReading | None) -> str:
    if frame is None:
        return NONE
    if frame.state == "zero":
        return f"{frame.pfn:#x}  the zero page"
    owners = list(dict.fromkeys(holder.name or holder.what for holder in frame.holders))
    shown = " ".join(owners[:3]) + (" ..." if len(owners) > 3 else "")
    exclusive = " exclusive" if frame.exclusive else ""
    return f"{frame.pfn:#x}  ref {frame.refcount} map {frame.mapcount}{exclusive}  {shown}".rstrip()

"""walk: an address cut into its fields, the entry picked in each table, and where the walk ends.

     63            48 47     39 38     30 29     21 20     12 11          0
    |0000000000000000|000000000|000000000|000000000|000010000|000000000100|
     sign 0           pgd 0     pud 0     pmd 0     pte 16    offset 0x4

    root 0xa000
     v
    pgd  frame 0xa  [0]  0x000000000000b067 PWUAD----  to table 0xb
     |   present, write, user, accessed, dirty

The fields come with the reading, so the same code draws every format, a textbook's too.
"""

from __future__ import annotations

from kemu.readings import AddressField, EntryReading, WalkGraph
from kemu.views import memory
from kemu.views.pictures.model import Cell, Diagram, Edge, Node
from kemu.views.pictures.text import hanging, left, plain
from kemu.views.spaces import short
from kemu.views.style import Style, kib, printable
from kemu.views.tables import leads_to, legend, rights_text


def terminal(reading: WalkGraph, style: Style) -> list[str]:
    """The picture for a terminal."""
    r = reading
    lines = [_headline(r), "", *_ruler(r.fields, style), "", f"root {r.walk.root:#x}"]
    for step in r.walk.steps:
        lines += [f" {style.glyphs.down}", *_step(r, step, style)]
    return [*lines, *_end(r, style)]


def _headline(r: WalkGraph) -> str:
    who = f"{plain(r.walk.name)} (pid {r.walk.pid})" if r.walk.pid else r.walk.name
    return f"walk of {r.walk.address:#x} by {who}: {r.title}"


def _ruler(fields: tuple[AddressField, ...], style: Style) -> list[str]:
    """The address in binary, cut into fields: bit numbers above, names and values below."""
    g = style.glyphs
    bits = [f"{field.value:0{field.high - field.low + 1}b}" for field in fields]
    ends = [
        str(field.high) + " " + str(field.low) if field.high > field.low else str(field.high)
        for field in fields
    ]
    names = [_named(field) for field in fields]
    widths = [max(len(b), len(e), len(n)) for b, e, n in zip(bits, ends, names, strict=True)]
    numbers = [_spread(field, width) for field, width in zip(fields, widths, strict=True)]
    edges = ((g.corners[0], g.tees[2], g.corners[1]), (g.corners[2], g.tees[3], g.corners[3]))
    frame = [a + m.join(g.rule * width for width in widths) + z for a, m, z in edges]
    middle = (
        g.pipe
        + g.pipe.join(text.center(width) for text, width in zip(bits, widths, strict=True))
        + g.pipe
    )
    below = " " + " ".join(
        left(name, width, style) for name, width in zip(names, widths, strict=True)
    )
    return [" " + " ".join(numbers), frame[0], middle, frame[1], below.rstrip()]


def _spread(field: AddressField, width: int) -> str:
    """The numbers of the first and the last bit at both ends."""
    if field.high == field.low:
        return str(field.high).ljust(width)
    return str(field.high) + str(field.low).rjust(width - len(str(field.high)))


def _named(field: AddressField) -> str:
    """``pmd 12``, ``offset 0x4``."""
    return (
        f"{field.name} {field.value:#x}"
        if field.name in ("offset", "sign", "too high")
        else f"{field.name} {field.value}"
    )


def _step(r: WalkGraph, step: EntryReading, style: Style) -> list[str]:
    """A level: table, entry, and its bits in words."""
    table = f"{step.level}  {_table_at(r, step)}  [{step.index}]"
    first = f"{table}  {step.value:#0{r.entry_digits + 2}x} {step.letters}  {_target(step)}"
    return [first, *hanging(f" {style.glyphs.pipe}   ", spelled(step), style)]


def _target(step: EntryReading) -> str:
    return ("to " if step.pfn is not None else "") + leads_to(step)


def _table_at(r: WalkGraph, step: EntryReading) -> str:
    """Where the table is: its frame, in pages of the format."""
    return f"frame {step.entry_address >> r.page_shift:#x}"


def spelled(step: EntryReading) -> list[str]:
    """The bits that are set, in words."""
    return list(step.bits) or [
        "all bits are clear" if not step.value else "no bit that the hardware knows is set"
    ]


def _end(r: WalkGraph, style: Style) -> list[str]:
    """The frame and the byte, or where and why the walk stops."""
    w = r.walk
    if w.stopped:
        return [f" {style.glyphs.down}", *_stop(r)]
    about = memory.frame_line(w.frame).partition(" ")[2] if w.frame else ""
    lines = [
        f" {style.glyphs.down}",
        *hanging(f"{_frame_name(r)}  ", about.split(" "), style, " "),
        f"      {_byte(r)}",
    ]
    if w.rights:
        lines.append(f"rights {rights_text(w)}")
    return [*lines, *_accesses(r)]


def _frame_name(r: WalkGraph) -> str:
    return f"frame {(r.walk.physical or 0) >> r.page_shift:#x}"


def _byte(r: WalkGraph) -> str:
    w = r.walk
    holds = (
        f" holds {w.byte:#04x} {printable(bytes([w.byte]))}"
        if w.byte is not None
        else ": no RAM is there"
    )
    page = "" if w.page_size == 1 << r.page_shift else f"huge page of {kib(w.page_size)}: "
    return f"{page}{(w.physical or 0) - w.offset:#x} + {w.offset:#x} = {w.physical or 0:#x}{holds}"


def _stop(r: WalkGraph) -> list[str]:
    """Where and why the walk stops, and what an access would raise."""
    w = r.walk
    where = f"at {w.steps[-1].level}[{w.steps[-1].index}]" if w.steps else "before the first table"
    why = w.stopped
    if not w.canonical:
        why = "not canonical: " + (
            "the bits above are not all equal"
            if r.fields[0].name == "sign"
            else "it has too many bits"
        )
    lines = [f"STOP {where}: {why}"]
    if w.vma is not None:
        lines.append(f"VMA  {plain(short(w.vma))}")
    elif w.pid:
        lines.append("VMA  none covers the address")
    return [*lines, *_accesses(r)]


def _accesses(r: WalkGraph) -> list[str]:
    if not r.walk.canonical and r.walk.pid:
        return [
            "now   any access raises "
            + ("#GP" if r.walk.geometry.startswith("x86") else "a page fault")
        ]
    if not r.walk.faults:
        return []
    return [
        "now   "
        + ", ".join(
            f"a {name} faults ({code})" if code else f"a {name} is ok"
            for name, code in r.walk.faults
        )
    ]


# ---------------------------------------------------------------- as a diagram


def diagram(reading: WalkGraph) -> Diagram:
    """The address as one record, an arrow from each field to the entry that it picks."""
    r = reading
    cells = [
        Cell(f"{_named(field)}\nbits {field.high}-{field.low}", field.name) for field in r.fields
    ]
    nodes = [Node("address", (Cell(f"{r.walk.address:#x}", "head"), *cells), "table")]
    edges: list[Edge] = []
    before = ("address", "head")
    for step in r.walk.steps:
        key = f"table {step.level}"
        entry = (
            f"[{step.index}] {step.value:#0{r.entry_digits + 2}x}\n{step.letters}  "
            f"{_target(step)}\n{_in_lines(step)}"
        )
        head = Cell(f"{step.level}, {_table_at(r, step)}", "head")
        nodes.append(Node(key, (head, Cell(entry, "entry")), "table"))
        edges.append(Edge(*before, key, "head"))
        edges.append(Edge("address", step.level, key, "entry", dashed=True))
        before = (key, "entry")
    nodes.append(_last(r))
    edges.append(Edge(*before, "end", "head"))
    if not r.walk.stopped:
        edges.append(Edge("address", "offset", "end", "byte", dashed=True))
    bits = "bits: " + legend(r.walk.legend).replace("\N{NO-BREAK SPACE}", " ")
    rights = [f"rights {rights_text(r.walk)}"] if r.walk.rights else []
    said = [] if r.walk.stopped else [*rights, *_accesses(r)]
    return Diagram(_headline(r), tuple(nodes), tuple(edges), (*said, bits))


def _in_lines(step: EntryReading) -> str:
    """The bits in words, three to a line."""
    found = spelled(step)
    return "\n".join(", ".join(found[at : at + 3]) for at in range(0, len(found), 3))


def _last(r: WalkGraph) -> Node:
    """The frame with the byte, or the stop."""
    if r.walk.stopped:
        return Node("end", (Cell("\n".join(_stop(r)), "head"),), "frame")
    frame = r.walk.frame
    about = (
        f"\n{frame.state}, refcount {frame.refcount}, mapcount {frame.mapcount}" if frame else ""
    )
    return Node("end", (Cell(_frame_name(r) + about, "head"), Cell(_byte(r), "byte")), "frame")

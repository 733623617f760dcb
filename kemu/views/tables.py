"""Translation for the terminal: one walk, two walks side by side, whole page tables, TLBs, and the
small picture.

    VMA    0x10000-0x14000 rw-p of parent
    PTE    0x10000 P-UAD---N -> pfn 0x1a3       W is clear: a write faults
    frame  0x1a3 anon, refcount 2, mapcount 2: parent 0x10000, child 0x10000

The picture has these three lines before and after every step, so that what changed catches the eye.
"""

from __future__ import annotations

from itertools import groupby

from kemu.readings import (
    EntryReading,
    EntryRun,
    MemoryDump,
    PageTables,
    TableReading,
    TlbCpu,
    TlbReading,
    TlbRow,
    Translation,
)
from kemu.views import memory
from kemu.views.spaces import short
from kemu.views.style import TIE, Style, facts, numbered, paragraph, plural, printable, table

ALIKE_SHOWN = 3
"""How many consecutive leaves with the same bits are shown, in addition to the last."""


def legend(pairs: tuple[tuple[str, str], ...]) -> str:
    """What the letters of a format mean: ``P present, W write, ...``."""
    return numbered((letter, name.replace(" ", TIE)) for letter, name in pairs)


def leads_to(entry: EntryReading) -> str:
    """Where an entry leads: ``table 0x1f``, ``page 0x1a3 (zero page)``, ``nothing``."""
    words = {"none": "nothing", "table": "table", "page": "page", "huge": "huge page"}
    text = words.get(entry.kind, entry.kind) + ("" if entry.pfn is None else f" {entry.pfn:#x}")
    return text + (f" ({entry.note})" if entry.note else "")


def translation(reading: Translation, style: Style) -> str:
    """walk: every level, what the levels together allow, and what lies at the end."""
    r = reading
    head = (
        f"walk {style.paint(r.name, 'name')} {r.address:#x}  (pid {r.pid}, {r.geometry}, root "
        f"{r.root:#x})"
    )
    if not r.canonical:
        exception = "#GP" if r.geometry.startswith("x86") else "a page fault"
        return (
            f"{head}\n  not a canonical address: the CPU does not even walk, it raises {exception}"
        )
    rows = [
        (s.level, s.index, f"{s.entry_address:#x}", f"{s.value:#018x}", s.letters, leads_to(s))
        for s in r.steps
    ]
    lines = table("<LEVEL INDEX <ENTRY_AT <ENTRY <BITS <LEADS_TO", rows, "  ")
    return "\n".join([head, *lines, *facts(_verdict(r), style)])


def _verdict(r: Translation) -> list[tuple[str, str]]:
    """The lines below the levels."""
    shown = r.byte is not None and r.physical is not None
    return [
        ("stops", r.stopped),
        ("rights", "" if r.stopped else rights_text(r)),
        (
            "access",
            ", ".join(
                f"{access} faults ({code})" if code else f"{access} ok" for access, code in r.faults
            ),
        ),
        (
            "offset",
            f"{r.offset:#x} in a page of {r.page_size} bytes"
            if r.page_size != 4096
            else f"{r.offset:#x}",
        ),
        (
            "address",
            f"{r.physical:#x} holds {r.byte:#04x} {printable(bytes([r.byte or 0]))}"
            if shown
            else "",
        ),
        ("VMA", short(r.vma) if r.vma else "none: this address is not mapped"),
        ("frame", memory.frame_line(r.frame) if r.frame else ""),
        *[("TLB", tlb_line(row)) for row in r.tlb],
        ("bits", legend(r.legend)),
    ]


def rights_text(r: Translation) -> str:
    """``r--u: no write (pte), no execute (pte)``."""
    why = ", ".join(f"no {right} ({level})" for right, level in r.denied)
    return r.rights + (f": {why}" if why else "")


def tlb_line(row: TlbRow) -> str:
    """One TLB entry in a few words."""
    marks = [
        word
        for word, on in (("dirty", row.dirty), ("global", row.glob), ("STALE", row.stale))
        if on
    ]
    where = f"CPU {row.cpu} pcid {row.pcid}: {row.page:#x} -> {row.pfn:#x}"
    return f"{where} {row.rights} {' '.join(marks)}".rstrip()


def picture(reading: Translation, _style: Style) -> str:
    """The three lines: VMA, PTE, frame."""
    r = reading
    vma = f"{short(r.vma)} of {r.name}" if r.vma else f"none at {r.address:#x}"
    return "\n".join(
        [
            f"VMA    {vma}",
            f"PTE    {_pte_line(r)}",
            f"frame  {memory.frame_line(r.frame) if r.frame else 'none'}",
        ]
    )


def _pte_line(r: Translation) -> str:
    page = r.address & ~(r.page_size - 1)
    if not r.steps:
        return f"{page:#x} {r.stopped or 'no tables'}"
    leaf = r.steps[-1]
    if r.stopped:
        return f"{page:#x} {r.stopped} ({leaf.level})" + (
            f": {leads_to(leaf)}" if leaf.kind != "none" else ""
        )
    refused = [access for access, code in r.faults if code]
    note = f"   {' and '.join(refused)} would fault" if refused else ""
    return f"{page:#x} {leaf.letters} -> {leaf.pfn:#x}{note}"


def page_tables(reading: PageTables, style: Style) -> str:
    """pt: the tree of tables, runs of empty entries folded."""
    r = reading
    if r.root is None:
        return f"{r.name} (pid {r.pid}) has no page tables"
    head = f"page tables of {style.paint(r.name, 'name')} (pid {r.pid}, mm#{r.mm}, {r.geometry})"
    count = f"{plural(r.tables, 'table')}, {plural(r.leaves, 'leaf', 'leaves')}"
    lines = [f"{head}: {count}", _table_name(r.root)]
    _table_lines(r.root, "  ", style, lines)
    return "\n".join([*lines, *paragraph(legend(r.legend), style)])


def _table_name(node: TableReading) -> str:
    return f"{node.level} {node.pfn:#x}, {node.used} used"


def _table_lines(node: TableReading, indent: str, style: Style, lines: list[str]) -> None:
    for _, alike in groupby(node.runs, key=_look):
        runs = list(alike)
        if runs[0].table is None and len(runs) > ALIKE_SHOWN + 2:
            lines += [indent + text for text in _folded(runs, style)]
            continue
        for run in runs:
            lines.append(indent + _run_line(run, style))
            if run.table:
                _table_lines(run.table, indent + "  ", style, lines)


def _look(run: EntryRun) -> tuple[bool, str]:
    """Runs with equal looks may be folded."""
    return run.table is None, run.entry.letters if run.entry else ""


def _folded(runs: list[EntryRun], style: Style) -> list[str]:
    """The first runs, how many follow, the last."""
    pages = sum(run.count for run in runs[ALIKE_SHOWN:-1])
    first = [_run_line(run, style) for run in runs[:ALIKE_SHOWN]]
    return [
        *first,
        f"{style.glyphs.more} {pages} more pages with the same bits",
        _run_line(runs[-1], style),
    ]


def _run_line(run: EntryRun, style: Style) -> str:
    index = (
        f"[{run.first}]"
        if run.count == 1
        else f"[{run.first}{style.glyphs.more}{run.first + run.count - 1}]"
    )
    if run.entry is None:
        return f"{index} empty"
    target = leads_to(run.entry) + (f" and on ({run.count} pages)" if run.count > 1 else "")
    if run.table:
        target = _table_name(run.table)
    return f"{index} {run.start:#x} {run.entry.letters} -> {target}"


def tlb(reading: TlbReading, _style: Style) -> str:
    """tlb: the translations that each CPU holds, and what Linux knows about them."""
    return "\n".join(line for cpu in reading.cpus for line in _tlb_cpu(cpu))


def _tlb_cpu(cpu: TlbCpu) -> list[str]:
    lazy = ", lazy" if cpu.lazy else ""
    head = (
        f"CPU {cpu.cpu}: runs pid {cpu.curr}, mm#{cpu.loaded_mm} loaded{lazy}, cr3 {cpu.root:#x} "
        f"pcid {cpu.pcid}"
    )
    slots = [
        f"  slot {s.slot}: mm#{s.mm} (context {s.context_id}) at tlb_gen {s.tlb_gen}"
        + (f", {s.behind} behind" if s.behind else "")
        for s in cpu.slots
    ]
    rows = [_tlb_row(entry) for entry in cpu.entries]
    entries = table("PCID <PAGE PFN <RIGHTS D G <OF <", rows, "  ") if rows else ["  no entry"]
    return [head, *slots, *entries]


def _tlb_row(row: TlbRow) -> tuple[object, ...]:
    marks = ("D" if row.dirty else "-", "G" if row.glob else "-")
    return (
        row.pcid,
        f"{row.page:#x}",
        f"{row.pfn:#x}",
        row.rights,
        *marks,
        row.name,
        "STALE" if row.stale else "",
    )


def dump(reading: MemoryDump, _style: Style) -> str:
    """Bytes in lines of 16, as hexdump shows them; unmapped ranges are marked."""
    lines: list[str] = []
    for start, data in reading.chunks:
        if data is None:
            lines.append(f"{start:#014x}  not present")
            continue
        for at in range(0, len(data), 16):
            part = data[at : at + 16]
            lines.append(f"{start + at:#014x}  {part.hex(' '):<47}  {printable(part)}")
    return "\n".join(lines)

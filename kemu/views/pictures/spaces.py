"""mm, rmap and tree: structures that point at each other, drawn from where reading begins.

mm      tasks -> mm_struct -> VMAs -> anon_vma, or file -> page cache -> frames
rmap    the other way round: frame -> anon_vma or file -> VMA -> address -> entries
tree    processes with state and mm, and what they share
"""

from __future__ import annotations

from kemu.readings import (
    FamilyGraph,
    MmFile,
    MmGraph,
    MmVma,
    RmapGraph,
    RmapPath,
    TaskNode,
    TaskRow,
    TaskShares,
)
from kemu.views import memory
from kemu.views.pictures.model import Cell, Diagram, Edge, Node
from kemu.views.pictures.text import cut, hanging, plain
from kemu.views.spaces import short
from kemu.views.style import Style, plural
from kemu.views.tasks import exit_text

# ---------------------------------------------------------------- mm


def mm(reading: MmGraph, style: Style) -> list[str]:
    """The address space of a process, from its tasks down to the frames."""
    r, g = reading, style.glyphs
    lines = [f"mm#{r.mm.id} of {plain(r.mm.name)} (pid {r.mm.pid})", ""]
    holders = [(task, "mm") for task in r.tasks] + [
        (task, "active_mm, borrowed") for task in r.borrowers
    ]
    lines += [
        f"{_task(task)} {g.rule * 2}{field}{g.rule}{g.right} mm#{r.mm.id}"
        for task, field in holders
    ]
    lines += ["", *_mm_lines(r), g.pipe]
    for number, vma in enumerate(r.vmas):
        last = number == len(r.vmas) - 1
        lines.append(
            cut(f"{g.last if last else g.branch}{_vma_line(vma, r, g.right)}", style.width, style)
        )
    if not r.vmas:
        lines.append(f"{g.last}no mapping")
    return [*lines, *_hanging_things(r, style)]


def _task(task: TaskRow) -> str:
    return f"{plain(task.name)} ({_pid(task)})"


def _mm_lines(r: MmGraph) -> list[str]:
    m = r.mm
    rss = sum(count for name, count in m.rss if name != "MM_SWAPENTS")
    users = ", ".join(f"{plain(h.name)}" for h in m.users) or "nobody"
    counts = ", ".join(f"{h.what} {plain(h.name)}".strip() for h in m.counts) or "nobody"
    return [
        f"mm#{m.id}  mm_users {m.mm_users}: {users}",
        f"{'':<{len(str(m.id)) + 5}}mm_count {m.mm_count}: {counts}",
        (
            f"{'':<{len(str(m.id)) + 5}}pgd {m.pgd:#x}, {plural(m.pgtables_bytes >> 12, 'table')} "
            f"below, rss {plural(rss, 'page')}"
        ),
    ]


def _vma_line(vma: MmVma, r: MmGraph, arrow: str) -> str:
    to = [f"anon_vma#{number}" for number in vma.anon] + [_file_name(r, vma.file)] * bool(vma.file)
    target = f"  {arrow} {', '.join(to)}" if to else ""
    name = f" {plain(vma.vma.name)}" if vma.vma.name and not vma.file else ""
    at = f"+{vma.vma.offset:#x}" if vma.vma.offset else ""
    return (
        f"{vma.vma.start:#x}-{vma.vma.end:#x} {vma.vma.perm}{name}{at}  {vma.resident} of "
        f"{vma.vma.pages} pages{target}"
    )


def _file_name(r: MmGraph, inode: int) -> str:
    return next((plain(file.path) for file in r.files if file.inode == inode), f"inode {inode}")


def _hanging_things(r: MmGraph, style: Style) -> list[str]:
    lines = [""] if r.anon_vmas or r.files else []
    for anon in r.anon_vmas:
        origin = (
            "a root" if anon.root == anon.id else f"below anon_vma#{anon.parent}, root #{anon.root}"
        )
        lines.append(
            f"anon_vma#{anon.id}: {origin}; {plural(anon.vmas, 'VMA')} may map its "
            f"{plural(anon.pages, 'page')}"
        )
    for file in r.files:
        head = f"{plain(file.path)} ({file.kind}, {file.size} bytes), page cache: "
        lines += (
            hanging(head, _cached(file, style.glyphs.right), style)
            if file.cached
            else [head + "empty"]
        )
    return lines


def _cached(file: MmFile, arrow: str) -> list[str]:
    shown = [
        f"[{p.index}]{arrow}frame {p.pfn:#x} map {p.mapcount}{' dirty' if p.dirty else ''}"
        for p in file.pages
    ]
    hidden = file.cached - len(file.pages)
    return [*shown, f"{hidden} more"] if hidden else shown


def mm_diagram(reading: MmGraph) -> Diagram:
    """The same as nodes: tasks, the mm, VMAs, anon_vmas, files, cached frames."""
    r, key = reading, f"mm {reading.mm.id}"
    nodes = [
        Node(f"task {t.pid}", (Cell(_task(t), "head"),), "task") for t in (*r.tasks, *r.borrowers)
    ]
    edges = [Edge(f"task {t.pid}", "head", key, "head", "mm") for t in r.tasks]
    edges += [
        Edge(f"task {t.pid}", "head", key, "head", "active_mm\n(borrowed)", dashed=True)
        for t in r.borrowers
    ]
    vmas = [Cell(_vma_cell(vma), f"vma {vma.vma.start:#x}") for vma in r.vmas]
    head = "\n".join(line.strip() for line in _mm_lines(r))
    nodes.append(Node(key, (Cell(head, "head"), *vmas), "mm"))
    for anon in r.anon_vmas:
        counts = f"{plural(anon.vmas, 'VMA')}, {plural(anon.pages, 'page')}"
        text = f"anon_vma#{anon.id}\nroot #{anon.root}, parent #{anon.parent}\n{counts}"
        nodes.append(Node(f"anon {anon.id}", (Cell(text, "head"),), "anon"))
    for file in r.files:
        cells = [Cell(text, f"page {at}") for at, text in enumerate(_cached(file, " "))]
        head_cell = Cell(f"{file.path}\n{file.kind}, {file.size} bytes\npage cache:", "head")
        nodes.append(Node(f"file {file.inode}", (head_cell, *cells), "file"))
    for vma in r.vmas:
        here = f"vma {vma.vma.start:#x}"
        edges += [
            Edge(key, here, f"anon {number}", "head", dashed=number != vma.anon[0])
            for number in vma.anon
        ]
        edges += [Edge(key, here, f"file {vma.file}", "head")] * bool(vma.file)
    return Diagram(f"mm#{r.mm.id} of {r.mm.name} (pid {r.mm.pid})", tuple(nodes), tuple(edges))


def _vma_cell(vma: MmVma) -> str:
    name = f" {vma.vma.name}" if vma.vma.name else ""
    return (
        f"{vma.vma.start:#x}-{vma.vma.end:#x} {vma.vma.perm}\n{vma.resident} of {vma.vma.pages} "
        f"pages{name}"
    )


# ---------------------------------------------------------------- rmap


def rmap(reading: RmapGraph, style: Style) -> list[str]:
    """Every path from the frame back to a mapping."""
    r, g = reading, style.glyphs
    lines = [_rmap_headline(r), ""]
    if not r.rmap.via:
        return [
            *lines,
            f"{g.last}no reverse map: it belongs to nobody's mapping",
            *_references(r, style),
        ]
    lines.append(f"mapping {g.right} {plain(r.rmap.via)}, index {r.rmap.index:#x}")
    for number, path in enumerate(r.paths):
        last = number == len(r.paths) - 1
        under = "   " if last else g.bar
        lines.append(
            (g.last if last else g.branch) + f"VMA {plain(short(path.visit.vma))} of {_owner(path)}"
        )
        lines += [f"{under}   {text}" for text in _path_lines(r, path, style)]
    if not r.paths:
        lines.append(f"{g.last}no VMA to visit")
    return [*lines, *_references(r, style)]


def _rmap_headline(r: RmapGraph) -> str:
    f = r.frame
    mark = (", exclusive" if f.exclusive else ", not exclusive") if f.state == "anon" else ""
    return f"frame {f.pfn:#x}: {f.state}, refcount {f.refcount}, mapcount {f.mapcount}{mark}"


def _owner(path: RmapPath) -> str:
    return f"{plain(path.visit.name)} (pid {path.visit.pid}, mm#{path.visit.mm})"


def _path_lines(r: RmapGraph, path: RmapPath, style: Style) -> list[str]:
    v = path.visit
    sums = f"{v.vma.start:#x} + ({r.rmap.index:#x} - {path.pgoff:#x}) * 4096 = {v.address:#x}"
    way = f" {style.glyphs.right} ".join(f"{step.level}[{step.index}]" for step in path.steps)
    return [sums, f"{way}  {_verdict(r, path)}"]


def _verdict(r: RmapGraph, path: RmapPath) -> str:
    """What is at the end of the path."""
    if path.visit.mapped:
        return f"{path.visit.letters} maps it"
    last = path.steps[-1] if path.steps else None
    if last is None or last.kind == "none":
        return "nothing is mapped there"
    return (
        f"holds another frame: {last.pfn:#x}"
        if last.pfn is not None and last.pfn != r.frame.pfn
        else f"is a {last.kind}"
    )


def _references(r: RmapGraph, style: Style) -> list[str]:
    held = [memory.holder_text(holder) for holder in r.frame.holders]
    if r.frame.missing:
        held.append(memory.unexplained(r.frame.missing))
    return [
        "",
        *hanging(
            f"refcount {r.frame.refcount}: ", [plain(text) for text in held] or ["nobody"], style
        ),
    ]


def rmap_diagram(reading: RmapGraph) -> Diagram:
    """The same as nodes."""
    r, g = reading, "frame"
    nodes = [Node(g, (Cell(_rmap_headline(r).replace(": ", "\n", 1), "head"),), "frame")]
    edges: list[Edge] = []
    if r.rmap.via:
        nodes.append(Node("via", (Cell(r.rmap.via, "head"),), "anon"))
        edges.append(Edge(g, "head", "via", "head", f"mapping\nindex {r.rmap.index:#x}"))
    for path in r.paths:
        v = path.visit
        vma, way = f"vma {v.mm} {v.vma.start:#x}", f"way {v.mm} {v.address:#x}"
        nodes.append(
            Node(vma, (Cell(f"{short(v.vma)}\n{v.name} (pid {v.pid}, mm#{v.mm})", "head"),), "vma")
        )
        steps = [
            Cell(f"{step.level}[{step.index}] {step.letters}", f"{step.level}")
            for step in path.steps
        ]
        nodes.append(
            Node(
                way,
                (Cell(f"{v.address:#x}", "head"), *steps, Cell(_verdict(r, path), "verdict")),
                "table",
            )
        )
        edges.append(Edge("via", "head", vma, "head"))
        edges.append(
            Edge(vma, "head", way, "head", f"+ ({r.rmap.index:#x} - {path.pgoff:#x}) * 4096")
        )
    held = ", ".join(memory.holder_text(holder) for holder in r.frame.holders)
    return Diagram(
        f"reverse walk from frame {r.frame.pfn:#x}",
        tuple(nodes),
        tuple(edges),
        (f"references: {held or 'nobody'}",),
    )


# ---------------------------------------------------------------- the family


def family(reading: FamilyGraph, style: Style) -> list[str]:
    """The processes as a tree, each with what it shares."""
    shares = {share.pid: share for share in reading.shares}
    names = {
        node.task.pid: plain(node.task.name) for root in reading.tree.roots for node in _all(root)
    }
    said = {pid: _share_texts(share, names) for pid, share in shares.items()}
    return [line for root in reading.tree.roots for line in _family_lines(root, "", said, style)]


def _all(node: TaskNode) -> list[TaskNode]:
    return [node, *(below for child in node.children for below in _all(child))]


Said = dict[int, list[tuple[str, list[str]]]]
"""What each task shares, in words, and with whom."""


def _family_lines(node: TaskNode, indent: str, said: Said, style: Style) -> list[str]:
    """A process, what it shares, and its children; ``indent`` is put before all but the first
    line."""
    g, task = style.glyphs, node.task
    lines = [f"{plain(task.name)} ({_pid(task)}) {_mm_of(task)}"]
    bar = g.pipe if node.children else " "
    for what, whom in said[task.pid]:
        lines += hanging(f"{indent}{bar}    {what} ", whom, style)
    for number, child in enumerate(node.children):
        last = number == len(node.children) - 1
        first, *rest = _family_lines(child, indent + ("   " if last else g.bar), said, style)
        lines += [indent + (g.last if last else g.branch) + first, *rest]
    return lines


def _pid(task: TaskRow) -> str:
    return f"pid {task.pid}, {task.state}" + (", a thread" if task.pid != task.tgid else "")


def _mm_of(task: TaskRow) -> str:
    if task.mm:
        return f"mm#{task.mm}, rss {task.rss}" + (
            f", blocked in {task.blocked_in}" if task.blocked_in else ""
        )
    if task.state in "ZX":
        return f"no mm, {exit_text(task.exit_code)}"
    return f"no mm, borrows mm#{task.active_mm}" if task.active_mm else "no mm"


def _share_texts(share: TaskShares, names: dict[int, str]) -> list[tuple[str, list[str]]]:
    """What a task shares, and with whom."""
    kinds = (
        ("mm shared with", share.mm),
        ("files shared with", share.files),
        ("signal handlers shared with", share.handlers),
    )
    texts = [(what, [names.get(pid, f"@{pid}") for pid in pids]) for what, pids in kinds if pids]
    if share.frames:
        texts.append(
            (
                "frames shared:",
                [f"{count} with {names.get(pid, f'@{pid}')}" for pid, count in share.frames],
            )
        )
    return texts


def family_diagram(reading: FamilyGraph) -> Diagram:
    """Processes, each pointing at its mm; dashed lines join mms that share frames."""
    everybody = [node for root in reading.tree.roots for node in _all(root)]
    mm_of = {node.task.pid: node.task.mm for node in everybody}
    spaces = sorted({node.task.mm or node.task.active_mm for node in everybody} - {0})
    nodes = [_task_node(node.task) for node in everybody]
    nodes += [Node(f"mm {number}", (Cell(f"mm#{number}", "head"),), "mm") for number in spaces]
    edges = [_kin(n.task.pid, child.task.pid) for n in everybody for child in n.children]
    edges += [_to_mm(node.task) for node in everybody if node.task.mm or node.task.active_mm]
    for share in reading.shares:
        for pid, count in share.frames:
            if mm_of.get(pid, 0) > mm_of[share.pid]:
                text = plural(count, "shared frame")
                edges.append(
                    Edge(
                        f"mm {mm_of[share.pid]}",
                        "head",
                        f"mm {mm_of[pid]}",
                        "head",
                        text,
                        dashed=True,
                    )
                )
    names = {node.task.pid: node.task.name for node in everybody}
    kept = [share.replace(mm=(), frames=()) for share in reading.shares]
    said = [
        f"{names[s.pid]}: {what} {', '.join(whom)}"
        for s in kept
        for what, whom in _share_texts(s, names)
    ]
    return Diagram(
        "processes and what they share",
        tuple(nodes),
        tuple(dict.fromkeys(edges)),
        tuple(said),
        down=True,
    )


def _task_node(task: TaskRow) -> Node:
    return Node(f"task {task.pid}", (Cell(f"{task.name}\n{_pid(task)}", "head"),), "task")


def _kin(parent: int, child: int) -> Edge:
    return Edge(f"task {parent}", "head", f"task {child}", "head")


def _to_mm(task: TaskRow) -> Edge:
    what = "mm" if task.mm else "borrows"
    return Edge(
        f"task {task.pid}", "head", f"mm {task.mm or task.active_mm}", "head", what, dashed=True
    )

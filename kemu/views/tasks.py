"""Tasks, and the results of their calls and accesses, for the terminal."""

from __future__ import annotations

from itertools import groupby

from kemu.readings import (
    AccessOutcome,
    DataOutcome,
    Outcome,
    ProcessList,
    RegsReading,
    Residency,
    TaskNode,
    TaskReading,
    TaskRow,
    TaskTree,
)
from kemu.views.style import Style, facts, plural, printable, table

UNLIMITED = (1 << 64) - 1


def process_list(reading: ProcessList, _style: Style) -> str:
    """ps: one line per task; ``*`` after the CPU on which it runs now."""
    rows = [
        (t.pid, t.ppid, t.name, t.state, f"{t.cpu}{' ' if t.running_on is None else '*'}")
        + ((t.mm, t.size, t.rss) if t.mm else ("-", "-", "-"))
        + (t.minor, t.major, remark(t))
        for t in reading.tasks
    ]
    return "\n".join(table("PID PPID <NAME S <CPU MM PAGES RSS MINFLT MAJFLT <", rows))


def remark(task: TaskRow) -> str:
    """The remarks after the numbers of a task list."""
    words = []
    if task.comm != task.name:
        words.append(f"[{task.comm}]")
    if task.pid != task.tgid:
        words.append(f"thread of {task.tgid}")
    if task.blocked_in:
        words.append(f"waits in {task.blocked_in}")
    if task.state == "Z":
        words.append(exit_text(task.exit_code))
    if not task.mm and task.active_mm:
        words.append(f"borrows mm#{task.active_mm}")
    return ", ".join(words)


def exit_text(code: int) -> str:
    """A wait status in words: the signal in the low 7 bits, else the code above."""
    return f"killed by signal {code & 0x7F}" if code & 0x7F else f"exited with {code >> 8 & 0xFF}"


def task_tree(reading: TaskTree, style: Style) -> str:
    """tree: the family."""
    lines: list[str] = []
    for root in reading.roots:
        _branch(root, style, "", "", lines)
    return "\n".join(lines)


def _branch(node: TaskNode, style: Style, lead: str, below: str, lines: list[str]) -> None:
    task = node.task
    note = remark(task)
    lines.append(f"{lead}{task.pid} {task.name}" + (f"  ({note})" if note else ""))
    for child in node.children:
        last = child is node.children[-1]
        glyph, under = (
            (style.glyphs.last, "   ") if last else (style.glyphs.branch, style.glyphs.bar)
        )
        _branch(child, style, below + glyph, below + under, lines)


def task(reading: TaskReading, style: Style) -> str:
    """One task in full."""
    t = reading.task
    mm = f"mm#{t.mm}" if t.mm else f"none (borrows mm#{t.active_mm})" if t.active_mm else "none"
    pairs = [
        (
            "state",
            f"{t.state}"
            + (f", runs on CPU {t.running_on}" if t.running_on is not None else f", CPU {t.cpu}"),
        ),
        ("note", remark(t)),
        (
            "family",
            (
                f"parent {t.ppid}, children {_numbers(reading.children)}, threads "
                f"{_numbers(reading.thread_pids)}"
            ),
        ),
        ("mm", mm),
        ("flags", " ".join(reading.flags)),
        (
            "faults",
            (
                f"{t.minor} minor, {t.major} major; waited-for children {reading.child_minor}, "
                f"{reading.child_major}"
            ),
        ),
        ("vfork", "the parent waits for this task's exec or exit" if reading.vfork else ""),
        ("signals", ", ".join(f"{signo} {action}" for signo, action in reading.actions)),
        ("pending", _numbers(reading.pending) if reading.pending else ""),
        ("limits", ", ".join(f"{name} {_limit(soft)}" for name, soft, _ in reading.limits)),
        ("usage", f"{plural(reading.usage, 'reference')} to the task_struct"),
        *[
            (f"fd {d.fd}", f"{d.path} ({d.kind}, {d.size} bytes, f_count {d.count})")
            for d in reading.descriptors
        ],
    ]
    return "\n".join(
        [f"task {t.pid} {style.paint(t.name, 'name')}, process {t.tgid}", *facts(pairs, style)]
    )


def _numbers(numbers: tuple[int, ...]) -> str:
    return " ".join(map(str, numbers)) or "none"


def _limit(value: int) -> str:
    return "unlimited" if value == UNLIMITED else str(value)


REGISTERS = {
    "x86-64": ("rip", "rsp", "rax", "cr3", "cr2"),
    "sv39": ("pc", "sp", "a0", "satp", "stval"),
}
"""The names of the registers: instruction, stack, result, root table, address of the last fault."""


def registers(reading: RegsReading, style: Style) -> str:
    """regs: the CPU's registers, or those that it will have when the task runs again."""
    r = reading
    where = f"loaded on CPU {r.cpu}" if r.running else f"saved; CPU {r.cpu} runs another task"
    ip, sp, ax, root, fault = REGISTERS.get(r.geometry, REGISTERS["x86-64"])
    pairs = [
        (ip, f"{r.ip:#018x}"),
        (sp, f"{r.sp:#018x}"),
        (ax, f"{r.ax:#018x}" + (f"  -{r.error} ({(1 << 64) - r.ax})" if r.error else "")),
        (root, f"{r.root:#018x}  tag {r.pcid}"),
        (
            fault,
            f"{r.fault_address:#018x}  trap {r.trap}, error code {r.error_code:#x}"
            if r.trap
            else "",
        ),
        *(_more_registers(r) if root == "cr3" else ()),
    ]
    return "\n".join([f"registers of {r.name} (pid {r.pid}), {where}", *facts(pairs, style)])


def _more_registers(r: RegsReading) -> list[tuple[str, str]]:
    """The other registers of x86-64; those that are 0 in one line."""
    named = [("r" + name.removeprefix("r"), value) for name, value in r.general]
    segments = [(name.removesuffix("index"), f"{value:#x}") for name, value in r.segments]
    return [
        *((name, f"{value:#018x}") for name, value in named if value),
        ("zero", " ".join(name for name, value in named if not value)),
        ("rflags", f"{r.flags:#018x}" if r.flags else ""),
        ("segment", ", ".join(" ".join(pair) for pair in segments if "base" not in pair[0])),
        ("base", ", ".join(" ".join(pair) for pair in segments if "base" in pair[0])),
    ]


def outcome(reading: Outcome, style: Style) -> str:
    """A system call's answer as strace prints it: ``mmap -> 0x10000`` or ``mmap -> -ENOMEM (12):
    why``."""
    r = reading
    if r.errno:
        answer = style.paint(f"-{r.error} ({r.errno})", "error")
    elif r.blocked:
        answer = "blocked"
    else:
        answer = hex(r.value) if r.is_address else str(r.value)
    return f"{r.call} -> {answer}" + (f": {r.why}" if r.why else "") + faults(r.minor, r.major)


def data_outcome(reading: DataOutcome, style: Style) -> str:
    """The answer, and below it the bytes read."""
    if not reading.data:
        return outcome(reading, style)
    return f"{outcome(reading, style)}\n  {reading.address:#x}: {_bytes(reading.data)}"


def residency(reading: Residency, style: Style) -> str:
    """mincore: the answer, and below it runs of pages that are in memory or not."""
    lines = [outcome(reading, style)]
    at = 0
    for digit, run in groupby(reading.vector):
        count = len(list(run))
        start = reading.start + at * 4096
        lines.append(
            f"  {start:#x}  {plural(count, 'page')} "
            f"{'in memory' if digit == '1' else 'not in memory'}"
        )
        at += count
    return "\n".join(lines)


def _bytes(data: bytes) -> str:
    """The first bytes, as digits and as characters."""
    return f"{data[:32].hex(' ')}{' ...' if len(data) > 32 else ''}  {printable(data[:32])}"


def faults(minor: int, major: int, effect: str = "") -> str:
    """``  (1 minor fault; copied: pfn 0x1 -> 0x2)``, or nothing."""
    counts = [plural(n, f"{kind} fault") for n, kind in ((minor, "minor"), (major, "major")) if n]
    words = "; ".join(part for part in (", ".join(counts), effect) if part)
    return f"  ({words})" if words else ""


ERROR_WORDS = {"P": "present", "W": "write", "U": "user", "R": "reserved bit", "I": "fetch"}
"""What the letters of a page fault's error code mean."""


def access(reading: AccessOutcome, style: Style) -> str:
    """A load, store or fetch: the bytes, or the signal."""
    r = reading
    head = f"{r.kind} {r.name} {r.address:#x}"
    if r.signal:
        where = f" at {r.fault_address:#x}" if r.fault_address or r.code != "SI_KERNEL" else ""
        words = ", ".join(ERROR_WORDS[letter] for letter in r.error_code if letter in ERROR_WORDS)
        code = f", error code {r.error_code} ({words})" if words else ""
        end = "; the task is dead" if r.killed else ""
        return f"{head}: {style.paint(r.signal, 'error')} ({r.code}){where}{code}{end}" + faults(
            r.minor, r.major
        )
    if r.blocked:
        return f"{head}: blocked"
    shown = _bytes(r.data) if r.data else "ok"
    number = f"  {int.from_bytes(r.data, 'little'):#x}" if len(r.data) in (2, 4, 8) else ""
    return f"{head}: {shown}{number}" + faults(r.minor, r.major, r.effect)

"""Functions of the expression language: how one is declared, and those about ranges, tables,
families and the past.

    @function("mapped(TASK, ADDR, SIZE)", "pages of the range that a mapping promises")
    def _mapped(session, task, address, size): ...

They change nothing. A function answers none if something is missing; for a wrong argument it raises
a UsageError without a place, which the expression adds. The functions about a single address or
frame are in `session.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from kemu.abi.uapi import PAGE_SIZE as PAGE
from kemu.errors import UsageError
from kemu.language.expr import TaskValue, Value, describe

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task
    from kemu.observe.small import SmallMachine
    from kemu.readings import EntryReading, VmaReading


@attrs.frozen
class Function:
    """A function of the expression language: its signature, its summary, and how many arguments it
    takes."""

    body: Callable[..., Value]
    signature: str
    summary: str
    least: int
    most: int


FUNCTIONS: dict[str, Function] = {}
ANY_NUMBER = 99
"""More arguments than anyone writes."""


def function(
    signature: str, summary: str, *, most: int = 0
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Declare a function by the signature that the user sees, such as `pfn(TASK, ADDR)`; optional
    arguments are in brackets: `frame(PFN[, FIELD])`."""
    name, _, parameters = signature.rstrip(")").partition("(")
    given = [part for part in parameters.split(",") if part.strip(" .")]
    least = len([part for part in parameters.partition("[")[0].split(",") if part.strip(" .")])

    def declare(body: Callable[..., Value]) -> Callable[..., Value]:
        FUNCTIONS[name] = Function(body, signature, summary, least, most or len(given))
        return body

    return declare


def task_of(session: Session, value: Value) -> Task:
    """The task that an argument names: by a name, a text or a pid."""
    if isinstance(value, TaskValue):
        return session.tasks[value.pid]
    if isinstance(value, str):
        return session.find(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return session.find(f"@{value}")
    raise UsageError(
        f"expression: {describe(value)} is not a task", hint="write its name or its pid"
    )


def number_of(value: Value, what: str) -> int:
    """An argument that must be a number; `what` describes it in the error."""
    if isinstance(value, int) and 0 <= value < 2**64:
        return int(value)
    raise UsageError(
        f"expression: {describe(value)} is not a {what}",
        hint="nothing is mapped there?" if value is None else "",
    )


# ---------------------------------------------------------------- a range of addresses


@function("mapped(TASK, ADDR, SIZE)", "pages of the range that a mapping promises")
def _mapped(session: Session, task: Value, address: Value, size: Value) -> Value:
    first, end = _range(address, size)
    overlaps = (min(end, vma.end) - max(first, vma.start) for vma in _vmas(session, task))
    return sum(max(0, overlap) for overlap in overlaps) // PAGE


@function(
    "present(TASK, ADDR, SIZE)",
    "pages of the range that have a present entry, the zero page included",
)
def _present(session: Session, task: Value, address: Value, size: Value) -> Value:
    return len(_led_to(session, task, *_range(address, size)))


@function("zero_pages(TASK, ADDR, SIZE)", "entries of the range that lead to the zero page")
def _zero_pages(session: Session, task: Value, address: Value, size: Value) -> Value:
    from kemu.observe.lookup import zero_frame

    return _led_to(session, task, *_range(address, size)).count(zero_frame(session.kernel))


@function(
    "frames_in(ADDR, SIZE, TASK, ...)",
    "different frames that they map in the range, not the zero page",
    most=ANY_NUMBER,
)
def _frames_in(session: Session, address: Value, size: Value, *tasks: Value) -> Value:
    from kemu.observe.lookup import zero_frame

    first, end = _range(address, size)
    found = {pfn for task in tasks for pfn in _led_to(session, task, first, end)}
    return len(found - {zero_frame(session.kernel)})


@function(
    "vma_pages(TASK, ADDR)", "pages of the mapping in which the address lies; 0 if there is none"
)
def _vma_pages(session: Session, task: Value, address: Value) -> Value:
    found = _vma_at(session, task, number_of(address, "address"))
    return found.pages if found else 0


@function(
    "rights(TASK, ADDR)", "what its mapping allows, as in maps: 'rw-p'; none if there is none"
)
def _rights(session: Session, task: Value, address: Value) -> Value:
    found = _vma_at(session, task, number_of(address, "address"))
    return found.perm if found else None


@function(
    "file_page(TASK, ADDR)", "the page of the file that the address shows; none without a file"
)
def _file_page(session: Session, task: Value, address: Value) -> Value:
    at = number_of(address, "address")
    found = _vma_at(session, task, at)
    return (found.offset + at - found.start) // PAGE if found and found.inode else None


@function("file_vmas(TASK, FILE)", "how many of its mappings show the file")
def _file_vmas(session: Session, task: Value, path: Value) -> Value:
    return sum(vma.inode != 0 and vma.name == path for vma in _vmas(session, task))


def _range(address: Value, size: Value) -> tuple[int, int]:
    """(first page, end) of a range."""
    first = number_of(address, "address") & -PAGE
    return first, first + number_of(size, "size")


def _vmas(session: Session, task: Value) -> tuple[VmaReading, ...]:
    from kemu.observe.space import address_space

    return address_space(task_of(session, task), session.name_of).vmas


def _vma_at(session: Session, task: Value, address: int) -> VmaReading | None:
    return next((vma for vma in _vmas(session, task) if vma.start <= address < vma.end), None)


def _led_to(session: Session, task: Value, first: int, end: int) -> list[int]:
    """The frames to which the entries of the range lead."""
    from kemu.observe.lookup import frames_from

    owner = task_of(session, task)
    return (
        frames_from(session.kernel, owner, first, end, session.name_of)
        if owner.mm is not None
        else []
    )


# ---------------------------------------------------------------- page tables and TLBs


@function("tables(TASK, LEVEL)", "its page tables of one level: 'pgd', 'pud', 'pmd', 'pte'")
def _tables(session: Session, task: Value, level: Value) -> Value:
    from kemu.observe.lookup import table_levels

    owner = task_of(session, task)
    return (
        table_levels(session.kernel, owner, session.name_of).count(str(level))
        if owner.mm is not None
        else 0
    )


@function(
    "entry(TASK, ADDR, LEVEL)",
    "the entry of that level on the way to the address; none if the walk ends before",
)
def _entry(session: Session, task: Value, address: Value, level: Value) -> Value:
    found = _step(session, task, address, level)
    return found.value if found else None


@function(
    "entry_index(TASK, ADDR, LEVEL)",
    "the index that the address has in the table of that level; none if the walk ends before",
)
def _entry_index(session: Session, task: Value, address: Value, level: Value) -> Value:
    found = _step(session, task, address, level)
    return found.index if found else None


@function(
    "stops_at(TASK, ADDR)",
    "the level at which the walk finds an empty entry; none if it reaches a page",
)
def _stops_at(session: Session, task: Value, address: Value) -> Value:
    from kemu.observe.translation import walk

    found = walk(
        session.kernel, task_of(session, task), number_of(address, "address"), session.name_of
    )
    return found.steps[-1].level if found.stopped and found.steps else None


@function(
    "table(TASK, ADDR, LEVEL)",
    "the frame of the table of that level on the way to the address; none without it",
)
def _table(session: Session, task: Value, address: Value, level: Value) -> Value:
    found = _step(session, task, address, level)
    return found.entry_address // PAGE if found else None


@function(
    "in_tlb(CPU, TASK, ADDR)",
    "the frame that the TLB of a CPU holds for the address; none if it holds nothing",
)
def _in_tlb(session: Session, cpu: Value, task: Value, address: Value) -> Value:
    from kemu.observe.translation import walk

    found = walk(
        session.kernel, task_of(session, task), number_of(address, "address"), session.name_of
    )
    return next((row.pfn for row in found.tlb if row.cpu == cpu), None)


def _step(session: Session, task: Value, address: Value, level: Value) -> EntryReading | None:
    from kemu.observe.translation import walk

    found = walk(
        session.kernel, task_of(session, task), number_of(address, "address"), session.name_of
    )
    return next((step for step in found.steps if step.level == level), None)


# ---------------------------------------------------------------- families and address spaces


@function("children(TASK)", "its children, zombies included")
def _children(session: Session, task: Value) -> Value:
    from kemu.observe.tasks import task as read_task

    return len(read_task(session.kernel, task_of(session, task), session.name_of).children)


@function("descendants(TASK)", "its children, their children and so on, zombies included")
def _descendants(session: Session, task: Value) -> Value:
    waiting, found = [task_of(session, task).pid], 0
    while waiting:
        above = waiting.pop()
        parents = ((pid, other.real_parent) for pid, other in session.tasks.items() if pid != above)
        below = [pid for pid, parent in parents if parent is not None and parent.pid == above]
        waiting += below
        found += len(below)
    return found


@function("zombies()", "tasks that have ended and were not waited for")
def _zombies(session: Session) -> Value:
    return sum(bool(task.exit_state) for task in session.tasks.values())


@function("pss(TASK)", "its share of the memory that it maps, in kB, as smaps_rollup counts")
def _pss(session: Session, task: Value) -> Value:
    from kemu.observe.procfs import smaps_rollup

    return smaps_rollup(session.kernel, task_of(session, task), session.name_of).counts.pss // 1024


@function(
    "on_cpu(CPU, FIELD)",
    "a number of the address space that a CPU has loaded, such as 'mm_users'; none without one",
)
def _on_cpu(session: Session, cpu: Value, field: Value) -> Value:
    from kemu.experiment.experiment import system_of

    cpus = system_of(session.kernel).cpus
    which = number_of(cpu, "CPU")
    space = cpus[which].loaded_mm if which < len(cpus) else None
    number = getattr(space, str(field), None) if space is not None else None
    return number if type(number) is int else None


@function(
    "borrowed(CPU, FIELD)",
    "a number of the address space that the kernel thread on a CPU has borrowed; none if it has "
    "not",
)
def _borrowed(session: Session, cpu: Value, field: Value) -> Value:
    from kemu.experiment.experiment import system_of

    kernel = system_of(session.kernel)
    which = number_of(cpu, "CPU")
    task = kernel.cpus[which].curr if which < len(kernel.cpus) else None
    space = task.active_mm if task is not None and task.mm is None else None
    number = (
        getattr(space, str(field), None)
        if space is not None and space is not kernel.init_mm
        else None
    )
    return number if type(number) is int else None


@function(
    "of_mm(TASK, FIELD)",
    "a number of its address space, such as 'mm_users' or 'MM_ANONPAGES'; none without one",
)
def _of_mm(session: Session, task: Value, field: Value) -> Value:
    from kemu.observe.space import counter

    space = task_of(session, task).mm
    if space is not None and str(field).startswith("MM_"):
        return counter(space, str(field))
    number = getattr(space, str(field), None)
    return number if type(number) is int else None


@function(
    "cached(FILE, PAGE)",
    "the frame that holds a page of the file in the page cache; none if it is not there",
)
def _cached(session: Session, path: Value, index: Value) -> Value:
    from kemu.experiment.experiment import system_of

    node = system_of(session.kernel).files.get(str(path))
    found = node.i_mapping.i_pages.get(number_of(index, "page")) if node is not None else None
    return getattr(found, "pfn", None)


@function(
    "used(KIND)",
    "frames in use of one kind, as free shows: 'anon', 'file', 'shmem', 'table', 'kernel'",
)
def _used(session: Session, kind: Value) -> Value:
    from kemu.observe.frames import free

    known = dict(free(session.kernel).used)
    if kind not in known:
        raise UsageError(
            f"expression: no frames are called {describe(kind)}",
            hint=f"known are {', '.join(known)}",
        )
    return known[str(kind)]


@function("free_frames()", "frames that are free")
def _free_frames(session: Session) -> Value:
    from kemu.observe.lookup import free_frames

    return free_frames(session.kernel)


# ---------------------------------------------------------------- what happened


@function("event()", "the number of the present event")
def _event(session: Session) -> Value:
    return session.now


@function("called(FUNCTION, EVENT)", "how often a kernel function was entered since that event")
def _called(session: Session, name: Value, since: Value) -> Value:
    from kemu.explain.cost import calls_made

    return calls_made(session.kernel, number_of(since, "event"), session.now).get(str(name), 0)


@function(
    "signal_code()",
    "si_code of the newest signal that an access brought, such as 'SEGV_MAPERR'; none without one",
)
def _signal_code(session: Session) -> Value:
    found = _newest_failure(session, "code")
    return str(found) if found else None


@function("signal_addr()", "si_addr of the newest signal that an access brought; none without one")
def _signal_addr(session: Session) -> Value:
    found = _newest_failure(session, "fault_address")
    return int(found) if found is not None else None


@function("errno()", "the newest errno that a system call gave, such as 'EFAULT'; none without one")
def _errno(session: Session) -> Value:
    from kemu.abi.words import errno_name

    found = _newest_failure(session, "errno")
    return errno_name(found) if found else None


def _newest_failure(session: Session, field: str) -> Any:
    """A field of the newest outcome, up to the present moment, that failed in this way; None if
    nothing did."""
    for record, outcome in reversed(session.failures):
        if record.last <= session.now and hasattr(outcome, field):
            return getattr(outcome, field)
    return None


# ---------------------------------------------------------------- the small machine of exercises


@function(
    "small_root(N)", "small machine N (32-byte pages, 5+5+5 bits): the frame of its directory"
)
def _small_root(_session: Session, which: Value) -> Value:
    return _small(which).root


@function(
    "small_address(N, OFFSET)", "small machine N: a mapped address with that offset in its page"
)
def _small_address(_session: Session, which: Value, offset: Value) -> Value:
    machine = _small(which)
    return (
        machine.mapped[number_of(which, "number") % len(machine.mapped)] << 5
        | number_of(offset, "offset") & 31
    )


@function(
    "small_read(N, ADDR)",
    "small machine N: the byte at a virtual address; none where nothing is mapped",
)
def _small_read(_session: Session, which: Value, address: Value) -> Value:
    return _small(which).read(number_of(address, "address") & 0x7FFF)


@function(
    "small_entry(N, ADDR, STEP)",
    "small machine N: the entry that step 0 or 1 of the walk reads; none beyond its end",
)
def _small_entry(_session: Session, which: Value, address: Value, step: Value) -> Value:
    steps, _ = _small(which).walk(number_of(address, "address") & 0x7FFF)
    wanted = number_of(step, "step")
    return steps[wanted].entry if wanted < len(steps) else None


@function(
    "small_bytes(N, FRAME, FIRST)",
    "small machine N: eight bytes of a frame from FIRST on, as a text",
)
def _small_bytes(_session: Session, which: Value, frame: Value, first: Value) -> Value:
    at = number_of(first, "offset")
    return _small(which).frame(number_of(frame, "frame"))[at : at + 8].hex(" ")


def _small(which: Value) -> SmallMachine:
    from kemu.observe.small import small_machine

    return small_machine(number_of(which, "number"))

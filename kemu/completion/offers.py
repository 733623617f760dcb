"""What completion offers from the state of the machine: addresses, frames, descriptors, pids,
moments, files.

    walk app 0<Tab>     0x10000          rw-p 4 pages
                        0x7ffffffde000   rw-p 33 pages [stack]
    frame 0<Tab>        0x112            app 0x10000, rw

The kinds of arguments in `OFFERS` are completed here; every other kind completes itself.

This code only looks at the machine, and looks at little enough to answer between two keystrokes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kemu.abi.words import Words

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task
    from kemu.language.spec import Candidate, Kind, Option
    from kemu.observe.entries import Leaf

MOST = 200
"""How many completions of one kind are offered; nobody reads more."""

MOST_LOOKED = 400
"""How many mappings are searched for addresses."""

USER_HALF = 1 << 63
"""The end of the addresses that user code can use, whatever the geometry."""

RECENT = 12
"""How many of the newest commands are offered as moments."""


class Place(NamedTuple):
    """Where something is to be completed: the task that the command is about (if any), the word so
    far, and the words before it, the first of which is the name of the command."""

    session: Session
    task: Task | None
    word: str
    before: tuple[str, ...] = ()


def complete(kind: Kind, place: Place) -> Iterable[Candidate]:
    """What can be typed here. Changes no state."""
    own: Callable[[Place], Iterable[Candidate]] | None = getattr(kind, "complete_at", None)
    command = place.before[0] if place.before else ""
    found = own or BY_COMMAND.get((command, kind.name)) or OFFERS.get(kind.name)
    if found is None:
        return kind.complete(place.session)
    return islice(found(place), MOST)


def about(option: Option, word: str) -> str:
    """A few words about an option word: what it is in Linux, or what it means here."""
    if option.kind is not None:
        return option.kind.what
    return (
        f"{option.words.prefix}{word.upper()}" if isinstance(option.words, Words) else option.name
    )


def _addresses(place: Place) -> Iterator[Candidate]:
    """The mappings of the task, then the marks of its address space by name."""
    from kemu.language.things import MARKS
    from kemu.observe.space import address_space

    task = place.task
    mm = task.mm if task is not None else None
    if task is None or mm is None:
        return
    for vma in islice(address_space(task).vmas, MOST_LOOKED):
        if hex(vma.start).startswith(place.word):
            yield (
                hex(vma.start),
                f"{vma.perm} {vma.pages} page{'s' * (vma.pages != 1)} {vma.name}".rstrip(),
            )
    name = place.session.name_of(task.pid)
    for mark, field in MARKS.items():
        if getattr(mm, field):
            yield f"{name}.{mark}", f"{getattr(mm, field):#x}"


def _frames(place: Place) -> Iterator[Candidate]:
    """Frames that tasks map, those of this task first, each with the first address where one maps
    it."""
    kernel = place.session.kernel.globals
    geometry, bits = kernel["geometry"], kernel["bits"]
    tasks = sorted(place.session.tasks.values(), key=lambda task: task is not place.task)
    seen: set[int] = set()
    for task, leaf in _leaves([task for task in tasks if task.mm is not None]):
        pfn = geometry.entry_pfn(leaf.entry)
        if leaf.entry & bits.present and pfn not in seen:
            seen.add(pfn)
            yield (
                hex(pfn),
                (
                    f"{place.session.name_of(task.pid)} {leaf.va:#x}, "
                    f"{'rw' if leaf.entry & bits.write else 'r-'}"
                ),
            )


def _leaves(tasks: list[Task]) -> Iterator[tuple[Task, Leaf]]:
    """Entries that map something in the user half of each task's address space, equally many per
    task."""
    from kemu.observe.entries import leaves

    each = MOST // max(len(tasks), 1)
    for task in tasks:
        if task.mm is not None:
            yield from ((task, leaf) for leaf in islice(leaves(task.mm.pgd, 0, USER_HALF), each))


def _descriptors(place: Place) -> Iterator[Candidate]:
    """Open files of the task."""
    files = place.task.files if place.task is not None else None
    if files is None:
        return
    paths = {id(node): path for path, node in _files(place.session)}
    for fd, file in sorted(files.fd.items()):
        node = file.f_inode
        yield str(fd), paths.get(id(node), f"{node.kind}, inode {node.i_ino}")


def _files(session: Session) -> list[tuple[str, object]]:
    from kemu.experiment.experiment import system_of

    return list(system_of(session.kernel).files.items())


def _paths(place: Place) -> Iterator[Candidate]:
    """Files inside kemu."""
    for path, kind, size, cached in place.session.file_list():
        yield path, f"{kind}, {size} bytes, {cached} page{'s' * (cached != 1)} cached"


def _tasks(place: Place) -> Iterator[Candidate]:
    """Tasks by name; by pid after an @."""
    session = place.session
    for name, pid in session.names().items():
        if "/" in name:
            continue
        task = session.tasks[pid]
        state = (
            " zombie"
            if task.exit_state
            else f" waits in {task.blocked_in}"
            if task.blocked_in
            else ""
        )
        word = f"@{pid}" if place.word.startswith("@") else name
        yield word, f"{name}{state}" if word != name else f"pid {pid}{state}"


def _cpus(place: Place) -> Iterator[Candidate]:
    """The CPUs, and the task that runs on each."""
    from kemu.experiment.experiment import system_of

    for cpu in system_of(place.session.kernel).cpus:
        yield (
            str(cpu.id),
            f"runs {place.session.name_of(cpu.curr.pid) if cpu.curr.pid else 'nothing'}",
        )


def _moments(place: Place) -> Iterator[Candidate]:
    """Marks, the first and the last event, then the starts of the newest commands."""
    session = place.session
    yield from ((name, f"#{event}") for name, event in session.marks.items())
    yield from (("start", "the boot, #0"), ("end", f"the newest event, #{session.end}"))
    for record in reversed(session.timeline.records[-RECENT:]):
        if record.last > record.first:
            yield str(record.first), f"before '{record.text}'"


def _host_files(place: Place) -> Iterator[Candidate]:
    """Files of the host in the folder that is typed so far."""
    head, _, tail = place.word.rpartition("/")
    folder = Path(head).expanduser() if head else Path("/" if place.word.startswith("/") else ".")
    try:
        with os.scandir(folder) as entries:
            found = sorted((entry.name, entry.is_dir()) for entry in islice(entries, 2000))
    except (OSError, ValueError, RuntimeError):
        return
    start = place.word[: len(place.word) - len(tail)]
    for name, is_folder in found:
        if (
            name.startswith(tail)
            and (tail.startswith(".") or not name.startswith("."))
            and not set(name) & set(" ;'\"()#")
        ):
            yield f"{start}{name}{'/' * is_folder}", "folder" if is_folder else "file of the host"


def expression_words(session: Session, typed: str) -> tuple[str, list[Candidate]]:
    """The name that is being typed at the end of an expression, and its completions."""
    match = re.search(r"(?:\$\w*|[A-Za-z_][\w.]*)?\Z", typed, re.ASCII)
    word = match[0] if match else ""
    return word, [found for found in _expression(session, word) if found[0].startswith(word)]


def _expression(session: Session, word: str) -> Iterator[Candidate]:
    from kemu.language.things import MARKS
    from kemu.names.questions import FUNCTIONS

    owner, dot, _ = word.rpartition(".")
    names = session.names()
    if dot and owner in names:
        for field in (
            *MARKS,
            "pid",
            "ppid",
            "rss",
            "minor",
            "major",
            "exit_code",
            "cpu",
            "brk",
            "total_vm",
            "map_count",
        ):
            yield f"{owner}.{field}", f"of {owner}"
        return
    yield from ((name, f"pid {pid}") for name, pid in names.items() if "/" not in name)
    yield from ((name, f"#{event}") for name, event in session.marks.items())
    yield from (
        (name + "(", f"{function.signature}: {function.summary}")
        for name, function in FUNCTIONS.items()
    )
    if word.startswith("$"):
        yield from (("$pid", "the current task"), ("$last", "of a call or print"))


def _expressions(place: Place) -> Iterator[Candidate]:
    yield from _expression(place.session, place.word)


def _things(place: Place) -> Iterable[Candidate]:
    """`why frame PFN`, `why pte TASK ADDRESS`."""
    return _frames(place) if place.before[1:2] == ("frame",) else _addresses(place)


def _values(place: Place) -> Iterable[Candidate]:
    """`set NAME VALUE`: the words of the setting."""
    from kemu.commands.settings import words_of

    return (
        [(word, place.before[1]) for word in words_of(place.before[1])]
        if len(place.before) == 2
        else []
    )


def _mutants(_place: Place) -> Iterable[Candidate]:
    """`mutant plant NAME`."""
    from kemu.races.mutants import MUTANTS

    return [(name, found.story) for name, found in MUTANTS.items()]


def _commands(_place: Place) -> Iterable[Candidate]:
    from kemu.commands.table import load_all

    return [(made.name, made.summary) for made in load_all()]


BY_COMMAND: dict[tuple[str, str], Callable[[Place], Iterable[Candidate]]] = {
    ("why", "NUMBER"): _things,
    ("history", "NUMBER"): _things,
    ("set", "VALUE"): _values,
    ("mutant", "ARGS"): _mutants,
}
"""By command and kind, where the kind alone says too little."""

OFFERS: dict[str, Callable[[Place], Iterable[Candidate]]] = {
    "ADDRESS": _addresses,
    "PFN": _frames,
    "FD": _descriptors,
    "FILE": _paths,
    "TASK": _tasks,
    "CPU": _cpus,
    "MOMENT": _moments,
    "HOSTFILE": _host_files,
    "EXPR": _expressions,
    "COMMAND": _commands,
    "TOPIC": _commands,
}
"""By the name of the kind of argument."""

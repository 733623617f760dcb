"""Translate an experiment into a program that a real kernel can run: the command list in the form
of a recording (kemu/conform/program.py).

    mmap app 0x10000 4p rw  ->  {"op": "mmap", "p": "A", "page": 16, "len": 4,
                                 "prot": "rw", "flags": ["private", "anon"]}
    fork app as kid         ->  {"op": "fork", "p": "A", "child": "B"}
    write kid 0x10000 "hi"  ->  {"op": "write", "p": "B", "page": 16, "byte": 104}

Each command is parsed at its own moment, so that names and expressions mean what they meant then.
All addresses move into the program's window by the same distance, except those of mappings whose
place the kernel chose: each of these gets a place of its own in the window.  Commands that cannot
be expressed are left out with a reason (`Unexpressed`).  `actions.py` has the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from kemu.abi.uapi import PAGE_SIZE as PAGE
from kemu.commands.table import find
from kemu.conform import words
from kemu.experiment.knowledge import INIT
from kemu.language.bind import bind
from kemu.language.kinds import GoneTask
from kemu.language.spec import Command
from kemu.language.tokens import Line, split
from kemu.observe.space import address_space

if TYPE_CHECKING:
    from kemu.experiment.session import Record, Session, Task

LOWEST, HIGHEST = 0x10000, 1 << 46
"""Addresses between these two move with the window; others (page 0, the kernel's half) stay as they
are."""

LOWEST_CHOSEN, HIGHEST_CHOSEN, FAR = 96, 250, 1 << 20
"""The pages of the window for mappings whose place the kernel chose, at the same distances as in
the experiment; mappings that do not fit there are placed far away."""

Op = dict[str, Any]


class Unexpressed(Exception):
    """Raised for a command that cannot be repeated on a real kernel; the message says why."""


@attrs.define
class Translation:
    """`ops`: (command, operation) in order; `unexpressed`: (command, why).

    `base`: the page number that is page 0 of the window; `chosen`: (start, end, page) of each
    mapping that the kernel placed."""

    ops: list[tuple[str, Op]] = attrs.Factory(list)
    unexpressed: list[tuple[str, str]] = attrs.Factory(list)
    chosen: list[tuple[int, int, int]] = attrs.Factory(list)
    base: int | None = None

    def address(self, page: int, rest: int = 0) -> int:
        """The experiment's address for a page of the window, and a byte in it."""
        for start, end, first in self.chosen:
            if first <= page < first + (end - start) // PAGE:
                return start + (page - first) * PAGE + rest
        return (page + (self.base or 0)) * PAGE + rest


@attrs.frozen
class Asked:
    """A command of the experiment: its declaration, its arguments, the task that acts, and its
    place in the journal."""

    made: Command
    values: dict[str, Any]
    task: Task
    record: Record


@attrs.frozen
class Tables:
    """`actions`: command -> the function that makes its operations; `reasons`: command -> why it
    has none; `silent`: commands that need none."""

    actions: Mapping[str, Callable[[Translator, Asked], list[Op]]]
    reasons: Mapping[str, str]
    silent: frozenset[str]


def translate(session: Session, tables: Tables) -> Translation:
    """The commands of the experiment up to this moment."""
    translator = Translator(session, tables)
    now = session.now
    for record in session.timeline.records:
        if record.last <= now:
            translator.add(record)
    return translator.made


class Translator:
    """The state of the translation as it goes through the command list.

    `letters`: processes of the program by pid; `ended`: those that are gone; `files`: inode number
    -> (id, how it was opened); `waiting`: files that were made but not opened yet, by path; `pins`
    and `pipes`: by address and by descriptor; `highest`: the end of the first mapping whose place
    the kernel chose."""

    def __init__(self, session: Session, tables: Tables) -> None:
        self.session = session
        self.tables = tables
        self.made = Translation()
        self.letters: dict[int, str] = {}
        self.ended: set[int] = set()
        self.files: dict[int, tuple[str, str]] = {}
        self.waiting: dict[str, Op] = {}
        self.pins: dict[tuple[int, int], str] = {}
        self.pipes: dict[tuple[int, int], str] = {}
        self.highest: int | None = None

    def add(self, record: Record) -> None:
        """Translate one command."""
        from kemu.errors import UsageError

        try:
            with self.session.at(record.first):
                ops = [op for line in split(record.text) for op in self._ops(line, record)]
        except (Unexpressed, UsageError) as error:
            self.made.unexpressed.append((record.text, getattr(error, "what", None) or str(error)))
            ops = []
        self.made.ops += [(record.text, op) for op in ops]
        self._bury(record)

    def _ops(self, line: Line, record: Record) -> list[Op]:
        made = find(line.tokens[0].text)
        if made is None:
            raise Unexpressed("not a command of the shell")
        values = bind(made, line, self.session).values
        if any(isinstance(value, GoneTask) for value in values.values()):
            raise Unexpressed("it names a process that is gone")
        if made.name == "on":
            return self._on(values["cpu"], values["command"], record)
        if made.name in self.tables.silent:
            return []
        action = self.tables.actions.get(made.name)
        if action is None:
            raise Unexpressed(self.tables.reasons.get(made.name, "only kemu has it"))
        acting = values.get("task") or self.session.tasks[self.session.current_pid or INIT]
        return action(self, Asked(made, values, acting, record))

    def _on(self, cpu: int, line: Line, record: Record) -> list[Op]:
        ops = self._ops(line, record)
        letters = sorted({op["p"] for op in ops})
        if cpu > 1:
            raise Unexpressed("a program has the CPUs 0 and 1")
        there, back = (
            [{"op": "setcpu", "p": letter, "cpu": number} for letter in letters]
            for number in (cpu, 0)
        )
        return [*there, *ops, *back]

    def _bury(self, record: Record) -> None:
        """End the processes in the program that the command ended, for example by a signal."""
        with self.session.at(record.last):
            gone = [pid for pid in self.letters if pid not in self.ended and self._is_gone(pid)]
        for pid in gone:
            self.ended.add(pid)
            last = self.made.ops[-1] if self.made.ops else ("", {})
            if (last[1].get("op"), last[1].get("p")) != ("exit", self.letters[pid]):
                self.made.ops.append(
                    (f"{self.session.name_of(pid)} is dead", {"op": "exit", "p": self.letters[pid]})
                )

    def _is_gone(self, pid: int) -> bool:
        task = self.session.tasks.get(pid)
        return task is None or bool(task.exit_state) or task.mm is None

    # ------------------------------------------------------------------------------------ processes

    def letter(self, task: Task) -> str:
        """The process of the program that corresponds to the task."""
        if task.pid not in self.letters:
            raise Unexpressed(
                f"{self.session.name_of(task.pid)} is not of the first process's family"
            )
        return self.letters[task.pid]

    def christen(self, pid: int | None) -> str:
        """The letter of a new process; without a pid, of one that could not be made."""
        if len(self.letters) >= len(words.PROCESSES):
            raise Unexpressed(f"a program has at most {len(words.PROCESSES)} processes")
        letter = words.PROCESSES[len(self.letters)]
        if pid is not None:
            self.letters[pid] = letter
        return letter

    def newborn(self, record: Record) -> int | None:
        """The pid that the command made."""
        before = set(self.session.tasks)
        with self.session.at(record.last):
            return next((pid for pid in self.session.tasks if pid not in before), None)

    # ------------------------------------------------------------------------------------ addresses

    def place(self, task: Task, addr: int, key: str = "page", offset: str = "off") -> Op:
        """The fields for the address."""
        for start, end, page in self.made.chosen:
            if start <= addr < end:
                return _at(page + (addr - start) // PAGE, addr % PAGE, key, offset)
        vma = (
            next((vma for vma in address_space(task).vmas if vma.start <= addr < vma.end), None)
            if task.mm
            else None
        )
        if vma is not None and vma.name in ("[stack]", "[heap]"):
            raise Unexpressed(f"the {vma.name[1:-1]} of a program on the host lies elsewhere")
        if not LOWEST <= addr < HIGHEST:
            return {"addr": hex(addr)} if key == "page" else {key: hex(addr)}
        if self.made.base is None:
            self.made.base = addr >> 21 << 9
        return _at((addr >> 12) - self.made.base, addr % PAGE, key, offset)

    def mapped(self, asked: Asked) -> tuple[int, int] | None:
        """The addresses [start, end) that the command mapped, if they are contiguous."""
        before = self._covered(asked.task.pid)
        with self.session.at(asked.record.last):
            after = self._covered(asked.task.pid)
        new = sorted(after - before)
        if not new or new[-1] - new[0] != (len(new) - 1) * PAGE:
            return None
        return new[0], new[-1] + PAGE

    def _covered(self, pid: int) -> set[int]:
        """Addresses of all mapped pages."""
        task = self.session.tasks.get(pid)
        if task is None or task.mm is None:
            return set()
        vmas = address_space(task).vmas
        if sum(vma.end - vma.start for vma in vmas) > (1 << 20) * PAGE:
            raise Unexpressed("too much is mapped for it")
        return {at for vma in vmas for at in range(vma.start, vma.end, PAGE)}

    def choose(self, start: int, end: int) -> int:
        """Find a place in the window for a mapping that the kernel put at [start, end); its
        page."""
        if self.highest is None:
            self.highest = end
        page = HIGHEST_CHOSEN - (self.highest - start) // PAGE
        if page < LOWEST_CHOSEN or end > self.highest:
            page = FAR * (len(self.made.chosen) + 1)
        self.made.chosen.append((start, end, page))
        return page

    # ---------------------------------------------------------------------------------------- files

    def opened(self, path: str, mode: str) -> str:
        """The id of the file `path`, which the program makes when the file is first opened."""
        from kemu.experiment.experiment import system_of

        node = system_of(self.session.kernel).files.get(path)
        if node is None:
            raise Unexpressed(f"no file {path}")
        name, known = self.files.get(node.i_ino, ("", ""))
        if name:
            if known != mode:
                raise Unexpressed("a program opens a file once")
            return name
        waiting = self.waiting.pop(path, None)
        if waiting is None:
            raise Unexpressed(f"{path} was not made by mkfile")
        name = f"f{len(self.files)}"
        self.files[node.i_ino] = (name, mode)
        self.made.ops.append((f"mkfile {path}", {**waiting, "id": name, "mode": mode}))
        return name

    def file(self, asked: Asked) -> Op:
        """The field for the command's descriptor."""
        fd = asked.values["fd"]
        files = asked.task.files
        file = files.fd.get(fd) if files is not None else None
        if file is None:
            return {"fd": -1}
        if file.f_inode.i_ino not in self.files:
            raise Unexpressed(f"descriptor {fd} is not a file of the program")
        return {"file": self.files[file.f_inode.i_ino][0]}


def _at(page: int, rest: int, key: str, offset: str) -> Op:
    return {key: page, offset: rest} if rest else {key: page}


def length(size: int, key: str = "len") -> Op:
    """The field for a number of bytes."""
    if size % PAGE == 0 and size < 1 << 60:
        return {key: size // PAGE}
    return {"bytes" if key == "len" else key: hex(size)}

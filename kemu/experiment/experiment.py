"""One experiment: a kernel, its journal, the names that the user gave, and the commands that made
it what it is.

    events    0 ......... 12 ......... 57 ......... 91
    commands      spawn app |  mmap .... | fork .... |   timeline 1
                             `-- write .. | fork .... |  timeline 2: a change after going back to 12

A command that changes the machine owns the events (first, last]. The cursor of the journal says
which moment is shown; names, marks and the current task are those of that moment. Looking is
possible at every moment; a change is accepted only between commands, and in the past it starts a
new timeline. The commands of the old one are kept as text, which is enough: the same commands from
boot give the same journal.

It does not use the parser, the output or the terminal.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FunctionType
from zlib import crc32

import attrs

from kemu.abi.uapi import ENOSPC
from kemu.errors import UsageError
from kemu.experiment.knowledge import INIT, NO_TASK, Knowledge, Record, Timeline, Wrong
from kemu.experiment.tasknames import TaskNames
from kemu.interrupts import uninterruptible
from kemu.kernel.fs.files import shmem_limit
from kemu.kernel.include.system import System, system
from kemu.kernel.init.boot import Kernel
from kemu.kernel.mm.filemap import load_file, make_memory_file
from kemu.machine.geometry import GEOMETRIES
from kemu.readings import Reading
from kemu.trace.barrier import sealed
from kemu.trace.journal import Journal
from kemu.userland.performer import Performer
from kemu.userland.script import Script


@uninterruptible
class Experiment(TaskNames):
    """See the module. `mem` in bytes, `geometry` a name of `machine.geometry.GEOMETRIES`.

    Its whole state is the kernel with its journal, the performer of user code, and one
    frozen value of all that is known besides."""

    def __init__(
        self,
        *,
        mem: int = 64 << 20,
        geometry: str = "x86-64",
        cpus: int = 2,
        record: bool = True,
        lru_batch: bool = False,
    ) -> None:
        if geometry not in GEOMETRIES:
            raise UsageError(
                f"geometry: no '{geometry}'", hint=f"choose one of {', '.join(sorted(GEOMETRIES))}"
            )
        super().__init__(
            Kernel(
                mem=mem,
                geometry=GEOMETRIES[geometry],
                nr_cpus=cpus,
                record=record,
                lru_batch=lru_batch,
            ),
            Knowledge(),
        )
        self.performer: Performer = Script(self.kernel)

    @property
    def cpus(self) -> int:
        """How many CPUs the machine has."""
        return len(self.kernel.globals["cpus"])

    @property
    def timeline(self) -> Timeline:
        """The current timeline."""
        return self.known.timeline

    @property
    def timelines(self) -> tuple[Timeline, ...]:
        """All timelines, by their numbers."""
        return self.known.timelines

    @property
    def marks(self) -> dict[str, int]:
        """The moments that have a name."""
        return self.known.marks

    @property
    def failures(self) -> tuple[tuple[Record, Reading], ...]:
        """The commands that gave an errno or a signal, each with its reading."""
        return self.known.failures

    # -------------------------------------------------------------------------------------- moments

    def goto(self, event: int) -> None:
        """Bring all state to where it was after `event`. Raises UsageError outside of 0..end."""
        if not 0 <= event <= self.end:
            raise UsageError(
                f"event: no #{event}",
                hint=f"the experiment has events 0 to {self.end}",
                about="event",
            )
        self.kernel.activate()
        self.journal.seek(event)
        self._run_planted()

    @contextmanager
    def at(self, event: int) -> Iterator[None]:
        """Within the block the state is the one after `event`, and nothing can be changed."""
        before = self.now
        self.goto(event)
        try:
            with sealed():
                yield
        finally:
            self.goto(before)

    def boundary(self, event: int) -> bool:
        """Whether `event` is between two commands."""
        return self.command_at(event) is None

    def command_at(self, event: int) -> Record | None:
        """The command in the middle of which `event` is."""
        records = self.timeline.records
        index = bisect_right(records, event, key=lambda record: record.last)
        if index and records[index - 1].last == event and records[index - 1].unfinished:
            return records[index - 1]
        found = records[index] if index < len(records) else None
        return found if found and found.first < event < found.last else None

    def command_of(self, event: int) -> Record | None:
        """The command that caused `event`."""
        records = self.timeline.records
        index = bisect_left(records, event, key=lambda record: record.last)
        found = records[index] if index < len(records) else None
        return found if found and found.first < event else None

    def commands_between(self, first: int, last: int) -> list[Record]:
        """The commands with events in (first, last], in order."""
        records = self.timeline.records
        begin = bisect_right(records, first, key=lambda record: record.last)
        end = bisect_left(records, last, key=lambda record: record.first)
        return [record for record in records[begin:end] if record.last > record.first]

    def last_command(self) -> tuple[int, int]:
        """The events (first, last] of the newest command that has some; last is at most this
        moment."""
        for record in reversed(self.timeline.records):
            if record.first < self.now and record.last > record.first:
                return record.first, min(record.last, self.now)
        return 0, self.now

    def mark(self, name: str) -> None:
        """Give the moment a name; an older mark of that name is deleted."""
        self.known = attrs.evolve(self.known, marks={**self.marks, name: self.now})

    def note(self, *lines: str) -> None:
        """Show the lines with the next result."""
        self.known = attrs.evolve(self.known, notes=(*self.known.notes, *lines))

    def take_notes(self) -> tuple[str, ...]:
        """The lines for the next result, which are then forgotten."""
        notes = self.known.notes
        self.known = attrs.evolve(self.known, notes=())
        return notes

    # -------------------------------------------------------------------------------------- changes

    @contextmanager
    def looking(self) -> Iterator[None]:
        """A block that only looks: any write to the machine is a bug in kemu and raises."""
        self.kernel.activate()
        with sealed():
            yield

    @contextmanager
    def traveling(self) -> Iterator[None]:
        """A block that may move through time to look, and comes back to this moment."""
        before = self.now
        self.kernel.activate()
        try:
            yield
        finally:
            self.goto(before)

    @contextmanager
    def changing(self, text: str) -> Iterator[None]:
        """A block that may change the machine, on behalf of the command `text`.

        Raises UsageError in the middle of a command. In the past it starts a new timeline. If the
        block raises (also by Ctrl-C), its effects are undone, the command is not added to the
        timeline, and no new one is started."""
        self._refuse_inside_command()
        self.kernel.activate()
        known = self.known
        future = self.journal.future() if self.past else None
        if future is not None:
            self._branch()
        first, marks = self.end, len(self.journal.marks)
        self.known = attrs.evolve(self.known, first=first, unfinished=False)
        used = self._use_for_replay(first)
        try:
            yield
            self._refuse_end_of_init()
        except BaseException:
            self._take_back(first, marks)
            if future is not None:
                self.journal.rejoin(future)
            self.known = known
            raise
        self.journal.catch_up()
        self.journal.prepare()
        record = Record(text, first, self.end, self.current_pid, self.known.unfinished)
        self._extend(*used, record)

    def _extend(self, *records: Record) -> None:
        line = self.timeline
        line = attrs.evolve(line, records=(*line.records, *records))
        self.known = self.known.with_timeline(line)

    def end_unfinished(self, unfinished: bool) -> None:
        """Set, inside `changing`, whether calls are still under way at its end."""
        self.known = attrs.evolve(self.known, unfinished=unfinished)

    def failed(self, reading: Reading) -> None:
        """Note that the newest command gave an errno or a signal."""
        failure = (self.timeline.records[-1], reading)
        self.known = attrs.evolve(self.known, failures=(*self.known.failures, failure))

    @contextmanager
    def performed_by(self, performer: Performer) -> Iterator[None]:
        """A block in which another performer runs user code."""
        before, self.performer = self.performer, performer
        try:
            yield
        finally:
            self.performer = before

    @contextmanager
    def beside(self, event: int) -> Iterator[Journal]:
        """A block in which the state is the one after `event` and changes go to the given journal;
        at the end all of them are undone and forgotten, and this moment is shown again."""
        before, journal, known = self.now, self.journal, self.known
        self.goto(event)
        scratch = Journal()
        try:
            self.kernel.journal = scratch
            self.kernel.activate()
            self.known = known.up_to(event).at_boot()
            yield scratch
        finally:
            scratch.catch_up()
            scratch.seek(0)
            self.kernel.journal, self.known = journal, known
            self.goto(before)

    def _refuse_end_of_init(self) -> None:
        """Linux panics when init ends; here the command that ended it is undone."""
        init = self.tasks.get(INIT)
        if init is None or init.exit_state:
            raise UsageError(
                "init: the kernel would panic here (Attempted to kill init!)",
                hint="the command is undone; use another process: spawn app",
                about="task",
            )

    def _take_back(self, first: int, marks: int) -> None:
        """Undo and forget what happened since; the last mark may be incomplete."""
        self.journal.catch_up()
        self.journal.seek(first)
        del self.journal.marks[marks:]
        self._run_planted()
        self.journal.truncate()

    def _refuse_inside_command(self) -> None:
        inside = self.command_at(self.now)
        if inside is None:
            return
        ways = f"goto {inside.first} goes before it, where a change starts a new timeline"
        if not inside.unfinished:
            ways = f"goto {inside.last} goes to its end; {ways}"
        raise UsageError(
            f"moment: #{self.now} is inside '{inside.text}'; the machine cannot be changed there",
            hint=ways,
        )

    def _branch(self) -> None:
        """Leave the timeline at the cursor: what follows belongs to a new one."""
        now, old = self.now, self.timeline
        kept = tuple(record for record in old.records if record.last <= now)
        lost = len(old.records) - len(kept)
        line = Timeline(len(self.timelines) + 1, old.number, now, kept)
        self.journal.truncate()
        self.known = self.known.up_to(now).with_timeline(line)
        self.note(
            f"timeline {line.number} starts at #{now}; timeline {old.number} keeps its "
            f"{lost} later command{'s' * (lost != 1)}"
        )

    @contextmanager
    def anew(self) -> Iterator[None]:
        """A block that begins again from the boot, on a new timeline without commands. If it raises
        (also by Ctrl-C), everything is restored: this moment, all timelines, settings and names."""
        before, journal, known = self.now, self.journal, self.known
        self.goto(0)
        self.kernel.journal = Journal()
        self.kernel.activate()
        try:
            if len(journal):
                self._branch()
                self.take_notes()
            yield
        except BaseException:
            self.journal.seek(0)
            self.kernel.journal, self.known = journal, known
            self.goto(before)
            raise

    def begin_again(self, line: Timeline, records: tuple[Record, ...]) -> None:
        """Make `line` the current timeline, with only `records`, up to this moment, run so far."""
        self.journal.truncate()
        line = attrs.evolve(line, records=records)
        self.known = self.known.up_to(self.now).with_timeline(line)

    def leave_unfinished(self, records: tuple[Record, ...]) -> None:
        """What has happened since `begin_again` becomes a new timeline; the one begun again keeps
        its `records`."""
        line, number = self.timeline, len(self.timelines) + 1
        self.known = self.known.with_timeline(attrs.evolve(line, records=records))
        made = Timeline(number, line.number, self.end, line.records)
        self.known = self.known.with_timeline(made)

    def _use_for_replay(self, first: int) -> list[Record]:
        """A `use` command for the command list if looking around changed the current task."""
        records = self.timeline.records
        current = self.current_pid
        if current in (NO_TASK, records[-1].current if records else NO_TASK):
            return []
        return [Record(f"use @{current}", first, first, current)]

    @property
    def planted(self) -> str:
        """The name of the mutant that makes this kernel a wrong one at this moment, or empty."""
        return self.known.wrong[system_of(self.kernel).sysctl.planted].name

    def plant(self, name: str, bodies: Mapping[FunctionType, CodeType]) -> None:
        """Let the kernel run `bodies` from now on, which makes it the wrong kernel `name`; without
        bodies it is the right one. Only inside `changing`; the journal keeps a number that does not
        reveal the name."""
        code = crc32(name.encode())
        wrong = {**self.known.wrong, code: Wrong(name, bodies)}
        self.known = attrs.evolve(self.known, wrong=wrong)
        system_of(self.kernel).sysctl.planted = code
        self._run_planted()

    def _run_planted(self) -> None:
        """Let the kernel run what was planted at this moment; going back to before that removes
        it."""
        bodies = self.known.wrong[system.sysctl.planted].bodies
        if self.kernel.bodies is not bodies:
            self.kernel.bodies = bodies
            self.kernel.activate()

    def state_hash(self) -> str:
        """SHA-256 of the canonical dump of all journalled state, in hex."""
        self.kernel.activate()
        return self.kernel.state_hash()

    # --------------------------------------------------------------------------- settings and files

    def settings(self) -> dict[str, int | bool | None]:
        """The settings of the machine at this moment."""
        now = system_of(self.kernel).sysctl
        machine = {
            "aslr": now.randomize_seed,
            "lru_batch": now.lru_batch,
            "fault_around": now.fault_around_bytes,
        }
        return machine | {
            "tmpfs": now.shmem_max_blocks << 12,
            "fail": now.fail_alloc,
            "fail_slab": now.fail_slab,
        }

    def set(self, name: str, value: int | bool | None) -> None:
        """Change a setting; only inside `changing`."""
        now = system_of(self.kernel).sysctl
        if name == "aslr":
            now.randomize_seed = value
        elif name == "lru_batch":
            now.lru_batch = bool(value)
        elif name == "tmpfs":
            if shmem_limit(int(value or 0)):
                raise UsageError(
                    "the files in memory hold more than that already",
                    hint="make them shorter first (see: ls)",
                )
        elif name == "fail":
            now.fail_alloc = int(value or 0)
        elif name == "fail_slab":
            now.fail_slab = int(value or 0)
        else:
            now.fault_around_bytes = int(value or 0)

    def load(self, path: str, data: bytes) -> None:
        """Put a file on disk, its pages cached and clean; only inside `changing`."""
        load_file(path, data)

    def make_file(self, path: str, kind: str, data: bytes, size: int) -> None:
        """Make a file of `size` bytes that begins with `data`, of kind "disk" or "tmpfs"; only
        inside `changing`.  Raises UsageError, with nothing changed, if a tmpfs has no room for the
        data."""
        if kind == "disk":
            load_file(path, data).i_size = size
            return
        error = make_memory_file(path, data, size)
        if error == -ENOSPC:
            raise UsageError(
                f"size: {len(data):#x} bytes are more than the tmpfs may hold",
                hint="set tmpfs SIZE gives it room",
                about="size",
            )
        if error:
            raise UsageError(
                f"size: {len(data):#x} bytes are more than memory has to spare",
                hint="a smaller file, sparse, or more --mem",
                about="size",
            )

    def files_made(self) -> int:
        """The number of files, except nameless ones."""
        return len(system_of(self.kernel).files)

    def file_list(self) -> list[tuple[str, str, int, int]]:
        """Path, kind, size in bytes and cached pages of each file, sorted by path."""
        files = system_of(self.kernel).files
        return [
            (path, node.kind, node.i_size, node.i_mapping.nrpages)
            for path, node in sorted(files.items())
        ]


def system_of(kernel: Kernel) -> System:
    """The globals of the kernel."""
    kernel.activate()
    return system

"""Tracks: the calls of a range, each with the task and the CPU that ran it, and the values drawn as
curves.

The journal does not record on which CPU a command runs, but what it writes tells: the CPU that
switches to another task, or whose TLB or registers change. A command that wrote nothing of a CPU
ran where the one before it ran. A switch belongs to the task that it leads to, any other call to
the task that runs on the CPU when it begins.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from kemu.abi.words import signal_name
from kemu.kernel.include.mmzone import nr_free_pages
from kemu.kernel.include.sched_types import percpu, zone
from kemu.kernel.include.system import system
from kemu.machine.cpu import Cpu
from kemu.machine.tlb import Tlb
from kemu.observe.calls import calls
from kemu.observe.events import directory_at
from kemu.observe.frames import address_spaces
from kemu.observe.look import travelling
from kemu.observe.names import Names
from kemu.observe.tasks import rss_pages
from kemu.observe.who import Directory
from kemu.readings import CallReading, EventReading
from kemu.readings.tracks import Counted, RanCall, Sent, Tracks

if TYPE_CHECKING:
    from kemu.kernel.init.boot import Kernel

Commands = tuple[tuple[str, int, int], ...]
Curr = dict[int, list[tuple[int, int, str]]]
"""For each CPU (moment, pid, name) of the tasks that ran on it, in order."""


class Recorder:
    """What is noted while the machine is moved through the range."""

    def __init__(self, who: Directory) -> None:
        self.who = who
        self.curr: Curr = {cpu.id: [] for cpu in system.cpus}
        self.counters: list[Counted] = []
        self.signals: list[tuple[int, str, int]] = []
        self.known: dict[str, int] = {}
        self.touched: list[tuple[int, int]] = []

    def begin(self, number: int) -> None:
        """The moment before the range."""
        for cpu in system.cpus:
            self._note_curr(number, cpu)
        self._count(number)

    def after(self, number: int, obj: Any, field: Any, old: Any, new: Any) -> None:
        """The event has just happened."""
        if isinstance(obj, (percpu, Cpu, Tlb)):
            self.touched.append((number, obj.cpu if isinstance(obj, Tlb) else obj.id))
        if isinstance(obj, percpu) and field == "curr":
            self._note_curr(number, obj)
        if field in ("pending", "shared_pending") and len(new) > len(old):
            fresh = [info for info in new if not any(info is known for known in old)]
            pid = self.who.task_id(obj)[0] if hasattr(obj, "pid") else -1
            self.signals += [(number, signal_name(info.signo), pid) for info in fresh]
        if isinstance(obj, zone) or getattr(obj, "name", "") == "rss_stat":
            self._count(number)

    def _note_curr(self, number: int, cpu: percpu) -> None:
        if cpu.curr is not None:
            self.curr[cpu.id].append((number, *self.who.task_id(cpu.curr)))

    def _count(self, number: int) -> None:
        """Free frames, and the resident pages of every address space, if they changed."""
        values = {"free frames": nr_free_pages()}
        for space in address_spaces():
            if space is not system.init_mm:
                values[f"rss of {self.who.mm_name(space)}"] = rss_pages(space)
        gone = {name: 0 for name in self.known if name not in values}
        for name, value in {**values, **gone}.items():
            if self.known.get(name) != value:
                self.counters.append(Counted(number, name, value))
                self.known[name] = value


def tracks(
    kernel: Kernel, first: int, last: int, commands: Commands, names: Names = None
) -> Tracks:
    """The tracks of the events ``first`` + 1 to ``last``.  ``UsageError`` outside the journal."""
    tree = calls(kernel, first, last, names, with_events=True)
    with travelling(kernel) as journal:
        recorder = Recorder(directory_at(journal, first, last, names))
        recorder.begin(first)
        for number in range(first + 1, last + 1):
            journal.seek(number)
            recorder.after(number, *journal.event(number))
        places = _Places(recorder, commands)
        roots = tuple(_ran(node, places) for node in tree.roots)
        cpus = len(system.cpus)
    people = {pid: name for runs in recorder.curr.values() for _, pid, name in runs}
    return Tracks(
        first=first,
        last=last,
        roots=roots,
        counters=tuple(recorder.counters),
        signals=tuple(places.sent(*found) for found in recorder.signals),
        commands=tuple(
            command for command in commands if first <= command[1] and command[2] <= last
        ),
        tasks=tuple(sorted(people.items())),
        cpus=cpus,
    )


class _Places:
    """Where calls ran."""

    def __init__(self, recorder: Recorder, commands: Commands) -> None:
        self.curr, self.touched, self.commands = recorder.curr, recorder.touched, commands
        self.switches = sorted(
            (number, cpu) for cpu, runs in recorder.curr.items() for number, _, _ in runs[1:]
        )

    def cpu_of(self, call: CallReading) -> int:
        """The CPU that ran an outermost call."""
        if call.function == "context_switch":
            return _newest(self.switches, call.first, call.last) or 0
        return self.cpu(call.first + 1, call.last)

    def cpu(self, number: int, last: int) -> int:
        """The CPU on which the events ``number`` to ``last`` of one command happened."""
        begin, end = next(
            ((a, b) for _, a, b in self.commands if a < number <= b), (number - 1, last)
        )
        answers = (
            _newest(self.switches, begin, number - 1),
            _oldest(self.touched, number - 1, last),
            _oldest(self.touched, begin, end),
            _newest(self.touched, -1, number),
        )
        return next((cpu for cpu in answers if cpu is not None), 0)

    def task(self, cpu: int, moment: int) -> tuple[int, str]:
        """(pid, name) of the task that runs on the CPU at the moment."""
        runs = self.curr[cpu]
        at = bisect_right(runs, moment, key=lambda run: run[0])
        return (runs[at - 1][1], runs[at - 1][2]) if at else (0, "swapper")

    def sent(self, number: int, name: str, pid: int) -> Sent:
        """A signal; one to a whole process (pid -1) is drawn on the running task."""
        return Sent(
            number, name, pid if pid >= 0 else self.task(self.cpu(number, number), number)[0]
        )


def _ran(
    node: CallReading | EventReading, places: _Places, place: tuple[int, int, str] | None = None
) -> Any:
    """The call with its place, which is that of the outermost one."""
    if isinstance(node, EventReading):
        return node.number, node.text
    if place is None:
        cpu = places.cpu_of(node)
        place = (
            cpu,
            *places.task(cpu, node.last if node.function == "context_switch" else node.first),
        )
    inner = tuple(_ran(child, places, place) for child in node.children)
    return RanCall(node.function, node.path, node.first, node.last, *place, inner)


def _newest(found: list[tuple[int, int]], first: int, last: int) -> int | None:
    """The CPU of the newest of them in (first, last]."""
    at = bisect_right(found, last, key=lambda item: item[0])
    return found[at - 1][1] if at and found[at - 1][0] > first else None


def _oldest(found: list[tuple[int, int]], first: int, last: int) -> int | None:
    """The CPU of the oldest of them in (first, last]."""
    at = bisect_right(found, first, key=lambda item: item[0])
    return found[at][1] if at < len(found) and found[at][0] <= last else None

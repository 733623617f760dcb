"""Commands about tasks: creation, exit, signals, and CPUs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kemu.abi import words
from kemu.commands.calls import call, note_no_stop
from kemu.commands.syscalls import TASK, own_body
from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.result import Result
from kemu.language.spec import CHANGE, FREE, command, flags, keyword, many, maybe, one, rest, some
from kemu.language.tokens import Line
from kemu.readings import Outcome, Text

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task

    Target = Task | kinds.GoneTask

AS = keyword("name", kinds.NEW_TASK, "as")
SIGCHLD = words.SIGNALS["CHLD"]
ENVIRONMENT = ("HOME=/", "TERM=linux")
_START = "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; "


@command(
    "spawn",
    arguments=(one("name", kinds.NEW_TASK),),
    effect=CHANGE,
    summary="start a process: a child of init with an almost empty address space",
    more=(
        "It has a stack, as after exec, and no memory of it has been touched. It becomes the "
        "current task."
    ),
    examples=("spawn app", "spawn app; maps app"),
    linux="fork(2) and execve(2) by init",
)
def spawn(session: Session, name: str) -> Outcome:
    """Make a process and use it."""
    task = session.performer.spawn(name)
    session.give_name(name, task.pid)
    session.use(task.pid)
    return Outcome(pid=task.pid, name=name, call="spawn", arguments=(name,), value=task.pid)


@own_body(
    "fork",
    arguments=(TASK,),
    options=(AS,),
)
def fork(session: Session, task: Task, name: str | None) -> Outcome:
    """Fork the task."""
    return _birth(session, task, "fork", name)


@own_body(
    "vfork",
    arguments=(TASK,),
    options=(AS,),
)
def vfork(session: Session, task: Task, name: str | None) -> Outcome:
    """Vfork the task."""
    return _birth(session, task, "vfork", name)


@own_body(
    "clone",
    arguments=(TASK, some("flags", kinds.WordKind("FLAGS", words.CLONE_FLAGS, prefix="CLONE_"))),
    options=(AS,),
)
def clone(session: Session, task: Task, flags: tuple[int, ...], name: str | None) -> Outcome:
    """Clone the task."""
    bits = 0
    for flag in flags:
        bits |= flag
    thread = bits & words.CLONE_FLAGS["thread"]
    return _birth(session, task, "clone", name, bits | (0 if thread else SIGCHLD))


def _birth(
    session: Session, task: Task, call_name: str, name: str | None, *arguments: Any
) -> Outcome:
    """Make a call that creates a child, and name the child."""
    before = set(session.tasks)
    outcome = call(session, task, call_name, *arguments)
    born = sorted(set(session.tasks) - before)
    for pid in born:
        session.give_name(name or session.child_name(task.pid), pid)
        if session.home(task.pid):
            session.set_home(pid, session.home(task.pid))
    return outcome.replace(arguments=tuple(session.name_of(pid) for pid in born))


@own_body(
    "exec",
    arguments=(TASK, one("path", kinds.PATH), many("argv", kinds.ANY)),
)
def exec_(session: Session, task: Task, path: str, argv: tuple[str, ...]) -> Outcome:
    """Exec a file."""
    return call(
        session,
        task,
        "execve",
        path,
        _bytes([path, *argv]),
        _bytes(ENVIRONMENT),
        shown=[path, *argv],
    )


def _bytes(texts: Iterable[str]) -> list[bytes]:
    return [text.encode("utf-8", "surrogateescape") for text in texts]


@own_body(
    "exit",
    arguments=(TASK, maybe("code", kinds.EXIT_CODE, 0)),
)
def exit_(session: Session, task: Task, code: int) -> Outcome:
    """End the process."""
    return call(session, task, "exit_group", code, shown=[str(code)])


@own_body(
    "wait",
    arguments=(TASK,),
    options=(keyword("child", kinds.PID, "for"), flags("flags", words.WAIT_FLAGS)),
)
def wait(
    session: Session,
    task: Task,
    child: Target | None,
    flags: tuple[int, ...],
) -> Outcome:
    """Wait for a child of the task."""
    known = dict(session.tasks)
    outcome = call(session, task, "wait4", child.pid if child else -1, 0, sum(set(flags)))
    if outcome.value > 0:
        gone = known[outcome.value]
        session.note(f"{session.name_of(gone.pid)} {_end(gone.exit_code)}")
    return outcome


def _end(status: int) -> str:
    """A wait status in words."""
    signal = status & 0x7F
    return (
        f"was killed by {words.signal_name(signal)} (a shell shows {128 + signal})"
        if signal
        else f"exited with {status >> 8 & 0xFF}"
    )


_TARGET = maybe("task", kinds.PID)


@own_body(
    "kill",
    arguments=(_TARGET, maybe("signal", kinds.SIGNAL, words.SIGNALS["TERM"])),
    options=(keyword("sender", kinds.TASK, "by"),),
)
def kill(session: Session, task: Target, signal: int, sender: Task | None) -> Outcome:
    """Send a signal to the task."""
    shown = [session.name_of(task.pid), words.signal_name(signal)]
    if not isinstance(task, kinds.GoneTask):
        note_no_stop(session, task, signal)
    return call(session, sender or _sender(session), "kill", task.pid, signal, shown=shown)


def _sender(session: Session) -> Task:
    """The current task, or init if it is blocked. Raises UsageError without one."""
    current = session.current
    return session.tasks[1] if current.blocked_in else current


@own_body(
    "tgkill",
    arguments=(_TARGET, maybe("signal", kinds.SIGNAL, words.SIGNALS["TERM"])),
    options=(keyword("sender", kinds.TASK, "by"),),
)
def tgkill(session: Session, task: Target, signal: int, sender: Task | None) -> Outcome:
    """Send a signal to the task."""
    if sender is not None and (sender.exit_state or sender.blocked_in):
        raise UsageError(
            f"by: {session.name_of(sender.pid)} cannot run now",
            hint="name a task that is neither blocked nor ended",
        )
    shown = [session.name_of(task.pid), words.signal_name(signal)]
    if not isinstance(task, kinds.GoneTask):
        note_no_stop(session, task, signal)
    return call(
        session, sender or _sender(session), "tgkill", task.tgid, task.pid, signal, shown=shown
    )


@own_body(
    "signal",
    arguments=(
        TASK,
        one("signal", kinds.SIGNAL),
        one("action", kinds.WordKind("ACTION", ("default", "handle", "ignore"))),
    ),
)
def signal(session: Session, task: Task, signal: int, action: str) -> Outcome:
    """Set the disposition of a signal."""
    return call(
        session, task, "sigaction", signal, action, shown=[words.signal_name(signal), action]
    )


@command(
    "schedule",
    arguments=(one("task", kinds.TASK),),
    effect=CHANGE,
    summary="run a task on a CPU",
    more="A kernel thread borrows the address space of the task before it.",
    examples=("spawn app; schedule kthreadd; tlb", "spawn app; spawn other; schedule app"),
    linux="__schedule (kernel/sched/core.c)",
)
def schedule(session: Session, task: Task) -> Text:
    """Switch to the task."""
    session.performer.schedule(task, cpu=session.cpu_for(task))
    return Text((f"{session.name_of(task.pid)} runs",))


@command(
    "setcpu",
    arguments=(TASK, one("cpu", kinds.CPU)),
    effect=CHANGE,
    summary="move a task to a CPU",
    more="It runs there from now on, and so do its later children.",
    examples=("spawn app; setcpu app 1", "spawn app; setcpu 1; read app.stack-8; tlb"),
    linux="sched_setaffinity(2)",
)
def setcpu(session: Session, task: Task, cpu: int) -> Text:
    """Let the task run on the CPU from now on."""
    _check_cpu(session, cpu)
    session.performer.schedule(task, cpu=cpu)
    session.set_home(task.pid, cpu)
    return Text((f"{session.name_of(task.pid)} runs on CPU {cpu}",))


@command(
    "on",
    arguments=(one("cpu", kinds.CPU), rest("command", kinds.COMMAND)),
    effect=FREE,
    summary="run one command on a CPU",
    examples=(_START + "on 1 read app 0x10000; tlb", _START + "on 0 write app 0x10000 8"),
)
def on(session: Session, cpu: int, command: Line) -> list[Result]:
    """Run the command on the CPU."""
    from kemu.commands.perform import perform

    _check_cpu(session, cpu)
    with session.on_cpu(cpu):
        return list(perform(session, command, f"on {cpu} "))


def _check_cpu(session: Session, cpu: int) -> None:
    if cpu >= session.cpus:
        raise UsageError(
            f"cpu: no CPU {cpu}",
            hint=f"the machine has CPUs 0 to {session.cpus - 1}",
            about="cpu",
        )


@command(
    "use",
    arguments=(one("task", kinds.TASK),),
    effect=FREE,
    summary="set the current task, the default for TASK",
    examples=("spawn app; fork as kid; use kid", "spawn app; use init"),
)
def use(session: Session, task: Task) -> Text:
    """Make the task current."""
    if task.exit_state:
        raise UsageError(
            f"task: {session.name_of(task.pid)} has ended", hint="ps lists the tasks", about="task"
        )
    session.use(task.pid)
    return Text((f"{session.name_of(task.pid)} (pid {task.pid}) is current",))

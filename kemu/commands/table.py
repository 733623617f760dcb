"""Which commands there are and where each lives: the only list that is read at start-up.

A module of commands is imported when one of its commands is first used, so that start-up stays
short and nothing imports upwards: packages above this one appear here by dotted path alone. A test
keeps the table true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kemu.abi.calls import BY_WORD
from kemu.errors import UsageError

if TYPE_CHECKING:
    from kemu.language.spec import Command


class Entry(NamedTuple):
    """Where a command lives, in which group `help` shows it, and its one line there."""

    module: str
    group: str
    summary: str


_TASKS, _ACCESS = "kemu.commands.tasks", "kemu.commands.access"
_FILES, _LOOKING, _FRAMES = "kemu.commands.files", "kemu.commands.looking", "kemu.commands.frames"
_MOVING = "kemu.commands.moving"
_STOPPING = "kemu.commands.stopping"
_ASKING = "kemu.commands.asking"
_COSTS = "kemu.commands.costs"
_BRANCHES = "kemu.commands.branches"
_KEEPING = "kemu.commands.keeping"
_COMPARING = "kemu.front.terminal.comparing"
_REPORTING = "kemu.front.terminal.reporting"
_ROWS = "kemu.debugger.rows"
_MOMENTS, _CONTEXT, _GENERAL = (
    "kemu.commands.moments",
    "kemu.commands.context",
    "kemu.commands.general",
)
_TRUST = "kemu.commands.trust"
_TEACHING = "kemu.front.terminal.teaching"
_HELPING, _SETTINGS = "kemu.commands.helping", "kemu.commands.settings"
_GRAPH = "kemu.commands.graph"

GROUPS = {
    "doing": "what a process does",
    "memory": "what it does with its memory, and others'",
    "files": "what it does with files",
    "looking": "look at the machine",
    "time": "move through time",
    "stops": "where to stop",
    "ask": "why it is so, and what it cost",
    "trust": "is it true",
    "lessons": "learn, step by step",
    "shell": "the shell itself",
}

_CALLS = {
    word: Entry(f"kemu.commands.{row.module or 'syscalls'}", row.group, row.summary)
    for word, row in BY_WORD.items()
}
"""The system calls."""

TABLE: dict[str, Entry] = {
    "spawn": Entry(
        _TASKS, "doing", "start a process: a child of init with an almost empty address space"
    ),
    "read": Entry(_ACCESS, "memory", "load bytes, as user code does"),
    "write": Entry(_ACCESS, "memory", "store bytes, as user code does"),
    "fetch": Entry(_ACCESS, "memory", "fetch one instruction, as user code does"),
    **_CALLS,
    "schedule": Entry(_TASKS, "doing", "let a CPU run a task"),
    "setcpu": Entry(_TASKS, "doing", "move a task to a CPU"),
    "on": Entry(_TASKS, "doing", "run one command on a CPU"),
    "use": Entry(_TASKS, "doing", "choose the task that commands without TASK mean"),
    "mkfile": Entry(_FILES, "files", "make a file inside kemu"),
    "load": Entry(_FILES, "files", "bring a file of the host into kemu"),
    "ls": Entry(_FILES, "files", "the files inside kemu"),
    "ps": Entry(_LOOKING, "looking", "all tasks"),
    "tree": Entry(_LOOKING, "looking", "who is whose child"),
    "mm": Entry(_LOOKING, "looking", "the address space of a process in numbers"),
    "maps": Entry(_LOOKING, "looking", "the mappings, as /proc/PID/maps"),
    "smaps": Entry(_LOOKING, "looking", "the mappings with their pages, as /proc/PID/smaps"),
    "status": Entry(_LOOKING, "looking", "/proc/PID/status"),
    "stat": Entry(_LOOKING, "looking", "/proc/PID/stat"),
    "pagemap": Entry(_LOOKING, "looking", "/proc/PID/pagemap of a range"),
    "vma": Entry(_LOOKING, "looking", "the mapping at an address"),
    "dump": Entry(_LOOKING, "looking", "the bytes at an address, without touching them"),
    "regs": Entry(_LOOKING, "looking", "the registers of a task"),
    "walk": Entry(_LOOKING, "looking", "translate an address, level by level"),
    "pt": Entry(_LOOKING, "looking", "the page tables of a process"),
    "frame": Entry(_FRAMES, "looking", "one frame: counts, flags, owners"),
    "rmap": Entry(_FRAMES, "looking", "who maps a frame"),
    "mem": Entry(_FRAMES, "looking", "the whole of RAM on one screen"),
    "tlb": Entry(_FRAMES, "looking", "what the TLBs remember"),
    "free": Entry(_FRAMES, "looking", "free and used memory"),
    "graph": Entry(
        _GRAPH, "looking", "a picture: walk, tables, sharing, mm, rmap, tree, mem, layout, plot"
    ),
    "report": Entry(_REPORTING, "looking", "the session as one HTML file that plays"),
    "layout": Entry(_FRAMES, "looking", "the address space, user and kernel half"),
    "trace": Entry(_MOMENTS, "time", "the events of a command or a range"),
    "calls": Entry(_MOMENTS, "time", "the kernel functions of a command or a range, as a tree"),
    "diff": Entry(_MOMENTS, "time", "what differs between two moments"),
    "context": Entry(_CONTEXT, "time", "show the last change, or choose what is shown after each"),
    "step": Entry(_MOMENTS, "time", "go to the next event"),
    "back": Entry(_MOMENTS, "time", "go to the event before"),
    "goto": Entry(_MOMENTS, "time", "go to any moment"),
    "mark": Entry(_MOMENTS, "time", "give this moment a name"),
    "verify": Entry(_TRUST, "trust", "check the invariants of the kernel"),
    "race": Entry(
        "kemu.commands.race", "trust", "explore every order in which CPUs can take their steps"
    ),
    "mutant": Entry(_TRUST, "trust", "make the kernel a wrong one, for somebody to find"),
    "conform": Entry(_COMPARING, "trust", "compare recorded programs with the real kernel"),
    "real": Entry(_COMPARING, "trust", "repeat the experiment on the host's kernel"),
    "next": Entry(
        _MOVING, "time", "go to the next event of this kernel function, over the calls it makes"
    ),
    "reverse-next": Entry(
        _MOVING, "time", "go back to the event before in this kernel function, over calls"
    ),
    "finish": Entry(_MOVING, "time", "go to where this kernel function returns"),
    "reverse-finish": Entry(_MOVING, "time", "go back to where this kernel function was called"),
    "continue": Entry(_MOVING, "time", "go on to the next stop, or to the newest event"),
    "reverse-continue": Entry(_MOVING, "time", "go back to the stop before, or to the start"),
    "until": Entry(_MOVING, "time", "go on until an expression is true"),
    "undo": Entry(_MOVING, "time", "go back to before the last command that changed the machine"),
    "break": Entry(_STOPPING, "stops", "stop where a kernel function or an event is reached"),
    "tbreak": Entry(_STOPPING, "stops", "as break, but only once"),
    "watch": Entry(_STOPPING, "stops", "stop when an expression changes its value"),
    "catch": Entry(_STOPPING, "stops", "stop at a fault, a signal, a system call or out of memory"),
    "display": Entry(_STOPPING, "stops", "show an expression after each move"),
    "info": Entry(_STOPPING, "stops", "list the breakpoints and their like, with their hits"),
    "enable": Entry(_STOPPING, "stops", "let breakpoints stop again"),
    "disable": Entry(_STOPPING, "stops", "keep breakpoints, but do not stop at them"),
    "delete": Entry(_STOPPING, "stops", "remove breakpoints or displays"),
    "why": Entry(
        _ASKING, "ask", "why something is as it is: the events, the function, the command, the rule"
    ),
    "history": Entry(_ASKING, "ask", "every value that something had, and who changed it"),
    "source": Entry(
        _ASKING, "ask", "where a kernel function is in kemu and in Linux, and what it does"
    ),
    "timelines": Entry(_BRANCHES, "time", "the timelines of this experiment"),
    "switch": Entry(_BRANCHES, "time", "go over to the end of another timeline"),
    "save": Entry(_KEEPING, "shell", "write the commands of this timeline to a file"),
    "restore": Entry(_KEEPING, "shell", "run a saved experiment again, from the boot"),
    "transcript": Entry(_KEEPING, "shell", "all commands so far with what they showed"),
    "cost": Entry(
        _COSTS, "ask", "what a command or a range cost, beside the same with eager copying"
    ),
    "expand": Entry(
        _ROWS, "time", "the entries of a table that fork copied as one event, one by one"
    ),
    "lesson": Entry(_TEACHING, "lessons", "take a guided lesson"),
    "help": Entry(_HELPING, "shell", "this page, or the page of a command"),
    "apropos": Entry(_HELPING, "shell", "which commands have to do with a word"),
    "print": Entry(_GENERAL, "shell", "the value of an expression"),
    "set": Entry(_SETTINGS, "shell", "change a setting of the machine, the session or the shell"),
    "show": Entry(_SETTINGS, "shell", "the settings"),
    "alias": Entry(_GENERAL, "shell", "a short word for a command"),
    "unalias": Entry(_GENERAL, "shell", "forget an alias"),
    "run": Entry(_GENERAL, "shell", "run the commands in a file"),
    "quit": Entry(_GENERAL, "shell", "leave kemu"),
}

ALIASES = {
    "vm": "maps",
    "vtop": "walk",
    "rd": "dump",
    "wr": "write",
    "p": "print",
    "h": "help",
    "reverse-step": "back",
    "rs": "back",
    "s": "step",
    "q": "quit",
    "tb": "tbreak",
    "b": "break",
    "rc": "reverse-continue",
    "c": "continue",
    "rfin": "reverse-finish",
    "fin": "finish",
    "rn": "reverse-next",
    "n": "next",
    **{alias: word for word, row in BY_WORD.items() for alias in row.also},
}
"""Other words for the same commands: crash's for looking, gdb's for moving."""


def find(word: str) -> Command | None:
    """The declared command that `word` names, or None. Imports its module."""
    entry = TABLE.get(ALIASES.get(word, word))
    if entry is None:
        return None
    from importlib import import_module

    from kemu.language.spec import REGISTRY

    import_module(entry.module)
    return REGISTRY[word]


def named(word: str) -> Command:
    """The declared command that `word` names. Imports its module. Raises UsageError if there is
    none."""
    from kemu.language.suggest import did_you_mean

    found = find(word)
    if found is not None:
        return found
    if word in LESSON_WORDS:
        raise UsageError(
            f"no command '{word}': no lesson is being taken",
            hint="lesson lists the lessons, lesson start NUMBER takes one",
        )
    guess = did_you_mean(word, [*TABLE, *ALIASES])
    raise UsageError(f"no command '{word[:40]}'", hint=guess or "help lists the commands")


def load_all() -> list[Command]:
    """Every command, in the order of the table. Imports all modules; for help, docs and tests."""
    found = (find(word) for word in TABLE)
    return [command for command in found if command]


LESSON_WORDS = frozenset({"answer", "hint", "skip", "task", "check", "leave", "previous"})
"""Words that mean something while a lesson is taken."""

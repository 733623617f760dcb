"""Which commands there are and where each lives: the only list that is read at start-up.

A module of commands is imported when one of its commands is first used, so that start-up stays short and nothing
imports upwards: packages above this one appear here by dotted path alone. A test keeps the table true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kemu.errors import UsageError

if TYPE_CHECKING:
    from kemu.commands.spec import Command


class Entry(NamedTuple):
    """Where a command lives, in which group `help` shows it, and its one line there."""

    module: str
    group: str
    summary: str


_TASKS, _MEMORY, _ACCESS = "kemu.commands.tasks", "kemu.commands.memory", "kemu.commands.access"
_FILES, _LOOKING, _FRAMES = "kemu.commands.files", "kemu.commands.looking", "kemu.commands.frames"
_MOMENTS, _CONTEXT, _GENERAL = "kemu.commands.moments", "kemu.commands.context", "kemu.commands.general"

GROUPS = {
    "doing": "what a process does",
    "looking": "look at the machine",
    "time": "move through time",
    "shell": "the shell itself",
}

TABLE: dict[str, Entry] = {
    "spawn": Entry(_TASKS, "doing", "start a process: a child of init with an almost empty address space"),
    "fork": Entry(_TASKS, "doing", "copy a process; its memory is shared until someone writes"),
    "vfork": Entry(_TASKS, "doing", "a child in the same address space; the parent waits for it"),
    "clone": Entry(_TASKS, "doing", "a child that shares what the flags say"),
    "exec": Entry(_TASKS, "doing", "replace the program of a process"),
    "exit": Entry(_TASKS, "doing", "end a process"),
    "wait": Entry(_TASKS, "doing", "collect a child that has ended"),
    "kill": Entry(_TASKS, "doing", "send a signal"),
    "signal": Entry(_TASKS, "doing", "say what a signal does to a process"),
    "schedule": Entry(_TASKS, "doing", "let a CPU run a task"),
    "setcpu": Entry(_TASKS, "doing", "move a task to a CPU"),
    "on": Entry(_TASKS, "doing", "run one command on a CPU"),
    "use": Entry(_TASKS, "doing", "choose the task that commands without TASK mean"),
    "mmap": Entry(_MEMORY, "doing", "map memory or a file"),
    "munmap": Entry(_MEMORY, "doing", "take a mapping away"),
    "mprotect": Entry(_MEMORY, "doing", "change what may be done with memory"),
    "brk": Entry(_MEMORY, "doing", "move the end of the heap"),
    "read": Entry(_ACCESS, "doing", "load bytes, as user code does"),
    "write": Entry(_ACCESS, "doing", "store bytes, as user code does"),
    "fetch": Entry(_ACCESS, "doing", "fetch one instruction, as user code does"),
    "load": Entry(_FILES, "doing", "bring a file of the host into kemu"),
    "ls": Entry(_FILES, "looking", "the files inside kemu"),
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
    "layout": Entry(_FRAMES, "looking", "the address space, user and kernel half"),
    "trace": Entry(_MOMENTS, "time", "the events of a command or a range"),
    "calls": Entry(_MOMENTS, "time", "the kernel functions of a command or a range, as a tree"),
    "diff": Entry(_MOMENTS, "time", "what differs between two moments"),
    "context": Entry(_CONTEXT, "time", "show the last change, or choose how much is shown after each"),
    "step": Entry(_MOMENTS, "time", "go to the next event"),
    "back": Entry(_MOMENTS, "time", "go to the event before"),
    "goto": Entry(_MOMENTS, "time", "go to any moment"),
    "mark": Entry(_MOMENTS, "time", "give this moment a name"),
    "help": Entry(_GENERAL, "shell", "this page, or the page of a command"),
    "print": Entry(_GENERAL, "shell", "the value of an expression"),
    "set": Entry(_GENERAL, "shell", "change a setting of the machine"),
    "show": Entry(_GENERAL, "shell", "the settings"),
    "alias": Entry(_GENERAL, "shell", "a short word for a command"),
    "run": Entry(_GENERAL, "shell", "run the commands in a file"),
    "quit": Entry(_GENERAL, "shell", "leave kemu"),
}

ALIASES = {
    "vm": "maps",
    "vtop": "walk",
    "rd": "dump",
    "wr": "write",
    "p": "print",
    "reverse-step": "back",
    "rs": "back",
    "s": "step",
    "q": "quit",
}
"""Other words for the same commands: crash's for looking, gdb's for moving."""


def find(word: str) -> Command | None:
    """The declared command that `word` names, or None. Imports its module."""
    entry = TABLE.get(ALIASES.get(word, word))
    if entry is None:
        return None
    from importlib import import_module

    from kemu.commands.spec import REGISTRY

    import_module(entry.module)
    return REGISTRY[word]


def load_all() -> list[Command]:
    """Every command, in the order of the table. Imports all modules; for help, docs and tests."""
    found = (find(word) for word in TABLE)
    return [command for command in found if command]


def unknown(word: str) -> UsageError:
    """What to say about a word that is no command."""
    from kemu.commands.suggest import did_you_mean

    guess = did_you_mean(word, [*TABLE, *ALIASES])
    return UsageError(f"no command '{word[:40]}'", hint=guess or "help lists the commands")

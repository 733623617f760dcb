"""The table of commands: name, module and group. It is the only list read at start-up; everything
else about a command is in its declaration.

A module of commands is imported when one of its commands is first used, which keeps start-up short.
Packages above this one appear only as dotted paths, so nothing imports upwards. A test compares the
table with the declarations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kemu.abi.calls import BY_WORD
from kemu.errors import UsageError

if TYPE_CHECKING:
    from kemu.language.spec import Command


class Entry(NamedTuple):
    """The module of a command, and its group in `help`."""

    module: str
    group: str


GROUPS = {
    "doing": "what a process does",
    "memory": "what it does with memory",
    "files": "what it does with files",
    "looking": "look at the machine",
    "time": "move through time",
    "stops": "where to stop",
    "ask": "explain the state, and its cost",
    "trust": "check the kernel",
    "lessons": "take a lesson",
    "shell": "the shell itself",
}

_FIRST = (
    ("doing", "commands.tasks", "spawn"),
    ("memory", "commands.access", "read write fetch"),
)
_REST = (
    ("doing", "commands.tasks", "schedule setcpu on use"),
    ("files", "commands.files", "mkfile load ls"),
    (
        "looking",
        "commands.looking",
        "ps tree mm maps smaps status stat pagemap vma dump regs walk pt",
    ),
    ("looking", "commands.examine", "x"),
    ("looking", "commands.frames", "frame rmap mem tlb free"),
    ("looking", "commands.graph", "graph"),
    ("looking", "front.terminal.reporting", "report"),
    ("looking", "commands.frames", "layout"),
    ("time", "commands.moments", "trace calls diff"),
    ("time", "commands.context", "context"),
    ("time", "commands.moments", "step back goto mark"),
    ("trust", "commands.trust", "verify"),
    ("trust", "commands.race", "race"),
    ("trust", "commands.trust", "mutant"),
    ("trust", "front.terminal.comparing", "conform real"),
    ("time", "commands.moving", "next reverse-next finish reverse-finish"),
    ("time", "commands.moving", "continue reverse-continue until undo"),
    ("stops", "commands.stopping", "break tbreak watch catch display info enable disable delete"),
    ("ask", "commands.asking", "why history"),
    ("ask", "commands.code", "bt list source"),
    ("time", "commands.branches", "timelines switch"),
    ("shell", "commands.keeping", "save restore transcript"),
    ("ask", "commands.costs", "cost"),
    ("time", "debugger.rows", "expand"),
    ("lessons", "front.terminal.teaching", "lesson"),
    ("shell", "commands.helping", "help apropos"),
    ("shell", "commands.general", "print"),
    ("shell", "commands.settings", "set show"),
    ("shell", "commands.general", "alias unalias run quit"),
)
"""(group, module below kemu, commands), in the order of `help`; the system calls come between."""

_CALLS = [
    (row.group, f"commands.{row.module or 'syscalls'}", word) for word, row in BY_WORD.items()
]

TABLE: dict[str, Entry] = {
    word: Entry(f"kemu.{module}", group)
    for group, module, words in (*_FIRST, *_CALLS, *_REST)
    for word in words.split()
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
    "backtrace": "bt",
    "where": "bt",
    "l": "list",
    "vmmap": "maps",
    "hexdump": "dump",
    "n": "next",
    **{alias: word for word, row in BY_WORD.items() for alias in row.also},
}
"""Alias -> command: crash's names for looking, gdb's for moving."""


def known(word: str) -> bool:
    """Whether a command has that name, without importing it."""
    return word in TABLE or word in ALIASES


def find(word: str) -> Command | None:
    """The declared command that `word` names, or None. Imports its module."""
    entry = TABLE.get(ALIASES.get(word, word))
    if entry is None:
        return None
    from importlib import import_module

    from kemu.language.spec import REGISTRY

    import_module(entry.module)
    return REGISTRY[word]


def named(word: str, source: str = "") -> Command:
    """The declared command that `word` names. Imports its module. Raises UsageError for an unknown
    word; `source` is the whole command."""
    found = find(word)
    if found is not None:
        return found
    if word in LESSON_WORDS:
        raise UsageError(
            f"no command '{word}': no lesson is being taken",
            hint="lesson lists the lessons, lesson start NUMBER starts one",
        )
    if word.startswith("!") or word == "py":
        raise UsageError(
            f"{word[:40]}: at the prompt alone: no script, saved experiment or lesson reaches the "
            "host so",
            hint="see: help prompt",
        )
    raise missing(word, source)


def missing(word: str, source: str = "") -> UsageError:
    """The complaint about a word that is not a command; `source` is the whole command."""
    from kemu.commands.unknown import unknown

    commands = {**dict(zip(TABLE, TABLE, strict=True)), **ALIASES}
    return unknown(word, source, commands, lambda name: named(name).synopsis)


def load_all() -> list[Command]:
    """Every command, in the order of the table. Imports all modules."""
    found = (find(word) for word in TABLE)
    return [command for command in found if command]


LESSON_WORDS = {
    "task": "show the question again; when the step is done, go to the next one",
    "check": "test whether the machine is as the step wants it",
    "hint": "show the next hint; hints cost nothing",
    "answer": "answer the question: answer 3, answer b, or a sentence",
    "skip": "show the solution and run it; the step then earns no points",
    "reset": "start the step again",
    "play": "try things on a copy of the machine, where nothing counts",
    "return": "end free play and go back to the step",
    "previous": "go to the step before",
    "next": "go to the next step (lesson next, since next is a command)",
    "step": "go to a step by its number or name (lesson step 3, since step is a command)",
    "problem": "write a report for the author of the lesson",
    "leave": "end the lesson; progress is kept",
    "sure": "say that you are sure of the answer just given",
    "fairly": "say that you are fairly sure of the answer just given",
    "guess": "say that the answer just given is a guess",
}
"""What the words of a lesson do; a word that is also a command is the lesson's after `lesson`."""

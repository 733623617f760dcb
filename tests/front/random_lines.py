"""Random command lines, made from the declarations of the commands: whole ones, and damaged ones.

    python -m tests.front.random_lines SEED COUNT | kemu run --keep-going -

A line is *valid* when it follows the grammar; the machine may still refuse it. `run` and `load`
read files that do not exist or are small; `quit` is left out, for it would end the run, and `real`,
for it asks the host's kernel.
"""

from __future__ import annotations

import random
import sys

from kemu.commands import table
from kemu.language import kinds
from kemu.language.kinds import NumberKind, WordKind
from kemu.language.spec import Argument, Command

LEFT_OUT = {"quit", "real", "save", "transcript"}
WEIGHTS = {
    **dict.fromkeys(
        ["mmap", "munmap", "mprotect", "brk", "read", "write", "fetch", "fork", "use"], 9
    ),
    **dict.fromkeys(
        [
            "vfork",
            "wait",
            "exit",
            "kill",
            "goto",
            "back",
            "step",
            "run",
            "load",
            "setcpu",
            "on",
            "conform",
            "setrlimit",
        ],
        1,
    ),
}
"""How often a command is drawn; 3 for the others. Those that end or stop tasks are rare, or nobody
would be left."""
NOT_WRITTEN = ["/no/such/folder/x.svg", "/no/such/folder/x.html", "/dev/null", "."]
"""Files that a command is asked to write, and cannot."""
NAMES = [*["app", "kid", "a"] * 6, "b", "worker", "init", "kthreadd", "app.2"]
FRESH = "goto end; kill {0} KILL by init; spawn {0}; signal {0} SEGV handle; mmap {0} 0x10000 4p rw; write {0} 0x10000 7"
SETUP = [
    FRESH.format("app"),
    FRESH.format("a"),
    "fork app as kid",
    "fork a as b",
    "use app",
    "mmap a 0x20000 4p rwx shared",
]
"""Lines that keep the machine busy; among random ones most tasks die young, or wait for ever."""

ADDRESSES = [
    "0x10000", "0x11000", "0x10ff8", "0x12345", "0", "1", "app.heap", "app.stack", "app.stack-8", "0x7ffffffff000",
    "0x7fffffffffff", "0x800000000000", "0xffff888000000000", "0xffffffff81000000", "0xffffffffffffffff", "0x200000",
    "(0x10000 + 2*4096)", "0x10000+1p", "$pid", "0x1000000", "0xfffffffffffff000",
]  # fmt: skip
SIZES = [
    "1p",
    "3p",
    "4096",
    "1",
    "0",
    "2M",
    "0x7fffffffffff",
    "0xffffffffffffffff",
    "16p",
    "100",
    "8",
    "1K",
]
SMALL = ["1", "2", "8", "100", "0", "1p", "3p", "0x7fffffffffff"]
"""Sizes of one access: the machine would really do a large one, page by page, and record it."""
NUMBERS = ["0", "1", "2", "3", "7", "0b11", "12", "(1+1)", "255", "100"]
TEXTS = ["x", "'two words'", '"a"', "/bin/a", "7", "é"]
EXPRESSIONS = [
    "1 + 2",
    "pfn(init, 0x10000)",
    "app.rss == 0",
    "$pid",
    "'a' == 'b'",
    "shared(app, kid)",
    "0x10 << 3",
    "tasks()",
]
NOISE = [
    "", "(", ")", "'", '"', ";", "#", "@", "@99", "@x", "0x", "3q", "-1", "10**400", "9" * 300, "(" * 300, "\x00", "\x1b[2J", "é",
    "\u0663", "\udc80", "$nope", "nobody", "--help", "..", "/", "a.b.c", "1/0", "1<<1000000000", "~", "and", "as", "file", "=",
    "0x1ffffffffffffffff", "99999999999999999999", "-0x8000000000000000", "\t", "rwxrwx", "none", "all",
]  # fmt: skip


def valid(rng: random.Random) -> str:
    """A line that follows the grammar of one command."""
    commands = [made for made in table.load_all() if made.name not in LEFT_OUT]
    (made,) = rng.choices(commands, [WEIGHTS.get(made.name, 3) for made in commands])
    return " ".join([rng.choice(made.words), *_arguments(rng, made), *_options(rng, made)])


def _arguments(rng: random.Random, made: Command) -> list[str]:
    words = []
    for argument in made.arguments:
        words += [_value(rng, argument) for _ in range(_times(rng, argument))]
    return words


def _times(rng: random.Random, argument: Argument) -> int:
    if argument.count in ("one", "rest"):
        return 1
    if argument.count in ("some", "many"):
        return rng.randint(argument.count == "some", 3)
    return rng.random() < (0.8 if argument.kind is kinds.TASK else 0.5)


def _options(rng: random.Random, made: Command) -> list[str]:
    words = []
    for option in made.options:
        if option.kind is None:
            words += rng.sample(
                sorted(option.words), min(rng.choice([0, 0, 1, 2]), len(option.words))
            )
        elif rng.random() < 0.4:
            words.append(next(iter(option.words)))
            if option.kind is kinds.HOST_PATH:
                words.append(rng.choice(NOT_WRITTEN))
                continue
            words += [_value(rng, Argument(option.name, option.kind)) for _ in range(option.values)]
    return words


def _value(rng: random.Random, argument: Argument) -> str:
    kind = argument.kind
    if isinstance(kind, WordKind):
        return rng.choice(sorted(kind.words))
    if kind is kinds.ADDRESS:
        return rng.choice(ADDRESSES)
    if kind is kinds.SIZE:
        return rng.choice(SMALL if argument.name in ("size", "count") else SIZES)
    if isinstance(kind, NumberKind):
        return rng.choice(NUMBERS)
    if kind.name == "COMMAND":
        return valid(rng)
    return rng.choice(_SAMPLES.get(kind.name, TEXTS))


_SAMPLES = {
    "TASK": [*NAMES, "@1", "@2", "@3", "@4"],
    "NAME": ["app", "kid", "a", "b", "worker", "before", "after"],
    "PROT": ["r", "rw", "rwx", "none", "x", "w", "r-x"],
    "DATA": ['"x"', "7", "7b", '"hello world"', "0xdeadbeef", "'\\x00\\xff'"],
    "MOMENT": ["0", "1", "10", "100", "start", "end", "here", "before", "after"],
    "EXPR": EXPRESSIONS,
    "FILE": ["/bin/a", "'/x y'", "/bin/a@1p", "./rel/a"],
    "HOSTFILE": ["/nonexistent", "./missing", "/dev/null", "."],
    "ARGS": TEXTS,
    "FUNCTION": ["do_wp_page", "copy_mm", "exc_page_fault", "nosuch"],
    "WHERE": ["do_wp_page", "pte", "_refcount", "nosuch"],
    "FIELD": ["_refcount", "vm_flags", "total_vm", "state", "nosuch"],
    "TOPIC": ["fork", "mmap", "copy", "sizes", "zzz"],
}


def damaged(rng: random.Random) -> str:
    """A valid line with something wrong in it."""
    line = valid(rng)
    for _ in range(rng.randint(1, 3)):
        line = rng.choice(_DAMAGES)(rng, line)
    return line.replace("\n", " ")


def _drop(rng, line):
    words = line.split(" ")
    del words[rng.randrange(len(words))]
    return " ".join(words)


def _swap(rng, line):
    words = line.split(" ")
    rng.shuffle(words)
    return " ".join(words)


def _insert(rng, line):
    words = line.split(" ")
    words.insert(rng.randint(0, len(words)), rng.choice(NOISE))
    return " ".join(words)


def _replace(rng, line):
    words = line.split(" ")
    words[rng.randrange(len(words))] = rng.choice(NOISE)
    return " ".join(words)


def _cut(rng, line):
    return line[: rng.randint(0, len(line))]


def _letter(rng, line):
    at = rng.randint(0, len(line))
    return (
        line[:at]
        + chr(rng.choice([0, 9, 27, 34, 39, 40, 59, 255, 0x4E2D, 0x1F600, rng.randint(32, 126)]))
        + line[at + 1 :]
    )


_DAMAGES = (_drop, _swap, _insert, _replace, _cut, _letter)


def lines(seed: int, count: int) -> list[str]:
    """`count` lines, more than half of them valid. The same for the same seed."""
    rng = random.Random(seed)
    return [_line(rng) for _ in range(count)]


def _line(rng: random.Random) -> str:
    if rng.random() < 0.15:
        return rng.choice(SETUP)
    return valid(rng) if rng.random() < 0.7 else damaged(rng)


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    sys.stdout.write("\n".join(lines(int(sys.argv[1]), int(sys.argv[2]))) + "\n")

"""The keys of a lesson file: which there are, of what type, and how each becomes a value.

A reader takes what TOML gave and returns the value, or raises `Wrong` with words that complete
"KEY: ...".  The rule that keeps this file honest: it reads values and knows nothing of machines,
expressions or files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from kemu.lessons.format.lesson import FINDINGS, KINDS, Condition, Goal, Item, Machine, Option

LONGEST_TEXT, MOST_ENTRIES = 20_000, 200
ID = re.compile(r"[\w.-]+(/[\w.-]+)*\Z")


class Wrong(Exception):
    """A value that the key cannot have; the text completes "KEY: "."""


Reader = Callable[[Any], Any]


def text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise Wrong(f"expected a text, got {shown(value)}")
    if len(value) > LONGEST_TEXT:
        raise Wrong(f"a text of {len(value)} characters is too long (at most {LONGEST_TEXT})")
    return value


def number(low: int, high: int) -> Reader:
    """A whole number in the range."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise Wrong(f"expected a number from {low} to {high}, got {shown(value)}")
        return value

    return read


def truth(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise Wrong(f"expected true or false, got {shown(value)}")
    return value


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts; a text alone is a list of one."""
    values = value if isinstance(value, list) else [value]
    if len(values) > MOST_ENTRIES:
        raise Wrong(f"{len(values)} entries are too many (at most {MOST_ENTRIES})")
    return tuple(text(item) for item in values)


def expressions(value: Any) -> tuple[str, ...]:
    """Expressions: texts, of which a number or a truth value may be written without quotes."""
    values = value if isinstance(value, list) else [value]
    plain = [str(item).lower() if isinstance(item, (int, bool)) else item for item in values]
    if not plain:
        raise Wrong("the list is empty")
    return texts(plain)


def word(*known: str) -> Reader:
    """One of the words."""

    def read(value: Any) -> str:
        if value not in known:
            raise Wrong(f"expected one of {', '.join(known)}, got {shown(value)}")
        return str(value)

    return read


def words_of(*known: str) -> Reader:
    """Some of the words."""
    one = word(*known)
    return lambda value: tuple(one(item) for item in texts(value))


def named_texts(value: Any) -> tuple[tuple[str, str], ...]:
    """A table of texts, in its order; numbers may stand without quotes."""
    if not isinstance(value, dict):
        raise Wrong(f"expected a table such as {{ name = 'text' }}, got {shown(value)}")
    if len(value) > MOST_ENTRIES:
        raise Wrong(f"{len(value)} entries are too many (at most {MOST_ENTRIES})")
    return tuple(
        (name, str(item) if type(item) is int else text(item)) for name, item in value.items()
    )


def named_numbers(value: Any) -> tuple[tuple[str, int], ...]:
    """A table of points."""
    if not isinstance(value, dict) or not value.keys() <= set(FINDINGS):
        raise Wrong(f"expected a table with some of {', '.join(FINDINGS)}, got {shown(value)}")
    read = number(0, 1000)
    return tuple((name, read(item)) for name, item in value.items())


def sequences(value: Any) -> tuple[tuple[str, ...], ...]:
    """A list of commands, or a list of such lists."""
    if isinstance(value, list) and value and all(isinstance(item, list) for item in value):
        return tuple(texts(item) for item in value)
    return (texts(value),) if value else ()


def tables(
    known: Mapping[str, tuple[Reader, bool]], make: Callable[..., Any], plain: str = ""
) -> Reader:
    """A list of tables with the keys `known` (reader, needed), each made into a value; a text may
    stand for `{plain = text}`."""

    def one(value: Any) -> Any:
        if plain and isinstance(value, str):
            value = {plain: value}
        if not isinstance(value, dict):
            raise Wrong(f"expected a table with {', '.join(known)}, got {shown(value)}")
        strange = next((key for key in value if key not in known), None)
        missing = next(
            (key for key, (_, needed) in known.items() if needed and key not in value), None
        )
        if strange:
            raise Wrong(f"unknown '{strange}'; known are {', '.join(known)}")
        if missing:
            raise Wrong(f"'{missing}' is missing in {shown(value)}")
        return make(**{key: known[key][0](item) for key, item in value.items()})

    def read(value: Any) -> tuple[Any, ...]:
        values = value if isinstance(value, list) else [value]
        if len(values) > MOST_ENTRIES:
            raise Wrong(f"{len(values)} entries are too many (at most {MOST_ENTRIES})")
        return tuple(one(item) for item in values)

    return read


def right(value: Any) -> str:
    """An expression that says whether an option is right."""
    return str(value).lower() if isinstance(value, bool) else text(value)


CONDITIONS = tables({"that": (text, True), "say": (text, False)}, Condition, plain="that")
OPTIONS = tables({"text": (text, True), "right": (right, False), "why": (text, False)}, Option)
ITEMS = tables({"text": (text, True), "at": (text, False), "never": (text, False)}, Item)
GOALS = tables({"text": (text, True), "that": (text, True)}, Goal)


def size(value: Any) -> int:
    """A size of memory: `64M`, at most 256 MiB, for a lesson must stay small."""
    match = re.fullmatch(r"([0-9]{1,12})([KMG]?)", str(value).strip())
    found = int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]] if match else 0
    if not 1 << 20 <= found <= 256 << 20:
        raise Wrong(f"mem: expected a size from 1M to 256M, got {shown(value)}")
    return found


GEOMETRIES = ("x86-64", "x86-64-la57", "sv39")


def machine(value: Any) -> Machine:
    """What the machine is made with."""
    readers = {"mem": size, "geometry": word(*GEOMETRIES), "cpus": number(1, 8), "lru_batch": truth}
    if not isinstance(value, dict) or not value.keys() <= readers.keys():
        raise Wrong(f"expected a table with some of {', '.join(readers)}, got {shown(value)}")
    return Machine(**{key: readers[key](item) for key, item in value.items()})


def identity(value: Any) -> str:
    """A lesson's id: COURSE/NAME."""
    if not isinstance(value, str) or not ID.match(value) or len(value) > 80 or ".." in value:
        raise Wrong(f"expected an id such as vm/copy-on-write, got {shown(value)}")
    return value


def version(value: Any) -> int:
    """The version of the format; the parser compares it."""
    return int(number(0, 10**6)(value))


def shown(value: Any) -> str:
    """The value in a message."""
    made = repr(value)
    return made if len(made) <= 40 else made[:37] + "..."


FRONT: dict[str, Reader] = {
    "format": version, "id": identity, "title": text, "goal": text, "minutes": number(1, 600), "requires": texts,
    "teaches": texts, "machine": machine, "vars": named_texts, "setup": texts, "allow": texts, "deny": texts,
    "mode": word("guided", "exam", "free"), "license": text, "authors": texts, "next": text, "language": text,
    "confidence": truth, "packed": text,
}  # fmt: skip
"""The keys of the front matter."""
FRONT_NEEDED = ("format", "id", "title")

_ANSWERS = frozenset({"predict", "answer"})
STEP: dict[str, tuple[Reader, frozenset[str]]] = {
    "id": (text, frozenset(KINDS)), "title": (text, frozenset(KINDS)), "points": (number(0, 1000), frozenset(KINDS)),
    "ask": (text, frozenset(KINDS)), "hints": (texts, frozenset(KINDS)), "solution": (texts, frozenset(KINDS)),
    "not_solution": (sequences, frozenset(KINDS)), "explain": (text, frozenset(KINDS)), "tags": (texts, frozenset(KINDS)),
    "attempts": (number(0, 1000), frozenset(KINDS)), "setup": (texts, frozenset(KINDS)), "let": (named_texts, frozenset(KINDS)),
    "plant": (text, frozenset(KINDS)), "start": (word("carry", "setup", "boot"), frozenset(KINDS)),
    "carry": (truth, frozenset(KINDS)), "makes": (texts, frozenset(KINDS)), "machine": (machine, frozenset(KINDS)),
    "allow": (texts, frozenset(KINDS)), "deny": (texts, frozenset(KINDS)), "locked": (texts, frozenset(KINDS)),
    "reveal": (texts, frozenset({"predict", "order", "choice"})), "expect": (expressions, _ANSWERS),
    "accept": (text, _ANSWERS), "sample": (text, _ANSWERS),
    "wrong": (named_texts, _ANSWERS), "why": (text, frozenset(KINDS)), "words": (texts, _ANSWERS),
    "show": (texts, frozenset({"predict", "answer", "order", "choice"})), "confidence": (truth, frozenset(KINDS)),
    "commands": (texts, frozenset({"run"})), "all": (truth, frozenset({"run"})), "free": (texts, frozenset({"run"})),
    "must": (CONDITIONS, frozenset({"state", "bug", "run"})), "never": (CONDITIONS, frozenset({"state"})),
    "options": (OPTIONS, frozenset({"choice"})), "several": (truth, frozenset({"choice"})),
    "shuffle": (truth, frozenset({"choice"})), "items": (ITEMS, frozenset({"order"})),
    "find": (words_of(*FINDINGS), frozenset({"bug"})), "parts": (named_numbers, frozenset({"bug"})),
    "event": (expressions, frozenset({"bug"})), "invariant": (expressions, frozenset({"bug"})),
    "frame": (expressions, frozenset({"bug"})), "function": (expressions, frozenset({"bug"})),
    "goals": (GOALS, frozenset({"explore"})),
}  # fmt: skip
"""The keys of a step, and the kinds that may have them."""
STEP_NEEDED = {
    "predict": ("reveal", "expect"), "run": ("commands",), "state": ("must",), "bug": ("plant", "find"), "order": ("items",),
    "choice": ("options",), "answer": ("expect",), "explain": (), "explore": (),
}  # fmt: skip
UNGRADED = frozenset({"explain", "explore"})
"""Kinds whose points are 0 unless they are written."""


STRIPPED = frozenset({
    "solution", "not_solution", "explain", "expect", "wrong", "must", "never", "why",
    "event", "invariant", "frame", "function", "makes", "accept", "sample",
})  # fmt: skip
"""The keys of a step that give answers away: what `lesson pack --student` takes out."""

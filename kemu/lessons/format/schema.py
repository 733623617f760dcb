"""How a class declares the keys of a table of TOML, and the readers of their values.

    @attrs.frozen
    class Goal:
        text: str = key(text, holds=PROSE, needed=True)
        that: str = key(text, holds=EXPRESSION, needed=True)

A reader takes what TOML gave and returns the value, or raises `Wrong` with words that complete
"KEY: ...".  What a key holds decides what else happens to it: prose is rendered and translated,
expressions and commands are checked.  Nothing here knows machines or files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import attrs

LONGEST_TEXT, MOST_ENTRIES = 20_000, 200
ID = re.compile(r"[\w.-]+(/[\w.-]+)*\Z")


class Wrong(Exception):
    """A value that the key cannot have; the text completes "KEY: "."""


Reader = Callable[[Any], Any]

PROSE = "prose"
"""Text for people, with `{expr}` in it: rendered when it is shown, and translated."""
TEMPLATE = "template"
"""Text for the machine, with `{expr}` in it: rendered, never translated."""
EXPRESSION = "expression"
COMMANDS = "commands"
SOLUTION = "solution"
"""Commands, and lines `answer ...`."""
BELIEFS = "beliefs"
"""Pairs of an expression and the prose about whoever believes it."""


class Key(NamedTuple):
    """A key: its reader, what it holds, whether it must be there, and whether it gives the answer
    away (`lesson pack --student` takes it out)."""

    read: Reader
    holds: str = ""
    needed: bool = False
    secret: bool = False


def key(
    read: Reader,
    default: Any = attrs.NOTHING,
    *,
    holds: str = "",
    needed: bool = False,
    secret: bool = False,
) -> Any:
    """A field of an attrs class that is read from a key of the same name."""
    return attrs.field(default=default, metadata={"key": Key(read, holds, needed, secret)})


def keys(made: type) -> dict[str, Key]:
    """The keys that the class declares, by name."""
    fields = attrs.fields(made)
    return {field.name: field.metadata["key"] for field in fields if "key" in field.metadata}


def holding(part: Any, *what: str) -> Iterator[tuple[str, str]]:
    """(key, text) of each text of the part, or of one inside it, that holds one of these."""
    for name, declared in keys(type(part)).items():
        for text in _texts(getattr(part, name), declared.holds, what):
            yield name, text


def _texts(value: Any, holds: str, what: tuple[str, ...]) -> Iterator[str]:
    if attrs.has(type(value)):
        yield from (text for _, text in holding(value, *what))
    elif isinstance(value, tuple):
        for item in value:
            if holds == BELIEFS:
                yield from (item[:1] if EXPRESSION in what else ())
                yield from (item[1:] if PROSE in what else ())
            else:
                yield from _texts(item, holds, what)
    elif value and holds in what:
        yield value


def retold(part: Any, place: str, seen: Callable[[str, str], str]) -> Any:
    """The part with each text for people replaced by what `seen(place, text)` gives; places are
    `ask`, `hints.1`, `wrong.KEY`, `options.1.why`."""

    def one(at: str, text: str) -> str:
        return seen(at, text) if text else text

    def told(at: str, value: Any, holds: str) -> Any:
        if holds == BELIEFS:
            return tuple((name, one(f"{at}.{name}", text)) for name, text in value)
        if isinstance(value, tuple):
            return tuple(inner(f"{at}.{n}", item, holds) for n, item in enumerate(value, 1))
        return one(at, value) if holds == PROSE else value

    def inner(at: str, item: Any, holds: str) -> Any:
        if not attrs.has(type(item)):
            return one(at, item) if holds == PROSE else item
        names = [name for name, declared in keys(type(item)).items() if declared.holds == PROSE]
        places = {name: f"{at}.{name}" if len(names) > 1 else at for name in names}
        texts = {name: one(where, getattr(item, name)) for name, where in places.items()}
        return attrs.evolve(item, **texts)

    changed = {
        name: told(f"{place}{name}", getattr(part, name), declared.holds)
        for name, declared in keys(type(part)).items()
    }
    return attrs.evolve(part, **changed)


def text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise Wrong(f"expected a text, got {shown(value)}")
    if len(value) > LONGEST_TEXT:
        raise Wrong(f"{len(value)} characters is too long (at most {LONGEST_TEXT})")
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
        raise Wrong(f"{len(values)} entries is too many (at most {MOST_ENTRIES})")
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
        raise Wrong(f"{len(value)} entries is too many (at most {MOST_ENTRIES})")
    return tuple(
        (name, str(item) if type(item) is int else text(item)) for name, item in value.items()
    )


def named_numbers(*known: str) -> Reader:
    """A table of points, for some of the words."""

    def read(value: Any) -> tuple[tuple[str, int], ...]:
        if not isinstance(value, dict) or not value.keys() <= set(known):
            raise Wrong(f"expected a table with some of {', '.join(known)}, got {shown(value)}")
        points = number(0, 1000)
        return tuple((name, points(item)) for name, item in value.items())

    return read


def sequences(value: Any) -> tuple[tuple[str, ...], ...]:
    """A list of commands, or a list of such lists."""
    if isinstance(value, list) and value and all(isinstance(item, list) for item in value):
        return tuple(texts(item) for item in value)
    return (texts(value),) if value else ()


def tables(made: type, plain: str = "") -> Reader:
    """A list of tables with the keys that the class declares, each made into one of it; a text may
    stand for `{plain = text}`."""
    known = keys(made)

    def one(value: Any) -> Any:
        if plain and isinstance(value, str):
            value = {plain: value}
        if not isinstance(value, dict):
            raise Wrong(f"expected a table with {', '.join(known)}, got {shown(value)}")
        strange = next((name for name in value if name not in known), None)
        missing = next(
            (name for name, found in known.items() if found.needed and name not in value), None
        )
        if strange:
            raise Wrong(f"unknown key '{strange}'; the keys are {', '.join(known)}")
        if missing:
            raise Wrong(f"'{missing}' is missing from {shown(value)}")
        return made(**{name: known[name].read(item) for name, item in value.items()})

    def read(value: Any) -> tuple[Any, ...]:
        values = value if isinstance(value, list) else [value]
        if len(values) > MOST_ENTRIES:
            raise Wrong(f"{len(values)} entries is too many (at most {MOST_ENTRIES})")
        return tuple(one(item) for item in values)

    return read


def size(value: Any) -> int:
    """A size of memory: `64M`, at most 256 MiB, for a lesson must stay small."""
    match = re.fullmatch(r"([0-9]{1,12})([KMG]?)", str(value).strip())
    found = int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]] if match else 0
    if not 1 << 20 <= found <= 256 << 20:
        raise Wrong(f"mem: expected a size from 1M to 256M, got {shown(value)}")
    return found


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

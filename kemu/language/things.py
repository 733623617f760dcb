"""One grammar for the things that can be asked about, watched and printed.

    as words                       as an expression              printed by trace and context
    frame 0x112 _refcount          frame(0x112, '_refcount')     pfn 0x112 _refcount
    refcount 0x112                 refcount(0x112)
    pte kid 0x10000                pte(kid, 0x10000)             pte kid 0x10000
    vma kid 0x10000 vm_end         vma(kid, 0x10000, 'vm_end')   vma 0x10000-0x14000 of kid vm_end
    mm kid total_vm                mm(kid, 'total_vm')           mm of kid total_vm
    task kid min_flt               kid.minor                     task kid (4) min_flt
    counter PGFAULT                counter('PGFAULT')            zone nr_free_pages
    field 'regs of kid' ax         field('regs of kid', 'ax')    regs of kid ax

Every form is accepted wherever a thing may be named. `why` and `history` take words, to which
`as_words` converts the other forms; expressions take calls (`as_expression`). What a word means is
not decided here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from kemu.errors import UsageError
from kemu.language.shapes import is_expression, is_name
from kemu.language.tokens import Token, split

FRAME_FIELDS = {"refcount": "_refcount", "mapcount": "_mapcount"}
"""Functions of a frame, by the field that they show."""

TASK_FIELDS = {
    "minor": "min_flt",
    "major": "maj_flt",
    "pid": "pid",
    "ppid": "real_parent",
    "exit_code": "exit_code",
    "exit_status": "exit_code",
    "cpu": "cpu",
}
"""Fields of a task by their names in an expression; all other names are fields of its mm."""

MARKS = {"heap": "start_brk", "stack": "start_stack", "text": "start_code", "data": "start_data"}
"""Marks of an address space, by the field of mm_struct that holds them."""

LEVELS = ("pgd", "p4d", "pud", "pmd")
COUNTED = ("zone", "vm_event_state", "counters", "lruvec")
"""What trace calls the structures that hold the counters of the whole machine."""

OF_TASK = ("pte", "vma", "mm", "task", *LEVELS)
HEADS = frozenset({*OF_TASK, *FRAME_FIELDS, "frame", "pfn", "counter", "tlb", "ram", "field"})
"""The first words of things; for any X that trace prints, `X of TASK FIELD` is a thing too."""

_SPLITTING = frozenset({"==", "!=", "<", "<=", ">", ">=", "and", "or", "not"})
_OPENS = re.compile(r"[\w$(@*]", re.ASCII)
"""What can begin a word of a thing: no operator, except the star of a changed value."""
_RANGE = re.compile(r"(0x[0-9a-f]+)-0x[0-9a-f]+\Z")
_CALL = re.compile(r"([A-Za-z_]\w*)\((.*)\)\Z", re.ASCII | re.DOTALL)
_DOTTED = re.compile(r"([A-Za-z_]\w*(?:\.\d+)*)\.([A-Za-z_]\w*)\Z", re.ASCII)


class Thing(NamedTuple):
    """The words of a thing: its kind, and the tokens of the task, the place and the field."""

    what: str
    task: Token | None = None
    at: Token | None = None
    field: Token | None = None


def as_words(tokens: Sequence[Token]) -> list[Token]:
    """The words in the form that `why` takes."""
    thing = read(tokens)
    if thing is None:
        return list(tokens)
    first = tokens[0]
    what = Token(thing.what, thing.what, first.column, quoted=False)
    return [what, *(token for token in (thing.task, thing.at, thing.field) if token is not None)]


def as_expression(text: str) -> str:
    """The text, with things that are named in words rewritten as calls."""
    try:
        lines = split(text)
    except UsageError:
        return text
    tokens = lines[0].tokens if len(lines) == 1 else ()
    cuts = [-1, *(at for at, token in enumerate(tokens) if token.text in _SPLITTING), len(tokens)]
    parts: list[str] = []
    found = False
    for before, cut in pairwise(cuts):
        piece = tokens[before + 1 : cut]
        thing = read(piece) if len(piece) > 1 else None
        found = found or thing is not None
        if thing is not None and thing.at is not None and piece[0].text in FRAME_FIELDS:
            parts.append(f"{piece[0].text}({thing.at.text})")
        else:
            parts += [_call(thing)] if thing is not None else [token.text for token in piece]
        parts += [token.text for token in tokens[cut : cut + 1]]
    return " ".join(parts) if found else text


def _call(thing: Thing) -> str:
    """The call that means the thing."""
    values: list[str] = []
    if thing.what in OF_TASK:
        values.append(thing.task.text if thing.task is not None else "$pid")
    if thing.at is not None:
        values.append(thing.at.text)
    values += [f"'{word}'" for word in _field_words(thing)]
    return f"{thing.what}({', '.join(values)})"


def _field_words(thing: Thing) -> list[str]:
    if thing.field is None:
        return []
    return thing.field.value.rsplit(" ", 1) if thing.what == "field" else [thing.field.value]


def read(tokens: Sequence[Token]) -> Thing | None:
    """The thing that the tokens name; None for anything else, and for words in the usual order
    that leave out an optional task."""
    if not tokens or not all(token.quoted or _OPENS.match(token.text) for token in tokens):
        return None
    if len(tokens) == 1:
        return _of_one(tokens[0])
    head, rest = tokens[0].text, _without_marks(tokens[1:])
    if any(token.text == "of" for token in tokens[1:]) or head in ("CPU", "tasks", "free_area"):
        return _printed([tokens[0], *rest])
    if head in COUNTED and len(rest) == 1:
        return Thing("counter", field=rest[0])
    return _of_words(head, rest) if head in HEADS else None


def _without_marks(tokens: Sequence[Token]) -> list[Token]:
    """The tokens without the star of a changed value and the pid after the name of a task."""
    return [
        token
        for token in tokens
        if token.text not in ("*", "rss_stat") and not re.fullmatch(r"\(\d+\)", token.text)
    ]


def _printed(tokens: list[Token]) -> Thing | None:
    """`mm of kid total_vm`, `vma 0x1000-0x2000 of kid`, `regs of kid ax`, `CPU 0 ctxs slot 3`."""
    head = tokens[0].text
    words = [token.text for token in tokens]
    if "of" in words and head in ("mm", "vma"):
        cut = words.index("of")
        place = _RANGE.match(words[1]) if head == "vma" and cut == 2 else None
        at = tokens[1]._replace(text=place[1], value=place[1]) if place else None
        owner = tokens[cut + 1] if len(tokens) > cut + 1 else None
        field = tokens[cut + 2] if len(tokens) > cut + 2 else None
        return Thing(head, owner, at, field)
    if len(tokens) < 3:
        return None
    text = " ".join(words)
    return Thing("field", field=Token(text, text, tokens[0].column, quoted=True))


def _of_words(head: str, rest: list[Token]) -> Thing | None:
    """`frame 0x112 _refcount`, `refcount 0x112`, `pte kid 0x10000`, `task kid min_flt`."""
    names = [token for token in rest if is_name(token) or token.quoted]
    numbers = [token for token in rest if token not in names]
    at = numbers[0] if numbers else None
    if head == "pfn" and names and rest[0] is names[0]:
        return Thing("pte", names[0], at)
    if head in OF_TASK:
        return _of_task(head, rest, names, at)
    if head == "field" and len(rest) > 1:
        text = " ".join(token.value for token in rest)
        return Thing(head, field=Token(text, text, rest[0].column, quoted=True))
    if head in FRAME_FIELDS or head == "pfn":
        word = names[-1] if names else _word(FRAME_FIELDS.get(head, "_refcount"), rest[0])
        return Thing("frame", at=at, field=word)
    second = numbers[1] if len(numbers) > 1 else None
    taken = Thing(head, at=at, field=names[-1] if names else second)
    return None if head == "tlb" and names else taken


def _of_task(head: str, rest: list[Token], names: list[Token], at: Token | None) -> Thing | None:
    """`pte kid 0x10000`, `vma kid 0x10000 vm_end`, `task kid min_flt`."""
    place_needed = head not in ("mm", "task")
    if (at is not None) is not place_needed or len(rest) > 2 + place_needed:
        return None
    task = names[0] if names and rest[0] is names[0] and (place_needed or len(names) > 1) else None
    fields = [token for token in names if token is not task]
    field = _word(head, rest[0]) if head in LEVELS else fields[-1] if fields else None
    return Thing("pte" if head in LEVELS else head, task, at, field)


def _word(text: str, near: Token) -> Token:
    return Token(text, text, near.column, quoted=False)


def _of_one(token: Token) -> Thing | None:
    """`refcount(0x112)`, `pte(kid, 0x10000)`, `kid.rss`."""
    if token.quoted:
        return None
    dotted = _DOTTED.match(token.text)
    if dotted is not None:
        owner, field = dotted[1], dotted[2]
        known = TASK_FIELDS.get(field)
        what = "mm" if known is None else "task"
        column = token.column + len(owner) + 1
        name = known or MARKS.get(field, field)
        return Thing(
            what, Token(owner, owner, token.column, False), None, Token(name, name, column, False)
        )
    call = _CALL.match(token.text)
    if call is None or not is_expression(token):
        return None
    return _of_words_or_none(call[1], _arguments(call[2], token.column + len(call[1]) + 1))


def _of_words_or_none(head: str, arguments: list[Token]) -> Thing | None:
    if head == "rss" and len(arguments) == 1:
        return Thing("mm", arguments[0], None, _word("rss", arguments[0]))
    if head in HEADS and arguments:
        return _of_words(head, arguments)
    return None


def _arguments(text: str, column: int) -> list[Token]:
    """The arguments of a call as tokens, cut at the commas outside of parentheses and quotes."""
    found, depth, start, quote = [], 0, 0, ""
    for at, char in enumerate(text + ","):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and not depth:
            part = text[start:at]
            word = part.strip()
            quoted = len(word) > 1 and word[0] == word[-1] and word[0] in "\"'"
            where = column + start + len(part) - len(part.lstrip())
            if word:
                found.append(Token(word, word[1:-1] if quoted else word, where, quoted))
            start = at + 1
    return found

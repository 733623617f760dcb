"""What a student typed, as a value: any base, full-width digits, underscores, spaces and commas.

    "0x1_000"  "4096"  "4 096"  "4,096"  "0x1000 (4096)"   one number, also in full-width characters
    "17, 0x12"  "17 18"                                            a set of two
    "maperr"  "MAPERR"  "@5"  "child"                              a word, a task

A typing mistake (`7q`) raises UsageError: it never counts as an attempt.
"""

from __future__ import annotations

import re
import unicodedata

from kemu.errors import UsageError
from kemu.language.expr import TaskValue, Value, compile_text
from kemu.language.lexer import Source, number
from kemu.lessons.format.names import plain
from kemu.lessons.taking.mistakes import Mistake

_SEPARATORS = re.compile(r"[\s,;、]+")
_BOTH_BASES = re.compile(r"(\S+)\s*\((\S+)\)\Z")
_ARITHMETIC = re.compile(r"[0-9a-fA-FxXbBKMGp_+\-*/%()<>|&^~ ]+\Z")
NOTHING = frozenset({"none", "nothing", "无", "没有"})
TRUTHS = {"true": True, "yes": True, "是": True, "false": False, "no": False, "否": False}
SURE = {
    "sure": "sure",
    "fairly": "fairly",
    "guess": "guess",
    "确定": "sure",
    "大概": "fairly",
    "猜": "guess",
}
"""Words for how sure one is."""


def normal(text: str) -> str:
    """Full-width characters as their ordinary ones, without space around."""
    return unicodedata.normalize("NFKC", text).strip()


def with_confidence(text: str) -> tuple[str, str]:
    """The answer without a last word such as `sure`, and that word."""
    head, _, last = normal(text).rpartition(" ")
    confidence = SURE.get(last.casefold(), "")
    return (head.strip(), confidence) if confidence and head.strip() else (normal(text), "")


def number_in(text: str) -> int:
    """The number that the text is.  Raises UsageError with what may be typed."""
    made = normal(text)
    both = _BOTH_BASES.match(made)
    if both:
        first, second = number_in(both[1]), number_in(both[2])
        if first == second:
            return first
    sign = -1 if made.startswith("-") else 1
    digits = re.sub(r"(?<=[0-9a-fA-FxX])[\s,_']+(?=[0-9a-fA-F])", "", made.lstrip("+-"))
    try:
        return sign * number(Source(digits, 0, len(digits)), 0, digits)
    except UsageError:
        if _ARITHMETIC.match(made):
            return _computed(made)
    raise Mistake("not_a_number", said=made[:40])


def _computed(text: str) -> int:
    """The value of arithmetic such as 3*4096+8, without names."""
    value = compile_text(text).evaluate(_NoNames())
    if isinstance(value, bool) or not isinstance(value, int):
        raise Mistake("not_a_number", said=text[:40])
    return value


class _NoNames:
    """An answer asks the machine nothing."""

    def name(self, dotted: str) -> Value:
        """No name is known."""
        raise Mistake("a_name", said=dotted[:40])

    variable = name

    def call(self, function: str, arguments: object) -> Value:
        """No function is known."""
        return self.name(function)


def read_like(text: str, wanted: Value, words: tuple[str, ...] = ()) -> Value:
    """The typed text as a value of the kind of `wanted`.  Raises UsageError for a typing
    mistake."""
    made = normal(text)
    if not made:
        raise Mistake("no_value")
    folded = made.casefold()
    if words:
        return _word(made, words)
    if folded in NOTHING:
        return None
    if isinstance(wanted, bool):
        if folded not in TRUTHS:
            raise Mistake("yes_or_no", said=made[:40])
        return TRUTHS[folded]
    if isinstance(wanted, int) or (wanted is None and made[0].isdigit()):
        return number_in(made)
    return made


def _word(made: str, words: tuple[str, ...]) -> str:
    """One of the words that the step takes."""
    by_fold = {normal(word).casefold(): word for word in words}
    if made.casefold() not in by_fold:
        raise Mistake("not_expected", said=made[:40], words=", ".join(words))
    return by_fold[made.casefold()]


def same(said: Value, was: Value) -> bool:
    """Is what was said right?  A task may be named or given by its pid."""
    if isinstance(was, TaskValue):
        return normal(str(said)).casefold() in (was.name.casefold(), f"@{was.pid}", str(was.pid))
    if isinstance(was, str) or isinstance(said, str):
        return normal(plain(said)).casefold() == normal(plain(was)).casefold()
    if said is None or was is None:
        return said is was
    return bool(said == was)


def read_set(
    text: str, wanted: tuple[Value, ...], words: tuple[str, ...] = ()
) -> tuple[Value, ...]:
    """The values that are separated by commas or spaces."""
    parts = [part for part in _SEPARATORS.split(normal(text)) if part]
    if not parts:
        raise Mistake("no_values")
    like = wanted[0] if wanted else 0
    if len(parts) == 1 and normal(parts[0]).casefold() in NOTHING and not wanted:
        return ()
    found = []
    for part in parts:
        try:
            found.append(read_like(part, like, words))
        except UsageError as error:
            at_part(error, text, part)
            raise
    return tuple(found)


def at_part(error: UsageError, text: str, part: str) -> UsageError:
    """The mistake with its place, which is this part of the answer `text`."""
    column = text.casefold().find(part.casefold())
    if column < 0:
        return error
    error.text, error.column, error.length = text, column, len(part)
    return error


def same_set(said: tuple[Value, ...], was: tuple[Value, ...]) -> bool:
    """Do both hold the same values, whatever the order?"""
    known = all(any(same(one, other) for other in was) for one in said)
    return known and all(any(same(one, other) for one in said) for other in was)


def letters(text: str, count: int, *, several: bool, distinct: bool = True) -> tuple[int, ...]:
    """`c a d`, `cad`, `3 1 4`: indices from 0 of `count` options.  Raises UsageError."""
    made = normal(text).casefold()
    parts = words = [part for part in _SEPARATORS.split(made) if part]
    if len(words) == 1 and words[0].isalpha():
        parts = list(words[0])
    last = chr(ord("a") + count - 1)
    found = [_index(part) for part in parts]
    wrong = next(
        (part for part, index in zip(parts, found, strict=True) if not 0 <= index < count), None
    )
    if wrong is not None:
        kind = "not_letters" if several else "not_letter"
        mistake = Mistake(kind, last=last, said=wrong[:20])
        raise at_part(mistake, text, wrong if parts is words else words[0])
    if not found or (len(found) > 1 and not several):
        raise Mistake("some_letters" if several else "one_letter", last=last)
    if distinct and len(set(found)) < len(found):
        raise Mistake("repeated")
    return tuple(found)


def _index(part: str) -> int:
    """The index that a letter or a number from 1 means; -1 for anything else."""
    if len(part) == 1 and part.isascii() and part.isalpha():
        return ord(part) - ord("a")
    return int(part) - 1 if part.isascii() and part.isdigit() and len(part) < 4 else -1

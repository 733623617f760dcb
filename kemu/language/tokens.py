"""Cut a line into commands, and a command into tokens that know their column.

    spawn app; write app 0x10000 "a b"   # a comment
    |----A---| |---------B-----------|
               token  column  kind
               write       0  word
               app         6  word
               0x10000    10  word
               "a b"      18  string (value: a b)

A token ends at white space or `;`, but not inside quotes or parentheses, so that `pfn(app,
0x10000)` and `(child.heap + 8)` are one token each. A token is a *string* only if it is one quoted
text and nothing else; with anything around it (`'a'=='b'`) it is a word, which the expression
language reads. `#` starts a comment only at the start of a token. Columns count the characters of
the line as typed; they tell where the caret of an error message goes.

Left out: variables in strings, continuation lines, here-documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kemu.errors import UsageError

LONGEST_LINE = 4_000_000
"""Characters: more than Linux allows for the arguments of any exec. A longer line is refused, since
it must be a file that was given by mistake."""

_QUOTES = "\"'"
_OPEN, _CLOSE = "([", ")]"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", '"': '"', "'": "'"}
_HEX_DIGITS = "0123456789abcdefABCDEF"


class Token(NamedTuple):
    """One word as typed. `value` is the text without quotes and escapes; `column` counts from 0."""

    text: str
    value: str
    column: int
    quoted: bool

    @property
    def end(self) -> int:
        """The column after the last character."""
        return self.column + len(self.text)


class Origin(NamedTuple):
    """The line that a rewritten line came from. From column `since` on, the new line is the text of
    `line` from `column` on; before that, `meaning` has replaced the first word (empty: a word was
    put before it)."""

    line: Line
    since: int
    column: int
    meaning: str


class Line(NamedTuple):
    """One command of a line: its tokens, and the whole line for the caret."""

    text: str
    tokens: tuple[Token, ...]
    origin: Origin | None = None

    @property
    def source(self) -> str:
        """The command alone, as typed, without its neighbours and comments."""
        return self.text[self.tokens[0].column : self.tokens[-1].end]

    def instead(self, meaning: str) -> list[Line]:
        """The commands of the line with `meaning` in place of its first word."""
        return self._opened(meaning, self.tokens[0].end, meaning)

    def after(self, word: str) -> Line:
        """The command with another word before it."""
        return self._opened(f"{word} ", self.tokens[0].column, "")[0]

    def _opened(self, opening: str, column: int, meaning: str) -> list[Line]:
        origin = Origin(self, len(opening), column, meaning)
        text = opening + self.text[column : self.tokens[-1].end]
        return [line._replace(origin=origin) for line in split(text)]


def split(text: str) -> list[Line]:
    """The commands of one line, in order; none for an empty line or a comment."""
    if len(text) > LONGEST_LINE:
        raise UsageError(
            f"line: {len(text)} characters are too many",
            text=text[:60],
            hint=f"a line may hold {LONGEST_LINE}; is this a program rather than commands?",
        )
    commands: list[list[Token]] = [[]]
    for token in _tokens(text):
        if token is None:
            commands.append([])
        else:
            commands[-1].append(token)
    return [Line(text, tuple(tokens)) for tokens in commands if tokens]


def _tokens(text: str) -> Iterator[Token | None]:
    """Tokens of the line, with None where a `;` ends a command."""
    at = 0
    while at < len(text):
        char = text[at]
        if char.isspace():
            at += 1
        elif char == "#":
            return
        elif char == ";":
            at += 1
            yield None
        else:
            end = _end_of_token(text, at)
            yield _token(text, at, end)
            at = end


def _end_of_token(text: str, start: int) -> int:
    """The column after the token that begins at `start`."""
    opened: list[int] = []
    at = start
    while at < len(text):
        char = text[at]
        if char in _QUOTES:
            at = _end_of_string(text, at)
            continue
        if char in _OPEN:
            opened.append(at)
        elif char in _CLOSE and opened:
            opened.pop()
        elif char == ";" or (char.isspace() and not opened):
            break
        at += 1
    if opened:
        raise UsageError(
            f"'{text[opened[-1]]}' is never closed",
            text=text,
            column=opened[-1],
            length=1,
            hint="add the missing ')' or put the text in quotes",
        )
    return at


def _end_of_string(text: str, start: int) -> int:
    """The column after the closing quote of the string that opens at `start`."""
    quote = text[start]
    at = start + 1
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == quote:
            return at + 1
        else:
            at += 1
    raise UsageError(
        f"the string that opens with {quote} is never closed",
        text=text,
        column=start,
        length=1,
        hint=f"add {quote} at its end; inside a string write \\{quote}",
    )


def _token(text: str, start: int, end: int) -> Token:
    raw = text[start:end]
    quoted = raw[0] in _QUOTES and _end_of_string(text, start) == end
    return Token(raw, unescape(text, start, end) if quoted else raw, start, quoted)


def unescape(text: str, start: int, end: int) -> str:
    r"""The characters of the quoted string at `text[start:end]`; knows \n \t \r \0 \\ \" \' and
    \xHH."""
    out: list[str] = []
    at = start + 1
    while at < end - 1:
        if text[at] != "\\":
            out.append(text[at])
            at += 1
            continue
        char, width = _escape(text, at)
        out.append(char)
        at += width
    return "".join(out)


def _escape(text: str, at: int) -> tuple[str, int]:
    """The character that the escape at `at` denotes, and the length of the escape."""
    kind = text[at + 1]
    if kind in _ESCAPES:
        return _ESCAPES[kind], 2
    digits = text[at + 2 : at + 4]
    if kind == "x" and len(digits) == 2 and all(digit in _HEX_DIGITS for digit in digits):
        return chr(int(digits, 16)), 4
    raise UsageError(
        f"string: unknown escape '\\{kind}'",
        text=text,
        column=at,
        length=2,
        hint="write \\n \\t \\r \\0 \\\\ \\\" \\' and \\x41; a backslash itself is \\\\",
    )

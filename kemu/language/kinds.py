"""The types of arguments: what a token must look like, what it becomes, and what completion offers
for it.

    shape                                  type
    a plain word, `app.2`, `@3`            TASK, NAME, choices of words
    starts with a digit, $ or (, or
    holds a dot or an operator             ADDRESS, SIZE, NUMBER, FRAME (expressions)
    holds a `/`, or a quoted text          PATH

`valuekinds` has the numbers and words that the others are built from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kemu.abi import uapi
from kemu.abi import words as abi
from kemu.errors import UsageError
from kemu.language.expr import Expression, compile_expression
from kemu.language.lexer import Source, shorten
from kemu.language.shapes import is_expression, is_name
from kemu.language.suggest import did_you_mean
from kemu.language.things import as_expression
from kemu.language.tokens import Line, Token
from kemu.language.valuekinds import (
    ChoiceKind,
    NumberedKind,
    NumberKind,
    Offered,
    PrefixKind,
    WordKind,
)

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task
    from kemu.language.spec import Candidate

__all__ = [
    "ChoiceKind",
    "NumberKind",
    "NumberedKind",
    "Offered",
    "PrefixKind",
    "WordKind",
    "is_expression",
    "is_name",
]
"""The names of `valuekinds` that are offered here too, besides those defined below."""

_PID = re.compile(r"@\w*\Z", re.ASCII)
_RESERVED = frozenset(
    {"as", "file", "if", "and", "or", "not", "true", "false", "none", "init", "swapper", "kthreadd"}
)
LONGEST_NAME = 64


class TaskKind(Offered):
    """A task: a name or `@PID`."""

    name = "TASK"
    what = "the name of a task, or @PID"

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """With `known`, a name must be that of a task that exists at this moment."""
        if not token.quoted and _PID.match(token.text):
            return True
        return is_name(token) and (not known or token.text in session.names())

    def convert(self, token: Token, line: Line, session: Session) -> Task:
        """The task_struct."""
        return session.find(token.value)

    def complete(self, session: Session) -> Iterable[Candidate]:
        """Names of living tasks and zombies."""
        return [(name, f"pid {pid}") for name, pid in session.names().items() if "/" not in name]


class GoneTask(NamedTuple):
    """A pid that no task has: a call that names it gets -ESRCH or -ECHILD from the kernel."""

    pid: int

    @property
    def tgid(self) -> int:
        """The thread group, as if the process had had one thread."""
        return self.pid


class PidKind(TaskKind):
    """A task that a system call names by its pid, which may be `@PID` of a task that is gone."""

    def convert(self, token: Token, line: Line, session: Session) -> Task | GoneTask:  # type: ignore[override]  # callers of a PID ask for both
        """The task_struct, or the pid that no task has."""
        digits = token.text[1:]
        if token.text.startswith("@") and digits.isdecimal() and len(digits) < 10:
            return session.tasks.get(int(digits)) or GoneTask(int(digits))
        return super().convert(token, line, session)


class NameKind(Offered):
    """A new name for a task or a moment."""

    name = "NAME"
    what = "a plain word"

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """Any plain word."""
        return is_name(token)

    def convert(self, token: Token, line: Line, session: Session) -> str:
        """The word. Raises UsageError if it is reserved or too long."""
        if token.text in _RESERVED:
            raise UsageError(f"'{token.text}' is reserved", hint="choose another name")
        if len(token.text) > LONGEST_NAME:
            raise UsageError(f"longer than {LONGEST_NAME} characters", hint="choose a shorter name")
        return token.text


class NewTaskKind(NameKind):
    """A name for a task that is about to be made."""

    def convert(self, token: Token, line: Line, session: Session) -> str:
        """The word. Raises UsageError if a task has the name."""
        name = super().convert(token, line, session)
        session.check_name(name)
        return name


def _prot_word(name: str) -> str:
    """`r` for PROT_READ, `+growsdown` for PROT_GROWSDOWN."""
    word = name.removeprefix("PROT_").lower()
    letter = {"read": "r", "write": "w", "exec": "x", "none": "none"}.get(word)
    return letter or f"+{word}"


class ProtKind:
    """Protection: letters of `rwx`, `-` or `none`; `growsdown` and `growsup` with a `+`:
    `rw+growsdown`; or as C writes it: `PROT_READ|PROT_WRITE`."""

    name = "PROT"
    what = "letters of rwx, or none"

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """Letters of rwx in any order, at most three; without `known` any plain word."""
        return not token.quoted and (
            self._value(token.text) is not None or (not known and is_name(token))
        )

    def _value(self, text: str) -> int | None:
        if "PROT_" in text:
            text = "".join(
                sorted(map(_prot_word, text.split("|")), key=lambda word: word[0] == "+")
            )
        letters, *words = text.split("+")
        if letters not in abi.PROT_WORDS and (
            not letters or len(letters) > 3 or set(letters) - set("rwx-")
        ):
            return None
        if any(word not in abi.PROT_WORDS for word in words):
            return None
        value = abi.PROT_WORDS.get(letters, 0)
        if letters not in abi.PROT_WORDS:
            value = sum(abi.PROT[letter] for letter in set(letters))
        return value | sum(abi.PROT_WORDS[word] for word in words)

    def convert(self, token: Token, line: Line, session: Session) -> int:
        """PROT_* bits."""
        value = self._value(token.text)
        if value is None:
            raise UsageError(
                f"expected {self.what}, got '{shorten(token.text)}'",
                hint="for example rw, r, r-x, none",
            )
        return value

    def complete(self, session: Session) -> Iterable[Candidate]:
        """The usual ones."""
        return [
            ("rw", "read and write"),
            ("r", "read"),
            ("rx", "read and execute"),
            ("none", "no access"),
        ]


class PathKind(Offered):
    """A file inside kemu: a path that holds a `/`, or a quoted path."""

    def __init__(self, what: str = "a path of kemu, such as /bin/a.out") -> None:
        self.name = "FILE"
        self.what = what

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """Holds a `/`, or is quoted."""
        return token.quoted or "/" in token.text

    def convert(self, token: Token, line: Line, session: Session) -> str:
        """The path as typed."""
        return token.value


class FilePart(NamedTuple):
    """A file and the byte offset at which a mapping begins; `path` may also be the name of an open
    memory file."""

    path: str
    offset: int


class FilePartKind(Offered):
    """`PATH`, or `PATH@1p` for the file from page 1 on."""

    name = "FILE"
    what = "a path of kemu, or PATH@OFFSET such as /bin/tiny@1p"

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """As a path."""
        return PATH.fits(token, session, known)

    def convert(self, token: Token, line: Line, session: Session) -> FilePart:
        """Path and offset (bytes)."""
        if token.quoted or "@" not in token.text:
            return FilePart(token.value, 0)
        path, _, offset = token.text.rpartition("@")
        if not offset:
            raise UsageError("expected an offset after @", hint="write for example /bin/tiny@1p")
        at = Token(offset, offset, token.column + len(path) + 1, quoted=False)
        return FilePart(path, SIZE.convert(at, line, session))


class HostPathKind(Offered):
    """A file of the host: any word, or a quoted text."""

    name = "HOSTFILE"
    what = "a file of the host"

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """Anything."""
        return True

    def convert(self, token: Token, line: Line, session: Session) -> str:
        """The path as typed."""
        if "\0" in token.value:
            raise UsageError("a path cannot hold a zero byte")
        return token.value


class TextKind(Offered):
    """Any word or quoted text, taken as it is."""

    def __init__(self, name: str, what: str) -> None:
        self.name = name
        self.what = what

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """Anything."""
        return True

    def convert(self, token: Token, line: Line, session: Session) -> str:
        """The text without quotes."""
        return token.value


class DataKind(Offered):
    """What to store: a text gives its bytes, `7` eight bytes, `7b` one byte."""

    name = "DATA"
    what = 'a text such as "x", a number (8 bytes) or a number with b (one byte)'

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """A quoted text or an expression."""
        return token.quoted or is_expression(token)

    def convert(self, token: Token, line: Line, session: Session) -> bytes:
        """The bytes in the order in which they lie in memory (little-endian)."""
        if token.quoted:
            return self._text(token)
        byte = re.fullmatch(r"[0-9_]+b", token.text, re.ASCII)
        if byte:
            number = Token(token.text[:-1], "", token.column, quoted=False)
            value = NumberKind("byte", "a number and b", 0, 255).convert(number, line, session)
            return value.to_bytes(1, "little")
        if token.text == "=":
            raise UsageError("no = before what is written", hint="for example: write app 0x10000 5")
        if re.fullmatch(r"0[xX][0-9a-fA-F]{2}[bB]", token.text, re.ASCII):
            one, eight = int(token.text[2:4], 16), int(token.text, 16)
            raise UsageError(
                f"the byte {one:#x}, or the number {eight:#x}?",
                hint=f"write {one}b for one byte, 0x{eight:04x} for eight bytes",
            )
        value = NumberKind("data", self.what, -(2**63), 2**64 - 1).convert(token, line, session)
        return (value % 2**64).to_bytes(8, "little")

    def _text(self, token: Token) -> bytes:
        if not token.value:
            raise UsageError("nothing to store", hint='write at least one character: "x"')
        if all(ord(char) < 256 for char in token.value) and "\\x" in token.text:
            return token.value.encode("latin-1")
        return token.value.encode("utf-8", "surrogateescape")


class MomentKind(Offered):
    """An event number (also an expression) or the name of a mark; `start` and `end` are the first
    and the last."""

    name = "MOMENT"
    what = "an event number or the name of a mark"

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """An expression or a plain word."""
        return is_expression(token) or is_name(token)

    def convert(self, token: Token, line: Line, session: Session) -> int:
        """The event number."""
        if not is_name(token):
            return NumberKind("event", self.what, 0, 2**63).convert(token, line, session)
        known = {"start": 0, "end": session.end, "here": session.now, **session.marks}
        if token.text in known:
            return known[token.text]
        hint = did_you_mean(token.text, known) or "mark NAME names this moment"
        raise UsageError(f"no mark named '{token.text}'", hint=hint)


class ExpressionKind(Offered):
    """The rest of the command as an expression, compiled but not evaluated."""

    name = "EXPR"
    what = "an expression"

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """Anything."""
        return True

    def convert(self, token: Token, line: Line, session: Session) -> Expression:
        """The compiled expression."""
        return compiled(line.text, token.column, token.end)


def compiled(text: str, start: int, end: int) -> Expression:
    """The expression at `text[start:end]`, which may name things in words."""
    meant = as_expression(text[start:end])
    if meant != text[start:end]:
        return compile_expression(Source(meant, 0, len(meant)))
    return compile_expression(Source(text, start, end))


class CommandKind(Offered):
    """The rest of the command as a command of its own."""

    name = "COMMAND"
    what = "a command"

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """Anything."""
        return True

    def convert(self, token: Token, line: Line, session: Session) -> Line:
        """The command, with the columns of the whole line."""
        return line._replace(
            tokens=tuple(other for other in line.tokens if other.column >= token.column)
        )


_U64 = 2**64 - 1
_S32 = (-(2**31), 2**31 - 1)
TASK = TaskKind()
PID = PidKind()
NAME = NameKind()
NEW_TASK = NewTaskKind()
ADDRESS = NumberKind("ADDRESS", "an address, as a number or an expression", 0, _U64)
SIZE = NumberKind(
    "size", "bytes or pages", 0, _U64, "write 3p for three pages, or 12288 (see: help sizes)"
)
COUNT = NumberKind("COUNT", "a number", 0, 2**31)
NUMBER = NumberKind("NUMBER", "a number", -(2**63), _U64)
EXIT_CODE = NumberKind("CODE", "a number from 0 to 255", 0, 255)
FRAME = NumberKind("PFN", "a frame number, or after TASK an address", 0, _U64)
CPU = NumberKind("CPU", "the number of a CPU", 0, 4096)
PROT = ProtKind()
SIGNAL = NumberedKind(
    "SIGNAL", abi.SIGNALS, "a signal such as SEGV, SIGSEGV or 11", (0, 64), fold=True, prefix="SIG"
)
LIMIT = NumberedKind(
    "LIMIT", {"unlimited": uapi.RLIM_INFINITY}, "a number, a size, or unlimited", (0, _U64)
)
FD = NumberKind("FD", "the number of an open file", *_S32)
OFFSET = NumberKind(
    "OFFSET",
    "a place in a file, in bytes or pages",
    -(2**63),
    2**63 - 1,
    "write 3p for three pages",
)
DATA = DataKind()
MOMENT = MomentKind()
EXPR = ExpressionKind()
COMMAND = CommandKind()
WORD = TextKind("TOPIC", "a command, a topic or any word")
PATH = PathKind()
FILE_PART = FilePartKind()
HOST_PATH = HostPathKind()
ANY = TextKind("ARGS", "a word or a quoted text")
TITLE = TextKind("NAME", "a word or a quoted text")

"""Commands about the shell itself: help, print, set, show, alias, run, quit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from kemu.commands import kinds, table
from kemu.commands.expr import Expression, TaskValue, format_value
from kemu.commands.result import Quit, Result
from kemu.commands.spec import CHANGE, FREE, Command, command, maybe, one, rest
from kemu.commands.suggest import did_you_mean
from kemu.commands.topics import TOPICS
from kemu.errors import UsageError
from kemu.readings import Text, Value

if TYPE_CHECKING:
    from kemu.session import Session

DEEPEST_RUN = 16
"""Scripts that run scripts."""


@command(
    "help",
    arguments=(maybe("word", kinds.WORD),),
    group="shell",
    effect=FREE,
    summary="this page, or the page of a command",
    more="With a word that is neither a command nor a topic, searches all pages for it.",
    examples=("help", "help fork"),
)
def help_(session: Session, word: str | None) -> Text:
    """The overview, a command's page, a topic, or what a search finds."""
    if word is None:
        return Text(tuple(overview()))
    made = table.find(word)
    if made is not None:
        return Text(tuple(page(made)))
    if word in TOPICS:
        return Text(tuple(TOPICS[word].rstrip().split("\n")))
    if word in session.aliases:
        return Text((f"{word} is an alias of: {session.aliases[word]}",))
    return Text(tuple(_search(word)))


def overview() -> list[str]:
    """One screen: all commands by group, and the topics."""
    from textwrap import wrap

    rows = {group: [name for name, entry in table.TABLE.items() if entry.group == group] for group in table.GROUPS}
    rows["also"] = [f"{alias}={name}" for alias, name in table.ALIASES.items()]
    rows["topics"] = list(TOPICS)
    lines: list[str] = []
    for label, words in rows.items():
        lines += wrap(" ".join([f"{label:_<7}", *words]), 79, subsequent_indent=" " * 8, break_on_hyphens=False)
    lines = [line.replace("_", " ", line[:7].count("_")) if line[0] != " " else line for line in lines]
    return [*lines, "", "help WORD tells more; several commands on a line are separated by ';'"]


def page(made: Command) -> list[str]:
    """The page of one command: synopsis, what it does, arguments, two examples, the original in Linux."""
    from textwrap import wrap

    lines = [made.synopsis, "", *wrap(_sentence(made.summary) + " " + made.more, 78), ""]
    if len(made.words) > 1:
        lines.append(f"also: {', '.join(made.words[1:])}")
    lines += [f"  {argument.name:<10} {argument.kind.what}" for argument in made.arguments]
    for option in made.options:
        what = option.kind.what if option.kind else "words: " + " ".join(option.words)
        lines += [f"  {line}" for line in wrap(f"{option.name:<10} {what}", 76, subsequent_indent=" " * 11)]
    lines += ["examples:", *(f"  {example}" for example in made.examples)]
    if made.linux:
        lines.append(f"in real Linux: {made.linux}")
    return lines


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _search(word: str) -> list[str]:
    """Commands and topics whose page holds the word."""
    lowered = word.lower()
    hits = [made for made in table.load_all() if lowered in "\n".join(page(made)).lower()]
    topics = [topic for topic, text in TOPICS.items() if lowered in text.lower()]
    if not hits and not topics:
        guess = did_you_mean(word, [*table.TABLE, *table.ALIASES, *TOPICS])
        raise UsageError(f"help: nothing is known about '{word[:40]}'", hint=guess or "help lists the commands")
    return [f"{made.name:<10} {made.summary}" for made in hits] + [f"{topic:<10} (topic)" for topic in topics]


@command(
    "print",
    "p",
    arguments=(rest("expression", kinds.EXPR),),
    group="shell",
    effect=FREE,
    summary="the value of an expression",
    more="Numbers are shown in both bases where they differ. The value is $1, the next one $2. See: help expressions.",
    examples=("print 3p + 0x10", "spawn app; print app.stack"),
)
def print_(session: Session, expression: Expression) -> Value | Text:
    """The value; it is remembered as $N and $last."""
    from kemu.commands.names import SessionNames, functions_page

    if expression.source.text[expression.source.start : expression.source.end].strip() == "functions":
        return Text(tuple(functions_page()))
    with session.looking():
        value = expression.evaluate(SessionNames(session))
    session.values.append(value)
    plain = value.pid if isinstance(value, TaskValue) else value
    return Value(f"${len(session.values)} = {format_value(value)}", plain)


_SWITCH = {"on": True, "off": False}
SETTINGS = ("aslr", "lru_batch", "fault_around", "granularity", "verify", "fail")
GRANULARITIES = ("event", "function", "command")


@command(
    "set",
    arguments=(one("setting", kinds.WordKind("SETTING", SETTINGS)), one("value", kinds.ANY), maybe("number", kinds.ANY)),
    group="shell",
    effect=CHANGE,
    summary="change a setting of the machine",
    more="aslr SEED places new programs at random, the same for the same seed, until aslr off. lru_batch on keeps new pages "
    "in the per-CPU batches of the LRU, which hold a reference each, as Linux does. fault_around SIZE is how much of a file "
    "one fault maps. granularity event, function or command is how far step and back go. "
    "verify on checks the invariants after every command. fail alloc N lets the N-th allocation of a frame from now on fail, "
    "fail slab N that of an object (VMA, anon_vma, task ...).",
    examples=(
        "set lru_batch on",
        "set aslr 7; spawn app",
        "spawn app; set granularity function; back 3",
        "spawn app; set fail alloc 2; fork app",
    ),
    session_words=("granularity", "verify"),
    linux="/proc/sys/kernel/randomize_va_space",
)
def set_(session: Session, setting: str, value: str, number: str | None) -> Text:
    """Change one setting; it is part of the machine's state, so going back takes it back."""
    new: int | bool | None
    if setting == "fail":
        return _set_fail(session, value, number)
    if number is not None:
        raise UsageError(f"set: unexpected '{number[:40]}' behind the value")
    if setting == "verify":
        return _set_verify(session, value)
    if setting == "granularity":
        return _set_granularity(session, value)
    if setting == "aslr":
        new = None if value == "off" else _plain_number(value, 2**63, "a seed or off")
    elif setting == "lru_batch":
        if value not in _SWITCH:
            raise UsageError(f"lru_batch: expected on or off, got '{value[:40]}'")
        new = _SWITCH[value]
    else:
        size = _plain_number(value, 1 << 21, "bytes, such as 64K or 1p")
        new = max(4096, 1 << max(size.bit_length() - 1, 0))
    session.set(setting, new)
    return Text((f"{setting}: {settings(session)[setting]}",))


def _set_verify(session: Session, value: str) -> Text:
    if value not in _SWITCH:
        raise UsageError(f"verify: expected on or off, got '{value[:40]}'")
    session.verifying = _SWITCH[value]
    return Text((f"verify: {value}",))


def _set_fail(session: Session, what: str, number: str | None) -> Text:
    """Fault injection: the N-th allocation of a frame, or of an object, fails; 0 or off takes it back."""
    if what not in ("alloc", "slab", "off") or (what == "off") != (number is None):
        raise UsageError("fail: expected alloc or slab and a number, or off", hint="set fail alloc 3: the third frame is refused")
    new = _plain_number(number or "0", 1 << 31, "a number of allocations")
    for setting in {"alloc": ("fail",), "slab": ("fail_slab",)}.get(what, ("fail", "fail_slab")):
        session.set(setting, new)
    return Text((f"fail: {settings(session)['fail']}",))


def _set_granularity(session: Session, value: str) -> Text:
    if value not in GRANULARITIES:
        raise UsageError(f"granularity: expected event, function or command, got '{value[:40]}'")
    session.granularity = value
    return Text((f"granularity: {value}",))


def _plain_number(text: str, high: int, what: str) -> int:
    from kemu.commands.lexer import Source, number

    try:
        value = number(Source(text, 0, len(text)), 0, text)
    except UsageError:
        value = -1
    if not 0 <= value <= high:
        raise UsageError(f"value: expected {what}, got '{text[:40]}'")
    return value


def settings(session: Session) -> dict[str, str]:
    """The settings as text."""
    machine = {name: _switch_text(value) for name, value in session.settings().items()}
    mine = {"granularity": session.granularity, "verify": _switch_text(session.verifying)}
    failing = {"alloc": machine.pop("fail"), "slab": machine.pop("fail_slab")}
    return machine | mine | {"fail": ", ".join(f"{what} {left}" for what, left in failing.items() if left != "0") or "off"}


def _switch_text(value: int | bool | None) -> str:
    if value is None or value is False:
        return "off"
    return "on" if value is True else str(value)


@command(
    "show",
    arguments=(maybe("setting", kinds.WordKind("SETTING", SETTINGS)),),
    group="shell",
    summary="the settings",
    examples=("show", "show aslr"),
)
def show(session: Session, setting: str | None) -> Text:
    """One setting, or all."""
    return Text(tuple(f"{name}: {text}" for name, text in settings(session).items() if setting in (None, name)))


@command(
    "alias",
    arguments=(maybe("name", kinds.NAME), rest("text", kinds.COMMAND, needed=False)),
    group="shell",
    effect=FREE,
    summary="a short word for a command",
    more="Without arguments lists the aliases. What is typed behind the alias is put behind its command.",
    examples=("alias look walk app 0x10000", "alias"),
)
def alias(session: Session, name: str | None, text: Any) -> Text:
    """Make an alias, or list them."""
    if name is None or text is None:
        return Text(tuple(f"{word} = {meaning}" for word, meaning in session.aliases.items()) or ("no aliases",))
    if name in table.TABLE or name in table.ALIASES:
        raise UsageError(f"alias: '{name}' is a command", hint="choose another word")
    session.aliases[name] = text.source
    return Text((f"{name} = {text.source}",))


@command(
    "run",
    arguments=(one("path", kinds.HOST_PATH),),
    group="shell",
    effect=FREE,
    host=True,
    summary="run the commands in a file",
    more="One command or several on a line; # opens a comment. Stops at the first that fails.",
    examples=("help run", "run 'missing.kemu' # fails: there is no such file"),
)
def run_(session: Session, path: str) -> list[Result]:
    """The results of all commands in the file."""
    from kemu.commands.run import run

    if session.depth >= DEEPEST_RUN:
        raise UsageError(f"run: more than {DEEPEST_RUN} files deep", hint="does a file run itself?")
    results: list[Result] = []
    session.depth += 1
    try:
        for number, text in enumerate(_lines(path), 1):
            results += run(session, text)
            if results and not results[-1].ok:
                results[-1] = _placed_in_file(results[-1], f"{path}:{number}: ")
                break
    finally:
        session.depth -= 1
    return results or [Result(f"run {path}")]


def _placed_in_file(result: Result, where: str) -> Result:
    """The failed result, its error naming file and line."""
    if result.error is None:
        return result
    return attrs.evolve(result, error=attrs.evolve(result.error, what=where + result.error.what))


def _lines(path: str) -> list[str]:
    try:
        with Path(path).open(encoding="utf-8", errors="surrogateescape") as file:
            return file.read().split("\n")
    except (OSError, ValueError) as error:
        raise UsageError(f"run: cannot read '{path}': {getattr(error, 'strerror', None) or error}") from error


@command(
    "quit",
    "q",
    group="shell",
    effect=FREE,
    summary="leave kemu",
    examples=("quit", "ps; quit"),
)
def quit_(_session: Session) -> Quit:
    """Ask the front end to end."""
    return Quit()



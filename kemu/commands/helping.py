"""`help` and `apropos`: an overview of all commands, a page for each, topics, and a search.

All text about a command comes from its declaration (`spec.command`).
"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from kemu.commands import table
from kemu.commands.glossary import entry_for
from kemu.commands.terms import meaning_of
from kemu.commands.topics import TOPICS
from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.spec import FREE, Command, command, one, rest
from kemu.language.suggest import did_you_mean
from kemu.readings import Text

if TYPE_CHECKING:
    from kemu.experiment.session import Session

WIDTH = 78


@command(
    "help",
    "h",
    arguments=(rest("word", kinds.WORD, needed=False),),
    effect=FREE,
    summary="show the list of commands, or the page of one",
    more="A term of the lessons, such as RSS or zero page, is explained first. Any word that "
    "is not a term, a command or a topic is searched for in all pages, as apropos does.",
    examples=("help", "help fork"),
)
def help_(session: Session, word: str | None) -> Text:
    """The overview, a term, the page of a command, a topic, or the result of a search."""
    if not word:
        return Text(tuple(overview()))
    meaning = explained(word)
    made = table.find(word)
    if meaning and word not in session.desk.aliases:
        return Text((*meaning, *(["", *page(made)] if made is not None else [])))
    if word in session.desk.aliases:
        return Text(
            (
                f"{word} is an alias of: {session.desk.aliases[word]}",
                f"help {session.desk.aliases[word].split()[0]} explains it",
            )
        )
    if made is not None:
        return Text(tuple(page(made)))
    if word in TOPICS:
        return Text(tuple(TOPICS[word].rstrip().split("\n")))
    line = meaning_of(word)
    return Text((line, "help terms lists the others") if line else tuple(search(word)))


def explained(word: str) -> list[str]:
    """The explanation of a term, the related commands and the lesson that teaches it; empty for any
    other word."""
    found = entry_for(word)
    if found is None:
        return []
    name, entry = found
    lines = wrap(f"{name}: {entry.text}", WIDTH, break_on_hyphens=False)
    rows = [(word, table.named(word).summary) for word in entry.commands]
    return [
        *lines,
        "",
        *(f"  {line}" for line in columns(rows, width=WIDTH - 2)),
        f"  lesson start {entry.lesson} teaches it",
    ]


@command(
    "apropos",
    arguments=(one("word", kinds.WORD),),
    effect=FREE,
    summary="find commands by a word",
    more="Searches names, pages and topics; matching names are listed first.",
    examples=("apropos copy", "apropos refcount"),
    linux="apropos(1)",
)
def apropos(_session: Session, word: str) -> Text:
    """The result of a search."""
    return Text(tuple(search(word, "apropos")))


def overview() -> list[str]:
    """One screen: all commands by group, and the topics."""
    rows = [
        (group, " ".join(name for name, entry in table.TABLE.items() if entry.group == group))
        for group in table.GROUPS
    ]
    lines = columns([*rows, ("topics", " ".join(TOPICS))], gap=1)
    return [*lines, "help WORD explains a command or a topic, and searches for any other word"]


def columns(rows: list[tuple[str, str]], gap: int = 2, width: int = WIDTH) -> list[str]:
    """Names on the left, wrapped texts on the right."""
    margin = max((len(name) for name, _ in rows), default=0) + gap
    lines = []
    for name, text in rows:
        first, *more = wrap(text, width - margin, break_on_hyphens=False) or [""]
        lines += [f"{name:<{margin}}{first}".rstrip(), *(" " * margin + line for line in more)]
    return lines


def page(made: Command) -> list[str]:
    """The page of one command: synopsis, description, arguments, examples, the equivalent in Linux,
    the lesson."""
    lines = wrap(
        made.synopsis,
        WIDTH,
        subsequent_indent=" " * 8,
        break_on_hyphens=False,
        break_long_words=False,
    )
    lines += [
        "",
        *wrap(
            f"{made.summary[:1].upper()}{made.summary[1:]}. {made.more}",
            WIDTH,
            break_on_hyphens=False,
        ),
        "",
    ]
    lines += _parts(made)
    lines += ["examples:", *(f"  {example}" for example in made.examples)]
    if len(made.words) > 1:
        lines.append(f"also: {', '.join(made.words[1:])}")
    if made.linux:
        lines += wrap(f"in real Linux: {made.linux}", WIDTH, subsequent_indent="    ")
    return [*lines, *_lesson(made)]


def _parts(made: Command) -> list[str]:
    """A line for each argument and option, with aligned meanings."""
    rows = [(part.label, part.meaning) for part in made.parts]
    return [f"  {line}" for line in columns(rows, width=WIDTH - 2)]


def _lesson(made: Command) -> list[str]:
    from kemu.commands.lessonrefs import lesson_about

    found = lesson_about(made.words)
    return [f"lesson: {found.id} ({found.title})"] if found else []


def search(word: str, asked: str = "help") -> list[str]:
    """Commands whose name contains the word, then those whose page does, then topics.

    Raises UsageError, whose text starts with the command `asked`, if nothing matches."""
    lowered = word.lower()
    found = [(_rank(made, lowered), made) for made in table.load_all()]
    hits = [
        made
        for rank, made in sorted(
            (pair for pair in found if pair[0] < MISS), key=lambda pair: pair[0]
        )
    ]
    topics = [
        topic for topic, text in TOPICS.items() if lowered in topic or lowered in text.lower()
    ]
    if not hits and not topics:
        guess = did_you_mean(word, [*table.TABLE, *table.ALIASES, *TOPICS])
        raise UsageError(
            f"{asked}: nothing found for '{word[:40]}'",
            hint=guess or "help lists the commands",
            about="word",
        )
    margin = max(len(name) for name in [*(made.name for made in hits), *topics]) + 2
    rows = [(made.name, made.summary) for made in hits] + [
        (topic, f"topic: help {topic}") for topic in topics
    ]
    return [f"{name:<{margin}}{about}" for name, about in rows]


MISS = 3
"""The rank of a command that does not contain the word."""


def _rank(made: Command, word: str) -> int:
    """The place of the word: 0 name, 1 summary, 2 page, MISS nowhere."""
    if any(word in name for name in made.words):
        return 0
    if word in made.summary.lower():
        return 1
    text = "\n".join((made.synopsis, made.more, made.linux, *made.examples)).lower()
    return 2 if word in text else MISS

"""`help` and `apropos`: an overview of all commands, a page for each, topics, and a search.

All text about a command comes from its declaration (`spec.command`).
"""

from __future__ import annotations

from textwrap import shorten, wrap
from typing import TYPE_CHECKING

from kemu.commands import table
from kemu.commands.glossary import entry_for
from kemu.commands.terms import meaning_of
from kemu.commands.topics import TOPICS
from kemu.commands.unknown import OUTSIDE
from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.spec import FREE, Command, command, rest
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
    "is not a term, a command or a topic is searched for in all pages, as apropos does. The labels "
    "of the overview are topics; the name of a kernel function tells what it does.",
    examples=("help", "help fork", "help looking; help do_wp_page"),
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
    in_a_lesson = []
    if word in table.LESSON_WORDS:
        in_a_lesson = wrap(
            f"in a lesson, {'lesson ' if made else ''}{word}: {table.LESSON_WORDS[word]}", WIDTH
        )
    if made is not None:
        return Text((*page(made), *in_a_lesson))
    if in_a_lesson:
        return Text((*in_a_lesson, "help lesson lists the other words"))
    found = topic(word)
    if not found and word in OUTSIDE:
        found = [f"kemu {word}, in the host's shell: {OUTSIDE[word]}"]
    if not found:
        line = meaning_of(word)
        found = (
            [line, "help terms lists the others"]
            if line
            else [*function_page(word), f"list {word} shows its code"]
            if function_page(word)
            else search(word)
        )
    return Text(tuple(found))


def topic(word: str) -> list[str]:
    """The page of a topic, which every label of the overview is; empty for any other word."""
    if word in TOPICS:
        return TOPICS[word].rstrip().split("\n")
    if word == "topics":
        labels = [(name, f"commands: {what}") for name, what in table.GROUPS.items()]
        return columns([*labels, *((name, first_line(name)) for name in TOPICS)], width=WIDTH)
    if word in table.GROUPS:
        made = [table.named(name) for name, entry in table.TABLE.items() if entry.group == word]
        rows = [(one.name, one.summary) for one in made]
        return [f"{word}: {table.GROUPS[word]}", *columns(rows, width=WIDTH)]
    return []


def first_line(name: str) -> str:
    """How the page of a topic begins."""
    return shorten(TOPICS[name].partition("\n\n")[0], WIDTH - 16, placeholder=" ...")


def function_page(word: str) -> list[str]:
    """What a kernel function is and does; empty for any other word."""
    from kemu.commands.code import about
    from kemu.observe.moves import functions

    name = word.removesuffix("()")
    return about(name) if any(known.name == name for known in functions()) else []


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
    arguments=(rest("word", kinds.WORD),),
    effect=FREE,
    summary="find commands and kernel functions by words",
    more="Searches names, pages, topics and the kernel's functions for all of the words, in any "
    "of their forms (share finds shared and sharing); matching names are listed first.",
    examples=("apropos copy", "apropos shared frame", "apropos reverse mapping"),
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


MOST_FUNCTIONS = 12
"""Kernel functions that a search lists."""

MISS = 3
"""The rank of a page that does not contain the words."""

SHORT = 3
"""A word with fewer letters is looked for in names alone: any page holds it."""


def search(word: str, asked: str = "help") -> list[str]:
    """Commands whose names contain the words, then those whose pages do, then topics and kernel
    functions.

    Raises UsageError, whose text starts with the command `asked`, if nothing matches."""
    stems = [stem(one) for one in word.lower().split()]
    found = [(_rank(made, stems), made) for made in table.load_all()]
    hits = [pair[1] for pair in sorted(found, key=lambda pair: pair[0]) if pair[0] < MISS]
    rows = [(made.name, made.summary) for made in hits]
    pages = {**TOPICS, **dict.fromkeys(table.GROUPS, "")}
    rows += [
        (name, f"topic: help {name}")
        for name, text in pages.items()
        if all(one in name or (len(one) >= SHORT and one in text.lower()) for one in stems)
    ]
    rows += _functions(stems)
    if not rows:
        raise nothing(word, asked)
    margin = max(len(name) for name, _ in rows) + 2
    return [f"{name:<{margin}}{about}" for name, about in rows]


def stem(word: str) -> str:
    """The word without the ending of its form: `shar` of share, shared, sharing."""
    for ending in ("ings", "ing", "ies", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= SHORT:
            return word.removesuffix(ending)
    return word


def _functions(stems: list[str]) -> list[tuple[str, str]]:
    """Kernel functions with the words in their names, then in what they do."""
    from kemu.observe.moves import first_words, functions

    names = sorted({known.name for known in functions()})
    if all(len(one) < SHORT for one in stems):
        return []
    by_name = [name for name in names if all(one in name.lower() for one in stems)]
    by_text = [
        name
        for name in names
        if name not in by_name and all(one in first_words(name).lower() for one in stems)
    ]
    chosen = [*by_name, *(by_text if len(stems) > 1 else [])]
    more = len(chosen) - MOST_FUNCTIONS
    rows = [(f"{name}()", "kernel function: source, list, break") for name in chosen]
    if more > 0:
        rows = rows[:MOST_FUNCTIONS]
        rows[-1] = (rows[-1][0], f"kernel function; {more} more match")
    return rows


def nothing(word: str, asked: str) -> UsageError:
    """The complaint about words that no page contains."""
    complaint = table.missing(word) if len(word.split()) == 1 else None
    near = complaint.hint if complaint is not None else "fewer words find more"
    what = complaint.what.partition(": ")[2] if complaint is not None else ""
    guess = did_you_mean(word, [*table.TABLE, *table.ALIASES, *TOPICS])
    return UsageError(
        f"{asked}: nothing found for '{word[:40]}'" + (f": {what}" if what else ""),
        hint=guess if guess and not what and "here it is" not in near else near,
        about="word",
    )


def _rank(made: Command, stems: list[str]) -> int:
    """The place of the words: 0 name, 1 summary, 2 page, MISS nowhere."""
    if all(any(one in name for name in made.words) for one in stems):
        return 0
    if any(len(one) < SHORT for one in stems):
        return MISS
    if all(one in made.summary.lower() for one in stems):
        return 1
    text = "\n".join(
        (*made.words, made.summary, made.synopsis, made.more, made.linux, *made.examples)
    ).lower()
    return 2 if all(one in text for one in stems) else MISS

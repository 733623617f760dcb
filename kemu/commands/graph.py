"""`graph KIND ...`: pictures of the machine, on the terminal or in a file.

    graph sharing parent child                       on the terminal
    graph sharing parent child -o shared.svg         with a layout engine; otherwise shared.dot
    graph tables app --diff 12 57                    before and after, with differences marked

Each kind declares its arguments as a command does, so errors point at the place in the line. A
picture never changes the machine; after a picture of another moment the session returns to this
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from kemu import readings
from kemu.commands.execute import ready
from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.bind import bind
from kemu.language.place import placed
from kemu.language.spec import (
    FREE,
    Argument,
    Command,
    Option,
    command,
    flags,
    keyword,
    many,
    maybe,
    one,
)
from kemu.language.suggest import did_you_mean
from kemu.language.tokens import Line, Token, split

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task
    from kemu.language.spec import Candidate


class Kind(NamedTuple):
    """A kind of picture: what it shows, the function (session, values) -> reading, and its
    arguments."""

    summary: str
    take: Callable[..., readings.Reading]
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()


# ---------------------------------------------------------------- the kinds


def _walk(
    session: Session, task_: Task | None, addr: int, machine: tuple[str, ...]
) -> readings.Reading:
    from kemu.observe.pictures import walk as graph_walk

    if machine:
        return graph_walk.textbook(addr)
    return graph_walk.walk(session.kernel, task_ or session.current, addr, session.name_of)


def _tables(session: Session, task: Task, parts: tuple[str, ...]) -> readings.Reading:
    from kemu.observe.space import need_mm
    from kemu.observe.translation import page_tables

    need_mm(task, session.name_of)
    return page_tables(session.kernel, task, session.name_of, kernel_half=bool(parts))


def _sharing(session: Session, tasks: tuple[Task, ...]) -> readings.Reading:
    from kemu.observe.pictures.sharing import sharing

    chosen = list(tasks) or _processes(session)
    return sharing(session.kernel, chosen, session.name_of)


MOST_SHARING = 4
"""Processes that `graph sharing` draws if none is named."""


def _processes(session: Session) -> list[Task]:
    """The newest processes that were made by commands. Raises UsageError without one."""
    found = [task for pid, task in sorted(session.tasks.items()) if pid > 2 and task.mm is not None]
    if not found:
        raise UsageError("tasks: no process to draw", hint="spawn app makes one")
    return found[-MOST_SHARING:]


def _mm(session: Session, task: Task) -> readings.Reading:
    from kemu.observe.pictures.spaces import mm

    return mm(session.kernel, task, session.name_of)


def _rmap(session: Session, task_: Task | None, pfn: int) -> readings.Reading:
    from kemu.commands.frames import frame_at
    from kemu.observe.pictures.frames import rmap

    return rmap(session.kernel, frame_at(session, task_, pfn), session.name_of)


def _tree(session: Session) -> readings.Reading:
    from kemu.observe.pictures.spaces import family

    return family(session.kernel, session.name_of)


def _mem(session: Session, cells: tuple[str, ...]) -> readings.Reading:
    from kemu.observe import frames
    from kemu.observe.pictures import frames as graph_frames

    return (
        graph_frames.counts(session.kernel)
        if cells
        else frames.memory_map(session.kernel, session.name_of)
    )


def _layout(session: Session, task: Task) -> readings.Reading:
    from kemu.observe import space

    return space.layout(session.kernel, task, session.name_of)


_TASK = maybe("task", kinds.TASK)
KINDS = {
    "walk": Kind(
        "an address cut into indices, the entry picked in each table, the frame and the byte",
        _walk,
        (maybe("task_", kinds.TASK), one("addr", kinds.ADDRESS)),
        (flags("machine", ("toy",), "in a small textbook machine"),),
    ),
    "tables": Kind(
        "the page tables as a tree of frames",
        _tables,
        (_TASK,),
        (flags("parts", ("kernel",), "the kernel half too"),),
    ),
    "sharing": Kind(
        "the tables of several processes, joined at the frames they share",
        _sharing,
        (many("tasks", kinds.TASK),),
    ),
    "mm": Kind("task, mm_struct, VMAs, anon_vmas and files", _mm, (_TASK,)),
    "rmap": Kind(
        "every path from a frame back to its mappings",
        _rmap,
        (maybe("task_", kinds.TASK), one("pfn", kinds.FRAME)),
    ),
    "tree": Kind("the processes and what they share", _tree),
    "mem": Kind(
        "all of RAM, one cell per frame",
        _mem,
        (),
        (flags("cells", ("refcount",), "the counts, not the owners"),),
    ),
    "layout": Kind("the whole address space to a readable scale", _layout, (_TASK,)),
}
PLOT = "plot"
"""The kind whose words are expressions, shown over time."""


# ---------------------------------------------------------------- the arguments of `graph`


class Word(NamedTuple):
    """A token with its line, kept for the kind to read."""

    token: Token
    line: Line


class GraphKind:
    """The kind of a picture."""

    name = "KIND"
    what = f"one of {', '.join(KINDS)}, {PLOT}"

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """A word of the table; without `known` anything."""
        return token.text in (*KINDS, PLOT) or not known

    def convert(self, token: Token, line: Line, session: Session | None) -> Word:
        """The word with its place."""
        if token.text not in (*KINDS, PLOT):
            guess = did_you_mean(token.text, (*KINDS, PLOT))
            raise UsageError(
                f"expected {self.what}, got '{token.text[:40]}'", hint=guess or "see: help graph"
            )
        return Word(token, line)

    def complete(self, session: Session) -> Iterable[Candidate]:
        """All of them."""
        return [*((name, kind.summary) for name, kind in KINDS.items()), (PLOT, "values over time")]


class GraphArguments:
    """The arguments of the kind, which the kind itself converts."""

    name = "ARGS"
    what = "what the kind shows: a task, an address, a frame, an expression"

    def fits(self, token: Token, session: Session, known: bool) -> bool:
        """Anything."""
        return True

    def convert(self, token: Token, line: Line, session: Session) -> Word:
        """The word with its place."""
        return Word(token, line)

    def complete(self, session: Session) -> Iterable[Candidate]:
        """Tasks, and the words of some kinds."""
        return [
            *kinds.TASK.complete(session),
            ("kernel", "tables"),
            ("refcount", "mem"),
            ("toy", "walk"),
        ]


_START = "spawn app; mmap app 0x10000 2p rw; write app 0x10000 7; "


@command(
    "graph",
    arguments=(maybe("kind", GraphKind()), many("words", GraphArguments())),
    options=(
        keyword("file", kinds.HOST_PATH, "-o"),
        Option("diff", {"--diff": None}, kinds.MOMENT, values=2),
    ),
    effect=FREE,
    host=True,
    writes=True,
    summary="a picture: walk, tables, sharing, mm, rmap, tree, mem, layout, plot",
    more="graph alone draws the tree of processes. graph walk [TASK] ADDR [toy]; graph tables "
    "[TASK] [kernel]; graph sharing [TASK...]; graph mm [TASK]; graph rmap PFN, or TASK ADDR; "
    "graph tree; graph mem [refcount]; graph layout [TASK]; graph plot EXPR, EXPR... (rss: RSS of "
    "each process, free: free frames). Draws on the terminal, or with -o FILE writes .svg, .png, "
    ".dot or .txt according to the extension. "
    "--diff N M shows events N and M with the differences marked: + new, - gone, * changed. "
    "Examples of each: docs/pictures.md.",
    examples=(_START + "fork as kid; graph sharing app kid", _START + "graph walk app 0x10004"),
    linux="Documentation/mm/page_tables.rst",
)
def graph(
    session: Session,
    kind: Word | None,
    words: tuple[Word, ...],
    file: str | None,
    diff: tuple[int, int] | None,
) -> readings.Picture:
    """The picture, also written to `file` if given; without a kind, the processes."""
    from kemu.commands.graph_files import ending, write

    if kind is None and words:
        kind = _unknown_kind(words[0])
    if kind is None:
        (line,) = split("tree")
        kind = Word(line.tokens[0], line)
    form = ending(file) if file is not None else ""
    name = kind.token.text
    if name == PLOT:
        taken = _plot_of(session, kind, words, diff)
    elif diff is None:
        with session.looking():
            taken = readings.Picture(name, session.now, _take(session, kind, words))
    else:
        taken = _compared(session, kind, words, diff)
    return taken if file is None else taken.replace(written=write(taken, file, form))


def _unknown_kind(word: Word) -> Word:
    """Raises UsageError about the first word."""
    token = word.token
    try:
        return GraphKind().convert(token, word.line, None)
    except UsageError as error:
        raise UsageError(
            f"kind: {error.what}",
            text=word.line.text,
            column=token.column,
            length=len(token.text),
            hint=error.hint,
        ) from error


def _take(session: Session, kind: Word, words: tuple[Word, ...]) -> readings.Reading:
    """The picture of this moment; the words are bound like the arguments of a command."""
    name = kind.token.text
    chosen = KINDS[name]
    takes = (chosen.take, chosen.arguments, chosen.options)
    made = Command((f"graph {name}",), *takes, chosen.summary, "", (), "", FREE, host=False)
    line = Line(kind.line.text, (kind.token, *(word.token for word in words)))
    call = bind(made, line, session)
    try:
        return chosen.take(session, **ready(session, call))
    except UsageError as error:
        if error.about not in call.words:
            raise
        raise placed(error, line, call.words, "") from error


def _compared(
    session: Session, kind: Word, words: tuple[Word, ...], diff: tuple[int, int]
) -> readings.Picture:
    """The picture of two moments, the earlier first; a text where there is nothing to draw at one.

    Raises UsageError if there is nothing to draw at either."""
    first, last = sorted(diff)
    if last > session.end:
        raise UsageError(
            f"event: no #{last}",
            hint=f"the experiment has events 0 to {session.end}",
            about="diff",
            index=diff.index(last),
        )
    shown, wrong = [], []
    with session.traveling():
        for event in (first, last):
            try:
                shown.append(_at(session, kind, words, event))
            except UsageError as error:
                shown.append(
                    readings.Text((f"nothing to draw: {error.what.removeprefix('task: ')}",))
                )
                wrong.append(error)
        if len(wrong) == 2:
            raise wrong[1]
        shown = _cut_alike(session, (first, last), shown)
    return readings.Picture(kind.token.text, last, shown[1], first, shown[0])


def _at(session: Session, kind: Word, words: tuple[Word, ...], event: int) -> readings.Reading:
    """The picture at an event; `sharing` draws only the processes that exist then."""
    with session.at(event):
        return _take(
            session,
            kind,
            _alive(session, words) or words if kind.token.text == "sharing" else words,
        )


def _alive(session: Session, words: tuple[Word, ...]) -> tuple[Word, ...]:
    return tuple(
        word
        for word in words
        if word.token.text in session.names() or word.token.text.startswith("@")
    )


def _cut_alike(
    session: Session, events: tuple[int, int], shown: list[readings.Reading]
) -> list[readings.Reading]:
    """Two pictures of sharing with groups cut at the same addresses, so equal parts look equal."""
    from kemu.observe.pictures.sharing import borders, sharing

    both = [found for found in shown if isinstance(found, readings.SharingGraph)]
    if len(both) < 2:
        return shown
    cuts = borders(both[0]) | borders(both[1])
    again: list[readings.Reading] = []
    for event, found in zip(events, both, strict=True):
        with session.at(event):
            tasks = [session.tasks[space.pid] for space in found.spaces]
            again.append(sharing(session.kernel, tasks, session.name_of, cuts=cuts))
    return again


def _plot_of(
    session: Session, kind: Word, words: tuple[Word, ...], between: tuple[int, int] | None
) -> readings.Picture:
    """The plot of the expressions in the words, as typed."""
    from kemu.commands.graph_plot import plotted
    from kemu.language.lexer import Source

    if not words:
        hint = "for example: graph plot refcount(pfn(app, 0x10000))"
        raise UsageError(
            "plot: missing; expected an expression",
            text=kind.line.text,
            column=kind.token.end,
            length=1,
            hint=hint,
        )
    source = Source(kind.line.text, words[0].token.column, words[-1].token.end)
    return readings.Picture(PLOT, session.now, plotted(session, source, between))

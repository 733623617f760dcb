"""The report: a film as one self-contained page that plays it.

    head      title, facts, the player (slider, buttons)
    moment    the event, its calls, what changed; the tables joined at frames, mappings, RAM, tasks;
              filled by the script
    commands  every command with its answer, as text
    data      the film: texts once each, numbers for the rest

What the page shows before its script runs, or without one, is the last moment.

Text goes through ``esc``, data through ``data_block``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kemu.readings.report import Film, Played, Pools
from kemu.views.page import data_block, document, esc, part
from kemu.views.report_panels import mappings, memory, memory_in_words, tasks
from kemu.views.report_player import Player
from kemu.views.report_tables import in_words, joined
from kemu.views.style import plural

TASK_FIELDS = (
    "pid",
    "name",
    "state",
    "mm",
    "active_mm",
    "size",
    "rss",
    "minor",
    "major",
    "running_on",
    "blocked_in",
)
"""The fields of a task that the page needs."""

BUTTONS = (
    ("first", "|&lt;", "first moment (Home)"),
    ("cback", "&lt;&lt;", "end of the command before (Page Up)"),
    ("back", "&lt;", "one step back (left arrow)"),
    ("play", "play", "play event by event, or pause"),
    ("next", "&gt;", "one step on (right arrow)"),
    ("cnext", "&gt;&gt;", "end of the command (Page Down)"),
    ("last", "&gt;|", "last moment (End)"),
)
GRAINS = (
    ("command", "a command"),
    ("shown", "an event"),
    ("all", "an event, also of lists and locks"),
    ("call", "a call"),
)
"""Sizes of a step; the first is the one at first."""
SPEEDS = (("10", "10 a second"), ("1", "1 a second"), ("3", "3 a second"), ("30", "30 a second"))
"""How many events `play` shows in a second; the first is the one at first."""


def report(films: Sequence[Film], version: str) -> str:
    """The page of one film, or of several (the machines of a lesson); the first is shown."""
    first = films[0]
    commands = "".join(
        _commands(number, film.commands, len(films)) for number, film in enumerate(films, 1)
    )
    footer = f"<footer><h2>Commands and what they answered</h2>{commands}</footer>"
    body = (
        _head(films, version),
        _player(films),
        _moment(first),
        footer,
        data_block("films", [data(film) for film in films]),
    )
    return document(
        first.title,
        "\n".join(body),
        style=part("report.css"),
        script=part("report_draw.js") + part("report.js"),
    )


def opening(film: Film) -> int:
    """The moment at which the page opens: the beginning of a lesson, the end of the first command
    of anything else."""
    if film.notes:
        return film.notes[0][0]
    ends = (played.last for played in film.commands if played.last > max(played.first, film.first))
    return min(next(ends, film.last), film.last)


def default_sides(player: Player) -> tuple[int, ...]:
    """The ids of the address spaces that are drawn: the oldest that a process of the user has, and
    that of the running process; if these are the same, the newest."""
    people = [
        space for space in player.spaces if not space.pids or any(pid > 2 for pid in space.pids)
    ]
    chosen = people or player.spaces
    if not chosen:
        return ()
    left = chosen[0].id
    running = {task.mm for task in player.tasks if task.running_on is not None} - {left}
    right = next((space.id for space in chosen if space.id in running), chosen[-1].id)
    return tuple(dict.fromkeys((left, right)))


# ---------------------------------------------------------------- the parts of the page


def _head(films: Sequence[Film], version: str) -> str:
    film = films[0]
    counts = (sum(len(film.events) for film in films), sum(len(film.commands) for film in films))
    facts = (
        f"{plural(counts[0], 'event')}, {plural(counts[1], 'command')}; {film.machine.geometry}; "
        f"kemu {version}"
    )
    return (
        '<a class="skip screen" href="#moment">to the moment</a>\n'
        f'<header><h1>{esc(film.title)}</h1><p class="soft">{esc(facts)}</p>'
        '<button id="look" class="screen">light/dark</button>'
        "<noscript><p>This page plays with JavaScript; without it, one moment is "
        "shown.</p></noscript></header>"
    )


def _player(films: Sequence[Film]) -> str:
    film = films[0]
    buttons = "".join(
        f'<button id="{name}" aria-label="{does}" title="{does}">{sign}</button>'
        for name, sign, does in BUTTONS
    )
    grains = "".join(f'<option value="{value}">{words}</option>' for value, words in GRAINS)
    speeds = "".join(f'<option value="{value}">{words}</option>' for value, words in SPEEDS)
    last, now = film.last, opening(film)
    names = "".join(
        f'<option value="{number}">{number}. {esc(film.part)}</option>'
        for number, film in enumerate(films, 1)
    )
    parts = f'<label>part <select id="part">{names}</select></label>' if len(films) > 1 else ""
    return (
        '<nav class="player screen" aria-label="timeline"><div class="bar">'
        f'<input type="range" id="slider" min="{film.first}" max="{last}" value="{now}" step="1" '
        'aria-label="moment">'
        f'<div class="buttons">{buttons}</div><output id="where" for="slider">#{now} of '
        f"{last}</output>{parts}"
        f'<label>step <select id="grain">{grains}</select></label>'
        f'<label>play <select id="speed">{speeds}</select></label>'
        "</div></nav>"
    )


def _moment(film: Film) -> str:
    player = Player(film).goto(opening(film))
    ids = default_sides(player)
    drawing = joined(player, ids) if ids else ""
    words, ram = in_words(player, ids) if ids else "", memory_in_words(player)
    return f"""<main id="moment" tabindex="-1">
<section class="event" aria-live="polite"><div id="note"></div>\
<p id="command"></p><p id="text"></p><p id="rule"></p></section>
<div class="columns">
<div class="story">
<section><h2>Calls</h2><div id="calls" class="scroll tall"></div></section>
<section><h2>Why</h2><div id="why"></div></section>
<section><h2>Changed by this command so far</h2>\
<div id="changes" class="scroll tall"></div></section>
</div>
<div id="state" class="state">
<section><h2>Page tables, joined at frames</h2>
<p class="screen choose"><label>left <select id="left"></select></label> \
<label>right <select id="right"></select></label></p>
<div id="joined" class="scroll" tabindex="0" role="group" \
aria-label="page tables, joined at frames">{drawing}</div>
<p class="soft">{esc(_key(film))}</p>
<details class="alt screen"><summary>the same in words</summary>\
<pre id="joinedtext">{esc(words)}</pre></details></section>
<section><h2>Mappings</h2>\
<div id="mappings" class="scroll pair">{mappings(player, ids)}</div></section>
<section><h2>RAM, one cell per frame</h2><div id="memory" class="scroll">{memory(player)}</div>
<details class="alt screen"><summary>the same as text</summary>\
<pre id="memorytext">{esc(ram)}</pre></details></section>
<section><h2>Tasks</h2><div id="tasks" class="scroll">{tasks(player)}</div></section>
</div>
</div>
</main>"""


def _key(film: Film) -> str:
    bits = ", ".join(f"{letter} {name}" for letter, name in film.machine.legend)
    return (
        f"{bits}. A solid arrow: the entry allows writing; dashed: it does not. * changed by the "
        "last step, old \u2192 new."
    )


def _commands(number: int, commands: Iterable[Played], count: int) -> str:
    """The commands of one film."""
    items = "".join(_command(played, f"p{number}" if count > 1 else "") for played in commands)
    heading = f"<h3>Part {number}</h3>" if count > 1 else ""
    return f'{heading}<ol class="commands" data-part="{number}">{items}</ol>'


def _command(played: Played, prefix: str) -> str:
    events = (
        f"#{played.first + 1}-#{played.last}" if played.last > played.first else f"at #{played.now}"
    )
    failed = "" if played.ok else ' <b class="bad">failed</b>'
    output = f"<pre>{esc(played.output)}</pre>" if played.output else ""
    name = f'<a href="#{prefix}e{played.now}"><code>{esc(played.text)}</code></a>'
    return f'<li>{name} <span class="soft">{events}</span>{failed}{output}</li>'


# ---------------------------------------------------------------- the data


class Texts(dict[str, int]):
    """A table of texts, each of them once."""

    def place(self, text: str) -> int:
        """The index of the text."""
        return self.setdefault(text, len(self))


def data(film: Film) -> dict[str, Any]:
    """The film for the page's script, which unpacks it (report.js)."""
    texts = Texts()
    events = _events(film, texts.place)
    calls = [
        (call.depth, texts.place(call.function), texts.place(call.path), call.first, call.last)
        for call in film.calls
    ]
    machine = film.machine
    return {
        "v": 1,
        "first": film.first,
        "last": film.last,
        "opening": opening(film),
        "machine": {
            "levels": machine.levels,
            "userEnd": hex(machine.user_end),
            "pfnShift": machine.pfn_shift,
            "frames": machine.frames,
            "zero": machine.zero,
        },
        "events": events,
        "calls": calls,
        "texts": list(texts),
        "commands": [(p.text, p.first, p.last, p.now, p.ok) for p in film.commands],
        "marks": film.marks,
        "notes": film.notes,
        **_pools(film.pools),
        "start": film.start,
        "changes": film.changes,
    }


def _events(film: Film, place: Callable[[str], int]) -> dict[str, Any]:
    columns = {
        "kind": "kind",
        "what": "what",
        "field": "field",
        "old": "old",
        "now": "new",
        "note": "note",
        "fn": "function",
    }
    return {
        "number": [event.number for event in film.events],
        **{
            name: [place(getattr(event, field)) for event in film.events]
            for name, field in columns.items()
        },
        "shown": "".join("01"[shown] for shown in film.shown),
        "before": film.before,
        "rule": [place(rule) for rule in film.rules],
    }


def _pools(pools: Pools) -> dict[str, Any]:
    return {
        "words": [(hex(word.base), *word[1:]) for word in pools.words],
        "looks": [(*look[:4], look.preview.hex()) for look in pools.looks],
        "vmas": [
            (hex(v.start), hex(v.end), v.perm, hex(v.offset), v.inode, v.name) for v in pools.vmas
        ],
        "spaces": pools.spaces,
        "tasks": [[getattr(task, field) for field in TASK_FIELDS] for task in pools.tasks],
        "taskFields": TASK_FIELDS,
    }

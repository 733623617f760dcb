"""Fragments of HTML as they were reviewed: the drawings of the situations.

python -m tests.report.golden --update [NAME ...]     rewrites them, for review
"""

import sys
from pathlib import Path

from kemu.views.report import default_sides
from kemu.views.report_panels import mappings, memory, tasks
from kemu.views.report_player import Player
from kemu.views.report_tables import NARROW, in_words, joined
from tests.report.plays import SITUATIONS, film_of, session_of

FOLDER = Path(__file__).parent / "fragments"


def fragments(name):
    """All drawings of a situation, one element a line."""
    film = film_of(session_of(SITUATIONS[name]))
    player = Player(film).goto(film.last)
    ids = default_sides(player)
    parts = [
        joined(player, ids),
        joined(player, ids, NARROW),
        mappings(player, ids),
        memory(player),
        tasks(player),
    ]
    words = f"<pre>\n{in_words(player, ids)}\n</pre>"
    return "\n\n".join([*(part.replace("><", ">\n<") for part in parts), words]) + "\n"


def main(words):
    names = [word for word in words if not word.startswith("-")] or list(SITUATIONS)
    FOLDER.mkdir(exist_ok=True)
    for name in names:
        path = FOLDER / f"{name}.html"
        new = fragments(name)
        if not path.exists() or path.read_text(encoding="utf-8") != new:
            path.write_text(new, encoding="utf-8")
            sys.stdout.write(f"rewritten: {path.name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])

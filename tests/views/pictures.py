"""Golden pictures: what `graph` draws in a situation, as text and as DOT.

    python -m tests.views.pictures --update [NAME]      write them anew, for review

A file holds the reason in its first line, then the machine's options, the commands, and behind
`---` what each `graph` command draws: the drawing for a terminal, and the DOT behind a line
`[dot]`. No engine takes part.
"""

import sys
from pathlib import Path

from kemu.api import Session
from kemu.views.pictures import draw as graph
from kemu.views.style import UNICODE, Style
from kemu.views.terminal import render

FOLDER = Path(__file__).with_name("pictures")
NAMES = sorted(path.stem for path in FOLDER.glob("*.txt"))
WIDE = Style(glyphs=UNICODE)


def head(name):
    """The lines above the first drawing."""
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    return text.split("\n---\n")[0].split("\n")


def session(lines):
    """The machine that the line `machine NAME=VALUE ...` asks for."""
    words = next((line.split()[1:] for line in lines if line.startswith("machine ")), [])
    return Session(**dict(word.split("=") for word in words))


def drawn(name):
    """The whole file as it should be."""
    lines = head(name)
    kemu, parts = session(lines), []
    for line in lines:
        if line.startswith("graph "):
            picture = kemu.reading(line)
            parts.append(f"{line}\n{render(picture, WIDE)}\n[dot]\n{graph.dot(picture)}")
        elif not line.startswith(("#", "machine ")):
            kemu.run(line)
    return "\n---\n".join(["\n".join(lines), *parts])


if __name__ == "__main__":
    for chosen in sys.argv[2:] or NAMES:
        (FOLDER / f"{chosen}.txt").write_text(drawn(chosen), encoding="utf-8")

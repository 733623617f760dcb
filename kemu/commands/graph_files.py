"""Pictures written to files; the extension chooses the format.

.svg .png    drawn by a layout engine; without one, a .dot file and a line on how to get an engine
.dot .gv     DOT
.txt         the drawing for a terminal
"""

from __future__ import annotations

from pathlib import Path

from kemu import readings
from kemu.commands.hostfile import replace_file
from kemu.errors import HostUnavailable, UsageError

ENDINGS = (".svg", ".png", ".dot", ".gv", ".txt")


def ending(path: str) -> str:
    """The extension of the file without its dot. Raises UsageError if it is not a picture's."""
    found = Path(path).suffix.lower()
    if found not in ENDINGS:
        what = f"'{path[:60]}' has no extension" if not found else f"'{path[:60]}' is not a picture"
        raise UsageError(
            f"-o: {what}",
            hint=f"the extension chooses the format: {' '.join(ENDINGS)}",
            about="file",
        )
    return found[1:]


def write(picture: readings.Picture, path: str, form: str) -> str:
    """Write the picture to the file and return one line on what was written. Without an engine for
    the form, writes a .dot file instead."""
    from kemu.views.pictures import draw as drawn
    from kemu.views.pictures import plot as graph_plot
    from kemu.views.style import UNICODE, Style

    if form == "txt":
        return _put(
            path,
            (drawn.picture(picture, Style(glyphs=UNICODE)) + "\n").encode(),
            "the drawing for a terminal",
        )
    if form == "svg" and isinstance(picture.subject, readings.PlotGraph):
        return _put(path, graph_plot.svg(picture.subject).encode(), "SVG")
    dot = drawn.dot(picture)
    if form in ("dot", "gv"):
        return _put(path, dot.encode(), "DOT")
    return _laid_out(path, form, dot)


def _laid_out(path: str, form: str, dot: str) -> str:
    """Write with the available engine, otherwise as a .dot file."""
    from kemu.views.pictures import layout

    engine = layout.engine(form)
    if engine:
        try:
            return _put(
                path, layout.layout(dot, form, engine), f"{form.upper()}, by {Path(engine).name}"
            )
        except HostUnavailable as error:
            beside = _put(str(Path(path).with_suffix(".dot")), dot.encode(), "DOT")
            return f"{beside}; {error}"
    only = " (PNG needs dot)" if form == "png" and layout.engine("svg") else ""
    return (
        _put(str(Path(path).with_suffix(".dot")), dot.encode(), "DOT")
        + f"; no {form.upper()}{only}: {layout.HOW_TO}"
    )


def _put(path: str, data: bytes, what: str) -> str:
    """Replace the file as a whole or not at all."""
    replace_file(path, data, "-o")
    return f"{path}: {what}, {len(data)} bytes"

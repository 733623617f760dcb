"""A picture as a file: the ending of its name says as what.

.svg .png    laid out by an engine; where there is none, DOT is written beside and one line says how to get one
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
    """The ending of the file without its dot. Raises UsageError for one that is not a picture's."""
    found = Path(path).suffix.lower()
    if found not in ENDINGS:
        what = f"'{path[:60]}' has no ending" if not found else f"'{path[:60]}' is not a picture"
        raise UsageError(
            f"-o: {what}",
            hint=f"the ending says what is written: {' '.join(ENDINGS)}",
            about="file",
        )
    return found[1:]


def write(picture: readings.Picture, path: str, form: str) -> str:
    """Write the picture to the file; what was written, in one line. Where no engine makes the form,
    DOT is written beside."""
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
    """Written by the engine that is here, or as DOT beside."""
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
    """Replace the file as a whole, or leave it alone."""
    replace_file(path, data, "-o")
    return f"{path}: {what}, {len(data)} bytes"

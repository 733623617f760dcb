"""A self-contained page of HTML: no network, no server, no second file.

    <!doctype html>  title, the shared look, the page's own style
    <body> ... </body>  data and script, if any

Every page carries a content security policy that forbids all requests, so injected text can load
nothing.

Text reaches a page only through ``esc``, data only through ``data_block``.
"""

from __future__ import annotations

import json
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

INSIDE = "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
POLICY = f"default-src 'none'; {INSIDE}; base-uri 'none'; form-action 'none'"
"""No request of any kind; what the file itself contains may run."""

UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Characters that end a script element, begin a comment in it, or end a line of JavaScript, as JSON
escapes."""

INVISIBLE = {code: f"\\x{code:02x}" for code in [*range(9), 11, 12, *range(14, 32), 127]}
"""Control characters, which HTML forbids, by the text that spells them."""


def document(title: str, body: str, *, style: str = "", script: str = "", lang: str = "en") -> str:
    """A whole page. ``body``, ``style`` and ``script`` are HTML, CSS and JavaScript; ``title`` and
    ``lang`` are texts."""
    end = f"<script>\n{script}\n</script>\n" if script else ""
    return (
        f'<!doctype html>\n<html lang="{esc(lang)}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{esc(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{esc(title)}</title>\n<style>\n{part('page.css')}{style}</style>\n</head>\n"
        f"<body>\n{body}\n{end}</body>\n</html>\n"
    )


def esc(text: object) -> str:
    """``text`` as HTML text or as an attribute between quotes; what HTML forbids is spelled out."""
    visible = str(text).translate(INVISIBLE)
    return escape(visible.encode("utf-8", "backslashreplace").decode("utf-8"), quote=True)


def safe_json(value: Any) -> str:
    """``value`` as JSON that means the same inside a script element: nothing in it can end the
    element."""
    return "".join(
        UNSAFE.get(letter, letter) for letter in json.dumps(value, separators=(",", ":"))
    )


def data_block(name: str, value: Any) -> str:
    """``value`` as a block of data that the page's script finds by the id ``name``."""
    return f'<script type="application/json" id="{esc(name)}">{safe_json(value)}</script>'


@cache
def part(name: str) -> str:
    """The text of a file next to this module."""
    return files("kemu.views").joinpath(name).read_text(encoding="utf-8")

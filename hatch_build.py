"""Builds the wheel with kemu/trace/_fast.c compiled into it, where there is a C compiler.

Without one, without Python's headers, or with KEMU_PURE set the wheel is pure Python and does the
same, slower: `kemu doctor` says which it is.  The compiler is the one that made this Python.
"""

import os
import shlex
import subprocess
import sys
import zlib
from pathlib import Path
from sysconfig import get_config_var, get_path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class FastTape(BuildHookInterface):
    """Adds the compiled module, which makes the wheel one for this platform and this Python."""

    def initialize(self, version, build_data):
        """Compile, and say so in the wheel's name; or say why not, and leave the wheel as it is."""
        source = Path(self.root, "kemu", "trace", "_fast.c")
        made = source.with_name("_fast" + get_config_var("EXT_SUFFIX"))
        part = made.with_suffix(".part")
        why = trouble(source, part)
        if why:
            made.unlink(missing_ok=True)
            self.app.display_warning(f"kemu/trace/_fast.c is not compiled: {why}")
        else:
            part.replace(made)
            build_data["force_include"][str(made)] = f"kemu/trace/{made.name}"
            build_data["pure_python"] = False
            build_data["infer_tag"] = True


def trouble(source, made):
    """Compile ``source`` to ``made``; why that was not possible, or nothing."""
    linker = get_config_var("LDSHARED")
    if os.environ.get("KEMU_PURE"):
        return "KEMU_PURE is set"
    if not linker or sys.implementation.name != "cpython":
        return "this Python does not say how to compile for it"
    number = zlib.crc32(source.read_bytes()) & 0x7FFFFFFF
    command = [*shlex.split(linker), *shlex.split(get_config_var("CCSHARED") or ""), "-O2"]
    command += [f"-I{get_path('include')}", f"-DSOURCE={number}", str(source), "-o", str(made)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return done.returncode and (done.stderr.strip() or f"{command[0]} failed")

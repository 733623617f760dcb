"""The command line as data. Imports nothing: it is part of every start."""

from __future__ import annotations


class Options:
    """The parsed command line. `commands`: of -c; `scripts`: files of `run`; `subcommand`: a word
    such as doctor, or empty; `words`: those after a subcommand that parses them itself."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.scripts: list[str] = []
        self.running = False
        self.subcommand = ""
        self.words: list[str] = []
        self.interactive = False
        self.keep_going = False
        self.json = False
        self.errno_fails = False
        self.ascii = False
        self.debug = False
        self.toolbar = True
        self.help = False
        self.version = False
        self.color = "auto"
        self.geometry = "x86-64"
        self.mem = 64 << 20
        self.cpus = 2

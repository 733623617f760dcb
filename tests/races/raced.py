"""Races for tests: a built-in case or commands, explored with knobs; and bodies of so many steps
without any kernel."""

from kemu.commands.run import run
from kemu.experiment.session import Session
from kemu.races.baton import Run
from kemu.races.explorer import Search
from kemu.races.fibres import Threads
from kemu.racing.exploring import explored as explore
from kemu.racing.knobs import Options
from kemu.racing.wanted import read
from kemu.trace.steps import step

FORKED = "spawn parent; mmap parent 0x10000 1p rw; write parent 0x10000 1; fork parent as child"
THREADS = "spawn a; mmap a 0x10000 1p rw; clone a vm sighand thread files fs as b"


def session(text="", **knobs):
    """A session behind these commands."""
    made = Session(mem=16 << 20, **knobs)
    for result in run(made, text):
        assert result.error is None, result
    return made


def explored(*words, on=None, **knobs):
    """The reading of an exploration."""
    return explore(on or session(), read(words, Options(**knobs)))


def schedules_of(steps, bound, kind=Threads):
    """Every schedule of CPUs that do nothing but so many steps each, as the search finds them."""
    crew, search, found = kind(len(steps)), Search(bound), []
    try:
        while True:
            Run(
                crew,
                [lambda count=count: [step() for _ in range(count)] for count in steps],
                search.choose,
            ).perform()
            found.append(search.choices)
            if not search.next_run():
                return found
    finally:
        crew.end()

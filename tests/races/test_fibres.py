"""Threads and greenlets are the same to a race: schedules, outcomes and counts."""

import importlib.util
import sys
import threading

import pytest

from kemu.errors import HostUnavailable
from kemu.races import explorer, fibres
from kemu.races.baton import Abandon, Run
from kemu.races.explorer import Search
from kemu.races.fibres import MAIN, Greenlets, Threads
from kemu.trace.steps import step
from tests.races.raced import explored, schedules_of, session

NO_GREENLETS = pytest.mark.skipif(
    importlib.util.find_spec("greenlet") is None, reason="the package greenlet is not installed"
)
KINDS = [Threads, pytest.param(Greenlets, marks=NO_GREENLETS)]


@pytest.fixture(autouse=True)
def machine():
    """Bodies without a kernel need a machine all the same."""
    return session(cpus=3)


@pytest.mark.parametrize("kind", KINDS)
def test_control_goes_where_it_is_handed_to_and_comes_back(kind):
    seen, made = [], kind(2)

    def job(number, other):
        for turn in "ab":
            seen.append((number, turn))
            made.switch(number, other)
        seen.append((number, "c"))
        return other if number == 0 else MAIN

    def first():
        made.switch(0, MAIN)
        return job(0, 1)

    def second():
        made.switch(1, MAIN)
        return job(1, 0)

    made.start(0, first)
    made.start(1, second)
    made.switch(MAIN, 0)
    assert seen == [(0, "a"), (1, "a"), (0, "b"), (1, "b"), (0, "c"), (1, "c")]
    made.start(0, lambda: MAIN)
    made.end()


@NO_GREENLETS
@pytest.mark.parametrize("steps", [(2, 3), (2, 2, 2)])
def test_the_same_schedules_in_the_same_order(steps):
    assert schedules_of(steps, 2, Threads) == schedules_of(steps, 2, Greenlets)


@NO_GREENLETS
@pytest.mark.parametrize(
    ("case", "knobs"),
    [
        ("cow-cow", {}),
        ("cow-cow", {"mutant": "non_atomic_put"}),
        ("munmap-fault", {"lock": "vma_lock"}),
        ("file-write", {"mutant": "fault_forgets_unlock"}),
    ],
)
def test_the_same_outcomes_and_counts(case, knobs, monkeypatch):
    found = []
    for kind in (Threads, Greenlets):
        monkeypatch.setattr(explorer, "fibres", kind)
        found.append(explored(case, bound=1, **knobs))
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_what_a_cpu_raises_reaches_whoever_asked_and_the_others_are_unwound(kind, failure):
    crew, unwound = kind(2), []

    def waits():
        try:
            for _ in range(9):
                step()
        except Abandon:
            unwound.append(True)
            raise

    def fails():
        step()
        raise failure

    with pytest.raises(failure):
        Run(crew, [waits, fails], lambda able, _last: able[-1]).perform()
    assert unwound == [True]
    assert Run(crew, [waits, waits], Search(0).choose).perform().why == "done"
    crew.end()


def test_greenlets_are_taken_where_they_are_and_threads_where_not(monkeypatch):
    if importlib.util.find_spec("greenlet") is not None:
        assert isinstance(fibres.fibres(2), Greenlets)
    monkeypatch.setitem(sys.modules, "greenlet", None)
    made = fibres.fibres(2)
    assert isinstance(made, Threads)
    made.end()


def test_where_there_are_neither_it_is_said_in_one_line(monkeypatch):
    def refuses(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setitem(sys.modules, "greenlet", None)
    monkeypatch.setattr(threading.Thread, "start", refuses)
    with pytest.raises(HostUnavailable, match=r"^race: .*kemu\[races\]") as said:
        explored("cow-cow")
    assert "\n" not in str(said.value)
    assert explored("gets", kind="non-atomic").bad == 60

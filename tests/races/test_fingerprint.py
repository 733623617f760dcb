"""A state is recognised by a number: equal numbers must mean equal states, whatever order led there."""

import pytest

from kemu.kernel import boot
from kemu.kernel.system import system
from kemu.races.checking import Checker
from kemu.races.fingerprint import Fingerprint, reachable
from kemu.trace.digest import digest
from kemu.trace.journal import Journal
from tests.races.raced import FORKED, explored, session


def number_of(made, changes):
    """The number behind these changes, which are undone again."""
    kept, journal = made.kernel.journal, Journal()
    made.kernel.journal = journal
    made.kernel.activate()
    mark = Fingerprint(reachable())
    try:
        for obj, field, value in changes:
            setattr(obj, field, value)
        journal.catch_up()
        journal.seek(0)
        for event in range(len(journal)):
            mark.follow(journal.log, event)
            journal.seek(event + 1)
        return mark.number
    finally:
        journal.seek(0)
        made.kernel.journal = kept
        made.kernel.activate()


def test_the_order_of_changes_to_different_things_makes_no_difference():
    made = session(FORKED)
    mm, page = made.find("parent").mm, system.mem_map[made.find("child").mm.pgd >> 12]
    one = number_of(made, [(mm, "total_vm", 7), (page, "ptl", 1)])
    other = number_of(made, [(page, "ptl", 1), (mm, "total_vm", 5), (mm, "total_vm", 7)])
    assert one == other
    assert number_of(made, [(mm, "total_vm", 8), (page, "ptl", 1)]) != one


def test_what_is_made_as_it_was_is_no_change():
    made = session(FORKED)
    mm = made.find("parent").mm
    assert number_of(made, [(mm, "total_vm", 7), (mm, "total_vm", mm.total_vm)]) == 0


def state():
    """A hash of everything in the active kernel."""
    return digest({name: getattr(system, name) for name in boot.STATE}, boot._expand)


@pytest.mark.parametrize(("case", "every"), [("first-touch", 32), ("fork-write", 8), ("exit-reader", 24)])
def test_in_a_race_equal_numbers_mean_equal_states(case, every, monkeypatch):
    """Each race makes objects of its own (pages, tables, VMAs, tasks); they have the same names in every run.  One number in so
    many is looked at."""
    states = {}
    examine = Checker._examine

    def noting(self, number, *, quiescent):
        if number % every == 0:
            now = state()
            assert states.setdefault(number, now) == now
        return examine(self, number, quiescent=quiescent)

    monkeypatch.setattr(Checker, "_examine", noting)
    explored(case, bound=1)
    assert len(set(states.values())) > 4

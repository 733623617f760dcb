"""A state is recognised by a number: equal numbers must mean equal states, whatever order led
there."""

import pytest

from kemu.kernel.include.mm_types import vm_area_struct
from kemu.kernel.include.system import system
from kemu.kernel.init import boot
from kemu.kernel.mm.rows import Row
from kemu.machine.physmem import Frame
from kemu.races.checking import Checker
from kemu.races.fingerprint import Fingerprint, reachable
from kemu.trace.digest import digest
from kemu.trace.identity import Numbers
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


# ---------------------------------------------------------------- what a run makes itself


class Bare:
    """Nothing in it tells one from another."""

    __slots__ = ()


class Other:
    """As bare."""

    __slots__ = ()


def of_run(*links):
    """The number behind these links of (cell, object) from a place that every run knows."""
    place = "the place"
    mark = Fingerprint(Numbers([place]))
    for cell, obj in links:
        mark.follow([place, cell, None, obj], 0)
    return mark.number


def row(*pages):
    """What fork writes as one event, for these pages."""
    made = Row()
    counts = [0] * len(pages)
    made.change(pages, ["_mapcount"] * len(pages), counts, [count + 1 for count in counts])
    return made


def vma(start):
    """A VMA of one page."""
    return vm_area_struct(vm_mm=None, vm_start=start, vm_end=start + 4096)


def test_a_new_object_is_called_the_same_in_every_run():
    assert of_run(("first", vma(4096)), ("second", Bare())) == of_run(
        ("first", vma(4096)), ("second", Bare())
    )


def test_new_objects_of_one_kind_are_told_apart_by_what_they_hold():
    """Which of two CPUs came first must not decide what a VMA is called."""
    assert of_run(("first", vma(4096))) != of_run(("first", vma(8192)))


def test_new_objects_that_hold_the_same_are_told_apart_by_their_order():
    one, two = Bare(), Bare()
    assert of_run(("first", one), ("second", two)) != of_run(("first", one), ("second", one))


def test_new_objects_of_two_kinds_are_told_apart():
    assert of_run(("first", Bare())) != of_run(("first", Other()))


def test_new_frames_and_rows_are_told_apart_by_what_they_hold():
    session()
    one, two = system.mem_map[8], system.mem_map[9]
    assert of_run(("table", Frame(5, {0: 7}))) != of_run(("table", Frame(5, {0: 8})))
    assert of_run(("row", row(one))) == of_run(("row", row(one)))
    assert of_run(("row", row(one))) != of_run(("row", row(two)))


def entries(value):
    """A row that changes an entry of a table, as fork's and zap's do."""
    made = Row()
    made.change([Frame(5, {})], [3], [0], [value])
    return made


def test_rows_of_entries_are_told_apart_by_what_they_write():
    assert of_run(("row", entries(7))) == of_run(("row", entries(7)))
    assert of_run(("row", entries(7))) != of_run(("row", entries(8)))


def test_a_name_stays_when_the_object_changes():
    mark, made = Fingerprint(Numbers()), vma(4096)
    name = mark.name(made)
    made.vm_start = 8192
    assert mark.name(made) == name


def test_an_object_that_is_gone_leaves_its_name_to_no_other():
    mark = Fingerprint(Numbers())
    assert len({mark.name(Bare()) for _ in range(20)}) == 20


def test_sets_and_rows_of_values_are_told_apart():
    values = (frozenset(), frozenset({1}), frozenset({2}), (), (1,), (2,), (1, 2), (2, 1))
    assert len({Fingerprint(Numbers()).value(value) for value in values}) == len(values)


def state():
    """A hash of everything in the active kernel."""
    return digest({name: getattr(system, name) for name in boot.STATE}, boot._expand)


@pytest.mark.parametrize(
    ("case", "every"), [("first-touch", 32), ("fork-write", 8), ("exit-reader", 24)]
)
def test_in_a_race_equal_numbers_mean_equal_states(case, every, monkeypatch):
    """Each race makes objects of its own (pages, tables, VMAs, tasks); they have the same names in
    every run.  One number in so many is looked at."""
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

"""Every wrong kernel is noticed, by whom it says; the right one is not; and planting one leaves no
trace."""

import pytest

import kemu.conform.cast
from kemu.conform.compare import first_difference
from kemu.conform.replay import replay
from kemu.errors import UsageError
from kemu.kernel.init.boot import Kernel
from kemu.kernel.mm import fork_mm
from kemu.races.mutants import MUTANTS, bodies, find, source
from kemu.races.racy import EXPLORER
from kemu.trace.frames import body_of
from tests.conform.recorded import scenarios
from tests.races.battery import ALONG, broken_along, broken_by, noticed

RECORDED = "fault_around_advice_random"
"""The program that tells a wrong kernel of "conformance" from the real one."""


def differs(bodies, monkeypatch):
    """The difference that the recorded program shows on a kernel with these bodies."""

    def make(**options):
        kernel = Kernel(**options)
        kernel.bodies = bodies
        return kernel

    monkeypatch.setattr(kemu.conform.cast, "Kernel", make)
    program = scenarios()[RECORDED]
    return first_difference(program, replay(program).steps)


def test_the_right_kernel_is_suspected_by_nobody(monkeypatch):
    assert noticed({}) is None
    assert differs({}, monkeypatch) is None


@pytest.mark.parametrize(
    "name", [name for name, mutant in MUTANTS.items() if mutant.caught != EXPLORER]
)
def test_a_wrong_kernel_is_noticed_by_whom_it_says(name, monkeypatch):
    mutant = MUTANTS[name]
    wrong = bodies(mutant)
    found = noticed(wrong, name)
    if found is None and differs(wrong, monkeypatch) is not None:
        found = ("conformance", RECORDED)
    assert found is not None, f"{name}: nobody notices"
    assert found[0] == mutant.caught, found


STOPS = {
    "truncate_puts_before_unlock": "a file gets shorter and longer",
    "munmap_forgets_mapcount": "the last sharer writes",
    "split_forgets_to_shrink": "mprotect to and fro",
}
"""The story in which a kernel that stops itself breaks an invariant before it does; else the first
one."""


@pytest.mark.parametrize(
    "name", [name for name, mutant in MUTANTS.items() if mutant.caught == "kernel"]
)
def test_what_the_kernel_notices_itself_breaks_an_invariant_too(name):
    wrong, story = bodies(MUTANTS[name]), STOPS.get(name, ALONG)
    assert broken_by(wrong, story) or broken_along(wrong, story)


def test_there_are_enough_of_them_and_each_changes_one_place():
    assert len(MUTANTS) >= 24
    for mutant in MUTANTS.values():
        assert mutant.new != mutant.old
        assert mutant.old not in source(mutant) or mutant.old in mutant.new
        assert mutant.story


def test_only_the_kernel_that_has_the_mutant_is_wrong():
    function = fork_mm.__copy_present_ptes
    written = body_of(function)
    wrong, right = Kernel(), Kernel()
    wrong.bodies = bodies(MUTANTS["fork_forgets_wrprotect"])
    wrong.activate()
    assert body_of(function) != written
    right.activate()
    assert body_of(function) == written
    wrong.activate()
    wrong.bodies = {}
    wrong.activate()
    assert body_of(function) == written


def test_an_unrecorded_kernel_can_be_wrong_too():
    function = fork_mm.__copy_present_ptes
    plain, recorded = Kernel(record=False), Kernel()
    plain.bodies = bodies(MUTANTS["fork_forgets_wrprotect"])
    plain.activate()
    assert function.__code__ == plain.bodies[function]
    recorded.activate()
    assert function.__code__ != plain.bodies[function]
    assert body_of(function) != plain.bodies[function]


def test_a_number_picks_one_and_an_unknown_name_is_refused():
    assert find("3").name in MUTANTS
    assert find("fork_forgets_flush").name == "fork_forgets_flush"
    with pytest.raises(UsageError):
        find("no_such_mutant")

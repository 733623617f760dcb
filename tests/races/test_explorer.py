"""Races of real kernel paths: the right kernel is right in every schedule, wrong ones only with two
CPUs, and nothing stays."""

from itertools import groupby
from math import comb

import pytest

from kemu.commands.run import run
from kemu.errors import UsageError
from kemu.races import baton
from kemu.races.baton import Run
from kemu.races.cases import KERNEL_CASES
from kemu.races.explorer import Search
from kemu.races.fibres import MAIN, Threads
from kemu.races.mutants import EXPLORER, MUTANTS
from kemu.trace.steps import step, step_until
from kemu.userland.script import Script
from tests.races.raced import FORKED, THREADS, explored, schedules_of, session


@pytest.fixture(autouse=True)
def machine():
    """Bodies without a kernel need a machine to stand on all the same."""
    return session(cpus=3)


WRITES = ("write parent 0x10000 2", "write child 0x10000 3")


def outcomes(reading):
    return {outcome.name: outcome.schedules for outcome in reading.outcomes}


# ---------------------------------------------------------------- the search


@pytest.mark.parametrize(("first", "second"), [(1, 1), (2, 3), (4, 4)])
def test_without_a_bound_that_matters_every_order_is_run_once(first, second):
    found = schedules_of((first, second), 99)
    assert len(found) == len(set(found)) == comb(first + second, first)


def test_three_cpus_of_two_steps_have_90_orders():
    found = schedules_of((2, 2, 2), 99)
    assert len(found) == len(set(found)) == 90


@pytest.mark.parametrize("bound", [0, 1, 2, 3])
def test_within_a_bound_there_are_exactly_the_orders_with_so_few_preemptions(bound):
    steps = (4, 3)
    found = schedules_of(steps, bound)
    assert set(found) == {
        order for order in schedules_of(steps, 99) if preemptions(order, steps) <= bound
    }


def preemptions(order, steps):
    """How often a CPU that could have gone on was stopped."""
    left, count = list(steps), 0
    for at, cpu in enumerate(order):
        left[cpu] -= 1
        following = order[at + 1] if at + 1 < len(order) else cpu
        count += following != cpu and left[cpu] > 0
    return count


class Lock:
    def __init__(self):
        self.held = 0


def free(lock, _name):
    return not lock.held


def locked(lock):
    step_until(free, lock, "lock")
    lock.held = 1
    step()
    lock.held = 0


def test_a_cpu_that_waits_for_a_lock_is_not_chosen():
    crew, search, orders = Threads(2), Search(99), []
    more = True
    while more:
        lock = Lock()
        ending = Run(crew, [lambda lock=lock: locked(lock)] * 2, search.choose).perform()
        assert ending.why == "done"
        orders.append(search.choices)
        more = search.next_run()
    crew.end()
    assert sorted(orders) == [(0, 0, 1, 1), (1, 1, 0, 0)]


def test_two_locks_taken_crosswise_are_found_as_a_deadlock():
    def body(first, second):
        step_until(free, first, "first")
        first.held = 1
        step_until(free, second, "second")
        second.held = 1
        step()
        first.held = second.held = 0

    crew, search, endings = Threads(2), Search(1), []
    more = True
    while more:
        a, b = Lock(), Lock()
        ending = Run(
            crew, [lambda a=a, b=b: body(a, b), lambda a=a, b=b: body(b, a)], search.choose
        ).perform()
        endings.append((ending.why, search.choices))
        more = search.next_run()
    crew.end()
    assert ("deadlock", (0, 1)) in endings
    assert ("done", (0, 0, 0, 1, 1, 1)) in endings


def test_a_body_that_fails_for_a_reason_of_kemus_own_is_not_taken_for_a_kernel_that_fell_over():
    def broken():
        raise RuntimeError("a bug of kemu")

    crew = Threads(1)
    with pytest.raises(RuntimeError, match="a bug of kemu"):
        Run(crew, [broken], Search(0).choose).perform()
    crew.end()


def counting(unwound):
    """A body of ten steps that notes if it is unwound."""

    def body():
        try:
            for _ in range(10):
                step()
        except baton.Abandon:
            unwound.append(True)
            raise

    return body


def test_a_run_that_is_stopped_unwinds_all_its_cpus_and_the_crew_can_go_on():
    crew, unwound = Threads(2), []
    bodies = [counting(unwound)] * 2
    assert Run(crew, bodies, lambda _able, last: -1 if last == 1 else 1).perform().why == "stopped"
    assert unwound == [True, True]
    assert Run(crew, bodies, Search(0).choose).perform().why == "done"
    crew.end()


class Impatient:
    """A lock whose first waiter is interrupted after a while, as by a second Ctrl-C."""

    def __init__(self, lock, after):
        self.lock, self.after = lock, after

    def acquire(self):
        self.after -= 1
        if self.after == 0:
            raise KeyboardInterrupt
        return self.lock.acquire()

    def release(self):
        self.lock.release()


@pytest.mark.parametrize("after", [1, 2, 3])
def test_an_interrupt_while_a_cpu_has_the_baton_unwinds_too(after):
    crew, unwound = Threads(2), []
    crew.go[MAIN] = Impatient(crew.go[MAIN], after)
    with pytest.raises(KeyboardInterrupt):
        Run(crew, [counting(unwound)] * 2, Search(0).choose).perform()
    assert Run(crew, [counting(unwound)] * 2, Search(0).choose).perform().why == "done"
    crew.end()


# ---------------------------------------------------------------- the right kernel, and wrong ones


@pytest.mark.parametrize("case", KERNEL_CASES)
def test_the_right_kernel_is_right_in_every_schedule(case):
    reading = explored(case, bound=1)
    assert (reading.bad, reading.complete) == (0, True)
    assert reading.schedules > 2


def test_two_copy_on_write_faults_are_right_with_two_preemptions_too():
    reading = explored("cow-cow")
    assert (reading.bound, reading.bad, reading.complete) == (2, 0, True)
    assert outcomes(reading) == {
        "parent copies the page; child copies the page": 396,
        "parent copies the page; child keeps the page": 97,
        "parent keeps the page; child copies the page": 97,
    }


TWO_PREEMPTIONS = {"fault_maps_truncated_page"}
"""The fault must be stopped before it looks for the page, and truncation while it holds the page."""


@pytest.mark.parametrize("name", [name for name, m in MUTANTS.items() if m.caught == EXPLORER])
def test_a_racy_kernel_is_right_on_one_cpu_and_wrong_on_two(name):
    case = MUTANTS[name].race
    assert explored(case, bound=0, mutant=name).bad == 0
    assert explored(case, bound=2 if name in TWO_PREEMPTIONS else 1, mutant=name).bad > 0


def test_non_atomic_counts_are_found_with_one_preemption():
    reading = explored("cow-cow", bound=1, kind="non-atomic")
    assert reading.bad > 0
    assert explored("cow-cow", bound=0, kind="non-atomic").bad == 0


@pytest.mark.parametrize(
    ("case", "lock", "noticed"),
    [
        ("first-touch", "ptl", "refcount_is_explained"),
        ("munmap-fault", "vma_lock", "entries_lie_in_vmas"),
        ("munmap-fault", "mmap_lock", "entries_lie_in_vmas"),
        ("fork-write", "ptl", "writable_private_pages_are_exclusive"),
        ("truncate-fault", "folio_lock", "nothing_lies_behind_the_end"),
    ],
)
def test_a_lock_that_is_taken_away_is_missed(case, lock, noticed):
    assert noticed in outcomes(explored(case, bound=2 if case == "first-touch" else 1, lock=lock))


def test_a_lock_on_one_side_only_protects_nothing():
    assert explored("munmap-fault", bound=1, lock="vma_lock@1").bad > 0


@pytest.mark.parametrize(
    ("case", "mutant", "noticed"),
    [
        ("cow-cow", "put_before_set_pte", "refcount_covers_mapcount"),
        ("tlb-shootdown", "put_before_flush", "tlbs_lead_to_no_free_frame"),
    ],
)
def test_wrong_order_is_seen_along_the_events_although_the_end_is_right(case, mutant, noticed):
    assert noticed in outcomes(explored(case, bound=0, mutant=mutant))


def test_a_planted_mutant_races_too():
    planted = session("mutant plant cow_does_not_look_again")
    assert explored("cow-threads", on=planted, bound=1).bad > 0
    assert explored("cow-threads", bound=1).bad == 0


# ---------------------------------------------------------------- races of one's own


def test_commands_race_from_the_present_moment_and_nothing_of_it_stays():
    made = session(FORKED)
    before = made.state_hash(), made.end, len(made.timeline.records), made.names()
    reading = explored(*WRITES, on=made, bound=1)
    assert (made.state_hash(), made.end, len(made.timeline.records), made.names()) == before
    assert reading.cpus == WRITES
    assert outcomes(reading) == outcomes(explored("cow-cow", bound=1))


def test_the_past_can_be_raced_from_too():
    made = session(FORKED + "; write child 0x10000 9")
    run(made, "goto 1; undo")
    made.goto(made.timeline.records[3].last)
    assert explored(*WRITES, on=made, bound=0).schedules == 2


def test_the_same_race_gives_the_same_answer():
    made = session(THREADS)
    race = ("write a 0x10000 2", "write b 0x10000 3")
    assert explored(*race, on=made, bound=1) == explored(*race, on=made, bound=1)


def test_the_last_writer_wins_and_both_orders_are_seen():
    reading = explored(
        "write a 0x10000 2b",
        "write b 0x10000 3b",
        on=session(THREADS + "; write a 0x10000 1"),
        bound=0,
    )
    assert {name.rpartition("; ")[2] for name in outcomes(reading)} == {
        "memory holds 02",
        "memory holds 03",
    }


def test_three_cpus_can_race():
    made = session(FORKED + "; fork parent as other", cpus=3)
    reading = explored(*WRITES, "write other 0x10000 4", on=made, bound=0)
    assert (reading.schedules, reading.bad) == (6, 0)


def test_system_calls_that_fail_and_reads_are_told():
    reading = explored(
        "read a 0x10000",
        "munmap b 0x10001 1p",
        on=session(THREADS + "; write a 0x10000 7"),
        bound=0,
    )
    assert set(outcomes(reading)) == {"a reads 07; b gets -EINVAL"}


def test_the_kernels_own_complaints_end_a_run_and_name_it():
    reading = explored("munmap-fault", bound=1, mutant="munmap_does_not_wait_for_faults")
    found = {outcome.name: outcome for outcome in reading.outcomes}
    assert "is freed while it is attached or read" in found["the kernel stops"].detail[0]


def test_a_bad_schedule_is_cut_where_it_goes_wrong():
    reading = explored("tlb-shootdown", bound=0, mutant="put_before_flush")
    (bad,) = [outcome for outcome in reading.outcomes if outcome.bad]
    assert [cpu for cpu, _ in groupby(bad.first)]
    assert reading.steps > sum(int(part.partition("*")[2]) for part in bad.first.split(","))


@pytest.mark.parametrize(
    ("words", "knobs", "says"),
    [
        (("write parent 0x10000 2",), {}, "at least two commands"),
        (("cowcow",), {}, "no case named 'cowcow'"),
        (("cow-cow", "--bond", "1"), {}, "no option --bond"),
        ((*WRITES, *WRITES), {}, "at most 3"),
        (("write parent 0x10000 2", "write parent 0x10000 3"), {}, "two CPUs at once"),
        (("write parent 0x10000 2", "ps"), {}, "not something that a program does"),
        (("write parent 0x10000 2", "spawn x"), {}, "a program cannot do 'spawn x'"),
        (("write parent 0x10000 2", "mkfile /x 1p"), {}, "makes no system call"),
        (("write parent 0x10000 2", "frobnicate"), {}, "no command"),
        (("write parent 0x10000 2", "write nobody 0x10000 3"), {}, "nobody"),
        (("write parent 0x10000 2", ""), {}, "not a single command"),
        (("write parent 0x10000 2", "exit child; exit parent"), {}, "not a single command"),
        (WRITES, {"bound": 5}, "too large"),
        (WRITES, {"uses": 2}, "litmus"),
        (WRITES, {"kind": "refcount"}, "litmus"),
        (WRITES, {"lock": "big_kernel_lock"}, "no lock"),
        (WRITES, {"lock": "ptl@2"}, "not a CPU"),
        (WRITES, {"lock": "ptl@x"}, "not a CPU"),
        (WRITES, {"mutant": "nonsense"}, "no mutant named 'nonsense'"),
        (("gets",), {"bound": 2}, "kernel races"),
        (("gets",), {"mutant": "non_atomic_put"}, "kernel races"),
        (("gets",), {"lock": "ptl"}, "no lock"),
    ],
)
def test_what_cannot_be_raced_is_refused_in_one_line_and_changes_nothing(words, knobs, says):
    made = session(FORKED)
    before = made.state_hash(), made.end
    with pytest.raises(UsageError, match=says) as error:
        explored(*words, on=made, **knobs)
    assert "\n" not in error.value.what
    assert (made.state_hash(), made.end) == before


def test_a_kernel_that_is_broken_already_is_not_raced():
    made = session(FORKED + "; mutant plant cow_leaks_old_page; write child 0x10000 9")
    with pytest.raises(UsageError, match="broken before the race"):
        explored("write parent 0x10000 2", "read child 0x10000", on=made)


def test_a_store_that_is_lost_is_noticed_although_all_conditions_hold(monkeypatch):
    made = session(THREADS + "; write a 0x10000 1")
    store = Script.store

    def forgetful(self, task, addr, data, cpu=None):
        """A machine that stores zeros in the place of the data."""
        return store(self, task, addr, bytes(len(data)), cpu)

    monkeypatch.setattr(Script, "store", forgetful)
    reading = explored("fork a", "write b 0x10000 3b", on=made, bound=0)
    assert outcomes(reading) == {"lost write": 2}
    assert reading.outcomes[0].detail == ("write b 0x10000 3b: memory holds 00, but 03 was stored",)


FILES = (
    "mkfile /f 4p; spawn a; mmap a 0x10000 1p rw; mmap a 0x30000 2p rw file /f shared; open a /f "
    "rdwr; read a 0x30000; "
    "clone a vm sighand thread files fs as b"
)


@pytest.mark.parametrize(
    "race",
    [
        ("write a 0x30000 3", "fsync b 3"),
        ("write a 0x30000 3", "madvise b 0x30000 2p pageout"),
        ("fsync a 3", "ftruncate b 3 0"),
        ("madvise a 0x30000 2p pageout", "ftruncate b 3 0"),
        ("pin a 0x10000 1p", "fork b"),
        ("mremap a 0x30000 2p 4p maymove", "write b 0x31000 7"),
        ("exit a", "fork b"),
    ],
)
def test_other_paths_of_the_right_kernel_are_right_too(race):
    assert explored(*race, on=session(FILES), bound=1).bad == 0

"""Small programs: every schedule is counted exactly, and the numbers are those that were measured
before kemu was written."""

from math import comb, factorial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kemu.errors import UsageError
from kemu.machine.atomic import REFCOUNT_SATURATED
from kemu.races.litmus import Program, Shared, able, advance, explore, order, outcome, play
from kemu.races.programs import ATOMIC, LITMUS, PLAIN, REFCOUNT, Knobs, build, counted, judge
from kemu.races.reduction import reduce


def found(name, **knobs):
    return explore(build(LITMUS[name], Knobs(**knobs)))


def counts(exploration):
    return {name: tally.schedules for name, tally in exploration.outcomes.items()}


def schedules(steps):
    """How many orders there are of CPUs with so many steps each."""
    total = factorial(sum(steps))
    for count in steps:
        total //= factorial(count)
    return total


def by_hand(program):
    """Every schedule run for itself: outcome -> how many."""
    found = {}

    def go(state):
        cpus = able(program, state)
        if not cpus:
            name = outcome(program, state)
            found[name] = found.get(name, 0) + 1
        for cpu in cpus:
            go(advance(program, state, cpu))

    go(program.first)
    return found


# ----------------------------------------- the measured numbers (design/measurements.md, section C)


def test_two_plain_gets_lose_an_update_in_60_of_70_schedules():
    assert counts(found("gets", kind=PLAIN)) == {"ok": 10, "lost update": 60}


def test_with_two_uses_behind_them_it_is_210_of_252():
    assert counts(found("gets", kind=PLAIN, uses=2)) == {"ok": 42, "lost update": 210}


def test_two_plain_puts_never_free_in_60_of_70_schedules():
    assert counts(found("puts", kind=PLAIN)) == {"ok": 10, "leak": 60}


@pytest.mark.parametrize("name", ["gets", "puts", "get-put", "dec-and-test"])
@pytest.mark.parametrize("cpus", [2, 3])
def test_the_atomic_operations_go_wrong_in_no_schedule(name, cpus):
    exploration = found(name, cpus=cpus)
    assert (exploration.bad, set(exploration.outcomes)) == (0, {"ok"})


def test_a_get_against_the_last_put_frees_twice_in_three_of_15_schedules_and_uses_freed_memory_in_two():
    exploration = found("get-last-put")
    assert counts(exploration) == {"ok": 10, "double free": 3, "use after free": 2}
    assert exploration.outcomes["double free"].first == "100001"
    assert exploration.outcomes["use after free"].first == "1010"


def test_get_unless_zero_is_the_repair():
    assert counts(found("get-last-put", unless_zero=True)) == {"ok": 15}


@pytest.mark.parametrize(
    ("name", "knobs", "total"),
    [
        ("gets", {"kind": PLAIN, "cpus": 3, "uses": 3}, 17_153_136),
        ("puts", {"kind": PLAIN, "cpus": 3, "uses": 2}, 17_153_136),
        ("puts", {"cpus": 3, "uses": 4}, 17_153_136),
        ("steps", {"cpus": 3}, 17_153_136),
        ("puts", {"kind": PLAIN, "uses": 1}, 252),
        ("get-put", {"kind": PLAIN, "uses": 3}, 184_756),
    ],
)
def test_the_number_of_schedules_is_the_number_of_orders(name, knobs, total):
    exploration = found(name, **knobs)
    program = build(LITMUS[name], Knobs(**knobs))
    assert exploration.schedules == total == schedules([len(steps) for steps in program.cpus])


def test_states_are_few_where_schedules_are_many():
    assert found("puts", kind=PLAIN, cpus=3, uses=2).states < 1000
    assert found("gets", kind=PLAIN).states < 70


# ---------------------------------------------------------------- other things that textbooks say


def test_decrement_and_test_in_two_steps_frees_twice_although_each_is_atomic():
    assert counts(found("dec-then-test")) == {"ok": 8, "double free": 12}
    assert [step.text for step in build(LITMUS["dec-then-test"], Knobs()).cpus[0]] == [
        "dec",
        "test",
        "free if last",
    ]


def test_a_lock_on_one_side_protects_nothing():
    assert counts(found("locked-gets")) == {"ok": 2}
    assert found("locked-gets", unlocked=frozenset({1})).bad > 0
    assert found("locked-gets", unlocked=frozenset({0, 1})).bad == 18


def test_a_lock_leaves_only_schedules_in_which_one_cpu_has_it():
    program = build(LITMUS["locked-gets"], Knobs())
    with pytest.raises(UsageError, match="waits for the lock"):
        play(program, "01")


def test_refcount_t_warns_and_leaks_where_atomic_t_frees_twice():
    exploration = found("get-last-put", kind=REFCOUNT)
    assert counts(exploration) == {"ok": 10, "saturated": 3, "use after free": 2}
    program = build(LITMUS["get-last-put"], Knobs(kind=REFCOUNT))
    end = play(program, exploration.outcomes["saturated"].first)[-1].shared
    assert end.refcount == REFCOUNT_SATURATED
    assert end.warnings == ("addition on 0; use-after-free.", "underflow; use-after-free.")


def test_a_count_of_32_bits_wraps_and_the_object_is_freed_while_it_is_held():
    assert found("overflow").bad == 7
    assert counts(found("overflow", kind=REFCOUNT)) == {"saturated": 10}


def test_gets_past_the_largest_int_wrap_and_refcount_t_saturates():
    program = build(LITMUS["gets"], Knobs(count=0x7FFFFFFF))
    assert play(program, "")[-1].shared.refcount == -0x7FFFFFFF
    assert set(counts(found("gets", count=0x7FFFFFFF, kind=REFCOUNT))) == {"saturated"}


@pytest.mark.parametrize(
    ("kind", "value", "operation", "after"),
    [
        (REFCOUNT, 0, "get", REFCOUNT_SATURATED),
        (REFCOUNT, 0x7FFFFFFF, "get", REFCOUNT_SATURATED),
        (REFCOUNT, 0, "put", REFCOUNT_SATURATED),
        (REFCOUNT, 0, "get_unless_zero", 0),
        (REFCOUNT, 3, "put", 2),
        (ATOMIC, 0, "get", 1),
        (ATOMIC, 0x7FFFFFFF, "get", -0x80000000),
        (ATOMIC, 0, "put", -1),
        (ATOMIC, 0, "get_unless_zero", 0),
    ],
)
def test_one_operation_on_a_count(kind, value, operation, after):
    assert counted(kind, value, operation)[0] == after


# ---------------------------------------------------------------- the engine itself

CASES = st.sampled_from(sorted(LITMUS))


@settings(max_examples=40, deadline=None)
@given(CASES, st.sampled_from([ATOMIC, PLAIN, REFCOUNT]), st.integers(1, 2), st.integers(0, 3))
def test_counting_over_states_gives_what_running_every_schedule_gives(name, kind, uses, count):
    knobs = Knobs(kind=kind if "kind" in LITMUS[name].knows else ATOMIC, uses=uses, count=count)
    program = build(LITMUS[name], knobs)
    assert counts(explore(program)) == by_hand(program)


@pytest.mark.parametrize("name", LITMUS)
@pytest.mark.parametrize("cpus", [2, 3])
def test_the_first_schedule_of_an_outcome_leads_to_it(name, cpus):
    program = build(LITMUS[name], Knobs(cpus=cpus))
    for wanted, tally in explore(program).outcomes.items():
        states = play(program, tally.first)
        assert outcome(program, states[-1]) == wanted
        assert "".join(map(str, order(states))).startswith(tally.first)


def test_a_program_that_waits_for_ever_ends_in_deadlock():
    take = build(LITMUS["locked-gets"], Knobs()).cpus[0][0]
    program = Program("both", ((take, take), (take,)), Shared(1, 1), judge)
    assert counts(explore(program)) == {"deadlock": 2}


def test_independent_steps_are_counted_by_the_binomial():
    for uses in (1, 3, 8):
        assert found("steps", uses=uses).schedules == comb(2 * uses, uses)


@pytest.mark.parametrize(
    "schedule", ["2", "x", "00000", "0 1", "\N{ARABIC-INDIC DIGIT THREE}", "-1", "0*3"]
)
def test_a_schedule_that_cannot_be_is_refused_with_its_step(schedule):
    with pytest.raises(UsageError, match=r"step|CPU"):
        play(build(LITMUS["gets"], Knobs()), schedule)


@pytest.mark.parametrize(
    ("name", "knobs"),
    [
        ("gets", {"cpus": 1}),
        ("gets", {"cpus": 4}),
        ("gets", {"uses": 9}),
        ("gets", {"count": 1 << 32}),
        ("gets", {"count": -1}),
        ("gets", {"unless_zero": True}),
        ("gets", {"unlocked": frozenset({0})}),
        ("get-last-put", {"unless_zero": True, "kind": PLAIN}),
        ("locked-gets", {"kind": REFCOUNT}),
        ("steps", {"uses": 0}),
    ],
)
def test_a_knob_that_makes_no_sense_is_refused(name, knobs):
    with pytest.raises(UsageError):
        build(LITMUS[name], Knobs(**knobs))


# ---------------------------------------------------------------- how few runs are enough


@pytest.mark.parametrize(
    ("name", "knobs", "runs"),
    [
        ("gets", {"kind": PLAIN}, 4),
        ("puts", {"kind": PLAIN, "uses": 1}, 10),
        ("get-put", {"kind": PLAIN, "uses": 3}, 122),
        ("puts", {"kind": PLAIN, "cpus": 3, "uses": 2}, 596),
        ("puts", {"cpus": 3, "uses": 4}, 716),
        ("steps", {"cpus": 3}, 1),
    ],
)
def test_partial_order_reduction_needs_the_runs_that_were_measured(name, knobs, runs):
    assert reduce(build(LITMUS[name], Knobs(**knobs))).runs == runs


@settings(max_examples=15, deadline=None)
@given(
    CASES,
    st.sampled_from([ATOMIC, PLAIN, REFCOUNT]),
    st.integers(2, 3),
    st.integers(1, 2),
    st.integers(0, 3),
)
def test_the_few_runs_see_every_outcome(name, kind, cpus, uses, count):
    knobs = Knobs(
        kind=kind if "kind" in LITMUS[name].knows else ATOMIC, uses=uses, count=count, cpus=cpus
    )
    program = build(LITMUS[name], knobs)
    found = reduce(program, most=150)
    assert found.outcomes <= set(explore(program).outcomes)
    assert found.runs == 150 or found.outcomes == set(explore(program).outcomes)


def test_a_search_that_is_given_up_says_so_by_its_number():
    assert reduce(build(LITMUS["puts"], Knobs(cpus=3, uses=4)), most=7).runs == 7

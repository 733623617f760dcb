"""A schedule played on the machine: the run that the exploration found, walked through in both
directions."""

import json

import pytest

from kemu.commands.run import run
from kemu.invariants import check
from kemu.observe.events import one_event
from kemu.views.json import to_data
from kemu.views.terminal import render
from tests.races.raced import FORKED, explored, session

PUT_LOST = 'race replay "write parent 0x10000 2" "write child 0x10000 3" {schedule} --non-atomic'


def did(made, line):
    """The last result of a line that must succeed."""
    results = run(made, line)
    assert results[-1].error is None, results[-1].error
    return results[-1]


def refused(made, line):
    """The complaint about a line that must not."""
    error = run(made, line)[-1].error
    assert error is not None, line
    return f"{error.what} | {error.hint}"


def bad_ones(reading):
    return [outcome for outcome in reading.outcomes if outcome.bad]


# ---------------------------------------------------------------- litmus


def test_a_litmus_schedule_is_one_event_a_step_forwards_and_backwards():
    made = session()
    shown = did(made, "race replay get-last-put 1010").reading
    assert (shown.outcome, shown.bad, shown.schedule) == ("use after free", True, "1010")
    assert [(step.cpu, step.what, step.value) for step in shown.steps] == [
        (1, "dec_and_test", "count 0"),
        (0, "get", "count 1"),
        (1, "free if last", "count 1, freed"),
        (0, "use", "count 1, freed"),
    ]
    for done in (1, 2, 3, 4):
        did(made, "step")
        assert did(made, "race").reading.done == done
    for done in (3, 2, 1, 0):
        did(made, "back")
        assert did(made, "race").reading.done == done


def test_it_says_which_step_goes_wrong():
    shown = did(session(), "race replay get-last-put 100001").reading
    assert [step.note for step in shown.steps] == ["", "", "", "", "", "double free"]


def test_the_short_form_plays_the_last_race():
    made = session()
    did(made, "race gets --non-atomic")
    assert did(made, "race replay 01010101").reading.outcome == "lost update"
    assert made.timeline.records[-1].text == "race replay gets 01010101 --non-atomic --end"


def test_the_answer_names_the_command_that_was_meant_and_the_timeline_one_that_means_the_same():
    made = session()
    assert (
        did(made, "race replay gets 00001111 --non-atomic").command
        == "race replay gets 00001111 --non-atomic"
    )
    assert made.timeline.records[-1].text == "race replay gets 00001111 --non-atomic --end"
    assert did(made, "race replay 0101 --end").command == "race replay gets 0101 --non-atomic --end"


def test_a_schedule_may_stand_behind_the_options():
    shown = did(session(), "race replay gets --non-atomic --count 3 01010101").reading
    assert (shown.outcome, shown.race) == ("lost update", "gets --non-atomic --count 3")


def test_a_short_schedule_is_carried_on_to_the_end():
    shown = did(session(), "race replay gets 0 --non-atomic").reading
    assert (shown.schedule, shown.outcome) == ("00001111", "ok")


def test_another_replay_may_follow_from_inside_the_first():
    made = session()
    did(made, "race replay get-last-put 1010; step")
    assert did(made, "race replay get-last-put 100001").reading.outcome == "double free"


# ---------------------------------------------------------------- kernel paths


@pytest.fixture(scope="module")
def lost_put():
    """The schedules of a lost put, by outcome."""
    reading = explored("cow-cow", bound=2, kind="non-atomic")
    return {outcome.name: outcome for outcome in bad_ones(reading)}


def test_a_bad_schedule_ends_in_the_same_state_as_in_the_exploration(lost_put):
    made = session(FORKED)
    for name, outcome in lost_put.items():
        shown = did(made, PUT_LOST.format(schedule=outcome.first)).reading
        assert (shown.outcome, shown.detail) == (name, outcome.detail)


def test_a_run_that_stops_where_something_broke_leaves_its_calls_open(lost_put):
    made = session(FORKED)
    result = did(made, PUT_LOST.format(schedule=lost_put["refcount_covers_mapcount"].first))
    shown = result.reading
    assert (result.status, shown.unfinished) == (3, True)
    did(made, f"goto {shown.last}")
    assert any(
        "_refcount -1" in str(violation) for violation in check(made.kernel, quiescent=False)
    )
    assert "is inside" in refused(made, "write parent 0x10000 5")
    assert f"goto {shown.first}" in refused(made, "write parent 0x10000 5")
    did(made, f"goto {shown.first}; write parent 0x10000 5")
    assert check(made.kernel) == []


def test_going_back_and_forth_over_a_race_comes_to_the_same_states(lost_put):
    made = session(FORKED)
    shown = did(made, PUT_LOST.format(schedule=lost_put["refcount_is_explained"].first)).reading
    moments = [shown.first, (shown.first + shown.last) // 2, shown.last]
    seen = []
    for moment in (*moments, *reversed(moments)):
        made.goto(moment)
        seen.append(made.state_hash())
    assert seen[:3] == seen[3:][::-1]
    assert len(set(seen)) == 3


def test_every_event_of_a_race_belongs_to_one_step_and_one_cpu():
    shown = did(
        session(FORKED), 'race replay "write parent 0x10000 2" "write child 0x10000 3" 0*5,1*3'
    ).reading
    assert not shown.bad
    edges = [step.first for step in shown.steps] + [shown.steps[-1].last]
    assert edges == sorted(edges)
    assert [step.cpu for step in shown.steps[:9]] == [0] * 5 + [1] * 3 + [1]
    assert shown.steps[3].what == "lock ptl in handle_pte_fault"
    assert shown.steps[5].what == "the access"


def test_the_functions_of_each_cpu_stand_under_its_own_name():
    made = session(FORKED)
    shown = did(
        made, 'race replay "write parent 0x10000 2" "write child 0x10000 3" 0*10,1*10'
    ).reading
    did(made, f"goto {shown.last}")
    text = render(did(made, "calls").reading)
    assert "CPU 0() {" in text
    assert "CPU 1() {" in text
    for step in shown.steps:
        if step.what.startswith("lock ptl"):
            _, _, function = step.what.rpartition(" ")
            assert one_event(made.kernel, step.last).function == function


def test_a_kernel_case_is_set_up_from_the_boot_on_a_timeline_of_its_own():
    made = session("spawn mine; mmap mine 0x10000 1p rw")
    did(made, "race replay first-touch 0*5,1*5")
    assert [record.text for record in made.timeline.records][:3] == [
        "spawn a",
        "mmap a 0x10000 1p rw",
        "clone a vm sighand thread files fs as b",
    ]
    assert len(made.timelines) == 2
    assert made.timelines[0].records[0].text == "spawn mine"


def test_a_schedule_that_a_case_does_not_have_leaves_everything_as_it_was():
    made = session("spawn mine; mmap mine 0x10000 1p rw; mark spot; goto 3")
    before = (made.now, made.end, made.state_hash(), made.timeline.records, made.current_pid)
    assert "cannot take step" in refused(made, "race replay first-touch 0*12,1*300")
    assert (
        made.now,
        made.end,
        made.state_hash(),
        made.timeline.records,
        made.current_pid,
    ) == before
    assert len(made.timelines) == 1
    assert made.marks["spot"] == made.end


def test_what_a_replay_put_on_the_timeline_means_the_same_when_it_is_run_again(tmp_path):
    made = session()
    did(
        made,
        "race replay cow-cow 0*5,1*5; goto end; write child 0x10000 9; race replay gets 01 --end; "
        "write child 0x10000 8",
    )
    did(made, f"save {tmp_path}/race.kemu")
    again = session()
    assert (
        "the state matches the saved one"
        in did(again, f"restore {tmp_path}/race.kemu").reading.lines[0]
    )
    assert again.state_hash() == made.state_hash()
    assert [record.text for record in again.timeline.records] == [
        record.text for record in made.timeline.records
    ]
    number = again.timeline.number
    did(again, f"goto {again.timeline.records[1].last}; spawn other; switch {number}")
    assert again.state_hash() == made.state_hash()


def test_a_race_can_be_rehearsed_like_any_command():
    made = session(FORKED)
    did(made, 'race replay "write parent 0x10000 2" "write child 0x10000 3" 0*5,1*5 --end')
    records = made.timeline.records
    before = made.state_hash()
    assert did(made, "cost").reading.rows
    assert (made.timeline.records, made.state_hash()) == (records, before)


def test_after_a_race_that_ended_well_the_machine_goes_on():
    made = session(FORKED)
    shown = did(
        made, 'race replay "write parent 0x10000 2" "write child 0x10000 3" 0*5,1*5'
    ).reading
    did(made, f"goto {shown.last}; write child 0x10000 9; read parent 0x10000")
    assert check(made.kernel) == []


@pytest.mark.parametrize("geometry", ["sv39", "x86-64-la57"])
def test_a_case_is_explored_with_the_page_tables_of_the_session_and_can_be_replayed_on_it(geometry):
    made = session(geometry=geometry)
    reading = explored("first-touch", on=made, bound=0)
    assert reading.bad == 0
    for outcome in reading.outcomes:
        assert did(made, f"race replay first-touch {outcome.first}").reading.outcome == outcome.name


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("race replay", "which schedule"),
        ("race replay gets", "which schedule"),
        ("race replay 0110", "no race has been run yet"),
        ("race replay gets 0000000", "has done its"),
        ("race gets --non-atomic 0110", "only race replay plays"),
        ("race replay gets 01 --non-atomic 01", "no command 'gets'"),
        ("race replay gets 012", "not a CPU"),
        ("race replay nothing 01", "no case"),
        ("race replay cow-cow 0*5,1*500", "cannot take step"),
        ("race replay cow-cow 0*5,2*5", "no CPU 2"),
        ("race replay cow-cow 0*", "cannot read"),
        ('race replay "write a 1" 0*5', "at least two commands"),
        ("race replay locked-gets 01", "waits for the lock"),
    ],
)
def test_a_replay_that_cannot_be_is_refused(line, says):
    made = session()
    assert says in refused(made, line)
    assert not [record for record in made.timeline.records if "race" in record.text]


def test_a_machine_with_one_cpu_has_no_kernel_races_of_its_own():
    made = session(FORKED, cpus=1)
    assert "needs 2 CPUs" in refused(made, "race replay cow-cow 0*5")
    assert "2 commands, but 1 CPUs" in refused(
        made, 'race "write parent 0x10000 2" "write child 0x10000 3"'
    )
    assert did(made, "race cow-cow --bound 0").reading.schedules == 2


# ---------------------------------------------------------------- as text and as data


def test_the_exit_code_is_three_for_a_bad_outcome_and_zero_without_one():
    made = session()
    assert did(made, "race gets --non-atomic").status == 3
    assert did(made, "race gets").status == 0
    assert did(made, "race").status == 0


@pytest.mark.parametrize(
    "line",
    [
        "race",
        "race get-last-put",
        "race gets --cpus 3 --non-atomic",
        "race puts --cpus 3 --non-atomic --uses 2",
        "race first-touch --bound 0",
        "race munmap-fault --bound 1 --without-lock vma_lock",
    ],
)
def test_a_race_is_data_and_text_of_80_columns(line):
    reading = did(session(), line).reading
    assert json.loads(json.dumps(to_data(reading))) == to_data(reading)
    assert max(len(row) for row in render(reading).split("\n")) <= 80


def test_a_replay_is_text_of_80_columns_wherever_it_stands():
    made = session()
    shown = did(made, "race replay cow-cow 0*5,1*5").reading
    for moment in (shown.first, shown.steps[6].last, shown.last):
        made.goto(moment)
        assert max(len(row) for row in render(did(made, "race").reading).split("\n")) <= 80


def test_the_inside_of_a_command_is_no_place_to_race_from():
    made = session(FORKED)
    made.goto(made.timeline.records[-1].last - 3)
    assert "is inside a command" in refused(
        made, 'race "write parent 0x10000 2" "write child 0x10000 3"'
    )

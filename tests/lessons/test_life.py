"""The life of a lesson at the shell: each of the nine kinds, hints, skipping, play and return,
leaving."""

import pytest

from kemu.api import Session
from kemu.lessons.kinds.base import OPEN, PASSED, SHOWN
from kemu.lessons.kinds.registry import KINDS
from kemu.lessons.taking.guide import Guide
from tests.lessons.hands import Student, lesson_named, lesson_of, texts

COW = lesson_named("nine-kinds")


@pytest.fixture
def ada():
    return Student(COW)


def at(kind, **more):
    """A student at the first step of that kind."""
    student = Student(COW, **more)
    index = next(index for index, step in enumerate(COW.steps) if step.kind == kind)
    student.guide.stay.enter(index)
    return student


def test_the_sample_lesson_has_every_kind_and_can_be_taken_whole(ada):
    assert {step.kind for step in COW.steps} == set(KINDS)
    ada.takes_all()
    done = ada.guide.stay.diary.done()
    assert {name: found.state for name, found in done.items()} == {
        step.id: PASSED for step in COW.steps
    }
    assert ada.guide.stay.over
    assert "it is over" in ada.reads("task")


def test_the_first_screen_has_the_title_the_prose_with_numbers_and_the_question(ada):
    said = texts(ada.first)
    assert COW.title in said
    assert f"owns **{ada.guide.stay.world.values['n']}** private pages" in said
    assert "answer VALUE commits you" in said


# ---------------------------------------------------------------- predict


def test_a_prediction_is_committed_before_the_machine_moves():
    ada = at("predict")
    for line in ("fork app as child", "on 1 fork app as child", "lesson play", "play"):
        assert "commit first" in ada.reads(line)
    assert ada.types("walk app 0x10000")[-1].ok
    assert ada.session.end == ada.visit.start


def test_a_wrong_prediction_stands_beside_the_fact_and_is_kept():
    ada = at("predict")
    n = ada.guide.stay.world.values["n"]
    said = ada.reads(f"answer {2 * n}")
    assert f"You said {2 * n}; it was {n}. That is the cost of an eager copy" in said.replace(
        f" (0x{n:x})", ""
    )
    assert "Which count" in said
    assert ada.guide.stay.diary.done()[ada.visit.step.id].said == ada.visit.step.in_words(
        ada.visit, 2 * n
    )
    assert "child" in ada.session.names()
    ada.types("reset", f"answer {n}")
    assert ada.guide.stay.diary.done()[ada.visit.step.id].state == "failed"


def test_a_slip_of_typing_is_no_try():
    ada = at("predict")
    assert "expected a number" in ada.reads("answer seven pages")
    assert ada.visit.tries == 0
    assert ada.visit.state == OPEN


def test_what_is_locked_opens_with_the_answer():
    ada = at("predict")
    assert "locked" in ada.reads("mem")
    ada.types("answer 1")
    assert ada.types("mem")[-1].ok


def test_full_width_digits_are_an_answer():
    ada = at("predict")
    digits = "".join(chr(ord(char) + 0xFEE0) for char in str(ada.guide.stay.world.values["n"]))
    ada.types(f"answer {digits}")
    assert ada.visit.state == PASSED


def test_confidence_is_asked_for_once_and_may_be_left_out():
    step = (
        '```check predict\nid = "p"\nconfidence = true\nsetup = ["spawn app"]\n'
        'reveal = "fork app as b"\nexpect = "tasks()"\n```\n'
    )
    ada = Student(lesson_of(step))
    assert "How sure are you" in ada.reads("answer 5")
    assert ada.visit.state == OPEN
    ada.types("guess")
    assert (ada.visit.state, ada.visit.confidence) != (OPEN, "")
    bo = Student(lesson_of(step))
    bo.types("answer 5")
    bo.types("ps", "hint")
    assert bo.visit.state == OPEN
    assert "5. Yes" in bo.reads("check")
    dana = Student(lesson_of(step))
    assert "Noted: 6" in dana.reads("answer 4", "answer 6")
    dana.types("answer 5", "guess")
    assert dana.visit.state == PASSED
    emil = Student(lesson_of(step))
    said = emil.reads("answer 4", "lesson step 9")
    assert "You said 4" in said
    assert "error: step: no step '9'" in said
    assert bo.visit.state != OPEN
    chen = Student(lesson_of(step))
    chen.types("answer 5 sure")
    assert chen.visit.confidence == "sure"


@pytest.mark.parametrize("line", ["{n}", " {n} ", "0x0{n}", "{n} sure"])
def test_a_bare_number_is_an_answer(line):
    ada = at("predict")
    ada.types(line.format(n=ada.guide.stay.world.values["n"]))
    assert ada.visit.state == PASSED


@pytest.mark.parametrize("line", ["ps", "walk app 0x10000", "sure", "hint"])
def test_what_is_a_command_or_a_word_stays_one(line):
    ada = at("predict")
    ada.types(line)
    assert ada.visit.tries == 0


def test_next_is_the_lessons_where_it_can_be_nothing_else(ada):
    ada.types(*ada.solves())
    ada.types("back 3", "next")
    assert ada.guide.stay.index == 0
    ada.types("goto end", "next")
    assert ada.guide.stay.index == 1


# ---------------------------------------------------------------- run, state


def test_a_run_step_compares_parsed_arguments_never_text():
    ada = at("run")
    ada.types("fork app as other")
    assert ada.visit.state == OPEN
    ada.types("lesson reset", "fork  @3   as  kid  # my child")
    assert ada.visit.state == PASSED


def test_a_state_that_is_not_reached_shows_both_sides():
    ada = at("state")
    said = ada.reads("check")
    v, n = ada.guide.stay.world.values["v"], ada.guide.stay.world.values["n"]
    assert f"wanted: equal to {n - 1}" in said
    assert f"shared('app', 'child') is {n}" in said
    ada.types(f"write child {0x10000 + v * 4096:#x} 1")
    assert "is done" in ada.reads("check")


def test_what_must_never_be_is_found_in_the_journal_though_it_is_gone():
    ada = at("state")
    ada.types("spawn spoiler", "exit spoiler 0", "wait init spoiler")
    ada.types(*ada.solves())
    said = ada.reads("check")
    assert "spoiled it" in said
    assert ada.visit.state == OPEN
    ada.types("reset", *ada.solves())
    assert "is done" in ada.reads("check")


def test_undoing_what_spoiled_it_is_enough():
    ada = at("state")
    ada.types("spawn spoiler", "undo")
    ada.types(*ada.solves(), "check")
    assert ada.visit.state == PASSED


def test_the_third_failed_check_offers_a_hint():
    ada = at("state")
    assert "hint shows" not in ada.reads("check")
    assert "hint shows" in ada.reads("check", "check")


def test_what_is_given_is_neither_undone_nor_judged():
    ada = at("state")
    assert "changed nothing" in ada.reads("undo")
    assert "is before this step" in ada.reads("goto 0", "check")
    assert ada.visit.tries == 0
    ada.types("goto end", "spawn mine", "undo")
    assert ada.session.now == ada.visit.start


def test_a_step_that_was_done_before_says_so_and_next_goes_on(ada):
    ada.step()
    assert "done this step before" in ada.reads("previous")
    assert "Step 2 of 9" in ada.reads("next")


def test_what_was_reached_is_said_with_the_points():
    ada = at("predict")
    assert "0 of 2 points" in ada.reads("answer 991")
    assert "2 of 2 points" in at("order").reads(*at("order").solves())


def test_nothing_before_the_start_of_a_step_can_be_changed():
    ada = at("state")
    assert "starts at" in ada.reads("goto 0", "spawn other")
    assert ada.types("ps")[-1].ok


# ------------------------------------------------------------- bug, order, choice, explain, explore


def test_a_bug_is_named_part_by_part():
    ada = at("bug")
    truths = {key: found[0] for key, found in ada.visit.memory.truths.items()}
    assert "no" in ada.reads("answer event 1")
    assert "Still to find: event" in ada.reads(f"answer invariant {truths['invariant']}")
    assert ada.guide.stay.diary.done()[ada.visit.step.id].share == pytest.approx(1 / 3)
    ada.types(f"answer event #{truths['event']}")
    assert ada.visit.state == PASSED


def test_a_wrong_kernel_cannot_be_looked_up():
    ada = at("bug")
    assert "not part" in ada.reads("mutant reveal")
    assert "not part" in ada.reads("mutant remove")
    assert "not part" in ada.reads("mutant plant 3")
    assert ada.types("mutant list")[-1].ok


def test_a_repair_is_proved_by_repeating_the_history():
    step = (
        '```check bug\nid = "b"\nplant = "fork_forgets_wrprotect"\nfind = ["repair"]\n'
        'setup = ["spawn app", "mmap app 0x10000 1p rw populate", "fork app as kid", "write app '
        '0x10000 1"]\n'
        'must = ["pfn(app, 0x10000) != pfn(kid, 0x10000)"]\n```\n'
    )
    ada = Student(lesson_of(step))
    assert "a wrong kernel is still running" in ada.reads("check")
    assert "still breaks" in ada.reads("mutant remove", "check")
    ada.types(
        "goto 0",
        "spawn app",
        "mmap app 0x10000 1p rw populate",
        "fork app as kid",
        "write app 0x10000 1",
    )
    assert "Repaired" in ada.reads("check")


def test_options_are_shuffled_by_seed_and_wrong_ones_say_why():
    orders = {
        Student(COW, name=name).guide.stay.seed: at("choice", name=name).visit.order
        for name in "abcdefgh"
    }
    assert len(set(orders.values())) > 1
    ada = at("choice")
    wrong = next(letter for letter in "abc" if f"answer {letter}" != ada.solves()[0])
    assert "because" in ada.reads(f"answer {wrong}")


def test_bare_letters_are_an_answer_only_where_letters_are_asked_for():
    ada = at("choice")
    letter = ada.solves()[0].split()[1]
    ada.types(letter)
    assert ada.visit.state == PASSED
    assert ada.types("b do_wp_page")[-1].ok
    bo = at("order")
    bo.types("".join(bo.solves()[0].split()[1:]))
    assert bo.visit.state == PASSED
    assert "answer" not in [record["do"] for record in at("state").records[-1:]]


def test_an_order_is_that_of_the_journal_and_leaves_out_what_did_not_happen():
    ada = at("order")
    (right,) = ada.solves()
    letters = right.split()[1:]
    assert len(letters) == len(ada.visit.order) - 1
    ada.types(f"answer {' '.join(reversed(letters))}")
    assert ada.visit.state == OPEN
    ada.types(right)
    assert ada.visit.state == PASSED


def test_free_words_may_hold_anything():
    ada = at("explain")
    ada.types('answer it\'s one frame; two entries # really "two"')
    assert ada.visit.said == 'it\'s one frame; two entries # really "two"'
    assert ada.visit.state == PASSED


def test_goals_of_exploring_are_badges():
    ada = at("explore")
    assert "0 of 1 found" in ada.reads("check")
    assert "Found: a third process" in ada.reads("spawn third", "check")


# ---------------------------------------------------------------- hints, skip, reset, play, leaving


def test_hints_come_one_by_one_and_end():
    ada = at("state")
    assert "(1 of 2) Reading never splits" in ada.reads("hint")
    assert "(2 of 2)" in ada.reads("hint")
    assert "skip shows the solution" in ada.reads("hint")
    assert ada.guide.stay.diary.done()[ada.visit.step.id].hints == 3


def test_skipping_shows_and_runs_the_solution_and_is_marked():
    ada = at("state")
    ada.types("skip")
    assert ada.visit.state == SHOWN
    assert not ada.visit.step.unmet(ada.visit, "en")
    ada.types("reset", *ada.solves(), "check")
    found = ada.guide.stay.diary.done()[ada.visit.step.id]
    assert (found.state, found.share) == ("shown", 0.0)


def test_play_is_on_a_copy_and_return_comes_back_to_the_very_moment():
    ada = at("state")
    ada.types("spawn mine", "mark here_i_was")
    before = ada.session.state_hash(), ada.session.now, dict(ada.session.marks)
    kept = len(ada.records)
    assert "nothing here counts" in ada.reads("play")
    ada.types("exit mine 0", "spawn yours", "kill child KILL")
    assert "not during free play" in ada.reads("check")
    ada.types("return")
    assert (ada.session.state_hash(), ada.session.now, dict(ada.session.marks)) == before
    assert len(ada.records) == kept
    assert "not playing" in ada.reads("return")


def test_each_step_starts_from_its_own_machine_whatever_was_done():
    one, two = Student(COW), Student(COW)
    one.takes_all(wrong={step.id for step in COW.steps})
    two.types("spawn a", "spawn b")
    for index in range(len(COW.steps)):
        one.guide.stay.enter(index)
        two.guide.stay.enter(index)
        assert one.session.state_hash() == two.session.state_hash()


def test_a_guided_lesson_is_taken_in_order_and_previous_goes_back(ada):
    assert "is not done" in ada.reads("lesson next")
    assert "comes first" in ada.reads("lesson step 3")
    ada.step()
    assert ada.guide.stay.index == 1
    ada.types("previous")
    assert ada.guide.stay.index == 0
    assert "first step" in ada.reads("previous")


def test_leaving_brings_back_what_was_there_before():
    session = Session()
    session.run("spawn mine; mmap mine 0x10000 1p rw; write mine 0x10000 7")
    before = session.state_hash(), session.now
    guide = Guide(session, COW, student="ada")
    guide.stay.resume()
    session.run("ps")
    assert "mine" not in session.names()
    session.run("leave")
    assert (session.state_hash(), session.now) == before
    assert session.desk.guide is None


def test_a_word_that_a_command_has_stays_the_command(ada):
    assert "no lesson is being taken" in texts(without_a_lesson("hint"))
    assert ada.types("help")[-1].ok


def without_a_lesson(line):
    from kemu.commands.run import run

    return run(Session(), line)


def test_a_report_for_the_author_names_lesson_step_and_seed(ada):
    said = ada.reads("ps", "problem the number is wrong; isn't it?")
    assert "isn't it?" in said
    assert ada.guide.stay.seed in said
    assert COW.steps[0].id in said
    assert "typed    ps" in said


def test_the_end_names_the_points_and_the_next_lesson():
    ada = Student(
        lesson_of('```check explain\nid = "one"\n```\nThat was it.\n', 'next = "t/other"\n')
    )
    ada.types("answer yes")
    said = ada.reads("task")
    assert "That was it." in said
    assert "0 of 0 points" in said
    assert "lesson start t/other" in said


def test_a_lesson_that_fails_while_it_is_taken_is_no_bug_of_kemu():
    ada = Student(
        lesson_of(
            '```check state\nid = "one"\nmust = ["alive(app)"]\nhints = ["{nobody.pid}"]\n```\n'
        )
    )
    assert "nothing is called" in ada.reads("hint")


def test_the_toolbar_knows_where_we_are(ada):
    assert ada.guide.place() == f"{COW.id} 1/{len(COW.steps)}"
    ada.types(*ada.solves())
    assert ada.guide.place().endswith("done")


def test_two_students_have_different_numbers_and_one_always_the_same():
    values = {name: Student(COW, name=name).guide.stay.world.values for name in "abcdefgh"}
    assert len({tuple(found.items()) for found in values.values()}) > 1
    assert Student(COW, name="a").guide.stay.world.values == values["a"]


# ---------------------------------------------------------------- exam


EXAM = lesson_of(
    '```check predict\nid = "p"\nsetup = ["spawn app"]\nreveal = "fork app as b"\nexpect = '
    '"tasks()"\n```\n'
    '```check state\nid = "s"\nmust = ["alive(app)"]\nsolution = ["spawn app"]\nstart = '
    '"setup"\n```\n',
    'mode = "exam"\n',
)


def test_an_exam_tells_nothing_and_takes_the_last_answer():
    ada = Student(EXAM)
    said = ada.reads("answer 4")
    assert said.startswith("Noted: 4")
    assert "b" not in ada.session.names()
    ada.types("answer 5")
    assert ada.guide.stay.diary.done()["p"].said == "5"
    assert "disabled in an exam" in ada.reads("hint")
    assert "disabled in an exam" in ada.reads("skip")
    ada.types("lesson next")
    assert "Noted" in ada.reads("check")
    assert ada.guide.stay.diary.done()["s"].state == "recorded"
    assert ada.guide.stay.diary.done()["s"].share == 0.0


# ---------------------------------------------------------------- found by an independent reader


def test_digits_alone_for_an_address_are_asked_about_once():
    step = (
        '```check answer\nid = "a"\nsetup = ["spawn app"]\nexpect = "0x117560 + 0*app.pid"\n```\n'
    )
    ada = Student(lesson_of(step))
    assert "decimal or hex" in ada.reads("answer 117560")
    assert ada.visit.tries == 0
    ada.types("answer 0x117560")
    assert ada.visit.state == PASSED
    bo = Student(lesson_of(step))
    bo.types("answer 117560", "answer 117560")
    assert (bo.visit.tries, bo.visit.state) == (1, OPEN)
    chen = Student(lesson_of(step))
    assert chen.solves() == ["answer 0x117560"]


def test_an_order_that_begins_well_says_how_far():
    ada = at("order")
    right = ada.solves()[0].split()[1:]
    assert "The first is right" in ada.reads(f"answer {right[0]} {right[2]} {right[1]}")


def test_an_order_says_of_a_letter_that_it_never_happened():
    ada = at("order")
    right = ada.solves()[0].split()[1:]
    (never,) = {chr(ord("a") + index) for index in range(len(ada.visit.order))} - set(right)
    assert f"{never} did not happen" in ada.reads(f"answer {' '.join([*right, never])}")
    assert "did not happen" not in ada.reads(f"answer {' '.join(reversed(right))}")


def test_a_choice_of_some_that_are_right_is_not_called_wrong():
    options = '[{ text = "x", right = true }, { text = "y", right = true }, { text = "z" }]'
    ada = Student(
        lesson_of(f'```check choice\nid = "c"\nseveral = true\noptions = {options}\n```\n')
    )
    one = ada.solves()[0].split()[1]
    assert "right, but not all" in ada.reads(f"answer {one}")


def test_the_question_can_be_read_again_while_one_is_asked_how_sure():
    step = '```check predict\nid = "p"\nconfidence = true\nsetup = ["spawn app"]\nreveal = "ps"\nexpect = "tasks()"\n```\n'
    ada = Student(lesson_of(step))
    assert "How sure" in ada.reads("answer 9", "task")
    assert ada.visit.state == OPEN

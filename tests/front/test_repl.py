"""The shell at a terminal: repeating, leaving, stopping, completing. A pipe stands for the
keyboard."""

from __future__ import annotations

import io
import signal

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from kemu.commands.run import run
from kemu.completion.expect import candidates
from kemu.experiment.session import Session
from kemu.front.cli.options import Options
from kemu.front.terminal.completer import KemuCompleter
from kemu.front.terminal.output import TextOutput
from kemu.front.terminal.plain import Runner
from kemu.front.terminal.prompt import prompt, toolbar
from kemu.front.terminal.repl import Repl
from kemu.invariants import along
from kemu.lessons.taking.hosts import Beside
from kemu.names.session import SessionNames
from kemu.views.style import PLAIN


@pytest.fixture
def runner():
    made = Runner(Options(), Session(), TextOutput(io.StringIO(), io.StringIO(), PLAIN))
    made.stay = True
    return made


def talk(runner, *typed):
    """Type the lines, then Ctrl-D. An exception in place of a line is raised, as prompt-toolkit
    raises it."""
    left = list(typed)

    def read():
        if not left:
            raise EOFError
        line = left.pop(0)
        if isinstance(line, type):
            raise line
        return line

    Repl(runner, read).loop()


def test_what_happens_to_history_and_aliases_is_said_behind_the_line(runner):
    said, news = [], ["", "warning: no room"]
    runner.output.say = said.append
    lines = iter(["ps", "ps"])
    Repl(runner, lambda: next(lines), [lambda: news.pop(0)]).line(next(lines))
    assert said == []
    Repl(runner, lambda: next(lines), [lambda: news.pop(0)]).line(next(lines))
    assert said == ["warning: no room"]


def test_an_empty_line_repeats_a_step(runner):
    talk(runner, "spawn app", "goto 0", "step all 3", "", "")
    assert runner.session.now == 9


def test_an_empty_line_never_repeats_a_change(runner):
    talk(runner, "spawn app", "mmap app 1p rw")
    end = runner.session.end
    talk(runner, "mmap app 1p rw", "", "", "")
    assert len(runner.session.timeline.records) == 3
    assert runner.session.end > end


def test_a_move_with_a_change_behind_it_is_not_repeated(runner):
    talk(runner, "spawn app", "goto 0; step; goto end; mmap 1p rw", "")
    assert len(runner.session.timeline.records) == 2


def test_the_first_bare_exit_says_how_to_leave(runner):
    talk(runner, "spawn app", "exit")
    assert "quit or Ctrl-D leaves kemu" in runner.output.out.getvalue()
    assert "app" in runner.session.names()
    talk(runner, "exit", "exit")
    assert "app" not in runner.session.names()


def test_an_exit_with_a_name_is_meant(runner):
    talk(runner, "spawn app", "fork as kid", "exit kid 3")
    assert runner.session.find("kid").exit_state


def test_quit_leaves(runner):
    talk(runner, "quit", "spawn app")
    assert "app" not in runner.session.names()


def test_ctrl_c_at_the_prompt_drops_the_line(runner):
    talk(runner, KeyboardInterrupt, "spawn app")
    assert "app" in runner.session.names()


def test_a_mistake_does_not_end_the_conversation(runner):
    talk(runner, "spwan app", "spawn app")
    assert "did you mean 'spawn'?" in runner.output.err.getvalue()
    assert "app" in runner.session.names()


def test_a_bug_of_kemu_costs_one_line_and_not_the_experiment(runner, capsys, monkeypatch):
    talk(runner, "spawn app")
    monkeypatch.setattr(runner.session, "name_of", lambda pid: pid / 0)
    talk(runner, "ps")
    monkeypatch.undo()
    err = capsys.readouterr().err
    assert "a bug in kemu, not in your input: ZeroDivisionError" in err
    assert "Traceback" not in err
    talk(runner, "mmap app 1p rw")
    assert len(runner.session.timeline.records) == 2


def test_ctrl_c_in_a_command_takes_it_back(runner, monkeypatch):
    talk(runner, "spawn app")
    before, state = runner.session.end, runner.session.state_hash()
    real = runner.session.performer.syscall

    def interrupted(*args, **kwargs):
        real(*args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(runner.session.performer, "syscall", interrupted)
    talk(runner, "mmap app 4p rw")
    assert runner.session.end == before
    assert runner.session.state_hash() == state
    assert len(runner.session.timeline.records) == 1
    assert f"stopped; the machine is at #{before}" in runner.output.out.getvalue()


@pytest.fixture
def pressing(runner, monkeypatch):
    """Ctrl-C is pressed so many times behind each system call."""
    real, presses = runner.session.performer.syscall, [0]

    def syscall(*args, **kwargs):
        outcome = real(*args, **kwargs)
        for _ in range(presses[0]):
            signal.raise_signal(signal.SIGINT)
        return outcome

    monkeypatch.setattr(runner.session.performer, "syscall", syscall)
    return presses


def test_ctrl_c_in_a_command_lets_it_end_and_shows_the_event_at_which_it_came(
    runner, pressing, capfd
):
    talk(runner, "spawn app")
    before, session = runner.session.end, runner.session
    pressing[0] = 1
    talk(runner, "mmap app 0x10000 4p rw; write app 0x10000 7")
    assert "runs to its end; press again to undo it" in capfd.readouterr().err
    assert [record.text for record in session.timeline.records] == [
        "spawn app",
        "mmap app 0x10000 4p rw",
    ]
    assert before < session.now <= session.end
    assert (
        f"stopped by Ctrl-C at #{session.now}; the command has the events #{before + 1} to "
        f"#{session.end}" in shown(runner)
    )
    pressing[0] = 0
    other = Session()
    for record in session.timeline.records:
        list(run(other, record.text))
    session.goto(session.end)
    assert session.state_hash() == other.state_hash()


def test_ctrl_c_twice_in_a_command_takes_it_back(runner, pressing):
    talk(runner, "spawn app")
    before, state = runner.session.end, runner.session.state_hash()
    pressing[0] = 2
    talk(runner, "mmap app 4p rw")
    assert (runner.session.end, runner.session.state_hash()) == (before, state)
    assert len(runner.session.timeline.records) == 1
    assert f"stopped; the machine is at #{before}" in shown(runner)


def test_ctrl_c_in_a_search_stays_at_the_event_that_was_reached(runner, monkeypatch):
    talk(runner, "spawn app", "mmap app 0x10000 4p rw populate", "goto 0")
    session, asked = runner.session, []
    real = SessionNames.call

    def call(*args):
        asked.append(session.now)
        if len(asked) == 3:
            signal.raise_signal(signal.SIGINT)
        return real(*args)

    monkeypatch.setattr(SessionNames, "call", call)
    talk(runner, "until tasks() > 100")
    assert 0 < session.now < session.end
    assert (
        f"stopped: looked at the events up to #{session.now}; the machine is at #{session.now} "
        "of" in shown(runner)
    )


def test_ctrl_c_in_verify_says_what_is_checked_and_stays(runner, monkeypatch):
    talk(runner, "spawn app", "mmap app 0x10000 1p rw")
    here, looks = runner.session.now, []
    real = along.examine

    def examine(*args, **kwargs):
        looks.append(1)
        if len(looks) == 5:
            signal.raise_signal(signal.SIGINT)
        return real(*args, **kwargs)

    monkeypatch.setattr(along, "examine", examine)
    talk(runner, "verify every-event")
    assert "stopped: nothing is broken before #" in shown(runner)
    assert runner.session.now == here


def test_ctrl_c_in_a_script_says_at_which_line(runner, tmp_path, monkeypatch):
    script = tmp_path / "long.kemu"
    script.write_text("spawn app\nps\nps\n")
    real = runner.session.looking

    def looking():
        if runner.session.tasks.get(3) is not None:
            signal.raise_signal(signal.SIGINT)
        return real()

    monkeypatch.setattr(runner.session, "looking", looking)
    talk(runner, f"run '{script}'")
    assert f"stopped: at {script}:2; the machine is at #" in shown(runner)
    assert "app" in runner.session.names()
    assert runner.session.desk.depth == 0


def test_ctrl_c_in_a_command_of_a_script_ends_the_script(runner, tmp_path, pressing):
    script = tmp_path / "long.kemu"
    script.write_text("mmap app 0x10000 1p rw\nmmap app 0x20000 1p rw\n")
    talk(runner, "spawn app")
    pressing[0] = 1
    talk(runner, f"run '{script}'")
    assert [record.text for record in runner.session.timeline.records] == [
        "spawn app",
        "mmap app 0x10000 1p rw",
    ]
    assert "stopped by Ctrl-C at #" in shown(runner)


def shown(runner):
    return runner.output.out.getvalue()


def test_the_prompt_says_where_the_experiment_stands(runner):
    assert prompt(runner.session) == "kemu #0> "
    talk(runner, "spawn app")
    end = runner.session.end
    assert prompt(runner.session) == f"kemu #{end} app> "
    talk(runner, "back")
    assert prompt(runner.session).startswith(f"kemu #{end - 1}/{end} past> ")
    assert "PAST, inside 'spawn app'" in toolbar(runner.session)


def test_the_toolbar_tells_the_lesson_first_and_fits(runner):
    talk(runner, "spawn app", "mmap app 0x10000 4p rw", "back")
    session = runner.session
    guide = Beside()
    guide.place = lambda: "vm/copy-on-write 2/5"
    session.desk.follow(guide)
    where = f"event {session.now} of {session.end} | app (pid 3)"
    assert (
        toolbar(session, 120)
        == f" lesson vm/copy-on-write 2/5 | {where} | PAST, inside 'mmap app 0x10000 4p rw' "
    )
    assert len(toolbar(session, 40)) <= 40
    assert toolbar(session, 80) == f" lesson vm/copy-on-write 2/5 | {where} | PAST "
    session.goto(session.end)
    talk(runner, "goto 0", "spawn other")
    assert "timeline 2 of 2" in toolbar(session, 100)


def test_a_pasted_text_is_run_line_by_line(runner):
    talk(runner, "spawn app\n# a comment\nspwan b\nmmap app 0x10000 1p rw\n")
    assert [record.text for record in runner.session.timeline.records] == [
        "spawn app",
        "mmap app 0x10000 1p rw",
    ]
    talk(runner, "quit\nspawn other")
    assert "other" not in runner.session.names()


def test_repeating_can_be_switched_off(runner):
    talk(runner, "spawn app", "goto 0", "set repeat off", "step 3", "", "")
    assert runner.session.now == 3


def test_an_alias_of_a_move_is_repeated_as_the_move(runner):
    talk(runner, "spawn app", "alias go step 2", "goto 0", "go", "")
    assert runner.session.now == 4


def test_prompt_toolkit_reads_the_line():
    with create_pipe_input() as keys:
        keys.send_text("fork app\n")
        assert PromptSession(input=keys, output=DummyOutput()).prompt() == "fork app"


# ---------------------------------------------------------------- completion


def offered(runner, text):
    return {
        found.text
        for found in KemuCompleter(runner.session).get_completions(Document(text), CompleteEvent())
    }


@pytest.fixture
def at_work(runner):
    talk(runner, "spawn app", "mmap app 0x10000 4p rw", "fork app as kid", "mark before")
    return runner


@pytest.mark.parametrize(
    ("text", "some", "none"),
    [
        ("sp", {"spawn"}, {"fork"}),
        ("", {"spawn", "walk", "goto"}, set()),
        ("ps; wa", {"walk", "wait"}, {"ps"}),
        ("walk ", {"app", "kid", "init"}, {"walk"}),
        ("walk k", {"kid"}, {"app", "kthread"}),
        ("fork app ", {"as"}, {"app"}),
        ("fork ", {"as", "app"}, set()),
        ("fork app as ", set(), {"app", "as"}),
        ("mmap app 0x10000 4p ", {"rw", "none"}, {"shared"}),
        ("mmap app 4p rw ", {"shared", "populate", "file"}, {"rw", "app"}),
        ("mmap app 4p rw shared po", {"populate"}, {"private"}),
        ("signal app SE", {"SEGV"}, {"TERM"}),
        ("signal app SEGV ", {"handle", "ignore", "default"}, {"TERM"}),
        ("goto ", {"before", "start", "end"}, {"app"}),
        ("on 1 wal", {"walk"}, {"ps"}),
        ("on 1 walk k", {"kid"}, {"walk"}),
        ("clone app vm f", {"files", "fs"}, {"vm"}),
        ("write app 0x10000 'ab", set(), {"app"}),
        ("nonsense ", set(), {"app"}),
        ("help wa", {"walk", "wait"}, {"ps"}),
    ],
)
def test_completion_offers_what_may_stand_there(at_work, text, some, none):
    found = offered(at_work, text)
    assert some <= found
    assert not none & found


def test_completion_has_a_meta_text_and_changes_nothing(at_work):
    before, state = at_work.session.end, at_work.session.state_hash()
    word, found = candidates(at_work.session, "walk ki")
    assert word == "ki"
    assert found == [("kid", f"pid {at_work.session.names()['kid']}")]
    assert at_work.session.end == before
    assert at_work.session.state_hash() == state


def test_a_command_that_is_broken_off_between_two_marks_leaves_none(runner, monkeypatch):
    """The mark of a call is two words; Ctrl-C may come between them."""
    talk(runner, "spawn app", "mmap app 0x10000 4p rw")
    session = runner.session
    real, marks = session.performer.store, list(session.journal.marks)

    def torn(*args, **kwargs):
        real(*args, **kwargs)
        session.journal.marks.append(4 * len(session.journal))
        raise KeyboardInterrupt

    monkeypatch.setattr(session.performer, "store", torn)
    talk(runner, "write app 0x10000 7")
    monkeypatch.undo()
    assert list(session.journal.marks) == marks
    talk(runner, "write app 0x10000 7", "calls", "goto 0", "goto end")
    assert not runner.output.err.getvalue()

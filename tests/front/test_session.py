"""One experiment: moments, names, timelines. Commands stand for what a person types."""

from __future__ import annotations

import pytest

from kemu import Session
from kemu.commands.run import each
from kemu.errors import KernelBug, UsageError


@pytest.fixture
def session():
    made = Session()
    made.run("spawn app; mmap app 0x10000 4p rw; write app 0x10000 7")
    return made


def test_a_command_owns_its_events(session):
    first, second, third = session.timeline.records
    assert [record.text for record in session.timeline.records] == [
        "spawn app",
        "mmap app 0x10000 4p rw",
        "write app 0x10000 7",
    ]
    assert (
        first.first
        == 0
        < first.last
        == second.first
        < second.last
        == third.first
        < third.last
        == session.end
    )


def test_a_look_adds_no_event_and_no_command(session):
    before = session.end
    session.run(
        "ps; tree; mm app; maps app; smaps app; status app; stat app; walk app 0x10000; pt app; "
        "mem; tlb; free; regs app"
    )
    session.run(
        "layout; vma app 0x10000; pagemap app 0x10000 4p; frame pfn(app,0x10000); rmap "
        "pfn(app,0x10000); print app.rss"
    )
    session.run("trace; calls; diff; ls; show; help")
    assert session.end == before
    assert len(session.timeline.records) == 3


def test_a_write_while_looking_is_a_bug(session):
    with pytest.raises(KernelBug), session.looking():
        session.tasks[1].cpu = 1


def test_another_moment_can_be_visited(session):
    now = session.now
    with session.at(0):
        assert 3 not in session.tasks
    assert session.now == now
    assert 3 in session.tasks
    with pytest.raises(UsageError, match="no #"), session.at(session.end + 1):
        pytest.fail("not reached")


def test_names_belong_to_moments(session):
    session.run("fork app as kid")
    session.run("goto 0")
    assert "kid" not in session.names()
    with pytest.raises(UsageError, match="no task 'kid' at #0"):
        session.find("kid")
    session.run("goto end")
    assert session.find("kid").pid == 4


def test_an_unnamed_child_is_called_after_its_parent(session):
    session.run("fork app; fork app; fork app.2")
    assert [session.name_of(pid) for pid in (4, 5, 6)] == ["app.2", "app.3", "app.2.2"]
    session.run("read app.2.2 0x10000")


def test_a_name_is_taken_only_while_its_task_exists(session):
    with pytest.raises(UsageError, match="'app' is taken"):
        session.run("fork app as app")
    session.run("fork app as kid; exit kid; wait app; fork app as kid")
    assert session.find("kid").pid == 5


def test_a_task_that_is_not_yet_there_is_told_apart_from_one_that_is_gone(session):
    session.run("fork app as late; exit late; wait app")
    first = session.timeline.records[-3].first
    for moment, word in (
        (first, "is created at #"),
        (first + 5, "is created at #"),
        (session.end, "is gone"),
    ):
        session.goto(moment)
        with pytest.raises(UsageError, match=f"no task 'late' at #{moment}: pid [0-9]+ {word}"):
            session.run("read late 0x10000")
    session.goto(first)
    with pytest.raises(UsageError) as caught:
        session.run("read late 0x10000")
    born = int(caught.value.what.rpartition("#")[2])
    session.goto(born)
    assert "late" in session.names()
    session.goto(born - 1)
    assert "late" not in session.names()


def test_the_current_task_is_the_last_used_while_it_lives(session):
    assert session.current.pid == 3
    session.run("spawn other")
    assert session.current.pid == 4
    session.run("exit other")
    with pytest.raises(UsageError, match=r"no current task: other \(pid 4\) has ended"):
        session.run("mmap 0x10000 1p rw")
    session.run("use app; mmap 0x10000 1p rw")
    assert session.current.pid == 3
    with pytest.raises(UsageError, match="no current task") as caught:
        session.run("goto 0; mmap 0x10000 1p rw")
    assert "spawn app" in caught.value.hint


@pytest.mark.parametrize("line", ["maps", "mmap 1p rw", "fork", "print $pid", "why pte 0x1000"])
def test_no_command_falls_to_init_by_itself(line):
    made = Session()
    with pytest.raises(UsageError, match="no current task"):
        made.run(line)
    made.run("spawn app; read app 0")
    with pytest.raises(UsageError, match=r"app \(pid 3\) has ended") as caught:
        made.run(line)
    assert "why signal tells why, undo takes it back" in caught.value.hint
    assert made.run(f"use init; {line}")[-1].ok


@pytest.mark.parametrize(
    "line",
    [
        "read app 0",
        "spawn x; pipe2 x; close x 3; mmap x 0x10000 1p rw; write_fd x 4 0x10000 1",
        "fetch app app.stack-8",
    ],
)
def test_after_a_death_by_signal_the_way_out_is_named(line):
    made = Session()
    (*_, result) = made.run("spawn app; " + line)
    assert "why signal tells why; undo takes it back" in result.notes
    assert made.reading("why signal").rule
    made.run("undo")
    assert not any(task.exit_state for task in made.tasks.values())


def test_a_name_that_is_gone_says_that_undo_brings_it_back():
    made = Session()
    made.run("spawn app; fork app as kid; exit kid; wait app")
    with pytest.raises(UsageError, match="pid 4 is gone") as caught:
        made.run("maps kid")
    assert caught.value.hint.startswith("undo")
    made.run("undo; maps kid; undo")
    with pytest.raises(UsageError, match="is created at"):
        made.run("goto 1; maps kid")


def test_a_change_in_the_middle_of_a_command_is_refused_with_the_places_where_it_can_be(session):
    second = session.timeline.records[1]
    session.run(f"goto {second.first + 1}")
    with pytest.raises(UsageError) as caught:
        session.run("fork app")
    assert f"is inside '{second.text}'" in caught.value.what
    assert caught.value.hint.startswith(
        f"goto {second.last} goes to its end; goto {second.first} goes before it"
    )
    assert session.now == second.first + 1


def test_a_change_in_the_past_starts_a_timeline_and_keeps_the_old_one(session):
    boundary = session.timeline.records[1].last
    state = session.state_hash()
    result = session.run(f"goto {boundary}; write app 0x10000 8")[-1]
    assert result.notes == (
        f"timeline 2 starts at #{boundary}; timeline 1 keeps its 1 later command",
    )
    first, second = session.timelines
    assert [record.text for record in first.records] == [
        "spawn app",
        "mmap app 0x10000 4p rw",
        "write app 0x10000 7",
    ]
    assert [record.text for record in second.records] == [
        "spawn app",
        "mmap app 0x10000 4p rw",
        "write app 0x10000 8",
    ]
    assert (second.parent, second.branched) == (1, boundary)
    assert session.state_hash() != state


def test_the_commands_of_a_timeline_give_its_state_again(session):
    session.run(
        "fork app as kid; use kid; write 0x10000 'z'; goto 0; goto end; exit app; fork kid; mark "
        "here_now"
    )
    session.run(
        "setcpu kid 1; on 0 read kid 0x10000; set lru_batch on; set aslr 7; spawn other; mmap 1p "
        "rw; write $last 1"
    )
    session.run(
        "alias w write other; vfork other as v; exit v; wait other; signal kid SEGV handle; read "
        "kid 0"
    )
    again = Session()
    for record in session.timeline.records:
        again.run(record.text)
    assert again.state_hash() == session.state_hash()
    assert again.end == session.end


def test_a_use_in_the_past_is_kept_for_the_replay(session):
    session.run("fork app as kid")
    boundary = session.now
    session.run(f"write app 0x11000 1; goto {boundary}; use kid; write 0x11000 2")
    again = Session()
    for record in session.timeline.records:
        again.run(record.text)
    assert again.state_hash() == session.state_hash()


def test_marks_of_a_dropped_future_are_forgotten(session):
    session.run("mark late; goto 0; mark early; spawn other")
    assert session.marks == {"early": 0}


def test_a_refused_command_leaves_no_trace(session):
    end, state = session.end, session.state_hash()
    for text in (
        "fork nobody",
        "mmap app 3q rw",
        "spawn app",
        "on 9 read app 0x10000",
        "setcpu app 7",
        "set lru_batch maybe",
    ):
        with pytest.raises(UsageError):
            session.run(text)
    assert (session.end, session.state_hash(), len(session.timeline.records)) == (end, state, 3)


def test_a_task_that_waits_is_left_alone_until_it_is_woken(session):
    session.run("fork app as kid")
    result = session.run("wait app")[-1]
    assert result.reading.blocked
    with pytest.raises(UsageError, match="app waits in"):
        session.run("read app 0x10000")
    session.run("walk app 0x10000; exit kid 3")
    session.run("read app 0x10000")


def test_a_parent_waits_for_its_vforked_child(session):
    session.run("vfork app as kid")
    with pytest.raises(UsageError, match="app waits in"):
        session.run("write app 0x10000 1")
    session.run("write kid 0x10000 'k'; exit kid")
    assert session.run("read app 0x10000")[-1].reading.data == b"k"


def test_a_zombie_does_nothing(session):
    session.run("fork app as kid; exit kid")
    with pytest.raises(UsageError, match="kid has ended"):
        session.run("read kid 0x10000")


def test_two_sessions_do_not_disturb_each_other(session):
    other = Session()
    other.run("spawn app; mmap app 0x10000 1p rw; write app 0x10000 9")
    assert session.run("read app 0x10000")[-1].reading.data == b"\7"
    assert other.run("read app 0x10000")[-1].reading.data == b"\11"


# ---------------------------------------------------------------- the public library


def test_an_expression_has_a_python_value(session):
    session.run("fork app as kid")
    assert session.value("pfn(app, 0x10000) == pfn(kid, 0x10000)") is True
    assert session.value("shared(app, kid)") == 1
    assert session.value("data_frames(app, kid)") == 1
    assert session.value("kid") == 4
    assert session.value("pfn(app, 0x11000)") is None
    session.run("write kid 0x10000 1")
    assert session.value("shared(app, kid)") == 0
    assert session.value("data_frames('app', 'kid')") == 2
    assert session.value("refcount(pfn(app, 0x10000))") == 1


def test_the_module_s_own_example_runs_and_says_what_it_says(capsys):
    import kemu.api

    lines = [line[4:] for line in kemu.api.__doc__.splitlines() if line.startswith("    ")]
    told = [line.partition("# ")[0] for line in lines if "# True" in line]
    names = {}
    exec("\n".join(lines), names)  # noqa: S102 - the documentation's example
    assert [eval(text, names) for text in told] == [True]  # noqa: S307 - the same
    assert "pte" in capsys.readouterr().out


def test_text_is_what_the_shell_prints(session):
    assert session.text("read app 0x10000").startswith("read app 0x10000")


def test_a_mistake_raises_and_keeps_what_came_before(session):
    with pytest.raises(UsageError, match="no command"):
        session.run("fork app as kid; nonsense; fork app as other")
    assert "kid" in session.names()
    assert "other" not in session.names()


def test_the_last_result_has_a_name(session):
    session.run("mmap app 1p rw")
    address = session.value("$last")
    session.run("write app $last 7")
    assert session.value(f"byte(app, {address:#x})") == 7
    session.run("print 41; print $1 + 1; print $last")
    assert session.debugger.values == [41, 42, 42]


@pytest.mark.parametrize(
    "command", ["exit init", "read init 0", "signal init SEGV default; fetch init 0x400000"]
)
def test_the_end_of_init_is_a_panic_and_taken_back(session, command):
    state = session.state_hash()
    with pytest.raises(UsageError, match="Attempted to kill init"):
        session.run(command)
    assert not session.tasks[1].exit_state
    session.run("spawn other")
    assert session.state_hash() != state


def test_out_of_memory_is_the_oom_path_and_no_exception():
    small = Session(mem=8 << 20)
    small.run("spawn hog; mmap 0x10000000 4M rw; mmap 0x20000000 4M rw; write 0x10000000 0b 4M")
    result = small.run("write 0x20000000 0b 4M")[-1]
    assert result.reading.signal == "SIGKILL"
    assert result.reading.killed
    small.run("spawn next; mmap 0x10000000 1M rw populate; read 0x10000000")


def test_a_script_inside_the_shell_names_its_wrong_line(session, tmp_path):
    script = tmp_path / "lab.kemu"
    script.write_text("fork app as kid\nnonsense\nfork app as other\n")
    with pytest.raises(UsageError) as caught:
        session.run(f"run '{script}'")
    assert caught.value.what.startswith(f"{script}:2: no command")
    assert "kid" in session.names()
    assert "other" not in session.names()


def test_a_script_shows_each_result_as_soon_as_it_is_there_and_belongs_to_the_transcript(tmp_path):
    session = Session()
    script = tmp_path / "two.kemu"
    script.write_text("spawn app\nmmap app 0x10000 1p rw\n")
    coming = each(session, f"run '{script}'; ps")
    assert next(coming).command == "spawn app"
    assert len(session.timeline.records) == 1
    assert [result.command for result in coming] == ["mmap app 0x10000 1p rw", "ps"]
    assert [result.command for result in session.desk.shown] == [
        "spawn app",
        "mmap app 0x10000 1p rw",
        "ps",
    ]
    assert session.desk.depth == 0


def test_a_script_that_runs_itself_ends(session, tmp_path):
    script = tmp_path / "loop.kemu"
    script.write_text(f"run '{script}'\n")
    with pytest.raises(UsageError, match="files deep"):
        session.run(f"run '{script}'")


def test_an_alias_stands_for_a_command(session):
    session.run("alias look walk app")
    assert session.text("look 0x10000").startswith("walk app 0x10000")
    with pytest.raises(UsageError, match="'fork' is a command"):
        session.run("alias fork ps")


def test_aliases_that_mean_each_other_end(session):
    session.run("alias one two")
    session.run("alias two one")
    with pytest.raises(UsageError):
        session.run("one")


def test_a_task_runs_on_the_cpu_that_was_chosen(session):
    session.run("on 1 read app 0x10000")
    assert session.tasks[3].cpu == 1
    session.run("read app 0x10000")
    assert session.tasks[3].cpu == 0
    session.run("setcpu app 1; read app 0x10000; fork app as kid; read kid 0x10000")
    assert session.tasks[3].cpu == 1
    assert session.tasks[4].cpu == 1


def test_a_setting_belongs_to_the_machine_and_to_its_moment(session):
    session.run("set lru_batch on")
    assert session.settings()["lru_batch"] is True
    session.run("goto 0")
    assert session.settings()["lru_batch"] is False


def test_the_context_says_what_a_command_changed(session):
    assert "pfn" in session.text("fork app as kid; write kid 0x10000 8; context")
    from kemu.commands.context import change_of

    first, last = session.last_command()
    short = change_of(session, "write", first, last, "short")
    kinds = {change.kind for change in short.difference.changes}
    assert {"pte", "frame"} <= kinds <= {"pte", "frame", "mm", "vma", "task"}


def test_aliases_and_formats_work_behind_on_and_are_kept_as_what_they_mean(session):
    session.run("alias look print/x")
    assert session.text("on 1 look 12288") == "$1 = 0x3000"
    assert session.text("look 12288") == "$2 = 0x3000"
    session.run("alias put write app 0x10000; on 1 put 9")
    assert session.timeline.records[-1].text == "on 1 write app 0x10000 9"

"""A planted mutant is part of the history: going back unplants it, another future is right, save
and restore keep it."""

from kemu.commands.run import run
from kemu.experiment.session import Session

FORK = "spawn app; mmap app 0x10000 1p rw; write app 0x10000 1; fork app as kid"


def broken(session):
    return run(session, "verify")[-1].status == 3


def test_before_the_planting_the_kernel_is_right_and_behind_it_wrong():
    session = Session()
    run(
        session,
        "spawn app; mmap app 0x10000 1p rw; write app 0x10000 1; mark before; mutant plant "
        "fork_forgets_wrprotect",
    )
    run(session, "fork app as kid; mark behind")
    assert session.planted == "fork_forgets_wrprotect"
    assert broken(session)
    run(session, "goto before")
    assert session.planted == ""
    assert run(session, "mutant reveal")[0].status != 0
    run(session, "goto behind")
    assert session.planted == "fork_forgets_wrprotect"
    run(session, "goto before; fork app as other")
    assert not broken(session)
    assert len(session.timelines) == 2


def test_undo_takes_a_planting_back():
    session = Session()
    run(session, "mutant plant 3; undo")
    assert session.planted == ""
    run(session, "goto 1")
    assert session.planted


def test_what_did_not_go_well_leaves_the_planting_as_it_was():
    session = Session()
    run(
        session,
        "mutant plant exit_forgets_page_tables; spawn app; mmap app 0x10000 1p rw; write app "
        "0x10000 1",
    )
    assert "stopped itself" in run(session, "exit app; schedule init")[-1].error.what
    assert session.planted == "exit_forgets_page_tables"


def test_save_and_restore_keep_it(tmp_path):
    session, other = Session(), Session()
    assert all(
        r.status == 0
        for r in run(session, f"mutant plant fork_forgets_wrprotect; {FORK}; save {tmp_path}/s")
    )
    run(other, f"restore {tmp_path}/s")
    assert other.planted == "fork_forgets_wrprotect"
    assert broken(other)
    assert other.state_hash() == session.state_hash()


def test_the_journal_does_not_tell_which():
    session = Session()
    run(session, "mutant plant 3")
    shown = str(run(session, "trace")[0].reading)
    assert "planted" in shown
    assert session.planted not in shown

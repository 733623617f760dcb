"""Timelines, sub-steps of rows, saved experiments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kemu.api import Session
from kemu.commands.keeping import TRANSCRIPT
from kemu.debugger.rehearse import perform
from kemu.errors import UsageError
from kemu.kernel.mm.rows import bulk

START = "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; fork app as kid"


def test_switching_there_and_back_ends_in_the_same_state():
    session = Session()
    session.run(START + "; write app 0x10000 8")
    one = session.state_hash()
    session.run("undo; write kid 0x10000 9")
    two = session.state_hash()
    assert one != two
    session.run("switch 1")
    assert session.state_hash() == one
    session.run("switch 2")
    assert session.state_hash() == two
    assert [row.commands for row in session.reading("timelines").rows] == [5, 5]


def test_two_timelines_differ_in_who_copied():
    session = Session()
    session.run(START + "; write app 0x10000 8; undo; write kid 0x10000 9")
    before = (session.state_hash(), session.now)
    whats = {change.what for change in session.reading("diff timeline 1").changes}
    assert {"pte app 0x10000", "pte kid 0x10000"} <= whats
    assert (session.state_hash(), session.now) == before
    with pytest.raises(UsageError, match="no timeline 5"):
        session.run("diff timeline 5")


def test_a_rehearsal_leaves_no_trace():
    session = Session()
    session.run(START + "; write kid 0x10000 9")
    before = (
        session.state_hash(),
        session.end,
        session.now,
        session.names(),
        session.timeline.records,
    )
    for record in session.timeline.records:
        with session.beside(record.first) as scratch:
            perform(session, record)
            scratch.catch_up()
            assert len(scratch) == record.last - record.first
    assert (
        session.state_hash(),
        session.end,
        session.now,
        session.names(),
        session.timeline.records,
    ) == before


def test_the_state_after_a_row_is_that_after_its_sub_steps():
    session = Session()
    session.run("spawn app; mmap app 0x200000 600p rw populate; fork app as kid")
    record = session.timeline.records[-1]
    after = session.state_hash()
    with session.beside(record.first):
        kept, bulk.enabled = bulk.enabled, False
        try:
            perform(session, record)
        finally:
            bulk.enabled = kept
        assert session.kernel.state_hash() == after


def test_a_row_is_shown_entry_by_entry():
    session = Session()
    session.run("spawn app; mmap app 0x200000 70p rw populate; fork app as kid")
    before = session.state_hash()
    reading = session.reading("expand")
    made = [event for event in reading.events if event.what.startswith("pte kid")]
    assert len(made) == 70
    assert [event.number for event in reading.events] == list(range(1, len(reading.events) + 1))
    assert session.state_hash() == before
    assert session.text("expand").startswith(f"#{reading.number}.1")


def test_a_saved_experiment_comes_back_to_the_same_state(tmp_path):
    path = tmp_path / "one.kemu"
    session = Session()
    session.run(START + "; mark here1; on 1 write kid 0x10000 9; fork app; use kid")
    session.run(f"save '{path}'")
    other = Session()
    assert "the state matches the saved one" in other.text(f"restore '{path}'")
    assert other.state_hash() == session.state_hash()
    assert (other.marks, other.names(), other.current_pid) == (
        session.marks,
        session.names(),
        session.current_pid,
    )
    assert "spawn app\n" in path.read_text()


def test_a_saved_experiment_that_was_edited_is_noticed(tmp_path):
    path = tmp_path / "one.kemu"
    session = Session()
    session.run(START + f"; save '{path}'")
    path.write_text(path.read_text().replace("0x10000 7", "0x10000 6"))
    with pytest.raises(UsageError, match="ended in a different state"):
        Session().run(f"restore '{path}'")
    with pytest.raises(UsageError, match="needs a different machine"):
        Session(mem=32 << 20).run(f"restore '{path}'")


def test_a_transcript_has_commands_and_what_they_showed(tmp_path):
    session = Session()
    session.run("spawn app; ps")
    assert session.reading("transcript").lines[:2] == ("> spawn app", "spawn -> 3")
    session.run(f"transcript '{tmp_path / 'log'}'")
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[:4] == [TRANSCRIPT, "> spawn app", "spawn -> 3", "> ps"]


@pytest.mark.parametrize("line", ["spawn app", "ps", "goto 0", "print 3p"])
def test_py_prints_a_call_that_does_the_same(line):
    code = "\n".join(Session().reading(f"{line} --py").lines)
    code += "\nprint(kemu.state_hash())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    other = Session()
    other.run(line)
    assert done.stdout.strip() == other.state_hash()


def test_a_reading_shows_itself_in_a_notebook():
    bundle = Session().reading("ps")._repr_mimebundle_()
    assert bundle["text/plain"].startswith("PID")
    assert bundle["application/json"]["tasks"]
    assert set(Session().reading("ps")._repr_mimebundle_(include={"text/plain"})) == {"text/plain"}


@pytest.mark.parametrize("word", ["save", "transcript"])
def test_only_a_file_is_ever_replaced(word, tmp_path):
    before = Path(os.devnull).stat()
    for target in (os.devnull, str(tmp_path)):
        with pytest.raises(UsageError, match="is not a file"):
            Session().run(f"{word} '{target}'")
    assert Path(os.devnull).stat().st_ino == before.st_ino
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- a restore that fails

BEFORE = (
    "spawn app; mmap app 0x10000 2p rw; write app 0x10000 1; mark wrote; fork app as kid; undo; "
    "write app 0x11000 2; "
    "print 41 + 1; watch app.rss; display app.rss; alias look walk app; use app; write app 0 1; "
    "back 3"
)


def all_of(session):
    """What a person can see of a session, and the whole state of the machine at three moments."""
    now, hashes = session.now, []
    for event in (0, session.end // 2, session.end):
        session.goto(event)
        hashes.append(session.state_hash())
    session.goto(now)
    lines = [
        (line.number, line.parent, line.branched, tuple(line.records)) for line in session.timelines
    ]
    settings = (
        session.desk.context,
        session.desk.granularity,
        dict(session.desk.aliases),
        dict(session.desk.preferences),
        session.debugger.verifying,
    )
    kept = (
        list(session.debugger.values),
        session.debugger.last,
        list(session.debugger.stops),
        dict(session.debugger.displays),
        dict(session.debugger.given),
    )
    names = (
        session.names(),
        session.marks.copy(),
        session.current_pid,
        session.known.cpu,
        session.desk.depth,
        list(session.failures),
    )
    return (
        now,
        session.end,
        hashes,
        lines,
        session.timeline.number,
        settings,
        kept,
        names,
        session.state_hash(),
    )


GOOD = (
    "spawn other\nmmap other 0x50000 1p rw\nmark there\nset granularity function\nset aslr "
    "7\nalias look ps\n"
    "display other.rss\n"
)
FAILING = {
    "a line that cannot be read": GOOD + "mmap other 3q rw\n",
    "no such task": GOOD + "write nobody 0x10000 1\n",
    "another state": GOOD + "# state 123\n",
    "the end of init": GOOD + "use init\nexit init 0\n",
    "another timeline": GOOD + "goto 3\nswitch 99\n",
    "over to another timeline": GOOD + "switch 1\nundo\nspawn third\nnothing\n",
}


@pytest.mark.parametrize("text", FAILING.values(), ids=FAILING)
@pytest.mark.parametrize("before", [BEFORE, BEFORE + "; goto end", "ps; alias a ps"])
def test_a_restore_that_fails_leaves_everything_as_it_was(tmp_path, text, before):
    path = tmp_path / "bad.kemu"
    path.write_text(text)
    session = Session()
    session.run(before)
    was = all_of(session)
    with pytest.raises(UsageError, match=r"bad\.kemu"):
        session.run(f"restore '{path}'")
    assert all_of(session) == was
    session.goto(session.end)
    session.run("spawn next; mmap next 0x10000 1p rw; write next 0x10000 1; verify")


def test_a_restore_that_ctrl_c_ends_leaves_everything_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "long.kemu"
    path.write_text(GOOD + "fork other\nspawn last\n")
    session = Session()
    session.run(BEFORE)
    was = all_of(session)
    real = session.performer.spawn
    monkeypatch.setattr(
        session.performer, "spawn", lambda name: _pressed() if name == "last" else real(name)
    )
    with pytest.raises(KeyboardInterrupt):
        session.run(f"restore '{path}'")
    assert all_of(session) == was


def _pressed():
    raise KeyboardInterrupt


def test_a_restore_that_goes_well_is_a_timeline_beside_the_old_ones(tmp_path):
    path = tmp_path / "good.kemu"
    path.write_text(GOOD)
    session = Session()
    session.run(BEFORE)
    lines = len(session.timelines)
    session.run(f"restore '{path}'")
    assert len(session.timelines) == lines + 1
    assert [record.text for record in session.timeline.records][:2] == [
        "spawn other",
        "mmap other 0x50000 1p rw",
    ]
    assert (set(session.marks), session.desk.aliases["look"], session.desk.granularity) == (
        {"there"},
        "ps",
        "function",
    )
    session.run("switch 1")
    assert {"app", "kid"} <= set(session.names())


@pytest.mark.parametrize("line", ["exit init 0", "mmap app 0x90000 1p rw"])
def test_a_change_in_the_past_that_is_taken_back_leaves_the_future_alone(monkeypatch, line):
    session = Session()
    session.run(BEFORE.removesuffix("; back 3") + "; goto wrote")
    was = all_of(session)
    if line.startswith("mmap"):
        monkeypatch.setattr(session.performer, "syscall", lambda *_, **__: _pressed())
    with pytest.raises((UsageError, KeyboardInterrupt)):
        session.run(line)
    monkeypatch.undo()
    assert all_of(session) == was
    session.run("goto end; verify; spawn next")
    assert len(session.timelines) == 2
    assert "sys_mmap" in session.text("calls 113 126") or "ksys_mmap_pgoff" in session.text(
        "calls 113 126"
    )

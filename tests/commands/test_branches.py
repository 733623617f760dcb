"""Timelines, sub-steps of rows, saved experiments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kemu.api import Session
from kemu.commands.rehearse import perform, rehearsal
from kemu.errors import UsageError
from kemu.kernel.fork_row import row_copy

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
    with pytest.raises(UsageError, match="there is no 5"):
        session.run("diff timeline 5")


def test_a_rehearsal_leaves_no_trace():
    session = Session()
    session.run(START + "; write kid 0x10000 9")
    before = (session.state_hash(), session.end, session.now, session.names(), list(session.timeline.records))
    for record in session.timeline.records:
        with rehearsal(session, record) as scratch:
            perform(session, record)
            scratch.catch_up()
            assert len(scratch) == record.last - record.first
    assert (session.state_hash(), session.end, session.now, session.names(), session.timeline.records) == before


def test_the_state_after_a_row_is_that_after_its_sub_steps():
    session = Session()
    session.run("spawn app; mmap app 0x200000 600p rw populate; fork app as kid")
    record = session.timeline.records[-1]
    after = session.state_hash()
    with rehearsal(session, record):
        kept, row_copy.enabled = row_copy.enabled, False
        try:
            perform(session, record)
        finally:
            row_copy.enabled = kept
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
    assert "the state is the saved one" in other.text(f"restore '{path}'")
    assert other.state_hash() == session.state_hash()
    assert (other.marks, other.names(), other.current_pid) == (session.marks, session.names(), session.current_pid)
    assert "spawn app\n" in path.read_text()


def test_a_saved_experiment_that_was_edited_is_noticed(tmp_path):
    path = tmp_path / "one.kemu"
    session = Session()
    session.run(START + f"; save '{path}'")
    path.write_text(path.read_text().replace("0x10000 7", "0x10000 6"))
    with pytest.raises(UsageError, match="came to another state"):
        Session().run(f"restore '{path}'")
    with pytest.raises(UsageError, match="needs another machine"):
        Session(mem=32 << 20).run(f"restore '{path}'")


def test_a_transcript_has_commands_and_what_they_showed(tmp_path):
    session = Session()
    session.run("spawn app; ps")
    assert session.reading("transcript").lines[:2] == ("> spawn app", "spawn -> 3")
    session.run(f"transcript '{tmp_path / 'log'}'")
    assert (tmp_path / "log").read_text().startswith("> spawn app\nspawn -> 3\n> ps\n")


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
        with pytest.raises(UsageError, match="is no file"):
            Session().run(f"{word} '{target}'")
    assert Path(os.devnull).stat().st_ino == before.st_ino
    assert list(tmp_path.iterdir()) == []

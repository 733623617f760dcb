"""What a person keeps between runs: the file they write, and the aliases that are written for
them."""

from __future__ import annotations

import pytest

from kemu.api import Session
from kemu.commands.settings import preference
from kemu.debugger.sections import sections
from kemu.front.terminal.config import Config


@pytest.fixture
def session():
    return Session()


def config_of(folder, text):
    (folder / "config").write_text(text)
    return Config(folder)


def test_the_file_sets_what_is_the_shells(session, tmp_path):
    made = config_of(
        tmp_path,
        "# mine\n\nset paging off\nalias look walk app 0x10000\ncontext short changes\nset verify "
        "on\n",
    )
    made.load(session)
    assert made.warnings == []
    assert preference(session, "paging") == "off"
    assert session.desk.aliases == {"look": "walk app 0x10000"}
    assert sections(session) == {"changes"}
    assert session.debugger.verifying
    assert (session.end, session.timeline.records, session.desk.shown) == (0, (), [])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("spawn app", "only alias, context, display, set, unalias may be used here"),
        ("set lru_batch on", "lru_batch belongs to the machine"),
        ("set aslr 7", "aslr belongs to the machine"),
        ("set paging off; spawn app", "one per line"),
        ("set paging maybe", "paging: expected on or off"),
        ("alias look spwan", ""),
        ("set", "setting: missing"),
        ("alias 'open", "never closed"),
        ("\x00\x1b[2J", "only alias"),
    ],
)
def test_a_line_that_cannot_be_is_a_warning_with_its_place(session, tmp_path, line, why):
    made = config_of(tmp_path, f"set color never\n{line}\nset repeat off\n")
    made.load(session)
    assert [
        warning
        for warning in made.warnings
        if f"{tmp_path / 'config'}:2: " in warning and why in warning
    ] == made.warnings
    assert bool(made.warnings) is bool(why)
    assert (preference(session, "color"), preference(session, "repeat")) == ("never", "off")
    assert session.end == 0


def test_aliases_are_kept_for_the_next_time(session, tmp_path):
    made = Config(tmp_path / "new")
    made.load(session)
    assert made.keep(session) == ""
    assert not (tmp_path / "new").exists()
    session.run("alias look walk app 0x10000; alias a ps")
    assert made.keep(session) == ""
    again = Session()
    Config(tmp_path / "new").load(again)
    assert again.desk.aliases == session.desk.aliases
    session.run("unalias a")
    made.keep(session)
    last = Session()
    Config(tmp_path / "new").load(last)
    assert last.desk.aliases == {"look": "walk app 0x10000"}


def test_a_folder_that_cannot_be_written_is_one_warning(session, tmp_path):
    (tmp_path / "file").write_text("")
    made = Config(tmp_path / "file")
    made.load(session)
    session.run("alias a ps")
    assert made.keep(session).startswith("warning: aliases are not kept: ")
    assert made.keep(session) == ""


def test_a_file_that_cannot_be_read_is_a_warning(session, tmp_path):
    (tmp_path / "config").mkdir()
    made = Config(tmp_path)
    made.load(session)
    assert len(made.warnings) == 1
    assert "cannot be read" in made.warnings[0]


def test_a_file_of_noise_is_many_warnings_and_no_more(session, tmp_path):
    (tmp_path / "config").write_bytes(bytes(range(256)) * 40)
    made = Config(tmp_path)
    made.load(session)
    assert made.warnings
    assert session.end == 0

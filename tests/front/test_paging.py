"""Long output at a terminal goes through a pager; short output never does, and nothing does
elsewhere."""

from __future__ import annotations

import io
import sys

import pytest

from kemu.api import Session
from kemu.front.terminal import paging
from kemu.front.terminal.output import TextOutput
from kemu.views.style import PLAIN

LONG = "\n".join(f"line {number}" for number in range(100))


class Screen(io.StringIO):
    """A terminal of 24 rows, as far as an output asks."""

    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def paged(monkeypatch):
    """What was shown by the pager, and what was printed."""
    seen = []
    monkeypatch.setattr(paging, "show_paged", lambda text, _out: seen.append(text) or "")
    output = TextOutput(Screen(), io.StringIO(), PLAIN)
    output.paged = True
    return output, seen


def run(output, session, *lines):
    for line in lines:
        for result in session.run(line):
            output.show(result, session, "")


def test_long_output_is_paged_and_short_output_is_printed(paged):
    output, seen = paged
    run(output, Session(), "spawn app", "ps", "trace 0 end")
    assert len(seen) == 1
    assert "switch_mm_irqs_off" in seen[0]
    assert "kthreadd" in output.out.getvalue()


def test_paging_can_be_switched_off(paged):
    output, seen = paged
    run(output, Session(), "set paging off", "spawn app", "trace 0 end")
    assert not seen
    assert "switch_mm_irqs_off" in output.out.getvalue()


def test_what_is_no_terminal_is_never_paged(paged):
    output, seen = paged
    output.paged = False
    run(output, Session(), "spawn app", "trace 0 end")
    assert not seen


def test_the_pager_is_the_one_that_is_asked_for(monkeypatch):
    monkeypatch.setenv("PAGER", "most -w 'a b'")
    assert paging.pager() == ("most", "-w", "a b")
    monkeypatch.setenv("PAGER", "less")
    assert paging.pager() == paging.LESS
    monkeypatch.delenv("PAGER")
    assert paging.pager() == ()
    monkeypatch.setenv("PAGER", "  ")
    assert paging.pager() == ()


def test_a_command_typed_between_two_pages_is_run_next(monkeypatch):
    monkeypatch.delenv("PAGER", raising=False)
    screen = Screen()
    assert paging.show_paged(LONG, screen, ask=lambda _: "maps app") == "maps app"
    assert screen.getvalue().count("line") == paging.FALLBACK_ROWS - paging.KEPT


def test_lessons_and_commands_have_the_same_keys():
    for prompt in (paging.MORE, paging.MORE_OF_LESSON["en"]):
        assert "Enter" in prompt
        assert "q " in prompt
        assert "type on" in prompt


def test_the_text_reaches_the_pager(monkeypatch, tmp_path):
    kept = tmp_path / "seen"
    code = f"import sys; open({str(kept)!r}, 'w').write(sys.stdin.read())"
    monkeypatch.setenv("PAGER", f'{sys.executable} -c "{code}"')
    paging.show_paged(LONG, Screen())
    assert kept.read_text() == LONG + "\n"


@pytest.mark.parametrize("name", ["/no/such/pager", "'unclosed"])
def test_a_pager_that_cannot_be_used_is_a_warning_and_the_text_is_shown(monkeypatch, capsys, name):
    monkeypatch.setenv("PAGER", name)
    screen = Screen()
    paging.show_paged(LONG, screen, ask=lambda _: "")
    assert screen.getvalue() == LONG + "\n"
    assert "warning: the pager cannot be used" in capsys.readouterr().err


def test_a_pager_that_reads_nothing_is_no_trouble(monkeypatch):
    monkeypatch.setenv("PAGER", f"{sys.executable} -c pass")
    screen = Screen()
    paging.show_paged("x" * 500_000, screen)
    assert screen.getvalue() == ""


def test_without_any_pager_it_is_a_page_at_a_time(monkeypatch):
    monkeypatch.setattr(paging, "pager", lambda: ())
    screen, answers = Screen(), iter(["", "", "q"])
    paging.show_paged(LONG, screen, ask=lambda _: next(answers))
    assert screen.getvalue().count("\n") == 3 * (paging.FALLBACK_ROWS - paging.KEPT)

    def leave(_):
        raise KeyboardInterrupt

    screen = Screen()
    paging.show_paged(LONG, screen, ask=leave)
    assert screen.getvalue().count("line") == paging.FALLBACK_ROWS - paging.KEPT

"""The measurements of the report run and give every row; how fast is not asserted here."""

from tests.bench.report import measure, rows, session_of
from tests.report import browser as chromium


def test_every_row_is_there_with_a_number():
    found = measure(300, 1)
    assert found["events"] >= 300
    named = [row.cells() for row in rows(found, bars=True)]
    assert len(named) == (4 if chromium.find() else 2)
    assert all(any(letter.isdigit() for letter in cells[1]) for cells in named)
    assert named[1][-1] == "kept"


def test_a_missed_bar_is_shown():
    found = {"events": 2000, "make": 1.0, "bytes": 6_000_000, "open": 2500.0, "step": 1.0}
    assert [row.cells()[-1] for row in rows(found, bars=True)] == ["", "MISSED", "MISSED", ""]
    assert {row.cells()[-1] for row in rows(found, bars=False)} == {""}


def test_the_session_is_as_long_as_asked():
    assert 1000 <= session_of(1000).end < 1200

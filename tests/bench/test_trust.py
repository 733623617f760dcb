"""The measuring of trust measures what it says."""

from tests.bench.trust import machine, rows, scan


def test_the_rows_are_filled():
    assert scan(64, runs=1) > 0
    assert machine(examples=2) > 0


def test_the_table_has_the_two_bars():
    assert [row.bar for row in rows(64, examples=2)] == ["at most 300 ms", "at least 2,000"]

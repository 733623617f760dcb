"""The races are measured and give every row; how fast they are is not asserted."""

from kemu.races.cases import KERNEL_CASES
from tests.bench import races


def test_every_race_has_a_row_and_one_has_a_bar():
    rows = races.measure(bound=0, repeat=1)
    assert len(rows) == len(races.SMALL) + len(KERNEL_CASES) + len(races.kinds())
    assert all(seconds > 0 for _, seconds, _ in rows)
    assert [what.split()[1] for what, _, bar in rows if bar is not None] == ["cow-cow"]
    assert any("17,153,136 schedules" in what for what, _, _ in rows)

"""The wrong changes of a mutation run: each makes one difference, keeps the lines, and leaves texts
alone."""

import ast

import pytest

from tests.mutation import runner
from tests.mutation.changes import changed, changes
from tests.mutation.runner import all_changes

TEXT = '''\
"""Not this 1."""


def f(a, b=1):
    """Nor this 2."""
    if a < b and not a:
        g(a | 3)
    a += 1
    return a
'''


def test_the_changes_of_a_small_function():
    found = [change.what for change in changes("x.py", TEXT)]
    assert found == [
        "condition a < b and (not a) turned round",
        "a < b and (not a): Or",
        "not a is a in a < b and (not a)",
        "a < b: LtE",
        "a < b: GtE",
        "g(a | 3): missing",
        "a | 3: BitAnd",
        "3 is 4 in a | 3",
        "a += 1: missing",
        "a += 1: the other operator",
        "return a: returns None",
    ]


def test_each_change_differs_in_its_line_only_and_compiles():
    before = ast.unparse(ast.parse(TEXT)).split("\n")
    for change in changes("x.py", TEXT):
        tree = changed(TEXT, change.number)
        compile(tree, "x.py", "exec")
        after = ast.unparse(tree).split("\n")
        assert sum(x != y for x, y in zip(before, after, strict=True)) == 1, change


def test_the_kernel_has_enough_places():
    found = all_changes()
    assert len(found) > 800
    assert len({change.path for change in found}) == 7


@pytest.mark.parametrize("what", ["cover", "run"])
def test_ctrl_c_ends_a_run_with_130_and_without_half_a_result(monkeypatch, tmp_path, what):
    monkeypatch.setattr(runner, "OUT", tmp_path)
    monkeypatch.setattr(runner, "by_line", lambda: ({}, {}))
    monkeypatch.setattr(pytest, "main", lambda *_, **__: pytest.ExitCode.INTERRUPTED)
    monkeypatch.chdir(runner.ROOT)
    monkeypatch.setenv("CI", "1")
    with pytest.raises(SystemExit) as ended:
        runner.main([what, "--number", "3"])
    assert ended.value.code == 130
    assert not list(tmp_path.iterdir())


def test_a_change_that_ctrl_c_broke_off_counts_as_nothing(monkeypatch):
    def pressed(_change):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "plant", pressed)
    with pytest.raises(KeyboardInterrupt):
        runner.try_change(all_changes()[0], [], 10)

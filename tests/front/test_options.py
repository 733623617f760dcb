"""The words of the command line."""

from __future__ import annotations

import pytest

from kemu.errors import UsageError
from kemu.front.cli.main import USAGE, main, parse


def test_options_may_stand_anywhere():
    options = parse(
        ["--json", "-c", "ps", "-c", "tree", "--keep-going", "run", "a.kemu", "--mem", "128M", "-"]
    )
    assert options.commands == ["ps", "tree"]
    assert options.scripts == ["a.kemu", "-"]
    assert options.json
    assert options.keep_going
    assert options.mem == 128 << 20


def test_a_value_may_be_joined_by_an_equals_sign():
    options = parse(["--mem=1G", "--cpus=4", "--color=never", "--geometry=sv39"])
    assert (options.mem, options.cpus, options.color, options.geometry) == (
        1 << 30,
        4,
        "never",
        "sv39",
    )


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["-c"], "expected a value after -c"),
        (["run"], "run: expected a file name"),
        (["run", "--json"], "run: expected a file name"),
        (["--mem", "lots"], "--mem: expected a size"),
        (["--mem", "1K"], "--mem: 1K is too small"),
        (["--mem", "9" * 500], "--mem: expected a size"),
        (["--cpus", "0"], "--cpus: expected a number"),
        (["--color", "red"], "--color: expected auto"),
        (["--jsn"], "'--jsn' is neither"),
        (["fork"], "'fork' is neither"),
        (["-c", "ps", "doctor"], "-c has no effect with doctor"),
        (["demo", "run", "a.kemu"], "run has no effect with demo"),
        (["-i", "lesson", "list"], "-i has no effect with lesson"),
        (["--json", "doctor"], "--json has no effect with doctor"),
    ],
)
def test_a_wrong_word_is_a_usage_error(words, what, capsys):
    with pytest.raises(UsageError) as caught:
        parse(words)
    assert caught.value.what.startswith(what)
    assert main(words) == 2
    shown = capsys.readouterr()
    assert not shown.out
    assert shown.err.count("\n") == 2


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["lesson", "list", "--json"], "lesson list: unexpected '--json'"),
        (["lesson", "student", "ada", "lovelace"], "lesson student: unexpected 'lovelace'"),
        (["lesson", "start", "1", "2"], "lesson start: expected one lesson"),
        (["report", "none.kemu", "-o", "x.html"], "script: cannot read 'none.kemu'"),
    ],
)
def test_a_word_too_many_or_a_file_that_is_not_there_is_a_usage_error(
    words, what, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    shown = capsys.readouterr()
    assert not shown.out
    assert shown.err.startswith(f"kemu: {what}")
    assert shown.err.count("\n") == 2


def test_the_nearest_option_is_suggested():
    with pytest.raises(UsageError) as caught:
        parse(["--keepgoing"])
    assert caught.value.hint == "did you mean '--keep-going'?"


def test_help_fits_on_a_screen(capsys):
    assert main(["--help"]) == 0
    assert capsys.readouterr().out == USAGE
    assert max(map(len, USAGE.split("\n"))) <= 100
    assert USAGE.count("\n") <= 30


def test_the_version_is_the_one_of_the_package(capsys):
    from kemu import __version__

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"kemu {__version__}\n"

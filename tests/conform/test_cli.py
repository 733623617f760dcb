"""`kemu conform`: what it prints, its exit codes, and the shell at the step of a difference. Each
test starts a process."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import attrs
import pytest

from kemu import Session
from kemu.conform.judge import emitted, judge, judge_all
from kemu.conform.reopen import open_program
from kemu.front.cli import conform
from kemu.front.cli.main import main
from kemu.front.terminal.progress import Progress
from kemu.language.result import INTERRUPTED
from tests.conform.recorded import DATA, scenarios

NAME = "anon_each_page_faults_once"


def kemu(*words, stdin=""):
    command = [sys.executable, "-m", "kemu", *words]
    environment = {**os.environ, "PYTHONUTF8": "1"}
    return subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )


def recording(program):
    data = {
        "name": program.name,
        "ops": [dict(op.fields) for op in program.ops],
        "steps": list(program.steps),
    }
    return data | ({"window": program.window} if program.window else {})


def falsified(program):
    """The program as if Linux had taken a fault more in step 1, and another result in the last
    one."""
    steps = json.loads(json.dumps(list(program.steps)))
    steps[1]["res"]["flt"] = [2, 0]
    steps[-1]["res"]["flt"] = [7, 7]
    return attrs.evolve(program, name="falsified", steps=tuple(steps))


@pytest.fixture
def folder(tmp_path):
    """A folder with a program that agrees and, one level down, two that do not, packed."""
    (tmp_path / "good.json").write_text(json.dumps(recording(scenarios()[NAME])))
    (tmp_path / "more").mkdir()
    line = json.dumps(recording(falsified(scenarios()[NAME])))
    (tmp_path / "more" / "bad.jsonl.gz").write_bytes(gzip.compress(f"{line}\n{line}\n".encode()))
    return tmp_path


def test_agreement_is_one_line_and_exit_0(folder):
    done = kemu("conform", str(folder / "good.json"))
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "1 program, 13 operations: 1 agree, 0 differ\n",
        "",
    )


def test_the_first_difference_is_shown_with_both_sides_and_the_step(folder):
    done = kemu("conform", str(folder))
    block = "falsified: step 1, A.read page=0 off=0\n  result.flt\n    Linux  [2, 0]\n    kemu   [1, 0]\n"
    assert done.returncode == 3
    assert done.stdout == f"{block}{block}3 programs, 39 operations: 1 agree, 2 differ\n"


def test_all_shows_every_difference_and_several_processes_the_same(folder):
    done = kemu("conform", "--all", "--jobs", "2", str(folder))
    assert done.returncode == 3
    assert done.stdout.count("falsified: step 1,") == 2
    assert done.stdout.count("falsified: step 12,") == 2


def test_json_is_one_object_a_program_and_the_sums(folder):
    done = kemu("conform", "--json", str(folder))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [len(line["differences"]) for line in lines[:-1]] == [0, 1, 1]
    assert lines[1]["differences"][0]["linux"] == "[2, 0]"
    assert lines[-1] == {"programs": 3, "operations": 39, "agree": 1, "differ": 2, "stopped": 0}


def test_what_is_emitted_is_a_recording_that_agrees(tmp_path):
    file = tmp_path / "own.json"
    file.write_text(json.dumps(recording(falsified(scenarios()[NAME]))))
    done = kemu("conform", "--emit", str(file))
    again = tmp_path / "again.json"
    again.write_text(done.stdout)
    assert kemu("conform", str(again)).returncode == 0
    assert emitted(scenarios()[NAME])["q"] == scenarios()[NAME].question


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"name": "x", "ops": [{"op": "zap"}]}', "operation 0: unknown operation 'zap'"),
        (
            '{"name": "x", "ops": [{"op": "read", "page": "far"}]}',
            "operation 0 (read): field 'page' must be",
        ),
        ("{", "line 1, column 2: not JSON"),
    ],
)
def test_a_malformed_program_is_one_line_and_exit_2(tmp_path, text, said):
    file = tmp_path / "bad.json"
    file.write_text(text)
    for words in ([], ["--emit"], ["--open"]):
        done = kemu("conform", *words, str(file))
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.startswith(f"kemu conform: {file}: {said}")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words", [[], ["--jobs", "0", "x"], ["--jobs"], ["--emit"], ["--nonsense", "x"], ["/nowhere"]]
)
def test_words_that_mean_nothing_are_exit_2(words):
    done = kemu("conform", *words)
    assert done.returncode == 2
    assert done.stdout == ""


def test_the_shell_opens_at_the_step_of_the_first_difference(folder):
    done = kemu(
        "conform",
        "--open",
        str(folder / "more" / "bad.jsonl.gz"),
        stdin="print A.minor\nback\nprint A.minor\n",
    )
    assert "step 1 (A.read page=0 off=0): result.flt: Linux [2, 0], kemu [1, 0]" in done.stderr
    assert "# 1: A.read page=0 off=0" in done.stdout
    assert done.returncode == 0


def test_an_opened_program_is_the_one_that_was_compared():
    program = next(
        program
        for program in scenarios().values()
        if program.first("setcpu") < program.first("none")
    )
    opened = open_program(program)
    assert opened.difference is None
    assert opened.step == len(program.ops) - 1
    assert opened.session.timeline.records[1].text == f"# 0: {program.ops[0]}"
    names = opened.session.names()
    assert set(program.steps[-1]["live"]) <= set(names)
    state = opened.session.state_hash()
    opened.session.goto(0)
    opened.session.goto(opened.session.end)
    assert opened.session.state_hash() == state


def test_verdicts_are_the_same_on_several_processes():
    chosen = [program for _, program in sorted(scenarios().items())][:6]
    assert list(judge_all(chosen, jobs=2)) == [judge(program) for program in chosen]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_is_drawn_on_a_terminal_only_and_taken_away():
    for out, drawn in ((Terminal(), True), (io.StringIO(), False)):
        with Progress(out, 2) as progress:
            progress.step()
        assert ("1/2" in out.getvalue()) is drawn
        assert out.getvalue().endswith("\x1b[K") is drawn


def test_the_shell_compares_too_and_keeps_its_own_machine(folder):
    session = Session()
    session.run("spawn app; mmap app 0x10000 1p rw; write app 0x10000 7")
    state = session.state_hash()
    reading = session.reading(f"conform '{folder}' all")
    assert (reading.programs, reading.operations, reading.agree, reading.differ) == (3, 39, 1, 2)
    assert [row.step for row in reading.differences] == [1, 12, 1, 12]
    assert session.text(f"conform '{folder}'").endswith(
        "3 programs, 39 operations: 1 agree, 2 differ"
    )
    assert session.state_hash() == state


@pytest.mark.parametrize("word", ["host", "fuzz", "exec"])
def test_what_asks_the_host_has_words_of_its_own(word):
    done = kemu("conform", word, "--help" if word == "fuzz" else "/nowhere/at-all")
    assert done.returncode == (0 if word == "fuzz" else 2)
    assert "Traceback" not in done.stderr
    assert "conform fuzz" in done.stdout if word == "fuzz" else done.stderr


def test_ctrl_c_ends_a_long_comparison_at_once():
    command = [
        sys.executable,
        "-m",
        "kemu",
        "conform",
        "--jobs",
        "2",
        str(DATA / "random.jsonl.gz"),
    ]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        time.sleep(4)
        os.killpg(running.pid, signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    assert re.fullmatch(r"stopped(: \d+ of \d+ programs compared)?\n", errors)


def test_a_hostile_program_is_stopped_and_it_is_said(tmp_path):
    huge = {
        "op": "mmap",
        "page": 0,
        "len": 1 << 22,
        "prot": "rw",
        "flags": ["private", "anon", "populate"],
    }
    file = tmp_path / "huge.json"
    file.write_text(json.dumps({"name": "huge", "ops": [huge]}))
    done = kemu("conform", "--seconds", "1", str(file))
    assert (done.returncode, done.stderr) == (3, "")
    assert (
        done.stdout
        == "huge: stopped after 1 s\n1 program, 1 operation: 0 agree, 0 differ, 1 stopped: timed "
        "out\n"
    )
    for word in ("--emit", "--open"):
        done = kemu("conform", word, str(file), "--seconds=1")
        assert (done.returncode, done.stdout) == (2, "")
        assert "stopped after 1 s; raise the limit with --seconds" in done.stderr


def test_ctrl_c_says_how_many_programs_are_compared(monkeypatch, capsys):
    real = conform.judge_all

    def some(programs, *rest):
        yield from list(real(programs[:1], *rest))
        raise KeyboardInterrupt

    monkeypatch.setattr(conform, "judge_all", some)
    assert main(["conform", str(DATA)]) == INTERRUPTED
    shown = capsys.readouterr()
    assert "1 program" in shown.out
    assert "stopped: 1 of " in shown.err

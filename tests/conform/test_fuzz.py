"""Random programs: valid, bounded, and made smaller until only what differs is left."""

import io
import itertools
import json
import os
import signal
import subprocess
import sys
import time

import attrs
import hypothesis
import pytest

from kemu.conform import fuzz, strategies
from kemu.conform.compare import Difference
from kemu.conform.fuzz import Finding, Tally, as_json, hunt, signature
from kemu.conform.host import HostRun, run_on_host
from kemu.conform.program import load_programs, parse_program
from kemu.conform.replay import replay
from kemu.conform.shrink import smallest
from kemu.errors import HostUnavailable, UsageError
from kemu.language.result import INTERRUPTED
from tests.conform.hosted import needs_host

MMAP = {"op": "mmap", "page": 0, "len": 2, "prot": "rw-", "flags": ["private", "anon", "fixed"]}
READ = {"op": "read", "page": 0}


def program(*ops):
    return parse_program({"name": "made here", "ops": list(ops)}, "made here")


@hypothesis.seed(1)
@hypothesis.settings(
    max_examples=40,
    database=None,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)
@hypothesis.given(made=strategies.programs())
def test_every_program_is_valid_and_kemu_can_run_it(made):
    assert len({op.p for op in made.ops}) <= strategies.MOST_PROCESSES
    assert parse_program(json.loads(json.dumps(as_json(made))), "again").ops == made.ops
    run = replay(made)
    assert len(run.steps) == len(made.ops)


def test_a_wish_that_means_nothing_where_it_stands_is_left_out():
    wishes = [
        ("pread", {"who": 0, "file": 3, "foff": 0, "off": 0, "n": 1}),
        ("exit", {"who": 0}),
        ("fork", {"who": 5}),
        ("write", {"who": 1, "page": 3, "off": 0, "snap": True, "byte": 7}),
    ]
    assert strategies.settle(wishes) == [
        {"op": "fork", "p": "A", "child": "B"},
        {"op": "write", "p": "B", "page": 3, "byte": 7},
    ]


def test_code_is_run_only_where_a_ret_was_put():
    ops = strategies.settle([("exec", {"who": 0, "page": 2, "off": 100, "snap": False})])
    assert [(op["op"], op["page"], op.get("byte")) for op in ops] == [
        ("mmap", 2, None),
        ("write", 2, 0xC3),
        ("exec", 2, None),
    ]


@needs_host
def test_a_difference_shrinks_to_what_is_needed_for_it(monkeypatch):
    """A kemu that reads wrong bytes: the smallest program that shows it maps, and reads."""

    def wrong(one):
        run = replay(one)
        steps = [
            {**step, "res": {**step["res"], "byte": 99}} if "byte" in step["res"] else step
            for step in run.steps
        ]
        return attrs.evolve(run, steps=tuple(steps))

    monkeypatch.setattr(fuzz, "replay", wrong)
    tally = hunt(seed=5, count=30)
    (finding,) = tally.findings
    assert finding.signature == "read result.byte"
    assert [op.kind for op in finding.program.ops] == ["mmap", "read"]
    assert len(finding.program.steps) == len(finding.program.ops)
    assert finding.difference.endswith(
        f"result.byte: Linux {finding.program.steps[-1]['res']['byte']}, kemu 99"
    )


def test_a_program_is_made_as_small_as_its_difference_allows():
    flags = ["private", "anon", "fixed", "populate"]
    big = program(
        MMAP, {"op": "fork", "child": "B"}, {**MMAP, "p": "B", "page": 4, "len": 7, "prot": "r--", "flags": flags},
        {"op": "read", "p": "B", "page": 4, "off": 5}, {"op": "exit", "p": "B"},
    )  # fmt: skip
    least = smallest(
        big,
        lambda one: any(op.get("page") == 4 and "anon" in op.get("flags", ()) for op in one.ops),
    )
    assert [dict(op.fields) for op in least.ops] == [
        {"op": "mmap", "p": "A", "page": 4, "len": 1, "prot": "rw-", "flags": ["anon"]}
    ]


@needs_host
def test_a_crash_of_kemu_is_a_finding_too(monkeypatch):
    def crashing(one):
        if any(op.kind == "fork" for op in one.ops):
            raise ZeroDivisionError("made up")
        return replay(one)

    monkeypatch.setattr(fuzz, "replay", crashing)
    (finding,) = hunt(seed=5, count=30).findings
    assert finding.difference == "kemu failed: ZeroDivisionError in test_fuzz.py crashing: made up"
    assert [op.kind for op in finding.program.ops] == ["fork"]


@needs_host
def test_a_difference_of_a_known_kind_is_counted_only(monkeypatch):
    monkeypatch.setattr(fuzz, "_ask", lambda *_: fuzz._Asked(HostRun(()), "a kind", "it differs"))
    tally = hunt(seed=1, count=5, known=frozenset({"a kind"}))
    assert tally.tried > 0
    assert (tally.known, tally.findings) == (tally.tried, [])


@needs_host
def test_an_answer_that_does_not_come_twice_is_no_difference(monkeypatch):
    answers = itertools.cycle(["a kind", "a kind", "", ""])
    monkeypatch.setattr(fuzz, "_ask", lambda *_: fuzz._Asked(HostRun(()), next(answers)))
    tally = hunt(seed=1, count=5)
    assert tally.unsteady > 0
    assert not tally.findings


def test_the_kind_of_a_difference_has_no_numbers_of_processes_and_pages():
    write, advice = program(
        {"op": "write", "page": 3}, {"op": "madvise", "page": 0, "len": 1, "advice": "FREE"}
    ).ops
    assert signature(Difference(4, write, "B page 12 mapcount", 1, 2)) == "write page # mapcount"
    assert (
        signature(Difference(4, advice, "A VMA 0-3 smaps.Rss", 4, 8))
        == "madvise FREE VMA ## smaps.Rss"
    )
    assert (
        signature(Difference(4, write, "result.err", "EFAULT", "EINVAL"))
        == "write result.err: EFAULT / EINVAL"
    )


def test_of_two_findings_of_one_kind_the_smaller_stays():
    large, small = (Finding(program(*ops), "", "kind") for ops in ([MMAP, READ], [READ]))
    total = Tally()
    for finding in (large, small, large):
        fuzz._merge(total, Tally(tried=1, findings=[finding]))
    assert (total.tried, total.findings) == (3, [small])


@needs_host
def test_a_finding_is_written_as_a_recording(tmp_path):
    one = program(MMAP, READ)
    finding = Finding(attrs.evolve(one, steps=run_on_host(one).steps), "step 1: it differs", "kind")
    written = {}
    fuzz._write_new(tmp_path, 7, Tally(findings=[finding]), written)
    assert written == {"kind": str(tmp_path / "fuzz-7-0.json")}
    (again,) = load_programs(tmp_path / "fuzz-7-0.json")
    assert again.question == "step 1: it differs"
    assert [dict(op.fields) for op in again.ops] == [MMAP, READ]
    assert again.steps == finding.program.steps


@needs_host
def test_the_command_counts_and_gives_status_0(tmp_path):
    out, err = io.StringIO(), io.StringIO()
    status = fuzz.main(
        ["--seed", "3", "--count", "10", "--jobs", "1", "--out", str(tmp_path)], out, err
    )
    assert " programs, " in out.getvalue()
    assert status == (3 if list(tmp_path.iterdir()) else 0)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--jobs", "0"], "--jobs: expected a number from 1 to 256, got '0'"),
        (["--count", "-5"], "--count: expected a number from 1 to 1000000000, got '-5'"),
        (["--seed", "x"], "--seed: expected a number from 0 to"),
        (["--seconds", "3"], "unrecognized arguments: --seconds 3"),
    ],
)
def test_a_mistake_is_one_line(words, what):
    with pytest.raises(UsageError) as caught:
        fuzz.main(words)
    assert caught.value.what.startswith(f"conform fuzz: {what}")
    assert "\n" not in caught.value.what


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    err = io.StringIO()
    assert fuzz.main(["--out", str(tmp_path / "file" / "below")], io.StringIO(), err) == 2
    assert err.getvalue().startswith(
        f"conform fuzz: cannot write to '{tmp_path / 'file' / 'below'}': Not a directory"
    )
    assert err.getvalue().count("\n") == 1


def test_without_hypothesis_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setattr(fuzz, "find_spec", lambda _: None)
    with pytest.raises(
        HostUnavailable,
        match=r"random programs need Hypothesis: python -m pip install 'kemu\[fuzz\]'",
    ):
        fuzz.programs()


@needs_host
def test_ctrl_c_ends_the_hunt_with_what_was_found_so_far_and_no_traceback(tmp_path):
    """The whole group hears Ctrl-C, as at a terminal; the processes that hunt are in groups of
    their own."""
    command = [
        sys.executable,
        "-m",
        "kemu",
        "conform",
        "fuzz",
        "--seed",
        "3",
        "--count",
        "100000",
        "--jobs",
        "2",
    ]
    ends = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
        "start_new_session": True,
    }
    with subprocess.Popen([*command, "--out", str(tmp_path)], **ends) as hunting:
        time.sleep(3)
        os.killpg(hunting.pid, signal.SIGINT)
        out, errors = hunting.communicate(timeout=60)
    assert "Traceback" not in errors
    assert hunting.returncode == INTERRUPTED, errors
    assert "stopped" in errors
    assert " programs, " in out or errors.endswith("stopped\n")


@pytest.mark.parametrize("findings", [[], [Finding(program(MMAP), "they differ", "mmap")]])
def test_a_hunt_that_was_stopped_is_told_as_such_whatever_it_has_found(
    monkeypatch, tmp_path, findings
):
    out, err = io.StringIO(), io.StringIO()

    def stopped(_seed, _count, _jobs, progress):
        tally = Tally(tried=7, findings=findings, stopped=True)
        progress(tally)
        return tally

    monkeypatch.setattr(fuzz, "fuzz", stopped)
    assert fuzz.main(["--count", "9", "--out", str(tmp_path)], out, err) == INTERRUPTED
    assert err.getvalue().endswith("stopped: 7 of 9 programs were tried\n")
    assert out.getvalue().count("they differ") == len(findings)

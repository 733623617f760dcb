"""Mutation of kemu itself: how many small wrong changes of the kernel do its tests notice?

    python -m tests.mutation.runner cover                    which test runs which lines, and how long it takes
    python -m tests.mutation.runner run [--number 400] [--seed 5]
    python -m tests.mutation.runner report

``run`` draws a sample of changes (changes.py) of the files below and forks a process for each, in
which every kernel runs the changed function, as it runs the wrong kernels of kemu/races; no file is
touched.  The tests that reach the changed line run there, the quickest first, until one fails.
What is left is a survivor: either the change means nothing, which is to be argued, or a test is
missing.  Results are lines of JSON; a run that was broken off goes on where it stopped.

Why no ready-made tool: kemu swaps the code objects of its own functions (kemu/trace/frames.py),
which does not go together with tools that put a switch into each function, and tools that rewrite
files start everything afresh for each change.
"""

import __future__

import argparse
import ast
import importlib
import json
import math
import os
import random
import resource
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from types import CodeType

from tests.mutation.changes import Change, changed, changes

ROOT = Path(__file__).parents[2]
FILES = (
    "kernel/fork",
    "mm/fork_mm",
    "mm/fault",
    "mm/fault_missing",
    "mm/fault_wp",
    "mm/rmap",
    "mm/page_alloc",
)
TESTS = (
    "tests/kernel",
    "tests/golden",
    "tests/properties",
    "tests/testing",
    "tests/invariants",
    "tests/races/test_mutants.py",
)
OUT = Path(os.environ.get("KEMU_MUTATION", ROOT / ".mutation"))
SURVIVED, KILLED = "survived", "killed"
STOPPED = 130
"""The exit status after Ctrl-C, as everywhere in kemu."""
QUICK = 10
"""Seconds of tests (as long as they took while they were watched) that ``run`` gives to a
change."""


def paths():
    """The files that are changed, relative to the root."""
    return [f"kemu/kernel/{name}.py" for name in FILES]


def all_changes():
    """Every change of every file."""
    return [
        change
        for path in paths()
        for change in changes(path, (ROOT / path).read_text(encoding="utf-8"))
    ]


# ---------------------------------------------------------------- coverage


class Cover:
    """A pytest plugin: the lines of the files that each test runs, and its time in seconds."""

    def __init__(self):
        self.reached, self.took, self.lines, self.failed = {}, {}, set(), set()
        self.files = {str(ROOT / path): path for path in paths()}

    def trace(self, frame, event, _):
        return self.line if frame.f_code.co_filename in self.files else None

    def line(self, frame, event, _):
        self.lines.add((self.files[frame.f_code.co_filename], frame.f_lineno))
        return self.line

    def pytest_runtest_logstart(self, nodeid, location):
        self.lines = set()
        self.started = time.process_time()
        sys.settrace(self.trace)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_runtest_logfinish(self, nodeid, location):
        sys.settrace(None)
        if nodeid in self.failed:
            return
        self.took[nodeid] = time.process_time() - self.started
        self.reached[nodeid] = sorted(f"{path}:{line}" for path, line in self.lines)


def cover():
    """Run the tests once and write down what they reach."""
    plugin = Cover()
    run_tests("--maxfail=1000000", plugin=plugin)
    OUT.mkdir(exist_ok=True)
    (OUT / "cover.json").write_text(
        json.dumps({"took": plugin.took, "reached": plugin.reached}), encoding="utf-8"
    )
    say(
        f"{len(plugin.took)} tests, {sum(plugin.took.values()):.0f} s; left out, since they fail: "
        f"{sorted(plugin.failed)}"
    )


def run_tests(*more, plugin):
    """Run pytest on the tests; Ctrl-C, of which pytest only speaks, ends everything: half a result
    is none."""
    import pytest

    if pytest.main([*options(), *TESTS, *more], plugins=[plugin]) == pytest.ExitCode.INTERRUPTED:
        raise SystemExit(STOPPED)


def say(text):
    """A line for whoever runs this."""
    sys.stdout.write(text + "\n")


def options():
    """How pytest runs."""
    return [
        "-q",
        "-x",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "--hypothesis-seed=0",
        f"--rootdir={ROOT}",
    ]


def by_line():
    """ "path:line" -> the tests that run it, the quickest first; and the seconds of each test."""
    data = json.loads((OUT / "cover.json").read_text(encoding="utf-8"))
    found = {}
    for test in sorted(data["reached"], key=data["took"].get):
        for line in data["reached"][test]:
            found.setdefault(line, []).append(test)
    return found, data["took"]


# ---------------------------------------------------------------- one change


def code_of(change):
    """The function of the change, and its code with the change made."""
    tree = changed((ROOT / change.path).read_text(encoding="utf-8"), change.number)
    definition = next(
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == change.function
    )
    definition.decorator_list = []
    module = importlib.import_module(change.path.removesuffix(".py").replace("/", "."))
    alone = ast.Module([definition], [])
    compiled = compile(
        alone,
        str(ROOT / change.path),
        "exec",
        flags=__future__.annotations.compiler_flag,
        dont_inherit=True,
    )
    code = next(
        const
        for const in compiled.co_consts
        if isinstance(const, CodeType) and const.co_name == change.function
    )
    return getattr(module, change.function), code


def plant(change):
    """From now on every kernel of this process is the wrong one, whatever else it is."""
    from kemu.kernel.init import boot

    function, code = code_of(change)
    use = boot.use_bodies
    boot.use_bodies = lambda bodies: use({function: code, **bodies})


class Failures:
    """A pytest plugin: the first test that failed."""

    def __init__(self):
        self.first = ""

    def pytest_runtest_logreport(self, report):
        if report.failed and not self.first:
            self.first = report.nodeid


def try_change(change, items, seconds):
    """ "killed by NODE", "killed: SIGXCPU" (it did not end) or "survived": the tests run in a
    process of their own."""
    receive, send = os.pipe()
    pid = os.fork()
    if not pid:
        _child(change, items, int(seconds), send)
    os.close(send)
    with os.fdopen(receive) as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    if os.waitstatus_to_exitcode(status) == STOPPED:
        raise KeyboardInterrupt
    return (
        f"{KILLED}: {signal.Signals(os.WTERMSIG(status)).name}" if os.WIFSIGNALED(status) else said
    )


def _child(change, items, seconds, send):
    """Does not return."""
    out = os.open(os.devnull, os.O_WRONLY)
    os.dup2(out, 1)
    os.dup2(out, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 2))
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    said = SURVIVED
    try:
        plant(change)
        failures = Failures()
        items[0].config.pluginmanager.register(failures)
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if failures.first:
                said = f"{KILLED} by {failures.first}"
                break
    except KeyboardInterrupt:
        os._exit(STOPPED)
    except BaseException as error:  # noqa: BLE001  # whatever ends the tests has noticed
        said = f"{KILLED}: {type(error).__name__}"
    os.write(send, said.encode())
    os._exit(0)


def promising(change, tests, took, killers, budget):
    """The tests to run, first those that have killed a change of the same function, then the
    quickest, as many as fit into ``budget`` seconds."""
    first = [
        test
        for test, _ in killers.get((change.path, change.function), Counter()).most_common(4)
        if test in tests
    ]
    chosen, spent = [], 0.0
    for test in [*first, *(test for test in tests if test not in first)]:
        spent += took[test]
        if spent > budget and chosen:
            break
        chosen.append(test)
    return chosen


# ---------------------------------------------------------------- many


def run(number, seed):
    """Try a sample, each change with the quick tests that reach it; ``again`` gives the survivors
    all of them."""
    done = {(row["path"], row["number"]) for row in read_results()}
    sample = random.Random(seed).sample(all_changes(), number)
    _try_all([change for change in sample if (change.path, change.number) not in done], QUICK)


def again():
    """Try the survivors once more with every test that reaches them, as the tests are now (after
    ``cover``)."""
    left = [row for row in read_results() if row["said"].startswith(SURVIVED)]
    _try_all([Change(*(row[field] for field in Change._fields)) for row in left], math.inf)


def _try_all(sample, budget):
    """Results go to results.jsonl as they come."""
    run_tests(plugin=Trials(sample, budget))


class Trials:
    """A pytest plugin: instead of running the tests that were collected, tries the changes, each
    with some of them."""

    def __init__(self, sample, budget):
        self.sample, self.budget, self.killers = sample, budget, {}
        self.reached, self.took = by_line()
        for row in read_results():
            _remember(self.killers, row["path"], row["function"], row["said"])

    def pytest_runtestloop(self, session):
        items = {item.nodeid: item for item in session.items}
        for change in self.sample:
            reaching = [
                test
                for test in self.reached.get(f"{change.path}:{change.line}", [])
                if test in items
            ]
            tests = promising(change, reaching, self.took, self.killers, self.budget)
            started, seconds = time.time(), 10 + sum(self.took[test] for test in tests)
            none = f"{SURVIVED}: no test runs the line"
            said = try_change(change, [items[test] for test in tests], seconds) if tests else none
            _remember(self.killers, change.path, change.function, said)
            row = change._asdict() | {
                "said": said,
                "tests": len(tests),
                "seconds": round(time.time() - started, 1),
            }
            with (OUT / "results.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        return True


def _remember(killers, path, function, said):
    """Count the test as one that kills changes of the function."""
    if said.startswith(f"{KILLED} by"):
        killers.setdefault((path, function), Counter())[said.removeprefix(f"{KILLED} by ")] += 1


def read_results():
    """The results so far; of a change that was tried again the last counts."""
    path = OUT / "results.jsonl"
    rows = (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        if path.exists()
        else []
    )
    return list({(row["path"], row["number"]): row for row in rows}.values())


def report():
    """The share that was killed, by file, and the survivors."""
    rows = read_results()
    for path in paths():
        mine = [row for row in rows if row["path"] == path]
        killed = sum(row["said"].startswith(KILLED) for row in mine)
        say(f"{path:32} {killed:4} of {len(mine):4}")
    killed = sum(row["said"].startswith(KILLED) for row in rows)
    say(f"{'all':32} {killed:4} of {len(rows):4}  {100 * killed / max(len(rows), 1):.1f} %")
    for row in sorted(rows, key=lambda row: (row["path"], row["line"])):
        if row["said"].startswith(SURVIVED):
            say(
                f"{row['path']}:{row['line']} {row['function']}: {row['what']}  [{row['tests']} "
                "tests]"
            )


def main(argv=None):
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.runner")
    parser.add_argument("what", choices=["cover", "run", "again", "report"])
    parser.add_argument("--number", type=int, default=420)
    parser.add_argument("--seed", type=int, default=5)
    given = parser.parse_args(argv)
    os.chdir(ROOT)
    os.environ["CI"] = "1"
    if given.what == "run":
        run(given.number, given.seed)
    else:
        {"cover": cover, "again": again, "report": report}[given.what]()


if __name__ == "__main__":
    main()

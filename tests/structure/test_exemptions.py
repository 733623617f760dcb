"""What is exempt from a check says why, and needs to be."""

import json
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch

import pytest

from tests.structure.sources import ROOT

SILENCED = re.compile(
    r"#\s*(noqa|type: ignore|pragma:)(?P<codes>[^#\n]*?)(?P<why>(\s+[-#]+|\s\s)\s*\w.*)?$",
    re.MULTILINE,
)
METHODS = "kemu/trace/barrier.py"
"""It puts methods into classes, which no type checker likes; its opening says why it does so."""


CONTRADICT = {"D203", "D213"}
"""Rules that contradict one that is kept: ruff looks for one of the two only."""


def unexplained(text):
    """The lines that silence a check without a word."""
    return [
        text[: found.start()].count("\n") + 1
        for found in SILENCED.finditer(text)
        if not found["why"]
    ]


def silent_exemptions(text):
    """The entries of the settings' lists of exemptions that give no reason."""
    lists = re.findall(r'^(?:ignore|"[^"\n]+") = \[\n(.*?)^\]', text, re.MULTILINE | re.DOTALL)
    return [
        line.strip()
        for entries in lists
        for line in entries.splitlines()
        if '"' in line and "#" not in line
    ]


def broken_by(codes):
    """Which of the rules some file breaks, and which files."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--output-format",
        "json",
        "--select",
        ",".join(codes),
    ]
    done = subprocess.run(
        [*command, str(ROOT)], capture_output=True, text=True, check=False, timeout=300
    )
    found = {code: set() for code in codes}
    for problem in json.loads(done.stdout):
        for code in codes:
            if (problem["code"] or "").startswith(code):
                found[code].add(problem["filename"][len(str(ROOT)) + 1 :].replace("\\", "/"))
    return found


def exempt(settings):
    """Pairs of a pattern of files (all: *) and a rule that they need not keep."""
    yield from (("*", code) for code in settings["ignore"])
    yield from (
        (pattern, code) for pattern, codes in settings["per-file-ignores"].items() for code in codes
    )


def matches(pattern, name):
    """Is the file one of the pattern's?  ``{a,b}`` stands for either."""
    either = re.search(r"\{(.*?)\}", pattern)
    patterns = (
        [pattern.replace(either[0], part) for part in either[1].split(",")] if either else [pattern]
    )
    return any(fnmatch(name, one) for one in patterns)


@pytest.mark.parametrize("folder", ["kemu", "tests", "docs"])
def test_whatever_silences_a_check_says_why(folder):
    files = [
        path
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.relative_to(ROOT).as_posix() != METHODS
    ]
    assert not [f"{path}:{line}" for path in files for line in unexplained(path.read_text())]


def test_every_rule_that_is_not_kept_has_its_reason_beside_it():
    assert not silent_exemptions((ROOT / "pyproject.toml").read_text())


def test_every_rule_that_need_not_be_kept_is_broken_somewhere():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    pairs = [(pattern, code) for pattern, code in exempt(settings) if code not in CONTRADICT]
    found = broken_by(sorted({code for _, code in pairs}))
    assert not [
        (pattern, code)
        for pattern, code in pairs
        if not any(matches(pattern, name) for name in found[code])
    ]


# ---------------------------------------------------------------- the checks can fail


def test_a_silent_exemption_is_found():
    mark = "# no" + "qa"
    assert unexplained(
        f"a\nb  {mark}: S101\nc  {mark}: S101 - because\nd  # type: " + "ignore[misc]\n"
    ) == [2, 4]
    assert silent_exemptions('ignore = [\n    "A1",\n    "A2",  # why\n]\n') == ['"A1",']


def test_a_rule_that_all_keep_is_found():
    assert broken_by(["PLE0101"]) == {"PLE0101": set()}
    assert matches("kemu/{a,b}.py", "kemu/b.py")
    assert not matches("kemu/{a,b}.py", "kemu/c.py")

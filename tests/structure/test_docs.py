"""What the pages say about code is true: named code exists, links lead somewhere, generated pages
are up to date.

Pages name code as ``file.py#name``. The file is a path from the root of the project, from the page,
or the end of a path inside kemu/ (``fault.py#do_wp_page``) if only one file ends so; the name is a
function, class or constant of that file, or ``Class.method``. CONTRIBUTING.md says so.
"""

import ast
import re
import subprocess
import sys
from pathlib import PurePosixPath

import pytest

from tests.structure.files import markdown, project_files, prose
from tests.structure.sources import ROOT

REFERENCE = re.compile(r"((?:\.\./)*[\w/.-]*\w+\.py)#(\w+(?:\.\w+)*)")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def references(root=ROOT):
    """(page, line, file, name) of every mention of code."""
    return [
        (page, number, found[1], found[2])
        for page, text in markdown(root)
        for number, line in prose(text)
        for found in REFERENCE.finditer(line)
    ]


def candidates(page, file, root=ROOT):
    """The files of the project that ``file`` on ``page`` can mean."""
    for start in (root, root / page.parent):
        if (start / file).is_file():
            return [(start / file).resolve()]
    tail = PurePosixPath(file.removeprefix("./")).parts
    return [
        path for path in project_files(root) if path.relative_to(root).parts[-len(tail) :] == tail
    ]


def defines(path, name):
    """True if the Python file defines ``name`` (dots lead into classes)."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    for part in name.split("."):
        found = [node for node in body if part in _names(node)]
        if not found:
            return False
        body = getattr(found[0], "body", [])
    return True


def _names(node):
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Assign):
        return {
            name.id
            for target in node.targets
            for name in ast.walk(target)
            if isinstance(name, ast.Name)
        }
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return {node.target.id}
    return set()


def dead_references(root=ROOT):
    """One line for each mention of code that is not there, or that could be in several files."""
    wrong = []
    for page, number, file, name in references(root):
        found = candidates(page, file, root)
        if len(found) != 1:
            wrong.append(
                f"{page}:{number}: {file}: "
                f"{'no such file' if not found else 'several files end so'}"
            )
        elif not defines(found[0], name):
            wrong.append(f"{page}:{number}: {file} has no {name}")
    return wrong


def links(root=ROOT):
    """(page, line, target) of every link that stays inside the project."""
    return [
        (page, number, found[1])
        for page, text in markdown(root)
        for number, line in prose(text)
        for found in LINK.finditer(line)
        if "://" not in found[1] and not found[1].startswith(("#", "mailto:"))
    ]


def dead_links(root=ROOT):
    """Links whose file does not exist."""
    return [
        f"{page}:{number}: {target}"
        for page, number, target in links(root)
        if not (root / page.parent / PurePosixPath(target.split("#")[0])).exists()
    ]


def test_named_code_exists():
    assert references(), "no page names any code: there is nothing to check"
    assert not dead_references(), "\n" + "\n".join(dead_references())


def test_links_lead_somewhere():
    assert links(), "no page has a link: there is nothing to check"
    assert not dead_links(), "\n" + "\n".join(dead_links())


def test_generated_pages_are_up_to_date():
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "by-linux-path.md: up to date" in done.stdout


# ---------------------------------------------------------------- the checks can fail


@pytest.fixture
def project(tmp_path):
    """A project with two modules of one name, and a function to write its only page."""
    for folder in ("kernel", "views"):
        (tmp_path / "kemu" / folder).mkdir(parents=True)
        (tmp_path / "kemu" / folder / "same.py").write_text("")
    (tmp_path / "kemu" / "kernel" / "fault.py").write_text(
        "LIMIT: int = 1\nclass C:\n    def m(self): ...\n"
    )
    (tmp_path / "docs").mkdir()

    def write(text):
        (tmp_path / "docs" / "page.md").write_text(text)
        return tmp_path

    return write


def test_code_that_is_there_is_accepted(project):
    text = "`fault.py#LIMIT` `kemu/kernel/fault.py#C.m` [x](../kemu/kernel/fault.py#C) `kernel/fault.py#C`\n"
    assert len(references(project(text))) == 4
    assert not dead_references(project(text))
    assert not dead_links(project(text))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("`fault.py#C.n`", "docs/page.md:1: fault.py has no C.n"),
        ("\n`fault.py#do_wp_page`", "docs/page.md:2: fault.py has no do_wp_page"),
        ("`default.py#x`", "docs/page.md:1: default.py: no such file"),
        ("`same.py#x`", "docs/page.md:1: same.py: several files end so"),
        ("```\nnone.py#x\n```\n`none.py#x`", "docs/page.md:4: none.py: no such file"),
    ],
)
def test_code_that_is_not_there_is_found(project, text, complaint):
    assert dead_references(project(text)) == [complaint]


def test_a_dead_link_is_found(project):
    text = "[a](page.md) [b](page.md#part) [c](https://www.kernel.org/) [d](none.md)\n"
    assert dead_links(project(text)) == ["docs/page.md:1: none.md"]

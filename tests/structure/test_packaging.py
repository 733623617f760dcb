"""What pip installs: the code, the lessons, nothing else; in a wheel and in an editable install."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata

import pytest

import kemu
from kemu.lessonpath import lessons_folder
from tests.structure.sources import PACKAGE, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def in_python(code, path):
    """What ``code`` prints in a Python that sees ``path`` and the standard library, and runs
    elsewhere than in the checkout."""
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        f"import sys; sys.path.insert(0, {str(path)!r}); {code}",
    ]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=60, cwd=path
    ).stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built without network by the hatchling of this environment."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_and_the_lessons_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    lessons = {
        f"kemu/_lessons/{path.relative_to(ROOT / 'lessons').as_posix()}"
        for path in (ROOT / "lessons").rglob("*.md")
    }
    assert lessons
    assert lessons <= names
    code = {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*.py")}
    assert code <= names
    assert {name.split("/")[0] for name in names} == {"kemu", f"kemu-{kemu.__version__}.dist-info"}


@pytest.mark.parametrize(
    ("env", "said"),
    [({"KEMU_PURE": "1"}, "KEMU_PURE is set"), ({"PATH": "/nowhere"}, "No such file")],
)
def test_a_wheel_without_the_module_in_c_is_for_every_python(tmp_path, env, said):
    """In a copy: in the checkout the module that these tests use is compiled beside its source."""
    folder = tmp_path / "kemu"
    shutil.copytree(
        ROOT,
        folder,
        ignore=lambda _, names: {*names} - KEPT if "tests" in names else {"__pycache__"},
    )
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=folder,
        env={**os.environ, **env},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert said in done.stdout + done.stderr
    (built,) = tmp_path.glob("*.whl")
    assert built.name.endswith("-py3-none-any.whl")
    assert not [
        name
        for name in zipfile.ZipFile(built).namelist()
        if "trace/_fast." in name and not name.endswith((".c", ".pyi"))
    ]


KEPT = {"kemu", "lessons", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE"}
"""What a wheel is built from."""


def test_an_installed_wheel_finds_its_own_lessons(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    found = in_python(
        "from kemu.lessonpath import lessons_folder; print(lessons_folder())", tmp_path
    )
    assert found == str(tmp_path / "kemu" / "_lessons")
    assert (
        (tmp_path / "kemu" / "_lessons" / "README.md")
        .read_text(encoding="utf-8")
        .startswith("# Lessons")
    )


def test_a_wheel_has_the_wrong_kernels(wheel):
    shipped = {
        name.rpartition("/")[2] for name in zipfile.ZipFile(wheel).namelist() if "/wrong/" in name
    }
    assert shipped == {path.name for path in (PACKAGE / "races" / "wrong").iterdir()} != set()


def test_a_checkout_uses_the_folder_that_authors_edit():
    assert lessons_folder() == ROOT / "lessons"
    assert (lessons_folder() / "README.md").is_file()


def test_the_wheel_s_copy_wins_over_a_folder_that_only_stands_beside_the_package(tmp_path):
    for folder in ("kemu/_lessons", "lessons"):
        (tmp_path / folder).mkdir(parents=True)
    assert lessons_folder(tmp_path / "kemu") == tmp_path / "kemu" / "_lessons"


def test_a_broken_installation_says_where_it_looked(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"_lessons nor .*lessons: install kemu again"):
        lessons_folder(tmp_path / "kemu")


def test_the_version_is_one_literal():
    assert metadata.version("kemu") == kemu.__version__
    assert f'__version__ = "{kemu.__version__}"' in (PACKAGE / "__init__.py").read_text(
        encoding="utf-8"
    )


def test_the_tests_run_what_would_be_committed():
    """An editable install points at this checkout, so that no test passes thanks to an old copy
    elsewhere."""
    origin = json.loads(metadata.distribution("kemu").read_text("direct_url.json"))
    assert origin["dir_info"] == {"editable": True}
    assert PACKAGE.samefile(kemu.__path__[0])


def test_base_dependencies_are_the_four():
    names = {requirement.split(">")[0] for requirement in PROJECT["dependencies"]}
    assert names == {"attrs", "prompt-toolkit", "pyelftools", "graphviz"}

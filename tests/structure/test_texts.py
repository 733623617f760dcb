"""No file of the project names a path of somebody's machine or a host that packages come from.

The project speaks of itself alone: it is installed with pip, from wherever the reader's pip takes
packages.
"""

import gzip
import re

from tests.structure.files import project_files
from tests.structure.sources import ROOT

FORBIDDEN = [
    "/" + "work/",
    "/" + "farm/",
    "/" + "root/",
    "/" + "home/",
    "/" + "Users/",
    "pypi" + ".org",
    "python" + "hosted",
    "registry." + "npmjs",
    "deb." + "debian",
]
"""Written in two pieces, so that this file can be checked like all others."""

PATTERN = re.compile("|".join(re.escape(text) for text in FORBIDDEN).encode())


def named_machines(root=ROOT):
    """``file:line: text`` of every forbidden text; compressed files are looked into."""
    wrong = []
    for path in project_files(root):
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        for found in PATTERN.finditer(content):
            line = content.count(b"\n", 0, found.start()) + 1
            wrong.append(f"{path.relative_to(root).as_posix()}:{line}: {found[0].decode()}")
    return wrong


def test_no_file_names_a_machine_or_a_package_host():
    assert len(project_files()) > 10
    assert not named_machines(), "\n" + "\n".join(named_machines())


# ---------------------------------------------------------------- the checks can fail


def test_a_path_is_found_in_plain_and_in_compressed_files(tmp_path):
    text = f"first line\nsee {FORBIDDEN[3]}somebody/x\n"
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "b.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "c.txt").write_text("see https://www.kernel.org/ and ../kemu\n")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "d.txt").write_text(text)
    assert named_machines(tmp_path) == [f"a.txt:2: {FORBIDDEN[3]}", f"b.gz:2: {FORBIDDEN[3]}"]

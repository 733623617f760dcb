"""The README's two commands are the ones that CI runs, and what they start exists."""

import os
import re
import subprocess

import pytest

from tests.structure.sources import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^<!-- command: (\w+) -->\n```sh\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


def test_each_of_the_two_commands_stands_alone():
    commands = dict(BLOCK.findall(README))
    assert commands.keys() == {"run", "test"}
    for command in commands.values():
        assert command.startswith("python3 -m venv ")
        assert "\n" not in command
    assert commands["run"].endswith("/kemu")
    assert commands["test"].endswith(" pytest -n 2")


@pytest.mark.parametrize("name", ["run", "test"])
def test_ci_reads_its_command_from_the_readme(name):
    """The shell function of .ci/run finds the same text as this file does."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    function = re.search(r"^readme_command\(\) \{.*?^\}$", script, re.MULTILINE | re.DOTALL)[0]
    command = ["bash", "-euo", "pipefail", "-c", f"{function}\nreadme_command {name}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == dict(BLOCK.findall(README))[name]
    assert f"$(readme_command {name})" in script


def test_ci_can_be_started():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)

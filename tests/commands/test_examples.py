"""Every example of every command's page runs, as `help` promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.commands import table
from kemu.commands.run import run
from kemu.experiment.session import Session
from kemu.front.terminal.output import to_json, to_text
from kemu.language.result import Quit
from kemu.views.style import PLAIN
from tests.conform.hosted import why_not

EXAMPLES = [(made.name, example) for made in table.load_all() for example in made.examples]


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """A folder to write files in, with the recorded programs that an example names."""
    recorded = (Path(__file__).parents[1] / "conform/data/found.jsonl").read_text().splitlines()
    (tmp_path / "recorded.jsonl").write_text("\n".join(recorded[:2]) + "\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "example"), EXAMPLES, ids=[f"{name}: {example}" for name, example in EXAMPLES]
)
def test_an_example_runs_and_is_shown(name, example):
    if name == "real" and why_not():
        pytest.skip(f"asks the host's kernel: {why_not()}")
    results = run(Session(), example)
    refused = [result.error.what for result in results if result.error]
    assert not refused
    for result in results:
        assert result.error or isinstance(result.reading, Quit) or to_text(result, PLAIN)
        assert to_json(result, "")["cmd"]
    ran = [*(result.command for result in results), example.replace(";", " ")]
    words = [word.partition("/")[0] for text in ran for word in text.split()]
    assert name in {table.find(word).name for word in words if table.find(word)}

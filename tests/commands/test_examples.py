"""Every example of every command's page runs, as `help` promises."""

from __future__ import annotations

import pytest

from kemu.commands import table
from kemu.commands.run import run
from kemu.experiment.session import Session
from kemu.front.terminal.output import to_json, to_text
from kemu.language.result import Quit
from kemu.views.style import PLAIN

EXAMPLES = [(made.name, example) for made in table.load_all() for example in made.examples]


@pytest.mark.parametrize(
    ("name", "example"), EXAMPLES, ids=[f"{name}: {example}" for name, example in EXAMPLES]
)
def test_an_example_runs_and_is_shown(name, example):
    results = run(Session(), example)
    refused = [result.error.what for result in results if result.error]
    assert bool(refused) is ("# fails" in example), refused
    for result in results:
        assert result.error or isinstance(result.reading, Quit) or to_text(result, PLAIN)
        assert to_json(result, "")["cmd"]
    words = [word.partition("/")[0] for result in results for word in result.command.split()]
    assert name in {table.find(word).name for word in words if table.find(word)}

"""Reading the recorded inputs and answers in ``data/`` (its README says where they are from)."""

import json
from pathlib import Path

DATA = Path(__file__).parent / "data"


def load(name):
    """The parsed file ``name`` of the data folder."""
    return json.loads((DATA / name).with_suffix(".json").read_text(encoding="utf-8"))


def rows(case, columns, key="translations"):
    """The rows of a case as dictionaries, fields without a value left out."""
    for row in case[key]:
        yield {name: value for name, value in zip(columns, row, strict=True) if value is not None}


def ids(case):
    """A test's name from the arguments of the run."""
    return case["args"].replace(" ", "_") or "defaults"

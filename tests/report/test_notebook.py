"""The example notebook runs, and shows what it says that it shows."""

import os
from importlib.util import find_spec

import pytest

from kemu.readings import Reading
from kemu.views.json import to_data
from tests.report import notebook
from tests.report.plays import session_of
from tests.structure.sources import ROOT

NO_JUPYTER = (
    "no nbclient, ipykernel and nbformat here: the cells are run without Jupyter by the test above"
)


def test_each_cell_shows_what_the_notebook_has_stored():
    cells = [cell for cell in notebook.read()["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 5
    for cell, (printed, made) in zip(cells, notebook.run(cells), strict=True):
        assert printed == ""
        assert (made["text/plain"] if made else None) == notebook.shown(cell), notebook.source(cell)


def test_the_notebook_is_of_the_format_that_jupyter_reads():
    found = notebook.read()
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    names = [cell["id"] for cell in found["cells"]]
    assert len(set(names)) == len(names)
    for cell in found["cells"]:
        fields = {"cell_type", "id", "metadata", "source"}
        assert set(cell) == (
            fields if cell["cell_type"] == "markdown" else fields | {"execution_count", "outputs"}
        )


@pytest.mark.skipif(
    not all(map(find_spec, ("nbclient", "ipykernel", "nbformat"))), reason=NO_JUPYTER
)
def test_jupyter_runs_it_and_shows_the_same(monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    found = nbformat.read(notebook.PATH, as_version=4)
    stored = [notebook.shown(cell) for cell in found.cells if cell.cell_type == "code"]
    NotebookClient(found, timeout=120, kernel_name="python3").execute()
    assert [notebook.shown(cell) for cell in found.cells if cell.cell_type == "code"] == stored


LOOKS = (
    "ps",
    "walk app 0x10000",
    "pt app",
    "mem",
    "calls",
    "graph sharing app child",
    "why pte app 0x10000",
)


@pytest.mark.parametrize("text", LOOKS)
def test_a_reading_shows_itself_as_text_and_as_data(text):
    session = session_of(
        "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; fork app as child"
    )
    reading = session.reading(text)
    assert isinstance(reading, Reading)
    shown = reading._repr_mimebundle_()
    assert shown["text/plain"].count("\n") > 1
    assert shown["application/json"] == to_data(reading)
    assert set(reading._repr_mimebundle_(include={"text/plain"})) == {"text/plain"}

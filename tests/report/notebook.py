"""Run a notebook's cells as IPython does, as far as docs/notebook.ipynb needs it: one namespace,
the value of a last expression is shown by its MIME bundle.

    python -m tests.report.notebook --update     rewrites the outputs that the notebook shows
"""

import ast
import json
import sys
from contextlib import redirect_stdout
from io import StringIO

from tests.structure.sources import ROOT

PATH = ROOT / "docs" / "notebook.ipynb"


def read():
    return json.loads(PATH.read_text(encoding="utf-8"))


def source(cell):
    return "".join(cell["source"])


def run(cells):
    """(what was printed, the bundle of the last value or None) of each code cell."""
    names = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            yield run_cell(source(cell), f"cell {number}", names)


def run_cell(text, name, names):
    tree = ast.parse(text, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(tree, name, "exec"), names)  # noqa: S102 - the notebook is part of the project
        value = eval(compile(ast.Expression(last.value), name, "eval"), names) if last else None  # noqa: S307 - the same
    return printed.getvalue(), bundle(value)


def bundle(value):
    if value is None:
        return None
    return (
        value._repr_mimebundle_()
        if hasattr(value, "_repr_mimebundle_")
        else {"text/plain": repr(value)}
    )


def shown(cell):
    """What the notebook has stored as the text of the cell's value."""
    return next(
        (
            "".join(o["data"]["text/plain"])
            for o in cell["outputs"]
            if o["output_type"] == "execute_result"
        ),
        None,
    )


def update():
    notebook = read()
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, (_, made)) in enumerate(zip(cells, run(cells), strict=True), 1):
        data = {"text/plain": made["text/plain"].splitlines(keepends=True)} if made else {}
        result = {
            "data": data,
            "execution_count": number,
            "metadata": {},
            "output_type": "execute_result",
        }
        cell["execution_count"], cell["outputs"] = number, [result] if made else []
    PATH.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__" and "--update" in sys.argv:
    update()

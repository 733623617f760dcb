"""Nobody sets an attribute of a session, its debugger or its desk from outside: each changes its own
state, in methods that say what they do."""

import ast

from tests.structure.sources import PACKAGE, modules

HOLDERS = {"session", "experiment", "debugger", "desk", "known"}
"""Names, of a variable or an attribute, that hold one of them."""


def assigned(package=PACKAGE):
    """Assignments to `session.X`, `self.session.X`, `session.desk.X` and their like, deletions, and
    calls of setattr, anywhere but on `self`."""
    return [
        f"{module.name}:{node.lineno} sets {ast.unparse(target)}"
        for module in modules(package).values()
        for node in ast.walk(module.tree)
        for target in _targets(node)
        if isinstance(target, ast.Attribute) and _held(target.value)
    ]


def _targets(node):
    if isinstance(node, ast.Assign | ast.Delete):
        parts = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        parts = [node.target]
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"setattr", "delattr"}:
        parts = [ast.Attribute(node.args[0], ast.unparse(node.args[1]))]
    else:
        parts = []
    for part in parts:
        yield from part.elts if isinstance(part, ast.Tuple | ast.List) else [part]


def _held(owner):
    name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
    return name in HOLDERS


def test_no_module_sets_what_belongs_to_a_session():
    assert not assigned()


def test_every_way_to_set_an_attribute_is_seen(tmp_path):
    folder = tmp_path / "kemu"
    folder.mkdir()
    (folder / "bad.py").write_text(
        "session.end = 1\n"
        "self.session.marks += [2]\n"
        "session.desk.depth, other = 1, 2\n"
        "session.debugger.last: int = 3\n"
        "del experiment.names\n"
        "setattr(session, 'lesson', '')\n"
        "session.desk.preferences['a'] = 'b'; self.known = 1; session = 2\n"
    )
    assert [line.split(" sets ")[1] for line in assigned(folder)] == [
        "session.end",
        "self.session.marks",
        "session.desk.depth",
        "session.debugger.last",
        "experiment.names",
        "session.'lesson'",
    ]

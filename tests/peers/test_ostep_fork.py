"""OSTEP's fork.py: the tree of processes after every fork and exit, with the kernel's own
reparenting.

The first process, a, is init here: it adopts orphans.  With ``-R`` each process adopts the orphans
below it instead, which Linux calls a child subreaper.  OSTEP's processes vanish when they exit, so
each parent waits at once.

One difference is real: when a process with grandchildren exits, OSTEP gives its whole subtree to a,
Linux only the children.
"""

import pytest

from kemu.abi.uapi import SIGCHLD
from kemu.kernel.include.lists import list_for_each
from kemu.kernel.include.system import system
from tests.kernel.scenes import Scene
from tests.peers.peerdata import ids, load

FILE = load("ostep-fork")


class Family:
    """The processes of a run by their letters."""

    def __init__(self, *, local):
        self.scene = Scene()
        self.local = local
        init = system.tasks[1]
        self.scene.ok(
            init, "sigaction", SIGCHLD, "default"
        )  # kemu's init ignores it, so that nobody has to wait
        self.scene.exit(self.scene.p)
        self.scene.wait(init, self.scene.p)
        self.tasks = {"a": init}
        self.strangers = {node.owner for node in list_for_each(init.children)}

    def fork(self, parent, child):
        self.tasks[child] = self.scene.fork(self.tasks[parent])
        self.tasks[child].signal.is_child_subreaper = self.local

    def exit(self, name):
        task = self.tasks.pop(name)
        self.scene.exit(task)
        self.scene.wait(task.real_parent, task)

    def tree(self):
        """{letter: letter of the parent}, from the kernel's parent pointers."""
        letters = {task.pid: name for name, task in self.tasks.items()}
        return {
            name: None if name == "a" else letters[task.real_parent.pid]
            for name, task in self.tasks.items()
        }

    def children(self):
        """{letter: its children}, from the kernel's lists."""
        letters = {task.pid: name for name, task in self.tasks.items()}
        return {
            name: {
                letters[node.owner.pid]
                for node in list_for_each(task.children)
                if node.owner not in self.strangers
            }
            for name, task in self.tasks.items()
        }


def test_all_runs_are_here():
    assert len(FILE["cases"]) == 19


@pytest.mark.parametrize("case", FILE["cases"], ids=ids)
def test_the_tree_after_every_step(case):
    family = Family(local="-R" in case["args"])
    previous = {"a": None}
    flattened = False
    for op, process, child, tree in case["steps"]:
        before = family.tree()
        if op == "fork":
            family.fork(process, child)
        elif tree != previous:  # with -L the exit of a process that has children is refused
            family.exit(process)
            flattened = flattened or has_grandchildren(before, process)
        if tree is not None:
            assert family.tree() == tree | (IN_LINUX if flattened else {})
            previous = tree
        check_lists(family)
    assert flattened == (case["args"] == FLATTENED)
    assert family.tree() == case["final_tree"] | (IN_LINUX if flattened else {})


FLATTENED = "-s 10 -f 0.5 -a 20"
"""The only run in which a process with grandchildren exits."""

IN_LINUX = {"l": "k"}
"""Its grandchild, which OSTEP gives to a, stays with its parent."""


def has_grandchildren(tree, process):
    children = {name for name, parent in tree.items() if parent == process}
    return any(parent in children for parent in tree.values())


def check_lists(family):
    """The lists of children say the same as the pointers to parents."""
    tree = family.tree()
    want = {name: {child for child, parent in tree.items() if parent == name} for name in tree}
    assert family.children() == want

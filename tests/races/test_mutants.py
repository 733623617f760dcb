"""Every wrong kernel is noticed, by whom it says; the right one is not; each is a patch that applies
at one place; and planting one leaves no trace."""

import ast
import inspect
import re
import shutil
import subprocess

import pytest

import kemu.conform.cast
from kemu.conform.compare import first_difference
from kemu.conform.replay import replay
from kemu.errors import KernelBug, UsageError
from kemu.kernel.init.boot import Kernel
from kemu.kernel.mm import fork_mm
from kemu.races.cases import KERNEL_CASES
from kemu.races.mutants import EXPLORER, FOLDER, MUTANTS, bodies, diff, find, read, source
from kemu.trace.frames import body_of
from tests.conform.recorded import scenarios
from tests.races.battery import ALONG, broken_along, broken_by, noticed

RECORDED = ("fault_around_advice_random", "mremap_move_adjacent_merge")
"""The programs that tell a wrong kernel of "conformance" from the real one."""


def differs(bodies, monkeypatch):
    """The first difference that a recorded program shows on a kernel with these bodies."""

    def make(**options):
        kernel = Kernel(**options)
        kernel.bodies = bodies
        return kernel

    monkeypatch.setattr(kemu.conform.cast, "Kernel", make)
    programs = [scenarios()[name] for name in RECORDED]
    found = (first_difference(program, replay(program).steps) for program in programs)
    return next((difference for difference in found if difference is not None), None)


def test_the_right_kernel_is_suspected_by_nobody(monkeypatch):
    assert noticed({}) is None
    assert differs({}, monkeypatch) is None


@pytest.mark.parametrize(
    "name", [name for name, mutant in MUTANTS.items() if mutant.caught != EXPLORER]
)
def test_a_wrong_kernel_is_noticed_by_whom_it_says(name, monkeypatch):
    mutant = MUTANTS[name]
    wrong = bodies(mutant)
    found = noticed(wrong, name)
    if found is None and differs(wrong, monkeypatch) is not None:
        found = ("conformance", "a recorded program")
    assert found is not None, f"{name}: nobody notices"
    assert found[0] == mutant.caught, found


STOPS = {
    "truncate_puts_before_unlock": "a file gets shorter and longer",
    "munmap_forgets_mapcount": "the last sharer writes",
    "split_forgets_to_shrink": "mprotect to and fro",
}
"""The story in which a kernel that stops itself breaks an invariant before it does; else the first
one."""


@pytest.mark.parametrize(
    "name", [name for name, mutant in MUTANTS.items() if mutant.caught == "kernel"]
)
def test_what_the_kernel_notices_itself_breaks_an_invariant_too(name):
    wrong, story = bodies(MUTANTS[name]), STOPS.get(name, ALONG)
    assert broken_by(wrong, story) or broken_along(wrong, story)


def test_there_are_enough_of_them():
    assert len(MUTANTS) >= 91
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(MUTANTS)


def nodes(text):
    """The statements of a module by their name, else by their text."""
    return {getattr(node, "name", ast.dump(node)): ast.dump(node) for node in ast.parse(text).body}


@pytest.mark.parametrize("name", MUTANTS)
def test_each_patch_applies_at_one_place_and_changes_nothing_but_the_function_it_names(name):
    mutant = MUTANTS[name]
    right, wrong = nodes(inspect.getsource(mutant.module)), nodes(source(mutant))
    changed = {name for name in right.keys() | wrong.keys() if right.get(name) != wrong.get(name)}
    assert changed == {mutant.function}
    assert (mutant.name, bool(mutant.story)) == (name, True)
    assert (mutant.race in KERNEL_CASES) == (mutant.caught == EXPLORER)
    shown = diff(mutant)
    assert shown[:2] == (f"--- a/{mutant.path}", f"+++ b/{mutant.path}")
    assert any(line.startswith(("-    ", "+    ")) for line in shown)


@pytest.mark.parametrize("name", MUTANTS)
def test_each_hunk_counts_its_lines_as_its_head_says(name):
    """Else patch(1) takes the file for damaged."""
    lines = (FOLDER / f"{name}.patch").read_text(encoding="utf-8").splitlines()
    heads = [number for number, line in enumerate(lines) if line.startswith("@@")]
    for number, end in zip(heads, [*heads[1:], len(lines)], strict=True):
        marks = [line[:1] or " " for line in lines[number + 1 : end]]
        found = re.match(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@ def (\w+)$", lines[number])
        assert [int(count or 1) for count in found.groups()[:2]] == [
            len(marks) - marks.count("+"),
            len(marks) - marks.count("-"),
        ]
        assert found[3] == MUTANTS[name].function


def test_what_patch_itself_makes_of_one_is_what_is_planted(tmp_path):
    """The files are unified diffs to others too: `patch` skips the header and applies the rest."""
    patch = shutil.which("patch")
    if patch is None:
        pytest.skip("there is no patch(1) here")
    for mutant in list(MUTANTS.values())[::9]:
        file = tmp_path / mutant.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(inspect.getsource(mutant.module), encoding="utf-8")
        command = [patch, "-p1", "-s", "-i", str(FOLDER / f"{mutant.name}.patch")]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        assert file.read_text(encoding="utf-8") == source(mutant)


PATCH = """\
Name: a_patch_of_ones_own
Function: folio_put
Story: the last reference
  is put twice
Noticed-by: kernel

--- a/kemu/kernel/mm/page_alloc.py
+++ b/kemu/kernel/mm/page_alloc.py
@@ -1,1 +1,1 @@ def folio_put
-    if atomic_dec_and_test(folio, "_refcount"):
+    if not atomic_dec_and_test(folio, "_refcount"):
"""


def test_a_patch_is_read_as_it_is_written():
    mutant = read(PATCH)
    assert mutant.name == "a_patch_of_ones_own"
    assert mutant.story == "the last reference is put twice"
    assert mutant.place == "kemu/kernel/mm/page_alloc.py#folio_put"
    assert mutant.race == ""
    assert source(mutant).count("if not atomic_dec_and_test") == 1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('-    if atomic_dec_and_test(folio, "_refcount"):', "-    if False:", "at 0 places"),
        (
            '-    if atomic_dec_and_test(folio, "_refcount"):',
            "-    return page",
            "at [2-9] places",
        ),
        ("mm/page_alloc.py", "mm/nonsense.py", "not a file of the kernel"),
        ("kernel/mm/page_alloc.py", "races/mutants.py", "not a file of the kernel"),
    ],
)
def test_a_patch_that_does_not_apply_is_a_bug_of_kemus_and_says_which(old, new, says):
    with pytest.raises(KernelBug, match=rf"mutant a_patch_of_ones_own: .*{says}"):
        source(read(PATCH.replace(old, new)))


def test_only_the_kernel_that_has_the_mutant_is_wrong():
    function = fork_mm.__copy_present_ptes
    written = body_of(function)
    wrong, right = Kernel(), Kernel()
    wrong.bodies = bodies(MUTANTS["fork_forgets_wrprotect"])
    wrong.activate()
    assert body_of(function) != written
    right.activate()
    assert body_of(function) == written
    wrong.activate()
    wrong.bodies = {}
    wrong.activate()
    assert body_of(function) == written


def test_an_unrecorded_kernel_can_be_wrong_too():
    function = fork_mm.__copy_present_ptes
    plain, recorded = Kernel(record=False), Kernel()
    plain.bodies = bodies(MUTANTS["fork_forgets_wrprotect"])
    plain.activate()
    assert function.__code__ == plain.bodies[function]
    recorded.activate()
    assert function.__code__ != plain.bodies[function]
    assert body_of(function) != plain.bodies[function]


def test_a_number_picks_one_and_an_unknown_name_is_refused():
    assert find("3").name in MUTANTS
    assert find("fork_forgets_flush").name == "fork_forgets_flush"
    with pytest.raises(UsageError):
        find("no_such_mutant")

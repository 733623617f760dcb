"""Putting calls in changes nothing but the calls: the same values, the same effects, in the same
order."""

import importlib.util
import sys
from pathlib import Path

import pytest

from kemu.kernel.include.mman import MAP_ANONYMOUS, MAP_PRIVATE, PROT_READ, PROT_WRITE
from kemu.kernel.include.system import system
from kemu.kernel.init.boot import Kernel
from kemu.kernel.init.bulk import prepare
from kemu.kernel.mm.fault_missing import do_anonymous_page
from kemu.trace import kept
from kemu.trace.frames import FUNCTIONS, as_written
from kemu.trace.inline import expand
from kemu.trace.kept import in_place
from kemu.userland.script import Script

HELPERS = """
log = []
BIT = 4

class Box:
    def __init__(self, value):
        self.value = value

    def get(self, more):
        return self.value + more

def note(x):
    log.append(x)
    return x

def one(x):
    return x + 1

def twice(x):
    return x * x

def guarded(x, limit=10):
    '''A docstring goes.'''
    if x < 0:
        return "below"
    if x > limit:
        return "above"
    return "inside"

def put(box, value):
    old = box.value
    box.value = value
    return old

def put_positive(box, value):
    if value <= 0:
        return False
    box.value = value
    note(value)
    return True

def add_bit(box):
    box.value |= BIT

def is_one(x):
    bit = BIT
    return x == bit

def chosen(x, y):
    return y if x else x

def in_loop(items):
    for item in items:
        if item:
            return item
    return None

def down(n):
    return 0 if n == 0 else down(n - 1)

def field_of(obj, name):
    return getattr(obj, name)

def set_field(obj, name, value):
    setattr(obj, name, value)
"""

CALLERS = """
from {helpers} import *
from {helpers} import log, note
BIT = 64

def expressions(box, x):
    return one(one(x)) + twice(box.value) - twice(one(x))

def effects(box, x):
    return twice(note(x)), chosen(note(x), note(x + 1)), note(one(x))

def guards(box, x):
    return guarded(x), guarded(x, 2), guarded(limit=1, x=x), guarded(note(x))

def statements(box, x):
    old = put(box, x)
    add_bit(box)
    if put_positive(box, x) and note(old) is not None:
        return old, box.value
    put(box, put(box, 77))
    return box.value

def same_names(box, x):
    old, value = 5, 6
    bit = put(box, old)
    return old, value, bit, is_one(x), BIT, is_one(4)

def order(box, x):
    return x + put(box, x) + box.value

def late(box, x):
    return box.value + put(box, x)

def arguments(box, x):
    return chosen(put(box, x), box.value), chosen(box.value, put(box, x + 1)), box.value

def loops(box, x):
    total = 0
    for i in range(3):
        total += one(put(box, i))
        while not put_positive(box, total):
            total += 1
    return total, in_loop([0, x]), down(3)

def fields(box, x):
    set_field(box, "value", x)
    return field_of(box, "value")

def methods(box, x):
    return box.get(note(x)), [one(i) for i in range(3)], (lambda n: one(n))(x)

def raising(box, x):
    try:
        put_positive(box, x)
        raise ValueError(one(x))
    except ValueError as error:
        return str(error), box.value
"""

NAMES = (
    "expressions", "effects", "guards", "statements", "same_names", "order", "arguments", "loops", "fields", "methods", "raising",
)  # fmt: skip


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inline")
    made = []
    for name, text in (
        ("inline_helpers", HELPERS),
        ("inline_callers", CALLERS.format(helpers="inline_helpers")),
    ):
        (folder / f"{name}.py").write_text(text)
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made.append(module)
    yield made
    for module in made:
        del sys.modules[module.__name__]


@pytest.fixture(scope="module")
def expanded(modules):
    helpers, _ = modules
    return in_place(expand(modules, {"box": vars(helpers.Box)}))


def seen(modules, name, x):
    """The value, the effects and the state that a call leaves."""
    helpers, callers = modules
    helpers.log.clear()
    box = helpers.Box(3)
    return vars(callers)[name](box, x), list(helpers.log), box.value


@pytest.mark.parametrize("name", NAMES)
def test_the_same_values_and_effects_in_the_same_order(modules, expanded, name):
    function = vars(modules[1])[name]
    written, numbers = function.__code__, (-3, 0, 1, 4, 11)
    before = [seen(modules, name, x) for x in numbers]
    assert function in expanded, "nothing was put in: the case shows nothing"
    function.__code__ = expanded[function]
    try:
        assert [seen(modules, name, x) for x in numbers] == before
    finally:
        function.__code__ = written


def test_a_call_that_comes_after_something_it_could_change_stays_a_call(modules, expanded):
    assert modules[1].late not in expanded


def test_what_returns_from_a_loop_or_calls_itself_stays_a_call(modules, expanded):
    _, callers = modules
    assert "in_loop" in expanded[callers.loops].co_names
    assert "down" in expanded[callers.loops].co_names
    assert "one" not in expanded[callers.expressions].co_names


def test_a_kept_function_stays_a_call(modules):
    helpers, callers = modules
    found = in_place(expand(modules, {"box": vars(helpers.Box)}, frozenset([helpers.one])))
    assert "one" in found.get(callers.expressions, callers.expressions.__code__).co_names


# -------------------------------------------------------------------- the kernel


def test_the_kernel_runs_expanded_while_no_body_is_replaced():
    bulk = Kernel(mem=16 << 20, record=False)
    without_calls = do_anonymous_page.__code__
    assert "alloc_anon_folio" not in without_calls.co_names
    bulk.bodies = {do_anonymous_page: (lambda vmf: vmf).__code__}
    bulk.activate()
    assert do_anonymous_page.__code__.co_name == "<lambda>"
    bulk.bodies = {}
    bulk.activate()
    assert do_anonymous_page.__code__ is without_calls
    with as_written():
        Kernel(mem=16 << 20, record=False)
        assert "alloc_anon_folio" in do_anonymous_page.__code__.co_names
    assert do_anonymous_page.__code__ is without_calls


def test_a_recorded_kernel_keeps_the_calls_that_leave_frames():
    prepare(recorded=False)
    Kernel(mem=16 << 20)
    number = next(function.fid for function in FUNCTIONS if function.name == "do_anonymous_page")
    names = do_anonymous_page.__globals__[f"_as_written_{number}"].__code__.co_names
    assert "pte_offset_map_lock" not in names
    assert {"alloc_anon_folio", "folio_add_new_anon_rmap"} <= set(names)


def life():
    """A small life of a process, recorded: the log with objects by their kind, the marks, and the
    fingerprint of the end."""
    kernel = Kernel(mem=32 << 20)
    script = Script(kernel)
    task = script.spawn("p")
    anonymous = MAP_PRIVATE | MAP_ANONYMOUS
    area = script.syscall(
        task, "mmap", 0, 200 * 4096, PROT_READ | PROT_WRITE, anonymous, -1, 0
    ).value
    script.load(task, area, 8)
    for i in range(130):
        script.store(task, area + i * 4096, b"once")
    child = system.tasks[script.syscall(task, "fork").value]
    for i in range(0, 200, 3):
        script.store(child, area + i * 4096, b"twice")
        script.load(task, area + i * 4096, 4)
    script.syscall(task, "mprotect", area, 50 * 4096, PROT_READ)
    script.store(task, area, b"refused")
    script.syscall(child, "munmap", area + 40 * 4096, 60 * 4096)
    script.syscall(child, "exit_group", 3)
    journal = kernel.journal
    log = journal.log
    said = [(type(obj).__name__, field) for obj, field in zip(log[::4], log[1::4], strict=True)]
    end = kernel.state_hash()
    journal.seek(0)
    start = kernel.state_hash()
    journal.seek(len(journal))
    return said, list(journal.marks), end, start, kernel.state_hash()


def test_recorded_the_same_events_in_the_same_order_under_the_same_frames():
    prepare(recorded=False)
    expanded = life()
    with as_written():
        written = life()
    assert len(written[0]) > 5000
    assert expanded == written
    assert expanded[2] == expanded[4] != expanded[3]


# -------------------------------------------------------------------- what is kept


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A source file in a folder of its own, in a process that may write compiled files."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    path = tmp_path / "module.py"
    path.write_text("x = 1\n")
    return path


SOMETHING = (([("m", "f", (lambda x: x + 1).__code__)], [("m", "a", "n", "b")]), ([], []))


def test_what_was_saved_is_loaded_until_a_source_file_changes(source):
    folders = [str(source.parent)]
    assert kept.load(str(source), folders) is None
    kept.save(str(source), folders, SOMETHING)
    assert kept.load(str(source), folders) == SOMETHING
    source.write_text("x = 22\n")
    assert kept.load(str(source), folders) is None
    kept.save(str(source), folders, SOMETHING)
    source.with_name("other.py").write_text("y = 1\n")
    assert kept.load(str(source), folders) is None


@pytest.mark.parametrize(("first", "then"), [(0, b""), (20, b""), (-7, b""), (8, b"?" * 50)])
def test_a_damaged_file_is_as_good_as_none(source, first, then):
    folders = [str(source.parent)]
    kept.save(str(source), folders, SOMETHING)
    (path,) = source.parent.glob("__pycache__/*.expanded")
    path.write_bytes(path.read_bytes()[:first] + then)
    assert kept.load(str(source), folders) is None


def test_a_disk_that_is_full_leaves_nothing_behind(source, monkeypatch):
    monkeypatch.setattr(Path, "replace", full)
    kept.save(str(source), [str(source.parent)], SOMETHING)
    assert [path.name for path in source.parent.rglob("*") if path.is_file()] == ["module.py"]


def full(_path, _target):
    raise OSError(28, "No space left on device")


def test_where_nothing_may_be_written_nothing_is(source, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert not kept.possible(str(source))
    kept.save(str(source), [str(source.parent)], SOMETHING)
    assert not list(source.parent.glob("**/*.expanded"))


def test_a_folder_that_cannot_be_made_is_no_error(source):
    source.with_name("__pycache__").write_text("a file is in the way")
    assert not kept.possible(str(source))
    kept.save(str(source), [str(source.parent)], SOMETHING)
    assert kept.load(str(source), [str(source.parent)]) is None

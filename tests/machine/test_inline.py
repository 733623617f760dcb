"""Putting calls in changes nothing but the calls: the same values, the same effects, in the same order."""

import importlib.util
import sys

import pytest

from kemu.kernel.boot import Kernel
from kemu.kernel.fault_missing import do_anonymous_page
from kemu.trace.inline import expand
from kemu.trace.journal import Journal

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
    for name, text in (("inline_helpers", HELPERS), ("inline_callers", CALLERS.format(helpers="inline_helpers"))):
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
    return expand(modules, {"box": helpers.Box})


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


def test_the_kernel_runs_expanded_only_while_nothing_is_recorded_and_no_body_is_replaced():
    recorded = Kernel(mem=16 << 20)
    marked = do_anonymous_page.__code__
    bulk = Kernel(mem=16 << 20, record=False)
    without_calls = do_anonymous_page.__code__
    assert "alloc_anon_folio" not in without_calls.co_names
    bulk.bodies = {do_anonymous_page: (lambda vmf: vmf).__code__}
    bulk.activate()
    assert do_anonymous_page.__code__.co_name == "<lambda>"
    bulk.bodies = {}
    bulk.activate()
    assert do_anonymous_page.__code__ is without_calls
    recorded.activate()
    assert do_anonymous_page.__code__ is marked
    assert isinstance(recorded.journal, Journal)

"""Both implementations of the tape do what the tape promises: the one in Python, and the one in C
where it was compiled."""

import gc
import sys
import weakref
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.trace import _plain, tape
from tests.structure.sources import PACKAGE

try:
    from kemu.trace import _fast
except ImportError as error:
    _fast, WHY = None, f"the tape in C: {error}"


@pytest.fixture(params=["plain", "fast"])
def made(request):
    """An implementation that goes nowhere, before and after."""
    if request.param == "fast" and _fast is None:
        pytest.skip(WHY)
    module = _plain if request.param == "plain" else _fast
    module.direct(None, None, None)
    yield module
    module.direct(None, None, None)


class Value:
    """Something whose references can be counted."""

    def _restore(self, _field, _value):
        pass


def box(made):
    """A structure with a barrier, and a table with one."""

    class Box:
        __slots__ = ("empty", "field")
        _restore = made.raw
        constant = 5

    class Shelf(dict):
        _restore = made.put
        put = made.recorded_put

    made.bar(Box, True)
    found = Box()
    made.raw(found, "field", 1)
    return found, Shelf()


def refuse(obj, field):
    raise RuntimeError(f"not {type(obj).__name__}.{field}")


def test_an_assignment_is_four_slots_and_then_stored(made):
    one, _ = box(made)
    log = []
    made.direct(log, [], None)
    one.field = 2
    one.field = 3
    assert log == [one, "field", 1, 2, one, "field", 2, 3]
    assert one.field == 3


def test_a_field_is_stored_past_the_barrier(made):
    one, _ = box(made)
    log = []
    made.direct(log, [], None)
    made.raw(one, "empty", 5)
    made.raw(one, "field", 6)
    assert (one.empty, one.field, log) == (5, 6, [])


def test_without_a_barrier_an_assignment_is_no_event(made):
    one, _ = box(made)
    log = []
    made.direct(log, [], None)
    made.bar(type(one), False)
    one.field = 7
    assert (one.field, log) == (7, [])
    made.bar(type(one), True)
    one.field = 8
    assert log == [one, "field", 7, 8]


@pytest.mark.parametrize(
    ("old", "i", "new"),
    [(1, 1, 2), (1, -1, 0), (2**31 - 1, 1, -(2**31)), (-(2**31), -1, 2**31 - 1), (0, 0, 0)],
)
def test_adding_to_a_field_wraps_as_a_c_int(made, old, i, new):
    one, _ = box(made)
    made.raw(one, "field", old)
    log = []
    made.direct(log, [], None)
    assert made.add(one, "field", i) == new
    assert (one.field, log) == (new, [one, "field", old, new])


def test_changes_of_a_number_are_appended_where_there_are_any(made):
    boxes = [box(made)[0] for _ in range(3)]
    for number, one in enumerate(boxes):
        made.raw(one, "field", number)
    log = ["before"] * 4
    assert made.changes(log, boxes, "field", 0, ~1) == 1
    assert log[4:] == [boxes[1], "field", 1, 0]
    assert made.changes(log, boxes, "field", -1, -1) == 3
    assert log[8::4] == boxes
    assert log[11::4] == [-1, 0, 1]
    assert [one.field for one in boxes] == [0, 1, 2]


def test_a_word_is_stored_in_its_frame_which_is_made_if_it_is_absent(made):
    class Ram:
        store = made.store

        def __init__(self):
            self.frames = {}

        def _first_store(self, pfn):
            self.frames[pfn] = box(made)[1]
            return self.frames[pfn]

    ram, log = Ram(), []
    made.direct(log, [], None)
    ram.store(0x5FF8, 2**64 - 1)
    ram.store(0x5000, 3)
    ram.store(0x5FF8, 0)
    frame = ram.frames[5]
    assert frame == {0: 3}
    assert log == [frame, 511, None, 2**64 - 1, frame, 0, None, 3, frame, 511, 2**64 - 1, None]


def test_a_key_is_set_replaced_and_removed(made):
    _, shelf = box(made)
    log = []
    made.direct(log, [], None)
    shelf.put(7, "a")
    shelf.put(7, "b")
    shelf.put(7, None)
    shelf.put(7, None)
    assert log[1::4] == [7] * 4
    assert log[2::4] == [None, "a", "b", None]
    assert log[3::4] == ["a", "b", None, None]
    assert not shelf


def test_an_event_of_its_own_and_marks_stand_where_they_were_made(made):
    log, marks = [], []
    made.direct(log, marks, None)
    made.mark(3)
    made.emit("tree", 0, None, "vma")
    made.mark(~3)
    assert (log, marks) == (["tree", 0, None, "vma"], [0, 3, 4, ~3])


def test_what_is_directed_nowhere_is_stored_and_forgotten(made):
    one, shelf = box(made)
    one.field = 2
    shelf.put(1, 1)
    made.emit(one, "field", 1, 2)
    made.mark(1)
    assert (one.field, shelf) == (2, {1: 1})


def test_what_is_refused_changes_nothing(made):
    one, shelf = box(made)
    made.direct(None, None, refuse)
    for change, said in (
        (lambda: setattr(one, "field", 2), r"not Box\.field"),
        (lambda: shelf.put("key", 2), r"not Shelf\.key"),
        (lambda: made.emit(shelf, 9, None, 2), r"not Shelf\.9"),
    ):
        with pytest.raises(RuntimeError, match=said):
            change()
    made.mark(1)
    assert (one.field, shelf) == (1, {})


def test_a_refusal_may_let_a_change_pass(made):
    one, shelf = box(made)
    seen = []
    made.direct(None, None, lambda _obj, field: seen.append(field))
    one.field = 2
    shelf.put(3, 4)
    assert (seen, one.field, shelf) == (["field", 3], 2, {3: 4})


@pytest.mark.parametrize("name", ["unknown", "empty"])
def test_a_field_that_has_no_value_cannot_be_assigned(made, name):
    one, _ = box(made)
    log = []
    made.direct(log, [], None)
    with pytest.raises(AttributeError, match=name):
        setattr(one, name, 2)
    assert not log


def test_what_is_no_field_cannot_be_assigned(made):
    one, _ = box(made)
    made.direct([], [], None)
    with pytest.raises(AttributeError, match="constant"):
        one.constant = 2
    assert one.constant == 5


def test_a_key_that_cannot_be_one_is_an_error(made):
    _, shelf = box(made)
    log = []
    made.direct(log, [], None)
    for value in (1, None):
        with pytest.raises(TypeError, match="unhashable"):
            shelf.put([], value)
    assert (log, shelf) == ([], {})


@pytest.mark.parametrize(
    "name", [*["direct", "emit", "mark", "bar", "add", "changes", "put", "store", "back"]]
)
def test_another_number_of_arguments_is_an_error(made, name):
    with pytest.raises(TypeError):
        getattr(made, name)()
    with pytest.raises(TypeError):
        getattr(made, name)({}, 1, 2, 3, 4, 5)


def test_going_back_and_forward_restores_structures_tables_and_everything_else(made):
    one, shelf = box(made)

    class Tree:
        def __init__(self):
            self.seen = []

        def _restore(self, at, value):
            self.seen.append((at, value))

    log, tree = [], Tree()
    made.direct(log, [], None)
    one.field = 2
    shelf.put(1, "a")
    made.emit(tree, 0, "old", "new")
    shelf.put(1, None)
    made.emit(tree, 1, None, 5)
    one.field = 3
    assert made.back(log) is None
    assert (one.field, shelf, tree.seen) == (1, {}, [(1, None), (0, "old")])
    assert made.forward(log) is None
    assert (one.field, shelf, tree.seen[2:]) == (3, {}, [(0, "new"), (1, 5)])
    made.back(log[4:12])
    assert (one.field, shelf) == (3, {})
    made.forward([])
    made.back([])


def test_an_error_while_going_over_a_log_stops_there(made):
    one, _ = box(made)

    class Broken:
        def _restore(self, _field, _value):
            raise RuntimeError("broken")

    log = [one, "field", 1, 2, Broken(), 0, 0, 1, one, "field", 2, 3]
    with pytest.raises(RuntimeError, match="broken"):
        made.forward(log)
    assert one.field == 2
    with pytest.raises(ValueError, match=r".+"):
        made.forward(log[:5])


def test_no_reference_is_lost_or_kept(made):
    one, shelf = box(made)
    value, log, marks = Value(), [], []
    made.direct(log, marks, None)
    before = sys.getrefcount(value)
    for _ in range(100):
        one.field = value
        one.field = 1
        shelf.put(1, value)
        shelf.put(1, None)
        made.emit(value, value, value, value)
        made.mark(5)
        made.back(log)
        made.forward(log)
        del log[:], marks[:]
    with pytest.raises(AttributeError):
        one.unknown = value
    made.direct(None, None, refuse)
    with pytest.raises(RuntimeError):
        one.field = value
    with pytest.raises(RuntimeError):
        shelf.put(1, value)
    assert sys.getrefcount(value) == before


def test_a_log_that_is_no_longer_written_can_go(made):
    class Log(list):
        pass

    class Holder:
        pass

    holder = Holder()
    holder.log = log = []
    log.append(holder)
    gone = weakref.ref(holder)
    made.direct(log, [], None)
    made.direct(None, None, None)
    del holder, log
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(_fast is None, reason="no tape in C was compiled here")
def test_the_tape_in_c_is_compiled_from_the_source_as_it_is():
    text = (PACKAGE / "trace" / "_fast.c").read_bytes()
    assert zlib.crc32(text) & 0x7FFFFFFF == _fast.SOURCE, "run: python -m pip install -e ."


class Ram:
    """As PhysMem: a table of frames, each a table of words."""

    def __init__(self, frames):
        self.frames = frames


words = st.dictionaries(st.integers(0, 511), st.integers(1, 2**64 - 1), max_size=4)


@given(st.dictionaries(st.integers(0, 2**40), words, max_size=4), st.data())
def test_a_word_of_ram_is_read(frames, data):
    pfn = data.draw(st.sampled_from([*frames, 5]))
    index = data.draw(st.sampled_from([*frames.get(pfn, {}), 7]))
    for made in (_plain, _fast or _plain):
        ram = type("RamToo", (Ram,), {"load": made.load})(frames)
        assert ram.load(pfn << 12 | index << 3) == frames.get(pfn, {}).get(index, 0)


@given(st.lists(st.integers(0, 511), min_size=4, max_size=4), st.integers(0, 3), st.booleans())
def test_a_walk_ends_at_the_last_table(indices, cut, hidden):
    """Tables at the frames 1 to 4, linked by entries with the bits 7 and nothing above bit 47; one
    entry may be missing or have another bit."""
    va = sum(index << 12 + 9 * (3 - level) for level, index in enumerate(indices))
    frames = {level + 1: {indices[level]: level + 2 << 12 | 7} for level in range(4)}
    pointers = (((39, 511), (30, 511), (21, 511)), 1 << 47 | 0x87, 7, 12)
    made = [_plain.last_table, (_fast or _plain).last_table]
    assert [walk(frames, pointers, 1 << 12, va) for walk in made] == [frames[4]] * 2
    if hidden:
        frames[cut + 1][indices[cut]] |= 0x80
    else:
        del frames[cut + 1]
    found = [walk(frames, pointers, 1 << 12, va) for walk in made]
    assert found == ([frames.get(4, {})] if cut == 3 else [None]) * 2


def test_one_of_the_two_is_in_use():
    assert (tape.implementation is _plain) == bool(tape.WHY_PLAIN)
    assert tape.emit is tape.implementation.emit

"""atomic_t wraps; refcount_t saturates, and a saturated count never reaches zero again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.errors import KernelBug
from kemu.machine.atomic import (
    INT_MAX,
    REFCOUNT_SATURATED,
    atomic_add_negative,
    atomic_add_return,
    atomic_dec,
    atomic_dec_and_test,
    atomic_inc,
    atomic_inc_and_test,
    atomic_inc_not_zero,
    atomic_read,
    atomic_set,
    refcount_dec_and_test,
    refcount_inc,
    refcount_inc_not_zero,
    spin_lock,
    spin_unlock,
    warnings,
)
from kemu.trace.barrier import struct
from kemu.trace.steps import explorer

INT_MIN = -INT_MAX - 1
c_int = st.one_of(
    st.integers(INT_MIN, INT_MAX), st.sampled_from([INT_MIN, -2, -1, 0, 1, 2, INT_MAX - 1, INT_MAX])
)


@struct
class Counted:
    count: int = 0


def test_the_saturated_value_is_that_of_linux():
    assert REFCOUNT_SATURATED & 0xFFFFFFFF == 0xC0000000


@given(c_int, c_int)
def test_atomic_t_is_a_c_int_that_wraps(start, i):
    obj = Counted(start)
    got = atomic_add_return(obj, "count", i)
    assert got == obj.count == atomic_read(obj, "count")
    assert INT_MIN <= got <= INT_MAX
    assert (got - start - i) % (1 << 32) == 0


@pytest.mark.parametrize(("start", "after"), [(0, 1), (-1, 0), (INT_MAX, INT_MIN)])
def test_inc_and_dec_are_inverse(start, after):
    obj = Counted(start)
    atomic_inc(obj, "count")
    assert obj.count == after
    atomic_dec(obj, "count")
    assert obj.count == start


@given(c_int)
def test_the_tests_look_at_the_new_value(start):
    new = ((start + 1 + 0x80000000) & 0xFFFFFFFF) - 0x80000000
    assert atomic_inc_and_test(Counted(start), "count") == (new == 0)
    assert atomic_add_negative(Counted(start), "count", 1) == (new < 0)
    assert atomic_dec_and_test(Counted(new), "count") == (start == 0)


def test_a_mapcount_starts_at_minus_one():
    page = Counted(-1)
    assert atomic_inc_and_test(page, "count")
    assert not atomic_inc_and_test(page, "count")
    assert not atomic_add_negative(page, "count", -1)
    assert atomic_add_negative(page, "count", -1)


def test_set_stores_the_value():
    obj = Counted(5)
    atomic_set(obj, "count", 1)
    assert obj.count == 1


def test_inc_not_zero_leaves_a_dead_object_alone():
    dead, alive = Counted(0), Counted(1)
    assert not atomic_inc_not_zero(dead, "count")
    assert atomic_inc_not_zero(alive, "count")
    assert (dead.count, alive.count) == (0, 2)


@pytest.mark.parametrize(
    ("start", "after"),
    [
        (1, 2),
        (INT_MAX - 1, INT_MAX),
        (0, REFCOUNT_SATURATED),
        (INT_MAX, REFCOUNT_SATURATED),
        (-1, REFCOUNT_SATURATED),
        (REFCOUNT_SATURATED, REFCOUNT_SATURATED),
    ],
)
def test_refcount_inc(start, after):
    obj = Counted(start)
    refcount_inc(obj, "count")
    assert obj.count == after


@pytest.mark.parametrize(
    ("start", "after", "told"),
    [
        (0, 0, False),
        (1, 2, True),
        (INT_MAX, REFCOUNT_SATURATED, True),
        (REFCOUNT_SATURATED, REFCOUNT_SATURATED, True),
    ],
)
def test_refcount_inc_not_zero(start, after, told):
    obj = Counted(start)
    assert refcount_inc_not_zero(obj, "count") == told
    assert obj.count == after


@pytest.mark.parametrize(
    ("start", "after", "last"),
    [
        (2, 1, False),
        (1, 0, True),
        (0, REFCOUNT_SATURATED, False),
        (-5, REFCOUNT_SATURATED, False),
        (REFCOUNT_SATURATED, REFCOUNT_SATURATED, False),
        (INT_MAX, INT_MAX - 1, False),
    ],
)
def test_refcount_dec_and_test(start, after, last):
    obj = Counted(start)
    assert refcount_dec_and_test(obj, "count") == last
    assert obj.count == after


@given(
    st.lists(st.sampled_from(["inc", "inc_not_zero", "dec"]), max_size=60),
    st.sampled_from([0, 1, 2, INT_MAX - 1]),
)
def test_once_saturated_always_saturated(steps, start):
    obj = Counted(start)
    saturated = False
    for step in steps:
        if step == "inc":
            refcount_inc(obj, "count")
        elif step == "inc_not_zero":
            refcount_inc_not_zero(obj, "count")
        else:
            assert not (refcount_dec_and_test(obj, "count") and saturated)
        saturated = saturated or obj.count < 0
        assert (obj.count == REFCOUNT_SATURATED) == saturated


def test_a_lock_that_is_held_cannot_be_taken_again():
    obj = Counted()
    spin_lock(obj, "count")
    with pytest.raises(KernelBug, match="deadlock"):
        spin_lock(obj, "count")
    spin_unlock(obj, "count")
    spin_lock(obj, "count")
    assert obj.count == 1


@pytest.mark.parametrize(
    "operation",
    [
        lambda o: atomic_read(o, "count"),
        lambda o: atomic_set(o, "count", 3),
        lambda o: atomic_inc(o, "count"),
        lambda o: atomic_dec(o, "count"),
        lambda o: atomic_dec_and_test(o, "count"),
        lambda o: atomic_inc_and_test(o, "count"),
        lambda o: atomic_add_negative(o, "count", -1),
        lambda o: atomic_inc_not_zero(o, "count"),
        lambda o: refcount_inc(o, "count"),
        lambda o: refcount_inc_not_zero(o, "count"),
        lambda o: refcount_dec_and_test(o, "count"),
        lambda o: spin_lock(o, "count"),
        lambda o: spin_unlock(o, "count"),
    ],
)
def test_each_operation_is_one_micro_step_and_changes_nothing_before_it(operation):
    obj = Counted(0)
    watcher = Watcher(obj)
    with explorer(watcher):
        operation(obj)
    assert watcher.seen == [0]
    operation(Counted(0))
    assert watcher.seen == [0]


class Watcher:
    """An explorer that lets one CPU run alone, and notes what the count is at each step."""

    def __init__(self, obj, removed=()):
        self.obj, self.removed, self.seen, self.waits = obj, removed, [], []

    def on_step(self):
        self.seen.append(self.obj.count)

    def on_wait(self, ready, obj, lock):
        self.waits.append((lock, ready(obj, lock)))
        self.on_step()

    def is_removed(self, lock):
        return lock in self.removed


def test_an_explorer_is_asked_before_a_lock_is_taken_and_told_whether_it_is_free():
    obj = Counted()
    watcher = Watcher(obj)
    with explorer(watcher):
        spin_lock(obj, "count")
        spin_lock(obj, "count")
    assert watcher.waits == [("count", True), ("count", False)]


def test_a_lock_that_is_removed_is_neither_taken_nor_released():
    obj = Counted()
    with explorer(Watcher(obj, removed=("count",))):
        spin_lock(obj, "count")
        assert obj.count == 0
        spin_lock(obj, "count")
        spin_unlock(obj, "count")
    spin_lock(obj, "count")
    with explorer(Watcher(obj, removed=("count",))):
        spin_unlock(obj, "count")
    assert obj.count == 1


@pytest.mark.parametrize(
    ("start", "operation", "complaint"),
    [
        (0, refcount_inc, "refcount_t: addition on 0; use-after-free."),
        (INT_MAX, refcount_inc, "refcount_t: saturated; leaking memory."),
        (-1, refcount_inc, "refcount_t: saturated; leaking memory."),
        (INT_MAX, refcount_inc_not_zero, "refcount_t: saturated; leaking memory."),
        (0, refcount_dec_and_test, "refcount_t: underflow; use-after-free."),
        (REFCOUNT_SATURATED, refcount_dec_and_test, "refcount_t: underflow; use-after-free."),
    ],
)
def test_refcount_t_complains_in_linuxs_words_and_once_a_kind(start, operation, complaint):
    warnings.clear()
    for _ in range(2):
        obj = Counted(start)
        operation(obj, "count")
        assert obj.count == REFCOUNT_SATURATED
    assert warnings == [complaint]
    warnings.clear()


@pytest.mark.parametrize(
    ("start", "operation", "after"),
    [
        (1, refcount_inc, 2),
        (0, refcount_inc_not_zero, 0),
        (2, refcount_dec_and_test, 1),
    ],
)
def test_a_right_use_of_refcount_t_is_silent(start, operation, after):
    warnings.clear()
    obj = Counted(start)
    operation(obj, "count")
    assert (obj.count, warnings) == (after, [])

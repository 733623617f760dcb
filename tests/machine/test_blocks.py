"""Net effects of blocks: a shorter log with the same two ends, whatever the log holds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kemu.trace import index
from kemu.trace import journal as journals
from kemu.trace.barrier import Table
from kemu.trace.blocks import Blocks, net
from kemu.trace.journal import Journal


class Stack:
    """Not a cell: what a position means depends on what came before."""

    def __init__(self):
        self.items = []

    def _restore(self, at, value):
        if value is None:
            del self.items[at]
        else:
            self.items.insert(at, value)


class World:
    """Two tables and a stack, and a journal of what was done to them."""

    def __init__(self, size):
        self.tables = [Table("one"), Table("other")]
        self.stack = Stack()
        self.journal = Journal()
        self.journal.blocks = Blocks(size)
        self.states = [self.state()]

    def state(self):
        return [dict(sorted(table.items())) for table in self.tables], list(self.stack.items)

    def do(self, which, key, value):
        if which < 2:
            obj, old = self.tables[which], self.tables[which].get(key)
        elif value is None and not self.stack.items:
            return
        else:
            obj, key = self.stack, key % (len(self.stack.items) + (value is not None))
            old = self.stack.items[key] if value is None else None
        self.journal.log.extend((obj, key, old, value))
        obj._restore(key, value)
        self.journal.catch_up()
        self.states.append(self.state())


operations = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.one_of(st.none(), st.integers(1, 3))),
    min_size=1,
    max_size=120,
)


@settings(max_examples=60)
@given(operations, st.integers(1, 9), st.lists(st.integers(0, 2**16), max_size=30))
def test_a_jump_over_blocks_ends_in_the_state_of_that_moment(done, size, jumps):
    world = World(size)
    for operation in done:
        world.do(*operation)
    for jump in [*jumps, 0, len(world.journal)]:
        world.journal.seek(jump % (len(world.journal) + 1))
        assert world.state() == world.states[world.journal.cursor]


@settings(max_examples=60)
@given(operations, operations, st.integers(1, 9), st.integers(0, 2**16))
def test_another_future_leaves_no_block_of_the_old_one(done, others, size, at):
    world = World(size)
    for operation in done:
        world.do(*operation)
    for _ in range(20):
        world.journal.seek(0)
        world.journal.seek(len(world.journal))
    world.journal.seek(at % (len(world.journal) + 1))
    world.journal.truncate()
    del world.states[world.journal.cursor + 1 :]
    for operation in others:
        world.do(*operation)
    for moment in (0, len(world.journal), len(world.journal) // 2, 0):
        world.journal.seek(moment)
        assert world.state() == world.states[moment]


def test_a_cell_that_is_back_where_it_was_is_not_in_the_net_effect():
    one, other = Table("one"), Table("other")
    log = [one, 1, None, 5, other, 1, 2, 3, one, 1, 5, None, other, 1, 3, 4]
    assert net(log) == [other, 1, 2, 4]


def test_nothing_is_put_together_across_what_is_no_cell():
    one, stack = Table("one"), Stack()
    log = [one, 1, None, 5, stack, 0, None, 7, one, 1, 5, None]
    assert net(log) == log


def test_blocks_are_made_a_few_a_jump_and_then_used_on_every_level():
    world = World(2)
    for number in range(48):
        world.do(0, number % 4, number + 1)
    world.journal.seek(0)
    assert len(world.journal.blocks.made) == 2
    for _ in range(60):
        world.journal.seek(48)
        world.journal.seek(0)
    parts = world.journal.blocks.parts(world.journal.log, 1, 48)
    assert [part.level for part in parts] == [-1, *[0] * 7, 1, 1]
    assert [part.first for part in parts] == [1, *range(2, 16, 2), 16, 32]


def test_the_index_knows_what_occurs_in_a_stretch_and_forgets_what_is_gone():
    log, table = [], Table("one")
    for number in range(index.STRETCH + 3):
        log += (table, number, None, 1)
    found = index.Index()
    assert found.of(log, 0).fields == frozenset(range(index.STRETCH))
    assert found.of(log, 1).fields == {index.STRETCH, index.STRETCH + 1, index.STRETCH + 2}
    assert found.of(log, 1).objects == {found.numbers.known(table)} == {0}
    assert found.of(log, 1).classes == {Table}
    assert len(found.known) == 1
    found.forget_after(index.STRETCH - 1)
    assert not found.known
    found.catch_up(log)
    assert len(found.known) == 1


def test_an_object_has_the_same_number_whenever_it_is_asked_for():
    """Numbers follow the log, whatever was asked before and whatever future was forgotten."""
    tables = [Table(str(number)) for number in range(5)]
    log = []
    for number in range(2 * index.STRETCH + 9):
        log += (tables[number // index.STRETCH], number, None, 1)
    asked = index.Index()
    assert asked.of(log, 2).objects == {2}
    lost = log[:]
    del lost[(index.STRETCH + 5) * 4 :]
    asked.forget_after(index.STRETCH + 5)
    lost += [*(tables[4], 0, None, 1), *(tables[2], 0, None, 1)]
    assert asked.numbered(lost).objects == [tables[0], tables[1], tables[4], tables[2]]
    assert index.Index().numbered(lost).objects == asked.numbers.objects


def test_open_functions_are_found_again_after_another_future(monkeypatch):
    monkeypatch.setattr(journals, "STACKS", 8)
    journal, table = Journal(), Table("one")

    def command(*fids):
        """Each function calls the next one; an event in each of them, and on the way back."""
        for fid in fids:
            journal.marks.extend((len(journal.log), fid))
            journal.log.extend((table, fid, None, 1))
        for fid in reversed(fids):
            journal.log.extend((table, fid, 1, None))
            journal.marks.extend((len(journal.log), ~fid))
        journal.catch_up()

    def opened(index):
        stack = []
        for fid in journal.marks[1:index:2]:
            stack.append(fid) if fid >= 0 else stack.pop()
        return stack

    def holds():
        return all(
            journal.open_before(index) == opened(index)
            for index in range(0, len(journal.marks) + 1, 2)
        )

    command(1, 2, 3)
    command(*range(9))
    assert holds()
    journal.seek(6)
    journal.truncate()
    assert len(journal.marks) == 12
    command(7, 5, 7, 5, 7)
    assert holds()

"""The laws of the journal: what is undone is as it was, what is redone is as it became, the same
commands give the same history; and an unrecorded machine does the same work."""

import random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kemu.abi.uapi import MADV_GUARD_INSTALL, MAP_ANONYMOUS, MAP_PRIVATE
from kemu.kernel.include.system import system
from kemu.kernel.init.boot import Kernel
from kemu.kernel.mm.rows import bulk
from kemu.machine.geometry import RISCV_SV39, X86_64_5LEVEL
from kemu.trace.blocks import Blocks
from kemu.userland.script import Script
from tests.properties.operations import journal_digest, programs, run


@settings(max_examples=40)
@given(programs, st.integers(0, 2**32))
def test_going_to_any_moment_gives_the_state_of_that_moment(program, seed):
    kernel, moments = run(program)
    jumps = moments * 2
    random.Random(seed).shuffle(jumps)
    for event, state in jumps:
        kernel.journal.seek(event)
        assert kernel.state_hash() == state


@settings(max_examples=12)
@given(programs, st.integers(0, 2**32), st.integers(5, 200))
def test_a_jump_over_net_effects_gives_the_state_of_that_moment(program, seed, size):
    kernel, moments = run(program)
    kernel.journal.blocks = Blocks(size)
    jumps = [*moments, (0, Kernel().state_hash())] * 3
    random.Random(seed).shuffle(jumps)
    for event, state in jumps:
        kernel.journal.seek(event)
        assert kernel.state_hash() == state
    kernel.journal.seek(0)
    kernel.journal.seek(len(kernel.journal))  # crosses every block, whatever was drawn
    assert kernel.journal.blocks.made or len(kernel.journal) < size


@settings(max_examples=40)
@given(programs, st.integers(0, 2**32))
def test_a_moment_inside_a_command_is_the_same_from_both_sides(program, seed):
    kernel, _ = run(program)
    last = len(kernel.journal)
    for event in sorted(random.Random(seed).sample(range(last + 1), min(last, 6))):
        kernel.journal.seek(0)
        kernel.journal.seek(event)
        forward = kernel.state_hash()
        kernel.journal.seek(last)
        kernel.journal.seek(event)
        assert kernel.state_hash() == forward


@settings(max_examples=40)
@given(programs)
def test_one_step_back_and_forth_at_every_event_changes_nothing(program):
    kernel, moments = run(program[:6])
    for event in range(len(kernel.journal), 0, -1):
        kernel.journal.seek(event - 1)
        kernel.journal.seek(event)
        kernel.journal.seek(event - 1)
    kernel.journal.seek(len(kernel.journal))
    assert kernel.state_hash() == moments[-1][1]


@settings(max_examples=40)
@given(programs)
def test_the_same_commands_give_the_same_history(program):
    first, first_moments = run(program)
    second, second_moments = run(program)
    assert journal_digest(first.journal) == journal_digest(second.journal)
    assert first_moments == second_moments


@settings(max_examples=40)
@given(programs)
def test_an_unrecorded_machine_does_the_same(program):
    _, recorded = run(program)
    _, unrecorded = run(program, record=False)
    assert [state for _, state in recorded] == [state for _, state in unrecorded]


@settings(max_examples=15)
@given(programs, st.sampled_from([X86_64_5LEVEL, RISCV_SV39]))
def test_the_laws_hold_for_other_page_tables(program, geometry):
    kernel, moments = run(program, geometry=geometry)
    for event, state in moments[::-1]:
        kernel.journal.seek(event)
        assert kernel.state_hash() == state


GUARD = 8
"""Beside PROT_* (0, 1, 3): put guard pages there."""


def _fork_after(writes, prot_changes, *, rows):
    """The states before and after a fork of a process with scattered pages, with whole-row events
    or without."""
    bulk.enabled, bulk.min_entries = rows, 1
    try:
        kernel = Kernel()
        script = Script(kernel)
        task = script.spawn("p")
        base = script.syscall(task, "mmap", 0, 1200 * 4096, 3, MAP_ANONYMOUS | MAP_PRIVATE).value
        for at, write in writes:
            if write:
                script.store(task, base + at * 4096, b"w")
            else:
                script.load(task, base + at * 4096, 1)
        for at, n, prot in prot_changes:
            call, last = ("madvise", MADV_GUARD_INSTALL) if prot == GUARD else ("mprotect", prot)
            script.syscall(task, call, base + at * 4096, n * 4096, last)
        before = kernel.state_hash()
        start = len(kernel.journal)
        child = system.tasks[script.syscall(task, "fork").value]
        events = len(kernel.journal) - start
        after = kernel.state_hash()
        kernel.journal.seek(start)
        assert kernel.state_hash() == before
        kernel.journal.seek(len(kernel.journal))
        assert kernel.state_hash() == after
        script.store(child, base + writes[0][0] * 4096, b"c")
        return after, kernel.state_hash(), events
    finally:
        bulk.enabled, bulk.min_entries = True, 64


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 1199), st.booleans()), min_size=1, max_size=40),
    st.lists(
        st.tuples(st.integers(0, 1100), st.integers(1, 90), st.sampled_from([0, 1, 3, GUARD])),
        max_size=3,
    ),
)
@example([(at, True) for at in range(6)], [(2, 1, GUARD), (4, 1, 0)])
def test_a_copied_row_equals_the_loop(writes, prot_changes):
    row_fork, row_write, row_events = _fork_after(writes, prot_changes, rows=True)
    loop_fork, loop_write, loop_events = _fork_after(writes, prot_changes, rows=False)
    assert row_fork == loop_fork
    assert row_write == loop_write
    if len({at for at, write in writes if write}) > 2:
        assert row_events < loop_events

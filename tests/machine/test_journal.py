"""The laws of the journal: undo after do changes nothing, redo gives the same, and both hold at
every point between.

A barrier that forgets a field would still pass an undo of everything followed by a redo of
everything; so the state is compared at many points in the middle, with snapshots that were taken
while the machine ran."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.errors import KernelBug
from kemu.machine.physmem import PhysMem
from kemu.trace.barrier import (
    STRUCTS,
    Table,
    is_recording,
    record,
    sealed,
    struct,
)
from kemu.trace.journal import SLOTS, Journal
from tests.machine.machines import recorded
from tests.machine.world import Node, World, changes


def run(steps):
    """A world after ``steps``, its journal, and {event number: snapshot} at the end of every
    step."""
    world = World()
    with recorded() as journal:
        shots = {0: world.snapshot()}
        for change in steps:
            world.apply(change)
            shots[len(journal)] = world.snapshot()
    return world, journal, shots


@given(changes)
def test_undo_after_do_is_the_identity(steps):
    world, journal, shots = run(steps)
    journal.seek(0)
    assert world.snapshot() == shots[0]


@given(changes)
def test_redo_gives_the_same(steps):
    world, journal, shots = run(steps)
    journal.seek(0)
    journal.seek(len(journal))
    assert world.snapshot() == shots[len(journal)]


@given(changes, st.data())
def test_any_walk_through_time_meets_the_states_that_were(steps, data):
    world, journal, shots = run(steps)
    for stop in data.draw(st.lists(st.sampled_from(sorted(shots)), min_size=1, max_size=12)):
        journal.seek(stop)
        assert journal.cursor == stop
        assert world.snapshot() == shots[stop]


@given(changes)
def test_single_steps_back_and_forward_meet_the_states_that_were(steps):
    world, journal, shots = run(steps)
    path = [*range(len(journal), -1, -1), *range(1, len(journal) + 1)]
    seen = {}
    for stop in path:
        journal.seek(stop)
        now = world.snapshot()
        assert now == shots.get(stop, now)
        assert now == seen.setdefault(stop, now)


@given(changes)
def test_an_events_old_value_is_what_stood_there_before_it(steps):
    _, journal, _ = run(steps)
    for number in range(len(journal), 0, -1):
        obj, field, old, new = journal.event(number)
        assert _value(obj, field) is new
        journal.seek(number - 1)
        assert _value(obj, field) is old


def _value(obj, field):
    return obj.get(field) if isinstance(obj, Table) else getattr(obj, field)


@given(changes)
def test_the_same_changes_give_the_same_journal(steps):
    """Nothing of the host leaks in: no address, no hash, no time."""
    first, second = (run(steps)[1] for _ in range(2))
    assert _readable(first) == _readable(second)


def _readable(journal):
    return [
        (type(obj).__name__, field, _plain(old), _plain(new))
        for obj, field, old, new in _events(journal)
    ]


def _events(journal):
    return [journal.event(n) for n in range(1, len(journal) + 1)]


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in sorted(value.items())}
    return (value.number, value.text) if isinstance(value, Node) else value


@given(changes)
def test_unrecorded_everything_is_the_same_but_the_past(steps):
    recorded_world, _, shots = run(steps)
    plain = World()
    for change in steps:
        plain.apply(change)
    assert plain.snapshot() == shots[max(shots)] == recorded_world.snapshot()


@given(changes, changes, st.data())
def test_another_future_may_follow_a_place_in_the_past(steps, others, data):
    world, journal, shots = run(steps)
    place = data.draw(st.sampled_from(sorted(shots)))
    journal.seek(place)
    journal.truncate()
    assert journal.at_end
    record(journal)
    for change in others:
        world.apply(change)
    record(None)
    journal.catch_up()
    journal.seek(place)
    assert world.snapshot() == shots[place]
    journal.seek(0)
    assert world.snapshot() == shots[0]


@given(changes, changes)
def test_sealed_state_cannot_be_changed_and_leaves_no_trace(steps, others):
    world, journal, shots = run(steps)
    record(journal)
    with sealed():
        for change in others:
            before = world.snapshot()
            try:
                world.apply(change)
            except KernelBug:
                pass
            else:
                assert change[0] in {"invlpg", "flush", "clear"}  # nothing to forget: no write
            assert world.snapshot() == before
    record(None)
    assert len(journal) == max(shots)


def test_sealed_names_what_was_written():
    with (
        recorded(),
        sealed(),
        pytest.raises(KernelBug, match=r"Node\.number while the state is sealed"),
    ):
        Node().number = 1


def test_after_sealed_recording_goes_on():
    node = Node()
    with recorded() as journal:
        with sealed():
            pass
        node.number = 1
        assert len(journal) == 1


def test_a_new_object_makes_no_event_until_it_is_linked():
    table = Table("t")
    with recorded() as journal:
        node = Node(number=7)
        assert len(journal) == 0
        table.put("n", node)
        assert len(journal) == 1


def test_events_are_numbered_from_one_and_the_state_at_n_is_the_one_after_event_n():
    node = Node()
    with recorded() as journal:
        node.number = 10
        node.number = 20
    assert journal.event(1) == (node, "number", 0, 10)
    assert journal.event(2) == (node, "number", 10, 20)
    journal.seek(1)
    assert node.number == 10
    for wrong in (0, 3, -1):
        with pytest.raises(IndexError, match="events 1 to 2"):
            journal.event(wrong)


@pytest.mark.parametrize("wrong", [-1, 2, 10**30])
def test_a_place_outside_of_the_journal_is_refused_and_nothing_moves(wrong):
    node = Node()
    with recorded() as journal:
        node.number = 1
    with pytest.raises(IndexError, match="events 0 to 1"):
        journal.seek(wrong)
    assert (node.number, journal.cursor) == (1, 1)


def test_the_cursor_follows_the_end_when_it_is_asked_to():
    node = Node()
    journal = Journal()
    record(journal)
    node.number = 1
    assert not journal.at_end
    journal.catch_up()
    assert journal.at_end
    record(None)
    journal.seek(0)
    assert not journal.at_end


def test_two_journals_take_turns():
    node, other = Node(), Node()
    first, second = Journal(), Journal()
    record(first)
    node.number = 1
    record(second)
    other.number = 2
    record(first)
    node.number = 3
    record(None)
    assert (len(first), len(second)) == (2, 1)
    assert len(first.log) == 2 * SLOTS


def test_switching_recording_off_takes_the_barrier_out_of_every_class():
    for cls in STRUCTS:
        field = attrs.fields(cls)[0].name
        obj = cls.__new__(cls)
        with recorded() as journal:
            obj._restore(field, 1)
            setattr(obj, field, 2)
        setattr(obj, field, 3)
        assert journal.log == [obj, field, 1, 2], cls
    assert not is_recording()


def test_a_struct_defined_while_recording_is_recorded_too():
    with recorded() as journal:

        @struct
        class Late:
            field: int = 0

        late = Late()
        late.field = 5
        assert len(journal) == 1
    late.field = 6
    assert len(journal) == 1


def test_a_struct_that_extends_another_is_recorded_in_all_its_fields():
    @struct
    class Wider(Node):
        width: int = 0

    wider = Wider(table=Table("t"))
    with recorded() as journal:
        wider.width = 1
        wider.number = 2
        assert [journal.event(n)[1] for n in (1, 2)] == ["width", "number"]
    wider.number = 4
    assert len(journal) == 2


def test_a_page_copied_or_cleared_is_one_event():
    ram = PhysMem(4)
    ram.write(0x1000, bytes(range(1, 200)))
    with recorded() as journal:
        ram.copy_page(2, 1)
        assert len(journal) == 1
        ram.clear_page(1)
        assert len(journal) == 2
        ram.clear_page(1)
        assert len(journal) == 2
    journal.seek(1)
    assert ram.get_page(1) == ram.get_page(2)
    journal.seek(0)
    assert 2 not in ram.frames


def test_a_store_is_one_event_but_the_first_of_a_frame_makes_the_frame_too():
    ram = PhysMem(4)
    with recorded() as journal:
        ram.store(0x1000, 1)
        assert len(journal) == 2
        ram.store(0x1008, 1)
        assert len(journal) == 3


def test_structs_are_compared_by_identity_and_take_no_new_fields():
    with recorded():
        assert Node() != Node()
        with pytest.raises(AttributeError):
            Node().nmber = 1
    with pytest.raises(AttributeError):
        Node().nmber = 1


def test_cutting_off_the_future_cuts_off_its_calls():
    journal = Journal()
    journal.log[:] = [None] * 8  # two events
    journal.marks.extend([0, 5, 4, ~5, 4, 6, 4, ~6, 4, 7, 4, 8, 8, ~8, 8, ~7])
    journal.cursor = 1
    journal.truncate()
    assert list(journal.marks) == [0, 5, 4, ~5, 4, 6, 4, ~6]

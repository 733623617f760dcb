"""Call frames: marks around every decorated function, and the tree that is read from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.kernel.mm.fault_wp import do_wp_page
from kemu.trace.barrier import record, sealed, struct
from kemu.trace.frames import FUNCTIONS, HARDWARE, call_tree, hardware, linux
from kemu.trace.journal import SLOTS, Journal
from tests.machine.machines import recorded


@struct
class Box:
    value: int = 0


@linux("mm/leaf.c")
def leaf(box, n=1):
    """Adds."""
    box.value += n
    return box.value


@linux("mm/branch.c")
def branch(box, plan, *, last=0):
    """Calls as ``plan`` says: a number is a change, a list is another call."""
    for step in plan:
        if isinstance(step, list):
            branch(box, step)
        else:
            leaf(box, step)
    box.value += last


@linux("mm/fails.c")
def fails(box):
    box.value = 1
    raise ValueError("inside")


@hardware
def walks(box):
    box.value += 100


def by_name(name):
    return next(f for f in reversed(FUNCTIONS) if f.name == name and f.module == __name__)


def test_a_decorated_function_says_where_its_original_lives():
    function = by_name("leaf")
    assert (function.path, function.doc) == ("mm/leaf.c", "Adds.")
    assert FUNCTIONS[function.fid] is function
    assert by_name("walks").path == HARDWARE


@pytest.mark.parametrize("recording", [True, False])
def test_the_wrapper_keeps_results_defaults_keywords_and_errors(recording):
    box = Box()

    def use():
        assert leaf(box) == 1
        assert leaf(box, 5) == 6
        assert leaf(n=2, box=box) == 8
        branch(box, [], last=3)
        assert box.value == 11
        with pytest.raises(ValueError, match="inside"):
            fails(box)
        with pytest.raises(TypeError):
            leaf()

    if recording:
        with recorded():
            use()
    else:
        use()


def test_marks_stand_around_the_events_of_a_call():
    box = Box()
    with recorded() as journal:
        box.value = 1
        leaf(box)
    fid = by_name("leaf").fid
    assert list(journal.marks) == [1 * SLOTS, fid, 2 * SLOTS, ~fid]


def test_a_function_left_by_an_exception_is_left():
    with recorded() as journal:
        with pytest.raises(ValueError, match="inside"):
            fails(Box())
        leaf(Box())
    assert [(c.function.name, c.first, c.last) for c in call_tree(journal.marks)] == [
        ("fails", 0, 1),
        ("leaf", 1, 2),
    ]


def test_unrecorded_calls_leave_no_marks():
    with recorded() as journal:
        leaf(Box())
        marks = list(journal.marks)
    leaf(Box())
    assert list(journal.marks) == marks


def test_a_sealed_call_leaves_no_marks():
    @linux("mm/looks.c")
    def looks(box):
        return box.value

    with recorded() as journal:
        with sealed():
            assert looks(Box(3)) == 3
        assert len(journal.marks) == 0


def takes_any(*args):
    return args


def takes_names(**kwargs):
    return kwargs


def has_a_closure(captured="free"):
    return lambda: captured


@pytest.mark.parametrize("function", [takes_any, takes_names, has_a_closure()])
def test_a_function_whose_signature_cannot_be_kept_is_refused_when_it_is_defined(function):
    with pytest.raises(TypeError, match="a function with a frame"):
        linux("mm/no.c")(function)


plans = st.recursive(
    st.integers(1, 5), lambda inner: st.lists(inner, max_size=4), max_leaves=12
).filter(lambda plan: isinstance(plan, list))


@given(plans, plans)
def test_the_call_tree_has_the_shape_of_the_calls(first, second):
    box = Box()
    with recorded() as journal:
        branch(box, first)
        box.value = 0
        branch(box, second)
    roots = call_tree(journal.marks)
    assert [c.function.name for c in roots] == ["branch", "branch"]
    assert [shape(c) for c in roots] == [outline(first), outline(second)]
    check(roots, 0, len(journal), 0)


def shape(call):
    """The plan that was called, read back from the tree; "leaf" for a change."""
    return [
        shape(child) if child.function.name == "branch" else child.function.name
        for child in call.children
    ]


def outline(plan):
    return [outline(step) if isinstance(step, list) else "leaf" for step in plan]


def check(calls, low, high, depth):
    """Siblings follow each other inside their caller; depths count."""
    for call in calls:
        assert low <= call.first <= call.last <= high
        assert call.depth == depth
        check(call.children, call.first, call.last, depth + 1)
        low = call.last


@given(plans)
def test_the_open_frames_of_an_event_are_the_path_to_it_in_the_tree(plan):
    box = Box()
    with recorded() as journal:
        branch(box, plan, last=1)
    for number in range(1, len(journal) + 1):
        assert open_at(journal, number) == path(call_tree(journal.marks), number)


def open_at(journal, number):
    """The functions that were open when event `number` happened, outermost first."""
    ends = (number - 1) * SLOTS
    first_after = next(
        (i for i in range(0, len(journal.marks), 2) if journal.marks[i] > ends), None
    )
    index = len(journal.marks) if first_after is None else first_after
    return [FUNCTIONS[fid].name for fid in journal.open_before(index)]


def path(calls, number):
    for call in calls:
        if call.first < number <= call.last:
            return [call.function.name, *path(call.children, number)]
    return []


def test_a_call_that_is_cut_off_ends_where_the_marks_end():
    box = Box()
    with recorded() as journal:
        branch(box, [1, [2]])
    calls = call_tree(journal.marks, 0, 6)
    assert [(c.function.name, len(c.children)) for c in calls] == [("branch", 1)]
    assert calls[0].last == 1


def test_a_tree_may_begin_at_a_later_mark():
    box = Box()
    with recorded() as journal:
        leaf(box)
        begin = len(journal.marks)
        walks(box)
    assert [c.function.name for c in call_tree(journal.marks, begin)] == ["walks"]
    assert open_at(journal, 2) == ["walks"]


def test_the_marking_code_claims_no_line_of_the_function():
    """What looks at lines (`why errno`) would take it for the function itself."""
    written = do_wp_page.__code__
    record(Journal())
    try:
        marking = do_wp_page.__code__
    finally:
        record(None)
    assert marking is not written, "nothing was marked"
    lines = {line for _, _, line in marking.co_lines() if line}
    assert lines == {written.co_firstlineno}

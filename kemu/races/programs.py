"""The built-in litmus programs: what two CPUs do with one counted object.

    get     atomic_t     get                   refcount_t   the same, which warns and saturates
            plain int    load  add  store
    put     atomic_t     dec_and_test  free    plain int    load  sub  store  free
    use     read the object; wrong if it has been freed

``free`` frees if the put before it dropped the last reference.  Start values make the program
correct if its operations are: what is wrong afterwards is due to the schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from kemu.errors import UsageError
from kemu.machine.atomic import ADD_OVF, ADD_UAF, INT_MAX, REFCOUNT_SATURATED, SUB_UAF
from kemu.races.litmus import Effect, Local, Program, Shared, Step

ATOMIC, PLAIN, REFCOUNT = "atomic", "non-atomic", "refcount"
COUNT, OBJECT, LOCK = frozenset({"count"}), frozenset({"object"}), frozenset({"lock"})
MOST_USES, MOST_CPUS = 8, 3


@attrs.frozen
class Knobs:
    """The parameters of a program: the kind of count, CPUs, trailing uses (None: the program's
    default), start value (u32), the repair, and the CPUs that do not take the lock."""

    kind: str = ATOMIC
    cpus: int = 2
    uses: int | None = None
    count: int | None = None
    unless_zero: bool = False
    unlocked: frozenset[int] = frozenset()


def as_int(value: int) -> int:
    """A number as a C int."""
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


# ---------------------------------------------------------------- counts


def counted(kind: str, value: int, operation: str) -> tuple[int, bool, str]:
    """One operation on a count of ``value``: the new value, the result, and refcount_t's warning.

    The result is True for "get", whether a reference was taken for "get_unless_zero", whether
    it was the last one for "put"."""
    if operation == "get_unless_zero" and value == 0:
        return 0, False, ""
    if operation == "put":
        if kind == REFCOUNT and value <= 0:
            return REFCOUNT_SATURATED, False, SUB_UAF
        return as_int(value - 1), value == 1, ""
    if kind == REFCOUNT and (value <= 0 or value == INT_MAX):
        return REFCOUNT_SATURATED, True, ADD_OVF if value else ADD_UAF
    return as_int(value + 1), True, ""


def _warned(shared: Shared, complaint: str) -> Shared:
    if not complaint or complaint in shared.warnings:
        return shared
    return shared._replace(warnings=(*shared.warnings, complaint))


def _get(kind: str, operation: str) -> Step:
    def act(shared: Shared, local: Local) -> Effect:
        value, got, complaint = counted(kind, shared.refcount, operation)
        after = _warned(shared._replace(refcount=value, holders=shared.holders + got), complaint)
        return Effect(after, local._replace(stopped=not got))

    return Step(operation, act, reads=COUNT, writes=COUNT)


def _put(kind: str, name: str = "dec_and_test") -> Step:
    def act(shared: Shared, local: Local) -> Effect:
        if local.stopped:
            return Effect(shared, local)
        value, last, complaint = counted(kind, shared.refcount, "put")
        return Effect(
            _warned(shared._replace(refcount=value, holders=shared.holders - 1), complaint),
            local._replace(zero=last),
        )

    return Step(name, act, reads=COUNT, writes=COUNT)


def _load(shared: Shared, local: Local) -> Effect:
    return Effect(shared, local._replace(value=shared.refcount))


def _change(by: int) -> Step:
    return Step(
        "add" if by > 0 else "sub",
        lambda shared, local: Effect(shared, local._replace(value=as_int(local.value + by))),
    )


def _store(by: int) -> Step:
    def act(shared: Shared, local: Local) -> Effect:
        after = shared._replace(refcount=local.value, holders=shared.holders + by)
        return Effect(after, Local(zero=by < 0 and local.value == 0))

    return Step("store", act, writes=COUNT)


def _free(shared: Shared, local: Local) -> Effect:
    if local.stopped or not local.zero:
        return Effect(shared, local)
    return Effect(
        shared._replace(freed=shared.freed + 1), local, "double free" if shared.freed else ""
    )


def _use(shared: Shared, local: Local) -> Effect:
    return Effect(shared, local, "use after free" if shared.freed and not local.stopped else "")


def _test(shared: Shared, local: Local) -> Effect:
    return Effect(shared, local._replace(zero=shared.refcount == 0))


def _lock(shared: Shared, local: Local) -> Effect:
    return Effect(shared._replace(lock=1), local)


def _unlock(shared: Shared, local: Local) -> Effect:
    return Effect(shared._replace(lock=0), local)


LOAD = Step("load", _load, reads=COUNT)
FREE = Step("free if last", _free, writes=OBJECT)
USE = Step("use", _use, reads=OBJECT)
TEST = Step("test", _test, reads=COUNT)
SPIN_LOCK = Step("lock", _lock, lambda shared: not shared.lock, LOCK, LOCK)
SPIN_UNLOCK = Step("unlock", _unlock, writes=LOCK)
NOTHING = Step("step", Effect)


def get(knobs: Knobs, operation: str = "get") -> tuple[Step, ...]:
    """Take a reference."""
    if knobs.kind == PLAIN:
        return (LOAD, _change(1), _store(1))
    return (_get(knobs.kind, operation),)


def put(knobs: Knobs) -> tuple[Step, ...]:
    """Drop a reference, and free the object if it was the last."""
    if knobs.kind == PLAIN:
        return (LOAD, _change(-1), _store(-1), FREE)
    return (_put(knobs.kind), FREE)


def judge(shared: Shared) -> str:
    """The outcome of a finished run: the count must be the number of holders, and the object must
    be freed exactly if there are none."""
    if shared.freed and shared.holders:
        return "freed while held"
    if shared.refcount == REFCOUNT_SATURATED and shared.warnings:
        return "saturated"
    if not shared.freed and not shared.holders:
        return "leak"
    return "ok" if shared.refcount == as_int(shared.holders) else "lost update"


# ---------------------------------------------------------------- programs


def _gets(knobs: Knobs, uses: tuple[Step, ...]) -> list[tuple[Step, ...]]:
    return [get(knobs) + uses] * knobs.cpus


def _puts(knobs: Knobs, uses: tuple[Step, ...]) -> list[tuple[Step, ...]]:
    return [uses + put(knobs)] * knobs.cpus


def _get_puts(knobs: Knobs, uses: tuple[Step, ...]) -> list[tuple[Step, ...]]:
    return [get(knobs) + uses + put(knobs)] * knobs.cpus


def _dec_then_test(knobs: Knobs, uses: tuple[Step, ...]) -> list[tuple[Step, ...]]:
    drop = put(knobs)[:-1] if knobs.kind == PLAIN else (_put(knobs.kind, "dec"),)
    return [uses + drop + (TEST, FREE)] * knobs.cpus


def _get_last_put(knobs: Knobs, uses: tuple[Step, ...]) -> list[tuple[Step, ...]]:
    taking = get(knobs, "get_unless_zero" if knobs.unless_zero else "get")
    return [taking + uses + put(knobs)] * (knobs.cpus - 1) + [put(knobs)]


def _locked_gets(knobs: Knobs, uses: tuple[Step, ...]) -> list[tuple[Step, ...]]:
    plain = get(attrs.evolve(knobs, kind=PLAIN))
    locked = (SPIN_LOCK, *plain, SPIN_UNLOCK)
    return [(plain if cpu in knobs.unlocked else locked) + uses for cpu in range(knobs.cpus)]


def _overflow(knobs: Knobs, uses: tuple[Step, ...]) -> list[tuple[Step, ...]]:
    return [get(knobs) + uses, *[get(knobs) + put(knobs)] * (knobs.cpus - 1)]


def _independent(knobs: Knobs, uses: tuple[Step, ...]) -> list[tuple[Step, ...]]:
    return [(NOTHING,) * len(uses)] * knobs.cpus


@attrs.frozen
class LitmusCase:
    """A built-in program: what it shows, the function that makes its CPUs, its default number of
    uses, the start value for N CPUs."""

    name: str
    summary: str
    make: Callable[[Knobs, tuple[Step, ...]], list[tuple[Step, ...]]]
    uses: int
    start: Callable[[int], int]
    knows: frozenset[str] = frozenset({"kind"})


_ALL = (
    LitmusCase("gets", "each CPU takes a reference", _gets, 1, lambda _: 1),
    LitmusCase(
        "puts", "each CPU drops a reference, the last one frees", _puts, 0, lambda cpus: cpus
    ),
    LitmusCase(
        "get-put",
        "each CPU takes a reference, uses the object and drops it again",
        _get_puts,
        1,
        lambda _: 1,
    ),
    LitmusCase(
        "dec-then-test",
        "drop, then test the count in a second step, then free",
        _dec_then_test,
        0,
        lambda cpus: cpus,
    ),
    LitmusCase("dec-and-test", "drop and test in one step, then free", _puts, 0, lambda cpus: cpus),
    LitmusCase(
        "get-last-put",
        "one CPU takes a reference while the other drops the last",
        _get_last_put,
        1,
        lambda _: 1,
        frozenset({"kind", "unless"}),
    ),
    LitmusCase(
        "locked-gets",
        "plain gets under a spinlock",
        _locked_gets,
        0,
        lambda _: 1,
        frozenset({"lock"}),
    ),
    LitmusCase(
        "overflow",
        "a count of 2**32 - 1 references, and two more",
        _overflow,
        1,
        lambda _: 0xFFFFFFFF,
    ),
    LitmusCase(
        "steps",
        "steps that have nothing to do with each other",
        _independent,
        6,
        lambda _: 1,
        frozenset(),
    ),
)

LITMUS: Mapping[str, LitmusCase] = {case.name: case for case in _ALL}
"""The built-in litmus programs by name."""


def build(case: LitmusCase, knobs: Knobs) -> Program:
    """The program of a case.  ``UsageError`` for an option that it does not have, or a value out of
    range."""
    _check(case, knobs)
    uses = case.uses if knobs.uses is None else knobs.uses
    start = case.start(knobs.cpus) if knobs.count is None else knobs.count
    cpus = case.make(knobs, (USE,) * uses)
    if not all(cpus):
        raise UsageError(f"{case.name}: a CPU without steps", hint="--uses 1 gives it one")
    return Program(case.name, tuple(cpus), Shared(as_int(start), _holders(start)), judge)


def _holders(start: int) -> int:
    """The number of holders if the count is right: a value that does not fit into an int is taken
    literally."""
    return start if start >= 0 else start & 0xFFFFFFFF


def _check(case: LitmusCase, knobs: Knobs) -> None:
    if knobs.kind != ATOMIC and "kind" not in case.knows:
        raise UsageError(
            f"{case.name}: --{knobs.kind} changes nothing here", hint="its counts are as they are"
        )
    if knobs.unless_zero and ("unless" not in case.knows or knobs.kind == PLAIN):
        raise UsageError("--unless-zero is a repair of get-last-put, with --atomic or --refcount")
    if knobs.unlocked and "lock" not in case.knows:
        raise UsageError(
            f"{case.name}: it has no lock", hint="race locked-gets --without-lock lock"
        )
    if not 2 <= knobs.cpus <= MOST_CPUS:
        raise UsageError(f"--cpus {knobs.cpus}: expected 2 or 3", about="cpus")
    if knobs.uses is not None and not 0 <= knobs.uses <= MOST_USES:
        raise UsageError(f"--uses {knobs.uses}: expected 0 to {MOST_USES}", about="uses")
    if knobs.count is not None and not 0 <= knobs.count < 1 << 32:
        hint = "0xffffffff is the count of 32 bits that C prints as -1" if knobs.count < 0 else ""
        raise UsageError(
            f"--count {knobs.count}: expected a number of holders, from 0 to {(1 << 32) - 1}",
            hint=hint,
            about="count",
        )

"""The write barrier: the only way in which emulated state changes while it is recorded.

    kernel code            vma.vm_end = addr
    __setattr__            record(vma, "vm_end", old, addr)      -> four slots in the journal
    slot                   the new value

Three things hold state: the fields of a ``@struct`` (an attrs class with slots), the keys of a
``Table`` (a dictionary), and the words of RAM (``machine/physmem.py``, made of Tables too).
``None`` in a Table means *absent*.

``__init__`` bypasses the barrier: a new struct has no effect until a recorded assignment links it
somewhere, and undoing that assignment is all that undo has to do.

Recording can be switched off as a whole: then the barrier is removed from the classes and the call
wrappers from the functions (``frames.py``), and the kernel runs as written.  Going back is
impossible without it; everything else is the same.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

import attrs

from kemu.errors import KernelBug
from kemu.trace import tape
from kemu.trace.journal import Journal

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

STRUCTS: list[type] = []
"""Every class made by ``@struct``, in order of definition."""

_listeners: list[Callable[[bool], None]] = []

Target = tuple[list[Any] | None, list[int] | None, Callable[[Any, Any], None] | None]
"""Log, marks, and the function that refuses changes (``tape.direct``)."""


class _Now:
    """Whether changes are recorded, and where the records go."""

    def __init__(self) -> None:
        self.recording = False
        self.target: Target = (None, None, None)

    def direct(self, target: Target) -> None:
        """Direct the records to ``target``."""
        self.target = target
        tape.direct(*target)


_now = _Now()


def is_recording() -> bool:
    """True while changes are recorded."""
    return _now.recording


def _refuse(obj: Any, field: Any) -> None:
    """Refuse a change, because the state is sealed."""
    raise KernelBug(
        f"write to {type(obj).__name__}.{field} while the state is sealed: looking must not change "
        "anything"
    )


@dataclass_transform(field_specifiers=(attrs.field,))
def struct(cls: type[T]) -> type[T]:
    """Make ``cls`` a kernel structure: attrs class with slots, compared by identity, every
    assignment recorded."""
    made = attrs.define(cls, slots=True, eq=False, weakref_slot=False, init=False, on_setattr=None)
    made._restore = tape.raw  # type: ignore[attr-defined]
    made._cell = True  # type: ignore[attr-defined]
    STRUCTS.append(made)
    _barrier_in_struct(made, _now.recording)
    return made


def _barrier_in_struct(cls: type, up: bool) -> None:
    """Put the barrier into ``cls``, or remove it."""
    tape.bar(cls, up)
    cls.__init__ = _init(cls, bypass=up)  # type: ignore[misc]


@cache
def _init(cls: type, *, bypass: bool) -> Any:
    """An ``__init__`` for ``cls`` that assigns its fields; with ``bypass``, without the barrier."""
    parameters, body, space = _assignments(cls, bypass=bypass)
    exec(f"def __init__({', '.join(['self', *parameters])}):\n{body}", space)
    return space["__init__"]


def _assignments(cls: type, *, bypass: bool) -> tuple[list[str], str, dict[str, Any]]:
    """How the fields of ``self``, a ``cls``, get their initial values: the parameters, the
    statements, and the names that these use.  With ``bypass`` the statements bypass the barrier."""
    parameters, body = [], []
    space: dict[str, Any] = {"_not_given": attrs.NOTHING, "_raw": tape.raw}
    assign = "    _raw(self, {0!r}, {1})\n" if bypass else "    self.{0} = {1}\n"
    for field in sorted(attrs.fields(cls), key=lambda field: bool(field.kw_only)):
        default: Any = field.default
        makes = isinstance(default, attrs.Factory)  # type: ignore[arg-type]
        space[f"_{field.name}"] = default.factory if makes else default
        value = f"_{field.name}()" if makes else f"_{field.name}"
        if field.init:
            if field.kw_only and "*" not in parameters:
                parameters.append("*")
            needed = default is attrs.NOTHING
            parameters.append(
                field.alias + ("" if needed else "=_not_given" if makes else f"={value}")
            )
            value = (
                f"{value} if {field.alias} is _not_given else {field.alias}"
                if makes
                else field.alias
            )
        body.append(assign.format(field.name, value))
    return parameters, "".join(body), space


def maker(cls: type[T]) -> Callable[..., T]:
    """A function that makes structures of ``cls`` as fast as if there were no barrier, for when
    many are needed: each starts as an instance of a class of the same shape without a barrier, and
    becomes a ``cls`` once its fields are set."""
    parameters, body, space = _assignments(cast(type, cls), bypass=False)
    bare: Any = type(
        cls.__name__,
        cls.__bases__,
        {"__slots__": vars(cls)["__slots__"], "__setattr__": object.__setattr__},
    )
    space |= {"_new": object.__new__, "_bare": bare, "_cls": cls}
    exec(
        f"def make({', '.join(parameters)}):\n    self = _new(_bare)\n{body}    self.__class__ = "
        "_cls\n    return self\n",
        space,
    )
    made: Callable[..., T] = space["make"]
    return made


class Table(dict[K, V]):
    """A dictionary whose changes are events.  Change it with ``put`` only, and iterate over it in
    sorted order only: going back and forth may change the order of its keys."""

    __slots__ = ("name",)
    _cell = True

    def __init__(self, name: str = "", content: dict[K, V] | None = None) -> None:
        if content:
            self.update(content)
        self.name = name

    put: ClassVar[Callable[[Any, Any, Any], None]] = tape.put
    """Set a key; ``None`` removes it."""

    _restore = tape.put


def _barrier_in_tables(up: bool) -> None:
    """Put the barrier into ``Table.put``, or remove it."""
    Table.put = tape.recorded_put if up else tape.put


def on_record_change(listener: Callable[[bool], None]) -> None:
    """Call ``listener(recording)`` now, and whenever recording is switched on or off."""
    _listeners.append(listener)
    listener(_now.recording)


def record(journal: Journal | None) -> None:
    """Record into ``journal`` from now on, or into nothing (``None``)."""
    _relax_collector()
    on = journal is not None
    if on != _now.recording:
        for cls in STRUCTS:
            _barrier_in_struct(cls, on)
        _barrier_in_tables(on)
        _now.recording = on
        for listener in _listeners:
            listener(on)
    _now.direct(
        (journal.log, journal.fresh_marks, None) if journal is not None else (None, None, None)
    )


@cache
def _relax_collector() -> None:
    """Called once.  A machine is millions of long-lived objects, and a journal even more; with the
    usual thresholds, the search for cycles among them would cost more than the barrier."""
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)


@contextmanager
def sealed() -> Iterator[None]:
    """Within the block every write raises ``KernelBug``, and calls are not marked.  Without
    recording there is no barrier; then the block protects only RAM and the tables that are changed
    by calling ``put``."""
    before = _now.target
    _now.direct((None, None, _refuse))
    _barrier_in_tables(True)
    try:
        yield
    finally:
        _now.direct(before)
        _barrier_in_tables(_now.recording)

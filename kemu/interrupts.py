"""Ctrl-C: where it may stop something, and how the progress is reported.

    a command that waits or computes  KeyboardInterrupt, at once
    inside a move of the journal      a moment later, when the state is whole again
    a `deferred()` block              at its next `check`, which says how far it got
    a `running_on()` block            it runs to its end if a user is there to see the result
    a second Ctrl-C in such a block   as in the first two rows

The state of a machine is spread over thousands of objects; between two events, and only there, it
is one moment of the experiment. So a long search calls `check` between two of them, and a change of
the machine runs to its end: the moment of Ctrl-C is then one that `goto` can reach.

It imports nothing of kemu, so that every part of kemu may import it.
"""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from inspect import unwrap
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

PATIENCE = 0.01
"""Seconds until Ctrl-C is tried again where it came inside an `uninterruptible` function."""

MAIN_FRAMES = 40
"""Frames of the stack that are examined, from the innermost one."""


_uninterruptible: set[CodeType] = set()
Protected = TypeVar("Protected", bound=type[Any] | Callable[..., Any])


def uninterruptible(what: Protected) -> Protected:
    """Decorate a function, or a class with all its methods: Ctrl-C waits until it has returned, as
    a signal waits for a task in TASK_UNINTERRUPTIBLE. For code that moves the state from one moment
    to another, or keeps the journal's index."""
    members = vars(what).values() if isinstance(what, type) else (what,)
    for member in members:
        called = member.fget if isinstance(member, property) else member
        function = unwrap(called) if callable(called) else called
        if isinstance(function, FunctionType):
            _uninterruptible.add(function.__code__)
    return what


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, taken where all state is consistent. `how_far` is the progress in words, `at` the
    event reached, if any."""

    def __init__(self, how_far: str, at: int | None = None) -> None:
        super().__init__(how_far)
        self.how_far = how_far
        self.at = at


class _Keyboard:
    """The state of Ctrl-C in this process: how many `deferred` blocks are open, whether it was
    pressed in one of them, what to do at that moment, and whether a change runs to its end."""

    def __init__(self) -> None:
        self.deferring = 0
        self.pressed = False
        self.patient = False
        self.when_pressed: Callable[[], None] | None = None


_keyboard = _Keyboard()


def pressed() -> bool:
    """Whether Ctrl-C was pressed in the open `deferred` block."""
    return _keyboard.pressed


def check(how_far: Callable[[], str], at: int | None = None) -> None:
    """Raise Interrupted if Ctrl-C was pressed in the open `deferred` block; all state must be
    consistent here."""
    if _keyboard.pressed:
        _keyboard.pressed = False
        raise Interrupted(how_far(), at)


@contextmanager
def deferred(when_pressed: Callable[[], None] | None = None) -> Iterator[None]:
    """Within the block the first Ctrl-C only calls `when_pressed` and is noted, for `check` and
    `pressed`."""
    before = _keyboard.when_pressed
    _keyboard.deferring += 1
    _keyboard.when_pressed = when_pressed or before
    try:
        yield
    finally:
        _keyboard.deferring -= 1
        _keyboard.when_pressed = before
        if not _keyboard.deferring:
            _keyboard.pressed = False


@contextmanager
def running_on(when_pressed: Callable[[], None]) -> Iterator[None]:
    """As `deferred` where `listening` is patient; elsewhere Ctrl-C stops at once."""
    with deferred(when_pressed) if _keyboard.patient else nullcontext():
        yield


@contextmanager
def listening(*, patient: bool = False) -> Iterator[None]:
    """Within the block Ctrl-C is taken as the module says; nothing is changed outside of the main
    thread. `patient`: a user is there who can press it twice."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, was_patient = signal.signal(signal.SIGINT, _on_interrupt), _keyboard.patient
    _keyboard.patient = patient
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _keyboard.patient = was_patient


def _on_interrupt(_number: int, frame: FrameType | None) -> None:
    """Note it, wait a moment, or raise."""
    if _keyboard.deferring and not _keyboard.pressed:
        _keyboard.pressed = True
        if _keyboard.when_pressed is not None:
            _keyboard.when_pressed()
    elif _inside_a_move(frame):
        again = threading.Timer(PATIENCE, _thread.interrupt_main)
        again.daemon = True
        again.start()
    else:
        _keyboard.pressed = False
        raise KeyboardInterrupt


def _inside_a_move(frame: Any) -> bool:
    """Whether an `uninterruptible` function is among the innermost ones."""
    for _ in range(MAIN_FRAMES):
        if frame is None:
            return False
        if frame.f_code in _uninterruptible:
            return True
        frame = frame.f_back
    return False


@contextmanager
def deaf() -> Iterator[None]:
    """Processes started within the block ignore Ctrl-C: it is for the process that started them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

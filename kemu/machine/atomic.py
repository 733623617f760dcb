"""Atomic operations: ``atomic_t`` and ``refcount_t``.

Linux writes ``atomic_inc(&mm->mm_users)``; Python has no address of a field, so here it is
``atomic_inc(mm, "mm_users")``.  Each operation is one micro-step: it calls ``step()`` first, and no
other CPU can run in the middle of it.  Values are C ``int``: ``atomic_t`` wraps at 2**31,
``refcount_t`` saturates (include/linux/refcount.h, lib/refcount.c).
"""

from __future__ import annotations

from typing import Any

from kemu.errors import KernelBug
from kemu.trace.steps import attached, is_removed, step, step_until
from kemu.trace.tape import add

INT_MIN, INT_MAX = -0x80000000, 0x7FFFFFFF
REFCOUNT_SATURATED = -0x40000000
"""The value of a refcount after any misuse: halfway into the negative numbers (C: INT_MIN / 2)."""


def _wrap(value: int) -> int:
    """``value`` as a C int."""
    if INT_MIN <= value <= INT_MAX:
        return value
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def atomic_read(obj: Any, field: str) -> int:
    """The value (int)."""
    step()
    value: int = getattr(obj, field)
    return value


def atomic_set(obj: Any, field: str, value: int) -> None:
    """Store ``value`` (int)."""
    step()
    setattr(obj, field, value)


def atomic_add_return(obj: Any, field: str, i: int) -> int:
    """Add ``i`` and return the new value (int)."""
    step()
    return add(obj, field, i)


def atomic_inc(obj: Any, field: str) -> None:
    """Add 1."""
    step()
    add(obj, field, 1)


def atomic_dec(obj: Any, field: str) -> None:
    """Subtract 1."""
    step()
    add(obj, field, -1)


def atomic_dec_and_test(obj: Any, field: str) -> bool:
    """Subtract 1; True if the result is 0."""
    return atomic_add_return(obj, field, -1) == 0


def atomic_inc_and_test(obj: Any, field: str) -> bool:
    """Add 1; True if the result is 0 (a mapcount of -1 becomes 0: the first mapping)."""
    return atomic_add_return(obj, field, 1) == 0


def atomic_add_negative(obj: Any, field: str, i: int) -> bool:
    """Add ``i``; True if the result is below 0 (a mapcount falls to -1: the last mapping is
    gone)."""
    return atomic_add_return(obj, field, i) < 0


def atomic_inc_not_zero(obj: Any, field: str) -> bool:
    """Add 1 unless the value is 0; True if added."""
    step()
    value = getattr(obj, field)
    if value == 0:
        return False
    add(obj, field, 1)
    return True


# ---------------------------------------------------------------- refcount_t


def refcount_warn_saturate(obj: Any, field: str, what: str) -> None:
    """A misuse: warn as Linux does (once per kind), and saturate, so that the object is leaked
    instead of freed too early."""
    setattr(obj, field, REFCOUNT_SATURATED)
    warn_once(what)


def warn_once(what: str) -> None:
    """Record a warning, if it is the first of its kind."""
    message = f"refcount_t: {what}"
    if message not in warnings:
        warnings.append(message)


warnings: list[str] = []
"""The warnings of refcount_t, each kind once (WARN_ONCE); whoever reads the list empties it."""

ADD_UAF, ADD_OVF = "addition on 0; use-after-free.", "saturated; leaking memory."
SUB_UAF = "underflow; use-after-free."


def refcount_inc(obj: Any, field: str) -> None:
    """Add 1; on 0 ("addition on 0; use-after-free") or on overflow ("saturated; leaking memory")
    the count saturates."""
    step()
    old = getattr(obj, field)
    if old <= 0 or old + 1 > INT_MAX:
        refcount_warn_saturate(obj, field, ADD_OVF if old else ADD_UAF)
    else:
        setattr(obj, field, old + 1)


def refcount_inc_not_zero(obj: Any, field: str) -> bool:
    """Add 1 unless the count is 0; True if it was not 0.  On overflow the count saturates."""
    step()
    old = getattr(obj, field)
    if old == 0:
        return False
    if old < 0 or old + 1 > INT_MAX:
        refcount_warn_saturate(obj, field, ADD_OVF)
    else:
        setattr(obj, field, old + 1)
    return True


def refcount_dec_and_test(obj: Any, field: str) -> bool:
    """Subtract 1; True if that was the last reference.  Below 1 ("underflow; use-after-free") the
    count saturates."""
    step()
    old = getattr(obj, field)
    if old <= 0:
        refcount_warn_saturate(obj, field, SUB_UAF)
        return False
    setattr(obj, field, old - 1)
    return bool(old == 1)


# ---------------------------------------------------------------- locks


def is_free(obj: Any, field: str) -> bool:
    """True if nobody holds the lock."""
    return not getattr(obj, field)


def spin_lock(obj: Any, field: str) -> None:
    """Take the lock as soon as it is free.  ``KernelBug`` if it is held and no other CPU can run to
    release it."""
    if attached.explorer is None:
        if getattr(obj, field):
            raise KernelBug(f"deadlock: {field} of {obj} is held")
        setattr(obj, field, 1)
    elif not is_removed(field):
        step_until(is_free, obj, field)
        setattr(obj, field, 1)


def spin_unlock(obj: Any, field: str) -> None:
    """Release the lock."""
    if attached.explorer is None:
        setattr(obj, field, 0)
    elif not is_removed(field):
        step()
        setattr(obj, field, 0)

"""Counts that are changed by plain ``n++``: load, add, store, and another CPU may come in between.

    atomic_inc        | n = n + 1 |                   nothing comes in between
    without           | load n | store n + 1 |        an update by another CPU in the gap is lost

The functions here have the names and signatures of those in machine/atomic.py, whose code they
replace during a race (``bodies``): they may use only names that that module has too.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType, FunctionType
from typing import Any, cast

from kemu.machine import atomic
from kemu.machine.atomic import ADD_OVF, INT_MAX, SUB_UAF, _wrap, refcount_warn_saturate
from kemu.trace.steps import step


def atomic_inc(obj: Any, field: str) -> None:
    """Load, add 1, store."""
    step()
    value = getattr(obj, field)
    step()
    setattr(obj, field, _wrap(value + 1))


def atomic_dec(obj: Any, field: str) -> None:
    """Load, subtract 1, store."""
    step()
    value = getattr(obj, field)
    step()
    setattr(obj, field, _wrap(value - 1))


def atomic_add_return(obj: Any, field: str, i: int) -> int:
    """Load, add, store; the value that was stored."""
    step()
    value = _wrap(getattr(obj, field) + i)
    step()
    setattr(obj, field, value)
    return value


def atomic_inc_not_zero(obj: Any, field: str) -> bool:
    """Load, compare, store."""
    step()
    value = getattr(obj, field)
    if value == 0:
        return False
    step()
    setattr(obj, field, _wrap(value + 1))
    return True


def refcount_inc_not_zero(obj: Any, field: str) -> bool:
    """Load, compare, store."""
    step()
    value = getattr(obj, field)
    if value == 0:
        return False
    if value < 0 or value + 1 > INT_MAX:
        refcount_warn_saturate(obj, field, ADD_OVF)
        return True
    step()
    setattr(obj, field, value + 1)
    return True


def refcount_dec_and_test(obj: Any, field: str) -> bool:
    """Load, compare, store."""
    step()
    value = getattr(obj, field)
    if value <= 0:
        refcount_warn_saturate(obj, field, SUB_UAF)
        return False
    step()
    setattr(obj, field, value - 1)
    return bool(value == 1)


def bodies() -> Mapping[FunctionType, CodeType]:
    """The ``Kernel.bodies`` that make counts change in this way."""
    variants = (
        atomic_inc,
        atomic_dec,
        atomic_add_return,
        atomic_inc_not_zero,
        refcount_inc_not_zero,
        refcount_dec_and_test,
    )
    return {cast(FunctionType, getattr(atomic, made.__name__)): made.__code__ for made in variants}

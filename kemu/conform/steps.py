"""The shape of a step: what an operation did, and what could be seen after it.

    {"res":  {"ret": 0, "flt": [1, 0]},
     "live": ["A", "B"],
     "obs":  {"A": {"vmas": [{"s", "e", "perm", "off", "file", "st", "fl"}, ...],
                    "pages": {"3": {"pm", "id", "mc", "kf"}, ...},
                    "mm": {"VmSize": 8, ...}}}}

A step is JSON, both in files and in memory, so its shape is described as typed dictionaries;
``check_step`` makes sure that a step from outside has this shape, so that comparing it cannot fail.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from kemu.conform.words import PROCESSES
from kemu.errors import UsageError


class VmaSeen(TypedDict):
    """One VMA: ``s``, ``e`` in pages from the window's base (``s`` may be "heap0"); ``perm`` as in
    maps; ``off`` in pages; ``st`` the non-zero numbers of smaps in kB; ``fl`` VmFlags."""

    s: int | str
    e: int
    perm: str
    off: int
    file: str
    st: dict[str, int]
    fl: str


class PageSeen(TypedDict):
    """One entry of pagemap: ``pm`` letters; ``id`` if present; ``mc`` and ``kf`` unless it is the
    zero page."""

    pm: str
    id: NotRequired[int | str]
    mc: NotRequired[int]
    kf: NotRequired[str]


class Observation(TypedDict):
    """The observation of one process; keys of ``pages`` are page numbers as text, ``mm`` is in kB
    relative to A at the start."""

    vmas: list[VmaSeen]
    pages: dict[str, PageSeen]
    mm: dict[str, int]


class Step(TypedDict):
    """One operation: its result, the processes that live after it, and those that look different
    from before."""

    res: dict[str, Any]
    live: list[str]
    obs: dict[str, Observation]


_Shape = dict[str, tuple[type, ...]]
_VMA: _Shape = {
    "s": (int, str),
    "e": (int,),
    "perm": (str,),
    "off": (int,),
    "file": (str,),
    "st": (dict,),
    "fl": (str,),
}
_PAGE: _Shape = {"pm": (str,), "id": (int, str), "mc": (int,), "kf": (str,)}
_PAGE_NEEDS = frozenset({"pm"})


def check_step(step: Any, place: str) -> None:
    """Raise ``UsageError`` unless ``step`` has the shape of a step."""
    if not isinstance(step, dict) or set(step) != {"res", "live", "obs"}:
        died = isinstance(step, dict) and "died" in step
        raise _bad(
            place,
            "the recorded process died here" if died else "a step has exactly res, live and obs",
        )
    if not isinstance(step["res"], dict):
        raise _bad(place, "res must be an object")
    live = step["live"]
    if not isinstance(live, list) or not all(
        isinstance(name, str) and name in PROCESSES for name in live
    ):
        raise _bad(place, f"live must be a list of the letters {PROCESSES}")
    if not isinstance(step["obs"], dict):
        raise _bad(place, "obs must be an object")
    for name, seen in step["obs"].items():
        if name not in live:
            raise _bad(place, f"obs shows '{name}', which does not live")
        _check_observation(seen, f"{place}, obs of {name}")


def _bad(place: str, what: str) -> UsageError:
    return UsageError(f"{place}: {what}", hint="correct it or record the program again")


def _check_observation(seen: Any, place: str) -> None:
    if not isinstance(seen, dict) or set(seen) != {"vmas", "pages", "mm"}:
        raise _bad(place, "an observation has exactly vmas, pages and mm")
    if not isinstance(seen["vmas"], list):
        raise _bad(place, "vmas must be a list")
    if not isinstance(seen["pages"], dict):
        raise _bad(place, "pages must be an object")
    _check_numbers(seen["mm"], f"{place}, mm")
    for number, vma in enumerate(seen["vmas"]):
        _check_fields(vma, _VMA, frozenset(_VMA), f"{place}, vma {number}")
        _check_numbers(vma["st"], f"{place}, vma {number}, st")
    for key, page in seen["pages"].items():
        if not key.removeprefix("-").isdecimal():
            raise _bad(place, f"'{key}' is not a page number")
        _check_fields(page, _PAGE, _PAGE_NEEDS, f"{place}, page {key}")


def _check_numbers(value: Any, place: str) -> None:
    if not isinstance(value, dict) or not all(_is(v, (int,)) for v in value.values()):
        raise _bad(place, "must be an object of numbers")


def _check_fields(value: Any, shape: _Shape, needs: frozenset[str], place: str) -> None:
    if not isinstance(value, dict):
        raise _bad(place, "must be an object")
    for name in sorted(needs - set(value)):
        raise _bad(place, f"'{name}' is missing")
    for name, content in value.items():
        if name not in shape:
            raise _bad(place, f"unknown field '{name}'")
        if not _is(content, shape[name]):
            raise _bad(
                place, f"'{name}' must be {' or '.join(kind.__name__ for kind in shape[name])}"
            )


def _is(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)

"""How an invariant is declared, and how a violation is reported.

    @invariant(44, when=ALWAYS)
    def refcount_covers_mapcount(scan):
        (its docstring: the condition in one line, its exceptions, the Linux source)
        yield place, has, wants                   one for each place where it does not hold

The numbers are those of the table in docs/invariants.md.  ``ALWAYS`` holds after every event;
``QUIESCENT`` only where no kernel function is open on any CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from kemu.invariants.scan import Scan

ALWAYS, QUIESCENT = "always", "quiescent"

Finding = tuple[str, str, str]
"""Where the condition does not hold, what is there, what should be there."""

Check = Callable[[Scan], Iterator[Finding]]


@attrs.frozen
class Invariant:
    """A named condition on the state of a kernel; ``numbers`` are its rows in
    docs/invariants.md."""

    name: str
    numbers: tuple[int, ...]
    when: str
    function: Check

    @property
    def reason(self) -> str:
        """The first line of its docstring, without the marks around names."""
        return (self.function.__doc__ or "").split("\n", 1)[0].replace("``", "")

    def violations(self, scan: Scan) -> list[Violation]:
        """Every place where it does not hold."""
        return [
            Violation(self.name, place, has, wants) for place, has, wants in self.function(scan)
        ]


@attrs.frozen
class Violation:
    """An invariant that does not hold: where, what is there, what should be there."""

    invariant: str
    place: str
    has: str
    wants: str

    def __str__(self) -> str:
        return f"{self.place}: {self.has}, but {self.wants}"


INVARIANTS: dict[str, Invariant] = {}
"""All invariants by name, in the order of declaration."""


def invariant(*numbers: int, when: str) -> Callable[[Check], Check]:
    """Declare the decorated check."""

    def declare(function: Check) -> Check:
        name = function.__name__
        INVARIANTS[name] = Invariant(name, numbers, when, function)
        return function

    return declare

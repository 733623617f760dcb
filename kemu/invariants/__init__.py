"""What must hold in the emulated kernel, as named conditions that any program can evaluate.

    from kemu.invariants import check         check(kernel) -> [Violation]
    check_at(kernel, 57, quiescent=False)     the same after event 57
    first_broken(kernel, 0, 900, quiet)       the first event after which a condition does not hold
    INVARIANTS["refcount_is_explained"]       one condition: name, numbers, when it holds, docstring

docs/invariants.md lists all conditions, and says why some are not implemented.  Each condition
counts something in two independent ways and compares the results; none calls the kernel function
that it checks.

The package only reads (``observe.look``), and copes with any state that a wrong kernel leaves.
"""

from kemu.invariants import cow, locks, pages, tables, tasks, tlb, vmas
from kemu.invariants.along import Broken, check, check_at, examine, first_broken
from kemu.invariants.registry import ALWAYS, INVARIANTS, QUIESCENT, Invariant, Violation
from kemu.invariants.scan import Scan

__all__ = [
    "ALWAYS",
    "INVARIANTS",
    "QUIESCENT",
    "Broken",
    "Invariant",
    "Scan",
    "Violation",
    "check",
    "check_at",
    "cow",
    "examine",
    "first_broken",
    "locks",
    "pages",
    "tables",
    "tasks",
    "tlb",
    "vmas",
]

"""Allocations of kernel objects that can fail (mm/slub.c, mm/failslab.c).

    vm_area_dup        if slab_fails("vm_area_struct"): return None   # Linux: NULL

Objects here are Python objects and do not run out, so an allocation fails only on purpose:
``sysctl.fail_slab`` N makes the N-th one from now on fail.  All code that makes an object asks
first, with the name of Linux's cache, and on failure undoes what it has done so far, as Linux does.
Buffers that Linux allocates with kmalloc for the duration of one call are not modelled.

Unless a failure is set, this changes nothing.
"""

from __future__ import annotations

from kemu.kernel.include.system import system
from kemu.trace.frames import linux


def slab_fails(cache: str) -> bool:
    """True if this allocation from ``cache`` is to fail."""
    return bool(system.sysctl.fail_slab) and should_failslab(cache)


@linux("mm/failslab.c")
def should_failslab(cache: str) -> bool:
    """Fault injection: count down; True for the allocation that is to fail, whose cache is then
    remembered."""
    left = system.sysctl.fail_slab
    system.sysctl.fail_slab = left - 1
    if left == 1:
        #: set fail made the allocation of {cache} fail -> the same call again: it fails only once
        system.sysctl.failed_slab = cache
    return left == 1

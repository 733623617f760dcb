"""Allocations of kernel objects that can fail (mm/slub.c, mm/failslab.c).

    vm_area_dup        if slab_fails("vm_area_struct"): return None   # Linux: NULL

Objects here are Python's and do not run out, so an allocation fails only on purpose:
``sysctl.fail_slab`` N makes the N-th one from now on fail.  Each place that makes an object asks
first, under the name of Linux's cache, and then undoes what it has done so far, as Linux does
there.  Buffers that Linux gets by kmalloc for the length of one call are not modelled.

While nothing is to fail it changes nothing.
"""

from __future__ import annotations

from kemu.kernel.include.system import system
from kemu.trace.frames import linux


def slab_fails(cache: str) -> bool:
    """True if this allocation from ``cache`` is the one that is to fail."""
    return bool(system.sysctl.fail_slab) and should_failslab(cache)


@linux("mm/failslab.c")
def should_failslab(cache: str) -> bool:
    """Fault injection: count down; True, and the name of the cache kept, for the allocation whose
    turn has come."""
    left = system.sysctl.fail_slab
    system.sysctl.fail_slab = left - 1
    if left == 1:
        #: set fail made the allocation of {cache} fail -> the same once more: it fails only once
        system.sysctl.failed_slab = cache
    return left == 1

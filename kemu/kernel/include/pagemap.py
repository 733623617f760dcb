"""The lock of a page, PG_locked (include/linux/pagemap.h, mm/filemap.c).

    folio_trylock     one atomic step: set the bit, or see that it is set
    folio_lock        folio_trylock; where that fails, __folio_lock sleeps until the bit is clear
    folio_unlock      clear the bit; the waiters may go on

It is held while a page is brought into the page cache or taken out of it, written back, made dirty
by a fault, or reclaimed: whoever holds it and finds ``folio->mapping`` unchanged knows that the
page still belongs to the file.  The order is mmap_lock, VMA, page, page table; under the
lock of a table only ``folio_trylock`` is allowed, since a sleeper must not hold a spinlock.

Neither Linux nor kemu records the holder.  Two holders are detected when the second one unlocks a
page that is not locked.
"""

from __future__ import annotations

from kemu.errors import KernelBug
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import folio
from kemu.trace.frames import linux
from kemu.trace.steps import is_removed, step, step_until

FOLIO_LOCK = "folio_lock"
"""The name of the lock, for a race that is explored without it."""


def __folio_set_locked(folio: folio) -> None:
    """Lock a new page, which no other task can reach yet: this needs no step."""
    if not is_removed(FOLIO_LOCK):
        folio.flags |= PG_locked


def folio_trylock(folio: folio) -> bool:
    """Lock the page if it is unlocked; True if it was.  Never waits."""
    if is_removed(FOLIO_LOCK):
        return True
    step()
    if folio.flags & PG_locked:
        return False
    folio.flags |= PG_locked
    return True


def folio_lock(folio: folio) -> None:
    """Lock the page, waiting while it is locked.  The caller holds a reference to it.
    ``KernelBug`` if no other task could unlock it."""
    if not folio_trylock(folio):
        __folio_lock(folio)


@linux("mm/filemap.c")
def __folio_lock(folio: folio) -> None:
    """Wait until the page is unlocked, then lock it."""
    step_until(_is_unlocked, folio, FOLIO_LOCK)
    folio.flags |= PG_locked


def _is_unlocked(folio: folio, _lock: str) -> bool:
    return not folio.flags & PG_locked


@linux("mm/filemap.c")
def folio_unlock(folio: folio) -> None:
    """Unlock the page.  ``KernelBug`` if it is not locked (VM_BUG_ON_FOLIO)."""
    if is_removed(FOLIO_LOCK):
        return
    step()
    if not folio.flags & PG_locked:
        raise KernelBug(f"folio_unlock: {folio} is not locked")
    folio.flags &= ~PG_locked

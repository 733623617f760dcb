"""Reverse mapping: from a page to every page-table entry that maps it (mm/rmap.c).

    vma (parent)  --avc-->  anon_vma A (root)  <--page.mapping--  pages written before the fork
    vma (child)   --avc-->  anon_vma A
                  --avc-->  anon_vma B         <--page.mapping--  pages that the child wrote later

An anonymous page belongs to one anon_vma as long as it lives (unless reuse moves it).  fork links
the child's VMA to all anon_vmas of the parent's VMA, so a page from before the fork is found in
both.  What the child writes later belongs to its own anon_vma, so only the child and its
descendants are searched for it.

``_mapcount`` (page-table entries minus 1) and PageAnonExclusive change in this file only.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from kemu.abi.uapi import *
from kemu.kernel.arch.pgtable import (
    pmd_of,
    pte_lock,
    pte_offset_map,
    pte_pfn,
    pte_present,
    pte_unmap_unlock,
    ptep_get,
)
from kemu.kernel.include.flags import *
from kemu.kernel.include.mm_types import (
    PAGE_SHIFT,
    address_space,
    anon_vma,
    anon_vma_chain,
    folio,
    folio_nr_pages,
    mm_struct,
    page,
    vm_area_struct,
    vm_fault,
    vma_pages,
)
from kemu.kernel.include.system import system
from kemu.kernel.mm.mlock_folio import mlock_vma_folio, munlock_vma_folio
from kemu.kernel.mm.slab import slab_fails
from kemu.machine.atomic import (
    atomic_add_negative,
    atomic_dec_and_test,
    atomic_inc,
    atomic_inc_and_test,
)
from kemu.trace.frames import linux

# ---------------------------------------------------------------- what kind of page


def folio_test_anon(folio: folio) -> bool:
    """True for an anonymous page (C: the low bit of ``mapping``)."""
    return isinstance(folio.mapping, anon_vma)


def folio_mapcount(folio: folio) -> int:
    """How many page-table entries map the page."""
    return folio._mapcount + 1


def PageAnonExclusive(page: page) -> bool:
    """True if the page may be written through its only entry without a copy."""
    return bool(page.flags & PG_anon_exclusive)


def SetPageAnonExclusive(page: page) -> None:
    """Mark the page as belonging to one entry alone."""
    page.flags |= PG_anon_exclusive


def ClearPageAnonExclusive(page: page) -> None:
    """Mark the page as shared, or about to be shared."""
    page.flags &= ~PG_anon_exclusive


# ---------------------------------------------------------------- anon_vma


def anon_vma_alloc() -> anon_vma | None:
    """A new anon_vma with one reference; None when out of memory."""
    if slab_fails("anon_vma"):
        return None
    number = system.counters.next_anon_vma
    system.counters.next_anon_vma = number + 1
    return anon_vma(id=number)


def anon_vma_prepare(vma: vm_area_struct) -> int:
    """Ensure that the VMA has an anon_vma; 0 or -ENOMEM."""
    return 0 if vma.anon_vma is not None else __anon_vma_prepare(vma)


@linux("mm/rmap.c")
def __anon_vma_prepare(vma: vm_area_struct) -> int:
    """The VMA gets its first anonymous page: use the anon_vma of a neighbour with which it might
    merge later, else a new one."""
    if slab_fails("anon_vma_chain"):
        return -ENOMEM  #: {slab_fails}
    av = find_mergeable_anon_vma(vma)
    if av is None:
        av = anon_vma_alloc()
        if av is None:
            return -ENOMEM  #: {anon_vma_alloc}
        av.root = av
        av.parent = av
        av.num_children = 1
    vma.anon_vma = av
    anon_vma_chain_link(vma, av)
    av.num_active_vmas += 1
    return 0


def vmf_anon_prepare(vmf: vm_fault) -> int:
    """The VMA is about to get its first anonymous page: it needs an anon_vma.  0 or
    VM_FAULT_OOM."""
    return VM_FAULT_OOM if anon_vma_prepare(vmf.vma) else 0  #: {anon_vma_prepare}


def anon_vma_chain_link(vma: vm_area_struct, av: anon_vma) -> None:
    """Connect a VMA and an anon_vma; the newest link is the first of the VMA's chain."""
    avc = anon_vma_chain(vma, av)
    vma.anon_vma_chain = (avc, *vma.anon_vma_chain)
    av.rb_root += (avc,)


@linux("mm/vma.c")
def find_mergeable_anon_vma(vma: vm_area_struct) -> anon_vma | None:
    """The anon_vma of the next neighbour, else of the previous one, if the two VMAs differ only in
    their rights."""
    tree = vma.vm_mm.mm_mt
    following = tree.find(vma.vm_end)
    if following is not None and following.vm_start == vma.vm_end:
        found = reusable_anon_vma(following, vma, following)
        if found is not None:
            return found
    preceding = tree.before(vma.vm_start)
    if preceding is not None and preceding.vm_end == vma.vm_start:
        return reusable_anon_vma(preceding, preceding, vma)
    return None


def reusable_anon_vma(old: vm_area_struct, a: vm_area_struct, b: vm_area_struct) -> anon_vma | None:
    """The anon_vma of ``old``, if ``a`` and ``b`` are compatible neighbours and ``old`` was not
    inherited by fork."""
    if anon_vma_compatible(a, b) and old.anon_vma is not None and len(old.anon_vma_chain) == 1:
        return old.anon_vma
    return None


def anon_vma_compatible(a: vm_area_struct, b: vm_area_struct) -> bool:
    """True if ``b`` follows ``a`` with contiguous offsets, the same file, and the same flags apart
    from rights."""
    return (
        a.vm_end == b.vm_start
        and a.vm_file is b.vm_file
        and not (a.vm_flags ^ b.vm_flags) & ~(VM_READ | VM_WRITE | VM_EXEC)
        and b.vm_pgoff == a.vm_pgoff + vma_pages(a)
    )


@linux("mm/rmap.c")
def anon_vma_clone(dst: vm_area_struct, src: vm_area_struct) -> int:
    """Link ``dst`` to every anon_vma of ``src``; a child of fork may also reuse an idle ancestor as
    its own anon_vma.  0 or -ENOMEM."""
    for avc in reversed(src.anon_vma_chain):
        av = avc.anon_vma
        if slab_fails("anon_vma_chain"):
            dst.anon_vma = None
            unlink_anon_vmas(dst)
            return -ENOMEM  #: {slab_fails}
        anon_vma_chain_link(dst, av)
        if (
            dst.anon_vma is None
            and src.anon_vma is not None
            and av.num_children < 2
            and av.num_active_vmas == 0
        ):
            dst.anon_vma = av
    if dst.anon_vma is not None:
        dst.anon_vma.num_active_vmas += 1
    return 0


@linux("mm/rmap.c")
def anon_vma_fork(vma: vm_area_struct, pvma: vm_area_struct) -> int:
    """Give the child's ``vma`` the parent's anon_vmas, and one of its own for the pages that it
    will write.  0 or -ENOMEM."""
    if pvma.anon_vma is None:
        return 0
    vma.anon_vma = None
    error = anon_vma_clone(vma, pvma)
    if error or _took_over(vma):
        return error
    av = anon_vma_alloc()
    if av is None or slab_fails("anon_vma_chain"):
        unlink_anon_vmas(vma)
        return -ENOMEM  #: {anon_vma_alloc}{slab_fails}
    av.num_active_vmas += 1
    av.root = pvma.anon_vma.root
    av.parent = pvma.anon_vma
    atomic_inc(av.root, "refcount")
    vma.anon_vma = av
    anon_vma_chain_link(vma, av)
    av.parent.num_children += 1
    return 0


def _took_over(vma: vm_area_struct) -> bool:
    """True if cloning reused an idle ancestor as the child's own anon_vma."""
    return vma.anon_vma is not None


@linux("mm/rmap.c")
def unlink_anon_vmas(vma: vm_area_struct) -> None:
    """Unlink the VMA from all its anon_vmas; those left without a VMA are freed."""
    empty = []
    for avc in vma.anon_vma_chain:
        av = avc.anon_vma
        av.rb_root = tuple(a for a in av.rb_root if a is not avc)
        if not av.rb_root:
            av.parent.num_children -= 1
            empty.append(av)
    if vma.anon_vma is not None:
        vma.anon_vma.num_active_vmas -= 1
        vma.anon_vma = None
    vma.anon_vma_chain = ()
    for av in empty:
        put_anon_vma(av)


def put_anon_vma(av: anon_vma) -> None:
    """Drop a reference; the last one frees."""
    if atomic_dec_and_test(av, "refcount"):
        __put_anon_vma(av)


@linux("mm/rmap.c")
def __put_anon_vma(av: anon_vma) -> None:
    """Free an anon_vma, and drop its reference to the root."""
    root = av.root
    if root is not av:
        put_anon_vma(root)


# ---------------------------------------------------------------- mapping and unmapping a page


@linux("mm/rmap.c")
def folio_add_new_anon_rmap(folio: folio, vma: vm_area_struct, address: int) -> None:
    """Map a new anonymous page for the first time, exclusively."""
    if not vma.vm_flags & VM_DROPPABLE:
        folio.flags |= PG_swapbacked
    folio._mapcount = 0
    __folio_set_anon(folio, vma, address)
    SetPageAnonExclusive(folio)


def __folio_set_anon(folio: folio, vma: vm_area_struct, address: int) -> None:
    """Set the page's mapping to the VMA's anon_vma, and its index to the linear index."""
    folio.mapping = vma.anon_vma
    folio.index = vma.vm_pgoff + ((address - vma.vm_start) >> PAGE_SHIFT)


@linux("mm/rmap.c")
def folio_move_anon_rmap(folio: folio, vma: vm_area_struct) -> None:
    """The last user takes over the page: from now on it belongs to this VMA's own anon_vma."""
    folio.mapping = vma.anon_vma


def folio_add_file_rmap_pte(folio: folio, vma: vm_area_struct) -> None:
    """Count one more entry that maps a page of the page cache."""
    atomic_inc_and_test(folio, "_mapcount")
    mlock_vma_folio(folio, vma)


def folio_dup_file_rmap_pte(page: page) -> None:
    """Count an entry of a page-cache page that fork has copied."""
    atomic_inc(page, "_mapcount")


def folio_try_dup_anon_rmap_pte(page: page, maybe_pinned: bool) -> bool:
    """Fork wants to share the page: clear PageAnonExclusive and count the child's entry.  False if
    the page is exclusive and pinned; then the child must get its own copy at once."""
    if PageAnonExclusive(page):
        if maybe_pinned:
            return False
        ClearPageAnonExclusive(page)
    atomic_inc(page, "_mapcount")
    return True


def folio_remove_rmap_pte(folio: folio, page: page, vma: vm_area_struct) -> None:
    """Count one entry less that maps ``page`` of the folio."""
    atomic_add_negative(page, "_mapcount", -1)
    munlock_vma_folio(folio, vma)


def folio_maybe_dma_pinned(folio: folio) -> bool:
    """True if the reference count is so high that the page is probably pinned
    (GUP_PIN_COUNTING_BIAS = 1024)."""
    return folio._refcount >= 1024


# ---------------------------------------------------------------- walking back


def vma_address(vma: vm_area_struct, pgoff: int) -> int | None:
    """The address at which ``vma`` would map the page with index ``pgoff``, or None if that lies
    outside."""
    if not vma.vm_pgoff <= pgoff < vma.vm_pgoff + vma_pages(vma):
        return None
    return vma.vm_start + ((pgoff - vma.vm_pgoff) << PAGE_SHIFT)


def rmap_walk(folio: folio) -> Iterator[tuple[vm_area_struct, int, int]]:
    """(vma, address, physical address of the entry) for every entry that maps a page of the folio,
    in the order of rmap.  Nothing is locked: call ``lock_mapped`` before changing an entry."""
    if isinstance(folio.mapping, anon_vma):
        vmas = [avc.vma for avc in folio.mapping.rb_root]
    elif isinstance(folio.mapping, address_space):
        vmas = list(folio.mapping.i_mmap)
    else:
        return
    for vma, n in product(vmas, range(folio_nr_pages(folio))):
        address = vma_address(vma, folio.index + n)
        if address is not None:
            ptep = page_vma_mapped(vma.vm_mm, address, folio)
            if ptep:
                yield vma, address, ptep


def page_vma_mapped(mm: mm_struct, address: int, folio: folio) -> int:
    """The entry of ``mm`` that maps ``address`` to a page of this folio, or 0."""
    pmd = pmd_of(mm, address)
    ptep = pte_offset_map(pmd, address) if pmd else 0
    return ptep if ptep and maps(ptep, folio) else 0


def lock_mapped(ptep: int, folio: folio) -> bool:
    """Lock the table of an entry that ``rmap_walk`` found; False, with nothing locked, if it no
    longer maps the page."""
    pte_lock(ptep)
    if maps(ptep, folio):
        return True
    pte_unmap_unlock(ptep)
    return False


def maps(ptep: int, folio: folio) -> bool:
    """True if the entry maps a page of this folio (``check_pte``)."""
    pte = ptep_get(ptep)
    return pte_present(pte) and 0 <= pte_pfn(pte) - folio.pfn < folio_nr_pages(folio)

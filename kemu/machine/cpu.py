"""A CPU: which page tables it uses, what it remembers of them, and where it goes when an access
fails.

This is the state that the hardware keeps; what the CPU *does* with it is the walk in ``mmu.py``.
"""

from __future__ import annotations

from kemu.machine.geometry import Geometry
from kemu.machine.physmem import PhysMem
from kemu.machine.tlb import Tlb, new_tlb
from kemu.trace.barrier import struct


@struct
class Cpu:
    """``root`` is the physical address of the root table and ``pcid`` its tag (CR3); while ``ac``
    (EFLAGS.AC) is set, the kernel may touch user pages in spite of SMAP."""

    id: int
    phys: PhysMem
    geometry: Geometry
    tlb: Tlb
    root: int = 0
    pcid: int = 0
    ac: bool = False

    def load_cr3(self, root: int, pcid: int, *, flush: bool) -> None:
        """Use the tables at ``root`` under the tag ``pcid``; ``flush`` drops the TLB entries with
        that tag."""
        self.root = root
        self.pcid = pcid
        if flush:
            self.tlb.flush_pcid(pcid)


def new_cpu(number: int, phys: PhysMem, geometry: Geometry) -> Cpu:
    """CPU ``number`` with an empty TLB."""
    return Cpu(id=number, phys=phys, geometry=geometry, tlb=new_tlb(number))

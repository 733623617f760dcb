"""The stack: it grows when it is touched, up to a limit, and keeps a distance from its
neighbours."""

import pytest

from kemu.abi.uapi import MAP_FIXED, MAP_GROWSDOWN, RLIMIT_STACK
from kemu.kernel.include.flags import VM_GROWSDOWN
from tests.kernel.scenes import PRIVATE, Scene, signal

MIB = 1 << 20
GAP = 256


def stack(task):
    """The stack's VMA."""
    (vma,) = (vma for vma in task.mm.mm_mt if vma.vm_flags & VM_GROWSDOWN)
    return vma


def test_a_local_array_of_6_mib_uses_one_page_and_one_of_16_mib_is_refused():
    """Case F01."""
    s = Scene()
    p = s.p
    s.ok(p, "setrlimit", RLIMIT_STACK, 8 * MIB, 8 * MIB)
    top = stack(p).vm_end
    frames = s.anon(p)
    outcome = s.write(p, top - 6 * MIB, 1)
    assert (outcome.signal, outcome.minor) == (None, 1)
    assert s.anon(p) == frames + 1
    assert stack(p).vm_start == top - 6 * MIB
    assert signal(s.write(p, top - 16 * MIB, 1)) == "SEGV_MAPERR"


def test_one_page_mapped_near_the_stack_stops_its_growth():
    """Case F03. A runtime that had put a guard page of its own 64 pages below the stack broke when
    the gap became 256."""
    s = Scene()
    p = s.p
    bottom = stack(p).vm_start
    s.mmap(p, 1, flags=PRIVATE | MAP_FIXED, addr=bottom - 65 * 4096)
    s.survive(p)
    assert signal(s.write(p, bottom - 8, 1)) == "SEGV_MAPERR"
    assert stack(p).vm_start == bottom


@pytest.mark.parametrize(
    ("distance", "rights", "grows"), [(GAP, "rw", True), (GAP - 1, "rw", False), (2, "", True)]
)
def test_the_gap_is_256_pages_to_a_neighbour_that_can_be_touched(distance, rights, grows):
    """Case F03, at the border: the page below the stack would end ``distance`` pages above the
    neighbour."""
    s = Scene()
    p = s.p
    bottom = stack(p).vm_start
    s.mmap(p, 1, rights, flags=PRIVATE | MAP_FIXED, addr=bottom - (distance + 2) * 4096)
    assert (s.write(p, bottom - 8, 1).signal is None) == grows


def test_a_mapping_can_ask_to_grow_down():
    """Case F04."""
    s = Scene()
    p = s.p
    a = s.mmap(p, 1, flags=PRIVATE | MAP_FIXED | MAP_GROWSDOWN, addr=0x4000_0000)
    assert s.write(p, a - 8, 1).signal is None
    assert s.vmas(p, a - 8192, a + 8192) == [(a - 4096, a + 4096, "rw-")]

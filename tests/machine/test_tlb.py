"""The TLB remembers translations until told otherwise: what it may keep, and what each flush
drops."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.machine.geometry import toy
from kemu.machine.mmu import READ, WRITE, PageFault, translate
from kemu.machine.tlb import TlbEntry, new_tlb
from tests.machine.machines import (
    NX,
    PS,
    RW,
    US,
    D,
    G,
    P,
    build,
    machine,
    recorded,
    x86_entry,
    x86_map,
)

VA = 0x4000_1000


def entry(vpn, pcid=1, *, glob=False, pages=1):
    return TlbEntry(pcid, vpn, vpn + 100, True, True, True, True, True, glob, pages)


def filled(*entries):
    tlb = new_tlb(0)
    for one in entries:
        tlb.fill(one)
    return tlb


def pages(tlb):
    return {(e.pcid, e.vpn) for e in tlb.entries()}


def test_an_entry_is_found_under_its_own_tag_only():
    tlb = filled(entry(5, pcid=1))
    assert tlb.lookup(5, 1).pfn == 105
    assert tlb.lookup(5, 2) is None
    assert tlb.lookup(6, 1) is None


def test_a_global_entry_is_found_under_every_tag():
    assert filled(entry(5, pcid=1, glob=True)).lookup(5, 2).pfn == 105


def test_two_pages_of_one_slot_evict_each_other():
    tlb = filled(entry(5), entry(5 + 64))
    assert tlb.lookup(5, 1) is None
    assert tlb.lookup(69, 1).pfn == 169


def test_invlpg_drops_one_page_of_one_tag():
    tlb = filled(entry(5), entry(6), entry(7, pcid=2))
    tlb.invlpg(5, 1)
    tlb.invlpg(7, 1)
    assert pages(tlb) == {(1, 6), (2, 7)}


def test_invlpg_drops_a_global_entry_whatever_its_tag():
    tlb = filled(entry(5, pcid=2, glob=True))
    tlb.invlpg(5, 1)
    assert pages(tlb) == set()


def test_a_page_64_further_on_takes_the_entry_and_a_nearer_one_does_not():
    assert pages(filled(entry(1), entry(33))) == {(1, 1), (1, 33)}
    assert pages(filled(entry(1), entry(65))) == {(1, 65)}


def test_invlpg_of_any_page_drops_the_whole_large_leaf():
    tlb = filled(
        entry(512, pages=512),
        entry(513, pages=512),
        entry(1023, pages=512),
        entry(514 + 1024),
        entry(1, pcid=2),
    )
    tlb.invlpg(1000, 1)
    assert pages(tlb) == {(1, 1538), (2, 1)}


def test_a_cr3_load_drops_the_tag_but_not_the_global_entries():
    tlb = filled(entry(1), entry(2, glob=True), entry(3, pcid=2))
    tlb.flush_pcid(1)
    assert pages(tlb) == {(1, 2), (2, 3)}


def test_toggling_pge_drops_everything():
    tlb = filled(entry(1), entry(2, glob=True), entry(512, pages=512))
    tlb.flush_all()
    assert tlb.entries() == []
    assert not tlb.large


def test_load_cr3_flushes_unless_told_not_to():
    cpu = machine()
    cpu.tlb.fill(entry(1, pcid=3))
    cpu.load_cr3(0x5000, 3, flush=False)
    assert cpu.tlb.lookup(1, 3) is not None
    cpu.load_cr3(0x5000, 3, flush=True)
    assert cpu.tlb.lookup(1, 3) is None
    assert (cpu.root, cpu.pcid) == (0x5000, 3)


def test_a_flush_is_one_event_and_an_empty_one_is_none():
    tlb = filled(entry(1), entry(2), entry(3, pcid=2))
    with recorded() as journal:
        tlb.flush_pcid(9)
        tlb.invlpg(50, 1)
        assert len(journal) == 0
        tlb.flush_pcid(1)
        assert len(journal) == 1
        tlb.flush_all()
        tlb.flush_all()
        assert len(journal) == 2


def test_a_stale_entry_is_used_until_it_is_flushed():
    """That is the whole reason for flushes: taking the right to write away in RAM alone does not
    stop a CPU."""
    cpu = machine()
    *_, leaf = x86_map(cpu, VA, x86_entry(0x99, P | RW | US))
    assert translate(cpu, VA, WRITE, True) == 0x99000
    cpu.phys.store(leaf, x86_entry(0x99, P | US))
    assert translate(cpu, VA, WRITE, True) == 0x99000
    cpu.tlb.invlpg(VA >> 12, cpu.pcid)
    assert translate(cpu, VA, WRITE, True) == PageFault(VA, 0b00111)


def test_a_new_right_needs_no_flush():
    """The CPU walks again before it faults."""
    cpu = machine()
    *_, leaf = x86_map(cpu, VA, x86_entry(0x99, P | US | NX))
    assert translate(cpu, VA, READ, True) == 0x99000
    cpu.phys.store(leaf, x86_entry(0x99, P | RW | US))
    assert translate(cpu, VA, WRITE, True) == 0x99000


def test_a_missing_page_is_never_remembered():
    cpu = machine()
    *_, leaf = x86_map(cpu, VA, 0)
    assert translate(cpu, VA, READ, True) == PageFault(VA, 0b00100)
    assert cpu.tlb.entries() == []
    cpu.phys.store(leaf, x86_entry(0x99, P | US))
    assert translate(cpu, VA, READ, True) == 0x99000


@pytest.mark.parametrize("leaf", [0, x86_entry(0x99, P | US)], ids=["unmapped", "read-only"])
def test_a_page_fault_drops_what_was_known_about_the_page(leaf):
    """So an entry that was kept wrongly serves reads only until the first fault on its page."""
    cpu = machine()
    *_, place = x86_map(cpu, VA, x86_entry(0x99, P | US))
    assert translate(cpu, VA, READ, True) == 0x99000
    cpu.phys.store(place, leaf)
    assert translate(cpu, VA, READ, True) == 0x99000
    assert isinstance(translate(cpu, VA, WRITE, True), PageFault)
    assert cpu.tlb.entries() == []


def test_an_entry_filled_by_a_read_of_a_clean_page_does_not_serve_a_store():
    cpu = machine()
    *_, leaf = x86_map(cpu, VA, x86_entry(0x99, P | RW | US))
    translate(cpu, VA, READ, True)
    assert not cpu.tlb.lookup(VA >> 12, 0).dirty
    assert translate(cpu, VA, WRITE, True) == 0x99000
    assert cpu.phys.load(leaf) & D
    assert cpu.tlb.lookup(VA >> 12, 0).dirty


def test_an_entry_filled_by_a_read_of_a_dirty_page_serves_a_store():
    cpu = machine()
    x86_map(cpu, VA, x86_entry(0x99, P | RW | US | D))
    translate(cpu, VA, READ, True)
    assert cpu.tlb.lookup(VA >> 12, 0).dirty


def test_dirty_is_not_set_again_while_the_entry_lives():
    """A cleared dirty bit without a flush loses the next store: Linux flushes after
    folio_mkclean."""
    cpu = machine()
    *_, leaf = x86_map(cpu, VA, x86_entry(0x99, P | RW | US))
    translate(cpu, VA, WRITE, True)
    cpu.phys.store(leaf, cpu.phys.load(leaf) & ~D)
    translate(cpu, VA, WRITE, True)
    assert not cpu.phys.load(leaf) & D


def test_the_tag_separates_two_address_spaces_at_one_address():
    cpu = machine()
    x86_map(cpu, VA, x86_entry(0x99, P | US))
    cpu.load_cr3(0x1000, 1, flush=True)
    translate(cpu, VA, READ, True)
    cpu.load_cr3(0x8000, 2, flush=True)
    assert translate(cpu, VA, READ, True) == PageFault(VA, 0b00100)
    cpu.load_cr3(0x1000, 1, flush=False)
    assert cpu.tlb.lookup(VA >> 12, 1) is not None


def test_a_global_page_survives_the_switch():
    cpu = machine()
    x86_map(cpu, VA, x86_entry(0x99, P | US | G))
    cpu.load_cr3(0x1000, 1, flush=True)
    translate(cpu, VA, READ, True)
    cpu.load_cr3(0x8000, 2, flush=True)
    assert translate(cpu, VA, READ, True) == 0x99000


def test_a_large_leaf_is_flushed_through_any_of_its_pages():
    cpu = machine()
    base = 0x4000_0000
    *_, leaf = build(
        cpu,
        base,
        [x86_entry(2, P | RW | US), x86_entry(3, P | RW | US), 0x80_0000 | P | RW | US | PS],
    )
    for page in (0, 7, 63):
        translate(cpu, base + page * 4096, WRITE, True)
    cpu.phys.store(leaf, 0)
    cpu.tlb.invlpg((base >> 12) + 511, 0)
    assert cpu.tlb.entries() == []
    assert translate(cpu, base, READ, True) == PageFault(base, 0b00100)


def test_pages_of_a_toy_geometry_do_not_share_an_entry():
    small = toy("small", 32, (5,), 1, valid_bit=7, pfn_bits=7)
    cpu = machine(small)
    cpu.phys.write(cpu.root, bytes([0x80 | 3, 0x80 | 9]))
    for _ in range(2):
        assert translate(cpu, 0x04, READ, True) == 3 * 32 + 4
        assert translate(cpu, 0x24, READ, True) == 9 * 32 + 4


operations = st.lists(
    st.one_of(
        st.tuples(st.just("fill"), st.integers(0, 200), st.integers(0, 2), st.booleans()),
        st.tuples(st.just("invlpg"), st.integers(0, 200), st.integers(0, 2), st.none()),
        st.tuples(st.just("pcid"), st.none(), st.integers(0, 2), st.none()),
        st.tuples(st.just("all"), st.none(), st.none(), st.none()),
    ),
    max_size=40,
)


@given(operations)
def test_the_tlb_never_knows_more_than_what_was_filled_and_not_flushed(steps):
    tlb = new_tlb(0)
    may = set()
    for what, vpn, pcid, glob in steps:
        if what == "fill":
            tlb.fill(entry(vpn, pcid, glob=glob))
            may.add((pcid, vpn, glob))
        elif what == "invlpg":
            tlb.invlpg(vpn, pcid)
            may = {m for m in may if m[1] != vpn or (m[0] != pcid and not m[2])}
        elif what == "pcid":
            tlb.flush_pcid(pcid)
            may = {m for m in may if m[0] != pcid or m[2]}
        else:
            tlb.flush_all()
            may = set()
        assert {(e.pcid, e.vpn, e.glob) for e in tlb.entries()} <= may
        for slot, kept in tlb.slots.items():
            assert kept.vpn % tlb.size == slot

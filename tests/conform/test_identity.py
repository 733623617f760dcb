"""Which page is which: frames are used again, so a page's name follows the page and not the
frame."""

import pytest

from kemu.conform.identity import Happened, Identities
from kemu.conform.observation import Mapped
from kemu.kernel.include.mm_types import page


def anon(number, pfn):
    return Mapped(number, {"pm": "P"}, page(pfn=pfn), None)


def of_file(number, pfn, *, file=7, index=0):
    return Mapped(number, {"pm": "PF"}, page(pfn=pfn), (file, index))


class Look:
    """One run; ``see`` gives the names of what lies there now."""

    def __init__(self):
        self.identities = Identities()

    def see(self, happened=None, **found):
        self.identities.name_pages(found, happened or Happened())
        names = {name: [mapped.seen["id"] for mapped in pages] for name, pages in found.items()}
        return names["A"] if set(names) == {"A"} else names


@pytest.fixture
def look():
    return Look()


def test_names_count_up_in_order_of_first_sight(look):
    assert look.see(A=[anon(0, 50), anon(1, 40)]) == [1, 2]
    assert look.see(A=[anon(0, 50), anon(1, 40), anon(2, 60)]) == [1, 2, 3]


def test_another_frame_in_the_same_place_is_another_page(look):
    assert look.see(A=[anon(0, 50)]) == [1]
    assert look.see(A=[anon(0, 51)]) == [2]
    assert look.see(A=[anon(0, 50)]) == [3]


def test_a_frame_that_was_freed_and_used_elsewhere_is_a_new_page(look):
    assert look.see(A=[anon(0, 50)]) == [1]
    assert look.see(A=[]) == []
    assert look.see(A=[anon(5, 50)]) == [2]


def test_a_child_inherits_its_parents_pages(look):
    look.see(A=[anon(0, 50), anon(1, 51)])
    look.identities.fork("B")
    forked = Happened(parent="A", child="B")
    assert look.see(forked, A=[anon(0, 50), anon(1, 51)], B=[anon(0, 50), anon(1, 52)]) == {
        "A": [1, 2],
        "B": [1, 3],
    }


def test_a_page_that_moves_takes_its_name_along(look):
    look.see(A=[anon(0, 50)])
    assert look.see(Happened(mover="A"), A=[anon(9, 50)]) == [1]


def test_pages_of_a_fresh_mapping_are_new_even_in_the_old_frames(look):
    look.see(A=[anon(0, 50), anon(4, 54)])
    assert look.see(Happened(fresh_in="A", fresh=(0, 2)), A=[anon(0, 50), anon(4, 54)]) == [3, 2]


def test_a_new_page_seen_by_two_processes_at_once_is_one_page(look):
    look.identities.fork("B")
    assert look.see(A=[anon(3, 50)], B=[anon(3, 50)]) == {"A": [1], "B": [1]}


def test_two_tasks_of_one_address_space_see_the_same_pages(look):
    look.see(A=[anon(0, 50)])
    look.identities.share("A", "B")
    assert look.see(A=[anon(0, 50)], B=[anon(0, 50)]) == {"A": [1], "B": [1]}
    moved = Happened(mover="A")
    assert look.see(moved, A=[anon(8, 50)], B=[anon(8, 50)]) == {"A": [1], "B": [1]}
    fresh = Happened(fresh_in="A", fresh=(8, 9))
    assert look.see(fresh, A=[anon(8, 50)], B=[anon(8, 50)]) == {"A": [2], "B": [2]}


def test_a_page_of_a_file_is_known_wherever_it_is_mapped_and_after_it_was_unmapped(look):
    assert look.see(A=[of_file(0, 70), of_file(1, 71, index=1)]) == [1, 2]
    assert look.see(A=[]) == []
    assert look.see(A=[of_file(20, 71, index=1), of_file(30, 71, index=1)]) == [2, 2]


def test_after_a_file_was_cut_its_unmapped_pages_are_forgotten(look):
    look.see(A=[of_file(0, 70), of_file(1, 71, index=1)])
    assert look.see(Happened(cut=True), A=[of_file(0, 70)]) == [1]
    assert look.see(A=[of_file(0, 70), of_file(1, 71, index=1)]) == [1, 3]


def test_a_page_that_was_read_again_into_another_frame_is_new(look):
    assert look.see(A=[of_file(0, 70)]) == [1]
    assert look.see(A=[of_file(0, 99)]) == [2]


def test_an_anonymous_copy_of_a_page_of_a_file_is_another_page(look):
    assert look.see(A=[of_file(0, 70)]) == [1]
    assert look.see(A=[anon(0, 71)]) == [2]


def test_after_a_call_that_cut_a_file_and_failed_the_next_page_in_the_only_lost_place_has_the_old_name(
    look,
):
    lost = Happened(half_cut=True)
    assert look.see(A=[of_file(0, 70), of_file(1, 71, index=1)]) == [1, 2]
    assert look.see(lost, A=[of_file(0, 70)]) == [1]
    assert look.see(A=[of_file(0, 70), of_file(1, 99, index=1)]) == [1, 2]


def test_the_old_name_is_gone_when_another_page_came_first_or_two_were_lost(look):
    lost = Happened(half_cut=True)
    look.see(A=[of_file(0, 70), of_file(1, 71, index=1)])
    look.see(lost, A=[of_file(0, 70)])
    assert look.see(A=[of_file(0, 70), anon(9, 30)]) == [1, 3]
    assert look.see(A=[of_file(0, 70), anon(9, 30), of_file(1, 99, index=1)]) == [1, 3, 4]
    look.see(lost, A=[anon(9, 30)])
    assert look.see(A=[of_file(0, 80), anon(9, 30)]) == [5, 3]

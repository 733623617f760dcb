"""The comparison finds every planted difference, and nothing else.

A recording agrees with itself, also when all its pages are named otherwise and the letters that
depend on per-CPU batches are changed; a change of any compared field is found at its step.
"""

import copy
import random

import pytest

from kemu.conform.compare import Renaming, differences, first_difference
from tests.conform.recorded import random_programs, scenarios

UNUSED = 10**6


def everything():
    return [*scenarios().values(), *random_programs()]


def changed(program, change):
    """The steps of ``program`` after ``change(steps)``."""
    steps = copy.deepcopy(program.steps)
    change(steps)
    return steps


def observations(steps):
    """(number of the step, process, observation) of everything that was observed."""
    return [
        (number, name, seen)
        for number, step in enumerate(steps)
        for name, seen in step["obs"].items()
    ]


def test_every_recording_agrees_with_itself():
    for program in everything():
        assert first_difference(program, program.steps) is None


def test_other_names_for_the_same_pages_agree():
    def rename(steps):
        for _, _, seen in observations(steps):
            for page in seen["pages"].values():
                if isinstance(page.get("id"), int):
                    page["id"] = UNUSED - 7 * page["id"]

    for program in everything():
        assert first_difference(program, changed(program, rename)) is None


def test_letters_that_depend_on_batches_are_not_compared():
    def shuffle_flags(steps):
        for _, _, seen in observations(steps):
            for page in seen["pages"].values():
                if "kf" in page:
                    page["kf"] = (
                        page["kf"].replace("u", "").replace("m", "")
                        if "u" in page["kf"]
                        else page["kf"] + "um"
                    )

    for program in everything():
        assert first_difference(program, changed(program, shuffle_flags)) is None


def test_swap_backed_and_lazyfree_are_compared_until_the_first_madv_free():
    program = scenarios()["madvise_free"]
    free = program.first("madvise", advice="FREE")
    assert 0 < free < len(program.ops) - 1

    def drop(steps, numbers):
        for number, _, seen in observations(steps):
            if number in numbers:
                for vma in seen["vmas"]:
                    vma["st"]["LazyFree"] = 4000
                for page in seen["pages"].values():
                    page["kf"] = page.get("kf", "").replace("b", "")

    later = changed(program, lambda steps: drop(steps, range(free, len(steps))))
    assert later != program.steps
    assert first_difference(program, later) is None
    earlier = changed(program, lambda steps: drop(steps, range(free)))
    assert {d.where.split()[-1] for d in differences(program, earlier)} == {
        "smaps.LazyFree",
        "flags",
    }


# ---------------------------------------------------------------- planted differences

KINDS = ("result", "live", "vma", "vma gone", "smaps", "page", "flag", "page gone", "mm")


def plant(rng, steps, kind):
    """Change one thing of ``kind`` somewhere in ``steps``; the number of the step, or None if there
    is nothing of the kind."""
    if kind == "result":
        number = rng.randrange(len(steps))
        key = rng.choice(sorted(steps[number]["res"]))
        steps[number]["res"][key] = "planted"
        return number
    if kind == "live":
        number = rng.randrange(len(steps))
        steps[number]["live"] = sorted({*steps[number]["live"]} ^ {rng.choice("ABC")})
        return number
    places = observations(steps)
    rng.shuffle(places)
    return next((number for number, _, seen in places if PLANTS[kind](rng, seen)), None)


def plant_vma(rng, seen):
    if not seen["vmas"]:
        return False
    vma = rng.choice(seen["vmas"])
    field = rng.choice(["s", "e", "perm", "off", "file", "fl"])
    vma[field] = UNUSED if field in ("s", "e", "off") else vma[field] + "!"
    return True


def plant_vma_gone(rng, seen):
    if seen["vmas"]:
        del seen["vmas"][rng.randrange(len(seen["vmas"]))]
        return True
    return False


def plant_smaps(rng, seen):
    if not seen["vmas"]:
        return False
    numbers = rng.choice(seen["vmas"])["st"]
    key = rng.choice(
        [
            "Rss",
            "Pss",
            "Pss_Dirty",
            "Shared_Dirty",
            "Private_Clean",
            "Referenced",
            "Anonymous",
            "Locked",
        ]
    )
    numbers[key] = numbers.get(key, 0) + 1
    return True


def plant_page(rng, seen):
    pages = [page for page in seen["pages"].values() if "mc" in page]
    if not pages:
        return False
    page = rng.choice(pages)
    if rng.random() < 0.5:
        page["mc"] += 1
    else:
        page["pm"] = page["pm"] + "S"
    return True


def plant_flag(rng, seen):
    pages = [page for page in seen["pages"].values() if "kf" in page]
    if not pages:
        return False
    page = rng.choice(pages)
    letter = rng.choice("UDMaxE")
    page["kf"] = page["kf"].replace(letter, "") if letter in page["kf"] else page["kf"] + letter
    return True


def plant_page_gone(rng, seen):
    if not seen["pages"]:
        return False
    del seen["pages"][rng.choice(sorted(seen["pages"]))]
    return True


def plant_mm(rng, seen):
    key = rng.choice(["VmSize", "VmLck", "VmPin", "VmData", "VmPTE"])
    seen["mm"][key] = seen["mm"].get(key, 0) + 4
    return True


PLANTS = {
    "vma": plant_vma,
    "vma gone": plant_vma_gone,
    "smaps": plant_smaps,
    "page": plant_page,
    "flag": plant_flag,
    "page gone": plant_page_gone,
    "mm": plant_mm,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_difference_is_found_at_its_step(kind):
    planted = 0
    for seed, program in enumerate(everything()):
        steps = copy.deepcopy(program.steps)
        number = plant(random.Random(seed), steps, kind)
        if number is not None:
            found = first_difference(program, steps)
            assert found is not None, (program.name, number)
            assert found.step == number, (program.name, str(found))
            planted += 1
    assert planted > 1000


def test_a_page_that_should_be_shared_but_is_not_is_found():
    program = scenarios()["fork_child_writes"]

    def split(steps):
        pages = next(step for step in steps if "B" in step["obs"])["obs"]["B"]["pages"]
        next(page for page in pages.values() if isinstance(page["id"], int))["id"] = UNUSED

    found = first_difference(program, changed(program, split))
    assert found.where.startswith("B page")
    assert found.where.endswith("identity")
    assert (found.linux, found.kemu) == ("page 1", "a page not seen before")


def test_two_pages_that_should_be_apart_are_found():
    program = scenarios()["anon_each_page_faults_once"]
    ids = {
        page["id"] for _, _, seen in observations(program.steps) for page in seen["pages"].values()
    } - {"zero"}
    assert len(ids) > 1

    def merge(steps):
        for _, _, seen in observations(steps):
            for page in seen["pages"].values():
                if page["id"] != "zero":
                    page["id"] = min(ids)

    found = first_difference(program, changed(program, merge))
    assert found.where.endswith("identity")
    assert found.kemu == f"page {min(ids)}"


def test_a_run_that_ended_early_is_compared_as_far_as_it_came():
    program = scenarios()["fork_child_writes"]
    assert first_difference(program, program.steps[:3]) is None
    assert first_difference(program, ()) is None


def test_a_difference_says_where_and_what():
    program = scenarios()["anon_read_then_write"]

    def change(steps):
        steps[1]["res"]["flt"] = [2, 0]

    found = first_difference(program, changed(program, change))
    assert str(found) == f"step 1 ({program.ops[1]}): result.flt: Linux [1, 0], kemu [2, 0]"


def test_the_zero_page_is_renamed_to_nothing_else():
    names = Renaming()
    assert names.agree("zero", "zero")
    assert not names.agree("zero", 1)
    assert not names.agree(1, "zero")
    assert names.agree(1, 5)
    assert not names.agree(1, 6)
    assert not names.agree(2, 5)
    assert names.agree(None, None)
    assert not names.agree(None, 5)

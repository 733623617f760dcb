"""smaps and pagemap as observe counts them, held against recordings of the real kernel.

The recorded programs are run by kemu.conform, whose own look at the machine agrees with the
recordings (tests/conform); here observe looks at the same machine after every operation, and both
must see the same.  At the end every reference to every frame must be explained.
"""

import pytest

from kemu.conform.cast import Cast
from kemu.conform.kemuops import KemuAct
from kemu.conform.perform import perform
from kemu.kernel.include.system import system
from kemu.observe import frames, procfs
from kemu.views.procfs import SMAPS_KEYS
from tests.conform.recorded import random_programs, scenarios

SOME = [*list(scenarios().values())[::2], *random_programs()[:60]]
NOT_IN_SMAPS = {"pss_anon", "pss_file", "pss_shmem"}


def seen(cast, name):
    """What observe sees of a process in the window, in the words of a recording."""
    task = cast.processes[name].task
    smaps = {entry.vma.start: entry for entry in procfs.smaps(cast.kernel, task).entries}
    vmas = [smaps[vma.vm_start] for vma in task.mm.mm_mt if cast.window.shows(vma)]
    return {
        "perm": [entry.vma.perm for entry in vmas],
        "fl": [" ".join(entry.flags) for entry in vmas],
        "st": [kilobytes(entry.counts) for entry in vmas],
        "pages": pages(cast, task, vmas),
    }


def kilobytes(counts):
    sizes = {
        label: getattr(counts, field) >> 10
        for label, field in SMAPS_KEYS
        if field not in NOT_IN_SMAPS
    }
    return {label: size for label, size in sizes.items() if size}


def pages(cast, task, vmas):
    """pagemap of the window's VMAs by page; of a heap window what lies above its base."""
    found = {}
    for entry in vmas:
        for page in procfs.pagemap(cast.kernel, task, entry.vma.start, entry.vma.end).pages:
            number = cast.window.page(page.address)
            if not cast.window.heap or number >= 0:
                found[str(number)] = (page.letters, page.mapcount, page.kpageflags, page.zero)
    return found


def expected(cast, name):
    """The same from conform's own look."""
    look, _ = cast.observe(name)
    wanted = {
        number: (page["pm"], page.get("mc"), page.get("kf", ""), page.get("id") == "zero")
        for number, page in look["pages"].items()
    }
    return {key: [vma[key] for vma in look["vmas"]] for key in ("perm", "fl", "st")} | {
        "pages": wanted
    }


@pytest.mark.parametrize("program", SOME, ids=lambda program: program.name)
def test_observe_sees_what_the_recorder_saw(program):
    cast = Cast(program)
    for number, op in enumerate(program.ops):
        if op.p not in cast.processes or op.get("t", op.p) not in cast.processes:
            continue
        perform(KemuAct(cast, op))
        cast.bury()
        for name in cast.live():
            assert seen(cast, name) == expected(cast, name), f"step {number}, {op}, process {name}"
    for pfn in sorted(system.mem_map):
        frame = frames.frame(cast.kernel, pfn)
        assert frame.missing == 0, frame
        assert frame.mapcount == sum(holder.what == "pte" for holder in frame.holders), frame


def test_there_is_something_to_compare():
    assert len(SOME) > 60

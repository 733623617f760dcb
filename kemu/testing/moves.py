"""Mappings: made, removed, moved, locked, advised, sealed; and their files."""

from __future__ import annotations

from kemu.abi.uapi import (
    EFAULT,
    EINVAL,
    ENOMEM,
    EPERM,
    FALLOC_FL_KEEP_SIZE,
    FALLOC_FL_PUNCH_HOLE,
    MADV_GUARD_INSTALL,
    MADV_GUARD_REMOVE,
    MADV_POPULATE_READ,
    MADV_POPULATE_WRITE,
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_LOCKED,
    MAP_NORESERVE,
    MAP_POPULATE,
    MAP_PRIVATE,
    MAP_SHARED,
    MREMAP_DONTUNMAP,
    MREMAP_FIXED,
    MREMAP_MAYMOVE,
    MS_ASYNC,
    MS_SYNC,
    O_RDWR,
    RLIM_INFINITY,
    RLIMIT_AS,
)
from kemu.abi.uapi import PAGE_SIZE as PAGE
from kemu.abi.words import MADVISE
from kemu.testing.model import Cell, FileCell, refusal
from kemu.testing.stage import (
    BASE,
    DATA_FD,
    MEMORY_FD,
    PAGES,
    SCRATCH,
    Arena,
    Stage,
    clip,
    prot,
)

EXTRA = {"": 0, "noreserve": MAP_NORESERVE, "populate": MAP_POPULATE, "locked": MAP_LOCKED}
"""Flags that may be passed to mmap."""

_SAME = (
    "free", "cold", "pageout", "random", "dodump", "willneed", "wipeonfork", "keeponfork",
    "dontfork", "dofork", "dontneed", "dontneed_locked",
)  # fmt: skip
ADVICE = {
    **{word: MADVISE[word] for word in _SAME},
    "guard": MADV_GUARD_INSTALL,
    "unguard": MADV_GUARD_REMOVE,
}
"""Advice by the name that ``World.madvise`` takes."""

PUNCH = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE


class Moves(Stage):
    """Operations that change the map of a process."""

    def mmap(
        self,
        who: int,
        first: int,
        count: int,
        rights: str = "rw",
        kind: str = "private",
        *,
        extra: str = "",
    ) -> None:
        """Map pages of the arena over what is there; ``kind``: "private" or "shared", or that and "
        file" or " memory"; ``extra``: "noreserve", "populate" or "locked"."""
        shared, fd = (
            "shared" in kind,
            DATA_FD if "file" in kind else MEMORY_FD if "memory" in kind else -1,
        )
        task, arena = self.pick(who)
        address, size = clip(first, count)
        flags = (
            (MAP_SHARED if shared else MAP_PRIVATE)
            | MAP_FIXED
            | EXTRA[extra]
            | (MAP_ANONYMOUS if fd < 0 else 0)
        )
        outcome = self.script.syscall(
            task, "mmap", address, size, prot(rights), flags, fd, 0 if fd < 0 else first * PAGE
        )
        cells = range(first, min(first + count, PAGES))
        if any(cell is not None and cell.fixed for cell in arena[first : cells.stop]):
            self._expect(outcome.errno, EPERM, "mmap: errno")
        elif outcome.errno != ENOMEM or not self._limited(task):
            self._expect(outcome.errno, 0, "mmap: errno")
            locked = extra == "locked" or arena.future
            for page in cells:
                anonymous = Cell(rights, shared=shared, locked=locked)
                file = self.files.get(fd)
                cell = (
                    FileCell(rights, file, page, shared=shared, locked=locked)
                    if file
                    else anonymous
                )
                if locked or extra == "populate":
                    cell.settle()
                arena[page] = cell
        self._checked()

    def munmap(self, who: int, first: int, count: int) -> None:
        """Unmap pages."""
        task, arena = self.pick(who)
        address, size = clip(first, count)
        outcome = self.script.syscall(task, "munmap", address, size)
        if any(cell is not None and cell.fixed for cell in arena[first : first + count]):
            self._expect(outcome.errno, EPERM, "munmap: errno")
        else:
            self._expect(outcome.errno, 0, "munmap: errno")
            arena[first : first + count] = [None] * (size // PAGE)
        self._checked()

    def mprotect(self, who: int, first: int, count: int, rights: str) -> None:
        """Change permissions up to the first hole or sealed page."""
        task, arena = self.pick(who)
        address, size = clip(first, count)
        call = "pkey_mprotect" if count % 2 else "mprotect"
        outcome = self.script.syscall(
            task, call, address, size, prot(rights), *([-1] if count % 2 else [])
        )
        wanted = 0
        for cell in arena[first : first + count]:
            if cell is None or cell.fixed:
                wanted = ENOMEM if cell is None else EPERM
                break
            becomes_writable = "w" in rights and "w" not in cell.rights
            cell.rights = rights
            if cell.locked and not cell.onfault and becomes_writable:
                cell.settle()
        self._expect(outcome.errno, wanted, "mprotect: errno")
        self._checked()

    def mremap(self, who: int, first: int, count: int, to: int, *, leave: bool = False) -> None:
        """Move pages to another place of the arena; ``leave``: the old place stays, empty
        (MREMAP_DONTUNMAP)."""
        task, arena = self.pick(who)
        count = min(count, PAGES - max(first, to))
        moved, size = arena[first : first + count], count * PAGE
        if any(cell is not None and cell.fixed for cell in [*moved, *arena[to : to + count]]):
            return  # it stops at the first sealed one, after moving those before it
        if leave and not all(type(cell) is Cell and not cell.shared for cell in moved):
            leave = False
        flags = MREMAP_MAYMOVE | MREMAP_FIXED | (MREMAP_DONTUNMAP if leave else 0)
        outcome = self.script.syscall(
            task, "mremap", BASE + first * PAGE, size, size, flags, BASE + to * PAGE
        )
        wanted = EINVAL if abs(first - to) < count else EFAULT if moved[0] is None else 0
        if leave and outcome.errno == ENOMEM and self._limited(task):
            self._give_way(arena, to, count)
        else:
            self._expect(outcome.errno, wanted, "mremap: errno")
            if not wanted:
                self._move(arena, first, moved, to, leave)
        self._checked()

    def _move(
        self, arena: Arena, first: int, moved: list[Cell | None], to: int, leave: bool
    ) -> None:
        arena[first : first + len(moved)] = [
            _emptied(cell) if leave and cell else None for cell in moved
        ]
        for page, cell in enumerate(moved, to):
            arena[page] = cell or arena[page]

    def _give_way(self, arena: Arena, to: int, count: int) -> None:
        """The new place was unmapped before the limit was found to be too low."""
        arena[to : to + 1] = [None]
        arena[to : to + count] = [None] * count

    def resize(self, who: int, first: int, old: int, new: int) -> None:
        """Resize by mremap in place: shrink, or grow into free pages of the arena."""
        task, arena = self.pick(who)
        old, new = min(old, PAGES - first), min(new, PAGES - first)
        cells = arena[first : first + old]
        if (
            any(
                cell is None or cell.fixed or cell.guard or type(cell) is not Cell or cell.shared
                for cell in cells
            )
            or new > old
        ):
            return self._checked()
        outcome = self.script.syscall(
            task, "mremap", BASE + first * PAGE, old * PAGE, new * PAGE, 0
        )
        if any(cell is not None and cell.fixed for cell in arena[first + new : first + old]):
            self._expect(outcome.errno, EPERM, "mremap: errno")
        else:
            self._expect(outcome.errno, 0, "mremap: errno")
            arena[first + new : first + old] = [None] * (old - new)
        return self._checked()

    def brk(self, who: int, pages: int) -> None:
        """Set the number of pages of the heap, unless a limit forbids it."""
        task, arena = self.pick(who)
        wanted = arena.start + pages * PAGE
        got = self._ok(task, "brk", wanted)
        if got != wanted and self._limited(task) and pages > len(arena.heap):
            return self._checked()
        self._expect(got, wanted, "brk:")
        del arena.heap[pages:]
        arena.heap += [
            Cell("rw", shared=False, locked=arena.future) for _ in range(pages - len(arena.heap))
        ]
        return self._checked()

    # ---------------------------------------------------------------- advice, locks, seals

    def dontneed(self, who: int, first: int, count: int) -> None:
        """madvise(MADV_DONTNEED)."""
        self.madvise(who, first, count, "dontneed")

    def madvise(self, who: int, first: int, count: int, advice: str) -> None:
        """One of ``ADVICE``: up to the first page that refuses it; a hole is skipped and reported
        at the end."""
        task, arena = self.pick(who)
        address, size = clip(first, count)
        if advice == "guard" and any(
            isinstance(cell, FileCell) for cell in arena[first : first + count]
        ):
            return  # where a later mlock stops depends on which mappings were merged
        outcome = self.script.syscall(task, "madvise", address, size, ADVICE[advice])
        wanted = 0
        for cell in arena[first : first + count]:
            if cell is None:
                wanted = ENOMEM
                continue
            refused = refuses(cell, advice)
            if refused:
                wanted = refused
                break
            take(cell, advice)
        self._expect(outcome.errno, wanted, f"madvise {advice}: errno")
        self._checked()

    def populate(self, who: int, first: int, count: int, *, write: bool) -> None:
        """MADV_POPULATE_READ, MADV_POPULATE_WRITE: no visible change."""
        task, arena = self.pick(who)
        address, size = clip(first, count)
        outcome = self.script.syscall(
            task, "madvise", address, size, MADV_POPULATE_WRITE if write else MADV_POPULATE_READ
        )
        if not any(refusal(cell, "w" if write else "r") for cell in arena[first : first + count]):
            self._expect(outcome.errno, 0, "populate: errno")
        elif outcome.errno == 0:
            self._expect(outcome.errno, "an error", "populate: errno")
        if write:
            bring_in(arena[first : first + count])
        self._checked()

    def mlock(self, who: int, first: int, count: int, *, lock: bool, onfault: bool = False) -> None:
        """Lock or unlock (mlock, mlock2, munlock) up to the first hole."""
        task, arena = self.pick(who)
        address, size = clip(first, count)
        call, more = ("mlock2", [1]) if lock and onfault else ("mlock" if lock else "munlock", [])
        outcome = self.script.syscall(task, call, address, size, *more)
        hole = False
        for cell in arena[first : first + count]:
            hole = hole or cell is None
            if cell is not None and not hole:
                cell.locked, cell.onfault = lock, onfault
        if lock and not onfault and not hole:
            bring_in(arena[first : first + count])
        if hole or (
            lock
            and not onfault
            and any(refusal(cell, cell.rights) for cell in arena[first : first + count] if cell)
        ):
            self._expect(outcome.errno, ENOMEM, f"{call}: errno")
        elif not lock or onfault:
            self._expect(outcome.errno, 0, f"{call}: errno")
        self._checked()

    def mlockall(self, who: int, flags: int) -> None:
        """Lock all: MCL_CURRENT 1, MCL_FUTURE 2, or both; 0 is munlockall."""
        task, arena = self.pick(who)
        outcome = (
            self.script.syscall(task, "mlockall", flags)
            if flags
            else self.script.syscall(task, "munlockall")
        )
        self._expect(outcome.errno, 0, "mlockall: errno")
        arena.future = bool(flags & 2)
        for cell in [*arena, *arena.heap]:
            if cell is not None and (flags & 1 or not flags):
                cell.locked, cell.onfault = bool(flags & 1), False
                if cell.locked:
                    cell.settle()
        self._checked()

    def mseal(self, who: int, first: int, count: int) -> None:
        """Seal the pages: their mappings can no longer change."""
        task, arena = self.pick(who)
        address, size = clip(first, count)
        outcome = self.script.syscall(task, "mseal", address, size)
        cells = arena[first : first + count]
        if None in cells:
            self._expect(outcome.errno, ENOMEM, "mseal: errno")
        else:
            self._expect(outcome.errno, 0, "mseal: errno")
            for cell in cells:
                if cell is not None:
                    cell.fixed = True
        self._checked()

    def look(self, who: int, first: int, count: int, what: str) -> None:
        """Call mincore or msync: no visible change."""
        task, arena = self.pick(who)
        address, size = clip(first, count)
        last = SCRATCH if what == "mincore" else MS_SYNC if count % 2 else MS_ASYNC
        outcome = self.script.syscall(task, what, address, size, last)
        self._expect(
            outcome.errno, ENOMEM if None in arena[first : first + count] else 0, f"{what}: errno"
        )
        self._checked()

    # ---------------------------------------------------------------- files

    def ftruncate(self, who: int, pages: int, *, memory: bool) -> None:
        """Set the number of pages of the file, at most that of the arena."""
        task, _ = self.pick(who)
        fd = MEMORY_FD if memory else DATA_FD
        self._ok(task, "ftruncate", fd, pages * PAGE)
        self.files[fd].resize(pages)
        self._checked()

    def punch(self, who: int, first: int, count: int, *, memory: bool) -> None:
        """fallocate(2): punch a hole in the file."""
        task, _ = self.pick(who)
        fd = MEMORY_FD if memory else DATA_FD
        self._ok(task, "fallocate", fd, PUNCH, first * PAGE, count * PAGE)
        self.files[fd].punch(first, count)
        self._checked()

    def sync(self, who: int, advice: int) -> None:
        """fsync(2), and posix_fadvise(2) on the whole file: no visible change."""
        task, _ = self.pick(who)
        self._ok(task, "fsync", DATA_FD)
        self._ok(task, "fadvise64", DATA_FD, 0, 0, advice % 6)
        self._checked()

    def remap(self, who: int, page: int, to: int) -> None:
        """remap_file_pages(2): one page of a shared mapping of a file shows another page of it."""
        task, arena = self.pick(who)
        cell = arena[page]
        if type(cell) is Cell and cell.shared:
            return  # shared anonymous memory has its own file, which is not in the model
        outcome = self.script.syscall(task, "remap_file_pages", BASE + page * PAGE, PAGE, 0, to, 0)
        if not isinstance(cell, FileCell) or not cell.shared:
            self._expect(outcome.errno, EINVAL, "remap_file_pages: errno")
        elif cell.fixed:
            self._expect(outcome.errno, EPERM, "remap_file_pages: errno")
        elif outcome.errno != ENOMEM or not self._limited(task):
            self._expect(outcome.errno, 0, "remap_file_pages: errno")
            arena[page] = FileCell(
                cell.rights, cell.file, to, shared=True, locked=cell.locked or arena.future
            )
        self._checked()

    def reopen(self, who: int) -> None:
        """Close the descriptor of the file on disk and open the file again, which returns the same
        number."""
        task, _ = self.pick(who)
        self._ok(task, "close", DATA_FD)
        self._expect(
            self._ok(task, "open", "/data", O_RDWR), DATA_FD, "open: the lowest free descriptor"
        )
        self._checked()

    # ---------------------------------------------------------------- limits

    def limit(self, who: int, pages: int | None) -> None:
        """RLIMIT_AS: that many pages more than now, or no limit."""
        task, _ = self.pick(who)
        space = task.mm
        soft = RLIM_INFINITY if pages is None or space is None else (space.total_vm + pages) * PAGE
        self._ok(task, "setrlimit", RLIMIT_AS, soft, RLIM_INFINITY)


def _emptied(cell: Cell) -> Cell:
    """What MREMAP_DONTUNMAP leaves: the same mapping without contents and lock."""
    left = Cell(cell.rights, shared=False)
    left.wipe, left.lonely = cell.wipe, cell.lonely
    return left


def bring_in(cells: list[Cell | None]) -> None:
    """Fault pages in, in this order, up to the first that cannot be."""
    for cell in cells:
        if cell is None or refusal(cell, cell.rights):
            break
        cell.settle()


def refuses(cell: Cell, advice: str) -> int:
    """The errno with which a page refuses an advice, or 0."""
    anonymous = type(cell) is Cell and not cell.shared
    discards = advice in ("free", "dontneed", "dontneed_locked", "dontfork", "wipeonfork", "guard")
    if cell.fixed and anonymous and "w" not in cell.rights and discards:
        return EPERM
    if cell.locked and advice in ("free", "dontneed", "cold", "pageout", "guard"):
        return EINVAL
    return EINVAL if advice in ("free", "wipeonfork") and not anonymous else 0


def take(cell: Cell, advice: str) -> None:
    """What an advice does to a page."""
    if advice in ("dontneed", "dontneed_locked", "guard"):
        cell.drop()
    cell.guard = (cell.guard or advice == "guard") and advice != "unguard"
    cell.wipe = (cell.wipe or advice == "wipeonfork") and advice != "keeponfork"
    cell.lonely = (cell.lonely or advice == "dontfork") and advice != "dofork"

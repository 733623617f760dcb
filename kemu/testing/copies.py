"""Accesses of all kinds: by user code, by the kernel on its behalf, by another process, by a
device."""

from __future__ import annotations

from kemu.abi.uapi import EFAULT, EIO
from kemu.abi.uapi import PAGE_SIZE as PAGE
from kemu.kernel.include.system import system
from kemu.testing.model import FileCell, readable, refusal, unfetchable
from kemu.testing.stage import BASE, DATA_FD, MEMORY_FD, PIPE_FD, SCRATCH, Stage, signal


class Copies(Stage):
    """Operations that read and write memory."""

    def write(self, who: int, page: int, value: int, cpu: int = 0, word: int = 0) -> None:
        """A store of 8 bytes at the ``word``-th word of a page."""
        task, arena = self.pick(who)
        data, cell = value.to_bytes(8, "little"), arena[page]
        outcome = self.script.store(task, BASE + page * PAGE + 8 * word, data, cpu=cpu)
        self._expect(signal(outcome), refusal(cell, "w"), f"store to page {page}:")
        if cell is not None and outcome.signal is None:
            cell.store(8 * word, data)
        self._checked()

    def read(self, who: int, page: int, cpu: int = 0, word: int = 0) -> None:
        """A load of two words of a page."""
        self._load(who, page, cpu, 8 * min(word, 510), 16)
        self._checked()

    def _load(self, who: int, page: int, cpu: int, at: int, size: int) -> None:
        task, arena = self.pick(who)
        outcome = self.script.load(task, BASE + page * PAGE + at, size, cpu=cpu)
        cell = arena[page]
        self._expect(
            signal(outcome), refusal(cell, readable(system.geometry)), f"load from page {page}:"
        )
        if cell is not None and outcome.signal is None:
            has, wants = outcome.data, cell.load(at, size)
            differs = next((n for n in range(size) if has[n] != wants[n]), 0) & ~7
            where = (
                f"page {page} of process {who % len(self.runnable())} holds at {at + differs:#x}"
            )
            self._expect(
                has[differs : differs + 8].hex(), wants[differs : differs + 8].hex(), where
            )

    def fetch(self, who: int, page: int, cpu: int = 0) -> None:
        """An instruction fetch."""
        task, arena = self.pick(who)
        outcome = self.script.fetch(task, BASE + page * PAGE, cpu=cpu)
        self._expect(signal(outcome), unfetchable(arena[page]), f"fetch from page {page}:")
        self._checked()

    def heap(self, who: int, page: int, value: int) -> None:
        """A store to the heap."""
        task, arena = self.pick(who)
        if arena.heap:
            page %= len(arena.heap)
            data = value.to_bytes(8, "little")
            outcome = self.script.store(task, arena.start + page * PAGE, data)
            self._expect(signal(outcome), "", f"store to page {page} of the heap:")
            arena.heap[page].store(0, data)
        self._checked()

    def _load_heap(self, who: int) -> None:
        task, arena = self.pick(who)
        for page, cell in enumerate(arena.heap):
            outcome = self.script.load(task, arena.start + page * PAGE, 16)
            self._expect(outcome.data, cell.load(0, 16), f"page {page} of the heap holds")

    # ---------------------------------------------------------------- by the kernel

    def pread(self, who: int, page: int, source: int, *, memory: bool = False) -> None:
        """read(2): the kernel stores 8 bytes of the file's page ``source``."""
        task, arena = self.pick(who)
        fd = MEMORY_FD if memory else DATA_FD
        outcome = self.script.syscall(task, "pread", fd, BASE + page * PAGE, 8, source * PAGE)
        cell, file = arena[page], self.files[fd]
        if source >= file.size:
            self._expect((outcome.errno, outcome.value), (0, 0), "pread beyond the end:")
        elif refusal(cell, "w"):
            self._expect(outcome.errno, EFAULT, "pread: errno")
        elif cell is not None:
            self._expect(outcome.errno, 0, "pread: errno")
            cell.store(0, bytes(file.pages[source].get(at, 0) for at in range(8)))
        self._checked()

    def pwrite(self, who: int, page: int, to: int, *, memory: bool = False) -> None:
        """The kernel loads 8 bytes, for write or pwrite, and stores them in the file's page
        ``to``."""
        task, arena = self.pick(who)
        fd = MEMORY_FD if memory else DATA_FD
        cell, file = arena[page], self.files[fd]
        if to < file.size:
            if to % 2:
                self._expect(self._ok(task, "lseek", fd, to * PAGE, 0), to * PAGE, "lseek:")
                outcome = self.script.syscall(task, "write", fd, BASE + page * PAGE, 8)
            else:
                outcome = self.script.syscall(task, "pwrite", fd, BASE + page * PAGE, 8, to * PAGE)
            if refusal(cell, readable(system.geometry)):
                self._expect(outcome.errno, EFAULT, "pwrite: errno")
            elif cell is not None:
                self._expect(outcome.errno, 0, "pwrite: errno")
                file.pages[to].update(enumerate(cell.load(0, 8)))
        self._checked()

    # ---------------------------------------------------------------- by another process

    def process_vm(self, who: int, page: int, other: int, there: int, *, write: bool) -> None:
        """process_vm_readv(2), process_vm_writev(2): 8 bytes between a page here and one of another
        process."""
        task, arena = self.pick(who)
        target, theirs = self.pick(other)
        call = "process_vm_writev" if write else "process_vm_readv"
        outcome = self.script.syscall(
            task, call, target.pid, BASE + page * PAGE, BASE + there * PAGE, 8
        )
        mine, its = arena[page], theirs[there]
        refused = refusal(its, "w" if write else "r") or refusal(
            mine, readable(system.geometry) if write else "w"
        )
        self._expect(outcome.errno, EFAULT if refused else 0, f"{call}: errno")
        if not refused and mine is not None and its is not None:
            source, goal = (mine, its) if write else (its, mine)
            goal.store(0, source.load(0, 8))
        self._checked()

    def memory(self, who: int, other: int, page: int, *, write: bool) -> None:
        """8 bytes of /proc/PID/mem, which ignores the permissions of private pages (FOLL_FORCE)."""
        task, _ = self.pick(who)
        target, theirs = self.pick(other)
        outcome = self.script.syscall(
            task, "memwrite" if write else "memread", target.pid, SCRATCH, BASE + page * PAGE, 8
        )
        cell = theirs[page]
        refused = (
            cell is None
            or cell.guard
            or not cell.present()
            or (write and cell.shared and "w" not in cell.rights)
        )
        self._expect(outcome.errno, EIO if refused else 0, "/proc/PID/mem: errno")
        if not refused and cell is not None:
            scratch = self.script.load(task, SCRATCH, 8).data
            if write:
                cell.store(0, scratch)
            else:
                self._expect(scratch, cell.load(0, 8), f"/proc/PID/mem, page {page}:")
        self._checked()

    # ---------------------------------------------------------------- by a device, by a pipe

    def pin(self, who: int, page: int) -> None:
        """Pin a page as a registered buffer: from now on it stays with the process, whatever fork
        does."""
        task, arena = self.pick(who)
        outcome = self.script.syscall(task, "pin", BASE + page * PAGE, PAGE)
        cell = arena[page]
        tracked = isinstance(cell, FileCell) and cell.shared and cell.file is self.files[DATA_FD]
        self._expect(outcome.errno, EFAULT if refusal(cell, "w") or tracked else 0, "pin: errno")
        if cell is not None and not outcome.errno:
            cell.settle()
        self._checked()

    def unpin(self, who: int, page: int) -> None:
        """Unregister the buffer, if there is one."""
        task, _ = self.pick(who)
        self.script.syscall(task, "unpin", BASE + page * PAGE, PAGE)
        self._checked()

    def splice(self, who: int, page: int) -> None:
        """vmsplice(2): the page itself goes into the pipe, unless that is nearly full of bytes."""
        task, arena = self.pick(who)
        if self.piped < 64:
            outcome = self.script.syscall(task, "vmsplice", PIPE_FD, BASE + page * PAGE, 16)
            cell = arena[page]
            refused = refusal(cell, "r")
            if cell is None or refusal(cell, cell.rights) or outcome.errno != 0:
                self._expect(outcome.errno, EFAULT if refused else 0, "vmsplice: errno")
            # gup_fast, which finds the page in the tables, does not check VM_READ
            self.piped += 0 if outcome.errno else 16
        self._checked()

    def drain(self, who: int) -> None:
        """read(2) from the pipe: the oldest 16 bytes."""
        task, _ = self.pick(who)
        if self.piped:
            self._expect(self._ok(task, "read", PIPE_FD, SCRATCH, 16), 16, "read from the pipe:")
            self.piped -= 16
        self._checked()

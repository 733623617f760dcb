"""What everybody does once: short programs on a kernel beside the model, with the invariants along
every event.

``noticed(bodies)`` runs them on a wrong kernel and says who notices first: the name of an
invariant, "model", or "kernel".
"""

from kemu.abi.uapi import (
    CLONE_FILES,
    CLONE_VM,
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_PRIVATE,
    MAP_SHARED,
    O_RDONLY,
    SIGCHLD,
)
from kemu.errors import InvariantViolation, KernelBug
from kemu.invariants import check, first_broken
from kemu.testing import BASE, PAGE, World

FAR = 0x7000_0000

STORIES = {}
ALONG = "fork and both sides write"
"""The program that is looked at event by event."""
BUGS = (KernelBug, AssertionError, KeyError, IndexError, AttributeError, TypeError)
"""How a wrong kernel dies: what its own checks raise, and what Python says of a pointer that leads
nowhere."""


def story(name):
    """The operations of one program."""

    def declare(function):
        STORIES[name] = function
        return function

    return declare


def begin(world):
    world.mmap(0, 0, 8)
    for page in range(6):
        world.write(0, page, page + 100, word=page % 2)


@story("fork and both sides write")
def _fork(w):
    begin(w)
    w.fork(0)
    w.write(0, 1, 7)
    w.write(1, 1, 8)
    w.write(1, 2, 9)
    w.read(0, 2)
    w.verify()
    w.exit(1)
    w.write(0, 3, 5)
    w.finish()


@story("the last sharer writes")
def _last(w):
    begin(w)
    w.fork(0)
    w.exit(1)
    w.write(0, 1, 7)
    w.fork(0)
    w.fork(0)
    w.write(2, 2, 7)
    w.exit(1)
    w.write(0, 2, 8)
    w.verify()
    w.finish()


@story("four share a page")
def _four(w):
    begin(w)
    w.fork(0)
    w.fork(0)
    w.fork(0)
    w.write(1, 0, 9)
    w.verify()
    w.finish()


@story("a thread on the other CPU")
def _thread(w):
    begin(w)
    w.fork(0)
    w.clone(0)
    w.read(2, 3, 1)
    w.write(0, 3, 2)
    w.read(2, 3, 1)
    w.munmap(0, 4, 1)
    w.read(2, 4, 1)
    w.mprotect(0, 5, 1, "r")
    w.write(2, 5, 4, 1)
    w.verify()
    w.finish()


@story("the kernel reads and writes")
def _kernel(w):
    begin(w)
    w.fork(0)
    w.read(0, 1)
    w.pread(0, 1, 4)
    w.pwrite(1, 2, 5)
    w.verify()
    w.finish()


@story("a file, shared and private")
def _file(w):
    w.mmap(0, 0, 4, "rw", "shared file")
    w.mmap(0, 4, 4, "rw", "private file")
    w.write(0, 0, 50)
    w.write(0, 5, 52)
    w.read(0, 4)
    w.write(0, 4, 51)
    w.fork(0)
    w.write(1, 4, 53)
    w.write(1, 1, 54)
    w.verify()
    w.munmap(0, 0, 8)
    w.finish()


@story("the zero page")
def _zero(w):
    w.mmap(0, 0, 4)
    w.read(0, 0)
    w.read(0, 1)
    w.write(0, 1, 3)
    w.fork(0)
    w.read(1, 0)
    w.munmap(0, 0, 4)
    w.mmap(0, 0, 4)
    w.write(0, 2, 3)
    w.verify()
    w.finish()


@story("used frames come back empty")
def _reuse(w):
    begin(w)
    w.munmap(0, 0, 8)
    w.mmap(0, 0, 8)
    for page in range(6):
        w.write(0, page, 1, word=(page + 1) % 2)
    w.verify()
    w.finish()


@story("mprotect to and fro")
def _protect(w):
    begin(w)
    w.read(0, 1, 1)
    w.mprotect(0, 0, 8, "r")
    w.write(0, 1, 1)
    w.mprotect(0, 0, 8, "rw")
    w.fork(0)
    w.mprotect(0, 0, 4, "r")
    w.mprotect(0, 0, 4, "rw")
    w.write(0, 1, 2)
    w.verify()
    w.finish()


@story("mremap")
def _move(w):
    begin(w)
    w.read(0, 1)
    w.mremap(0, 0, 3, 9)
    w.read(0, 1)
    w.read(0, 10)
    w.verify()
    w.finish()


@story("a pinned page and fork")
def _pinned(w):
    begin(w)
    w.pin(0, 2)
    w.fork(0)
    w.write(0, 2, 1)
    w.write(1, 2, 2)
    w.verify()
    w.finish()


@story("kernel threads borrow tables")
def _borrow(w):
    begin(w)
    w.fork(0)
    w.kthread(0)
    w.exit(1)
    w.kthread(1)
    w.write(0, 1, 1, 1)
    w.kthread(1)
    w.write(0, 1, 1, 0)
    w.verify()
    w.finish()


@story("a CPU comes back after a flush")
def _back(w):
    begin(w)
    w.clone(0)
    w.fork(0)
    w.read(1, 1, 1)
    w.read(2, 2, 1)
    w.munmap(0, 1, 1)
    w.read(1, 1, 1)
    w.verify()
    w.finish()


@story("a pipe holds a page")
def _pipe(w):
    begin(w)
    w.fork(0)
    child, _ = w.pick(1)
    fd = w.script.syscall(child, "pipe").value
    w.script.syscall(child, "vmsplice", fd, BASE + PAGE, 16)
    w.munmap(1, 0, 8)
    w.write(0, 1, 7)
    w.mmap(1, 0, 1)
    w.script.syscall(child, "read", fd, BASE, 16)
    got = w.script.load(child, BASE, 16).data
    if got != bytes(8) + (101).to_bytes(8, "little"):
        raise InvariantViolation("contents: the pipe holds what was written after the splice")
    w.invariants()


@story("a family")
def _family(w):
    begin(w)
    w.fork(0)
    w.fork(1)
    w.exit(1)
    w.verify()
    task, _ = w.pick(0)
    w.script.syscall(task, "vfork")
    w.invariants()
    child = max(w.kernel.globals["tasks"])
    w.script.syscall(w.kernel.globals["tasks"][child], "exit", 0)
    w.script.syscall(task, "clone", CLONE_VM | 17)
    w.invariants()


@story("fork without memory")
def _starved(w):
    begin(w)
    w.pin(0, 2)
    for number in range(1, 12):
        w.kernel.globals["sysctl"].fail_alloc = number
        task, _ = w.pick(0)
        w.script.syscall(task, "fork")
        w.kernel.globals["sysctl"].fail_alloc = 0
        w.invariants()


@story("threads, and descriptors in common")
def _threads(w):
    begin(w)
    w.thread(0)
    w.write(1, 1, 7, 1)
    w.write(0, 1, 8)
    task, _ = w.pick(0)
    w.script.syscall(task, "clone", CLONE_FILES | SIGCHLD)
    w.invariants()
    w.leave(1)
    w.thread(0)
    w.verify()
    w.exit(0)


@story("a process is reaped")
def _reaped(w):
    begin(w)
    task, _ = w.pick(0)
    w.script.syscall(task, "sigaction", SIGCHLD, "default")
    w.fork(0)
    w.exit(1)
    w.invariants()
    w.script.syscall(task, "wait4", -1, 0, 0)
    w.invariants()


@story("a kernel thread keeps the tables of the dead")
def _ghost(w):
    begin(w)
    w.fork(0)
    w.read(1, 1, 1)
    w.kthread(1)
    w.exit(1)
    w.kthread(1)
    w.verify()
    w.finish()


@story("many mappings")
def _many(w):
    w.kernel.globals["sysctl"].max_map_count = 9
    task, _ = w.pick(0)
    for number in range(12):
        w.script.syscall(
            task,
            "mmap",
            FAR + 2 * number * PAGE,
            PAGE,
            3,
            MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS,
            -1,
            0,
        )
        w.invariants()


@story("the heap")
def _heap(w):
    w.brk(0, 4)
    w.heap(0, 3, 9)
    w.brk(0, 2)
    task, arena = w.pick(0)
    w.script.syscall(task, "brk", arena.start - PAGE)
    w.invariants()
    w.finish()


@story("locked memory")
def _locked(w):
    begin(w)
    w.mlock(0, 1, 3, lock=True)
    w.mlock(0, 2, 1, lock=False)
    w.fork(0)
    w.mlockall(1, 3)
    w.write(1, 1, 3)
    w.verify()
    w.finish()


@story("a file that is open for reading only")
def _read_only(w):
    task, _ = w.pick(0)
    fd = w.script.syscall(task, "open", "/data", O_RDONLY).value
    w.script.syscall(task, "mmap", FAR, PAGE, 1, MAP_FIXED | MAP_SHARED, fd, 0)
    w.script.syscall(task, "mprotect", FAR, PAGE, 3)
    w.invariants()


@story("shared memory without a name")
def _shared(w):
    w.mmap(0, 0, 2, "rw", "shared")
    w.fork(0)
    w.write(0, 0, 1)
    w.read(1, 0)
    w.finish()


@story("a file gets shorter and longer")
def _shorter(w):
    w.mmap(0, 0, 4, "rw", "shared file")
    w.mmap(0, 4, 4, "rw", "private file")
    for page in range(8):
        w.read(0, page)
    w.write(0, 1, 5)
    w.write(0, 5, 6)
    w.ftruncate(0, 3, memory=False)
    w.read(0, 3)
    w.ftruncate(0, 1, memory=False)
    w.ftruncate(0, 12, memory=False)
    w.verify()
    w.finish()


@story("a file is written through memory")
def _written(w):
    w.mmap(0, 0, 4, "rw", "shared file")
    w.read(0, 1)
    w.sync(0, 0)
    w.read(0, 2)
    w.write(0, 1, 5)
    w.munmap(0, 0, 4)
    w.verify()
    w.finish()


@story("a file of memory")
def _memory(w):
    w.mmap(0, 0, 4, "rw", "shared memory")
    w.read(0, 0)
    w.write(0, 1, 5)
    w.fork(0)
    w.write(1, 1, 6)
    w.punch(0, 1, 1, memory=True)
    w.verify()
    w.finish()


@story("mappings of a file come and go")
def _mappings(w):
    w.mmap(0, 0, 6, "rw", "private file")
    w.fork(0)
    w.munmap(0, 2, 2)
    w.munmap(0, 0, 1)
    w.exit(1)
    w.verify()
    w.finish()


@story("exec and vfork")
def _exec(w):
    begin(w)
    w.vfork(0)
    w.write(0, 1, 9)
    w.exec(0)
    w.verify()
    w.exec(0)
    w.finish()


@story("nobody may touch, nobody may execute")
def _rights(w):
    begin(w)
    w.fetch(0, 1)
    w.mprotect(0, 1, 2, "")
    w.read(0, 1)
    w.mprotect(0, 1, 2, "rx")
    w.fetch(0, 1)
    w.verify()
    w.finish()


WHERE = {
    "write_forgets_dirty": "the kernel reads and writes",
    "shared_memory_is_not_swapbacked": "a file of memory",
    "cache_keeps_freed_page": "a file gets shorter and longer",
    "truncate_keeps_pages": "a file gets shorter and longer",
    "truncate_puts_before_unlock": "a file gets shorter and longer",
    "file_remembers_dead_mappings": "a file, shared and private",
    "fork_forgets_file": "a file, shared and private",
    "mkwrite_is_skipped": "a file, shared and private",
    "fault_forgets_unlock": "a file, shared and private",
    "munmap_keeps_tables": "a file, shared and private",
    "private_file_write_reaches_file": "a file, shared and private",
    "clone_forgets_user": "a thread on the other CPU",
    "cow_skips_flush": "a thread on the other CPU",
    "mprotect_forgets_size": "a thread on the other CPU",
    "munmap_forgets_entries": "a thread on the other CPU",
    "munmap_keeps_promise": "a thread on the other CPU",
    "split_forgets_offset": "a thread on the other CPU",
    "split_forgets_to_shrink": "a thread on the other CPU",
    "brk_below_its_start": "the heap",
    "shared_memory_without_ops": "shared memory without a name",
    "mprotect_asks_nobody": "a file that is open for reading only",
    "mlock_is_not_counted": "locked memory",
    "mappings_without_limit": "many mappings",
    "clone_forgets_files": "threads, and descriptors in common",
    "thread_has_its_own_signals": "threads, and descriptors in common",
    "stale_asid_reused": "a CPU comes back after a flush",
    "refcount_too_narrow": "the last sharer writes",
    "orphans_keep_their_parent": "a family",
    "vfork_does_not_wait": "a family",
    "mprotect_forgets_entries": "mprotect to and fro",
    "mprotect_makes_shared_page_writable": "mprotect to and fro",
    "mprotect_skips_flush": "mprotect to and fro",
    "mremap_skips_flush": "mremap",
    "anon_page_not_zeroed": "used frames come back empty",
    "reuse_by_mapcount": "a pipe holds a page",
    "double_put_on_failed_fork": "fork without memory",
    "failed_fork_keeps_page": "fork without memory",
    "fork_shares_pinned_page": "a pinned page and fork",
}
"""The story in which a wrong kernel is noticed, where that is not the first one: only to find it
sooner."""


def noticed(bodies, name=""):
    """Who notices that the kernel is wrong, and in which story; None if nobody does.  First what
    can be seen between two operations, then what only an event in the middle of one shows.  For the
    wrong kernel ``name`` it is known where to look."""
    stories = [WHERE[name]] if name in WHERE else STORIES
    for title in stories:
        found = _play(STORIES[title], bodies, False)
        if found is not None:
            return found, title
    found = _play(STORIES[ALONG], bodies, True)
    return found and (found, ALONG)


def _play(operations, bodies, along):
    said = world = None
    try:
        world = World(record=along, bodies=bodies)
        operations(world)
    except InvariantViolation as error:
        name = str(error).split(":")[0]
        said = "model" if name == "contents" else name
    except BUGS:
        said = "kernel"
    if said is None and along:
        world.kernel.journal.catch_up()
        broken = first_broken(world.kernel, 0, len(world.kernel.journal), set(world.moments))
        said = broken and broken.violations[0].invariant
    return said


class Gatherer(World):
    """A world that goes on: every invariant that did not hold behind some operation is in
    ``broken``."""

    broken = frozenset()

    def invariants(self):
        """Look, and remember."""
        self.broken |= {violation.invariant for violation in check(self.kernel)}


def broken_by(bodies, name):
    """The invariants that a kernel breaks behind some operation of a story, if it becomes a wrong
    one when the world is ready."""
    world = Gatherer()
    world.kernel.bodies = bodies
    try:
        STORIES[name](world)
        world.invariants()
    except (InvariantViolation, *BUGS) as died:
        world.died = died
    return world.broken


def broken_along(bodies, name):
    """The invariants that do not hold behind the first event of a story that breaks any."""
    world = World(record=True, verifying=False, bodies=bodies)
    try:
        STORIES[name](world)
    except (InvariantViolation, *BUGS) as died:
        world.died = died
    world.kernel.journal.catch_up()
    found = first_broken(world.kernel, 0, len(world.kernel.journal), set(world.moments))
    return {violation.invariant for violation in found.violations} if found else set()

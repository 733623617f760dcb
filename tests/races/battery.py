"""What everybody does once: short programs on a kernel beside the model, with the invariants along every event.

``noticed(bodies)`` runs them on a wrong kernel and says who notices first: the name of an invariant, "model", or "kernel".
"""

from kemu.errors import InvariantViolation, KernelBug
from kemu.invariants import first_broken
from kemu.kernel.mman import CLONE_VM
from kemu.testing import BASE, PAGE, World

STORIES = {}
ALONG = "fork and both sides write"
"""The program that is looked at event by event."""
BUGS = (KernelBug, AssertionError, KeyError, IndexError, AttributeError, TypeError)
"""How a wrong kernel dies: what its own checks raise, and what Python says of a pointer that leads nowhere."""


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


def noticed(bodies):
    """Who notices that the kernel is wrong, and in which story; None if nobody does.  First what can be seen between two
    operations, then what only an event in the middle of one shows."""
    for name, operations in STORIES.items():
        found = _play(operations, bodies, False)
        if found is not None:
            return found, name
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

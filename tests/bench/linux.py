"""The real kernel's side: linux.c, compiled at run time; without a C compiler the same steps from a
Python process.

In Python the loop itself costs something.  It is measured by a second pass over pages that are
present already, and taken off; what is left is less exact than the C program, and the table says
which one was used.
"""

import json
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PAGE = 4096
SOURCE = Path(__file__).with_name("linux.c")


class RealKernel:
    """Runs the steps on this computer's own kernel.  ``how`` says by what; it is empty where there
    is no Linux."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="kemu-bench-")
        self.program = compiled(Path(self.folder.name)) if sys.platform == "linux" else None
        self.how = ""
        if sys.platform == "linux":
            self.how = "C program" if self.program else "Python loop, its own cost taken off"

    def run(self, pages):
        """Microseconds by step (fault, cow: a page; the others: a page-table entry), or {} where
        there is no Linux."""
        if not self.how:
            return {}
        command = (
            [self.program, str(pages)]
            if self.program
            else [sys.executable, "-m", "tests.bench.linux", str(pages)]
        )
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
        return json.loads(done.stdout)

    def close(self):
        self.folder.cleanup()


def compiled(folder):
    """The program made from linux.c, or None if there is no C compiler that makes it."""
    for name in ("cc", "gcc", "clang"):
        compiler = shutil.which(name)
        if compiler is None:
            continue
        program = str(folder / "linux")
        command = [compiler, "-O2", "-o", program, str(SOURCE)]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return program
    return None


# ---------------------------------------------------------------- without a compiler


def touch(area, first, last):
    """One store of 8 bytes a page; microseconds a page."""
    word = b"12345678"
    start = time.thread_time()
    for at in range(first * PAGE, last * PAGE, PAGE):
        area[at : at + 8] = word
    return (time.thread_time() - start) / (last - first) * 1e6


def net(area, first, last):
    """``touch`` without the cost of the loop: the first pass faults, the second one does not."""
    faulting = touch(area, first, last)
    return max(0.0, faulting - touch(area, first, last))


def steps(pages):
    """What linux.c does."""
    area = mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        area.madvise(mmap.MADV_NOHUGEPAGE)
    area[0] = 1
    fault = net(area, 1, pages)
    reader, writer = os.pipe()
    start = time.thread_time()
    child = os.fork()
    fork = (time.thread_time() - start) / pages * 1e6
    if child == 0:
        area[0] = 2
        cow = net(area, 1, pages // 2)
        os.write(writer, f"{cow} {time.process_time()}".encode())
        os._exit(0)
    cow, end = map(float, os.read(reader, 64).split())
    _, _, usage = os.wait4(child, 0)
    exit_ = usage.ru_utime + usage.ru_stime - end
    touch(area, 0, pages)
    start = time.thread_time()
    area.madvise(mmap.MADV_DONTNEED)
    dontneed = time.thread_time() - start
    touch(area, 0, pages)
    start = time.thread_time()
    area.close()
    munmap = time.thread_time() - start
    given_back = {"exit": exit_, "dontneed": dontneed, "munmap": munmap}
    return {
        "fault": fault,
        "cow": cow,
        "fork": fork,
        **{what: seconds / pages * 1e6 for what, seconds in given_back.items()},
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(steps(int(sys.argv[1]))))

"""Every recorded execve comes out as on the real kernel: layout, auxiliary vector, stack, numbers,
errno, signal."""

import errno
import signal
from pathlib import Path

import pytest

from tests.kernel import recorded_exec as recorded

LOADER = "/lib64/ld-linux-x86-64.so.2"
"""The interpreter that hello-dyn and the shell name: a symbolic link, which kemu does not have, on
the recording machine to:"""

HOST_FILES = {
    LOADER: ("/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", 215000),
    "/bin/sh": ("/usr/bin/dash", 125640),
}
NEEDED = {
    "hello-dyn": (LOADER,),
    "script-ok": (LOADER, "/bin/sh"),
    "tiny-dyn": ("tiny-interp",),
}
"""Files besides the program itself: of this folder, or the host's."""


def needed_files(name):
    """path -> bytes; skips if the host's file is not the one that was recorded."""
    files = {}
    for path in NEEDED.get(name, ()):
        if path in HOST_FILES:
            real, size = HOST_FILES[path]
            found = Path(path)
            if not found.is_file() or found.stat().st_size != size:
                pytest.skip(
                    f"{name} was recorded with a {real} of {size} bytes, which this host does not "
                    f"have at {path}"
                )
            files[path] = found.read_bytes()
        else:
            files["/" + path] = recorded.program(path)
    return files


def real_name(name):
    return HOST_FILES[name][0] if name in HOST_FILES else name


ALIVE = [name for name in recorded.NAMES if "rip" in recorded.recording(name)]
REFUSED = [name for name in recorded.NAMES if "errno" in recorded.recording(name)]
KILLED = [name for name in recorded.NAMES if "signal" in recorded.recording(name)]


def test_every_recording_is_of_one_kind():
    assert sorted(ALIVE + REFUSED + KILLED) == recorded.NAMES
    assert (len(ALIVE), len(REFUSED), len(KILLED)) == (14, 12, 3)


@pytest.mark.parametrize("name", ALIVE)
def test_a_program_starts_as_recorded(name):
    wanted = recorded.recording(name)
    scene, outcome = recorded.start(wanted, needed_files(name))
    task = scene.p
    assert (outcome.errno, outcome.signal) == (0, None)
    assert [(where, real_name(path)) for where, path in recorded.maps(task)] == recorded.bare_maps(
        wanted["maps"]
    )
    assert [[kind, hex(value)] for kind, value in task.mm.saved_auxv] == wanted["auxv"]
    assert (hex(task.regs.ip), hex(task.regs.sp)) == (wanted["rip"], wanted["rsp"])
    assert recorded.status(scene, task) == wanted["status"]
    assert recorded.stat(scene, task) == {
        k: v for k, v in wanted["stat"].items() if k not in ("rss", "minflt")
    }
    assert (task.comm, task.mm.task_size) == (name[:15], 0x7FFFFFFFF000)
    compare_stacks(wanted, recorded.stack(scene, task, int(wanted["stack_top"], 16)))


def compare_stacks(wanted, got):
    """Equal but for the 16 random bytes."""
    expected = bytes.fromhex(wanted["stack_hex"])
    random = int(dict(wanted["auxv"])[recorded.AT_RANDOM], 16) - int(wanted["rsp"], 16)
    assert len(got) == len(expected)
    assert got[:random] == expected[:random]
    assert got[random + 16 :] == expected[random + 16 :]


@pytest.mark.parametrize("name", REFUSED)
def test_a_program_that_is_refused_leaves_the_old_one_alive(name):
    wanted = recorded.recording(name)
    scene, outcome = recorded.start(wanted, needed_files(name))
    before = scene.p.mm
    assert (errno.errorcode[outcome.errno], outcome.signal) == (wanted["errno"], None)
    a = scene.mmap(scene.p, 1)
    scene.write(scene.p, a, 7)
    assert scene.read(scene.p, a) == 7
    assert scene.p.mm is before
    assert scene.p.comm == "p"


@pytest.mark.parametrize("name", KILLED)
def test_a_program_that_cannot_be_mapped_kills_the_process(name):
    wanted = recorded.recording(name)
    scene, outcome = recorded.start(wanted, needed_files(name))
    assert signal.Signals(outcome.signal.signo).name == wanted["signal"]
    assert outcome.signal.killed
    assert scene.p.mm is None

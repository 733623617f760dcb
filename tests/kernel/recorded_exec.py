"""Programs that the real kernel started, refused or killed, and the same on a machine of kemu
(tests/data/exec/README.md says what the recordings hold)."""

import json
import re
from pathlib import Path

from kemu.kernel.mm.filemap import load_file
from kemu.observe import procfs as numbers
from kemu.observe.space import address_space
from kemu.views import procfs
from tests.kernel.scenes import Scene

FOLDER = Path(__file__).parent.parent / "data" / "exec"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))

AT_RANDOM = 25
MAP_LINE = re.compile(r"(\S+ \S+ \S+) \S+ \d+ +(.*)")


def recording(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


def program(name):
    return (FOLDER / "files" / name).read_bytes()


def start(recorded, files):
    """A machine with the ``files`` (path -> bytes), in which a process has executed the recorded
    program; scene and Outcome."""
    scene = Scene()
    load_file("/" + recorded["file"], program(recorded["file"]))
    for path, data in files.items():
        load_file(path, data)
    return scene, scene.call(scene.p, "execve", recorded["argv"][0], recorded["argv"], None)


def maps(task):
    return bare_maps(procfs.maps(address_space(task)).splitlines())


def bare_maps(lines):
    """(addresses rights offset, name) without device and inode."""
    return [MAP_LINE.fullmatch(line).groups() for line in lines]


def stat(scene, task):
    fields = dict(numbers.stat(scene.kernel, task).fields)
    return {
        name: fields[name]
        for name in recording("tiny-static")["stat"]
        if name not in ("rss", "minflt")
    }


def status(scene, task):
    lines = (
        line.split(":", 1)
        for line in procfs.status(numbers.status(scene.kernel, task)).splitlines()
    )
    return {key: value.strip() for key, value in lines if key in recording("tiny-static")["status"]}


def stack(scene, task, top):
    """The bytes from the stack pointer to ``top``, as the program would read them."""
    return scene.load(task, task.regs.sp, top - task.regs.sp).data

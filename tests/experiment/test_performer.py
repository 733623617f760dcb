"""Commands ask a performer, whoever that is."""

from __future__ import annotations

from kemu import Session
from kemu.userland.performer import Outcome


class Notes:
    """Performs nothing, and notes what it was asked for."""

    def __init__(self):
        self.asked = []

    def spawn(self, name):
        raise AssertionError(f"nobody asks for {name}")

    def syscall(self, task, name, *args, cpu=None):
        self.asked.append((name, task.comm, args, cpu))
        return Outcome(value=11)

    def load(self, task, addr, nbytes, cpu=None):
        self.asked.append(("load", task.comm, addr, nbytes, cpu))
        return Outcome(data=b"x" * nbytes)

    def store(self, task, addr, data, cpu=None):
        self.asked.append(("store", task.comm, addr, data, cpu))
        return Outcome()

    def fetch(self, task, addr, cpu=None):
        self.asked.append(("fetch", task.comm, addr, cpu))
        return Outcome()

    def schedule(self, task, cpu=None):
        self.asked.append(("schedule", task.comm, cpu))
        return Outcome()


def test_commands_do_what_they_do_through_the_performer():
    session = Session()
    session.run("spawn app; mmap app 0x10000 1p rw")
    before, notes = session.state_hash(), Notes()
    with session.performed_by(notes):
        session.run("munmap app 0x10000 1p")
        session.run('write app 0x10000 "ab"; on 1 fetch app 0x10000; schedule app')
        assert session.reading("read app 0x10000 3").data == b"xxx"
    assert notes.asked == [
        ("munmap", "app", (0x10000, 0x1000), 0),
        ("store", "app", 0x10000, b"ab", 0),
        ("fetch", "app", 0x10000, 1),
        ("schedule", "app", 0),
        ("load", "app", 0x10000, 3, 0),
    ]
    assert session.state_hash() == before
    session.run("write app 0x10000 1")
    assert session.state_hash() != before

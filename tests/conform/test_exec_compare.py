"""Programs that the host's kernel starts, next to the same in kemu."""

import io
import os
import sys
from pathlib import Path

import attrs
import pytest

from kemu.conform import exec_compare
from kemu.conform.exec_compare import compare, execute_in_kemu, main, needed_files
from kemu.conform.hostexec import Outcome, execute_on_host
from tests.conform.hosted import needs_host
from tests.conform.test_host import workers

FILES = Path(__file__).parent.parent / "data" / "exec" / "files"


@needs_host
@pytest.mark.parametrize("name", sorted(path.name for path in FILES.iterdir()))
def test_every_recorded_program_is_started_alike(name, tmp_path):
    file = tmp_path / name
    file.write_bytes((FILES / name).read_bytes().replace(b"/nonexistent/x", b"/nonexistent-here/x"))
    file.chmod(0o755)
    out = io.StringIO()
    assert main([str(file)], out) == 0, out.getvalue()
    assert out.getvalue().endswith("no difference\n")


def test_both_machines_have_the_same_memory(tmp_path):
    """4 GiB of zeros behind the first segment are a promise that the machine of the recordings can
    give."""
    file = tmp_path / "large"
    data = bytearray((FILES / "tiny-static").read_bytes())
    data[64 + 40 : 64 + 48] = (1 << 32).to_bytes(8, "little")
    file.write_bytes(data)
    assert execute_in_kemu(str(file), [str(file)]).started is not None


@needs_host
@pytest.mark.parametrize("path", ["/bin/sh", sys.executable])
def test_programs_of_the_host_too(path):
    out = io.StringIO()
    assert main([path, "-c", "an argument"], out) == 0, out.getvalue()
    assert out.getvalue().splitlines()[0] == f"{Path(path).resolve()}: host: started, kemu: started"


@needs_host
def test_the_program_is_not_run_and_nothing_is_left(tmp_path):
    script = tmp_path / "s"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    script.chmod(0o755)
    before = workers()
    assert execute_on_host(str(script), [str(script)]).started is not None
    assert not (tmp_path / "was-run").exists()
    assert workers() <= before


@needs_host
def test_a_file_that_may_not_be_executed_is_refused_by_the_host(tmp_path):
    file = tmp_path / "plain"
    file.write_text("no program")
    assert execute_on_host(str(file), [str(file)]) == Outcome(error="EACCES")


def started(name="tiny-static"):
    return execute_in_kemu(str(FILES / name), [str(FILES / name)])


def test_differences_are_named_by_what_they_are_in():
    kemu = started()
    one = kemu.started
    stack = bytearray(one.stack)
    stack[0] ^= 3
    stat = {**one.stat, "start_brk": 1}
    host = Outcome(
        started=attrs.evolve(one, rip=5, maps=one.maps[1:], stack=bytes(stack), stat=stat)
    )
    found = list(compare(host, kemu, root=True))
    assert [difference.where for difference in found] == [
        "rip",
        "maps",
        f"stack {one.rsp:#x}",
        "stat start_brk",
    ]
    assert str(found[0]) == f"rip: host 0x5, kemu {one.rip:#x}"


def test_words_of_this_computer_and_the_random_bytes_are_not_compared():
    kemu = started()
    one = kemu.started
    stack = bytearray(one.stack)
    random = dict(one.auxv)[exec_compare.AT_RANDOM] - one.rsp
    stack[random : random + 16] = bytes(range(16))
    old = b"".join(
        kind.to_bytes(8, "little") + value.to_bytes(8, "little") for kind, value in one.auxv
    )
    auxv = tuple((kind, 1 if kind == 16 else value) for kind, value in one.auxv)
    new = b"".join(kind.to_bytes(8, "little") + value.to_bytes(8, "little") for kind, value in auxv)
    stack = bytes(stack).replace(old, new)
    assert not list(
        compare(Outcome(started=attrs.evolve(one, auxv=auxv, stack=stack)), kemu, root=True)
    )


def test_user_ids_are_compared_only_for_root():
    kemu = started()
    one = kemu.started
    old, new = ((11).to_bytes(8, "little") + uid.to_bytes(8, "little") for uid in (0, 1000))
    auxv = tuple((kind, 1000 if kind == 11 else value) for kind, value in one.auxv)
    host = Outcome(started=attrs.evolve(one, auxv=auxv, stack=one.stack.replace(old, new)))
    assert not list(compare(host, kemu, root=False))
    assert next(compare(host, kemu, root=True)).where == "auxv 11"


def test_one_that_starts_and_one_that_is_refused_differ():
    (found,) = compare(Outcome(error="ENOEXEC"), started(), root=True)
    assert str(found) == "result: host ENOEXEC, kemu started"


def test_interpreters_are_found(tmp_path):
    script = tmp_path / "script"
    script.write_text(f"#! {FILES}/tiny-static  -x\n")
    assert list(needed_files(str(script))) == [str(script), str(FILES / "tiny-static")]
    assert not needed_files(str(tmp_path / "nothing"))


@pytest.mark.parametrize("rest", [b"\0 -x\n", b"\0", b" \0\n", b"\t\0\n"])
def test_the_path_of_an_interpreter_ends_at_a_null_byte(tmp_path, rest):
    script = tmp_path / "script"
    script.write_bytes(b"#!" + str(FILES / "tiny-static").encode() + rest)
    assert list(needed_files(str(script))) == [str(script), str(FILES / "tiny-static")]


def test_an_interpreter_that_no_host_can_have_is_left_out(tmp_path):
    program = tmp_path / "program"
    data = (FILES / "tiny-dyn").read_bytes()
    program.write_bytes(data.replace(b"tiny-interp", b"\0iny-interp"))
    assert list(needed_files(str(program))) == [str(program)]
    script = tmp_path / "script"
    script.write_bytes(b"#!\0\n")
    assert list(needed_files(str(script))) == [str(script)]


def test_a_missing_file_is_named():
    err = io.StringIO()
    assert main(["/nowhere/program"], io.StringIO(), err) == 2
    assert err.getvalue() == "/nowhere/program: no such file; name a program of this host\n"


@pytest.mark.skipif(os.name != "posix", reason="signals of a POSIX host")
def test_a_word_is_asked_for():
    err = io.StringIO()
    assert main([], io.StringIO(), err) == 2
    assert err.getvalue().startswith("conform exec FILE")

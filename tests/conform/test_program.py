"""Recordings come from outside: what is not one is refused in one line that names the place and
what to do."""

import gzip
import json

import pytest

from kemu.conform.fields import FIELDS, OPERATIONS, field_of
from kemu.conform.program import MAX_OPS, Op, expand, load_programs, parse_program, recordings
from kemu.errors import UsageError
from tests.conform.recorded import random_programs, scenarios

MMAP = {"op": "mmap", "page": 0, "len": 1, "prot": "rw-", "flags": ["private", "anon"]}
STEP = {"res": {"ret": 0}, "live": ["A"], "obs": {}}
VMA = {"s": 0, "e": 1, "perm": "rw-p", "off": 0, "file": "anon", "st": {"Rss": 4}, "fl": "rd wr"}
SEEN = {
    "vmas": [VMA],
    "pages": {"0": {"pm": "PX", "id": 1, "mc": 1, "kf": "UMabE"}},
    "mm": {"VmSize": 4},
}


def program(*ops, **more):
    return {"name": "test", "ops": list(ops), **more}


def test_every_recording_is_read():
    assert len(scenarios()) == 215
    assert len(random_programs()) == 1241
    assert all(len(p.ops) == len(p.steps) for p in (*scenarios().values(), *random_programs()))


def test_a_program_without_steps_is_one_that_was_not_run_yet():
    parsed = parse_program(program(MMAP), "here")
    assert parsed.steps == ()
    assert parsed.ops[0].p == "A"
    assert str(parsed.ops[0]) == "A.mmap page=0 len=1 prot=rw- flags=private|anon"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "a recorded program is a JSON object"),
        ({"ops": []}, "field 'name' must be a str"),
        ({"name": "x"}, "field 'ops' must be a list"),
        (program(steps={}), "field 'steps' must be a list"),
        (program(colour=1), "unknown field 'colour'"),
        (program(window="heap"), "field 'window' can only be 'brk'"),
        (program(tags=[1]), "field 'tags' must be a list of words"),
        (program(*[MMAP] * (MAX_OPS + 1)), "at most 10000 can be run"),
        (program(1), "operation 0 must be an object with a field 'op'"),
        (program(MMAP, {"op": "mmpa"}), "operation 1: unknown operation 'mmpa'"),
        (program({**MMAP, "page": 1.5}), "operation 0 (mmap): field 'page' must be a page number"),
        (program({**MMAP, "page": True}), "operation 0 (mmap): field 'page' must be"),
        (program({**MMAP, "page": 2**80}), "field 'page' must be"),
        (program({**MMAP, "page": "0xzz"}), "field 'page' must be"),
        (program({**MMAP, "prot": "rq"}), "field 'prot' must be letters of 'rwx-du?', not 'rq'"),
        (program({**MMAP, "flags": ["privat"]}), "field 'flags' must be a list of"),
        (program({**MMAP, "flags": "private"}), "field 'flags' must be a list of"),
        (program({**MMAP, "flgas": []}), "field 'flgas' is unknown; mmap has addr, bytes,"),
        (program({"op": "mmap", "page": 0}), "field 'len or bytes' is missing"),
        (program({"op": "munmap", "page": 0, "bytes": -(2**70)}), "field 'bytes' must be"),
        (program({"op": "read", "page": 0, "p": "Z"}), "field 'p' must be one of A, B,"),
        (
            program({"op": "read", "page": 0, "p": "B"}),
            "operation 0 (read): no process 'B' yet",
        ),
        (program({"op": "vmread", "t": "B", "page": 0}), "no process 'B' yet"),
        (program(*[{"op": "fork", "child": "B"}] * 2), "operation 1 (fork): the name 'B' is taken"),
        (program({"op": "fork", "child": "A"}), "field 'child' must be one of B,"),
        (
            program({"op": "file", "id": "f", "pages": 2**40}),
            "field 'pages' must be a number of pages",
        ),
        (
            program({"op": "madvise", "page": 0, "len": 1, "advice": "NOW"}),
            "field 'advice' must be one of",
        ),
        (program(MMAP, steps=[STEP, STEP]), "1 operations but 2 steps"),
        (program(MMAP, steps=[{"res": {}}]), "step 0: a step has exactly res, live and obs"),
        (program(MMAP, steps=[{"died": "timeout"}]), "step 0: the recorded process died here"),
        (program(MMAP, steps=[{**STEP, "res": 1}]), "step 0: res must be an object"),
        (
            program(MMAP, steps=[{**STEP, "live": ["Q"]}]),
            "step 0: live must be a list of the letters",
        ),
        (program(MMAP, steps=[{**STEP, "obs": {"B": SEEN}}]), "obs shows 'B', which does not live"),
        (
            program(MMAP, steps=[{**STEP, "obs": {"A": {**SEEN, "vmas": 1}}}]),
            "obs of A: vmas must be a list",
        ),
        (
            program(MMAP, steps=[{**STEP, "obs": {"A": {**SEEN, "mm": {"VmSize": "4"}}}}]),
            "mm: must be an object of numbers",
        ),
        (
            program(MMAP, steps=[{**STEP, "obs": {"A": {**SEEN, "vmas": [{"s": 0}]}}}]),
            "vma 0: 'e' is missing",
        ),
        (
            program(MMAP, steps=[{**STEP, "obs": {"A": {**SEEN, "pages": {"x": {"pm": "P"}}}}}]),
            "'x' is not a page number",
        ),
        (
            program(MMAP, steps=[{**STEP, "obs": {"A": {**SEEN, "pages": {"1": {"pm": 1}}}}}]),
            "page 1: 'pm' must be str",
        ),
        (
            program(
                MMAP, steps=[{**STEP, "obs": {"A": {**SEEN, "pages": {"1": {"pm": "P", "q": 1}}}}}]
            ),
            "unknown field 'q'",
        ),
    ],
)
def test_a_malformed_program_is_refused_with_its_place(data, says):
    with pytest.raises(UsageError) as caught:
        parse_program(data, "here.json")
    assert caught.value.what.startswith("here.json: ")
    assert says in caught.value.what
    assert caught.value.hint


def test_a_field_of_an_operation_has_a_meaning_for_it():
    """Each field that an operation may have is described; nothing is described that no operation
    has."""
    used = {(kind, name) for kind, shape in OPERATIONS.items() for name in shape.fields - {"op"}}
    assert all(field_of(kind, name).want for kind, name in used)
    names = {name for _, name in used}
    assert {key for key in FIELDS if isinstance(key, str)} <= names
    assert {key for key in FIELDS if isinstance(key, tuple)} <= used


@pytest.mark.parametrize(
    ("fields", "address"),
    [
        ({"page": 3}, 0x200000003000),
        ({"page": 3, "off": 5}, 0x200000003005),
        ({"page": -1}, 0x1FFFFFFFF000),
        ({"page": None}, 0),
        ({"page": "0x7000"}, 0x7000),
        ({"addr": "0xffff800000000000", "page": 1}, 0xFFFF800000000000),
        ({"page": -(0x200000000000 >> 12) - 1}, 0xFFFFFFFFFFFFF000),
    ],
)
def test_a_place_is_a_page_of_the_window_or_an_address(fields, address):
    assert Op("read", "A", fields).address(0x200000000000) == address


def test_a_length_is_in_pages_unless_bytes_are_given():
    assert Op("munmap", "A", {"len": 2}).length() == 0x2000
    assert Op("munmap", "A", {"len": 2, "bytes": 1}).length() == 1
    assert Op("munmap", "A", {"len": -1}).length() == 0xFFFFFFFFFFFFF000
    assert Op("munmap", "A", {"bytes": "0xffffffffffffffff"}).length() == 2**64 - 1


def test_unchanged_processes_are_carried_over_and_dead_ones_are_not():
    """As many full pictures as steps; each process that lives is in each of them."""
    for recorded in scenarios().values():
        pictures = list(expand(recorded.steps))
        if recorded.observed:
            assert [sorted(picture) for picture in pictures] == [
                step["live"] for step in recorded.steps
            ]
    picture = list(expand(({**STEP, "obs": {"A": SEEN}}, STEP, {**STEP, "live": []})))
    assert picture == [{"A": SEEN}, {"A": SEEN}, {}]


# ---------------------------------------------------------------- files


def test_one_program_a_file_or_one_a_line_packed_or_not(tmp_path):
    text = json.dumps(program(MMAP))
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "b.jsonl").write_text(f"{text}\n\n{text}\n")
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(f"{text}\n".encode()))
    (tmp_path / "notes.txt").write_text("no recording")
    files = recordings(tmp_path)
    assert [file.name for file in files] == ["a.json", "b.jsonl", "c.jsonl.gz"]
    assert [len(load_programs(file)) for file in files] == [1, 2, 1]
    assert load_programs(files[1])[1].source == f"{tmp_path / 'b.jsonl'}:3"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.json", b"{", "line 1, column 2: not JSON"),
        ("x.json", b"", "not JSON"),
        ("x.json", b"\xff\xfe", "byte 0 is not UTF-8"),
        ("x.json", b"[" * 100_000, "not usable JSON"),
        ("x.json", b"9" * 10_000, "not usable JSON"),
        ("x.json.gz", b"no gzip", "the gzip data is damaged or incomplete"),
        (
            "x.json.gz",
            gzip.compress(b"{}" * 1000, mtime=0)[:-9],
            "the gzip data is damaged or incomplete",
        ),
        ("x.jsonl", b'{"name": "a", "ops": []}\n{"name": 1}', ":2: field 'name' must be a str"),
    ],
)
def test_a_file_that_is_no_recording_is_refused(tmp_path, name, content, says):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        load_programs(path)
    assert says in caught.value.what
    assert caught.value.hint


def test_a_missing_file_and_an_empty_folder_are_refused(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        load_programs(tmp_path / "none.json")
    with pytest.raises(UsageError, match="no recordings in this folder"):
        recordings(tmp_path)

"""JSON is made by one function from the annotations, and docs/json.md says what comes out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kemu import readings
from kemu.commands.table import TABLE
from kemu.readings import AddressSpace, MmHolder, MmReading, Reading, StatReading, VmaReading
from kemu.views.json import is_hex, to_data

DOC = Path(__file__).parents[2] / "docs" / "json.md"
KINDS = {
    name: kind
    for name, kind in vars(readings).items()
    if isinstance(kind, type) and issubclass(kind, Reading)
}


def documented():
    """Field and type of every reading, as docs/json.md lists them."""
    found = {}
    for title, body in re.findall(
        r"^### (\w+)\n(.*?)(?=^### |^## |\Z)", DOC.read_text(), re.MULTILINE | re.DOTALL
    ):
        found[title] = dict(re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", body, re.MULTILINE))
    return found


def json_type(annotation):
    """What a program gets for an annotation, in the words of the document."""
    if "None" in annotation:
        return json_type(annotation.replace("| None", "").strip()) + " or null"
    for pattern, text in TYPES:
        match = re.fullmatch(pattern, annotation)
        if match:
            return text.format(*match.groups())
    raise AssertionError(f"docs/json.md has no words for {annotation}")


TYPES = [
    ("int", "number"),
    ("str", "text"),
    ("bool", "true or false"),
    ("bytes", "hex digits"),
    ("Address|Word", "0x text"),
    ("Pairs", "object of numbers"),
    ("Addresses", "object of 0x texts"),
    (r"tuple\[int, \.\.\.\]", "list of numbers"),
    (r"tuple\[str, \.\.\.\]", "list of texts"),
    (r"tuple\[tuple\[(.*)\], \.\.\.\]", "list of [{0}]"),
    (r"tuple\[(\w+), \.\.\.\]", "list of {0}"),
    (r"tuple\[CallReading \| EventReading, \.\.\.\]", "list of CallReading or EventReading"),
    (r"int \| str \| bool", "number, text, or true or false"),
    (r"(\w+)", "{0}"),
]


def test_the_document_lists_every_field_of_every_reading():
    expected = {
        name: {field: json_type(kind) for field, kind in cls._fields.items()}
        for name, cls in KINDS.items()
        if cls is not Reading
    }
    assert documented() == expected


def test_the_commands_named_by_the_document_exist():
    named = {
        word
        for line in re.findall(r"^From: (.*)$", DOC.read_text(), re.MULTILINE)
        for word in line.split(", ")
    }
    assert len(named) > 25
    assert named <= TABLE.keys()


def test_addresses_are_text_and_counts_are_numbers():
    vma = VmaReading(0x7FFFFFFDE000, 0x7FFFFFFFF000, "rw-p", name="[stack]")
    assert to_data(AddressSpace(3, "app", 2, (vma,))) == {
        "pid": 3,
        "name": "app",
        "mm": 2,
        "vmas": [
            {
                "start": "0x7ffffffde000",
                "end": "0x7ffffffff000",
                "perm": "rw-p",
                "offset": 0,
                "device": "00:00",
                "inode": 0,
                "name": "[stack]",
            }
        ],
        "gate": None,
    }


def test_pairs_become_an_object():
    assert to_data(StatReading(3, "app", "S", (("pid", 3), ("ppid", 1))))["fields"] == {
        "pid": 3,
        "ppid": 1,
    }
    mm = dict.fromkeys(MmReading._fields, 0) | {
        "users": (MmHolder("task", 3, "app"),),
        "counts": (),
        "cpumask": (1,),
    }
    data = to_data(
        MmReading(
            **(mm | {"rss": (("MM_ANONPAGES", 2),), "layout": (("brk", 0x1000000),), "flags": ()})
        )
    )
    assert data["rss"] == {"MM_ANONPAGES": 2}
    assert data["layout"] == {"brk": "0x1000000"}
    assert data["users"] == [{"what": "task", "pid": 3, "name": "app", "count": 1}]
    assert data["cpumask"] == [1]


def test_bytes_become_hex_digits_and_truth_stays_truth():
    assert to_data(b"\x00x") == "0078"
    assert to_data(True, "Word") is True


@pytest.mark.parametrize(
    ("annotation", "hexadecimal"),
    [
        ("Address", True),
        ("Address | None", True),
        ("tuple[tuple[Address, bytes | None], ...]", True),
        ("int", False),
    ],
)
def test_the_annotation_decides_the_base(annotation, hexadecimal):
    assert is_hex(annotation) is hexadecimal


def test_every_value_survives_json():
    vma = VmaReading(0xFFFFFFFFFF600000, 0xFFFFFFFFFF601000, "--xp")
    assert json.loads(json.dumps(to_data(vma)))["start"] == "0xffffffffff600000"

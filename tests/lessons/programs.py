"""The programs of lesson 13: small ELF files with segments that are easy to count, and broken ones.

    python -m tests.lessons.programs        writes them into lessons/vm/files

Each begins with the ELF header and its program headers; a segment's bytes are a pattern. kemu maps
programs and runs no instruction of them, so there is no code.
"""

from __future__ import annotations

import struct
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "lessons" / "vm" / "files"
R, W, X = 4, 2, 1
PAGE = 0x1000


def program(segments, entry, *, magic=b"\x7fELF", machine=62):
    """An ELF file with these PT_LOADs: (rights, offset, address, bytes in the file, bytes in
    memory)."""
    size = max(offset + filesz for _, offset, _, filesz, _ in segments)
    data = bytearray(0x11 * (1 + i // PAGE) & 0xFF for i in range(size))
    ident = magic + bytes([2, 1, 1, 0]) + bytes(8)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", ident, 2, machine, 1, entry, 64, 0, 0, 64, 56, len(segments), 0, 0, 0
    )
    rows = b"".join(
        struct.pack("<IIQQQQQQ", 1, r, off, va, va, fs, ms, PAGE) for r, off, va, fs, ms in segments
    )
    data[: len(header) + len(rows)] = header + rows
    return bytes(data)


HEAD = (R, 0, 0x400000, 0x200, 0x200)
TEXT = (R | X, 0x1000, 0x401000, 0x800, 0x800)
SMALL = [HEAD, TEXT]
KERNEL = 0xFFFFFFFF81000000

PROGRAMS = {
    "ants": program([HEAD, TEXT, (R | W, 0x2000, 0x403000, 0x1200, 0x4100)], 0x401040),
    "bees": program([(R | X, 0, 0x400000, 0x1600, 0x1600), (R | W, 0x2000, 0x402000, 0x2000, 0x6200)], 0x4010C0),
    "cats": program([HEAD, (R | X, 0x1000, 0x401000, 0x1400, 0x1400), (R, 0x3000, 0x404000, 0x300, 0x300),
                     (R | W, 0x4000, 0x406000, 0x1A00, 0x3100)], 0x402080),
    "dogs": program([HEAD, (R | X, 0x2000, 0x401000, 0x1900, 0x1900), (R | W, 0x4000, 0x403000, 0x1800, 0x8100)], 0x402100),
    "broken-0": program(SMALL, 0x401000, magic=b"\x7fELG"),
    "broken-1": program(SMALL, 0x401000, machine=3),
    "broken-2": program(SMALL, KERNEL),
    "broken-3": program([HEAD, (R | W | X, 0x1000, 0x401000, 0x800, 1 << 46)], 0x401000),
}  # fmt: skip


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in PROGRAMS.items():
        (FOLDER / name).write_bytes(content)

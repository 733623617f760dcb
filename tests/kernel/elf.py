"""The smallest program that Linux executes: one header, one segment, eight bytes of code."""

import struct

CODE = 0x40_0000
PT_LOAD = 1


def tiny_elf(*, flags=5, bss=0):
    """A static x86-64 executable at 0x400000 whose one segment is the whole file, ``flags`` r=4 w=2
    x=1."""
    code = bytes.fromhex("b83c0000000f0500")
    size = 64 + 56 + len(code)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, CODE + 120, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    segment = struct.pack("<IIQQQQQQ", PT_LOAD, flags, 0, CODE, CODE, size, size + bss, 0x1000)
    return header + segment + code

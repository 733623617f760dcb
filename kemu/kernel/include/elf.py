"""The two structures of an ELF file that exec looks at: header and program headers
(include/uapi/linux/elf.h).

Of the first 16 bytes Linux reads only the magic number: whatever class and byte order say, the
structures are 64-bit and little-endian.  pyelftools has their layout and the names of the numbers;
a number without a name stays a number.  pyelftools is given what Linux takes for granted
(``IDENT``) and imported when the first program is executed; any error that it raises means "not an
ELF file".
"""

from __future__ import annotations

from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterator

ELFMAG = b"\x7fELF"
IDENT = ELFMAG + bytes((2, 1, 1)) + bytes(9)
"""64-bit, little-endian, version 1."""

SIZEOF_EHDR, SIZEOF_PHDR = 64, 56
PF_X, PF_W, PF_R = 1, 2, 4


@attrs.frozen
class elfhdr:
    """``struct elfhdr``.  ``e_type`` and ``e_machine`` are names ("ET_DYN", "EM_X86_64") or,
    unknown, numbers."""

    e_type: str | int
    e_machine: str | int
    e_entry: int
    e_phoff: int
    e_phentsize: int
    e_phnum: int


@attrs.frozen
class elf_phdr:
    """``struct elf_phdr``.  ``p_type`` is a name ("PT_LOAD") or, unknown, a number; the rest u64
    or, ``p_flags``, u32."""

    p_type: str | int
    p_flags: int
    p_offset: int
    p_vaddr: int
    p_filesz: int
    p_memsz: int
    p_align: int


def parse_elfhdr(data: bytes) -> elfhdr | None:
    """The header at the start of ``data``; None if there is no header or too little data."""
    if not data.startswith(ELFMAG):
        return None
    header: elfhdr | None = next(_parse("Elf_Ehdr", elfhdr, IDENT + data[len(IDENT) :], 1), None)
    return header


def parse_elf_phdrs(data: bytes, number: int) -> tuple[elf_phdr, ...]:
    """``number`` consecutive program headers; fewer if ``data`` is too short."""
    return tuple(_parse("Elf_Phdr", elf_phdr, data, number))


@cache
def _structs() -> Any:
    """The layout of 64-bit little-endian files, as pyelftools has it."""
    from elftools.elf.structs import ELFStructs

    structs = ELFStructs(little_endian=True, elfclass=64)
    structs.create_basic_structs()
    structs.create_advanced_structs()
    return structs


def _parse(name: str, cls: type[Any], data: bytes, number: int) -> Iterator[Any]:
    """``number`` pyelftools structures ``name``, as instances of ``cls``."""
    from elftools.common.exceptions import ELFError
    from elftools.common.utils import struct_parse
    from elftools.construct import ConstructError

    layout, stream = getattr(_structs(), name), BytesIO(data)
    try:
        for _ in range(number):
            fields = struct_parse(layout, stream)
            yield cls(**{field.name: fields[field.name] for field in attrs.fields(cls)})
    except (ELFError, ConstructError):
        return

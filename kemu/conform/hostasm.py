"""The program that runs on the host's kernel: a few dozen instructions, assembled here, so that no
compiler is needed.

    controller (hostworker.py)                      worker (this program)
    command: kind, number, six arguments  --->      touch own memory; count faults;
                                                    ONE system call or ONE access of one byte;
    reply: result, signal, both counts    <---      count faults again

Its address space is almost empty and is laid out like that of the stand-in in kemu (cast.py), so
that both sides have the same memory besides the window:

    0x200000    text     this program, one page
    0x400000    MEMORY   command, reply, data, signal stack
    0xfff000    brk      one page of the file, only so that the program break is 0x1000000
    ...         stack    as execve made it

A signal that an access raises is written into the reply, with the page-fault error code (which a
debugger would not see), and the access is given up.  fork needs nothing else: the child answers on
a descriptor of its own.
"""

from __future__ import annotations

import struct
from functools import cache

import attrs

from kemu.abi.uapi import PAGE_SIZE as PAGE

TEXT = 0x200000
MEMORY = 0x400000
PAGES = 32
BREAK = 0x1000000

RET, SIGNO, CODE, ADDR, ERROR = 0, 16, 24, 32, 40
"""Offsets in MEMORY of the reply: result of the call; number, code, address and error code of a
signal."""

BEFORE, AFTER = 64, 256
"""Two ``struct rusage``."""

COMMAND = 512
KIND, NUMBER, ARGUMENTS, OUT, CHILD, QUIET = (COMMAND + offset for offset in (0, 8, 16, 64, 72, 80))
"""Offsets of the command: kind, number of the call, its arguments, how many bytes of data go back;
for fork, the descriptor on which the child answers and whether the parent does not answer."""

DATA = 1024
STRUCTURES = 512
"""Bytes at DATA for structures that a call finds by address; the bytes that it reads or writes
follow."""
SIGNAL_STACK, SIGNAL_STACK_SIZE = MEMORY + 24 * PAGE, 7 * PAGE
STACK = MEMORY + PAGES * PAGE - 64
CHILD_STACK = STACK - 512
"""Where a task made by clone(CLONE_VM) begins."""

DATA_SIZE = SIGNAL_STACK - MEMORY - DATA

SYSCALL, READ, WRITE, EXEC = range(4)
"""Kinds of commands."""

SOCKET = 100
"""The descriptor on which the first process answers; those of the other processes follow."""

RAX, RCX, RDX, RBX, RSP, _, RSI, RDI, R8, R9, R10, _, R12, R13 = range(14)
_CALL_REGISTERS = (RDI, RSI, RDX, R10, R8, R9)

_MMAP, _SIGRETURN, _SENDTO, _RECVFROM, _GETRUSAGE, _EXIT_GROUP = 9, 15, 44, 45, 98, 231
_RUSAGE_THREAD = 1
_MSG_NOSIGNAL = 0x4000


class Assembler:
    """Machine code under construction; jumps go to labels, which may be defined later."""

    def __init__(self, origin: int) -> None:
        self.origin = origin
        self.code = bytearray()
        self.labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str]] = []

    def label(self, name: str) -> None:
        """Define ``name`` as the address of the next instruction."""
        self.labels[name] = self.origin + len(self.code)

    def raw(self, *code: int) -> None:
        """Append these bytes."""
        self.code += bytes(code)

    def set(self, register: int, value: int) -> None:
        """Mov $value, %register (a signed 32-bit number)."""
        self.raw(0x48 | (register >> 3), 0xC7, 0xC0 | (register & 7))
        self.code += struct.pack("<i", value)

    def load(self, register: int, offset: int) -> None:
        """Mov MEMORY + offset, %register."""
        self._memory(0x8B, register, MEMORY + offset)

    def store(self, offset: int, register: int) -> None:
        """Mov %register, MEMORY + offset."""
        self._memory(0x89, register, MEMORY + offset)

    def _memory(self, opcode: int, register: int, address: int) -> None:
        self.raw(0x48 | (register >> 3) << 2, opcode, (register & 7) << 3 | 4, 0x25)
        self.code += struct.pack("<I", address)

    def test(self, register: int) -> None:
        """Test %register, %register."""
        self.raw(0x48 | (register >> 3) * 5, 0x85, 0xC0 | (register & 7) * 9)

    def jump(self, name: str, condition: int | None = None) -> None:
        """jmp, or jcc if a ``condition`` (0x4 zero, 0x5 not zero, 0xe not positive) is given."""
        self.raw(*((0xE9,) if condition is None else (0x0F, 0x80 | condition)))
        self._hole(name)

    def call(self, name: str) -> None:
        """Call name."""
        self.raw(0xE8)
        self._hole(name)

    def _hole(self, name: str) -> None:
        self._jumps.append((len(self.code), name))
        self.code += bytes(4)

    def syscall(self, number: int, *arguments: int | None) -> None:
        """System call ``number`` with these constants; None keeps what is in the register."""
        for register, value in zip(_CALL_REGISTERS, arguments, strict=False):
            if value is not None:
                self.set(register, value)
        self.set(RAX, number)
        self.raw(0x0F, 0x05)

    def finish(self) -> bytes:
        """The code, with every jump filled in."""
        for place, name in self._jumps:
            struct.pack_into("<i", self.code, place, self.labels[name] - (self.origin + place + 4))
        return bytes(self.code)


ZERO, NOT_ZERO, NOT_POSITIVE = 0x4, 0x5, 0xE


@attrs.frozen
class Worker:
    """The ELF file, and the addresses that its signal actions need."""

    image: bytes
    handler: int
    restorer: int


@cache
def worker() -> Worker:
    """The program, assembled once."""
    header = 64 + 3 * 56
    asm = Assembler(TEXT + header)
    _loop(asm)
    _one_call(asm)
    _one_access(asm)
    _reply(asm)
    _touch(asm)
    _handler(asm)
    code = asm.finish()
    return Worker(_elf(asm.labels["start"], code), asm.labels["handler"], asm.labels["restorer"])


def _loop(asm: Assembler) -> None:
    """Map MEMORY, then execute commands in a loop until there are no more.  %rbx is the
    descriptor."""
    asm.label("start")
    asm.set(RSP, STACK)
    asm.syscall(_MMAP, MEMORY, PAGES * PAGE, 3, 0x32, -1, 0)
    asm.set(RBX, SOCKET)
    asm.label("loop")
    asm.raw(0x48, 0x89, 0xDF)  # mov %rbx, %rdi
    asm.syscall(_RECVFROM, None, MEMORY + COMMAND, SIGNAL_STACK - MEMORY - COMMAND, 0, 0, 0)
    asm.test(RAX)
    asm.jump("quit", NOT_POSITIVE)
    asm.call("touch")
    asm.set(RAX, 0)
    asm.store(SIGNO, RAX)
    asm.syscall(_GETRUSAGE, _RUSAGE_THREAD, MEMORY + BEFORE)
    asm.load(RAX, KIND)
    asm.test(RAX)
    asm.jump("access", NOT_ZERO)


def _one_call(asm: Assembler) -> None:
    """Make the command's system call; after a fork both sides touch their memory, and the child
    switches to its own descriptor."""
    asm.load(R12, CHILD)
    asm.load(R13, QUIET)
    for number, register in enumerate(_CALL_REGISTERS):
        asm.load(register, ARGUMENTS + 8 * number)
    asm.load(RAX, NUMBER)
    asm.raw(0x0F, 0x05)
    asm.test(R12)
    asm.jump("done", ZERO)
    asm.test(RAX)
    asm.jump("parent", NOT_ZERO)
    asm.raw(0x4C, 0x89, 0xE3)  # mov %r12, %rbx
    asm.call("touch")
    asm.jump("done")
    asm.label("parent")
    asm.call("touch")
    asm.test(R13)
    asm.jump("loop", NOT_ZERO)
    asm.jump("done")


def _one_access(asm: Assembler) -> None:
    """Read, write or execute one byte (the code there must be a RET)."""
    asm.label("access")
    asm.load(RDI, ARGUMENTS)
    asm.load(RSI, ARGUMENTS + 8)
    asm.raw(0x48, 0xFF, 0xC8)  # dec %rax
    asm.jump("read", ZERO)
    asm.raw(0x48, 0xFF, 0xC8)
    asm.jump("write", ZERO)
    asm.set(RAX, 0)
    asm.raw(0xFF, 0xD7)  # call *%rdi
    asm.jump("done")
    asm.label("read")
    asm.raw(0x0F, 0xB6, 0x07)  # movzbl (%rdi), %eax
    asm.jump("done")
    asm.label("write")
    asm.raw(0x40, 0x88, 0x37)  # mov %sil, (%rdi)
    asm.set(RAX, 0)
    asm.jump("done")
    asm.label("failed")
    asm.set(RSP, STACK)
    asm.set(RAX, -1)


def _reply(asm: Assembler) -> None:
    asm.label("done")
    asm.store(RET, RAX)
    asm.syscall(_GETRUSAGE, _RUSAGE_THREAD, MEMORY + AFTER)
    asm.load(RDX, OUT)
    asm.raw(0x48, 0x89, 0xDF)  # mov %rbx, %rdi
    asm.syscall(_SENDTO, None, MEMORY, None, _MSG_NOSIGNAL, 0, 0)
    asm.jump("loop")
    asm.label("quit")
    asm.syscall(_EXIT_GROUP, 0)


def _touch(asm: Assembler) -> None:
    """Write to every page of MEMORY without changing it; keeps %rax."""
    asm.label("touch")
    asm.set(RDI, MEMORY + PAGE - 8)
    asm.set(RCX, PAGES)
    asm.label("next page")
    asm.raw(0x80, 0x0F, 0x00)  # orb $0, (%rdi)
    asm.raw(0x48, 0x81, 0xC7, 0x00, 0x10, 0x00, 0x00)  # add $4096, %rdi
    asm.raw(0xFF, 0xC9)  # dec %ecx
    asm.jump("next page", NOT_ZERO)
    asm.raw(0xC3)


def _handler(asm: Assembler) -> None:
    """Void handler(int %rdi, siginfo_t *%rsi, ucontext_t *%rdx): record the signal, continue at
    "failed"."""
    asm.label("handler")
    asm.store(SIGNO, RDI)
    asm.raw(0x48, 0x63, 0x46, 0x08)  # movslq si_code(%rsi), %rax
    asm.store(CODE, RAX)
    asm.raw(0x48, 0x8B, 0x46, 0x10)  # mov si_addr(%rsi), %rax
    asm.store(ADDR, RAX)
    asm.raw(0x48, 0x8B, 0x82, 0xC0, 0x00, 0x00, 0x00)  # mov uc_mcontext.err(%rdx), %rax
    asm.store(ERROR, RAX)
    asm.set(RAX, asm.labels["failed"])
    asm.raw(0x48, 0x89, 0x82, 0xA8, 0x00, 0x00, 0x00)  # mov %rax, uc_mcontext.rip(%rdx)
    asm.raw(0xC3)
    asm.label("restorer")
    asm.syscall(_SIGRETURN)


def _elf(entry: int, code: bytes) -> bytes:
    """The file: one page with header, program headers and code."""
    load = struct.Struct("<IIQQQQQQ")
    headers = (
        load.pack(1, 5, 0, TEXT, TEXT, PAGE, PAGE, PAGE),
        load.pack(1, 4, 0, BREAK - PAGE, BREAK - PAGE, PAGE, PAGE, PAGE),
        load.pack(0x6474E551, 6, 0, 0, 0, 0, 0, 16),
    )
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    start = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, entry, 64, 0, 0, 64, 56, len(headers), 0, 0, 0)
    return (ident + start + b"".join(headers) + code).ljust(PAGE, b"\0")

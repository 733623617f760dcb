"""What the fields of a recorded operation mean, whoever performs it: kemu (act.py) or the host's
kernel (hostcast.py)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from kemu.abi.uapi import PAGE_SIZE
from kemu.conform import words
from kemu.conform.program import Op


class Operands(ABC):
    """One operation's fields as numbers.  Who performs it says where the window begins and which
    descriptors its files have."""

    __slots__ = ()
    op: Op

    @abstractmethod
    def where(self) -> tuple[int, Mapping[str, int]]:
        """The address at which the window begins, and descriptors by file."""

    @property
    def place(self) -> int:
        """The address that the operation is about."""
        return self.op.address(self.where()[0])

    @property
    def range(self) -> tuple[int, int]:
        """That address and the length."""
        return self.place, self.op.length()

    @property
    def prot(self) -> int:
        """Protection bits."""
        return sum(words.PROT[letter] for letter in set(self.op.fields["prot"]))

    def bits(self, table: dict[str, int]) -> int:
        """The bits of ``table`` that ``flags`` names."""
        bits = 0
        for name in self.op.get("flags", []):
            bits |= table[name]
        return bits

    @property
    def fd(self) -> int:
        """The descriptor of the operation's file, -1 for none (also for a file that was never
        made)."""
        if "fd" in self.op.fields:
            return int(self.op.fields["fd"])
        return self.where()[1].get(self.op.get("file", ""), -1)

    @property
    def offset(self) -> int:
        """The offset in the file, in bytes."""
        return int(self.op.get("foff_bytes", self.op.get("foff", 0) * PAGE_SIZE))

    @property
    def size(self) -> int:
        """How many bytes are transferred."""
        return int(self.op.get("n", 1))

"""RAM: 8-byte words, in frames of 4096 bytes that use no memory until they are written.

    frames   pfn -> Frame, absent while the frame is all zero
    Frame    index 0..511 -> word, absent while the word is zero

An absent word reads as 0.  So a page that was faulted in but never written stays empty, copying a
sparse page copies the few words in it, and a page table holds only its entries.  Each store is one
event, and so is each page that is copied or cleared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from kemu.errors import KernelBug
from kemu.trace import tape
from kemu.trace.barrier import Table

FRAME_SHIFT = 12
FRAME_SIZE = 1 << FRAME_SHIFT
WORDS = FRAME_SIZE // 8


class Frame(Table[int, int]):
    """The words of one frame that are not zero."""

    __slots__ = ("pfn",)

    def __init__(self, pfn: int, content: dict[int, int] | None = None) -> None:
        if content:
            self.update(content)
        self.name = ""
        self.pfn = pfn


class PhysMem:
    """``nr_frames`` frames of RAM from physical address 0."""

    def __init__(self, nr_frames: int) -> None:
        self.nr_frames = nr_frames
        self.frames: Table[int, Frame] = Table("frames")

    @property
    def size(self) -> int:
        """Bytes of RAM."""
        return self.nr_frames << FRAME_SHIFT

    load: ClassVar[Callable[[Any, int], int]] = tape.load
    """The 8-byte word at a physical address (u64, aligned)."""

    store: ClassVar[Callable[[Any, int, int], None]] = tape.store
    """Store an 8-byte word (u64) at a physical address (aligned)."""

    def _first_store(self, pfn: int) -> Frame:
        if not 0 <= pfn < self.nr_frames:
            raise KernelBug(f"store to frame {pfn:#x}: the machine has {self.nr_frames:#x} frames")
        frame = Frame(pfn)
        self.frames.put(pfn, frame)
        return frame

    def clear_page(self, pfn: int) -> None:
        """Zero frame ``pfn``: one event, or none if it is zero already."""
        if pfn in self.frames:
            self.frames.put(pfn, None)

    def copy_page(self, dst: int, src: int) -> None:
        """Copy frame ``src`` to frame ``dst``: one event."""
        content = self.frames.get(src)
        self.frames.put(dst, Frame(dst, content) if content else None)

    def read(self, pa: int, size: int) -> bytes:
        """``size`` bytes from ``pa``; the range may cross frames."""
        first = pa & ~7
        words = [self.load(at) for at in range(first, pa + size, 8)]
        data = b"".join(w.to_bytes(8, "little") for w in words)
        return data[pa - first : pa - first + size]

    def write(self, pa: int, data: bytes) -> None:
        """Store ``data`` at ``pa``, word by word; a word that is covered only in part keeps its
        other bytes."""
        if not data:
            return
        first = pa & ~7
        last = (pa + len(data) + 7) & ~7
        whole = bytearray(self.read(first, last - first))
        whole[pa - first : pa - first + len(data)] = data
        for at in range(0, last - first, 8):
            self.store(first + at, int.from_bytes(whole[at : at + 8], "little"))

    def set_page(self, pfn: int, data: bytes) -> None:
        """Fill frame ``pfn`` with ``data`` (at most 4096 bytes) and zeros: one event."""
        words = {
            i // 8: word
            for i in range(0, len(data), 8)
            if (word := int.from_bytes(data[i : i + 8], "little"))
        }
        self.frames.put(pfn, Frame(pfn, words) if words else None)

    def get_page(self, pfn: int) -> bytes:
        """The 4096 bytes of frame ``pfn``."""
        return self.read(pfn << FRAME_SHIFT, FRAME_SIZE)

"""References to open files (fs/file_table.c, include/linux/fs.h)."""

from __future__ import annotations

from kemu.kernel.include.mm_types import file
from kemu.machine.atomic import atomic_dec_and_test, atomic_inc


def get_file(file: file) -> None:
    """Take a reference to an open file."""
    atomic_inc(file, "f_count")


def fput(file: file) -> None:
    """Drop a reference to an open file; the last one closes it, and a nameless file that nobody
    holds is evicted."""
    if not atomic_dec_and_test(file, "f_count"):
        return
    node = file.f_inode
    if node.i_fop is not None:
        node.i_fop.release(file)
    if atomic_dec_and_test(node, "i_count") and node.i_nlink == 0 and node.s_op is not None:
        node.s_op.evict_inode(node)

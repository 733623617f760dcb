"""Doubly linked lists, threaded through the structures that they link (include/linux/list.h).

head <-> a <-> b <-> head        an empty list is a head that points to itself
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kemu.trace.barrier import struct


@struct
class list_head:
    """A node of a doubly linked ring, threaded through the structures that it links
    (include/linux/list.h)."""

    next: Any = None
    prev: Any = None


@struct
class list_node(list_head):
    """A ``list_head`` with a reference to the structure that contains it (``container_of`` in
    C)."""

    owner: Any = None


def INIT_LIST_HEAD(head: list_head) -> None:
    """Make ``head`` an empty list."""
    head.next = head
    head.prev = head


def list_add(new: list_head, head: list_head) -> None:
    """Insert ``new`` right after ``head``."""
    following = head.next
    following.prev = new
    new.next = following
    new.prev = head
    head.next = new


def list_add_tail(new: list_head, head: list_head) -> None:
    """Insert ``new`` at the end of the list ``head``."""
    preceding = head.prev
    head.prev = new
    new.next = head
    new.prev = preceding
    preceding.next = new


def list_del(entry: list_head) -> None:
    """Remove ``entry`` from its list."""
    following, preceding = entry.next, entry.prev
    following.prev = preceding
    preceding.next = following
    entry.next = None
    entry.prev = None


def list_empty(head: list_head) -> bool:
    """True if the list has no entry (or its head was never initialised)."""
    return head.next is head or head.next is None


def list_for_each(head: list_head) -> Iterator[Any]:
    """The nodes of the list in order; the one just yielded may be deleted."""
    node = head.next
    while node is not None and node is not head:
        following = node.next
        yield node
        node = following

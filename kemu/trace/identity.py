"""Numbers for objects: what a kernel object is called where its address means nothing.

    digest        the n-th object on the way through the state
    index, why    the n-th object that has an event in the journal
    fingerprint   the n-th object of the state before a race, or of its class made in it
    journal file  as in the index; after those the objects that have no event, as they are met

Everywhere the number is the place in the order of first meeting, so it is the same in every process
that meets the same objects in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Numbers:
    """Objects in the order in which they were met, each with its place in it. They are kept alive,
    so that no address is used twice."""

    __slots__ = ("_by_address", "objects")

    def __init__(self, objects: Iterable[Any] = ()) -> None:
        self.objects: list[Any] = []
        self._by_address: dict[int, int] = {}
        for obj in objects:
            self.of(obj)

    def __len__(self) -> int:
        return len(self.objects)

    def of(self, obj: Any) -> int:
        """The number of the object, a new one at the first meeting."""
        number = self._by_address.get(id(obj))
        if number is None:
            number = self._by_address[id(obj)] = len(self.objects)
            self.objects.append(obj)
        return number

    def known(self, obj: Any) -> int | None:
        """The number of the object, None if it was never met."""
        return self._by_address.get(id(obj))

    def at(self, addresses: Iterable[int]) -> set[int]:
        """The numbers of the objects with these addresses (``id``) that were met."""
        return {self._by_address[address] for address in addresses if address in self._by_address}

    def forget_from(self, number: int) -> None:
        """Let the objects from this number on be strangers again."""
        for obj in self.objects[number:]:
            del self._by_address[id(obj)]
        del self.objects[number:]

"""Numbers for objects: what identifies a kernel object where its address means nothing.

    digest        the n-th object in the traversal of the state
    index, why    the n-th object that has an event in the journal
    fingerprint   the n-th object of the state before a race, or of its class made in it
    journal file  as in the index, followed by the objects without events, as they are met

The number is always the position in the order of first meeting, so it is the same in every process
that meets the same objects in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Numbers:
    """Objects in the order in which they were first met, numbered. They are kept alive, so that no
    address is used twice."""

    __slots__ = ("_by_address", "objects")

    def __init__(self, objects: Iterable[Any] = ()) -> None:
        self.objects: list[Any] = []
        self._by_address: dict[int, int] = {}
        for obj in objects:
            self.of(obj)

    def __len__(self) -> int:
        return len(self.objects)

    def of(self, obj: Any) -> int:
        """The number of the object; a new number if it is met for the first time."""
        number = self._by_address.get(id(obj))
        if number is None:
            number = self._by_address[id(obj)] = len(self.objects)
            self.objects.append(obj)
        return number

    def known(self, obj: Any) -> int | None:
        """The number of the object; None if it was never met."""
        return self._by_address.get(id(obj))

    def at(self, addresses: Iterable[int]) -> set[int]:
        """The numbers of the known objects among those with these addresses (``id``)."""
        return {self._by_address[address] for address in addresses if address in self._by_address}

    def forget_from(self, number: int) -> None:
        """Forget the objects from this number on."""
        for obj in self.objects[number:]:
            del self._by_address[id(obj)]
        del self.objects[number:]

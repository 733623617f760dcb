"""What `choice` and `order` have in common: options with letters, drawn into an order for each
student."""

from __future__ import annotations

from typing import Any

import attrs

from kemu.lessons.format.schema import COMMANDS, key, texts
from kemu.lessons.format.seeds import Draw
from kemu.lessons.kinds.base import Kind, Visit
from kemu.lessons.taking.answers import letters


@attrs.frozen(kw_only=True)
class Lettered(Kind):
    """Not a kind itself.  An answer is a tuple of indices of options, as the file has them."""

    asks = compares = True
    reveal: tuple[str, ...] = key(texts, (), holds=COMMANDS)
    show: tuple[str, ...] = key(texts, (), holds=COMMANDS)
    several: bool = True
    shuffle: bool = True

    def listed(self) -> tuple[Any, ...]:
        """The options: each with a `text`, and a `key` that is the same in every language."""
        raise NotImplementedError

    def drawn(self, seed: str) -> tuple[int, ...]:
        """Drawn for each text, so that it depends neither on their order in the file nor on the
        language."""
        found = self.listed()
        draws = [Draw(seed, f"{self.id}\0{each.key}").below(1 << 64) for each in found]
        order = range(len(found))
        return tuple(sorted(order, key=lambda at: (draws[at], at)) if self.shuffle else order)

    def letter(self, visit: Visit, index: int) -> str:
        """The letter under which this student sees the option."""
        return chr(ord("a") + visit.order.index(index))

    def bare(self, visit: Visit, line: str) -> str:
        """Letters of options, or the number of one."""
        if line.isascii() and line.isdigit() and len(line) < 3:
            if 1 <= int(line) <= len(visit.order):
                return line
            return ""
        typed = [char for char in line.casefold() if char not in " ,"]
        known = {chr(ord("a") + index) for index in range(len(visit.order))}
        distinct = typed and len(set(typed)) == len(typed)
        return line if distinct and set(typed) <= known and len(line) < 60 else ""

    def read(self, visit: Visit, text: str) -> tuple[int, ...]:
        """The options that the letters mean."""
        found = letters(text, len(visit.order), several=self.several)
        return tuple(visit.order[at] for at in found)

    def in_words(self, visit: Visit, value: Any) -> str:
        """The letters."""
        return " ".join(self.letter(visit, index) for index in value) or "none"

    def solve(self, visit: Visit) -> list[str]:
        """The letters that are right."""
        visit.reveal()
        return [f"answer {self.in_words(visit, self.right(visit))}"]

    def right(self, visit: Visit) -> tuple[int, ...]:
        """The options that are right, once the machine has been asked."""
        value = visit.fact.value if visit.fact is not None else ()
        return value if isinstance(value, tuple) else ()  # type: ignore[return-value]  # `fact` gives indices

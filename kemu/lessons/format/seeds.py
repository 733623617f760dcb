"""What differs between students: a seed from course, lesson and student, and numbers drawn from it.

    seed = SHA-256(salt, lesson, student)       draw(seed, variable, n) = SHA-256(seed, variable, n)

Each variable draws from a stream of its own name: adding a variable to a lesson changes no number
of the others.  Nothing depends on Python's own generator, so that an old transcript can be graded
by a newer Python.
"""

from __future__ import annotations

import hashlib

SEED_DIGITS = 16


def seed_for(salt: str, lesson: str, student: str) -> str:
    """The seed as 16 hex digits."""
    text = f"{salt}\0{lesson}\0{student}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:SEED_DIGITS]


class Draw:
    """The stream of numbers of one name."""

    def __init__(self, seed: str, name: str) -> None:
        self.seed = seed
        self.name = name
        self.drawn = 0

    def below(self, count: int) -> int:
        """A number from 0 to `count` - 1; `count` at least 1."""
        text = "\0".join((self.seed, self.name, str(self.drawn)))
        self.drawn += 1
        return (
            int.from_bytes(
                hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16], "big"
            )
            % count
        )

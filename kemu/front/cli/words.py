"""Parses the words after a subcommand: positional arguments, and options with or without a
value."""

from __future__ import annotations

from kemu.errors import UsageError


class Words:
    """The parsed words. Raises UsageError for an unknown option."""

    def __init__(
        self, words: list[str], values: dict[str, str], flags: frozenset[str], word: str = "lesson"
    ) -> None:
        self.places: list[str] = []
        self.values: dict[str, str] = dict(values)
        self.flags: set[str] = set()
        left = list(words)
        while left:
            given = left.pop(0)
            name, _, value = given.partition("=")
            if name in values:
                self.values[name] = value if "=" in given else self._next(left, name)
            elif given in flags:
                self.flags.add(given)
            elif given.startswith("-") and given != "-":
                raise UsageError(
                    f"{word}: unknown option '{given[:40]}'", hint=f"kemu {word} --help"
                )
            else:
                self.places.append(given)

    @staticmethod
    def _next(left: list[str], name: str) -> str:
        if not left:
            raise UsageError(f"expected a value after {name}")
        return left.pop(0)

    def number(self, name: str, low: int, high: int) -> int:
        """The value of an option that is a number."""
        text = self.values[name]
        if (
            not text.isascii()
            or not text.isdigit()
            or len(text) > 9
            or not low <= int(text) <= high
        ):
            raise UsageError(f"{name}: expected a number from {low} to {high}, got '{text[:20]}'")
        return int(text)

"""`did you mean`: the nearest known word, from difflib (imported only when something is already
wrong)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that is most like `word`, or an empty text."""
    from difflib import get_close_matches

    found = get_close_matches(word[:40], sorted(set(known)), n=1, cutoff=0.6)
    return found[0] if found else ""


def one_of(words: Sequence[str]) -> str:
    """`auto, always or never`."""
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else "".join(words)


def some_of(words: Iterable[str], most: int = 20) -> str:
    """`fault, signal, oom`, with dots after the first `most`."""
    known = list(words)
    return ", ".join(known[:most]) + (" ..." if len(known) > most else "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'fork'?`, or an empty text."""
    found = nearest(word, known)
    return f"did you mean '{found}'?" if found else ""

"""`did you mean`: the nearest known word, from difflib (imported only after a mistake)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word most like `word`; empty if none is."""
    from difflib import get_close_matches

    found = get_close_matches(word[:40], sorted(set(known)), n=1, cutoff=0.6)
    return found[0] if found else ""


def closest(word: str, known: Iterable[str]) -> str:
    """The known word most likely meant by the mistyped `word`; empty if there is no likely one.

    An added, missing, wrong or swapped letter is one error; a missing end and letters in another
    order are likelier than other errors."""
    from difflib import SequenceMatcher

    typed, best = word[:40].lower(), ((99.0, True, 0.0, ""), "")
    for name in sorted(set(known)):
        ratio = SequenceMatcher(None, typed, name).ratio()
        errors = _errors(typed, name)
        begins = len(typed) > 2 and name.startswith(typed)
        inside = not Counter(typed) - Counter(name)
        same = next((at for at, (a, b) in enumerate(zip(typed, name, strict=False)) if a != b), 0)
        alike = ratio >= 0.6 or errors <= 1 or same >= max(3, len(typed) / 2)
        if not (alike or begins or (inside and errors <= 2)):
            continue
        cost = 0.5 if begins else errors - inside
        key = (cost, name[:1] != typed[:1], -ratio, name)
        best = min(best, (key, name))
    return best[1]


def _errors(one: str, other: str) -> int:
    """The number of typing errors between two words (optimal string alignment)."""
    rows = [list(range(len(other) + 1))]
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            cost = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, rows[-2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]


def one_of(words: Sequence[str]) -> str:
    """`auto, always or never`."""
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else "".join(words)


def some_of(words: Iterable[str], most: int = 20) -> str:
    """`fault, signal, oom`, with dots after the first `most`."""
    known = list(words)
    return ", ".join(known[:most]) + (" ..." if len(known) > most else "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean 'fork'?`, or an empty text."""
    words = list(known)
    found = nearest(word, words) or closest(word, words)
    return f"did you mean '{found}'?" if found else ""

"""The base of all readings: a frozen record whose fields are its annotations.

It does in ten lines what attrs would do with generated code; with fifty classes that code costs 20
ms of every start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, Self, dataclass_transform

Address = int
Word = int
Pairs = tuple[tuple[str, int], ...]
Addresses = tuple[tuple[str, Address], ...]


@dataclass_transform(frozen_default=True)
class Reading:
    """Base of all readings: a frozen record whose fields are its annotations, in order; defaults
    are class attributes."""

    _fields: ClassVar[dict[str, str]] = {}
    """Annotation by field, as text."""
    drawn: ClassVar[Callable[[Any], dict[str, Any]] | None] = None
    """How a notebook shows a reading, by MIME type; `kemu.api` sets it, since a reading draws
    nothing itself."""

    def __init_subclass__(cls) -> None:
        own = cls.__annotations__
        if not all(isinstance(annotation, str) for annotation in own.values()):
            raise TypeError(
                f"{cls.__name__}: its module needs 'from __future__ import annotations'"
            )
        cls._fields = {
            **cls._fields,
            **{name: text for name, text in own.items() if not text.startswith("ClassVar")},
        }

    def __init__(self, *values: Any, **named: Any) -> None:
        given = dict(zip(self._fields, values, strict=False))
        twice, given = given.keys() & named.keys(), {**given, **named}
        unknown = named.keys() - self._fields.keys()
        missing = [
            name for name in self._fields if name not in given and not hasattr(type(self), name)
        ]
        if len(values) > len(self._fields) or twice or unknown or missing:
            raise TypeError(
                f"{type(self).__name__}: missing {missing}, unknown {sorted(unknown)}, twice "
                f"{sorted(twice)}"
            )
        self.__dict__.update(given)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name}: a reading is frozen")

    def values(self) -> dict[str, Any]:
        """All fields with their values, in order."""
        return {name: getattr(self, name) for name in self._fields}

    def replace(self, **changes: Any) -> Self:
        """A copy of the reading with other values in some fields."""
        return type(self)(**{**self.values(), **changes})

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.values() == self.values()

    def __hash__(self) -> int:
        return hash((type(self).__name__, *self.values().values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.values().items())})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """For notebooks: the drawing of the shell as text, and the fields as JSON."""
        drawn = Reading.drawn
        found = drawn(self) if drawn is not None else {"text/plain": repr(self)}
        return {
            kind: data
            for kind, data in found.items()
            if (not include or kind in include) and kind not in (exclude or ())
        }

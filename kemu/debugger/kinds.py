"""Types of arguments of the commands about time: kernel functions, and places to stop at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kemu.debugger.stops import EVENT_KINDS
from kemu.language.kinds import TextKind

if TYPE_CHECKING:
    from kemu.experiment.session import Session
    from kemu.language.spec import Candidate


class FunctionKind(TextKind):
    """A kernel function by Linux's name."""

    def __init__(self) -> None:
        super().__init__("FUNCTION", "the name of a kernel function")

    def complete(self, session: Session) -> Iterable[Candidate]:
        """All functions with the file of the original."""
        from kemu.observe.moves import functions

        return [(function.name, function.path) for function in functions()]


class WhereKind(TextKind):
    """A kernel function, a kind of event, or a field."""

    def __init__(self) -> None:
        super().__init__("WHERE", "a kernel function, a kind of event, or a field")

    def complete(self, session: Session) -> Iterable[Candidate]:
        """Kinds of events, then functions."""
        return [*((kind, "events") for kind in EVENT_KINDS), *FUNCTION.complete(session)]


FUNCTION = FunctionKind()
WHERE = WhereKind()

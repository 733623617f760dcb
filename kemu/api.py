"""kemu as a library.

    from kemu import Session

    kemu = Session()
    kemu.run("spawn app; mmap app 0x10000 1p rw; write app 0x10000 7")
    kemu.run("fork app as child; write child 0x10000 8")
    kemu.value("pfn(app, 0x10000) != pfn(child, 0x10000)")     # True
    print(kemu.text("walk child 0x10000"))

`run` gives results with readings (frozen data, `kemu.readings`); `text` gives what the shell would
print. A mistake in a command raises `kemu.errors.UsageError`; a simulated errno or signal does not:
it is in the reading.
"""

from __future__ import annotations

from typing import Any

from kemu.commands.run import run
from kemu.errors import UsageError
from kemu.experiment import session
from kemu.language.result import Result
from kemu.readings import Reading


class Session(session.Session):
    """One experiment: a machine that has booted, with its journal, names and marks, and the
    commands to work on it.

    `mem` is a number of bytes or a size as the shell writes it (`"64M"`), `geometry` a name such as
    `"sv39"`."""

    def __init__(
        self, *, mem: int | str = 64 << 20, geometry: str = "x86-64", cpus: int = 2, **more: Any
    ) -> None:
        super().__init__(
            mem=_size(mem), geometry=_text("geometry", geometry), cpus=_whole("cpus", cpus), **more
        )

    def goto(self, event: int) -> None:
        """Bring all state to where it was after `event`. Raises UsageError outside of 0..end."""
        super().goto(_whole("event", event))

    def run(self, text: str) -> list[Result]:
        """Run the commands of `text` (several lines are allowed); returns one result per command.

        Raises UsageError at the first that cannot be run; those before it have taken effect."""
        _text("run", text)
        results: list[Result] = []
        for line in text.split("\n"):
            results += run(self, line)
            error = results[-1].error if results else None
            if error is not None:
                raise UsageError(
                    error.what,
                    text=error.text,
                    column=error.column,
                    length=error.length,
                    hint=error.hint,
                )
        return results

    def reading(self, text: str) -> Any:
        """The reading of the last command in `text`."""
        results = self.run(text)
        return results[-1].reading if results else None

    def text(self, text: str, width: int = 80) -> str:
        """What the shell prints for the commands, without colour and in ASCII."""
        from kemu.front.terminal.output import to_text
        from kemu.views.style import style_for

        style = style_for("ascii", width=width, colour=False)
        shown = (to_text(result, style) for result in self.run(text))
        return "\n".join(part for part in shown if part)

    def value(self, expression: str) -> Any:
        """The value of an expression at this moment: a number, a text, True, False, or None. Raises
        UsageError."""
        from kemu.language.expr import TaskValue, compile_text
        from kemu.names.session import SessionNames

        with self.looking():
            value = compile_text(_text("value", expression)).evaluate(SessionNames(self))
        return value.pid if isinstance(value, TaskValue) else value


def _text(what: str, given: Any) -> str:
    if not isinstance(given, str):
        raise UsageError(f"{what}: expected a text, got {_shown(given)}", hint="put it in quotes")
    return given


def _whole(what: str, given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool):
        raise UsageError(
            f"{what}: expected a whole number, got {_shown(given)}",
            hint="give a number without a fraction",
        )
    return given


def _size(given: Any) -> int:
    """Bytes of a number, or of a text such as 64M."""
    from kemu.language.lexer import BadNumber, Source, number

    if not isinstance(given, str):
        return _whole("mem", given)
    try:
        return number(Source(given, 0, len(given)), 0, given)
    except BadNumber as error:
        raise UsageError(
            f"mem: expected a size, got {_shown(given)}",
            hint="give bytes, or a text such as '64M' or '1G'",
        ) from error


def _shown(given: Any) -> str:
    """What was given, in a few words."""
    text = repr(given)
    return text if len(text) <= 40 else text[:37] + "..."


def draw(reading: Reading) -> dict[str, Any]:
    """A reading by MIME type: as the shell draws it, as data, and, if it is a picture and an engine
    is installed, as SVG."""
    from kemu.views.json import to_data
    from kemu.views.pictures.draw import svg
    from kemu.views.terminal import RENDERERS, render

    text = render(reading) if type(reading) in RENDERERS else repr(reading)
    shown = {"text/plain": text, "application/json": to_data(reading)}
    picture = svg(reading)
    return {**shown, "image/svg+xml": picture} if picture else shown


Reading.drawn = draw

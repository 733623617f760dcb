"""`trace --format`: events and calls for the tools that show traces of a real kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.commands.hostfile import replace_file
from kemu.errors import UsageError
from kemu.readings import Text

if TYPE_CHECKING:
    from kemu.experiment.session import Session

FORMATS = ("ftrace", "chrome")


def exported(session: Session, first: int, last: int, form: str, path: str | None) -> Text:
    """The calls of (first, last] in a format, shown or written to a file. Raises UsageError."""
    from kemu.observe.report_tracks import tracks
    from kemu.views.chrome import chrome
    from kemu.views.ftrace import ftrace

    if form == "chrome" and path is None:
        raise UsageError(
            "trace: --format chrome needs a file",
            hint="for example: trace --format chrome -o trace.json",
            about="file",
        )
    records = [record for record in session.timeline.records if record.last > record.first]
    commands = tuple((record.text, record.first, record.last) for record in records)
    with session.traveling():
        found = tracks(session.kernel, first, last, commands, session.name_of)
    lines = ftrace(found) if form == "ftrace" else ()
    if path is None:
        return Text(lines)
    text = "\n".join(lines) + "\n" if form == "ftrace" else chrome(found)
    data = text.encode("utf-8", "backslashreplace")
    replace_file(path, data, "trace")
    where = "" if form == "ftrace" else "; open it in ui.perfetto.dev or chrome://tracing"
    return Text((f"{path}: events #{first + 1} to #{last}, {len(data)} bytes{where}",))

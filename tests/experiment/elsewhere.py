"""Read the journal on standard input in this process, which knows nothing else of it, and print what
is to be seen at every hundredth event, as JSON."""

from __future__ import annotations

import json
import sys

from kemu.kernel.mm import mincore  # noqa: F401 - loaded first: functions get other numbers here

from kemu.experiment.journalfile import read  # isort: skip
from kemu.observe.events import events


def seen(kernel, first=0, last=None):
    """The text of each event in (first, last], who made it, and digests on the way."""
    journal = kernel.journal
    last = len(journal) if last is None else last
    kernel.activate()
    journal.seek(last)
    found = events(kernel, first, last, lambda pid: f"@{pid}", low=True).events
    texts = [[event.text, event.function, event.path] for event in found]
    digests = []
    for at in [*range(first, last, 100), last]:
        journal.seek(at)
        digests.append(kernel.state_hash())
    return {"texts": texts, "digests": digests}


if __name__ == "__main__":
    json.dump(seen(read(sys.stdin)), sys.stdout)

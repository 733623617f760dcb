"""Sessions to make films of."""

import os

from kemu.api import Session
from kemu.front.terminal.reporting import script_of
from kemu.observe.report import film
from kemu.views.report import report
from tests.golden import runner

TWO_PAGES = (
    "spawn app; mmap app 0x10000 2p rw; write app 0x10000 'hello'; write app 0x11000 'two'; "
)
SITUATIONS = {
    "fresh_process": "spawn app; mmap app 0x10000 4p rw",
    "after_fork": TWO_PAGES + "fork app as child",
    "after_one_copy": TWO_PAGES + "fork app as child; write child 0x10000 'J'",
    "three_sharers": "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; fork app as one; "
    "fork app as two",
    "shared_file": "mkfile /shared 1p 0x41 tmpfs; spawn app; spawn other; mmap app 0x20000 1p rw "
    "shared file /shared; "
    "mmap other 0x30000 1p rw shared file /shared; write app 0x20000 'T'; read other 0x30000",
    "a_thread": "spawn app; mmap app 0x10000 1p rw; clone app vm fs files sighand thread as "
    "worker; write worker 0x10000 7",
}
"""The situations of which pictures are kept."""


def session_of(text, **machine):
    session = Session(**machine)
    session.run(text)
    return session


def golden_session(path):
    """The session behind a golden script."""
    os.chdir(runner.ROOT)
    session = Session()
    for block in runner.read(path.read_text(encoding="utf-8")):
        for line in block.commands:
            runner.show(session, line, block)
    return session


LONG = (
    TWO_PAGES
    + "mmap app 0x100000 16p rw; fork app as child; "
    + "; ".join(
        f"write {who} {0x100000 + page * 4096:#x} {page}"
        for page in range(16)
        for who in ("app", "child")
    )
)
"""A session of more than 2,000 events."""


LESSON = """+++
format = 1
id = "try/report"
title = "A </script> lesson"
setup = ["spawn app; mmap app 0x10000 1p rw"]
+++

app has a page, and nobody has touched it.

```check predict
id = "first"
points = 1
ask = "How many faults does a write cost?"
reveal = "write app 0x10000 7"
expect = "1"
explain = "One."
```

```check predict
id = "second"
points = 1
start = "setup"
ask = "And here?"
reveal = "read app 0x10000"
expect = "1"
explain = "One."
```
"""
"""Two steps, each on a machine of its own."""


def page_of(session, title="a title"):
    """The page, and the film that it plays."""
    film = film_of(session)._replace(title=title)
    return report([film], "test"), film


def film_of(session, first=0, last=None):
    end = session.end if last is None else last
    return film(
        session.kernel, first, end, script_of(session, "a title", first, end), session.name_of
    )

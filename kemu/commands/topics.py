"""Help pages that are not about one command."""

from __future__ import annotations

TOPICS: dict[str, str] = {
    "sizes": """\
A size or an offset is a number of bytes or of pages:

  4096   0x1000   4_096     bytes
  4K  2M  1G                KiB, MiB, GiB
  3p                        three pages (12288 bytes)
""",
    "expressions": """\
A number may be an expression wherever one is expected; put it in ( ) if it
holds spaces.

  numbers     10  0x1f  0b101  4_096  64K  3p  'text'
  operators   + - * / % & | ^ << >> ~  == != < <= > >=  and or not  ( )
  tasks       app.pid  app.heap  app.stack  app.text  app.brk  app.rss ...
  values      $pid (current task)  $last (of a call or print)  $1 (of print)
  functions   print functions lists them; pfn(app, 0x10000) is none where
              nothing is mapped

print EXPR shows the value, in both bases where they differ.
""",
    "tasks": """\
TASK is a name or @PID, and may stand first in every command about one process;
without it the current task is meant (use TASK). spawn makes the new process
current. An unnamed child of app is app.2, app.3 ... init, kthreadd and swapper
are there from the start.
""",
    "time": """\
Every change of the machine is an event with a number; the prompt shows the
newest one.

  step, back          one event forwards or backwards; an empty line repeats
  next, finish        over the calls of this kernel function, out of it;
                      reverse-next, reverse-finish the same backwards
  goto 12, goto NAME  any moment; mark NAME gives the present one a name
  break, watch, catch stop at a function, a change, a fault or signal;
                      continue and reverse-continue go on to the next stop
  trace, calls, diff  what happened in the last command
  why, history        who made an entry, a count or a mapping what it is
  undo, switch        before the last command; over to another timeline

In the past everything can be looked at. A change is possible between two
commands, and starts a new timeline.
""",
    "data": """\
What write stores:

  "text"      the bytes of the text; \\x41 is one byte
  7           a number: eight bytes, little-endian
  7b          one byte
""",
}
"""Topic -> page."""

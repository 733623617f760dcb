"""Help pages that are not about one command."""

from __future__ import annotations

from kemu.commands.terms import terms_page

TOPICS: dict[str, str] = {
    "terms": terms_page(),
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
              / rounds down: -7 / 2 is -4, and -7 % 2 is 1 (C: -3 and -1)
  tasks       app.pid  app.heap  app.stack  app.text  app.brk  app.rss ...
  values      $pid (current task)  $last (of a call or print)  $1 (of print)
  functions   print functions lists them; pfn(app, 0x10000) is none where
              nothing is mapped

print EXPR shows the value, in both bases where they differ.
""",
    "formats": """\
A letter after print or display says how a number is written, as in gdb:

  /x    in base 16                 0x3041
  /d    in base 10, signed         12353
  /u    in base 10, unsigned       12353
  /o    in base 8                  030101
  /t    in base 2 (also /b)        0b00110000_01000001
  /z    in base 16, all 64 bits    0x0000000000003041
  /c    as a character             65 'A'
  /p    in pages                   3p + 0x41

print/x 3p and print /x 3p are the same. Without a letter a number is shown in
both bases: 0x3000 (12288).
""",
    "tasks": """\
TASK is a name or @PID, and may come first in every command about one process;
without it the current task is meant (use TASK). spawn makes the new process
current. An unnamed child of app is app.2, app.3 ... init, kthreadd and swapper
are there from the start.
""",
    "time": """\
Every change of the machine is an event with a number; the prompt shows the
newest one.

  step, back          one event forwards or backwards; an empty line repeats;
                      step into shows the entries of a table that fork copied
                      or exit took away as one event
  next, finish        over the calls of this kernel function, out of it;
                      reverse-next, reverse-finish the same backwards
  goto 12, goto NAME  any moment; mark NAME gives the present one a name
  until, back until   to where an expression is true: until kid.rss == 3
  break, watch, catch stop at a function, a change, a fault or signal;
                      continue and reverse-continue go on to the next stop
  trace, calls, diff  what happened in the last command
  why, history        who made an entry, a count or a mapping what it is;
                      why signal, why errno, why last: the check that decided
  cost                faults, frames, copies, beside the same without sharing
  undo, switch        before the last command; over to another timeline

In the past everything can be looked at. A change is possible between two
commands, and starts a new timeline.
""",
    "keys": """\
At a terminal:

  Tab             what can be typed here, with a few words about each
  Up, Down        earlier lines that begin as the present one does
  Ctrl-R          search earlier lines; they are kept between runs
  Right, End      take the suggestion shown after the cursor
  Enter           on an empty line: step, back or next once more
  Ctrl-C          at the prompt drops the line; in a search stops it where it
                  is; in a command shows the event at which it came
  Ctrl-D          leave (as quit does)
  Ctrl-L          clear the screen; nothing else ever does
  Ctrl-Z          to the shell you came from; fg comes back
""",
    "config": """\
When the shell starts at a terminal it runs the lines of the file config in the
settings folder: set, alias, context and display, one on a line, # for comments.

  set paging off
  alias look walk app 0x10000
  context short changes picture

Aliases that are made at the prompt are kept there too, in the file aliases.
kemu doctor says where the folders are: KEMU_HOME where it is set, else
$XDG_CONFIG_HOME/kemu and $XDG_STATE_HOME/kemu (Windows: %APPDATA%,
%LOCALAPPDATA%). Scripts and -c read neither, so that they do the same for
everybody. NO_COLOR, FORCE_COLOR and PAGER are respected.
""",
    "words": """\
Other words for the same commands: gdb's for moving, crash's for looking.

  b break   c continue   n next   s step   fin finish   p print   tb tbreak
  rs reverse-step=back   rn reverse-next   rc reverse-continue
  rfin reverse-finish    vm maps   vtop walk   rd dump   wr write
  memfd memfd_create     prlimit setrlimit   h help   q quit

alias makes more. -c, files and the prompt know the same words.
""",
    "data": """\
What write stores:

  "text"      the bytes of the text; \\x41 is one byte
  7           a number: eight bytes, little-endian
  7b          one byte
""",
}
"""Topic -> page."""

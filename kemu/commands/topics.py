"""Help pages that are not about one command."""

from __future__ import annotations

from kemu.commands.terms import terms_page
from kemu.views.colours import LEGEND
from kemu.views.style import ROLES

NAMES = {"31": "red", "32": "green", "33": "yellow", "35": "magenta", "36": "cyan"}
"""The colours of a terminal by their number."""


def colours_page() -> str:
    """What colour means, from the tables that paint."""
    rows = [f"  {NAMES[ROLES[role].split(';')[-1]]:<10}{what}" for role, what in LEGEND.items()]
    return "\n".join(
        [
            "What colour means at a terminal; each meaning has its word or letter as well:",
            "",
            *rows,
            "",
            "set color never switches it off, and so does NO_COLOR. Pictures in SVG name",
            "their colours in a line below.",
            "",
        ]
    )


TOPICS: dict[str, str] = {
    "terms": terms_page(),
    "sizes": """\
A size or an offset is a number of bytes or pages:

  4096   0x1000   4_096     bytes
  4K  2M  1G                KiB, MiB, GiB
  3p                        three pages (12288 bytes)
""",
    "expressions": """\
An expression may be used wherever a number is expected; enclose it in ( ) if
it contains spaces.

  numbers     10  0x1f  0b101  4_096  64K  3p  'text'
  operators   + - * / % & | ^ << >> ~  == != < <= > >=  and or not  ( )
              / rounds down: -7 / 2 is -4, and -7 % 2 is 1 (C: -3 and -1)
  tasks       app.pid  app.heap  app.stack  app.text  app.brk  app.rss ...
              app.exit_code (the kernel's, 768), app.exit_status ($?, 3)
  values      $pid (current task)  $last (of a call or print)  $1 (of print)
  functions   print functions lists them; pfn(app, 0x10000) gives none
              where nothing is mapped
  things      in words, as trace prints them: refcount 0x112 == 2,
              mm of app total_vm, pte app 0x10000 (see: help why)

print EXPR, or EXPR alone at the prompt, shows the value, in both bases if they
differ.
""",
    "formats": """\
A letter after print or display sets the output format, as in gdb:

  /x    in base 16                 0x3041
  /d    in base 10, signed         12353
  /u    in base 10, unsigned       12353
  /o    in base 8                  030101
  /t    in base 2 (also /b)        0b00110000_01000001
  /z    in base 16, all 64 bits    0x0000000000003041
  /c    as a character             65 'A'
  /p    in pages                   3p + 0x41

print/x 3p and print /x 3p are equivalent. Without a letter a number is shown in
both bases: 0x3000 (12288).
""",
    "tasks": """\
TASK is a name or @PID. It may come first in every command that acts on one
process; the default is the current task, which use TASK changes. spawn makes
the new process current. Unnamed children of app are called app.2, app.3 ...
init, kthreadd and swapper exist from the start.
""",
    "time": """\
Every change of the machine is a numbered event; the prompt shows the number of
the latest.

  step, back          to the next or previous event that trace shows (step all:
                      any; step pte: the next entry); an empty line repeats;
                      step into shows each entry when fork copied, or exit
                      removed, a whole table in one event
  next, finish        step over the calls of this kernel function, or out of
                      it; reverse-next and reverse-finish go backwards
  goto 12, goto NAME  any moment; mark NAME names the current one
  until, back until   go to where an expression is true: until kid.rss == 3
  break, watch, catch stop at a function, a change, a fault or signal;
                      continue and reverse-continue go to the next stop
  trace, calls, diff  what happened in the last command
  bt, list            the open kernel functions; the code of the innermost
  why, history        what gave an entry, a count or a mapping its value; why
                      alone: this event; why signal, errno, last: the check
  cost                faults, frames and copies, compared with no sharing
  undo, switch        go to before the last command; to another timeline

Every past state can be examined. Changes can be made between two commands;
they start a new timeline.
""",
    "keys": """\
At a terminal:

  Tab             list what can be typed here, with short descriptions
  Up, Down        earlier lines that start like the current one
  Ctrl-R          search earlier lines; they are kept between runs
  Right, End      accept the suggestion shown after the cursor
  Enter           on an empty line: repeat step, back or next
  Ctrl-C          at the prompt, discard the line; in a search, stop where it
                  is; in a command, show the event that was interrupted
  Ctrl-D          leave kemu, like quit
  Ctrl-L          clear the screen; nothing else does
  Ctrl-Z          suspend kemu; fg resumes it
""",
    "prompt": """\
What can be typed at the prompt besides commands:

  maps app | head -3    the output through a program of the host
  calls > story.txt     the output into a file
  ! ls                  a command of the host's shell
  py                    a Python prompt on the session, where kemu is a
                        kemu.Session; Ctrl-D returns. py CODE runs one statement
  app.rss + 2           an expression, as print

In an expression | and > are operators; put the program or the file in quotes
there: print app.rss > 'rss.txt'. Scripts, -c, saved experiments and lessons
know none of |, >, ! and py.
""",
    "colours": colours_page(),
    "config": """\
When the shell starts at a terminal, it runs the file config in the settings
folder: set, alias, context and display commands, one per line; # for comments.

  set paging off
  alias look walk app 0x10000
  context short changes picture

Aliases defined at the prompt are kept there too, in the file aliases. kemu
doctor shows where the folders are: KEMU_HOME if set, otherwise
$XDG_CONFIG_HOME/kemu and $XDG_STATE_HOME/kemu (Windows: %APPDATA%,
%LOCALAPPDATA%). Scripts and -c read neither file, so they behave the same for
every user. NO_COLOR, FORCE_COLOR and PAGER are respected.
""",
    "words": """\
Aliases of commands: gdb's for moving, crash's for looking.

  b break   c continue   n next   s step   fin finish   p print   tb tbreak
  l list    backtrace where=bt    vmmap=maps   hexdump=dump
  rs reverse-step=back   rn reverse-next   rc reverse-continue
  rfin reverse-finish    vm maps   vtop walk   rd dump   wr write
  memfd memfd_create     prlimit setrlimit   h help   q quit

alias defines more. -c, files and the prompt accept the same words.
""",
    "data": """\
The data that write stores:

  "text"      the bytes of the text; \\x41 is one byte
  7           a number: eight bytes, little-endian
  7b          one byte
""",
}
"""Topic -> page."""

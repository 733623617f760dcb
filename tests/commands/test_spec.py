"""Arguments are matched by shape, from the declaration; a mistake names the argument and its
place."""

from __future__ import annotations

import pytest

from kemu.api import Session
from kemu.commands import table
from kemu.commands.run import run
from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.bind import bind
from kemu.language.tokens import split


class FakeTask:
    def __init__(self, pid):
        self.pid = pid


class FakeSession:
    """A session with two tasks, `app` and `app.2`, and a mark `before` at event 12."""

    def __init__(self):
        self.tasks = {1: FakeTask(1), 3: FakeTask(3), 4: FakeTask(4)}
        self.marks = {"before": 12}
        self.now, self.end = 20, 57
        self.values = []
        self.current_pid = 3

    def names(self):
        return {"init": 1, "app": 3, "app.2": 4}

    def find(self, name):
        pid = int(name[1:]) if name.startswith("@") else self.names().get(name)
        if pid not in self.tasks:
            raise UsageError(f"no task '{name}'", hint="ps lists the tasks")
        return self.tasks[pid]

    def check_name(self, name):
        if name in self.names():
            raise UsageError(f"'{name}' is taken")


def arguments(text):
    (line,) = split(text)
    made = table.find(line.tokens[0].text)
    values = bind(made, line, FakeSession()).values
    return {
        name: value.pid if isinstance(value, FakeTask) else value for name, value in values.items()
    }


def error(text):
    with pytest.raises(UsageError) as caught:
        arguments(text)
    return caught.value


NO_FD = {"fd": None, "offset": None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mmap app 0x10000 4p rw",
         {"task": 3, "addr": 0x10000, "length": 16384, "prot": 3, "flags": (), "file": None, **NO_FD}),
        ("mmap 4p rw",
         {"task": None, "addr": None, "length": 16384, "prot": 3, "flags": (), "file": None, **NO_FD}),
        ("mmap 0x10000 4p r-x",
         {"task": None, "addr": 0x10000, "length": 16384, "prot": 5, "flags": (), "file": None, **NO_FD}),
        ("mmap @3 1p none shared populate",
         {"task": 3, "addr": None, "length": 4096, "prot": 0, "flags": (1, 0x8000), "file": None, **NO_FD}),
        ("mmap app.2 2p r file /bin/tiny@1p shared",
         {"task": 4, "addr": None, "length": 8192, "prot": 1, "flags": (1,), "file": ("/bin/tiny", 4096), **NO_FD}),
        ("fork", {"task": None, "name": None}),
        ("fork as child", {"task": None, "name": "child"}),
        ("fork app as child", {"task": 3, "name": "child"}),
        ("clone vm files", {"task": None, "flags": (0x100, 0x400), "name": None}),
        ("clone app vm as t", {"task": 3, "flags": (0x100,), "name": "t"}),
        ("write app 0x10000 'x'", {"task": 3, "addr": 0x10000, "data": b"x", "count": 0}),
        ("write 0x10000 7", {"task": None, "addr": 0x10000, "data": b"\7" + b"\0" * 7, "count": 0}),
        ("write 0x10000 7b", {"task": None, "addr": 0x10000, "data": b"\7", "count": 0}),
        ((r"write 0x10000 "
         r"'\xff\x00'"), {"task": None, "addr": 0x10000, "data": b"\xff\0", "count": 0}),
        (("exec app /bin/a.out "
         "one 'two words'"), {"task": 3, "path": "/bin/a.out", "argv": ("one", "two words")}),
        ("exec /bin/a.out", {"task": None, "path": "/bin/a.out", "argv": ()}),
        ("kill", {"task": None, "signal": 15, "sender": None}),
        ("kill app", {"task": 3, "signal": 15, "sender": None}),
        ("kill SEGV", {"task": None, "signal": 11, "sender": None}),
        ("kill app sigkill by init", {"task": 3, "signal": 9, "sender": 1}),
        ("signal app 11 handle", {"task": 3, "signal": 11, "action": "handle"}),
        ("signal SEGV ignore", {"task": None, "signal": 11, "action": "ignore"}),
        ("exit 3", {"task": None, "code": 3}),
        ("exit app 3", {"task": 3, "code": 3}),
        ("goto before", {"event": 12}),
        ("goto 5+1", {"event": 6}),
        ("goto end", {"event": 57}),
        ("wait app for app.2 nohang", {"task": 3, "child": 4, "flags": (1,)}),
    ],
)  # fmt: skip
def test_arguments_are_found_by_their_shape(text, expected):
    assert arguments(text) == expected


@pytest.mark.parametrize(
    ("text", "what", "column", "length"),
    [
        ("mmap app 3q rw anon", "length: expected bytes or pages, got '3q'", 9, 2),
        ("mmap app 4p", "prot: missing", 11, 1),
        ("mmap app 4p q", "prot: expected letters of rwx", 12, 1),
        ("mmap app 4p rw shraed", "mmap: unexpected 'shraed'", 15, 6),
        ("mmap prent 4p rw", "task: no task 'prent'", 5, 5),
        ("read @99 0x10", "task: no task '@99'", 5, 3),
        ("fork app b", "fork: unexpected 'b'", 9, 1),
        ("fork a b", "task: no task 'a'", 5, 1),
        ("read q", "task: no task 'q', and it is not an address", 5, 1),
        ("read app", "addr: missing", 8, 1),
        ("exec nosuch", "task: no task 'nosuch', and it is not a path of kemu", 5, 6),
        ("write p 'x'", "task: no task 'p'", 6, 1),
        ("fork app as app", "name: 'app' is taken", 12, 3),
        ("spawn as", "name: 'as' is reserved", 6, 2),
        ("spawn if", "name: 'if' is reserved", 6, 2),
        ("spawn", "name: missing", 5, 1),
        ("read app -1", "addr: -1 is below 0", 9, 2),
        ("read app 0x10000000000000000", "addr: 0x10000000000000000 is above", 9, 19),
        ("read app 0x10000 0x10000000000000000", "size: 0x10000000000000000 is above", 17, 19),
        ("read app ap.heap", "expression: nothing is called 'ap.heap'", 9, 7),
        ("goto nowhere", "event: no mark named 'nowhere'", 5, 7),
        ("signal app SGEV handle", "signal: expected a signal", 11, 4),
        ("write app 0x10000 300b", "data: 300 is above 255", 18, 4),
        ("write app 0x10000 ''", "data: nothing to store", 18, 2),
        ("mmap app 1p r file", "file: missing", 18, 1),
        ("mmap app 1p r file /a@", "file: expected an offset after @", 19, 3),
        ("mmap app 1p r file /a@zz+", "expression: expected a value", 25, 1),
        ("ps app", "ps: unexpected 'app'", 3, 3),
        ("mlock2 app 0x10000 onfault", "length: missing; expected bytes or pages", 19, 7),
        ("mkfile /x tmpfs", "size: missing; expected bytes or pages", 10, 5),
        ("graph --diff", "diff: missing; expected an event number", 12, 1),
        ("exit app 256", "code: 256 is above 255", 9, 3),
        ("set zzz on", "setting: expected a setting (see: show), got 'zzz'", 4, 3),
        (
            "pkey_mprotect app 0x10000 1p r app",
            "pkey: expected a protection key, or -1 for none, got 'app'",
            31,
            3,
        ),
        ("print", "expression: missing", 5, 1),
        ("mmap app 0x1000 zz rw", "prot: expected letters of rwx, or none, got 'zz'", 16, 2),
    ],
)
def test_a_mistake_names_the_argument_and_its_place(text, what, column, length):
    found = error(text)
    assert found.what.startswith(what)
    assert (found.column, found.length) == (column, length)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("mmap app 4p rw shraed", "did you mean 'shared'?"),
        ("signal app SGEV handle", "did you mean 'SEGV'?"),
        ("read app ap.heap", "did you mean 'app.heap'?"),
        ("mmap app 3q rw", "write 3p for three pages"),
        ("read app -4096", "0xfffffffffffff000"),
        ("mmap app 4p", "usage: mmap [TASK]"),
        ("goto befor", "did you mean 'before'?"),
        ("exit app 256", "from 0 to 255"),
        ("kill app -1", "from 0 to 64"),
        ("step -1", "write 0 or more"),
        ("goto -5", "write 0 or more"),
        ("close app 0x80000000", "at most 0x7fffffff"),
    ],
)
def test_an_error_says_what_to_do_next(text, hint):
    assert hint in error(text).hint


def test_a_name_with_a_number_behind_a_dot_is_a_task_and_no_expression():
    (line,) = split("x app.2 app.heap @3 7 child.heap+8 rw")
    shapes = [(kinds.is_name(token), kinds.is_expression(token)) for token in line.tokens[1:]]
    assert shapes == [
        (True, False),
        (False, True),
        (False, False),
        (False, True),
        (False, True),
        (True, False),
    ]


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("set color purple", "purple"),
        ("help zzqq", "zzqq"),
        ("info breakpint", "breakpint"),
        ("context loud", "loud"),
        ("finish nosuch", "nosuch"),
        ("undo", "undo"),
        ("delete 77", "77"),
        ("break vma; enable 1 77 78", "77"),
        ("delete display 9", "9"),
        ("switch 9", "9"),
        ("diff timeline 9", "9"),
        ("goto 999999", "999999"),
        ("trace 0 999999", "999999"),
        ("trace 999999", "999999"),
        ("spawn app; expand 3", "3"),
        ("why frame 99999999", "99999999"),
        ("spawn app; why tlb 0x10000 9", "9"),
        ("why vma 0x90000 vm_end", "0x90000"),
        ("set verify maybe", "maybe"),
        ("frame 99999999", "99999999"),
        ("graph rmap 0x5f5e0ff", "0x5f5e0ff"),
        ("spawn app; vma 0x1", "0x1"),
        ("on 9 ps", "9"),
        ("step x", "x"),
        ("break vma app.rss", "app.rss"),
        ("break if app.rss > 0", "if"),
        ("apropos zzqq", "zzqq"),
        ("graph tables init -o x.gif", "x.gif"),
        ('spawn app; race "write app 0 1" ps', "ps"),
        ("trace -o x", "x"),
        ("set verify on on", "on"),
        ("set fail alloc off", "off"),
        ("spawn a; fork a as b; exit b; history pte b 0x10000", "b"),
        ("unalias nobody", "nobody"),
        ("set color " + "z" * 99, "z" * 99),
    ],
)
def test_an_error_of_a_command_points_at_the_word_that_it_quotes(text, marked):
    error = run(Session(), text)[-1].error
    assert error.text[error.column : error.column + error.length] == marked


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("set verify maybe", "for example: set verify on"),
        ("set verfy on", "did you mean 'verify'?"),
        ("break if app.rss > 0", "for example: break do_wp_page if kid.minor > 0"),
        ("set nosuch 1", "known are aslr, lru_batch,"),
        ("show nosuch", "known are aslr, lru_batch,"),
        ("trace --format foo", "see: help trace"),
        ("context foo", "see: help context"),
        ("catch everything", "see: help catch"),
        ("break nosuch_function", "a function (do_wp_page), a field (_refcount), or pte, ram"),
        ("source nosuch", "for example: source do_wp_page"),
        ("why frame 0x10 nosuch", "known are "),
        ("spawn a; why frame pfn(a, 0x900000)", "nothing is mapped there"),
    ],
)
def test_an_error_that_lists_no_guess_still_says_what_to_do_next(text, said):
    error = run(Session(), text)[-1].error
    assert said in error.hint


@pytest.mark.parametrize(
    ("name", "synopsis"),
    [
        ("back", "back [HOW] [COUNT] [until CONDITION]"),
        ("break", "break WHERE [if CONDITION]"),
        ("step", "step [HOW] [COUNT]"),
        ("set", "set SETTING VALUE [NUMBER]"),
        ("display", "display [EXPRESSION]"),
        ("until", "until CONDITION"),
        ("alias", "alias [NAME] [COMMAND]"),
    ],
)
def test_the_synopsis_shows_what_may_be_left_out(name, synopsis):
    assert table.find(name).synopsis == synopsis

"""gdb's words and C's spelling: what hands type that know both."""

from __future__ import annotations

import pytest

from kemu.abi import uapi
from kemu.abi.calls import CALLS
from kemu.abi.linux_calls import LINUX_CALLS
from kemu.abi.words import Words
from kemu.api import Session
from kemu.commands import table
from kemu.commands.unknown import INSTEAD, NOT_MODELLED, OUTSIDE
from kemu.errors import UsageError

STORY = 'spawn app; mmap app 0x10000 1p rw; write app 0x10000 "hello"; fork app as kid'


@pytest.fixture
def session():
    session = Session()
    session.run(STORY)
    return session


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("x/2xg app 0x10000", "0x10000:  0x0000006f6c6c6568  0x0000000000000000"),
        ("x/5xb 0x10000", "0x10000:  0x68  0x65  0x6c  0x6c  0x6f"),
        ("x/5bx 0x10000", "0x10000:  0x68  0x65  0x6c  0x6c  0x6f"),
        ("x/s app 0x10000", '0x10000:  "hello"'),
        ("x/2c 0x10001", "0x10001:  101 'e'  108 'l'"),
        ("x /1uh 0x10000", "0x10000:  25960"),
        ("x 0x10000", "0x10000:  0x6c6c6568"),
        (
            "x/8xb kid 0x10ffc",
            "0x10ffc:  0x00  0x00  0x00  0x00\n0x11000:  nothing is mapped there",
        ),
    ],
)
def test_x_shows_memory_as_gdb_does(session, line, text):
    assert session.text(line.replace("app", "kid")) == text


def test_x_touches_nothing_and_says_where_it_cannot_read(session):
    before = session.end
    session.run("x/8xg app 0x10000")
    assert session.end == before
    with pytest.raises(UsageError, match="cannot access memory at 0x90000"):
        session.run("x/2x app 0x90000")
    with pytest.raises(UsageError, match="expected a format such as /8xg"):
        session.run("x/8q app 0x10000")


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("info b", "info breakpoints"),
        ("info break", "info breakpoints"),
        ("info disp", "info display"),
        ("info reg", "regs"),
        ("info threads", "ps"),
        ("info fr", "bt"),
        ("vmmap app", "maps app"),
        ("hexdump app 0x10000 16", "dump app 0x10000 16"),
        ("frame app 0x10000", "frame pfn(app,0x10000)"),
        ("rmap kid 0x10000", "rmap pfn(kid,0x10000)"),
        ("graph rmap kid 0x10000", "graph rmap pfn(kid,0x10000)"),
        ("graph", "graph tree"),
        ("graph sharing", "graph sharing app kid"),
    ],
)
def test_two_ways_to_say_the_same(session, line, same):
    session.run("break do_wp_page; display app.rss; use app")
    assert session.reading(line) == session.reading(same)


def test_info_alone_shows_stops_and_displays(session):
    session.run("break do_wp_page; display app.rss")
    assert session.text("info").splitlines() == [
        "1   break  do_wp_page  (0 hits)",
        "1: app.rss = 1",
    ]


def test_a_frame_of_an_address_that_is_not_mapped_says_so(session):
    with pytest.raises(UsageError, match="nothing is mapped at 0x90000 of app"):
        session.run("frame app 0x90000")


# ---------------------------------------------------------------- C


def flag_words():
    """Each word of each call that Linux spells in capitals, with its value there."""
    for row in CALLS:
        for arg in row.args:
            if isinstance(arg.words, Words):
                for word, value in arg.words.items():
                    yield row, arg, arg.words.prefix + word.upper(), value


@pytest.mark.parametrize(
    ("row", "arg", "name", "value"),
    [(row, arg, name, value) for row, arg, name, value in flag_words()],
    ids=[f"{row.word or row.name} {name}" for row, _, name, _ in flag_words()],
)
def test_every_flag_and_choice_may_be_spelled_as_in_c(row, arg, name, value):
    made = table.named(row.word or row.name)
    option = made.option_of(name)
    if option is not None:
        assert option.values_of(name) == (value,)
        return
    (kind,) = [a.kind for a in made.parts if a.name == arg.name]
    session = Session()
    from kemu.language.tokens import split

    (line,) = split(name)
    assert kind.fits(line.tokens[0], session, True)
    assert kind.convert(line.tokens[0], line, session) == value


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("mmap app 4p PROT_READ|PROT_WRITE", "mmap app 4p rw"),
        (
            "mmap app 0x50000 4p PROT_READ|PROT_WRITE MAP_SHARED|MAP_ANONYMOUS|MAP_FIXED",
            "mmap app 0x50000 4p rw shared anon fixed",
        ),
        ("mmap app 4p PROT_NONE MAP_PRIVATE|MAP_ANONYMOUS", "mmap app 4p none private anon"),
        ("mprotect app 0x10000 1p PROT_READ|PROT_EXEC", "mprotect app 0x10000 1p rx"),
        ("madvise app 0x10000 1p MADV_DONTNEED", "madvise app 0x10000 1p dontneed"),
        ("mlockall app MCL_CURRENT|MCL_FUTURE", "mlockall app current future"),
        ("open app /new O_RDWR|O_CREAT", "open app /new rdwr creat"),
        ("setrlimit app RLIMIT_AS 100M", "setrlimit app as 100M"),
        (
            "clone app CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD as t",
            "clone app vm fs files sighand thread as t",
        ),
        ("mremap app 0x10000 1p 2p MREMAP_MAYMOVE", "mremap app 0x10000 1p 2p maymove"),
    ],
)
def test_the_c_spelling_does_the_same(line, same):
    states = []
    for typed in (line, same):
        session = Session()
        session.run(STORY)
        session.run(typed)
        states.append(session.state_hash())
    assert states[0] == states[1]


def test_a_misspelled_flag_is_named():
    session = Session()
    session.run("spawn app")
    with pytest.raises(UsageError, match="PROT_RAED"):
        session.run("mmap app 4p PROT_RAED|PROT_WRITE")
    assert uapi.PROT_READ == 1


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("fork()", "usage: fork [TASK]"),
        ("fork();", "usage: fork [TASK]"),
        ("pid_t child = fork()", "usage: fork [TASK]"),
        (
            "mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);",
            "usage: mmap",
        ),
        ("waitpid(-1, &status, 0)", "usage: wait"),
        ('execve("/bin/true", argv, envp)', "usage: exec"),
        ("char *q = malloc(4096)", "usage: brk"),
    ],
)
def test_a_call_pasted_from_a_man_page_gets_the_commands_synopsis(line, hint):
    with pytest.raises(UsageError, match="commands are words without parentheses") as caught:
        Session().run(line)
    assert caught.value.hint.startswith(hint)


# ---------------------------------------------------------------- unknown words


@pytest.mark.parametrize("word", sorted(LINUX_CALLS))
def test_each_call_of_linux_is_a_command_or_named_as_not_modelled(word):
    if table.known(word):
        return
    with pytest.raises(UsageError) as caught:
        table.named(word)
    said = f"{caught.value.what} {caught.value.hint}"
    assert "does not model" in said or "here it is" in said


@pytest.mark.parametrize("word", [*INSTEAD, *NOT_MODELLED, *sorted(OUTSIDE)])
def test_common_words_get_an_answer_and_no_guess(word):
    if table.known(word):
        return
    with pytest.raises(UsageError) as caught:
        table.named(word)
    assert "did you mean" not in caught.value.hint


def test_what_is_said_to_be_a_command_is_one():
    for word, meaning in INSTEAD.items():
        first = meaning.split()[0].rstrip(":,").partition("/")[0]
        assert table.known(first) or first in ("Ctrl-L", "help"), (word, meaning)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("mpa", "maps"),
        ("spwan", "spawn"),
        ("wlak", "walk"),
        ("mprotct", "mprotect"),
        ("stp", "step"),
        ("brek", "break"),
        ("grpah", "graph"),
        ("hist", "history"),
        ("transc", "transcript"),
        ("undoo", "undo"),
    ],
)
def test_a_typing_error_is_understood(typed, meant):
    with pytest.raises(UsageError) as caught:
        table.named(typed)
    assert caught.value.hint == f"did you mean '{meant}'?"

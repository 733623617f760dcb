"""Ctrl-C stops where the state is whole, and says how far it got."""

from __future__ import annotations

import inspect
import signal
import textwrap
from contextlib import contextmanager

import pytest

from kemu import interrupts
from kemu.trace import journal


def press():
    signal.raise_signal(signal.SIGINT)


def test_without_a_deferred_block_it_stops_at_once():
    with interrupts.listening(), pytest.raises(KeyboardInterrupt):
        press()


def count(done, to, press_at):
    with interrupts.listening(), interrupts.deferred():
        for number in range(to):
            interrupts.check(lambda: f"{len(done)} of {to}", number)
            done.append(number)
            if number == press_at:
                press()


def test_in_a_deferred_block_it_waits_for_the_next_check_which_says_how_far_it_got():
    done = []
    with pytest.raises(interrupts.Interrupted) as caught:
        count(done, 10, press_at=3)
    assert (caught.value.how_far, caught.value.at) == ("4 of 10", 4)
    assert len(done) == 4


def press_twice(calls):
    with interrupts.listening(), interrupts.deferred(lambda: calls.append(1)):
        press()
        assert interrupts.pressed()
        assert calls == [1]
        press()


def test_the_first_one_calls_back_and_the_second_one_stops_at_once():
    with pytest.raises(KeyboardInterrupt) as caught:
        press_twice([])
    assert not isinstance(caught.value, interrupts.Interrupted)


def test_one_that_nobody_asked_for_is_forgotten_at_the_end_of_the_block():
    with interrupts.listening():
        with interrupts.deferred():
            press()
        interrupts.check(lambda: "nowhere")
        assert not interrupts.pressed()


class Thing:
    """Somebody presses Ctrl-C when its value becomes 5."""

    def __init__(self):
        self.value = 0

    def _restore(self, _field, value):
        if value == 5:
            press()
        self.value = value


def seek_and_wait(made, thing):
    with interrupts.listening():
        made.seek(10_000)
        assert (made.cursor, thing.value) == (10_000, 10_000)
        while True:
            pass


def test_inside_a_move_of_the_journal_it_comes_a_moment_later():
    made, thing = journal.Journal(), Thing()
    for number in range(10_000):
        made.log += [thing, "value", number, number + 1]
    with pytest.raises(KeyboardInterrupt):
        seek_and_wait(made, thing)


def test_the_handler_of_before_comes_back():
    before = signal.getsignal(signal.SIGINT)
    with interrupts.listening():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


class Mover:
    """Has a method, a property and a block in the middle of which somebody presses Ctrl-C."""

    done = 0

    def method(self):
        press()
        self.done += 1

    @property
    def value(self):
        press()
        self.done += 1

    @contextmanager
    def block(self):
        press()
        self.done += 1
        yield


def use(mover, member):
    """Use one member, then wait for the Ctrl-C that came in it."""
    with interrupts.listening():
        if member == "method":
            mover.method()
        elif member == "value":
            _ = mover.value
        else:
            with mover.block():
                pass
        while True:
            pass


@pytest.mark.parametrize("member", ["method", "value", "block"])
def test_an_uninterruptible_class_finishes_what_it_does_first(member):
    mover = interrupts.uninterruptible(type("Whole", (Mover,), copies()))()
    with pytest.raises(KeyboardInterrupt):
        use(mover, member)
    assert mover.done == 1


def copies():
    """The members of Mover with code of their own, so that decorating them leaves Mover as it
    is."""
    space = {"press": press, "contextmanager": contextmanager}
    text = textwrap.dedent("".join(inspect.getsourcelines(Mover)[0])).replace(
        "class Mover", "class Whole"
    )
    exec(compile(text, "whole.py", "exec"), space)  # noqa: S102 - this file's own text
    return {
        name: value
        for name, value in vars(space["Whole"]).items()
        if name in {"method", "value", "block", "done"}
    }


@pytest.mark.parametrize("member", ["method", "value", "block"])
def test_without_the_decorator_it_stops_in_the_middle(member):
    mover = Mover()
    with pytest.raises(KeyboardInterrupt):
        use(mover, member)
    assert mover.done == 0

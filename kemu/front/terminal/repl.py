"""The shell at a terminal: read a line with prompt-toolkit, run it, print its results with plain
writes.

prompt-toolkit edits the line and draws the toolbar; it prints no result, and the screen is never
cleared. Ctrl-C at the prompt drops the line; in a command see `kemu.interrupts`; Ctrl-D leaves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from threading import Thread
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory, ConditionalAutoSuggest
from prompt_toolkit.filters import Condition
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from kemu.commands.settings import preference
from kemu.commands.table import ALIASES, load_all
from kemu.front.terminal.bug import report_bug, stopped
from kemu.front.terminal.completer import KemuCompleter
from kemu.front.terminal.config import Config
from kemu.front.terminal.history import StateHistory
from kemu.front.terminal.host import on_host
from kemu.front.terminal.output import TextOutput
from kemu.front.terminal.prompt import prompt, toolbar
from kemu.front.terminal.waiting import Wait, is_held

if TYPE_CHECKING:
    from prompt_toolkit.history import History

    from kemu.experiment.session import Session
    from kemu.front.terminal.plain import Runner

REPEATED = frozenset({"step", "back", "next", "reverse-next"})
"""Commands that an empty line repeats: those that only move."""

COLOURS = {
    "auto-suggestion": "fg:ansicyan underline",
    "aborting": "noinherit",
    "exiting": "noinherit",
    "bottom-toolbar": "reverse",
    "completion-menu": "bg:ansiblue fg:ansiwhite",
    "completion-menu.completion": "",
    "completion-menu.completion.current": "reverse",
    "completion-menu.meta.completion": "bg:ansiblue fg:ansiwhite",
    "completion-menu.meta.completion.current": "reverse",
    "scrollbar.background": "bg:ansiblue",
    "scrollbar.button": "bg:ansiwhite",
}
"""The 16 ANSI colours only, and no grey: grey text is hard to read on some backgrounds."""

MENU_ROWS = 8
"""Lines that are kept free below the prompt for the menu of completions."""

EXIT_HINT = (
    "exit ends {task}, the current process: type it again to confirm. quit or Ctrl-D leaves kemu."
)
BANNER = "kemu {version}: a small Linux that you can stop, look into and run backwards"
FIRST_STEPS = "help lists commands, Tab completes, lesson teaches, quit leaves. Try: spawn app"


class Repl:
    """One conversation. `read` gives the next line; it raises EOFError at the end and
    KeyboardInterrupt on Ctrl-C. Lines that it gives are in the `history` already; those that are
    typed elsewhere are added. `news` are called after each line and return a further message or an
    empty string."""

    def __init__(
        self,
        runner: Runner,
        read: Any,
        news: Iterable[Callable[[], str]] = (),
        history: History | None = None,
    ) -> None:
        self.runner = runner
        self.read = read
        self.news = tuple(news)
        self.history = history
        self.repeat = ""
        self.warned_about_exit = False

    def loop(self) -> None:
        """Read and run until the end."""
        while not self.runner.done:
            try:
                text = self.read()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            self.lines(text)

    def lines(self, text: str) -> None:
        """Run what was typed. If one line of a pasted text fails, the following ones still run."""
        for line in text.splitlines() or [""]:
            if not self.runner.done:
                self.line(line)

    def line(self, text: str) -> None:
        """Run one line as typed; an empty one repeats a move."""
        session = self.runner.session
        text = text.strip() or (self.repeat if preference(session, "repeat") == "on" else "")
        self.repeat = text if _word(session, text) in REPEATED else ""
        if text == "exit" and session.current_pid and not self.warned_about_exit:
            self.warned_about_exit = True
            self.runner.output.say(EXIT_HINT.format(task=session.name_of(session.current_pid)))
            return
        if not on_host(self.runner, text):
            self._run(text)
        self._typed_on()
        for warning in filter(None, (ask() for ask in self.news)):
            self.runner.output.say(warning)

    def _typed_on(self) -> None:
        """Run what was typed between two pages as the next command."""
        output = self.runner.output
        text, output.typed = output.typed, ""
        if text and not self.runner.done:
            output.say(f"{prompt(self.runner.session)}{text}")
            if self.history is not None and self.history.get_strings()[-1:] != [text]:
                self.history.append_string(text)
            self.line(text)

    def _run(self, text: str) -> None:
        output = self.runner.output
        if (
            isinstance(output, TextOutput)
            and output.out.isatty()
            and is_held(self.runner.session, text)
        ):
            output.wait = Wait(output.out)
        try:
            self.runner.line(text)
        except KeyboardInterrupt as stop:
            output.say(stopped(self.runner.session, stop))
        except BrokenPipeError:
            raise
        except Exception as error:  # noqa: BLE001 - a bug must not cost the user the experiment
            output.flush()
            report_bug(error, debug=self.runner.options.debug)
        output.flush()


def _word(session: Session, text: str) -> str:
    """The command that the line is, if it is one alone."""
    words = text.split()
    if not words or ";" in text:
        return ""
    word = session.desk.aliases.get(words[0], words[0]).split()[0]
    return ALIASES.get(word, word)


def repl(runner: Runner) -> None:
    """Run the shell at a terminal until the user leaves."""
    from kemu import __version__

    session = runner.session
    history, config = StateHistory(), Config()
    asked = dict(session.desk.preferences)
    session.desk.show_context("short")
    config.load(session)
    session.desk.preferences.update(asked)
    for warning in (history.news(), *config.warnings):
        if warning:
            sys.stderr.write(warning + "\n")
    runner.stay = True
    if isinstance(runner.output, TextOutput):
        runner.output.paged = True
    for line in (BANNER.format(version=__version__), FIRST_STEPS) if not session.end else ():
        runner.output.say(line)
    Thread(target=warm_up, name="warm-up").start()
    reader = make_reader(session, history)
    news = (lambda: config.keep(session), history.news)
    Repl(runner, lambda: read_line(reader, session), news, history).loop()


def warm_up() -> None:
    """Import, after the first prompt, what the first Tab needs; the machine is not touched."""
    import kemu.observe.entries
    import kemu.observe.moves
    import kemu.observe.space
    import kemu.races.mutants
    import kemu.views.terminal  # noqa: F401 - to be imported is all that is wanted of these five
    from kemu.commands.lessonrefs import titles

    load_all()
    titles()


def read_line(reader: PromptSession[str], session: Session) -> str:
    """The next line, edited under the settings of this moment. Raises EOFError and
    KeyboardInterrupt."""
    reader.bottom_toolbar = (
        (lambda: toolbar(session)) if preference(session, "toolbar") == "on" else None
    )
    return reader.prompt(prompt(session), color_depth=_depth(session))


def make_reader(session: Session, history: StateHistory, **more: Any) -> PromptSession[str]:
    """What edits a line: completion on Tab, history by prefix and search, suggestions."""
    suggesting = Condition(lambda: preference(session, "suggestions") == "on")
    return PromptSession(
        history=history,
        completer=KemuCompleter(session),
        auto_suggest=ConditionalAutoSuggest(AutoSuggestFromHistory(), suggesting),
        complete_while_typing=False,
        enable_history_search=True,
        style=Style.from_dict(COLOURS),
        reserve_space_for_menu=MENU_ROWS,
        enable_suspend=True,
        **more,
    )


def _depth(session: Session) -> ColorDepth:
    """The colour depth: the 16 ANSI colours or none, as for results."""
    from kemu.front.terminal.output import wants_color

    coloured = wants_color(sys.stdout, preference(session, "color"))
    return ColorDepth.DEPTH_4_BIT if coloured else ColorDepth.DEPTH_1_BIT

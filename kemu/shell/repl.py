"""The shell at a terminal: read a line with prompt-toolkit, run it, print what it gives with plain writes.

prompt-toolkit edits the line and draws the toolbar; it prints no result, and the screen is never cleared. Ctrl-C at the
prompt drops the line, in a command it takes the command back; Ctrl-D leaves.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from kemu.commands.table import ALIASES
from kemu.shell.bug import report_bug
from kemu.shell.completer import KemuCompleter
from kemu.shell.history import StateHistory
from kemu.shell.prompt import prompt, toolbar

if TYPE_CHECKING:
    from kemu.shell.plain import Runner

REPEATED = frozenset({"step", "back", "next", "reverse-next"})
"""Commands that an empty line repeats: those that only move."""

COLOURS = {
    "auto-suggestion": "fg:ansicyan",
    "aborting": "",
    "bottom-toolbar": "reverse",
    "completion-menu": "bg:ansiblue fg:ansiwhite",
    "completion-menu.completion.current": "reverse",
    "completion-menu.meta.completion": "bg:ansiblue fg:ansiwhite",
    "completion-menu.meta.completion.current": "reverse",
}
"""The 16 ANSI colours only, and no grey: grey text is lost on some backgrounds."""

EXIT_HINT = "exit ends {task}, the current process: type it again. quit or Ctrl-D leaves kemu."
BANNER = "kemu {version}: a small Linux. help lists the commands, quit leaves."


class Repl:
    """One conversation. `read` gives the next line; it raises EOFError at the end and KeyboardInterrupt on Ctrl-C."""

    def __init__(self, runner: Runner, read: Any) -> None:
        self.runner = runner
        self.read = read
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
            self.line(text)

    def line(self, text: str) -> None:
        """Run one line as typed; an empty one repeats a move."""
        text = text.strip() or self.repeat
        self.repeat = text if _word(text) in REPEATED else ""
        if text == "exit" and not self.warned_about_exit:
            self.warned_about_exit = True
            session = self.runner.session
            self.runner.output.say(EXIT_HINT.format(task=session.name_of(session.current_pid)))
            return
        self._run(text)

    def _run(self, text: str) -> None:
        session = self.runner.session
        try:
            self.runner.line(text)
        except KeyboardInterrupt:
            self.runner.output.say(f"stopped; the machine stands at #{session.now}, before the command that was running")
        except BrokenPipeError:
            raise
        except Exception as error:  # noqa: BLE001 - a bug must not cost the user the experiment
            self.runner.output.flush()
            report_bug(error, debug=self.runner.options.debug)
        self.runner.output.flush()


def _word(text: str) -> str:
    """The command that the line is, if it is one alone."""
    words = text.split()
    return ALIASES.get(words[0], words[0]) if words and ";" not in text else ""


def repl(runner: Runner) -> None:
    """Talk to a person at a terminal until they leave."""
    from kemu import __version__

    history = StateHistory()
    if history.warning:
        sys.stderr.write(history.warning + "\n")
    runner.stay = True
    sys.stdout.write(BANNER.format(version=__version__) + "\n")
    session = runner.session
    session.context = "short"
    reader: PromptSession[str] = PromptSession(
        history=history,
        completer=KemuCompleter(session),
        auto_suggest=AutoSuggestFromHistory(),
        complete_while_typing=False,
        enable_history_search=True,
        bottom_toolbar=(lambda: toolbar(session)) if runner.options.toolbar else None,
        color_depth=_depth(runner),
        style=Style.from_dict(COLOURS),
        enable_suspend=True,
    )
    Repl(runner, lambda: reader.prompt(prompt(session))).loop()


def _depth(runner: Runner) -> ColorDepth:
    """One of the 16 ANSI colours, or none, as for the results."""
    from kemu.shell.output import wants_color

    return ColorDepth.DEPTH_4_BIT if wants_color(sys.stdout, runner.options.color) else ColorDepth.DEPTH_1_BIT

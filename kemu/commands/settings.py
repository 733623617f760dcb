"""`set` and `show`: the settings of the machine, of the session, and of the shell.

    machine   aslr, lru_batch, fault_around, fail      part of the state: going back takes them back
    session   granularity, verify, context             how this experiment is worked on
    shell     color, paging, toolbar ...               how it is shown; kept as text in `session.desk.preferences`

What the shell's settings do is up to the front end; here they are declared, checked and shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kemu.debugger.sections import HOWS, SECTIONS
from kemu.errors import UsageError
from kemu.language import kinds
from kemu.language.spec import CHANGE, command, maybe, one
from kemu.language.suggest import did_you_mean, one_of
from kemu.readings import Text

if TYPE_CHECKING:
    from kemu.experiment.session import Session

_SWITCH = {"on": True, "off": False}
GRANULARITIES = ("event", "function", "command")


class Preference(NamedTuple):
    """A setting of the shell: its words, the first of which is the default, and what it is for."""

    words: tuple[str, ...]
    about: str

    @property
    def known(self) -> str:
        """`auto, always or never`."""
        return one_of(self.words)


PREFERENCES = {
    "color": Preference(("auto", "always", "never"), "colour in what is shown"),
    "characters": Preference(("auto", "ascii"), "line drawings, or ASCII only"),
    "paging": Preference(("on", "off"), "long output goes through $PAGER, at a terminal"),
    "toolbar": Preference(("on", "off"), "the line at the bottom"),
    "suggestions": Preference(("on", "off"), "show the rest of an earlier line while typing"),
    "repeat": Preference(("on", "off"), "an empty line repeats step, back, next"),
    "errno-fails": Preference(("off", "on"), "a simulated errno counts as a failure"),
}

SETTINGS = {
    "aslr": "a seed, or off: where programs lie",
    "lru_batch": "on or off: per-CPU batches hold references",
    "fault_around": "a size: how much of a file one fault maps",
    "tmpfs": "a size, or off: how much files in memory may hold",
    "fail": "alloc N, slab N or off: let an allocation fail",
    "granularity": "event, function or command: one step",
    "verify": "on or off: check invariants after every command",
    "context": "what is shown after a change (see: help context)",
    **{name: f"{preference.known}: {preference.about}" for name, preference in PREFERENCES.items()},
}
"""Every setting with a few words about it."""

OF_THE_SESSION = ("granularity", "verify", "context", *PREFERENCES)
"""Those that change nothing of the machine."""


def words_of(setting: str) -> tuple[str, ...]:
    """The words that `set` takes for it."""
    known = {
        "aslr": ("off",), "lru_batch": tuple(_SWITCH), "verify": tuple(_SWITCH), "granularity": GRANULARITIES,
        "fail": (*FAILING, "off"), "context": (*HOWS, *SECTIONS), "fault_around": ("64K", "1p"),
    }  # fmt: skip
    return PREFERENCES[setting].words if setting in PREFERENCES else known.get(setting, ())


def preference(session: Session, name: str) -> str:
    """The value of a setting of the shell."""
    return session.desk.preferences.get(name, PREFERENCES[name].words[0])


@command(
    "set",
    arguments=(
        one("setting", kinds.ChoiceKind("SETTING", SETTINGS, "a setting (see: show)")),
        one("value", kinds.TextKind("VALUE", "a value")),
        maybe("number", kinds.TextKind("NUMBER", "a number")),
    ),
    effect=CHANGE,
    summary="change a setting of the machine, the session or the shell",
    more="aslr SEED places new programs at random, the same for the same seed, until aslr off. "
    "lru_batch on keeps new pages "
    "in the per-CPU batches of the LRU, which hold a reference each, as Linux does. fault_around "
    "SIZE is how much of a file "
    "one fault maps; tmpfs SIZE is all that the files made by mkfile ... tmpfs may hold. "
    "fail alloc N lets the N-th allocation of a frame from now on fail, fail slab N that of an "
    "object. "
    "These belong to the machine. "
    "granularity event, function or command is how far step and back go; verify on checks the "
    "invariants after every command. "
    "color, characters, paging, toolbar, suggestions, repeat and errno-fails are the shell's; show "
    "lists all with their words. "
    "Lines of the file config in the settings folder are run when the shell starts (see: help "
    "config).",
    examples=(
        "set lru_batch on",
        "set aslr 7; spawn app",
        "spawn app; set granularity function; back 3",
        "spawn app; set fail alloc 2; fork app",
        "set paging off; show paging",
    ),
    session_words=OF_THE_SESSION,
    linux="/proc/sys/kernel/randomize_va_space",
)
def set_(session: Session, setting: str, value: str, number: str | None) -> Text:
    """Change one setting; one of the machine is part of its state, so going back takes it back."""
    if setting == "fail":
        return _set_fail(session, value, number)
    if setting == "context":
        return _set_context(session, value, number)
    if number is not None:
        raise UsageError(
            f"set: unexpected '{number[:40]}' after the value",
            hint=f"set {setting} {value}",
            about="number",
        )
    if setting in PREFERENCES:
        session.desk.preferences[setting] = _word(setting, value, PREFERENCES[setting].words)
    elif setting == "verify":
        session.debugger.verify(_SWITCH[_word(setting, value, tuple(_SWITCH))])
    elif setting == "granularity":
        session.desk.step_by(_word(setting, value, GRANULARITIES))
    else:
        session.set(setting, _of_machine(setting, value))
    return Text((f"{setting}: {settings(session)[setting]}",))


def _of_machine(setting: str, value: str) -> int | bool | None:
    """The value for a setting of the machine."""
    if setting == "aslr":
        return None if value == "off" else _plain_number(value, 2**63, "a seed or off")
    if setting == "lru_batch":
        return _SWITCH[_word(setting, value, tuple(_SWITCH))]
    if setting == "tmpfs":
        return (
            0
            if value == "off"
            else max(1, _plain_number(value, 1 << 40, "bytes, such as 64K or 16p, or off") >> 12)
        )
    size = _plain_number(value, 1 << 21, "bytes, such as 64K or 1p")
    return max(4096, 1 << max(size.bit_length() - 1, 0))


def _set_context(session: Session, value: str, number: str | None) -> Text:
    from kemu.commands.context import choose

    try:
        choose(session, [word for word in (value, number) if word is not None])
    except UsageError as error:
        error.about, error.index = ("value", "number")[error.index], 0
        raise
    return Text((f"context: {settings(session)['context']}",))


FAILING = {"alloc": "fail", "slab": "fail_slab"}
"""What can be made to fail, by the setting of the machine that does it."""


def _set_fail(session: Session, what: str, number: str | None) -> Text:
    """Fault injection: the N-th allocation fails; off takes all of it back."""
    if what not in (*FAILING, "off") or (what in FAILING) != (number is not None):
        hint = "set fail alloc 3: the third frame is refused; set fail slab 2: the second object"
        raise UsageError(
            "fail: expected alloc or slab and a number, or off", hint=hint, about="value"
        )
    if number == "off":
        raise UsageError(
            "fail: off takes all of it back at once", hint="set fail off", about="number"
        )
    for name in FAILING.values() if what == "off" else [FAILING[what]]:
        session.set(
            name, _plain_number(number or "0", 1 << 31, "a number of allocations", "number")
        )
    return Text((f"fail: {settings(session)['fail']}",))


def _word(setting: str, value: str, words: tuple[str, ...]) -> str:
    if value in words:
        return value
    hint = did_you_mean(value, words) or f"for example: set {setting} {words[0]}"
    raise UsageError(
        f"{setting}: expected {one_of(words)}, got '{value[:40]}'", hint=hint, about="value"
    )


def _plain_number(text: str, high: int, what: str, about: str = "value") -> int:
    from kemu.language.lexer import Source, number

    try:
        value = number(Source(text, 0, len(text)), 0, text)
    except UsageError:
        value = -1
    if not 0 <= value <= high:
        raise UsageError(
            f"{about}: expected {what}, got '{text[:40]}'",
            hint="show lists the settings with what they take",
            about=about,
        )
    return value


def settings(session: Session) -> dict[str, str]:
    """The settings as text."""
    from kemu.commands.context import chosen

    found = session.settings()
    machine = {
        name: _switch_text(value) for name, value in found.items() if name not in FAILING.values()
    }
    failing = [f"{what} {found[name]}" for what, name in FAILING.items() if found.get(name)]
    machine["fail"] = ", ".join(failing) or "off"
    mine = {
        "granularity": session.desk.granularity,
        "verify": _switch_text(session.debugger.verifying),
        "context": chosen(session),
    }
    return machine | mine | {name: preference(session, name) for name in PREFERENCES}


def _switch_text(value: int | bool | None) -> str:
    if value is None or value is False:
        return "off"
    return "on" if value is True else str(value)


@command(
    "show",
    arguments=(maybe("setting", kinds.ChoiceKind("SETTING", SETTINGS, "a setting")),),
    summary="the settings",
    more="Each with its value; all of them with the words that set takes.",
    examples=("show", "show aslr"),
)
def show(session: Session, setting: str | None) -> Text:
    """One setting, or all."""
    found = settings(session)
    if setting is not None:
        return Text((f"{setting}: {found[setting]}",))
    width = max(len(text) for text in found.values() if len(text) < 12)
    lines = []
    for name, text in found.items():
        about = SETTINGS[name] if name != "context" else ""
        lines.append(f"{name:<12} {text:<{width}}  {about}".rstrip())
    return Text(tuple(lines))

"""`set` and `show`: the settings of the machine, of the session, and of the shell.

    machine   aslr, lru_batch, fault_around, fail      part of the state: going back restores them
    session   granularity, verify, context             how the session moves and checks
    shell     color, paging, toolbar ...               display; text in `session.desk.preferences`

The front end implements the shell's settings; this module declares, checks and shows them.
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
    """A setting of the shell: its values, the default first, and its purpose."""

    words: tuple[str, ...]
    about: str

    @property
    def known(self) -> str:
        """`auto, always or never`."""
        return one_of(self.words)


PREFERENCES = {
    "color": Preference(("auto", "always", "never"), "colour in the output"),
    "characters": Preference(("auto", "ascii"), "line drawings, or ASCII only"),
    "paging": Preference(("on", "off"), "show long output page by page, or in $PAGER"),
    "toolbar": Preference(("on", "off"), "the status line at the bottom"),
    "suggestions": Preference(("on", "off"), "show the rest of an earlier line while typing"),
    "repeat": Preference(("on", "off"), "an empty line repeats step, back, next"),
    "errno-fails": Preference(("off", "on"), "a simulated errno counts as a failure"),
}

SETTINGS = {
    "aslr": "a seed, or off: where programs are placed",
    "lru_batch": "on or off: per-CPU batches hold references",
    "fault_around": "a size: how many bytes of a file one fault maps",
    "tmpfs": "a size, or off: limit on the files in memory",
    "fail": "alloc N, slab N or off: make an allocation fail",
    "granularity": "event, function or command: the unit of step",
    "verify": "on or off: check invariants after every command",
    "context": "what is shown after a change (see: help context)",
    **{name: f"{preference.known}: {preference.about}" for name, preference in PREFERENCES.items()},
}
"""Setting -> description."""

OF_THE_SESSION = ("granularity", "verify", "context", *PREFERENCES)
"""Settings that do not change the machine."""


def words_of(setting: str) -> tuple[str, ...]:
    """The words that `set` accepts for the setting."""
    known = {
        "aslr": ("off",), "lru_batch": tuple(_SWITCH), "verify": tuple(_SWITCH),
        "granularity": GRANULARITIES,
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
    more="Settings of the machine: aslr SEED places new programs at random addresses, which "
    "depend only on the seed, until aslr off. lru_batch on keeps new pages in the per-CPU "
    "batches of the LRU, each with a reference, as Linux does. fault_around SIZE is the size "
    "of the part of a file that one fault maps; tmpfs SIZE limits the total size of the files "
    "made by mkfile ... tmpfs. fail alloc N makes the N-th allocation of a frame from now on "
    "fail, fail slab N that of an object. Settings of the session: granularity event, "
    "function or command is the unit of step and back; verify on checks the invariants after "
    "every command; context chooses what is shown after a change. Settings of the shell: "
    "color, characters, paging, toolbar, suggestions, repeat and errno-fails. show lists all "
    "settings with their values. The shell runs the file config in the settings folder when "
    "it starts (see: help config).",
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
    """Change one setting. Going back restores the settings of the machine."""
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
"""Kind of allocation -> setting of the machine that makes it fail."""


def _set_fail(session: Session, what: str, number: str | None) -> Text:
    """Fault injection: the N-th allocation fails; off clears all of it."""
    if what not in (*FAILING, "off") or (what in FAILING) != (number is not None):
        hint = "set fail alloc 3 fails the third frame; set fail slab 2 the second object"
        raise UsageError(
            "fail: expected alloc or slab and a number, or off", hint=hint, about="value"
        )
    if number == "off":
        raise UsageError(
            "fail: off takes no number; it clears every injected failure",
            hint="set fail off",
            about="number",
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
            hint="show lists the settings with their values",
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
    summary="show the settings",
    more="Without a setting, shows all of them with the values that set accepts.",
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

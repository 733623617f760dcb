"""What can be typed next in a half-typed command, read from the declarations that parse it.

The arguments of a command form a small automaton: state *i* means that the arguments before *i* are
done. The tokens typed so far move a set of states; whatever those states accept may follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.commands import table
from kemu.completion.offers import Place, about, complete, expression_words
from kemu.errors import UsageError
from kemu.language.spec import Argument, Candidate, Command, Option
from kemu.language.tokens import Token, split

if TYPE_CHECKING:
    from kemu.experiment.session import Session, Task


def candidates(session: Session, text: str) -> tuple[str, list[Candidate]]:
    """The word that is being typed at the end of `text`, and its completions. Changes no state."""
    try:
        tokens, word = _typed(text)
    except UsageError as error:
        return (
            expression_words(session, text)
            if "is never closed" in error.what and "string" not in error.what
            else ("", [])
        )
    with session.looking():
        found = _following(session, tokens, word)
        return word, [candidate for candidate in found if candidate[0].startswith(word)]


def _typed(text: str) -> tuple[tuple[Token, ...], str]:
    """The finished tokens of the last command and the unfinished word after them. Raises UsageError
    inside quotes or brackets."""
    lines = split(text + "\0")
    tokens = lines[-1].tokens if lines else ()
    if not tokens or not tokens[-1].text.endswith("\0"):
        raise UsageError("this is a comment")
    return tokens[:-1], tokens[-1].text[:-1]


def _following(session: Session, tokens: tuple[Token, ...], word: str) -> list[Candidate]:
    """What can follow the tokens."""
    if not tokens:
        return _first_words(session, word)
    made = table.find(session.desk.aliases.get(tokens[0].text, tokens[0].text).partition(" ")[0])
    if made is None:
        return []
    place = Place(
        session,
        _task(session, made, tokens),
        word,
        (made.name, *(token.text for token in tokens[1:])),
    )
    pending = _pending_option(made, tokens)
    if pending is not None and pending.kind is not None:
        return list(complete(pending.kind, place))
    found: dict[str, str] = {}
    for argument in _arguments_after(session, made, tokens[1:]):
        found |= dict(_nested(session, argument, tokens, word) or complete(argument.kind, place))
    if _may_end(session, made, tokens[1:]):
        found |= {
            word: about(option, word)
            for option in made.options
            for word in option.words
            if not _given(word, tokens)
        }
    return list(found.items())


def _first_words(session: Session, word: str) -> list[Candidate]:
    """The commands and the user's aliases; once the first letters are typed, also other words for
    commands."""
    found = [(made.name, made.summary) for made in table.load_all()]
    found += [(name, f"alias of: {meaning}") for name, meaning in session.desk.aliases.items()]
    if session.desk.guide is not None:
        found += session.desk.guide.words()
    if word:
        found += [
            (name, f"{other}: {table.named(other).summary}")
            for name, other in table.ALIASES.items()
        ]
    return found


def _task(session: Session, made: Command, tokens: tuple[Token, ...]) -> Task | None:
    """The task that the half-typed command is about."""
    if len(tokens) > 1 and any(argument.kind.name == "TASK" for argument in made.arguments[:1]):
        name = tokens[1].text
        pid = session.names().get(
            name,
            int(name[1:])
            if name.startswith("@") and name[1:].isdecimal() and len(name) < 10
            else -1,
        )
        pid = pid if pid in session.tasks else session.current_pid
        return session.tasks.get(pid)
    return session.tasks.get(session.current_pid or -1)


def _given(word: str, tokens: tuple[Token, ...]) -> bool:
    """Has the word been typed already?"""
    return any(token.text == word for token in tokens[1:])


def _pending_option(made: Command, tokens: tuple[Token, ...]) -> Option | None:
    """The option whose value comes next."""
    last = tokens[-1].text
    return next(
        (option for option in made.options if option.kind is not None and last in option.words),
        None,
    )


def _nested(
    session: Session, argument: Argument, tokens: tuple[Token, ...], word: str
) -> list[Candidate]:
    """Inside `on 1 COMMAND`: what the inner command takes."""
    if argument.kind.name != "COMMAND" or len(tokens) <= 2:
        return []
    return _following(session, tokens[2:], word)


def _states(session: Session, made: Command, tokens: tuple[Token, ...]) -> set[int]:
    """The states that the tokens lead to."""
    states = {0}
    for token in tokens:
        states = {after for state in states for after in _moves(session, made, state, token)}
    return states


def _moves(session: Session, made: Command, state: int, token: Token) -> set[int]:
    """The states that the token leads to from `state`; the last one takes option words."""
    end = len(made.arguments)
    if token.text in made.option_words:
        return {end} if end in _skips(made, state) else set()
    moved = set()
    for at in _skips(made, state):
        if at == end:
            if made.options:
                moved.add(end)
            continue
        argument = made.arguments[at]
        if argument.count.endswith("rest"):
            moved.add(at)
        elif argument.kind.fits(token, session, known=True):
            moved |= {at, at + 1} if argument.count in ("many", "some") else {at + 1}
    return moved


def _skips(made: Command, state: int) -> set[int]:
    """The states that can be reached from `state` without a token."""
    reached = {state}
    while (
        state < len(made.arguments)
        and not made.arguments[state].needed
        and made.arguments[state].count != "rest"
    ):
        state += 1
        reached.add(state)
    return reached


def _arguments_after(session: Session, made: Command, tokens: tuple[Token, ...]) -> list[Argument]:
    places = {at for state in _states(session, made, tokens) for at in _skips(made, state)}
    return [made.arguments[at] for at in sorted(places) if at < len(made.arguments)]


def _may_end(session: Session, made: Command, tokens: tuple[Token, ...]) -> bool:
    """Can options be typed here?"""
    end = len(made.arguments)
    return any(end in _skips(made, state) for state in _states(session, made, tokens))

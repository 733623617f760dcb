"""What a student reads: the question with what is expected of them, and what came of an answer.

    You said 5, it was 7.                    what was said, what happened
    5 counts each page once. ...             the belief, where the author knows it
    Compare the two counts ...               the one thing to look at, the why-question

Four lines at most, about the task and never about the person.  Right answers get their reason too.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from kemu.language.result import OK, UNSATISFIED, Result
from kemu.lessons.kinds import bug as bugs
from kemu.lessons.taking.messages import say
from kemu.lessons.taking.visit import FAILED, PASSED, Visit
from kemu.lessons.taking.world import Shown
from kemu.readings.lessons import LessonText

Texts = list[Result]


def text(role: str, words: str, step: str = "", status: int = OK) -> Result:
    """A text of a role as the result of a command."""
    return Result("lesson", LessonText(role, words, step), status=status)


def shown(parts: Iterable[Shown], step: str = "") -> Texts:
    """Prose, and commands with what they printed: not with all that they changed, which would bury
    the answer."""
    found: Texts = []
    for part in parts:
        if part.result is None:
            found.append(text(part.kind, part.text, step))
        else:
            found += [
                text("typed", part.text, step),
                attrs.evolve(part.result, first=part.result.last),
            ]
    return found


def task(visit: Visit, number: int, language: str) -> Texts:
    """The question of the step, with its options and how to answer."""
    step, lesson = visit.step, visit.world.lesson
    title = say(
        language, "step", number=number, count=len(lesson.steps), title=step.title or step.id
    )
    worth = (
        say(language, "point")
        if step.points == 1
        else say(language, "points", points=step.points)
        if step.points
        else ""
    )
    found = [text("title", f"{title} ({worth})" if worth else title, step.id)]
    if step.ask:
        found.append(text("ask", visit.ask(), step.id))
    options = visit.option_texts()
    if options:
        lines = [f"{chr(ord('a') + index)})  {option}" for index, option in enumerate(options)]
        found.append(text("options", "\n".join(lines), step.id))
    if step.words:
        words = ", ".join(visit.text("words", word) for word in step.words)
        found.append(text("note", say(language, "words", words=words), step.id))
    return [*found, text("note", how(visit, language), step.id)]


def how(visit: Visit, language: str) -> str:
    """What to type."""
    step = visit.step
    if step.kind == "choice":
        return say(language, "how_choices" if step.several else "how_choice")
    if step.kind == "bug":
        named = [key for key in step.find if key in bugs.NAMED]
        asked = (
            say(language, "how_bug", findings=", ".join(f"{key} ..." for key in named))
            if named
            else ""
        )
        return " ".join(
            [asked, say(language, "how_repair") if "repair" in step.find else ""]
        ).strip()
    return say(language, f"how_{step.kind}")


def answered(visit: Visit, right: bool, language: str) -> Texts:
    """What came of an answer: said, was, the belief, the reason."""
    step = visit.step
    predicted = step.kind == "predict"
    if right:
        return [text("right", say(language, "right", was=visit.was), step.id), *reasons(visit)]
    key = "wrong_predict" if predicted or visit.state == FAILED else "wrong"
    lines = [say(language, partly(visit) or key, said=visit.said, was=visit.was), *beliefs(visit)]
    if step.kind == "order":
        lines += placed(visit, language)
    if visit.confidence == "sure":
        lines.append(say(language, "sure_wrong"))
    found = [text("wrong", " ".join(lines), step.id, UNSATISFIED)]
    if visit.state == FAILED:
        tail = [] if predicted else [say(language, "last")]
        look = say(language, "look") if predicted and len(lines) < 2 else ""
        looked = [say(language, "why", text=visit.text("why", step.why)) if step.why else look]
        notes = [
            [text("note", words, step.id) for words in part if words] for part in (tail, looked)
        ]
        return [*found, *notes[0], *reasons(visit), *notes[1]]
    offer = say(language, "offer") if visit.tries >= 3 and step.hints else say(language, "again")
    return [*found, text("note", offer, step.id)]


def beliefs(visit: Visit) -> list[str]:
    """What the author says about the wrong answer."""
    step, fact = visit.step, visit.fact
    if fact is None:
        return []
    if step.kind in ("predict", "answer"):
        belief = fact.belief(visit.answer)
        return [belief] if belief else []
    if step.kind == "choice" and isinstance(visit.answer, tuple):
        right = fact.value if isinstance(fact.value, tuple) else ()
        judged = (
            visit.order
            if step.several
            else [index for index in visit.order if index in visit.answer]
        )
        wrongly = [
            step.options[index]
            for index in judged
            if (index in visit.answer) is not (index in right)
        ]
        return [visit.text("options", option.why) for option in wrongly if option.why]
    return []


def _right(visit: Visit) -> tuple[object, ...]:
    """The indices that are right, of a choice or an order."""
    return (
        visit.fact.value if visit.fact is not None and isinstance(visit.fact.value, tuple) else ()
    )


def partly(visit: Visit) -> str:
    """The message for a choice of which all is right, but not all was chosen."""
    chosen = visit.answer if visit.step.kind == "choice" and visit.state != FAILED else ()
    return "not_all" if chosen and set(chosen) < set(_right(visit)) else ""


def placed(visit: Visit, language: str) -> list[str]:
    """How well a wrong order begins, and which of its events never happened."""
    first, right = in_place(visit), _right(visit)
    found = (
        [say(language, "in_place_one" if first == 1 else "in_place", count=first)] if first else []
    )
    letters = [
        chr(ord("a") + visit.order.index(item)) for item in visit.answer if item not in right
    ]
    return [*found, *([say(language, "never", letters=", ".join(letters))] if letters else [])]


def in_place(visit: Visit) -> int:
    """How many of the first events of an order are right."""
    pairs = list(zip(visit.answer, _right(visit), strict=False))
    return next((at for at, (said, was) in enumerate(pairs) if said != was), len(pairs))


def reasons(visit: Visit) -> Texts:
    """The author's explanation of the step."""
    step = visit.step
    return [text("prose", visit.text("explain", step.explain), step.id)] if step.explain else []


def checked(visit: Visit, language: str) -> Texts:
    """What `check` says of a step that is not done."""
    step = visit.step
    spoiled = [say(language, "spoiled", event=event, what=what) for event, what in visit.spoiled()]
    if step.kind == "bug":
        missing = [key for key in step.find if key not in visit.found]
        lines = (
            bugs.unrepaired(visit)
            if missing == ["repair"]
            else [say(language, "to_find", findings=", ".join(missing))]
        )
    elif step.kind == "run":
        lines = visit.failures() or [say(language, "how_run")]
    else:
        lines = visit.failures()
    found = [text("wrong", say(language, "not_yet"), step.id, UNSATISFIED)] if lines else []
    found += [text("fact", line, step.id) for line in lines]
    found += [text("wrong", line, step.id, UNSATISFIED) for line in spoiled]
    return found


def finished(visit: Visit, language: str) -> Texts:
    """What is said when the step is done."""
    key = "done" if visit.state == PASSED else "goes_on"
    found = (
        [text("right", say(language, "done", id=visit.step.id), visit.step.id)]
        if key == "done"
        else []
    )
    return [*found, text("note", say(language, "goes_on"), visit.step.id)]

"""What a student reads: the question with what is expected, and what is said to an answer.

    You said 5, it was 7.                    what was said, what happened
    5 counts each page once. ...             the belief, where the author knows it
    Compare the two counts ...               the one thing to look at, the why-question

Four lines at most, about the task and never about the person.  Right answers get their reason too.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from kemu.language.result import OK, UNSATISFIED, Result
from kemu.lessons.kinds.base import FAILED, Visit
from kemu.lessons.taking.messages import say
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
    worth = say(language, "point" if step.points == 1 else "points", points=step.points)
    found = [text("title", f"{title} ({worth})" if step.points else title, step.id)]
    if step.ask:
        found.append(text("ask", visit.text("ask", step.ask), step.id))
    options = step.options_of(visit)
    if options:
        lines = [f"{chr(ord('a') + index)})  {option}" for index, option in enumerate(options)]
        found.append(text("options", "\n".join(lines), step.id))
    words = step.words_of(visit)
    if words:
        found.append(text("note", say(language, "words", words=", ".join(words)), step.id))
    return [*found, text("note", step.how(visit, language), step.id)]


def answered(visit: Visit, right: bool, language: str) -> Texts:
    """What is said to an answer: said, was, the belief, the reason."""
    step = visit.step
    if right:
        return [text("right", say(language, "right", was=visit.was), step.id), *reasons(visit)]
    told = "wrong_predict" if step.commits or visit.state == FAILED else "wrong"
    lines = [
        step.say(language, step.partly(visit) or told, said=visit.said, was=visit.was),
        *step.remarks(visit, language),
    ]
    if visit.confidence == "sure":
        lines.append(say(language, "sure_wrong"))
    found = [text("wrong", " ".join(lines), step.id, UNSATISFIED)]
    if visit.state != FAILED:
        offer = "offer" if visit.tries >= 3 and step.hints else "again"
        return [*found, text("note", say(language, offer), step.id)]
    if not step.commits:
        found.append(text("note", say(language, "last"), step.id))
    found += reasons(visit)
    if step.why:
        found.append(text("note", say(language, "why", text=visit.text("why", step.why)), step.id))
    elif step.commits and len(lines) < 2:
        found.append(text("note", say(language, "look"), step.id))
    return found


def reasons(visit: Visit) -> Texts:
    """The author's explanation of the step."""
    step = visit.step
    return [text("prose", visit.text("explain", step.explain), step.id)] if step.explain else []


def checked(visit: Visit, language: str) -> Texts:
    """What `check` says of a step that is not done."""
    step = visit.step
    lines = step.unmet(visit, language)
    found = [text("wrong", say(language, "not_yet"), step.id, UNSATISFIED)] if lines else []
    found += [text("fact", line, step.id) for line in lines]
    for event, what in step.spoiled(visit):
        words = say(language, "spoiled", event=event, what=what)
        found.append(text("wrong", words, step.id, UNSATISFIED))
    return found

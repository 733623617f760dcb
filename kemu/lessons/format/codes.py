"""The codes of what can be wrong with a lesson: one line each.  docs/lesson-format.md lists them; a
test keeps it true.

L  the file cannot be read as a lesson     P  the lesson, performed, does not do what it says
M  what it says cannot be meant            T  its translation       W  it works, but look at it
"""

from __future__ import annotations

CODES: dict[str, str] = {
    "L01": "the file cannot be read: missing, not UTF-8, or too large",
    "L02": "the front matter is missing or never ends",
    "L03": "TOML that cannot be parsed",
    "L04": "a key that the format does not have",
    "L05": "a required key is missing",
    "L06": "a value of the wrong type or out of range",
    "L07": "a kind of step or block that does not exist",
    "L08": "a block that is never closed",
    "L09": "two steps with the same id, or an invalid id",
    "L10": "a version of the format that this kemu does not read",
    "L11": "a lesson without steps, or with too many",
    "M01": "an expression that cannot be parsed",
    "M02": "a command that cannot be parsed",
    "M03": "a command that is not allowed here",
    "M04": "`expect` is a literal: it must ask the machine or use a drawn value",
    "M05": "a variable named like a task, a function or a keyword",
    "M06": "a wrong kernel that does not exist",
    "M07": "a choice without a right option, or a single choice with several right ones",
    "M08": "a required lesson that does not exist",
    "M09": "lessons that require each other in a cycle",
    "M10": "a show block, or `show`, that changes the machine",
    "M11": "two lessons with the same id, or a lesson that course.toml does not list",
    "P01": "the setup, a block or a revealing command fails",
    "P02": "the untouched start already passes",
    "P03": "the solution does not pass",
    "P04": "what must not pass (`not_solution`) passes",
    "P05": "variables are drawn, yet all students have the same answers",
    "P06": "a `wrong` answer is the right one",
    "P07": "a text cannot be rendered: an expression in it fails",
    "P08": "it takes too much time, or too many events",
    "P09": "an order that the journal does not have, or a distractor that did happen",
    "P10": "a planted bug that cannot be found: nothing breaks, or nothing that can be named",
    "P11": "the explanation begins with another number than the right answer",
    "T01": "a translation of a text that the lesson does not have",
    "T02": "a translation that cannot be read",
    "W01": "a text is not translated",
    "W02": "a translation is older than the text it translates",
    "W03": "a graded step without hints",
    "W04": "the right answer of a step is the same for all students",
    "W05": "two `wrong` answers are the same number",
    "W06": "an exam with a step that starts from an earlier solution: packing must leave that "
    "readable",
    "W07": "a word is locked, and another one that prints the same is not",
}

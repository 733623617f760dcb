"""What can be done wrong in a lesson, and what to do about it, by language.

A mistake is raised in English and translated by whoever knows the language (`guide`).
"""

from __future__ import annotations

from kemu.errors import UsageError
from kemu.lessons.taking.messages import Messages, said_in

MISTAKES: dict[str, dict[str, tuple[str, str]]] = {
    "en": {
        "it_is_over": (
            "lesson: it is over",
            "lesson leave, or lesson step 1",
        ),
        "unknown_word": (
            "lesson: unknown lesson command '{word}'",
            "the commands are {words}",
        ),
        "while_playing": (
            "{word}: not during free play",
            "return goes back to the step",
        ),
        "not_done": (
            "next: step {id} is not done",
            "check, hint, or skip",
        ),
        "first_step": (
            "previous: this is the first step",
            "task shows the question",
        ),
        "no_step": (
            "step: no step '{step}'",
            "the steps are 1 to {count}",
        ),
        "comes_first": (
            "step: {id} comes first",
            "task shows it; skip shows its solution",
        ),
        "before_start": (
            "check: #{now} is before this step, which starts at #{given}",
            "goto end, or reset",
        ),
        "inside_command": (
            "check: this moment is inside a command",
            "goto end, or go to where a command ends",
        ),
        "exam_hint": (
            "hint: hints are disabled in an exam",
            "next goes on",
        ),
        "exam_skip": (
            "skip: solutions are disabled in an exam",
            "next goes on",
        ),
        "play_commit": (
            "play: commit first",
            "answer ...; then you may play",
        ),
        "not_playing": (
            "return: you are not playing",
            "play continues on a copy",
        ),
        "takes_no_answer": (
            "answer: this step does not take an answer",
            "{how}",
        ),
        "answered_already": (
            "answer: this step is done",
            "task goes on; reset starts it again",
        ),
        "which_answer": (
            "{word}: about which answer?",
            "answer VALUE comes first",
        ),
        "lesson_fails": (
            "lesson: line {line}: {text}",
            "{hint}",
        ),
        "report_it": (
            "problem writes a report for the author",
            "",
        ),
        "not_a_number": (
            "answer: expected a number, got '{said}'",
            "in any base: 4096, 0x1000, 4_096, 1p",
        ),
        "a_name": (
            "answer: '{said}' is a name",
            "an answer is a number that you know, not a question to the machine",
        ),
        "no_value": (
            "answer: expected a value",
            "answer 7",
        ),
        "yes_or_no": (
            "answer: expected yes or no, got '{said}'",
            "answer yes",
        ),
        "not_expected": (
            "answer: '{said}' is not one of the expected words",
            "one of {words}",
        ),
        "no_values": (
            "answer: expected one or more values",
            "answer 3, 5",
        ),
        "not_letters": (
            "answer: expected letters from a to {last}, got '{said}'",
            "answer b, or answer a c",
        ),
        "not_letter": (
            "answer: expected a letter from a to {last}, got '{said}'",
            "answer b",
        ),
        "some_letters": (
            "answer: expected letters from a to {last}",
            "answer a c",
        ),
        "one_letter": (
            "answer: expected one letter from a to {last}",
            "answer b",
        ),
        "repeated": (
            "answer: a letter is repeated",
            "answer a c",
        ),
        "base": (
            "answer: is {said} decimal or hex?",
            "type 0x{said} for hex, or the same again for decimal",
        ),
        "denied_step": (
            "{name}: not available in this step",
            "task shows what is asked",
        ),
        "denied_lesson": (
            "{name}: not available in this lesson",
            "task shows what is asked",
        ),
        "locked": (
            "{name}: locked until you have answered",
            "answer ...; task shows the question",
        ),
        "moves_later": (
            "{name}: commit first; the machine moves after you have answered",
            "answer ...; looking is free",
        ),
        "commit_first": (
            "{name}: commit first",
            "answer ...; task shows the question",
        ),
        "nothing_to_undo": (
            "undo: you have changed nothing in this step",
            "what was done before it is given",
        ),
        "given": (
            "{name}: this step starts at #{given}; what comes before is given",
            "goto {given}, or reset",
        ),
        "no_mutant": (
            "mutant: {what} is not part of this step",
            "task shows what is asked",
        ),
        "host_files": (
            "{name}: not available in a lesson, because it uses files of this computer",
            "lesson leave ends the lesson",
        ),
        "host": (
            "{name}: not available in a lesson, because it uses this computer",
            "lesson leave ends the lesson",
        ),
        "outside": (
            "{name}: '{path}' is outside the lesson's folder",
            "a lesson may use files below {folder}/",
        ),
        "nested": (
            "lesson: not available inside a lesson",
            "lesson leave ends the lesson",
        ),
    },
    "zh-CN": {
        "it_is_over": (
            "lesson：这一课已经结束",
            "lesson leave，或 lesson step 1",
        ),
        "unknown_word": (
            "lesson：没有课程命令 '{word}'",
            "可用的有 {words}",
        ),
        "while_playing": (
            "{word}：自由尝试时不能使用",
            "return 回到这一步",
        ),
        "not_done": (
            "next：步骤 {id} 还没有完成",
            "check、hint 或 skip",
        ),
        "first_step": (
            "previous：这已经是第一步",
            "task 显示题目",
        ),
        "no_step": (
            "step：没有步骤 '{step}'",
            "步骤是 1 到 {count}",
        ),
        "comes_first": (
            "step：要先完成 {id}",
            "task 显示题目；skip 显示答案",
        ),
        "before_start": (
            "check：#{now} 在这一步之前，这一步从 #{given} 开始",
            "goto end，或 reset",
        ),
        "inside_command": (
            "check：当前时刻在一条命令的中间",
            "goto end，或到一条命令结束的地方",
        ),
        "exam_hint": (
            "hint：考试中没有提示",
            "next 进入下一步",
        ),
        "exam_skip": (
            "skip：考试中不显示答案",
            "next 进入下一步",
        ),
        "play_commit": (
            "play：先提交答案",
            "answer ...；之后可以自由尝试",
        ),
        "not_playing": (
            "return：现在不在自由尝试中",
            "play 在副本上自由尝试",
        ),
        "takes_no_answer": (
            "answer：这一步不需要答案",
            "{how}",
        ),
        "answered_already": (
            "answer：这一步已经完成",
            "task 进入下一步；reset 重新开始",
        ),
        "which_answer": (
            "{word}：针对哪个答案？",
            "先输入 answer 和你的答案",
        ),
        "lesson_fails": (
            "lesson：第 {line} 行：{text}",
            "{hint}",
        ),
        "report_it": (
            "problem 会写一份给作者的报告",
            "",
        ),
        "not_a_number": (
            "answer：应当是一个数，而不是 '{said}'",
            "任何进制都可以：4096、0x1000、4_096、1p",
        ),
        "a_name": (
            "answer：'{said}' 是一个名字",
            "答案应当是你知道的数，而不是让机器去算",
        ),
        "no_value": (
            "answer：缺少答案",
            "answer 7",
        ),
        "yes_or_no": (
            "answer：应当是 yes 或 no（是或否），而不是 '{said}'",
            "answer 是",
        ),
        "not_expected": (
            "answer：'{said}' 不在可选答案之中",
            "可选答案：{words}",
        ),
        "no_values": (
            "answer：缺少答案，可以是几个值",
            "answer 3, 5",
        ),
        "not_letters": (
            "answer：应当是 a 到 {last} 的字母，而不是 '{said}'",
            "answer b，或 answer a c",
        ),
        "not_letter": (
            "answer：应当是 a 到 {last} 的一个字母，而不是 '{said}'",
            "answer b",
        ),
        "some_letters": (
            "answer：应当是 a 到 {last} 的字母",
            "answer a c",
        ),
        "one_letter": (
            "answer：只能是 a 到 {last} 的一个字母",
            "answer b",
        ),
        "repeated": (
            "answer：有一个字母重复了",
            "answer a c",
        ),
        "base": (
            "answer：{said} 是十进制还是十六进制？",
            "十六进制请输入 0x{said}；十进制请再输入一次",
        ),
        "denied_step": (
            "{name}：这一步不能使用",
            "task 显示题目",
        ),
        "denied_lesson": (
            "{name}：这一课不能使用",
            "task 显示题目",
        ),
        "locked": (
            "{name}：回答之后才能使用",
            "answer ...；task 显示题目",
        ),
        "moves_later": (
            "{name}：先提交答案，之后机器才会动",
            "answer ...；查看类的命令随时可用",
        ),
        "commit_first": (
            "{name}：先提交答案",
            "answer ...；task 显示题目",
        ),
        "nothing_to_undo": (
            "undo：你在这一步还没有做任何改动",
            "之前的操作是给定的",
        ),
        "given": (
            "{name}：这一步从 #{given} 开始，之前的操作是给定的",
            "goto {given}，或 reset",
        ),
        "no_mutant": (
            "mutant：这一步不能使用 {what}",
            "task 显示题目",
        ),
        "host_files": (
            "{name}：课程中不能使用，因为它会访问这台计算机上的文件",
            "lesson leave 结束课程",
        ),
        "host": (
            "{name}：课程中不能使用，因为它会访问这台计算机",
            "lesson leave 结束课程",
        ),
        "outside": (
            "{name}：'{path}' 不在课程的文件夹里",
            "课程只能使用 {folder}/ 下的文件",
        ),
        "nested": (
            "lesson：课程之中不能再开始课程",
            "lesson leave 结束课程",
        ),
    },
}
"""What is wrong and what to do about it, by language and key."""


class Mistake(UsageError):
    """A mistake made in a lesson: `key` of MISTAKES, or a sentence of `own` whose hint has the same
    key with `_hint`.  It is in English until it is `translated`."""

    def __init__(
        self, key: str, *, about: str = "", own: Messages | None = None, **values: object
    ) -> None:
        self.key = key
        self.own = own
        self.values = values
        what, hint = self._told("en")
        super().__init__(what, hint=hint, about=about)

    def _told(self, language: str) -> tuple[str, str]:
        if self.own is not None:
            keys = (self.key, f"{self.key}_hint")
            what, hint = (said_in(self.own, language, key, **self.values) for key in keys)
            return what, hint
        table = MISTAKES.get(language, {})
        what, hint = table.get(self.key) or MISTAKES["en"][self.key]
        return what.format(**self.values), hint.format(**self.values)

    def translated(self, language: str) -> Mistake:
        """The same mistake, told in the language."""
        made = Mistake(self.key, about=self.about, own=self.own, **self.values)
        made.what, made.hint = self._told(language)
        made.args, made.index = (made.what,), self.index
        made.text, made.column, made.length = self.text, self.column, self.length
        return made

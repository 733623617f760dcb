"""What the engine says in a lesson, by language; in English where a language lacks a sentence.

Sentences of one kind of step are in its class (`kinds/`).
"""

from __future__ import annotations

from collections.abc import Mapping

Messages = Mapping[str, Mapping[str, str]]
"""Sentences by language and key."""

MESSAGES: dict[str, dict[str, str]] = {
    "en": {
        "step": "Step {number} of {count}: {title}",
        "points": "{points} points",
        "point": "1 point",
        "words": "one of: {words}",
        "right": "{was}. Yes.",
        "wrong_predict": "You said {said}; it was {was}.",
        "wrong": "You said {said}; that is not it.",
        "look": "Compare the two; calls and diff show what happened.",
        "again": "Try again, or type hint.",
        "last": "That was the last attempt.",
        "offer": "hint shows where to look.",
        "sure_wrong": "You were sure: a surprise is worth a second look.",
        "goes_on": "Look around as long as you like; task goes to the next step.",
        "done": "Step {id} is done.",
        "done_already": "This step is done; task goes to the next one.",
        "not_yet": "Not yet:",
        "spoiled": "Event #{event} spoiled it: {what}. undo takes back the last command; reset "
        "returns to"
        " the start of the step.",
        "noted": "Noted: {said}",
        "noted_state": "Noted, as the machine is now.",
        "how_sure": "Noted: {said}. How sure are you? Type sure, fairly or guess (or another "
        "answer). It"
        " does not affect your points; it is kept with your answer, so that you can see where"
        " you were sure and wrong.",
        "other_machine": "This step starts on a fresh machine, at #{event}, without what was done "
        "before.",
        "goes_back": "This step starts at #{event}, where the lesson left the machine; your own "
        "changes are"
        " not in it.",
        "to_author": "Nothing has been sent. Copy these lines to the person who gave you the "
        "lesson.",
        "your_words": "(in your own words, for example: problem the question has two answers)",
        "the_end": "the end",
        "no_hints": "No more hints; skip shows the solution.",
        "hint": "({number} of {count}) {text}",
        "shown": "The solution:",
        "shown_value": "It is {was}.",
        "not_shown": "The solutions are not in this file.",
        "reset": "The step starts again.",
        "first_counts": "Your first prediction is still the one that counts.",
        "play": "Free play on a copy: nothing here counts. return goes back.",
        "return": "Back in the step, as you left it.",
        "left": "You left {title} at step {number} of {count}; lesson start {id} continues there.",
        "over": "{title}: {points} of {most} points.",
        "next": "Next: lesson start {id}",
        "reached": "{points} of {most} points.",
        "was_done": "You have done this step before; lesson next goes on.",
        "why": "To think about: {text}",
        "near": "Almost: the command is right. Check again: {names}",
        "requires": "This lesson builds on {ids}.",
        "stale": "The lesson has changed since you started it; what you have done still counts.",
        "not_kept": "progress is not saved: {path}: {reason}",
        "not_read": "progress cannot be read: {path}: {reason}",
        "is": "{left} is {has}; wanted: {comparison} {wanted}",
        "which_is": "{right}, which is {wants}",
        "is_false": "{text} is false",
        "equal": "equal to",
        "different": "different from",
        "less": "less than",
        "at_most": "at most",
        "more": "more than",
        "at_least": "at least",
    },
    "zh-CN": {
        "step": "第 {number} 步（共 {count} 步）：{title}",
        "points": "{points} 分",
        "point": "1 分",
        "words": "可选答案：{words}",
        "right": "{was}。正确。",
        "wrong_predict": "你的预测是 {said}，实际是 {was}。",
        "wrong": "你的答案是 {said}，不正确。",
        "look": "对比这两个值；calls 和 diff 会显示发生了什么。",
        "again": "再试一次，或输入 hint 查看提示。",
        "last": "这是最后一次机会。",
        "offer": "输入 hint 可以知道该看哪里。",
        "sure_wrong": "你刚才很确定：出乎意料的地方值得再看一遍。",
        "goes_on": "可以继续观察；输入 task 进入下一步。",
        "done": "步骤 {id} 完成。",
        "done_already": "这一步已经完成；输入 task 进入下一步。",
        "not_yet": "还没有达到：",
        "spoiled": "事件 #{event} 破坏了条件：{what}。undo 撤销上一条命令，reset 回到这一步的起点。",
        "noted": "已记录：{said}",
        "noted_state": "已按机器当前的状态记录。",
        "how_sure": "已记录：{said}。你有多确定？输入 sure（确定）、fairly（大概）或 guess（猜），也可以换"
        "一个答案。这不影响得分，只和答案一起保存，让你日后看到自己在哪里很确定却错了。",
        "other_machine": "这一步从一台新的机器开始（#{event}），不包含之前所做的操作。",
        "goes_back": "这一步从课程留下的状态开始（#{event}），不包含你自己另外做的改动。",
        "to_author": "没有发送任何内容。请把这几行复制给提供课程的人。",
        "your_words": "（请用自己的话说明，例如：problem 这道题有两个答案）",
        "the_end": "课程末尾",
        "no_hints": "没有更多提示了；输入 skip 查看答案。",
        "hint": "（{number}/{count}）{text}",
        "shown": "答案：",
        "shown_value": "答案是 {was}。",
        "not_shown": "这个文件里没有答案。",
        "reset": "这一步重新开始。",
        "first_counts": "计分的仍是你的第一次预测。",
        "play": "在副本上自由尝试，这里的操作都不计分。输入 return 返回。",
        "return": "回到这一步，状态与离开时相同。",
        "left": "你离开了《{title}》，停在第 {number} 步（共 {count} 步）；输入 lesson start {id} 从这"
        "里继续。",
        "over": "《{title}》：得 {points} 分，满分 {most} 分。",
        "next": "下一课：lesson start {id}",
        "reached": "得 {points} 分（满分 {most} 分）。",
        "was_done": "这一步以前已经完成；输入 lesson next 进入下一步。",
        "why": "想一想：{text}",
        "near": "差一点：命令是对的，请再检查：{names}",
        "requires": "学习这一课之前，应先完成 {ids}。",
        "stale": "这一课在你开始之后有改动；你已经完成的部分仍然有效。",
        "not_kept": "无法保存进度：{path}：{reason}",
        "not_read": "无法读取进度：{path}：{reason}",
        "is": "{left} 现在是 {has}；应当{comparison} {wanted}",
        "which_is": "{right}（即 {wants}）",
        "is_false": "{text} 不成立",
        "equal": "等于",
        "different": "不等于",
        "less": "小于",
        "at_most": "不大于",
        "more": "大于",
        "at_least": "不小于",
    },
}
"""Sentences by language and key."""


def say(language: str, key: str, **values: object) -> str:
    """The sentence of the engine in the language."""
    return said_in({}, language, key, **values)


def said_in(own: Messages, language: str, key: str, **values: object) -> str:
    """A sentence of `own`, else of the engine; in English where the language does not have it."""
    for name in (language, "en"):
        for table in (own, MESSAGES):
            if key in table.get(name, {}):
                return table[name][key].format(**values)
    raise KeyError(key)

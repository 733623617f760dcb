"""What the engine itself says in a lesson, by language.  A missing sentence of a language is said
in English."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: dict[str, dict[str, str]] = {
    "en": {
        "step": "Step {number} of {count}: {title}",
        "points": "{points} points",
        "point": "1 point",
        "words": "one of: {words}",
        "right": "{was}. Yes.",
        "wrong_predict": "You said {said}, it was {was}.",
        "wrong": "You said {said}; it is not that.",
        "look": "Compare them; calls and diff show what happened.",
        "again": "Try again, or hint.",
        "last": "That was the last try.",
        "offer": "hint shows where to look.",
        "sure_wrong": "You were sure: a surprise is worth a second look.",
        "goes_on": "Look around as long as you like; type task for the next step.",
        "done": "Step {id} is done.",
        "done_already": "This step is done; type task for the next one.",
        "not_yet": "Not there yet:",
        "spoiled": "Event #{event} spoiled it: {what}. undo takes the last command back, reset "
        "brings the step's start back.",
        "noted": "Noted: {said}",
        "noted_state": "Noted, as the machine stands now.",
        "how_sure": "{said}, noted. How sure are you? Type sure, fairly or guess (or another "
        "answer). It costs no points; it is "
        "kept beside your answer, so that you see where you were sure and wrong.",
        "other_machine": "This step starts on a fresh machine, at #{event}: what was done before "
        "is not in it.",
        "goes_back": "This step starts at #{event}, as the lesson left the machine: what you did "
        "besides is not in it.",
        "to_author": "Nothing has been sent. Copy these lines to whoever gave you the lesson.",
        "no_hints": "No more hints; skip shows the solution.",
        "hint": "({number} of {count}) {text}",
        "shown": "The solution:",
        "shown_value": "It is {was}.",
        "not_shown": "The solutions are not in this file.",
        "reset": "The step begins again.",
        "first_counts": "Your first prediction stays the one that counts.",
        "play": "Free play on a copy: nothing here counts. return goes back.",
        "return": "Back in the step, as you left it.",
        "left": "You left {title} at step {number} of {count}; lesson start {id} goes on there.",
        "over": "{title}: {points} of {most} points.",
        "next": "Next: lesson start {id}",
        "reached": "{points} of {most} points.",
        "was_done": "You have done this step before; lesson next goes on.",
        "why": "To think about: {text}",
        "near": "Nearly: it is the right command. Look once more at: {names}",
        "requires": "This lesson builds on {ids}.",
        "stale": "The lesson has changed since you began it; what you have done still counts.",
    },
    "zh-CN": {
        "step": "第 {number} 步，共 {count} 步：{title}",
        "points": "{points} 分",
        "point": "1 分",
        "words": "可选：{words}",
        "right": "{was}。对。",
        "wrong_predict": "你的预测是 {said}，实际是 {was}。",
        "wrong": "你的答案是 {said}，不对。",
        "look": "对比这两个值；calls 和 diff 显示发生了什么。",
        "again": "再试一次，或者用 hint。",
        "last": "这是最后一次机会。",
        "offer": "hint 告诉你该看哪里。",
        "sure_wrong": "你刚才很确定：出乎意料的地方值得再看一遍。",
        "goes_on": "可以继续观察；输入 task 进入下一步。",
        "done": "{id} 这一步完成了。",
        "done_already": "这一步已经完成；输入 task 进入下一步。",
        "not_yet": "还没有达到：",
        "spoiled": "事件 #{event} 破坏了条件：{what}。undo 撤销上一条命令，reset 回到这一步的起点。",
        "noted": "已记录：{said}",
        "noted_state": "已按机器现在的状态记录。",
        "how_sure": "{said}，已记录。你有多确定？输入 sure（确定）、fairly（大概）或 guess（猜）；也可以换一个答案。"
        "不影响得分，只和答案一起保存，好让你看到哪里很确定却错了。",
        "other_machine": "这一步从一台新的机器开始，位于 #{event}：之前做的不在其中。",
        "goes_back": "这一步从课程留下的状态 #{event} 开始：你另外做的不在其中。",
        "to_author": "没有发送任何内容。请把这几行复制给提供课程的人。",
        "no_hints": "没有更多提示了；skip 显示答案。",
        "hint": "（{number}/{count}）{text}",
        "shown": "答案：",
        "shown_value": "是 {was}。",
        "not_shown": "这个文件里没有答案。",
        "reset": "这一步重新开始。",
        "first_counts": "计分的仍是你的第一次预测。",
        "play": "在副本上随意尝试，什么都不计。return 返回。",
        "return": "回到这一步，状态和离开时一样。",
        "left": "你离开了《{title}》，停在第 {number} 步，共 {count} 步；lesson start {id} 从这里继续。",
        "over": "《{title}》：{points} 分，满分 {most} 分。",
        "next": "下一课：lesson start {id}",
        "reached": "{points} 分（满分 {most} 分）。",
        "was_done": "这一步以前已经完成；lesson next 进入下一步。",
        "why": "想一想：{text}",
        "near": "差一点：命令是对的，请再看一遍：{names}",
        "requires": "这一课以 {ids} 为基础。",
        "stale": "这一课在你开始之后改过；已经完成的仍然有效。",
    },
}


Messages = Mapping[str, Mapping[str, str]]
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

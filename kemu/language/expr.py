"""The expression language of arguments, breakpoints and lessons. It is compiled, never passed to
`eval`.

    child.heap + 2*4096 == pfn(child, 0x10000) << 12 and not shared(app, child)

An expression is compiled to the steps of a small stack machine, so that `watch` can run it at every
event, and a long chain of operators needs no recursion:

    1 + 2*3        push 1 | push 2 | push 3 | * | +
    a and b        a | unless-true skip to the end, keeping a | b

Operators, the weakest first: `or`, `and`, `not`, comparisons, `|`, `^`, `&`, shifts, `+ -`, `* / %`
and unary `- + ~`. Values are integers (at most 128 bits), texts, true/false, `none` (nothing is
mapped there) and tasks. `/` rounds down.

The meaning of a name comes from a `Names`, which answers an unknown one with an error that suggests
another.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from kemu.errors import UsageError
from kemu.language.lexer import WIDEST, Source, Word, words

DEEPEST = 60
"""How deeply parentheses, calls and signs may be nested."""


class TaskValue(NamedTuple):
    """A task as a value: what a bare task name means."""

    pid: int
    name: str


Value = int | str | bool | TaskValue | None


class Names(Protocol):
    """What gives names a meaning. Each method raises a UsageError without a place for a name that
    it does not know."""

    def name(self, dotted: str) -> Value:
        """The value of `child`, `child.heap`, or a mark."""

    def variable(self, text: str) -> Value:
        """The value of `$pid`, `$last`, `$1`."""

    def call(self, function: str, arguments: Sequence[Value]) -> Value:
        """The result of a function."""


class Step(NamedTuple):
    """One step of the stack machine; `column` and `length` say where an error points."""

    op: str
    argument: int | str | bool | None
    column: int
    length: int
    arity: int = 0


class Expression(NamedTuple):
    """A compiled expression, which may be evaluated any number of times, against any state.
    `form`: see `formats`."""

    source: Source
    steps: tuple[Step, ...]
    form: str = ""

    def evaluate(self, names: Names) -> Value:
        """The value at this moment. Raises UsageError with the place for an unknown name or a wrong
        type."""
        return _Machine(self, names).run()


def compile_expression(source: Source) -> Expression:
    """Read `source`; raises UsageError with the place."""
    compiler = _Compiler(source)
    compiler.expression(0)
    last = compiler.word
    if last.kind != "end":
        raise source.error(
            "expression: unexpected text after its end",
            last.column,
            last.length,
            "is an operator missing?",
        )
    return Expression(source, tuple(compiler.steps))


def compile_text(text: str) -> Expression:
    """`compile_expression` of a text that is not part of a line."""
    return compile_expression(Source(text, 0, len(text)))


_STRENGTH = {
    "or": 1, "and": 2,
    "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4,
    "|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_NOT, _COMPARISON, _SIGN = 3, 4, 11
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "none": None}


class _Compiler:
    """Precedence climbing: one method for all binary operators."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.steps: list[Step] = []
        self.words = words(source)
        self.at = 0
        self.depth = 0

    @property
    def word(self) -> Word:
        return self.words[self.at]

    def take(self) -> Word:
        word = self.word
        self.at += word.kind != "end"
        return word

    def emit(self, op: str, argument: int | str | bool | None, word: Word, arity: int = 0) -> None:
        self.steps.append(Step(op, argument, word.column, word.length, arity))

    def expression(self, weakest: int) -> None:
        """Operands joined by operators that bind at least as strongly as `weakest`."""
        self.deeper()
        self.operand()
        while (strength := self.strength()) >= max(weakest, 1):
            word = self.take()
            if word.value in ("and", "or"):
                self.short_circuit(word, strength)
                continue
            self.expression(strength + 1)
            self.emit("binary", str(word.value), word)
            if strength == _COMPARISON and self.strength() == _COMPARISON:
                raise self.error(
                    "expression: comparisons cannot be chained", self.word, "join two with 'and'"
                )
        self.depth -= 1

    def strength(self) -> int:
        word = self.word
        return _STRENGTH.get(str(word.value), 0) if word.kind in ("operator", "keyword") else 0

    def short_circuit(self, word: Word, strength: int) -> None:
        hole = len(self.steps)
        self.emit(str(word.value), 0, word)
        self.expression(strength + 1)
        self.emit("truth", None, word)
        self.steps[hole] = self.steps[hole]._replace(argument=len(self.steps))

    def operand(self) -> None:
        word = self.take()
        if word.kind == "keyword" and word.value == "not":
            self.expression(_NOT)
            self.emit("unary", "not", word)
        elif word.kind == "operator" and word.value in ("-", "+", "~"):
            self.expression(_SIGN)
            self.emit("unary", str(word.value), word)
        elif word.kind == "operator" and word.value == "(":
            self.expression(0)
            self.closing(word)
        else:
            self.atom(word)

    def atom(self, word: Word) -> None:
        if word.kind in ("number", "string"):
            self.emit("push", word.value, word)
        elif word.kind == "variable":
            self.emit("variable", word.value, word)
        elif word.kind == "name":
            self.name(word)
        else:
            where = "at its end" if word.kind == "end" else f"before '{word.value}'"
            raise self.error(
                f"expression: expected a value {where}",
                word,
                "write a number, a name or a function",
            )

    def name(self, word: Word) -> None:
        if self.word.kind == "operator" and self.word.value == "(":
            self.call(word)
        elif word.value in _CONSTANTS:
            self.emit("push", _CONSTANTS[str(word.value)], word)
        else:
            self.emit("name", word.value, word)

    def call(self, word: Word) -> None:
        opening = self.take()
        count = 0
        while not (self.word.kind == "operator" and self.word.value == ")"):
            self.expression(0)
            count += 1
            if not (self.word.kind == "operator" and self.word.value == ","):
                break
            self.take()
        self.closing(opening)
        self.emit("call", word.value, word, count)

    def closing(self, opening: Word) -> None:
        word = self.take()
        if word.value != ")" or word.kind != "operator":
            raise self.error("expression: this '(' is never closed", opening, "add ')'")

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(
                f"expression: nested more than {DEEPEST} deep",
                self.word,
                "split it into smaller ones",
            )

    def error(self, what: str, word: Word, hint: str) -> UsageError:
        return self.source.error(what, word.column, word.length, hint)


class _Machine:
    """Runs the steps of one expression against one set of names."""

    def __init__(self, expression: Expression, names: Names) -> None:
        self.expression = expression
        self.names = names
        self.stack: list[Value] = []

    def run(self) -> Value:
        steps = self.expression.steps
        at = 0
        while at < len(steps):
            at = self.step(steps[at], at)
        return self.stack.pop()

    def step(self, step: Step, at: int) -> int:
        """Do one step; the index of the next."""
        if step.op == "push":
            self.stack.append(step.argument)
        elif step.op in ("and", "or"):
            decided = self.truth(step) is (step.op == "or")
            self.stack.append(step.op == "or") if decided else None
            return int(step.argument or 0) if decided else at + 1
        elif step.op == "truth":
            self.stack.append(self.truth(step))
        else:
            self.stack.append(self.value(step))
        return at + 1

    def truth(self, step: Step) -> bool:
        """Pop the top of the stack as true or false."""
        value = self.stack.pop()
        if isinstance(value, (str, TaskValue)):
            raise self.error(
                step,
                f"expression: {describe(value)} is neither true nor false",
                "compare it with ==",
            )
        return bool(value)

    def value(self, step: Step) -> Value:
        argument = str(step.argument)
        if step.op == "binary":
            right, left = self.stack.pop(), self.stack.pop()
            return self.binary(step, argument, left, right)
        if step.op == "unary":
            return not self.truth(step) if argument == "not" else self.unary(step, argument)
        return self.ask(step, argument)

    def ask(self, step: Step, argument: str) -> Value:
        """What `names` answers; its errors get their place in this expression."""
        cut = len(self.stack) - step.arity
        arguments, self.stack[cut:] = self.stack[cut:], []
        try:
            if step.op == "name":
                return self.names.name(argument)
            if step.op == "variable":
                return self.names.variable(argument)
            return self.names.call(argument, arguments)
        except UsageError as error:
            raise self.error(step, error.what, error.hint) from error

    def unary(self, step: Step, op: str) -> Value:
        value = self.number(step, self.stack.pop())
        return {"-": -value, "+": value, "~": ~value}[op]

    def binary(self, step: Step, op: str, left: Value, right: Value) -> Value:
        if op in ("==", "!="):
            return (self.same(step, left, right)) is (op == "==")
        if op in _COMPARISONS:
            return _COMPARISONS[op](self.number(step, left), self.number(step, right))
        return self.arithmetic(step, op, self.number(step, left), self.number(step, right))

    def same(self, step: Step, left: Value, right: Value) -> bool:
        if isinstance(left, TaskValue) and isinstance(right, TaskValue):
            return left.pid == right.pid
        if None not in (left, right) and isinstance(left, int) is not isinstance(right, int):
            what = f"expression: {describe(left)} and {describe(right)} cannot be compared"
            raise self.error(step, what, "for a task write NAME.pid")
        return left == right

    def arithmetic(self, step: Step, op: str, left: int, right: int) -> int:
        if op in ("/", "%") and right == 0:
            raise self.error(step, "expression: division by zero", "the right side is 0")
        if op in ("<<", ">>") and not 0 <= right <= WIDEST:
            raise self.error(
                step, f"expression: a shift by {_figure(right)}", f"shift by 0 to {WIDEST} bits"
            )
        result = _ARITHMETIC[op](left, right)
        if result.bit_length() > WIDEST:
            raise self.error(
                step, f"expression: the result passes {WIDEST} bits", "an address has 64"
            )
        return result

    def number(self, step: Step, value: Value) -> int:
        if isinstance(value, int):
            return int(value)
        hint = (
            "nothing is mapped there; compare with none"
            if value is None
            else "for a task write NAME.pid"
        )
        raise self.error(step, f"expression: {describe(value)} is not a number", hint)

    def error(self, step: Step, what: str, hint: str) -> UsageError:
        return self.expression.source.error(what, step.column, step.length, hint)


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv,
    "%": operator.mod, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip


def describe(value: Value) -> str:
    """The value for an error message."""
    if isinstance(value, TaskValue):
        return f"the task {value.name}"
    return f"the text '{value}'" if isinstance(value, str) else format_value(value)


def format_value(value: Value) -> str:
    """The value as the shell prints it: a number in both bases where they differ, `0x3000
    (12288)`."""
    if isinstance(value, TaskValue):
        return f"{value.name} (pid {value.pid})"
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, str) or -10 < value < 10:
        return str(value)
    return f"{value:#x} ({value})"


def _figure(number: int) -> str:
    return str(number) if number.bit_length() < 40 else "a very large number"

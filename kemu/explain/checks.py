"""Which line of the kernel made a call fail, and the reason that is written on it.

The call is run once more outside the journal, with the kernel's lines traced: the innermost
function whose `-errno` was handed up to the system call is the one that decided, and the last line
of it with a sentence (`sentences.py`) says why.

    sys_munmap > __vm_munmap > do_vmi_munmap          handed up -EINVAL
        return -EINVAL  #: the length is 0             the line that decided

The sentence is filled in when the line is reached, from the variables of its function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from kemu.abi.words import errno_name
from kemu.explain.advice import ADVICE
from kemu.explain.sentences import Filler, Sentence, sentences
from kemu.kernel.include.linkage import SYSCALLS
from kemu.readings import Decision
from kemu.trace.frames import FUNCTIONS

if TYPE_CHECKING:
    from kemu.experiment.session import Session

ASKED_FOR = {
    "open_interpreter": "the program asks for a loader (PT_INTERP): ",
    "load_script": "the script asks for an interpreter (#!): ",
}
"""What another file than the one that the user named is, by the function that opens it."""

TraceFunction = Callable[[FrameType, str, Any], Any]
NOTHING = Sentence("")


def decision(
    session: Session, event: int, call: str, errno: int, perform: Callable[[], object]
) -> Decision | None:
    """What decided that the system call gave the errno: `perform` makes the call again in the state
    after `event`. None without a journal, which is needed to go back there."""
    if not session.kernel.recording:
        return None
    ear = _Ear(SYSCALLS[call].__name__, errno, frozenset(session.kernel.bodies.values()))
    with session.beside(event):
        kept = sys.gettrace()
        sys.settrace(ear.on_call)
        try:
            perform()
        finally:
            sys.settrace(kept)
    return ear.decision()


class _Ear:
    """Traces one system call until it returns `-errno`. `planted`: functions that were made
    wrong; their lines are not those of the file."""

    def __init__(self, call: str, errno: int, planted: frozenset[CodeType]) -> None:
        self.call = call
        self.planted = planted
        self.returned = -errno
        self.done = False
        self.hits: dict[FrameType, Sentence] = {}
        """The last sentence of a frame, filled in."""
        self.said: dict[tuple[FrameType, str], Sentence] = {}
        """The last sentence of what a frame called, at any depth, by the frame and the name of a
        function on the way."""
        self.chain: list[tuple[int, CodeType, int, Sentence]] = []
        """Depth, function, line and sentence of the frames that hand the errno up, the innermost
        first."""

    def on_call(self, frame: FrameType, _event: str, _value: Any) -> TraceFunction | None:
        """Trace a function of the kernel, and its lines if one of them has a sentence."""
        if self.done or not frame.f_globals.get("__name__", "").startswith("kemu.kernel."):
            return None
        frame.f_trace_lines = bool(self._sentences(frame))
        return self.on_event

    def on_event(self, frame: FrameType, event: str, value: Any) -> TraceFunction:
        """Note the sentence of the next line, or of the one that has just returned, since a
        function that it called may say more; and note a function that returns the errno (alone, or
        in a tuple)."""
        sentence = self._sentences(frame).get(frame.f_lineno)
        if sentence is not None and event in ("line", "return"):
            self._say(frame, sentence)
        if event == "return" and not self.done:
            values = value if isinstance(value, tuple) else (value,)
            if any(type(one) is int and one == self.returned for one in values):
                self._hand_up(frame)
        return self.on_event

    def _sentences(self, frame: FrameType) -> Mapping[int, Sentence]:
        code = frame.f_code
        return {} if code in self.planted else sentences(code.co_filename)

    def _say(self, frame: FrameType, sentence: Sentence) -> None:
        names = {**frame.f_globals, **frame.f_locals}
        filler = Filler(names, lambda callee: self.said.get((frame, callee), NOTHING))
        self.hits[frame] = filled = filler.filled(sentence)
        called: list[str] = []
        inner, caller = frame, frame.f_back
        while caller is not None and filled.why:
            called.append(inner.f_code.co_name)
            self.said.update({(caller, name): filled for name in called})
            inner, caller = caller, caller.f_back

    def _hand_up(self, frame: FrameType) -> None:
        depth, outer = 0, frame.f_back
        while outer is not None:
            depth, outer = depth + 1, outer.f_back
        if self.chain and self.chain[-1][0] != depth + 1:
            self.chain.clear()
        sentence = self.hits.get(frame, NOTHING)
        self.chain.append((depth, frame.f_code, frame.f_lineno, sentence))
        self.done = frame.f_code.co_name == self.call

    def decision(self) -> Decision | None:
        """The function that decided, and its reason; None if no kernel function returned the
        errno."""
        if not self.chain:
            return None
        _, code, line, sentence = self.chain[0]
        names = [code.co_name for _, code, _, _ in reversed(self.chain)]
        _, _, inside = code.co_filename.rpartition("/kemu/")
        paths = {known.name: known.path for known in FUNCTIONS}
        linux = next((name for name in reversed(names) if name in paths), "")
        whose = next((words for name, words in ASKED_FOR.items() if name in names), "")
        return Decision(
            function=code.co_name,
            path=paths.get(linux, ""),
            place=f"kemu/{inside}:{line}",
            calls=tuple(name for at, name in enumerate(names) if names[at - 1 : at] != [name]),
            why=whose + sentence.why if sentence.why else "",
            instead=sentence.instead or ADVICE.get(errno_name(-self.returned), ""),
        )

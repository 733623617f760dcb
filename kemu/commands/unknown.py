"""What to say about a word that is not a command: another word that means it here, a thing of Linux
that kemu does not model, or the command that is most like it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from kemu.abi.calls import BY_NAME
from kemu.abi.linux_calls import LINUX_CALLS
from kemu.errors import UsageError
from kemu.language.suggest import closest

INSTEAD = {
    "malloc": "brk or mmap: malloc(3) is a library function that calls them",
    "calloc": "brk or mmap: calloc(3) is a library function that calls them",
    "realloc": "brk or mremap: realloc(3) is a library function that calls them",
    "sbrk": "brk",
    "cont": "continue",
    "del": "delete",
    "disp": "display",
    "posix_spawn": "spawn, or fork and exec",
    "execl": "exec",
    "execlp": "exec",
    "execv": "exec",
    "execvp": "exec",
    "execveat": "exec",
    "waitpid": "wait",
    "waitid": "wait",
    "_exit": "exit",
    "exit_thread": "exit",
    "raise": "kill",
    "abort": "kill TASK ABRT",
    "rt_sigaction": "signal",
    "sched_setaffinity": "setcpu",
    "sched_yield": "schedule",
    "sched": "schedule",
    "share": "graph sharing TASK TASK, or rmap PFN",
    "shared": "graph sharing TASK TASK, or rmap PFN",
    "sharing": "graph sharing TASK TASK",
    "who": "rmap PFN (what maps a frame), ps (the tasks)",
    "top": "ps",
    "pstree": "tree",
    "pmap": "smaps",
    "xxd": "dump, or x/8x ADDRESS",
    "telescope": "x/8xg ADDRESS, walk ADDRESS",
    "up": "bt (the open functions), list FUNCTION",
    "down": "bt (the open functions), list FUNCTION",
    "start": "spawn NAME",
    "attach": "use TASK",
    "disas": "list FUNCTION",
    "disassemble": "list FUNCTION",
    "thread": "use TASK, ps",
    "threads": "ps",
    "registers": "regs",
    "backward": "back",
    "redo": "continue (after undo)",
    "clear": "Ctrl-L (the screen), delete (breakpoints)",
    "cls": "Ctrl-L",
    "man": "help",
    "cat": "read_fd, or ! cat FILE for a file of the host",
    "time": "help time, cost",
    "exit_kemu": "quit",
    "bye": "quit",
    "next_lesson": "lesson start NUMBER",
    "svg": "graph KIND -o FILE.svg",
    "picture": "graph KIND",
    "show_pte": "walk",
    "pagetable": "pt, graph tables",
    "pagetables": "pt, graph tables",
    "fault": "catch fault, write TASK ADDRESS DATA",
    "oom": "catch oom, set fail alloc N",
}
"""Words that people try, by what means the same here."""

OUTSIDE = {
    "doctor": "what this computer offers, and where kemu keeps its files",
    "demo": "fork and copy-on-write in a minute, without typing",
    "grade": "grade what a class has handed in",
}
"""Commands of the host's shell, such as kemu doctor, and what they do."""

NOT_MODELLED = {
    "swap": "swap space",
    "thp": "transparent huge pages",
    "hugepages": "huge pages",
    "ksm": "merging of equal pages",
    "numa": "memory nodes with policies",
    "cgroup": "control groups",
    "cgroups": "control groups",
    "kswapd": "background reclaim",
    "zswap": "swap space",
    "namespace": "namespaces",
    "namespaces": "namespaces",
    "container": "control groups and namespaces",
    "docker": "control groups and namespaces",
    "users": "users other than root",
    "su": "users other than root",
    "sudo": "users other than root",
    "chmod": "file modes",
    "chown": "file owners",
    "mount": "mounts: there is one small file system",
    "mutex": "locks of user code",
    "pthread": "threads of a library (clone makes one)",
    "pthread_create": "threads of a library (clone makes one)",
    "semaphore": "semaphores",
    "timer": "time",
    "sleep": "time",
    "epoll": "waiting for files",
    "nice": "a scheduling policy",
    "cd": "directories",
    "mkdir": "directories",
    "rm": "removal of files",
    "gcc": "running of instructions: exec maps a program and does not run it",
    "step_instruction": "running of instructions: exec maps a program and does not run it",
    "stepi": "instructions: step goes to the next event of the kernel",
    "nexti": "instructions: next goes to the next event of this kernel function",
}
"""Other common words, by what kemu does not have."""

_C_CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")


def unknown(
    word: str, source: str, commands: Mapping[str, str], synopsis: Callable[[str], str]
) -> UsageError:
    """The complaint about a word that is not a command; `source` is the whole command, `commands`
    each word of a command with its name, `synopsis` tells one."""
    shown = f"no command '{word[:40]}'"
    call = next((name for name in _C_CALL.findall(source) if _command_for(name, commands)), None)
    if call is not None:
        command = _command_for(call, commands)
        return UsageError(
            f"{shown}: commands are words without parentheses and commas",
            hint=f"usage: {synopsis(command)} (see: help {command})",
        )
    base = word.strip("()").lower()
    command = _command_for(base, commands)
    if base in INSTEAD and base not in commands:
        return UsageError(shown, hint=f"here it is: {INSTEAD[base]}")
    if command and command != word:
        return UsageError(shown, hint=f"here it is: {command} (see: help {command})")
    if base in OUTSIDE:
        return UsageError(
            f"{shown}: it is one of the host's shell", hint=f"leave with quit, then: kemu {base}"
        )
    what = f"{base}(2) of Linux" if base in LINUX_CALLS else NOT_MODELLED.get(base)
    if what:
        return UsageError(
            f"{shown}: kemu does not model {what}",
            hint="docs/differences.md lists what is left out; help lists the commands",
        )
    guess = closest(word, commands)
    hint = f"did you mean '{guess}'?" if guess else "help lists the commands"
    return UsageError(shown, hint=hint)


def is_call(name: str) -> bool:
    """Whether C programs call a function of that name."""
    return name in LINUX_CALLS or name in INSTEAD


def _command_for(name: str, commands: Mapping[str, str]) -> str:
    """The command that makes the call or library function, or an empty text."""
    row = BY_NAME.get(name)
    if name not in commands and row is not None:
        return row.word or row.name
    other = INSTEAD.get(name, "").split(" ")[0].rstrip(":,")
    return commands.get(name) or commands.get(other, "")

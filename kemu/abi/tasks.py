"""Rows of the calls about tasks and signals."""

from __future__ import annotations

from kemu.abi.row import Arg, Call, Fuzz, flags
from kemu.abi.words import Words

MEMBARRIER_CMD_QUERY, MEMBARRIER_CMD_GLOBAL, MEMBARRIER_CMD_GLOBAL_EXPEDITED = 0, 1, 2
MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED = 4
MEMBARRIER_CMD_PRIVATE_EXPEDITED, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED = 8, 0x10
MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE = 0x20
MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE = 0x40
MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ = 0x80
MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ = 0x100
MEMBARRIER_CMD_GET_REGISTRATIONS = 0x200
MEMBARRIER_CMD_FLAG_CPU = 1
_MEMBARRIER = Words(
    "MEMBARRIER_CMD_",
    "query global global_expedited register_global_expedited private_expedited "
    "register_private_expedited private_expedited_sync_core "
    "register_private_expedited_sync_core private_expedited_rseq "
    "register_private_expedited_rseq get_registrations",
    globals(),
)

_START = "spawn app; mmap app 0x10000 1p rw; write app 0x10000 7; "
_NO_SIGNALS = "recorded programs send no signals"

CALLS = (
    Call(
        "fork",
        57,
        "doing",
        "copy a process; memory is shared until written",
        (
            _START + "fork app as kid",
            _START + "fork; ps",
        ),
        more="Returns the child's pid to the parent. A child without a name is PARENT.2, "
        "PARENT.3 ...",
        returns="pid",
        errnos="EAGAIN ENOMEM",
        op="fork",
        module="tasks",
    ),
    Call(
        "vfork",
        58,
        "doing",
        "make a child in the same address space; the parent waits",
        (
            _START + "vfork app as kid; ps",
            _START + "vfork app as kid; exit kid; ps",
        ),
        more="The parent is blocked until the child calls exec or exit.",
        returns="pid",
        errnos="EAGAIN ENOMEM",
        unreal="the parent would block, and with it the experiment",
        module="tasks",
    ),
    Call(
        "clone",
        56,
        "doing",
        "make a child that shares what the flags select",
        (
            _START + "clone app vm as twin",
            _START + "clone app vm fs files sighand thread as worker; ps",
        ),
        more="The flags of a thread are vm fs files sighand thread sysvsem. Combinations that "
        "Linux refuses give EINVAL.",
        returns="pid",
        errnos="EAGAIN EINVAL ENOMEM",
        op="clonevm",
        module="tasks",
    ),
    Call(
        "execve",
        59,
        "doing",
        "replace the program of a process",
        (
            "spawn app; exec app /missing",
            "spawn app; exec app '/missing' one 'two words'",
        ),
        more="PATH is a file inside kemu (see: load). The following words are the arguments; "
        "argv[0] is PATH as typed. The environment is HOME=/ TERM=linux.",
        word="exec",
        errnos=(
            "E2BIG EACCES EFAULT EINVAL EIO EISDIR ELIBBAD ELOOP ENOENT ENOEXEC ENOMEM ENOTDIR "
            "EPERM ETXTBSY"
        ),
        unreal="it would replace the process that makes the calls (see: kemu conform exec)",
        module="tasks",
    ),
    Call(
        "exit_group",
        231,
        "doing",
        "end a process",
        (
            "spawn app; fork as kid; exit kid 3; ps",
            "spawn app; exit app",
        ),
        more="It remains a zombie until its parent waits for it. To leave kemu, use quit or "
        "Ctrl-D.",
        word="exit",
        op="exit",
        module="tasks",
    ),
    Call(
        "wait4",
        61,
        "doing",
        "wait for a child and collect its status",
        (
            "spawn app; fork as kid; exit kid 3; wait app",
            "spawn app; fork as kid; wait app; exit kid; ps",
        ),
        more="Returns its pid and exit status. If no child has ended, the caller blocks until "
        "one does. for TASK waits for that child only; nohang returns at once.",
        word="wait",
        returns="pid",
        errnos="ECHILD EINTR EINVAL",
        module="tasks",
    ),
    Call(
        "kill",
        62,
        "doing",
        "send a signal",
        (
            "spawn app; fork as kid; kill kid",
            "spawn app; fork as kid; kill kid SEGV; wait app",
        ),
        more="TASK receives it; the sender is the current task, or the task after by. The "
        "default signal is TERM.",
        errnos="EINVAL EPERM ESRCH",
        unreal=_NO_SIGNALS,
        module="tasks",
    ),
    Call(
        "tgkill",
        234,
        "doing",
        "send a signal to one thread",
        (
            "spawn app; fork as kid; tgkill kid",
            "spawn app; fork as kid; tgkill kid SEGV by app; wait app",
        ),
        more="Like kill, but only TASK may take the signal, not another thread of its process.",
        errnos="EAGAIN EINVAL EPERM ESRCH",
        unreal=_NO_SIGNALS,
        module="tasks",
    ),
    Call(
        "sigaction",
        13,
        "doing",
        "set what a signal does to a process",
        (
            "spawn app; signal app SEGV handle; read app 0",
            "spawn app; signal TERM ignore; kill app TERM; ps",
        ),
        more="default: SEGV, BUS and most other signals kill the process. handle: the access "
        "fails and the process continues. ignore: the signal is discarded, but a fault still "
        "kills.",
        word="signal",
        errnos="EINVAL",
        module="tasks",
    ),
    Call(
        "membarrier",
        324,
        "doing",
        "order the memory accesses of all threads",
        (
            "spawn app; membarrier app query",
            "spawn app; membarrier app register_private_expedited; membarrier private_expedited",
        ),
        more="query returns a bit for each supported command. The private commands fail with "
        "EPERM without prior registration, which a child inherits and exec drops. kemu's CPUs "
        "reorder nothing, so there is never anything to wait for.",
        args=(
            Arg(
                "cmd",
                "choice",
                words=_MEMBARRIER,
                recorded={**_MEMBARRIER, "unknown": 3},
                what="a command such as query, or its number",
            ),
            flags(Words("MEMBARRIER_CMD_FLAG_", "cpu", globals()), draw=([], [], [], [], ["cpu"])),
            Arg("cpu_id", "number", 0, option=True, what="the number of a CPU", draw=(0, 1, 9)),
        ),
        returns="count",
        errnos="EINVAL EPERM",
        op="membarrier",
        fuzz=Fuzz(2, "others locks"),
    ),
)

"""Commands that compare with a real kernel: `conform` (with recordings) and `real` (with the
host's)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kemu.interrupts import Interrupted
from kemu.language import kinds
from kemu.language.spec import FREE, command, flags, some
from kemu.readings import Conformance, RealReading, RealRow

if TYPE_CHECKING:
    from kemu.conform.host import Meeting
    from kemu.conform.judge import Verdict
    from kemu.conform.steps import Step
    from kemu.conform.translate import Translation
    from kemu.experiment.session import Session


@command(
    "conform",
    arguments=(some("paths", kinds.HOST_PATH),),
    options=(flags("form", ("all",)),),
    effect=FREE,
    host=True,
    summary="compare recorded programs with the real kernel",
    more="Files or folders of programs that Linux ran: each is run on a machine of its own, and "
    "every step compared. Shows the first difference of each program, or every one with all. kemu "
    "conform --help lists what it can "
    "do outside the shell.",
    examples=("conform recorded.jsonl", "conform recorded.jsonl all"),
    linux="the kernel that made the recordings",
)
def conform(session: Session, paths: tuple[str, ...], form: tuple[str, ...]) -> Conformance:
    """Judge the programs. Raises UsageError for a file that is not one."""
    from kemu.conform.judge import judge_all, programs_below
    from kemu.front.cli.conform import conformance, rows_of

    programs = programs_below(paths)
    found: list[Verdict] = []
    try:
        found.extend(judge_all(programs, most=None if form else 1))
    except KeyboardInterrupt:
        raise Interrupted(f"{len(found)} of {len(programs)} programs compared") from None
    finally:
        session.kernel.activate()
    return conformance(found, tuple(row for verdict in found for row in rows_of(verdict)))


@command(
    "real",
    effect=FREE,
    host=True,
    summary="repeat the experiment on the host's kernel",
    more="The system calls and accesses up to this moment that can be expressed: at "
    "most eight processes of one "
    "family, in an address window of their own. Operations that cannot be repeated are listed. An "
    "access is repeated as one byte per page. Needs Linux on x86-64, no root.",
    examples=(
        "spawn app; mmap app 0x10000 2p rw; write app 0x10000 7; real",
        "spawn app; mmap app 0x10000 1p r; write app 0x10000 7; real",
    ),
    linux="this computer's kernel",
)
def real(session: Session) -> RealReading:
    """Run both and show them side by side. Raises HostUnavailable on any other host."""
    from kemu.conform.actions import translation_of
    from kemu.conform.host import meet
    from kemu.conform.hostworker import check_host
    from kemu.conform.program import parse_program

    check_host()
    translation = translation_of(session)
    try:
        program = parse_program(
            {"name": "experiment", "ops": [op for _, op in translation.ops]}, "experiment"
        )
        return reading_of(translation, meet(program))
    finally:
        session.kernel.activate()


def reading_of(translation: Translation, meeting: Meeting) -> RealReading:
    """The reading of what both sides did with the translated experiment."""
    import platform

    return RealReading(
        kernel=f"Linux {platform.release()}",
        rows=tuple(_rows(translation, meeting)),
        difference=str(meeting.difference).replace(": Linux ", ": host ", 1)
        if meeting.difference
        else "",
        unexpressed=tuple(translation.unexpressed),
        left_out=meeting.host.left_out,
        stopped=meeting.host.stopped,
    )


def _rows(translation: Translation, meeting: Meeting) -> list[RealRow]:
    rows = []
    for number, ((text, _), op) in enumerate(
        zip(translation.ops, meeting.program.ops, strict=True)
    ):
        host, mine = (
            _answer(translation, run.steps, number) for run in (meeting.host, meeting.kemu)
        )
        rows.append(
            RealRow(command=text, operation=str(op), host=host, kemu=mine, same=host == mine)
        )
    return rows


def _answer(translation: Translation, steps: tuple[Step, ...], number: int) -> str:
    """The result of the operation in a few words, with the experiment's addresses."""
    from kemu.conform.host import outcome

    if number >= len(steps):
        return "-"
    step = steps[number]
    res = dict(step["res"])
    if isinstance(res.get("ret"), dict) and res["ret"]["page"] != "outside":
        res["ret"] = hex(translation.address(res["ret"]["page"], res["ret"].get("off", 0)))
    if isinstance(res.get("addr"), list):
        res["addr"] = hex(translation.address(*res["addr"]))
    return outcome({**step, "res": res})

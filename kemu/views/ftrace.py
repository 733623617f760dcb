"""Calls as the kernel's own function_graph tracer writes them (Documentation/trace/ftrace.rst).

     0)               |  exc_page_fault() {
     0)   1.000 us    |    lock_vma_under_rcu();
     0)               |    /* pfn 0x112 _refcount 2 -> 3 */
     0) + 38.000 us   |  }

There is no clock in kemu: a microsecond is one event, so a duration is the number of state changes
in the call.
"""

from __future__ import annotations

from collections.abc import Iterator

from kemu.readings.tracks import RanCall, Tracks

HEAD = (
    "# tracer: function_graph",
    "# 1 us is one event",
    "#",
    "# CPU  DURATION                  FUNCTION CALLS",
    "# |     |   |                     |   |   |   |",
)
OVERHEAD = ((1_000_000, "$"), (100_000, "@"), (10_000, "*"), (1000, "#"), (100, "!"), (10, "+"))
"""Marks of calls that last longer than the given number of microseconds."""
RULE = " ------------------------------------------"


def ftrace(tracks: Tracks) -> tuple[str, ...]:
    """The lines, including those that mark a CPU's switch to another task."""
    lines = list(HEAD)
    running: dict[int, tuple[int, str]] = {}
    cpu = 0
    for root in tracks.roots:
        if not isinstance(root, RanCall):
            lines.append(_event(cpu, root[1], 0))
            continue
        cpu = root.cpu
        before, now = running.get(root.cpu), (root.pid, root.task)
        if before is not None and before != now:
            old, new = (f"{name}-{pid}" for pid, name in (before, now))
            lines += [RULE, f" {root.cpu})  {old:>12}  =>  {new}", RULE, ""]
        running[root.cpu] = now
        lines += _call(root, 0)
    return tuple(lines)


def _call(call: RanCall, depth: int) -> Iterator[str]:
    indent, width = "  " * depth, _width(call)
    if not call.inner:
        yield f" {call.cpu}){width}|  {indent}{call.function}();"
        return
    yield f" {call.cpu}){'':15}|  {indent}{call.function}() {{"
    for node in call.inner:
        if isinstance(node, RanCall):
            yield from _call(node, depth + 1)
        else:
            yield _event(call.cpu, node[1], depth + 1)
    yield f" {call.cpu}){width}|  {indent}}}"


def _width(call: RanCall) -> str:
    """The duration in its column."""
    spent = call.last - call.first
    mark = next((sign for limit, sign in OVERHEAD if spent > limit), " ")
    return f" {mark} {spent}.000 us".ljust(15)


def _event(cpu: int, text: str, depth: int) -> str:
    """An event as a comment, as trace_printk writes one; it cannot be ended early."""
    return f" {cpu}){'':15}|  {'  ' * depth}/* {text.replace('*/', '* /')} */"

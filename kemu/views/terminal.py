"""Any reading as text for people: 80 columns, the renderer found by the type of the reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kemu import readings as r
from kemu.views import (
    asking,
    conform,
    lessons,
    memory,
    moments,
    onepage,
    races,
    spaces,
    tables,
    tasks,
    trust,
)
from kemu.views.style import PLAIN, Style


def _picture(reading: r.Picture, style: Style) -> str:
    """A picture; the code that draws it is imported on demand."""
    from kemu.views.pictures import draw as graph

    return graph.picture(reading, style)


def _moment(reading: r.Moment, style: Style) -> str:
    """A moment, below what a command that ends there has answered."""
    answer = [render(reading.outcome, style)] if reading.outcome is not None else []
    return "\n".join([*answer, moments.moment(reading, style)])


def _subject(reading: r.Reading, style: Style) -> str:
    from kemu.views.pictures import draw as graph

    return graph.subject(reading, style)


RENDERERS: dict[type[r.Reading], Callable[[Any, Style], str]] = {
    r.AccessOutcome: tasks.access,
    r.AddressSpace: spaces.address_space,
    r.Backtrace: moments.backtrace,
    r.CallTree: moments.calls,
    r.Change: moments.change,
    r.Conformance: conform.conformance,
    r.DataOutcome: tasks.data_outcome,
    r.Cost: asking.cost,
    r.Difference: moments.difference,
    r.DifferenceRow: conform.difference_row,
    r.EventList: moments.events,
    r.EventReading: moments.event,
    r.FamilyGraph: _subject,
    r.FileList: memory.file_list,
    r.FrameReading: memory.frame,
    r.FreeReading: memory.free,
    r.History: asking.history,
    r.LessonList: lessons.lesson_list,
    r.LessonSteps: lessons.lesson_steps,
    r.LessonText: lessons.lesson_text,
    r.LayoutReading: spaces.layout,
    r.Listing: moments.listing,
    r.MemoryDump: tables.dump,
    r.MemoryMap: memory.memory_map,
    r.MmGraph: _subject,
    r.MmReading: spaces.mm,
    r.MutantList: trust.mutant_list,
    r.MutantReading: trust.mutant,
    r.Moment: _moment,
    r.Outcome: tasks.outcome,
    r.PageTables: tables.page_tables,
    r.Pagemap: spaces.pagemap,
    r.Picture: _picture,
    r.PlotGraph: _subject,
    r.ProcessList: tasks.process_list,
    r.RaceCases: races.cases,
    r.RaceReading: races.race,
    r.RaceReplay: races.replay,
    r.RealReading: conform.real,
    r.RegsReading: tasks.registers,
    r.Residency: tasks.residency,
    r.RmapGraph: _subject,
    r.RmapReading: memory.rmap,
    r.SharingGraph: _subject,
    r.Smaps: spaces.smaps,
    r.SmapsRollup: spaces.smaps_rollup,
    r.StatReading: spaces.stat,
    r.StatmReading: spaces.statm,
    r.StatusReading: spaces.status,
    r.SubSteps: asking.sub_steps,
    r.TaskReading: tasks.task,
    r.TaskTree: tasks.task_tree,
    r.Text: moments.text,
    r.ThreeLines: onepage.three_lines,
    r.TimelineDifference: asking.timeline_difference,
    r.Timelines: asking.timelines,
    r.TlbReading: tables.tlb,
    r.Translation: tables.translation,
    r.Value: moments.value,
    r.VerifyReading: trust.verify,
    r.VmaDetail: spaces.vma_detail,
    r.Why: asking.why,
    r.WalkGraph: _subject,
}


def render(reading: r.Reading, style: Style = PLAIN) -> str:
    """``reading`` as lines without a newline at the end.  ``TypeError`` for a reading that is only
    part of others."""
    renderer = RENDERERS.get(type(reading))
    if renderer is None:
        raise TypeError(f"{type(reading).__name__} is drawn only as part of another reading")
    return renderer(reading, style)

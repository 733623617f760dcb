"""Readings: what was seen at one moment, as frozen data that belongs to nobody.

    kernel --observe--> reading --views--> text, /proc, JSON, pictures
                           |
                           +-- lessons, breakpoints and tests ask it for its fields

`observe` fills readings, `views` draws them; neither knows the other, and a reading stays true when the machine moves on.
Fields hold plain values: numbers, text, tuples and other readings.  How a number is written is said by its annotation:

    int      a count, an id, a frame number: decimal for a program
    Address  a virtual or physical address: "0x..." for a program
    Word     64 bits whose bits mean something (a page-table entry, flags): "0x..." too
    Pairs    (name, number) in a fixed order: an object for a program; Addresses: the same of addresses

The rule that keeps this file honest: no import of kemu, no text for people but names, no logic but a property.
"""

from kemu.readings.base import Address, Addresses, Pairs, Reading, Word
from kemu.readings.memory import (
    FileList,
    FileRow,
    FrameRun,
    FreeReading,
    MemoryDump,
    MemoryMap,
    RmapReading,
    RmapVisit,
)
from kemu.readings.moments import (
    CallReading,
    CallTree,
    Change,
    Difference,
    EventList,
    EventReading,
    FieldChange,
    Moment,
    Text,
    Value,
)
from kemu.readings.spaces import (
    AddressSpace,
    AnonLink,
    LayoutReading,
    MmHolder,
    MmReading,
    Pagemap,
    PagemapPage,
    Region,
    Smaps,
    SmapsCounts,
    SmapsEntry,
    SmapsRollup,
    StatmReading,
    StatReading,
    StatusReading,
    VmaDetail,
    VmaReading,
    VmStatus,
)
from kemu.readings.tables import (
    EntryReading,
    EntryRun,
    FrameReading,
    Holder,
    PageTables,
    TableReading,
    TlbCpu,
    TlbReading,
    TlbRow,
    TlbSlot,
    Translation,
)
from kemu.readings.tasks import (
    AccessOutcome,
    Descriptor,
    Outcome,
    ProcessList,
    RegsReading,
    TaskNode,
    TaskReading,
    TaskRow,
    TaskTree,
)

__all__ = [
    "AccessOutcome",
    "Address",
    "AddressSpace",
    "Addresses",
    "AnonLink",
    "CallReading",
    "CallTree",
    "Change",
    "Descriptor",
    "Difference",
    "EntryReading",
    "EntryRun",
    "EventList",
    "EventReading",
    "FieldChange",
    "FileList",
    "FileRow",
    "FrameReading",
    "FrameRun",
    "FreeReading",
    "Holder",
    "LayoutReading",
    "MemoryDump",
    "MemoryMap",
    "MmHolder",
    "MmReading",
    "Moment",
    "Outcome",
    "PageTables",
    "Pagemap",
    "PagemapPage",
    "Pairs",
    "ProcessList",
    "Reading",
    "Region",
    "RegsReading",
    "RmapReading",
    "RmapVisit",
    "Smaps",
    "SmapsCounts",
    "SmapsEntry",
    "SmapsRollup",
    "StatReading",
    "StatmReading",
    "StatusReading",
    "TableReading",
    "TaskNode",
    "TaskReading",
    "TaskRow",
    "TaskTree",
    "Text",
    "TlbCpu",
    "TlbReading",
    "TlbRow",
    "TlbSlot",
    "Translation",
    "Value",
    "VmStatus",
    "VmaDetail",
    "VmaReading",
    "Word",
]

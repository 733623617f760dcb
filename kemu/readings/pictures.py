"""Pictures: what `graph` draws, as data. The drawing itself (text, DOT, SVG) is made from these by
the views."""

from __future__ import annotations

from kemu.readings.base import Address, Reading
from kemu.readings.memory import RmapReading, RmapVisit
from kemu.readings.spaces import MmReading, VmaReading
from kemu.readings.tables import EntryReading, FrameReading, Translation
from kemu.readings.tasks import TaskRow, TaskTree


class Picture(Reading):
    """A picture of ``kind`` (walk, tables, sharing ...): ``subject`` is what it shows at event
    ``event``. With ``before`` it is a comparison, and ``earlier`` is the same at that event.
    ``written``: what was written to a file, in one line."""

    kind: str
    event: int
    subject: Reading
    before: int | None = None
    earlier: Reading | None = None
    written: str = ""


class AddressField(Reading):
    """The bits ``high`` to ``low`` of an address (both included): their name (sign, a level,
    offset) and value."""

    name: str
    high: int
    low: int
    value: int


class WalkGraph(Reading):
    """An address cut into fields, and its walk. ``title``: the format of the tables in words;
    ``page_shift``: bits of the offset in a frame; ``entry_digits``: hex digits of an entry."""

    title: str
    page_shift: int
    fields: tuple[AddressField, ...]
    entry_digits: int
    walk: Translation


class SharingSpace(Reading):
    """One of the processes whose tables are compared; ``tables``: how many page tables it has."""

    pid: int
    name: str
    mm: int
    tables: int


class SharingTable(Reading):
    """A page table of process ``space`` on the way to a drawn entry: entry ``index`` of table
    ``parent`` leads to it; the root has ``parent`` 0. ``start``: the first virtual address that it
    translates."""

    space: int
    level: str
    depth: int
    pfn: int
    parent: int
    index: int
    start: Address


class SharingEdge(Reading):
    """One entry of process ``space`` that maps the frame: at ``address``, in table ``table``.
    ``writable``: by all levels together. ``outcome``: what a write there would do, in one word
    (write, reuse, copy, fault, SIGSEGV), and ``why``."""

    space: int
    address: Address
    table: int
    entry: EntryReading
    writable: bool
    outcome: str
    why: str


class SharingFrame(Reading):
    """``count`` frames that look alike and follow each other in every process; ``pfns``: the first
    of them. ``state`` as in FrameReading; ``others``: other holders of references, in words."""

    count: int
    pfns: tuple[int, ...]
    state: str
    refcount: int
    mapcount: int
    exclusive: bool
    edges: tuple[SharingEdge, ...]
    others: tuple[str, ...] = ()


class SharingGraph(Reading):
    """The page tables of several processes, joined at the frames. ``pages``: entries of all of them
    that map a frame; ``left_out``: how many of those are not drawn, in ``groups_left`` groups."""

    geometry: str
    legend: tuple[tuple[str, str], ...]
    spaces: tuple[SharingSpace, ...]
    tables: tuple[SharingTable, ...]
    frames: tuple[SharingFrame, ...]
    pages: int
    left_out: int = 0
    groups_left: int = 0


class CachedPage(Reading):
    """A page of a file in the page cache; ``mapcount``: entries that map it."""

    index: int
    pfn: int
    mapcount: int
    dirty: bool


class MmFile(Reading):
    """A file that is mapped: ``size`` in bytes, ``cached`` pages in the page cache, of which
    ``pages`` are shown."""

    inode: int
    path: str
    kind: str
    size: int
    cached: int
    pages: tuple[CachedPage, ...]


class MmVma(Reading):
    """A mapping of the picture. ``resident`` pages have an entry; ``anon``: ids of its anon_vmas,
    its own first; ``file``: the inode that it maps, 0 for none."""

    vma: VmaReading
    resident: int
    anon: tuple[int, ...]
    file: int


class MmAnon(Reading):
    """An anon_vma of the picture. ``vmas``: how many VMAs, of any process, may map its pages."""

    id: int
    root: int
    parent: int
    vmas: int
    pages: int


class MmGraph(Reading):
    """A process from its tasks to its memory. ``tasks``: those that use the mm; ``borrowers``:
    kernel threads and CPUs that borrow it."""

    mm: MmReading
    tasks: tuple[TaskRow, ...]
    borrowers: tuple[TaskRow, ...]
    vmas: tuple[MmVma, ...]
    anon_vmas: tuple[MmAnon, ...]
    files: tuple[MmFile, ...]


class RmapPath(Reading):
    """One VMA that the reverse walk visits: the address is ``vma.start + (index - pgoff) * 4096``;
    ``steps`` are the entries on the way there; ``through``: the anon_vma whose tree holds the VMA,
    or the file's i_mmap."""

    visit: RmapVisit
    pgoff: int
    through: str
    steps: tuple[EntryReading, ...]


class RmapGraph(Reading):
    """A frame with every path from it back to its mappings."""

    frame: FrameReading
    rmap: RmapReading
    paths: tuple[RmapPath, ...]


class TaskShares(Reading):
    """What a task shares: pids of the other tasks with the same mm, open files and signal handlers,
    and (pid, pages) of the processes with which it shares frames by separate tables."""

    pid: int
    mm: tuple[int, ...]
    files: tuple[int, ...]
    handlers: tuple[int, ...]
    frames: tuple[tuple[int, int], ...]


class FamilyGraph(Reading):
    """All processes as a family, with what they share."""

    tree: TaskTree
    shares: tuple[TaskShares, ...]


class PlotSeries(Reading):
    """The values of an expression: (event, value) wherever it changed; None where it has no value
    (no such task yet)."""

    name: str
    points: tuple[tuple[int, int | None], ...]


class PlotGraph(Reading):
    """Values over the events ``first`` to ``last``, sampled every ``step`` events. ``marks``:
    (name, event) of the moments with a name; ``commands``: (event, text) where each command
    begins."""

    first: int
    last: int
    step: int
    series: tuple[PlotSeries, ...]
    marks: tuple[tuple[str, int], ...]
    commands: tuple[tuple[int, str], ...]

"""A little machine with all three kinds of state, and random changes to it: what the laws of the
journal are tried on.

The snapshot reads every field by itself and knows nothing of the journal, so a change that was not
recorded shows."""

from hypothesis import strategies as st

from kemu.machine.physmem import PhysMem
from kemu.machine.tlb import TlbEntry, new_tlb
from kemu.trace.barrier import Table, struct

NODES = 3
FRAMES = 6


@struct
class Node:
    """A kernel object: a number, a text, a link, a table."""

    number: int = 0
    text: str = ""
    link: "Node | None" = None
    table: Table = None


class World:
    """Nodes that live from the start, a table of more, RAM, a TLB."""

    def __init__(self):
        self.nodes = [Node(table=Table(f"t{n}")) for n in range(NODES)]
        self.named = Table("named")
        self.ram = PhysMem(FRAMES)
        self.tlb = new_tlb(0, 4)

    def snapshot(self):
        """All state as plain values; objects by their place, other nodes by their content."""
        return (
            [self._node(node, 0) for node in self.nodes],
            {key: self._node(node, 0) for key, node in sorted(self.named.items())},
            {pfn: dict(sorted(frame.items())) for pfn, frame in sorted(self.ram.frames.items())},
            dict(sorted(self.tlb.slots.items())),
            self.tlb.large,
        )

    def _node(self, node, depth):
        if node is None or depth > NODES:
            return None
        link = (
            self.nodes.index(node.link)
            if node.link in self.nodes
            else self._node(node.link, depth + 1)
        )
        return (node.number, node.text, link, dict(sorted(node.table.items())))

    def apply(self, change):
        """Perform one random change."""
        what, a, b, c = change
        getattr(self, f"_do_{what}")(a, b, c)

    def _do_number(self, a, b, _):
        self.nodes[a % NODES].number = b

    def _do_text(self, a, b, _):
        self.nodes[a % NODES].text = f"{b}"

    def _do_link(self, a, b, c):
        self.nodes[a % NODES].link = None if c % 3 == 0 else self.nodes[b % NODES]

    def _do_put(self, a, b, c):
        self.nodes[a % NODES].table.put(b % 4, c or None)

    def _do_swap(self, a, b, _):
        self.nodes[a % NODES].table = Table("new", {1: b})

    def _do_create(self, a, b, c):
        """A new node is filled in before it is linked: inert until then."""
        node = Node(number=b, table=Table("made"))
        node.text = f"{c}"
        node.link = self.nodes[a % NODES]
        node.table.put(a, c)
        self.named.put(a % 5, node)

    def _do_drop(self, a, _b, _c):
        self.named.put(a % 5, None)

    def _do_store(self, a, b, c):
        self.ram.store((a % FRAMES) << 12 | (b % 512) << 3, c)

    def _do_bytes(self, a, b, c):
        self.ram.write((a % FRAMES) << 12 | b % 4000, c.to_bytes(8, "big") * 2)

    def _do_copy(self, a, b, _):
        self.ram.copy_page(a % FRAMES, b % FRAMES)

    def _do_clear(self, a, _b, _c):
        self.ram.clear_page(a % FRAMES)

    def _do_page(self, a, b, c):
        self.ram.set_page(a % FRAMES, bytes([b % 256, c % 256]) * 9)

    def _do_fill(self, a, b, c):
        self.tlb.fill(
            TlbEntry(
                a % 2, b, c, True, True, True, True, False, c % 5 == 0, 512 if c % 7 == 0 else 1
            )
        )

    def _do_invlpg(self, a, b, _):
        self.tlb.invlpg(b, a % 2)

    def _do_flush(self, a, b, _):
        if b % 4:
            self.tlb.flush_pcid(a % 2)
        else:
            self.tlb.flush_all()


KINDS = sorted(name.removeprefix("_do_") for name in dir(World) if name.startswith("_do_"))
changes = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.integers(0, 9),
        st.integers(0, 600),
        st.integers(0, (1 << 64) - 1) | st.integers(0, 9),
    ),
    min_size=1,
    max_size=30,
)

"""Random numbers that are the same on every run (what drivers/char/random.c gives, without its
sources of chance).

    sysctl.randomize_seed   s    the seed of `set aslr SEED`; None: no address randomisation, seed 0
    counters.random         (s, n)   n words were drawn since the seed became s
    word n of seed s        splitmix64(s + n * GOLDEN)

The state is journalled: after going back, the same words are drawn again.
"""

from __future__ import annotations

from kemu.kernel.include.mm_types import U64
from kemu.kernel.include.system import system

GOLDEN = 0x9E3779B97F4A7C15


def get_random_u64() -> int:
    """The next word (u64)."""
    seed = (system.sysctl.randomize_seed or 0) & U64
    last, drawn = system.counters.random
    drawn = drawn + 1 if last == seed else 1
    system.counters.random = (seed, drawn)
    return _mix((seed + drawn * GOLDEN) & U64)


def _mix(z: int) -> int:
    """The finaliser of splitmix64: every bit of the result depends on every bit of ``z``."""
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & U64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & U64
    return z ^ z >> 31


def get_random_bytes(size: int) -> bytes:
    """``size`` bytes."""
    words = [get_random_u64().to_bytes(8, "little") for _ in range((size + 7) // 8)]
    return b"".join(words)[:size]

"""Measure, and print the table.

python -m tests.bench                  everything: a few minutes
python -m tests.bench --tiny           the same rows at a size that says nothing, in seconds
python -m tests.bench --repeat 3 --sizes 1024,16384
"""

import argparse
import os
import sys

from tests.bench.measure import SIZES, TINY, measure_all
from tests.bench.table import render


def options(argv):
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description="kemu's speed and size beside the real kernel."
    )
    parser.add_argument(
        "--tiny", action="store_true", help="tiny sizes, once: do all rows come out?"
    )
    parser.add_argument(
        "--repeat", type=int, default=5, metavar="N", help="runs of which the median is shown (5)"
    )
    parser.add_argument(
        "--sizes",
        default="",
        metavar="PAGES,...",
        help="numbers of pages instead of 1024,16384,65536,262144",
    )
    return parser.parse_args(argv)


def main(argv):
    args = options(argv)
    sizes = (
        [int(size) for size in args.sizes.split(",")]
        if args.sizes
        else TINY
        if args.tiny
        else SIZES
    )
    pin()
    measured = measure_all(sizes, 1 if args.tiny else args.repeat, progress=sys.stderr.write)
    sys.stdout.write(render(measured))


def pin():
    """Keep this process and those it starts on one CPU, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


if __name__ == "__main__":
    main(sys.argv[1:])

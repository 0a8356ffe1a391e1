"""Has a virtual machine's memory backed by its host before anything is measured."""

import mmap

from comparison.servers import say

PIECE = 1 << 30
PIECES_MAX = 12
# Left for everything else that runs.
SPARE = 3 << 30


def warm():
    """Touches most of the free memory once. A virtual machine gets a page from its host at the first touch, and the host's work
    counts as CPU time of the program that touched it. On a fresh machine that tripled what a MiB of page cache costs."""
    pieces = []
    while len(pieces) < PIECES_MAX and available() > PIECE + SPARE:
        pieces.append(mmap.mmap(-1, PIECE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE))
        say(f"touching memory: {len(pieces)} of at most {PIECES_MAX} GiB")
    for piece in pieces:
        piece.close()


def available():
    """Bytes that programs can have without swapping."""
    with open("/proc/meminfo", encoding="utf-8") as info:
        return next(int(entry.split()[1]) << 10 for entry in info if entry.startswith("MemAvailable"))

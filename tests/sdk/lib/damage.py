"""Damage to files of extents, while their node is stopped. api-spec/extent.md has the layout."""

import os
import pathlib
import struct

FIRST_PAGE = 4096
SLOTS = (1024, 2048)
MAGIC = b"BYSL"
BYTES_MAX = 8 << 20


def sealed(folder):
    """The files of sealed extents that were never compacted and are quickly read, those first that have the most bytes that were not freed."""
    files = [path for path in pathlib.Path(folder).rglob("extents/*/*.x") if path.stat().st_size <= BYTES_MAX and _is_plain(path)]
    return sorted(files, key=lambda path: path.stat().st_blocks, reverse=True)


def _slot(path):
    """The latest slot of the first page; None if there is none."""
    with open(path, "rb") as file:
        page = file.read(FIRST_PAGE)
    slots = [page[at:at + 64] for at in SLOTS]
    found = [(struct.unpack_from("<Q", slot, 8)[0], slot) for slot in slots if slot[:4] == MAGIC]
    return max(found)[1] if found else None


def _is_plain(path):
    slot = _slot(path)
    return slot is not None and slot[4] == 1 and slot[5] == 0 and struct.unpack_from("<I", slot, 40)[0] == 0


def flip(path):
    """Inverts a bit in each 64 KiB of the frames: some of these were not freed."""
    end = FIRST_PAGE + struct.unpack_from("<Q", _slot(path), 24)[0]
    with open(path, "r+b") as file:
        for offset in range(FIRST_PAGE + 1000, end, 64 << 10):
            file.seek(offset)
            byte = file.read(1)[0]
            file.seek(offset)
            file.write(bytes([byte ^ 0x10]))


def cut(path):
    """Cuts off the second half of a file."""
    os.truncate(path, FIRST_PAGE + (path.stat().st_size - FIRST_PAGE) // 2)

"""Reproducible bytes: `content(label, size)` is always the same, and differs from every other label.

A pool of random bytes is cut at a place that depends on the label, and the label's digest is stamped on it every 4 KiB.
That costs little more than a copy, does not compress, and no two labels share an aligned page, so bytes of one
blob served for another never go unnoticed.
"""

import hashlib
import random

_POOL_BYTES = 16 << 20
_STAMP_EVERY = 4096
_pool = None


def _random_pool():
    global _pool
    if _pool is None:
        _pool = random.Random(20).randbytes(_POOL_BYTES)
    return _pool


def content(label, size):
    """Returns `size` bytes that depend on `label` (any value with a stable `repr`) alone."""
    stamp = hashlib.blake2b(repr(label).encode(), digest_size=32).digest()
    if size <= len(stamp):
        return stamp[:size]
    pool = _random_pool()
    start = int.from_bytes(stamp[:3], "big") % _POOL_BYTES
    body = bytearray(pool[start:start + size])
    while len(body) < size:
        body += pool[:size - len(body)]
    for at in range(0, size - len(stamp), _STAMP_EVERY):
        body[at:at + len(stamp)] = stamp
    return bytes(body)


def pieces(label, size, piece_bytes):
    """Yields `size` bytes in pieces, the same for the same label, without ever holding more than one piece."""
    number = 0
    while size > 0:
        piece = content((label, number), min(piece_bytes, size))
        yield piece
        size -= len(piece)
        number += 1


def sha256(data):
    """The SHA-256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()

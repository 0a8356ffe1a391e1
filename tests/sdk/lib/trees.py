"""A folder of files to send through a client, and whether two folders are the same."""

import os
import pathlib

from .content import content
from .judged import equal

# Names that one client or another has been seen to mangle.
FILES = {
    "plain.txt": 1200, "empty": 0, "dir/inner.bin": 300_000, "dir/deep/er/still.dat": 70_000,
    "with space.txt": 77, "plus+sign.txt": 78, "percent%41.txt": 79, "hash#mark.txt": 80, "grüße-日本-😀.txt": 81,
}


def make(folder, files=None):
    """Writes the files; returns the folder."""
    for name, size in (files or FILES).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(name, size))
    return folder


def read(folder):
    """{relative path: bytes} of every file below a folder."""
    found = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = pathlib.Path(parent) / name
            found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


def same(left, right):
    """Raises unless two folders hold the same files with the same bytes."""
    one, other = read(left), read(right)
    equal(sorted(one), sorted(other), "names:")
    equal([name for name in one if one[name] != other[name]], [], "files that differ:")

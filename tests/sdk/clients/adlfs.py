#!/usr/bin/env python3
"""adlfs, the file system of fsspec: write, read, list, find, copy, move, remove. By connection string."""

import importlib.metadata
import pathlib
import sys

# This file has the name of the package it judges.
sys.path[0] = str(pathlib.Path(__file__).parents[1])

# pylint: disable=wrong-import-position
from adlfs import AzureBlobFileSystem
from lib import cli
from lib.content import content
from lib.judged import Judged, equal, parse

SIZES = {"small": 10, "dir/inner.bin": 300_000, "dir/deep/er.bin": 70_000, "with space.txt": 77, "plus+%41.txt": 78,
         "large.bin": 12 << 20}


def write_and_read(files):
    """Whole files, by blocks, in ranges, by lines, appended."""
    files.mkdir("yard")
    for name, size in SIZES.items():
        with files.open(f"yard/{name}", "wb", blocksize=4 << 20) as out:
            out.write(content(name, size))
    for name, size in SIZES.items():
        with files.open(f"yard/{name}", "rb") as source:
            equal(source.read() == content(name, size), True, f"bytes of {name}:")
    with files.open("yard/large.bin", "rb") as source:
        source.seek(5_000_000)
        equal(source.read(100), content("large.bin", 12 << 20)[5_000_000:5_000_100])
    equal(files.cat_file("yard/large.bin", start=(12 << 20) - 10), content("large.bin", 12 << 20)[-10:])
    equal(files.cat_ranges(["yard/small", "yard/dir/inner.bin"], [2, 100], [5, 200]),
          [content("small", 10)[2:5], content("dir/inner.bin", 300_000)[100:200]])


def find(files):
    """Listing in every form."""
    equal(sorted(files.find("yard")), sorted(f"yard/{name}" for name in SIZES))
    equal(sorted(files.ls("yard/dir", detail=False)), ["yard/dir/deep", "yard/dir/inner.bin"])
    equal(files.info("yard/dir/inner.bin")["size"], 300_000)
    equal((files.isdir("yard/dir"), files.isfile("yard/dir"), files.exists("yard/none")), (True, False, False))
    equal(sorted(files.glob("yard/**/*.bin")), ["yard/dir/deep/er.bin", "yard/dir/inner.bin", "yard/large.bin"])


def copy(files):
    """Copy and move inside the account."""
    files.copy("yard/dir/inner.bin", "yard/copied.bin")
    equal(files.cat("yard/copied.bin") == content("dir/inner.bin", 300_000), True, "copied bytes:")
    files.mv("yard/copied.bin", "yard/moved.bin")
    equal((files.exists("yard/copied.bin"), files.exists("yard/moved.bin")), (False, True))


def remove(files):
    """Files, trees, the container."""
    files.rm("yard/small")
    files.rm("yard/dir", recursive=True)
    files.invalidate_cache()
    equal(files.exists("yard/dir/inner.bin"), False)
    files.rm("yard", recursive=True)
    files.invalidate_cache()
    equal(files.exists("yard"), False)


def main(options, scratch):
    judged = Judged("adlfs", importlib.metadata.version("adlfs"), options)
    with cli.server(options, scratch) as server:
        files = AzureBlobFileSystem(connection_string=server.account.connection_string)
        for name, run in (("write and read", write_and_read), ("list and find", find), ("copy and move", copy),
                          ("remove", remove)):
            with judged.group(name):
                run(files)
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

#!/usr/bin/env python3
"""pyarrow's AzureFileSystem: streams, listing, partitioned Parquet data sets, copy, move, delete. With the account key."""

import pathlib
import sys

# This file has the name of the package it judges.
sys.path[0] = str(pathlib.Path(__file__).parents[1])

# pylint: disable=wrong-import-position
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
from lib import cli
from lib.content import content
from lib.judged import Judged, equal, parse
from pyarrow import fs

ROWS = 200_000


def streams(files):
    """Written by blocks, read whole and in ranges, with metadata."""
    files.create_dir("yard")
    data = content("stream", 12 << 20)
    with files.open_output_stream("yard/dir/stream.bin", metadata={"Content-Type": "x/y"}) as out:
        out.write(data)
    with files.open_input_stream("yard/dir/stream.bin") as source:
        equal(source.read() == data, True, "bytes:")
    with files.open_input_file("yard/dir/stream.bin") as source:
        source.seek(7_000_001)
        equal(source.read(99), data[7_000_001:7_000_100])


def listing(files):
    """What a selector finds, what is there and what is not."""
    for name in ("a/1", "a/2", "a/b/3", "with space", "plus+%41"):
        with files.open_output_stream(f"yard/l/{name}") as out:
            out.write(b"x")
    found = files.get_file_info(fs.FileSelector("yard/l", recursive=True))
    equal(sorted(i.path for i in found if i.type == fs.FileType.File),
          sorted(f"yard/l/{n}" for n in ("a/1", "a/2", "a/b/3", "with space", "plus+%41")))
    kinds = [info.type for info in files.get_file_info(["yard", "yard/l/a", "yard/l/a/1", "yard/none", "nowhere"])]
    equal(kinds, [fs.FileType.Directory, fs.FileType.Directory, fs.FileType.File, fs.FileType.NotFound,
                  fs.FileType.NotFound])


def parquet(files):
    """A partitioned data set, written, filtered, counted."""
    made = pyarrow.table({"n": range(ROWS), "part": [n % 4 for n in range(ROWS)], "text": [f"row {n}" for n in range(ROWS)]})
    pyarrow.dataset.write_dataset(made, "yard/set", format="parquet", partitioning=["part"], filesystem=files)
    data = pyarrow.dataset.dataset("yard/set", format="parquet", partitioning=["part"], filesystem=files)
    equal(data.count_rows(), ROWS)
    few = data.to_table(filter=(pyarrow.dataset.field("part") == 3) & (pyarrow.dataset.field("n") < 100), columns=["n"])
    equal(sorted(few["n"].to_pylist()), [n for n in range(100) if n % 4 == 3])


def copy(files):
    """Copy inside the account."""
    files.copy_file("yard/dir/stream.bin", "yard/copied.bin")
    with files.open_input_stream("yard/copied.bin") as source:
        equal(source.read() == content("stream", 12 << 20), True, "copied bytes:")


def delete(files):
    """A file, a folder, the container."""
    files.delete_file("yard/l/a/1")
    files.delete_dir("yard/l")
    equal(files.get_file_info("yard/l/a/2").type, fs.FileType.NotFound)
    files.delete_dir_contents("yard")
    files.delete_dir("yard")
    equal(files.get_file_info("yard").type, fs.FileType.NotFound)


def main(options, scratch):
    judged = Judged("pyarrow", pyarrow.__version__, options)
    with cli.server(options, scratch) as server:
        account = server.account
        files = fs.AzureFileSystem(account.name, account_key=account.key, blob_storage_authority=account.address,
                                   dfs_storage_authority=account.address, blob_storage_scheme="http",
                                   dfs_storage_scheme="http")
        for name, run in (("streams", streams), ("listing", listing), ("Parquet data set", parquet),
                          ("copy", copy), ("delete", delete)):
            with judged.group(name):
                run(files)
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

#!/usr/bin/env python3
"""lance (pylance): vectors written, appended, searched through an index, travelled in time, concurrent appends."""

import concurrent.futures
import pathlib
import random
import sys

# This file has the name of the package it judges.
sys.path[0] = str(pathlib.Path(__file__).parents[1])

# pylint: disable=wrong-import-position
import lance
import pyarrow
from lib import cli
from lib.judged import Judged, equal, parse

ROWS, DIMENSIONS = 5_000, 32
WRITERS = 8


def vectors(first, count):
    """Reproducible vectors."""
    drawn = random.Random(first)
    flat = pyarrow.array([drawn.random() for _ in range(count * DIMENSIONS)], pyarrow.float32())
    return pyarrow.table({"n": pyarrow.array(range(first, first + count), pyarrow.int64()),
                          "vector": pyarrow.FixedSizeListArray.from_arrays(flat, DIMENSIONS)})


def write(settings, where):
    """Write, append, an older version, random rows."""
    lance.write_dataset(vectors(0, ROWS), where, storage_options=settings)
    lance.write_dataset(vectors(ROWS, ROWS), where, mode="append", storage_options=settings)
    data = lance.dataset(where, storage_options=settings)
    equal((data.count_rows(), lance.dataset(where, version=1, storage_options=settings).count_rows()), (2 * ROWS, ROWS))
    equal(data.take([7, ROWS + 3], columns=["n"])["n"].to_pylist(), [7, ROWS + 3])


def search(settings, where):
    """An index over the vectors finds the one that is asked for."""
    data = lance.dataset(where, storage_options=settings)
    data.create_index("vector", index_type="IVF_PQ", num_partitions=4, num_sub_vectors=8)
    data = lance.dataset(where, storage_options=settings)
    wanted = vectors(0, ROWS)["vector"][42].as_py()
    found = data.to_table(nearest={"column": "vector", "q": wanted, "k": 5, "nprobes": 4, "refine_factor": 50})
    equal(42 in found["n"].to_pylist(), True, "the vector itself is found:")


def change(settings, where):
    """Delete, compact, clean."""
    data = lance.dataset(where, storage_options=settings)
    data.delete("n >= 9000")
    equal(data.count_rows(), 9000)
    data.optimize.compact_files()
    equal(lance.dataset(where, storage_options=settings).count_rows(), 9000)


def concurrently(settings, where):
    """Appends that race are all there."""
    lance.write_dataset(vectors(0, 1), where, storage_options=settings)
    append = lambda n: lance.write_dataset(vectors(n, 1), where, mode="append", storage_options=settings)
    with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(append, range(1, WRITERS + 1)))
    found = lance.dataset(where, storage_options=settings).to_table(columns=["n"])["n"].to_pylist()
    equal(sorted(found), list(range(WRITERS + 1)))


def main(options, scratch):
    judged = Judged("lance (pylance)", lance.__version__, options)
    with cli.server(options, scratch) as server:
        account = server.account
        account.service().create_container("lance")
        settings = {"account_name": account.name, "account_key": account.key, "azure_storage_endpoint": account.url,
                    "allow_http": "true"}
        for name, run in (("write, append, versions", write), ("vector index", search), ("delete and compact", change)):
            with judged.group(name):
                run(settings, "az://lance/t.lance")
        with judged.group("concurrent appends"):
            concurrently(settings, "az://lance/race.lance")
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

#!/usr/bin/env python3
"""pyiceberg through its fsspec (adlfs) file system: create, append, scan, overwrite, travel in time, drop."""

import importlib.metadata
import pathlib
import sys

# This file has the name of the package it judges.
sys.path[0] = str(pathlib.Path(__file__).parents[1])

# pylint: disable=wrong-import-position
import pyarrow
from lib import cli
from lib.judged import Judged, equal, parse
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import StringType

ROWS = 50_000


def rows(first, count):
    """A small table."""
    return pyarrow.table({"n": list(range(first, first + count)), "text": [f"row {n}" for n in range(first, first + count)]})


def numbers(table, **options):
    """What column n holds, in order."""
    return sorted(table.scan(**options).to_arrow()["n"].to_pylist())


def write(catalog):
    """Create and append."""
    catalog.create_namespace("yard")
    table = catalog.create_table("yard.t", schema=rows(0, 1).schema)
    table.append(rows(0, ROWS))
    table.append(rows(ROWS, ROWS))
    equal(numbers(table), list(range(2 * ROWS)))


def scan(catalog):
    """A filter and a projection; an older snapshot."""
    table = catalog.load_table("yard.t")
    equal(numbers(table, row_filter="n >= 100 and n < 110", selected_fields=("n",)), list(range(100, 110)))
    first = table.history()[0].snapshot_id
    equal(numbers(table, snapshot_id=first), list(range(ROWS)))


def change(catalog):
    """Delete, overwrite, a new column."""
    table = catalog.load_table("yard.t")
    table.delete("n >= 10")
    equal(numbers(table), list(range(10)))
    table.overwrite(rows(500, 5))
    with table.update_schema() as update:
        update.add_column("added", StringType())
    equal(numbers(catalog.load_table("yard.t")), list(range(500, 505)))


def purge(catalog, account):
    """Nothing but the container is left."""
    catalog.purge_table("yard.t")
    left = [b.name for b in account.service().get_container_client("ice").list_blobs() if b.name.endswith(".parquet")]
    equal(left, [])


def main(options, scratch):
    judged = Judged("pyiceberg", importlib.metadata.version("pyiceberg"), options)
    with cli.server(options, scratch) as server:
        account = server.account
        account.service().create_container("ice")
        catalog = SqlCatalog("yard", **{
            "uri": f"sqlite:///{scratch / 'catalog.db'}", "warehouse": "abfs://ice/warehouse",
            "py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO", "adls.connection-string": account.connection_string})
        for name, run in (("create and append", write), ("scan and time travel", scan),
                          ("delete, overwrite, evolve", change)):
            with judged.group(name):
                run(catalog)
        with judged.group("purge"):
            purge(catalog, account)
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

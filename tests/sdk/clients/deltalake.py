#!/usr/bin/env python3
"""deltalake (delta-rs): tables written, updated, travelled in time; 100 concurrent commits of which none is lost."""

import concurrent.futures
import pathlib
import sys

# This file has the name of the package it judges.
sys.path[0] = str(pathlib.Path(__file__).parents[1])

# pylint: disable=wrong-import-position
import deltalake
import pyarrow
from deltalake import DeltaTable, write_deltalake
from lib import cli
from lib.judged import Judged, equal, parse

COMMITS = 100
WRITERS = 16
# How often a writer repeats its commit after others were faster; delta-rs itself retries 15 times within each.
ATTEMPTS = 20


def rows(first, count=1):
    """A small table."""
    return pyarrow.table({"n": list(range(first, first + count)), "text": [f"row {n}" for n in range(first, first + count)]})


def numbers(table):
    """What column n holds, in order."""
    return sorted(table.to_pyarrow_table()["n"].to_pylist())


def history(settings):
    """Append, overwrite, an older version."""
    where = "az://delta/history"
    write_deltalake(where, rows(0, 10), storage_options=settings)
    write_deltalake(where, rows(10, 10), mode="append", storage_options=settings)
    write_deltalake(where, rows(100, 5), mode="overwrite", storage_options=settings)
    table = DeltaTable(where, storage_options=settings)
    equal((table.version(), numbers(table)), (2, list(range(100, 105))))
    equal(numbers(DeltaTable(where, version=1, storage_options=settings)), list(range(20)))


def change(settings):
    """Delete, update, merge."""
    where = "az://delta/change"
    write_deltalake(where, rows(0, 20), storage_options=settings)
    table = DeltaTable(where, storage_options=settings)
    table.delete("n >= 15")
    table.update(predicate="n = 3", updates={"text": "'three'"})
    table.merge(rows(14, 3), predicate="t.n = s.n", source_alias="s", target_alias="t") \
        .when_not_matched_insert_all().execute()
    equal(numbers(DeltaTable(where, storage_options=settings)), list(range(17)))


def maintain(settings):
    """Compact, checkpoint, vacuum."""
    where = "az://delta/maintain"
    for number in range(5):
        write_deltalake(where, rows(number), mode="append", storage_options=settings)
    table = DeltaTable(where, storage_options=settings)
    equal(table.optimize.compact()["numFilesRemoved"], 5)
    table.create_checkpoint()
    equal(len(table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)), 5)
    equal(numbers(DeltaTable(where, storage_options=settings)), list(range(5)))


def commit(settings, where, number):
    """One row in one commit, begun anew when delta-rs gives up."""
    for _ in range(ATTEMPTS):
        try:
            write_deltalake(where, rows(number), mode="append", storage_options=settings)
        except deltalake.exceptions.CommitFailedError:
            continue
        return number
    return None


def concurrent_commits(settings):
    """Every commit that was acknowledged is in the table, once, and every version is of one commit."""
    where = "az://delta/concurrent"
    write_deltalake(where, rows(-1), storage_options=settings)
    with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
        done = list(pool.map(lambda number: commit(settings, where, number), range(COMMITS)))
    equal([n for n, found in enumerate(done) if found is None], [], "commits given up:")
    table = DeltaTable(where, storage_options=settings)
    equal(numbers(table), list(range(-1, COMMITS)), "rows:")
    equal(table.version(), COMMITS, "version:")


def main(options, scratch):
    judged = Judged("deltalake", deltalake.__version__, options)
    with cli.server(options, scratch) as server:
        account = server.account
        account.service().create_container("delta")
        settings = {"account_name": account.name, "account_key": account.key, "azure_storage_endpoint": account.url,
                    "allow_http": "true"}
        for name, run in (("versions", history), ("delete, update, merge", change), ("compact and vacuum", maintain),
                          (f"{COMMITS} concurrent commits", concurrent_commits)):
            with judged.group(name):
                run(settings)
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

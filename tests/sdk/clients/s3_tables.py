#!/usr/bin/env python3
"""deltalake (delta-rs), polars, pyarrow, lance and pyiceberg over S3: tables by conditional puts, 6 writers at once; data sets."""

import concurrent.futures
import importlib.metadata
import pathlib
import sys

sys.path[0] = str(pathlib.Path(__file__).parents[1])

# pylint: disable=wrong-import-position
import deltalake
import lance
import polars
import pyarrow
import pyarrow.dataset
from deltalake import DeltaTable, write_deltalake
from lib import cli, s3_clients
from lib.content import content
from lib.judged import Judged, equal, parse
from pyarrow import fs
from pyiceberg.catalog.sql import SqlCatalog

BUCKET = "tables"
WRITERS, COMMITS, ATTEMPTS = 6, 30, 20


def rows(first, count=1):
    """A small table."""
    return pyarrow.table({"n": list(range(first, first + count)), "text": [f"row {n}" for n in range(first, first + count)]})


def numbers(table):
    """What column n holds, in order."""
    return sorted(table.to_pyarrow_table()["n"].to_pylist())


def versions(settings):
    """Append, overwrite, an older version, delete, compact."""
    where = f"s3://{BUCKET}/versions"
    write_deltalake(where, rows(0, 10), storage_options=settings)
    write_deltalake(where, rows(10, 10), mode="append", storage_options=settings)
    write_deltalake(where, rows(100, 5), mode="overwrite", storage_options=settings)
    equal(numbers(DeltaTable(where, version=1, storage_options=settings)), list(range(20)))
    table = DeltaTable(where, storage_options=settings)
    table.delete("n = 104")
    table.create_checkpoint()
    table.optimize.compact()
    equal(numbers(DeltaTable(where, storage_options=settings)), list(range(100, 104)))


def writers(settings):
    """Every commit that was acknowledged is in the table, once."""
    where = f"s3://{BUCKET}/writers"
    write_deltalake(where, rows(-1), storage_options=settings)

    def commit(number):
        for _ in range(ATTEMPTS):
            try:
                write_deltalake(where, rows(number), mode="append", storage_options=settings)
            except deltalake.exceptions.CommitFailedError:
                continue
            return number
        return None

    with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
        done = list(pool.map(commit, range(COMMITS)))
    equal(done, list(range(COMMITS)), "commits:")
    table = DeltaTable(where, storage_options=settings)
    equal((numbers(table), table.version()), (list(range(-1, COMMITS)), COMMITS))


def frames(settings, account):
    """polars: written, scanned, filtered."""
    made = polars.DataFrame({"n": range(50_000), "text": [f"row {n}" for n in range(50_000)]})
    made.write_parquet(f"s3://{BUCKET}/polars/frame.parquet", storage_options=settings)
    found = polars.scan_parquet(f"s3://{BUCKET}/polars/*.parquet", storage_options=settings)
    equal(found.filter(polars.col("n") >= 49_998).collect()["text"].to_list(), ["row 49998", "row 49999"])
    equal(list(s3_clients.through_blob(account, BUCKET, "polars/")), ["frame.parquet"])


def arrow(account):
    """pyarrow's S3FileSystem: streams, a data set, copy, move, lists, what Blob wrote."""
    files = fs.S3FileSystem(access_key=account.name, secret_key=account.key, endpoint_override=account.address, scheme="http",
                            region=s3_clients.REGION, allow_bucket_creation=True, allow_bucket_deletion=True)
    files.create_dir("arrow")
    data = content("stream", 12 << 20)
    with files.open_output_stream("arrow/dir/stream.bin", metadata={"Content-Type": "x/y"}) as out:
        out.write(data)
    files.copy_file("arrow/dir/stream.bin", "arrow/copied.bin")
    files.move("arrow/copied.bin", "arrow/moved.bin")
    equal(s3_clients.through_blob(account, "arrow", "moved.bin")[""] == data, True, "bytes through Blob:")
    made = pyarrow.table({"n": range(20_000), "part": [n % 4 for n in range(20_000)]})
    pyarrow.dataset.write_dataset(made, "arrow/set", format="parquet", partitioning=["part"], filesystem=files)
    found = pyarrow.dataset.dataset("arrow/set", format="parquet", partitioning=["part"], filesystem=files)
    equal(found.count_rows(), 20_000)
    written = s3_clients.written_by_blob(account, "arrow")
    with files.open_input_file("arrow/from-blob.bin") as source:
        source.seek(1_000_001)
        equal(source.read(99), written[1_000_001:1_000_100])
    files.delete_dir("arrow/set")
    kinds = [info.type for info in files.get_file_info(["arrow", "arrow/dir", "arrow/set", "nowhere"])]
    equal(kinds, [fs.FileType.Directory, fs.FileType.Directory, fs.FileType.NotFound, fs.FileType.NotFound])
    files.delete_dir("arrow")


def lances(settings):
    """lance: written, appended by several at once, an older version."""
    where = f"s3://{BUCKET}/lance"
    lance.write_dataset(rows(0, 10), where, storage_options=settings)
    append = lambda number: lance.write_dataset(rows(number), where, mode="append", storage_options=settings)
    with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(append, range(10, 22)))
    found = lance.dataset(where, storage_options=settings)
    equal((sorted(found.to_table()["n"].to_pylist()), found.version), (list(range(22)), 13))
    equal(lance.dataset(where, version=1, storage_options=settings).count_rows(), 10)


def iceberg(account, scratch):
    """pyiceberg with pyarrow's files: appended, deleted, an older snapshot."""
    catalog = SqlCatalog("yard", **{
        "uri": f"sqlite:///{scratch}/catalog.db", "warehouse": f"s3://{BUCKET}/iceberg",
        "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO", "s3.endpoint": s3_clients.endpoint(account),
        "s3.access-key-id": account.name, "s3.secret-access-key": account.key, "s3.region": s3_clients.REGION})
    catalog.create_namespace("space")
    table = catalog.create_table("space.table", schema=rows(0).schema)
    table.append(rows(0, 10))
    first = table.current_snapshot().snapshot_id
    table.append(rows(10, 10))
    table.delete("n >= 15")
    equal(sorted(table.scan().to_arrow()["n"].to_pylist()), list(range(15)))
    equal(sorted(table.scan(snapshot_id=first).to_arrow()["n"].to_pylist()), list(range(10)))
    catalog.drop_table("space.table")


def main(options, scratch):
    packages = ("deltalake", "polars", "pyarrow", "pylance", "pyiceberg")
    judged = Judged("deltalake, polars, pyarrow, lance, pyiceberg", ", ".join(map(importlib.metadata.version, packages)), options)
    with cli.server(options, scratch) as server:
        account = server.account
        account.service().create_container(BUCKET)
        settings = {"aws_access_key_id": account.name, "aws_secret_access_key": account.key, "aws_region": s3_clients.REGION,
                    "aws_endpoint_url": s3_clients.endpoint(account), "aws_allow_http": "true"}
        delta = {**settings, "aws_conditional_put": "etag"}
        for name, run in (("deltalake: versions", lambda: versions(delta)),
                          (f"deltalake: {WRITERS} writers at once", lambda: writers(delta)),
                          ("polars", lambda: frames(settings, account)), ("pyarrow", lambda: arrow(account)),
                          ("lance", lambda: lances(settings)), ("pyiceberg", lambda: iceberg(account, scratch))):
            with judged.group(name):
                run()
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

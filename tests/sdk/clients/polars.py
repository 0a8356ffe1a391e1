#!/usr/bin/env python3
"""polars: Parquet and NDJSON written, scanned with a filter, partitioned. With the account key and with a signature."""

import pathlib
import sys

# This file has the name of the package it judges.
sys.path[0] = str(pathlib.Path(__file__).parents[1])

# pylint: disable=wrong-import-position
import polars
from lib import accounts, cli
from lib.judged import Judged, equal, parse

ROWS = 200_000


def frame():
    """Enough rows for several row groups."""
    return polars.DataFrame({"n": range(ROWS), "part": [n % 4 for n in range(ROWS)], "text": [f"row {n}" for n in range(ROWS)]})


def whole(settings, where):
    """Written, read back equal."""
    frame().write_parquet(f"{where}/whole.parquet", storage_options=settings)
    equal(polars.read_parquet(f"{where}/whole.parquet", storage_options=settings).equals(frame()), True, "frames equal:")


def scan(settings, where):
    """Only what the filter and the columns need."""
    found = polars.scan_parquet(f"{where}/whole.parquet", storage_options=settings).filter(
        polars.col("n").is_between(1000, 1009)).select("n").collect()
    equal(found["n"].to_list(), list(range(1000, 1010)))


def partitioned(settings, where):
    """Several files under one prefix, scanned by a pattern."""
    for part in range(4):
        frame().filter(polars.col("part") == part).write_parquet(f"{where}/set/part={part}/a.parquet", storage_options=settings)
    found = polars.scan_parquet(f"{where}/set/**/*.parquet", storage_options=settings, hive_partitioning=True)
    equal(found.select(polars.len()).collect().item(), ROWS)
    equal(found.filter(polars.col("part") == 2).select(polars.len()).collect().item(), ROWS // 4)


def streamed(settings, where):
    """Sunk without holding it, read by lines."""
    frame().lazy().sink_ndjson(f"{where}/lines.ndjson", storage_options=settings)
    equal(polars.scan_ndjson(f"{where}/lines.ndjson", storage_options=settings).select(polars.len()).collect().item(), ROWS)


def main(options, scratch):
    judged = Judged("polars", polars.__version__, options)
    with cli.server(options, scratch, extra=accounts.BOTH) as server:
        account = server.account
        account.service().create_container("polars")
        place = {"account_name": account.name, "azure_storage_endpoint": account.url, "allow_http": "true"}
        with_key, where = {**place, "account_key": account.key}, "az://polars/t"
        for name, run in (("Parquet whole", whole), ("Parquet scan", scan), ("partitioned", partitioned),
                          ("NDJSON streamed", streamed)):
            with judged.group(name):
                run(with_key, where)
        with judged.group("with a SAS"):
            whole({**place, "sas_token": accounts.sas(account)}, "az://polars/signed")
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

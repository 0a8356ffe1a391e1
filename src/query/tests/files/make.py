#!/usr/bin/env python3
"""Writes the files of Parquet beside it: pip install pyarrow, then run it in this folder.

Each has the same records in another compression, in two groups of rows. Two more are a file of all types and one with a list.
"""

import datetime
import decimal
import uuid

import pyarrow
import pyarrow.parquet

ROWS = 300
TABLE = pyarrow.table({
    "id": pyarrow.array(range(ROWS), pyarrow.int64()),
    "name": pyarrow.array([None if row % 3 == 2 else f"name {row % 7}" for row in range(ROWS)]),
    "price": pyarrow.array([row / 4 for row in range(ROWS)], pyarrow.float64()),
})
CODECS = ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]


def main():
    for codec in CODECS:
        version = "2.0" if codec in ("brotli", "zstd") else "1.0"
        pyarrow.parquet.write_table(TABLE, f"{codec}.parquet", compression=codec, row_group_size=200,
                                    data_page_version=version, use_dictionary=["name"], store_schema=False)
    moment = datetime.datetime(2024, 5, 6, 7, 8, 9, 123000, datetime.UTC)
    types = pyarrow.table({
        "yes": pyarrow.array([True, None]),
        "small": pyarrow.array([-1, None], pyarrow.int8()),
        "large": pyarrow.array([2**64 - 1, None], pyarrow.uint64()),
        "float": pyarrow.array([0.1, None], pyarrow.float32()),
        "day": pyarrow.array([moment.date(), None]),
        "millis": pyarrow.array([moment, None], pyarrow.timestamp("ms", "UTC")),
        "nanos": pyarrow.array([moment, None], pyarrow.timestamp("ns")),
        "price": pyarrow.array([decimal.Decimal("-12.50"), None], pyarrow.decimal128(20, 2)),
        "cents": pyarrow.array([decimal.Decimal("0.05"), None], pyarrow.decimal128(5, 2)),
        "place": pyarrow.array([{"city": "Bern", "at": {"x": 1}}, None]),
        "key": pyarrow.array([uuid.UUID(int=1).bytes, None], pyarrow.binary(16)),
    })
    pyarrow.parquet.write_table(types, "types.parquet", compression="none", store_schema=False,
                                store_decimal_as_integer=False)
    lists = pyarrow.table({"id": [1, 2], "tags": [["a"], []]})
    pyarrow.parquet.write_table(lists, "lists.parquet", compression="none", store_schema=False)


if __name__ == "__main__":
    main()

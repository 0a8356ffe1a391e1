#!/usr/bin/env python3
"""Query Blob Contents against DuckDB, and on blobs that are large or broken.

Drawn queries on drawn CSV, JSON and Parquet: the server answers what DuckDB answers. Parquet in every codec, an answer in
Arrow. A large CSV is filtered in bounded memory while others query too. Blobs that are no CSV, JSON or Parquet end in error
records, never in a 5xx, and the server goes on. --seed draws others, --queries more.
"""

import concurrent.futures
import csv
import datetime
import io
import json
import random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import ArrowDialect, ArrowType, BlobBlock, DelimitedJsonDialect, DelimitedTextDialect

from lib import cli
from lib.drawn_queries import Queries, Table, seeded
from lib.measure import RssSampler
from lib.report import Progress, Verdicts, mib

HEADER = DelimitedTextDialect(has_header=True)
PLAIN = DelimitedTextDialect(has_header=False)
LINES = DelimitedJsonDialect(delimiter="\n")
NAMES = ["n", "r", "s", "b", "t"]
TABLE_ROWS = 300
QUERIES_OF_A_TABLE = 100
# What queries may add to the memory of the server: steps at work, bytes read ahead, answers under way.
QUERY_BYTES_MAX = 96 << 20
PART_BYTES = 32 << 20
CODECS = ["NONE", "SNAPPY", "GZIP", "ZSTD", "BROTLI", "LZ4"]


class Passed(io.RawIOBase):
    """Counts the bytes that are written to it."""

    def __init__(self, progress):
        super().__init__()
        self.bytes, self._progress = 0, progress

    def write(self, data):
        """Takes bytes."""
        self.bytes += len(data)
        self._progress.move_to(self.bytes >> 20)
        return len(data)


def plain(value):
    """A value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat(timespec="seconds") + "Z" if isinstance(value, datetime.datetime) else value


def content(kind, table):
    """The blob of a table, and how a client names its format."""
    if kind == "csv":
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([NAMES, *([plain(value) for value in row] for row in table.rows)])
        return out.getvalue().encode(), HEADER
    if kind == "json":
        rows = [{name: plain(value) if name == "t" and value else value for name, value in zip(NAMES, row)} for row in table.rows]
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode(), LINES
    columns = dict(zip(NAMES, map(list, zip(*table.rows))))
    types = {"n": pa.int64(), "r": pa.float64(), "s": pa.string(), "b": pa.bool_(), "t": pa.timestamp("ms")}
    made = pa.table({name: pa.array(columns[name], types[name]) for name in NAMES})
    out = io.BytesIO()
    pq.write_table(made, out, compression="SNAPPY", row_group_size=TABLE_ROWS // 3)
    return out.getvalue(), "ParquetDialect"


def same(ours, theirs):
    """Whether a field of CSV says a value. Nothing and an empty text look the same there."""
    if theirs is None:
        return ours == ""
    if isinstance(theirs, bool):
        return ours.lower() == str(theirs).lower()
    if isinstance(theirs, str):
        return ours == theirs
    try:
        return abs(float(ours) - float(theirs)) <= 1e-9 * max(1.0, abs(float(theirs)))
    except ValueError:
        return False


def difference(blob, dialect, query, connection):
    """The errors in the answer to a query; empty if it is right."""
    expected = connection.execute(query.duck).fetchall()
    faults = []
    try:
        got = blob.query_blob(query.server, blob_format=dialect, output_format=PLAIN, on_error=faults.append).readall()
    except HttpResponseError as error:
        return f"{error.status_code} {error.message.splitlines()[0][:200]}"
    if faults:
        return f"{faults[0].error}: {faults[0].description} at {faults[0].position}"
    rows = list(csv.reader(io.StringIO(got.decode(), newline="")))
    # A record of one empty field is an empty line, which the module takes for none.
    rows = [row or [""] for row in rows]
    if len(rows) != len(expected):
        return f"{len(rows)} rows, not {len(expected)}"
    for row, wanted in zip(rows, expected):
        if len(row) != len(wanted) or not all(same(*pair) for pair in zip(row, wanted)):
            return f"{row}, not {wanted}"
    return None


def drawn(container, options, verdicts):
    """Queries on each format against DuckDB."""
    wrong, asked, with_rows = [], 0, 0
    with Progress("drawn queries", options.queries, "queries") as progress:
        while asked < options.queries:
            kind = ("csv", "json", "parquet")[(asked // QUERIES_OF_A_TABLE) % 3]
            draw = seeded(f"{options.seed} {asked}")
            table = Table(draw, TABLE_ROWS, nulls=kind != "csv")
            data, dialect = content(kind, table)
            blob = container.get_blob_client(f"drawn-{asked}")
            blob.upload_blob(data)
            connection = duckdb.connect(config={"threads": 1})
            connection.execute("CREATE TABLE drawn (n BIGINT, r DOUBLE, s VARCHAR, b BOOLEAN, t TIMESTAMP)")
            connection.executemany("INSERT INTO drawn VALUES (?, ?, ?, ?, ?)", table.rows)
            queries = Queries(draw, kind)
            for _ in range(QUERIES_OF_A_TABLE):
                query = queries.query()
                found = difference(blob, dialect, query, connection)
                if found:
                    wrong.append(f"{kind}: {query.server}\n    {found}")
                with_rows += bool(connection.execute(query.duck).fetchone())
                asked += 1
                progress.advance()
    verdicts.none(f"{asked:,} drawn queries are answered as DuckDB answers them", wrong, examples=20)
    verdicts.check("most of them have rows", with_rows * 2 > asked, "more than half", f"{with_rows:,} of {asked:,}")


def formats(container, verdicts):
    """Parquet in every codec, and an answer in Arrow."""
    size = 20_000
    table = pa.table({"id": list(range(size)), "name": [f"name {n % 7}" for n in range(size)],
                      "ratio": [n / 4 for n in range(size)], "maybe": [n if n % 3 else None for n in range(size)]})
    blob, wrong = container.get_blob_client("codecs"), []
    for codec in CODECS:
        for version, dictionary in (("1.0", True), ("2.0", False)):
            out = io.BytesIO()
            pq.write_table(table, out, compression=codec, row_group_size=7000, data_page_version=version, use_dictionary=dictionary)
            blob.upload_blob(out.getvalue(), overwrite=True)
            for statement, wanted in (
                    ("SELECT id, ratio FROM BlobStorage WHERE name = 'name 3' AND id < 20", b"3,0.75\n10,2.5\n17,4.25\n"),
                    ("SELECT COUNT(*), COUNT(maybe) FROM BlobStorage", b"20000,13333\n")):
                got = blob.query_blob(statement, blob_format="ParquetDialect").readall()
                if got != wanted:
                    wrong.append(f"{codec} {version}: {statement}: {got[:80]}")
    verdicts.none(f"Parquet in {len(CODECS)} codecs is read", wrong)
    blob.upload_blob(b"100,200,300,400\n300,400,500,600\n", overwrite=True)
    kinds = [ArrowDialect(ArrowType.INT64, name="n"), ArrowDialect(ArrowType.STRING, name="s"),
             ArrowDialect(ArrowType.DOUBLE, name="d"), ArrowDialect(ArrowType.BOOL, name="b"),
             ArrowDialect(ArrowType.DECIMAL, name="x", precision=6, scale=2)]
    got = blob.query_blob("SELECT CAST(_1 AS INT), _2, CAST(_3 AS FLOAT), _1 = '100', _4 FROM BlobStorage", output_format=kinds)
    rows = [[str(value) for value in row.values()] for row in pa.ipc.open_stream(got.readall()).read_all().to_pylist()]
    wanted = [["100", "200", "300.0", "True", "400.00"], ["300", "400", "500.0", "False", "600.00"]]
    verdicts.equal("an answer in Arrow has the columns that were asked for", rows, wanted)


def large(server, container, size, verdicts):
    """A CSV of `size` bytes is filtered in bounded memory, by several clients."""
    blob, made, number = container.get_blob_client("large.csv"), 0, 0
    line = b"%09d,a field of some length,\"quoted, with a comma\",%d,2026-11-28T00:00:00Z\n"
    blocks = []
    with Progress(f"a CSV of {mib(size)}", size >> 20, "MiB") as progress:
        while made < size:
            part = b"".join(line % (number + n, (number + n) % 1000) for n in range(PART_BYTES // 80))
            number += PART_BYTES // 80
            blocks.append(BlobBlock(f"{len(blocks):08}"))
            blob.stage_block(blocks[-1].id, part)
            made += len(part)
            progress.move_to(made >> 20)
        blob.commit_block_list(blocks)
    questions = [("SELECT COUNT(*) FROM BlobStorage WHERE CAST(_4 AS INT) = 7", b"%d\n" % sum(n % 1000 == 7 for n in range(number))),
                 ("SELECT _1 FROM BlobStorage WHERE _1 = '000000123'", b"000000123\n"),
                 ("SELECT _1 FROM BlobStorage LIMIT 2", b"000000000\n000000001\n")]
    before = RssSampler(server.process.pid)
    with before:
        blob.query_blob("SELECT * FROM BlobStorage LIMIT 1").readall()
    with RssSampler(server.process.pid) as during:
        with concurrent.futures.ThreadPoolExecutor(len(questions)) as pool:
            got = list(pool.map(lambda question: blob.query_blob(question[0]).readall(), questions))
        # An answer as long as the blob passes through.
        with Progress("all of it", made >> 20, "MiB") as progress:
            passed = Passed(progress)
            blob.query_blob("SELECT * FROM BlobStorage").readinto(passed)
    verdicts.none(f"a CSV of {mib(made)} is filtered", [(asked[0], answer[:40]) for asked, answer in zip(questions, got) if answer != asked[1]])
    verdicts.equal("an answer of all records has all bytes", passed.bytes, made)
    verdicts.check(f"queries of {mib(made)} add at most {mib(QUERY_BYTES_MAX)} of memory",
                   during.peak - before.peak <= QUERY_BYTES_MAX, f"{mib(before.peak)} before", f"{mib(during.peak)} during")


def broken(container, options, verdicts):
    """Blobs that are not CSV, JSON or Parquet, and damaged ones."""
    draw = random.Random(options.seed)
    out = io.BytesIO()
    pq.write_table(pa.table({"a": list(range(3000)), "b": [f"x{n}" for n in range(3000)]}), out, compression="SNAPPY")
    parquet = out.getvalue()
    lines = b'{"a":1,"b":"x"}\n' * 50
    # What the error record of each says; the last ones of CSV are values, odd as they are.
    fixed = {"ParseError": [("ParquetDialect", b""), ("ParquetDialect", b"PAR1PAR1"), ("ParquetDialect", parquet[:-9]),
                            ("ParquetDialect", parquet[9:]), ("ParquetDialect", b"PAR1" + b"\xff" * 40 + b"\xff\xff\xff\x7fPAR1"),
                            (LINES, b"[1,2"), (LINES, b"{" * 100_000), (LINES, b'{"a":' * 50_000), (LINES, b"\xff\xfe"), (LINES, b"nul\n")],
             "RecordTooLarge": [(PLAIN, b"x" * (8 << 20)), (LINES, b'{"a":"' + b"x" * (8 << 20) + b'"}')],
             None: [(PLAIN, b'"never closed'), (PLAIN, b"\x00\xff\n")]}
    cases = [(dialect, data) for of_one in fixed.values() for dialect, data in of_one]
    names = [name for name, of_one in fixed.items() for _ in of_one]
    for dialect, whole in (("ParquetDialect", parquet), (LINES, lines)):
        for _ in range(options.broken):
            changed = bytearray(whole)
            for _ in range(draw.randint(1, 4)):
                changed[draw.randrange(len(changed))] = draw.randrange(256)
            cases.append((dialect, bytes(changed[:draw.choice([len(changed), draw.randrange(len(changed))])])))
    wrong, reported = [], 0
    blob = container.get_blob_client("broken")
    with Progress("broken blobs", len(cases), "blobs") as progress:
        for number, (dialect, data) in enumerate(cases):
            blob.upload_blob(data, overwrite=True)
            faults = []
            try:
                blob.query_blob("SELECT * FROM BlobStorage", blob_format=dialect, output_format=PLAIN, on_error=faults.append).readall()
            except HttpResponseError as error:
                wrong.append(f"case {number}: {error.status_code} {error.error_code}")
            except Exception as error:  # pylint: disable=broad-except
                wrong.append(f"case {number}: {type(error).__name__}: {error}")
            reported += bool(faults)
            found = faults[0].error if faults else None
            if number < len(names) and found != names[number]:
                wrong.append(f"case {number}: {found}, not {names[number]}")
            progress.advance()
    verdicts.none(f"{len(cases)} broken blobs are answered with records", wrong, examples=10)
    verdicts.check("most of them with an error record", reported * 2 > len(cases), "more than half", f"{reported} of {len(cases)}")
    blob.upload_blob(b"1,2\n", overwrite=True)
    verdicts.equal("the server goes on", blob.query_blob("SELECT _2 FROM BlobStorage").readall(), b"2\n")


def main(options, scratch):
    if options.small:
        options.queries, options.broken, options.bytes = min(options.queries, 900), 60, 128 << 20
    verdicts = Verdicts("Query Blob Contents")
    with cli.server(options, scratch) as server:
        container = server.account.service().create_container("queries")
        formats(container, verdicts)
        drawn(container, options, verdicts)
        broken(container, options, verdicts)
        large(server, container, options.bytes, verdicts)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--queries", type=int, default=5000, help="drawn queries (default: 5000)")
    flags.add_argument("--broken", type=int, default=500, help="changed blobs of each format (default: 500)")
    flags.add_argument("--bytes", type=int, default=1 << 30, help="of the large CSV (default: 1 GiB)")
    flags.add_argument("--seed", default="1", help="what is drawn")
    cli.run(main, cli.parse(flags))

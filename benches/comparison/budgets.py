"""The workloads in the order of the table, with Blockyard's budget of server CPU."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One workload: its name in the driver, words for the table, unit of CPU and the budget in microseconds; its name in the
    results, if it is not the first row of that workload."""

    workload: str
    title: str
    unit: str
    budget_us: float
    again: str = ""

    @property
    def name(self):
        """The name in the results."""
        return self.again or self.workload


# A list of a new container is measured first. The writes after it stripe the range, and a page of 16 stripes costs more.
ROWS = [
    Row("list", "LIST page of 1000, per key", "key", 1.5),
    Row("put4k", "PUT 4 KiB, c=16", "op", 100),
    Row("sha4k", "PUT 4 KiB, body signed (S3), c=16", "op", 100),
    Row("get4k", "GET 4 KiB, c=16", "op", 65),
    Row("head", "HEAD, c=16", "op", 45),
    Row("delete", "DELETE, c=16", "op", 60),
    Row("list", "LIST page of 1000 after those writes, per key", "key", 2.2, "list_after_writes"),
    Row("mixed", "mixed 45 get / 30 head / 15 put / 10 delete, 4 KiB", "op", 80),
    Row("put1m", "PUT 1 MiB (MD5 computed), c=4", "MiB", 3_100),
    Row("block8m", "16 x Put Block 8 MiB (CRC64), commit, c=4", "MiB", 1_200),
    Row("part8m", "16 x UploadPart or Put Block 8 MiB, complete, c=16", "MiB", 1_200),
    Row("get1m", "GET 1 MiB, c=4", "MiB", 550),
    Row("get16m", "GET 16 MiB, c=4", "MiB", 450),
    Row("range64k", "ranged GET 64 KiB, c=16", "op", 90),
]

# S3 beside Blob of this server: the most that an operation may take, and how many times less than SeaweedFS's.
S3_OF_BLOB = {"put4k": 1.25, "get4k": 1.2, "head": 1.2, "delete": 1.2, "list": 1.2}
# A signed body costs its SHA-256, which Put Blob has not: at most this of Put Blob, and a SHA-256 of as many bytes.
S3_OF_BLOB_PLUS_SHA256 = {"sha4k": (1.25, 4 / 1024)}
# A part of an upload computes an MD5, which Put Block does not: beside Put Block and an MD5 of one stream.
S3_OF_BLOB_AND_MD5 = {"part8m": 0.6}
S3_BELOW_PEER = {"put4k": 5, "get4k": 5, "head": 3.5, "list": 6}

# Workloads that make blobs. A second run under the same names would overwrite them, which costs more.
WRITES = {"put4k", "sha4k", "put1m", "block8m", "part8m"}

IDLE_RSS_MIB = 40
BURST_RSS_MIB = 300
RESTART_SECONDS = 2.0

#!/usr/bin/env python3
"""The clients of S3 for Java: AWS SDK v2 and minio-java (`java/s3`), Hadoop's S3A (`java/s3a`), Spark over it (`java/spark`).
This reads the answers."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import cli, jvm, s3_clients
from lib.install import Unavailable
from lib.judged import Judged, equal, parse

MODULES = ["s3", "s3a", "spark"]
VERSIONS = {"AWS SDK": "awssdk", "minio-java": "minio", "S3A": "hadoop", "Spark": "spark"}
LARGE_BYTES = (12 << 20) + 7
# Of each module, two names under which it has left the same content.
SAME = {"s3": ("file", "crt-file"), "s3a": ("large", "renamed")}
PARQUET = b"PAR1"


def read_by_blob(bucket, module):
    """What the module left is read by the Blob SDK."""
    if module == "spark":
        names = [one.name for one in bucket.list_blobs(name_starts_with="table/") if one.name.endswith(".parquet")]
        tables = [bucket.download_blob(name).readall() for name in names]
        equal({(table[:4], table[-4:]) for table in tables}, {(PARQUET, PARQUET)}, "files of Parquet:")
        return
    one, other = (bucket.download_blob(name).readall() for name in SAME[module])
    equal(one == other, True, "the same bytes:")
    equal(len(one), LARGE_BYTES, "how many:")


def main(options, scratch):
    judged = Judged("Java: AWS SDK v2, minio-java, S3A, Spark",
                    ", ".join(f"{name} {jvm.version(known)}" for name, known in VERSIONS.items()), options)
    with cli.server(options, scratch) as server:
        account = server.account
        for module in MODULES:
            try:
                program = jvm.Program(module)
            except Unavailable as missing:
                judged.not_run(f"{module}: all", str(missing))
                continue
            bucket = account.service().create_container(f"java-{module}")
            bucket.upload_blob("from-blob", b"of Blob")
            program.run(judged, {"ENDPOINT": s3_clients.endpoint(account), "KEY_ID": account.name, "SECRET": account.key,
                                 "BUCKET": bucket.container_name, "SCRATCH": scratch})
            with judged.group(f"{module}: Blob reads what S3 wrote"):
                read_by_blob(bucket, module)
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

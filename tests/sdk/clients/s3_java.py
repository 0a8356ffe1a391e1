#!/usr/bin/env python3
"""The clients of S3 for Java: AWS SDK v2 and minio-java (`java/s3`), Hadoop's S3A (`java/s3a`). This reads the answers."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import cli, jvm, s3_clients
from lib.install import Unavailable
from lib.judged import Judged, equal, parse

LARGE_BYTES = (12 << 20) + 7
# Of each module, two names under which it has left the same content.
MODULES = {"s3": ("file", "crt-file"), "s3a": ("large", "renamed")}
VERSIONS = {"AWS SDK": "awssdk", "minio-java": "minio", "S3A": "hadoop"}


def main(options, scratch):
    judged = Judged("Java: AWS SDK v2, minio-java, S3A",
                    ", ".join(f"{name} {jvm.version(known)}" for name, known in VERSIONS.items()), options)
    with cli.server(options, scratch) as server:
        account = server.account
        for module, same in MODULES.items():
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
                one, other = (bucket.download_blob(name).readall() for name in same)
                equal(one == other, True, "the same bytes:")
                equal(len(one), LARGE_BYTES, "how many:")
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

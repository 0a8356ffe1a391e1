#!/usr/bin/env python3
"""The AWS SDK for JavaScript v3 with lib-storage, and minio-js, under Node: `js/s3_suite.mjs` asks, this reads the answers."""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from azure_storage_blob_js import node
from lib import cli, s3_clients
from lib.content import content
from lib.install import Unavailable, npm
from lib.judged import Judged, NotRun, equal, parse

VERSION = "3.1175.0"
PACKAGES = [f"@aws-sdk/client-s3@{VERSION}", f"@aws-sdk/lib-storage@{VERSION}", "@aws-sdk/s3-presigned-post@3.1164.0",
            "@aws-sdk/s3-request-presigner@3.1169.0", "minio@8.0.7"]
SUITE = pathlib.Path(__file__).parent / "js" / "s3_suite.mjs"
BUCKET = "javascript"


def main(options, scratch):
    judged = Judged("AWS SDK for JS v3, minio-js", VERSION, options)
    try:
        program, folder = node(), npm(PACKAGES)
    except (NotRun, Unavailable) as missing:
        judged.not_run("all", str(missing))
        return judged.exit_code()
    # A module finds packages beside itself, so it runs beside the installed ones.
    suite = folder / SUITE.name
    suite.write_bytes(SUITE.read_bytes())
    with cli.server(options, scratch) as server:
        account = server.account
        account.service().create_container(BUCKET)
        s3_clients.written_by_blob(account, BUCKET)
        environment = {"ENDPOINT": s3_clients.endpoint(account), "KEY_ID": account.name, "SECRET": account.key, "BUCKET": BUCKET,
                "LARGE": str(scratch / "large.bin")}
        (scratch / "large.bin").write_bytes(content("large", 12 << 20))
        done = subprocess.run([program, suite], env={**os.environ, **environment}, capture_output=True, text=True, timeout=600,
                              stdin=subprocess.DEVNULL)
        print(done.stderr[-4000:])
        for line in done.stdout.splitlines():
            row = json.loads(line)
            with judged.group(row["group"]):
                if row["error"]:
                    raise AssertionError(row["error"])
        with judged.group("ran to its end, and Blob sees it"):
            equal(done.returncode, 0, done.stderr[-200:])
            found = s3_clients.through_blob(account, BUCKET)
            large = content("large", 12 << 20)
            equal({name: data == large for name, data in found.items() if name.startswith("large")},
                  {"large-sdk": True, "large-minio": True})
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

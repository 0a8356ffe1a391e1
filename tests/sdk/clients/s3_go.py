#!/usr/bin/env python3
"""The clients for Go: AWS SDK v2 with its manager, minio-go, azblob. `go/` asks, this reads the answers."""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import cli, s3_clients
from lib.install import Unavailable, golang
from lib.judged import Judged, equal, parse

PROJECT = pathlib.Path(__file__).parent / "go"
CONTAINER = "golang"
# (first word of its groups, its name in the table, module)
CLIENTS = [("AWS", "AWS SDK for Go v2", "github.com/aws/aws-sdk-go-v2"), ("minio-go", "minio-go", "github.com/minio/minio-go/v7"),
           ("azblob", "azblob (Go)", "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob")]


def version(module):
    """The version that go.mod names."""
    words = [line.split() for line in (PROJECT / "go.mod").read_text().splitlines()]
    return next(line[1] for line in words if line and line[0] == module).removeprefix("v")


def main(options, scratch):
    modules = ", ".join(f"{name} {version(module)}" for _, name, module in CLIENTS)
    judged = Judged("Go SDKs", modules, options)
    try:
        program = golang(PROJECT)
    except Unavailable as missing:
        judged.not_run("all", str(missing))
        return judged.exit_code()
    with cli.server(options, scratch) as server:
        account = server.account
        account.service().create_container(CONTAINER)
        environment = {"ENDPOINT": s3_clients.endpoint(account), "ADDRESS": account.address, "ACCOUNT": account.name, "KEY": account.key,
                "CONTAINER": CONTAINER}
        done = subprocess.run([program], env={**os.environ, **environment}, capture_output=True, text=True, timeout=600,
                              stdin=subprocess.DEVNULL)
        print(done.stderr[-4000:])
        for line in done.stdout.splitlines():
            row = json.loads(line)
            with judged.group(row["group"]):
                if row["error"]:
                    raise AssertionError(row["error"])
        with judged.group("ran to its end, and Blob sees it"):
            equal(done.returncode, 0, done.stderr[-200:])
            found = s3_clients.through_blob(account, CONTAINER)
            equal(found["go/large"] == found["blob/large"], True, "the same bytes through S3 and Blob:")
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

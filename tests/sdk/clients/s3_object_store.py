#!/usr/bin/env python3
"""object_store (Rust) over S3: the integration suite it publishes, function by function."""

import pathlib
import subprocess
import sys
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import cli, rust, s3_clients
from lib.judged import Judged, equal, parse


def main(options, scratch):
    judged = Judged("object_store (Rust, s3)", rust.version("object_store"), options)
    program = rust.built(judged, "object_store_s3_suite")
    if not program:
        return judged.exit_code()
    cases = subprocess.run([program, "--cases"], capture_output=True, text=True, check=True).stdout.split()
    with cli.server(options, scratch) as server:
        account = server.account
        for case in cases:
            account.service().create_container(f"suite-{case.replace('_', '-')}")
        environment = s3_clients.environment(account, AWS_ENDPOINT=s3_clients.endpoint(account), AWS_ALLOW_HTTP="true",
                                             AWS_CONDITIONAL_PUT="etag", AWS_COPY_IF_NOT_EXISTS="multipart")
        lines = rust.run(judged, program, environment)
        with judged.group("the signed URL answers, the tags are there"):
            equal(len(lines), 1, "addresses printed:")
            with urllib.request.urlopen(lines[0]["signed"], timeout=30) as answer:
                equal(answer.read(), b"hello world")
            blob = account.service().get_blob_client("suite-unpublished", "file.txt")
            equal(blob.get_blob_tags(), {"a key": "a value/+"})
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

#!/usr/bin/env python3
"""object_store (Rust): the integration suite it publishes, function by function, with the account key."""

import os
import pathlib
import subprocess
import sys
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import cli, rust
from lib.judged import Judged, equal, parse


def main(options, scratch):
    judged = Judged("object_store (Rust)", rust.version("object_store"), options)
    program = rust.built(judged, "object_store_suite")
    if not program:
        return judged.exit_code()
    cases = subprocess.run([program, "--cases"], capture_output=True, text=True, check=True).stdout.split()
    with cli.server(options, scratch) as server:
        account = server.account
        for case in cases:
            account.service().create_container(f"suite-{case.replace('_', '-')}")
        environment = {**os.environ, "AZURE_STORAGE_ACCOUNT_NAME": account.name, "AZURE_STORAGE_ACCOUNT_KEY": account.key,
                       "AZURE_STORAGE_ENDPOINT": account.url, "AZURE_ALLOW_HTTP": "true"}
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

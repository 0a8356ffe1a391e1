#!/usr/bin/env python3
"""azure_storage_blob for Rust with an account signature: over http this client knows no account key."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import accounts, cli, rust
from lib.judged import Judged, parse


def main(options, scratch):
    judged = Judged("azure_storage_blob (Rust)", rust.version("azure_storage_blob"), options)
    program = rust.built(judged, "azure_sdk_suite")
    if not program:
        return judged.exit_code()
    with cli.server(options, scratch, extra=accounts.BOTH) as server:
        account, other = server.account, accounts.second(server)
        source = other.service().create_container("source").upload_blob("a + b%.txt", b"the source")
        environment = {**os.environ, "CONTAINER_URL": f"{account.url}/rust?{accounts.sas(account)}",
                       "SOURCE_URL": f"{source.url}?{accounts.sas(other)}"}
        rust.run(judged, program, environment)
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

#!/usr/bin/env python3
"""azure-storage-blob for Java with its batch client: `java/blob` asks, this starts the server and reads the answers."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import accounts, cli, jvm
from lib.account import DEV_NAME
from lib.install import Unavailable
from lib.issuer import ISSUER, Issuer
from lib.judged import Judged, parse


def main(options, scratch):
    judged = Judged("azure-storage-blob (Java)", jvm.version("azure-storage-blob"), options)
    try:
        program = jvm.Program("blob")
    except Unavailable as missing:
        judged.not_run("all", str(missing))
        return judged.exit_code()
    issuer, keys = Issuer(), scratch / "keys.json"
    keys.write_text(issuer.key_set())
    trusted = f"--oidc=issuer={ISSUER};jwks={keys};account={DEV_NAME}"
    with cli.server(options, scratch, extra=[*accounts.BOTH, trusted, "--tls=auto"]) as server:
        other = accounts.second(server)
        program.run(judged, {
            "CONNECTION_STRING": server.account.connection_string, "SECOND": other.connection_string,
            "SECOND_SAS": accounts.sas(other), "LOCKING": accounts.locking(server).connection_string,
            "SECURE": server.account.connection_string.replace("http", "https"), "TOKEN": issuer.token(),
            "AUTHORITY": scratch / "data" / "tls" / "ca.pem", "SCRATCH": scratch})
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

#!/usr/bin/env python3
"""@azure/storage-blob for JavaScript under Node: `js/suite.mjs` asks, this starts the server and reads the answers."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import accounts, cli
from lib.install import Unavailable, npm
from lib.judged import Judged, NotRun, parse

# The newest one that runs on Node 20.
VERSION = "12.34.0"
NODE_MAJOR_MIN = 20
SUITE = pathlib.Path(__file__).parent / "js" / "suite.mjs"


def node():
    """The program, if there is one that is new enough."""
    found = shutil.which("node")
    if not found:
        raise NotRun("no node")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    if int(re.match(r"v(\d+)", version)[1]) < NODE_MAJOR_MIN:
        raise NotRun(f"node {version.strip()}, needs {NODE_MAJOR_MIN}")
    return found


def main(options, scratch):
    judged = Judged("@azure/storage-blob (JS)", VERSION, options)
    try:
        program, folder = node(), npm([f"@azure/storage-blob@{VERSION}"])
    except (NotRun, Unavailable) as missing:
        judged.not_run("all", str(missing))
        return judged.exit_code()
    # A module finds packages beside itself, so it runs beside the installed ones.
    suite = folder / SUITE.name
    suite.write_bytes(SUITE.read_bytes())
    with cli.server(options, scratch, extra=accounts.BOTH) as server:
        other = accounts.second(server)
        environment = {"CONNECTION_STRING": server.account.connection_string, "SECOND": other.connection_string,
                "SECOND_SAS": accounts.sas(other), "LOCKING": accounts.locking(server).connection_string}
        done = subprocess.run([program, suite], env={**os.environ, **environment}, capture_output=True, text=True, timeout=600,
                              stdin=subprocess.DEVNULL)
    print(done.stderr[-4000:])
    for line in done.stdout.splitlines():
        row = json.loads(line)
        with judged.group(row["group"]):
            if row["error"]:
                raise AssertionError(row["error"])
    with judged.group("ran to its end"):
        if done.returncode:
            raise AssertionError(f"exit {done.returncode}: {done.stderr[-200:]}")
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

#!/usr/bin/env python3
"""Slow copy sources of one account do not stop the copies of another, and their copies fail in the end.

A source on loopback sends a byte a second. One account has many copies from it pending; another account's copy from a fast
source must be done at once. Without --small the slow
copies are followed until they fail for being slower than the minimum rate.
"""

import json
import subprocess
import time

from lib import cli
from lib.account import Account
from lib.report import Verdicts
from lib.source import Source
from lib.wire import Wire

BODY = b"z" * 4096
DONE_SECONDS = 20
GIVEN_UP_SECONDS = 150


def send(source, path, write):
    """Sends /fast immediately and everything else a byte a second."""
    if path == "/fast":
        write(BODY)
        return
    for at in range(len(BODY)):
        write(BODY[at:at + 1])
        if source.closing.wait(1):
            return


def furnished(server, name):
    """A new account with a container, as a connection that signs."""
    done = subprocess.run(
        [server.binary, "account", "create", name, "--json", "--admin-listen", server.admin_address, "--data",
         server.data[0]], capture_output=True, text=True, timeout=60, check=True)
    wire = Wire(Account(server.blob_address, name, json.loads(done.stdout)["keys"][0]))
    wire.request("PUT", "/box", {"restype": "container"})
    return wire


def begin(wire, name, url):
    """Begins a copy; whether it is pending."""
    answer = wire.request("PUT", f"/box/{name}", headers={"x-ms-copy-source": url})
    return answer.status == 202


def state(wire, name):
    """The state of a copy and its description."""
    answer = wire.request("HEAD", f"/box/{name}")
    return answer.headers.get("x-ms-copy-status"), answer.headers.get("x-ms-copy-status-description", "")


def ended(wire, name, seconds):
    """The state of a copy once it is not pending any more, or after so long."""
    until = time.monotonic() + seconds
    while (now := state(wire, name))[0] == "pending" and time.monotonic() < until:
        time.sleep(0.2)
    return now


def main(options, scratch):
    """Runs everything; the exit code."""
    verdicts = Verdicts("turns of pending copies")
    slow = 40 if options.small else 1000
    with Source(len(BODY), send) as source, cli.server(options, scratch, ["--copy-source-allow=127.0.0.0/8"]) as server:
        first, second = furnished(server, "first"), furnished(server, "second")
        begun = sum(begin(first, f"slow{number}", source.url("slow")) for number in range(slow))
        verdicts.equal("slow copies of the first account are pending", begun, slow)
        began = time.monotonic()
        verdicts.check("the second account begins one", begin(second, "fast", source.url("fast")))
        found = ended(second, "fast", DONE_SECONDS)
        verdicts.equal("it is done while they hang", found[0], "success")
        verdicts.figure("seconds", f"{time.monotonic() - began:.1f}")
        body = second.request("GET", "/box/fast").body
        verdicts.check("and has the source's bytes", body == BODY)
        verdicts.check("the slow ones are pending still", state(first, "slow0")[0] == "pending")
        if not options.small:
            state_, said = ended(first, "slow0", GIVEN_UP_SECONDS)
            verdicts.equal("a source below the minimum rate is given up", state_, "failed")
            verdicts.check("and the description says why", said.startswith("500 CannotVerifyCopySource"), "the code", said)
    return verdicts.exit_code()


if __name__ == "__main__":
    chosen = cli.parse(cli.parser(__doc__))
    cli.run(main, chosen)

#!/usr/bin/env python3
"""An upload that is in progress while its container is deleted leaves no rows behind.

Uploads begin, some of them small enough to live in the index alone, and send a few bytes a second. Their container is deleted
meanwhile. The server must not forget the container before the uploads have ended, however long they take, and must remove
what they wrote: `check` of the stopped server finds no blob.
"""

import email.utils
import re
import socket
import time

from lib import cli
from lib.report import Progress, Verdicts
from lib.wire import VERSION, signature

CONTAINER = "slow-upload"
# In the row, in a shared append, and in an append of its own.
SIZES = [300, 100_000, 3 << 20]


class SlowPut:
    """A Put Blob of which the head was sent."""

    def __init__(self, account, name, size):
        self.left = size
        host, port = account.address.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        path = f"/{account.name}/{CONTAINER}/{name}"
        headers = {"x-ms-version": VERSION, "x-ms-date": email.utils.formatdate(usegmt=True),
                   "x-ms-blob-type": "BlockBlob", "content-length": str(size)}
        mark = signature(account.name, account.key, "PUT", path, {}, headers)
        headers |= {"authorization": f"SharedKey {account.name}:{mark}", "host": account.address}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.socket.sendall(f"PUT {path} HTTP/1.1\r\n{lines}\r\n".encode())

    def send(self, count):
        """Sends so many bytes more, or what is left."""
        count = min(count, self.left)
        self.socket.sendall(bytes(count))
        self.left -= count

    def finish(self):
        """Sends the rest; the status."""
        self.send(self.left)
        return int(self.socket.recv(4096).split(b" ")[1])


def metric(server, name):
    """A sample of the server, whatever stands before its name."""
    return next((value for key, value in server.metrics().items() if key.endswith(name)), 0)


def main(options, scratch):
    verdicts = Verdicts("an upload slower than its container's end")
    # A server cuts uploads as slow as these, unless it is told not to.
    with cli.server(options, scratch, ["--request-min-rate=0"]) as server:
        container = server.account.service().create_container(CONTAINER)
        puts = [SlowPut(server.account, f"blob-{size}", size) for size in SIZES]
        for put in puts:
            put.send(10)
        container.delete_container()
        early = 0
        with Progress("bodies trickle in", options.seconds, "s") as progress:
            for second in range(options.seconds):
                time.sleep(1)
                early = max(early, metric(server, "reclaim_purged_containers_total"))
                for put in puts:
                    put.send(5)
                progress.move_to(second + 1)
        verdicts.equal("containers forgotten while uploads ran", early, 0)
        purges = metric(server, "reclaim_purge_writes_total")
        verdicts.check("its rows were purged meanwhile", purges > 0, "> 0", purges)
        statuses = [put.finish() for put in puts]
        verdicts.check("every upload was answered", all(status in (201, 404) for status in statuses), "201 or 404", statuses)
        until = time.monotonic() + options.wait_seconds
        while not metric(server, "reclaim_purged_containers_total") and time.monotonic() < until:
            time.sleep(0.5)
        verdicts.equal("containers forgotten when they had ended", metric(server, "reclaim_purged_containers_total"), 1)
        verdicts.equal("exit code after SIGTERM", server.stop(), 0)
        code, output = server.check()
        blobs = re.search(r"([\d,]+) blobs", output)
        left = int(blobs[1].replace(",", "")) if blobs else None
        verdicts.check("no blob is left", code == 0 and left == 0, "0", left)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--seconds", type=int, help="how long the uploads take (default 300; 40 with --small)")
    flags.add_argument("--wait-seconds", type=int, default=60, help="longest wait for the purge after that")
    parsed = cli.parse(flags)
    parsed.seconds = parsed.seconds or (40 if parsed.small else 300)
    cli.run(main, parsed)

#!/usr/bin/env python3
"""A reader that stops reading does not prevent other space from being freed.

An anonymous client asks for a large blob over a bare socket and reads nothing but the head. Meanwhile that blob and all others
are overwritten or deleted. The space of the others must come back while the socket is still open. What the client then reads
must be the bytes it asked for. After it is done the rest comes back too.
"""

import socket
import time

from lib import cli
from lib.content import content
from lib.report import Progress, Verdicts, mib

CONTAINER = "stalled"
HELD = "held"
OTHER_BYTES = 1 << 20
# The client's own end takes little, so that most of the blob stays in the server.
RECEIVE_BUFFER = 64 << 10


class StalledReader:
    """An anonymous GET of a blob, of which only the head has been read."""

    def __init__(self, account, blob):
        host, port = account.address.split(":")
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        self.socket.settimeout(60)
        self.socket.connect((host, int(port)))
        target = f"/{account.name}/{CONTAINER}/{blob}"
        self.socket.sendall(f"GET {target} HTTP/1.1\r\nHost: {account.address}\r\nConnection: close\r\n\r\n".encode())
        self.head, self.body = b"", b""
        while b"\r\n\r\n" not in self.head:
            self.head += self.socket.recv(1)

    def rest(self):
        """The whole body, as far as it comes."""
        parts = []
        while part := self.socket.recv(1 << 20):
            parts.append(part)
        return b"".join(parts)


def metric(server, name):
    """A sample of the server, whatever stands before its name."""
    return next((value for key, value in server.metrics().items() if key.endswith(name)), None)


def held_within(server, wanted, seconds):
    """The bytes that readers hold, by the server's metric, which it updates at the end of a pass: the last value of the wait."""
    until = time.monotonic() + seconds
    while (held := metric(server, "reclaim_held_bytes")) != wanted and time.monotonic() < until:
        time.sleep(0.2)
    return held


def wait_for_freed(server, wanted, seconds, title):
    """Waits until so many bytes were freed in all, or the wait is over. Returns the bytes."""
    until, freed = time.monotonic() + seconds, 0
    with Progress(title, wanted >> 20, "MiB") as progress:
        while True:
            freed = metric(server, "reclaim_freed_bytes_total") or 0
            progress.move_to(freed / (1 << 20))
            if freed >= wanted or time.monotonic() > until:
                return freed
            time.sleep(0.2)


def main(options, scratch):
    verdicts = Verdicts("a stalled reader")
    held_bytes = options.mib << 20
    with cli.server(options, scratch) as server:
        service = server.account.service()
        container = service.create_container(CONTAINER, public_access="blob")
        held = content(HELD, held_bytes)
        container.upload_blob(HELD, held)
        names = [f"other-{number:04}" for number in range(options.others)]
        for name in names:
            container.upload_blob(name, content(name, OTHER_BYTES))
        reader = StalledReader(server.account, HELD)
        verdicts.check("the large blob is on its way", reader.head.startswith(b"HTTP/1.1 200"), "200", reader.head[:60])
        for number, name in enumerate(names):
            if number % 2:
                container.delete_blob(name)
            else:
                container.upload_blob(name, b"small", overwrite=True)
        container.delete_blob(HELD)
        others = len(names) * OTHER_BYTES
        freed = wait_for_freed(server, others, options.wait_seconds, "space of the others comes back")
        verdicts.check("freed while the reader stalls", others <= freed < others + held_bytes, f">= {mib(others)}",
                       mib(int(freed)))
        held_now = held_within(server, held_bytes, options.wait_seconds)
        verdicts.check("the metric shows what it holds", held_now == held_bytes, mib(held_bytes), held_now)
        age = metric(server, "reclaim_oldest_read_seconds")
        verdicts.check("the metric of the oldest read is there", age is not None, "a number", age)
        rest = reader.rest()
        verdicts.check("the stalled reader gets its bytes", rest == held, mib(held_bytes), mib(len(rest)))
        freed = wait_for_freed(server, others + held_bytes, options.wait_seconds, "its own space comes back")
        verdicts.check("freed when it is done", freed >= others + held_bytes, mib(others + held_bytes), mib(int(freed)))
        verdicts.equal("exit code after SIGTERM", server.stop(), 0)
        verdicts.sound(server)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--mib", type=int, default=64, help="size of the blob that is held")
    flags.add_argument("--others", type=int, help="other blobs of 1 MiB (default 400; 40 with --small)")
    flags.add_argument("--wait-seconds", type=int, default=60, help="longest wait for the space")
    parsed = cli.parse(flags)
    parsed.others = parsed.others or (40 if parsed.small else 400)
    cli.run(main, parsed)

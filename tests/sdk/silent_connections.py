#!/usr/bin/env python3
"""An attacker opens connections and sends nothing on them, or only half a request: from one address, from many addresses, and on
the admin listener. There it also asks for health again and again and reads no answer. Whenever the server closes a connection,
the attacker opens another.

An SDK client that opens a new connection for each request is served all the same, a slow upload goes on, the admin listener
answers health checks, and an address that has more connections than it may is refused while others are served. Idle connections
stay cheap.
"""

import asyncio
import contextlib
import email.utils
import http.client
import resource
import threading
import time

from lib import cli
from lib.content import pieces
from lib.measure import rss_bytes, wait_until
from lib.report import Verdicts, mib
from lib.wire import VERSION, signature

CONTAINER = "silence"
HALF_HEAD = b"GET /devstoreaccount1/ HTTP/1.1\r\nHost: local"
# With an unrequested body, the server takes the next request before the answer is sent.
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx" * 100_000
# Of a connection that has asked once. In one run over 5,000 connections a release build of commit a19344a took 31,550 bytes for
# each (150 MiB), and one of the tree of this limit 19,330 (92 MiB): 3,050 before the first byte, 16,070 with half a head. The
# limit leaves 6 % to the allocator.
IDLE_LIMIT = 20_500


def raise_open_files():
    """Lets this process have as many sockets as it may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


class Attacker:
    """Keeps `count` connections open, each from the next of its addresses, from a thread of its own. It reads what the server
    says, or nothing."""

    def __init__(self, address, count, sources, says=b"", reads=True):
        self.host, port = address.rsplit(":", 1)
        self.port, self.count, self.sources, self.says, self.reads = int(port), count, sources, says, reads
        self.opened, self.open, self._ended = 0, 0, threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    async def _one(self, number):
        while not self._ended.is_set():
            source = (self.sources[number % len(self.sources)], 0)
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection(self.host, self.port, local_addr=source)
                writer.write(self.says)
                self.opened, self.open = self.opened + 1, self.open + 1
                with contextlib.suppress(OSError, TimeoutError):
                    while not self._ended.is_set() and not reader.at_eof() and not writer.is_closing():
                        if not self.reads:
                            await asyncio.sleep(0.2)
                            continue
                        with contextlib.suppress(TimeoutError):
                            await asyncio.wait_for(reader.read(1 << 16), 1)
                self.open -= 1
                writer.close()
            # A server that refuses at once must not keep this process busy instead of itself.
            await asyncio.sleep(0.2)

    async def _run(self):
        await asyncio.gather(*(self._one(number) for number in range(self.count)))

    def __enter__(self):
        self._thread.start()
        wait_until(lambda: self.opened >= self.count, 60, 0.05)
        return self

    def __exit__(self, *exc):
        self._ended.set()
        self._thread.join(30)
        return False


def served(account, requests):
    """How many of `requests` round trips of an SDK client succeed, each on a new connection and without a repetition."""
    good, wrong = 0, []
    for number in range(requests):
        body = b"".join(pieces((str(number),), 2048, 2048))
        try:
            with account.service() as service:
                blob = service.get_blob_client(CONTAINER, f"blob-{number}")
                blob.upload_blob(body, overwrite=True)
                good += blob.download_blob().readall() == body
        except Exception as error:  # pylint: disable=broad-except  # Whatever it is, the client was not served.
            wrong.append(repr(error)[:200])
    return good, wrong


def slow_upload(account, seconds, outcome):
    """Uploads a blob through one connection, a piece at a time; notes the status."""
    body, path = bytes(20 * 1024), f"/{account.name}/{CONTAINER}/slow"
    headers = {"x-ms-version": VERSION, "x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-blob-type": "BlockBlob",
               "content-length": str(len(body))}
    mark = signature(account.name, account.key, "PUT", path, {}, headers)
    headers["authorization"] = f"SharedKey {account.name}:{mark}"

    def trickle():
        for start in range(0, len(body), 1024):
            time.sleep(seconds * 1024 / len(body))
            yield body[start:start + 1024]

    connection = http.client.HTTPConnection(account.address, timeout=60)
    try:
        connection.request("PUT", path, trickle(), headers)
        outcome.append(connection.getresponse().status)
    except (OSError, http.client.HTTPException) as error:
        outcome.append(repr(error))
    finally:
        connection.close()


def healthy(server, times):
    """What /healthz and /readyz answer, so many times."""
    found = []
    for number in range(times):
        try:
            found.append(server.admin("/readyz" if number % 2 else "/healthz")[0])
        except (OSError, http.client.HTTPException) as error:
            found.append(repr(error))
    return found


def judged(verdicts, what, server, requests, attack):
    """An attack on the blob listener, and what other clients see of it."""
    outcome = []
    with attack:
        slow = threading.Thread(target=slow_upload, args=(server.account, 3, outcome))
        slow.start()
        good, wrong = served(server.account, requests)
        slow.join()
    verdicts.none(f"{what}: requests of an SDK client that fail", wrong)
    verdicts.equal(f"{what}: round trips", good, requests)
    verdicts.equal(f"{what}: a slow upload ends well", outcome, [201])
    verdicts.figure(f"{what}: connections the attacker opened", f"{attack.opened:,}")


def floods(options, scratch, verdicts, kept, requests):
    """Silent connections and halves of requests, from one address and from many."""
    many = [f"127.0.{a}.{b}" for a in range(1, 9) for b in range(1, 33)]
    with cli.server(options, scratch, (f"--connections-max={kept}",), [scratch / "data"]) as server:
        server.account.service().create_container(CONTAINER)
        for what, sources, says in (
            ("silent, one address", ["127.0.0.1"], b""),
            ("silent, many addresses", many, b""),
            ("half a request, one address", ["127.0.0.1"], HALF_HEAD),
            ("half a request, many addresses", many, HALF_HEAD),
        ):
            judged(verdicts, what, server, requests, Attacker(server.blob_address, 2 * kept, sources, says))


def admin(options, scratch, verdicts, requests):
    """Silent connections to the admin listener."""
    with cli.server(options, scratch, (), [scratch / "data"]) as server:
        half = b"GET /metrics HTTP/1.1\r\nHost: local"
        for what, says, reads in (("silent", b"", True), ("half a request", half, True), ("health, not read", HEALTH, False)):
            with Attacker(server.admin_address, 200, ["127.0.0.1"], says, reads):
                wrong = [found for found in healthy(server, requests) if found != 200]
                verdicts.none(f"admin, {what}: {requests} health checks", wrong)


def one_peer(options, scratch, verdicts):
    """An address with more connections than it may have."""
    extra = ("--connections-max=200", "--peer-connections-max=20", "--first-byte-seconds=30")
    with cli.server(options, scratch, extra, [scratch / "data"]) as server:
        server.account.service().create_container(CONTAINER)

        async def ask():
            host, port = server.blob_address.split(":")
            head = f"GET /devstoreaccount1?comp=list HTTP/1.1\r\nHost: {server.blob_address}\r\n\r\n".encode()
            kept = [await asyncio.open_connection(host, int(port), local_addr=("127.0.0.9", 0)) for _ in range(20)]
            answers = []
            for _ in range(10):
                reader, writer = await asyncio.open_connection(host, int(port), local_addr=("127.0.0.9", 0))
                writer.write(head)
                answers.append((await reader.read(1 << 16)).decode("latin-1").lower())
                writer.close()
            other = served(server.account, 5)
            for _, writer in kept:
                writer.close()
            return answers, other

        answers, (good, wrong) = asyncio.run(ask())
        well = [text for text in answers if text.startswith("http/1.1 503") and "retry-after: 1" in text and "serverbusy" in text]
        verdicts.equal("an address beyond its connections: 503 ServerBusy with Retry-After", len(well), len(answers))
        verdicts.none("another address meanwhile: requests that fail", wrong)
        verdicts.equal("another address meanwhile: round trips", good, 5)


def silence_ends(options, scratch, verdicts):
    """A connection without a first byte is closed long before one that is idle between requests."""
    with cli.server(options, scratch, ("--first-byte-seconds=1",), [scratch / "data"]) as server:

        async def wait():
            host, port = server.blob_address.split(":")
            silent, _ = await asyncio.open_connection(host, int(port))
            used, writer = await asyncio.open_connection(host, int(port))
            writer.write(f"GET /devstoreaccount1?comp=list HTTP/1.1\r\nHost: {server.blob_address}\r\n\r\n".encode())
            await used.readuntil(b"\r\n\r\n")
            closed = await asyncio.wait_for(silent.read(1), 15)
            try:
                await asyncio.wait_for(used.read(1 << 20), 0.2)
                again = await asyncio.wait_for(used.read(1), 1)
                return closed, again == b""
            except asyncio.TimeoutError:
                return closed, False

        try:
            closed, other = asyncio.run(wait())
        except asyncio.TimeoutError:
            closed, other = "open after 15 s", False
        verdicts.equal("a silent connection with --first-byte-seconds=1 is closed", closed, b"")
        verdicts.check("one that asked something stays open", not other)


def idle_memory(options, scratch, verdicts, count):
    """Connections that have asked something and wait."""
    # The first connections touch memory that the server takes once: code, threads, tables.
    warming = count // 5
    # Connections of unknown addresses may be seven eighths of all.
    extra = (f"--connections-max={2 * count}",)
    with cli.server(options, scratch, extra, [scratch / "data"]) as server:

        async def idle():
            host, port = server.blob_address.split(":")
            head = f"GET /devstoreaccount1?comp=list HTTP/1.1\r\nHost: {server.blob_address}\r\n\r\n".encode()
            kept, sizes = [], []
            for more in (warming, count - warming):
                for _ in range(more):
                    reader, writer = await asyncio.open_connection(host, int(port))
                    writer.write(head)
                    await reader.readuntil(b"\r\n\r\n")
                    kept.append(writer)
                await asyncio.sleep(1)
                sizes.append(rss_bytes(server.process.pid))
            still = server.metrics()["blockyard_connections_open"]
            for writer in kept:
                writer.close()
            return sizes[1] - sizes[0], int(still)

        grown, still = asyncio.run(idle())
        verdicts.equal("idle connections that are open", still, count)
        found = f"{grown / (count - warming):,.0f} bytes; {mib(grown)} for {count - warming:,}"
        if options.binary.parent.name == "debug":
            # Without optimization a task takes several times as much.
            verdicts.figure("memory of an idle connection", found)
        else:
            small = grown / (count - warming) <= IDLE_LIMIT
            verdicts.check("memory of an idle connection", small, f"<= {IDLE_LIMIT:,} bytes", found)


def main(options, scratch):
    """Each attack on a server of its own."""
    verdicts = Verdicts("silent connections")
    most = raise_open_files()
    for folder in ("floods", "admin", "peer", "silence", "idle"):
        (scratch / folder).mkdir(exist_ok=True)
    kept, requests, idle = (150, 5, 500) if options.small else (4_096, 50, 5_000)
    # The attacker has twice what the server keeps; with the server's own that is what this machine must allow.
    if most < 3 * kept + 1_000:
        kept = (most - 1_000) // 3
        print(f"only {most:,} open files are allowed: the server keeps {kept:,} connections", flush=True)
    floods(options, scratch / "floods", verdicts, kept, requests)
    admin(options, scratch / "admin", verdicts, 4 * requests)
    one_peer(options, scratch / "peer", verdicts)
    silence_ends(options, scratch / "silence", verdicts)
    idle_memory(options, scratch / "idle", verdicts, idle)
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

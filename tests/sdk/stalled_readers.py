#!/usr/bin/env python3
"""Clients that send requests and do not read the answers: memory stays bounded, others are served, unread answers are cut.

The attacker is anonymous and comes from many loopback addresses. It opens HTTP/2 connections with 128 streams each and reads
blobs of a public container, small and large ones, and lists whose metadata grows when it is escaped. Some of its connections
give no window, some a window of a few bytes, some any window but do not read the socket; HTTP/1.1 sockets that do not read come
on top. Meanwhile SDK clients of this account and of another one write, read and list; an anonymous reader reads too.
"""

import asyncio
import random
import struct
import threading
import time
import urllib.request

from azure.core.exceptions import AzureError

from lib import accounts, cli
from lib.content import pieces
from lib.measure import RssSampler, rss_bytes, wait_until
from lib.report import Progress, Verdicts, mib

CONTAINER = "public"
OWN = "own"
STREAMS = 128
RSS_LIMIT = 500 << 20
LARGE, MEDIUM, TINY = 4 << 20, 96 << 10, 2 << 10
HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 1, 3, 4, 6, 7, 8
END = 0x5
STATUS_200 = 0x88
LISTED = 300
# Attackers that opened nothing after so long have been refused.
OPEN_SECONDS = 120


def frame(kind, flags, stream, payload=b""):
    """One HTTP/2 frame."""
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def text(value):
    """A string literal of HPACK, not compressed."""
    data = value.encode()
    assert len(data) < 127, value
    return bytes((len(data),)) + data


def head(authority, path):
    """The header block of a GET: from the static table, nothing is added to the dynamic one."""
    version = b"\x00" + text("x-ms-version") + text("2021-12-02")
    return b"\x82\x86\x04" + text(path) + b"\x01" + text(authority) + version


class Reader(asyncio.Protocol):
    """An HTTP/2 connection that asks for everything at once and takes no more than `window` bytes of each answer."""

    def __init__(self, authority, paths, window, reads):
        self.authority, self.paths, self.window, self.reads = authority, paths, window, reads
        self.transport, self.buffer = None, b""
        self.answered, self.refused, self.ended, self.closed = set(), set(), set(), False

    def connection_made(self, transport):
        """Asks."""
        self.transport = transport
        settings = struct.pack(">HIHI", 4, self.window, 1, 0)
        asked = [frame(HEADERS, END, 1 + 2 * i, head(self.authority, path)) for i, path in enumerate(self.paths)]
        wide = frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", (1 << 31) - 65536))
        transport.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, settings) + wide + b"".join(asked))
        if not self.reads:
            transport.pause_reading()

    def data_received(self, data):
        """Notes what became of the streams."""
        self.buffer += data
        at = 0
        while len(self.buffer) - at >= 9:
            size = int.from_bytes(self.buffer[at:at + 3], "big")
            if len(self.buffer) - at < 9 + size:
                break
            kind, flags = self.buffer[at + 3], self.buffer[at + 4]
            stream = int.from_bytes(self.buffer[at + 5:at + 9], "big") & 0x7fffffff
            payload = self.buffer[at + 9:at + 9 + size]
            at += 9 + size
            if kind == HEADERS:
                (self.answered if payload[0] == STATUS_200 else self.refused).add(stream)
            if kind == RST_STREAM or (kind in (0, HEADERS) and flags & 1):
                self.ended.add(stream)
            if kind == SETTINGS and not flags & 1:
                self.transport.write(frame(SETTINGS, 1, 0))
            if kind == PING and not flags & 1:
                self.transport.write(frame(PING, 1, 0, payload))
        self.buffer = self.buffer[at:]

    def connection_lost(self, exc):
        """The server has ended it."""
        self.closed = True

    @property
    def held(self):
        """Streams that were not ended."""
        return 0 if self.closed else len(self.paths) - len(self.ended)


class Silent(asyncio.Protocol):
    """An HTTP/1.1 connection that asks for a large blob and reads nothing."""

    def __init__(self, authority, path):
        self.asked = f"GET {path} HTTP/1.1\r\nhost: {authority}\r\nx-ms-version: 2021-12-02\r\n\r\n".encode()
        self.transport, self.closed = None, False

    def connection_made(self, transport):
        """Asks, and reads no more."""
        self.transport = transport
        transport.write(self.asked)
        transport.pause_reading()

    def connection_lost(self, exc):
        """The server has ended it."""
        self.closed = True

    @property
    def held(self):
        """Whether it is open, as far as is known without reading."""
        return 0 if self.closed else 1


def paths(account, number):
    """What one connection asks for."""
    chance = random.Random(number)
    listed = f"/{account}/{CONTAINER}?restype=container&comp=list&include=metadata"
    wanted = [f"/{account}/{CONTAINER}/large"] * 6 + [f"/{account}/{CONTAINER}/medium", f"/{account}/{CONTAINER}/tiny", listed]
    return [chance.choice(wanted) for _ in range(STREAMS)]


class Attack(threading.Thread):
    """All attackers, on a thread and an event loop of their own."""

    def __init__(self, server, connections, silent):
        super().__init__(daemon=True)
        self.host, self.port = server.blob_address.split(":")
        self.server, self.connections, self.silent = server, connections, silent
        self.readers, self.failed, self.opened = [], 0, threading.Event()
        self.over = threading.Event()

    async def one(self, number, make):
        """One connection from an address of its own."""
        source = (f"127.0.{1 + number // 250}.{1 + number % 250}", 0)
        loop = asyncio.get_running_loop()
        try:
            _, reader = await loop.create_connection(make, self.host, int(self.port), local_addr=source)
            self.readers.append(reader)
        except OSError:
            self.failed += 1

    async def attack(self):
        """Opens everything, and keeps it until it is over."""
        account = self.server.account.name
        authority = self.server.blob_address
        for number in range(self.connections):
            window, reads = ((0, True), (0, True), (700, True), (1 << 20, False))[number % 4]
            asked = paths(account, number)
            await self.one(number, lambda a=asked, w=window, r=reads: Reader(authority, a, w, r))
        for number in range(self.silent):
            await self.one(number, lambda: Silent(authority, f"/{account}/{CONTAINER}/large"))
        self.opened.set()
        while not self.over.is_set():
            await asyncio.sleep(0.1)
        for reader in self.readers:
            reader.transport.abort()

    def run(self):
        """The thread."""
        asyncio.run(self.attack())

    def count(self, what):
        """A sum over the connections that read what became of them."""
        return sum(len(getattr(reader, what)) for reader in list(self.readers) if isinstance(reader, Reader) and reader.reads)

    def held(self):
        """Streams that have not ended, of connections that report it."""
        return sum(r.held for r in list(self.readers) if isinstance(r, Reader) and r.reads)


def make(server):
    """The attacked blobs, and those that others use."""
    service = server.account.service()
    service.create_container(CONTAINER, public_access="container")
    client = service.get_container_client(CONTAINER)
    for name, size in (("large", LARGE), ("medium", MEDIUM), ("tiny", TINY)):
        client.upload_blob(name, b"".join(pieces((name,), size, size)))
    heavy = {f"k{i}": '"' * 1000 for i in range(7)}
    for number in range(LISTED):
        client.upload_blob(f"z/{number:04}", b"1", metadata=heavy)
    for account in (server.account, accounts.second(server)):
        account.service().create_container(OWN)


class Others(threading.Thread):
    """A client that goes on meanwhile: one round trip after the other."""

    def __init__(self, name, turn):
        super().__init__(daemon=True)
        self.label, self.turn, self.over = name, turn, threading.Event()
        self.done, self.wrong = [], []

    def run(self):
        """The thread."""
        count = 0
        while not self.over.is_set():
            began, count = time.monotonic(), count + 1
            try:
                self.turn(count)
                self.done.append(time.monotonic() - began)
            except (AzureError, OSError, AssertionError) as error:
                self.wrong.append(f"{self.label}: {count}: {type(error).__name__}: {str(error)[:300]}")
            time.sleep(0.05)


def round_trip(account):
    """What an SDK client of an account does, with the retries an SDK has."""
    client = account.service(retries=5, initial_backoff=1, increment_base=1, retry_to_secondary=False)
    client = client.get_container_client(OWN)

    def turn(count):
        body = b"".join(pieces((account.name, count), 200_000, 200_000))
        client.upload_blob("one", body, overwrite=True)
        assert client.download_blob("one").readall() == body, "other bytes"
        assert [blob.name for blob in client.list_blobs()] == ["one"], "another list"

    return turn


def anonymous(server):
    """An anonymous reader like the attacker, but one that reads."""
    expected = b"".join(pieces(("large",), LARGE, LARGE))

    def turn(_):
        for _attempt in range(8):
            try:
                with urllib.request.urlopen(f"{server.account.url}/{CONTAINER}/large", timeout=60) as response:
                    assert response.read() == expected, "other bytes"
                    return
            except OSError:
                time.sleep(1)
        raise AssertionError("refused eight times")

    return turn


def whole_list(server):
    """The names of a list whose pages are cut by their size, and how many pages it had."""
    client = server.account.service().get_container_client(CONTAINER)
    found = [[blob.name for blob in page] for page in client.list_blobs(include=["metadata"]).by_page()]
    return [name for page in found for name in page], len(found)


def main(options, scratch):
    verdicts = Verdicts(f"{options.connections} connections of {STREAMS} streams that are not read")
    extra = list(accounts.BOTH)
    if options.stall > 0:
        extra.append(f"--response-stall-timeout={options.stall}")
    with cli.server(options, scratch, extra) as server:
        make(server)
        names, pages = whole_list(server)
        verdicts.check("a list with much metadata comes in several pages", pages > 1, "> 1", pages)
        verdicts.equal("names in it", names, ["large", "medium", "tiny"] + [f"z/{i:04}" for i in range(LISTED)])
        before = rss_bytes(server.process.pid)
        others = [Others("the same account", round_trip(server.account)),
                  Others("another account", round_trip(accounts.second(server))),
                  Others("an anonymous reader", anonymous(server))]
        attack = Attack(server, options.connections, options.silent)
        with RssSampler(server.process.pid) as memory:
            for client in others:
                client.start()
            time.sleep(2)
            attack.start()
            attack.opened.wait(OPEN_SECONDS)
            with Progress("stalled", options.seconds, "s") as progress:
                for second in range(options.seconds):
                    time.sleep(1)
                    progress.move_to(second + 1, f"{mib(rss_bytes(server.process.pid))}, {attack.held():,} streams held")
            asked = STREAMS * sum(isinstance(r, Reader) and r.reads for r in attack.readers)
            answered, refused = attack.count("answered"), attack.count("refused")
            left = wait_until(lambda: attack.held() == 0 and -1, 150)
        for client in others:
            client.over.set()
            client.join(120)
        cut = {name.partition("responses_cut")[2]: int(value) for name, value in server.metrics().items() if "responses_cut" in name}
        verdicts.equal("connections that could not be opened", attack.failed, 0)
        verdicts.check("resident memory", memory.peak <= RSS_LIMIT, f"<= {mib(RSS_LIMIT)}",
                       f"{mib(memory.peak)}, {mib(before)} before")
        verdicts.check("streams that were not taken are cut", left == -1, "all", f"{attack.held():,} of {asked:,} are left")
        verdicts.figure("streams answered 200, and refused", f"{answered:,} and {refused:,} of {asked:,}")
        verdicts.figure("answers and connections cut", cut)
        for client in others:
            times = sorted(client.done) or [0]
            verdicts.none(f"{client.label}: round trips that failed", client.wrong)
            verdicts.check(f"{client.label}: is served", len(client.done) >= 3, ">= 3 round trips",
                           f"{len(client.done):,}: median {times[len(times) // 2]:.2f} s, longest {times[-1]:.2f} s")
        attack.over.set()
        attack.join(30)
        verdicts.equal("exit code after SIGTERM", server.stop(), 0)
        verdicts.sound(server)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--connections", type=int, help="HTTP/2 connections (default 1000; 40 with --small)")
    flags.add_argument("--silent", type=int, help="HTTP/1.1 sockets (default 500; 20 with --small)")
    flags.add_argument("--seconds", type=int, help="how long they stall before it is judged (default 30; 4 with --small)")
    flags.add_argument("--stall", type=int, help="seconds until a stalled response is cut (default: the server's; 3 with --small)")
    parsed = cli.parse(flags)
    parsed.connections = parsed.connections or (40 if parsed.small else 1000)
    parsed.silent = parsed.silent or (20 if parsed.small else 500)
    parsed.seconds = parsed.seconds or (4 if parsed.small else 30)
    parsed.stall = parsed.stall or (3 if parsed.small else 0)
    cli.run(main, parsed)

#!/usr/bin/env python3
"""Restart with a million blobs.

Loads 1,000,000 small blobs over many kept connections, kills the server with -9 right after the last answer, starts it
again and measures how long until it serves: until /readyz says yes and a read of a random blob is right. The target is
2 s. A sample of the blobs is read back, and the listing is counted.

The loader signs and speaks HTTP by itself: the SDK would take an hour for what this takes minutes.
"""

import asyncio
import email.utils
import multiprocessing
import os
import random
import time

from lib import cli
from lib.account import PerThread
from lib.content import content
from lib.measure import rss_bytes
from lib.report import Progress, Verdicts, mib
from lib.wire import VERSION, Wire, signature

CONTAINER = "million"
CONNECTIONS = 48
SAMPLE = 2000
TARGET_SECONDS = 2.0
BODY_BYTES = 100


def blob_name(number):
    """Names in no particular order of arrival, so that the load is not a sorted append."""
    return f"{number * 7919 % 1000:03}/blob-{number:07}"


def put_request(account, number, date):
    """One signed Put Blob as bytes."""
    body = content(number, BODY_BYTES)
    path = f"/{account.name}/{CONTAINER}/{blob_name(number)}"
    headers = {"content-length": str(len(body)), "x-ms-blob-type": "BlockBlob", "x-ms-date": date,
               "x-ms-version": VERSION}
    mark = signature(account.name, account.key, "PUT", path, {}, headers)
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return (f"PUT {path} HTTP/1.1\r\nhost: {account.address}\r\n{head}"
            f"authorization: SharedKey {account.name}:{mark}\r\n\r\n").encode() + body


class Loader(asyncio.Protocol):
    """One connection: sends a request, waits for its answer, sends the next."""

    def __init__(self, numbers, account, count, date, done):
        self.numbers, self.account, self.count, self.date, self.done = numbers, account, count, date, done
        self.buffer = b""

    def connection_made(self, transport):
        self.transport = transport
        self.send()

    def send(self):
        number = next(self.numbers, None)
        if number is None:
            self.transport.close()
            return
        self.transport.write(put_request(self.account, number, self.date[0]))

    def data_received(self, data):
        self.buffer += data
        head, end, body = self.buffer.partition(b"\r\n\r\n")
        if not end:
            return
        length = 0
        for line in head.split(b"\r\n")[1:]:
            if line[:15].lower() == b"content-length:":
                length = int(line[15:])
        if len(body) < length:
            return
        if not head.startswith(b"HTTP/1.1 201"):
            self.finish(RuntimeError(f"answered {self.buffer[:600]!r}"))
            return
        self.buffer = body[length:]
        self.count.value += 1
        self.send()

    def finish(self, error):
        if not self.done.done():
            self.done.set_exception(error)
        self.transport.close()

    def connection_lost(self, exc):
        if not self.done.done():
            if next(self.numbers, None) is not None:
                self.done.set_exception(exc or RuntimeError("connection closed by the server"))
            else:
                self.done.set_result(None)


def load_share(account, first, last, count):
    """Loads the blobs [first, last) in this process, counting in the shared `count`."""

    async def run():
        loop = asyncio.get_running_loop()
        numbers, date = iter(range(first, last)), [email.utils.formatdate(usegmt=True)]
        host, port = account.address.split(":")
        ends = [loop.create_future() for _ in range(CONNECTIONS)]
        for end in ends:
            await loop.create_connection(lambda end=end: Loader(numbers, account, count, date, end), host, int(port))

        async def fresh_date():
            while True:
                await asyncio.sleep(30)
                date[0] = email.utils.formatdate(usegmt=True)

        clock = asyncio.create_task(fresh_date())
        await asyncio.gather(*ends)
        clock.cancel()

    asyncio.run(run())


def load(account, count, processes):
    """Loads `count` blobs from several processes. Returns (acknowledged, seconds)."""
    counters = [multiprocessing.Value("q", 0, lock=False) for _ in range(processes)]
    edges = [count * n // processes for n in range(processes + 1)]
    workers = [multiprocessing.Process(target=load_share, args=(account, edges[n], edges[n + 1], counters[n]))
               for n in range(processes)]
    began = time.monotonic()
    with Progress("load", count, "blobs") as progress:
        for worker in workers:
            worker.start()
        while any(worker.is_alive() for worker in workers):
            time.sleep(0.2)
            done = sum(counter.value for counter in counters)
            progress.move_to(done, f"{done / (time.monotonic() - began):,.0f} /s")
        for worker in workers:
            worker.join()
        progress.move_to(sum(counter.value for counter in counters))
    return sum(counter.value for counter in counters), time.monotonic() - began


def read_sample(account, numbers):
    """Reads blobs one after another. Returns the numbers of those that are not right."""
    wire, wrong = Wire(account), []
    with Progress("read a sample", len(numbers), "blobs") as progress:
        for number in numbers:
            answer = wire.request("GET", f"/{CONTAINER}/{blob_name(number)}")
            if (answer.status, answer.body) != (200, content(number, BODY_BYTES)):
                wrong.append((number, answer.status, answer.code))
            progress.advance()
    return wrong


def main(options, scratch):
    verdicts = Verdicts(f"restart with {options.blobs:,} blobs")
    with cli.server(options, scratch) as server:
        server.account.service().create_container(CONTAINER)
        loaded, seconds = load(server.account, options.blobs, options.processes)
        verdicts.equal("puts acknowledged", loaded, options.blobs)
        verdicts.figure("load", f"{seconds:.0f} s, {loaded / seconds:,.0f} /s")
        verdicts.figure("resident memory when loaded", mib(rss_bytes(server.process.pid)))
        server.kill()
        times, dice = [], random.Random(1)
        for _ in range(options.restarts):
            began = time.monotonic()
            server.start()
            wrong = read_sample(server.account, [dice.randrange(options.blobs)])
            times.append(time.monotonic() - began)
            verdicts.none("first read after the restart", wrong)
            server.kill()
        shown = ", ".join(f"{t:.2f} s" for t in times)
        if options.no_time_assert:
            verdicts.figure("kill -9 to serving", shown, f"<= {TARGET_SECONDS} s")
        else:
            verdicts.check("kill -9 to serving", min(times) <= TARGET_SECONDS, f"<= {TARGET_SECONDS} s", shown)
        server.start()
        numbers = [dice.randrange(options.blobs) for _ in range(min(SAMPLE, options.blobs))]
        verdicts.none(f"{len(numbers):,} blobs of the million read back", read_sample(server.account, numbers))
        with Progress("list", options.blobs, "names") as progress:
            listed = 0
            for page in PerThread(server.account, CONTAINER).container().list_blob_names().by_page():
                names = list(page)
                listed += len(names)
                progress.advance(len(names))
        verdicts.equal("names listed", listed, options.blobs)
        verdicts.equal("exit code after SIGTERM", server.stop(), 0)
        if options.check:
            verdicts.sound(server)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--blobs", type=int, help="blobs to load (default 1,000,000; 20,000 with --small)")
    flags.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="loading processes")
    flags.add_argument("--restarts", type=int, default=3, help="kills and starts that are measured")
    flags.add_argument("--no-time-assert", action="store_true", help="report the time, do not judge it")
    flags.add_argument("--check", action="store_true", help="run `blockyard check` in the end")
    parsed = cli.parse(flags)
    parsed.blobs = parsed.blobs or (20_000 if parsed.small else 1_000_000)
    parsed.no_time_assert = parsed.no_time_assert or parsed.small
    cli.run(main, parsed)

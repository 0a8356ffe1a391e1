#!/usr/bin/env python3
"""Overload: far more requests than a server with small limits admits, from many connections at once.

Every answer is a success or a well-formed 503 ServerBusy with Retry-After; those that are refused are refused within 100 ms as
the server measures it; another account is served all the time; memory stays bounded; and all acknowledged writes exist
after a restart. Then the same of an account's requests a second, and of connections.

The clients are bare sockets that send the next request immediately after each answer, refused or not. That is worse than
clients that obey Retry-After.
"""

import asyncio
import email.utils
import time

from lib import accounts, cli
from lib.content import pieces
from lib.measure import RssSampler
from lib.report import Progress, Verdicts, mib
from lib.wire import VERSION, signature

CONTAINER = "overload"
REQUESTS_MAX = 8
BODY_BYTES = 4096
RSS_LIMIT = 300 << 20
# The server's own histogram has this bound, the first above 100 ms.
PROMPT_SECONDS = 0.1024
# On a busy machine a few answers are late although no request waited for admission.
PROMPT_SHARE = 0.99
# The other account keeps below its share; a request of it may still meet a moment in which nothing ends.
SERVED_SHARE = 0.99
RATE = 200


class Connection:
    """One connection of one account: one request at a time, opened anew when the server closed it."""

    def __init__(self, account):
        self.account = account
        self.host, self.port = account.address.split(":")
        self.reader = self.writer = None

    async def request(self, method, path, query=None, headers=None, body=b"", withheld=False):
        """(status, headers, body, seconds); `withheld`: the body is announced and never sent."""
        query, path = query or {}, f"/{self.account.name}/{path}"
        sent = {"x-ms-version": VERSION, "x-ms-date": email.utils.formatdate(usegmt=True), **(headers or {})}
        if method == "PUT":
            sent["content-length"] = str(len(body))
        mark = signature(self.account.name, self.account.key, method, path, query, sent)
        sent |= {"authorization": f"SharedKey {self.account.name}:{mark}", "host": self.account.address}
        target = path + ("?" + "&".join(f"{name}={value}" for name, value in query.items()) if query else "")
        head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in sent.items()) + "\r\n"
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        began = time.monotonic()
        self.writer.write(head.encode() + (b"" if withheld else body))
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        answered = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
        data = await self.reader.readexactly(int(answered.get("content-length", 0)))
        seconds = time.monotonic() - began
        if answered.get("connection") == "close":
            self.close()
        return int(lines[0].split(" ")[1]), answered, data, seconds

    def close(self):
        """Closes it."""
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None


class Tally:
    """What became of the requests of one account."""

    def __init__(self):
        self.acknowledged, self.served, self.refused, self.wrong = [], [], [], []

    def note(self, what, status, headers, body, seconds):
        """Whether it was carried out."""
        if 200 <= status < 300:
            self.served.append(seconds)
            return True
        well_formed = (
            status == 503 and headers.get("retry-after", "").isdigit() and headers.get("x-ms-error-code") == "serverbusy"
            and "x-ms-request-id" in headers and b"<Code>ServerBusy</Code>" in body)
        (self.refused if well_formed else self.wrong).append(seconds if well_formed else (what, status, headers, body[:200]))
        return False


def body_of(name):
    """A blob's bytes."""
    return b"".join(pieces((name,), BODY_BYTES, BODY_BYTES))


async def client(account, number, tally, until):
    """Writes blobs of its own, and reads every fourth back, until a time."""
    connection, count = Connection(account), 0
    while time.monotonic() < until:
        name = f"{number:04}-{count:06}"
        body, count = body_of(name), count + 1
        try:
            done = await connection.request("PUT", f"{CONTAINER}/{name}", None, {"x-ms-blob-type": "BlockBlob"}, body)
            if tally.note(("PUT", name), *done):
                tally.acknowledged.append(name)
                if count % 4 == 0:
                    found = await connection.request("GET", f"{CONTAINER}/{name}")
                    if tally.note(("GET", name), *found) and found[2] != body:
                        tally.wrong.append(("GET", name, "other bytes"))
        except (OSError, asyncio.IncompleteReadError) as error:
            tally.wrong.append((name, repr(error)))
            connection.close()
    connection.close()


async def crowd(loads, seconds):
    """So many clients of each account at once; their tallies."""
    until, tallies, clients = time.monotonic() + seconds, [], []
    for number, (account, count) in enumerate(loads):
        tallies.append(Tally())
        clients += [client(account, 1000 * number + i, tallies[-1], until) for i in range(count)]
    await asyncio.gather(*clients)
    return tallies


async def make_containers(found):
    """A container in each account."""
    for account in found:
        connection = Connection(account)
        status, *_ = await connection.request("PUT", CONTAINER, {"restype": "container"})
        assert status in (201, 409), status
        connection.close()


async def missing(account, names, clients=4):
    """Those of the names that do not read back as they were written."""
    wrong, left = [], list(names)

    async def reader():
        connection = Connection(account)
        while left:
            name = left.pop()
            status, _, data, _ = await connection.request("GET", f"{CONTAINER}/{name}")
            if status != 200 or data != body_of(name):
                wrong.append((name, status))
        connection.close()

    await asyncio.gather(*(reader() for _ in range(clients)))
    return wrong


def times(seconds):
    """A distribution as text."""
    ordered = sorted(seconds)
    if not ordered:
        return "none"
    at = lambda share: 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]
    return f"p50 {at(.5):.1f}, p99 {at(.99):.1f}, p99.9 {at(.999):.1f}, max {at(1):.1f} ms of {len(ordered):,}"


def refusals(server):
    """(refused requests, those refused within PROMPT_SECONDS, bounds of their times) by the server's own histogram."""
    mark, found = 'request_seconds_bucket{le="', {}
    for name, value in server.metrics().items():
        if mark in name and 'operation="Refused"' in name:
            bound = name.split('le="')[1].split('"')[0]
            found[float("inf" if bound == "+Inf" else bound)] = value
    total = found.get(float("inf"), 0)
    prompt = max((value for bound, value in found.items() if bound <= PROMPT_SECONDS * 1.001), default=0)
    bounds = [next((bound for bound in sorted(found) if found[bound] >= share * total), 0) for share in (0.5, 0.99, 0.999, 1)]
    return total, prompt, "p50 {:.1f}, p99 {:.1f}, p99.9 {:.1f}, max {:.1f} ms at most".format(*(1000 * bound for bound in bounds))


def judge_answers(verdicts, what, tally):
    """What holds of every crowd."""
    verdicts.none(f"{what}: answers that are neither 2xx nor a well-formed 503", tally.wrong)
    verdicts.figure(f"{what}: served", f"{len(tally.served):,}: {times(tally.served)}")
    verdicts.figure(f"{what}: refused, as the client saw it", times(tally.refused))


def many_requests(options, scratch, verdicts, clients, seconds):
    """More clients than are let in, of one account; a few of another."""
    extra = (*accounts.BOTH, f"--requests-max={REQUESTS_MAX}")
    with cli.server(options, scratch / "requests", extra, [scratch / "requests" / "data"]) as server:
        loud, quiet = server.account, accounts.second(server)
        asyncio.run(make_containers((loud, quiet)))
        alone, = asyncio.run(crowd([(quiet, 2)], min(seconds, 3)))
        verdicts.none("the quiet account alone: wrong or refused", alone.wrong + alone.refused)
        verdicts.figure("the quiet account alone: served", times(alone.served))
        with RssSampler(server.process.pid) as memory:
            with Progress(f"{clients} clients where {REQUESTS_MAX} are let in", seconds, "s"):
                shouted, spoken = asyncio.run(crowd([(loud, clients), (quiet, 2)], seconds))
        judge_answers(verdicts, "the loud account", shouted)
        judge_answers(verdicts, "the quiet account", spoken)
        verdicts.check("the load was an overload", len(shouted.refused) > len(shouted.served), "more refused than served",
                       f"{len(shouted.refused):,} and {len(shouted.served):,}")
        total, prompt, bounds = refusals(server)
        share = prompt / total if total else 0
        verdicts.check("refused within 100 ms, as the server measures it", share >= PROMPT_SHARE, f">= {PROMPT_SHARE:.1%}",
                       f"{share:.3%} of {total:,.0f}: {bounds}")
        asked = len(spoken.served) + len(spoken.refused)
        share = len(spoken.served) / asked if asked else 0
        verdicts.check("requests of the quiet account that were served", share >= SERVED_SHARE, f">= {SERVED_SHARE:.0%}",
                       f"{share:.2%} of {asked:,}")
        verdicts.check("resident memory", memory.peak <= RSS_LIMIT, f"<= {mib(RSS_LIMIT)}",
                       f"{mib(memory.peak)}, {mib(memory.first)} before")
        verdicts.equal("exit code after SIGTERM", server.stop(), 0)
        verdicts.sound(server)
        server.start()
        for account, names in ((loud, shouted.acknowledged), (quiet, alone.acknowledged + spoken.acknowledged)):
            verdicts.none(f"{len(names):,} acknowledged blobs of {account.name} after a restart",
                          asyncio.run(missing(account, set(names))))


def many_a_second(options, scratch, verdicts, clients, seconds):
    """One account beyond its requests a second, another below."""
    extra = (*accounts.BOTH, f"--account-requests-per-second={RATE}")
    with cli.server(options, scratch / "rate", extra, [scratch / "rate" / "data"]) as server:
        loud, quiet = server.account, accounts.second(server)
        asyncio.run(make_containers((loud, quiet)))

        async def slow(tally, until):
            connection, count = Connection(quiet), 0
            while time.monotonic() < until:
                count += 1
                tally.note("quiet", *await connection.request("GET", CONTAINER, {"restype": "container"}))
                await asyncio.sleep(0.02)
            connection.close()

        async def both():
            spoken = Tally()
            began = time.monotonic()
            crowded, _ = await asyncio.gather(crowd([(loud, clients)], seconds), slow(spoken, began + seconds))
            return crowded[0], spoken, time.monotonic() - began

        shouted, spoken, took = asyncio.run(both())
        judge_answers(verdicts, f"beyond {RATE} a second", shouted)
        most = RATE * (took + 1) + 1
        verdicts.check(f"served beyond {RATE} a second", 0 < len(shouted.served) <= most, f"<= {most:,.0f} in {took:.1f} s",
                       f"{len(shouted.served):,}")
        verdicts.check("the limit was met", len(shouted.refused) > 0, "some refused", f"{len(shouted.refused):,}")
        verdicts.none("another account: wrong or refused", spoken.wrong + spoken.refused)


def refused_upload(options, scratch, verdicts):
    """A refused upload is answered although its body never comes."""
    with cli.server(options, scratch / "upload", ("--account-requests-per-second=1",), [scratch / "upload" / "data"]) as server:

        async def ask():
            path, headers = f"{CONTAINER}/withheld", {"x-ms-blob-type": "BlockBlob"}
            opened = [Connection(server.account) for _ in range(4)]
            asked = [asyncio.create_task(c.request("PUT", path, None, headers, bytes(8 << 20), withheld=True)) for c in opened]
            # One is let in, and waits for its body.
            done, waits = await asyncio.wait(asked, timeout=3)
            for task in waits:
                task.cancel()
            for connection in opened:
                connection.close()
            return [task.result() for task in done]

        tally = Tally()
        for row in asyncio.run(ask()):
            tally.note("upload", *row)
        verdicts.none("a refused upload: answers other than 503", tally.wrong + tally.served)
        verdicts.check("those refused are answered though their bodies never come", tally.refused, "some", len(tally.refused))


def many_connections(options, scratch, verdicts):
    """More connections than are kept, on all of which a request is in progress; then idle ones."""
    kept, more = 10, 30
    with cli.server(options, scratch, (f"--connections-max={kept}",), [scratch / "connections" / "data"]) as server:

        async def upload(connection):
            headers = {"x-ms-blob-type": "BlockBlob"}
            await connection.request("PUT", f"{CONTAINER}/withheld", None, headers, bytes(8 << 20), withheld=True)

        async def ask():
            await make_containers([server.account])
            busy = [Connection(server.account) for _ in range(kept)]
            waits = []
            for connection in busy:
                waits.append(asyncio.create_task(upload(connection)))
                await asyncio.sleep(0.1)
            opened = [Connection(server.account) for _ in range(more)]
            found = [await connection.request("GET", "", {"comp": "list"}) for connection in opened]
            still = sum(not task.done() for task in waits)
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
            for connection in busy + opened:
                connection.close()
            await asyncio.sleep(0.5)
            idle = [Connection(server.account) for _ in range(kept + more)]
            served = [await connection.request("GET", "", {"comp": "list"}) for connection in idle]
            for connection in idle:
                connection.close()
            return found, still, served

        found, still, served = asyncio.run(ask())
        tally = Tally()
        for row in found:
            tally.note("connection", *row)
        verdicts.none("connections beyond those with a request in progress: not well refused", tally.wrong + tally.served)
        verdicts.equal("refused and closed", sum(row[0] == 503 and row[1].get("connection") == "close" for row in found), more)
        verdicts.equal("requests in progress went on", still, kept)
        verdicts.equal("beside idle connections: served", sum(row[0] == 200 for row in served), kept + more)


def main(options, scratch):
    verdicts = Verdicts("overload")
    for folder in ("requests", "rate", "upload", "connections"):
        (scratch / folder).mkdir(exist_ok=True)
    clients, seconds = (150, 4) if options.small else (1_000, 30)
    many_requests(options, scratch, verdicts, clients, seconds)
    many_a_second(options, scratch, verdicts, 20, 2 if options.small else 10)
    refused_upload(options, scratch, verdicts)
    many_connections(options, scratch, verdicts)
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

#!/usr/bin/env python3
"""The space of deleted content is freed.

Writes 10 GiB (1 to 8 MiB and some of 40 KiB), then overwrites or deletes 90 % of it at random and waits, with a limit,
until the data folder occupies at most 1.3 times what is live: without a restart, while the server goes on answering.
The journal is a ring of fixed size, written once at the start; it is measured and reported on its own line.
"""

import concurrent.futures
import random
import time

from lib import cli
from lib.account import PerThread
from lib.content import content, sha256
from lib.measure import allocated
from lib.report import Progress, Verdicts, mib

CONTAINER = "space"
THREADS = 8
SMALL_BLOB = 40 << 10
LARGE_BLOB = (1 << 20, 8 << 20)
SMALL_SHARE = 0.2
DEAD_SHARE = 0.9
OVERWRITTEN_SHARE = 0.3
FACTOR = 1.3


def plan(total, seed):
    """Names and sizes that add up to `total`."""
    dice, sizes = random.Random(seed), {}
    left = total
    while left > 0:
        size = SMALL_BLOB if dice.random() < SMALL_SHARE else dice.randint(*LARGE_BLOB)
        sizes[f"{dice.randrange(16):x}/blob-{len(sizes):06}"] = size
        left -= size
    return sizes


def occupied(server):
    """Allocated bytes of the data folder: (without journal, journal)."""
    journal = other = 0
    for folder in server.data:
        for path, size in allocated(folder).items():
            if "journal" in path:
                journal += size
            else:
                other += size
    return other, journal


def in_pool(work, names, title, unit_of):
    """Calls `work(name)` for every name from a few threads, with progress in MiB."""
    with Progress(title, sum(unit_of(name) for name in names) >> 20, "MiB") as progress:
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            waiting = {pool.submit(work, name): name for name in names}
            answers = []
            for done in concurrent.futures.as_completed(waiting):
                answers.append((waiting[done], done.result()))
                progress.advance(unit_of(waiting[done]) / (1 << 20))
    return answers


def wait_for_space(server, live, options, verdicts):
    """Waits until the disk use is within the factor, or the limit of the wait is over."""
    wanted = int(live * FACTOR) + (options.slack_mib << 20)
    start, _ = occupied(server)
    began = time.monotonic()
    with Progress("wait for space to come back", max(start - wanted, 1) >> 20, "MiB") as progress:
        while True:
            now, journal = occupied(server)
            progress.move_to(max(start - now, 0) / (1 << 20), f"{mib(now)} occupied, {mib(wanted)} wanted")
            if now <= wanted or time.monotonic() - began > options.wait_seconds:
                break
            time.sleep(1)
    verdicts.figure("occupied right after the deletes", mib(start))
    verdicts.figure("the journal's fixed size", mib(journal))
    verdicts.figure("waited", f"{time.monotonic() - began:.0f} s", f"<= {options.wait_seconds} s")
    slack = f" + {options.slack_mib} MiB" if options.slack_mib else ""
    verdicts.check(f"occupied without journal <= {FACTOR} x live{slack}", now <= wanted, mib(wanted),
                   f"{mib(now)} = {now / live:.2f} x live")


def main(options, scratch):
    verdicts = Verdicts("space comes back")
    sizes = plan(options.mib << 20, options.seed)
    labels = {name: (name, 0) for name in sizes}
    with cli.server(options, scratch) as server:
        server.account.service().create_container(CONTAINER)
        clients = PerThread(server.account, CONTAINER)
        size_of = lambda name: sizes[name]

        def put(name):
            clients.blob(name).upload_blob(content(labels[name], sizes[name]), overwrite=True)

        in_pool(put, list(sizes), f"write {mib(sum(sizes.values()))}", size_of)
        verdicts.figure("logical bytes written", mib(sum(sizes.values())))
        verdicts.figure("occupied when written", mib(occupied(server)[0]))

        dice = random.Random(options.seed + 1)
        dead = dice.sample(sorted(sizes), int(len(sizes) * DEAD_SHARE))
        again = dice.sample(dead, int(len(dead) * OVERWRITTEN_SHARE))
        gone = set(dead) - set(again)
        for name in again:
            labels[name], sizes[name] = (name, 1), SMALL_BLOB
        in_pool(put, again, "overwrite with small blobs", size_of)
        in_pool(lambda name: clients.blob(name).delete_blob(), sorted(gone), "delete", size_of)
        for name in gone:
            del sizes[name]
        live = sum(sizes.values())
        verdicts.figure("live bytes", mib(live))
        starts = server.starts
        wait_for_space(server, live, options, verdicts)
        verdicts.check("no restart in between", server.running() and server.starts == starts, 1, server.starts)

        def read(name):
            return sha256(clients.blob(name).download_blob().readall()) == sha256(content(labels[name], sizes[name]))

        wrong = [name for name, right in in_pool(read, list(sizes), "read the survivors", size_of) if not right]
        verdicts.none(f"{len(sizes):,} survivors read back", wrong)
        listed = [item.name for item in clients.container().list_blobs()]
        verdicts.check("listing shows the survivors", listed == sorted(sizes), f"{len(sizes):,}", f"{len(listed):,}")
        verdicts.equal("exit code after SIGTERM", server.stop(), 0)
        verdicts.sound(server)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--gib", type=float, help="logical size (default 10; 0.25 with --small)")
    flags.add_argument("--slack-mib", type=int,
                       help="allowed on top for open extents (default 0; 64 with --small, where they would drown the factor)")
    flags.add_argument("--wait-seconds", type=int, default=300, help="longest wait for the space")
    flags.add_argument("--seed", type=int, default=11, help="makes the same blobs and the same choice again")
    parsed = cli.parse(flags)
    parsed.mib = int((parsed.gib or (0.25 if parsed.small else 10)) * 1024)
    if parsed.slack_mib is None:
        parsed.slack_mib = 64 if parsed.small else 0
    cli.run(main, parsed)

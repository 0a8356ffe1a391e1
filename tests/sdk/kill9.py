#!/usr/bin/env python3
"""Kill -9 of the real process, again and again, under concurrent load.

Every worker owns its own blobs and knows, for each of them, what the server acknowledged and what was still in doubt
when the connection broke. After each restart every blob must be in a state the worker can explain:

* an acknowledged write is present, with its bytes and its metadata;
* an acknowledged delete stays deleted;
* of the one operation in doubt, all or nothing happened: never a mix of two versions, never a half-made blob;
* what goes with a blob is as acknowledged too: staged blocks, appended pieces, page ranges, snapshots, leases, tags;
* the listing shows the very blobs that reads show.

The load is mixed (`lib/killed/`, a file for each kind): block, append and page blobs, snapshots, copies, leases, tags.
Meanwhile the partition map changes: splits, merges, moves, stripes, so that kills strike in the middle of those too.
The run ends with `blockyard check` of the stopped data. Times from start to serving are reported, not judged.
"""

import collections
import http.client
import random
import threading
import time

from azure.core.exceptions import AzureError

from lib import accounts, cli
from lib.account import PerThread
from lib.changes import REFUSALS, Admin, Changer
from lib.killed.append import AppendSubject
from lib.killed.base import InDoubt, Piece, Source
from lib.killed.block import BlockSubject
from lib.killed.copy import CopySubject
from lib.killed.lease import LeaseSubject
from lib.killed.page import PageSubject
from lib.killed.pages_copied import PagesCopiedSubject
from lib.killed.snapshot import SnapshotSubject
from lib.killed.tags import TagsSubject
from lib.report import Progress, Verdicts
from lib.server import Server

CONTAINER = "kill9"
# The other server is on the loopback address like everything here; moves need a second host.
SERVED_WITH = ("--copy-source-allow=127.0.0.1", "--index-hosts=2")
# Of each worker.
SUBJECTS = ((BlockSubject, 9), (AppendSubject, 4), (PageSubject, 4), (CopySubject, 3), (PagesCopiedSubject, 3),
            (SnapshotSubject, 3), (LeaseSubject, 2), (TagsSubject, 2))
SIGNED = (AppendSubject, CopySubject, PagesCopiedSubject)
# Of the blobs of the other server, which nobody kills.
ELSEWHERE_BYTES = (0, 700, 40_000, 1 << 20, 9 << 20)


def sources(other):
    """Fills another server; [(address with a signature, piece), ...]."""
    container = other.account.service().create_container(CONTAINER)
    made = []
    for size in ELSEWHERE_BYTES:
        piece = Piece(("elsewhere", size), size)
        blob = container.upload_blob(str(size), piece.data())
        made.append((f"{blob.url}?{accounts.sas(other.account)}", piece))
    return made


def subjects(worker, signature, elsewhere):
    """What one worker changes."""
    made = []
    for kind, count in SUBJECTS:
        more = (signature,) if kind in SIGNED else ()
        more += (elsewhere,) if kind is CopySubject else ()
        made += [kind(f"w{worker:02}/{kind.kind.replace(' ', '-')}-{number:03}", *more) for number in range(count)]
    return made


class Worker(threading.Thread):
    """Keeps changing one subject after another until told to stop."""

    def __init__(self, number, mine, clients, seed, stopping):
        super().__init__(daemon=True)
        self.number, self.mine, self.clients, self.stopping = number, mine, clients, stopping
        self.source = Source(random.Random(f"{seed}/{number}"), seed, number)
        self.done, self.surprise = collections.Counter(), None

    def run(self):
        while not self.stopping.is_set():
            subject = self.source.random.choice(self.mine)
            try:
                subject.step(self.clients, self.source)
                self.done[subject.kind] += 1
            except InDoubt:
                return  # The server is gone. What is in doubt stays written down in the subject.
            except Exception as error:  # pylint: disable=broad-except
                self.surprise = f"worker {self.number}: {subject.name}: {type(error).__name__}: {error}"
                return


class Changing(threading.Thread):
    """Keeps changing the partition map until the server is gone."""

    def __init__(self, changer):
        super().__init__(daemon=True)
        self.changer, self.surprise = changer, None

    def run(self):
        try:
            while True:
                self.changer.change()
        except (OSError, http.client.HTTPException):
            return  # The server is gone.
        except Exception as error:  # pylint: disable=broad-except
            self.surprise = f"changes of the map: {type(error).__name__}: {error}"


def verify(account, everything, complaints):
    """Checks every subject of every worker and the listing; adds to `complaints`."""

    def one(mine):
        clients = PerThread(account, CONTAINER)
        for subject in mine:
            try:
                complaint = subject.explain(clients)
            except Exception as error:  # pylint: disable=broad-except
                complaint = f"{subject.name}: {type(error).__name__}: {error}"
            if complaint:
                complaints.append(complaint)

    threads = [threading.Thread(target=one, args=(mine,)) for mine in everything]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wanted = {}
    for mine in everything:
        for subject in mine:
            wanted |= subject.listed()
    try:
        listed = {item.name: item.size for item in account.service().get_container_client(CONTAINER).list_blobs()}
    except AzureError as error:
        complaints.append(f"listing: {type(error).__name__}: {error}")
        return
    if list(listed) != sorted(wanted):
        complaints.append(f"listing: {sorted(set(listed) ^ set(wanted))[:5]} are in the listing or in reads, not both")
    wrong = [name for name, size in wanted.items() if listed.get(name, size) != size]
    if wrong:
        complaints.append(f"listing: wrong sizes of {wrong[:5]}")


def one_cycle(server, everything, changer, cycle, options, figures, complaints):
    """Load, kill in the middle of it, start, verify."""
    stopping, seed = threading.Event(), f"{options.seed}/{cycle}"
    workers = [Worker(number, mine, PerThread(server.account, CONTAINER, read_timeout=30), seed, stopping)
               for number, mine in enumerate(everything)]
    changing = Changing(changer)
    for one in (*workers, changing):
        one.start()
    # A different moment each time: right away, within a group commit, in the middle of a flush.
    time.sleep(random.Random(seed).uniform(0.2, options.load_seconds))
    server.kill()
    stopping.set()
    for worker in workers:
        worker.join(60)
        if worker.is_alive():
            complaints.append(f"cycle {cycle}: worker {worker.number} still waits for an answer")
        if worker.surprise:
            complaints.append(f"cycle {cycle}: {worker.surprise}")
        figures["acknowledged"] += worker.done
    changing.join(60)
    if changing.is_alive() or changing.surprise:
        complaints.append(f"cycle {cycle}: {changing.surprise or 'a change of the map still waits for an answer'}")
    figures["in doubt"] += collections.Counter(s.kind for mine in everything for s in mine if s.doubt)
    figures["restarts"].append(server.start())
    verify(server.account, everything, found := [])
    complaints += [f"cycle {cycle}: {complaint}" for complaint in found]


def told(counter):
    """All, and of each kind."""
    return f"{counter.total():,}: " + ", ".join(f"{kind.kind} {counter[kind.kind]:,}" for kind, _ in SUBJECTS)


def main(options, scratch):
    verdicts = Verdicts(f"kill -9, {options.cycles} cycles, {options.threads} threads")
    figures = {"acknowledged": collections.Counter(), "in doubt": collections.Counter(), "restarts": []}
    complaints = []
    disks = [scratch / f"disk-{number}" for number in range(options.disks)]
    other = Server(options.binary, [scratch / "other"], scratch / "other.log")
    with other, cli.server(options, scratch, extra=SERVED_WITH, data=disks) as server:
        other.start()
        elsewhere = sources(other)
        everything = [subjects(worker, accounts.sas(server.account), elsewhere) for worker in range(options.threads)]
        server.account.service().create_container(CONTAINER)
        keys = [[f"{server.account.name}/{CONTAINER}/{subject.name}" for subject in mine] for mine in everything]
        changer = Changer(Admin(server), keys, options.seed)
        with Progress("load, kill -9, restart, verify", options.cycles, "cycles") as progress:
            for cycle in range(options.cycles):
                one_cycle(server, everything, changer, cycle, options, figures, complaints)
                progress.move_to(cycle + 1, f"{figures['acknowledged'].total():,} acknowledged, {len(complaints)} complaints")
                if len(complaints) > 20:
                    break
        verdicts.equal("exit code after SIGTERM", server.stop(), 0)
        verdicts.sound(server)
    restarts = sorted(figures["restarts"])
    verdicts.none("every blob explained after every restart", complaints, examples=20)
    fewest = min(figures["acknowledged"][kind.kind] for kind, _ in SUBJECTS)
    verdicts.check("operations of every kind acknowledged under load", fewest > options.cycles, "many",
                   told(figures["acknowledged"]))
    verdicts.check("the map changed under load", changer.done.total() > options.cycles, "often", str(dict(changer.done)))
    verdicts.equal("refusals that are not those of a map that has changed", set(changer.refused) - REFUSALS, set())
    verdicts.figure("operations in doubt at a kill", told(figures["in doubt"]))
    verdicts.figure("start to serving, median and worst", f"{restarts[len(restarts) // 2]:.3f} s, {restarts[-1]:.3f} s")
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--cycles", type=int, help="kills (default 50; 10 with --small)")
    flags.add_argument("--threads", type=int, default=12, help="workers, each with its own blobs")
    flags.add_argument("--load-seconds", type=float, default=2.0, help="longest load before a kill")
    flags.add_argument("--disks", type=int, default=1, help="data directories of the server")
    flags.add_argument("--seed", default="20", help="makes the same sequence of operations again")
    parsed = cli.parse(flags)
    parsed.cycles = parsed.cycles or (10 if parsed.small else 50)
    cli.run(main, parsed)

#!/usr/bin/env python3
"""A single node of two disks becomes the first node of a cluster, in place, and is replaced.

Workers change blobs of every kind at `blockyard serve`, while the partition map changes and the process is killed. Then:

* `blockyard cluster adopt` is killed just after it has marked the store, while etcd stands still. `serve` refuses the directory, the adoption is
  undone, and the single node serves everything again;
* it is killed at different moments. After each kill the directory is that of a single node, or it is refused to one;
* it ends, and `serve` and another adoption are refused;
* the node starts in the cluster with three others. Every blob is as the workers left it, and all extents get three copies;
* under load the first node is drained and removed, with its disks. Every blob is read again.
"""

import pathlib
import random
import shutil
import signal
import subprocess
import time

from lib import cli
from lib.changes import Admin, Changer
from lib.cluster import Cluster
from lib.killed import load
from lib.measure import wait_until
from lib.report import Verdicts
from lib.server import Server

CONTAINER = "adopt"
REPAIR_SECONDS = 300
# Of an adoption; the longest delay of a kill.
ADOPT_SECONDS = 60
REFUSED = "belongs to a node of a cluster"
# What the store has while it is adopted.
MARK, TRIES = b'"adopting":true', 20


class Grown(Cluster):
    """A cluster of three nodes with all roles, and one for copies, the first of which was a single node."""

    def __init__(self, binary, scratch, server, extra):
        super().__init__(binary, scratch, extra)
        self.server, self.first = server, self.nodes[0]
        self.first.data, self.first.key, self.made = server.data, scratch / "disk-0.key", scratch / "cluster.key"

    def __enter__(self):
        self.etcd.start()
        return self

    def adopt(self, *more):
        """Starts `blockyard cluster adopt`."""
        folders = [word for folder in self.server.data for word in ("--data", folder)]
        command = [self.binary, "cluster", "adopt", "--coordinator", self.etcd.url, *folders, "--json", *more]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ended(self, process):
        """(exit code, what it said)."""
        said, complaint = process.communicate(timeout=ADOPT_SECONDS)
        return process.returncode, (said + complaint).strip()

    def begin(self):
        """Starts the nodes once the store was adopted."""
        shutil.copy(self.first.key, self.made)
        self.start()

    def is_whole(self):
        """Whether all groups have their copies."""
        status = self.status()
        return status["short_groups"] + status["unfinished_groups"] == 0

    def groups(self, node):
        """In how many groups a node has copies."""
        return next(known["groups"] for known in self.status()["nodes"] if known["name"] == node.name)


def served_alone(cluster, store, everything, verdicts, what):
    """Starts the single node again, and reads everything."""
    cluster.server.start()
    verdicts.none(what, load.verify(store, everything))
    verdicts.equal("exit code after SIGTERM", cluster.server.stop(), 0)


def refusal(cluster):
    """What `blockyard serve` says of the directory; None if it starts."""
    try:
        cluster.server.start()
    except RuntimeError as error:
        return cluster.server.log_tail(3) + str(error)[:60]
    cluster.server.stop()
    return None


def main(options, scratch):
    verdicts = Verdicts(f"a single node grows, {options.threads} threads")
    other = Server(options.binary, [scratch / "other"], scratch / "other.log")
    extra = ["--journal-bytes=8388608", *load.SERVED_WITH[:1], *options.serve_arg]
    disks = [scratch / f"disk-{number}" for number in range(2)]
    single = Server(options.binary, disks, scratch / "single.log", [*extra, *load.SERVED_WITH[1:]])
    with other, single, Grown(options.binary, scratch, single, extra) as cluster:
        other.start()
        single.start()
        everything = load.everything(single, other, CONTAINER, options.threads)
        changer = Changer(Admin(single), load.keys(single, CONTAINER, everything), options.seed)
        alone = load.AzureStore(single.account, CONTAINER)
        cycles = load.Cycles(single, alone, everything, options.seed, options.load_seconds, changer)
        cycles.run_all("load, kill -9, restart, verify", options.cycles, lambda _: single.kill())
        verdicts.equal("exit code after SIGTERM", single.stop(), 0)
        undone(cluster, alone, everything, verdicts)
        adopted(cluster, alone, everything, options, verdicts)
        cluster.begin()
        store = load.AzureStore(cluster.account, CONTAINER)
        verdicts.none("every blob is in the cluster as it was in the single node", load.verify(store, everything))
        grown = load.Cycles(cluster, store, everything, f"{options.seed} grown", options.load_seconds)
        replaced(cluster, grown, verdicts)
        verdicts.equal("exit codes after SIGTERM", {node.stop() for node in cluster.nodes}, {0})
    cycles.verdicts(verdicts)
    verdicts.none("every blob explained while the node was replaced", grown.complaints)
    return verdicts.exit_code()


def marked(cluster):
    """Kills an adoption between the mark of the store and the end of the copy. Returns whether that succeeded."""
    store = pathlib.Path(cluster.server.data[0]) / "coordinator.redb"
    for _ in range(TRIES):
        process = cluster.adopt("--number", "7")
        while process.poll() is None and MARK not in store.read_bytes():
            pass
        cluster.etcd.process.send_signal(signal.SIGSTOP)
        process.kill()
        process.communicate()
        cluster.etcd.process.send_signal(signal.SIGCONT)
        if cluster.command("status")[0] == 0:
            return False
        if MARK in store.read_bytes():
            return True
    return False


def undone(cluster, alone, everything, verdicts):
    """An adoption that is killed once the store is marked, and undone."""
    verdicts.check("an adoption is killed after the mark of the store", marked(cluster))
    verdicts.check("a single node does not start then", REFUSED in (refusal(cluster) or ""))
    code, complaint = cluster.ended(cluster.adopt("--undo"))
    verdicts.equal("exit code of `cluster adopt --undo`", (code, complaint if code else ""), (0, ""))
    served_alone(cluster, alone, everything, verdicts, "every blob is there after an undone adoption")


def adopted(cluster, alone, everything, options, verdicts):
    """Adoptions that are killed, and one that ends."""
    chance, states = random.Random(options.seed), {"alone": 0, "marked": 0}
    for number in range(options.kills):
        process = cluster.adopt("--number", "7")
        # Later each time: once it is done there is nothing left to kill.
        time.sleep(chance.uniform(0.5, 1) * options.kill_within * (number + 1) / options.kills)
        process.kill()
        process.communicate()
        said = refusal(cluster)
        states["alone" if said is None else "marked"] += 1
        verdicts.check("a directory that is marked says so", said is None or REFUSED in said, found=(said or "it is not")[-200:])
        if cluster.command("status")[0] == 0:
            break
    verdicts.figure("states of the directory after kills of adoptions", states)
    code, said = cluster.ended(cluster.adopt("--number", "7"))
    is_done = code == 0 or REFUSED in said
    verdicts.check("the adoption ends", is_done, "exit code 0, or done before", said)
    verdicts.figure("adopted", said)
    verdicts.check("a single node does not start there", REFUSED in (refusal(cluster) or ""))
    code, said = cluster.ended(cluster.adopt("--undo"))
    verdicts.check("what is made is not undone", code != 0 and REFUSED in said, "refused", said)


def replaced(cluster, cycles, verdicts):
    """All extents get their copies, and the first node leaves, under load."""

    def spread():
        began = time.monotonic()
        whole = wait_until(cluster.is_whole, REPAIR_SECONDS, 0.2)
        verdicts.check("all extents get three copies", whole, "all", cluster.status()["unfinished_groups"])
        verdicts.figure("copied in", f"{time.monotonic() - began:.1f} s")

    def leave():
        first = cluster.first
        cluster.command("drain", first.name)
        empty = wait_until(lambda: cluster.groups(first) == 0, REPAIR_SECONDS, 0.2)
        verdicts.check("the first node is drained", empty, "0 groups", cluster.groups(first))
        verdicts.equal("exit code of `cluster remove`", cluster.command("remove", first.name)[0], 0)
        wait_until(lambda: not first.running(), 30, 0.05)
        cluster.forget(first)
        for folder in first.data:
            shutil.rmtree(folder)

    for number, harm in enumerate((spread, leave)):
        for complaint in cycles.run(number, harm)[:5]:
            print(complaint, flush=True)
    verdicts.check("and all groups have their copies", wait_until(cluster.is_whole, REPAIR_SECONDS, 0.2), "all", cluster.status()["short_groups"])
    # The node that leaves cuts the connections of its clients.
    verdicts.figure("operations in doubt meanwhile", load.summary(cycles.in_doubt))


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--cycles", type=int, help="kills of the single node (default 8; 2 with --small)")
    flags.add_argument("--kills", type=int, help="kills of adoptions (default 30; 5 with --small)")
    flags.add_argument("--kill-within", type=float, default=0.4, help="longest time after which an adoption is killed, in seconds")
    flags.add_argument("--threads", type=int, default=6, help="workers, each with its own blobs")
    flags.add_argument("--load-seconds", type=float, default=2.0, help="longest load before a harm")
    flags.add_argument("--seed", default="22", help="makes the same sequence of operations again")
    parsed = cli.parse(flags)
    parsed.cycles = parsed.cycles or (2 if parsed.small else 8)
    parsed.kills = parsed.kills or (5 if parsed.small else 30)
    cli.run(main, parsed)

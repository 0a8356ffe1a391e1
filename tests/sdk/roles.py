#!/usr/bin/env python3
"""A cluster in which each process has one role, under the load of kill9.py: two front ends, two processes that serve the index, two that may
manage it, and three with copies.

In turns, while workers change blobs of every kind, one of each role is killed, and a process that serves the index is stopped with SIGTERM. After
each one every blob must be in a state that its worker can explain, as in kill9.py; a process that has no part in answering is missed by no client.

Meanwhile copies from a slow source are pending, which were begun at one front end:

* the other one shows how far they are;
* one that is aborted there is not fetched any more;
* the front end that fetches them is killed: one of them fetches them from the beginning then, and they are whole.

A node says which commands it has no role for. Without --small, bytes that copies shared are freed by an audit.
"""

import collections
import re
import signal
import threading
import time

from azure.core.exceptions import AzureError

from lib import cli, commands
from lib.account import Account
from lib.cluster import Cluster
from lib.install import ROOT
from lib.killed import load
from lib.measure import wait_until
from lib.report import Verdicts
from lib.server import Server
from lib.source import Source

NODES = ("f1", "f2", "i1", "i2", "m1", "m2", "c1", "c2", "c3")
CONTAINER, PARTITIONS = "roles", 4
# The listing of the first one is checked.
COPIES = "copies"
# Of a lease of a copy, and its renewals (frontend/ops/copies/pending/leases.rs); how often a front end looks for copies.
LEASE_SECONDS, RENEWED_SECONDS, LOOKS_SECONDS = 30, 10, 10
# Of a copy: its properties, then its bytes.
FETCHES = 2
BODY = bytes(range(256)) * 256
PIECE = 1024
# From the begin of a manager to the end of its first audit.
AUDIT_SECONDS = 180


class Cycles(load.Cycles):
    """Cycles that also note what was in doubt after the harm of each role."""

    def __init__(self, cluster, store, subjects_of_workers, options):
        super().__init__(cluster, store, subjects_of_workers, options.seed, options.load_seconds)
        self.role, self.doubts = None, collections.Counter()

    def _ended(self, workers, changing):
        found = super()._ended(workers, changing)
        self.doubts[self.role] += sum(bool(subject.doubt) for mine in self.subjects for subject in mine)
        return found


class SlowSource(Source):
    """A source whose bodies come a piece at a time, until it is let go."""

    def __init__(self):
        super().__init__(len(BODY), self.slowly)
        self.fast, self.lock, self.fetched = threading.Event(), threading.Lock(), collections.defaultdict(list)

    def slowly(self, _, path, write):
        """Counts the pieces of each fetch."""
        with self.lock:
            counts = self.fetched[path]
            number = len(counts)
            counts.append(0)
        for at in range(0, len(BODY), PIECE):
            write(BODY[at:at + PIECE])
            counts[number] += 1
            if not self.fast.is_set() and self.closing.wait(1):
                return

    def fetches(self, name):
        """How often a fetch was begun. The first asks for the properties."""
        with self.lock:
            return len(self.fetched[f"/{name}"])

    def pieces(self, name):
        """The pieces that the last fetch has sent."""
        with self.lock:
            return (self.fetched[f"/{name}"] or [0])[-1]


def harms(cluster, cycles, pending):
    """What happens in turns: [harm, ...]."""

    def of(role):
        return [node for node in cluster.nodes if node.roles == role]

    def kill(node):
        node.kill()
        time.sleep(2)

    def front():
        if not pending.killed:
            pending.before_kill()
        kill(of("front")[0])

    def stop():
        node = of("index")[-1]
        node.send(signal.SIGTERM)
        assert node.process.wait(60) == 0, f"exit code {node.process.returncode}"

    def noted(role, harm):
        def crash():
            cycles.role = role
            harm()
        return crash

    return [
        noted("manager", lambda: kill(cluster.until_managing())),
        noted("index", lambda: kill(of("index")[0])),
        noted("capacity", lambda: kill(of("capacity")[0])),
        noted("front", front),
        noted("stopped", stop),
    ]


def spread(cluster, subjects, verdicts):
    """Splits the container of the load, so that both processes that serve the index have some of it."""
    names = sorted(subject.name for mine in subjects for subject in mine)
    borders = names[::len(names) // PARTITIONS][1:PARTITIONS]
    cluster.probes = [(CONTAINER, border + "!") for border in [names[0], *borders]]
    front = next(node for node in cluster.nodes if node.has_front_end)
    commands.command(front, "partitions", "split", *[f"{cluster.account.name}/{CONTAINER}/{border}" for border in borders])
    verdicts.figure("partitions of each node", cluster.until_even())


def status(node, name):
    """What a front end says of the copy into a blob: (status, bytes copied); None where it cannot say."""
    try:
        copy = container(node).get_blob_client(name).get_blob_properties().copy
    except AzureError:
        return None
    return copy.status, int(copy.progress.partition("/")[0])


def states(status):
    """What does not change by itself."""
    return [(node["name"], node["state"], node["partitions"]) for node in status["nodes"]]


class Pending:
    """Copies from a slow source, begun at the front end that is killed first."""

    def __init__(self, cluster, source, verdicts):
        self.cluster, self.source, self.verdicts = cluster, source, verdicts
        self.first, self.second = [node for node in cluster.nodes if node.has_front_end]
        self.aborted, *self.others = [f"copied-{number}" for number in range(3)]
        self.killed, self.fetches = None, {}
        container(self.first).create_container()
        blobs = {name: container(self.first).get_blob_client(name) for name in (self.aborted, *self.others)}
        self.begun = {name: blob.start_copy_from_url(source.url(name)) for name, blob in blobs.items()}
        verdicts.equal("copies are pending", {one["copy_status"] for one in self.begun.values()}, {"pending"})

    def shown(self, what):
        """Whether the second front end says this of all copies that are left."""
        return all(what(status(self.second, name) or ("", 0)) for name in self.others)

    def before_kill(self):
        """What the second front end shows and does of the copies that the first one fetches."""
        is_shown = wait_until(lambda: self.shown(lambda copy: copy[1] > 0), 2 * RENEWED_SECONDS, 0.2)
        self.verdicts.check("another front end shows their progress", is_shown, "some bytes", [status(self.second, name) for name in self.others])
        container(self.second).get_blob_client(self.aborted).abort_copy(self.begun[self.aborted]["copy_id"])
        self.verdicts.equal("aborted there", status(self.first, self.aborted)[0], "aborted")
        time.sleep(RENEWED_SECONDS + 2)
        before = self.source.pieces(self.aborted)
        time.sleep(2)
        self.verdicts.equal("it is not fetched any more", self.source.pieces(self.aborted), before)
        self.fetches = {name: self.source.fetches(name) for name in self.others}
        self.verdicts.equal("each is fetched once, after its properties", self.fetches, dict.fromkeys(self.others, FETCHES))
        self.killed = time.monotonic()

    def end(self):
        """The second front end has taken them up, or the first one after its start."""
        left = LEASE_SECONDS + 2 * LOOKS_SECONDS - (time.monotonic() - self.killed)
        again = wait_until(lambda: all(self.source.fetches(name) > self.fetches[name] for name in self.others), max(left, 1), 0.2)
        self.verdicts.check("after a kill a front end fetches them again", again, "all", {name: self.source.fetches(name) for name in self.others})
        self.verdicts.figure("fetched again after at most", f"{time.monotonic() - self.killed:.1f} s")
        self.source.fast.set()
        wait_until(lambda: self.shown(lambda copy: copy[0] == "success"), 30, 0.2)
        self.verdicts.equal("they end", {status(self.second, name)[0] for name in self.others}, {"success"})
        bodies = {container(self.second).get_blob_client(name).download_blob().readall() == BODY for name in self.others}
        self.verdicts.equal("and are whole", bodies, {True})


def container(node):
    """The container of copies, at a front end."""
    return Account(node.blob_address).service(connection_timeout=2, read_timeout=10).get_container_client(COPIES)


def shared_space(cluster, verdicts):
    """Bytes that copies share are freed in all copies when nobody names them: the node that manages audits a minute after it began."""
    box, names = container(next(node for node in cluster.nodes if node.has_front_end)), [f"shared-{number}" for number in range(40)]
    holders = [node for node in cluster.nodes if node.roles == "capacity"]

    def freed():
        return min(node.metrics()["blockyard_capacity_freed_bytes_total"] for node in holders)

    for name in names:
        box.upload_blob(name, BODY * 32, overwrite=True)
        box.get_blob_client(f"{name}-copy").start_copy_from_url(box.get_blob_client(name).url)
    for name in names:
        box.delete_blob(name)
        box.delete_blob(f"{name}-copy")
    # Only sealed extents are audited, and those of a writer that is gone are sealed. The next start has freed nothing yet.
    for node in cluster.nodes:
        node.kill()
    cluster.start()
    wanted = len(names) * len(BODY) * 32
    verdicts.check("shared bytes are freed at every node with copies", wait_until(lambda: freed() >= wanted, AUDIT_SECONDS, 1), wanted, freed())
    audits = sum(node.metrics()["blockyard_cluster_audits_total"] for node in cluster.nodes)
    verdicts.check("by an audit", audits > 0, "some", audits)


def main(options, scratch):
    verdicts = Verdicts(f"each role in a process of its own, {options.cycles} cycles, {options.threads} threads")
    other = Server(options.binary, [scratch / "other"], scratch / "other.log")
    extra = [*load.SERVED_WITH[:1], "--journal-bytes=8388608", *options.serve_arg]
    with other, Cluster(options.binary, scratch, extra, NODES, spare=()) as cluster:
        other.start()
        everything = load.everything(cluster, other, CONTAINER, options.threads)
        store = load.AzureStore(cluster.account, CONTAINER)
        spread(cluster, everything, verdicts)
        cycles = Cycles(cluster, store, everything, options)
        with SlowSource() as source:
            pending = Pending(cluster, source, verdicts)
            kinds = harms(cluster, cycles, pending)
            cycles.run_all("load, harm, verify", options.cycles, lambda cycle: kinds[cycle % len(kinds)]())
            pending.end()
        if not options.small:
            shared_space(cluster, verdicts)
        missed = {role: cycles.doubts[role] for role in ("manager", "capacity")}
        verdicts.equal("blobs in doubt after a kill of who answers nothing", missed, dict.fromkeys(missed, 0))
        shown = {node["name"]: (",".join(node["roles"]), node["serving"], node["groups"] > 0) for node in cluster.status()["nodes"]}
        verdicts.equal("cluster status", shown, {node.name: (node.roles, node.serves, node.roles == "capacity") for node in cluster.nodes})
        named = set(re.findall(r"blockyard_cluster_[a-z_]+", (ROOT / "docs" / "monitoring" / "alerts.cluster.yml").read_text()))
        verdicts.none("metrics of alert rules that a node lacks", [(node.name, name) for node in cluster.nodes
                      for name in named - {sample.partition("{")[0] for sample in node.metrics()}])
        watched = [states(seen) for seen in cluster.watch(2)]
        verdicts.equal("`cluster watch` shows what `cluster status` does, each second", watched, [states(cluster.status())] * 3)
        said = commands.refused(next(node for node in cluster.nodes if node.serves), "account", "list")
        verdicts.check("a node without accounts names the role of those that have some", "role front" in said, found=said)
        verdicts.equal("exit codes after SIGTERM", {node.stop() for node in cluster.nodes}, {0})
    cycles.verdicts(verdicts)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--cycles", type=int, help="harms (default 30; 5 with --small)")
    flags.add_argument("--threads", type=int, default=6, help="workers, each with its own blobs")
    flags.add_argument("--load-seconds", type=float, default=2.0, help="longest load before a harm")
    flags.add_argument("--seed", default="23", help="makes the same sequence of operations again")
    parsed = cli.parse(flags)
    parsed.cycles = parsed.cycles or (5 if parsed.small else 30)
    cli.run(main, parsed)

#!/usr/bin/env python3
"""A cluster in which each process has one role, under the load of kill9.py: two front ends, two processes that serve the index, two that may
manage it, and three with copies.

In turns, while workers change blobs of every kind, one of each role is killed, and a process that serves the index is stopped with SIGTERM. After
each one every blob must be in a state that its worker can explain, as in kill9.py; a process that has no part in answering is missed by no client.

Then copies from a slow source are begun at one front end:

* the other one shows how far they are;
* one that is aborted there is not fetched any more;
* the front end that fetches them is killed: the other one fetches them from the beginning, and they are whole.

A node says which commands it has no role for.
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
# Of a lease of a copy, and its renewals (frontend/ops/copies/pending/leases.rs); how often a front end looks for copies.
LEASE_SECONDS, RENEWED_SECONDS, LOOKS_SECONDS = 30, 10, 10
BODY = bytes(range(256)) * 256
PIECE = 1024


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


def harms(cluster, cycles):
    """What happens in turns: (role, harm)."""

    def of(role):
        return [node for node in cluster.nodes if node.roles == role]

    def kill(role):
        node = of(role)[0]
        if role == "manager":
            node = cluster.until_managing()
        node.kill()
        time.sleep(2)

    def stop():
        node = of("index")[-1]
        node.send(signal.SIGTERM)
        assert node.process.wait(60) == 0, f"exit code {node.process.returncode}"

    def carried(role, harm):
        def crash(_):
            cycles.role = role
            harm()
        return crash

    made = [carried(role, lambda role=role: kill(role)) for role in ("manager", "index", "capacity", "front")]
    return [*made, carried("stopped", stop)]


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
    service = Account(node.blob_address).service(connection_timeout=2, read_timeout=10)
    try:
        copy = service.get_blob_client(CONTAINER, name).get_blob_properties().copy
    except AzureError:
        return None
    return copy.status, int(copy.progress.partition("/")[0])


def states(status):
    """What does not change by itself."""
    return [(node["name"], node["state"], node["partitions"]) for node in status["nodes"]]


def copies(cluster, verdicts):
    """Pending copies go on wherever there is a front end."""
    first, second = [node for node in cluster.nodes if node.has_front_end]
    names = [f"copied-{number}" for number in range(3)]
    with SlowSource() as source:
        container = Account(first.blob_address).service().get_container_client(CONTAINER)
        begun = {name: container.get_blob_client(name).start_copy_from_url(source.url(name)) for name in names}
        verdicts.equal("copies are pending", {one["copy_status"] for one in begun.values()}, {"pending"})
        aborted, *others = names
        is_shown = wait_until(lambda: all((status(second, name) or ("", 0))[1] > 0 for name in names), 2 * RENEWED_SECONDS, 0.2)
        verdicts.check("another front end shows their progress", is_shown, "some bytes", [status(second, name) for name in names])
        at_second = Account(second.blob_address).service().get_container_client(CONTAINER)
        at_second.get_blob_client(aborted).abort_copy(begun[aborted]["copy_id"])
        verdicts.equal("aborted there", status(first, aborted)[0], "aborted")
        time.sleep(RENEWED_SECONDS + 2)
        before = source.pieces(aborted)
        time.sleep(2)
        verdicts.equal("it is not fetched any more", source.pieces(aborted), before)
        fetches = {name: source.fetches(name) for name in others}
        verdicts.check("each copy is fetched by one front end", set(fetches.values()) == {min(fetches.values())}, "one fetch", fetches)
        first.kill()
        began = time.monotonic()
        again = wait_until(lambda: all(source.fetches(name) > fetches[name] for name in others), LEASE_SECONDS + 2 * LOOKS_SECONDS, 0.2)
        verdicts.check("after a kill the other front end fetches them", again, "all", {name: source.fetches(name) for name in others})
        verdicts.figure("fetched again after", f"{time.monotonic() - began:.1f} s")
        source.fast.set()
        wait_until(lambda: all((status(second, name) or ("",))[0] == "success" for name in others), 30, 0.2)
        verdicts.equal("they end", {status(second, name)[0] for name in others}, {"success"})
        bodies = {at_second.get_blob_client(name).download_blob().readall() == BODY for name in others}
        verdicts.equal("and are whole", bodies, {True})
    cluster.start()


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
        kinds = harms(cluster, cycles)
        cycles.run_all("load, harm, verify", options.cycles, lambda cycle: kinds[cycle % len(kinds)](cycle))
        missed = {role: cycles.doubts[role] for role in ("manager", "capacity")}
        verdicts.equal("blobs in doubt after a kill of who answers nothing", missed, dict.fromkeys(missed, 0))
        copies(cluster, verdicts)
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

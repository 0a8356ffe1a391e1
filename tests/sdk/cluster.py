#!/usr/bin/env python3
"""Four nodes of a cluster, an etcd, and HAProxy as docs/cluster.md says, under the load of kill9.py. Three of the nodes have a front end, to
which HAProxy sends clients by turns; each of them serves some partitions of the index, and one of them manages it. The fourth has copies
alone.

In turns, while workers change blobs of every kind:

* kill -9 of the node that only has copies: no client notices it;
* kill -9 of a node with a front end, which has copies and serves partitions too: others take those over;
* kill -9 of the node that manages the index, and serves partitions: others take over;
* a pause of that node, longer than its claim and its read leases: another one takes over, and when the first one goes on it answers nothing
  that is stale, and its process ends;
* SIGTERM of that node: others get its partitions, and it ends with exit code 0;
* kill -9 of all nodes;
* kill -9 of etcd, which is there again after a minute (20 s with --small): no client notices it.

After each one every blob must be in a state that its worker can explain, as in kill9.py. Then, under load:

* files of a node are damaged while it is stopped: no client notices it, and the node mends them;
* a node with copies is lost for good, with its disk, and another node is added: all groups get their copies again;
* a node is drained and removed; its process ends;
* the node that manages the index is lost with its disk.

After each of these every blob is read once more. Each node shows the partitions of all, and splits, moves and merges those of others. A key
that is rotated at one front end is refused at the others within a second. In the end `cluster status` is compared with what is true.
"""

import collections
import queue
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

from azure.core.exceptions import AzureError, HttpResponseError

from lib import cli, commands, damage
from lib.account import Account
from lib.cluster import Cluster, paused
from lib.killed import load
from lib.measure import wait_until
from lib.ports import free_port
from lib.report import Verdicts
from lib.server import Server

CONTAINER = "cluster"
# Longer than a claim (coordinator/claim.rs).
PAUSE_SECONDS = 6
# Of nodes (coordinator/nodes.rs).
SESSION_SECONDS = 12
REPAIR_SECONDS = 300
# The scrub begins ten seconds after the start.
MEND_SECONDS, STILL_SECONDS = 90, 6
# Partitions of the container.
PARTITIONS = 8


class Cycles(load.Cycles):
    """Cycles that also note which operations failed in a harm that no client may notice."""

    def __init__(self, harm, store, subjects_of_workers, options):
        super().__init__(harm.cluster, store, subjects_of_workers, options.seed, options.load_seconds)
        self.harm, self.noticed = harm, []
        self.refused = collections.defaultdict(collections.Counter)

    def _ended(self, workers, changing):
        found = super()._ended(workers, changing)
        codes = collections.Counter(worker.refused for worker in workers if worker.refused)
        self.refused[self.harm.last.__name__] += codes
        if self.harm.last in (self.harm.copies, self.harm.etcd):
            self.noticed += [subject.name for mine in self.subjects for subject in mine if subject.doubt]
        return found


class Harm:
    """What happens to the nodes in each cycle."""

    def __init__(self, cluster, verdicts, away_seconds):
        self.cluster, self.verdicts, self.away_seconds = cluster, verdicts, away_seconds
        self.kinds = [self.copies, self.front_end, self.managing, self.pause, self.stop, self.everything, self.etcd]
        self.last, self.takeovers = None, {"kill -9": [], "a pause": []}

    def crash(self, cycle):
        """One harm; the load ends when this returns."""
        self.last = self.kinds[cycle % len(self.kinds)]
        self.last()

    def copies(self):
        """A node that only has copies is killed, and the load goes on without it."""
        self.cluster.copies().kill()
        time.sleep(2)

    def front_end(self):
        """A node that answers clients, serves partitions, and does not manage the index is killed."""
        self.cluster.front_ends()[0].kill()
        time.sleep(2)

    def managing(self):
        """The node that manages is killed."""
        self.cluster.until_managing().kill()
        self.takeovers["kill -9"].append(self.cluster.until_served())

    def pause(self):
        """The node that manages stands still while others take over."""
        before = self.cluster.until_managing()
        container = self.cluster.account.service().get_container_client(CONTAINER)
        for _, name in self.cluster.probes:
            container.upload_blob(name, b"old", overwrite=True)
        answers = queue.Queue()
        with paused(before):
            began = time.monotonic()
            self.cluster.until_managing(besides=before)
            self.cluster.until_served()
            self.takeovers["a pause"].append(time.monotonic() - began)
            for _, name in self.cluster.probes:
                container.upload_blob(name, b"new", overwrite=True)
            time.sleep(max(0, PAUSE_SECONDS - (time.monotonic() - began)))
            # They are waiting for it when it goes on.
            names = [name for _, name in self.cluster.probes]
            readers = [threading.Thread(target=lambda name=name: answers.put(read(before, name))) for name in names]
            for reader in readers:
                reader.start()
            time.sleep(0.5)
        for reader in readers:
            reader.join()
        said = [answers.get() for _ in readers]
        self.verdicts.none("stale answers of a node that was paused", [answer for answer in said if answer not in (None, b"new")])
        ended = wait_until(lambda: not before.running(), 30, 0.05)
        self.verdicts.check("its process ends", ended and before.process.returncode == 1, "exit code 1", before.process.returncode)
        for _, name in self.cluster.probes:
            container.delete_blob(name)

    def stop(self):
        """The node that manages is stopped in order."""
        before = self.cluster.until_managing()
        before.send(signal.SIGTERM)
        began = time.monotonic()
        self.cluster.until_managing(besides=before)
        self.cluster.until_served()
        self.verdicts.figure("handed over in", f"{time.monotonic() - began:.1f} s")
        self.verdicts.equal("exit code after SIGTERM", before.process.wait(60), 0)

    def everything(self):
        """All nodes are killed at once."""
        for node in self.cluster.nodes:
            node.kill()

    def etcd(self):
        """etcd is killed, and comes back after a long time."""
        self.cluster.etcd.kill()
        time.sleep(self.away_seconds)
        self.cluster.etcd.start()
        # Longer than all sessions.
        time.sleep(SESSION_SECONDS)


def spread(cluster, subjects, verdicts):
    """Splits the container of the load, and waits until each node has some of the partitions."""
    names = sorted(subject.name for mine in subjects for subject in mine)
    borders = names[::len(names) // PARTITIONS][1:PARTITIONS]
    cluster.probes = [(CONTAINER, border + "!") for border in [names[0], *borders]]
    # Whichever node serves it.
    asked = cluster.front_ends()[-1]
    commands.command(asked, "partitions", "split", *[f"{cluster.account.name}/{CONTAINER}/{border}" for border in borders])
    began = time.monotonic()
    verdicts.figure("partitions of each node", cluster.until_even())
    verdicts.figure("even after", f"{time.monotonic() - began:.1f} s")


def any_node(cluster, verdicts):
    """Each node shows all partitions, and changes those of the others."""
    nodes = [node for node in cluster.nodes if node.has_front_end]

    def shown(node, beginning=""):
        all_of_them = commands.command(node, "partitions", "list")["partitions"]
        return {one["id"]: one["node"] for one in all_of_them if one["stopped"] is None and one["from"].startswith(beginning)}

    first = shown(nodes[0])
    verdicts.equal("nodes whose partitions are shown", set(first.values()), {node.name for node in nodes})
    verdicts.equal("each node shows the same", [shown(node) for node in nodes], [first] * len(nodes))
    split, merged, moved = {}, {}, {}
    for node in nodes:
        other = next(known for known in nodes if known is not node)
        inside = shown(node, f"{cluster.account.name}/{CONTAINER}/")
        mine = next(one for one, at in inside.items() if at == other.name)
        halves = commands.command(node, "partitions", "split", "--partition", str(mine), "--ways", "2")["partitions"]
        split[node.name] = len(halves)
        # One of them goes to the node that was asked. The merge brings it to the other one, wherever the manager has that by then.
        commands.command(node, "partitions", "move", str(halves[1]), "--node", node.name)
        moved[node.name] = shown(other).get(halves[1])
        one = commands.command(node, "partitions", "merge", *[str(half) for half in halves])["partitions"]
        merged[node.name] = [half in shown(node) for half in one]
    names = [node.name for node in nodes]
    verdicts.equal("partitions of another node are split", split, dict.fromkeys(names, 2))
    verdicts.equal("moved", moved, {name: name for name in names})
    verdicts.equal("and merged, though two nodes have them", merged, {name: [True] for name in names})
    kinds = [change["kind"] for change in commands.command(nodes[0], "partitions", "list")["changes"][-9:]]
    verdicts.check("each node shows the changes of all", {"split", "move", "merge"} <= set(kinds), found=kinds)
    cluster.until_even()


def damaged(cluster, cycles, verdicts):
    """Files of a node are damaged while it is stopped. No client sees it, and the node mends them from the copies of others."""
    node = cluster.copies()

    def counted(what):
        return node.metrics().get(f"blockyard_capacity_{what}_frames_total", 0)

    def settled(what):
        """The count once it has not changed for some seconds."""
        last = [counted(what), time.monotonic()]

        def is_still():
            if (now := counted(what)) != last[0]:
                last[:] = now, time.monotonic()
            return last[0] > 0 and time.monotonic() - last[1] > STILL_SECONDS

        wait_until(is_still, MEND_SECONDS, 0.5)
        return last[0]

    def harm():
        verdicts.equal("exit code of a node with copies", node.stop(), 0)
        first, second, third = damage.sealed(node.data[0])[:3]
        damage.flip(first)
        damage.flip(second)
        damage.cut(third)
        node.start()
        verdicts.check("flipped bytes and a cut file are mended", (mended := settled("mended")) > 0, "some", mended)
        # The node was away before: frames that were freed meanwhile are damaged too, and nobody has them any more.
        verdicts.figure("frames that were found damaged, and mended", f"{counted('corrupt'):.0f}, {mended:.0f}")

    cycles.harm.last = cycles.harm.copies
    for complaint in cycles.run("damaged", harm)[:5]:
        print(complaint, flush=True)


def replace_nodes(cluster, cycles, verdicts):
    """Loses a node for good, drains another one, and adds one for each, under load."""
    lost, drained = cluster.copies(), cluster.front_ends()[0]

    def whole():
        status = cluster.status()
        return status["short_groups"] + status["unfinished_groups"] == 0

    def lose():
        lost.kill()
        shutil.rmtree(lost.data[0])
        cluster.add()
        code, _, complaint = cluster.command("remove", lost.name)
        verdicts.check("a node with copies is not removed just so", code != 0 and "--lost" in complaint, "refused", complaint)
        verdicts.equal("exit code of `cluster remove --lost`", cluster.command("remove", lost.name, "--lost")[0], 0)
        cluster.forget(lost)
        began = time.monotonic()
        verdicts.check("all groups have their copies again", wait_until(whole, REPAIR_SECONDS, 0.2), "all", cluster.status()["short_groups"])
        verdicts.figure("repaired in", f"{time.monotonic() - began:.1f} s")

    def drain():
        cluster.add()
        cluster.command("drain", drained.name)
        began = time.monotonic()
        empty = wait_until(lambda: groups_of(cluster, drained) == 0, REPAIR_SECONDS, 0.2)
        verdicts.check("a drained node has no copies", empty, "0 groups", groups_of(cluster, drained))
        verdicts.equal("and serves no partition", cluster.partitions()[drained.name], 0)
        verdicts.figure("drained in", f"{time.monotonic() - began:.1f} s")
        verdicts.equal("exit code of `cluster remove`", cluster.command("remove", drained.name)[0], 0)
        wait_until(lambda: not drained.running(), 30, 0.05)
        verdicts.equal("exit code of a removed node", drained.process.returncode, 1)
        cluster.forget(drained)
        verdicts.check("and all groups have their copies", wait_until(whole, REPAIR_SECONDS, 0.2), "all", cluster.status()["short_groups"])

    def lose_server():
        """What is left are copies that repair has made, and those of one node."""
        before = cluster.until_managing()
        before.kill()
        shutil.rmtree(before.data[0])
        verdicts.equal("exit code of `cluster remove --lost`", cluster.command("remove", before.name, "--lost")[0], 0)
        cluster.forget(before)
        cluster.until_served()

    for number, change in enumerate((lose, drain, lose_server)):
        cycles.harm.last = cycles.harm.copies if change is lose else change
        for complaint in cycles.run(f"replaced {number}", change)[:5]:
            print(complaint, flush=True)


def rotated_key(cluster, verdicts):
    """A key that is rotated at one front end is refused at the others within a second."""
    first, second = cluster.front_ends()
    before = commands.command(first, "account", "create", "rotated")["keys"][0]

    def answer(node, key):
        service = Account(node.blob_address, name="rotated", key=key).service()
        try:
            return len(list(service.list_containers()))
        except HttpResponseError as error:
            return error.status_code

    is_known = wait_until(lambda: answer(second, before) == 0, 5, 0.05)
    verdicts.check("an account that was made at one front end is served at the others", is_known, 0, answer(second, before))
    after = commands.command(first, "account", "rotate", "rotated", "key1")["keys"][0]
    began = time.monotonic()
    while answer(second, before) != 403:
        assert time.monotonic() - began < 10, "the key is not refused"
    verdicts.figure("a rotated key is refused by another front end after", f"{1000 * (time.monotonic() - began):.0f} ms")
    verdicts.equal("the new key is taken there", answer(second, after), 0)
    commands.command(first, "account", "delete", "rotated")
    is_gone = wait_until(lambda: answer(second, after) == 403, 5, 0.05)
    verdicts.check("and is gone at the others", is_gone, 403, answer(second, after))


def certificates(cluster, verdicts):
    """Who has no certificate of the cluster is not answered, and a token is good once."""
    host, _, port = cluster.managing().node_address.partition(":")

    nobody = ssl.create_default_context()
    nobody.check_hostname, nobody.verify_mode = False, ssl.CERT_NONE
    reason = "none"
    with socket.create_connection((host, int(port)), timeout=10) as plain, nobody.wrap_socket(plain) as secured:
        verdicts.equal("nodes talk over", secured.version(), "TLSv1.3")
        verdicts.check("a node shows a certificate", secured.getpeercert(binary_form=True))
        try:
            # Only the answer says what the node thinks of it.
            secured.recv(1)
        except ssl.SSLError as error:
            reason = error.reason
    verdicts.equal("who has no certificate is refused", reason, "TLSV13_ALERT_CERTIFICATE_REQUIRED")
    binary, url = cluster.binary, cluster.etcd.url
    unknown = "blockyard-" + 43 * "A"
    with_token = run(binary, "node", "--coordinator", url, "--name", "x1", "--node-tls", "--token", unknown, "--roles", "capacity",
                     "--data", cluster.scratch / "x1", "--master-key-file", cluster.scratch / "x1.key",
                     "--node-listen", f"127.0.0.1:{free_port()}", "--admin-listen", f"127.0.0.1:{free_port()}")
    verdicts.check("a token that nobody made is refused", "does not know this token" in with_token, found=with_token[-200:])
    made = run(binary, "cluster", "token", "--coordinator", url, "--master-key-file", cluster.scratch / "x1.key")
    verdicts.check("only who has the master key file makes tokens", "x1.key is missing" in made, found=made[-200:])


def run(*command):
    """What a command that fails says."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0, done
    return done.stderr


def groups_of(cluster, node):
    """In how many groups a node has copies."""
    return next(known["groups"] for known in cluster.status()["nodes"] if known["name"] == node.name)


def read(node, name):
    """What a node says of a blob that was changed while it was paused; None if it does not answer."""
    try:
        service = Account(node.blob_address).service(connection_timeout=2, read_timeout=10)
        return service.get_blob_client(CONTAINER, name).download_blob().readall()
    except HttpResponseError as error:
        if error.status_code != 503:
            raise
        return None
    except AzureError:
        return None


def main(options, scratch):
    verdicts = Verdicts(f"a cluster, {options.cycles} cycles, {options.threads} threads")
    other = Server(options.binary, [scratch / "other"], scratch / "other.log")
    extra = [*load.SERVED_WITH[:1], "--journal-bytes=8388608", "--scrub-bytes-per-second=268435456", *options.serve_arg]
    with other, Cluster(options.binary, scratch, extra) as cluster:
        other.start()
        everything = load.everything(cluster, other, CONTAINER, options.threads)
        store = load.AzureStore(cluster.account, CONTAINER)
        harm = Harm(cluster, verdicts, 20 if options.small else 60)
        spread(cluster, everything, verdicts)
        cycles = Cycles(harm, store, everything, options)
        cycles.run_all("load, harm, verify", options.cycles, harm.crash)
        for after, seconds in harm.takeovers.items():
            if seconds:
                middle = sorted(seconds)[len(seconds) // 2]
                verdicts.figure(f"without a server after {after}, median and worst", f"{middle:.1f} s, {max(seconds):.1f} s")
        any_node(cluster, verdicts)
        damaged(cluster, cycles, verdicts)
        rotated_key(cluster, verdicts)
        certificates(cluster, verdicts)
        replace_nodes(cluster, cycles, verdicts)
        verdicts.none("blobs in doubt after something that no client may notice", cycles.noticed)
        refused = {harm: dict(codes) for harm, codes in cycles.refused.items() if codes}
        verdicts.figure("operations that a node could not finish, by harm", refused or "none")
        # A node that goes on after a pause may refuse what its clients sent meanwhile.
        others = {harm: codes for harm, codes in refused.items() if harm not in ("pause", "everything")}
        verdicts.equal("of these, not after a pause or the end of all nodes", others, {})
        nodes = {node["name"]: (node["state"], node["serving"]) for node in cluster.status()["nodes"] if node["state"] != "removed"}
        verdicts.equal("cluster status", nodes, {node.name: ("active", node.serves) for node in cluster.nodes})
        verdicts.check("each node serves partitions", all(cluster.until_even().values()), "some", cluster.partitions())
        verdicts.equal("exit codes after SIGTERM", {node.stop() for node in cluster.nodes}, {0})
    cycles.verdicts(verdicts)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--cycles", type=int, help="harms (default 49; 7 with --small)")
    flags.add_argument("--threads", type=int, default=8, help="workers, each with its own blobs")
    flags.add_argument("--load-seconds", type=float, default=2.0, help="longest load before a harm")
    flags.add_argument("--seed", default="21", help="makes the same sequence of operations again")
    parsed = cli.parse(flags)
    parsed.cycles = parsed.cycles or (7 if parsed.small else 49)
    cli.run(main, parsed)

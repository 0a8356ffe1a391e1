"""A cluster: an etcd, nodes, and the HAProxy of docs/cluster.md before them. `Cluster` is one address to clients."""

import http.client
import json
import pathlib
import re
import shutil
import signal
import subprocess
import time

from azure.core.exceptions import AzureError

from . import install
from .account import Account
from .ports import free_port
from .server import Program, Server

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs" / "cluster.md"
ETCD, HAPROXY = "etcd-server", "haproxy"
# Of a node, by the first letter of its name.
ROLES = {"n": "front,index,capacity,manager", "c": "capacity", "f": "front", "i": "index", "m": "manager"}


class Etcd(Program):
    """An etcd of one member."""

    def __init__(self, folder, log):
        super().__init__(log)
        self.folder, self.port, self.peers = folder, free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def command(self):
        """etcd with its ports."""
        peers = f"http://127.0.0.1:{self.peers}"
        return [shutil.which("etcd"), "--data-dir", str(self.folder), "--listen-client-urls", self.url,
                "--advertise-client-urls", self.url, "--listen-peer-urls", peers,
                "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"]

    def ready(self):
        """Whether it has a leader."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
        try:
            connection.request("GET", "/health")
            return json.loads(connection.getresponse().read()).get("health") == "true"
        except (OSError, ValueError, http.client.HTTPException):
            return False
        finally:
            connection.close()


class Node(Server):
    """A `blockyard node`."""

    def __init__(self, binary, name, etcd, scratch, extra):
        super().__init__(binary, [scratch / name], scratch / f"{name}.log", extra)
        self.name, self.etcd = name, etcd
        # Each machine has a copy of its own.
        self.key, self.made = scratch / f"{name}.key", scratch / "cluster.key"
        self.roles = ROLES[name[0]]
        self.has_front_end, self.serves = "front" in self.roles, "index" in self.roles
        self.node_address = f"127.0.0.1:{free_port()}"

    def command(self):
        """`blockyard node` with its flags."""
        token = () if self.key.exists() else ("--token", token_for(self))
        return [self.binary, "node", "--coordinator", self.etcd.url, "--name", self.name, "--roles", self.roles,
                "--machine", f"machine of {self.name}", "--master-key-file", str(self.key),
                "--node-listen", self.node_address, "--node-tls", *token, *super().command()[2:]]

    def phase(self):
        """`starting`, `standby`, `ready` or `draining`; None while it does not answer."""
        connection = http.client.HTTPConnection(self.admin_address, timeout=1)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().read().decode().split()[0]
        except (OSError, http.client.HTTPException, IndexError):
            return None
        finally:
            connection.close()

    def ready(self):
        """Whether it is a part of the cluster."""
        return self.phase() in ("standby", "ready")

    def send(self, what):
        """Sends the process a signal."""
        self.process.send_signal(what)


def token_for(node):
    """A token with which a node gets its master key file."""
    command = [node.binary, "cluster", "token", "--coordinator", node.etcd.url, "--master-key-file", str(node.made)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class HaProxy(Program):
    """The proxy of docs/cluster.md, but for addresses."""

    def __init__(self, nodes, scratch):
        super().__init__(scratch / "haproxy.log")
        self.address, self.config = f"127.0.0.1:{free_port()}", scratch / "haproxy.cfg"
        text = re.search(r"^```haproxy\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)[1]
        text = text.replace("bind :10000", f"bind {self.address}")
        text, lines = re.subn(r"^ *server n[123] n[123]:10000 port 10080\n", "", text, flags=re.M)
        assert lines == 3, f"{PAGE} has {lines} lines with servers"
        for node in nodes:
            port = node.admin_address.rpartition(":")[2]
            text += f"    server {node.name} {node.blob_address} port {port}\n"
        self.config.write_text(text, encoding="utf-8")

    def command(self):
        """haproxy in the foreground."""
        return [shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-f", str(self.config)]

    def ready(self):
        """Whether a node behind it answers a client."""
        try:
            pages = Account(self.address).service(connection_timeout=2, read_timeout=30).list_containers(results_per_page=1).by_page()
            return next(pages, ()) is not None
        except AzureError:
            return False


class Cluster:
    """All of it. What a script knows as a server: it is started, has an account, and runs."""

    def __init__(self, binary, scratch, extra=(), names=("n1", "n2", "n3", "c1"), spare=("n4", "n5")):
        install.debian([ETCD, HAPROXY])
        self.binary, self.scratch = binary, scratch
        self.etcd = Etcd(scratch / "etcd", scratch / "etcd.log")
        made = {name: Node(binary, name, self.etcd, scratch, extra) for name in (*names, *spare)}
        self.nodes, self.spare = [made[name] for name in names], [made[name] for name in spare]
        self.proxy = HaProxy([node for node in made.values() if node.has_front_end], scratch)
        self.probes = []  # Blobs, one in each partition, that are asked for to see whether all are served.

    def __enter__(self):
        self.etcd.start()
        key = self.scratch / "cluster.key"
        subprocess.run([self.binary, "cluster", "init", "--coordinator", self.etcd.url, "--master-key-file", key],
                       check=True, capture_output=True)
        for node in self.nodes:
            node.launch()
        self.start()
        return self

    def __exit__(self, *exc):
        for program in (self.proxy, *self.nodes, self.etcd):
            program.kill()
        return False

    def add(self):
        """Starts one more node."""
        node = self.spare.pop(0)
        self.nodes.append(node)
        node.start()
        return node

    def forget(self, node):
        """A node that was removed is not started again."""
        node.kill()
        self.nodes.remove(node)

    @property
    def account(self):
        """The well-known development account, at the proxy."""
        return Account(self.proxy.address)

    def running(self):
        """Whether it can be started again."""
        return self.etcd.running()

    def start(self, seconds=60):
        """Starts what has ended, and waits until all nodes are there and clients are served. Returns the seconds that took."""
        began = time.monotonic()
        for program in (self.etcd, *self.nodes, self.proxy):
            if not program.running():
                program.launch()
        while not (all(node.phase() == "ready" for node in self.nodes) and self.managing() and self.served()):
            if time.monotonic() - began > seconds:
                raise RuntimeError(f"not ready after {seconds} s:\n" + "\n".join(node.log_tail(12) for node in self.nodes))
            time.sleep(0.02)
        return time.monotonic() - began

    def managing(self):
        """The node that manages the index, or None."""
        code, answer, _ = self.command("status")
        names = [node["name"] for node in answer["nodes"] if node["managing"]] if code == 0 else []
        return next((node for node in self.nodes if node.name in names and node.running()), None)

    def until_managing(self, seconds=60, besides=None):
        """Waits for a node that manages the index, and that is not `besides`; it."""
        began = time.monotonic()
        while (found := self.managing()) in (None, besides):
            if time.monotonic() - began > seconds:
                raise RuntimeError(f"nobody manages after {seconds} s:\n" + "\n".join(node.log_tail(12) for node in self.nodes))
            time.sleep(0.05)
        return found

    def front_ends(self):
        """The nodes that answer clients, and do not manage the index."""
        managing = self.until_managing()
        return [node for node in self.nodes if node is not managing and node.has_front_end]

    def partitions(self):
        """How many partitions each node with a front end has."""
        return {node["name"]: node["partitions"] for node in self.status()["nodes"] if node["serving"]}

    def until_even(self, seconds=60):
        """Waits until all nodes that serve partitions have equally many, or one more. Returns how many each has."""
        began = time.monotonic()
        while max((counts := list(self.partitions().values())) or [0]) - min(counts or [0]) > 1 or len(counts) < self.serving_nodes():
            if time.monotonic() - began > seconds:
                raise RuntimeError(f"partitions are not even after {seconds} s: {self.partitions()}")
            time.sleep(0.1)
        return self.partitions()

    def serving_nodes(self):
        """How many nodes serve partitions when all are there."""
        return sum(node.serves for node in self.nodes)

    def served(self):
        """Whether clients are served, whatever the partition."""
        if not self.proxy.ready():
            return False
        service = self.account.service(connection_timeout=2, read_timeout=30)
        try:
            return all(service.get_blob_client(*probe).exists() in (True, False) for probe in self.probes)
        except AzureError:
            return False

    def copies(self):
        """The node that only has copies."""
        return next(node for node in self.nodes if node.roles == "capacity")

    def until_served(self, seconds=60):
        """Waits until clients are served again. Returns the seconds that took."""
        began = time.monotonic()
        while not self.served():
            if time.monotonic() - began > seconds:
                raise RuntimeError(f"not served after {seconds} s:\n" + "\n".join(node.log_tail(12) for node in self.nodes))
            time.sleep(0.02)
        return time.monotonic() - began

    def command(self, *words):
        """`blockyard cluster` with these words: (exit code, answer, what it complained of)."""
        command = [self.binary, "cluster", *words, "--coordinator", self.etcd.url, "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, json.loads(done.stdout or "null"), done.stderr.strip()

    def watch(self, seconds):
        """What `blockyard cluster watch` says, each second."""
        command = [self.binary, "cluster", "watch", "--coordinator", self.etcd.url, "--json", "--seconds", str(seconds)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def status(self):
        """What `blockyard cluster status` says."""
        code, answer, complaint = self.command("status")
        assert code == 0, complaint
        return answer


def paused(node):
    """Pauses a node while its block runs."""
    return _Paused(node)


class _Paused:
    def __init__(self, node):
        self.node = node

    def __enter__(self):
        self.node.send(signal.SIGSTOP)
        return self.node

    def __exit__(self, *exc):
        self.node.send(signal.SIGCONT)
        return False

"""The sides that are compared: one process, and two ways into a cluster of three nodes."""

import dataclasses
import http.client
import json
import os
import shutil
import subprocess
import time

from comparison.servers import Server
from lib.ports import free_port

READY_SECONDS = 60
NODES = 3
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process):
    """User and system time of a process so far."""
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as stat:
        # The second field is the name, which may have spaces.
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


class Program(Server):
    """A process on a free port."""

    def __init__(self, name):
        super().__init__(None, free_port())
        self.name = name


class Etcd(Program):
    """An etcd of one member."""

    def __init__(self):
        super().__init__("etcd")
        self.url, self.peers = f"http://127.0.0.1:{self.base}", f"http://127.0.0.1:{free_port()}"

    def command(self, data):
        return [shutil.which("etcd"), "--data-dir", str(data), "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
                "--listen-peer-urls", self.peers, "--initial-advertise-peer-urls", self.peers, "--initial-cluster", f"default={self.peers}"]


class Node(Program):
    """A process of Blockyard; `words` are its command and the arguments that it alone has."""

    def __init__(self, name, program, words, serve_args):
        super().__init__(name)
        self.admin = free_port()
        self.words = [str(program), *words]
        self.serve_args = serve_args

    def command(self, data):
        return [*self.words, "--data", str(data), "--blob-listen", f"127.0.0.1:{self.base}", "--admin-listen", f"127.0.0.1:{self.admin}",
                *self.serve_args]

    def get(self, path):
        """GETs a path of the admin listener: (status, text)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def wait(self):
        """Waits until it can answer clients."""
        end = time.monotonic() + READY_SECONDS
        while True:
            try:
                if self.get("/readyz")[0] == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.name} is not ready")
            time.sleep(0.05)

    def counters(self):
        """Every sample of its metrics without labels, by name."""
        samples = [line.rpartition(" ") for line in self.get("/metrics")[1].splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in samples if name and "{" not in name}


@dataclasses.dataclass
class Side:
    """Where requests are sent, and the processes that work for them."""

    title: str
    front: Node
    nodes: list
    etcd: Etcd | None = None

    def cpu_seconds(self):
        """User and system time so far of all processes of Blockyard, and of etcd."""
        return sum(cpu_seconds(node.process) for node in self.nodes), cpu_seconds(self.etcd.process) if self.etcd else 0.0

    def counter(self, name):
        """A metric, summed over all processes."""
        return sum(node.counters().get(name, 0) for node in self.nodes)


def start(program, work, serve_args, ends):
    """Starts everything; the sides by letter. `ends` ends each process when it is closed."""
    def begin(server):
        ends.callback(lambda: server.process and server.kill())
        server.start(work / server.name, wait=isinstance(server, Etcd))
        return server

    alone = begin(Node("alone", program, ["serve"], serve_args))
    etcd, key = begin(Etcd()), str(work / "cluster.key")
    subprocess.run([program, "cluster", "init", "--coordinator", etcd.url, "--master-key-file", key], check=True, stdout=subprocess.DEVNULL)
    nodes = []
    for name in [f"n{number + 1}" for number in range(NODES)]:
        # A machine for each, for copies are on different machines.
        words = ["node", "--coordinator", etcd.url, "--master-key-file", key, "--name", name, "--machine", f"machine of {name}",
                 "--node-listen", f"127.0.0.1:{free_port()}"]
        nodes.append(begin(Node(name, program, words, serve_args)))
    for node in [alone, *nodes]:
        node.wait()
    name = serving(program, etcd)
    server = next(node for node in nodes if node.name == name)
    other = next(node for node in nodes if node is not server)
    return {
        "a": Side("one process", alone, [alone]),
        "b": Side("cluster, the node that serves the index", server, nodes, etcd),
        "c": Side("cluster, another node", other, nodes, etcd),
    }


def serving(program, etcd):
    """The name of the node that serves the index."""
    command = [program, "cluster", "status", "--coordinator", etcd.url, "--json"]
    status = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return next((node["name"] for node in status["nodes"] if node["partitions"]), None)

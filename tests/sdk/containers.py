#!/usr/bin/env python3
"""A cluster in containers, without containers: docker/compose.cluster.yaml, docker/haproxy.cfg, docker/kubernetes/ and what
docs/cluster.md says about them.

* All files parse, and agree on names, images, ports, folders, labels and secrets; Kubernetes' own descriptions have all fields.
* Each command of them that names a cluster is taken by the program: with an etcd that refuses, it says that, and nothing about its usage.
* The commands of the compose file run as they stand, but for addresses and folders: three members of etcd, init, three nodes, HAProxy.
  An account is made with the line of the page, blobs are stored and read through HAProxy while a node stops and comes back.
* The pods of the manifests run in the same way, with a master key file made by the line of the page: init twice, probes before and while
  the nodes are ready, a pod that starts again, a pod that lost its volume.

It runs no Docker and no Kubernetes: what they do with the files is not tested.
"""

import concurrent.futures
import contextlib
import http.client
import json
import re
import shlex
import subprocess
import time

from lib import cli, container_checks, container_files, install
from lib.account import Account
from lib.cluster import ETCD, HAPROXY
from lib.container_files import Container, Network, Setting
from lib.content import content
from lib.measure import wait_until
from lib.report import Verdicts

ACCOUNT = "myaccount"
READY_SECONDS = 60
LARGE = 9 << 20
# What the program says about an etcd that refuses connections. It tries for 5 s.
REFUSED = "the coordinator is unavailable"
PODS = ("blockyard-0", "blockyard-1", "blockyard-2")


def status(address, path):
    """The status of a GET as the kubelet and HAProxy send it, or None."""
    connection = http.client.HTTPConnection(address, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


class Node(Container):
    """A container or pod with a node."""

    def __init__(self, name, words, variables, mounts, setting):
        super().__init__(name, words, variables, mounts, setting)
        self.blob, self.admin = f"{self.address}:10000", f"{self.address}:10080"

    def ready(self):
        """Whether it answers clients."""
        return status(self.admin, "/readyz") == 200


class Etcd(Container):
    """A member of etcd."""

    def ready(self):
        """Whether it has a leader."""
        return status(f"{self.address}:2379", "/health") == 200


class Balancer(Container):
    """HAProxy."""

    def ready(self):
        """Whether a node behind it answers."""
        return status(f"{self.address}:10000", "/") is not None


class Once(Container):
    """A container that ends."""

    def run(self):
        """Its exit code and what it says."""
        done = subprocess.run(self.command(), capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout + done.stderr


def executed(container, words):
    """What `docker exec` and `kubectl exec` do: exit code, output, errors."""
    done = subprocess.run(container.executed(words), capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def until_ready(nodes):
    """Waits until all nodes are ready."""
    if not wait_until(lambda: all(node.ready() for node in nodes), READY_SECONDS, 0.1):
        raise RuntimeError("not ready:\n" + "\n".join(f"{node.name}: {node.log_tail(12)}" for node in nodes))


def until_served(nodes):
    """Waits until all nodes are ready, and the index answers. On a busy machine its partitions may open a little later."""
    until_ready(nodes)
    for node in nodes:
        answers = lambda node=node: executed(node, ["/blockyard", "account", "list"])[0] == 0
        if not wait_until(answers, READY_SECONDS, 0.2):
            raise RuntimeError(f"the index does not answer {node.name}: {node.log_tail(12)}")


def pod_facts(name):
    """What Kubernetes says of a pod, by field."""
    number = name[-1]
    return {"metadata.name": name, "spec.nodeName": f"worker-{number}", "metadata.labels['topology.kubernetes.io/zone']": f"zone-{number}"}


class Files:
    """The files, and the containers that they make."""

    def __init__(self):
        self.compose, self.manifests = container_files.Compose(), container_files.Manifests()
        self.pods, self.job = self.manifests.named("StatefulSet"), self.manifests.named("Job")

    def service(self, kind, name, setting, words=None):
        """A service of the compose file."""
        return kind(name, words or self.compose.words(name), self.compose.variables(name), self.compose.mounts(name), setting)

    def container(self, kind, name, workload, setting, **changes):
        """The container of a pod; `changes` are variables of another etcd, or None to leave one out."""
        container = container_files.only_container(workload)
        variables = {**self.manifests.variables(container, pod_facts(name)), **changes}
        given = {name: value for name, value in variables.items() if value is not None}
        words = [*container["command"], *container.get("args", [])]
        return kind(name, words, given, self.manifests.mounts(workload, name), setting)


def refused(files, binary, scratch, verdicts):
    """Each command of the program is taken, up to an etcd that refuses."""
    names = [*files.compose.services, "pod-init", *PODS]
    scratch.mkdir()
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                           "-subj", "/CN=etcd", "-keyout", scratch / "key.pem", "-out", scratch / "cert.pem"], capture_output=True, check=False)
    assert made.returncode == 0, made.stderr.decode()

    def here(name):
        # Each has an etcd of its own, so that none listens there.
        network = Network([*names, "etcd-0", "etcd-1", "etcd-2", "etcd-3"])
        setting = Setting(binary, scratch / name, network)
        for file, source in (("ca.crt", "cert"), ("tls.crt", "cert"), ("tls.key", "key")):
            (setting.volume("etcd") / file).write_bytes((scratch / f"{source}.pem").read_bytes())
        return setting

    run = [files.service(Once, name, here(name)) for name in files.compose.of_image(container_files.IMAGE)]
    # https://etcd-0.etcd:2379 is no name of the network.
    where = files.manifests.named("Secret")["stringData"]["BLOCKYARD_COORDINATOR"].replace(".etcd:", ":")
    run += [files.container(Once, name, one, here(name), BLOCKYARD_COORDINATOR=where)
            for name, one in (("pod-init", files.job), (PODS[0], files.pods))]
    # What the check itself must notice.
    wrong = files.service(Once, files.compose.nodes[0], here("wrong"), [*files.compose.words(files.compose.nodes[0]), "--machin=x"])
    with concurrent.futures.ThreadPoolExecutor(len(run) + 1) as pool:
        *said, (code, usage) = pool.map(lambda one: one.run(), [*run, wrong])
    taken = lambda code, text: code == 1 and REFUSED in text and "Usage:" not in text
    strange = [f"{one.name}: exit {code}: {text[-300:]}" for one, (code, text) in zip(run, said) if not taken(code, text)]
    verdicts.none(f"{len(run)} commands are taken, up to an etcd that refuses", strange)
    verdicts.check("and one with a wrong flag is not", code == 2 and "unexpected argument" in usage, "exit 2", f"exit {code}")


def blobs(address, key, verdicts, what):
    """Stores and reads blobs. Returns how to read them once more."""
    service = Account(address, name=ACCOUNT, key=key).service(retries=3)
    container, large = service.get_container_client("blobs"), content("large", LARGE)
    if not container.exists():
        container.create_container()
    container.upload_blob("small", b"small", overwrite=True)
    container.upload_blob("large", large, overwrite=True)
    wrong = lambda: [name for name, data in (("small", b"small"), ("large", large)) if container.download_blob(name).readall() != data]
    verdicts.none(f"{what}: blobs are read as they were stored", wrong())
    return wrong


def pasted(line, nodes):
    """A line of the page that executes something in a node's container, here: (node, words), or None."""
    for start in (r"docker compose -f (?P<file>\S+) exec (?P<name>\S+) ", r"kubectl exec (?P<name>\S+) -- "):
        found = re.match(start, line)
        if found:
            words = [ACCOUNT if word == "NAME" else word for word in shlex.split(line[found.end():])]
            return next((node for node in nodes if node.name == found["name"]), None), words
    return None


def page(nodes, verdicts, program):
    """Runs the page's lines for containers of one kind. Returns the key of the account that one of them made."""
    key, wrong, lines = None, [], [line for line in container_files.page_lines() if line.startswith(program)]
    for line in lines:
        found = pasted(line, nodes)
        if found is None:
            continue
        node, words = found
        assert node, f"{line}: no such container"
        code, out, errors = executed(node, [*words, "--json"])
        if code != 0:
            wrong.append(f"{line}: exit {code}: {errors}")
        elif "account" in words:
            key = json.loads(out)["keys"][0]
    verdicts.none(f"the page's lines with `{program} ... exec`", wrong)
    return key


def run_compose(files, binary, scratch, verdicts):
    """The compose file's commands."""
    compose = files.compose
    setting = Setting(binary, scratch, Network(list(compose.services)))
    members = [files.service(Etcd, name, setting) for name in compose.of_image("etcd")]
    nodes = [files.service(Node, name, setting) for name in compose.nodes]
    (name,) = compose.of_image("haproxy")
    balancer = files.service(Balancer, name, setting, setting.balancer(name))
    init = files.service(Once, "init", setting)
    with contextlib.ExitStack() as running:
        for one in (*members, *nodes, balancer):
            running.enter_context(one)
        start_etcd(members)
        for what, lines in (("init", "is made"), ("init again", "was already made")):
            code, said = init.run()
            verdicts.check(f"compose: {what}", code == 0 and lines in said, "exit 0", f"exit {code}: {said[-200:] if code else lines}")
        balancer.launch()
        for node in nodes:
            node.launch()
        until_served(nodes)
        wait_until(balancer.ready, READY_SECONDS, 0.1)
        key = page(nodes, verdicts, "docker compose")
        wrong = blobs(f"{balancer.address}:10000", key, verdicts, "compose")
        at = {node["name"]: (node["state"], node["machine"], node["zone"]) for node in known(nodes[0])}
        wanted = {node.name: ("active", f"machine-{number}", f"zone-{number}") for number, node in enumerate(nodes, 1)}
        verdicts.equal("compose: the nodes that the cluster knows", at, wanted)
        managing = next(node["name"] for node in known(nodes[0]) if node["managing"])
        one = next(node for node in nodes if node.name == managing)
        verdicts.equal("compose: exit code of the node that manages, after SIGTERM", one.stop(), 0)
        verdicts.none("compose: blobs are read without it", wrong())
        one.launch()
        until_served(nodes)
        verdicts.none("compose: and when it is back", wrong())
        for node in nodes:
            node.stop()
    return members


def start_etcd(members):
    """Starts a cluster of etcd."""
    for member in members:
        member.launch()
    if not wait_until(lambda: all(member.ready() for member in members), READY_SECONDS, 0.1):
        raise RuntimeError("etcd:\n" + "\n".join(member.log_tail(8) for member in members))


def known(node):
    """The nodes that the cluster knows."""
    code, out, errors = executed(node, ["/blockyard", "cluster", "status", "--json"])
    assert code == 0, errors
    return json.loads(out)["nodes"]


def master_key(binary, scratch, setting):
    """Makes the master key file with the page's line for `docker run`, and gives it to the pods."""
    (line,) = [line for line in container_files.page_lines() if line.startswith("docker run ")]
    words = shlex.split(line)
    script, target = words[words.index("-c") + 1], words[-1]
    assert words[-2] == ">" and "--entrypoint /bin/sh" in line, line
    made = Setting(binary, scratch / "made", setting.network)
    variables = {**container_files.image_variables(), "BLOCKYARD_BLOB_LISTEN": "0.0.0.0:0", "BLOCKYARD_ADMIN_LISTEN": "0.0.0.0:0"}
    container = Container(PODS[0], ["/bin/sh", "-c", script], variables, {}, made)
    done = subprocess.run(container.command(), capture_output=True, check=False)
    file = setting.volume("key") / target
    file.write_bytes(done.stdout)
    file.chmod(0o440)
    return done.stdout.startswith(b"blockyard key ring 1\n")


def run_pods(files, binary, scratch, members, verdicts):
    """The pods of the manifests, on the etcd of the compose file."""
    setting = Setting(binary, scratch, Network(PODS))
    # An etcd without certificates, as etcd.yaml says.
    plain = {name: None for name in files.manifests.named("Secret")["stringData"]}
    plain |= {"BLOCKYARD_COORDINATOR": ",".join(f"http://{member.address}:2379" for member in members), "BLOCKYARD_COORDINATOR_PREFIX": "pods/"}
    container = container_files.only_container(files.pods)
    probes = {kind: container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("readiness", "liveness")}
    nodes = [files.container(Node, name, files.pods, setting, **plain) for name in PODS]
    with contextlib.ExitStack() as running:
        for one in (*members, *nodes):
            running.enter_context(one)
        start_etcd(members)
        verdicts.check("pods: the page's line makes a master key file", master_key(binary, scratch, setting))
        for what, lines in (("init", "is made"), ("init again", "was already made")):
            code, said = files.container(Once, PODS[0], files.job, setting, **plain).run()
            verdicts.check(f"pods: {what}", code == 0 and lines in said, "exit 0", f"exit {code}: {said[-200:] if code else lines}")
        first = nodes[0]
        first.launch()
        lives = wait_until(lambda: status(first.admin, probes["liveness"]) == 200, READY_SECONDS, 0.05)
        verdicts.equal("pods: a pod alone lives, and is not ready", (lives, status(first.admin, probes["readiness"])), (True, 503))
        for node in nodes[1:]:
            node.launch()
        until_served(nodes)
        for kind, path in probes.items():
            verdicts.equal(f"pods: {kind} probe of nodes that are ready", {status(node.admin, path) for node in nodes}, {200})
        key = page(nodes, verdicts, "kubectl")
        for node in nodes:
            blobs(node.blob, key, verdicts, f"pods: {node.name}")
        names_of_pods(setting, nodes, verdicts)
        for node in nodes:
            node.stop()


def names_of_pods(setting, nodes, verdicts):
    """A pod keeps its name with its volume; with a new volume it is another node."""

    def names():
        return {node["name"]: node["machine"] for node in known(nodes[0]) if node["state"] == "active"}

    before = names()
    wanted = sorted((name, f"worker-{number}") for number, name in enumerate(PODS))
    verdicts.equal("pods: names and machines", sorted((name[:-9], machine) for name, machine in before.items()), wanted)
    last = nodes[-1]
    for what in ("starts again", "lost its volume"):
        verdicts.equal(f"pods: exit code of one after SIGTERM, which {what}", last.stop(), 0)
        if "lost" in what:
            setting.lose_volume(f"data-{last.name}")
        last.launch()
        until_served(nodes)
        now = names()
        kept = set(before) & set(now)
        verdicts.equal(f"pods: names that stay when one {what}", len(kept), 3 if "again" in what else 2)
        verdicts.equal(f"pods: nodes when one {what}", sorted(name[:-9] for name in now), list(PODS))


def main(options, scratch):
    verdicts = Verdicts("a cluster in containers")
    install.debian([ETCD, HAPROXY])
    files, began = Files(), time.monotonic()
    container_checks.check(files.compose, files.manifests, pod_facts(PODS[0]), options.binary, verdicts)
    refused(files, options.binary, scratch / "refused", verdicts)
    members = run_compose(files, options.binary, scratch / "compose", verdicts)
    run_pods(files, options.binary, scratch / "pods", members, verdicts)
    verdicts.figure("in", f"{time.monotonic() - began:.0f} s")
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

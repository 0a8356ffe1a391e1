"""What docker/ has for a cluster in containers, and how its commands are run here: as they stand, but for addresses, folders and the
place of the program. Each container gets an address of its own in 127.0.0.0/8, so that all of them have their usual ports."""

import json
import os
import random
import re
import shutil
import socket

import yaml

from .install import ROOT
from .server import Program

DOCKER = ROOT / "docker"
COMPOSE, BALANCER = DOCKER / "compose.cluster.yaml", DOCKER / "haproxy.cfg"
MANIFESTS = DOCKER / "kubernetes"
KUSTOMIZATION = MANIFESTS / "kustomization.yaml"
PAGE = ROOT / "docs" / "cluster.md"
DOCKERFILE = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
# The image of Blockyard, as both name it.
IMAGE = "blockyard"
# In which containers write and read.
FOLDERS = ("/data", "/key", "/etcd", "/etcd-data")


def _check_keys(node):
    """Refuses a key that is there twice, of which YAML would take the last one."""
    if isinstance(node, yaml.MappingNode):
        names = [key.value for key, _ in node.value]
        assert len(names) == len(set(names)), f"{node.start_mark}: a key is there twice: {names}"
        for _, value in node.value:
            _check_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _check_keys(value)


def documents(path):
    """The documents of a YAML file."""
    text = path.read_text(encoding="utf-8")
    for node in yaml.compose_all(text, yaml.SafeLoader):
        _check_keys(node)
    return [made for made in yaml.safe_load_all(text) if made is not None]


def image_variables():
    """The variables of the image that is made without --target."""
    stage = re.search(r"^FROM \S+ AS server$(.*?)(?=^FROM )", DOCKERFILE, re.M | re.S)[1]
    return dict(re.findall(r"^ENV (BLOCKYARD_\w+)=(\S+)$", stage, re.M))


def image_entrypoint():
    """What the image starts."""
    return json.loads(re.search(r"^ENTRYPOINT (\[.*\])$", DOCKERFILE, re.M)[1])


def page_lines():
    """The lines to paste of docs/cluster.md about containers."""
    section = re.search(r"^## In containers\n(.*?)^## ", PAGE.read_text(encoding="utf-8"), re.M | re.S)[1]
    blocks = re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]


class Compose:
    """The compose file."""

    def __init__(self):
        (self.file,) = documents(COMPOSE)
        self.services = self.file["services"]

    def of_image(self, part):
        """The names of services whose image has this in its name."""
        return [name for name, service in self.services.items() if part in service["image"]]

    @property
    def nodes(self):
        """The names of the services that are nodes."""
        return [name for name in self.of_image(IMAGE) if (self.services[name].get("command") or [""])[0] == "node"]

    def words(self, name):
        """What a container starts: entry point and command."""
        service = self.services[name]
        default = image_entrypoint() if service["image"] == IMAGE else []
        return [*service.get("entrypoint", default), *service.get("command", [])]

    def variables(self, name):
        """The variables of a container, those of its image too."""
        service = self.services[name]
        given = {name: str(value) for name, value in service.get("environment", {}).items() if value is not None}
        return {**(image_variables() if service["image"] == IMAGE else {}), **given}


    def mounts(self, name):
        """The volume of each folder of a container."""
        volumes = [volume.split(":") for volume in self.services[name].get("volumes", [])]
        return {parts[1]: parts[0] for parts in volumes if not parts[0].startswith(".")}


class Manifests:
    """The manifests of Kubernetes."""

    def __init__(self):
        (self.kustomization,) = documents(KUSTOMIZATION)
        self.files = {path.name: documents(path) for path in sorted(MANIFESTS.glob("*.y*ml")) if path != KUSTOMIZATION}
        self.all = [made for file in self.files.values() for made in file]

    def named(self, kind, name=None):
        """The one object of a kind, or of this name."""
        found = [made for made in self.all if made["kind"] == kind and name in (None, made["metadata"]["name"])]
        assert len(found) == 1, f"{len(found)} of {kind} {name or ''}"
        return found[0]

    def kinds(self, kind):
        """All objects of a kind."""
        return [made for made in self.all if made["kind"] == kind]

    @property
    def workloads(self):
        """What has pods."""
        return [made for made in self.all if "template" in made.get("spec", {})]

    def variables(self, container, pod=None):
        """The variables of a container in a pod: a dictionary of what Kubernetes says about it by field."""
        found = image_variables()
        for source in container.get("envFrom", []):
            found.update(self.named("Secret", source["secretRef"]["name"])["stringData"])
        for one in container.get("env", []):
            value = one["value"] if "value" in one else pod[one["valueFrom"]["fieldRef"]["fieldPath"]]
            found[one["name"]] = re.sub(r"\$\((\w+)\)", lambda name: found[name[1]], value)
        return found


    def mounts(self, workload, name):
        """The volume of each folder of the container in a pod: its own, or one of a Secret."""
        claims = [claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])]
        found = {mount["mountPath"]: mount["name"] for mount in only_container(workload)["volumeMounts"]}
        return {path: f"{volume}-{name}" if volume in claims else volume for path, volume in found.items()}


def only_container(workload):
    """The container of a workload's pods."""
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    return container


class Network:
    """Addresses of 127.0.0.0/8 for the names of containers."""

    def __init__(self, names):
        while True:
            start = f"127.{random.randint(1, 254)}.{random.randint(1, 254)}"
            self.addresses = {name: f"{start}.{number}" for number, name in enumerate(names, 1)}
            with socket.socket() as probe:
                # Another run may have the same.
                if probe.connect_ex((f"{start}.1", 2379)) != 0:
                    return

    def here(self, text, own):
        """A text with these addresses instead of names, and that of `own` instead of all addresses of its machine."""
        for name, address in self.addresses.items():
            text = re.sub(rf"(?<![\w.-]){re.escape(name)}(?=:\d)", address, text)
        text = re.sub(r"\b0\.0\.0\.0(?=:\d)", self.addresses[own], text)
        return re.sub(r"(?<=bind ):(?=\d)", f"{self.addresses[own]}:", text)


class Container(Program):
    """A container without a container: its command in this machine's network and folders."""

    def __init__(self, name, words, variables, mounts, setting):
        super().__init__(setting.scratch / f"{name}.log")
        self.name, self.network, self.places = name, setting.network, setting.places(name, mounts)
        self.variables = {key: self._here(value) for key, value in variables.items()}
        self.words = [self._here(word) for word in words]
        # Names without a port.
        if "BLOCKYARD_NODE_ADDRESS" in self.variables:
            self.variables["BLOCKYARD_NODE_ADDRESS"] = self._address(variables["BLOCKYARD_NODE_ADDRESS"])
        if "--node-address" in words:
            at = words.index("--node-address") + 1
            self.words[at] = self._address(words[at])

    def _address(self, host):
        return self.network.addresses[host.partition(".")[0]]

    def _here(self, text):
        folders = "|".join(map(re.escape, self.places))
        text = re.sub(rf"(?<![\w./-])({folders})(?![\w-])", lambda found: self.places[found[1]], text)
        return self.network.here(text, self.name)

    @property
    def address(self):
        """Its address."""
        return self.network.addresses[self.name]

    def command(self):
        """In an environment of its own."""
        return self._inside(self.words)

    def _inside(self, words):
        pairs = [f"{name}={value}" for name, value in self.variables.items()]
        return ["env", "-i", f"PATH={os.environ['PATH']}:/usr/sbin", *pairs, *words]

    def executed(self, words):
        """The command line of `docker exec`."""
        return self._inside([self._here(word) for word in words])


class Setting:
    """Where containers run here: network, folders, program."""

    def __init__(self, binary, scratch, network):
        self.binary, self.scratch, self.network = binary, scratch, network
        scratch.mkdir(parents=True)

    def volume(self, name):
        """The folder of a volume."""
        folder = self.scratch / "volumes" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def lose_volume(self, name):
        """A volume is gone, and there is a new one."""
        shutil.rmtree(self.volume(name))
        self.volume(name)

    def places(self, name, mounts):
        """The programs and folders of a container, here. A folder without a volume is its own."""
        found = {"/blockyard": str(self.binary), "/usr/local/bin/etcd": shutil.which("etcd") or "etcd"}
        for folder in FOLDERS:
            found[folder] = str(self.volume(mounts.get(folder, f"of-{name}{folder.replace('/', '-')}")))
        return found

    def balancer(self, name):
        """The command of the load balancer, with its configuration."""
        path = self.scratch / "haproxy.cfg"
        path.write_text(self.network.here(BALANCER.read_text(encoding="utf-8"), name), encoding="utf-8")
        return ["haproxy", "-db", "-f", str(path)]

"""What the files for a cluster in containers must agree on. Each check yields what is wrong."""

import re
import subprocess

import kubernetes_validate
import yaml

from . import container_files as files
from .install import ROOT

# Ports that no client needs.
INNER_PORTS = {"2379", "2380", "10070", "10080"}
# Of --drain-seconds, in its own text.
DRAIN = re.compile(r"take to end when the node is stopped\s+\[default: (\d+)\]")
# Etcd, as docs/cluster.md wants it.
ETCD_MIN = (3, 4)


def listeners(variables):
    """The ports on which a node listens, by the name that the manifests have for them."""
    named = {"blob": "BLOB", "nodes": "NODE", "admin": "ADMIN"}
    return {port: int(variables[f"BLOCKYARD_{name}_LISTEN"].rpartition(":")[2]) for port, name in named.items()}


def variables(binary):
    """Variables that are none of the program's."""
    said = subprocess.run([binary, "node", "--help"], capture_output=True, text=True, check=True).stdout
    known = set(re.findall(r"\[env: (BLOCKYARD_\w+)=", said))
    assert len(known) > 40, said
    for path in (files.COMPOSE, *sorted(files.MANIFESTS.iterdir())):
        for name in sorted(set(re.findall(r"\bBLOCKYARD_\w+", path.read_text(encoding="utf-8"))) - known):
            yield f"{path.name}: {name}"


def drain_seconds(binary):
    """How long a drain takes at most."""
    said = subprocess.run([binary, "node", "--help"], capture_output=True, text=True, check=True).stdout
    return int(DRAIN.search(said)[1])


def images(compose, manifests):
    """Images without a fixed tag, and names that differ."""
    for name, service in compose.services.items():
        image, _, tag = service["image"].rpartition(":")
        if service["image"] == files.IMAGE:
            continue
        if not re.fullmatch(r"v?\d+\.\d+(\.\d+)?", tag):
            yield f"{name}: {service['image']} has no fixed tag"
        if image.endswith("/etcd") and tuple(map(int, tag[1:].split(".")))[:2] < ETCD_MIN:
            yield f"{name}: {tag} is older than {ETCD_MIN}"
    if len({compose.services[name]["image"] for name in compose.of_image("etcd")}) != 1:
        yield "members of etcd have different images"
    builds = [service["build"] for service in compose.services.values() if "build" in service]
    if [(files.COMPOSE.parent / build["context"] / build["dockerfile"]).resolve() for build in builds] != [files.DOCKER / "Dockerfile"]:
        yield f"the image is built by {builds}"
    (known,) = manifests.kustomization["images"]
    version = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.M)[1]
    if (known["name"], known["newTag"]) != (files.IMAGE, version):
        yield f"kustomization.yaml: {known}, and the program has version {version}"
    used = {files.only_container(workload)["image"] for workload in manifests.workloads}
    if used != {files.IMAGE}:
        yield f"images of the manifests: {used}"
    whole = f"{known['newName']}:{known['newTag']}"
    for line in files.page_lines():
        for word in line.split():
            if word.startswith(known["newName"]) and word != whole:
                yield f"docs/cluster.md: {word} instead of {whole}"


def page():
    """Lines of the page that name a file which is not there."""
    lines = files.page_lines()
    for line in lines:
        for found in re.findall(r"\bdocker/\S+", line):
            if not (ROOT / found).exists():
                yield f"docs/cluster.md: {line}"
    if not any(f"kubectl apply -k {files.MANIFESTS.relative_to(ROOT)}" == line for line in lines):
        yield "docs/cluster.md does not apply the manifests"


def compose_network(compose):
    """What other machines or containers could reach that they must not."""
    inner = [name for name, made in compose.file["networks"].items() if (made or {}).get("internal")]
    for name, service in compose.services.items():
        for network in service.get("networks", ["default"]):
            if network not in compose.file["networks"]:
                yield f"{name}: no network {network}"
        is_balancer = "haproxy" in service["image"]
        if not is_balancer and service.get("networks") != inner:
            yield f"{name} is on {service.get('networks')}, and not on {inner} alone"
        if bool(service.get("ports")) != is_balancer or "network_mode" in service:
            yield f"{name} publishes {service.get('ports')}"
        for port in service.get("ports", []):
            if set(port.split(":")) & INNER_PORTS:
                yield f"{name} publishes {port}"


def compose_parts(compose, drain):
    """Names, volumes and times that do not fit."""
    used = [volume.split(":")[0] for service in compose.services.values() for volume in service.get("volumes", [])]
    named = [name for name in used if not name.startswith(".")]
    if set(named) != set(compose.file["volumes"]):
        yield f"volumes: {set(named) ^ set(compose.file['volumes'])}"
    for name in used:
        if name.startswith(".") and not (files.DOCKER / name).exists():
            yield f"no file {name}"
    own = [volume for name in (*compose.nodes, *compose.of_image("etcd")) for volume in compose.services[name]["volumes"] if "/key" not in volume]
    if len(own) != len(set(own)):
        yield "a volume has two owners"
    places = []
    for name in compose.nodes:
        words = compose.words(name)
        flag = lambda what, words=words: words[words.index(f"--{what}") + 1]
        if (flag("name"), flag("node-address")) != (name, name):
            yield f"{name}: {words}"
        places.append((flag("machine"), flag("zone")))
        if int(compose.services[name]["stop_grace_period"].removesuffix("s")) <= drain:
            yield f"{name}: a drain takes {drain} s"
        if compose.variables(name)["BLOCKYARD_PEER_CONNECTIONS_MAX"] != "4096":
            yield f"{name}: clients have the address of the load balancer"
    if len(places) != 3 or len({machine for machine, _ in places}) != 3:
        yield f"machines: {places}"
    wanted = ",".join(f"http://{name}:2379" for name in compose.of_image("etcd"))
    for name in compose.of_image(files.IMAGE):
        if compose.variables(name)["BLOCKYARD_COORDINATOR"] != wanted:
            yield f"{name}: BLOCKYARD_COORDINATOR is not {wanted}"
    for name, service in compose.services.items():
        for other in set(service.get("depends_on", [])) - set(compose.services):
            yield f"{name} depends on {other}"


def balancer(compose):
    """Lines of HAProxy that name no node, or another port."""
    text = files.BALANCER.read_text(encoding="utf-8")
    found = re.findall(r"^ *server (\S+) (\S+):(\d+) port (\d+)$", text, re.M)
    for name in compose.nodes:
        ports = listeners(compose.variables(name))
        if (name, name, str(ports["blob"]), str(ports["admin"])) not in found:
            yield f"no server {name} with {ports}"
    if len(found) != len(compose.nodes):
        yield f"servers: {found}"
    (service,) = compose.of_image("haproxy")
    for port in compose.services[service]["ports"]:
        if f"    bind :{port.split(':')[1]}\n" not in text:
            yield f"{port} is published"
    # What the page shows is what is run, but for the names and for what containers need.
    shown = re.search(r"^```haproxy\n(.*?)^```$", files.PAGE.read_text(encoding="utf-8"), re.M | re.S)[1]
    for line in shown.splitlines():
        line = re.sub(r"\bn([123])\b", r"node-\1", line)
        if line not in text:
            yield f"docs/cluster.md has a line that docker/haproxy.cfg has not: {line}"


def schemas(manifests):
    """What Kubernetes does not take: its oldest release that the files name, and the newest that is described."""
    oldest = re.search(r"Kubernetes (\d\.\d+) or newer", files.KUSTOMIZATION.read_text(encoding="utf-8"))[1]
    for version in (oldest, kubernetes_validate.latest_version()):
        for made in manifests.all:
            try:
                kubernetes_validate.validate(made, version, strict=True)
            except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
                yield f"{version}: {made['kind']} {made['metadata']['name']}: {error}"


def applied(manifests):
    """Files that are not applied, and objects that are there twice."""
    listed = manifests.kustomization["resources"]
    if sorted(listed) != sorted(manifests.files):
        yield f"kustomization.yaml: {set(listed) ^ set(manifests.files)}"
    names = [(made["kind"], made["metadata"]["name"]) for made in manifests.all]
    if len(names) != len(set(names)):
        yield f"twice: {names}"
    if any("namespace" in made["metadata"] for made in manifests.all):
        yield "the namespace is that of the context"


def labels(manifests):
    """Selectors that select something else than the nodes."""
    stateful = manifests.named("StatefulSet")
    wanted = stateful["spec"]["template"]["metadata"]["labels"]
    job = manifests.named("Job")["spec"]["template"]["metadata"]["labels"]
    if wanted.items() <= job.items():
        yield "the Job's pod is selected too"
    found = []

    def selectors(part):
        if isinstance(part, dict):
            found.extend([part["matchLabels"]] if "matchLabels" in part else [])
            for inner in part.values():
                selectors(inner)
        elif isinstance(part, list):
            for inner in part:
                selectors(inner)

    selectors(manifests.all)
    found += [service["spec"]["selector"] for service in manifests.kinds("Service")]
    assert len(found) >= 7, found
    for one in found:
        if one != wanted:
            yield f"{one} is not {wanted}"


def ports(manifests, pod):
    """Ports of the manifests that no node has."""
    container = files.only_container(manifests.named("StatefulSet"))
    has = {port["name"]: port["containerPort"] for port in container["ports"]}
    listens = listeners(manifests.variables(container, pod))
    if has != listens:
        yield f"ports {has}, and a node listens on {listens}"
    for service in manifests.kinds("Service"):
        for port in service["spec"]["ports"]:
            if has.get(port["targetPort"]) != port["port"]:
                yield f"Service {service['metadata']['name']}: {port}"
    for probe in ("readinessProbe", "livenessProbe"):
        if container[probe]["httpGet"]["port"] != "admin":
            yield f"{probe}: {container[probe]}"
    (rule, *others) = manifests.named("NetworkPolicy")["spec"]["ingress"]
    open_to_all = [port["port"] for other in others for port in other["ports"]]
    if [port["port"] for port in rule["ports"]] != ["nodes"] or "from" not in rule or open_to_all != ["blob"]:
        yield f"NetworkPolicy: {rule}, {others}"


def names(manifests, pod):
    """Names of Kubernetes that lead nowhere."""
    stateful = manifests.named("StatefulSet")
    headless = manifests.named("Service", stateful["spec"]["serviceName"])["spec"]
    if headless.get("clusterIP") != "None" or not headless.get("publishNotReadyAddresses"):
        yield f"the Service of the nodes: {headless}"
    address = manifests.variables(files.only_container(stateful), pod)["BLOCKYARD_NODE_ADDRESS"]
    if address != f"{pod['metadata.name']}.{stateful['spec']['serviceName']}":
        yield f"BLOCKYARD_NODE_ADDRESS: {address}"
    made = {}
    for line in files.page_lines():
        found = re.match(r"kubectl create secret generic (\S+) (.*)", line)
        if found:
            made[found[1]] = set(re.findall(r"--from-file=(\S+)", found[2]))
    secret = manifests.named("Secret")
    for workload in manifests.workloads:
        yield from mounts(workload, made)
    named = {path for path in secret["stringData"].values() if path.startswith("/")}
    if named != {f"/etcd/{name}" for name in made.get("blockyard-etcd-tls", ())}:
        yield f"files of the Secret for etcd: {named}, and the page makes {made}"
    text = files.KUSTOMIZATION.read_text(encoding="utf-8")
    for name in made:
        if name not in text:
            yield f"kustomization.yaml does not name the Secret {name}"


def mounts(workload, made):
    """Volumes and secrets of pods that are not there; `made` are the files of secrets that the page makes."""
    name, spec = workload["kind"], workload["spec"]["template"]["spec"]
    container = files.only_container(workload)
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    volumes |= {claim["metadata"]["name"]: claim for claim in workload["spec"].get("volumeClaimTemplates", [])}
    at = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    if set(at) != set(volumes):
        yield f"{name}: volumes {set(at) ^ set(volumes)}"
    for volume in spec["volumes"]:
        if volume["secret"]["secretName"] not in made:
            yield f"{name}: the page does not make the Secret {volume['secret']['secretName']}"
    key = volumes["key"]["secret"]["secretName"]
    if f"{at['key']}/{''.join(made.get(key, ()))}" != files.image_variables()["BLOCKYARD_MASTER_KEY_FILE"]:
        yield f"{name}: {made.get(key)} in {at['key']}"


def pods(manifests, drain):
    """What the pods need to start, and to stop in order."""
    for workload in manifests.workloads:
        spec = workload["spec"]["template"]["spec"]
        if spec.get("enableServiceLinks") is not False:
            yield f"{workload['kind']}: variables of Services would be refused"
        user = re.search(r"^USER (\d+):(\d+)$", files.DOCKERFILE, re.M)
        security = spec["securityContext"]
        if (str(security["runAsUser"]), str(security["fsGroup"])) != user.groups():
            yield f"{workload['kind']}: the user of the image is {user[0]}"
    stateful = manifests.named("StatefulSet")["spec"]
    if stateful["podManagementPolicy"] != "Parallel":
        yield "a node is ready only with the others"
    pause = int(files.only_container({"spec": stateful})["lifecycle"]["preStop"]["exec"]["command"][-1])
    if stateful["template"]["spec"]["terminationGracePeriodSeconds"] < pause + drain + 10:
        yield f"a stop takes {pause} and {drain} s, and the hand-over"
    if manifests.named("PodDisruptionBudget")["spec"].get("maxUnavailable") != 1:
        yield "PodDisruptionBudget"
    apart = stateful["template"]["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    if [one["topologyKey"] for one in apart] != ["kubernetes.io/hostname"] or stateful["replicas"] < 3:
        yield f"affinity: {apart}"


def parsed():
    """YAML files of docker/ that do not parse. Those that other tests know are among them."""
    found = sorted(files.DOCKER.rglob("*.y*ml"))
    assert len(found) >= 8, found
    for path in found:
        try:
            files.documents(path)
        except (yaml.YAMLError, AssertionError) as error:
            yield f"{path.name}: {error}"


def check(compose, manifests, pod, binary, verdicts):
    """All checks."""
    drain = drain_seconds(binary)
    for what, wrong in (
        ("all YAML files of docker/ parse", parsed()),
        ("variables are the program's", variables(binary)),
        ("images have fixed tags and one name", images(compose, manifests)),
        ("the page names what is there", page()),
        ("compose: only the load balancer is published", compose_network(compose)),
        ("compose: names, volumes and times", compose_parts(compose, drain)),
        ("compose: the load balancer", balancer(compose)),
        (f"Kubernetes takes all {len(manifests.all)} objects", schemas(manifests)),
        ("manifests: all are applied", applied(manifests)),
        ("manifests: labels and selectors", labels(manifests)),
        ("manifests: ports", ports(manifests, pod)),
        ("manifests: names and secrets", names(manifests, pod)),
        ("manifests: start and stop", pods(manifests, drain)),
    ):
        verdicts.none(what, list(wrong))

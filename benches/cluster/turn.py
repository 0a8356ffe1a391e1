"""One workload on one side, and what it took."""

import dataclasses
import json
import select
import subprocess
import time

from cluster.sides import cpu_seconds

CONTAINER = "bench"
# Blobs that are written before reads are measured.
BLOBS = 200
# How exactly the beginning of the measured part is found, seconds.
EVERY = 0.02
# Deferred work belongs to the operations that caused it, as in benches/load/run.rs.
SETTLE = 0.5
SYNCS = "blockyard_capacity_fsyncs_total"


@dataclasses.dataclass
class Workload:
    """A workload of `blockyard bench`."""

    name: str
    load: str
    size: str
    # The highest ratio to one process, of processor time and of p50, if there is a target.
    target: float | None = None

    @property
    def title(self):
        """Its name in tables."""
        return self.name if self.load == "head" else f"{self.name} {self.size}"

    @property
    def writes(self):
        """Whether it needs no blobs before it begins."""
        return self.load in ("put", "blocks")


def make_container(program, side):
    """Makes the container that all turns of a side write to."""
    command = [program, "cp", "-", f"by://{CONTAINER}/first", "--make-container", "--json", "--endpoint", endpoint(side)]
    subprocess.run(command, input=b"first", check=True, stdout=subprocess.DEVNULL)


def endpoint(side):
    """The address for clients."""
    return f"http://127.0.0.1:{side.front.base}/devstoreaccount1"


def measure(program, side, workload, seconds, clients):
    """The figures of `blockyard bench`, and processor time and syncs of each operation."""
    command = [program, "bench", f"by://{CONTAINER}", "--existing", "--json", "--endpoint", endpoint(side), "--workload", workload.load,
               "--size", workload.size, "--blocks", "1", "--clients", str(clients), "--blobs", str(BLOBS),
               "--duration", f"{seconds * 1000:.0f}ms"]
    syncs = side.counter(SYNCS)
    bench = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        readings = []
        # The command first writes what it reads. Only its last line says when the measured part began, so readings are kept.
        while not readings or not select.select([bench.stdout], [], [], EVERY)[0]:
            readings.append((time.monotonic(), side.cpu_seconds(), cpu_seconds(bench)))
        answer, ended, spent = bench.stdout.readline(), time.monotonic(), cpu_seconds(bench)
    finally:
        # It would remove its blobs now, and the next turn would pay for that.
        bench.kill()
        bench.wait()
    if not answer:
        raise RuntimeError(f"`blockyard bench` ended without figures: {workload.title}, {side.title}")
    figures = json.loads(answer)
    time.sleep(SETTLE)
    after = side.cpu_seconds()
    _, before, spent_before = min(readings, key=lambda reading: abs(reading[0] - (ended - figures["seconds"])))
    figures["load_cpus"] = (spent - spent_before) / figures["seconds"]
    each = 1 / max(figures["ops"], 1)
    figures["cpu_us"], figures["etcd_us"] = (1e6 * (then - first) * each for first, then in zip(before, after))
    # Before reads there were writes, whose syncs would be counted.
    figures["syncs"] = (side.counter(SYNCS) - syncs) * each if workload.writes else None
    return figures


def idle(sides, seconds):
    """Processor time of each second in which nothing is asked, of one process, of the cluster, and of etcd, in milliseconds."""
    took = lambda: [sides["a"].cpu_seconds()[0], *sides["b"].cpu_seconds()]
    before = took()
    time.sleep(seconds)
    return [1e3 * (then - first) / seconds for first, then in zip(before, took())]

"""What is measured of one server: speed, disk syncs, what a crash loses, how long a restart takes."""

import hashlib
import os
import re
import shutil
import subprocess
import time

from comparison.budgets import ROWS, WRITES
from comparison.driver import finish
from comparison.servers import say

SYNC_CALLS = "fsync,fdatasync,sync_file_range,msync,syncfs,sync"
SYNC_PUTS = 1_000


def speed(server, driver, work):
    """CPU, latency, memory and bytes written of every workload."""
    say(f"{server.name}: speed")
    data = fresh(work)
    server.start(data)
    time.sleep(2)
    pid = ["--pid", str(server.process.pid)]
    try:
        found = {name: driver.run(server, [workload], pid).get(workload) for name, workload in steps()}
        # A workload that could not be prepared has no figures; the others have theirs.
        return {name: one for name, one in found.items() if one}
    finally:
        server.stop()


def steps():
    """The name in the results and the workload of each step."""
    return [("idle", "idle"), *[(row.name, row.workload) for row in ROWS], ("burst16m", "burst16m")]


def both_protocols(blob, s3, driver, work):
    """The same of this server through Blob and through S3: one process, and each workload through one protocol right after the
    other, for the machine's speed changes within minutes. Each is run three times; the run that took least CPU counts, because
    other work on the machine only adds."""
    say(f"{blob.name} and {s3.name}: speed")
    data = fresh(work)
    blob.start(data)
    time.sleep(2)
    pid = ["--pid", str(blob.process.pid)]
    # Names of one are not overwritten by the other.
    sides = {blob: pid, s3: [*pid, "--container", "bench-s3"]}
    found = {side: {} for side in sides}
    try:
        for name, workload in steps():
            for number, side in enumerate((blob, s3, s3, blob, blob, s3)):
                prefix = ["--prefix", f"{name}-{number}"] if workload in WRITES else []
                one = driver.run(side, [workload], [*sides[side], *prefix]).get(workload)
                if one is None:
                    continue
                before = found[side].get(name)
                # A run with errors is kept: it must not vanish behind a good one.
                if before is None or not before["errors"] and (one["errors"] or cpu(one) < cpu(before)):
                    found[side][name] = one
    finally:
        blob.stop()
    return found[blob], found[s3]


def cpu(figures):
    """CPU of a unit."""
    return figures["server"]["cpu_us_per_unit"]


def md5_us_per_mib():
    """Processor time of the MD5 of one stream."""
    body, mib = os.urandom(1 << 20), 256
    digest, began = hashlib.md5(usedforsecurity=False), time.thread_time()
    for _ in range(mib):
        digest.update(body)
    return (time.thread_time() - began) / mib * 1e6


def sha256_us_per_mib():
    """Processor time of the SHA-256 of one stream."""
    body, mib = os.urandom(1 << 20), 256
    digest, began = hashlib.sha256(), time.thread_time()
    for _ in range(mib):
        digest.update(body)
    return (time.thread_time() - began) / mib * 1e6


def syncs(server, driver, work):
    """Disk syncs per 4 KiB PUT, one at a time and 16 at once, counted by the kernel's tracer from outside.

    Returns none where strace is missing. Files opened for synchronous writes would not be seen.
    """
    if shutil.which("strace") is None:
        say("strace is not here: no count of disk syncs")
        return None
    counts = {}
    for concurrency in (1, 16):
        say(f"{server.name}: disk syncs, {concurrency} at once")
        data = fresh(work)
        trace = work / "strace.txt"
        # `-D` leaves the server as our child, so that it can be stopped by its id.
        wrap = ["strace", "-D", "-f", "--seccomp-bpf", "-qq", "-e", f"trace={SYNC_CALLS}", "-o", str(trace)]
        server.start(data, wrap)
        try:
            time.sleep(1)
            before = lines(trace)
            extra = ["--ops", str(SYNC_PUTS), "--concurrency", str(concurrency)]
            figures = driver.run(server, ["put4k"], extra)
            after = lines(trace)
        finally:
            server.stop()
        done = figures.get("put4k", {}).get("ops", 0)
        # The count includes the driver's 64 warm-up writes, so the divisor does too.
        counts[concurrency] = (after - before) / (done + 64) if done else None
    return counts


def lines(trace):
    """Sync calls in the trace; a call cut in two by another thread's is one."""
    return sum(1 for line in trace.read_text().splitlines() if re.search(r"^\d+\s+\w+\(", line))


def crash(server, driver, work, objects):
    """Fills the server, kills it without warning, starts it again: time to serve and writes lost."""
    say(f"{server.name}: restart with {objects} objects after kill -9")
    data = fresh(work)
    server.start(data)
    try:
        time.sleep(2)
        filled = driver.run(server, ["fill"], ["--ops", str(objects)])["fill"]
        server.kill()
        waiting = driver.start(server, ["ready"])
        # The driver polls before the server starts, so that the measured time excludes the start of the driver.
        time.sleep(0.5)
        began = time.time()
        server.start(data, wait=False)
        ready = finish(waiting).get("ready")
        if ready is None:
            return {"objects": filled["ops"], "restart_seconds": None, "lost": None}
        seconds = ready["ended_unix_ms"] / 1_000 - began
        audit = driver.run(server, ["audit"], ["--ops", str(objects)])["audit"]
        return {"objects": filled["ops"], "restart_seconds": seconds, "lost": audit["errors"]}
    finally:
        server.stop()


def fresh(work):
    """An empty data folder."""
    data = work / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    # Dirty pages of the previous server must not delay this one.
    subprocess.run(["sync"], check=False)
    return data

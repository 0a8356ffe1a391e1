#!/usr/bin/env python3
"""A replication job: AzCopy copies everything from one server to another, through kill -9 of either.

Two `blockyard serve` processes. The source is filled with blobs of mixed size, kind, content headers, metadata, tags and
tier; AzCopy copies service to service; at a random moment the source is killed with -9 and started again, then the
destination, then AzCopy itself, which rides out the others; the job is resumed until it is done; then both sides are
compared blob by blob, hash and properties. An undisturbed copy into another container gives the figures, beside `cp -r`
of the same bytes as files.
"""

import concurrent.futures
import dataclasses
import os
import random
import shutil
import subprocess
import time

from azure.storage.blob import ContentSettings, StandardBlobTier
from lib import accounts, cli
from lib.azcopy import AzCopy, address, program, report
from lib.account import PerThread
from lib.content import content, sha256
from lib.install import Unavailable
from lib.report import Progress, Verdicts
from lib.server import Server

MIB = 1 << 20
PAGE = 512
WORKERS = 8
RESUMES_MAX = 12
JOB_SECONDS = 600
HEADERS = {"content_type": "text/x-test; charset=utf-8", "content_encoding": "identity", "content_language": "de-CH",
           "content_disposition": 'attachment; filename="a b.bin"', "cache_control": "max-age=7, private"}
TIERS = (None, None, StandardBlobTier.HOT, StandardBlobTier.COOL, StandardBlobTier.COLD)
# The destination fetches from the source, which is on the loopback address like everything here.
FETCH_FROM_LOOPBACK = ("--copy-source-allow=127.0.0.1",)


@dataclasses.dataclass(frozen=True)
class Blob:
    """One blob of the source."""

    name: str
    kind: str
    size: int
    metadata: dict
    tags: dict
    tier: object
    headers: dict


def plan(number):
    """One blob, always the same for its number."""
    drawn = random.Random(number)
    kind = drawn.choices(["BlockBlob", "AppendBlob", "PageBlob"], [80, 10, 10])[0]
    size = drawn.choices([drawn.randrange(0, 4096), drawn.randrange(4096, 65_536), drawn.randrange(65_536, MIB),
                          drawn.randrange(MIB, 8 * MIB)], [40, 48, 10, 2])[0]
    size = -(-size // PAGE) * PAGE if kind == "PageBlob" else size
    name = f"{drawn.choice('abc')}/{number % 37}/blob {number} + %41 ü.bin"
    metadata = {"number": str(number)} if drawn.random() < 0.5 else {}
    tags = {"number": str(number), "kind": kind} if drawn.random() < 0.3 else {}
    tier = drawn.choice(TIERS) if kind == "BlockBlob" else None
    headers = {key: values for key, values in HEADERS.items() if drawn.random() < 0.3}
    return Blob(name, kind, size, metadata, tags, tier, headers)


def fill(account, count):
    """Writes the blobs; their bytes in all."""
    account.service().create_container("data")
    clients = PerThread(account, "data", retries=2)

    def one(number):
        blob = plan(number)
        clients.blob(blob.name).upload_blob(
            content(number, blob.size), blob_type=blob.kind, metadata=blob.metadata, tags=blob.tags or None, overwrite=True,
            content_settings=ContentSettings(**blob.headers), **({"standard_blob_tier": blob.tier} if blob.tier else {}))
        progress.advance()
        return blob.size

    with Progress("filling the source", count, "blobs") as progress, concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        return sum(pool.map(one, range(count)))


def state(account, container, title, count):
    """{name: what must be equal on both sides}."""
    clients = PerThread(account, container, retries=2)

    def one(name):
        blob = clients.blob(name)
        found = blob.download_blob()
        about = found.properties
        tags = blob.get_blob_tags() if about.tag_count else {}
        progress.advance()
        return name, (about.blob_type, about.size, sha256(found.readall()), tuple(sorted(about.metadata.items())),
                      tuple(sorted(tags.items())), tuple(dict(about.content_settings).items()))

    tiers = {b.name: b.blob_tier for b in account.service(retries=2).get_container_client(container).list_blobs()}
    with Progress(title, count, "blobs") as progress, concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        return {name: (*about, tiers[name]) for name, about in pool.map(one, tiers)}


class Job:
    """One AzCopy job between the two servers."""

    def __init__(self, azcopy, source, target):
        self.azcopy, self.source, self.target = azcopy, source, target
        self.signatures = accounts.sas(source), accounts.sas(target)
        self.id = None

    def start(self, container, out):
        """Starts the copy; the process."""
        return self._spawn(out, "copy", address(self.source, self.signatures[0], "data"),
                           address(self.target, self.signatures[1], container), "--recursive", "--from-to=BlobBlob",
                           "--as-subdir=false", "--s2s-preserve-access-tier=true", "--s2s-preserve-blob-tags=true")

    def resume(self, out):
        """Resumes the unfinished work; returns the process."""
        return self._spawn(out, "jobs", "resume", self.id, f"--source-sas={self.signatures[0]}",
                           f"--destination-sas={self.signatures[1]}")

    def _spawn(self, out, *arguments):
        with open(out, "wb") as log:
            return subprocess.Popen(self.azcopy.command(*arguments), env=self.azcopy.environment(), stdout=log,
                                    stderr=log, stdin=subprocess.DEVNULL)

    def learn(self, out):
        """(done or not, how many failed) from what the process wrote; remembers the job's id."""
        summary, said = report(out.read_text(errors="replace"))
        self.id = summary.get("JobID", self.id)
        return summary.get("JobStatus", said), int(summary.get("TransfersFailed", 0) or 0)


def wait(process, out, job):
    """Waits for a job's process; how it ended."""
    try:
        process.wait(JOB_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return job.learn(out)


def answered(server):
    """How many requests a server has answered since its start."""
    return sum(count for name, count in server.metrics().items() if "requests_total" in name)


def killed_while_busy(what, server, process, requests, kill, verdicts):
    """Kills once `server` has answered `requests` more requests, or once the job has ended before that. Returns whether the
    job was still at it."""
    goal = answered(server) + requests
    while process.poll() is None and answered(server) < goal:
        time.sleep(0.01)
    busy = process.poll() is None
    kill()
    verdicts.figure(f"kill -9 of {what}", "while copying" if busy else "after the job had ended")
    return busy


def restarted(server, drawn):
    """Starts a killed server again after a moment."""
    time.sleep(drawn.uniform(0, 0.5))
    server.start()


def interrupted(job, servers, requests, verdicts, folder, drawn):
    """The whole job with three kills, each at a random moment; it takes so many requests to the destination."""
    source, target = servers
    resumes = 0
    out = folder / "job0.txt"
    process = job.start("copied", out)
    after = lambda least, most: int(drawn.uniform(least, most) * requests)
    killed_while_busy("the source", target, process, after(0.05, 0.3), source.kill, verdicts)
    restarted(source, drawn)
    killed_while_busy("the destination", target, process, after(0.05, 0.25), target.kill, verdicts)
    restarted(target, drawn)
    # AzCopy tries again while a server is away, so that neither kill ends its job. This one does.
    killed = killed_while_busy("AzCopy", target, process, after(0.05, 0.25), process.kill, verdicts)
    status, failed = wait(process, out, job)
    # A job that ended completed is not resumed: AzCopy would wait for its scan forever.
    while status != "Completed" and job.id and resumes < RESUMES_MAX:
        resumes += 1
        out = folder / f"job{resumes}.txt"
        status, failed = wait(job.resume(out), out, job)
    verdicts.check("resumed after AzCopy was killed", resumes > 0 or not killed, "at least once", f"{resumes} times")
    verdicts.check("the job ends completed", status == "Completed" and not failed, "Completed", f"{status} {failed} failed")


def copied_files(account, folder):
    """Seconds that `cp -r` takes for the same bytes as files, written through."""
    source, target = folder / "files", folder / "files-copied"
    clients = account.service().get_container_client("data")
    for name in (b.name for b in clients.list_blobs()):
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(clients.download_blob(name).readall())
    os.sync()
    began = time.monotonic()
    subprocess.run(["cp", "-r", source, target], check=True)
    os.sync()
    took = time.monotonic() - began
    shutil.rmtree(source)
    shutil.rmtree(target)
    return took


def run(options, scratch, verdicts, servers, azcopy):
    """Fill, copy undisturbed, copy interrupted, compare."""
    source, target = (server.account for server in servers)
    total = fill(source, options.blobs)
    verdicts.figure("blobs in the source", f"{options.blobs:,}, {total / MIB:,.0f} MiB")
    for container in ("undisturbed", "copied"):
        target.service().create_container(container)
    job = Job(azcopy, source, target)
    out = scratch / "undisturbed.txt"
    before = answered(servers[1])
    began = time.monotonic()
    status, failed = wait(job.start("undisturbed", out), out, job)
    seconds, requests = time.monotonic() - began, answered(servers[1]) - before
    if not verdicts.check("an undisturbed copy completes", status == "Completed" and not failed, "Completed",
                          f"{status} {failed} failed"):
        print(azcopy.refused())
    verdicts.figure("AzCopy service to service", f"{options.blobs / seconds:,.0f} blobs/s, {total / MIB / seconds:,.1f} MiB/s")
    took = copied_files(source, scratch)
    verdicts.figure("cp -r of the same data and sync", f"{options.blobs / took:,.0f} files/s, {total / MIB / took:,.1f} MiB/s")
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 30)
    verdicts.figure("seed of the kills", seed)
    interrupted(Job(azcopy, source, target), servers, requests, verdicts, scratch, random.Random(seed))
    wanted = state(source, "data", "reading the source", options.blobs)
    verdicts.equal("blobs in the source", len(wanted), options.blobs)
    for container in ("undisturbed", "copied"):
        found = state(target, container, f"reading {container}", options.blobs)
        verdicts.none(f"{container}: missing", sorted(set(wanted) - set(found)))
        verdicts.none(f"{container}: not in the source", sorted(set(found) - set(wanted)))
        verdicts.none(f"{container}: differ in hash or property",
                      [f"{n}: {wanted[n]} became {found[n]}" for n in wanted if n in found and wanted[n] != found[n]])
    for server, name in zip(servers, ("source", "destination")):
        verdicts.equal(f"exit code of the {name} after SIGTERM", server.stop(), 0)
        verdicts.sound(server, f"blockyard check of the {name}")


def main(options, scratch):
    try:
        azcopy = AzCopy(program(), scratch)
    except Unavailable as missing:
        print(f"skipped: {missing}")
        return 77
    verdicts = Verdicts("replication")
    extra = [*FETCH_FROM_LOOPBACK, *options.serve_arg]
    made = [Server(options.binary, [scratch / name], scratch / f"{name}.log", extra) for name in ("source", "destination")]
    with made[0], made[1]:
        for server in made:
            server.start()
        run(options, scratch, verdicts, made, azcopy)
    return verdicts.exit_code()


if __name__ == "__main__":
    parsed = cli.parser(__doc__)
    parsed.add_argument("--blobs", type=int, help="how many (default 10,000, small 200)")
    parsed.add_argument("--seed", type=int, help="of the moments of the kills")
    chosen = cli.parse(parsed)
    chosen.blobs = chosen.blobs or (200 if chosen.small else 10_000)
    cli.run(main, chosen)

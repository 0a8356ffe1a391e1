#!/usr/bin/env python3
"""Kill -9 of the real process, again and again, under concurrent load.

Every worker owns its own blobs and knows, for each of them, what the server acknowledged and what was still in doubt
when the connection broke. After each restart every blob must be in a state the worker can explain:

* an acknowledged write is present, with its bytes and its metadata;
* an acknowledged delete stays deleted;
* of the one operation in doubt, all or nothing happened: never a mix of two versions, never a half-made blob;
* acknowledged staged blocks are still listed as uncommitted, with their sizes;
* the listing shows the very blobs that reads show.

The load: puts of 100 bytes to 300 KiB, overwrites, staged blocks and commits, deletes, metadata sets. The run ends with
`blockyard check` of the stopped data. Times from start to serving are reported, not judged.
"""

import base64
import dataclasses
import random
import threading
import time

from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError

from lib import cli
from lib.account import PerThread
from lib.content import content, sha256
from lib.report import Progress, Verdicts

CONTAINER = "kill9"
BLOBS_PER_WORKER = 24
PUT_BYTES = (100, 300 << 10)
LARGE_PUT_SHARE = 0.3


@dataclasses.dataclass(frozen=True)
class Version:
    """What a blob holds. `label` names the content, `sizes` are the lengths of its pieces."""

    label: tuple
    sizes: tuple
    mark: str

    def data(self):
        """The bytes this version must have."""
        return b"".join(content((self.label, number), size) for number, size in enumerate(self.sizes))


@dataclasses.dataclass
class Record:
    """What a worker knows of one blob. `doubt` is (states, blocks) the operation in doubt may have led to."""

    version: Version | None = None
    blocks: dict = dataclasses.field(default_factory=dict)
    doubt: tuple | None = None


class InDoubt(Exception):
    """The connection broke or the server said it could not finish: the operation may or may not have happened."""


class Worker(threading.Thread):
    """Keeps one blob after another changing until told to stop, writing down each answer."""

    def __init__(self, number, records, clients, seed, stopping, count):
        super().__init__(daemon=True)
        self.number, self.records, self.clients = number, records, clients
        self.random, self.stopping, self.count = random.Random(f"{seed}/{number}"), stopping, count
        self.seed, self.serial, self.surprise = seed, 0, None

    def run(self):
        while not self.stopping.is_set():
            record = None
            try:
                name = self.random.choice(list(self.records))
                record = self.records[name]
                self.step(self.clients.blob(name), record)
                self.count(1)
            except InDoubt:
                return  # The server is gone. What is in doubt stays written down in the record.
            except Exception as error:  # pylint: disable=broad-except
                self.surprise = f"worker {self.number}: {type(error).__name__}: {error}"
                return

    def attempt(self, record, outcome, call):
        """Runs `call`; on an answer the record becomes `outcome`, on none it is in doubt."""
        record.doubt = outcome
        try:
            call()
        except HttpResponseError as error:
            # Overload may be refused; any other answer but success is a complaint, with the record still in doubt.
            if error.status_code == 503:
                raise InDoubt from error
            raise
        except AzureError as error:
            raise InDoubt from error
        record.version, record.blocks = outcome
        record.doubt = None

    def new_version(self, sizes):
        """A version nobody has seen before."""
        self.serial += 1
        label = (self.seed, self.number, self.serial)
        return Version(label, tuple(sizes), sha256(repr(label).encode())[:16])

    def size(self):
        """Mostly small, sometimes as large as 300 KiB, so that both ways into an extent are taken."""
        high = PUT_BYTES[1] if self.random.random() < LARGE_PUT_SHARE else 8000
        return self.random.randint(PUT_BYTES[0], high)

    def step(self, blob, record):
        """One operation that suits the blob's state."""
        dice = self.random.random()
        if dice < 0.5:
            version = self.new_version([self.size()])
            self.attempt(record, (version, {}), lambda: blob.upload_blob(
                version.data(), overwrite=True, metadata={"mark": version.mark}))
        elif dice < 0.7:
            self.stage(blob, record)
        elif dice < 0.8 and record.blocks:
            self.commit(blob, record)
        elif dice < 0.9 and record.version:
            self.attempt(record, (None, {}), blob.delete_blob)
        elif record.version:
            version = dataclasses.replace(record.version, mark=f"set{self.random.randrange(1 << 40):x}")
            self.attempt(record, (version, record.blocks),
                         lambda: blob.set_blob_metadata({"mark": version.mark}))

    def stage(self, blob, record):
        """Stages one more block, or replaces a staged one."""
        number = self.random.randrange(6)
        self.serial += 1
        key = (self.seed, self.number, self.serial)
        size = self.size()
        blocks = {**record.blocks, number: (key, size)}
        self.attempt(record, (record.version, blocks),
                     lambda: blob.stage_block(block_id(number), content((key, 0), size), size))

    def commit(self, blob, record):
        """Commits what is staged, in the order of the ids."""
        version = StagedVersion(
            tuple(record.blocks[n][0] for n in sorted(record.blocks)),
            tuple(record.blocks[n][1] for n in sorted(record.blocks)),
            f"commit{self.random.randrange(1 << 40):x}",
        )
        ids = [block_id(number) for number in sorted(record.blocks)]
        self.attempt(record, (version, {}),
                     lambda: blob.commit_block_list(ids, metadata={"mark": version.mark}))


class StagedVersion(Version):
    """A version made of staged blocks; `label` holds the label of each."""

    def data(self):
        return b"".join(content((label, 0), size) for label, size in zip(self.label, self.sizes))


def block_id(number):
    """Ids of one length, as the protocol demands."""
    return base64.b64encode(f"b{number:04}".encode()).decode()


def observe(clients, name):
    """What the server shows of a blob: (bytes digest and mark, or None; staged blocks by id with sizes)."""
    blob = clients.blob(name)
    try:
        download = blob.download_blob()
        shown = (sha256(download.readall()), download.properties.metadata.get("mark"))
    except ResourceNotFoundError as error:
        if error.error_code != "BlobNotFound":
            raise
        shown = None
    try:
        staged = {b.id: b.size for b in blob.get_block_list("uncommitted")[1]}
    except ResourceNotFoundError:
        staged = {}
    return shown, staged


def expected(version, blocks):
    """The same shape as `observe`, from what the worker wrote down."""
    shown = version and (sha256(version.data()), version.mark)
    return shown, {block_id(number): size for number, (_, size) in blocks.items()}


def explain(clients, name, record):
    """Compares a blob with its record and settles what was in doubt. Answers a complaint, or None."""
    found = observe(clients, name)
    sure = expected(record.version, record.blocks)
    if found == sure:
        record.doubt = None
        return None
    if record.doubt and found == expected(*record.doubt):
        record.version, record.blocks = record.doubt
        record.doubt = None
        return None
    return f"{name}: found {found}, acknowledged {sure}, in doubt {record.doubt and expected(*record.doubt)}"


def verify(account, records, verdict_rows):
    """Checks every blob of every worker and the listing; adds complaints to `verdict_rows`."""
    threads = []

    def one(mine):
        clients = PerThread(account, CONTAINER)
        for name, record in mine.items():
            try:
                complaint = explain(clients, name, record)
            except Exception as error:  # pylint: disable=broad-except
                complaint = f"{name}: {type(error).__name__}: {error}"
            if complaint:
                verdict_rows.append(complaint)

    for mine in records:
        threads.append(threading.Thread(target=one, args=(mine,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    everything = {name: record for mine in records for name, record in mine.items()}
    alive = sorted(name for name, record in everything.items() if record.version)
    container = account.service().get_container_client(CONTAINER)
    try:
        listed = {item.name: item.size for item in container.list_blobs()}
    except AzureError as error:
        verdict_rows.append(f"listing: {type(error).__name__}: {error}")
        return
    if list(listed) != alive:
        verdict_rows.append(f"listing: {sorted(set(listed) ^ set(alive))[:5]} are in the listing or in reads, not both")
    wrong = [name for name in alive if listed.get(name, -1) != sum(everything[name].version.sizes)]
    if wrong:
        verdict_rows.append(f"listing: wrong sizes of {wrong[:5]}")


def one_cycle(server, records, cycle, options, figures, complaints):
    """Load, kill in the middle of it, start, verify."""
    stopping = threading.Event()
    done = [0]
    lock = threading.Lock()

    def count(more):
        with lock:
            done[0] += more

    workers = [Worker(number, mine, PerThread(server.account, CONTAINER, read_timeout=30),
                      f"{options.seed}/{cycle}", stopping, count) for number, mine in enumerate(records)]
    for worker in workers:
        worker.start()
    # A different moment each time: right away, within a group commit, in the middle of a flush.
    time.sleep(random.Random(f"{options.seed}/{cycle}").uniform(0.2, options.load_seconds))
    server.kill()
    stopping.set()
    for worker in workers:
        worker.join(60)
        if worker.is_alive():
            complaints.append(f"cycle {cycle}: worker {worker.number} still waits for an answer")
        if worker.surprise:
            complaints.append(f"cycle {cycle}: {worker.surprise}")
    figures["acknowledged"] += done[0]
    figures["in doubt"] += sum(record.doubt is not None for mine in records for record in mine.values())
    figures["restarts"].append(server.start())
    verify(server.account, records, found := [])
    complaints += [f"cycle {cycle}: {complaint}" for complaint in found]


def main(options, scratch):
    verdicts = Verdicts(f"kill -9, {options.cycles} cycles, {options.threads} threads")
    figures = {"acknowledged": 0, "in doubt": 0, "restarts": []}
    complaints = []
    records = [{f"w{worker:02}/blob-{n:03}": Record() for n in range(BLOBS_PER_WORKER)}
               for worker in range(options.threads)]
    disks = [scratch / f"disk-{number}" for number in range(options.disks)]
    with cli.server(options, scratch, data=disks) as server:
        server.account.service().create_container(CONTAINER)
        with Progress("load, kill -9, restart, verify", options.cycles, "cycles") as progress:
            for cycle in range(options.cycles):
                one_cycle(server, records, cycle, options, figures, complaints)
                progress.move_to(cycle + 1, f"{figures['acknowledged']:,} acknowledged, {len(complaints)} complaints")
                if len(complaints) > 20:
                    break
        verdicts.equal("exit code after SIGTERM", server.stop(), 0)
        code, output = server.check()
    restarts = sorted(figures["restarts"])
    verdicts.none("every blob explained after every restart", complaints, examples=20)
    verdicts.check("operations acknowledged under load", figures["acknowledged"] > options.cycles, "many",
                   f"{figures['acknowledged']:,}")
    verdicts.figure("operations in doubt at a kill", f"{figures['in doubt']:,}")
    verdicts.figure("start to serving, median and worst", f"{restarts[len(restarts) // 2]:.3f} s, {restarts[-1]:.3f} s")
    verdicts.check("blockyard check", code == 0, "exit 0", f"exit {code}")
    if code:
        print(output)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--cycles", type=int, help="kills (default 50; 10 with --small)")
    flags.add_argument("--threads", type=int, default=12, help="workers, each with its own blobs")
    flags.add_argument("--load-seconds", type=float, default=2.0, help="longest load before a kill")
    flags.add_argument("--disks", type=int, default=1, help="data directories of the server")
    flags.add_argument("--seed", default="20", help="makes the same sequence of operations again")
    parsed = cli.parse(flags)
    parsed.cycles = parsed.cycles or (10 if parsed.small else 50)
    cli.run(main, parsed)

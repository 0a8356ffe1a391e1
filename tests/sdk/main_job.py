#!/usr/bin/env python3
"""The main job on real input.

(a) uploads every file of real trees as a blob, from many threads;
(b) stages a tar stream of them as blocks, out of order from 8 threads, and commits the list;
(c) lists flat and by hierarchy, reads everything back, compares SHA-256 with what was read from the disk;
(d) deletes half, restarts the server with SIGTERM, compares again; then `blockyard check` of the stopped data.

The names of blobs are the paths of the files, so they have the length, depth and characters real names have.
"""

import base64
import concurrent.futures
import hashlib
import os
import pathlib
import queue
import random
import subprocess
import sysconfig
import tarfile
import threading

from azure.core.exceptions import AzureError, ResourceNotFoundError
from azure.storage.blob import BlobPrefix

from lib import cli
from lib.account import PerThread
from lib.content import sha256
from lib.report import Progress, Verdicts, mib

UPLOAD_THREADS = 16
STAGE_THREADS = 8
BLOCK_BYTES = 4 << 20
# Blocks held back and shuffled together: what makes their order wrong, and what bounds this script's memory.
SHUFFLE_WINDOW = 24
FILE_BYTES_MAX = 64 << 20
TREE, STREAM = "tree", "stream"


def default_sources():
    """Trees a development machine has: shared data, the Python and the Rust installation."""
    trees = [pathlib.Path("/usr/share"), pathlib.Path(sysconfig.get_paths()["stdlib"])]
    try:
        sysroot = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True)
        trees.append(pathlib.Path(sysroot.stdout.strip()))
    except (OSError, subprocess.CalledProcessError):
        print("no Rust tree found: going on without it")
    return trees


def files_below(sources):
    """Every readable regular file below the sources, in a stable order, as (path, blob name)."""
    found = []
    for source in sources:
        for parent, folders, names in os.walk(source):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(parent, name)
                if os.path.islink(path) or not os.path.isfile(path) or not os.access(path, os.R_OK):
                    continue
                blob = path.lstrip("/")
                try:
                    blob.encode("utf-8")
                except UnicodeEncodeError:
                    continue  # Not text, so not a blob name.
                if len(blob) <= 1024 and os.path.getsize(path) <= FILE_BYTES_MAX:
                    found.append((path, blob))
    return found


def sample(found, count):
    """`count` entries spread evenly over `found`, so that every tree takes part."""
    if len(found) <= count:
        return found
    return [found[i * len(found) // count] for i in range(count)]


def in_pool(work, entries, title, threads=UPLOAD_THREADS):
    """Calls `work(entry)` for every entry from a pool of threads, with progress. Returns [(entry, result)]."""
    results = []
    with Progress(title, len(entries), "blobs") as progress:
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            waiting = {pool.submit(work, entry): entry for entry in entries}
            for done in concurrent.futures.as_completed(waiting):
                results.append((waiting[done], done.result()))
                progress.advance()
    return results


class BlockWriter:
    """A file to `tarfile`; cuts what is written into blocks and hands them to `take(number, bytes)`."""

    def __init__(self, take):
        self.take, self.number, self.buffer = take, 0, bytearray()
        self.hash, self.length = hashlib.sha256(), 0

    def write(self, data):
        self.hash.update(data)
        self.length += len(data)
        self.buffer += data
        while len(self.buffer) >= BLOCK_BYTES:
            self._cut(BLOCK_BYTES)
        return len(data)

    def _cut(self, size):
        self.take(self.number, bytes(self.buffer[:size]))
        del self.buffer[:size]
        self.number += 1

    def finish(self):
        """Hands over what is left as the last block."""
        if self.buffer:
            self._cut(len(self.buffer))


def block_id(number):
    """Ids of one length, as the protocol demands."""
    return base64.b64encode(f"block-{number:08}".encode()).decode()


def upload_tree(clients, entries):
    """(a): every file as a blob. Returns {blob name: (size, SHA-256)}."""

    def upload(entry):
        path, blob = entry
        data = pathlib.Path(path).read_bytes()
        clients.blob(blob).upload_blob(data, overwrite=True, metadata={"sha256": sha256(data)})
        return len(data), sha256(data)

    return {entry[1]: result for entry, result in in_pool(upload, entries, "(a) upload every file")}


def stage_stream(clients, found, name, wanted_bytes, verdicts):
    """(b): a tar of the trees as blocks, out of order. Returns (length, SHA-256 of all, SHA-256 by block)."""
    window, hashes, failures = [], {}, []
    waiting = queue.Queue(maxsize=STAGE_THREADS)
    order = random.Random(7)

    def stage():
        while (job := waiting.get()) is not None:
            number, data = job
            try:
                clients.blob(name).stage_block(block_id(number), data, len(data))
            except AzureError as error:
                failures.append(f"block {number}: {error}")
            progress.advance(len(data) / (1 << 20))

    def release(count):
        while len(window) > count:
            waiting.put(window.pop(order.randrange(len(window))))

    def take(number, data):
        hashes[number] = sha256(data)
        window.append((number, data))
        release(SHUFFLE_WINDOW)

    with Progress(f"(b) stage a tar from {STAGE_THREADS} threads", wanted_bytes >> 20, "MiB") as progress:
        threads = [threading.Thread(target=stage) for _ in range(STAGE_THREADS)]
        for thread in threads:
            thread.start()
        writer = BlockWriter(take)
        round_number = 0
        with tarfile.open(fileobj=writer, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            while writer.length < wanted_bytes:
                for path, blob in found:
                    tar.add(path, arcname=f"pass-{round_number}/{blob}", recursive=False)
                    if writer.length >= wanted_bytes:
                        break
                round_number += 1
        writer.finish()
        release(0)
        for _ in threads:
            waiting.put(None)
        for thread in threads:
            thread.join()
    verdicts.none("(b) blocks staged", failures)
    blob = clients.blob(name)
    uncommitted = blob.get_block_list("uncommitted")[1]
    verdicts.equal("(b) uncommitted blocks listed", len(uncommitted), writer.number)
    blob.commit_block_list([block_id(number) for number in range(writer.number)])
    committed = blob.get_block_list("committed")[0]
    verdicts.check("(b) committed blocks in order", [b.id for b in committed] == [block_id(n) for n in hashes],
                   f"{writer.number} blocks", f"{len(committed)} blocks")
    return writer.length, writer.hash.hexdigest(), hashes


def utf16(name):
    """The order the service lists names in: by UTF-16 code unit."""
    return name.encode("utf-16-be")


def walk(container, prefix=""):
    """Every blob below a prefix, one level at a time."""
    for item in container.walk_blobs(name_starts_with=prefix, delimiter="/"):
        if isinstance(item, BlobPrefix):
            yield from walk(container, item.name)
        else:
            yield item.name


def check_listing(clients, alive, verdicts, step):
    """The flat listing and the walk of the hierarchy show exactly what is alive, in order, with true sizes."""
    container = clients.container()
    with Progress(f"{step} list flat and by hierarchy", 2 * len(alive), "names") as progress:
        listed, sizes = [], {}
        for item in container.list_blobs():
            listed.append(item.name)
            sizes[item.name] = item.size
            progress.advance()
        walked = []
        for name in walk(container):
            walked.append(name)
            progress.advance()
    verdicts.check(f"{step} flat listing, names and order", listed == sorted(alive, key=utf16),
                   f"{len(alive):,} in order", f"{len(listed):,}")
    verdicts.none(f"{step} sizes in the listing", [n for n in alive if sizes.get(n) != alive[n][0]])
    verdicts.check(f"{step} listing by hierarchy", sorted(walked) == sorted(alive), f"{len(alive):,}",
                   f"{len(walked):,}")


def check_tree(clients, alive, dead, verdicts, step):
    """Every living blob reads back with its hash and metadata; every deleted one is not found."""

    def read(name):
        try:
            download = clients.blob(name).download_blob()
            data = download.readall()
        except ResourceNotFoundError as error:
            return "missing" if error.error_code == "BlobNotFound" else f"404 {error.error_code}"
        except AzureError as error:
            return f"error: {error}"
        if name in alive and (sha256(data) != alive[name][1]
                              or download.properties.metadata.get("sha256") != alive[name][1]):
            return "wrong bytes or metadata"
        return "right"

    found = in_pool(read, list(alive) + list(dead), f"{step} read everything back")
    wrong = [(name, state) for name, state in found if state != ("right" if name in alive else "missing")]
    verdicts.none(f"{step} {len(alive):,} blobs right, {len(dead):,} gone", wrong)


def check_stream(clients, name, length, digest, hashes, verdicts, step):
    """The committed stream reads back whole by hash, and by ranges at block boundaries in any order."""
    seen, total = hashlib.sha256(), 0
    with Progress(f"{step} read the stream back", length >> 20, "MiB") as progress:
        for chunk in clients.blob(name).download_blob().chunks():
            seen.update(chunk)
            total += len(chunk)
            progress.advance(len(chunk) / (1 << 20))
    verdicts.check(f"{step} stream read whole ({mib(length)})", (total, seen.hexdigest()) == (length, digest),
                   digest[:16], seen.hexdigest()[:16])

    def read(number):
        size = min(BLOCK_BYTES, length - number * BLOCK_BYTES)
        return sha256(clients.blob(name).download_blob(offset=number * BLOCK_BYTES, length=size).readall())

    numbers = random.Random(9).sample(sorted(hashes), min(len(hashes), 64))
    found = in_pool(read, numbers, f"{step} read blocks by range", STAGE_THREADS)
    verdicts.none(f"{step} {len(numbers)} ranges of the stream", [n for n, digest in found if digest != hashes[n]])


def main(options, scratch):
    verdicts = Verdicts("main job")
    found = files_below(options.source or default_sources())
    entries = sample(found, options.files)
    verdicts.check("input: real files found", len(entries) >= options.files, f">= {options.files:,}",
                   f"{len(entries):,}")
    with cli.server(options, scratch) as server:
        service = server.account.service()
        service.create_container(TREE)
        service.create_container(STREAM)
        tree = PerThread(server.account, TREE)
        stream = PerThread(server.account, STREAM, max_single_get_size=BLOCK_BYTES, max_chunk_get_size=BLOCK_BYTES)
        alive = upload_tree(tree, entries)
        verdicts.equal("(a) blobs uploaded", len(alive), len(entries))
        verdicts.figure("(a) bytes uploaded", mib(sum(size for size, _ in alive.values())))
        length, digest, hashes = stage_stream(stream, found, "tree.tar", options.tar_mib << 20, verdicts)
        check_listing(tree, alive, verdicts, "(c)")
        check_tree(tree, alive, [], verdicts, "(c)")
        check_stream(stream, "tree.tar", length, digest, hashes, verdicts, "(c)")

        dead = random.Random(5).sample(sorted(alive), len(alive) // 2)
        in_pool(lambda name: tree.blob(name).delete_blob(), dead, "(d) delete half")
        alive = {name: facts for name, facts in alive.items() if name not in set(dead)}
        verdicts.equal("(d) exit code after SIGTERM", server.stop(), 0)
        verdicts.figure("(d) restart to serving", f"{server.start():.2f} s")
        check_listing(tree, alive, verdicts, "(d)")
        check_tree(tree, alive, dead, verdicts, "(d)")
        check_stream(stream, "tree.tar", length, digest, hashes, verdicts, "(d)")
        server.stop()
        verdicts.sound(server)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--source", type=pathlib.Path, action="append", help="a tree to take files from (repeatable)")
    flags.add_argument("--files", type=int, help="files to upload (default 20000; 600 with --small)")
    flags.add_argument("--tar-mib", type=int, help="least length of the tar stream (default 1024; 64 with --small)")
    parsed = cli.parse(flags)
    parsed.files = parsed.files or (600 if parsed.small else 20_000)
    parsed.tar_mib = parsed.tar_mib or (64 if parsed.small else 1024)
    cli.run(main, parsed)

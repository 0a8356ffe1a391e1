#!/usr/bin/env python3
"""Backups of a running and of a stopped node (docs/backup.md).

Clients put, overwrite, copy and delete block blobs, commit block lists, and write page and append blobs all the time, while the
partition map changes under them. Meanwhile:

* `blockyard backup` copies the node to a directory, and brings the copy up to date later, which copies less;
* the node is killed in the middle of a backup: `restore` and `serve` refuse the directory, and a backup of the stopped node
  completes it;
* each backup is restored elsewhere with the master key: `blockyard check` is clean, every blob that was acknowledged before the
  backup began and not changed since is equal, all others are one of the states they had meanwhile;
* without the master key nothing is restored; a full disk stops a backup, not the node; no file of a backup is open to others.
"""

import concurrent.futures
import itertools
import json
import pathlib
import random
import shutil
import subprocess
import threading
import time

from azure.core.exceptions import AzureError, ResourceNotFoundError

from disk_full import CannotMount, small_file_system
from lib import cli
from lib.account import PerThread
from lib.content import content, sha256
from lib.report import Verdicts, mib
from lib.server import Server

CONTAINER = "kept"
SOURCES, SOURCE_BYTES = 12, 3 << 20
SIZES = (100, 3_000, 20_000, 300_000, 2 << 20)
PAGE_BLOB = 64 << 10
ABSENT = "absent"
FLAGS = ("--memtable-bytes=1048576", "--initial-partitions=4", "--index-hosts=2", "--split-requests=60")


class Worker(threading.Thread):
    """Changes blobs of its own. `history[name]` has the digest of each state a blob was given, `acknowledged[name]` the place of
    the last one that was answered; later ones are in doubt."""

    def __init__(self, number, account, blobs, stopping):
        super().__init__(daemon=True)
        self.clients = PerThread(account, CONTAINER, read_timeout=60)
        self.names = [f"w{number}/{blob:02}" for blob in range(blobs)]
        self.history = {name: [ABSENT] for name in self.names}
        self.acknowledged = {name: 0 for name in self.names}
        self.dice, self.count, self.stopping = random.Random(number), itertools.count(), stopping
        self.appended, self.wrong = set(), []

    def run(self):
        while not self.stopping.is_set():
            name = self.dice.choice(self.names)
            try:
                self.change(name)
            except (AzureError, OSError) as error:
                if not self.stopping.is_set():
                    self.wrong.append(f"{name}: {error}")
                return

    def step(self, name, state, call):
        """One request that gives a blob a state."""
        self.history[name].append(state)
        call()
        self.acknowledged[name] = len(self.history[name]) - 1

    def change(self, name):
        blob, label = self.clients.blob(name), f"{name}#{next(self.count)}"
        kind = self.dice.choice(["put", "put", "blocks", "copy", "delete", "pages", "append"])
        exists = self.history[name][-1] != ABSENT
        if exists and (kind in ("delete", "pages", "append") or name in self.appended):
            # Blocks are not staged to a blob of another kind.
            self.step(name, ABSENT, blob.delete_blob)
            self.appended.discard(name)
        if kind == "put":
            body = content(label, self.dice.choice(SIZES))
            self.step(name, sha256(body), lambda: blob.upload_blob(body, overwrite=True))
        elif kind == "blocks":
            parts = [content((label, part), 200_000) for part in range(3)]
            for part, body in enumerate(parts):
                blob.stage_block(f"{part:08}", body)
            ids = [f"{part:08}" for part in range(3)]
            self.step(name, sha256(b"".join(parts)), lambda: blob.commit_block_list(ids))
        elif kind == "copy":
            number = self.dice.randrange(SOURCES)
            url = self.clients.blob(f"source/{number}").url
            self.step(name, source_digest(number), lambda: blob.start_copy_from_url(url))
        elif kind == "pages":
            body, at = content(label, 4096), 4096 * self.dice.randrange(16)
            whole = bytes(at) + body + bytes(PAGE_BLOB - at - 4096)
            self.step(name, sha256(bytes(PAGE_BLOB)), lambda: blob.create_page_blob(PAGE_BLOB))
            self.step(name, sha256(whole), lambda: blob.upload_page(body, at, 4096))
            self.step(name, ABSENT, blob.delete_blob)
        elif kind == "append":
            whole = b""
            self.appended.add(name)
            self.step(name, sha256(whole), blob.create_append_blob)
            for part in range(3):
                body = content((label, part), 5_000)
                whole += body
                self.step(name, sha256(whole), lambda: blob.append_block(body))
            if self.dice.random() < 0.5:
                self.step(name, ABSENT, blob.delete_blob)
                self.appended.discard(name)


def source_digest(number):
    """The digest of a blob that others are copied from."""
    return sha256(content(f"source/{number}", SOURCE_BYTES))


class Load:
    """Workers, and the states that they know."""

    def __init__(self, account, workers, blobs):
        self.stopping = threading.Event()
        self.workers = [Worker(number, account, blobs, self.stopping) for number in range(workers)]
        for worker in self.workers:
            worker.start()

    def now(self):
        """name -> place of the last acknowledged state."""
        return {name: at for worker in self.workers for name, at in dict(worker.acknowledged).items()}

    def allowed(self, since):
        """name -> the states that it has had since then, or may have had."""
        return {name: set(worker.history[name][since[name]:]) for worker in self.workers for name in worker.names}

    def end(self):
        """Stops all workers. Returns their errors."""
        self.stopping.set()
        for worker in self.workers:
            worker.join(120)
        return [wrong for worker in self.workers for wrong in worker.wrong]


def command(server, *words, code=0, admin=True):
    """One of the program's own commands: its JSON, or its text when it is to fail."""
    where = ["--admin-listen", server.admin_address, "--data", server.data[0]] if admin else []
    words = [server.binary, *map(str, words), *where]
    done = subprocess.run([*words, *(["--json"] if "serve" not in words else [])], capture_output=True, text=True, timeout=300)
    if done.returncode != code:
        raise RuntimeError(f"{' '.join(words)}: exit {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr if code else json.loads(done.stdout)


def key_of(data):
    """The master key file beside a data directory."""
    return pathlib.Path(f"{data}.key")


def restored(options, scratch, source, allowed, verdicts, what):
    """Restores a backup, checks it, serves it, and compares every blob."""
    backup, server = source
    folder = scratch / f"restored-{what.replace(' ', '-')}"
    shutil.copy(key_of(server.data[0]), key_of(folder))
    command(server, "restore", backup, folder, admin=False)
    with Server(options.binary, [folder], scratch / f"{folder.name}.log", FLAGS) as copy:
        open_to_others = [path for path in [folder, *folder.rglob("*"), key_of(folder)] if path.stat().st_mode & 0o077]
        verdicts.none(f"{what}: files of the restored store that others may use", open_to_others)
        verdicts.sound(copy, f"{what}: check of the restored store")
        copy.start()
        clients = PerThread(copy.account, CONTAINER, read_timeout=60)

        def read(item):
            name, states = item
            try:
                found = sha256(clients.blob(name).download_blob().readall())
            except ResourceNotFoundError:
                found = ABSENT
            return None if found in states else f"{name}: found {found[:12]}, not one of {len(states)} states"

        wanted = {**allowed, **{f"source/{number}": {source_digest(number)} for number in range(SOURCES)}}
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            wrong = [found for found in pool.map(read, wanted.items()) if found]
        one = sum(len(states) == 1 for states in wanted.values())
        verdicts.none(f"{what}: {len(wanted)} blobs are as they were, {one} of them in one state only", wrong)
        names = {blob.name for blob in clients.container().list_blobs()}
        missing = [name for name, states in wanted.items() if ABSENT not in states and name not in names]
        strange = [name for name in names if wanted.get(name, {ABSENT}) == {ABSENT}]
        verdicts.none(f"{what}: the listing has all of them and no others", missing + strange)
        clients.blob("new").upload_blob(b"written after the restore", overwrite=True)
        verdicts.equal(f"{what}: exit code", copy.stop(), 0)
        verdicts.sound(copy, f"{what}: check after a write")
    shutil.rmtree(folder)


def under_load(options, scratch, server, verdicts):
    """A full backup and an incremental one while clients write. Returns the load, and what the last one may hold."""
    container = server.account.service().create_container(CONTAINER)
    for number in range(SOURCES):
        container.upload_blob(f"source/{number}", content(f"source/{number}", SOURCE_BYTES))
    load, backup = Load(server.account, 4, 12 if options.small else 60), scratch / "backup"
    time.sleep(2 if options.small else 20)
    copied, allowed = [], {}
    for number in range(2 if options.small else 8):
        before = load.now()
        made = command(server, "backup", backup)
        allowed = load.allowed(before)
        copied.append(made["copied_bytes"])
        if number == 0:
            kept = scratch / "first"
            shutil.copytree(backup, kept)
            restored(options, scratch, (kept, server), allowed, verdicts, "full backup under load")
            shutil.rmtree(kept)
    verdicts.figure("bytes copied by each backup", ", ".join(map(mib, copied)))
    lasting = SOURCES * SOURCE_BYTES
    verdicts.check("the first backup copies what is lasting", copied[0] > lasting, f"over {mib(lasting)}", mib(copied[0]))
    # How much later ones copy depends on what clients write. Without load they copy nothing, see below.
    return load, backup, allowed


def refusals(scratch, server, backup, verdicts):
    """Directories that are no backup, backups that are no store, and a key that is not there."""
    def refuses(what, text, *words, admin=True):
        found = command(server, *words, code=1, admin=admin)
        verdicts.check(what, text in found, text, found.strip()[-100:])

    listen = ["--blob-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
    refuses("a backup is not served", "is a backup", "serve", "--data", backup, *listen, admin=False)
    refuses("a data directory is no backup", "neither empty nor a backup", "backup", server.data[0])
    refuses("without the master key nothing is restored", "without.key", "restore", backup, scratch / "without", admin=False)
    refuses("a restore needs a new directory", "is not empty", "restore", backup, server.data[0], "--master-key-file",
            key_of(server.data[0]), admin=False)
    verdicts.check("nothing was made", not (scratch / "without").exists(), "nothing", "a directory")
    open_to_others = [path for path in backup.rglob("*") if path.stat().st_mode & 0o077]
    verdicts.none("files of the backup that others may use", open_to_others)
    key = max(key_of(server.data[0]).read_text().split(), key=len).encode()
    verdicts.none("files of the backup with the master key", [
        path for path in backup.rglob("*") if path.is_file() and key in path.read_bytes()])


def full_disk(server, verdicts, scratch):
    """A backup to a disk that is too small."""
    try:
        with small_file_system(scratch, 24) as (disk, _):
            found = command(server, "backup", disk / "backup", code=1)
            verdicts.check("a full disk stops the backup and is named", "is full" in found, "is full", found.strip()[-100:])
            found = command(server, "restore", disk / "backup", scratch / "of-full", code=1, admin=False)
            verdicts.check("what is there is refused", "not a complete backup" in found, "refused", found.strip()[-100:])
    except CannotMount as error:
        verdicts.figure("full disk", f"left out: no small file system can be mounted here ({error})")


def killed(server, scratch, load, verdicts):
    """Kills the node in the middle of a backup. Returns the directory."""
    folder = scratch / "killed"
    words = [server.binary, "backup", str(folder), "--admin-listen", server.admin_address, "--data", server.data[0]]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        while not any(folder.glob("extents/*/*")) and process.poll() is None:
            time.sleep(0.002)
        load.stopping.set()
        server.kill()
        said, _ = process.communicate(timeout=120)
    verdicts.check("the command says that the node is gone", process.returncode == 1 and "again" in said, "exit 1",
                   f"exit {process.returncode}: {said.strip()[-100:]}")
    found = command(server, "restore", folder, scratch / "from-killed", code=1, admin=False)
    verdicts.check("a backup that was cut is not restored", "not a complete backup" in found, "refused", found.strip()[-100:])
    found = command(server, "serve", "--data", folder, code=1, admin=False)
    verdicts.check("and not served", "was not completed" in found, "refused", found.strip()[-100:])
    return folder


def main(options, scratch):
    """Runs everything; the exit code."""
    verdicts = Verdicts("backup")
    with cli.server(options, scratch, FLAGS) as server:
        load, backup, allowed = under_load(options, scratch, server, verdicts)
        refusals(scratch, server, backup, verdicts)
        full_disk(server, verdicts, scratch)
        cli.remember_operations(server)
        folder = killed(server, scratch, load, verdicts)
        verdicts.none("requests that failed during backups", load.end())
        restored(options, scratch, (backup, server), allowed, verdicts, "backup brought up to date")
        command(server, "backup", folder, "--stopped")
        idle = command(server, "backup", folder, "--stopped")
        verdicts.check("a backup without changes copies nothing", idle["copied_bytes"] == 0, "0 MiB", mib(idle["copied_bytes"]))
        now = load.allowed(load.now())
        restored(options, scratch, (folder, server), now, verdicts, "backup of the killed node")
        verdicts.sound(server, "check of the store itself")
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

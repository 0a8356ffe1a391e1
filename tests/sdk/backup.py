#!/usr/bin/env python3
"""Backups of a running and of a stopped node.

Under load of writes, overwrites, deletes and splits, `blockyard backup` copies the node several times into one directory. Each
restored copy is checked, served and compared: every blob that was acknowledged before the backup began, and not changed since, is
equal. A second backup copies less than the first. A backup that is killed is refused by `restore`, and so is serving a backup.
"""

import concurrent.futures
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time

from azure.core.exceptions import AzureError

from lib import cli
from lib.account import PerThread
from lib.content import content, sha256
from lib.report import Verdicts, mib
from lib.server import Server

CONTAINER = "kept"
THREADS = 6
SIZES = (100, 3_000, 20_000, 300_000, 2 << 20)


class Load:
    """Writers that know what was acknowledged, and when."""

    def __init__(self, account):
        self.clients = PerThread(account, CONTAINER, retries=3, read_timeout=60)
        self.lock, self.stop = threading.Lock(), threading.Event()
        # name -> (content name, size, acknowledged at); a name is absent while it is being changed
        self.known, self.wrong = {}, []

    def run(self, worker):
        """Writes, overwrites and deletes names of its own until told to stop."""
        dice, number = random.Random(worker), itertools.count()
        while not self.stop.is_set():
            name = f"{worker}/{dice.randrange(60)}"
            with self.lock:
                before = self.known.pop(name, None)
            try:
                if before and dice.random() < 0.2:
                    self.clients.blob(name).delete_blob()
                    continue
                source, size = f"{name}#{next(number)}", dice.choice(SIZES)
                self.clients.blob(name).upload_blob(content(source, size), overwrite=True)
                with self.lock:
                    self.known[name] = (source, size, time.monotonic())
            except AzureError as error:
                self.wrong.append(f"{name}: {error}")

    def snapshot(self):
        """What is acknowledged now."""
        with self.lock:
            return dict(self.known)

    def unchanged(self, before):
        """Of an earlier snapshot, what nobody has touched since."""
        with self.lock:
            return {name: row for name, row in before.items() if self.known.get(name) == row}


def command(server, *words, code=0, admin=True):
    """One of the program's own commands: its JSON, or (code, text) when it is to fail."""
    where = ["--admin-listen", server.admin_address, "--data", server.data[0]] if admin else []
    done = subprocess.run([server.binary, *map(str, words), "--json", *where], capture_output=True, text=True, timeout=300)
    if code:
        return done.returncode, done.stdout + done.stderr
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def restored(options, scratch, backup, wanted, verdicts, what):
    """Restores a backup, checks it, serves it, and compares."""
    folder = scratch / f"restored-{what.replace(' ', '-')}"
    with Server(options.binary, [folder], scratch / f"{folder.name}.log", options.serve_arg) as server:
        command(server, "restore", backup, folder, admin=False)
        verdicts.sound(server, f"{what}: check of the restored store")
        server.start()
        clients = PerThread(server.account, CONTAINER, read_timeout=60)

        def read(item):
            name, (source, size, _) = item
            try:
                found = sha256(clients.blob(name).download_blob().readall())
                return None if found == sha256(content(source, size)) else f"{name}: wrong bytes"
            except AzureError as error:
                return f"{name}: {error}"

        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            wrong = [found for found in pool.map(read, wanted.items()) if found]
        verdicts.none(f"{what}: {len(wanted)} blobs acknowledged before are equal", wrong)
        names = {blob.name for blob in clients.container().list_blobs()}
        verdicts.none(f"{what}: all are listed", sorted(set(wanted) - names))
        clients.blob("new").upload_blob(b"written after the restore", overwrite=True)
        verdicts.equal(f"{what}: exit code", server.stop(), 0)
        verdicts.sound(server, f"{what}: check after new writes")
    shutil.rmtree(folder)


def under_load(options, scratch, server, verdicts):
    """Backups while clients write and the map changes. Answers the load."""
    server.account.service().create_container(CONTAINER)
    load, backup = Load(server.account), scratch / "backup"
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        running = [pool.submit(load.run, worker) for worker in range(THREADS)]
        try:
            time.sleep(3 if options.small else 20)
            copied = []
            for number in range(3 if options.small else 10):
                before = load.snapshot()
                made = command(server, "backup", backup)
                wanted = load.unchanged(before)
                copied.append(made["copied_bytes"])
                command(server, "partitions", "split", f"devstoreaccount1/{CONTAINER}/{number}")
                restored(options, scratch, backup, wanted, verdicts, f"backup {number}")
        finally:
            load.stop.set()
        for future in running:
            future.result()
    verdicts.none("no request failed during backups", load.wrong)
    verdicts.figure("bytes copied by each backup", ", ".join(map(mib, copied)))
    again = command(server, "backup", backup)
    idle = command(server, "backup", backup)
    verdicts.check("a backup without changes copies little", idle["copied_bytes"] < again["copied_bytes"] + (1 << 20),
                   "little", mib(idle["copied_bytes"]))
    return load, backup


def refusals(scratch, server, backup, verdicts):
    """What is no backup is not taken for one."""
    code, text = command(server, "serve", "--data", backup, "--blob-listen", "127.0.0.1:0", code=1, admin=False)
    verdicts.check("a backup is not served", code != 0 and "restore" in text or "backup" in text, "refused", text[-80:])
    code, text = command(server, "backup", scratch / "data", code=1)
    verdicts.check("the data directory is no place for a backup", code != 0, "refused", text.strip()[-80:])
    killed = scratch / "killed"
    process = subprocess.Popen(
        [server.binary, "backup", str(killed), "--admin-listen", server.admin_address, "--data", server.data[0]],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (killed / "backup.incomplete").exists() and process.poll() is None:
        time.sleep(0.001)
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    process.wait()
    complete = (killed / "backup.json").exists()
    code, text = command(server, "restore", killed, scratch / "from-killed", code=1, admin=False)
    verdicts.check("a killed backup is not restored", complete or code != 0, "refused", text.strip()[-80:])
    return killed


def main(options, scratch):
    """Runs everything; the exit code."""
    verdicts = Verdicts("backup")
    extra = ["--memtable-bytes=1048576", "--split-requests=0"]
    with cli.server(options, scratch, extra) as server:
        load, backup = under_load(options, scratch, server, verdicts)
        killed = refusals(scratch, server, backup, verdicts)
        server.start()
        server.stop()
        final = load.snapshot()
        command(server, "backup", killed, "--stopped")
        restored(options, scratch, killed, final, verdicts, "stopped")
        command(server, "backup", backup, "--stopped")
        restored(options, scratch, backup, final, verdicts, "stopped again")
        verdicts.sound(server, "check of the store itself")
        keys = [p for p in backup.rglob("*") if "key" in p.name or "token" in p.name]
        verdicts.none("keys and tokens in the backup", keys)
        verdicts.figure("size of the backup", mib(sum(os.stat(p).st_blocks * 512 for p in backup.rglob("*") if p.is_file())))
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

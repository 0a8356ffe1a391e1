#!/usr/bin/env python3
"""Disks are added, drained and removed under load (docs/disks.md).

Clients write, overwrite, delete and read blobs of many sizes all the time, and check every answer. Meanwhile:

* an unknown directory under --data refuses the start and is named; --add-disk makes it a disk, which takes new data;
* the first disk, which holds the coordinator's file, is refused by name when it is to be drained or removed;
* a disk that still holds something is not removed; one that is drained is, and its folder can be deleted while others serve;
* a drain that kill -9 cuts goes on after the start;
* the last disk that takes new data cannot be drained.

On a store of its own (lib/left_out.py): a start that lacks a disk is refused by name; with --without-disk, or when the file system
of the disk is read-only, the node serves what is on other disks, frees nothing there, and names the disk; `blockyard check` names
exactly the blobs that are lost with the disk, and verifies a read-only one; when the disk is back, all is served.

In the end every acknowledged blob is equal, the listing shows exactly those, and `blockyard check` of what is left is clean.
"""

import http.client
import json
import pathlib
import random
import shutil
import subprocess
import threading
import time

from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError

from lib import cli, left_out
from lib.account import PerThread
from lib.content import content
from lib.measure import wait_until
from lib.report import Verdicts

CONTAINER = "disks"
WORKERS = 6
BLOBS_EACH = 25
# Inline in a row, shared appends, deferred frames, several steps.
SIZES = (100, 3_000, 30_000, 300_000, 1 << 20, 3 << 20)
DRAIN_SECONDS = 180
FEW_DISKS = ("--journal-bytes=8388608", "--index-hosts=2", "--initial-partitions=4")


class Worker(threading.Thread):
    """Changes its own blobs and reads them back, until it must stop or the server is gone."""

    def __init__(self, number, known, account, seed, stopping):
        super().__init__(daemon=True)
        self.known, self.stopping = known, stopping
        self.clients = PerThread(account, CONTAINER, read_timeout=30)
        self.dice, self.names = random.Random(f"{seed}/{number}"), [f"w{number}/{n:03}" for n in range(BLOBS_EACH)]
        self.seed, self.steps, self.wrong = seed, 0, []

    def run(self):
        try:
            while not self.stopping.is_set():
                self.step(self.dice.choice(self.names))
                self.steps += 1
        except (AzureError, OSError, http.client.HTTPException) as error:
            if not self.stopping.is_set():
                self.wrong.append(f"{type(error).__name__}: {error}")

    def step(self, name):
        """One change or read. `known[name]` is the list of what may be there: one entry, or two while one is in doubt."""
        blob, what = self.clients.blob(name), self.dice.random()
        if what < 0.4 or len(self.known[name]) > 1:
            found = read(blob)
            if found not in [make(label) for label in self.known[name]]:
                self.wrong.append(f"{name} is not one of {self.known[name]}")
            else:
                self.known[name] = [label for label in self.known[name] if make(label) == found]
            return
        label = None if what < 0.5 else (f"{self.seed}/{name}/{self.steps}", self.dice.choice(SIZES))
        self.known[name] = [self.known[name][-1], label]
        try:
            if label is None:
                blob.delete_blob()
            else:
                blob.upload_blob(make(label), overwrite=True)
        except ResourceNotFoundError:
            if self.known[name][0] is not None:
                self.wrong.append(f"{name}: not there to be deleted")
        except HttpResponseError as error:
            if error.status_code != 503:
                raise
            self.known[name].pop()  # Refused: nothing was done.
            return
        self.known[name] = [label]


def make(label):
    """The bytes of a label; None is a blob that is not there."""
    return None if label is None else content(*label)


def read(blob):
    """The blob's bytes, or None."""
    try:
        return blob.download_blob().readall()
    except ResourceNotFoundError:
        return None


class Load:
    """Workers over one stretch of the script."""

    def __init__(self, server, known, seed, verdicts):
        self.stopping, self.verdicts, self.seed = threading.Event(), verdicts, seed
        self.workers = [Worker(number, known, server.account, seed, self.stopping) for number in range(WORKERS)]

    def __enter__(self):
        for worker in self.workers:
            worker.start()
        return self

    def steps(self):
        """Operations so far."""
        return sum(worker.steps for worker in self.workers)

    def go_on(self, steps):
        """Waits for so many more operations: what happened before did not stop the clients."""
        wanted = self.steps() + steps
        served = wait_until(lambda: self.steps() >= wanted or any(worker.wrong for worker in self.workers), 120)
        self.verdicts.check(f"{steps} more operations are served", served, wanted, self.steps())

    def __exit__(self, *exc):
        self.stopping.set()
        for worker in self.workers:
            worker.join(60)
        wrong = [line for worker in self.workers for line in worker.wrong]
        self.verdicts.none(f"{self.steps():,} operations under load ({self.seed}) as they should be", wrong)
        return False


class Disks:
    """`blockyard disk` for one server."""

    def __init__(self, server):
        self.server = server

    def run(self, *arguments):
        """(exit code, what it printed)."""
        command = [self.server.binary, "disk", *map(str, arguments), "--admin-listen", self.server.admin_address,
                   "--data", self.server.data[0]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, (done.stdout + done.stderr).strip()

    def of(self, folder):
        """What `disk list` says of one directory, or None."""
        code, text = self.run("list", "--json")
        if code:
            raise RuntimeError(f"disk list: {text}")
        return next((disk for disk in json.loads(text) if pathlib.Path(disk["path"]).name == folder.name), None)

    def drained(self, folder):
        """Waits until nothing is left on a disk."""
        return wait_until(lambda: self.of(folder)["state"] == "drained", DRAIN_SECONDS)


def refused(verdicts, what, done, *words):
    """Records that a command was refused in words that name these."""
    code, text = done
    verdicts.check(what, code != 0 and all(str(word) in text for word in words), f"refused, naming {words[-1]}",
                   f"exit {code}: {text[:100]}")


def refused_start(server, verdicts, folder):
    """Starting with an unknown directory is refused."""
    command = [server.binary, "serve", "--blob-listen", server.blob_address, "--admin-listen", server.admin_address]
    for data in [*server.data, folder]:
        command += ["--data", str(data)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    refused(verdicts, "an unknown directory under --data", (done.returncode, done.stdout + done.stderr), folder, "--add-disk")
    held = [path.name for path in pathlib.Path(folder).rglob("*") if path.name == "format"]
    verdicts.equal("files `format` in it after that", len(held), 0)


def restart_with(server, data, *more):
    """Starts the stopped server with other directories."""
    server.data, extra = [str(folder) for folder in data], server.extra
    server.extra = [*extra, *more]
    try:
        server.start()
    finally:
        server.extra = extra


def verify(server, known, verdicts):
    """Every blob and the listing."""
    container = server.account.service().get_container_client(CONTAINER)
    wrong = []
    for name, labels in known.items():
        found = read(container.get_blob_client(name))
        fits = [label for label in labels if make(label) == found]
        if fits:
            known[name] = fits[:1]
        else:
            wrong.append(f"{name}: {None if found is None else len(found)} bytes, not one of {labels}")
    verdicts.none(f"{len(known)} blobs read back", wrong)
    wanted = {name: labels[0][1] for name, labels in known.items() if labels[0] is not None}
    listed = {item.name: item.size for item in container.list_blobs()}
    verdicts.check("the listing shows exactly those", listed == wanted, len(wanted), len(listed))


def main(options, scratch):
    verdicts = Verdicts("disks are added, drained and removed under load")
    first, second, third, fourth = folders = [scratch / name for name in ("first", "second", "third", "fourth")]
    steps = 150 if options.small else 1500
    known = {f"w{number}/{n:03}": [None] for number in range(WORKERS) for n in range(BLOBS_EACH)}
    with cli.server(options, scratch, FEW_DISKS, data=[first, second]) as server:
        disks = Disks(server)
        server.account.service().create_container(CONTAINER)
        with Load(server, known, "two disks", verdicts) as load:
            load.go_on(steps)
        server.stop()
        refused_start(server, verdicts, third)
        restart_with(server, [first, second], f"--add-disk={third}")
        server.data.append(str(third))
        verify(server, known, verdicts)
        with Load(server, known, "a third disk", verdicts) as load:
            load.go_on(steps)
            extents = disks.of(third)["extents"]
            verdicts.check("the new disk takes new data", extents > 0, "> 0 extents", extents)
            for command in ("drain", "remove"):
                refused(verdicts, f"to {command} the first disk", disks.run(command, first), first, "first disk")
            refused(verdicts, "to remove a disk that is in use", disks.run("remove", second), second, "drain")
            refused(verdicts, "to drain what is no disk", disks.run("drain", fourth), fourth)
            code, text = disks.run("drain", second)
            verdicts.check("the second disk begins to drain", code == 0, 0, f"{code}: {text}")
            verdicts.check("it is drained under load", disks.drained(second), "drained", disks.of(second)["state"])
            load.go_on(steps)
            code, text = disks.run("remove", second)
            verdicts.check("it is removed", code == 0 and disks.of(second) is None, 0, f"{code}: {text}")
            shutil.rmtree(second)
            load.go_on(steps)
        server.data = [str(first), str(third)]
        verify(server, known, verdicts)
        with Load(server, known, "a drain that is cut", verdicts) as load:
            load.go_on(steps // 3)
            code, text = disks.run("drain", third)
            verdicts.check("the third disk begins to drain", code == 0, 0, f"{code}: {text}")
            load.stopping.set()
            server.kill()
        restart_with(server, [first, third], f"--add-disk={fourth}")
        server.data.append(str(fourth))
        verify(server, known, verdicts)
        with Load(server, known, "after kill -9", verdicts) as load:
            verdicts.check("the drain goes on after kill -9", disks.drained(third), "drained", disks.of(third)["state"])
            load.go_on(steps // 3)
            code, text = disks.run("remove", third)
            verdicts.check("the third disk is removed", code == 0, 0, f"{code}: {text}")
            code, text = disks.run("drain", fourth)
            verdicts.check("the fourth disk begins to drain", code == 0, 0, f"{code}: {text}")
            verdicts.check("it is drained", disks.drained(fourth), "drained", disks.of(fourth)["state"])
            code, text = disks.run("remove", fourth)
            verdicts.check("it is removed", code == 0, 0, f"{code}: {text}")
            refused(verdicts, "to drain the only disk", disks.run("drain", first), first)
            load.go_on(steps // 3)
        for folder in (third, fourth):
            shutil.rmtree(folder)
        server.data = [str(first)]
        server.stop()
        restart_with(server, [first])
        verify(server, known, verdicts)
        server.stop()
        verdicts.sound(server)
    (scratch / "left-out").mkdir()
    left_out.run(options, scratch / "left-out", verdicts)
    verdicts.figure("folders at the end", ", ".join(folder.name for folder in folders if folder.exists()))
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

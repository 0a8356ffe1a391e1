#!/usr/bin/env python3
"""The partition map changes under load: splits, merges and moves while clients of the Python SDK write, read and list.

No client may see an error; each checks every answer against what it wrote, and each list against all names it has. The
pauses come from the server's own histograms, beside what one write and fdatasync costs on this disk in the same minutes.
`--changes N` sets how many changes (default 1000, small 60).
"""

import collections
import http.client
import json
import multiprocessing
import os
import pathlib
import random
import threading
import time

from lib import cli
from lib.account import PerThread
from lib.report import Progress, Verdicts

CLIENTS = 8
NAMES = 40


class Admin:
    """The admin listener's commands."""

    def __init__(self, server):
        self.address = server.admin_address
        self.token = (pathlib.Path(server.data[0]) / "admin-token").read_text().strip()

    def call(self, method, path, body=None):
        """(status, decoded answer)"""
        connection = http.client.HTTPConnection(self.address, timeout=60)
        try:
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            connection.request(method, f"/admin/partitions{path}", body and json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"null")
        finally:
            connection.close()

    def partitions(self):
        """All of them, in key order."""
        status, found = self.call("GET", "")
        assert status == 200, found
        return found["partitions"]


class Changer:
    """Changes the map, one change after the other."""

    def __init__(self, admin, container, seed):
        self.admin, self.container = admin, container
        self.draw = random.Random(seed)
        self.done, self.refused = collections.Counter(), collections.Counter()

    def change(self):
        """One change of a kind that fits the map as it is; counts what came of it."""
        found = self.admin.partitions()
        kind = self.draw.choice(["split", "split", "merge", "merge", "move"])
        if len(found) < 3:
            kind = "split"
        elif len(found) > 24 and kind == "split":
            kind = "merge"
        if kind == "split":
            name = f"{self.draw.randrange(CLIENTS)}/{self.draw.randrange(NAMES):04}"
            body = {"at": [f"{self.container}/{name}"]}
        elif kind == "merge":
            first = self.draw.randrange(len(found) - 1)
            body = {"partitions": [part["id"] for part in found[first:first + self.draw.choice([2, 2, 3])]]}
        else:
            part = self.draw.choice(found)
            body = {"partition": part["id"], "host": 1 - part["host"]}
        status, answer = self.admin.call("POST", f"/{kind}", body)
        if status < 300:
            self.done[kind] += 1
        else:
            self.refused[answer["error"]["code"]] += 1


class Client(threading.Thread):
    """Writes, reads, deletes and lists names of its own, and knows what each holds."""

    def __init__(self, clients, number, stop):
        super().__init__(daemon=True)
        self.clients, self.number, self.stop = clients, number, stop
        self.holds, self.calls, self.wrong = {}, 0, []
        self.draw = random.Random(number)

    def run(self):
        while not self.stop.is_set():
            try:
                self.step()
            except Exception as error:  # whatever the SDK raises after its own retries are off is what a client sees
                self.wrong.append(f"{type(error).__name__}: {error}"[:300])
            self.calls += 1

    def step(self):
        """One call and its check."""
        name = f"{self.number}/{self.draw.randrange(NAMES):04}"
        blob = self.clients.blob(name)
        what = self.draw.random()
        if what < 0.45:
            data = f"{name} {self.calls} ".encode() * self.draw.randrange(1, 400)
            self.holds[name] = (blob.upload_blob(data, overwrite=True)["etag"], data)
        elif what < 0.75 and name in self.holds:
            etag, data = self.holds[name]
            found = blob.download_blob()
            if (found.properties.etag.strip('"'), found.readall()) != (etag.strip('"'), data):
                self.wrong.append(f"{name}: other bytes or ETag")
        elif what < 0.9 and name in self.holds:
            blob.delete_blob()
            del self.holds[name]
        else:
            pages = self.clients.container().list_blobs(name_starts_with=f"{self.number}/", results_per_page=7)
            listed = [(one.name, one.etag) for one in pages]
            if listed != [(one, self.holds[one][0].strip('"')) for one in sorted(self.holds)]:
                self.wrong.append(f"a list of {len(listed)} names is not the {len(self.holds)} there are, in order")


def sync_floor(folder, stop, results):
    """Puts what one write of 4 KiB and its fdatasync take, in seconds; in a process of its own, so that threads of this one
    do not count."""
    took, path = [], folder / "floor"
    handle = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        os.pwrite(handle, bytes(4 << 20), 0)
        os.fsync(handle)
        while not stop.wait(0.02):
            began = time.monotonic()
            os.pwrite(handle, bytes(4096), random.randrange(1000) * 4096)
            os.fdatasync(handle)
            took.append(time.monotonic() - began)
    finally:
        os.close(handle)
        path.unlink()
    results.put(took)


def share(values, part):
    """The value at this part of a sorted list."""
    return values[min(int(len(values) * part), len(values) - 1)]


def main(options, scratch):
    verdicts = Verdicts("map changes")
    with cli.server(options, scratch, extra=["--index-hosts", "2", "--split-requests", "0"]) as server:
        admin = Admin(server)
        server.account.service().create_container("changes")
        clients = PerThread(server.account, "changes")
        stop = threading.Event()
        workers = [Client(clients, number, stop) for number in range(CLIENTS)]
        apart = multiprocessing.get_context("spawn")
        enough, floors = apart.Event(), apart.Queue()
        watch = apart.Process(target=sync_floor, args=(scratch, enough, floors), daemon=True)
        for one in [*workers, watch]:
            one.start()
        changer = Changer(admin, f"{server.account.name}/changes", options.seed)
        pauses, after = collections.defaultdict(list), 0
        with Progress("changes of the map", options.changes) as progress:
            while sum(changer.done.values()) < options.changes and not any(worker.wrong for worker in workers):
                before = sum(changer.done.values())
                changer.change()
                progress.advance(sum(changer.done.values()) - before)
                for event in admin.call("GET", f"?after={after}")[1]["changes"]:
                    after = event["number"]
                    pauses[event["kind"]].append(event["pause_ms"])
        stop.set()
        enough.set()
        floor = sorted(floors.get(timeout=60))
        for one in [*workers, watch]:
            one.join()
        wrong = [line for worker in workers for line in worker.wrong]
        calls = sum(worker.calls for worker in workers)
        names = sorted(name for worker in workers for name in worker.holds)
        listed = [one.name for one in clients.container().list_blobs(results_per_page=11)]
        verdicts.check("no client saw an error or a wrong answer", not wrong, f"{calls} calls", "; ".join(wrong[:5]))
        verdicts.check("one list over all partitions is exact", listed == names, f"{len(names)} names", f"{len(listed)}")
        done = dict(changer.done)
        verdicts.check("splits, merges and moves were made", len(done) == 3, str(done), str(done))
        odd = set(changer.refused) - {"AlreadyBorder", "BadKeys", "NotNeighbours", "NoSuchPartition", "Busy"}
        verdicts.check("refusals are those of a map that has changed", not odd, str(dict(changer.refused)), str(odd))
        server.stop()
        code, text = server.check()
        verdicts.check("the store is sound", code == 0, "check", text[-300:])
    for kind, found in sorted({**pauses, "all": sum(pauses.values(), [])}.items()):
        found.sort()
        print(f"{kind:6} {len(found):5}: pause p50 {share(found, .5):7.2f} ms, p99 {share(found, .99):7.2f} ms, "
              f"worst {found[-1]:7.2f} ms")
    print(f"floor  {len(floor):5}: write and fdatasync p50 {share(floor, .5) * 1e3:.2f} ms, "
          f"p99 {share(floor, .99) * 1e3:.2f} ms")
    return verdicts.exit_code()


if __name__ == "__main__":
    made = cli.parser(__doc__)
    made.add_argument("--changes", type=int, help="changes of the map (default 1000, small 60)")
    made.add_argument("--seed", type=int, default=1, help="which changes")
    chosen = cli.parse(made)
    chosen.changes = chosen.changes or (60 if chosen.small else 1000)
    cli.run(main, chosen)

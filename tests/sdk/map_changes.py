#!/usr/bin/env python3
"""The partition map changes under load: splits, merges, moves and stripes while clients of the Python SDK write, read and list, and,
with `--driver PROGRAM`, the load driver does the same many times faster (`cargo bench --no-run --bench load` names the program).

No client may see an error; each checks every answer against what it wrote, and each list against all names it has. Others
race on few blobs: their histories must be linearizable, and must not be once a stale read is put into them. The pauses come from the server's own histograms, beside what one write and fdatasync costs on this disk in the same minutes.
`--changes N` sets how many changes (default 1000, small 60).
"""

import collections
import multiprocessing
import os
import pathlib
import random
import threading
import time

from lib import cli
from lib.account import PerThread
from lib.changes import REFUSALS, Admin, Changer
from lib.driver import Driver
from lib.raced import NAMES as RACED
from lib.raced import Racers
from lib.report import Progress, Verdicts, table

CLIENTS = 8
NAMES = 40
# Bounds of the histogram, milliseconds.
BOUNDS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
# Connections of the load driver's `churn`.
DRIVEN = 16


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


def borders(account):
    """Keys to split at: each a list of a container's blobs."""
    own = [f"{account}/changes/{client}/{name:04}" for client in range(CLIENTS) for name in range(NAMES)]
    driven = [f"{account}/driven/{place:03}/{name:04}" for place in range(DRIVEN) for name in range(NAMES)]
    return [own, driven, [f"{account}/raced/{name}" for name in RACED]]


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


class Load:
    """Everything that happens to the server beside the changes."""

    def __init__(self, server, options, scratch):
        for container in ("changes", "raced", "driven"):
            server.account.service().create_container(container)
        self.clients = PerThread(server.account, "changes")
        self._ended = threading.Event()
        self.workers = [Client(self.clients, number, self._ended) for number in range(CLIENTS)]
        self._racers = Racers(server.account, "raced", options.seed)
        apart = multiprocessing.get_context("spawn")
        self._enough, self._floors = apart.Event(), apart.Queue()
        self._watch = apart.Process(target=sync_floor, args=(scratch, self._enough, self._floors), daemon=True)
        self._driver = options.driver and Driver(options.driver, server, "driven", scratch / "driver.log", options.rate)
        for one in [*self.workers, self._racers, self._watch]:
            one.start()

    def failed(self):
        """Whether a client has seen something wrong."""
        return any(worker.wrong for worker in self.workers) or bool(self._driver and self._driver.failed())

    def stop(self):
        """Ends it. Returns what the racers found, the driver's figures, and what a write and fdatasync took."""
        self._ended.set()
        self._enough.set()
        floor = sorted(self._floors.get(timeout=60))
        for one in [*self.workers, self._watch]:
            one.join()
        return self._racers.stop(), self._driver and self._driver.stop(), floor

    def judge(self, verdicts):
        """What the SDK clients saw."""
        wrong = [line for worker in self.workers for line in worker.wrong]
        calls = sum(worker.calls for worker in self.workers)
        names = sorted(name for worker in self.workers for name in worker.holds)
        listed = [one.name for one in self.clients.container().list_blobs(results_per_page=11)]
        verdicts.check("no client saw an error or a wrong answer", not wrong, f"{calls} calls", "; ".join(wrong[:5]))
        verdicts.check("one list over all partitions is exact", listed == names, f"{len(names)} names", f"{len(listed)}")


def histogram(taken):
    """Rows of text: a head, then one for each name of `taken`: its milliseconds below each bound, and quantiles."""
    rows = [["", "count", *[f"< {bound}" for bound in BOUNDS], "more", "p50", "p99", "worst"]]
    for name, took in taken.items():
        took = sorted(took)
        counts = [sum(low <= one < high for one in took) for low, high in zip([0, *BOUNDS], [*BOUNDS, float("inf")])]
        quantiles = [f"{value:.2f}" for value in (share(took, .5), share(took, .99), took[-1])] if took else ["-"] * 3
        rows.append([name, str(len(took)), *map(str, counts), *quantiles])
    return rows


def report(rows, words):
    """Markdown of the histogram."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "| --- |" + " ---: |" * (len(rows[0]) - 1))
    return "\n".join([
        "# Pauses of changes of the map", "",
        f"{time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}, load average {os.getloadavg()[0]:.1f} at the end. {words}", "",
        "Milliseconds in which no write of a range was made durable because the map changed, and, in the same minutes, what a write of "
        "4 KiB with its fdatasync took on the same disk.", "", *lines, ""])


def judge_raced(found, verdicts):
    """What the racers found."""
    verdicts.none("calls that raced and failed", found.errors)
    verdicts.none(f"histories that are not linearizable, of {found.histories} of {found.ops} calls", found.unexplained, 2)
    verdicts.check("histories with a stale read in them are refused", found.planted and not found.believed,
                   f"{found.planted}", f"{len(found.believed)} believed")


def judge_driven(figures, verdicts):
    """What the load driver saw."""
    wrong = figures is None or figures["errors"]
    verdicts.check("the load driver saw no error or wrong answer", not wrong, "0 errors",
                   "it broke" if figures is None else f"{figures['errors']} of {figures['ops']}: {figures['failures']}")
    if figures:
        print(f"driver {figures['ops']:5} calls: p50 {figures['p50_us'] / 1e3:.2f} ms, p99 {figures['p99_us'] / 1e3:.2f} ms, "
              f"worst {figures['max_us'] / 1e3:.2f} ms")


def changed(changer, load, options):
    """Changes the map until it is enough or a client saw something wrong. Returns the pauses of each kind, milliseconds."""
    pauses, after = collections.defaultdict(list), 0
    with Progress("changes of the map", options.changes) as progress:
        while sum(changer.done.values()) < options.changes and not load.failed():
            before = sum(changer.done.values())
            changer.change()
            progress.advance(sum(changer.done.values()) - before)
            for event in changer.admin.call("GET", f"?after={after}")[1]["changes"]:
                after = event["number"]
                pauses[event["kind"]].append(event["pause_ms"])
    return pauses


def main(options, scratch):
    verdicts = Verdicts("map changes")
    with cli.server(options, scratch, extra=["--index-hosts", "2", "--split-requests", "0"]) as server:
        load = Load(server, options, scratch)
        changer = Changer(Admin(server), borders(server.account.name), options.seed)
        pauses = changed(changer, load, options)
        found, figures, floor = load.stop()
        load.judge(verdicts)
        judge_raced(found, verdicts)
        if options.driver:
            judge_driven(figures, verdicts)
        done = dict(changer.done)
        verdicts.check("changes of every kind were made", len(done) == 5, str(done), str(done))
        odd = set(changer.refused) - REFUSALS
        verdicts.check("refusals are those of a map that has changed", not odd, str(dict(changer.refused)), str(odd))
        server.stop()
        verdicts.sound(server)
    floor = [took * 1e3 for took in floor]
    rows = histogram({**pauses, "all": sum(pauses.values(), []), "write and fdatasync": floor})
    table("milliseconds: the pause of writes of each change, beside what the disk takes", rows[0], rows[1:])
    code = verdicts.exit_code()
    if options.report:
        calls = f"{sum(worker.calls for worker in load.workers):,} calls of the SDK, {found.ops:,} of clients that race " \
                f"({found.histories:,} histories)" + (f", {figures['ops']:,} of the load driver" if figures else "")
        passed = "nothing failed" if code == 0 else f"{verdicts.failures} verdicts FAILED"
        options.report.write_text(report(rows, f"{dict(done)}; {calls}; {passed}."))
    return code


if __name__ == "__main__":
    made = cli.parser(__doc__)
    made.add_argument("--changes", type=int, help="changes of the map (default 1000, small 60)")
    made.add_argument("--seed", type=int, default=1, help="which changes")
    made.add_argument("--driver", type=pathlib.Path, help="the load driver's program (default: it does not run)")
    made.add_argument("--report", type=pathlib.Path, help="write the histogram of pauses here, as markdown")
    made.add_argument("--rate", type=int, default=1000, help="the driver's requests a second (default 1000)")
    chosen = cli.parse(made)
    chosen.changes = chosen.changes or (60 if chosen.small else 1000)
    cli.run(main, chosen)

#!/usr/bin/env python3
"""A full disk.

Runs the server on a small file system of its own (an ext4 image over a loop device, else tmpfs), fills it, and checks:

* a write without room answers an HTTP error with an x-ms-error-code, and a refused write leaves nothing half-made;
* reads and listings go on, and everything acknowledged is there;
* kill -9 while full: the server starts again on the full disk and everything acknowledged is there;
* deletes work on a full disk, and once their space is back writes succeed again, without a restart.

Then with two disks, of which the first, with the coordinator's file, is small and is filled by a file beside the data:

* uploads, Create Container, new accounts and splits of partitions are each done or answered 507 in time, and say what to do;
* reads go on, and `/readyz?verbose` names the disk;
* the server's log says it a few times, not with every refusal;
* once there is room all of them are done again, without a restart, and everything acknowledged is there.

Needs root, for mounting; without it, or where mounting is refused, the script says so and exits with 77 (skipped).
"""

import collections
import concurrent.futures
import contextlib
import itertools
import os
import random
import re
import subprocess
import time

from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError

from lib import cli
from lib.account import DEV_NAME, PerThread
from lib.changes import Admin
from lib.content import content, sha256
from lib.measure import wait_until
from lib.report import Progress, Verdicts, mib

CONTAINER = "full"
THREADS = 8
SIZES = (1 << 20, 1 << 20, 1 << 20, 100 << 10, 20 << 10, 2 << 10)
REFUSALS_IN_A_ROW = 4
# Of the first of two disks: rounds at most, and those after the coordinator's file found no room.
ROUNDS, ROUNDS_WITHOUT_ROOM = 400, 40
SKIPPED = 77

# A split may be refused so when many partitions that were split shortly before give up what they
# share. It has nothing to do with room.
BUSY = "the partitions are too busy"


class CannotMount(Exception):
    """Neither kind of small file system could be mounted."""


def mount(folder, image, size_mib):
    """Mounts a new file system of `size_mib` on `folder`. Returns its kind."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(image, "wb") as file:
        file.truncate(size_mib << 20)
    loop = (["mkfs.ext4", "-q", "-F", "-m", "0", str(image)], ["mount", "-o", "loop", str(image), str(folder)])
    memory = (["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "blockyard-full", str(folder)],)
    reasons = []
    for kind, commands in (("ext4 over a loop device", loop), ("tmpfs", memory)):
        try:
            for command in commands:
                subprocess.run(command, check=True, capture_output=True, text=True)
            return kind
        except FileNotFoundError as error:
            reasons.append(f"{kind}: {error}")
        except subprocess.CalledProcessError as error:
            reasons.append(f"{kind}: {error.stderr.strip()}")
    raise CannotMount("; ".join(reasons))


@contextlib.contextmanager
def small_file_system(scratch, size_mib):
    """Yields (folder, kind); unmounts in the end."""
    folder = scratch / "small"
    kind = mount(folder, scratch / "small.img", size_mib)
    try:
        yield folder, kind
    finally:
        subprocess.run(["umount", str(folder)], check=False)


def free(folder):
    """Bytes free on the file system of `folder`."""
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize


class Store:
    """The acknowledged and the refused changes."""

    def __init__(self, account):
        self.clients = PerThread(account, CONTAINER, read_timeout=60)
        self.acknowledged, self.refused, self.strange = {}, {}, []

    def put(self, name, size):
        """Writes one blob. Returns whether it was acknowledged; notes how it was refused."""
        data = content(name, size)
        try:
            self.clients.blob(name).upload_blob(data)
        except HttpResponseError as error:
            self.refused[name] = (size, error.status_code, error.error_code)
            if not error.error_code or error.status_code < 400:
                self.strange.append(f"{name}: {error.status_code} with code {error.error_code}")
            return False
        except AzureError as error:
            self.refused[name] = (size, None, type(error).__name__)
            self.strange.append(f"{name}: no answer: {error}")
            return False
        self.acknowledged[name] = size
        return True

    def fill(self, folder, seed):
        """Writes from many threads until each was refused a few times in a row at every size."""
        number = itertools.count()
        room = free(folder)

        def run(worker):
            dice, refusals = random.Random(f"{seed}/{worker}"), 0
            while refusals < REFUSALS_IN_A_ROW * len(SIZES):
                # After a refusal smaller ones may still fit; they fill the rest.
                size = dice.choice(SIZES)
                refusals = 0 if self.put(f"{seed}/{next(number):06}", size) else refusals + 1
                progress.move_to((room - free(folder)) / (1 << 20))
                if len(self.acknowledged) > 1_000_000:
                    return

        with Progress("fill the disk", room >> 20, "MiB") as progress:
            with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(run, range(THREADS)))

    def read_all(self, title):
        """Reads everything. Returns complaints."""

        def read(name):
            size = self.acknowledged.get(name)
            try:
                right = sha256(self.clients.blob(name).download_blob().readall()) == \
                    sha256(content(name, size or self.refused[name][0]))
                return None if right else f"{name}: wrong bytes"
            except ResourceNotFoundError:
                return None if size is None else f"{name}: acknowledged, now missing"
            except AzureError as error:
                return f"{name}: {error}"

        names = list(self.acknowledged) + list(self.refused)
        complaints = []
        with Progress(title, len(names), "blobs") as progress:
            with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
                for complaint in pool.map(read, names):
                    progress.advance()
                    if complaint:
                        complaints.append(complaint)
        return complaints

    def listed(self):
        """Complaints about the listing: everything acknowledged is in it, and nothing never asked for."""
        names = {item.name for item in self.clients.container().list_blobs()}
        missing, extra = set(self.acknowledged) - names, names - set(self.acknowledged) - set(self.refused)
        return [f"not listed: {n}" for n in missing] + [f"listed, never written: {n}" for n in extra]


def writes_resume(store, options):
    """Waits until a few writes in a row succeed. Returns the seconds, or None."""
    number = itertools.count()
    began = time.monotonic()
    good = lambda: all(store.put(f"resumed/{next(number):04}", 100 << 10) for _ in range(8))
    return time.monotonic() - began if wait_until(good, options.wait_seconds, every=1) else None


def scenario(server, folder, options, verdicts):
    """Fill, read, kill, read, delete, write again."""
    server.account.service().create_container(CONTAINER)
    store = Store(server.account)
    store.fill(folder, "fill")
    verdicts.check("disk filled, then writes refused", bool(store.refused) and bool(store.acknowledged), "both",
                   f"{len(store.acknowledged):,} acknowledged, {len(store.refused):,} refused")
    answers = sorted({row[1:] for row in store.refused.values()}, key=str)
    verdicts.none("each refusal is an HTTP error with a code", store.strange)
    verdicts.figure("how writes were refused", ", ".join(f"{status} {code}" for status, code in answers))
    verdicts.figure("free space when full", mib(free(folder)))
    verdicts.none("full: everything acknowledged reads back", store.read_all("read while full"))
    verdicts.none("full: listing", store.listed())
    server.kill()
    verdicts.figure("restart on the full disk", f"{server.start():.2f} s")
    verdicts.none("full, after kill -9: everything acknowledged reads back", store.read_all("read after kill -9"))
    verdicts.none("full, after kill -9: listing", store.listed())
    doomed = [name for number, name in enumerate(sorted(store.acknowledged)) if number % 2]
    failures = []
    with Progress("delete half on the full disk", len(doomed), "blobs") as progress:
        for name in doomed:
            try:
                store.clients.blob(name).delete_blob()
                del store.acknowledged[name]
            except AzureError as error:
                failures.append(f"{name}: {error}")
            progress.advance()
    verdicts.none("deletes on a full disk", failures)
    store.strange.clear()
    resumed = writes_resume(store, options)
    verdicts.check("writes resume without a restart", resumed is not None, f"<= {options.wait_seconds} s",
                   f"{resumed:.1f} s" if resumed is not None else "never")
    verdicts.none("meanwhile each refusal had a code", store.strange)
    verdicts.none("in the end: everything acknowledged reads back", store.read_all("read in the end"))
    verdicts.equal("exit code after SIGTERM", server.stop(), 0)
    verdicts.sound(server)


def fill_beside(path):
    """Writes a file until its file system has no room for another byte."""
    with open(path, "wb", buffering=0) as file:
        for size in (1 << 20, 4 << 10, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))
        with contextlib.suppress(OSError):
            os.fsync(file.fileno())


class Changes:
    """Repeats changes that need room on the first disk, and records their outcomes and unexpected ones."""

    def __init__(self, server, store):
        self.admin, self.store, self.service = Admin(server), store, server.account.service(read_timeout=60)
        self.number, self.made, self.texts = itertools.count(), [], set()
        self.came, self.wrong, self.longest = collections.Counter(), [], 0.0

    def round(self):
        """One of each, all with names of their own. Returns whether all were done."""
        number = next(self.number)
        border = f"{DEV_NAME}/{CONTAINER}/two/{number:05}"
        done = [self.note("upload", lambda: self.upload(f"two/{number:05}", SIZES[number % len(SIZES)])),
                self.note("container", lambda: self.container(f"box{number:05}")),
                self.note("account", lambda: self.account(f"fresh{number:05}")),
                self.note("split", lambda: self.command("/partitions/split", {"at": [border]}))]
        return all(done)

    def note(self, what, call):
        """Calls and counts. Returns whether it was done."""
        began = time.monotonic()
        try:
            status, text = call()
        except (AzureError, OSError) as error:
            status, text = None, str(error)
        self.longest = max(self.longest, time.monotonic() - began)
        is_done = status in (200, 201)
        self.came[f"{what} {'done' if is_done else status}"] += 1
        if is_done or BUSY in text:
            return is_done
        if status == 507 and "InsufficientStorage" in text:
            self.texts.add(text)
        else:
            self.wrong.append(f"{what}: {status} {text}")
        return False

    def upload(self, name, size):
        """Puts a blob; (status, text)."""
        if self.store.put(name, size):
            return 201, ""
        _, status, code = self.store.refused[name]
        return status, str(code)

    def container(self, name):
        """Makes a container; (status, text)."""
        try:
            self.service.create_container(name)
        except HttpResponseError as error:
            return error.status_code, f"{error.error_code} {error}"
        self.made.append(name)
        return 201, ""

    def account(self, name):
        """Makes an account; (status, text)."""
        status, text = self.command("/accounts", {"name": name})
        if status in (200, 201):
            self.made.append(name)
        return status, text

    def command(self, path, body):
        """Sends an admin command; (status, text)."""
        status, answer = self.admin.ask("POST", path, body)
        return status, str(answer)


def first_of_two(server, folder, options, verdicts):
    """Fill the first disk, change, read, make room, change again."""
    server.account.service().create_container(CONTAINER)
    store = Store(server.account)
    changes = Changes(server, store)
    verdicts.check("two disks, before: all is done", all([changes.round() for _ in range(8)]), "done", str(dict(changes.came)))
    changes.came.clear()
    fill_beside(folder / "beside")
    verdicts.figure("two disks: free space on the first", mib(free(folder)))
    without_room = lambda: sum("coordinator.redb" in text for text in changes.texts)
    began, rounds_without_room = time.monotonic(), 0
    with Progress("change on a full first disk", ROUNDS, "rounds") as progress:
        for _ in range(ROUNDS):
            changes.round()
            progress.advance()
            rounds_without_room += bool(without_room())
            if rounds_without_room > ROUNDS_WITHOUT_ROOM:
                break
    verdicts.figure("two disks, full: what came of it", ", ".join(f"{what}: {n}" for what, n in sorted(changes.came.items())))
    verdicts.none("two disks, full: done or 507", changes.wrong)
    verdicts.check("two disks, full: the coordinator's file found no room", bool(rounds_without_room), "some refusals",
                   f"{sum(n for what, n in changes.came.items() if '507' in what):,}")
    naming = [text for text in changes.texts if "coordinator.redb" in text]
    lacks = [text for text in naming if not re.search(r"[0-9]+ bytes are free", text) or "free some space" not in text]
    verdicts.none("two disks, full: refusals say how much is free and what to do", lacks)
    verdicts.check("two disks, full: each is answered in time", changes.longest < 30, "< 30 s", f"{changes.longest:.1f} s")
    verdicts.none("two disks, full: everything acknowledged reads back", store.read_all("read while full"))
    verdicts.none("two disks, full: listing", store.listed())
    ready = lambda: server.admin("/readyz?verbose")
    # Space is looked at every few seconds.
    wait_until(lambda: "disk 0: 100 % full" in ready()[1], 60)
    status, text = ready()
    verdicts.check("two disks, full: /readyz?verbose says so", (status, "disk 0: 100 % full" in text) == (200, True),
                   "200, disk 0", f"{status}, {', '.join(text.split(chr(10)))}")
    log_lines = lambda: server.log_path.read_text(errors="replace").splitlines()
    said = lambda: [line for line in log_lines() if "the coordinator's file" in line]
    seconds = time.monotonic() - began
    verdicts.check("two disks, full: lines of the log about the file", 1 <= len(said()) <= 1 + seconds / 60, "once a minute",
                   f"{len(said()):,} in {seconds:.0f} s")
    (folder / "beside").unlink()
    began = time.monotonic()
    changes.wrong.clear()
    resumed = wait_until(changes.round, options.wait_seconds, every=0.2)
    verdicts.check("two disks: all is done again without a restart", resumed, f"<= {options.wait_seconds} s",
                   f"{time.monotonic() - began:.1f} s" if resumed else "never")
    verdicts.none("two disks: meanwhile done or 507", changes.wrong)
    again = wait_until(lambda: any("finds room again" in line for line in said()), 30)
    verdicts.check("two disks: the log says that there is room again", again, "a line", f"{len(said()):,} lines in all")
    verdicts.none("two disks, in the end: everything acknowledged reads back", store.read_all("read in the end"))
    found = {one.name for one in changes.service.list_containers()}
    found |= {one["name"] for one in changes.admin.ask("GET", "/accounts")[1]["accounts"]}
    verdicts.none("two disks, in the end: containers and accounts", set(changes.made) - found)
    verdicts.equal("two disks: exit code after SIGTERM", server.stop(), 0)
    verdicts.sound(server, "two disks: blockyard check")


def main(options, scratch):
    verdicts = Verdicts("full disk")
    try:
        with small_file_system(scratch, options.mib) as (folder, kind):
            verdicts.figure("file system", f"{kind}, {options.mib} MiB")
            with cli.server(options, scratch, data=[folder / "data"]) as server:
                scenario(server, folder, options, verdicts)
        with small_file_system(scratch, options.mib) as (folder, _):
            with cli.server(options, scratch, data=[folder / "data", scratch / "second"]) as server:
                first_of_two(server, folder, options, verdicts)
    except CannotMount as error:
        print(f"skipped: no small file system can be mounted here ({error})")
        return SKIPPED
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--mib", type=int, default=400, help="size of the file system")
    flags.add_argument("--wait-seconds", type=float, default=120, help="longest wait for writes to resume")
    cli.run(main, cli.parse(flags))

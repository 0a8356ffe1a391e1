#!/usr/bin/env python3
"""A full disk.

Runs the server on a small file system of its own (an ext4 image over a loop device, else tmpfs), fills it, and asks:

* a write without room answers an HTTP error with an x-ms-error-code, and a refused write leaves nothing half-made;
* reads and listings go on, and everything acknowledged is there;
* kill -9 while full: the server starts again on the full disk and everything acknowledged is there;
* deletes work on a full disk, and once their space is back writes succeed again, without a restart.

Needs root, for mounting; without it, or where mounting is refused, the script says so and exits with 77 (skipped).
"""

import concurrent.futures
import contextlib
import itertools
import os
import random
import subprocess
import time

from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError

from lib import cli
from lib.account import PerThread
from lib.content import content, sha256
from lib.measure import wait_until
from lib.report import Progress, Verdicts, mib

CONTAINER = "full"
THREADS = 8
SIZES = (1 << 20, 1 << 20, 1 << 20, 100 << 10, 20 << 10, 2 << 10)
REFUSALS_IN_A_ROW = 4
SKIPPED = 77


class CannotMount(Exception):
    """Neither kind of small file system could be mounted."""


def mount(folder, image, size_mib):
    """Mounts a new file system of `size_mib` on `folder`. Answers its kind."""
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
    """What was acknowledged, and what was refused."""

    def __init__(self, account):
        self.clients = PerThread(account, CONTAINER, read_timeout=60)
        self.acknowledged, self.refused, self.strange = {}, {}, []

    def put(self, name, size):
        """Writes one blob. Answers whether it was acknowledged; notes how it was refused."""
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
                # After a refusal smaller ones may still fit: they are what fills the last corner.
                size = dice.choice(SIZES)
                refusals = 0 if self.put(f"{seed}/{next(number):06}", size) else refusals + 1
                progress.move_to((room - free(folder)) / (1 << 20))
                if len(self.acknowledged) > 1_000_000:
                    return

        with Progress("fill the disk", room >> 20, "MiB") as progress:
            with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(run, range(THREADS)))

    def read_all(self, title):
        """Reads everything. Answers complaints."""

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
    """Waits until a few writes in a row succeed. Answers the seconds, or None."""
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


def main(options, scratch):
    verdicts = Verdicts("full disk")
    try:
        with small_file_system(scratch, options.mib) as (folder, kind):
            verdicts.figure("file system", f"{kind}, {options.mib} MiB")
            with cli.server(options, scratch, data=[folder / "data"]) as server:
                scenario(server, folder, options, verdicts)
    except CannotMount as error:
        print(f"skipped: no small file system can be mounted here ({error})")
        return SKIPPED
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--mib", type=int, default=400, help="size of the file system")
    flags.add_argument("--wait-seconds", type=float, default=120, help="longest wait for writes to resume")
    cli.run(main, cli.parse(flags))

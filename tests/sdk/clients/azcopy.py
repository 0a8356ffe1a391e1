#!/usr/bin/env python3
"""AzCopy: upload, download, sync, remove, set-properties, and service-to-service of every kind of blob, between two
accounts of a server and between two servers."""

import base64
import hashlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from azure.storage.blob import ContentSettings, StandardBlobTier
from lib import accounts, cli, trees
from lib.azcopy import VERSION, AzCopy, address, program
from lib.content import content, pieces, sha256
from lib.judged import Judged, equal, parse
from lib.server import Server

KINDS = ("BlockBlob", "AppendBlob", "PageBlob")
MIB = 1 << 20
# AzCopy writes a block blob below 256 MiB in one request and a larger one as blocks.
LARGE_MIB = 260
LARGE_SMALL_TIER_MIB = 20
BLOCK_MIB = 8
# The accounts: two of one server, one of another.
FIRST, SECOND, ELSEWHERE = range(3)
# AzCopy takes two addresses that differ in the port alone for the same blob ("source and destination are the same").
COPY_OF = "copy-of-"
# The other server fetches from the first one, which is on the loopback address like everything here.
FETCH_FROM_LOOPBACK = "--copy-source-allow=127.0.0.1"


def write_file(path, size):
    """A file that needs no more memory than one piece."""
    with open(path, "wb") as out:
        for piece in pieces(path.name, size, 4 * MIB):
            out.write(piece)
    return path


def digest(blob):
    """The bytes of a blob, read in parallel, as their digest."""
    return sha256(blob.download_blob(max_concurrency=4).readall())


class Yard:
    """The accounts, their signatures and AzCopy."""

    def __init__(self, server, other, scratch):
        self.scratch = scratch
        self.accounts = (server.account, accounts.second(server), other.account)
        self.signatures = [accounts.sas(account) for account in self.accounts]
        self.azcopy = AzCopy(program(), scratch)

    def container(self, which, name):
        """A new container of one account."""
        return self.accounts[which].service(retries=3).create_container(name)

    def at(self, which, container, name=""):
        """An address with its signature."""
        return address(self.accounts[which], self.signatures[which], container, name)


def up_and_down(yard):
    """A tree up, listed, down again."""
    tree = trees.make(yard.scratch / "tree")
    container = yard.container(FIRST, "tree")
    yard.azcopy.run("copy", f"{tree}/*", yard.at(FIRST, "tree"), "--recursive", "--put-md5", "--from-to=LocalBlob",
                    "--blob-tags=kind=test&by=azcopy", "--metadata=origin=tree")
    equal(sorted(b.name for b in container.list_blobs()), sorted(trees.FILES))
    found = container.get_blob_client("dir/inner.bin")
    equal((found.get_blob_properties().metadata.get("origin"), found.get_blob_tags()),
          ("tree", {"kind": "test", "by": "azcopy"}))
    back = yard.scratch / "back"
    back.mkdir()
    yard.azcopy.run("copy", yard.at(FIRST, "tree", "*").replace("%2A", "*"), back, "--recursive", "--check-md5=FailIfDifferent",
                    "--from-to=BlobLocal")
    trees.same(tree, back)


def kind_up_and_down(yard, kind, size):
    """One file up as a kind of blob, down again."""
    name = f"{kind.lower()}-{size}"
    yard.container(FIRST, name)
    source = write_file(yard.scratch / f"{name}.bin", size)
    yard.azcopy.run("copy", source, yard.at(FIRST, name, "x.vhd"), f"--blob-type={kind}", "--put-md5", "--from-to=LocalBlob",
                    f"--block-size-mb={BLOCK_MIB if kind != 'PageBlob' else 4}")
    back = yard.scratch / f"{name}.back"
    yard.azcopy.run("copy", yard.at(FIRST, name, "x.vhd"), back, "--check-md5=FailIfDifferent", "--from-to=BlobLocal")
    equal(sha256(back.read_bytes()), sha256(source.read_bytes()))
    back.unlink()
    source.unlink()


def sync(yard):
    """Changes and removals follow, in both directions and between accounts."""
    tree = trees.make(yard.scratch / "synced")
    container = yard.container(FIRST, "synced")
    yard.azcopy.run("sync", tree, yard.at(FIRST, "synced"), "--delete-destination=true", "--from-to=LocalBlob")
    equal(sorted(b.name for b in container.list_blobs()), sorted(trees.FILES))
    (tree / "empty").unlink()
    (tree / "added.txt").write_bytes(b"added")
    yard.azcopy.run("sync", tree, yard.at(FIRST, "synced"), "--delete-destination=true", "--from-to=LocalBlob")
    equal(sorted(b.name for b in container.list_blobs()), sorted({*trees.FILES, "added.txt"} - {"empty"}))
    other = yard.container(SECOND, "synced")
    yard.azcopy.run("sync", yard.at(FIRST, "synced"), yard.at(SECOND, "synced"), "--from-to=BlobBlob")
    equal(sorted(b.name for b in other.list_blobs()), sorted(b.name for b in container.list_blobs()))
    back = yard.scratch / "synced-back"
    back.mkdir()
    yard.azcopy.run("sync", yard.at(SECOND, "synced"), back, "--from-to=BlobLocal")
    trees.same(tree, back)


def set_properties(yard):
    """Tier, metadata and tags of one blob; then the tier of a whole folder."""
    container = yard.container(FIRST, "properties")
    for name in ("a/b", "a/c", "d"):
        container.upload_blob(name, b"x")
    yard.azcopy.run("set-properties", yard.at(FIRST, "properties", "a/b"), "--from-to=BlobNone", "--block-blob-tier=cool",
                    "--metadata=one=1", "--blob-tags=two=2")
    blob = container.get_blob_client("a/b")
    found = blob.get_blob_properties()
    equal((found.blob_tier, found.metadata, blob.get_blob_tags()), ("Cool", {"one": "1"}, {"two": "2"}))
    yard.azcopy.run("set-properties", yard.at(FIRST, "properties", "a"), "--from-to=BlobNone", "--block-blob-tier=cold",
                    "--recursive")
    equal({b.name: b.blob_tier for b in container.list_blobs()}, {"a/b": "Cold", "a/c": "Cold", "d": "Hot"})


def remove(yard):
    """One blob, one with its snapshots, then a whole tree."""
    container = yard.container(FIRST, "removed")
    for name in trees.FILES:
        container.upload_blob(name, b"x")
    container.get_blob_client("empty").create_snapshot()
    yard.azcopy.run("remove", yard.at(FIRST, "removed", "plain.txt"), "--from-to=BlobTrash")
    equal("plain.txt" in [b.name for b in container.list_blobs()], False)
    yard.azcopy.run("remove", yard.at(FIRST, "removed", "empty"), "--from-to=BlobTrash", "--delete-snapshots=include")
    equal([b.name for b in container.list_blobs(include=["snapshots"]) if b.name == "empty"], [])
    yard.azcopy.run("remove", yard.at(FIRST, "removed"), "--recursive", "--from-to=BlobTrash")
    equal([b.name for b in container.list_blobs()], [])


def between(yard, kind, size, to):
    """One blob of a kind from the first account to another one, with all its properties."""
    name = f"s2s-{kind.lower()}-{size}-{to}"
    source, target = yard.container(FIRST, name), yard.container(to, COPY_OF + name)
    blob = source.get_blob_client("dir/one + two%.bin")
    whole = hashlib.md5()
    for piece in pieces(name, size, 4 * MIB):
        whole.update(piece)
    about = ContentSettings(content_type="text/x-test; charset=utf-8", content_encoding="identity", content_language="de-CH",
                            content_disposition='attachment; filename="a b.bin"', cache_control="max-age=7, private",
                            content_md5=bytearray(whole.digest()))
    blob.upload_blob(pieces(name, size, 4 * MIB), blob_type=kind, length=size, metadata={"a": "1", "b": "x y"},
                     tags={"k": "v w"}, content_settings=about, max_concurrency=1, overwrite=True)
    if kind == "BlockBlob":
        blob.set_standard_blob_tier(StandardBlobTier.COOL)
    wanted = described(blob)
    equal(base64.b64encode(wanted[3]["content_md5"]), base64.b64encode(whole.digest()))
    yard.azcopy.run("copy", yard.at(FIRST, name), yard.at(to, COPY_OF + name), "--recursive", "--from-to=BlobBlob",
                    "--s2s-preserve-blob-tags", "--as-subdir=false")
    copied = target.get_blob_client("dir/one + two%.bin")
    equal(described(copied), wanted)
    equal(digest(copied), digest(blob))
    source.delete_container()
    target.delete_container()


def described(blob):
    """Properties of a blob that its copy must have too."""
    found = blob.get_blob_properties()
    return found.blob_type, found.size, found.metadata, dict(found.content_settings), found.blob_tier, blob.get_blob_tags()


def tree_between(yard, to):
    """Odd names between accounts; sync copies later changes and deletions."""
    name = f"tree-to-{to}"
    source, target = yard.container(FIRST, name), yard.container(to, COPY_OF + name)
    files = {blob: content(blob, size) for blob, size in trees.FILES.items()}
    for blob, data in files.items():
        source.upload_blob(blob, data)
    yard.azcopy.run("copy", yard.at(FIRST, name), yard.at(to, COPY_OF + name), "--recursive", "--from-to=BlobBlob",
                    "--as-subdir=false")
    found = lambda: {b.name: target.download_blob(b.name).readall() for b in target.list_blobs()}
    same(found(), files)
    source.delete_blob("with space.txt")
    source.upload_blob("dir/inner.bin", b"other", overwrite=True)
    del files["with space.txt"]
    files["dir/inner.bin"] = b"other"
    yard.azcopy.run("sync", yard.at(FIRST, name), yard.at(to, COPY_OF + name), "--from-to=BlobBlob", "--delete-destination=true")
    same(found(), files)


def same(found, wanted):
    """Raises unless two containers' blobs are the same."""
    equal(sorted(found), sorted(wanted), "names:")
    equal([name for name in wanted if found[name] != wanted[name]], [], "blobs that differ:")


def main(options, scratch):
    judged = Judged("AzCopy", VERSION, options)
    large = (LARGE_SMALL_TIER_MIB if options.small else LARGE_MIB) * MIB
    elsewhere = Server(options.binary, [scratch / "elsewhere"], scratch / "elsewhere.log", [FETCH_FROM_LOOPBACK])
    with elsewhere, cli.server(options, scratch, extra=accounts.BOTH) as server:
        elsewhere.start()
        yard = Yard(server, elsewhere, scratch)
        for name, run in (("upload and download", up_and_down), ("sync", sync), ("set-properties", set_properties),
                          ("remove", remove)):
            with judged.group(name):
                run(yard)
        sizes = (("small", 3 * MIB), (f"{large // MIB} MiB", large))
        for kind in KINDS:
            for label, size in sizes:
                with judged.group(f"upload and download, {kind}, {label}"):
                    kind_up_and_down(yard, kind, size)
        for where, to in (("account to account", SECOND), ("server to server", ELSEWHERE)):
            with judged.group(f"{where}, tree and sync"):
                tree_between(yard, to)
            for kind in KINDS:
                for label, size in sizes:
                    with judged.group(f"{where}, {kind}, {label}"):
                        between(yard, kind, size, to)
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

#!/usr/bin/env python3
"""AzCopy: upload, download, sync, remove, set-properties, and service-to-service of every kind of blob."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import accounts, cli, trees
from lib.azcopy import VERSION, AzCopy, address, program
from lib.content import content, pieces, sha256
from lib.judged import Judged, equal, parse

KINDS = ("BlockBlob", "AppendBlob", "PageBlob")
MIB = 1 << 20
# AzCopy writes a block blob below 256 MiB in one request and a larger one as blocks.
LARGE_MIB = 260
LARGE_SMALL_TIER_MIB = 20
BLOCK_MIB = 8


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
    """Two accounts, their signatures and AzCopy."""

    def __init__(self, server, scratch):
        self.scratch = scratch
        self.accounts = (server.account, accounts.second(server))
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
    container = yard.container(0, "tree")
    yard.azcopy.run("copy", f"{tree}/*", yard.at(0, "tree"), "--recursive", "--put-md5", "--from-to=LocalBlob",
                    "--blob-tags=kind=test&by=azcopy", "--metadata=origin=tree")
    equal(sorted(b.name for b in container.list_blobs()), sorted(trees.FILES))
    found = container.get_blob_client("dir/inner.bin")
    equal((found.get_blob_properties().metadata.get("origin"), found.get_blob_tags()),
          ("tree", {"kind": "test", "by": "azcopy"}))
    back = yard.scratch / "back"
    back.mkdir()
    yard.azcopy.run("copy", yard.at(0, "tree", "*").replace("%2A", "*"), back, "--recursive", "--check-md5=FailIfDifferent",
                    "--from-to=BlobLocal")
    trees.same(tree, back)


def kind_up_and_down(yard, kind, size):
    """One file up as a kind of blob, down again."""
    name = f"{kind.lower()}-{size}"
    yard.container(0, name)
    source = write_file(yard.scratch / f"{name}.bin", size)
    yard.azcopy.run("copy", source, yard.at(0, name, "x.vhd"), f"--blob-type={kind}", "--put-md5", "--from-to=LocalBlob",
                    f"--block-size-mb={BLOCK_MIB if kind != 'PageBlob' else 4}")
    back = yard.scratch / f"{name}.back"
    yard.azcopy.run("copy", yard.at(0, name, "x.vhd"), back, "--check-md5=FailIfDifferent", "--from-to=BlobLocal")
    equal(sha256(back.read_bytes()), sha256(source.read_bytes()))
    back.unlink()
    source.unlink()


def sync(yard):
    """Changes and removals follow, in both directions and between accounts."""
    tree = trees.make(yard.scratch / "synced")
    container = yard.container(0, "synced")
    yard.azcopy.run("sync", tree, yard.at(0, "synced"), "--delete-destination=true", "--from-to=LocalBlob")
    equal(sorted(b.name for b in container.list_blobs()), sorted(trees.FILES))
    (tree / "empty").unlink()
    (tree / "added.txt").write_bytes(b"added")
    yard.azcopy.run("sync", tree, yard.at(0, "synced"), "--delete-destination=true", "--from-to=LocalBlob")
    equal(sorted(b.name for b in container.list_blobs()), sorted({*trees.FILES, "added.txt"} - {"empty"}))
    other = yard.container(1, "synced")
    yard.azcopy.run("sync", yard.at(0, "synced"), yard.at(1, "synced"), "--from-to=BlobBlob")
    equal(sorted(b.name for b in other.list_blobs()), sorted(b.name for b in container.list_blobs()))
    back = yard.scratch / "synced-back"
    back.mkdir()
    yard.azcopy.run("sync", yard.at(1, "synced"), back, "--from-to=BlobLocal")
    trees.same(tree, back)


def set_properties(yard):
    """Tier, metadata and tags of what is there."""
    container = yard.container(0, "properties")
    container.upload_blob("a/b", b"x")
    yard.azcopy.run("set-properties", yard.at(0, "properties", "a/b"), "--from-to=BlobNone", "--block-blob-tier=cool",
                    "--metadata=one=1", "--blob-tags=two=2")
    blob = container.get_blob_client("a/b")
    found = blob.get_blob_properties()
    equal((found.blob_tier, found.metadata, blob.get_blob_tags()), ("Cool", {"one": "1"}, {"two": "2"}))


def remove(yard):
    """One blob, then a whole tree."""
    container = yard.container(0, "removed")
    for name in trees.FILES:
        container.upload_blob(name, b"x")
    yard.azcopy.run("remove", yard.at(0, "removed", "plain.txt"), "--from-to=BlobTrash")
    equal("plain.txt" in [b.name for b in container.list_blobs()], False)
    yard.azcopy.run("remove", yard.at(0, "removed"), "--recursive", "--from-to=BlobTrash")
    equal([b.name for b in container.list_blobs()], [])


def between(yard, kind, size):
    """One blob of a kind from one account to the other, with its properties."""
    name = f"s2s-{kind.lower()}-{size}"
    source, target = yard.container(0, name), yard.container(1, name)
    blob = source.get_blob_client("dir/one + two%.bin")
    blob.upload_blob(pieces(name, size, 4 * MIB), blob_type=kind, length=size, metadata={"a": "1"},
                     tags={"k": "v"}, max_concurrency=1, overwrite=True)
    yard.azcopy.run("copy", yard.at(0, name), yard.at(1, name), "--recursive", "--from-to=BlobBlob",
                    "--s2s-preserve-blob-tags", "--as-subdir=false")
    copied = target.get_blob_client("dir/one + two%.bin")
    found, wanted = copied.get_blob_properties(), blob.get_blob_properties()
    equal((found.blob_type, found.size, found.metadata), (wanted.blob_type, size, {"a": "1"}))
    equal(copied.get_blob_tags(), {"k": "v"})
    equal(digest(copied), digest(blob))
    source.delete_container()
    target.delete_container()


def tree_between(yard):
    """Odd names between accounts."""
    source, target = yard.container(0, "from-tree"), yard.container(1, "to-tree")
    for name, size in trees.FILES.items():
        source.upload_blob(name, content(name, size))
    yard.azcopy.run("copy", yard.at(0, "from-tree"), yard.at(1, "to-tree"), "--recursive", "--from-to=BlobBlob",
                    "--as-subdir=false")
    found = {b.name: target.download_blob(b.name).readall() for b in target.list_blobs()}
    equal(sorted(found), sorted(trees.FILES))
    equal([n for n, size in trees.FILES.items() if found[n] != content(n, size)], [], "differ:")


def main(options, scratch):
    judged = Judged("AzCopy", VERSION, options)
    large = (LARGE_SMALL_TIER_MIB if options.small else LARGE_MIB) * MIB
    with cli.server(options, scratch, extra=accounts.BOTH) as server:
        yard = Yard(server, scratch)
        for name, run in (("upload and download", up_and_down), ("sync", sync), ("set-properties", set_properties),
                          ("remove", remove), ("service to service, tree", tree_between)):
            with judged.group(name):
                run(yard)
        for kind in KINDS:
            with judged.group(f"upload and download, {kind}"):
                kind_up_and_down(yard, kind, 3 * MIB)
        for kind in KINDS:
            for label, size in (("small", 3 * MIB), (f"{large // MIB} MiB", large)):
                with judged.group(f"service to service, {kind}, {label}"):
                    between(yard, kind, size)
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

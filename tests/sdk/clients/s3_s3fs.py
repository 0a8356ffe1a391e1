#!/usr/bin/env python3
"""s3fs (fsspec) over S3, and zarr on it: files in parts, ranges, copies, moves, lists; chunked arrays."""

import pathlib
import sys

# This file must not hide the package.
sys.path[0] = str(pathlib.Path(__file__).parents[1])

# pylint: disable=wrong-import-position
import numpy
import s3fs
import zarr
from lib import cli, s3_clients, trees
from lib.content import content
from lib.judged import Judged, equal, parse

BUCKET = "fsspec"


def files(system, account):
    """Written in parts, read in pieces, copied, moved."""
    data = content("file", 12 << 20)
    with system.open(f"{BUCKET}/dir/file.bin", "wb", block_size=5 << 20) as out:
        out.write(data)
    equal(s3_clients.through_blob(account, BUCKET, "dir/file.bin")[""] == data, True, "bytes through Blob:")
    with system.open(f"{BUCKET}/dir/file.bin", "rb") as source:
        source.seek(7_000_001)
        equal(source.read(99), data[7_000_001:7_000_100])
    system.copy(f"{BUCKET}/dir/file.bin", f"{BUCKET}/dir/copy.bin")
    system.mv(f"{BUCKET}/dir/copy.bin", f"{BUCKET}/moved.bin")
    equal(system.cat_file(f"{BUCKET}/moved.bin", start=5, end=9), data[5:9])
    equal(sorted(system.find(BUCKET)), [f"{BUCKET}/dir/file.bin", f"{BUCKET}/moved.bin"])


def trees_of(system, scratch):
    """A folder there and back."""
    tree = trees.make(scratch / "tree")
    system.put(str(tree), f"{BUCKET}/tree", recursive=True)
    system.invalidate_cache()
    system.get(f"{BUCKET}/tree", str(scratch / "back"), recursive=True)
    trees.same(tree, scratch / "back")


def blob(system, account):
    """What Blob wrote; metadata and tags."""
    data = s3_clients.written_by_blob(account, BUCKET)
    system.invalidate_cache()
    equal(system.cat_file(f"{BUCKET}/from-blob.bin") == data, True, "bytes:")
    system.setxattr(f"{BUCKET}/from-blob.bin", copy_kwargs={"ContentType": "x/y"}, color="green")
    equal(system.getxattr(f"{BUCKET}/from-blob.bin", "color"), "green")
    equal(account.service().get_blob_client(BUCKET, "from-blob.bin").get_blob_properties().metadata, {"color": "green"})
    system.put_tags(f"{BUCKET}/from-blob.bin", {"k": "v"})
    equal(system.get_tags(f"{BUCKET}/from-blob.bin"), {"k": "v"})


def arrays(settings):
    """A chunked array, written, grown, read anew."""
    where, kept = f"s3://{BUCKET}/array.zarr", {"storage_options": settings}
    wanted = numpy.arange(90_000, dtype="i4").reshape(300, 300)
    made = zarr.create_array(where, shape=(300, 300), chunks=(50, 50), dtype="i4", **kept)
    made[:] = wanted
    equal(bool((zarr.open_array(where, mode="r", **kept)[:] == wanted).all()), True, "values:")
    zarr.open_array(where, mode="r+", **kept)[100:200] = 7
    equal(int(zarr.open_array(where, mode="r", **kept)[100:200].sum()), 7 * 300 * 100)


def main(options, scratch):
    judged = Judged("s3fs, zarr", f"{s3fs.__version__}, {zarr.__version__}", options)
    with cli.server(options, scratch) as server:
        account = server.account
        settings = {"key": account.name, "secret": account.key, "endpoint_url": s3_clients.endpoint(account),
                    "client_kwargs": {"region_name": s3_clients.REGION}}
        system = s3fs.S3FileSystem(**settings)
        system.mkdir(BUCKET)
        for name, run in (("files in parts", lambda: files(system, account)), ("folders", lambda: trees_of(system, scratch)),
                          ("what Blob wrote, metadata, tags", lambda: blob(system, account)),
                          ("zarr", lambda: arrays(settings))):
            with judged.group(name):
                run()
        with judged.group("rm and rmdir"):
            system.invalidate_cache()
            system.rm(BUCKET, recursive=True)
            equal([one.name for one in account.service().list_containers() if one.name == BUCKET], [])
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

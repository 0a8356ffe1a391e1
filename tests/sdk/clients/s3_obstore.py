#!/usr/bin/env python3
"""obstore (Rust's object_store in Python) over S3: puts with modes, uploads in parts, ranges, copies, lists, signed URLs."""

import datetime
import importlib.metadata
import pathlib
import sys
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
import obstore
from lib import cli, s3_clients
from lib.content import content
from lib.judged import Judged, equal, parse
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import S3Store

BUCKET = "obstore"


def refused(call, *kinds):
    """Whether the call is refused so."""
    try:
        call()
    except kinds:
        return True
    return False


def modes(store):
    """Create, overwrite, update by ETag."""
    first = obstore.put(store, "mode", b"one", mode="create")
    equal(refused(lambda: obstore.put(store, "mode", b"two", mode="create"), AlreadyExistsError), True, "created twice:")
    second = obstore.put(store, "mode", b"three", mode={"e_tag": first["e_tag"]})
    stale = {"e_tag": first["e_tag"]}
    equal(refused(lambda: obstore.put(store, "mode", b"four", mode=stale), PreconditionError), True, "updated by an old tag:")
    equal(obstore.head(store, "mode")["e_tag"], second["e_tag"])
    equal(bytes(obstore.get(store, "mode").bytes()), b"three")


def parts(store, account):
    """A large object in parts, read whole and in ranges."""
    data = content("parts", 22 << 20)
    obstore.put(store, "dir/parts", data, use_multipart=True, chunk_size=5 << 20)
    equal(s3_clients.through_blob(account, BUCKET, "dir/parts")[""] == data, True, "bytes through Blob:")
    ranges = obstore.get_ranges(store, "dir/parts", starts=[0, 7_000_000], lengths=[10, 99])
    equal([bytes(one) for one in ranges], [data[:10], data[7_000_000:7_000_099]])


def copies(store):
    """Copy, copy that replaces nothing, rename."""
    obstore.copy(store, "dir/parts", "dir/copy")
    obstore.rename(store, "dir/copy", "dir/renamed")
    names = sorted(found["path"] for page in obstore.list(store, "dir/") for found in page)
    equal(names, ["dir/parts", "dir/renamed"])
    equal(obstore.list_with_delimiter(store)["common_prefixes"], ["dir"])


def blob(store, account):
    """What Blob wrote, streamed, and by a signed URL."""
    data = s3_clients.written_by_blob(account, BUCKET)
    equal(b"".join(bytes(piece) for piece in obstore.get(store, "from-blob.bin").stream()) == data, True, "bytes:")
    url = obstore.sign(store, "GET", "from-blob.bin", datetime.timedelta(minutes=5))
    with urllib.request.urlopen(url, timeout=60) as answer:
        equal(answer.read() == data, True, "bytes of the signed URL:")
    found = [one["path"] for page in obstore.list(store) for one in page]
    obstore.delete(store, found)
    equal([one for page in obstore.list(store) for one in page], [])


def main(options, scratch):
    judged = Judged("obstore", importlib.metadata.version("obstore"), options)
    with cli.server(options, scratch) as server:
        account = server.account
        account.service().create_container(BUCKET)
        store = S3Store(BUCKET, endpoint=s3_clients.endpoint(account), access_key_id=account.name, secret_access_key=account.key,
                        region=s3_clients.REGION, virtual_hosted_style_request=False, client_options={"allow_http": True})
        for name, run in (("put modes", lambda: modes(store)), ("parts and ranges", lambda: parts(store, account)),
                          ("copy and rename", lambda: copies(store)), ("what Blob wrote", lambda: blob(store, account))):
            with judged.group(name):
                run()
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

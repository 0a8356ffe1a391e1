#!/usr/bin/env python3
"""minio-py over S3: puts, uploads in parts, composed objects, tags, presigned URLs and forms, removals of many objects."""

import datetime
import importlib.metadata
import io
import pathlib
import sys
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import cli, multipart, s3_clients
from lib.content import content
from lib.judged import Judged, equal, parse
from minio import Minio
from minio.commonconfig import ComposeSource, CopySource, Tags
from minio.datatypes import PostPolicy
from minio.deleteobjects import DeleteObject

BUCKET = "minio-py"


def put(client, account):
    """One request, parts, an unknown length; metadata and tags."""
    tags = Tags.new_object_tags()
    tags["k"] = "v"
    client.put_object(BUCKET, "small", io.BytesIO(b"small"), 5, metadata={"a": "b"}, tags=tags)
    large = content("large", 12 << 20)
    client.put_object(BUCKET, "large", io.BytesIO(large), len(large), part_size=5 << 20)
    client.put_object(BUCKET, "unknown", io.BytesIO(large), -1, part_size=5 << 20)
    equal(client.stat_object(BUCKET, "small").metadata["x-amz-meta-a"], "b")
    equal(dict(client.get_object_tags(BUCKET, "small")), {"k": "v"})
    equal(s3_clients.through_blob(account, BUCKET), {"small": b"small", "large": large, "unknown": large})


def copy(client):
    """Copied, and composed of parts of others."""
    client.copy_object(BUCKET, "copied", CopySource(BUCKET, "large"))
    client.compose_object(BUCKET, "composed", [ComposeSource(BUCKET, "large"), ComposeSource(BUCKET, "small")])
    equal(client.get_object(BUCKET, "composed").data == content("large", 12 << 20) + b"small", True, "bytes:")


def form(client, account):
    """A form, as minio-py signs it."""
    policy = PostPolicy(BUCKET, datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=5))
    policy.add_starts_with_condition("key", "form/")
    policy.add_content_length_range_condition(1, 100)
    fields = {**client.presigned_post_policy(policy), "key": "form/${filename}"}
    url = f"{s3_clients.endpoint(account)}/{BUCKET}"
    request = urllib.request.Request(url, multipart.body(fields.items()), {"content-type": multipart.KIND})
    with urllib.request.urlopen(request, timeout=60) as answer:
        equal(answer.status, 204)
    equal(client.get_object(BUCKET, "form/a.txt").data, b"content")


def read(client, account):
    """What Blob wrote, whole, in ranges, presigned."""
    data = s3_clients.written_by_blob(account, BUCKET)
    equal(client.get_object(BUCKET, "from-blob.bin").data == data, True, "bytes:")
    equal(client.get_object(BUCKET, "from-blob.bin", offset=100, length=50).data, data[100:150])
    with urllib.request.urlopen(client.presigned_get_object(BUCKET, "from-blob.bin"), timeout=60) as answer:
        equal(answer.read() == data, True, "presigned bytes:")


def remove(client):
    """Lists, then all is removed."""
    names = [found.object_name for found in client.list_objects(BUCKET, recursive=True)]
    equal(sorted(names), ["composed", "copied", "form/a.txt", "from-blob.bin", "large", "small", "unknown"])
    equal(list(client.remove_objects(BUCKET, [DeleteObject(name) for name in names])), [])
    client.remove_bucket(BUCKET)
    equal(client.bucket_exists(BUCKET), False)


def main(options, scratch):
    judged = Judged("minio-py", importlib.metadata.version("minio"), options)
    with cli.server(options, scratch) as server:
        account = server.account
        client = Minio(account.address, account.name, account.key, secure=False, region=s3_clients.REGION)
        client.make_bucket(BUCKET)
        for name, run in (("put, in parts", lambda: put(client, account)), ("copy and compose", lambda: copy(client)),
                          ("a browser form", lambda: form(client, account)), ("read what Blob wrote", lambda: read(client, account)),
                          ("list and remove", lambda: remove(client))):
            with judged.group(name):
                run()
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

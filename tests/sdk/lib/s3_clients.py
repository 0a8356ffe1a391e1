"""What scripts of S3 clients share: a bucket, the settings that clients take, and the same bytes seen through Blob.

What a client writes through S3 is read by the Blob SDK, and the reverse: one store, two protocols.
"""

import os
import pathlib
import sys

from . import trees
from .content import content
from .judged import equal

REGION = "us-east-1"


def endpoint(account):
    """The URL of the S3 front; buckets are in the path."""
    return f"http://{account.address}"


def environment(account, **more):
    """The variables that clients of AWS take, and nothing of the person who runs this."""
    # A bundle of certificates would only be for https, and litestream refuses it.
    kept = {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"}
    return {**kept, "AWS_ACCESS_KEY_ID": account.name, "AWS_SECRET_ACCESS_KEY": account.key, "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION, "AWS_ENDPOINT_URL": endpoint(account), "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull, **more}


def program(name):
    """A program beside this Python."""
    return pathlib.Path(sys.executable).parent / name


def through_blob(account, bucket, prefix=""):
    """{name: bytes} of what is in a bucket, as the Blob SDK shows it; names without the prefix."""
    container = account.service().get_container_client(bucket)
    names = [one.name for one in container.list_blobs(name_starts_with=prefix)]
    return {name.removeprefix(prefix): container.download_blob(name).readall() for name in names}


def seen_by_blob(account, bucket, prefix, folder):
    """The Blob SDK sees a folder that a client wrote."""
    wanted, found = trees.read(folder), through_blob(account, bucket, prefix)
    equal(sorted(found), sorted(wanted), "names through Blob:")
    equal([name for name in wanted if found[name] != wanted[name]], [], "files that differ through Blob:")


def written_by_blob(account, bucket, name="from-blob.bin", size=9 << 20):
    """A blob that the Blob SDK writes, in blocks; its bytes."""
    data = content(("blob", name), size)
    container = account.service().get_container_client(bucket)
    container.upload_blob(name, data, overwrite=True, max_concurrency=2)
    return data

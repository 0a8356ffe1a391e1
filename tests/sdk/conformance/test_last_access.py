"""Last-access times, on a server that tracks them."""

import datetime
import time

import pytest
from azure.storage.blob import BlobType
from lib.server import Server


@pytest.fixture
def tracking(request, tmp_path):
    """A server that tracks reads."""
    extra = ["--last-access-time=on"]
    with Server(request.config.getoption("--binary"), [tmp_path / "data"], tmp_path / "server.log", extra) as made:
        made.start()
        yield made
        assert made.stop() == 0


def restarted(server):
    """Stops the server in order, which writes the noted reads, and starts it again. Returns its container."""
    assert server.stop() == 0
    server.start()
    return server.account.service().get_container_client("place")


def test_first_read_of_a_day_is_remembered(tracking):
    place = tracking.account.service().create_container("place")
    for name in ("read", "head", "source"):
        place.upload_blob(name, b"bytes")
    made = {blob.name: blob.last_modified for blob in place.list_blobs()}
    listed = {blob.name: blob.last_accessed_on for blob in place.list_blobs()}
    assert listed == made, "a write counts too"
    time.sleep(1.1)
    before = place.get_blob_client("read").get_blob_properties()
    began = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    assert place.download_blob("read").readall() == b"bytes"
    place.get_blob_client("head").get_blob_properties()
    source = place.get_blob_client("source")
    place.get_blob_client("copy").start_copy_from_url(source.url)

    place = restarted(tracking)
    after = place.get_blob_client("read").get_blob_properties()
    assert (after.etag, after.last_modified) == (before.etag, before.last_modified)
    assert after.last_accessed_on >= began > after.last_modified
    listed = {blob.name: blob.last_accessed_on for blob in place.list_blobs()}
    assert listed["read"] == after.last_accessed_on
    assert listed["source"] >= began
    assert listed["head"] == made["head"], "looking at properties is no access"
    time.sleep(1.1)
    assert place.download_blob("read").properties.last_accessed_on == after.last_accessed_on
    assert tracking.metrics()["blockyard_last_access_dropped_total"] == 0

    place = restarted(tracking)
    again = place.get_blob_client("read").get_blob_properties()
    assert again.last_accessed_on == after.last_accessed_on, "the same day"
    time.sleep(1.1)
    place.upload_blob("read", b"new", overwrite=True)
    anew = place.get_blob_client("read").get_blob_properties()
    assert anew.last_accessed_on == anew.last_modified > again.last_accessed_on


def test_only_block_blobs_are_tracked(tracking):
    place = tracking.account.service().create_container("place")
    place.upload_blob("a", b"a", blob_type=BlobType.APPENDBLOB)
    place.upload_blob("p", bytes(512), blob_type=BlobType.PAGEBLOB)
    for name in ("a", "p"):
        assert place.download_blob(name).properties.last_accessed_on is None
    assert [blob.last_accessed_on for blob in place.list_blobs()] == [None, None]


def test_nothing_is_shown_when_it_is_off(container, blob):
    blob.upload_blob(b"x")
    assert blob.download_blob().properties.last_accessed_on is None
    assert blob.get_blob_properties().last_accessed_on is None
    assert [found.last_accessed_on for found in container.list_blobs()] == [None]

"""Snapshots and access tiers; what is asked of deleted blobs."""

import time
import uuid

import pytest
from azure.storage.blob import BlobBlock, StandardBlobTier
from conftest import block_id, refused


def of(container, blob, taken):
    """A client of a snapshot."""
    return container.get_blob_client(blob.blob_name, snapshot=taken["snapshot"])


def test_snapshot_keeps_what_was(container, blob):
    blob.upload_blob(b"first" * 2000, metadata={"a": "1"})
    before = blob.get_blob_properties()
    taken = blob.create_snapshot()
    assert taken["etag"] == before.etag
    blob.upload_blob(b"second", overwrite=True)
    kept = of(container, blob, taken)
    assert kept.download_blob().readall() == b"first" * 2000
    assert kept.download_blob(offset=3, length=7).readall() == (b"first" * 2000)[3:10]
    found = kept.get_blob_properties()
    assert (found.etag, found.metadata) == (before.etag, {"a": "1"})
    own = of(container, blob, blob.create_snapshot(metadata={"b": "2"}))
    assert own.get_blob_properties().metadata == {"b": "2"}
    assert blob.get_blob_properties().metadata == {}


def test_snapshot_of_blocks(container, blob):
    for number in range(100):
        blob.stage_block(block_id(number), bytes([number]) * 5000)
    blob.commit_block_list([BlobBlock(block_id(number)) for number in range(100)])
    taken = blob.create_snapshot()
    blob.commit_block_list([BlobBlock(block_id(7))])
    kept = of(container, blob, taken)
    assert len(kept.get_block_list("committed")[0]) == 100
    assert kept.download_blob().readall() == b"".join(bytes([n]) * 5000 for n in range(100))
    assert blob.download_blob().readall() == bytes([7]) * 5000
    container.get_blob_client("copy").upload_blob(kept.download_blob().readall())


def test_delete_says_what_of_snapshots(container, blob):
    blob.upload_blob(b"1")
    first, second = blob.create_snapshot(), blob.create_snapshot()
    refused(blob.delete_blob, 409, "SnapshotsPresent")
    of(container, blob, first).delete_blob()
    refused(of(container, blob, first).download_blob, 404, "BlobNotFound")
    blob.delete_blob(delete_snapshots="only")
    refused(of(container, blob, second).download_blob, 404, "BlobNotFound")
    third = blob.create_snapshot()
    blob.delete_blob(delete_snapshots="include")
    refused(of(container, blob, third).download_blob, 404, "BlobNotFound")
    assert not blob.exists()


def test_list_shows_snapshots_before_their_blob(container):
    expected = []
    for name, count in [("a", 2), ("b/c", 1), ("d", 0)]:
        client = container.get_blob_client(name)
        client.upload_blob(b"1")
        expected += [(name, client.create_snapshot()["snapshot"]) for _ in range(count)] + [(name, None)]
    for size in (1, 2, 100):
        pages = container.list_blobs(include=["snapshots", "metadata"], results_per_page=size).by_page()
        assert [(b.name, b.snapshot) for page in pages for b in page] == expected
    assert [b.name for b in container.list_blobs()] == ["a", "b/c", "d"]


def test_tiers(container, blob):
    blob.upload_blob(b"1")
    found = blob.get_blob_properties()
    assert (found.blob_tier, found.blob_tier_inferred, found.blob_tier_change_time) == ("Hot", True, None)
    blob.set_standard_blob_tier(StandardBlobTier.COOL)
    after = blob.get_blob_properties()
    assert (after.blob_tier, after.blob_tier_inferred, after.etag) == ("Cool", None, found.etag)
    assert after.blob_tier_change_time
    container.upload_blob("cold", b"1", standard_blob_tier=StandardBlobTier.COLD)
    assert {b.name: b.blob_tier for b in container.list_blobs()} == {"the-blob": "Cool", "cold": "Cold"}


def test_smart_tier(container, blob, wire):
    blob.upload_blob(b"1", standard_blob_tier=StandardBlobTier.SMART)
    found = blob.get_blob_properties()
    assert (found.blob_tier, found.smart_access_tier) == ("Smart", "Hot")
    listed, = container.list_blobs()
    assert (listed.blob_tier, listed.smart_access_tier) == ("Smart", "Hot")
    path = f"/{container.container_name}/the-blob"
    head = wire.request("HEAD", path).headers
    assert (head["x-ms-access-tier"], head["x-ms-smart-access-tier"]) == ("Smart", "Hot")
    assert "x-ms-access-tier-change-time" in head and "x-ms-access-tier-inferred" not in head
    assert wire.request("GET", path).headers["x-ms-smart-access-tier"] == "Hot"
    listed = wire.request("GET", f"/{container.container_name}", {"restype": "container", "comp": "list"}).body
    assert b"<AccessTier>Smart</AccessTier><SmartAccessTier>Hot</SmartAccessTier>" in listed
    copied = container.get_blob_client("copied")
    copied.start_copy_from_url(blob.url, standard_blob_tier=StandardBlobTier.SMART)
    assert copied.get_blob_properties().blob_tier == "Smart"
    blob.set_standard_blob_tier(StandardBlobTier.COOL)
    assert "x-ms-smart-access-tier" not in wire.request("HEAD", path).headers
    assert blob.get_blob_properties().smart_access_tier is None
    blob.set_standard_blob_tier("smart")
    assert blob.get_blob_properties().blob_tier == "Smart"
    page = container.get_blob_client("page")
    page.create_page_blob(512)
    refused(lambda: page.set_standard_blob_tier(StandardBlobTier.SMART), 409, "InvalidBlobType")


def test_archive_and_back(blob):
    blob.upload_blob(b"1", standard_blob_tier=StandardBlobTier.ARCHIVE)
    refused(blob.download_blob, 409, "BlobArchived")
    refused(lambda: blob.upload_blob(b"2", overwrite=True), 409, "BlobArchived")
    refused(lambda: blob.set_blob_metadata({}), 409, "BlobArchived")
    blob.set_blob_tags({"kept": "findable"})
    assert blob.get_blob_tags() == {"kept": "findable"}
    assert blob.get_blob_properties().blob_tier == "Archive"
    blob.set_standard_blob_tier(StandardBlobTier.HOT, rehydrate_priority="High")
    deadline = time.monotonic() + 30
    while blob.get_blob_properties().blob_tier != "Hot" and time.monotonic() < deadline:
        found = blob.get_blob_properties()
        assert found.blob_tier == "Hot" or found.archive_status == "rehydrate-pending-to-hot"
        time.sleep(0.2)
    assert blob.download_blob().readall() == b"1"


def test_undelete_without_soft_delete(service, blob):
    refused(blob.undelete_blob, 404, "BlobNotFound")
    blob.upload_blob(b"1")
    blob.undelete_blob()
    name = f"c{uuid.uuid4().hex}"
    refused(lambda: service.undelete_container(name, "01D60F8BB59A4652"), 404, "ContainerNotFound")


@pytest.mark.parametrize("kinds", [["deleted"], ["versions"], ["copy", "tags", "snapshots", "uncommittedblobs"]])
def test_what_cannot_exist_is_not_listed(container, blob, kinds):
    blob.upload_blob(b"1")
    assert [b.name for b in container.list_blobs(include=kinds)] == ["the-blob"]

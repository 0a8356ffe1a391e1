"""Append blobs."""

import concurrent.futures

from azure.core import MatchConditions
from azure.storage.blob import BlobType
from conftest import refused
from lib.content import content


def test_create_append_read(container, blob):
    made = blob.create_append_blob(metadata={"a": "b"})
    found = blob.get_blob_properties()
    assert (found.blob_type, found.size, found.metadata) == (BlobType.AppendBlob, 0, {"a": "b"})
    assert found.append_blob_committed_block_count == 0 and found.etag == made["etag"]
    parts = [content(n, 700 * n + 1) for n in range(1, 6)]
    offset = 0
    for number, part in enumerate(parts, 1):
        done = blob.append_block(part)
        assert int(done["blob_append_offset"]) == offset
        assert done["blob_committed_block_count"] == number
        offset += len(part)
    whole = b"".join(parts)
    assert blob.download_blob().readall() == whole
    assert blob.download_blob(offset=700, length=3000).readall() == whole[700:3700]
    found = blob.get_blob_properties()
    assert (found.size, found.append_blob_committed_block_count) == (len(whole), 5)
    assert [b.blob_type for b in container.list_blobs()] == [BlobType.AppendBlob]


def test_large_and_small_blocks(blob):
    blob.create_append_blob()
    parts = [content(n, size) for n, size in enumerate((1, 511, 512, 513, 5000, 70_000, 1 << 20, 3 << 20))]
    for part in parts:
        blob.append_block(part, validate_content=True)
    assert blob.download_blob().readall() == b"".join(parts)


def test_many_appends(blob):
    blob.create_append_blob()
    for number in range(300):
        blob.append_block(b"%06d" % number)
    assert blob.download_blob().readall() == b"".join(b"%06d" % n for n in range(300))
    assert blob.download_blob(offset=300, length=606).readall() == b"".join(b"%06d" % n for n in range(50, 151))


def test_position_and_size(blob):
    blob.create_append_blob()
    blob.append_block(b"12345", appendpos_condition=0)
    refused(lambda: blob.append_block(b"x", appendpos_condition=4), 412, "AppendPositionConditionNotMet")
    refused(lambda: blob.append_block(b"xx", maxsize_condition=6), 412, "MaxBlobSizeConditionNotMet")
    blob.append_block(b"6", maxsize_condition=6, appendpos_condition=5)
    assert blob.download_blob().readall() == b"123456"


def test_conditions(blob):
    made = blob.create_append_blob()
    refused(lambda: blob.create_append_blob(match_condition=MatchConditions.IfMissing), 409, "BlobAlreadyExists")
    blob.append_block(b"1", etag=made["etag"], match_condition=MatchConditions.IfNotModified)
    refused(lambda: blob.append_block(b"2", etag=made["etag"], match_condition=MatchConditions.IfNotModified),
            412, "ConditionNotMet")
    assert blob.download_blob().readall() == b"1"


def test_seal(container, blob):
    blob.create_append_blob()
    blob.append_block(b"done")
    refused(lambda: blob.seal_append_blob(appendpos_condition=3), 412, "AppendPositionConditionNotMet")
    first = blob.seal_append_blob()
    assert first["blob_sealed"]
    assert blob.seal_append_blob()["etag"] == first["etag"], "sealing again changes nothing"
    refused(lambda: blob.append_block(b"more"), 409, "BlobIsSealed")
    assert blob.get_blob_properties().is_append_blob_sealed
    assert blob.download_blob().readall() == b"done"
    blob.set_blob_metadata({"still": "changes"})
    blob.delete_blob()
    refused(lambda: blob.append_block(b"more"), 404, "BlobNotFound")


def test_other_kinds(container, blob):
    blob.create_append_blob()
    refused(lambda: blob.stage_block("a", b"1"), 409, "InvalidBlobType")
    refused(blob.get_block_list, 409, "InvalidBlobType")
    refused(lambda: blob.upload_page(b"\0" * 512, 0, 512), 409, "InvalidBlobType")
    refused(blob.get_page_ranges, 409, "InvalidBlobType")
    refused(lambda: blob.resize_blob(512), 409, "InvalidBlobType")
    other = container.upload_blob("other", b"block blob")
    refused(lambda: other.append_block(b"1"), 409, "InvalidBlobType")
    refused(other.seal_append_blob, 409, "InvalidBlobType")
    blob.upload_blob(b"a block blob now", overwrite=True)
    assert blob.get_blob_properties().blob_type == BlobType.BlockBlob


def test_concurrent_appends(blob):
    """Each append is stored once and whole, at the offset that its answer has."""
    blob.create_append_blob()

    def add(number):
        part = b"%04d" % number * 300
        return part, int(blob.append_block(part)["blob_append_offset"])

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        done = list(pool.map(add, range(200)))
    whole = blob.download_blob().readall()
    assert len(whole) == sum(len(part) for part, _ in done)
    assert sorted(offset for _, offset in done) == [n * 1200 for n in range(200)]
    assert all(whole[offset:offset + len(part)] == part for part, offset in done)


def test_one_position_has_one_winner(blob):
    blob.create_append_blob()

    def add(number):
        try:
            blob.append_block(b"%02d" % number, appendpos_condition=0)
            return number
        except Exception:  # pylint: disable=broad-except
            return None

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        won = [n for n in pool.map(add, range(16)) if n is not None]
    assert len(won) == 1 and blob.download_blob().readall() == b"%02d" % won[0]


def test_upload_in_chunks(blob):
    data = content(7, 9 << 20)
    blob.upload_blob(data, blob_type=BlobType.AppendBlob)
    assert blob.download_blob().readall() == data
    blob.upload_blob(b"and more", blob_type=BlobType.AppendBlob)
    assert blob.download_blob(offset=9 << 20).readall() == b"and more"

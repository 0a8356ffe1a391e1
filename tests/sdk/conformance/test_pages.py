"""Page blobs."""

import random
import struct

import pytest
from azure.core import MatchConditions
from azure.storage.blob import BlobType, SequenceNumberAction
from conftest import refused
from lib.content import content

PAGE = 512


def ranges(blob, **wanted):
    """What is written, as [(start, end)], ends inclusive."""
    return [(r.start, r.end) for r in blob.list_page_ranges(**wanted)]


def test_create_is_zeros(container, blob):
    blob.create_page_blob(8 << 40, sequence_number=5, metadata={"a": "b"})
    found = blob.get_blob_properties()
    assert (found.blob_type, found.size, found.page_blob_sequence_number) == (BlobType.PageBlob, 8 << 40, 5)
    assert found.metadata == {"a": "b"}
    assert blob.download_blob(offset=(8 << 40) - 1000, length=1000).readall() == bytes(1000)
    assert ranges(blob) == []
    listed = list(container.list_blobs())
    assert [(b.blob_type, b.size) for b in listed] == [(BlobType.PageBlob, 8 << 40)]


def test_write_read_clear(blob):
    blob.create_page_blob(1 << 20)
    data = content(1, 300 << 10)
    done = blob.upload_page(data, 10 * PAGE, len(data), validate_content=True)
    assert done["blob_sequence_number"] == 0
    image = bytearray(1 << 20)
    image[10 * PAGE:10 * PAGE + len(data)] = data
    assert blob.download_blob().readall() == image
    assert ranges(blob) == [(10 * PAGE, 10 * PAGE + len(data) - 1)]
    blob.clear_page(20 * PAGE, 30 * PAGE)
    image[20 * PAGE:50 * PAGE] = bytes(30 * PAGE)
    assert blob.download_blob().readall() == image
    assert ranges(blob) == [(10 * PAGE, 20 * PAGE - 1), (50 * PAGE, 10 * PAGE + len(data) - 1)]
    assert ranges(blob, offset=15 * PAGE, length=40 * PAGE) == [(15 * PAGE, 20 * PAGE - 1), (50 * PAGE, 55 * PAGE - 1)]


def test_random_writes(blob):
    """Against an array."""
    dice = random.Random(11)
    pages = 4000
    image = bytearray(pages * PAGE)
    blob.create_page_blob(len(image))
    for number in range(120):
        start = dice.randrange(pages)
        count = min(dice.choice((1, 2, 8, 9, 100, 1000)), pages - start)
        if dice.random() < 0.25:
            blob.clear_page(start * PAGE, count * PAGE)
            image[start * PAGE:(start + count) * PAGE] = bytes(count * PAGE)
        else:
            data = content(number, count * PAGE)
            blob.upload_page(data, start * PAGE, count * PAGE)
            image[start * PAGE:(start + count) * PAGE] = data
    assert blob.download_blob().readall() == image
    for _ in range(20):
        offset = dice.randrange(len(image) - 1)
        length = dice.randrange(1, len(image) - offset)
        assert blob.download_blob(offset=offset, length=length).readall() == image[offset:offset + length]


def test_largest_page_write(blob):
    blob.create_page_blob(16 << 20)
    data = content(3, 4 << 20)
    blob.upload_page(data, 3 * PAGE, len(data))
    assert blob.download_blob(offset=3 * PAGE, length=len(data)).readall() == data
    checked = blob.download_blob(offset=0, length=4 << 20, validate_content=True).readall()
    assert checked == bytes(3 * PAGE) + data[:-3 * PAGE]


def test_range_pages(blob):
    blob.create_page_blob(100 * PAGE)
    for page in range(0, 100, 2):
        blob.upload_page(b"x" * PAGE, page * PAGE, PAGE)
    expected = [(page * PAGE, page * PAGE + PAGE - 1) for page in range(0, 100, 2)]
    assert ranges(blob) == expected
    assert ranges(blob, results_per_page=7) == expected
    first = next(blob.list_page_ranges(results_per_page=7).by_page())
    assert len(list(first)) == 7
    assert [(r["start"], r["end"]) for r in blob.get_page_ranges()[0]] == expected


def test_sequence_number(blob):
    blob.create_page_blob(PAGE, sequence_number=3)
    assert blob.set_sequence_number(SequenceNumberAction.Max, 2)["blob_sequence_number"] == 3
    assert blob.set_sequence_number(SequenceNumberAction.Update, 7)["blob_sequence_number"] == 7
    assert blob.set_sequence_number(SequenceNumberAction.Increment)["blob_sequence_number"] == 8
    page = b"x" * PAGE
    for wrong in ({"if_sequence_number_lte": 7}, {"if_sequence_number_lt": 8}, {"if_sequence_number_eq": 9}):
        refused(lambda w=wrong: blob.upload_page(page, 0, PAGE, **w), 412, "SequenceNumberConditionNotMet")
        refused(lambda w=wrong: blob.clear_page(0, PAGE, **w), 412, "SequenceNumberConditionNotMet")
    for right in ({"if_sequence_number_lte": 8}, {"if_sequence_number_lt": 9}, {"if_sequence_number_eq": 8}):
        blob.upload_page(page, 0, PAGE, **right)


def test_resize(blob):
    blob.create_page_blob(8 * PAGE)
    blob.upload_page(b"x" * 8 * PAGE, 0, 8 * PAGE)
    blob.resize_blob(3 * PAGE)
    assert blob.get_blob_properties().size == 3 * PAGE
    assert ranges(blob) == [(0, 3 * PAGE - 1)]
    blob.resize_blob(6 * PAGE)
    assert blob.download_blob().readall() == b"x" * 3 * PAGE + bytes(3 * PAGE), "what was cut off is gone"


def test_refusals(container, blob):
    refused(lambda: blob.upload_page(b"x" * PAGE, 0, PAGE), 404, "BlobNotFound")
    made = blob.create_page_blob(4 * PAGE)
    refused(lambda: blob.upload_page(b"x" * PAGE, 4 * PAGE, PAGE), 416, "InvalidPageRange")
    refused(lambda: blob.clear_page(3 * PAGE, 2 * PAGE), 416, "InvalidPageRange")
    blob.upload_page(b"x" * PAGE, 0, PAGE)
    refused(lambda: blob.upload_page(b"y" * PAGE, 0, PAGE, etag=made["etag"],
                                     match_condition=MatchConditions.IfNotModified), 412, "ConditionNotMet")
    refused(lambda: blob.append_block(b"1"), 409, "InvalidBlobType")
    refused(lambda: blob.stage_block("a", b"1"), 409, "InvalidBlobType")
    refused(blob.get_block_list, 409, "InvalidBlobType")
    other = container.upload_blob("other", b"block blob")
    refused(lambda: other.upload_page(b"x" * PAGE, 0, PAGE), 409, "InvalidBlobType")
    refused(lambda: other.resize_blob(PAGE), 409, "InvalidBlobType")
    refused(lambda: other.set_sequence_number(SequenceNumberAction.Update, 7), 409, "InvalidBlobType")
    refused(lambda: list(other.list_page_ranges()), 409, "InvalidBlobType")


def test_ranges_of_a_snapshot_and_since_one(container, blob):
    blob.create_page_blob(8 * PAGE)
    blob.upload_page(b"a" * 4 * PAGE, 0, 4 * PAGE)
    first = blob.create_snapshot()["snapshot"]
    blob.upload_page(b"b" * PAGE, 6 * PAGE, PAGE)
    blob.clear_page(PAGE, PAGE)
    second = blob.create_snapshot()["snapshot"]
    blob.upload_page(b"c" * PAGE, PAGE, PAGE)
    kept = container.get_blob_client(blob.blob_name, snapshot=second)
    assert ranges(container.get_blob_client(blob.blob_name, snapshot=first)) == [(0, 4 * PAGE - 1)]
    assert ranges(kept) == [(0, PAGE - 1), (2 * PAGE, 4 * PAGE - 1), (6 * PAGE, 7 * PAGE - 1)]

    def since(client, older, **wanted):
        return [(r.start // PAGE, r.end // PAGE, r.cleared)
                for r in client.list_page_ranges(previous_snapshot=older, **wanted)]

    assert since(kept, first) == [(1, 1, True), (6, 6, False)]
    assert since(kept, first, results_per_page=1) == since(kept, first)
    assert since(blob, second) == [(1, 1, False)]
    assert since(blob, first) == [(1, 1, False), (6, 6, False)]
    assert since(blob, first, offset=2 * PAGE, length=6 * PAGE) == [(6, 6, False)]
    assert blob.get_page_ranges(previous_snapshot_diff=first)[1] == []
    assert kept.get_page_ranges(previous_snapshot_diff=first)[1] == [{"start": PAGE, "end": 2 * PAGE - 1}]
    older = container.get_blob_client(blob.blob_name, snapshot=first)
    refused(lambda: since(older, second), 400, "PreviousSnapshotCannotBeNewer")
    refused(lambda: since(blob, "2001-01-01T00:00:00.0000000Z"), 409, "PreviousSnapshotNotFound")
    refused(lambda: blob.get_page_range_diff_for_managed_disk(f"{blob.url}?snapshot={first}"), 409,
            "PreviousSnapshotOperationNotSupported")
    blob.create_page_blob(8 * PAGE)
    refused(lambda: since(blob, first), 409, "BlobOverwritten")


def test_upload_whole(blob):
    """The SDK leaves out pages of zeros."""
    data = content(5, 1 << 20) + bytes(9 << 20) + content(6, 1 << 20)
    blob.upload_blob(data, blob_type=BlobType.PageBlob)
    assert blob.download_blob().readall() == data
    blob.upload_blob(b"block blob again", overwrite=True)
    assert blob.download_blob().readall() == b"block blob again"


def test_pages_validated_by_crc64(blob):
    pytest.importorskip("azure.storage.extensions.checksums")
    blob.create_page_blob(1 << 20)
    sent = []
    for number, pages in enumerate((1, 9, 200, 1000)):
        data = content(number, pages * PAGE)
        blob.upload_page(data, 7 * PAGE, len(data), validate_content="crc64",
                         raw_response_hook=lambda r: sent.append(r.http_request.headers.get("x-ms-content-crc64")
                                                                 or r.http_request.headers.get("x-ms-structured-body")))
        found = blob.download_blob(offset=7 * PAGE, length=len(data), validate_content="crc64").readall()
        assert found == data
    assert len(sent) == 4 and all(sent), sent


def test_pages_as_a_structured_message(wire, container, blob):
    """What the SDK sends of streams: segments with checksums of their own."""
    checksums = pytest.importorskip("azure.storage.extensions.checksums")
    blob.create_page_blob(64 * PAGE)
    data = content(3, 20 * PAGE)

    def message(body, crc=lambda part: checksums.crc64.compute(part, 0)):
        parts = [body[:4000], body[4000:]]
        length = 13 + sum(18 + len(part) for part in parts) + 8
        out = struct.pack("<BQHH", 1, length, 1, len(parts))
        for number, part in enumerate(parts, 1):
            out += struct.pack("<HQ", number, len(part)) + part + struct.pack("<Q", crc(part))
        return out + struct.pack("<Q", crc(body))

    def put(body):
        return wire.request("PUT", f"/{container.container_name}/{blob.blob_name}", {"comp": "page"}, {
            "x-ms-page-write": "update", "x-ms-range": f"bytes={3 * PAGE}-{23 * PAGE - 1}",
            "x-ms-structured-body": "XSM/1.0; properties=crc64", "x-ms-structured-content-length": str(len(data))}, body)

    answer = put(message(data))
    assert answer.status == 201 and answer.headers["x-ms-structured-body"].startswith("XSM/1.0")
    assert blob.download_blob(offset=3 * PAGE, length=len(data)).readall() == data
    wrong = put(message(data[::-1], crc=lambda part: 7))
    assert (wrong.status, wrong.code) == (400, "Crc64Mismatch")
    assert blob.download_blob(offset=3 * PAGE, length=len(data)).readall() == data

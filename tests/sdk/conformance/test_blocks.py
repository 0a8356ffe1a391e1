"""Staged blocks and block lists."""

import base64
import concurrent.futures

import pytest
from azure.storage.blob import ContentSettings
from conftest import block_id, refused
from lib.content import content


def ids(blocks):
    """What a block list shows, as [(id, size)]."""
    return [(b.id, b.size) for b in blocks]


def test_stage_and_commit(container, blob):
    parts = [content(n, 1000 + n) for n in range(5)]
    for n in (3, 0, 4, 2, 1):
        blob.stage_block(block_id(n), parts[n])
    refused(blob.get_blob_properties, 404, "BlobNotFound")
    refused(lambda: blob.download_blob().readall(), 404, "BlobNotFound")
    committed, uncommitted = blob.get_block_list("all")
    assert committed == [] and sorted(ids(uncommitted)) == sorted((block_id(n), 1000 + n) for n in range(5))
    assert [b.name for b in container.list_blobs()] == []
    pending = list(container.list_blobs(include=["uncommittedblobs"]))
    assert [(b.name, b.size) for b in pending] == [("the-blob", 0)]

    blob.commit_block_list([block_id(n) for n in range(5)], metadata={"a": "b"},
                           content_settings=ContentSettings(content_type="text/plain"))
    assert blob.download_blob().readall() == b"".join(parts)
    found = blob.get_blob_properties()
    assert (found.metadata, found.content_settings.content_type) == ({"a": "b"}, "text/plain")
    assert found.content_settings.content_md5 is None, "a committed list has no MD5 unless one is given"
    committed, uncommitted = blob.get_block_list("all")
    assert ids(committed) == [(block_id(n), 1000 + n) for n in range(5)] and uncommitted == []


def test_given_md5_is_stored(blob):
    blob.stage_block(block_id(0), b"abc")
    blob.commit_block_list([block_id(0)], content_settings=ContentSettings(content_md5=bytearray(b"0123456789abcdef")))
    assert blob.get_blob_properties().content_settings.content_md5 == bytearray(b"0123456789abcdef")


def commit(wire, blob, entries):
    """Commits [(element, block id)]. The SDK asks for everything as Latest, whatever state a BlobBlock names.

    It also encodes the ids it is given once more, so the same is done here.
    """
    body = "".join(f"<{element}>{base64.b64encode(name.encode()).decode()}</{element}>" for element, name in entries)
    path = f"/{blob.container_name}/{blob.blob_name}"
    answer = wire.request("PUT", path, {"comp": "blocklist"}, body=f"<BlockList>{body}</BlockList>".encode())
    return answer.status, answer.code


def test_committed_uncommitted_latest(wire, blob):
    for n in range(3):
        blob.stage_block(block_id(n), f"old{n} ".encode())
    blob.commit_block_list([block_id(n) for n in range(3)])
    blob.stage_block(block_id(1), b"new1 ")
    blob.stage_block(block_id(7), b"new7 ")
    assert blob.download_blob().readall() == b"old0 old1 old2 ", "staging changes nothing that is committed"
    assert commit(wire, blob, [
        ("Committed", block_id(0)), ("Latest", block_id(1)), ("Committed", block_id(1)), ("Uncommitted", block_id(1)),
        ("Uncommitted", block_id(7)), ("Latest", block_id(0)),
    ]) == (201, "")
    assert blob.download_blob().readall() == b"old0 new1 old1 new1 new7 old0 "
    assert commit(wire, blob, [("Committed", block_id(2))]) == (400, "InvalidBlockList"), "dropped by the last commit"


def test_committed_keeps_the_old_one(wire, blob):
    blob.stage_block(block_id(0), b"old")
    blob.commit_block_list([block_id(0)])
    blob.stage_block(block_id(0), b"newer")
    assert commit(wire, blob, [("Committed", block_id(0))]) == (201, "")
    assert blob.download_blob().readall() == b"old"
    assert commit(wire, blob, [("Uncommitted", block_id(0))]) == (400, "InvalidBlockList")


def test_commit_discards_every_other_block(blob):
    for n in range(4):
        blob.stage_block(block_id(n), bytes([65 + n]))
    blob.commit_block_list([block_id(2)])
    assert blob.get_block_list("uncommitted")[1] == []
    refused(lambda: blob.commit_block_list([block_id(0)]), 400, "InvalidBlockList")
    assert blob.download_blob().readall() == b"C"


def test_put_blob_discards_staged_blocks(blob):
    blob.stage_block(block_id(0), b"staged")
    blob.upload_blob(b"whole")
    committed, uncommitted = blob.get_block_list("all")
    assert (committed, uncommitted) == ([], [])
    refused(lambda: blob.commit_block_list([block_id(0)]), 400, "InvalidBlockList")


def test_delete_discards_staged_blocks(blob):
    blob.upload_blob(b"whole")
    blob.stage_block(block_id(0), b"staged")
    blob.delete_blob()
    refused(lambda: blob.get_block_list("all"), 404, "BlobNotFound")


def test_staging_replaces_by_id(blob):
    blob.stage_block(block_id(0), b"first")
    blob.stage_block(block_id(0), b"the second")
    assert ids(blob.get_block_list("uncommitted")[1]) == [(block_id(0), 10)]
    blob.commit_block_list([block_id(0)])
    assert blob.download_blob().readall() == b"the second"


def test_one_block_many_times(blob):
    blob.stage_block(block_id(0), b"ab")
    blob.commit_block_list([block_id(0)] * 3)
    assert blob.download_blob().readall() == b"ababab"
    assert len(blob.get_block_list("committed")[0]) == 3


def test_empty_list_makes_an_empty_blob(blob):
    blob.upload_blob(b"something")
    blob.commit_block_list([])
    assert blob.get_blob_properties().size == 0
    assert blob.download_blob().readall() == b""


def test_commit_replaces_properties(blob):
    blob.upload_blob(b"x", metadata={"old": "1"}, content_settings=ContentSettings(content_language="nl"))
    etag = blob.get_blob_properties().etag
    blob.stage_block(block_id(0), b"y")
    assert blob.get_blob_properties().etag == etag, "staging does not move the ETag"
    blob.commit_block_list([block_id(0)])
    found = blob.get_blob_properties()
    assert not found.metadata and found.content_settings.content_language is None and found.etag != etag


def test_unknown_block(blob):
    blob.stage_block(block_id(0), b"x")
    refused(lambda: blob.commit_block_list([block_id(0), block_id(1)]), 400, "InvalidBlockList")
    assert len(blob.get_block_list("uncommitted")[1]) == 1, "a refused commit discards nothing"


def test_ids_of_different_length(blob):
    blob.stage_block(base64.b64encode(b"aaaa").decode(), b"x")
    refused(lambda: blob.stage_block(base64.b64encode(b"aaaaaaaaa").decode(), b"y"), 400, "InvalidBlobOrBlock")


def test_only_uncommitted_blocks_fix_the_length(wire, blob):
    short, long = (base64.b64encode(name).decode() for name in (b"aaaa", b"aaaaaaaaa"))
    blob.stage_block(short, b"old")
    blob.commit_block_list([short])
    blob.stage_block(long, b"new")
    refused(lambda: blob.stage_block(short, b"x"), 400, "InvalidBlobOrBlock")
    committed, uncommitted = blob.get_block_list("all")
    assert (ids(committed), ids(uncommitted)) == ([(short, 3)], [(long, 3)])
    mixed = [("Committed", short), ("Uncommitted", long)]
    assert commit(wire, blob, mixed) == (400, "InvalidBlobOrBlock"), "one list does not mix lengths"
    assert blob.download_blob().readall() == b"old"
    assert commit(wire, blob, [("Uncommitted", long)]) == (201, "")
    assert blob.download_blob().readall() == b"new"


@pytest.mark.parametrize("bad", ["not base64!", base64.b64encode(b"x" * 65).decode(), ""])
def test_bad_ids(wire, container, bad):
    answer = wire.request("PUT", f"/{container.container_name}/b", {"comp": "block", "blockid": bad}, body=b"x")
    assert answer.status == 400
    assert answer.code in ("InvalidQueryParameterValue", "InvalidBlockId", "MissingRequiredQueryParameter",
                           "OutOfRangeQueryParameterValue", "OutOfRangeInput")


def test_empty_block(wire, container):
    answer = wire.request("PUT", f"/{container.container_name}/b", {"comp": "block", "blockid": "AAAA"})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


@pytest.mark.parametrize("body, code", [
    (b"", "InvalidXmlDocument"), (b"<BlockList>", "InvalidXmlDocument"), (b"<Other/>", "InvalidXmlDocument"),
    (b"<BlockList><Strange>AAAA</Strange></BlockList>", "InvalidXmlDocument"),
    (b"<BlockList><Latest>!!</Latest></BlockList>", None),
])
def test_bad_lists(wire, container, body, code):
    answer = wire.request("PUT", f"/{container.container_name}/b", {"comp": "blocklist"}, body=body)
    assert answer.status == 400 and answer.code
    assert code is None or answer.code in (code, "UnsupportedXmlNode", "InvalidXmlNodeValue")
    assert wire.request("HEAD", f"/{container.container_name}/b").status == 404


def test_many_blocks(container, account):
    """A list long enough to need several layout segments, read at every segment's edge."""
    count, size = 2500, 64
    client = account.service().get_blob_client(container.container_name, "many")
    parts = [content(("many", n), size) for n in range(count)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: client.stage_block(block_id(n), parts[n]), range(count)))
    client.commit_block_list([block_id(n) for n in range(count)])
    whole = b"".join(parts)
    assert client.download_blob().readall() == whole
    for edge in (1, 999, 1000, 1001, 1999, 2000, 2499):
        at = edge * size - 5
        assert client.download_blob(offset=at, length=10).readall() == whole[at:at + 10]
    assert ids(client.get_block_list("committed")[0]) == [(block_id(n), size) for n in range(count)]

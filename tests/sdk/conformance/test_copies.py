"""Blobs and blocks from URLs of the same server: permissions, what is copied, what is refused."""

import datetime
import hashlib

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.storage.blob import BlobBlock, ContentSettings, StandardBlobTier, generate_blob_sas

MIB = 1 << 20


def data(size, salt=0):
    """Bytes that do not repeat soon."""
    return b"".join(hashlib.sha256(f"{salt}:{n}".encode()).digest() for n in range(size // 32 + 1))[:size]


def signed(account, blob, permission="r"):
    """The blob's URL with a signature."""
    expiry = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    sas = generate_blob_sas(account.name, blob.container_name, blob.blob_name, account_key=account.key,
                            permission=permission, expiry=expiry)
    return f"{blob.url}?{sas}"


def refusal(call, *arguments, **options):
    """Status and code of a call that must fail."""
    with pytest.raises(HttpResponseError) as refused:
        call(*arguments, **options)
    return refused.value.status_code, refused.value.error_code


@pytest.fixture
def other(two_keys):
    """A new container in another account."""
    client = two_keys[0].service().create_container(f"other{datetime.datetime.now().strftime('%H%M%S%f')}")
    yield client
    client.delete_container()


@pytest.mark.parametrize("size", [0, 100, 5_000, 3 * MIB + 7])
def test_copy_blob_takes_content_properties_and_metadata(account, container, size):
    content = data(size)
    source = container.get_blob_client("source")
    source.upload_blob(content, metadata={"k": "v"}, content_settings=ContentSettings(content_type="text/x"))
    copy = container.get_blob_client("copy")
    started = copy.start_copy_from_url(source.url)
    assert started["copy_status"] == "success"
    facts = copy.get_blob_properties()
    assert copy.download_blob().readall() == content
    assert (facts.metadata, facts.content_settings.content_type) == ({"k": "v"}, "text/x")
    assert (facts.copy.id, facts.copy.status, facts.copy.source) == (started["copy_id"], "success", source.url)
    assert facts.copy.progress == f"{size}/{size}"
    assert facts.copy.completion_time is not None
    listed = next(b for b in container.list_blobs(include=["copy"]) if b.name == "copy")
    assert listed.copy.id == started["copy_id"]
    assert refusal(copy.abort_copy, started["copy_id"]) == (409, "NoPendingCopyOperation")


def test_copy_keeps_the_block_list_and_outlives_its_source(container):
    source = container.get_blob_client("source")
    blocks = [data(2 * MIB, n) for n in range(3)] + [b"small"]
    for n, block in enumerate(blocks):
        source.stage_block(f"{n:04}", block)
    source.commit_block_list([BlobBlock(f"{n:04}") for n in (0, 1, 2, 3, 1)])
    copy = container.get_blob_client("copy")
    copy.start_copy_from_url(source.url, metadata={"own": "1"})
    listed = [(b.id, b.size) for b in copy.get_block_list("committed")[0]]
    assert listed == [(b.id, b.size) for b in source.get_block_list("committed")[0]]
    assert copy.get_blob_properties().metadata == {"own": "1"}
    source.delete_blob()
    assert copy.download_blob().readall() == b"".join(blocks[n] for n in (0, 1, 2, 3, 1))


def test_copy_onto_itself_and_over_another(container):
    blob = container.get_blob_client("a")
    blob.upload_blob(data(MIB))
    blob.start_copy_from_url(blob.url, metadata={"again": "1"})
    assert blob.download_blob().readall() == data(MIB)
    second = container.get_blob_client("b")
    second.upload_blob(data(2 * MIB, 2))
    second.start_copy_from_url(blob.url)
    assert second.download_blob().readall() == data(MIB)


def test_sync_copy(account, container):
    source = container.get_blob_client("source")
    source.upload_blob(data(MIB))
    copy = container.get_blob_client("copy")
    done = copy.start_copy_from_url(signed(account, source), requires_sync=True)
    assert done["copy_status"] == "success"
    assert copy.download_blob().readall() == data(MIB)


def test_put_blob_from_url(account, container):
    content = data(MIB + 3)
    source = container.get_blob_client("source")
    source.upload_blob(content, content_settings=ContentSettings(content_type="text/x", content_language="de"))
    blob = container.get_blob_client("copy")
    blob.upload_blob_from_url(signed(account, source), metadata={"a": "b"},
                              content_settings=ContentSettings(content_type="text/y"))
    facts = blob.get_blob_properties()
    assert blob.download_blob().readall() == content
    settings = facts.content_settings
    assert (settings.content_type, settings.content_language) == ("text/y", "de")
    assert settings.content_md5 == bytearray(hashlib.md5(content).digest())
    assert (facts.metadata, facts.copy.id) == ({"a": "b"}, None)
    blob.upload_blob_from_url(signed(account, source), overwrite=True, include_source_blob_properties=False)
    assert blob.get_blob_properties().content_settings.content_language is None
    with pytest.raises(ResourceExistsError):
        blob.upload_blob_from_url(signed(account, source), overwrite=False)


def test_put_block_from_url(account, container):
    content = data(5 * MIB)
    source = container.get_blob_client("source")
    for n in range(5):
        source.stage_block(f"{n}", content[n * MIB:(n + 1) * MIB])
    source.commit_block_list([BlobBlock(f"{n}") for n in range(5)])
    url = signed(account, source)
    blob = container.get_blob_client("copy")
    # One block of the source, two of them, a part of one, a part of two.
    parts = [(0, MIB), (MIB, 2 * MIB), (3 * MIB, 1000), (4 * MIB - 10, 20)]
    for n, (start, length) in enumerate(parts):
        blob.stage_block_from_url(f"{n}", url, source_offset=start, source_length=length)
    blob.commit_block_list([BlobBlock(f"{n}") for n in range(len(parts))])
    expected = b"".join(content[start:start + length] for start, length in parts)
    assert blob.download_blob().readall() == expected
    source.delete_blob()
    assert blob.download_blob().readall() == expected


def test_checksums_of_the_source_are_checked(account, container):
    content = data(MIB)
    source = container.get_blob_client("source")
    source.upload_blob(content)
    url, blob = signed(account, source), container.get_blob_client("copy")
    right, wrong = hashlib.md5(content).digest(), hashlib.md5(b"other").digest()
    blob.stage_block_from_url("1", url, 0, MIB, source_content_md5=right)
    assert refusal(blob.stage_block_from_url, "1", url, 0, MIB, source_content_md5=wrong) == (400, "Md5Mismatch")
    assert refusal(blob.upload_blob_from_url, url, source_content_md5=wrong) == (400, "Md5Mismatch")
    assert not blob.exists()


def test_source_of_another_account_needs_a_signature(two_keys, container, other):
    source = other.get_blob_client("source")
    source.upload_blob(data(MIB))
    blob = container.get_blob_client("copy")
    status, code = refusal(blob.start_copy_from_url, source.url)
    # 409: the other account is closed to anonymous reads.
    assert (status in (401, 403, 404, 409), code) == (True, "CannotVerifyCopySource")
    assert refusal(blob.start_copy_from_url, signed(two_keys[0], source, "w")) == (403, "CannotVerifyCopySource")
    blob.start_copy_from_url(signed(two_keys[0], source))
    assert blob.download_blob().readall() == data(MIB)
    blob.upload_blob_from_url(signed(two_keys[0], source), overwrite=True)
    assert blob.download_blob().readall() == data(MIB)


def test_missing_sources(account, container):
    blob = container.get_blob_client("copy")
    gone = container.get_blob_client("gone")
    assert refusal(blob.start_copy_from_url, gone.url) == (404, "CannotVerifyCopySource")
    assert refusal(blob.upload_blob_from_url, signed(account, gone)) == (404, "CannotVerifyCopySource")
    assert refusal(blob.start_copy_from_url, "http://127.0.0.1:9/a/b/c")[1] == "CannotVerifyCopySource"
    assert refusal(blob.start_copy_from_url, "ftp://x/y")[1] == "InvalidHeaderValue"


def test_conditions_of_source_and_destination(container):
    source, blob = container.get_blob_client("source"), container.get_blob_client("copy")
    etag = source.upload_blob(b"one")["etag"]
    blob.start_copy_from_url(source.url, source_etag=etag, source_match_condition=MatchConditions.IfNotModified)
    not_met = (412, "SourceConditionNotMet")
    assert refusal(blob.start_copy_from_url, source.url, source_etag=etag,
                   source_match_condition=MatchConditions.IfModified) == not_met
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=10)
    assert refusal(blob.start_copy_from_url, source.url, source_if_modified_since=later) == not_met
    assert refusal(blob.start_copy_from_url, source.url, etag='"0x1"',
                   match_condition=MatchConditions.IfNotModified) == (412, "ConditionNotMet")


def test_append_blob_stays_one(container):
    source, copy = container.get_blob_client("log"), container.get_blob_client("copy")
    source.create_append_blob()
    source.append_block(b"one ")
    source.append_block(b"two ")
    copy.start_copy_from_url(source.url)
    assert copy.get_blob_properties().blob_type == "AppendBlob"
    copy.append_block(b"three")
    source.append_block(b"3")
    assert (copy.download_blob().readall(), source.download_blob().readall()) == (b"one two three", b"one two 3")


def test_append_block_from_url(account, container):
    content = data(3 * MIB)
    source = container.get_blob_client("source")
    source.upload_blob(content)
    blob = container.get_blob_client("log")
    blob.create_append_blob()
    done = blob.append_block_from_url(signed(account, source), source_offset=0, source_length=3 * MIB)
    assert (done["blob_append_offset"], done["blob_committed_block_count"]) == ("0", 1)
    blob.append_block_from_url(signed(account, source), source_offset=5, source_length=100)
    source.delete_blob()
    assert blob.download_blob().readall() == content + content[5:105]
    refused = refusal(blob.append_block_from_url, signed(account, source), source_offset=0, source_length=10)
    assert refused == (404, "CannotVerifyCopySource")


def test_tags_of_copies(account, container):
    source, copy = container.get_blob_client("source"), container.get_blob_client("copy")
    source.upload_blob(b"x", tags={"a": "1"})
    copy.upload_blob_from_url(signed(account, source), tags={"b": "2"})
    assert copy.get_blob_tags() == {"b": "2"}
    copy.start_copy_from_url(source.url, tags={"c": "3"})
    assert copy.get_blob_tags() == {"c": "3"}
    copy.start_copy_from_url(signed(account, source, "rt"), requires_sync=True, tags="COPY")
    assert copy.get_blob_tags() == {"a": "1"}


def test_put_page_from_url(account, container):
    content = data(64 * 1024)
    source = container.get_blob_client("source")
    source.upload_blob(content)
    blob = container.get_blob_client("disk")
    blob.create_page_blob(64 * 1024, sequence_number=7)
    url = signed(account, source)
    md5 = hashlib.md5(content[512:1536]).digest()
    done = blob.upload_pages_from_url(url, 4096, 1024, 512, source_content_md5=bytearray(md5))
    assert done["blob_sequence_number"] == 7
    assert blob.download_blob().readall() == bytes(4096) + content[512:1536] + bytes(64 * 1024 - 4096 - 1024)
    wrong = bytearray(hashlib.md5(b"other").digest())
    assert refusal(blob.upload_pages_from_url, url, 0, 512, 0, source_content_md5=wrong) == (400, "Md5Mismatch")
    stale = dict(if_sequence_number_lt=7)
    assert refusal(blob.upload_pages_from_url, url, 0, 512, 0, **stale) == (412, "SequenceNumberConditionNotMet")
    assert refusal(blob.upload_pages_from_url, url, 0, 512, 64 * 1024)[0] == 416
    assert refusal(blob.upload_pages_from_url, url, 64 * 1024, 512, 0) == (416, "InvalidPageRange")
    unmet = dict(source_if_match='"0x1"', source_etag='"0x1"', source_match_condition=MatchConditions.IfNotModified)
    unmet.pop("source_if_match")
    assert refusal(blob.upload_pages_from_url, url, 0, 512, 0, **unmet) == (412, "CannotVerifyCopySource")
    lease = blob.acquire_lease()
    assert refusal(blob.upload_pages_from_url, url, 0, 512, 0) == (412, "LeaseIdMissing")
    blob.upload_pages_from_url(url, 0, 512, 0, lease=lease)
    assert blob.download_blob(offset=0, length=512).readall() == content[:512]


def test_append_from_url_holds_position_and_size(account, container):
    source = container.get_blob_client("source")
    source.upload_blob(b"0123456789")
    url = signed(account, source)
    blob = container.get_blob_client("log")
    blob.create_append_blob()
    blob.append_block_from_url(url, source_offset=0, source_length=4, appendpos_condition=0, maxsize_condition=4)
    part = dict(source_offset=0, source_length=4)
    assert refusal(blob.append_block_from_url, url, appendpos_condition=0, **part) == (
        412, "AppendPositionConditionNotMet")
    assert refusal(blob.append_block_from_url, url, maxsize_condition=7, **part) == (412, "MaxBlobSizeConditionNotMet")
    wrong = bytearray(hashlib.md5(b"other").digest())
    assert refusal(blob.append_block_from_url, url, source_content_md5=wrong, **part) == (400, "Md5Mismatch")
    right = bytearray(hashlib.md5(b"0123").digest())
    blob.append_block_from_url(url, source_content_md5=right, **part)
    blob.seal_append_blob()
    assert refusal(blob.append_block_from_url, url, **part) == (409, "BlobIsSealed")
    assert blob.download_blob().readall() == b"01230123"


def test_snapshots_as_sources(account, container):
    """For every operation: the bytes of the snapshot are copied, not the later ones of the blob."""
    content = data(2 * MIB)
    source = container.get_blob_client("source")
    source.upload_blob(content, metadata={"of": "then"}, tags={"a": "1"})
    taken = source.create_snapshot()["snapshot"]
    source.upload_blob(b"other", overwrite=True, metadata={"of": "now"})
    frozen = container.get_blob_client("source", snapshot=taken)
    copy = container.get_blob_client("copy")
    copy.start_copy_from_url(frozen.url)
    assert copy.download_blob().readall() == content
    facts = copy.get_blob_properties()
    assert facts.metadata == {"of": "then"} and taken in facts.copy.source
    url = f"{signed(account, source)}&snapshot={taken}"
    # A signature of a blob grants its snapshots too.
    copy.start_copy_from_url(url, requires_sync=True)
    copy.upload_blob_from_url(url, overwrite=True)
    assert copy.download_blob().readall() == content
    copy.stage_block_from_url("MQ==", url, source_offset=MIB, source_length=MIB)
    copy.commit_block_list([BlobBlock("MQ==")])
    assert copy.download_blob().readall() == content[MIB:]
    log = container.get_blob_client("log")
    log.create_append_blob()
    log.append_block_from_url(url, source_offset=3, source_length=5)
    assert log.download_blob().readall() == content[3:8]
    # Promotion: the blob becomes what its snapshot is.
    source.start_copy_from_url(frozen.url)
    assert source.download_blob().readall() == content
    source.delete_blob(delete_snapshots="include")
    assert copy.get_blob_properties().size == MIB
    assert refusal(copy.start_copy_from_url, frozen.url)[0] == 404


def test_page_blobs_stay_page_blobs_and_sparse(account, container):
    """Length, sequence number and what is written are the source's; what is not written stays so."""
    gib = 1 << 30
    source = container.get_blob_client("disk")
    source.create_page_blob(8 * gib, sequence_number=3, metadata={"of": "source"})
    first, last = data(256 * 1024, 1), data(512, 2)
    source.upload_page(first, offset=65024, length=len(first))
    source.upload_page(last, offset=8 * gib - 512, length=512)
    source.clear_page(offset=65536, length=1024)
    expected = first[:512] + bytes(1024) + first[1536:]
    ranges = lambda blob: [(r.start, r.end) for r in blob.list_page_ranges()]
    copy = container.get_blob_client("copy")
    done = copy.start_copy_from_url(source.url)
    assert done["copy_status"] == "success"
    facts = copy.get_blob_properties()
    assert (facts.blob_type.value, facts.size, facts.page_blob_sequence_number) == ("PageBlob", 8 * gib, 3)
    assert facts.metadata == {"of": "source"} and facts.copy.progress == f"{8 * gib}/{8 * gib}"
    assert ranges(copy) == ranges(source)
    assert copy.download_blob(offset=65024, length=len(first)).readall() == expected
    # Both are changed independently.
    source.clear_page(offset=0, length=1024 * 1024)
    copy.upload_page(last, offset=65536, length=512)
    assert copy.download_blob(offset=65024, length=2048).readall() == first[:512] + last + bytes(512) + first[1536:2048]
    assert source.download_blob(offset=65024, length=2048).readall() == bytes(2048)
    source.delete_blob()
    assert copy.download_blob(offset=8 * gib - 512).readall() == last


def test_page_blobs_from_snapshots(account, container):
    source = container.get_blob_client("disk")
    source.create_page_blob(MIB)
    then, now = data(1024, 1), data(512, 2)
    source.upload_page(then, offset=512, length=1024)
    taken = source.create_snapshot()["snapshot"]
    source.upload_page(now, offset=1024, length=512)
    frozen = container.get_blob_client("disk", snapshot=taken)
    copy = container.get_blob_client("copy")
    copy.start_copy_from_url(source.url)
    assert copy.download_blob(offset=0, length=2048).readall() == bytes(512) + then[:512] + now + bytes(512)
    copy.start_copy_from_url(frozen.url)
    assert copy.download_blob(offset=0, length=2048).readall() == bytes(512) + then + bytes(512)
    source.start_copy_from_url(frozen.url)
    assert source.download_blob(offset=0, length=2048).readall() == bytes(512) + then + bytes(512)
    source.upload_page(now, offset=0, length=512)
    assert frozen.download_blob(offset=0, length=512).readall() == bytes(512)
    source.delete_blob(delete_snapshots="include")
    assert copy.download_blob(offset=0, length=2048).readall() == bytes(512) + then + bytes(512)
    # A block blob made of pages.
    whole = container.get_blob_client("whole")
    whole.upload_blob_from_url(signed(account, copy))
    assert whole.download_blob(offset=0, length=2048).readall() == bytes(512) + then + bytes(512)
    assert whole.get_blob_properties().blob_type.value == "BlockBlob"


def test_copies_take_the_scope_of_their_container(service, account):
    """The container's default, unless another is named; a container may insist on its own."""
    place = service.create_container(f"scoped{datetime.datetime.now().strftime('%H%M%S%f')}", container_encryption_scope={
        "default_encryption_scope": "one", "prevent_encryption_scope_override": False})
    source = place.get_blob_client("source")
    source.upload_blob(b"x")
    copy = place.get_blob_client("copy")
    copy.start_copy_from_url(source.url)
    assert copy.get_blob_properties().encryption_scope == "one" and copy.download_blob().readall() == b"x"
    copy.start_copy_from_url(signed(account, source), requires_sync=True, encryption_scope="two")
    assert copy.get_blob_properties().encryption_scope == "two"
    copy.upload_blob_from_url(signed(account, source), overwrite=True)
    assert copy.get_blob_properties().encryption_scope == "one"
    place.delete_container()


def test_seal_and_tier_of_copies(container):
    source, copy = container.get_blob_client("source"), container.get_blob_client("copy")
    source.create_append_blob()
    source.append_block(b"one")
    copy.start_copy_from_url(source.url, seal_destination_blob=True)
    assert copy.get_blob_properties().is_append_blob_sealed
    assert refusal(copy.append_block, b"two") == (409, "BlobIsSealed")
    copy.start_copy_from_url(source.url)
    copy.append_block(b"two")
    plain = container.get_blob_client("plain")
    plain.upload_blob(b"x")
    assert refusal(copy.start_copy_from_url, plain.url, seal_destination_blob=True) == (409, "InvalidBlobType")
    copy.start_copy_from_url(plain.url, standard_blob_tier=StandardBlobTier.COOL)
    assert copy.get_blob_properties().blob_tier == "Cool"

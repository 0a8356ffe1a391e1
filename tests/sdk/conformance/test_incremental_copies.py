"""Incremental Copy Blob: snapshots of page blobs, each with what changed since the one before."""

import datetime

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import ContentSettings, generate_blob_sas
from conftest import code_of, refused

PAGE = 512
SIZE = 64 * PAGE


def page(number):
    """A page of one byte."""
    return bytes([number]) * PAGE


@pytest.fixture(name="source")
def _source(container):
    """A page blob with metadata and some pages."""
    blob = container.get_blob_client("source")
    blob.create_page_blob(SIZE, metadata={"k": "v"}, content_settings=ContentSettings(content_type="text/x"))
    blob.upload_page(page(1) * 4, offset=0, length=4 * PAGE)
    return blob


@pytest.fixture(name="copy")
def _copy(container):
    """Where nothing is yet."""
    return container.get_blob_client("copy")


def signed(account, blob):
    """A function from a snapshot to its URL with a signature, which is one of the blob."""
    expiry = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    sas = generate_blob_sas(account.name, blob.container_name, blob.blob_name, account_key=account.key,
                            permission="r", expiry=expiry)
    return lambda taken: f"{blob.url}?{'snapshot=' + taken + '&' if taken else ''}{sas}"


def taken(blob):
    """A new snapshot."""
    return blob.create_snapshot()["snapshot"]


def increment(copy, url):
    """Copies, and returns the snapshot that the copy made."""
    started = copy.start_copy_from_url(url, incremental_copy=True)
    assert started["copy_id"] and started["copy_status"] == "pending" and started["etag"]
    facts = copy.get_blob_properties()
    assert (facts.copy.id, facts.copy.status) == (started["copy_id"], "success")
    assert facts.copy.incremental_copy and facts.copy.progress == f"{facts.size}/{facts.size}"
    return facts.copy.destination_snapshot


def content(container, name, snapshot):
    """The bytes of a snapshot."""
    return container.get_blob_client(name, snapshot=snapshot).download_blob().readall()


def changes(container, name, since, until):
    """What Get Page Ranges finds between two snapshots."""
    return container.get_blob_client(name, snapshot=until).get_page_ranges(previous_snapshot_diff=since)


def test_each_copy_is_a_snapshot(account, container, source, copy):
    url = signed(account, source)
    first = taken(source)
    source.upload_page(page(2) * 2, offset=2 * PAGE, length=2 * PAGE)
    source.clear_page(offset=0, length=PAGE)
    second = taken(source)
    source.upload_page(page(3), offset=9 * PAGE, length=PAGE)
    of_first, of_second = increment(copy, url(first)), increment(copy, url(second))
    assert of_first < of_second
    assert content(container, "copy", of_first) == content(container, "source", first) == page(1) * 4 + bytes(60 * PAGE)
    assert content(container, "copy", of_second) == content(container, "source", second)
    assert changes(container, "copy", of_first, of_second) == changes(container, "source", first, second) \
        == ([{"start": 1024, "end": 2047}], [{"start": 0, "end": 511}])
    facts = copy.get_blob_properties()
    assert (facts.size, facts.metadata, facts.content_settings.content_type) == (SIZE, {"k": "v"}, "text/x")
    assert facts.copy.source == f"{source.url}?snapshot={second}"
    old = container.get_blob_client("copy", snapshot=of_first).get_blob_properties()
    assert (old.copy.destination_snapshot, old.copy.source) == (of_first, f"{source.url}?snapshot={first}")


def test_lists_show_it(account, container, source, copy, wire):
    made = increment(copy, signed(account, source)(taken(source)))
    listed = {(one.name, one.snapshot): one.copy for one in container.list_blobs(include=["copy", "snapshots"])}
    assert set(listed) == {("source", None), ("source", listed_snapshot(listed)), ("copy", None), ("copy", made)}
    assert listed["copy", None].id == listed["copy", made].id == copy.get_blob_properties().copy.id
    text = wire.request("GET", f"/{container.container_name}",
                        {"restype": "container", "comp": "list", "include": "copy,snapshots"}).body.decode()
    shown = f"<IncrementalCopy>true</IncrementalCopy><CopyDestinationSnapshot>{made}</CopyDestinationSnapshot>"
    assert text.count(shown) == 2
    plain = wire.request("GET", f"/{container.container_name}", {"restype": "container", "comp": "list"}).body
    assert b"IncrementalCopy" not in plain


def listed_snapshot(listed):
    """The snapshot of the source."""
    return next(snapshot for name, snapshot in listed if name == "source" and snapshot)


def test_resizes_come_along(account, container, source, copy):
    url = signed(account, source)
    shots = [taken(source)]
    source.upload_page(page(4), offset=SIZE - PAGE, length=PAGE)
    shots.append(taken(source))
    source.resize_blob(2 * PAGE)
    shots.append(taken(source))
    source.resize_blob(SIZE)
    shots.append(taken(source))
    for shot in shots:
        made = increment(copy, url(shot))
        assert content(container, "copy", made) == content(container, "source", shot)


def test_copy_is_only_deleted_and_looked_at(account, container, source, copy):
    made = increment(copy, signed(account, source)(taken(source)))
    locked = (409, "OperationNotAllowedOnIncrementalCopyBlob")
    for call in (
            copy.download_blob, copy.create_snapshot, copy.acquire_lease, copy.get_page_ranges,
            lambda: copy.upload_page(page(1), offset=0, length=PAGE), lambda: copy.clear_page(offset=0, length=PAGE),
            lambda: copy.resize_blob(SIZE * 2), lambda: copy.set_blob_metadata({"a": "b"}),
            lambda: copy.set_http_headers(ContentSettings(content_type="a/b")), lambda: copy.set_blob_tags({"a": "b"}),
            lambda: copy.create_page_blob(SIZE), lambda: copy.upload_blob(b"x", overwrite=True),
            lambda: copy.start_copy_from_url(source.url)):
        refused(call, *locked)
    with pytest.raises(HttpResponseError) as caught:
        container.get_blob_client("other").start_copy_from_url(copy.url)
    assert (caught.value.status_code, code_of(caught.value)) == (409, "CannotVerifyCopySource")
    other = container.get_blob_client("other")
    other.start_copy_from_url(f"{copy.url}?snapshot={made}")
    assert other.download_blob().readall() == content(container, "source", listed_of(container, "source"))
    container.get_blob_client("copy", snapshot=made).delete_blob()
    assert copy.get_blob_properties().copy.destination_snapshot == made
    increment(copy, signed(account, source)(taken(source)))
    refused(copy.delete_blob, 409, "SnapshotsPresent")
    copy.delete_blob(delete_snapshots="include")
    assert not copy.exists()


def listed_of(container, name):
    """The only snapshot of a blob."""
    found, = [one.snapshot for one in container.list_blobs(include=["snapshots"]) if one.name == name and one.snapshot]
    return found


def test_sources_that_are_refused(account, container, source, copy):
    url = signed(account, source)
    refused(lambda: copy.start_copy_from_url(url(None), incremental_copy=True), 409,
            "IncrementalCopySourceMustBeSnapshot")
    block = container.upload_blob("block", b"x")
    refused(lambda: copy.start_copy_from_url(signed(account, block)(taken(block)), incremental_copy=True), 409,
            "InvalidSourceBlobType")
    shot = taken(source)
    with pytest.raises(HttpResponseError) as caught:
        copy.start_copy_from_url(f"{source.url}?snapshot={shot}", incremental_copy=True)
    assert code_of(caught.value) == "CannotVerifyCopySource", "the source needs a signature"
    refused(lambda: copy.start_copy_from_url(f"http://elsewhere.example/c/b?snapshot={shot}", incremental_copy=True), 409,
            "InvalidSourceBlobUrl")
    refused(lambda: copy.start_copy_from_url(url("2020-01-01T00:00:00.0000000Z"), incremental_copy=True), 404,
            "CannotVerifyCopySource")
    assert not copy.exists()
    increment(copy, url(shot))


def test_destinations_that_are_refused(account, container, source, copy):
    url, (first, second) = signed(account, source), (taken(source), taken(source))
    start = lambda blob, shot: lambda: blob.start_copy_from_url(url(shot), incremental_copy=True)  # noqa: E731
    increment(copy, url(second))
    for shot in (first, second):
        refused(start(copy, shot), 409, "IncrementalCopyOfEarlierVersionSnapshotNotAllowed")
    other = container.get_blob_client("other")
    other.create_page_blob(SIZE)
    shot_of_other = signed(account, other)(taken(other))
    refused(lambda: copy.start_copy_from_url(shot_of_other, incremental_copy=True), 409, "IncrementalCopyBlobMismatch")
    refused(start(other, second), 409, "IncrementalCopyBlobMismatch")
    third = taken(source)
    refused(lambda: copy.start_copy_from_url(url(third), incremental_copy=True, etag='"0x1"',
                                             match_condition=MatchConditions.IfNotModified), 412, "ConditionNotMet")
    container.get_blob_client("source", snapshot=second).delete_blob()
    refused(start(copy, third), 409, "PreviousSnapshotNotFound")


def test_a_source_that_was_made_anew_is_refused(account, source, copy):
    url = signed(account, source)
    increment(copy, url(taken(source)))
    source.create_page_blob(SIZE)
    anew = taken(source)
    refused(lambda: copy.start_copy_from_url(url(anew), incremental_copy=True), 409, "BlobOverwritten")


def test_public_sources_need_no_signature(container, source, copy):
    container.set_container_access_policy(signed_identifiers={}, public_access="blob")
    shot = taken(source)
    assert content(container, "copy", increment(copy, f"{source.url}?snapshot={shot}")) == \
        content(container, "source", shot)


def test_malformed_requests(container, source, wire):
    path, query = f"/{container.container_name}/copy", {"comp": "incrementalcopy"}
    answer = wire.request("PUT", path, query)
    assert (answer.status, answer.code) == (400, "MissingRequiredHeader")
    answer = wire.request("PUT", path, query, {"x-ms-copy-source": "nowhere"})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    answer = wire.request("PUT", path, query, {"x-ms-copy-source": source.url}, b"body")
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    answer = wire.request("GET", path, query)
    assert (answer.status, answer.code) == (405, "UnsupportedHttpVerb")

"""Answers of the service that emulators of it do not give."""

import uuid

import pytest
from conftest import put_many, refused
from lib.wire import Wire
from test_pages import PAGE, ranges
from test_recorded import base64_md5, path_of, signed_url

FIXED = "6f3a8c1e-0b7d-4e5a-9c2f-1234567890ab"


def test_page_ranges_are_contiguous_whatever_the_writes_were(blob, wire):
    blob.create_page_blob(16 * PAGE)
    for start, end in ((512, 2048), (4096, 5120), (2048, 2560), (0, 1024)):
        blob.upload_page(b"x" * (end - start), start, end - start)
    assert ranges(blob) == [(0, 2559), (4096, 5119)]
    listed = wire.request("GET", path_of(blob), {"comp": "pagelist"}).body
    assert listed.count(b"<PageRange>") == 2


@pytest.mark.parametrize("kind", ["BlockBlob", "PageBlob", "AppendBlob"])
def test_a_range_behind_the_end(container, wire, kind):
    blob = container.get_blob_client("b")
    if kind == "PageBlob":
        blob.create_page_blob(PAGE)
    else:
        blob.upload_blob(b"x" * PAGE, blob_type=kind)
    for asked, status, code in ((f"bytes={PAGE - 1}-", 206, ""), (f"bytes={PAGE}-", 416, "InvalidRange"),
                                (f"bytes={PAGE}-{PAGE + 9}", 416, "InvalidRange"), ("bytes=9999-", 416, "InvalidRange")):
        answer = wire.request("GET", path_of(blob), headers={"x-ms-range": asked})
        assert (answer.status, answer.code) == (status, code), asked


@pytest.mark.parametrize("spelled", [
    FIXED, FIXED.upper(), FIXED.replace("-", ""), f"{{{FIXED}}}", f"({FIXED})",
    "{" + ",".join(f"0x{word}" for word in FIXED.split("-")[:3])
    + ",{" + ",".join(f"0x{FIXED.replace('-', '')[at:at + 2]}" for at in range(16, 32, 2)) + "}}"])
def test_lease_ids_are_guids_however_spelled(blob, container, wire, spelled):
    blob.upload_blob(b"x")
    for path, query in ((path_of(blob), {}), (f"/{container.container_name}", {"restype": "container"})):
        acquire = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": spelled}
        answer = wire.request("PUT", path, {**query, "comp": "lease"}, acquire)
        assert (answer.status, answer.headers.get("x-ms-lease-id")) == (201, FIXED), answer
        renew = {"x-ms-lease-action": "renew", "x-ms-lease-id": spelled}
        answer = wire.request("PUT", path, {**query, "comp": "lease"}, renew)
        assert (answer.status, answer.headers["x-ms-lease-id"]) == (200, FIXED)
        release = {"x-ms-lease-action": "release", "x-ms-lease-id": spelled}
        assert wire.request("PUT", path, {**query, "comp": "lease"}, release).status == 200
    for foreign in ("any-text", f"urn:uuid:{FIXED}"):
        refused(lambda: blob.acquire_lease(-1, lease_id=foreign), 400, "InvalidHeaderValue")


def test_flags_are_true_or_not_there(container, blob, wire):
    """`x-ms-access-tier-inferred` and `x-ms-blob-sealed`."""
    listing = lambda: wire.request(  # noqa: E731
        "GET", f"/{container.container_name}", {"restype": "container", "comp": "list"}).body
    blob.upload_blob(b"x")
    assert wire.request("HEAD", path_of(blob)).headers["x-ms-access-tier-inferred"] == "true"
    assert b"<AccessTierInferred>true</AccessTierInferred>" in listing()
    blob.set_standard_blob_tier("Cool")
    assert "x-ms-access-tier-inferred" not in wire.request("HEAD", path_of(blob)).headers
    assert b"AccessTierInferred" not in listing()
    log = container.get_blob_client("log")
    log.create_append_blob()
    appended = wire.request("PUT", path_of(log), {"comp": "appendblock"}, body=b"x")
    for answer in (appended, wire.request("HEAD", path_of(log)), wire.request("GET", path_of(log))):
        assert answer.status in (200, 201) and "x-ms-blob-sealed" not in answer.headers
    assert b"<Sealed>" not in listing()
    log.seal_append_blob()
    for method in ("HEAD", "GET"):
        assert wire.request(method, path_of(log)).headers["x-ms-blob-sealed"] == "true"
    assert b"<Sealed>true</Sealed>" in listing()


def test_the_property_md5_has_one_name_in_each_answer(blob, wire):
    blob.upload_blob(b"content")
    whole = wire.request("GET", path_of(blob)).headers
    assert whole["content-md5"] == base64_md5(b"content") and "x-ms-blob-content-md5" not in whole
    part = wire.request("GET", path_of(blob), headers={"x-ms-range": "bytes=0-2"}).headers
    assert part["x-ms-blob-content-md5"] == base64_md5(b"content") and "content-md5" not in part
    checked = {"x-ms-range": "bytes=0-2", "x-ms-range-get-content-md5": "true"}
    both = wire.request("GET", path_of(blob), headers=checked).headers
    assert (both["content-md5"], both["x-ms-blob-content-md5"]) == (base64_md5(b"con"), base64_md5(b"content"))


def test_names_are_no_markers(container, wire):
    put_many(container, ["a", "b", "c"])
    for path, query, name in ((f"/{container.container_name}", {"restype": "container", "comp": "list"}, "b"),
                              ("/", {"comp": "list"}, container.container_name)):
        answer = wire.request("GET", path, {**query, "marker": name})
        assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")
    page = container.list_blobs(results_per_page=1).by_page()
    assert [blob.name for blob in next(page)] == ["a"]
    rest = container.list_blobs().by_page(continuation_token=page.continuation_token)
    assert [blob.name for blobs in rest for blob in blobs] == ["b", "c"], "but what was given is"
    assert [blob.name for blob in container.list_blobs(start_from="b")] == ["b", "c"]


def test_a_blob_is_not_deleted_if_it_must_not_exist(blob, wire):
    blob.upload_blob(b"x")
    answer = wire.request("DELETE", path_of(blob), headers={"if-none-match": "*"})
    assert (answer.status, answer.code) == (412, "ConditionNotMet")
    assert blob.exists()


def test_a_premium_tier_is_none_of_a_copy(account, container, wire):
    source = container.upload_blob("source", b"x")
    disk = container.get_blob_client("disk")
    disk.create_page_blob(PAGE)
    url = {"x-ms-copy-source": signed_url(account, source), "x-ms-access-tier": "P10"}
    page = {"x-ms-copy-source": signed_url(account, disk), "x-ms-access-tier": "P10"}
    for headers in (url, page, {**url, "x-ms-requires-sync": "true"}, {**url, "x-ms-blob-type": "BlockBlob"}):
        answer = wire.request("PUT", f"/{container.container_name}/copy", None, headers)
        assert (answer.status, answer.code) == (409, "BlobAccessTierNotSupportedForAccountType"), headers
    assert not container.get_blob_client("copy").exists()


def test_a_private_source_in_another_account(two_keys, account, container):
    """A missing authorization is 401, whoever signs the request."""
    source = container.upload_blob("source", b"x")
    other = two_keys[0].service().create_container(f"c{uuid.uuid4().hex}")
    wire = Wire(two_keys[0])
    for headers in ({}, {"x-ms-requires-sync": "true"}):
        answer = wire.request("PUT", f"/{other.container_name}/copy", None, {**headers, "x-ms-copy-source": source.url})
        assert (answer.status, answer.code) == (401, "CannotVerifyCopySource")
        assert b"Please refer to the information in the www-authenticate header." in answer.body
    other.delete_container()

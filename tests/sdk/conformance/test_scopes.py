"""Encryption scopes: which requests name them, what answers name, what containers insist on."""

import uuid

import pytest
from conftest import refused
from test_copies import signed
from test_encryption import PAGE, key

NAMED = {"x-ms-encryption-scope": "ours"}
USES, DIFFERS = "BlobUsesCustomerSpecifiedEncryption", "BlobCustomerSpecifiedEncryptionMismatch"
FORBIDDEN = "RequestForbiddenByContainerEncryptionPolicy"
MISSING = "The blob is encrypted with customer specified encryption, but it was not provided in the request."


def answer(wire, blob, comp, headers=(), body=b"", method="PUT"):
    """The answer to a request on a blob; `comp` may be a query."""
    query = comp if isinstance(comp, dict) else {"comp": comp}
    return wire.request(method, f"/{blob.container_name}/{blob.blob_name}", query, dict(headers), body)


def of_container(service, deny):
    """A container with the default scope `ours`."""
    return service.create_container(f"scoped-{uuid.uuid4().hex}", container_encryption_scope={
        "default_encryption_scope": "ours", "prevent_encryption_scope_override": deny})


def test_a_blob_under_a_scope_is_changed_by_naming_it(container, wire):
    blob = container.get_blob_client("block")
    blob.upload_blob(b"x", encryption_scope="ours")
    blob.stage_block("a", b"one", encryption_scope="ours")
    document = b'<?xml version="1.0" encoding="utf-8"?><BlockList><Latest>YQ==</Latest></BlockList>'
    for comp, body, status in (("metadata", b"", 200), ("snapshot", b"", 201), ("blocklist", document, 201)):
        unnamed = answer(wire, blob, comp, body=body)
        assert (unnamed.status, unnamed.headers["x-ms-error-code"]) == (409, USES), comp
        assert MISSING.encode() in unnamed.body
        assert answer(wire, blob, comp, NAMED, body).status == status, comp
    refused(lambda: blob.set_blob_metadata({}, encryption_scope="theirs"), 409, DIFFERS)
    assert blob.download_blob().readall() == b"one", "reads need no name"
    assert blob.get_blob_properties().encryption_scope == "ours"
    # Neither does what replaces it, or changes neither content nor metadata.
    blob.set_blob_tags({"a": "b"})
    blob.set_http_headers()
    blob.upload_blob(b"plain", overwrite=True)
    assert blob.get_blob_properties().encryption_scope is None


def test_appends_and_pages_name_the_scope_of_their_blob(container):
    log = container.get_blob_client("log")
    log.create_append_blob(encryption_scope="ours")
    refused(lambda: log.append_block(b"one"), 409, USES)
    assert log.append_block(b"one", encryption_scope="ours")["encryption_scope"] == "ours"
    disk = container.get_blob_client("disk")
    disk.create_page_blob(4 * PAGE, encryption_scope="ours")
    page = b"x" * PAGE
    for change in (lambda **named: disk.upload_page(page, 0, PAGE, **named), lambda **named: disk.clear_page(0, PAGE, **named),
                   lambda **named: disk.resize_blob(2 * PAGE, **named)):
        refused(change, 409, USES)
        change(headers=NAMED)
    disk.set_sequence_number("update", "7")


def test_a_block_list_replaces_a_blob_without_a_scope_by_one_under_it(blob):
    blob.upload_blob(b"plain")
    blob.stage_block("a", b"one", encryption_scope="ours")
    assert blob.commit_block_list(["a"], encryption_scope="ours")["encryption_scope"] == "ours"


@pytest.mark.parametrize("deny", [False, True])
def test_answers_name_the_default_scope(service, wire, deny):
    container = of_container(service, deny)
    blob = container.get_blob_client("block")
    assert blob.upload_blob(b"x")["encryption_scope"] == "ours"
    assert blob.stage_block("a", b"one")["encryption_scope"] == "ours"
    assert blob.commit_block_list(["a"])["encryption_scope"] == "ours"
    for comp in ("metadata", "snapshot"):
        assert answer(wire, blob, comp).headers["x-ms-encryption-scope"] == "ours", comp
    log = container.get_blob_client("log")
    log.create_append_blob()
    assert log.append_block(b"one")["encryption_scope"] == "ours"
    assert log.append_block(b"two", headers=NAMED)["encryption_scope"] == "ours"
    disk = container.get_blob_client("disk")
    disk.create_page_blob(2 * PAGE)
    assert disk.upload_page(b"x" * PAGE, 0, PAGE)["encryption_scope"] == "ours"
    disk.clear_page(0, PAGE)
    disk.resize_blob(PAGE)
    container.delete_container()


def test_a_container_that_insists_refuses_other_names_before_it_looks_up_the_blob(service, account, wire):
    container = of_container(service, True)
    source = container.get_blob_client("source")
    source.upload_blob(b"x" * PAGE)
    url = {"x-ms-copy-source": signed(account, source), "x-ms-source-range": f"bytes=0-{PAGE - 1}"}
    pages = {"x-ms-page-write": "update", "x-ms-range": f"bytes=0-{PAGE - 1}"}
    nothing, block, body = container.get_blob_client("nothing"), {"comp": "block", "blockid": "YQ=="}, b"x" * PAGE
    for other in ({"x-ms-encryption-scope": "theirs"}, key(1)):
        for comp, headers, sent in (
                ("metadata", {}, b""), ("snapshot", {}, b""), ("appendblock", {}, body), ("page", pages, body), (block, {}, body),
                ("appendblock", url, b""), ("page", pages | url, b""), (block, url, b"")):
            got = answer(wire, nothing, comp, headers | other, sent)
            assert (got.status, got.headers["x-ms-error-code"]) == (403, FORBIDDEN), (comp, other)
        for revision in (source, nothing):
            got = answer(wire, revision, "metadata", other)
            assert (got.status, got.headers["x-ms-error-code"]) == (403, FORBIDDEN)
    container.delete_container()


def test_parts_from_urls_take_a_scope(account, container, wire):
    source = container.get_blob_client("source")
    source.upload_blob(b"x" * PAGE)
    url = {"x-ms-copy-source": signed(account, source), "x-ms-source-range": f"bytes=0-{PAGE - 1}"}
    block, log, disk = (container.get_blob_client(name) for name in ("block", "log", "disk"))
    log.create_append_blob(encryption_scope="ours")
    disk.create_page_blob(PAGE, encryption_scope="ours")
    pages = {"x-ms-page-write": "update", "x-ms-range": f"bytes=0-{PAGE - 1}"}
    for blob, comp, headers in ((block, {"comp": "block", "blockid": "YQ=="}, {}), (log, "appendblock", {}), (disk, "page", pages)):
        got = answer(wire, blob, comp, url | headers | NAMED)
        assert (got.status, got.headers["x-ms-encryption-scope"]) == (201, "ours"), comp
    for blob, comp, headers in ((log, "appendblock", {}), (disk, "page", pages)):
        got = answer(wire, blob, comp, url | headers)
        assert (got.status, got.headers["x-ms-error-code"]) == (409, USES), comp
    block.commit_block_list(["a"], encryption_scope="ours")
    for blob in (block, log, disk):
        assert blob.download_blob().readall() == b"x" * PAGE

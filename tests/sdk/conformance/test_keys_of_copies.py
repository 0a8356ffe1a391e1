"""Customer-provided keys of what is taken from a URL: of the destination, of the source, of both."""

import base64
import hashlib

import pytest
from conftest import refused
from lib.content import content
from test_copies import signed
from test_encryption import MARK, PAGE, key, on_disk
from test_outside_copies import opened, source  # pylint: disable=unused-import

BLOCK_BLOB = {"x-ms-blob-type": "BlockBlob"}
BLOCK = {"comp": "block", "blockid": "YQ=="}
NEW = {"x-ms-version": "2026-04-06"}


def source_key(byte):
    """The headers of the key of a source."""
    return {name.replace("x-ms-", "x-ms-source-", 1): value for name, value in key(byte).items()}


def from_url(wire, blob, query, *headers):
    """The answer to an operation that takes bytes from a URL."""
    every = dict(NEW)
    for more in headers:
        every |= more
    return wire.request("PUT", f"/{blob.container_name}/{blob.blob_name}", query, every)


def code(answer):
    """Status and code."""
    return answer.status, answer.headers.get("x-ms-error-code")


def make_block(wire, blob, source_of, keys):
    """Put Block From URL and its list."""
    answer = from_url(wire, blob, BLOCK, source_of, keys)
    if answer.status == 201:
        blob.commit_block_list(["a"], headers={name: value for name, value in keys.items() if "source" not in name})
    return answer


def make_blob(wire, blob, source_of, keys):
    """Put Blob From URL."""
    return from_url(wire, blob, {}, BLOCK_BLOB, source_of, keys)


def make_append(wire, blob, source_of, keys):
    """Append Block From URL to a new blob."""
    blob.create_append_blob(headers={name: value for name, value in keys.items() if "source" not in name})
    return from_url(wire, blob, {"comp": "appendblock"}, source_of, keys)


def make_pages(wire, blob, source_of, keys):
    """Put Page From URL to a new blob."""
    size = 128 * PAGE
    blob.create_page_blob(size, headers={name: value for name, value in keys.items() if "source" not in name})
    pages = {"x-ms-page-write": "update", "x-ms-range": f"bytes=0-{size - 1}", "x-ms-source-range": f"bytes=0-{size - 1}"}
    return from_url(wire, blob, {"comp": "page"}, pages, source_of, keys)


MAKERS = [make_blob, make_block, make_append, make_pages]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("of_source", [None, 1])
@pytest.mark.parametrize("of_copy", [None, 1, 2])
def test_every_pair_of_keys(account, container, wire, make, of_source, of_copy):
    """The copy is read with its own key alone, and outlives its source."""
    bytes_of = content(f"{of_source}{of_copy}", 128 * PAGE)
    original, copy = container.get_blob_client("source"), container.get_blob_client("copy")
    original.upload_blob(bytes_of, headers=key(of_source) if of_source else {})
    keys = (source_key(of_source) if of_source else {}) | (key(of_copy) if of_copy else {})
    answer = make(wire, copy, {"x-ms-copy-source": signed(account, original)}, keys)
    assert answer.status == 201, answer.body
    assert answer.headers.get("x-ms-encryption-key-sha256") == (key(of_copy)["x-ms-encryption-key-sha256"] if of_copy else None)
    original.delete_blob()
    own = key(of_copy) if of_copy else {}
    assert copy.download_blob(headers=own).readall() == bytes_of
    assert copy.download_blob(offset=20_000, length=30_000, headers=own).readall() == bytes_of[20_000:50_000]
    if of_copy:
        refused(copy.download_blob, 409, "BlobUsesCustomerSpecifiedEncryption")
        refused(lambda: copy.download_blob(headers=key(3)), 409, "BlobCustomerSpecifiedEncryptionMismatch")
    if make is make_blob:
        md5 = hashlib.md5(bytes_of).digest()
        assert copy.get_blob_properties(headers=own).content_settings.content_md5 == md5


@pytest.mark.parametrize("make", MAKERS)
def test_no_copy_without_the_key_of_the_source(account, container, wire, make):
    original, plain = container.get_blob_client("source"), container.get_blob_client("plain")
    original.upload_blob(content("source", 128 * PAGE), headers=key(1))
    plain.upload_blob(content("source", 128 * PAGE))
    for name, of, keys, cause in (("a", original, {}, "BlobUsesCustomerSpecifiedEncryption"),
                                  ("b", original, key(1), "BlobUsesCustomerSpecifiedEncryption"),
                                  ("c", original, source_key(2), "BlobCustomerSpecifiedEncryptionMismatch"),
                                  ("d", plain, source_key(1), "BlobDoesNotUseCustomerSpecifiedEncryption")):
        answer = make(wire, container.get_blob_client(name), {"x-ms-copy-source": signed(account, of)}, keys)
        assert code(answer) == (409, "CannotVerifyCopySource"), (name, answer.body)
        assert answer.headers["x-ms-copy-source-error-code"] == cause, name


def test_blocks_and_ranges_of_a_source_under_a_key(account, container, wire):
    """Of blocks of several sizes: whole, one block of them, and ranges that cut them. The checksums are of the plain bytes."""
    bytes_of = content("blocks", 300_000)
    original, copy = container.get_blob_client("source"), container.get_blob_client("copy")
    for name, part in (("a", bytes_of[:200_000]), ("b", bytes_of[200_000:])):
        original.stage_block(name, part, headers=key(1))
    original.commit_block_list(["a", "b"], headers=key(1))
    url = {"x-ms-copy-source": signed(account, original)}
    for first, last in ((0, 199_999), (200_000, 299_999), (150_000, 249_999), (7, 7)):
        wanted = bytes_of[first:last + 1]
        checked = {"x-ms-source-range": f"bytes={first}-{last}",
                   "x-ms-source-content-md5": base64.b64encode(hashlib.md5(wanted).digest()).decode()}
        for own in ({}, key(1), key(2)):
            answer = from_url(wire, copy, BLOCK, url, checked, source_key(1), own)
            assert answer.status == 201, answer.body
            copy.commit_block_list(["a"], headers=own)
            assert copy.download_blob(headers=own).readall() == wanted
    whole = from_url(wire, copy, {}, BLOCK_BLOB, url, source_key(1), key(2))
    plain = container.get_blob_client("plain").upload_blob(bytes_of)
    assert whole.headers["x-ms-content-crc64"] == base64.b64encode(plain["content_crc64"]).decode()
    wrong = {"x-ms-source-content-md5": base64.b64encode(bytes(16)).decode()}
    assert code(from_url(wire, copy, {}, BLOCK_BLOB, url, wrong, source_key(1), key(2))) == (400, "Md5Mismatch")


def test_the_bytes_of_a_copy_are_encrypted_on_disk(server, account, container, wire):
    mark = MARK[::-1]
    original, copy = container.get_blob_client("source"), container.get_blob_client("copy")
    for name, data in {"large": mark * 4000, "inline": mark}.items():
        original.upload_blob(data, headers=key(1), overwrite=True)
        for of_copy in (1, 2):
            answer = make_blob(wire, copy, {"x-ms-copy-source": signed(account, original)}, source_key(1) | key(of_copy))
            assert answer.status == 201, (name, answer.body)
            assert copy.download_blob(headers=key(of_copy)).readall() == data
    assert on_disk(server, mark) == []


def test_appends_and_pages_from_urls_need_the_key_of_their_blob(account, container, wire):
    original = container.get_blob_client("source")
    original.upload_blob(b"x" * PAGE)
    url = {"x-ms-copy-source": signed(account, original), "x-ms-source-range": f"bytes=0-{PAGE - 1}"}
    log, disk = container.get_blob_client("log"), container.get_blob_client("disk")
    log.create_append_blob(headers=key(1))
    disk.create_page_blob(PAGE, headers=key(1))
    pages = {"x-ms-page-write": "update", "x-ms-range": f"bytes=0-{PAGE - 1}"}
    for blob, comp, headers in ((log, "appendblock", {}), (disk, "page", pages)):
        for keys, cause in (({}, "BlobUsesCustomerSpecifiedEncryption"), (key(2), "BlobCustomerSpecifiedEncryptionMismatch")):
            assert code(from_url(wire, blob, {"comp": comp}, url, headers, keys)) == (409, cause), comp
        assert from_url(wire, blob, {"comp": comp}, url, headers, key(1)).status == 201


def test_headers_of_keys_that_are_refused(account, container, wire):
    original = container.get_blob_client("source")
    original.upload_blob(b"x")
    copy, url = container.get_blob_client("copy"), {"x-ms-copy-source": signed(account, original)}
    refusal = (400, "UnsupportedHeader")
    for keys in (key(1), source_key(1)):
        assert code(from_url(wire, copy, {}, url, keys)) == refusal, "Copy Blob"
        assert code(from_url(wire, copy, {}, url, keys, {"x-ms-requires-sync": "true"})) == refusal
    assert code(from_url(wire, copy, {}, BLOCK_BLOB, source_key(1))) == refusal, "no source"
    assert code(from_url(wire, original, {"comp": "metadata"}, source_key(1))) == refusal
    for left_out in source_key(1):
        part = {name: value for name, value in source_key(1).items() if name != left_out}
        assert code(from_url(wire, copy, {}, BLOCK_BLOB, url, part)) == (400, "MissingRequiredHeader"), left_out
    wrong = source_key(1) | {"x-ms-source-encryption-key-sha256": source_key(2)["x-ms-source-encryption-key-sha256"]}
    assert code(from_url(wire, copy, {}, BLOCK_BLOB, url, wrong)) == (400, "InvalidHeaderValue")


def test_the_server_of_the_source_is_sent_the_key(opened, source):  # pylint: disable=redefined-outer-name
    source.answers["/plain/a"] = (b"from elsewhere", {})
    container = opened.account.service().create_container("keys")
    copy = container.get_blob_client("copy")
    keys = source_key(1) | key(2) | NEW
    copy.upload_blob_from_url(source.url("/plain/a"), headers=keys)
    sent = {name.lower(): value for name, value in source.asked[-1][1].items()}
    assert {name: sent[name] for name in key(1)} == key(1)
    assert "x-ms-version" in sent
    assert copy.download_blob(headers=key(2)).readall() == b"from elsewhere"
    refused(copy.download_blob, 409, "BlobUsesCustomerSpecifiedEncryption")


def test_a_key_is_not_sent_to_another_server_in_the_clear(opened):  # pylint: disable=redefined-outer-name
    copy = opened.account.service().create_container("clear").get_blob_client("copy")
    error = refused(lambda: copy.upload_blob_from_url("http://192.0.2.1/plain/a", headers=source_key(1) | NEW), 400,
                    "InvalidHeaderValue")
    assert "x-ms-source-encryption-key" in str(error)

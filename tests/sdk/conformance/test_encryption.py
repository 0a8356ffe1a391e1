"""Customer-provided keys. The SDK sends them over https only, so the headers are given by hand."""

import base64
import hashlib
import pathlib
import random
import uuid

from azure.storage.blob import ContentSettings
from conftest import refused
from lib.content import content

MARK = b"this must not be found on disk: "
PAGE = 512
SECRET = b"000000: pages must not be found on disk, nor what they were before; "[:64].ljust(64, b".")


def key(byte):
    """The headers of a key of 32 equal bytes."""
    secret = bytes([byte]) * 32
    return {"x-ms-encryption-key": base64.b64encode(secret).decode(),
            "x-ms-encryption-key-sha256": base64.b64encode(hashlib.sha256(secret).digest()).decode(),
            "x-ms-encryption-algorithm": "AES256"}


def on_disk(server, needle):
    """The files of the server that hold these bytes."""
    files = (path for folder in server.data for path in pathlib.Path(folder).rglob("*") if path.is_file())
    return [str(path) for path in files if needle in path.read_bytes()]


def test_bytes_are_encrypted_on_disk_and_read_with_the_key(server, container):
    for name, data in {"large": MARK * 4000, "inline": MARK}.items():
        blob = container.get_blob_client(name)
        blob.upload_blob(data, headers=key(1))
        assert blob.download_blob(headers=key(1)).readall() == data
        assert blob.download_blob(offset=5, length=20, headers=key(1)).readall() == data[5:25]
    assert on_disk(server, MARK) == []
    container.get_blob_client("plain").upload_blob(MARK * 4000)
    assert on_disk(server, MARK) != [], "the search finds what is there"


def test_without_the_key_or_with_another_nothing_is_read(blob):
    blob.upload_blob(content("secret", 70_000), headers=key(1))
    refused(lambda: blob.download_blob(), 409, "BlobUsesCustomerSpecifiedEncryption")
    refused(lambda: blob.download_blob(headers=key(2)), 409, "BlobCustomerSpecifiedEncryptionMismatch")
    refused(lambda: blob.get_blob_properties(), 409, "BlobUsesCustomerSpecifiedEncryption")


def test_appends_to_an_encrypted_blob_need_its_key(blob):
    blob.create_append_blob(headers=key(1))
    blob.append_block(b"one ", headers=key(1))
    refused(lambda: blob.append_block(b"two"), 409, "BlobUsesCustomerSpecifiedEncryption")
    refused(lambda: blob.append_block(b"two", headers=key(2)), 409, "BlobCustomerSpecifiedEncryptionMismatch")
    blob.append_block(b"two", headers=key(1))
    assert blob.download_blob(headers=key(1)).readall() == b"one two"


def test_staged_blocks_and_their_list_share_a_key(blob):
    data = content("staged", 300_000)
    blob.stage_block("YQ==", data[:200_000], headers=key(1))
    blob.stage_block("Yg==", data[200_000:], headers=key(1))
    blob.commit_block_list(["YQ==", "Yg=="], headers=key(1))
    assert blob.download_blob(headers=key(1)).readall() == data


def test_snapshots_of_blocks_and_appends_are_read_in_ranges(container):
    data = content("kept", 300_000)
    for name in ("blocks", "appends"):
        blob = container.get_blob_client(name)
        if name == "blocks":
            blob.stage_block("YQ==", data[:200_000], headers=key(1))
            blob.stage_block("Yg==", data[200_000:], headers=key(1))
            blob.commit_block_list(["YQ==", "Yg=="], headers=key(1))
        else:
            blob.create_append_blob(headers=key(1))
            blob.append_block(data[:200_000], headers=key(1))
            blob.append_block(data[200_000:], headers=key(1))
        taken = blob.create_snapshot(headers=key(1))["snapshot"]
        kept = container.get_blob_client(name, snapshot=taken)
        for reader in (blob, kept):
            assert reader.download_blob(headers=key(1)).readall() == data
            for offset in (0, 16_367, 199_990, 299_999):
                found = reader.download_blob(offset=offset, length=40_000, headers=key(1)).readall()
                assert found == data[offset:offset + 40_000]
        refused(lambda: kept.download_blob(headers=key(2)), 409, "BlobCustomerSpecifiedEncryptionMismatch")


def test_content_md5_is_shown_and_set_with_the_key_only(container, blob):
    data = content("digest", 5_000)
    md5 = hashlib.md5(data).digest()
    blob.upload_blob(data, headers=key(1))
    assert blob.get_blob_properties(headers=key(1)).content_settings.content_md5 == md5
    assert [item.content_settings.content_md5 for item in container.list_blobs()] == [None]
    settings = ContentSettings(content_md5=bytearray(md5[::-1]))
    refused(lambda: blob.set_http_headers(settings), 409, "BlobUsesCustomerSpecifiedEncryption")
    blob.set_http_headers(settings, headers=key(1))
    assert blob.get_blob_properties(headers=key(1)).content_settings.content_md5 == md5[::-1]
    blob.set_http_headers(ContentSettings(content_type="text/plain"))
    assert blob.get_blob_properties(headers=key(1)).content_settings.content_md5 is None


def test_an_encrypted_source_is_not_copied_in_the_clear(container, blob):
    blob.upload_blob(content("source", 70_000), headers=key(1))
    copy = container.get_blob_client("copy")
    refused(lambda: copy.start_copy_from_url(blob.url), 409, "CannotVerifyCopySource")
    assert not copy.exists()


def test_pages_are_encrypted_on_disk_and_written_over(server, blob):
    """Against an array: writes of all sizes over each other, clears, and reads of any range."""
    dice, pages = random.Random(5), 600
    blob.create_page_blob(pages * PAGE, headers=key(1))
    image = bytearray(pages * PAGE)
    for _ in range(80):
        start = dice.randrange(pages)
        count = min(dice.choice((1, 2, 8, 9, 100, 300)), pages - start)
        window = slice(start * PAGE, (start + count) * PAGE)
        if dice.random() < 0.2:
            blob.clear_page(window.start, count * PAGE, headers=key(1))
            image[window] = bytes(count * PAGE)
        else:
            # The text differs from write to write, as a keystream used twice would show.
            data = (b"%06d" % dice.randrange(10**6) + SECRET[6:]) * (count * PAGE // len(SECRET))
            blob.upload_page(data, window.start, len(data), headers=key(1))
            image[window] = data
    assert blob.download_blob(headers=key(1)).readall() == image
    for _ in range(30):
        offset = dice.randrange(len(image) - 1)
        length = dice.randrange(1, min(len(image) - offset, 70_000))
        found = blob.download_blob(offset=offset, length=length, headers=key(1)).readall()
        assert found == image[offset:offset + length]
    assert on_disk(server, SECRET[6:]) == []


def test_pages_need_the_key(container, blob):
    blob.create_page_blob(8 * PAGE, headers=key(1))
    page = b"x" * PAGE
    uses, differs = "BlobUsesCustomerSpecifiedEncryption", "BlobCustomerSpecifiedEncryptionMismatch"
    refused(lambda: blob.upload_page(page, 0, PAGE), 409, uses)
    refused(lambda: blob.upload_page(page, 0, PAGE, headers=key(2)), 409, differs)
    refused(lambda: blob.clear_page(0, PAGE), 409, uses)
    refused(lambda: blob.resize_blob(PAGE), 409, uses)
    seen = {}
    blob.upload_page(page, 0, PAGE, headers=key(1), raw_response_hook=lambda r: seen.update(r.http_response.headers))
    assert seen["x-ms-encryption-key-sha256"] == key(1)["x-ms-encryption-key-sha256"]
    blob.resize_blob(4 * PAGE, headers=key(1))
    # Ranges say nothing of the content, and Get Page Ranges takes no key.
    assert [(r.start, r.end) for r in blob.list_page_ranges()] == [(0, PAGE - 1)]
    assert blob.download_blob(headers=key(1)).readall() == page + bytes(3 * PAGE)
    refused(lambda: blob.download_blob().readall(), 409, uses)
    plain = container.get_blob_client("plain")
    plain.create_page_blob(PAGE)
    refused(lambda: plain.upload_page(page, 0, PAGE, headers=key(1)), 409, "BlobDoesNotUseCustomerSpecifiedEncryption")


def test_snapshots_and_properties_of_encrypted_blobs(container, blob):
    blob.create_page_blob(2 * PAGE, headers=key(1))
    blob.upload_page(b"1" * PAGE, 0, PAGE, headers=key(1))
    refused(blob.create_snapshot, 409, "BlobUsesCustomerSpecifiedEncryption")
    refused(lambda: blob.create_snapshot(headers=key(2)), 409, "BlobCustomerSpecifiedEncryptionMismatch")
    taken = blob.create_snapshot(headers=key(1))["snapshot"]
    blob.upload_page(b"2" * PAGE, 0, PAGE, headers=key(1))
    kept = container.get_blob_client(blob.blob_name, snapshot=taken)
    assert kept.download_blob(headers=key(1)).readall() == b"1" * PAGE + bytes(PAGE)
    assert blob.download_blob(headers=key(1)).readall() == b"2" * PAGE + bytes(PAGE)
    refused(lambda: kept.download_blob(headers=key(2)), 409, "BlobCustomerSpecifiedEncryptionMismatch")
    settings = ContentSettings(content_type="text/plain")
    blob.set_http_headers(settings)
    blob.set_http_headers(settings, headers=key(1))
    refused(lambda: blob.set_http_headers(settings, headers=key(2)), 409, "BlobCustomerSpecifiedEncryptionMismatch")
    assert blob.get_blob_properties(headers=key(1)).content_settings.content_type == "text/plain"


def test_page_blobs_take_the_scope_of_their_container(service):
    container = service.create_container(
        f"scoped-{uuid.uuid4()}", container_encryption_scope={"default_encryption_scope": "ours", "prevent_encryption_scope_override": True})
    blob = container.get_blob_client("disk")
    blob.create_page_blob(PAGE)
    blob.upload_page(b"x" * PAGE, 0, PAGE)
    assert blob.get_blob_properties().encryption_scope == "ours"
    refused(lambda: container.get_blob_client("other").create_page_blob(PAGE, headers=key(1)), 403,
            "RequestForbiddenByContainerEncryptionPolicy")
    container.delete_container()

"""Customer-provided keys. The SDK sends them over https only, so the headers are given by hand."""

import base64
import hashlib
import pathlib

from conftest import refused
from lib.content import content

MARK = b"this must not be found on disk: "


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


def test_an_encrypted_source_is_not_copied_in_the_clear(container, blob):
    blob.upload_blob(content("source", 70_000), headers=key(1))
    copy = container.get_blob_client("copy")
    refused(lambda: copy.start_copy_from_url(blob.url), 409, "CannotVerifyCopySource")
    assert not copy.exists()

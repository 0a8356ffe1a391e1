"""Whole blobs: put, read, ranges, checksums, properties, metadata, delete."""

import base64
import hashlib
import uuid

import pytest
from azure.storage.blob import ContentSettings
from conftest import refused
from lib.content import content


@pytest.mark.parametrize("size", [0, 1, 511, 512, 4095, 4096, 4097, 65536, 100_000, 1 << 20, (4 << 20) + 1, 9_000_001])
def test_round_trip(blob, size):
    data = content("round trip", size)
    made = blob.upload_blob(data)
    download = blob.download_blob()
    assert download.readall() == data
    assert download.properties.etag == made["etag"]
    assert download.properties.last_modified == made["last_modified"]
    found = blob.get_blob_properties()
    assert (found.size, found.blob_type, found.content_settings.content_type) == \
        (size, "BlockBlob", "application/octet-stream")
    assert found.content_settings.content_md5 == bytearray(hashlib.md5(data).digest())
    assert found.creation_time and found.server_encrypted
    assert (found.lease.status, found.lease.state) == ("unlocked", "available")


def test_put_replaces_everything(blob):
    settings = ContentSettings(content_type="text/plain", content_language="nl", cache_control="no-store",
                               content_encoding="identity", content_disposition="inline")
    first = blob.upload_blob(b"first", metadata={"a": "1"}, content_settings=settings)
    found = blob.get_blob_properties()
    assert {k: v for k, v in found.content_settings.items() if k != "content_md5"} == \
        {k: v for k, v in settings.items() if k != "content_md5"}
    second = blob.upload_blob(b"second", overwrite=True)
    assert first["etag"] != second["etag"]
    found = blob.get_blob_properties()
    assert not found.metadata and found.content_settings.content_language is None
    assert blob.download_blob().readall() == b"second"


def test_missing_blob(blob):
    refused(lambda: blob.download_blob().readall(), 404, "BlobNotFound")
    refused(blob.get_blob_properties, 404, "BlobNotFound")
    refused(blob.delete_blob, 404, "BlobNotFound")
    refused(lambda: blob.set_blob_metadata({"a": "b"}), 404, "BlobNotFound")
    refused(lambda: blob.set_http_headers(ContentSettings()), 404, "BlobNotFound")
    refused(blob.get_block_list, 404, "BlobNotFound")
    assert not blob.exists()


def test_exists_already(blob):
    blob.upload_blob(b"x")
    refused(lambda: blob.upload_blob(b"y"), 409, "BlobAlreadyExists")
    assert blob.download_blob().readall() == b"x"


def test_delete(blob):
    blob.upload_blob(b"x")
    blob.delete_blob()
    assert not blob.exists()
    refused(blob.delete_blob, 404, "BlobNotFound")
    blob.upload_blob(b"again")
    assert blob.download_blob().readall() == b"again"


@pytest.mark.parametrize("size", [10, 5000, 300_000])
def test_ranges(blob, size):
    data = content("ranges", size)
    blob.upload_blob(data)
    for offset, length in [(0, 1), (0, size), (size - 1, 1), (size // 3, size // 3), (1, size), (size // 2, 10 * size)]:
        assert blob.download_blob(offset=offset, length=length).readall() == data[offset:offset + length]
    assert blob.download_blob(offset=size // 2).readall() == data[size // 2:]


def test_range_answers(wire, container):
    path = f"/{container.container_name}/b"
    container.upload_blob("b", b"0123456789")
    answer = wire.request("GET", path, headers={"x-ms-range": "bytes=2-4"})
    assert (answer.status, answer.body, answer.headers["content-range"]) == (206, b"234", "bytes 2-4/10")
    assert answer.headers["accept-ranges"] == "bytes"
    assert wire.request("GET", path, headers={"range": "bytes=7-"}).body == b"789"
    both = wire.request("GET", path, headers={"range": "bytes=0-0", "x-ms-range": "bytes=5-5"})
    assert both.body == b"5", "x-ms-range wins over Range"
    past = wire.request("GET", path, headers={"x-ms-range": "bytes=10-"})
    assert (past.status, past.code, past.headers["content-range"]) == (416, "InvalidRange", "bytes */10")


def test_range_of_an_empty_blob(blob):
    blob.upload_blob(b"")
    refused(lambda: blob.download_blob(offset=0, length=5), 416, "InvalidRange")
    assert blob.download_blob().readall() == b"", "the SDK asks with a range first and falls back on 416"


def test_range_md5(wire, container):
    data = content("range md5", 9 << 20)
    container.upload_blob("b", data)
    path = f"/{container.container_name}/b"
    answer = wire.request("GET", path, headers={"x-ms-range": "bytes=100-1099", "x-ms-range-get-content-md5": "true"})
    assert answer.headers["content-md5"] == base64.b64encode(hashlib.md5(data[100:1100]).digest()).decode()
    for wanted in (f"bytes=0-{4 << 20}", "bytes=0-"):
        for name in ("x-ms-range-get-content-md5", "x-ms-range-get-content-crc64"):
            long = wire.request("GET", path, headers={"x-ms-range": wanted, name: "true"})
            assert (long.status, long.code) == (400, "OutOfRangeInput")
            assert f"<HeaderName>{name}</HeaderName>".encode() in long.body
    plain = wire.request("GET", path, headers={"x-ms-range": "bytes=0-9"})
    assert "content-md5" not in plain.headers


def test_range_crc64(wire, container):
    checksums = pytest.importorskip("azure.storage.extensions.checksums")
    data = content("range crc", 50_000)
    container.upload_blob("b", data)
    answer = wire.request("GET", f"/{container.container_name}/b", headers={
        "x-ms-range": "bytes=1000-40999", "x-ms-range-get-content-crc64": "true"})
    wanted = checksums.crc64.compute(data[1000:41000], 0).to_bytes(8, "little")
    assert answer.headers["x-ms-content-crc64"] == base64.b64encode(wanted).decode()


@pytest.mark.parametrize("size", [3, 200_000])
def test_validated_by_md5(blob, size):
    data = content("md5", size)
    blob.upload_blob(data, validate_content=True)
    assert blob.download_blob(validate_content=True).readall() == data


@pytest.mark.parametrize("size", [3, 200_000])
def test_validated_by_crc64(container, size):
    pytest.importorskip("azure.storage.extensions.checksums")
    data = content("crc64", size)
    blob = container.get_blob_client("b")
    blob.stage_block("AAAA", data, validate_content="crc64")
    blob.commit_block_list(["AAAA"])
    assert blob.download_blob().readall() == data


def test_wrong_checksums(wire, container):
    path = f"/{container.container_name}/b"
    kind = {"x-ms-blob-type": "BlockBlob"}
    md5 = base64.b64encode(hashlib.md5(b"other").digest()).decode()
    crc = base64.b64encode(b"12345678").decode()
    for query, extra in (({}, kind), ({"comp": "block", "blockid": "AAAA"}, {})):
        answer = wire.request("PUT", path, query, {**extra, "content-md5": md5}, b"body")
        assert (answer.status, answer.code) == (400, "Md5Mismatch")
        answer = wire.request("PUT", path, query, {**extra, "x-ms-content-crc64": crc}, b"body")
        assert (answer.status, answer.code) == (400, "Crc64Mismatch")
        answer = wire.request("PUT", path, query, {**extra, "x-ms-content-crc64": crc, "content-md5": md5}, b"body")
        assert (answer.status, answer.code) == (400, "BothCrc64AndMd5HeaderPresent")
        answer = wire.request("PUT", path, query, {**extra, "content-md5": "AAAA"}, b"body")
        assert (answer.status, answer.code) == (400, "InvalidMd5")
    assert wire.request("HEAD", path).status == 404, "a refused write must leave nothing"


def test_checksums_are_returned(wire, container):
    checksums = pytest.importorskip("azure.storage.extensions.checksums")
    path, body = f"/{container.container_name}/b", b"some bytes"
    crc = base64.b64encode(checksums.crc64.compute(body, 0).to_bytes(8, "little")).decode()
    md5 = base64.b64encode(hashlib.md5(body).digest()).decode()
    answer = wire.request("PUT", path, headers={"x-ms-blob-type": "BlockBlob", "content-md5": md5}, body=body)
    assert (answer.status, answer.headers["content-md5"]) == (201, md5)
    answer = wire.request("PUT", path, headers={"x-ms-blob-type": "BlockBlob", "x-ms-content-crc64": crc}, body=body)
    assert (answer.status, answer.headers["x-ms-content-crc64"]) == (201, crc)
    answer = wire.request("PUT", path, headers={"x-ms-blob-type": "BlockBlob"}, body=body)
    assert crc in answer.headers.get("x-ms-content-crc64", "") or answer.headers.get("content-md5") == md5
    assert wire.request("GET", path).headers["content-md5"] == md5


def test_http_headers(blob):
    made = blob.upload_blob(b"x", content_settings=ContentSettings(content_type="a/b", cache_control="no-cache"))
    blob.set_http_headers(ContentSettings(content_type="text/html", content_language="fr"))
    found = blob.get_blob_properties()
    assert found.content_settings.content_type == "text/html"
    assert found.content_settings.content_language == "fr"
    assert found.content_settings.cache_control is None, "what is not given is cleared"
    assert found.etag != made["etag"]
    assert blob.download_blob().readall() == b"x"


def test_metadata(blob):
    blob.upload_blob(b"x", metadata={"Hello": "World", "number": "42"})
    assert blob.get_blob_properties().metadata == {"Hello": "World", "number": "42"}
    before = blob.get_blob_properties().etag
    blob.set_blob_metadata({"only": "this"})
    found = blob.get_blob_properties()
    assert found.metadata == {"only": "this"} and found.etag != before
    assert blob.download_blob().properties.metadata == {"only": "this"}
    blob.set_blob_metadata(None)
    assert not blob.get_blob_properties().metadata


def test_metadata_through_get_metadata(wire, container):
    container.upload_blob("b", b"x", metadata={"key": "value"})
    for method in ("GET", "HEAD"):
        answer = wire.request(method, f"/{container.container_name}/b", {"comp": "metadata"})
        assert (answer.status, answer.headers["x-ms-meta-key"], answer.body) == (200, "value", b"")
    answer = wire.request("GET", f"/{container.container_name}", {"restype": "container", "comp": "metadata"})
    assert answer.status == 200


@pytest.mark.parametrize("headers, code", [
    ({"x-ms-meta-a-b": "1"}, "InvalidMetadata"), ({"x-ms-meta-": "1"}, "EmptyMetadataKey"),
    ({"x-ms-meta-1a": "1"}, "InvalidMetadata"), ({"x-ms-meta-big": "x" * 8300}, "MetadataTooLarge"),
])
def test_bad_metadata(wire, container, headers, code):
    answer = wire.request("PUT", f"/{container.container_name}/b", headers={"x-ms-blob-type": "BlockBlob", **headers})
    assert (answer.status, answer.code) == (400, code)


def test_echoes(wire, container):
    mark = str(uuid.uuid4())
    answer = wire.request("PUT", f"/{container.container_name}/b", headers={
        "x-ms-blob-type": "BlockBlob", "x-ms-client-request-id": mark, "x-ms-version": "2021-12-02"})
    assert answer.headers["x-ms-client-request-id"] == mark
    assert answer.headers["x-ms-version"] == "2021-12-02"
    assert uuid.UUID(answer.headers["x-ms-request-id"])
    assert answer.headers["etag"].startswith('"0x') and answer.headers["date"] and answer.headers["last-modified"]
    missing = wire.request("GET", f"/{container.container_name}/nothing")
    assert b"<Code>BlobNotFound</Code>" in missing.body and missing.code == "BlobNotFound"
    assert wire.request("HEAD", f"/{container.container_name}/nothing").body == b""


def test_what_is_not_served_says_so(wire, container):
    answer = wire.request("PUT", f"/{container.container_name}/b", {"comp": "expiry"}, {"x-ms-expiry-option": "NeverExpire"})
    assert answer.status == 501 and answer.code


def test_streams_of_unknown_length(blob):
    data = content("chunks", 5_000_000)
    blob.upload_blob((data[at:at + 70_000] for at in range(0, len(data), 70_000)))
    assert blob.download_blob().readall() == data


def test_parallel_upload_and_download(account, container):
    client = account.service(max_single_put_size=1 << 20, max_block_size=1 << 20, max_single_get_size=1 << 20,
                             max_chunk_get_size=1 << 20).get_blob_client(container.container_name, "b")
    data = content("parallel", 20_000_000)
    client.upload_blob(data, max_concurrency=6)
    assert client.download_blob(max_concurrency=6).readall() == data
    assert len(client.get_block_list("committed")[0]) == 20

"""Tags of content, conditions on them, checksums, and properties of objects that blobs do not have."""

import base64
import hashlib
import zlib

import pytest
from azure.storage.blob import BlobBlock, ContentSettings, StandardBlobTier
from botocore.exceptions import ClientError

from lib import s3


def quoted_md5(content):
    return f'"{hashlib.md5(content).hexdigest()}"'


def crc32(content):
    return base64.b64encode(zlib.crc32(content).to_bytes(4, "big")).decode()


DIGESTS = {
    "CRC32": lambda content: zlib.crc32(content).to_bytes(4, "big"),
    "SHA1": lambda content: hashlib.sha1(content).digest(),
    "SHA256": lambda content: hashlib.sha256(content).digest(),
}


@pytest.mark.parametrize("length", [0, 5, 4097, 3 << 20])
def test_the_tag_of_one_upload_is_its_md5(client, service, bucket, length):
    content = b"x" * length
    assert client.put_object(Bucket=bucket, Key="k", Body=content)["ETag"] == quoted_md5(content)
    assert client.head_object(Bucket=bucket, Key="k")["ETag"] == quoted_md5(content)
    blob = service.get_blob_client(bucket, "k")
    blob.set_blob_metadata({"a": "b"})
    blob.set_http_headers(ContentSettings(content_type="text/plain", content_md5=bytearray(b"\1" * 16)))
    for listed in (client.list_objects(Bucket=bucket), client.list_objects_v2(Bucket=bucket)):
        assert listed["Contents"][0]["ETag"] == quoted_md5(content)
    assert blob.get_blob_properties().etag.strip('"').startswith("0x")


def test_the_tag_of_blocks_is_no_md5_and_stays(client, service, bucket):
    blob = service.get_blob_client(bucket, "k")
    blob.stage_block("1", b"one")
    blob.stage_block("2", b"two")
    settings = ContentSettings(content_md5=bytearray(hashlib.md5(b"onetwo").digest()))
    blob.commit_block_list([BlobBlock("1"), BlobBlock("2")], content_settings=settings)
    tag = client.head_object(Bucket=bucket, Key="k")["ETag"].strip('"')
    assert len(tag) == 34 and tag.endswith("-1") and tag[:32] != hashlib.md5(b"onetwo").hexdigest()
    blob.set_blob_metadata({"a": "b"})
    assert client.list_objects_v2(Bucket=bucket)["Contents"][0]["ETag"] == f'"{tag}"'
    blob.commit_block_list([BlobBlock("2"), BlobBlock("1")])
    assert client.head_object(Bucket=bucket, Key="k")["ETag"] != f'"{tag}"'


def test_reads_follow_the_precedence_of_http(raw, client, bucket):
    tag = client.put_object(Bucket=bucket, Key="k", Body=b"one")["ETag"]
    other, past, future = f'"{"0" * 32}"', "Wed, 01 Jan 2020 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"
    for headers, status in [
        ({"if-match": tag}, 200),
        ({"if-match": tag.strip('"')}, 200),
        ({"if-match": f"{other}, {tag}"}, 200),
        ({"if-match": "*"}, 200),
        ({"if-match": other}, 412),
        ({"if-match": '"nonsense"'}, 412),
        ({"if-match": tag, "if-unmodified-since": past}, 200),
        ({"if-unmodified-since": past}, 412),
        ({"if-none-match": tag}, 304),
        ({"if-none-match": tag, "if-modified-since": past}, 304),
        ({"if-none-match": other, "if-modified-since": future}, 200),
        ({"if-modified-since": future}, 304),
        ({"if-modified-since": past}, 200),
    ]:
        for method in ("GET", "HEAD"):
            answer = raw.call(method, f"/{bucket}/k", headers=headers)
            assert answer.status == status, (method, headers, answer)
            if status == 304:
                assert answer.headers["etag"] == tag and not answer.body


def test_one_writer_of_a_tag_succeeds(client, bucket):
    def put(body, **conditions):
        return client.put_object(Bucket=bucket, Key="k", Body=body, **conditions)

    with pytest.raises(ClientError) as refused:
        put(b"0", IfMatch=quoted_md5(b"0"))
    assert s3.code(refused.value) == (404, "NoSuchKey")
    tag = put(b"1", IfNoneMatch="*")["ETag"]
    for conditions in ({"IfNoneMatch": "*"}, {"IfMatch": quoted_md5(b"other")}):
        with pytest.raises(ClientError) as refused:
            put(b"2", **conditions)
        assert s3.code(refused.value) == (412, "PreconditionFailed")
    put(b"2", IfMatch=tag)
    with pytest.raises(ClientError) as refused:
        client.delete_object(Bucket=bucket, Key="k", IfMatch=tag)
    assert s3.code(refused.value) == (412, "PreconditionFailed")
    client.delete_object(Bucket=bucket, Key="k", IfMatch=quoted_md5(b"2"))


@pytest.mark.parametrize("algorithm", sorted(DIGESTS))
def test_a_named_checksum_is_kept(client, bucket, algorithm):
    member = f"Checksum{algorithm}"
    for length in (0, 5, 3 << 20):
        content = b"y" * length
        expected = base64.b64encode(DIGESTS[algorithm](content)).decode()
        put = client.put_object(Bucket=bucket, Key="k", Body=content, ChecksumAlgorithm=algorithm)
        assert put[member] == expected and put["ChecksumType"] == "FULL_OBJECT"
        head = client.head_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
        assert head[member] == expected
        assert member not in client.head_object(Bucket=bucket, Key="k")
        got = client.get_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
        assert got[member] == expected and got["Body"].read() == content
    [listed] = client.list_objects_v2(Bucket=bucket)["Contents"]
    assert listed["ChecksumAlgorithm"] == [algorithm] and listed["ChecksumType"] == "FULL_OBJECT"


def test_without_a_name_there_is_a_crc64(raw, client, service, bucket):
    answer = raw.call("PUT", f"/{bucket}/s3", body=b"123456789")
    assert answer.headers["x-amz-checksum-crc64nvme"] == "rosUhgp5mIg="
    service.get_blob_client(bucket, "blob").upload_blob(b"123456789")
    for key in ("s3", "blob"):
        head = client.head_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED")
        assert head["ChecksumCRC64NVME"] == "rosUhgp5mIg=" and head["ChecksumType"] == "FULL_OBJECT"


def test_wrong_checksums_store_nothing(raw, bucket):
    right, sha1 = crc32(b"hello"), base64.b64encode(hashlib.sha1(b"hello").digest()).decode()
    for headers, code in [
        ({"x-amz-checksum-crc32": crc32(b"other")}, "BadDigest"),
        ({"x-amz-checksum-crc32": "AAA="}, "BadDigest"),
        ({"x-amz-checksum-crc32": "not base64"}, "BadDigest"),
        ({"x-amz-checksum-crc32": right, "x-amz-checksum-sha1": sha1}, "InvalidRequest"),
        ({"x-amz-checksum-crc32": right, "x-amz-sdk-checksum-algorithm": "SHA1"}, "InvalidRequest"),
        ({"x-amz-sdk-checksum-algorithm": "MD4"}, "InvalidRequest"),
        ({"content-md5": base64.b64encode(b"\0" * 16).decode()}, "BadDigest"),
        ({"content-md5": "short"}, "InvalidDigest"),
    ]:
        answer = raw.call("PUT", f"/{bucket}/k", headers=headers, body=b"hello")
        assert (answer.status, answer.code()) == (400, code), headers
        assert raw.call("GET", f"/{bucket}/k").status == 404
    assert raw.call("PUT", f"/{bucket}/k", headers={"x-amz-checksum-crc32": right}, body=b"hello").status == 200


def test_a_checksum_in_a_trailer_is_compared(raw, bucket):
    def put(trailers, announced="x-amz-checksum-crc32"):
        headers = {"x-amz-trailer": announced, "x-amz-decoded-content-length": "5", "content-encoding": "aws-chunked"}
        body = b"5\r\nhello\r\n0\r\n" + trailers + b"\r\n"
        return raw.call("PUT", f"/{bucket}/k", headers=headers, body=body, sha256="STREAMING-UNSIGNED-PAYLOAD-TRAILER")

    for value in (crc32(b"other"), "AAA=", "%"):
        answer = put(f"x-amz-checksum-crc32:{value}\r\n".encode())
        assert (answer.status, answer.code()) == (400, "BadDigest")
    assert put(b"").status == 400
    assert put(f"x-amz-checksum-sha1:{crc32(b'hello')}\r\n".encode()).status == 400
    assert raw.call("GET", f"/{bucket}/k").status == 404
    answer = put(f"x-amz-checksum-crc32:{crc32(b'hello')}\r\n".encode())
    assert (answer.status, answer.headers["x-amz-checksum-crc32"]) == (200, crc32(b"hello"))
    got = raw.call("GET", f"/{bucket}/k")
    assert got.body == b"hello" and "content-encoding" not in got.headers


CLASSES = {"STANDARD": "Hot", "REDUCED_REDUNDANCY": "Hot", "INTELLIGENT_TIERING": "Smart", "STANDARD_IA": "Cool",
           "ONEZONE_IA": "Cool", "GLACIER_IR": "Cold", "GLACIER": "Archive", "DEEP_ARCHIVE": "Archive"}


@pytest.mark.parametrize("name", CLASSES)
def test_a_storage_class_is_a_tier(client, service, bucket, name):
    client.put_object(Bucket=bucket, Key="k", Body=b"x", StorageClass=name)
    assert client.head_object(Bucket=bucket, Key="k").get("StorageClass", "STANDARD") == name
    assert client.list_objects_v2(Bucket=bucket)["Contents"][0]["StorageClass"] == name
    assert service.get_blob_client(bucket, "k").get_blob_properties().blob_tier == CLASSES[name]


def test_a_tier_is_a_storage_class(raw, client, service, bucket):
    for tier, name in [("Cool", "STANDARD_IA"), ("Cold", "GLACIER_IR"), ("Hot", "STANDARD"), ("Archive", "GLACIER")]:
        service.get_blob_client(bucket, "blob").upload_blob(b"x", overwrite=True, standard_blob_tier=StandardBlobTier(tier))
        assert client.head_object(Bucket=bucket, Key="blob").get("StorageClass", "STANDARD") == name
        service.get_blob_client(bucket, "blob").delete_blob()
        assert raw.call("PUT", f"/{bucket}/s3", headers={"x-amz-storage-class": tier}, body=b"x").status == 200
        assert client.head_object(Bucket=bucket, Key="s3").get("StorageClass", "STANDARD") == name
        client.delete_object(Bucket=bucket, Key="s3")
    answer = raw.call("PUT", f"/{bucket}/k", headers={"x-amz-storage-class": "TEPID"}, body=b"x")
    assert (answer.status, answer.code()) == (400, "InvalidStorageClass")


def test_expires_and_redirect_are_kept(raw, bucket):
    kept = {"expires": "Thu, 01 Dec 1994 16:00:00 GMT", "x-amz-website-redirect-location": "/other"}
    assert raw.call("PUT", f"/{bucket}/k", headers=kept, body=b"x").status == 200
    head = raw.call("HEAD", f"/{bucket}/k")
    assert {name: head.headers[name] for name in kept} == kept
    bad = raw.call("PUT", f"/{bucket}/k", headers={"x-amz-website-redirect-location": "other"}, body=b"y")
    assert (bad.status, bad.code()) == (400, "InvalidArgument")
    assert raw.call("PUT", f"/{bucket}/k", body=b"x").status == 200
    assert "expires" not in raw.call("HEAD", f"/{bucket}/k").headers


def test_metadata_is_kept_byte_for_byte(raw, service, bucket):
    headers = {"x-amz-meta-A.b!c~1": "v", "x-amz-meta-text": "a,b  c"}
    assert raw.call("PUT", f"/{bucket}/k", headers=headers, body=b"x").status == 200
    head = raw.call("HEAD", f"/{bucket}/k")
    assert head.headers["x-amz-meta-a.b!c~1"] == "v"
    assert head.headers["x-amz-meta-text"] == "a,b  c"
    [listed] = service.get_container_client(bucket).list_blobs(include=["metadata"])
    assert listed.metadata["text"] == "a,b  c"
    too_large = raw.call("PUT", f"/{bucket}/k", headers={"x-amz-meta-a": "x" * 2048}, body=b"x")
    assert (too_large.status, too_large.code()) == (400, "MetadataTooLarge")

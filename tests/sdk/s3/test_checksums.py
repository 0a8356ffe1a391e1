"""Checksums of content in headers and trailers, and GetObjectAttributes."""

import base64
import hashlib
import zlib

import pytest
from botocore.exceptions import ClientError

from lib import s3, s3_signing
from lib.s3_signing import ALGORITHMS, SIGNED_TRAILER, UNSIGNED_TRAILER, crc32, md5

BODY = b"The quick brown fox jumps over the lazy dog"
FORMS = [None, "trailer"]


def outcome(answer):
    """Status and code."""
    return answer.status, answer.code()


def shown(raw, path):
    """Headers with checksums of an object."""
    answer = raw.call("HEAD", path, headers={"x-amz-checksum-mode": "ENABLED"})
    assert answer.status == 200
    return {name: value for name, value in answer.headers.items() if name.startswith("x-amz-checksum-")}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_known_values(name):
    """The functions of this suite agree with published check values."""
    known = {"CRC32": "y/Q5Jg==", "CRC32C": "4waSgw==", "CRC64NVME": "rosUhgp5mIg="}
    if name in known:
        assert ALGORITHMS[name][1](b"123456789") == known[name]


@pytest.mark.parametrize("body", [b"", BODY, BODY * 2000], ids=["empty", "short", "long"])
@pytest.mark.parametrize("name", ["CRC32", "SHA1", "SHA256"])
def test_a_checksum_in_a_header_is_kept_and_shown(raw, bucket, name, body):
    header, compute = ALGORITHMS[name]
    put = raw.call("PUT", f"/{bucket}/k", headers={header: compute(body)}, body=body)
    assert put.status == 200 and put.headers[header] == compute(body)
    assert put.headers["x-amz-checksum-type"] == "FULL_OBJECT"
    assert shown(raw, f"/{bucket}/k") == {header: compute(body), "x-amz-checksum-type": "FULL_OBJECT"}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_in_a_header(raw, bucket, name):
    header, compute = ALGORITHMS[name]
    put = raw.call("PUT", f"/{bucket}/k", headers={header: compute(BODY)}, body=BODY)
    assert put.status == 200 and put.headers[header] == compute(BODY)
    assert shown(raw, f"/{bucket}/k")[header] == compute(BODY)
    assert raw.call("GET", f"/{bucket}/k").headers.get(header) is None, "only when it is asked for"


@pytest.mark.parametrize("form", [SIGNED_TRAILER, UNSIGNED_TRAILER])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_in_a_trailer(raw, bucket, name, form):
    header, compute = ALGORITHMS[name]
    put = s3_signing.put(raw, f"/{bucket}/k", [BODY], form, [(header, compute(BODY))])
    assert put.status == 200 and put.headers[header] == compute(BODY), put.body
    assert shown(raw, f"/{bucket}/k")[header] == compute(BODY)


WRONG = {"other content": lambda name: ALGORITHMS[name][1](b"other"), "not base64": lambda name: "*",
         "empty": lambda name: "", "too short": lambda name: "AAA=",
         "of another length": lambda name: base64.b64encode(b"x" * 5).decode()}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("where", ["header", "trailer"])
def test_a_wrong_or_malformed_checksum_is_refused_and_nothing_is_stored(raw, bucket, where, name, case):
    header, value = ALGORITHMS[name][0], WRONG[case](name)
    if where == "header":
        answer = raw.call("PUT", f"/{bucket}/k", headers={header: value}, body=BODY)
    else:
        answer = s3_signing.put(raw, f"/{bucket}/k", [BODY], UNSIGNED_TRAILER, [(header, value)])
    assert outcome(answer) == (400, "BadDigest")
    assert raw.call("GET", f"/{bucket}/k").status == 404


@pytest.mark.parametrize("size", [100, 5000, 2 << 20])
def test_a_wrong_checksum_leaves_the_old_object(raw, bucket, size):
    raw.call("PUT", f"/{bucket}/k", body=b"old")
    answer = raw.call("PUT", f"/{bucket}/k", headers={"x-amz-checksum-crc32": crc32(b"other")}, body=b"x" * size)
    assert outcome(answer) == (400, "BadDigest")
    assert raw.call("GET", f"/{bucket}/k").body == b"old"


@pytest.mark.parametrize("headers, expected", [
    ({"x-amz-checksum-crc32": crc32(BODY), "x-amz-checksum-crc32c": ALGORITHMS["CRC32C"][1](BODY)}, "InvalidRequest"),
    ({"x-amz-checksum-crc32": crc32(BODY), "x-amz-trailer": "x-amz-checksum-crc32c"}, "InvalidRequest"),
    ({"x-amz-checksum-sha512": "AAAA"}, "InvalidRequest"),
    ({"x-amz-checksum-": "AAAA"}, "InvalidRequest"),
    ({"x-amz-trailer": "x-amz-checksum-md5"}, "InvalidRequest"),
    ({"x-amz-trailer": "expires"}, "InvalidRequest"),
    ({"x-amz-sdk-checksum-algorithm": "SHA512"}, "InvalidRequest"),
    ({"x-amz-sdk-checksum-algorithm": "SHA256", "x-amz-checksum-crc32": crc32(BODY)}, "InvalidRequest"),
    ({"content-md5": md5(b"other")}, "BadDigest"),
    ({"content-md5": "*"}, "InvalidDigest"),
    ({"content-md5": "AAAA"}, "InvalidDigest"),
    ({"content-md5": hashlib.md5(BODY).hexdigest()}, "InvalidDigest"),
    ({"content-md5": md5(b"other"), "x-amz-checksum-crc32": crc32(BODY)}, "BadDigest"),
    ({"content-md5": md5(BODY), "x-amz-checksum-crc32": crc32(b"other")}, "BadDigest"),
], ids=str)
def test_headers_that_contradict_are_refused(raw, bucket, headers, expected):
    assert outcome(raw.call("PUT", f"/{bucket}/k", headers=headers, body=BODY)) == (400, expected)
    assert raw.call("GET", f"/{bucket}/k").status == 404


def test_headers_that_agree_are_taken(raw, bucket):
    headers = {"content-md5": md5(BODY), "x-amz-sdk-checksum-algorithm": "CRC32", "x-amz-checksum-crc32": crc32(BODY)}
    put = raw.call("PUT", f"/{bucket}/k", headers=headers, body=BODY)
    assert put.status == 200 and put.headers["etag"] == f'"{hashlib.md5(BODY).hexdigest()}"'


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_alone_is_computed(raw, bucket, name):
    header, compute = ALGORITHMS[name]
    put = raw.call("PUT", f"/{bucket}/k", headers={"x-amz-sdk-checksum-algorithm": name}, body=BODY)
    assert put.headers[header] == compute(BODY)
    assert shown(raw, f"/{bucket}/k")[header] == compute(BODY)


def test_without_a_name_it_is_the_crc64(raw, service, bucket):
    expected = ALGORITHMS["CRC64NVME"][1](BODY)
    put = raw.call("PUT", f"/{bucket}/k", body=BODY)
    assert put.headers["x-amz-checksum-crc64nvme"] == expected
    service.get_blob_client(bucket, "blob").upload_blob(BODY)
    blob = service.get_append_blob_client(bucket, "append") if hasattr(service, "get_append_blob_client") else None
    blob = blob or service.get_blob_client(bucket, "append")
    blob.create_append_blob()
    blob.append_block(BODY[:10])
    blob.append_block(BODY[10:])
    for key in ("k", "blob", "append"):
        found = shown(raw, f"/{bucket}/{key}")
        assert found == {"x-amz-checksum-crc64nvme": expected, "x-amz-checksum-type": "FULL_OBJECT"}, key


def test_checksums_are_of_the_whole_object(raw, bucket):
    raw.call("PUT", f"/{bucket}/k", body=BODY)
    ranged = raw.call("GET", f"/{bucket}/k", headers={"x-amz-checksum-mode": "ENABLED", "range": "bytes=0-3"})
    assert ranged.status == 206 and not [name for name in ranged.headers if name.startswith("x-amz-checksum")]
    whole = raw.call("GET", f"/{bucket}/k", headers={"x-amz-checksum-mode": "ENABLED"})
    assert whole.headers["x-amz-checksum-crc64nvme"] and whole.body == BODY
    other = raw.call("GET", f"/{bucket}/k", headers={"x-amz-checksum-mode": "DISABLED"})
    assert "x-amz-checksum-crc64nvme" not in other.headers


@pytest.mark.parametrize("algorithm", ["CRC32", "SHA1", "SHA256"])
def test_boto3_sends_and_verifies_checksums(client, bucket, algorithm):
    put = client.put_object(Bucket=bucket, Key="k", Body=BODY, ChecksumAlgorithm=algorithm)
    got = client.get_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED")
    assert got["Body"].read() == BODY and got[f"Checksum{algorithm}"] == put[f"Checksum{algorithm}"]


def test_boto3_streams_with_a_trailer(account, bucket, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(BODY * 5000)
    client = s3.client(account)
    with path.open("rb") as file:
        put = client.put_object(Bucket=bucket, Key="k", Body=file)
    assert put["ChecksumCRC32"] == crc32(BODY * 5000)
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == BODY * 5000


# GetObjectAttributes.

ALL = ["ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"]


def attributes(raw, path, *values, **headers):
    """The answer to GetObjectAttributes; several values are several headers."""
    signed = {"x-amz-object-attributes": ",".join(values), **headers}
    return raw.call("GET", path, [("attributes", "")], {name.replace("_", "-"): value for name, value in signed.items()})


@pytest.mark.parametrize("wanted", [[one] for one in ALL] + [ALL, ["ETag", "ObjectSize"]], ids=",".join)
def test_attributes_are_those_that_are_named(raw, bucket, wanted):
    raw.call("PUT", f"/{bucket}/k", headers={"x-amz-storage-class": "ONEZONE_IA"}, body=BODY)
    answer = attributes(raw, f"/{bucket}/k", *wanted)
    assert answer.status == 200 and answer.headers["last-modified"]
    root = answer.tree()
    assert root.tag == "GetObjectAttributesResponse"
    texts = {"ETag": hashlib.md5(BODY).hexdigest(), "StorageClass": "ONEZONE_IA", "ObjectSize": str(len(BODY))}
    assert {one.tag for one in root} == set(wanted) - {"ObjectParts"}
    for tag, text in texts.items():
        assert root.findtext(tag) == (text if tag in wanted else None)
    if "Checksum" in wanted:
        assert root.findtext("Checksum/ChecksumCRC64NVME") == ALGORITHMS["CRC64NVME"][1](BODY)
        assert root.findtext("Checksum/ChecksumType") == "FULL_OBJECT"


def test_attributes_in_several_headers(raw, bucket):
    raw.call("PUT", f"/{bucket}/k", body=BODY)
    signed = raw.sign("GET", f"/{bucket}/k", [("attributes", "")], {"x-amz-object-attributes": "ETag,ObjectSize"})
    signed["x-amz-object-attributes"] = ["ETag", "ObjectSize"]
    answer = raw.send("GET", f"/{bucket}/k?attributes=", signed)
    assert [one.tag for one in answer.tree()] == ["ETag", "ObjectSize"]


@pytest.mark.parametrize("value", ["", "etag", "Etag", "Size", "ETag,Nothing", ",", "ETag ObjectSize"])
def test_unknown_attributes_are_refused(raw, bucket, value):
    raw.call("PUT", f"/{bucket}/k", body=BODY)
    assert outcome(attributes(raw, f"/{bucket}/k", value)) == (400, "InvalidArgument")


def test_attributes_have_to_be_named(raw, bucket):
    raw.call("PUT", f"/{bucket}/k", body=BODY)
    assert outcome(raw.call("GET", f"/{bucket}/k", [("attributes", "")])) == (400, "InvalidArgument")


def test_attributes_of_nothing(raw, client, bucket):
    assert outcome(attributes(raw, f"/{bucket}/k", "ETag")) == (404, "NoSuchKey")
    assert outcome(attributes(raw, "/no-such-bucket/k", "ETag")) == (404, "NoSuchBucket")
    with pytest.raises(ClientError) as refused:
        client.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=["ETag"])
    assert s3.code(refused.value) == (404, "NoSuchKey")


def test_attributes_of_what_blob_made(client, service, bucket):
    blob = service.get_blob_client(bucket, "blocks")
    blob.stage_block("QQ==", BODY[:20])
    blob.stage_block("Qg==", BODY[20:])
    blob.commit_block_list(["QQ==", "Qg=="])
    found = client.get_object_attributes(Bucket=bucket, Key="blocks", ObjectAttributes=ALL)
    assert found["ObjectSize"] == len(BODY) and found["StorageClass"] == "STANDARD"
    assert found["Checksum"]["ChecksumCRC64NVME"] == ALGORITHMS["CRC64NVME"][1](BODY)
    assert found["ETag"] == client.head_object(Bucket=bucket, Key="blocks")["ETag"].strip('"')
    page = service.get_blob_client(bucket, "pages")
    page.create_page_blob(512)
    found = client.get_object_attributes(Bucket=bucket, Key="pages", ObjectAttributes=ALL)
    assert found["ObjectSize"] == 512 and "-" in found["ETag"]


def test_attributes_under_conditions(raw, bucket):
    tag = raw.call("PUT", f"/{bucket}/k", body=BODY).headers["etag"]
    assert attributes(raw, f"/{bucket}/k", "ETag", if_match=tag).status == 200
    assert attributes(raw, f"/{bucket}/k", "ETag", if_match='"x"').status == 412


PART = b"p" * (5 << 20)


def uploaded(client, bucket, numbers, algorithm=None):
    """Uploads an object in parts; the last is short."""
    more = {"ChecksumAlgorithm": algorithm} if algorithm else {}
    upload = client.create_multipart_upload(Bucket=bucket, Key="k", **more)["UploadId"]
    parts = []
    for number in numbers:
        body = BODY if number == numbers[-1] else PART
        part = client.upload_part(Bucket=bucket, Key="k", UploadId=upload, PartNumber=number, Body=body, **more)
        sums = {name: value for name, value in part.items() if name.startswith("Checksum") and name != "ChecksumType"}
        parts.append({"PartNumber": number, "ETag": part["ETag"], **sums})
    client.complete_multipart_upload(Bucket=bucket, Key="k", UploadId=upload, MultipartUpload={"Parts": parts})
    return parts


def test_parts_are_shown_in_pages(client, bucket):
    sent = uploaded(client, bucket, [2, 3, 9], "SHA256")
    found = client.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=["ObjectParts", "Checksum", "ObjectSize"])
    parts = found["ObjectParts"]
    assert found["ObjectSize"] == 2 * len(PART) + len(BODY) and found["Checksum"]["ChecksumType"] == "COMPOSITE"
    assert (parts["TotalPartsCount"], parts["IsTruncated"], parts["MaxParts"]) == (3, False, 1000)
    assert [(part["PartNumber"], part["Size"], part["ChecksumSHA256"]) for part in parts["Parts"]] == [
        (2, len(PART), sent[0]["ChecksumSHA256"]), (3, len(PART), sent[1]["ChecksumSHA256"]),
        (9, len(BODY), sent[2]["ChecksumSHA256"])]
    marker, seen = 0, []
    while True:
        parts = client.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=["ObjectParts"], MaxParts=1,
                                             PartNumberMarker=marker)["ObjectParts"]
        seen += [part["PartNumber"] for part in parts["Parts"]]
        assert parts["MaxParts"] == 1 and parts["PartNumberMarker"] == marker and parts["TotalPartsCount"] == 3
        if not parts["IsTruncated"]:
            break
        marker = parts["NextPartNumberMarker"]
    assert seen == [2, 3, 9]


@pytest.mark.parametrize("name, value", [
    ("x-amz-max-parts", "x"), ("x-amz-max-parts", "-1"), ("x-amz-part-number-marker", "x"), ("x-amz-part-number-marker", "1.5")])
def test_a_malformed_page_of_parts_is_refused(raw, bucket, name, value):
    raw.call("PUT", f"/{bucket}/k", body=BODY)
    answer = raw.call("GET", f"/{bucket}/k", [("attributes", "")], {"x-amz-object-attributes": "ObjectParts", name: value})
    assert outcome(answer) == (400, "InvalidArgument")


def test_zlib_is_the_crc32():
    assert crc32(BODY) == base64.b64encode(zlib.crc32(BODY).to_bytes(4, "big")).decode()

"""Uploads in parts: create, parts, complete, abort, and their lists."""

import base64
import hashlib
import zlib

import pytest
from botocore.exceptions import ClientError

from lib import s3

PART = 5 << 20


@pytest.fixture
def upload(client, bucket):
    """Starts uploads of a key."""

    def start(key="k", **options):
        return client.create_multipart_upload(Bucket=bucket, Key=key, **options)["UploadId"]

    return start


@pytest.fixture
def send(client, bucket):
    """Uploads a part and returns what a completion says of it."""

    def part(upload_id, number, body, key="k", **options):
        answer = client.upload_part(Bucket=bucket, Key=key, UploadId=upload_id, PartNumber=number, Body=body, **options)
        named = {"PartNumber": number, "ETag": answer["ETag"]}
        named.update({name: value for name, value in answer.items() if name.startswith("Checksum") and name != "ChecksumType"})
        return named

    return part


@pytest.fixture
def complete(client, bucket):
    """Completes an upload."""

    def finish(upload_id, parts, key="k", **options):
        return client.complete_multipart_upload(Bucket=bucket, Key=key, UploadId=upload_id,
                                                MultipartUpload={"Parts": parts}, **options)

    return finish


def refused(call):
    """Status and code of the refusal of a call."""
    with pytest.raises(ClientError) as error:
        call()
    return s3.code(error.value)


def body(number, size):
    """Bytes that no other part has."""
    return bytes([number % 256]) * size


def tag_of(*bodies):
    """The ETag of an object of parts."""
    digests = b"".join(hashlib.md5(one).digest() for one in bodies)
    return f'"{hashlib.md5(digests).hexdigest()}-{len(bodies)}"'


def test_parts_become_an_object(client, bucket, upload, send, complete):
    upload_id = upload(ContentType="text/x", Metadata={"k": "v"}, CacheControl="no-cache")
    one, two = body(1, PART), body(2, 7)
    parts = [send(upload_id, 1, one), send(upload_id, 2, two)]
    assert parts[0]["ETag"] == f'"{hashlib.md5(one).hexdigest()}"'
    assert refused(lambda: client.head_object(Bucket=bucket, Key="k"))[0] == 404
    done = complete(upload_id, parts)
    assert done["ETag"] == tag_of(one, two) and done["Bucket"] == bucket and done["Key"] == "k"
    got = client.get_object(Bucket=bucket, Key="k")
    assert got["Body"].read() == one + two and got["ETag"] == done["ETag"]
    assert got["ContentType"] == "text/x" and got["Metadata"] == {"k": "v"} and got["CacheControl"] == "no-cache"
    middle = client.get_object(Bucket=bucket, Key="k", Range=f"bytes={PART - 2}-{PART + 1}")
    assert middle["Body"].read() == one[-2:] + two[:2]


def test_a_second_completion_answers_what_the_first_did(client, bucket, upload, send, complete):
    upload_id = upload()
    parts = [send(upload_id, 1, b"x")]
    first = complete(upload_id, parts)
    assert complete(upload_id, parts)["ETag"] == first["ETag"]
    client.put_object(Bucket=bucket, Key="k", Body=b"other")
    assert complete(upload_id, parts)["ETag"] == first["ETag"]
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"other"
    assert refused(lambda: client.list_parts(Bucket=bucket, Key="k", UploadId=upload_id)) == (404, "NoSuchUpload")
    assert refused(lambda: send(upload_id, 2, b"y")) == (404, "NoSuchUpload")


def test_uploads_of_one_key_do_not_disturb_each_other(client, bucket, service, upload, send, complete):
    first, second = upload(), upload()
    parts = [send(first, 1, b"first")]
    others = [send(second, 1, b"second")]
    client.put_object(Bucket=bucket, Key="k", Body=b"put")
    blob = service.get_blob_client(bucket, "k")
    blob.stage_block("aaaa", b"block")
    assert complete(first, parts)["ETag"] == tag_of(b"first")
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"first"
    complete(second, others)
    assert blob.download_blob().readall() == b"second"


def test_blob_sees_no_upload_and_parts_as_blocks(client, bucket, service, upload, send, complete):
    upload_id = upload()
    one = body(1, PART)
    parts = [send(upload_id, 1, one), send(upload_id, 3, b"x")]
    container = service.get_container_client(bucket)
    assert not list(container.list_blobs(include=["uncommittedblobs"]))
    complete(upload_id, parts)
    blob = service.get_blob_client(bucket, "k")
    committed, staged = blob.get_block_list("all")
    assert [(block.id, block.size) for block in committed] == [("\0\0\0\1", PART), ("\0\0\0\3", 1)] and not staged
    from azure.storage.blob import BlobBlock  # pylint: disable=import-outside-toplevel
    blob.commit_block_list([BlobBlock("\0\0\0\3"), BlobBlock("\0\0\0\1")])
    assert blob.download_blob().readall() == b"x" + one
    assert client.head_object(Bucket=bucket, Key="k")["ETag"] != tag_of(b"x", one)


def test_of_a_part_sent_twice_the_last_counts(upload, send, complete, client, bucket):
    upload_id = upload()
    old = send(upload_id, 1, b"old")
    new = send(upload_id, 1, b"new")
    assert refused(lambda: complete(upload_id, [old])) == (400, "InvalidPart")
    complete(upload_id, [new])
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"new"


def test_what_a_completion_may_not_say(upload, send, complete):
    upload_id = upload()
    one, two = send(upload_id, 1, b"small"), send(upload_id, 2, b"last")
    wrong = {**one, "ETag": '"00000000000000000000000000000000"'}
    assert refused(lambda: complete(upload_id, [two, one])) == (400, "InvalidPartOrder")
    assert refused(lambda: complete(upload_id, [one, one])) == (400, "InvalidPartOrder")
    assert refused(lambda: complete(upload_id, [one, two])) == (400, "EntityTooSmall")
    assert refused(lambda: complete(upload_id, [wrong])) == (400, "InvalidPart")
    assert refused(lambda: complete(upload_id, [{**one, "ETag": "nonsense"}])) == (400, "InvalidPart")
    assert refused(lambda: complete(upload_id, [one, {**two, "PartNumber": 9}])) == (400, "InvalidPart")
    assert refused(lambda: complete(upload_id, [one], MpuObjectSize=4)) == (400, "InvalidRequest")
    assert refused(lambda: complete("0" * 32, [one])) == (404, "NoSuchUpload")
    assert refused(lambda: complete("nonsense", [one])) == (404, "NoSuchUpload")
    complete(upload_id, [one], MpuObjectSize=5)


@pytest.mark.parametrize("document", [
    b"", b"x", b"<CompleteMultipartUpload/>", b"<Other/>", b"<CompleteMultipartUpload><Part/></CompleteMultipartUpload>",
    b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>",
    b"<CompleteMultipartUpload><Part><ETag>x</ETag></Part></CompleteMultipartUpload>",
    b"<CompleteMultipartUpload><Part><PartNumber>x</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>",
    b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part>",
    b"<!DOCTYPE a [<!ENTITY b 'c'>]><CompleteMultipartUpload/>",
    b"<CompleteMultipartUpload>" + b"<a>" * 10_000,
])
def test_a_malformed_document_is_refused(raw, bucket, upload, document):
    upload_id = upload()
    answer = raw.call("POST", f"/{bucket}/k", [("uploadId", upload_id)], body=document)
    assert (answer.status, answer.code()) == (400, "MalformedXML")
    assert raw.call("GET", f"/{bucket}/k", [("uploadId", upload_id)]).status == 200, "the upload goes on"


@pytest.mark.parametrize("number", ["0", "10001", "-1", "x", "", "1.0", "99999999999"])
def test_a_part_has_a_number(raw, bucket, upload, number):
    answer = raw.call("PUT", f"/{bucket}/k", [("partNumber", number), ("uploadId", upload())], body=b"x")
    assert (answer.status, answer.code()) == (400, "InvalidArgument")


@pytest.mark.parametrize("upload_id", ["", "x", "0" * 31, "0" * 32, "0" * 33, "G" * 32, "../../x"])
def test_ids_of_no_upload(raw, bucket, upload_id):
    query = [("uploadId", upload_id)]
    for method, more in (("PUT", [("partNumber", "1")]), ("DELETE", []), ("GET", []), ("POST", [])):
        document = b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>"
        answer = raw.call(method, f"/{bucket}/k", [*more, *query], body=document if method == "POST" else b"")
        assert (answer.status, answer.code()) == (404, "NoSuchUpload"), method


def test_an_upload_of_another_key_is_unknown(client, bucket, upload, send, complete):
    upload_id = upload("a")
    part = send(upload_id, 1, b"x", key="a")
    assert refused(lambda: send(upload_id, 1, b"x", key="b")) == (404, "NoSuchUpload")
    assert refused(lambda: complete(upload_id, [part], key="b")) == (404, "NoSuchUpload")
    assert refused(lambda: client.abort_multipart_upload(Bucket=bucket, Key="b", UploadId=upload_id)) == (404, "NoSuchUpload")


def test_an_aborted_upload_is_gone(client, bucket, upload, send, complete):
    upload_id = upload()
    part = send(upload_id, 1, b"x")
    client.abort_multipart_upload(Bucket=bucket, Key="k", UploadId=upload_id)
    again = lambda: client.abort_multipart_upload(Bucket=bucket, Key="k", UploadId=upload_id)
    assert refused(again) == (404, "NoSuchUpload")
    assert refused(lambda: send(upload_id, 1, b"x")) == (404, "NoSuchUpload")
    assert refused(lambda: complete(upload_id, [part])) == (404, "NoSuchUpload")
    assert "Uploads" not in client.list_multipart_uploads(Bucket=bucket)


def test_conditions_are_those_of_the_object(client, bucket, upload, send, complete):
    upload_id = upload()
    parts = [send(upload_id, 1, b"new")]
    etag = client.put_object(Bucket=bucket, Key="k", Body=b"old")["ETag"]
    assert refused(lambda: complete(upload_id, parts, IfNoneMatch="*")) == (412, "PreconditionFailed")
    other = '"00000000000000000000000000000000"'
    assert refused(lambda: complete(upload_id, parts, IfMatch=other)) == (412, "PreconditionFailed")
    complete(upload_id, parts, IfMatch=etag)
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"new"
    missing = upload("missing")
    parts = [send(missing, 1, b"x", key="missing")]
    assert refused(lambda: complete(missing, parts, key="missing", IfMatch=etag)) == (404, "NoSuchKey")


def test_parts_are_listed_in_pages(client, bucket, upload, send):
    upload_id = upload()
    for number in (5, 1, 10_000, 2):
        send(upload_id, number, body(number, number % 100))
    listed = client.list_parts(Bucket=bucket, Key="k", UploadId=upload_id)
    assert [(part["PartNumber"], part["Size"]) for part in listed["Parts"]] == [(1, 1), (2, 2), (5, 5), (10_000, 0)]
    assert not listed["IsTruncated"] and listed["Bucket"] == bucket and listed["UploadId"] == upload_id
    assert listed["StorageClass"] == "STANDARD" and listed["Initiator"]["ID"] and listed["Owner"]["ID"]
    assert listed["Parts"][0]["ETag"] == f'"{hashlib.md5(body(1, 1)).hexdigest()}"'
    page = client.list_parts(Bucket=bucket, Key="k", UploadId=upload_id, MaxParts=2)
    assert [part["PartNumber"] for part in page["Parts"]] == [1, 2]
    assert page["IsTruncated"] and page["NextPartNumberMarker"] == 2 and page["MaxParts"] == 2
    page = client.list_parts(Bucket=bucket, Key="k", UploadId=upload_id, MaxParts=2, PartNumberMarker=2)
    assert [part["PartNumber"] for part in page["Parts"]] == [5, 10_000] and not page["IsTruncated"]


@pytest.mark.parametrize("query", [("max-parts", "-1"), ("max-parts", "x"), ("part-number-marker", "-1"),
                                   ("part-number-marker", "x"), ("encoding-type", "x")])
def test_pages_of_parts_have_rules(raw, bucket, upload, query):
    answer = raw.call("GET", f"/{bucket}/k", [("uploadId", upload()), query])
    assert (answer.status, answer.code()) == (400, "InvalidArgument")


def test_uploads_are_listed_in_pages(client, bucket, upload):
    ids = {key: [upload(key), upload(key)] for key in ("a", "d/1", "d/2", "z")}
    listed = client.list_multipart_uploads(Bucket=bucket)
    expected = [(key, upload_id) for key in sorted(ids) for upload_id in sorted(ids[key])]
    assert [(one["Key"], one["UploadId"]) for one in listed["Uploads"]] == expected
    assert not listed["IsTruncated"] and "NextKeyMarker" not in listed
    found, markers = [], {}
    while True:
        page = client.list_multipart_uploads(Bucket=bucket, MaxUploads=3, **markers)
        found += [(one["Key"], one["UploadId"]) for one in page["Uploads"]]
        if not page["IsTruncated"]:
            break
        markers = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}
    assert found == expected
    folded = client.list_multipart_uploads(Bucket=bucket, Delimiter="/")
    assert [one["Key"] for one in folded["Uploads"]] == ["a", "a", "z", "z"]
    assert [one["Prefix"] for one in folded["CommonPrefixes"]] == ["d/"]
    of_prefix = client.list_multipart_uploads(Bucket=bucket, Prefix="d/1")
    assert [one["Key"] for one in of_prefix["Uploads"]] == ["d/1", "d/1"]
    after = client.list_multipart_uploads(Bucket=bucket, KeyMarker="d/1")
    assert [one["Key"] for one in after["Uploads"]] == ["d/2", "d/2", "z", "z"]


def test_pages_end_after_a_prefix(client, bucket, upload):
    for key in ("a/1", "a/2", "b", "c/1"):
        upload(key)
    shown, markers = [], {}
    for _ in range(9):
        page = client.list_multipart_uploads(Bucket=bucket, Delimiter="/", MaxUploads=1, **markers)
        shown += [one["Key"] for one in page.get("Uploads", [])] + [one["Prefix"] for one in page.get("CommonPrefixes", [])]
        if not page["IsTruncated"]:
            break
        markers = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page.get("NextUploadIdMarker", "")}
    assert shown == ["a/", "b", "c/"]


@pytest.mark.parametrize("query", [[("max-uploads", "-1")], [("max-uploads", "x")], [("encoding-type", "x")],
                                   [("key-marker", "a"), ("upload-id-marker", "x")]])
def test_pages_of_uploads_have_rules(raw, bucket, query):
    answer = raw.call("GET", f"/{bucket}", [("uploads", ""), *query])
    assert (answer.status, answer.code()) == (400, "InvalidArgument")


def test_keys_are_encoded_on_request(raw, client, bucket, upload):
    upload("a b/ü&<")
    answer = raw.call("GET", f"/{bucket}", [("uploads", ""), ("encoding-type", "url")])
    assert answer.text("Upload/Key") == "a+b/%C3%BC%26%3C" and answer.text("EncodingType") == "url"
    assert raw.call("GET", f"/{bucket}", [("uploads", "")]).text("Upload/Key") == "a b/ü&<"
    assert client.list_multipart_uploads(Bucket=bucket)["Uploads"][0]["Key"] == "a b/ü&<"


def test_a_missing_bucket(client):
    missing = {"Bucket": "no-such-bucket", "Key": "k"}
    assert refused(lambda: client.create_multipart_upload(**missing)) == (404, "NoSuchBucket")
    assert refused(lambda: client.list_multipart_uploads(Bucket="no-such-bucket")) == (404, "NoSuchBucket")
    assert refused(lambda: client.upload_part(**missing, UploadId="0" * 32, PartNumber=1, Body=b"")) == (404, "NoSuchBucket")


def test_a_part_that_is_not_what_was_signed_is_refused(raw, client, bucket, upload):
    upload_id = upload()
    query = [("partNumber", "1"), ("uploadId", upload_id)]
    answer = raw.call("PUT", f"/{bucket}/k", query, body=b"hello", sha256="0" * 64)
    assert (answer.status, answer.code()) == (400, "XAmzContentSHA256Mismatch")
    wrong = base64.b64encode(hashlib.md5(b"other").digest()).decode()
    answer = raw.call("PUT", f"/{bucket}/k", query, headers={"content-md5": wrong}, body=b"hello")
    assert (answer.status, answer.code()) == (400, "BadDigest")
    answer = raw.call("PUT", f"/{bucket}/k", query, headers={"content-md5": "x"}, body=b"hello")
    assert (answer.status, answer.code()) == (400, "InvalidDigest")
    assert "Parts" not in client.list_parts(Bucket=bucket, Key="k", UploadId=upload_id)


def test_many_parts(client, bucket, upload, send, complete):
    upload_id = upload()
    bodies = [body(number, PART) for number in range(1, 12)] + [b"end"]
    parts = [send(upload_id, number, one) for number, one in enumerate(bodies, 1)]
    assert complete(upload_id, parts)["ETag"] == tag_of(*bodies)
    got = client.get_object(Bucket=bucket, Key="k")["Body"].read()
    assert zlib.crc32(got) == zlib.crc32(b"".join(bodies))


def test_an_object_is_read_by_part(client, bucket, upload, send, complete):
    upload_id = upload()
    bodies = {2: body(2, PART), 7: body(7, PART), 9: b"last"}
    done = complete(upload_id, [send(upload_id, number, one) for number, one in bodies.items()])
    start, whole = 0, 2 * PART + 4
    for number, one in bodies.items():
        for read in (client.get_object, client.head_object):
            got = read(Bucket=bucket, Key="k", PartNumber=number)
            assert got["ContentLength"] == len(one) and got["PartsCount"] == 3 and got["ETag"] == done["ETag"]
            assert got["ContentRange"] == f"bytes {start}-{start + len(one) - 1}/{whole}"
            assert got["ResponseMetadata"]["HTTPStatusCode"] == 206
        assert client.get_object(Bucket=bucket, Key="k", PartNumber=number)["Body"].read() == one
        start += len(one)
    assert refused(lambda: client.get_object(Bucket=bucket, Key="k", PartNumber=1)) == (416, "InvalidPartNumber")
    assert refused(lambda: client.get_object(Bucket=bucket, Key="k", PartNumber=2, Range="bytes=0-1"))[0] == 400
    client.put_object(Bucket=bucket, Key="one", Body=b"whole")
    got = client.get_object(Bucket=bucket, Key="one", PartNumber=1)
    assert got["Body"].read() == b"whole" and "PartsCount" not in got
    assert refused(lambda: client.get_object(Bucket=bucket, Key="one", PartNumber=2)) == (416, "InvalidPartNumber")


def test_a_bucket_with_uploads_only_is_empty(client, bucket, upload, send):
    send(upload(), 1, b"x")
    client.delete_bucket(Bucket=bucket)
    assert refused(lambda: client.list_multipart_uploads(Bucket=bucket)) == (404, "NoSuchBucket")


CHECKSUMS = [("CRC32", "FULL_OBJECT"), ("CRC32", "COMPOSITE"), ("CRC32C", "FULL_OBJECT"), ("CRC32C", "COMPOSITE"),
             ("CRC64NVME", "FULL_OBJECT"), ("SHA1", "COMPOSITE"), ("SHA256", "COMPOSITE")]


DIGESTS = {"CRC32": lambda data: zlib.crc32(data).to_bytes(4, "big"), "SHA1": lambda data: hashlib.sha1(data).digest(),
           "SHA256": lambda data: hashlib.sha256(data).digest()}


def part_document(parts, name):
    """The document of a completion; `parts` are number, ETag and checksum."""
    inside = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag>"
                     + (f"<{name}>{value}</{name}>" if value else "") + "</Part>" for number, etag, value in parts)
    return f"<CompleteMultipartUpload>{inside}</CompleteMultipartUpload>".encode()


@pytest.mark.parametrize("algorithm, kind", CHECKSUMS)
def test_checksums_of_parts_and_of_the_whole(raw, bucket, algorithm, kind):
    path, header, name = f"/{bucket}/k", f"x-amz-checksum-{algorithm.lower()}", f"Checksum{algorithm}"
    wanted = {"x-amz-checksum-algorithm": algorithm, "x-amz-checksum-type": kind}
    started = raw.call("POST", path, [("uploads", "")], headers=wanted)
    assert {one: started.headers[one] for one in wanted} == wanted
    query = [("uploadId", started.text("UploadId"))]
    bodies, parts = [body(1, PART), b"rest"], []
    for number, one in enumerate(bodies, 1):
        sent = raw.call("PUT", path, [("partNumber", str(number)), *query], body=one)
        assert sent.status == 200, sent.body
        parts.append((number, sent.headers["etag"], sent.headers[header]))
        if algorithm in DIGESTS:
            assert sent.headers[header] == base64.b64encode(DIGESTS[algorithm](one)).decode()
    listed = raw.call("GET", path, query)
    assert [part.findtext(name) for part in listed.tree().iter("Part")] == [value for _, _, value in parts]
    assert (listed.text("ChecksumAlgorithm"), listed.text("ChecksumType")) == (algorithm, kind)
    other = {"x-amz-checksum-sha256": "x"} if algorithm != "SHA256" else {"x-amz-checksum-sha1": "x"}
    assert raw.call("PUT", path, [("partNumber", "3"), *query], headers=other, body=b"x").status == 400
    if kind == "COMPOSITE":
        without = part_document([(number, etag, None) for number, etag, _ in parts], name)
        answer = raw.call("POST", path, query, body=without)
        assert (answer.status, answer.code()) == (400, "InvalidRequest")
    swapped = [(1, parts[0][1], parts[1][2]), parts[1]]
    answer = raw.call("POST", path, query, body=part_document(swapped, name))
    assert (answer.status, answer.code()) == (400, "InvalidPart")
    kinds = {"FULL_OBJECT": "COMPOSITE", "COMPOSITE": "FULL_OBJECT"}
    answer = raw.call("POST", path, query, headers={"x-amz-checksum-type": kinds[kind]}, body=part_document(parts, name))
    assert (answer.status, answer.code()) == (400, "InvalidRequest")
    if kind == "COMPOSITE":
        digests = b"".join(base64.b64decode(value) for _, _, value in parts)
        whole = f"{base64.b64encode(DIGESTS[algorithm](digests)).decode()}-2" if algorithm in DIGESTS else None
    else:
        put = raw.call("PUT", f"/{bucket}/whole", headers={"x-amz-sdk-checksum-algorithm": algorithm}, body=b"".join(bodies))
        whole = put.headers[header]
    if whole:
        wrong = whole.replace(whole[0], "A" if whole[0] != "A" else "B", 1)
        answer = raw.call("POST", path, query, headers={header: wrong}, body=part_document(parts, name))
        assert (answer.status, answer.code()) == (400, "BadDigest")
    done = raw.call("POST", path, query, headers={header: whole} if whole else {}, body=part_document(parts, name))
    assert done.status == 200, done.body
    assert (done.text(name), done.text("ChecksumType")) == (whole or done.text(name), kind)
    head = raw.call("HEAD", path, headers={"x-amz-checksum-mode": "ENABLED"})
    assert head.headers[header] == (whole or done.text(name)) and head.headers["x-amz-checksum-type"] == kind


@pytest.mark.parametrize("headers", [
    {"x-amz-checksum-algorithm": "MD4"}, {"x-amz-checksum-type": "COMPOSITE"},
    {"x-amz-checksum-algorithm": "SHA256", "x-amz-checksum-type": "FULL_OBJECT"},
    {"x-amz-checksum-algorithm": "CRC64NVME", "x-amz-checksum-type": "COMPOSITE"},
    {"x-amz-checksum-algorithm": "CRC32", "x-amz-checksum-type": "other"},
])
def test_checksums_that_no_upload_has(raw, bucket, headers):
    answer = raw.call("POST", f"/{bucket}/k", [("uploads", "")], headers=headers)
    assert (answer.status, answer.code()) == (400, "InvalidRequest")


def test_a_completion_replaces_an_archived_object(client, bucket, upload, send, complete):
    client.put_object(Bucket=bucket, Key="k", Body=b"old", StorageClass="GLACIER")
    upload_id = upload()
    complete(upload_id, [send(upload_id, 1, b"new")])
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"new"

"""Customer-provided keys (SSE-C)."""

import base64
import hashlib

import pytest
from botocore.exceptions import ClientError

from lib import s3

KEY, OTHER = b"0123456789abcdef0123456789abcdef", b"fedcba9876543210fedcba9876543210"
ALGORITHM = "x-amz-server-side-encryption-customer-algorithm"
NAME = "x-amz-server-side-encryption-customer-key"
MD5 = "x-amz-server-side-encryption-customer-key-md5"


def headers(secret=KEY, **changed):
    """The three headers; `changed` by the last word of the name, None leaves one out."""
    made = {ALGORITHM: "AES256", NAME: base64.b64encode(secret).decode(),
            MD5: base64.b64encode(hashlib.md5(secret).digest()).decode()}
    for word, value in changed.items():
        made[{"algorithm": ALGORITHM, "key": NAME, "md5": MD5}[word]] = value
    return {name: value for name, value in made.items() if value is not None}


# boto3 encodes keys of some operations itself; of GetObjectAttributes it does not.
ENCODED = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": headers()[NAME], "SSECustomerKeyMD5": headers()[MD5]}


def outcome(answer):
    """Status and code."""
    return answer.status, answer.code()


@pytest.mark.parametrize("size", [0, 1, 100, 5000, 70000, 3 << 20])
def test_what_is_put_with_a_key_is_read_with_it(client, bucket, size):
    body = bytes(number % 251 for number in range(256)) * (size // 256 + 1)
    body = body[:size]
    put = client.put_object(Bucket=bucket, Key="k", Body=body, SSECustomerAlgorithm="AES256", SSECustomerKey=KEY)
    assert put["SSECustomerAlgorithm"] == "AES256" and put["SSECustomerKeyMD5"] == headers()[MD5]
    assert "-" in put["ETag"], "no MD5 of the content is shown"
    got = client.get_object(Bucket=bucket, Key="k", SSECustomerAlgorithm="AES256", SSECustomerKey=KEY)
    assert got["Body"].read() == body and got["SSECustomerKeyMD5"] == headers()[MD5] and got["ETag"] == put["ETag"]
    head = client.head_object(Bucket=bucket, Key="k", SSECustomerAlgorithm="AES256", SSECustomerKey=KEY)
    assert head["ContentLength"] == size and head["SSECustomerAlgorithm"] == "AES256"


def test_ranges_are_decrypted(raw, bucket):
    body = bytes(range(256)) * 400
    assert raw.call("PUT", f"/{bucket}/k", headers=headers(), body=body).status == 200
    for first, last in [(0, 0), (16367, 16368), (50000, 60000), (len(body) - 1, len(body) - 1)]:
        got = raw.call("GET", f"/{bucket}/k", headers={**headers(), "range": f"bytes={first}-{last}"})
        assert (got.status, got.body) == (206, body[first:last + 1])


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("sent", [{}, headers(OTHER)], ids=["no key", "wrong key"])
def test_a_missing_or_wrong_key_is_refused(raw, bucket, method, sent):
    raw.call("PUT", f"/{bucket}/k", headers=headers(), body=b"secret")
    answer = raw.call(method, f"/{bucket}/k", headers=sent)
    assert answer.status == 400 and b"secret" not in answer.body
    assert answer.headers["x-amz-error-code"] == "InvalidRequest" and MD5 not in answer.headers


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_key_for_what_is_not_encrypted_is_refused(raw, bucket, method):
    raw.call("PUT", f"/{bucket}/k", body=b"plain")
    assert outcome(raw.call(method, f"/{bucket}/k", headers=headers()))[0] == 400


CASES = {
    "no algorithm": ({"algorithm": None}, "InvalidArgument"),
    "other algorithm": ({"algorithm": "AES128"}, "InvalidEncryptionAlgorithmError"),
    "algorithm in lower case": ({"algorithm": "aes256"}, "InvalidEncryptionAlgorithmError"),
    "kms": ({"algorithm": "aws:kms"}, "InvalidEncryptionAlgorithmError"),
    "no key": ({"key": None}, "InvalidArgument"),
    "no md5": ({"md5": None}, "InvalidArgument"),
    "only the algorithm": ({"key": None, "md5": None}, "InvalidArgument"),
    "only the md5": ({"key": None, "algorithm": None}, "InvalidArgument"),
    "short key": ({"key": base64.b64encode(KEY[:31]).decode()}, "InvalidArgument"),
    "long key": ({"key": base64.b64encode(KEY + b"x").decode()}, "InvalidArgument"),
    "key that is not base64": ({"key": "*" * 44}, "InvalidArgument"),
    "empty key": ({"key": ""}, "InvalidArgument"),
    "md5 of another key": ({"md5": headers(OTHER)[MD5]}, "InvalidArgument"),
    "md5 that is not base64": ({"md5": "*"}, "InvalidArgument"),
    "short md5": ({"md5": "AAAA"}, "InvalidArgument"),
}


@pytest.mark.parametrize("method", ["PUT", "GET"])
@pytest.mark.parametrize("case", CASES)
def test_broken_headers_are_refused(raw, bucket, method, case):
    changed, code = CASES[case]
    answer = raw.call(method, f"/{bucket}/k", headers=headers(**changed), body=b"x" if method == "PUT" else b"")
    assert outcome(answer) == (400, code)
    assert headers()[NAME].encode() not in answer.body, "the key is not repeated"
    assert raw.call("GET", f"/{bucket}/k").status == 404


@pytest.mark.parametrize("name", [
    "x-amz-server-side-encryption", "x-amz-server-side-encryption-aws-kms-key-id", "x-amz-server-side-encryption-context",
    "x-amz-server-side-encryption-bucket-key-enabled"])
@pytest.mark.parametrize("method", ["PUT", "GET"])
def test_other_encryption_is_not_served(raw, bucket, name, method):
    answer = raw.call(method, f"/{bucket}/k", headers={name: "AES256"}, body=b"x" if method == "PUT" else b"")
    assert outcome(answer) == (501, "NotImplemented")


def test_a_deletion_needs_no_key(client, raw, bucket):
    raw.call("PUT", f"/{bucket}/k", headers=headers(), body=b"x")
    assert outcome(raw.call("DELETE", f"/{bucket}/k", headers=headers())) == (501, "NotImplemented")
    client.delete_object(Bucket=bucket, Key="k")
    assert raw.call("HEAD", f"/{bucket}/k", headers=headers()).status == 404


def test_checksums_are_for_whoever_has_the_key(client, bucket):
    key = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": KEY}
    put = client.put_object(Bucket=bucket, Key="k", Body=b"x", ChecksumAlgorithm="SHA256", **key)
    head = client.head_object(Bucket=bucket, Key="k", ChecksumMode="ENABLED", **key)
    assert head["ChecksumSHA256"] == put["ChecksumSHA256"] == base64.b64encode(hashlib.sha256(b"x").digest()).decode()
    found = client.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=["Checksum", "ETag"], **ENCODED)
    assert found["Checksum"]["ChecksumSHA256"] == put["ChecksumSHA256"]
    with pytest.raises(ClientError) as refused:
        client.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=["Checksum"])
    assert s3.code(refused.value) == (400, "InvalidRequest")


def test_the_same_content_has_another_tag_each_time(client, bucket):
    key = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": KEY}
    tags = {client.put_object(Bucket=bucket, Key="k", Body=b"x", **key)["ETag"] for _ in range(3)}
    assert len(tags) == 3


def test_blob_reads_it_with_the_same_key(client, service, bucket):
    azure = pytest.importorskip("azure.storage.blob")
    client.put_object(Bucket=bucket, Key="k", Body=b"both", SSECustomerAlgorithm="AES256", SSECustomerKey=KEY)
    encoded, digest = base64.b64encode(KEY).decode(), base64.b64encode(hashlib.sha256(KEY).digest()).decode()
    cpk = azure.CustomerProvidedEncryptionKey(encoded, digest)
    try:
        content = service.get_blob_client(bucket, "k").download_blob(cpk=cpk).readall()
    except ValueError:
        pytest.skip("the SDK sends keys over https only")
    assert content == b"both"


def test_a_write_without_a_key_replaces_an_encrypted_object(client, raw, bucket):
    raw.call("PUT", f"/{bucket}/k", headers=headers(), body=b"secret")
    client.put_object(Bucket=bucket, Key="k", Body=b"plain")
    got = raw.call("GET", f"/{bucket}/k")
    assert (got.body, ALGORITHM in got.headers) == (b"plain", False)


def test_an_upload_in_parts_is_under_one_key(client, raw, bucket):
    key = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": KEY}
    upload = client.create_multipart_upload(Bucket=bucket, Key="k", **key)
    assert upload["SSECustomerKeyMD5"] == headers()[MD5]
    body, parts = b"p" * (5 << 20), []
    for number in (1, 2):
        part = client.upload_part(Bucket=bucket, Key="k", UploadId=upload["UploadId"], PartNumber=number, Body=body, **key)
        parts.append({"PartNumber": number, "ETag": part["ETag"]})
    query = [("partNumber", "3"), ("uploadId", upload["UploadId"])]
    assert raw.call("PUT", f"/{bucket}/k", query, headers(OTHER), body=b"x").status == 400
    assert raw.call("PUT", f"/{bucket}/k", query, body=b"x").status == 400
    client.complete_multipart_upload(Bucket=bucket, Key="k", UploadId=upload["UploadId"], MultipartUpload={"Parts": parts})
    assert client.get_object(Bucket=bucket, Key="k", **key)["Body"].read() == body * 2
    with pytest.raises(ClientError):
        client.get_object(Bucket=bucket, Key="k")
    found = client.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=["ObjectParts"], **ENCODED)
    assert found["ObjectParts"]["TotalPartsCount"] == 2

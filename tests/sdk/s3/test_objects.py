"""Objects: keys, metadata, overrides, what Blob makes, refusals."""

import base64
import hashlib
import hmac
import http.client
import re
import urllib.parse

import pytest
from azure.core.exceptions import HttpResponseError
from botocore.exceptions import ClientError

from lib import s3, s3_signing
from lib.wire import Wire

from conftest import outcome

CONTENT = b"0123456789"


def path_of(bucket, key):
    """The path of a key, percent-encoded as clients do."""
    return f"/{bucket}/{urllib.parse.quote(key, safe='/-_.~')}"


# Keys.

KEYS = ["a/", "a//b", "//", "/", "a/../b", "..", ".", "./a", "a/./b", "d/" * 300 + "x", "/" * 300, "k" * 1024, "€" * 341,
        " ", "a b", "a+b", "a%20b", "%", "%25", "a&b=c", "?", "#", "a?b#c", "\"'<>&", "\x01", "\x1f\x7f", "\n", "\r\n", "\t",
        "ü", "u\u0308", "\U0001f600", "\ufffd", "\ufeff", "*", "\\", "~", ":", "a" * 300 + "/" + "b" * 300, "$web", "a\u2028b"]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: ascii(key)[:30])
def test_a_key_is_never_changed(raw, service, bucket, key):
    path, body = path_of(bucket, key), key.encode()
    assert raw.call("PUT", path, body=body).status == 200
    assert raw.call("GET", path).body == body
    listed = raw.call("GET", f"/{bucket}")
    assert listed.status == 200 and listed.body.count(b"<Key>") == 1
    assert [blob.name for blob in service.get_container_client(bucket).list_blobs()] == [key]
    assert raw.call("DELETE", path).status == 204
    assert raw.call("GET", path).status == 404


@pytest.mark.parametrize("key, listed", [
    ("\x01", b'<Name Encoded="true">%01</Name>'), ("a/\x1fb", b'<Name Encoded="true">a/%1Fb</Name>')])
def test_blob_reads_and_lists_a_key_that_it_would_not_make(account, service, raw, bucket, key, listed):
    assert raw.call("PUT", path_of(bucket, key), body=b"by S3").status == 200
    blob = service.get_blob_client(bucket, key)
    assert blob.download_blob().readall() == b"by S3"
    assert listed in Wire(account).request("GET", f"/{bucket}", {"restype": "container", "comp": "list"}).body
    with pytest.raises(HttpResponseError) as caught:
        blob.upload_blob(b"by Blob", overwrite=True)
    assert (caught.value.status_code, caught.value.error_code) == (400, "InvalidResourceName")
    blob.delete_blob()
    assert raw.call("GET", path_of(bucket, key)).status == 404


def test_keys_that_differ_a_little_are_different(client, bucket):
    names = ["a", "a/", "/a", "a//", "A", "a ", "a.", "ü", "u\u0308", "a/../a", "%61"]
    for name in names:
        client.put_object(Bucket=bucket, Key=name, Body=name.encode())
    for name in names:
        assert client.get_object(Bucket=bucket, Key=name)["Body"].read() == name.encode()
    assert len(client.list_objects_v2(Bucket=bucket)["Contents"]) == len(names)


@pytest.mark.parametrize("key, expected", [
    ("k" * 1025, (400, "KeyTooLongError")), ("%E2%82%AC" * 342, (400, "KeyTooLongError")),
    ("/" * 1025, (400, "KeyTooLongError")), ("%", (400, "InvalidURI")), ("%2", (400, "InvalidURI")),
    ("%zz", (400, "InvalidURI")), ("%ff", (400, "InvalidURI")), ("%c3%28", (400, "InvalidURI")),
    ("%00", (400, "InvalidURI")), ("a%ed%a0%80", (400, "InvalidURI"))], ids=lambda key: str(key)[:20])
@pytest.mark.parametrize("method", ["PUT", "GET", "DELETE"])
def test_a_key_that_cannot_be_is_refused(raw, bucket, method, key, expected):
    answer = raw.call(method, f"/{bucket}/{key}", body=b"x" if method == "PUT" else b"")
    assert outcome(answer) == expected
    assert b"<Key>" not in raw.call("GET", f"/{bucket}").body


# Metadata and properties.

def test_properties_are_kept(client, bucket):
    put = {"ContentType": "text/x-test; charset=utf-8", "ContentEncoding": "gzip", "ContentLanguage": "de, en",
           "ContentDisposition": 'attachment; filename="a b.txt"', "CacheControl": "no-cache, max-age=1",
           "WebsiteRedirectLocation": "/other", "Metadata": {"a": "1", "b-c.d_e": "x y", "empty": ""}}
    client.put_object(Bucket=bucket, Key="k", Body=CONTENT, Expires="Thu, 01 Jan 2099 00:00:00 GMT", **put)
    for head in (client.head_object(Bucket=bucket, Key="k"), client.get_object(Bucket=bucket, Key="k")):
        for name, value in put.items():
            assert head[name] == value, name
        assert head["ExpiresString"] == "Thu, 01 Jan 2099 00:00:00 GMT"
        assert head["AcceptRanges"] == "bytes" and head["ContentLength"] == len(CONTENT)
        assert "StorageClass" not in head


def test_without_properties_there_is_a_default_type(raw, bucket):
    raw.call("PUT", f"/{bucket}/k", body=CONTENT)
    head = raw.call("HEAD", f"/{bucket}/k").headers
    assert head["content-type"] == "binary/octet-stream"
    assert not {"content-encoding", "cache-control", "expires", "x-amz-storage-class", "x-amz-tagging-count"} & set(head)


def test_a_write_replaces_all_properties(raw, bucket):
    raw.call("PUT", f"/{bucket}/k", headers={"x-amz-meta-a": "1", "cache-control": "no-cache", "expires": "x",
                                            "x-amz-storage-class": "STANDARD_IA"}, body=CONTENT)
    raw.call("PUT", f"/{bucket}/k", headers={"x-amz-meta-b": "2"}, body=CONTENT)
    head = raw.call("HEAD", f"/{bucket}/k").headers
    assert head["x-amz-meta-b"] == "2"
    assert not {"x-amz-meta-a", "cache-control", "expires", "x-amz-storage-class"} & set(head)


@pytest.mark.parametrize("value", [b"\xc3\xbc", b"\xff\xfe", b"caf\xe9", b"a\tb", b"a  b", b"=?UTF-8?B?w7w=?=", b"1,2"])
def test_values_of_metadata_are_bytes(raw, bucket, value):
    text = value.decode("latin-1")
    # boto3 cannot send these; the signature is over bytes, so it is made here.
    signed = sign_bytes(raw, "PUT", f"/{bucket}/k", {"x-amz-meta-v": value})
    assert raw.send("PUT", f"/{bucket}/k", signed, CONTENT).status == 200
    assert raw.call("HEAD", f"/{bucket}/k").headers["x-amz-meta-v"] == text


def sign_bytes(raw, method, path, extra):
    """Headers with values beyond ASCII, signed with version 2: version 4 joins spaces."""
    date = s3_signing.http_date()
    lines = b"".join(name.encode() + b":" + value + b"\n" for name, value in sorted(extra.items()))
    text = f"{method}\n\n\n{date}\n".encode() + lines + path.encode()
    signature = base64.b64encode(hmac.new(raw.secret.encode(), text, hashlib.sha1).digest()).decode()
    return {"date": date, "authorization": f"AWS {raw.key_id}:{signature}", **extra}


@pytest.mark.parametrize("name", ["a", "A-B", "a.b", "a_b", "1", "a!#$%&'*+-.^_`|~b", "x" * 100])
def test_names_of_metadata_are_those_of_headers(raw, bucket, name):
    assert raw.call("PUT", f"/{bucket}/k", headers={f"x-amz-meta-{name}": "v"}, body=CONTENT).status == 200
    assert raw.call("HEAD", f"/{bucket}/k").headers[f"x-amz-meta-{name.lower()}"] == "v"


def test_several_headers_of_one_name_are_joined(raw, bucket):
    signed = raw.sign("PUT", f"/{bucket}/k", headers={"x-amz-meta-a": "1,2"})
    signed["x-amz-meta-a"] = ["1", "2"]
    assert raw.send("PUT", f"/{bucket}/k", signed, CONTENT).status == 200
    assert raw.call("HEAD", f"/{bucket}/k").headers["x-amz-meta-a"] == "1,2"


@pytest.mark.parametrize("names, size, expected", [
    (1, 2047, (200, None)), (1, 2048, (400, "MetadataTooLarge")), (100, 1948 - 90, (200, None)),
    (1, 9000, (400, "MetadataTooLarge"))])
def test_metadata_has_two_kib(raw, bucket, names, size, expected):
    headers = {"x-amz-meta-a": "v" * size} if names == 1 else {f"x-amz-meta-{n}": "v" * 17 for n in range(names)}
    assert outcome(raw.call("PUT", f"/{bucket}/k", headers=headers, body=CONTENT)) == expected


def test_an_empty_name_of_metadata_is_refused(raw, bucket):
    assert raw.call("PUT", f"/{bucket}/k", headers={"x-amz-meta-": "v"}, body=CONTENT).status == 400


@pytest.mark.parametrize("coding, kept", [
    ("aws-chunked", None), ("aws-chunked,gzip", "gzip"), ("gzip,aws-chunked", "gzip"), ("gzip, AWS-CHUNKED , br", "gzip,br"),
    ("gzip", "gzip"), ("identity", "identity")])
def test_aws_chunked_is_no_coding_of_the_object(raw, bucket, coding, kept):
    raw.call("PUT", f"/{bucket}/k", headers={"content-encoding": coding}, body=CONTENT)
    assert raw.call("HEAD", f"/{bucket}/k").headers.get("content-encoding") == kept


@pytest.mark.parametrize("location, expected", [
    ("/a", 200), ("http://h/x", 200), ("https://h/x", 200), ("a", 400), ("ftp://h", 400), ("/" + "x" * 2048, 400),
    ("/" + "x" * 2047, 200)], ids=lambda value: str(value)[:12])
def test_a_redirect_location_is_a_path_or_url(raw, bucket, location, expected):
    answer = raw.call("PUT", f"/{bucket}/k", headers={"x-amz-website-redirect-location": location}, body=CONTENT)
    assert answer.status == expected


# Overrides.

OVERRIDES = {"cache-control": "no-store", "content-disposition": 'attachment; filename="x"', "content-encoding": "br",
             "content-language": "fr", "content-type": "text/x-other", "expires": "Thu, 01 Jan 2026 00:00:00 GMT"}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("name", OVERRIDES)
def test_the_query_of_a_signed_request_overrides_headers(raw, bucket, method, name):
    raw.call("PUT", f"/{bucket}/k", headers={header: "own" for header in OVERRIDES}, body=CONTENT)
    query = [(f"response-{name}", OVERRIDES[name])]
    for answer in (raw.call(method, f"/{bucket}/k", query), raw.send(method, raw.presign(method, f"/{bucket}/k", query))):
        assert answer.status == 200
        for header in OVERRIDES:
            assert answer.headers[header] == (OVERRIDES[name] if header == name else "own")
    assert raw.call("GET", f"/{bucket}/k").headers[name] == "own"
    ranged = raw.call("GET", f"/{bucket}/k", query, {"range": "bytes=0-0"})
    assert ranged.status == 206 and ranged.headers[name] == OVERRIDES[name]


def test_overrides_add_headers(raw, bucket):
    raw.call("PUT", f"/{bucket}/k", body=CONTENT)
    answer = raw.call("GET", f"/{bucket}/k", [(f"response-{name}", value) for name, value in OVERRIDES.items()])
    assert {name: answer.headers[name] for name in OVERRIDES} == OVERRIDES


def test_who_does_not_sign_overrides_nothing(service, raw, bucket):
    container = service.get_container_client(bucket)
    container.set_container_access_policy({}, public_access="container")
    raw.call("PUT", f"/{bucket}/k", body=CONTENT)
    host = {"host": f"{bucket}.s3.localhost:{raw.address.split(':')[1]}"}
    assert raw.send("GET", "/k", host).body == CONTENT
    for name in OVERRIDES:
        assert outcome(raw.send("GET", f"/k?response-{name}=x", host)) == (400, "InvalidRequest")


# What Blob makes.

@pytest.mark.parametrize("kind", ["append", "page"])
def test_other_blobs_are_read_and_replaced(client, service, raw, bucket, kind):
    blob = service.get_blob_client(bucket, "k")
    if kind == "append":
        blob.create_append_blob()
        blob.append_block(CONTENT)
        content = CONTENT
    else:
        blob.create_page_blob(512)
        content = b"p" * 512
        blob.upload_page(content, 0, 512)
    got = client.get_object(Bucket=bucket, Key="k")
    assert got["Body"].read() == content and re.fullmatch(r'"[0-9a-f]{32}-\d+"', got["ETag"])
    assert client.get_object(Bucket=bucket, Key="k", Range="bytes=2-3")["Body"].read() == content[2:4]
    client.put_object(Bucket=bucket, Key="k", Body=b"new")
    assert blob.get_blob_properties().blob_type == "BlockBlob" and blob.download_blob().readall() == b"new"


def test_a_leased_object_is_not_changed(client, service, raw, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=CONTENT)
    lease = service.get_blob_client(bucket, "k").acquire_lease(-1)
    assert outcome(raw.call("PUT", f"/{bucket}/k", body=b"x")) == (409, "OperationAborted")
    assert outcome(raw.call("DELETE", f"/{bucket}/k")) == (409, "OperationAborted")
    assert raw.call("GET", f"/{bucket}/k").body == CONTENT
    lease.release()
    assert raw.call("DELETE", f"/{bucket}/k").status == 204


def test_an_object_with_snapshots_is_not_deleted(client, service, raw, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=CONTENT)
    service.get_blob_client(bucket, "k").create_snapshot()
    assert outcome(raw.call("DELETE", f"/{bucket}/k")) == (409, "OperationAborted")
    client.put_object(Bucket=bucket, Key="k", Body=b"new")
    assert raw.call("GET", f"/{bucket}/k").body == b"new"


def test_metadata_of_either_protocol(client, service, raw, bucket):
    service.get_blob_client(bucket, "k").upload_blob(CONTENT, metadata={"one": "1", "two": "2"})
    head = raw.call("HEAD", f"/{bucket}/k").headers
    assert (head["x-amz-meta-one"], head["x-amz-meta-two"]) == ("1", "2") and "x-amz-missing-meta" not in head


def test_the_number_of_tags_is_shown(client, service, raw, bucket):
    service.get_blob_client(bucket, "k").upload_blob(CONTENT, tags={"a": "1", "b": "2"})
    assert raw.call("GET", f"/{bucket}/k").headers["x-amz-tagging-count"] == "2"


def test_a_get_ends_with_the_bytes_that_it_began_with(account, client, bucket):
    body = hashlib.sha256(b"x").digest() * (8 << 15)
    client.put_object(Bucket=bucket, Key="k", Body=body)
    got = client.get_object(Bucket=bucket, Key="k")["Body"]
    first = got.read(1000)
    other = s3.client(account)
    other.put_object(Bucket=bucket, Key="k", Body=b"new")
    other.delete_object(Bucket=bucket, Key="k")
    assert first + got.read() == body


# Refusals.

@pytest.mark.parametrize("header", [
    "x-amz-server-side-encryption", "x-amz-grant-read", "x-amz-grant-write", "x-amz-grant-full-control", "x-amz-grant-read-acp",
    "x-amz-grant-write-acp", "x-amz-write-offset-bytes", "x-amz-bypass-governance-retention"])
def test_headers_that_change_more_than_is_served_are_refused(raw, bucket, header):
    answer = raw.call("PUT", f"/{bucket}/k", headers={header: "1"}, body=CONTENT)
    assert outcome(answer) == (501, "NotImplemented") and answer.text("ArgumentName") == header
    assert raw.call("GET", f"/{bucket}/k").status == 404


@pytest.mark.parametrize("header", ["x-amz-object-lock-legal-hold", "x-amz-mfa"])
def test_headers_of_deletions_that_are_not_served_are_refused(raw, bucket, header):
    raw.call("PUT", f"/{bucket}/k", body=CONTENT)
    assert outcome(raw.call("DELETE", f"/{bucket}/k", headers={header: "true"})) == (501, "NotImplemented")
    assert raw.call("GET", f"/{bucket}/k").status == 200


@pytest.mark.parametrize("method, query, expected", [
    ("POST", [], 405), ("PATCH", [], 405), ("POST", [("select", ""), ("select-type", "2")], 501),
    ("PUT", [("restore", "")], 405), ("DELETE", [("restore", "")], 405), ("PUT", [("attributes", "")], 405)])
def test_methods_that_do_not_exist_are_refused(raw, bucket, method, query, expected):
    raw.call("PUT", f"/{bucket}/k", body=CONTENT)
    assert raw.call(method, f"/{bucket}/k", query, body=b"x").status == expected
    assert raw.call("GET", f"/{bucket}/k").body == CONTENT


def test_deleting_nothing_succeeds(raw, bucket):
    assert raw.call("DELETE", f"/{bucket}/k").status == 204
    assert outcome(raw.call("DELETE", "/no-such-bucket/k")) == (404, "NoSuchBucket")


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
def test_a_missing_bucket(raw, method):
    answer = raw.call(method, "/no-such-bucket/k", body=b"x" if method == "PUT" else b"")
    assert outcome(answer) == (404, "NoSuchBucket") and (method != "HEAD" or answer.body == b"")


def test_every_answer_has_an_id(raw, bucket):
    seen = set()
    for method, path in [("PUT", "k"), ("GET", "k"), ("HEAD", "k"), ("GET", "missing"), ("DELETE", "k")]:
        answer = raw.call(method, f"/{bucket}/{path}", body=b"x" if method == "PUT" else b"")
        seen.add(answer.headers["x-amz-request-id"])
        assert answer.headers["date"] and answer.headers["server"].startswith("Blockyard")
    assert len(seen) == 5


def test_a_refusal_is_a_document(raw, bucket):
    answer = raw.call("GET", f"/{bucket}/a%20%3Cb")
    assert answer.headers["content-type"] == "application/xml" and answer.tree().tag == "Error"
    assert answer.text("Code") == "NoSuchKey" and answer.text("Resource") == f"/{bucket}/a%20%3Cb"
    assert answer.text("Message") and answer.text("HostId")


def test_boto3_raises_its_own_exceptions(client, bucket):
    with pytest.raises(client.exceptions.NoSuchKey):
        client.get_object(Bucket=bucket, Key="missing")
    with pytest.raises(client.exceptions.NoSuchBucket):
        client.get_object(Bucket="no-such-bucket", Key="missing")
    client.put_object(Bucket=bucket, Key="k", Body=b"x", StorageClass="GLACIER")
    with pytest.raises(client.exceptions.InvalidObjectState) as refused:
        client.get_object(Bucket=bucket, Key="k")
    assert refused.value.response["Error"].get("StorageClass", refused.value.response.get("StorageClass")) == "GLACIER"
    with pytest.raises(ClientError) as missing:
        client.head_object(Bucket=bucket, Key="missing")
    assert missing.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404


def test_a_long_head_is_refused(raw, bucket):
    headers = raw.sign("GET", f"/{bucket}/k", headers={"x-filler": "x" * 200000})
    try:
        assert raw.send("GET", f"/{bucket}/k", headers).status in (400, 431)
    except (http.client.HTTPException, ConnectionError):
        pass


def test_a_key_that_blob_made_longer_is_read_listed_and_deleted(client, service, bucket):
    name = "\N{EURO SIGN}" * 700
    service.get_blob_client(bucket, name).upload_blob(b"long")
    assert [one["Key"] for one in client.list_objects_v2(Bucket=bucket)["Contents"]] == [name]
    assert client.get_object(Bucket=bucket, Key=name)["Body"].read() == b"long"
    client.delete_object(Bucket=bucket, Key=name)
    service.get_blob_client(bucket, name).upload_blob(b"long")
    client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": name}]})
    client.delete_bucket(Bucket=bucket)

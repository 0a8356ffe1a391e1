"""DeleteObjects: many keys in one request, each with an outcome of its own."""

import concurrent.futures
import datetime
import json

import pytest
from botocore.exceptions import ClientError

from lib import s3, s3_signing
from lib.account import DEV_KEY, DEV_NAME
from lib.server import Server

MALFORMED = (400, "MalformedXML")


def document(*objects, quiet=None):
    """A document with these objects: keys, or the inner text of elements."""
    inner = "".join(f"<Object>{one if one.startswith('<') else f'<Key>{one}</Key>'}</Object>" for one in objects)
    end = "" if quiet is None else f"<Quiet>{quiet}</Quiet>"
    return f'<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{inner}{end}</Delete>'.encode()


def post(raw, bucket, body, headers=None):
    """Sends a document with its MD5, unless `headers` says otherwise."""
    headers = {"content-md5": s3_signing.md5(body)} if headers is None else headers
    return raw.call("POST", f"/{bucket}", [("delete", "")], headers, body)


def outcomes(answer):
    """Key -> None, or the code of its error."""
    assert answer.status == 200, answer.body
    root = answer.tree()
    assert root.tag == "DeleteResult"
    return {**{one.findtext("Key"): None for one in root.findall("Deleted")},
            **{one.findtext("Key"): one.findtext("Code") for one in root.findall("Error")}}


def keys(client, bucket):
    """All keys of a bucket."""
    return [one["Key"] for one in client.list_objects_v2(Bucket=bucket).get("Contents", [])]


def fill(client, bucket, names):
    """Puts objects."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: client.put_object(Bucket=bucket, Key=name, Body=name.encode()), names))


def test_objects_are_deleted_and_missing_ones_count_as_deleted(client, bucket):
    fill(client, bucket, ["a", "b/c", "d"])
    found = client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "a"}, {"Key": "b/c"}, {"Key": "missing"}]})
    assert [one["Key"] for one in found["Deleted"]] == ["a", "b/c", "missing"] and "Errors" not in found
    assert keys(client, bucket) == ["d"]


def test_a_quiet_answer_names_errors_only(client, service, bucket):
    fill(client, bucket, ["a", "b"])
    service.get_blob_client(bucket, "b").acquire_lease(15)
    found = client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "a"}, {"Key": "b"}], "Quiet": True})
    assert "Deleted" not in found
    assert [(one["Key"], one["Code"]) for one in found["Errors"]] == [("b", "OperationAborted")]
    assert keys(client, bucket) == ["b"]


def test_a_thousand_keys_are_deleted(client, bucket):
    names = [f"k{number:04}" for number in range(40)]
    fill(client, bucket, names)
    listed = [{"Key": name} for name in names] + [{"Key": f"missing{number}"} for number in range(960)]
    found = client.delete_objects(Bucket=bucket, Delete={"Objects": listed})
    assert [one["Key"] for one in found["Deleted"]] == [one["Key"] for one in listed]
    assert not keys(client, bucket)


def test_more_than_a_thousand_keys_are_refused(client, raw, bucket):
    fill(client, bucket, ["a"])
    answer = post(raw, bucket, document(*["a"] * 1001))
    assert (answer.status, answer.code()) == MALFORMED
    assert keys(client, bucket) == ["a"]


def test_a_thousand_long_keys_fit(raw, bucket):
    names = [f"{number:04}" + "k" * 1020 for number in range(1000)]
    assert list(outcomes(post(raw, bucket, document(*names)))) == names


@pytest.mark.parametrize("body", [
    b"", b"x", b"<Delete", b"<Delete/>", b"<Delete></Delete>", b"<Other><Object><Key>a</Key></Object></Other>",
    b"<Delete><Object/></Delete>", b"<Delete><Object><Key/></Object></Delete>",
    b"<Delete><Object><Key></Key></Object></Delete>",
    b"<Delete><Object><Key>a</Key><Key>b</Key></Object></Delete>",
    b"<Delete><Object><Key>a</Key><Other/></Object></Delete>",
    b"<Delete><Object><Key>a</Key></Object><Other/></Delete>",
    b"<Delete><Object><Key>a</Key></Object><Quiet>maybe</Quiet></Delete>",
    b"<Delete><Object><Key>a</Key></Object><Quiet>true</Quiet><Quiet>true</Quiet></Delete>",
    b"<Delete><Object><Key>a</Key><Size>-1</Size></Object></Delete>",
    b"<Delete><Object><Key>a</Key><Size>x</Size></Object></Delete>",
    b"<Delete><Object><Key>a</Key><LastModifiedTime>now</LastModifiedTime></Object></Delete>",
    b"<Delete><Object><Key>a</Key></Object></Delete><Delete/>",
    b"<Delete><Object><Key>a\xff</Key></Object></Delete>",
    b"<Delete><Object><Key>&unknown;</Key></Object></Delete>",
    b"<!DOCTYPE Delete [<!ENTITY x \"a\">]><Delete><Object><Key>&x;</Key></Object></Delete>",
    b"<Delete>" + b"<a>" * 50 + b"</a>" * 50 + b"</Delete>",
    b"<Delete>" + b"<Object><Key>a</Key></Object>" * 9000 + b"</Delete>",
], ids=lambda body: body[:40].decode(errors="replace"))
def test_a_malformed_document_deletes_nothing(client, raw, bucket, body):
    fill(client, bucket, ["a"])
    answer = post(raw, bucket, body)
    assert (answer.status, answer.code()) == MALFORMED
    assert keys(client, bucket) == ["a"]


BODY = document("a")


@pytest.mark.parametrize("headers, expected", [
    ({}, (400, "InvalidRequest")),
    ({"x-amz-sdk-checksum-algorithm": "CRC32"}, (400, "InvalidRequest")),
    ({"content-md5": s3_signing.md5(b"other")}, (400, "BadDigest")),
    ({"content-md5": "*"}, (400, "InvalidDigest")),
    ({"content-md5": "AAAA"}, (400, "InvalidDigest")),
    ({"x-amz-checksum-crc32": s3_signing.crc32(b"other")}, (400, "BadDigest")),
    ({"x-amz-checksum-crc32": "*"}, (400, "BadDigest")),
    ({"x-amz-checksum-sha256": s3_signing.sha("sha256", b"other")}, (400, "BadDigest")),
    ({"x-amz-checksum-crc32": s3_signing.crc32(BODY), "x-amz-checksum-sha1": s3_signing.sha("sha1", BODY)},
     (400, "InvalidRequest")),
    ({"x-amz-checksum-md5": "x"}, (400, "InvalidRequest")),
])
def test_the_document_has_an_integrity_header(client, raw, bucket, headers, expected):
    fill(client, bucket, ["a"])
    answer = post(raw, bucket, BODY, headers)
    assert (answer.status, answer.code()) == expected
    assert keys(client, bucket) == ["a"]


@pytest.mark.parametrize("name", s3_signing.ALGORITHMS)
def test_any_checksum_will_do(client, raw, bucket, name):
    fill(client, bucket, ["a"])
    header, compute = s3_signing.ALGORITHMS[name]
    assert outcomes(post(raw, bucket, BODY, {header: compute(BODY)})) == {"a": None}
    assert not keys(client, bucket)


def test_a_checksum_in_a_trailer_will_do(client, raw, bucket):
    fill(client, bucket, ["a"])
    trailers = [("x-amz-checksum-crc32", s3_signing.crc32(BODY))]
    headers = {"x-amz-decoded-content-length": str(len(BODY)), "x-amz-trailer": "x-amz-checksum-crc32",
               "content-encoding": "aws-chunked"}
    signed = raw.sign("POST", f"/{bucket}", [("delete", "")], headers, sha256=s3_signing.SIGNED_TRAILER)
    body = s3_signing.body(raw, signed, [BODY], trailers).write()
    assert outcomes(raw.send("POST", f"/{bucket}?delete=", signed, body)) == {"a": None}


def test_conditions_are_decided_for_each_key(client, raw, bucket):
    fill(client, bucket, ["a", "b", "c", "d", "e", "f", "g"])
    head = {name: client.head_object(Bucket=bucket, Key=name) for name in keys(client, bucket)}
    wrong_time = head["e"]["LastModified"] + datetime.timedelta(seconds=-100)
    http = "%a, %d %b %Y %H:%M:%S GMT"
    answer = post(raw, bucket, document(
        f"<Key>a</Key><ETag>{head['a']['ETag'].replace(chr(34), '&quot;')}</ETag>",
        f"<Key>b</Key><ETag>{head['a']['ETag'].replace(chr(34), '&quot;')}</ETag>",
        "<Key>c</Key><Size>1</Size>",
        "<Key>d</Key><Size>2</Size>",
        f"<Key>e</Key><LastModifiedTime>{wrong_time.strftime(http)}</LastModifiedTime>",
        f"<Key>f</Key><LastModifiedTime>{head['f']['LastModified'].strftime(http)}</LastModifiedTime>",
        f"<Key>g</Key><LastModifiedTime>{head['g']['LastModified'].strftime('%Y-%m-%dT%H:%M:%SZ')}</LastModifiedTime>"
        f"<Size>1</Size><ETag>{head['g']['ETag'].strip(chr(34))}</ETag>",
        "<Key>h</Key><ETag>*</ETag>",
        "<Key>i</Key><Size>3</Size>"))
    failed = "PreconditionFailed"
    assert outcomes(answer) == {"a": None, "b": failed, "c": None, "d": failed, "e": failed, "f": None, "g": None,
                                "h": "NoSuchKey", "i": None}
    assert keys(client, bucket) == ["b", "d", "e"]


def test_errors_of_some_keys_do_not_stop_the_others(client, service, raw, bucket):
    fill(client, bucket, ["leased", "kept", "gone"])
    lease = service.get_blob_client(bucket, "leased").acquire_lease(-1)
    service.get_blob_client(bucket, "kept").create_snapshot()
    found = outcomes(post(raw, bucket, document("leased", "kept", "gone", "k" * 1025, "<Key>gone</Key><VersionId>v</VersionId>")))
    assert found.pop("k" * 1025) == "KeyTooLongError"
    assert found.pop("gone") in ("NotImplemented", "NoSuchVersion")
    assert found == {"leased": "OperationAborted", "kept": "OperationAborted"}
    assert keys(client, bucket) == ["kept", "leased"]
    lease.release()


@pytest.mark.parametrize("key, written", [
    ("a b", "a b"), ("ü/€", "ü/€"), ("<&>", "&lt;&amp;&gt;"), ("a\x01b", "a&#1;b"), ("\n", "&#10;"), (" ", " "),
    ("a//b", "a//b"), ("a/", "a/"), ("a/../b", "a/../b"), ("+", "+"), ("%41", "%41")])
def test_keys_are_taken_as_they_are(client, raw, bucket, key, written):
    client.put_object(Bucket=bucket, Key=key, Body=b"x")
    answer = post(raw, bucket, document(written))
    assert answer.status == 200 and b"<Deleted>" in answer.body and b"<Error>" not in answer.body
    with pytest.raises(ClientError):
        client.head_object(Bucket=bucket, Key=key)


def test_a_key_may_come_twice(client, raw, bucket):
    fill(client, bucket, ["a"])
    assert outcomes(post(raw, bucket, document("a", "a"))) == {"a": None}


def test_a_missing_bucket_is_refused_as_a_whole(raw):
    answer = post(raw, "no-such-bucket", BODY)
    assert (answer.status, answer.code()) == (404, "NoSuchBucket")


def test_a_document_that_is_too_long_is_refused(raw, bucket):
    body = document("a") + b" " * (2 << 20)
    answer = post(raw, bucket, body)
    assert (answer.status, answer.code()) == (400, "EntityTooLarge")


@pytest.mark.parametrize("header", ["x-amz-bypass-governance", "x-amz-bypass-governance-retentions", "x-amz-mfa"])
def test_headers_that_are_not_served_are_refused(client, raw, bucket, header):
    fill(client, bucket, ["a"])
    answer = post(raw, bucket, BODY, {"content-md5": s3_signing.md5(BODY), header: "true"})
    assert (answer.status, answer.code()) == (501, "NotImplemented")
    assert keys(client, bucket) == ["a"]


def test_who_may_not_delete_deletes_nothing(client, raw, account, bucket):
    fill(client, bucket, ["a"])
    wrong = s3.Raw(account, secret="wrong")
    assert post(wrong, bucket, BODY).code() == "SignatureDoesNotMatch"
    assert raw.send("POST", f"/{bucket}?delete", {"host": "s3.localhost", "content-md5": s3_signing.md5(BODY)}, BODY).status == 403
    assert keys(client, bucket) == ["a"]


def test_the_audit_log_names_each_key(request, tmp_path):
    extra = [f"--account={DEV_NAME}:{DEV_KEY}", f"--audit-log={tmp_path / 'audit.log'}", "--audit-requests", "on"]
    with Server(request.config.getoption("--binary"), [tmp_path / "data"], tmp_path / "server.log", extra) as server:
        server.start()
        client = s3.client(server.account)
        client.create_bucket(Bucket="logged")
        client.put_object(Bucket="logged", Key="a/b", Body=b"x")
        server.account.service().get_blob_client("logged", "a/b").acquire_lease(-1)
        client.delete_objects(Bucket="logged", Delete={"Objects": [{"Key": "a/b"}, {"Key": "missing"}]})
        assert server.stop() == 0
    lines = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    found = {line["resource"]: (line["status"], line["code"]) for line in lines if line["operation"] == "DeleteObjects"}
    assert found == {"logged/a/b": (409, "OperationAborted"), "logged/missing": (204, None), "logged": (200, None)}

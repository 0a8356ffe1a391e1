"""A first round trip of every kind of request."""

import pytest
from botocore.exceptions import ClientError

from lib import s3


def test_an_object_is_put_read_listed_and_deleted(client, bucket):
    put = client.put_object(Bucket=bucket, Key="a/b", Body=b"hello", ContentType="text/plain", Metadata={"k": "v"})
    head = client.head_object(Bucket=bucket, Key="a/b")
    assert head["ContentLength"] == 5 and head["ContentType"] == "text/plain" and head["Metadata"] == {"k": "v"}
    assert head["ETag"] == put["ETag"]
    assert client.get_object(Bucket=bucket, Key="a/b")["Body"].read() == b"hello"
    ranged = client.get_object(Bucket=bucket, Key="a/b", Range="bytes=1-3")
    assert ranged["Body"].read() == b"ell" and ranged["ContentRange"] == "bytes 1-3/5"
    for listed in (client.list_objects(Bucket=bucket), client.list_objects_v2(Bucket=bucket)):
        assert [(one["Key"], one["Size"]) for one in listed["Contents"]] == [("a/b", 5)]
    assert bucket in [one["Name"] for one in client.list_buckets()["Buckets"]]
    client.delete_object(Bucket=bucket, Key="a/b")
    client.delete_object(Bucket=bucket, Key="a/b")
    with pytest.raises(ClientError) as refused:
        client.get_object(Bucket=bucket, Key="a/b")
    assert s3.code(refused.value) == (404, "NoSuchKey")


def test_what_one_protocol_writes_the_other_reads(client, service, bucket):
    client.put_object(Bucket=bucket, Key="s3", Body=b"from s3", Metadata={"of": "s3"})
    blob = service.get_blob_client(bucket, "s3")
    assert blob.download_blob().readall() == b"from s3"
    assert blob.get_blob_properties().metadata == {"of": "s3"}
    service.get_blob_client(bucket, "blob").upload_blob(b"from blob", metadata={"of": "blob"})
    got = client.get_object(Bucket=bucket, Key="blob")
    assert got["Body"].read() == b"from blob" and got["Metadata"] == {"of": "blob"}


def test_a_missing_bucket_and_a_wrong_key_are_refused(client, account, bucket):
    with pytest.raises(ClientError) as refused:
        client.list_objects_v2(Bucket="no-such-bucket")
    assert s3.code(refused.value) == (404, "NoSuchBucket")
    raw = s3.Raw(account, secret="wrong")
    assert raw.call("GET", f"/{bucket}").code() == "SignatureDoesNotMatch"
    raw = s3.Raw(account, key_id="nobody")
    assert raw.call("GET", f"/{bucket}").code() == "InvalidAccessKeyId"
    assert raw.send("GET", f"/{bucket}?x-amz-x", {"authorization": "AWS4-HMAC-SHA256 x"}).status == 400


def test_a_body_that_is_not_what_was_signed_is_refused(raw, bucket):
    answer = raw.call("PUT", f"/{bucket}/k", body=b"hello", sha256="0" * 64)
    assert (answer.status, answer.code()) == (400, "XAmzContentSHA256Mismatch")
    assert raw.call("GET", f"/{bucket}/k").status == 404


def test_a_presigned_url_works_until_it_expires(raw, bucket):
    assert raw.send("PUT", raw.presign("PUT", f"/{bucket}/k"), body=b"x").status == 200
    assert raw.send("GET", raw.presign("GET", f"/{bucket}/k")).body == b"x"
    late = raw.presign("GET", f"/{bucket}/k", time="20200101T000000Z")
    assert (raw.send("GET", late).status, raw.send("GET", late).code()) == (403, "AccessDenied")


def test_what_is_not_served_is_refused(raw, bucket):
    for header in ("x-amz-write-offset-bytes", "x-amz-grant-read"):
        answer = raw.call("PUT", f"/{bucket}/k", headers={header: "1"}, body=b"x")
        assert (answer.status, answer.code()) == (501, "NotImplemented"), header

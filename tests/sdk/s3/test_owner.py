"""Ids of owners, and the owner that a request expects."""

import pytest

from lib.s3 import account_number, canonical_id


def test_lists_and_access_lists_name_the_owner(client, account, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"x")
    expected = {"ID": canonical_id(account.name), "DisplayName": account.name}
    assert client.list_buckets()["Owner"] == expected
    assert client.get_bucket_acl(Bucket=bucket)["Owner"] == expected
    assert client.get_object_acl(Bucket=bucket, Key="k")["Owner"] == expected


REQUESTS = [
    ("GET", "", [], b""),
    ("GET", "", [("list-type", "2")], b""),
    ("HEAD", "", [], b""),
    ("GET", "", [("cors", "")], b""),
    ("GET", "", [("versioning", "")], b""),
    ("GET", "", [("acl", "")], b""),
    ("DELETE", "", [("tagging", "")], b""),
    ("PUT", "/k", [], b"x"),
    ("GET", "/k", [], b""),
    ("HEAD", "/k", [], b""),
    ("GET", "/k", [("tagging", "")], b""),
    ("GET", "/k", [("acl", "")], b""),
    ("DELETE", "/k", [], b""),
]


@pytest.mark.parametrize("method, key, query, body", REQUESTS)
def test_another_owner_than_expected_is_403(raw, account, bucket, method, key, query, body):
    raw.call("PUT", f"/{bucket}/k", body=b"old")

    def ask(owner):
        headers = {"x-amz-expected-bucket-owner": owner}
        return raw.call(method, f"/{bucket}{key}", query, headers=headers, body=body)

    answer = ask("000000000000")
    assert answer.status == 403 and answer.headers["x-amz-error-code"] == "AccessDenied"
    for malformed in ("1", "12345678901x", "1234567890123", canonical_id(account.name)):
        answer = ask(malformed)
        assert answer.status == 400, malformed
        assert answer.headers["x-amz-error-code"] == "InvalidBucketOwnerAWSAccountID"
    assert raw.call("GET", f"/{bucket}/k").body == b"old", "nothing was changed"
    answer = ask(account_number(account.name))
    assert answer.status in (200, 204) or answer.code() == "NoSuchCORSConfiguration"


def test_the_owner_of_a_source(raw, account, bucket):
    for owner, status in (("000000000000", 403), (account_number(account.name), 200)):
        headers = {"x-amz-source-expected-bucket-owner": owner}
        assert raw.call("PUT", f"/{bucket}/k", headers=headers, body=b"x").status == status

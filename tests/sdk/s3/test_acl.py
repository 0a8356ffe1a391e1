"""Canned access control lists, on both faces."""

import datetime
import re
import uuid

import pytest
from azure.storage.blob import AccessPolicy

from lib import s3
from lib.account import Account

OWNER_RIGHT = "FULL_CONTROL"
GROUPS = "http://acs.amazonaws.com/groups/global/"
# Canned list -> groups that are shown with READ.
SHOWN = {
    "private": [],
    "public-read": [GROUPS + "AllUsers"],
    "authenticated-read": [GROUPS + "AuthenticatedUsers"],
    "bucket-owner-read": [],
    "bucket-owner-full-control": [],
}
# Since this version Azure answers strangers with a challenge; before, that nothing is there.
AZURE = {"x-ms-version": "2021-12-02"}
UNSERVED = ["public-read-write", "aws-exec-read", "log-delivery-write"]


@pytest.fixture
def host(account):
    """A host that names the account, for requests that do not say whose bucket they mean."""
    return {"host": f"s3.{account.name}.localhost"}


@pytest.fixture
def outsider(account, other_account):
    """A client with the key of another account of the store."""
    return s3.Raw(Account(account.address, other_account.name, other_account.key))


def shown(answer):
    """The groups that a list of grants shows; the owner has all rights."""
    grants = answer["Grants"]
    owner, grants = grants[0], grants[1:]
    assert owner["Permission"] == OWNER_RIGHT and owner["Grantee"]["Type"] == "CanonicalUser"
    assert owner["Grantee"]["ID"] == answer["Owner"]["ID"]
    assert all(one["Permission"] == "READ" and one["Grantee"]["Type"] == "Group" for one in grants)
    return [one["Grantee"]["URI"] for one in grants]


def set_bucket(raw, bucket, acl):
    return raw.call("PUT", f"/{bucket}", [("acl", "")], headers={"x-amz-acl": acl})


def set_object(raw, bucket, acl, key="k"):
    return raw.call("PUT", f"/{bucket}/{key}", [("acl", "")], headers={"x-amz-acl": acl})


def on_azure(raw, account, bucket, key=None):
    """The status of an anonymous request to the Azure face: of a blob, else of the list."""
    if key:
        return raw.send("GET", f"/{account.name}/{bucket}/{key}", AZURE).status
    return raw.send("GET", f"/{account.name}/{bucket}?restype=container&comp=list", AZURE).status


@pytest.mark.parametrize("acl, groups", SHOWN.items())
def test_lists_are_set_and_shown(client, bucket, acl, groups):
    assert shown(client.get_bucket_acl(Bucket=bucket)) == []
    if not acl.startswith("bucket-"):
        client.put_bucket_acl(Bucket=bucket, ACL=acl)
        assert shown(client.get_bucket_acl(Bucket=bucket)) == groups
    put = client.put_object(Bucket=bucket, Key="k", Body=b"x", ACL=acl)
    assert shown(client.get_object_acl(Bucket=bucket, Key="k")) == groups
    client.put_object(Bucket=bucket, Key="k", Body=b"x")
    assert shown(client.get_object_acl(Bucket=bucket, Key="k")) == [], "a new object is private"
    before = client.head_object(Bucket=bucket, Key="k")
    client.put_object_acl(Bucket=bucket, Key="k", ACL=acl)
    assert shown(client.get_object_acl(Bucket=bucket, Key="k")) == groups
    after = client.head_object(Bucket=bucket, Key="k")
    assert (after["ETag"], after["LastModified"]) == (before["ETag"], before["LastModified"])
    assert after["ETag"] == put["ETag"]
    client.put_object_acl(Bucket=bucket, Key="k", ACL="private")
    assert shown(client.get_object_acl(Bucket=bucket, Key="k")) == []


@pytest.mark.parametrize("acl, anonymous, authenticated", [
    ("private", 403, 403), ("public-read", 200, 200), ("authenticated-read", 403, 200),
    ("bucket-owner-read", 403, 403), ("bucket-owner-full-control", 403, 403)])
def test_an_object_is_open_to_whom_its_list_names(raw, outsider, account, host, bucket, acl, anonymous, authenticated):
    raw.call("PUT", f"/{bucket}/k", headers={"x-amz-acl": acl}, body=b"hello")
    for method in ("GET", "HEAD"):
        answer = raw.send(method, f"/{bucket}/k", host)
        assert answer.status == anonymous, method
        if anonymous == 403:
            assert answer.headers["x-amz-error-code"] == "AccessDenied"
        answer = outsider.call(method, f"/{bucket}/k", headers=host)
        assert answer.status == authenticated, method
    if anonymous == 200:
        assert raw.send("GET", f"/{bucket}/k", {**host, "range": "bytes=1-2"}).body == b"el"
    assert on_azure(raw, account, bucket, "k") == (200 if anonymous == 200 else 401)
    # The list of an object opens neither the bucket nor other objects, and permits no writes.
    raw.call("PUT", f"/{bucket}/other", body=b"secret")
    for client in (lambda *a, **k: raw.send(*a, k.get("headers"), k.get("body", b"")), outsider.call):
        assert client("GET", f"/{bucket}/other", headers=host).status == 403
        assert client("GET", f"/{bucket}/none", headers=host).status == 403, "its existence is not revealed"
        assert client("GET", f"/{bucket}", headers=host).status == 403
        assert client("PUT", f"/{bucket}/k", headers=host, body=b"changed").status == 403
        assert client("DELETE", f"/{bucket}/k", headers=host).status == 403
    assert on_azure(raw, account, bucket) == 401
    assert on_azure(raw, account, bucket, "other") == 401
    assert on_azure(raw, account, bucket, "none") == 401
    assert raw.call("GET", f"/{bucket}/k").body == b"hello"


@pytest.mark.parametrize("query", ["acl", "tagging", "attributes", "retention"])
def test_what_is_beside_an_open_object_stays_closed(raw, host, bucket, query):
    raw.call("PUT", f"/{bucket}/k", headers={"x-amz-acl": "public-read"}, body=b"x")
    answer = raw.send("GET", f"/{bucket}/k?{query}", {**host, "x-amz-object-attributes": "ETag"})
    assert answer.status in (200, 403) if query == "attributes" else answer.status == 403


@pytest.mark.parametrize("acl, anonymous, authenticated", [
    ("private", 403, 403), ("public-read", 200, 200), ("authenticated-read", 403, 200)])
def test_a_bucket_opens_its_list_only(raw, outsider, account, host, bucket, acl, anonymous, authenticated):
    raw.call("PUT", f"/{bucket}/k", body=b"hello")
    assert set_bucket(raw, bucket, acl).status == 200
    for query in ("", "?list-type=2", "?versions") if anonymous == 403 else ("", "?list-type=2"):
        assert raw.send("GET", f"/{bucket}{query}", host).status == anonymous, query
    assert raw.send("HEAD", f"/{bucket}", host).status == anonymous
    assert outsider.call("GET", f"/{bucket}", headers=host).status == authenticated
    assert outsider.call("HEAD", f"/{bucket}", headers=host).status == authenticated
    assert on_azure(raw, account, bucket) == (200 if anonymous == 200 else 401)
    assert raw.send("GET", f"/{bucket}/k", host).status == 403, "the objects have lists of their own"
    assert outsider.call("GET", f"/{bucket}/k", headers=host).status == 403
    assert on_azure(raw, account, bucket, "k") == 401
    for client in (lambda *a, **k: raw.send(*a, k.get("headers"), k.get("body", b"")), outsider.call):
        assert client("PUT", f"/{bucket}/new", headers=host, body=b"x").status == 403
        assert client("DELETE", f"/{bucket}", headers=host).status == 403


@pytest.mark.parametrize("acl, groups", [*SHOWN.items(), *((one, None) for one in UNSERVED), ("public", None)])
def test_a_bucket_is_made_with_a_list(client, raw, bucket, acl, groups):
    name = f"{bucket}-2"
    answer = raw.call("PUT", f"/{name}", headers={"x-amz-acl": acl})
    if groups is None:
        assert answer.status == (400 if acl == "public" else 501)
        assert raw.call("HEAD", f"/{name}").status == 404
        return
    try:
        assert answer.status == 200
        assert shown(client.get_bucket_acl(Bucket=name)) == groups
        assert raw.call("PUT", f"/{name}", headers={"x-amz-acl": acl}).status == 200, "the same settings again"
        other = "private" if groups else "public-read"
        assert raw.call("PUT", f"/{name}", headers={"x-amz-acl": other}).status == 409
    finally:
        client.delete_bucket(Bucket=name)


def test_an_upload_in_parts_has_tags_and_a_list(client, raw, host, bucket):
    started = client.create_multipart_upload(Bucket=bucket, Key="k", ACL="public-read", Tagging="a=1&b=2")
    of = {"Bucket": bucket, "Key": "k", "UploadId": started["UploadId"]}
    part = client.upload_part(**of, PartNumber=1, Body=b"hello")
    assert raw.send("GET", f"/{bucket}/k", host).status == 403
    client.complete_multipart_upload(**of, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    assert raw.send("GET", f"/{bucket}/k", host).body == b"hello"
    assert raw.send("GET", f"/{bucket}/k?partNumber=1", host).body == b"hello"
    tags = client.get_object_tagging(Bucket=bucket, Key="k")["TagSet"]
    assert sorted((one["Key"], one["Value"]) for one in tags) == [("a", "1"), ("b", "2")]
    client.put_object_acl(Bucket=bucket, Key="k", ACL="private")
    assert raw.send("GET", f"/{bucket}/k?partNumber=1", host).status == 403
    assert raw.send("GET", f"/{bucket}/none?partNumber=1", host).status == 403
    for acl in UNSERVED:
        answer = raw.call("POST", f"/{bucket}/k", [("uploads", "")], headers={"x-amz-acl": acl})
        assert (answer.status, answer.code()) == (501, "NotImplemented")


@pytest.mark.parametrize("access, blob, listing", [("container", 200, 200), ("blob", 200, 403)])
def test_public_access_of_the_container_holds_through_s3(client, raw, service, host, bucket, access, blob, listing):
    raw.call("PUT", f"/{bucket}/k", body=b"x")
    service.get_container_client(bucket).set_container_access_policy({}, public_access=access)
    assert raw.send("GET", f"/{bucket}/k", host).status == blob
    assert raw.send("GET", f"/{bucket}", host).status == listing
    assert raw.send("GET", f"/{bucket}/none", host).status == 404
    groups = [GROUPS + "AllUsers"]
    assert shown(client.get_object_acl(Bucket=bucket, Key="k")) == groups
    assert shown(client.get_bucket_acl(Bucket=bucket)) == (groups if listing == 200 else [])


def test_the_last_change_of_access_counts_on_both_faces(client, raw, account, service, host, bucket):
    raw.call("PUT", f"/{bucket}/k", body=b"x")
    container = service.get_container_client(bucket)
    container.set_container_access_policy({}, public_access="container")
    assert set_bucket(raw, bucket, "private").status == 200
    assert container.get_container_access_policy()["public_access"] is None
    assert raw.send("GET", f"/{bucket}/k", host).status == 403
    assert on_azure(raw, account, bucket) == 401
    assert set_bucket(raw, bucket, "public-read").status == 200
    assert on_azure(raw, account, bucket) == 200
    container.set_container_access_policy({})
    assert raw.send("GET", f"/{bucket}", host).status == 403
    assert shown(client.get_bucket_acl(Bucket=bucket)) == []


def test_policies_of_the_container_survive_a_list(service, raw, bucket):
    container = service.get_container_client(bucket)
    container.set_container_access_policy({"p": AccessPolicy(permission="r")})
    assert set_bucket(raw, bucket, "public-read").status == 200
    assert [one.id for one in container.get_container_access_policy()["signed_identifiers"]] == ["p"]


@pytest.mark.parametrize("acl", UNSERVED)
def test_lists_that_are_not_served(raw, bucket, acl):
    raw.call("PUT", f"/{bucket}/k", body=b"old")
    for answer in (set_bucket(raw, bucket, acl), set_object(raw, bucket, acl),
                   raw.call("PUT", f"/{bucket}/k", headers={"x-amz-acl": acl}, body=b"new")):
        assert (answer.status, answer.code()) == (501, "NotImplemented")
    assert raw.call("GET", f"/{bucket}/k").body == b"old"


@pytest.mark.parametrize("acl", ["public", "PUBLIC-READ", "private, public-read"])
def test_lists_that_do_not_exist(raw, bucket, acl):
    raw.call("PUT", f"/{bucket}/k", body=b"old")
    for answer in (set_bucket(raw, bucket, acl), set_object(raw, bucket, acl),
                   raw.call("PUT", f"/{bucket}/k", headers={"x-amz-acl": acl}, body=b"new")):
        assert (answer.status, answer.code()) == (400, "InvalidArgument")


@pytest.mark.parametrize("header", ["read", "write", "read-acp", "write-acp", "full-control"])
def test_grants_in_headers_are_not_served(raw, bucket, header):
    raw.call("PUT", f"/{bucket}/k", body=b"x")
    headers = {f"x-amz-grant-{header}": "uri=http://acs.amazonaws.com/groups/global/AllUsers"}
    for path, query in ((f"/{bucket}", [("acl", "")]), (f"/{bucket}/k", [("acl", "")]), (f"/{bucket}/k", [])):
        answer = raw.call("PUT", path, query, headers=headers)
        assert (answer.status, answer.code()) == (501, "NotImplemented")


def test_grants_in_documents_are_not_served(client, raw, bucket):
    raw.call("PUT", f"/{bucket}/k", body=b"x")
    for path in (f"/{bucket}", f"/{bucket}/k"):
        own = raw.call("GET", path, [("acl", "")])
        answer = raw.call("PUT", path, [("acl", "")], body=own.body)
        assert (answer.status, answer.code()) == (501, "NotImplemented")
        answer = raw.call("PUT", path, [("acl", "")])
        assert (answer.status, answer.code()) == (400, "MissingSecurityHeader")
        answer = raw.call("PUT", path, [("acl", "")], headers={"x-amz-acl": "private"}, body=own.body)
        assert (answer.status, answer.code()) == (400, "UnexpectedContent")
    assert shown(client.get_bucket_acl(Bucket=bucket)) == []


def test_lists_of_what_does_not_exist(raw, bucket):
    for method, headers in (("GET", {}), ("PUT", {"x-amz-acl": "private"})):
        for path, code in ((f"/{bucket}/none", "NoSuchKey"), ("/no-such-bucket", "NoSuchBucket"),
                           ("/no-such-bucket/k", "NoSuchBucket")):
            answer = raw.call(method, path, [("acl", "")], headers=headers)
            assert (answer.status, answer.code()) == (404, code), (method, path)


def test_an_account_closed_to_anonymous_access(other_account):
    client, raw = s3.client(other_account), s3.Raw(other_account)
    name = "closed-bucket"
    client.create_bucket(Bucket=name)
    try:
        client.put_object(Bucket=name, Key="k", Body=b"old")
        for acl in ("public-read", "authenticated-read"):
            for answer in (set_bucket(raw, name, acl), set_object(raw, name, acl),
                           raw.call("PUT", f"/{name}/k", headers={"x-amz-acl": acl}, body=b"new")):
                assert (answer.status, answer.code()) == (403, "AccessDenied"), acl
        for acl in ("private", "bucket-owner-full-control"):
            assert set_object(raw, name, acl).status == 200
        answer = raw.send("GET", f"/{name}/k", {"host": f"s3.{other_account.name}.localhost"})
        assert (answer.status, answer.code()) == (403, "AccessDenied")
        assert client.get_object(Bucket=name, Key="k")["Body"].read() == b"old"
    finally:
        client.delete_object(Bucket=name, Key="k")
        client.delete_bucket(Bucket=name)


def test_a_key_of_another_account_reaches_nothing_else(outsider, host, bucket):
    for method, path, query in (("GET", "/", []), ("GET", f"/{bucket}", [("acl", "")]), ("PUT", "/made-by-other", []),
                                ("GET", f"/{bucket}", [("cors", "")]), ("GET", "/no-such-bucket", [])):
        answer = outsider.call(method, path, query, headers=host)
        assert (answer.status, answer.code()) == (403, "AccessDenied"), (method, path, query)


def test_unknown_and_wrong_keys_get_different_errors(account, host, bucket):
    unknown = s3.Raw(account, key_id="nobodyhere").call("GET", f"/{bucket}", headers=host)
    assert unknown.code() == "InvalidAccessKeyId"
    wrong = s3.Raw(account, key_id="otheraccount", secret="wrong").call("GET", f"/{bucket}", headers=host)
    assert wrong.code() == "SignatureDoesNotMatch"


def test_an_open_object_is_read_with_its_conditions(raw, host, bucket):
    put = raw.call("PUT", f"/{bucket}/k", headers={"x-amz-acl": "public-read"}, body=b"x")
    etag = put.headers["etag"]
    assert raw.send("GET", f"/{bucket}/k", {**host, "if-none-match": etag}).status == 304
    assert raw.send("GET", f"/{bucket}/k", {**host, "if-match": '"other"'}).status == 412
    raw.call("PUT", f"/{bucket}/k", body=b"private now")
    assert raw.send("GET", f"/{bucket}/k", {**host, "if-none-match": etag}).status == 403
    assert raw.send("GET", f"/{bucket}/k", {**host, "if-match": '"other"'}).status == 403


def test_a_copy_has_the_list_that_it_names(client, bucket):
    client.put_object(Bucket=bucket, Key="from", Body=b"x", ACL="public-read")
    client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from")
    assert shown(client.get_object_acl(Bucket=bucket, Key="to")) == [], "a copy is private unless it says otherwise"
    client.copy_object(Bucket=bucket, Key="open", CopySource=f"{bucket}/from", ACL="public-read")
    assert shown(client.get_object_acl(Bucket=bucket, Key="open")) == SHOWN["public-read"]
    client.copy_object(Bucket=bucket, Key="tagged", CopySource=f"{bucket}/from", TaggingDirective="REPLACE", Tagging="a=b")
    assert client.get_object_tagging(Bucket=bucket, Key="tagged")["TagSet"] == [{"Key": "a", "Value": "b"}]


def test_an_open_list_shows_names_only(raw, client, account, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"x", Metadata={"secret": "1"})
    client.put_bucket_acl(Bucket=bucket, ACL="public-read")
    assert on_azure(raw, account, bucket) == 200
    for include in ("metadata", "tags", "snapshots", "uncommittedblobs", "copy", "versions", "deleted",
                    "immutabilitypolicy", "legalhold"):
        target = f"/{account.name}/{bucket}?restype=container&comp=list&include={include}"
        assert raw.send("GET", target, AZURE).status == 401, include
    assert raw.send("GET", f"/{account.name}/{bucket}?restype=container", AZURE).status == 401


def test_an_open_object_does_not_show_what_protects_it(raw, client, account, host):
    bucket = f"lock{uuid.uuid4().hex}"
    client.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=True)
    client.put_object(Bucket=bucket, Key="k", Body=b"x", ACL="public-read", ObjectLockLegalHoldStatus="ON",
                      ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=datetime.datetime(2099, 1, 1))
    is_protection = re.compile("lock|immutab|legal")
    assert [name for name in raw.call("GET", f"/{bucket}/k").headers if is_protection.search(name)]
    for answer in (raw.send("GET", f"/{bucket}/k", host), raw.send("GET", f"/{account.name}/{bucket}/k", AZURE)):
        assert answer.status == 200
        assert not [name for name in answer.headers if is_protection.search(name)]


def test_a_snapshot_is_not_open(raw, client, service, account, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"x", ACL="public-read")
    taken = service.get_blob_client(bucket, "k").create_snapshot()["snapshot"]
    assert on_azure(raw, account, bucket, "k") == 200
    assert raw.send("GET", f"/{account.name}/{bucket}/k?snapshot={taken}", AZURE).status == 401

"""What users may do: without a role, with each, as owners, and by access control lists."""

import uuid

import pytest

from lib import commands, s3, s3_users
from lib.account import Account

from conftest import refusal

DENIED = (403, "AccessDenied")
UNKNOWN = (403, "InvalidAccessKeyId")


# --- without a role ---------------------------------------------------------------------------------------------------------

CORS = {"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["*"]}]}
# What a user needs a right for, with the arguments beside bucket and key.
ON_BUCKETS = {
    "head_bucket": {}, "list_objects": {}, "list_objects_v2": {}, "list_object_versions": {}, "list_multipart_uploads": {},
    "get_bucket_location": {}, "get_bucket_acl": {}, "put_bucket_acl": {"ACL": "private"}, "get_bucket_tagging": {},
    "put_bucket_tagging": {"Tagging": {"TagSet": [{"Key": "a", "Value": "b"}]}}, "delete_bucket_tagging": {},
    "put_bucket_cors": {"CORSConfiguration": CORS}, "get_bucket_cors": {}, "delete_bucket_cors": {},
    "get_bucket_versioning": {}, "get_bucket_policy": {}, "get_bucket_ownership_controls": {},
    "delete_objects": {"Delete": {"Objects": [{"Key": "k"}]}},
}
ON_OBJECTS = {
    "get_object": {}, "head_object": {}, "put_object": {"Body": b"new"}, "get_object_acl": {},
    "put_object_acl": {"ACL": "private"}, "get_object_tagging": {},
    "put_object_tagging": {"Tagging": {"TagSet": [{"Key": "a", "Value": "b"}]}}, "delete_object_tagging": {},
    "get_object_attributes": {"ObjectAttributes": ["ETag"]}, "create_multipart_upload": {}, "delete_object": {},
}


@pytest.mark.parametrize("call", [*ON_BUCKETS, *ON_OBJECTS, "delete_bucket"])
def test_without_a_role_nothing_of_others_is_reached(client, bucket, user, second, call):
    client.put_object(Bucket=bucket, Key="k", Body=b"kept")
    arguments = {"Bucket": bucket, **({"Key": "k"} if call in ON_OBJECTS else {}), **{**ON_BUCKETS, **ON_OBJECTS}.get(call, {})}
    status, code = refusal(getattr(user.client(), call), **arguments)
    assert status == 403 and code in ("AccessDenied", "403")
    # The same of another user's bucket.
    name = f"s{uuid.uuid4().hex}"
    second.client().create_bucket(Bucket=name)
    second.client().put_object(Bucket=name, Key="k", Body=b"kept")
    status, code = refusal(getattr(user.client(), call), **{**arguments, "Bucket": name})
    assert status == 403 and code in ("AccessDenied", "403")
    assert second.client().get_object(Bucket=name, Key="k")["Body"].read() == b"kept"
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"kept"
    second.client().delete_object(Bucket=name, Key="k")
    second.client().delete_bucket(Bucket=name)


@pytest.mark.parametrize("call", [*ON_BUCKETS, *ON_OBJECTS])
def test_owners_of_a_bucket_may_do_everything_in_it(user, own, call):
    client = user.client()
    client.put_object(Bucket=own, Key="k", Body=b"mine")
    client.put_bucket_tagging(Bucket=own, Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
    client.put_bucket_cors(Bucket=own, CORSConfiguration=CORS)
    arguments = {"Bucket": own, **({"Key": "k"} if call in ON_OBJECTS else {}), **{**ON_BUCKETS, **ON_OBJECTS}[call]}
    if call == "get_bucket_policy":
        assert refusal(client.get_bucket_policy, **arguments) == (404, "NoSuchBucketPolicy")
        return
    answer = getattr(client, call)(**arguments)
    assert answer["ResponseMetadata"]["HTTPStatusCode"] in (200, 204) and not answer.get("Errors")


@pytest.mark.parametrize("call", ["head_bucket", "list_objects_v2", "get_bucket_acl", "delete_bucket"])
def test_a_bucket_that_is_not_there_is_no_secret(user, call):
    status, code = refusal(getattr(user.client(), call), Bucket=f"n{uuid.uuid4().hex}")
    assert status == 404 and code in ("NoSuchBucket", "404")


def test_the_account_itself_is_for_roles(account, user):
    """Requests of a user say nothing of the account on the Azure face: its keys are of S3 alone."""
    answer = user.raw().call("GET", f"/{account.name}", [("comp", "list")])
    assert answer.status in (403, 404)


def test_root_has_everything_of_users(client, user, own):
    user.client().put_object(Bucket=own, Key="k", Body=b"x")
    assert client.get_object(Bucket=own, Key="k")["Body"].read() == b"x"
    client.put_object(Bucket=own, Key="r", Body=b"by root")
    assert user.client().get_object(Bucket=own, Key="r")["Body"].read() == b"by root"
    client.delete_object(Bucket=own, Key="k")
    user.client().delete_object(Bucket=own, Key="r")
    client.delete_bucket(Bucket=own)
    assert user.client().list_buckets()["Buckets"] == []


def test_users_own_buckets_on_the_azure_face(service, user, own):
    user.client().put_object(Bucket=own, Key="k", Body=b"both faces")
    assert service.get_blob_client(own, "k").download_blob().readall() == b"both faces"


# --- roles ------------------------------------------------------------------------------------------------------------------

# What each role permits, least first.
LEAST = {
    "head_bucket": "reader", "list_objects": "reader", "list_objects_v2": "reader", "list_object_versions": "reader",
    "list_multipart_uploads": "reader", "get_bucket_location": "reader", "get_object": "reader", "head_object": "reader",
    "get_object_attributes": "reader", "get_bucket_versioning": "reader",
    "put_object": "contributor", "create_multipart_upload": "contributor", "delete_object": "contributor",
    "delete_objects": "contributor",
    "get_bucket_acl": "owner", "put_bucket_acl": "owner", "get_object_acl": "owner", "put_object_acl": "owner",
    "get_object_tagging": "owner", "put_object_tagging": "owner", "put_bucket_tagging": "owner", "put_bucket_cors": "owner",
}
ROLES = ["reader", "contributor", "owner"]


@pytest.mark.parametrize("inside", [False, True], ids=["account", "container"])
@pytest.mark.parametrize("role", ROLES)
def test_roles_permit_what_those_of_tokens_do(client, bucket, user, role, inside):
    other = f"x{uuid.uuid4().hex}"
    client.create_bucket(Bucket=other)
    user.grant(role, bucket if inside else None)
    mine = user.client()
    for call, least in LEAST.items():
        for name in (bucket, other):
            client.put_object(Bucket=name, Key="k", Body=b"x")
        permitted = ROLES.index(role) >= ROLES.index(least)
        arguments = {**({"Key": "k"} if call in ON_OBJECTS else {}), **{**ON_BUCKETS, **ON_OBJECTS}[call]}
        for name, may in ((bucket, permitted), (other, permitted and not inside)):
            if may:
                getattr(mine, call)(Bucket=name, **arguments)
            else:
                status, code = refusal(getattr(mine, call), Bucket=name, **arguments)
                assert status == 403 and code in ("AccessDenied", "403"), (call, name == bucket)
    shown = [one["Name"] for one in mine.list_buckets()["Buckets"]]
    assert (bucket in shown) == (not inside), "a role in the account shows all buckets"
    user.ungrant(role, bucket if inside else None)
    assert refusal(mine.list_objects_v2, Bucket=bucket) == DENIED, "from the next request on"
    client.delete_object(Bucket=other, Key="k")
    for one in client.list_multipart_uploads(Bucket=other).get("Uploads", []):
        client.abort_multipart_upload(Bucket=other, Key="k", UploadId=one["UploadId"])
    client.delete_bucket(Bucket=other)


def test_objects_of_contributors_are_theirs(client, bucket, user):
    user.grant("contributor", bucket)
    user.client().put_object(Bucket=bucket, Key="k", Body=b"x")
    assert client.list_objects(Bucket=bucket)["Contents"][0]["Owner"]["ID"] == user.canonical
    client.put_object(Bucket=bucket, Key="k", Body=b"y")
    assert client.list_objects(Bucket=bucket)["Contents"][0]["Owner"]["ID"] == s3.canonical_id(user.account.name)


def test_parts_of_writes_need_the_right_that_they_have_alone(client, bucket, user):
    """Tags, open access and versions are for owners, however a contributor asks."""
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    version = client.put_object(Bucket=bucket, Key="k", Body=b"1", Tagging="a=b")["VersionId"]
    plain = client.put_object(Bucket=bucket, Key="plain", Body=b"1")["VersionId"]
    user.grant("contributor", bucket)
    mine = user.client()
    parts = [
        (mine.delete_object, {"Key": "k", "VersionId": version}),
        (mine.put_object, {"Key": "x", "Body": b"x", "Tagging": "a=b"}),
        (mine.put_object, {"Key": "x", "Body": b"x", "ACL": "public-read"}),
        (mine.create_multipart_upload, {"Key": "x", "Tagging": "a=b"}),
        (mine.create_multipart_upload, {"Key": "x", "ACL": "authenticated-read"}),
        (mine.copy_object, {"Key": "x", "CopySource": f"{bucket}/k"}),
        (mine.copy_object, {"Key": "x", "CopySource": f"{bucket}/k", "Tagging": "a=b", "TaggingDirective": "REPLACE"}),
        (mine.copy_object, {"Key": "x", "CopySource": f"{bucket}/plain", "ACL": "public-read"}),
    ]
    for call, arguments in parts:
        assert refusal(call, Bucket=bucket, **arguments) == DENIED, arguments
    several = {"Objects": [{"Key": "k", "VersionId": version}, {"Key": "other"}]}
    answer = mine.delete_objects(Bucket=bucket, Delete=several)
    assert [(one["Key"], one["Code"]) for one in answer["Errors"]] == [("k", "AccessDenied")]
    assert [one["Key"] for one in answer["Deleted"]] == ["other"]
    assert client.get_object(Bucket=bucket, Key="k", VersionId=version)["Body"].read() == b"1"
    mine.copy_object(Bucket=bucket, Key="x", CopySource=f"{bucket}/plain")
    mine.copy_object(Bucket=bucket, Key="x", CopySource=f"{bucket}/k", TaggingDirective="REPLACE")
    user.grant("owner", bucket)
    mine.copy_object(Bucket=bucket, Key="x", CopySource=f"{bucket}/k")
    assert mine.get_object_tagging(Bucket=bucket, Key="x")["TagSet"] == [{"Key": "a", "Value": "b"}]
    assert "Errors" not in mine.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "plain", "VersionId": plain}]})
    mine.delete_object(Bucket=bucket, Key="k", VersionId=version)


def test_who_owns_a_bucket_deletes_versions_whatever_its_role(user, own):
    mine = user.client()
    user.grant("contributor")
    mine.put_bucket_versioning(Bucket=own, VersioningConfiguration={"Status": "Enabled"})
    version = mine.put_object(Bucket=own, Key="k", Body=b"1", Tagging="a=b")["VersionId"]
    mine.copy_object(Bucket=own, Key="l", CopySource=f"{own}/k")
    assert "Errors" not in mine.delete_objects(Bucket=own, Delete={"Objects": [{"Key": "k", "VersionId": version}]})
    user.ungrant("contributor")


def test_contributors_delete_buckets_of_others(client, user):
    name = f"g{uuid.uuid4().hex}"
    client.create_bucket(Bucket=name)
    assert refusal(user.client().delete_bucket, Bucket=name) == DENIED
    user.grant("contributor")
    user.client().delete_bucket(Bucket=name)
    assert refusal(client.list_objects_v2, Bucket=name) == (404, "NoSuchBucket")


# --- copies -----------------------------------------------------------------------------------------------------------------


def test_copies_need_to_read_the_source(client, bucket, user, own):
    client.put_object(Bucket=bucket, Key="k", Body=b"secret")
    mine = user.client()
    mine.put_object(Bucket=own, Key="mine", Body=b"mine")
    source = {"Bucket": bucket, "Key": "k"}
    assert refusal(mine.copy_object, Bucket=own, Key="c", CopySource=source) == DENIED
    upload = mine.create_multipart_upload(Bucket=own, Key="c")["UploadId"]
    part = {"Bucket": own, "Key": "c", "UploadId": upload, "PartNumber": 1, "CopySource": source}
    assert refusal(mine.upload_part_copy, **part) == DENIED
    assert refusal(mine.copy_object, Bucket=bucket, Key="c", CopySource={"Bucket": own, "Key": "mine"}) == DENIED
    mine.copy_object(Bucket=own, Key="c", CopySource={"Bucket": own, "Key": "mine"})
    assert mine.list_objects(Bucket=own, Prefix="c")["Contents"][0]["Owner"]["ID"] == user.canonical
    user.grant("reader", bucket)
    mine.copy_object(Bucket=own, Key="c", CopySource=source)
    assert mine.get_object(Bucket=own, Key="c")["Body"].read() == b"secret"
    assert mine.list_objects(Bucket=own, Prefix="c")["Contents"][0]["Owner"]["ID"] == user.canonical
    assert mine.upload_part_copy(**part)["CopyPartResult"]["ETag"]
    mine.abort_multipart_upload(Bucket=own, Key="c", UploadId=upload)
    missing = {"Bucket": f"n{uuid.uuid4().hex}", "Key": "k"}
    assert refusal(mine.copy_object, Bucket=own, Key="c", CopySource=missing)[0] == 404


# --- access control lists ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("acl, may", [("private", False), ("public-read", True), ("authenticated-read", True),
                                      ("bucket-owner-read", False), ("bucket-owner-full-control", False)])
def test_lists_of_objects_hold_for_users(client, bucket, user, second, own, acl, may):
    for of, name in ((client, bucket), (second.client(), None)):
        name = name or f"a{uuid.uuid4().hex}"
        if name != bucket:
            of.create_bucket(Bucket=name)
        of.put_object(Bucket=name, Key="k", Body=b"x", ACL=acl)
        if may:
            assert user.client().get_object(Bucket=name, Key="k")["Body"].read() == b"x"
            assert user.client().head_object(Bucket=name, Key="k")["ContentLength"] == 1
        else:
            assert refusal(user.client().get_object, Bucket=name, Key="k") == DENIED
        assert refusal(user.client().put_object, Bucket=name, Key="k", Body=b"y") == DENIED
        assert refusal(user.client().delete_object, Bucket=name, Key="k") == DENIED
        assert refusal(user.client().list_objects_v2, Bucket=name) == DENIED
        assert refusal(user.client().get_object_acl, Bucket=name, Key="k") == DENIED
        if name != bucket:
            of.delete_object(Bucket=name, Key="k")
            of.delete_bucket(Bucket=name)


@pytest.mark.parametrize("acl, may", [("private", False), ("public-read", True), ("authenticated-read", True)])
def test_lists_of_buckets_hold_for_users(user, second, own, acl, may):
    user.client().put_bucket_acl(Bucket=own, ACL=acl)
    user.client().put_object(Bucket=own, Key="k", Body=b"x")
    if may:
        assert second.client().list_objects_v2(Bucket=own)["KeyCount"] == 1
    else:
        assert refusal(second.client().list_objects_v2, Bucket=own) == DENIED
    assert refusal(second.client().get_object, Bucket=own, Key="k") == DENIED, "not its objects"
    assert refusal(second.client().put_bucket_acl, Bucket=own, ACL="private") == DENIED
    user.client().delete_object(Bucket=own, Key="k")


def test_users_of_another_account_are_authenticated(server, account, other_account, client, bucket):
    stranger = s3_users.create(server, other_account)
    host = {"host": f"s3.{account.name}.localhost"}
    raw = s3.Raw(account, stranger.key_id, stranger.secret)
    for acl, status in (("private", 403), ("authenticated-read", 200), ("public-read", 200)):
        client.put_object(Bucket=bucket, Key="k", Body=b"x", ACL=acl)
        assert raw.call("GET", f"/{bucket}/k", headers=host).status == status
    assert raw.call("GET", f"/{bucket}", headers=host).status == 403
    assert raw.call("PUT", f"/{bucket}/n", headers=host, body=b"y").status == 403
    assert raw.call("PUT", f"/z{uuid.uuid4().hex}", headers=host).status == 403, "buckets are made in the own account"
    assert raw.call("GET", f"/{bucket}/k").status == 404, "without the host its own account is meant"
    stranger.delete()
    answer = raw.call("GET", f"/{bucket}/k", headers=host)
    assert (answer.status, answer.code()) == UNKNOWN


def test_users_of_a_closed_account_open_nothing(server, other_account):
    user = s3_users.create(server, other_account)
    name = f"c{uuid.uuid4().hex}"
    user.client().create_bucket(Bucket=name)
    assert refusal(user.client().put_object, Bucket=name, Key="k", Body=b"x", ACL="public-read") == DENIED
    assert refusal(user.client().put_bucket_acl, Bucket=name, ACL="public-read") == DENIED
    user.client().put_object(Bucket=name, Key="k", Body=b"x", ACL="private")
    user.client().delete_object(Bucket=name, Key="k")
    user.client().delete_bucket(Bucket=name)
    user.delete()


def test_a_deleted_account_takes_its_users(server):
    name = f"gone{uuid.uuid4().hex[:8]}"
    made = commands.command(server, "account", "create", name)
    account = Account(server.blob_address, name, made["keys"][0])
    user = s3_users.create(server, account)
    bucket = f"g{uuid.uuid4().hex}"
    user.client().create_bucket(Bucket=bucket)
    commands.command(server, "account", "delete", name, "--force")
    assert refusal(user.client().list_buckets) == UNKNOWN
    again = commands.command(server, "account", "create", name)
    assert again["name"] == name and commands.command(server, "user", "list", name) == []
    assert refusal(user.client().list_buckets) == UNKNOWN
    commands.command(server, "account", "delete", name, "--force")

"""Users of an account: their keys, what they own, their roles."""

import io
import json
import re
import select
import subprocess
import uuid

import botocore.exceptions
import pytest

from lib import commands, s3, s3_users
from lib.account import Account
from lib.server import Server

from conftest import CONFIGURED

DENIED = (403, "AccessDenied")
UNKNOWN = (403, "InvalidAccessKeyId")
GROUPS = "http://acs.amazonaws.com/groups/global/"


@pytest.fixture
def user(server, account):
    """A user without a role."""
    made = s3_users.create(server, account)
    yield made
    commands.run(server, "user", "delete", made.place)


@pytest.fixture
def second(server, account):
    """Another one."""
    made = s3_users.create(server, account)
    yield made
    commands.run(server, "user", "delete", made.place)


@pytest.fixture
def own(user, service):
    """A bucket that the user owns."""
    name = f"o{uuid.uuid4().hex}"
    user.client().create_bucket(Bucket=name)
    yield name
    try:
        service.delete_container(name)
    except Exception:  # pylint: disable=broad-except
        pass  # The test deleted it itself.


def refusal(call, **arguments):
    """Status and code of a call that has to be refused."""
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(**arguments)
    return s3.code(caught.value)


# --- commands ---------------------------------------------------------------------------------------------------------------


def test_a_user_is_made_shown_and_deleted(server, account):
    made = commands.command(server, "user", "create", f"{account.name}/Alice.B", "--display-name", "Alice B")
    key, = made["access_keys"]
    assert (made["account"], made["name"], made["display_name"]) == (account.name, "Alice.B", "Alice B")
    assert re.fullmatch("[0-9a-f]{64}", made["canonical_id"]) and made["keys_from"] == "store"
    assert re.fullmatch("BY[A-Z2-7]{18}", key["access_key_id"]) and len(key["secret_key"]) == 40
    assert made["arn"] == f"arn:aws:iam::{s3.account_number(account.name)}:user/Alice.B"
    shown = commands.command(server, "user", "show", f"{account.name}/Alice.B")
    assert "secret_key" not in shown["access_keys"][0] and shown["created"]
    with_keys = commands.command(server, "user", "show", f"{account.name}/Alice.B", "--keys")
    assert with_keys["access_keys"] == made["access_keys"]
    listed = commands.command(server, "user", "list", account.name)
    assert shown in listed
    assert commands.command(server, "user", "delete", f"{account.name}/Alice.B") == {"deleted": f"{account.name}/Alice.B"}
    assert "has no user Alice.B" in commands.refused(server, "user", "show", f"{account.name}/Alice.B")
    assert shown not in commands.command(server, "user", "list", account.name)


def test_commands_print_text(server, account):
    code, out, _ = commands.run(server, "user", "create", f"{account.name}/texts")
    assert code == 0 and f"{account.name}/texts" in out and "secret key 1" in out and "access key id 1" in out
    secret = re.search(r"secret key 1 +(\S+)", out).group(1)
    code, out, _ = commands.run(server, "user", "show", f"{account.name}/texts")
    assert code == 0 and "access key id 1" in out and secret not in out
    code, out, _ = commands.run(server, "user", "list", account.name)
    assert code == 0 and f"{account.name}/texts" in out and secret not in out
    code, out, _ = commands.run(server, "user", "rotate", f"{account.name}/texts", "key2")
    assert code == 0 and "secret key 2" in out
    code, out, _ = commands.run(server, "user", "delete", f"{account.name}/texts")
    assert (code, out) == (0, f"user {account.name}/texts deleted\n")


@pytest.mark.parametrize("words, says", [
    (["create", "devstoreaccount1/a b"], "no user name"),
    (["create", "devstoreaccount1/" + "x" * 65], "no user name"),
    (["create", "devstoreaccount1/a:b"], "no user name"),
    (["create", "nobodyhere/a"], "no account"),
    (["create", "UPPER/a"], "no account name"),
    (["create", "devstoreaccount1"], "ACCOUNT/NAME"),
    (["create", "devstoreaccount1/a/b"], "ACCOUNT/NAME"),
    (["create", "devstoreaccount1/ok1", "--access-key-id", "account1"], "no access key id"),
    (["create", "devstoreaccount1/ok1", "--access-key-id", "A/B"], "no access key id"),
    (["create", "devstoreaccount1/ok1", "--access-key-id", "AB"], "no access key id"),
    (["create", "devstoreaccount1/ok1", "--access-key-id", "K" * 129], "no access key id"),
    (["create", "devstoreaccount1/ok1", "--secret-key", "short"], "secret key"),
    (["create", "devstoreaccount1/ok1", "--secret-key", "x" * 129], "secret key"),
    (["create", "devstoreaccount1/ok1", "--secret-key", "with a space in it"], "secret key"),
    (["create", "devstoreaccount1/ok1", "--display-name", ""], "display name"),
    (["create", "devstoreaccount1/ok1", "--display-name", "a\nb"], "display name"),
    (["create", "devstoreaccount1/ok1", "--display-name", "x" * 129], "display name"),
    (["show", "devstoreaccount1/nobody"], "no user nobody"),
    (["rotate", "devstoreaccount1/nobody", "key1"], "no user nobody"),
    (["delete", "devstoreaccount1/nobody"], "no user nobody"),
    (["list", "nobodyhere"], "no account"),
])
def test_wrong_commands_say_what_is_wrong(server, words, says):
    assert says in commands.refused(server, "user", *words)


def test_names_and_ids_are_there_once(server, account, other_account, user):
    assert "has a user" in commands.refused(server, "user", "create", user.place)
    elsewhere = ["user", "create", f"{other_account.name}/x{user.name}", "--access-key-id", user.key_id]
    assert "in use" in commands.refused(server, *elsewhere)
    assert "in use" in commands.refused(server, "user", "rotate", user.place, "key2", "--access-key-id", user.key_id)
    same = s3_users.create(server, other_account, name=user.name)
    assert same.canonical != user.canonical
    same.delete()
    assert user.client().list_buckets()["Buckets"] == [], "a user of another account is another one"


def test_given_keys_are_taken(server, account):
    made = s3_users.create(server, account, "--access-key-id", "GK31c2-f218.a_2e", "--secret-key", "moved/from+elsewhere=")
    assert (made.key_id, made.secret) == ("GK31c2-f218.a_2e", "moved/from+elsewhere=")
    assert made.client().list_buckets()["Buckets"] == []
    made.delete()
    again = s3_users.create(server, account, "--access-key-id", "GK31c2-f218.a_2e")
    assert again.secret != made.secret, "the id is free again"
    assert refusal(made.client().list_buckets) == (403, "SignatureDoesNotMatch")
    again.delete()


@pytest.mark.parametrize("words", [["--user"], []])
def test_roles_are_shown_as_those_of_users(server, account, user, words):
    who = user.name if words else f"user:{user.name}"
    made = commands.command(server, "account", "grant", account.name, "reader", who, *words)
    assert (made["kind"], made["principal"], made["role"], made["issuer"]) == ("user", user.name, "reader", None)
    assert made in commands.command(server, "account", "grants", account.name)
    code, out, _ = commands.run(server, "account", "grants", account.name)
    assert code == 0 and re.search(rf"reader +user +{user.name}\n", out)
    commands.command(server, "account", "ungrant", account.name, "reader", who, *words)
    assert made not in commands.command(server, "account", "grants", account.name)


@pytest.mark.parametrize("words, says", [
    (["grant", "devstoreaccount1", "reader", "nobody", "--user"], "no user nobody"),
    (["grant", "devstoreaccount1", "reader", "a b", "--user"], "no user name"),
    (["ungrant", "devstoreaccount1", "reader", "nobody", "--user"], "no such role"),
    (["grant", "devstoreaccount1", "king", "nobody", "--user"], "reader, contributor or owner"),
    (["grant", "devstoreaccount1", "reader", "x", "--issuer", "blockyard:user"], "no issuer"),
    (["grant", "devstoreaccount1", "reader", "x", "--user", "--group"], "cannot be used with"),
    (["grant", "devstoreaccount1", "reader", "x", "--user", "--issuer", "i"], "cannot be used with"),
])
def test_wrong_roles_of_users_are_refused(server, words, says):
    assert says in commands.refused(server, "account", *words)


def test_deleting_a_user_takes_its_roles(server, account, user):
    user.grant("owner")
    user.delete()
    grants = commands.command(server, "account", "grants", account.name)
    assert not any(grant["principal"] == user.name for grant in grants)
    again = s3_users.create(server, account, name=user.name)
    assert refusal(again.client().list_objects, Bucket="nothing") == (404, "NoSuchBucket")
    assert again.client().list_buckets()["Buckets"] == []


# --- signatures -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["s3v4", "s3"])
def test_users_sign_with_both_versions(user, own, version):
    client = user.client(signature_version=version)
    client.put_object(Bucket=own, Key="k", Body=b"by a user")
    assert client.get_object(Bucket=own, Key="k")["Body"].read() == b"by a user"
    url = client.generate_presigned_url("get_object", Params={"Bucket": own, "Key": "k"})
    answer = user.raw().send("GET", url.partition(user.account.address)[2])
    assert (answer.status, answer.body) == (200, b"by a user")


@pytest.mark.parametrize("algorithm", ["CRC32", "SHA256", None])
def test_users_send_signed_chunks_and_trailers(user, own, algorithm):
    more = {"ChecksumAlgorithm": algorithm} if algorithm else {}
    user.client().put_object(Bucket=own, Key="k", Body=io.BytesIO(b"x" * 100_000), **more)
    assert user.client().head_object(Bucket=own, Key="k")["ContentLength"] == 100_000


def test_presigned_put_of_a_user(user, own):
    target = user.raw().presign("PUT", f"/{own}/k")
    assert user.raw().send("PUT", target, body=b"presigned").status == 200
    assert user.client().get_object(Bucket=own, Key="k")["Body"].read() == b"presigned"


def test_wrong_secret_and_unknown_key(user):
    wrong = s3.Raw(user.account, user.key_id, "x" * 40).call("GET", "/")
    assert (wrong.status, wrong.code()) == (403, "SignatureDoesNotMatch")
    assert user.secret not in wrong.body.decode()
    for unknown in ("BYAAAAAAAAAAAAAAAAAA", "AKIAIOSFODNN7EXAMPLE", user.key_id.lower(), user.key_id + "X", user.name):
        answer = s3.Raw(user.account, unknown, user.secret).call("GET", "/")
        assert (answer.status, answer.code()) == UNKNOWN, unknown


def test_a_key_of_the_account_is_not_the_secret_of_a_user(user):
    answer = s3.Raw(user.account, user.key_id, user.account.key).call("GET", "/")
    assert (answer.status, answer.code()) == (403, "SignatureDoesNotMatch")
    answer = s3.Raw(user.account, user.account.name, user.secret).call("GET", "/")
    assert (answer.status, answer.code()) == (403, "SignatureDoesNotMatch")


def test_two_keys_and_their_rotation(user):
    old = user.client()
    first = user.rotate("key2")
    assert old.list_buckets() and first.client().list_buckets(), "both keys are served"
    third = user.rotate("key1")
    assert refusal(old.list_buckets) == UNKNOWN, "the old one is refused at once"
    assert first.client().list_buckets() and third.client().list_buckets()
    fourth = user.rotate("key2")
    assert refusal(first.client().list_buckets) == UNKNOWN
    assert fourth.client().list_buckets()


def test_a_deleted_user_is_refused_at_once(user, own, client):
    user.client().put_object(Bucket=own, Key="k", Body=b"x")
    url = user.raw().presign("GET", f"/{own}/k")
    assert user.raw().send("GET", url).status == 200
    user.delete()
    assert refusal(user.client().list_buckets) == UNKNOWN
    answer = user.raw().send("GET", url)
    assert (answer.status, answer.code()) == UNKNOWN
    assert client.get_object(Bucket=own, Key="k")["Body"].read() == b"x", "its buckets stay"
    client.delete_object(Bucket=own, Key="k")


def test_a_user_made_again_owns_nothing(server, account, user, own):
    user.delete()
    again = s3_users.create(server, account, name=user.name)
    assert again.client().list_buckets()["Buckets"] == []
    assert refusal(again.client().list_objects_v2, Bucket=own) == DENIED
    again.delete()


def test_users_of_the_configuration(server, account, bucket):
    name, key_id, secret = CONFIGURED
    client = s3_users.keyed(account, key_id, secret)
    own = f"c{uuid.uuid4().hex}"
    client.create_bucket(Bucket=own)
    assert own in [one["Name"] for one in client.list_buckets()["Buckets"]]
    assert refusal(client.list_objects_v2, Bucket=bucket) == DENIED
    shown = commands.command(server, "user", "show", f"{account.name}/{name}", "--keys")
    assert shown["keys_from"] == "configuration" and shown["access_keys"] == [{"access_key_id": key_id}]
    assert shown["canonical_id"] == client.list_buckets()["Owner"]["ID"]
    for words in (["rotate", f"{account.name}/{name}", "key1"], ["delete", f"{account.name}/{name}"],
                  ["create", f"{account.name}/{name}"]):
        assert "in the configuration" in commands.refused(server, "user", *words)
    assert "in use" in commands.refused(server, "user", "create", f"{account.name}/other", "--access-key-id", key_id)
    commands.command(server, "account", "grant", account.name, "reader", name, "--user")
    assert client.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    commands.command(server, "account", "ungrant", account.name, "reader", name, "--user")
    assert refusal(client.list_objects_v2, Bucket=bucket) == DENIED
    client.delete_bucket(Bucket=own)


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


def bare(code):
    """A code as an answer without a body has it."""
    return {"AccessDenied": "403"}.get(code, code)


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


# --- buckets and owners -----------------------------------------------------------------------------------------------------


def test_owners_are_shown(client, user, own):
    mine = user.client()
    mine.put_object(Bucket=own, Key="k", Body=b"x")
    client.put_object(Bucket=own, Key="r", Body=b"x")
    root = s3.canonical_id(user.account.name)
    for listed in (mine.list_objects(Bucket=own), mine.list_objects_v2(Bucket=own, FetchOwner=True)):
        owners = {one["Key"]: one["Owner"] for one in listed["Contents"]}
        assert owners["k"]["ID"] == user.canonical and owners["r"]["ID"] == root
    assert "Owner" not in mine.list_objects_v2(Bucket=own)["Contents"][0]
    listed = client.list_objects(Bucket=own)["Contents"]
    assert {one["Key"]: one["Owner"]["ID"] for one in listed} == {"k": user.canonical, "r": root}
    for asked in (mine, client):
        acl = asked.get_bucket_acl(Bucket=own)
        assert acl["Owner"]["ID"] == user.canonical and acl["Grants"][0]["Grantee"]["ID"] == user.canonical
        assert asked.get_object_acl(Bucket=own, Key="k")["Owner"]["ID"] == user.canonical
        assert asked.get_object_acl(Bucket=own, Key="r")["Owner"]["ID"] == root
    assert mine.list_buckets()["Owner"]["ID"] == user.canonical
    assert client.list_buckets()["Owner"]["ID"] == root


def test_display_names(server, account):
    user = s3_users.create(server, account, "--display-name", "Zoë <z>")
    name = f"d{uuid.uuid4().hex}"
    user.client().create_bucket(Bucket=name)
    answer = user.raw().call("GET", "/")
    assert (answer.text("Owner/ID"), answer.text("Owner/DisplayName")) == (user.canonical, "Zoë <z>")
    answer = user.raw().call("GET", f"/{name}", [("acl", "")])
    assert answer.text("Owner/DisplayName") == "Zoë <z>"
    user.client().delete_bucket(Bucket=name)
    user.delete()


def test_uploads_show_who_began_them(client, user, own):
    mine = user.client()
    upload = mine.create_multipart_upload(Bucket=own, Key="k")["UploadId"]
    part = mine.upload_part(Bucket=own, Key="k", UploadId=upload, PartNumber=1, Body=b"part")
    for asked in (mine, client):
        one, = asked.list_multipart_uploads(Bucket=own)["Uploads"]
        assert one["Initiator"]["ID"] == one["Owner"]["ID"] == user.canonical
        parts = asked.list_parts(Bucket=own, Key="k", UploadId=upload)
        assert parts["Initiator"]["ID"] == parts["Owner"]["ID"] == user.canonical
    mine.complete_multipart_upload(Bucket=own, Key="k", UploadId=upload,
                                   MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    listed, = mine.list_objects(Bucket=own)["Contents"]
    assert listed["Owner"]["ID"] == user.canonical
    again = mine.create_multipart_upload(Bucket=own, Key="k")["UploadId"]
    mine.abort_multipart_upload(Bucket=own, Key="k", UploadId=again)


def test_lists_of_buckets_are_those_of_the_user(client, bucket, user, second):
    names = [f"l{uuid.uuid4().hex}" for _ in range(5)]
    for name in names[:3]:
        user.client().create_bucket(Bucket=name)
    for name in names[3:]:
        second.client().create_bucket(Bucket=name)
    listed = lambda of, **more: [one["Name"] for one in of.list_buckets(**more)["Buckets"]]
    assert listed(user.client()) == sorted(names[:3])
    assert listed(second.client()) == sorted(names[3:])
    assert {bucket, *names} <= set(listed(client)), "the root sees all"
    assert listed(user.client(), Prefix=names[0]) == [names[0]] and listed(user.client(), Prefix=names[3]) == []
    found, token, pages = [], None, 0
    while token or not pages:
        page = user.client().list_buckets(MaxBuckets=1, **({"ContinuationToken": token} if token else {}))
        found += [one["Name"] for one in page["Buckets"]]
        token, pages = page.get("ContinuationToken"), pages + 1
        assert pages < 200
    assert found == sorted(names[:3])
    for name in names[:3]:
        user.client().delete_bucket(Bucket=name)
    for name in names[3:]:
        second.client().delete_bucket(Bucket=name)


def test_a_bucket_made_again(client, bucket, user, own, second):
    assert user.client().create_bucket(Bucket=own)["ResponseMetadata"]["HTTPStatusCode"] == 200
    taken = (409, "BucketAlreadyExists")
    assert refusal(second.client().create_bucket, Bucket=own) == taken
    assert refusal(client.create_bucket, Bucket=own) == taken, "the root does not own it"
    assert refusal(user.client().create_bucket, Bucket=bucket) == taken
    assert refusal(user.client().create_bucket, Bucket=own,
                   CreateBucketConfiguration={"LocationConstraint": "eu-west-1"}) == taken


def test_expected_bucket_owner_is_the_account(user, own):
    number = s3.account_number(user.account.name)
    assert user.client().head_bucket(Bucket=own, ExpectedBucketOwner=number)
    assert refusal(user.client().list_objects_v2, Bucket=own, ExpectedBucketOwner="123456789012") == DENIED


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


# --- what lasts -------------------------------------------------------------------------------------------------------------


def test_users_and_temporary_keys_outlive_restarts(request, tmp_path):
    """A user, its bucket and its temporary keys are there after kill -9, after a rotation of the master key, and in `check`."""
    binary = request.config.getoption("--binary")
    with Server(binary, [tmp_path / "data"], tmp_path / "server.log", ["--journal-bytes=1048576"]) as server:
        server.start()
        user = s3_users.create(server, server.account)
        user.grant("reader")
        second = user.rotate("key2")
        user.client().create_bucket(Bucket="lasting")
        role = {"RoleArn": f"arn:aws:iam::{s3.account_number(user.account.name)}:role/any", "RoleSessionName": "lasting"}
        kept = user.client("sts").assume_role(**role)["Credentials"]
        keys = kept["AccessKeyId"], kept["SecretAccessKey"], kept["SessionToken"]
        for end in ("kill", "rotation", "stop"):
            if end == "rotation":
                assert commands.command(server, "key", "rotate")["resealed"] >= 3
            if end == "stop":
                assert server.stop() == 0
            else:
                server.kill()
            server.start()
            for client in (user.client(), second.client(), s3_users.keyed(user.account, *keys)):
                assert [one["Name"] for one in client.list_buckets()["Buckets"]] == ["lasting"], end
                client.put_object(Bucket="lasting", Key=end, Body=b"x")
            owners = {one["Owner"]["ID"] for one in user.client().list_objects(Bucket="lasting")["Contents"]}
            assert owners == {user.canonical}
        assert server.stop() == 0
        code, said = server.check()
        assert code == 0, said


def test_traces_and_metrics_name_users(server, user, own):
    lines = subprocess.Popen([server.binary, "trace", "--json", "--admin-listen", server.admin_address, "--data", server.data[0]],
                             stdout=subprocess.PIPE, text=True)
    try:
        found = []
        for _ in range(200):
            user.client().put_object(Bucket=own, Key="k", Body=b"x")
            ready, _, _ = select.select([lines.stdout], [], [], 0.1)
            if ready:
                found.append(json.loads(lines.stdout.readline()))
                break
        assert found and found[0]["user"] == user.name and found[0]["operation"] == "PutObject"
    finally:
        lines.kill()
        lines.wait()
        lines.stdout.close()
    counted = [value for sample, value in server.metrics().items() if "user_requests_total" in sample and f'"{user.name}"' in sample]
    assert counted and counted[0] >= 2
    user.delete()
    assert not [sample for sample in server.metrics() if f'"{user.name}"' in sample]


# --- secrets ----------------------------------------------------------------------------------------------------------------


def test_no_log_holds_a_secret(server, user, own):
    user.client().put_object(Bucket=own, Key="k", Body=b"x")
    s3.Raw(user.account, user.key_id, "y" * 40).call("GET", f"/{own}/k")
    rotated = user.rotate("key2")
    log = server.log_path.read_text(errors="replace")
    assert user.secret not in log and rotated.secret not in log

"""Users of an account: their keys, the buckets that they own, what lasts."""

import io
import json
import select
import subprocess
import uuid

import pytest

from lib import commands, s3, s3_users
from lib.server import Server

from conftest import CONFIGURED, refusal

DENIED = (403, "AccessDenied")
UNKNOWN = (403, "InvalidAccessKeyId")


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

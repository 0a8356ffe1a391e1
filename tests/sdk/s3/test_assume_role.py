"""AssumeRole: who gets temporary keys, what they permit, when they end, and their tokens."""

import datetime
import re

import pytest

from lib import commands, s3, s3_users
from lib.s3_sts import VERSION, Caller, arn, assume, clients, exchange, outcome

from conftest import refusal

DENIED = (403, "AccessDenied")
INVALID = (400, "InvalidToken")


def test_keys_of_a_user(user, own):
    before = datetime.datetime.now(datetime.timezone.utc)
    made = assume(user)["Credentials"]
    assert re.fullmatch("BT[A-Z2-7]{18}", made["AccessKeyId"]) and len(made["SecretAccessKey"]) == 40
    life = (made["Expiration"] - before).total_seconds()
    assert 3590 < life < 3660
    client = clients(user.account, made)
    client.put_object(Bucket=own, Key="k", Body=b"temporary")
    assert client.get_object(Bucket=own, Key="k")["Body"].read() == b"temporary"
    assert [one["Name"] for one in client.list_buckets()["Buckets"]] == [own]
    assert client.list_objects(Bucket=own)["Contents"][0]["Owner"]["ID"] == user.canonical, "what it makes is the user's"


@pytest.mark.parametrize("seconds", [900, 3600, 43_200])
def test_durations(user, seconds):
    before = datetime.datetime.now(datetime.timezone.utc)
    made = assume(user, DurationSeconds=seconds)["Credentials"]
    assert abs((made["Expiration"] - before).total_seconds() - seconds) < 30


def test_no_two_sessions_have_the_same_keys(user):
    made = [assume(user)["Credentials"] for _ in range(5)]
    for field in ("AccessKeyId", "SecretAccessKey", "SessionToken"):
        assert len({one[field] for one in made}) == 5


@pytest.mark.parametrize("left_out", ["RoleArn", "RoleSessionName"])
def test_names_may_be_left_out(user, left_out):
    parameters = {"Action": "AssumeRole", "Version": VERSION, "RoleArn": arn(user.account), "RoleSessionName": "ok"}
    del parameters[left_out]
    answer = Caller(user.account, user.key_id, user.secret).post(parameters)
    assert answer.status == 200 and b"<SessionToken>" in answer.body
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("version", ["s3v4", "s3"])
def test_temporary_keys_sign_every_form(user, own, version):
    made = assume(user)["Credentials"]
    client = clients(user.account, made, signature_version=version)
    client.put_object(Bucket=own, Key="k", Body=b"x" * 70_000)
    assert client.head_object(Bucket=own, Key="k")["ContentLength"] == 70_000
    url = client.generate_presigned_url("get_object", Params={"Bucket": own, "Key": "k"}).partition(user.account.address)[2]
    assert "x-amz-security-token" in url.lower()
    answer = user.raw().send("GET", url)
    assert (answer.status, answer.body) == (200, b"x" * 70_000)
    without = re.sub("(?i)&?x-amz-security-token=[^&]*", "", url)
    answer = user.raw().send("GET", without)
    assert (answer.status, answer.code()) == (403, "InvalidAccessKeyId")
    if version == "s3v4":
        client.put_object(Bucket=own, Key="k", Body=b"y" * 70_000, ChecksumAlgorithm="SHA1")
        assert client.head_object(Bucket=own, Key="k")["ContentLength"] == 70_000


def test_temporary_keys_upload_in_parts(user, own):
    client = clients(user.account, assume(user)["Credentials"])
    upload = client.create_multipart_upload(Bucket=own, Key="k")["UploadId"]
    part = client.upload_part(Bucket=own, Key="k", UploadId=upload, PartNumber=1, Body=b"part")
    assert client.list_parts(Bucket=own, Key="k", UploadId=upload)["Initiator"]["ID"] == user.canonical
    client.complete_multipart_upload(Bucket=own, Key="k", UploadId=upload,
                                     MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    assert client.get_object(Bucket=own, Key="k")["Body"].read() == b"part"


def test_keys_permit_what_the_user_is_permitted_now(client, bucket, user):
    client.put_object(Bucket=bucket, Key="k", Body=b"x")
    temporary = clients(user.account, assume(user)["Credentials"])
    assert refusal(temporary.get_object, Bucket=bucket, Key="k") == DENIED
    user.grant("reader", bucket)
    assert temporary.get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"
    assert refusal(temporary.put_object, Bucket=bucket, Key="k", Body=b"y") == DENIED
    user.grant("contributor", bucket)
    temporary.put_object(Bucket=bucket, Key="k", Body=b"y")
    user.ungrant("contributor", bucket)
    user.ungrant("reader", bucket)
    assert refusal(temporary.get_object, Bucket=bucket, Key="k") == DENIED


def test_keys_end_with_the_user(user, own):
    temporary = clients(user.account, assume(user)["Credentials"])
    assert temporary.list_objects_v2(Bucket=own)["KeyCount"] == 0
    user.delete()
    assert refusal(temporary.list_objects_v2, Bucket=own) == INVALID


def test_keys_end_with_the_key_that_asked_for_them(user, own):
    second = user.rotate("key2")
    of_first, of_second = (clients(user.account, assume(one)["Credentials"]) for one in (user, second))
    user.rotate("key1")
    assert refusal(of_first.list_objects_v2, Bucket=own) == INVALID
    assert of_second.list_objects_v2(Bucket=own)["KeyCount"] == 0


def test_a_key_id_that_another_user_gets_revives_no_session(server, account):
    first = s3_users.create(server, account, "--access-key-id", "MOVED-KEY-1")
    temporary = clients(account, assume(first)["Credentials"])
    assert temporary.list_buckets()["Buckets"] == []
    first.delete()
    second = s3_users.create(server, account, "--access-key-id", "MOVED-KEY-1")
    assert refusal(temporary.list_buckets) == INVALID
    second.delete()


def test_revoke_ends_all_keys(server, account, user, own, sts, issuer, subject):
    temporary = clients(account, assume(user)["Credentials"])
    web = clients(account, exchange(sts, issuer.token(role=None, oid=subject), account)["Credentials"])
    assert temporary.list_buckets() and web.list_objects_v2(Bucket=own)
    commands.command(server, "account", "revoke", account.name)
    assert refusal(temporary.list_buckets) == INVALID
    assert refusal(web.list_objects_v2, Bucket=own) == INVALID
    assert refusal(clients(account, {"AccessKeyId": "BTAAAAAAAAAAAAAAAAAA", "SecretAccessKey": "x" * 40,
                                     "SessionToken": "x"}, "sts").get_caller_identity) == (403, "InvalidClientTokenId")
    assert user.client().list_buckets()["Buckets"], "the user's own key stays"
    assert clients(account, assume(user)["Credentials"]).list_buckets()["Buckets"], "new ones are good"


def test_root_and_temporary_keys_assume_nothing(account, user):
    root = s3_users.keyed(account, account.name, account.key, service="sts")
    assert refusal(root.assume_role, RoleArn=arn(account), RoleSessionName="root") == DENIED
    temporary = clients(account, assume(user)["Credentials"], "sts")
    assert refusal(temporary.assume_role, RoleArn=arn(account), RoleSessionName="again") == DENIED


def test_roles_of_other_accounts(account, other_account, user):
    for role in (arn(other_account), "arn:aws:iam::999999999999:role/none"):
        assert refusal(user.client("sts").assume_role, RoleArn=role, RoleSessionName="other") == DENIED


def test_unsigned_assume_role(account):
    parameters = {"Action": "AssumeRole", "Version": VERSION, "RoleArn": arn(account), "RoleSessionName": "ok"}
    assert outcome(Caller(account).post(parameters)) == (403, "MissingAuthenticationToken")


# --- session tokens ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def kept(user):
    """Temporary keys."""
    return assume(user)["Credentials"]


def flipped(token, at):
    """The token with another symbol at a place."""
    other = "A" if token[at] != "A" else "B"
    return token[:at] + other + token[at + 1:]


@pytest.mark.parametrize("change", [
    lambda token: "x", lambda token: "FwoGZXIvYXdzEBYaD", lambda token: token[:-4], lambda token: token + "AAAA",
    lambda token: flipped(token, 0), lambda token: flipped(token, 5), lambda token: flipped(token, 40),
    lambda token: flipped(token, len(token) - 10), lambda token: token[::-1], lambda token: "A" * 9000,
    lambda token: token + "=", lambda token: token.replace(token[10:14], ""),
])
def test_changed_tokens_are_refused(user, own, kept, change):
    raw = s3.Raw(user.account, kept["AccessKeyId"], kept["SecretAccessKey"])
    answer = raw.call("GET", f"/{own}", headers={"x-amz-security-token": change(kept["SessionToken"])})
    assert (answer.status, answer.code()) == INVALID


def test_a_token_belongs_to_its_keys(user, own, kept):
    other = assume(user)["Credentials"]
    token = {"x-amz-security-token": other["SessionToken"]}
    answer = s3.Raw(user.account, kept["AccessKeyId"], kept["SecretAccessKey"]).call("GET", f"/{own}", headers=token)
    assert (answer.status, answer.code()) == INVALID
    answer = s3.Raw(user.account, other["AccessKeyId"], kept["SecretAccessKey"]).call("GET", f"/{own}", headers=token)
    assert (answer.status, answer.code()) == (403, "SignatureDoesNotMatch")
    answer = user.raw().call("GET", f"/{own}", headers=token)
    assert (answer.status, answer.code()) == INVALID, "a permanent key has no token"
    answer = s3.Raw(user.account).call("GET", f"/{own}", headers=token)
    assert (answer.status, answer.code()) == INVALID
    answer = s3.Raw(user.account, kept["AccessKeyId"], kept["SecretAccessKey"]).call("GET", f"/{own}")
    assert (answer.status, answer.code()) == (403, "InvalidAccessKeyId"), "the keys alone are not known"


def test_the_token_is_signed(user, own, kept):
    raw = s3.Raw(user.account, kept["AccessKeyId"], kept["SecretAccessKey"])
    headers = raw.sign("GET", f"/{own}")
    headers["x-amz-security-token"] = kept["SessionToken"]
    answer = raw.send("GET", f"/{own}", headers)
    assert (answer.status, answer.code()) == DENIED
    headers = raw.sign("GET", f"/{own}", headers={"x-amz-security-token": kept["SessionToken"]})
    assert raw.send("GET", f"/{own}", headers).status == 200


def test_anonymous_requests_with_a_token_stay_anonymous(account, own, kept):
    host = {"host": f"s3.{account.name}.localhost", "x-amz-security-token": kept["SessionToken"]}
    answer = s3.Raw(account).send("GET", f"/{own}", host)
    assert (answer.status, answer.code()) == DENIED


def test_temporary_keys_of_another_account_are_authenticated(server, account, other_account, client, bucket):
    stranger = s3_users.create(server, other_account)
    made = assume(stranger)["Credentials"]
    raw = s3.Raw(account, made["AccessKeyId"], made["SecretAccessKey"])
    for acl, status in (("private", 403), ("authenticated-read", 200)):
        client.put_object(Bucket=bucket, Key="k", Body=b"x", ACL=acl)
        headers = {"host": f"s3.{account.name}.localhost", "x-amz-security-token": made["SessionToken"]}
        assert raw.call("GET", f"/{bucket}/k", headers=headers).status == status
    stranger.delete()

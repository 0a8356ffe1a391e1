"""The token service: who gets temporary keys, what they permit, and when they end."""

import datetime
import hashlib
import hmac
import re
import time
import urllib.parse
import uuid
import xml.etree.ElementTree

import botocore.exceptions
import botocore.client
import botocore.config
import pytest

from lib import commands, s3, s3_users

from conftest import CONFIGURED

DENIED = (403, "AccessDenied")
INVALID = (400, "InvalidToken")
FORM = "application/x-www-form-urlencoded; charset=utf-8"
VERSION = "2011-06-15"


@pytest.fixture
def user(server, account):
    """A user without a role."""
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


@pytest.fixture
def subject(server, account):
    """A subject of the issuer that reads the account."""
    name = f"s-{uuid.uuid4().hex}"
    commands.command(server, "account", "grant", account.name, "reader", name)
    yield name
    commands.run(server, "account", "ungrant", account.name, "reader", name)


@pytest.fixture
def sts(account):
    """A client that does not sign."""
    return s3_users.keyed(account, "unused", "unused", service="sts", signature_version=botocore.UNSIGNED)


def arn(account, role="any"):
    """The ARN of a role in an account."""
    return f"arn:aws:iam::{s3.account_number(account.name)}:role/{role}"


def refusal(call, **arguments):
    """Status and code of a call that has to be refused."""
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(**arguments)
    return s3.code(caught.value)


def assume(user, **more):
    """Temporary keys of a user."""
    arguments = {"RoleArn": arn(user.account), "RoleSessionName": "a-session", **more}
    return user.client("sts").assume_role(**arguments)


def clients(account, credentials, service="s3", **options):
    """A client with temporary keys."""
    return s3_users.keyed(account, credentials["AccessKeyId"], credentials["SecretAccessKey"],
                          credentials["SessionToken"], service=service, **options)


def exchange(sts, token, account, **more):
    """Temporary keys for a token."""
    return sts.assume_role_with_web_identity(RoleArn=arn(account), RoleSessionName="web", WebIdentityToken=token, **more)


class Caller:
    """Sends calls of the token service as it is told to."""

    def __init__(self, account, key_id=None, secret=None, token=None):
        self.account, self.key_id, self.secret, self.token = account, key_id, secret, token

    def post(self, parameters, headers=None, body=None, service="sts", sign=True, method="POST", path="/"):
        """A call with these parameters in a form."""
        body = (urllib.parse.urlencode(parameters) if body is None else body).encode()
        headers = {"host": self.account.address, "content-type": FORM, **(headers or {})}
        if self.key_id and sign:
            moment = s3.now()
            headers["x-amz-date"] = moment
            if self.token:
                headers["x-amz-security-token"] = self.token
            names = sorted(headers)
            lines = "".join(f"{name}:{headers[name]}\n" for name in names)
            request = "\n".join([method, path, "", lines, ";".join(names), hashlib.sha256(body).hexdigest()])
            scope = f"{moment[:8]}/{s3.REGION}/{service}/aws4_request"
            text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
            key = s3.signing_key(self.secret, moment[:8], service=service)
            signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
            headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={self.key_id}/{scope}, "
                                        f"SignedHeaders={';'.join(names)}, Signature={signature}")
        return s3.Raw(self.account).send(method, path, headers, body)


def outcome(answer):
    """Status and code of a refusal, in the form of the token service."""
    root = xml.etree.ElementTree.fromstring(answer.body)
    space = "{https://sts.amazonaws.com/doc/2011-06-15/}"
    assert root.tag == f"{space}ErrorResponse"
    assert root.findtext(f"{space}Error/{space}Type") == ("Sender" if answer.status < 500 else "Receiver")
    assert root.findtext(f"{space}Error/{space}Message")
    assert root.findtext(f"{space}RequestId") == answer.headers["x-amzn-requestid"]
    return answer.status, root.findtext(f"{space}Error/{space}Code")


# --- GetCallerIdentity ------------------------------------------------------------------------------------------------------


def test_who_signs(server, account, user, other_account):
    number = s3.account_number(account.name)
    root = s3_users.keyed(account, account.name, account.key, service="sts").get_caller_identity()
    assert (root["Account"], root["Arn"], root["UserId"]) == (number, f"arn:aws:iam::{number}:root", number)
    of_user = user.client("sts").get_caller_identity()
    assert of_user["Account"] == number and of_user["Arn"] == f"arn:aws:iam::{number}:user/{user.name}"
    assert of_user["UserId"] == user.canonical
    other = s3_users.keyed(other_account, other_account.name, other_account.key, service="sts").get_caller_identity()
    assert other["Account"] == s3.account_number(other_account.name)
    name, key_id, secret = CONFIGURED
    assert s3_users.keyed(account, key_id, secret, service="sts").get_caller_identity()["Arn"].endswith(f":user/{name}")


def test_who_holds_temporary_keys(user):
    made = assume(user, RoleArn=arn(user.account, "path/deploy"), RoleSessionName="ci@x")
    identity = clients(user.account, made["Credentials"], "sts").get_caller_identity()
    number = s3.account_number(user.account.name)
    assert identity["Arn"] == f"arn:aws:sts::{number}:assumed-role/path/deploy/ci@x" == made["AssumedRoleUser"]["Arn"]
    assert identity["UserId"] == f"{user.canonical}:ci@x" == made["AssumedRoleUser"]["AssumedRoleId"]
    assert identity["Account"] == number


def test_calls_in_the_query(user):
    """Other systems prove who they are with such a URL."""
    query = [("Action", "GetCallerIdentity"), ("Version", VERSION)]
    moment = s3.now()
    scope = f"{moment[:8]}/{s3.REGION}/sts/aws4_request"
    query += [("X-Amz-Algorithm", "AWS4-HMAC-SHA256"), ("X-Amz-Credential", f"{user.key_id}/{scope}"), ("X-Amz-Date", moment),
              ("X-Amz-Expires", "60"), ("X-Amz-SignedHeaders", "host")]
    request = "\n".join(["GET", "/", s3.canonical_query(query), f"host:{user.account.address}\n", "host",
                         hashlib.sha256(b"").hexdigest()])
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signature = hmac.new(s3.signing_key(user.secret, moment[:8], service="sts"), text.encode(), hashlib.sha256).hexdigest()
    answer = user.raw().send("GET", f"/?{s3.canonical_query(query)}&X-Amz-Signature={signature}")
    assert answer.status == 200 and f":user/{user.name}<" in answer.body.decode()
    wrong = "0" * 64
    assert outcome(user.raw().send("GET", f"/?{s3.canonical_query(query)}&X-Amz-Signature={wrong}")) == (403, "SignatureDoesNotMatch")


IDENTITY = {"Action": "GetCallerIdentity", "Version": VERSION}


@pytest.mark.parametrize("make, expected", [
    (lambda user: Caller(user.account).post(IDENTITY), (403, "MissingAuthenticationToken")),
    (lambda user: Caller(user.account, "BYAAAAAAAAAAAAAAAAAA", user.secret).post(IDENTITY), (403, "InvalidClientTokenId")),
    (lambda user: Caller(user.account, "nosuchaccount", user.secret).post(IDENTITY), (403, "InvalidClientTokenId")),
    (lambda user: Caller(user.account, user.key_id, "x" * 40).post(IDENTITY), (403, "SignatureDoesNotMatch")),
    (lambda user: Caller(user.account, user.key_id, user.secret).post(IDENTITY, service="s3"), (400, "IncompleteSignature")),
    (lambda user: Caller(user.account, user.key_id, user.secret, "bad").post(IDENTITY), (403, "InvalidClientTokenId")),
    (lambda user: Caller(user.account).post(IDENTITY, {"authorization": "AWS4-HMAC-SHA256 x"}), (400, "IncompleteSignature")),
    (lambda user: Caller(user.account).post(IDENTITY, {"authorization": "AWS a:b"}), (400, "IncompleteSignature")),
])
def test_wrong_signatures_have_the_codes_of_the_service(user, make, expected):
    assert outcome(make(user)) == expected


def test_the_body_is_signed(user):
    caller = Caller(user.account, user.key_id, user.secret)
    signed = {}
    original = s3.Raw.send

    def spy(self, method, target, headers=None, body=b""):
        signed.update(headers)
        return original(self, method, target, headers, body)
    s3.Raw.send = spy
    try:
        assert caller.post(IDENTITY).status == 200
    finally:
        s3.Raw.send = original
    other = urllib.parse.urlencode({"Action": "AssumeRole", "Version": VERSION}).encode()
    assert outcome(user.raw().send("POST", "/", signed, other)) == (403, "SignatureDoesNotMatch")


# --- calls ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters, expected", [
    ({}, "MissingAction"),
    ({"Version": VERSION}, "MissingAction"),
    ({"Action": "AssumeRole"}, "InvalidAction"),
    ({"Action": "AssumeRole", "Version": "2010-05-08"}, "InvalidAction"),
    *(({"Action": action, "Version": VERSION}, "InvalidAction") for action in (
        "GetSessionToken", "GetFederationToken", "AssumeRoleWithSAML", "AssumeRoot", "DecodeAuthorizationMessage",
        "GetAccessKeyInfo", "AssumeRoleWithLDAPIdentity", "AssumeRoleWithCertificate", "x" * 10_000, "assumerole")),
    *(({"Action": action, "Version": "2010-05-08"}, "InvalidAction") for action in (
        "CreateUser", "ListUsers", "CreateAccessKey", "PutUserPolicy", "GetUser")),
])
@pytest.mark.parametrize("signed", [False, True])
def test_other_calls_are_refused_at_once(user, parameters, expected, signed):
    caller = Caller(user.account, user.key_id, user.secret)
    assert outcome(caller.post(parameters, sign=signed)) == (400, expected)


@pytest.mark.parametrize("more, code", [
    ({"DurationSeconds": "899"}, "ValidationError"), ({"DurationSeconds": "43201"}, "ValidationError"),
    ({"DurationSeconds": "-900"}, "ValidationError"), ({"DurationSeconds": "1h"}, "ValidationError"),
    ({"DurationSeconds": ""}, "ValidationError"), ({"DurationSeconds": "99999999999999999999"}, "ValidationError"),
    ({"RoleArn": "x"}, "ValidationError"), ({"RoleArn": "arn:aws:iam::1:role/x"}, "ValidationError"),
    ({"RoleArn": "arn:aws:iam::123456789012:user/x"}, "ValidationError"),
    ({"RoleArn": "arn:aws:iam::123456789012:role/" + "x" * 3000}, "ValidationError"),
    ({"RoleSessionName": "x"}, "ValidationError"), ({"RoleSessionName": "x" * 65}, "ValidationError"),
    ({"RoleSessionName": "a b"}, "ValidationError"), ({"RoleSessionName": "a/b"}, "ValidationError"),
    ({"SerialNumber": "mfa", "TokenCode": "123456"}, "ValidationError"), ({"SourceIdentity": "me"}, "ValidationError"),
    ({"Tags.member.1.Key": "a", "Tags.member.1.Value": "b"}, "ValidationError"), ({"Unknown": "1"}, "ValidationError"),
    ({"Policy": "{}"}, "MalformedPolicyDocument"), ({"Policy": ""}, "MalformedPolicyDocument"),
    ({"PolicyArns.member.1.arn": "arn:aws:iam::aws:policy/ReadOnlyAccess"}, "MalformedPolicyDocument"),
])
def test_wrong_parameters(user, more, code):
    parameters = {"Action": "AssumeRole", "Version": VERSION, "RoleArn": arn(user.account), "RoleSessionName": "ok", **more}
    assert outcome(Caller(user.account, user.key_id, user.secret).post(parameters)) == (400, code)


@pytest.mark.parametrize("body, expected", [
    ("Action=AssumeRole&Action=AssumeRole&Version=2011-06-15", (400, "ValidationError")),
    ("Action=%FF%FE&Version=2011-06-15", (400, "ValidationError")),
    ("&".join(f"p{n}=1" for n in range(100)), (400, "ValidationError")),
    ("Action=AssumeRole&Version=2011-06-15&ExternalId=" + "x" * 70_000, (413, "RequestEntityTooLarge")),
    ("&&&===&", (400, "MissingAction")),
    ("<xml/>", (400, "MissingAction")),
])
def test_broken_bodies(user, body, expected):
    assert outcome(Caller(user.account, user.key_id, user.secret).post({}, body=body)) == expected


def test_forms_are_no_requests_of_other_protocols(account, user):
    """A form to a bucket is not a call; a call has no bucket."""
    answer = Caller(account, user.key_id, user.secret).post(IDENTITY, path="/bucket", service="s3",
                                                          headers={"x-amz-content-sha256": s3.UNSIGNED})
    assert b"ErrorResponse" not in answer.body
    name = f"h{uuid.uuid4().hex}"
    answer = s3.Raw(account).send("GET", "/?Action=GetCallerIdentity&Version=2011-06-15", {"host": f"{name}.s3.localhost"})
    assert (answer.status, answer.code()) == DENIED, "the host of a bucket has no token service"
    answer = s3.Raw(account).send("GET", f"/{account.name}?comp=list&Action=GetCallerIdentity", {"x-ms-version": "2021-12-02"})
    assert "x-ms-request-id" in answer.headers


# --- AssumeRole -------------------------------------------------------------------------------------------------------------


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


# --- AssumeRoleWithWebIdentity ----------------------------------------------------------------------------------------------


def test_keys_for_a_token(client, bucket, account, sts, issuer, subject):
    client.put_object(Bucket=bucket, Key="k", Body=b"x")
    made = exchange(sts, issuer.token(role=None, oid=subject), account)
    assert made["SubjectFromWebIdentityToken"] == subject and made["Provider"] == issuer.name
    number = s3.account_number(account.name)
    assert made["AssumedRoleUser"]["Arn"] == f"arn:aws:sts::{number}:assumed-role/any/web"
    web = clients(account, made["Credentials"])
    assert web.get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"
    assert bucket in [one["Name"] for one in web.list_buckets()["Buckets"]]
    assert refusal(web.put_object, Bucket=bucket, Key="k", Body=b"y") == DENIED
    assert refusal(web.create_bucket, Bucket=f"w{uuid.uuid4().hex}") == DENIED, "it has no buckets of its own"
    identity = clients(account, made["Credentials"], "sts").get_caller_identity()
    assert identity["Arn"] == made["AssumedRoleUser"]["Arn"]


def test_roles_of_a_subject_count_when_keys_are_used(server, client, bucket, account, sts, issuer, subject):
    client.put_object(Bucket=bucket, Key="k", Body=b"x")
    web = clients(account, exchange(sts, issuer.token(role=None, oid=subject), account)["Credentials"])
    commands.command(server, "account", "grant", account.name, "contributor", subject, "--container", bucket)
    web.put_object(Bucket=bucket, Key="k", Body=b"y")
    commands.command(server, "account", "ungrant", account.name, "contributor", subject, "--container", bucket)
    assert refusal(web.put_object, Bucket=bucket, Key="k", Body=b"z") == DENIED
    commands.command(server, "account", "ungrant", account.name, "reader", subject)
    assert refusal(web.get_object, Bucket=bucket, Key="k") == DENIED
    assert refusal(web.list_buckets) == DENIED


def test_groups_of_a_token(server, client, bucket, account, sts, issuer):
    client.put_object(Bucket=bucket, Key="k", Body=b"x")
    group = f"g-{uuid.uuid4().hex}"
    token = issuer.token(role=None, oid=f"s-{uuid.uuid4().hex}", groups=["other", group])
    assert refusal(sts.assume_role_with_web_identity, RoleArn=arn(account), RoleSessionName="web", WebIdentityToken=token) == DENIED
    commands.command(server, "account", "grant", account.name, "reader", group, "--group", "--container", bucket)
    web = clients(account, exchange(sts, token, account)["Credentials"])
    assert web.get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"
    commands.command(server, "account", "ungrant", account.name, "reader", group, "--group", "--container", bucket)
    assert refusal(web.get_object, Bucket=bucket, Key="k") == DENIED


def test_claimed_roles_count_where_the_issuer_is_bound(account, other_account, sts, issuer):
    token = issuer.token(oid=f"s-{uuid.uuid4().hex}")
    web = clients(other_account, exchange(sts, token, other_account)["Credentials"])
    name = f"w{uuid.uuid4().hex}"
    web.create_bucket(Bucket=name)
    web.put_object(Bucket=name, Key="k", Body=b"x")
    assert refusal(web.put_bucket_acl, Bucket=name, ACL="private") == DENIED, "a contributor is no owner"
    web.delete_object(Bucket=name, Key="k")
    web.delete_bucket(Bucket=name)
    assert refusal(sts.assume_role_with_web_identity, RoleArn=arn(account), RoleSessionName="web", WebIdentityToken=token) == DENIED


def test_a_subject_of_the_name_of_a_user_is_another(account, user, own, sts, issuer):
    token = issuer.token(role=None, oid=user.name)
    user.grant("owner")
    assert refusal(sts.assume_role_with_web_identity, RoleArn=arn(account), RoleSessionName="web", WebIdentityToken=token) == DENIED


def tokens(issuer, subject):
    """Tokens that are refused, and the code."""
    now = int(time.time())
    good = issuer.token(role=None, oid=subject)
    head, claims, signature = good.split(".")
    return {
        "expired": (issuer.token(role=None, oid=subject, exp=now - 3600), "ExpiredTokenException"),
        "future": (issuer.token(role=None, oid=subject, nbf=now + 3600), "InvalidIdentityToken"),
        "audience": (issuer.token(role=None, oid=subject, aud="other"), "InvalidIdentityToken"),
        "issuer": (issuer.token(role=None, oid=subject, iss="https://evil.example"), "InvalidIdentityToken"),
        "no expiry": (issuer.token(role=None, oid=subject, exp=None), "InvalidIdentityToken"),
        "none": (issuer.token(role=None, oid=subject, header={"alg": "none"}), "InvalidIdentityToken"),
        "signature": (f"{head}.{claims}.{signature[:-8]}AAAAAAAA", "InvalidIdentityToken"),
        "cut": (f"{head}.{claims}", "InvalidIdentityToken"),
        "no token": ("not-a-token", "InvalidIdentityToken"),
        "long": ("a." * 15_000, "InvalidIdentityToken"),
    }


@pytest.mark.parametrize("kind", ["expired", "future", "audience", "issuer", "no expiry", "none", "signature", "cut",
                                  "no token", "long"])
def test_wrong_tokens(account, sts, issuer, subject, kind):
    token, code = tokens(issuer, subject)[kind]
    parameters = {"Action": "AssumeRoleWithWebIdentity", "Version": VERSION, "RoleArn": arn(account),
                  "RoleSessionName": "web", "WebIdentityToken": token}
    assert outcome(Caller(account).post(parameters)) == (400, code)


@pytest.mark.parametrize("role", ["arn:aws:iam::999999999999:role/none"])
def test_roles_of_unknown_accounts(sts, issuer, subject, role):
    token = issuer.token(role=None, oid=subject)
    assert refusal(sts.assume_role_with_web_identity, RoleArn=role, RoleSessionName="web", WebIdentityToken=token) == DENIED


def test_the_account_without_a_role(account, issuer, subject):
    """As other servers permit it: the host or the first account is meant."""
    parameters = {"Action": "AssumeRoleWithWebIdentity", "Version": VERSION,
                  "WebIdentityToken": issuer.token(role=None, oid=subject)}
    assert Caller(account).post(parameters).status == 200
    assert Caller(account).post(parameters, {"host": f"s3.{account.name}.localhost"}).status == 200
    assert outcome(Caller(account).post(parameters, {"host": "s3.otheraccount.localhost"})) == DENIED
    assert outcome(Caller(account).post({**parameters, "RoleArn": arn(account)},
                                        {"host": "s3.otheraccount.localhost"})) == DENIED
    query = urllib.parse.urlencode(parameters)
    assert s3.Raw(account).send("POST", f"/?{query}").status == 200
    assert s3.Raw(account).send("GET", f"/?{query}").status == 200


def test_a_call_with_a_token_needs_no_signature_and_takes_no_policy(account, issuer, subject):
    parameters = {"Action": "AssumeRoleWithWebIdentity", "Version": VERSION, "RoleArn": arn(account), "Policy": "{}",
                  "WebIdentityToken": issuer.token(role=None, oid=subject)}
    assert outcome(Caller(account).post(parameters)) == (400, "MalformedPolicyDocument")


# --- logs -------------------------------------------------------------------------------------------------------------------


def test_no_log_holds_keys_or_tokens(server, account, user, own, sts, issuer, subject):
    token = issuer.token(role=None, oid=subject)
    made = [assume(user)["Credentials"], exchange(sts, token, account)["Credentials"]]
    for credentials in made:
        clients(account, credentials).list_objects_v2(Bucket=own)
    refusal(clients(account, {**made[0], "SecretAccessKey": "x" * 40}).list_objects_v2, Bucket=own)
    log = server.log_path.read_text(errors="replace")
    for credentials in made:
        assert credentials["SecretAccessKey"] not in log and credentials["SessionToken"] not in log
    assert token not in log


def test_operations_are_counted(server, user):
    def count(name):
        return sum(value for sample, value in server.metrics().items()
                   if sample.startswith("requests_total{") or sample.startswith("blockyard_requests_total{")
                   if f'"{name}"' in sample)
    before = {name: count(name) for name in ("AssumeRole", "GetCallerIdentity")}
    assume(user)
    user.client("sts").get_caller_identity()
    after = {name: count(name) for name in before}
    assert all(after[name] == before[name] + 1 for name in before), (before, after)

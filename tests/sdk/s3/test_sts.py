"""The token service: who calls, which calls are refused, and what is logged."""

import hashlib
import hmac
import urllib.parse
import uuid

import pytest

from lib import s3, s3_users
from lib.s3_sts import VERSION, Caller, arn, assume, clients, exchange, outcome

from conftest import CONFIGURED, refusal

DENIED = (403, "AccessDenied")


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

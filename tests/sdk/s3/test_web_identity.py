"""AssumeRoleWithWebIdentity: temporary keys for a token of an issuer."""

import time
import urllib.parse
import uuid

import pytest

from lib import commands, s3
from lib.s3_sts import VERSION, Caller, arn, clients, exchange, outcome

from conftest import refusal

DENIED = (403, "AccessDenied")


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

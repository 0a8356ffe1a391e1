"""Who signs browser forms, and pages of other origins."""

import base64
import json

import pytest

from lib import multipart, s3, s3_forms
from lib.account import Account
from lib.multipart import KIND
from lib.s3_forms import CONTENT, END, Form, is_empty, missing, outcome, stored


# Who signs.

@pytest.mark.parametrize("version, name, shown", [
    (4, "policy", "policy"), (4, "x-amz-algorithm", "X-Amz-Algorithm"), (4, "x-amz-credential", "X-Amz-Credential"),
    (4, "x-amz-date", "X-Amz-Date"), (4, "x-amz-signature", "X-Amz-Signature"), (2, "AWSAccessKeyId", "AWSAccessKeyId"),
    (2, "signature", "Signature"), (2, "policy", "policy"),
])
def test_signatures_have_all_their_fields(form, raw, bucket, version, name, shown):
    form.version, form.change = version, {name: None}
    host = f"{bucket}.s3.{raw.account.name}.localhost"
    answer = form.post(raw, {"host": host}, "/")
    assert outcome(answer) == (400, "InvalidArgument", missing(shown))
    assert answer.text("ArgumentName") == shown


@pytest.mark.parametrize("version", [4, 2])
def test_wrong_signatures(form, account, raw, client, bucket, version):
    form.version = version
    form.account = Account(account.address, account.name, base64.b64encode(b"another key").decode())
    answer = form.post(raw)
    assert (answer.status, answer.code()) == (403, "SignatureDoesNotMatch")
    assert json.loads(base64.b64decode(answer.text("StringToSign")))["conditions"]
    assert is_empty(client, bucket)


@pytest.mark.parametrize("change", ["policy", "scope"])
def test_signatures_of_something_else(form, account, raw, client, bucket, change):
    fields = dict(form.all())
    if change == "policy":
        fields["policy"] = s3_forms.encoded({"expiration": END, "conditions": []})
    else:
        fields["x-amz-credential"] = fields["x-amz-credential"].replace("us-east-1", "eu-west-1")
    answer = raw.send("POST", f"/{bucket}", {"content-type": KIND}, multipart.body(fields.items()))
    assert (answer.status, answer.code()) == (403, "SignatureDoesNotMatch")
    assert is_empty(client, bucket)


@pytest.mark.parametrize("name, value, code", [
    ("x-amz-algorithm", "AWS4-HMAC-SHA1", "InvalidArgument"),
    ("x-amz-credential", "{name}/us-east-1/s3/aws4_request", "InvalidArgument"),
    ("x-amz-credential", "{name}/20200101/us-east-1/s3/aws4_request", "InvalidArgument"),
    ("x-amz-credential", "{name}/20200101/us-east-1/ec2/aws4_request", "InvalidArgument"),
    ("x-amz-credential", "/20200101/us-east-1/s3/aws4_request", "InvalidArgument"),
    ("x-amz-date", "2024-05-06T07:08:09Z", "InvalidArgument"),
    ("x-amz-date", "now", "InvalidArgument"),
    ("x-amz-signature", "0" * 63, "InvalidArgument"),
    ("x-amz-signature", "0" * 64, "SignatureDoesNotMatch"),
    ("AWSAccessKeyId", "someone", "InvalidArgument"),
])
def test_malformed_signatures(form, account, raw, client, bucket, name, value, code):
    form.change = {name: value.format(name=account.name)}
    answer = form.post(raw)
    assert answer.code() == code and answer.status in (400, 403)
    assert is_empty(client, bucket)


@pytest.mark.parametrize("version", [4, 2])
def test_unknown_access_keys(form, account, raw, version):
    form.version = version
    form.account = Account(account.address, "nosuchaccount", account.key)
    answer = form.post(raw)
    assert (answer.status, answer.code()) == (403, "InvalidAccessKeyId")


def test_any_region_is_taken(account, bucket, raw):
    form = Form(account, bucket)
    fields = dict(form.all())
    time, region = fields["x-amz-date"], "eu-west-9"
    credential = f"{account.name}/{time[:8]}/{region}/s3/aws4_request"
    conditions = [{"bucket": bucket}, {"key": "k"}, ["starts-with", "$x-amz-algorithm", ""], ["starts-with", "$x-amz-date", ""],
                  {"x-amz-credential": credential}]
    policy = s3_forms.encoded({"expiration": END, "conditions": conditions})
    fields.update(s3_forms.signed(account, policy, scope=credential.split("/", 1)[1], time=time))
    assert raw.send("POST", f"/{bucket}", {"content-type": KIND}, multipart.body(fields.items())).status == 204


def test_another_account_may_not_write(form, other_account, account, raw, client, bucket):
    form.account = Account(account.address, other_account.name, other_account.key)
    host = f"{bucket}.s3.{account.name}.localhost"
    answer = form.post(raw, {"host": host}, "/")
    assert (answer.status, answer.code()) == (403, "AccessDenied")
    assert is_empty(client, bucket)


@pytest.mark.parametrize("fields", [{}, {"policy": s3_forms.encoded({"expiration": END, "conditions": []})}])
@pytest.mark.parametrize("acl", ["private", "public-read"])
def test_nobody_writes_without_a_signature(raw, client, bucket, fields, acl):
    client.put_bucket_acl(Bucket=bucket, ACL=acl)
    host = f"{bucket}.s3.{raw.account.name}.localhost"
    body = multipart.body({"key": "k", **fields}.items())
    answer = raw.send("POST", "/", {"host": host, "content-type": KIND}, body)
    assert (answer.status, answer.code()) == (403, "AccessDenied")
    assert is_empty(client, bucket)


def test_without_signature_and_account(raw, bucket):
    answer = raw.send("POST", f"/{bucket}", {"content-type": KIND}, multipart.body([("key", "k")]))
    assert answer.status in (403, 400) and answer.code() in ("AccessDenied", "InvalidAccessKeyId")


def test_a_form_is_signed_by_its_policy_alone(form, raw, client, bucket):
    body = multipart.body(form.all())
    both = raw.call("POST", f"/{bucket}", headers={"content-type": KIND}, body=body)
    assert (both.status, both.code()) == (400, "InvalidArgument")
    alone = raw.call("POST", f"/{bucket}", headers={"content-type": KIND}, body=multipart.body([("key", "k")]))
    assert (alone.status, alone.code()) == (400, "InvalidArgument")
    assert is_empty(client, bucket)


# Web pages: everyone has the development key.

ORIGIN = "https://page.example"


@pytest.mark.parametrize("version", [4, 2])
@pytest.mark.parametrize("origin", [ORIGIN, "null", "http://localhost:8000"])
def test_pages_cannot_write_with_the_known_key(form, raw, client, bucket, version, origin):
    form.version = version
    answer = form.post(raw, {"origin": origin})
    assert (answer.status, answer.code()) == (403, "AccessForbidden")
    assert is_empty(client, bucket)


@pytest.mark.parametrize("rule, is_let_in", [
    ({"AllowedOrigins": [ORIGIN], "AllowedMethods": ["POST"]}, True),
    ({"AllowedOrigins": ["https://*.example"], "AllowedMethods": ["PUT", "POST"], "ExposeHeaders": ["ETag"]}, True),
    ({"AllowedOrigins": ["*"], "AllowedMethods": ["POST"]}, True),
    ({"AllowedOrigins": [ORIGIN], "AllowedMethods": ["PUT"]}, False),
    ({"AllowedOrigins": ["https://other.example"], "AllowedMethods": ["POST"]}, False),
])
def test_rules_of_the_bucket_let_pages_in(form, raw, client, bucket, rule, is_let_in):
    client.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": [rule]})
    answer = form.post(raw, {"origin": ORIGIN})
    if is_let_in:
        assert answer.status == 204
        assert answer.headers["access-control-allow-origin"] in (ORIGIN, "*")
    else:
        assert (answer.status, answer.code()) == (403, "AccessForbidden")
    assert is_empty(client, bucket) != is_let_in


def test_pages_write_with_a_key_of_their_own(other_account):
    client, raw = s3.client(other_account), s3.Raw(other_account)
    bucket = "forms-of-other"
    client.create_bucket(Bucket=bucket)
    try:
        form = Form(other_account, bucket)
        host = f"{bucket}.s3.{other_account.name}.localhost"
        assert form.post(raw, {"origin": ORIGIN, "host": host}, "/").status == 204
        form.fields["key"] = "path"
        assert form.post(raw, {"origin": ORIGIN}).status == 204
        assert stored(client, bucket) == stored(client, bucket, "path") == CONTENT
    finally:
        for key in ("k", "path"):
            client.delete_object(Bucket=bucket, Key=key)
        client.delete_bucket(Bucket=bucket)

"""Cross-origin rules of buckets."""

import pytest
from botocore.exceptions import ClientError

from lib import s3

RULES = [
    {"ID": "first", "AllowedOrigins": ["http://*.example", "https://exact.org"], "AllowedMethods": ["PUT", "POST"],
     "AllowedHeaders": ["x-amz-*", "Content-Type"], "ExposeHeaders": ["ETag", "x-amz-request-id"], "MaxAgeSeconds": 3000},
    {"AllowedOrigins": ["*"], "AllowedMethods": ["GET"]},
]
BASE = "<AllowedOrigin>http://a</AllowedOrigin><AllowedMethod>GET</AllowedMethod>"


def document(*rules):
    return "<CORSConfiguration>" + "".join(f"<CORSRule>{rule}</CORSRule>" for rule in rules) + "</CORSConfiguration>"


@pytest.fixture
def ruled(client, bucket):
    """A bucket with rules."""
    client.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": RULES})
    return bucket


def preflight(raw, bucket, **headers):
    """A preflight request: not signed, so its host says that it is one of S3."""
    host = {"host": f"{bucket}.s3.{raw.account.name}.localhost"}
    return raw.send("OPTIONS", "/k", {**host, **{name.replace("_", "-"): value for name, value in headers.items()}})


def test_rules_are_set_read_and_removed(client, bucket):
    with pytest.raises(ClientError) as refused:
        client.get_bucket_cors(Bucket=bucket)
    assert s3.code(refused.value) == (404, "NoSuchCORSConfiguration")
    client.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": RULES})
    assert client.get_bucket_cors(Bucket=bucket)["CORSRules"] == RULES
    client.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": RULES[1:]})
    assert client.get_bucket_cors(Bucket=bucket)["CORSRules"] == RULES[1:]
    for _ in range(2):
        assert client.delete_bucket_cors(Bucket=bucket)["ResponseMetadata"]["HTTPStatusCode"] == 204
    with pytest.raises(ClientError) as refused:
        client.get_bucket_cors(Bucket=bucket)
    assert s3.code(refused.value) == (404, "NoSuchCORSConfiguration")


def test_rules_go_with_their_bucket(client, ruled):
    client.delete_bucket(Bucket=ruled)
    client.create_bucket(Bucket=ruled)
    with pytest.raises(ClientError) as refused:
        client.get_bucket_cors(Bucket=ruled)
    assert s3.code(refused.value) == (404, "NoSuchCORSConfiguration")


@pytest.mark.parametrize("origin", ["http://x.example", "http://a.b.example", "https://exact.org"])
def test_preflight_meets_a_rule(raw, ruled, origin):
    answer = preflight(raw, ruled, origin=origin, access_control_request_method="PUT",
                       access_control_request_headers="X-Amz-Date, content-type")
    assert (answer.status, answer.body) == (200, b"")
    found = {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}
    assert found == {
        "access-control-allow-origin": origin, "access-control-allow-methods": "PUT, POST",
        "access-control-allow-headers": "x-amz-date, content-type", "access-control-allow-credentials": "true",
        "access-control-expose-headers": "ETag, x-amz-request-id", "access-control-max-age": "3000"}
    assert "Origin" in answer.headers["vary"]


def test_preflight_of_an_open_rule(raw, ruled):
    answer = preflight(raw, ruled, origin="http://other", access_control_request_method="GET")
    assert answer.status == 200 and answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("headers", [
    {"origin": "http://other", "access_control_request_method": "PUT"},
    {"origin": "http://example", "access_control_request_method": "PUT"},
    {"origin": "https://exact.org.evil", "access_control_request_method": "PUT"},
    {"origin": "http://x.example", "access_control_request_method": "DELETE"},
    {"origin": "http://x.example", "access_control_request_method": "PUT", "access_control_request_headers": "accept"},
    {"origin": "http://x.example", "access_control_request_method": "HEAD"},
])
def test_preflight_that_no_rule_allows(raw, ruled, headers):
    answer = preflight(raw, ruled, **headers)
    assert (answer.status, answer.code()) == (403, "AccessForbidden")
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("headers", [
    {},
    {"origin": "http://x.example"},
    {"access_control_request_method": "PUT"},
    {"origin": "http://x.example", "access_control_request_method": "PATCH"},
])
def test_incomplete_preflight(raw, ruled, headers):
    answer = preflight(raw, ruled, **headers)
    assert (answer.status, answer.code()) == (400, "BadRequest")


@pytest.mark.parametrize("name", [None, "no-such-bucket"])
def test_preflight_without_rules(raw, bucket, name):
    answer = preflight(raw, name or bucket, origin="http://a", access_control_request_method="GET")
    assert (answer.status, answer.code()) == (403, "AccessForbidden")


def test_answers_carry_what_the_rule_says(raw, ruled):
    raw.call("PUT", f"/{ruled}/k", body=b"x")
    got = raw.call("GET", f"/{ruled}/k", headers={"origin": "http://other"})
    assert got.status == 200 and got.headers["access-control-allow-origin"] == "*"
    put = raw.call("PUT", f"/{ruled}/k", headers={"origin": "http://x.example"}, body=b"x")
    assert put.headers["access-control-allow-origin"] == "http://x.example"
    assert put.headers["access-control-expose-headers"] == "ETag, x-amz-request-id"
    missing = raw.call("GET", f"/{ruled}/none", headers={"origin": "http://other"})
    assert missing.status == 404 and missing.headers["access-control-allow-origin"] == "*"
    other = raw.call("DELETE", f"/{ruled}/k", headers={"origin": "http://other"})
    assert other.status == 204 and "access-control-allow-origin" not in other.headers
    assert "Origin" in other.headers["vary"]
    assert "access-control-allow-origin" not in raw.call("GET", f"/{ruled}").headers


def test_rules_of_a_bucket_are_for_s3_only(raw, account, service, ruled):
    service.get_container_client(ruled).set_container_access_policy({}, public_access="container")
    raw.call("PUT", f"/{ruled}/k", body=b"x")
    answer = raw.send("GET", f"/{account.name}/{ruled}/k", {"origin": "http://other"})
    assert answer.status == 200 and "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("body, code", [
    ("", "MalformedXML"),
    ("<CORSConfiguration/>", "MalformedXML"),
    ("<CORSConfiguration>", "MalformedXML"),
    ("<Other/>", "MalformedXML"),
    (document("<AllowedOrigin>a</AllowedOrigin>"), "MalformedXML"),
    (document("<AllowedMethod>GET</AllowedMethod>"), "MalformedXML"),
    (document(BASE + "<Other/>"), "MalformedXML"),
    (document(BASE + "<ID>a</ID><ID>b</ID>"), "MalformedXML"),
    (document(BASE + "<MaxAgeSeconds>x</MaxAgeSeconds>"), "MalformedXML"),
    (document(BASE + "<MaxAgeSeconds>-1</MaxAgeSeconds>"), "MalformedXML"),
    (document(*[BASE] * 101), "MalformedXML"),
    (document(BASE + "<AllowedMethod>PATCH</AllowedMethod>"), "InvalidRequest"),
    (document(BASE + "<AllowedMethod>get</AllowedMethod>"), "InvalidRequest"),
    (document(BASE + "<AllowedOrigin>http://*.*</AllowedOrigin>"), "InvalidRequest"),
    (document(BASE + "<AllowedHeader>*a*</AllowedHeader>"), "InvalidRequest"),
    (document(BASE + "<ExposeHeader>x-*</ExposeHeader>"), "InvalidRequest"),
    (document(BASE + f"<ID>{'i' * 256}</ID>"), "InvalidRequest"),
])
def test_bad_documents_change_nothing(client, raw, ruled, body, code):
    answer = raw.call("PUT", f"/{ruled}", [("cors", "")], body=body.encode())
    assert (answer.status, answer.code()) == (400, code)
    assert client.get_bucket_cors(Bucket=ruled)["CORSRules"] == RULES


@pytest.mark.parametrize("body", [
    document(*[BASE] * 100),
    document(BASE + f"<ID>{'i' * 255}</ID>"),
    document(BASE + "<MaxAgeSeconds>0</MaxAgeSeconds>"),
    document(BASE + "<AllowedMethod>HEAD</AllowedMethod><AllowedMethod>DELETE</AllowedMethod>"),
])
def test_documents_at_their_limits(raw, bucket, body):
    assert raw.call("PUT", f"/{bucket}", [("cors", "")], body=body.encode()).status == 200
    got = raw.call("GET", f"/{bucket}", [("cors", "")])
    assert len(got.tree().findall("CORSRule")) == body.count("<CORSRule>")
    assert raw.call("PUT", f"/{bucket}", [("cors", "")], body=got.body).status == 200, "an answer can be sent back"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_rules_of_a_bucket_that_does_not_exist(raw, method):
    body = document(BASE).encode() if method == "PUT" else b""
    answer = raw.call(method, "/no-such-bucket", [("cors", "")], body=body)
    assert (answer.status, answer.code()) == (404, "NoSuchBucket")

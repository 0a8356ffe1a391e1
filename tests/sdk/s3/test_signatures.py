"""Each piece of each form of signature, broken in turn. A request that is refused changes nothing."""

import hashlib
import base64
import datetime
import re

import pytest

from lib import s3, s3_signing
from lib.s3_signing import SIGNED

from conftest import outcome

MALFORMED = (400, "AuthorizationHeaderMalformed")
QUERY = (400, "AuthorizationQueryParametersError")
WRONG = (403, "SignatureDoesNotMatch")
DENIED = (403, "AccessDenied")
SKEWED = (403, "RequestTimeTooSkewed")
UNKNOWN = (403, "InvalidAccessKeyId")
ARGUMENT = (400, "InvalidArgument")


def at(minutes):
    """A time so many minutes from now, as version 4 writes it."""
    time = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=minutes)
    return time.strftime("%Y%m%dT%H%M%SZ")


def replaced(pattern, by):
    """Changes the authorization."""
    def change(headers):
        before = headers["authorization"]
        headers["authorization"] = re.sub(pattern, by, before)
        assert headers["authorization"] != before
    return change


def without(name):
    """Leaves a header out."""
    return lambda headers: headers.pop(name)


def with_header(name, value):
    """Adds a header, or another value of one."""
    return lambda headers: headers.__setitem__(name, value)


HEADER_CASES = {
    "no credential": (replaced(r"Credential=[^,]*, ", ""), MALFORMED),
    "no signed headers": (replaced(r"SignedHeaders=[^,]*, ", ""), MALFORMED),
    "no signature": (replaced(r", Signature=\w+", ""), MALFORMED),
    "empty credential": (replaced(r"Credential=[^,]*", "Credential="), MALFORMED),
    "empty signed headers": (replaced(r"SignedHeaders=[^,]*", "SignedHeaders="), MALFORMED),
    "empty signature": (replaced(r"Signature=\w+", "Signature="), MALFORMED),
    "only the algorithm": (with_header("authorization", "AWS4-HMAC-SHA256"), MALFORMED),
    "other algorithm": (replaced("AWS4-HMAC-SHA256", "AWS4-HMAC-SHA512"), ARGUMENT),
    "asymmetric algorithm": (replaced("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"), ARGUMENT),
    "credential without parts": (replaced(r"Credential=[^,]*", "Credential=key"), MALFORMED),
    "credential without a region": (replaced("/us-east-1/", "/"), MALFORMED),
    "credential with an empty region": (replaced("/us-east-1/", "//"), MALFORMED),
    "credential with a long region": (replaced("/us-east-1/", f"/{'r' * 65}/"), MALFORMED),
    "credential of another service": (replaced("/s3/", "/ec2/"), MALFORMED),
    "credential with another end": (replaced("aws4_request", "aws5_request"), MALFORMED),
    "credential of another day": (replaced(r"/\d{8}/", "/20200101/"), MALFORMED),
    "credential with a malformed day": (replaced(r"/\d{8}/", "/2020-01-01/"), MALFORMED),
    "unknown key": (replaced("Credential=[^/]*/", "Credential=nobody/"), UNKNOWN),
    "signature of other digits": (replaced(r"Signature=\w", lambda m: "Signature=" + ("0" if m[0][-1] != "0" else "1")), WRONG),
    "signature in upper case": (replaced(r"Signature=\w+", lambda m: "Signature=" + "A" * 64), MALFORMED),
    "short signature": (replaced(r"\w$", ""), MALFORMED),
    "long signature": (replaced(r"$", "00"), MALFORMED),
    "signature that is not hexadecimal": (replaced(r"\w$", "g"), MALFORMED),
    "names in upper case": (replaced("SignedHeaders=host", "SignedHeaders=Host"), MALFORMED),
    "a name twice": (replaced("SignedHeaders=host", "SignedHeaders=host;host"), MALFORMED),
    "an empty name": (replaced("SignedHeaders=host", "SignedHeaders=host;"), MALFORMED),
    "host that is not signed": (replaced("SignedHeaders=host;", "SignedHeaders="), DENIED),
    "date that is not signed": (replaced("SignedHeaders=([^,]*);x-amz-date", r"SignedHeaders=\1"), DENIED),
    "a signed header that is missing": (replaced("x-amz-date, ", "x-amz-date;x-amz-missing, "), WRONG),
    "a header that is not signed": (with_header("x-amz-meta-a", "1"), DENIED),
    "an acl that is not signed": (with_header("x-amz-acl", "public-read"), DENIED),
    "no date": (without("x-amz-date"), DENIED),
    "a malformed date": (with_header("x-amz-date", "yesterday"), DENIED),
    "a date of another form": (with_header("x-amz-date", "2026-01-01T00:00:00Z"), DENIED),
    "no hash of the payload": (without("x-amz-content-sha256"), (400, "InvalidRequest")),
    "an unknown form of payload": (with_header("x-amz-content-sha256", "SIGNED-PAYLOAD"), ARGUMENT),
    "a short hash of the payload": (with_header("x-amz-content-sha256", "00"), ARGUMENT),
    "a hash of the payload in upper case": (with_header("x-amz-content-sha256", "AB" * 32), ARGUMENT),
    "another hash of the payload": (with_header("x-amz-content-sha256", "ab" * 32), WRONG),
    "signatures of version 4A": (with_header("x-amz-content-sha256", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD"), ARGUMENT),
}


@pytest.mark.parametrize("case", HEADER_CASES)
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_broken_signature_of_version_4_is_refused(raw, shared, method, case):
    change, expected = HEADER_CASES[case]
    path = f"/{shared}/k"
    headers = raw.sign(method, path)
    change(headers)
    assert outcome(raw.send(method, path, headers, b"other" if method == "PUT" else b"")) == expected


@pytest.mark.parametrize("what", ["method", "path", "query", "header", "host"])
def test_a_request_that_is_not_the_signed_one_is_refused(raw, shared, what):
    path, method, query = f"/{shared}/k", "GET", ""
    headers = raw.sign(method, path, headers={"x-amz-meta-a": "1"})
    if what == "method":
        method = "DELETE"
    elif what == "path":
        path += "2"
    elif what == "query":
        query = "?versions"
    elif what == "header":
        headers["x-amz-meta-a"] = "2"
    else:
        headers["host"] = headers["host"].replace("127.0.0.1", "localhost")
    answer = raw.send(method, path + query, headers)
    assert outcome(answer) == WRONG
    assert answer.text("StringToSign").startswith("AWS4-HMAC-SHA256\n") and answer.text("CanonicalRequest")


@pytest.mark.parametrize("minutes, expected", [(-16, SKEWED), (16, SKEWED), (-60 * 24 * 2, SKEWED)])
def test_a_clock_that_is_off_is_refused(raw, shared, minutes, expected):
    assert outcome(raw.call("GET", f"/{shared}/k", time=at(minutes))) == expected


@pytest.mark.parametrize("minutes", [-14, 14])
def test_a_clock_may_be_off_by_a_quarter_of_an_hour(raw, shared, minutes):
    assert raw.call("GET", f"/{shared}/k", time=at(minutes)).status == 200


def test_a_signature_in_two_places_is_refused(raw, shared):
    target = raw.presign("GET", f"/{shared}/k")
    path, query = target.split("?")
    headers = raw.sign("GET", path)
    assert outcome(raw.send("GET", f"{path}?{query}", headers)) == ARGUMENT
    twice = {**headers, "authorization": [headers["authorization"]] * 2}
    assert outcome(raw.send("GET", path, twice)) == ARGUMENT


def test_head_refusals_have_a_code_in_the_header_only(raw, shared):
    headers = raw.sign("HEAD", f"/{shared}/k")
    headers["x-amz-content-sha256"] = s3.EMPTY_SHA256
    answer = raw.send("HEAD", f"/{shared}/k", headers)
    assert (answer.status, answer.headers["x-amz-error-code"], answer.body) == (*WRONG, b"")


def changed(name, value):
    """Changes a parameter of a presigned URL, or leaves it out."""
    def change(target):
        kept = [pair for pair in target.split("?")[1].split("&") if pair.split("=")[0] != name]
        pairs = kept + ([f"{name}={s3.quoted(value)}"] if value is not None else [])
        return target.split("?")[0] + "?" + "&".join(pairs)
    return change


def today():
    """The day now."""
    return s3.now()[:8]


QUERY_CASES = {
    "other algorithm": (changed("X-Amz-Algorithm", "AWS4-HMAC-SHA512"), QUERY),
    "empty algorithm": (changed("X-Amz-Algorithm", ""), QUERY),
    "no credential": (changed("X-Amz-Credential", None), QUERY),
    "malformed credential": (changed("X-Amz-Credential", "key"), QUERY),
    "credential of another service": (lambda t: changed("X-Amz-Credential", f"devstoreaccount1/{today()}/us-east-1/ec2/aws4_request")(t), QUERY),
    "credential with another end": (lambda t: changed("X-Amz-Credential", f"devstoreaccount1/{today()}/us-east-1/s3/aws")(t), QUERY),
    "credential of another day": (changed("X-Amz-Credential", "devstoreaccount1/20200101/us-east-1/s3/aws4_request"), QUERY),
    "unknown key": (lambda t: changed("X-Amz-Credential", f"nobody/{today()}/us-east-1/s3/aws4_request")(t), UNKNOWN),
    "other region": (lambda t: changed("X-Amz-Credential", f"devstoreaccount1/{today()}/eu-west-1/s3/aws4_request")(t), WRONG),
    "no date": (changed("X-Amz-Date", None), QUERY),
    "malformed date": (changed("X-Amz-Date", "now"), QUERY),
    "http date": (changed("X-Amz-Date", "2026-01-01"), QUERY),
    "no expiry": (changed("X-Amz-Expires", None), QUERY),
    "expiry that is no number": (changed("X-Amz-Expires", "soon"), QUERY),
    "negative expiry": (changed("X-Amz-Expires", "-1"), QUERY),
    "expiry of more than a week": (changed("X-Amz-Expires", "604801"), QUERY),
    "other expiry": (changed("X-Amz-Expires", "299"), WRONG),
    "no signed headers": (changed("X-Amz-SignedHeaders", None), QUERY),
    "signed headers in upper case": (changed("X-Amz-SignedHeaders", "Host"), QUERY),
    "host that is not signed": (changed("X-Amz-SignedHeaders", "date"), DENIED),
    "no signature": (changed("X-Amz-Signature", None), QUERY),
    "short signature": (changed("X-Amz-Signature", "00"), QUERY),
    "other signature": (changed("X-Amz-Signature", "0" * 64), WRONG),
    "signature in upper case": (changed("X-Amz-Signature", "A" * 64), QUERY),
    "another parameter": (lambda target: target + "&response-content-type=text/html", WRONG),
    "an unknown parameter": (lambda target: target + "&x=1", WRONG),
    "a header of s3 in the query": (lambda target: target + "&x-amz-acl=public-read", WRONG),
}


@pytest.mark.parametrize("case", QUERY_CASES)
def test_a_broken_presigned_url_of_version_4_is_refused(raw, shared, case):
    change, expected = QUERY_CASES[case]
    target = change(raw.presign("GET", f"/{shared}/k"))
    assert outcome(raw.send("GET", target)) == expected


@pytest.mark.parametrize("expires, minutes, expected", [
    (60, -2, DENIED), (60, 20, DENIED), (604800, -60 * 24 * 7 - 1, DENIED)])
def test_a_presigned_url_is_valid_for_its_time(raw, shared, expires, minutes, expected):
    target = raw.presign("GET", f"/{shared}/k", expires=expires, time=at(minutes))
    assert outcome(raw.send("GET", target)) == expected


@pytest.mark.parametrize("expires, minutes", [(604800, 0), (604800, -60 * 24 * 6), (1200, -19), (60, 10)])
def test_a_presigned_url_works_in_its_time(raw, shared, expires, minutes):
    target = raw.presign("GET", f"/{shared}/k", expires=expires, time=at(minutes))
    assert raw.send("GET", target).body == b"content"


def test_a_presigned_url_is_for_its_method_and_headers(raw, shared):
    target = raw.presign("GET", f"/{shared}/k")
    assert outcome(raw.send("PUT", target, body=b"x")) == WRONG
    assert outcome(raw.send("DELETE", target)) == WRONG
    assert outcome(raw.send("GET", target, {"x-amz-checksum-mode": "ENABLED"})) == DENIED
    bound = raw.presign("GET", f"/{shared}/k", headers={"x-amz-meta-a": "1"})
    assert raw.send("GET", bound, {"x-amz-meta-a": "1"}).status == 200
    assert outcome(raw.send("GET", bound, {"x-amz-meta-a": "2"})) == WRONG
    assert outcome(raw.send("GET", bound)) == WRONG


def test_headers_of_s3_in_a_presigned_query_count(raw, bucket):
    query = [("x-amz-meta-color", "blue"), ("x-amz-storage-class", "STANDARD_IA")]
    assert raw.send("PUT", raw.presign("PUT", f"/{bucket}/k", query), body=b"x").status == 200
    head = raw.call("HEAD", f"/{bucket}/k")
    assert (head.headers["x-amz-meta-color"], head.headers["x-amz-storage-class"]) == ("blue", "STANDARD_IA")
    got = raw.send("GET", raw.presign("GET", f"/{bucket}/k", [("x-amz-checksum-mode", "ENABLED")]))
    assert got.headers["x-amz-checksum-crc64nvme"]
    refused = raw.send("PUT", raw.presign("PUT", f"/{bucket}/k", [("x-amz-write-offset-bytes", "1")]), body=b"x")
    assert outcome(refused) == (501, "NotImplemented")


@pytest.mark.parametrize("region", ["us-east-1", "eu-west-9", "moon", "auto"])
def test_any_region_is_accepted(account, shared, monkeypatch, region):
    monkeypatch.setattr(s3, "REGION", region)
    key = s3.signing_key
    monkeypatch.setattr(s3, "signing_key", lambda secret, date: key(secret, date, region))
    assert s3.Raw(account).call("GET", f"/{shared}/k").status == 200


# Version 2.

def test_version_2_signs_requests(raw, bucket):
    path = f"/{bucket}/k"
    headers = {"content-type": "text/plain", "x-amz-meta-a": "1", "content-md5": s3_signing.md5(b"two")}
    assert raw.send("PUT", path, s3_signing.headers_v2(raw, "PUT", path, headers=headers), b"two").status == 200
    got = raw.send("GET", path, s3_signing.headers_v2(raw, "GET", path))
    assert (got.body, got.headers["content-type"], got.headers["x-amz-meta-a"]) == (b"two", "text/plain", "1")
    assert raw.send("GET", s3_signing.presign_v2(raw, "GET", path)).body == b"two"
    listed = raw.send("GET", f"/{bucket}?prefix=k", s3_signing.headers_v2(raw, "GET", f"/{bucket}"))
    assert listed.text("Contents/Key") == "k"
    by_date = s3_signing.headers_v2(raw, "GET", path, headers={"x-amz-date": s3_signing.http_date()}, date="nonsense")
    assert raw.send("GET", path, by_date).status == 200


V2_CASES = {
    "no signature": (replaced(r":.*", ""), MALFORMED),
    "empty signature": (replaced(r":.*", ":"), WRONG),
    "no key": (replaced(r"AWS [^:]*", "AWS "), MALFORMED),
    "signature that is not base64": (replaced(r":.*", ":*"), MALFORMED),
    "other signature": (replaced(r":.*", ":AAAAAAAAAAAAAAAAAAAAAAAAAAA="), WRONG),
    "unknown key": (replaced(r"AWS [^:]*", "AWS nobody"), UNKNOWN),
    "no date": (without("date"), DENIED),
    "malformed date": (with_header("date", "yesterday"), DENIED),
    "another header of s3": (with_header("x-amz-meta-b", "1"), WRONG),
    "another type": (with_header("content-type", "text/html"), WRONG),
    "another md5": (with_header("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="), WRONG),
    "a body in chunks": (with_header("x-amz-content-sha256", SIGNED), ARGUMENT),
    "no space": (with_header("authorization", "AWS x:y:"), MALFORMED),
}


@pytest.mark.parametrize("case", V2_CASES)
def test_a_broken_signature_of_version_2_is_refused(raw, shared, case):
    change, expected = V2_CASES[case]
    path = f"/{shared}/k"
    headers = s3_signing.headers_v2(raw, "GET", path)
    change(headers)
    found = outcome(raw.send("GET", path, headers))
    if case == "no space":
        assert found[0] in (400, 403)
    else:
        assert found == expected


@pytest.mark.parametrize("seconds", [-16 * 60, 16 * 60])
def test_a_clock_of_version_2_that_is_off_is_refused(raw, shared, seconds):
    path = f"/{shared}/k"
    headers = s3_signing.headers_v2(raw, "GET", path, date=s3_signing.http_date(seconds))
    assert outcome(raw.send("GET", path, headers)) == SKEWED


@pytest.mark.parametrize("what", ["method", "path", "subresource"])
def test_version_2_covers_the_request(raw, shared, what):
    path = f"/{shared}/k"
    headers = s3_signing.headers_v2(raw, "GET", path)
    method, target = {"method": ("DELETE", path), "path": ("GET", path + "2"), "subresource": ("GET", path + "?acl")}[what]
    answer = raw.send(method, target, headers)
    assert outcome(answer) == WRONG and answer.text("StringToSign").startswith(method)


V2_QUERY_CASES = {
    "no expiry": (changed("Expires", None), DENIED),
    "expiry that is no number": (changed("Expires", "soon"), DENIED),
    "expired": (changed("Expires", "1"), DENIED),
    "other expiry": (changed("Expires", "9999999999"), WRONG),
    "unknown key": (changed("AWSAccessKeyId", "nobody"), UNKNOWN),
    "other signature": (changed("Signature", "AAAAAAAAAAAAAAAAAAAAAAAAAAA="), WRONG),
    "signature that is not base64": (changed("Signature", "*"), QUERY),
    "another sub-resource": (lambda target: target + "&acl", WRONG),
    "an override that is not signed": (lambda target: target + "&response-content-type=text/html", WRONG),
}


@pytest.mark.parametrize("case", V2_QUERY_CASES)
def test_a_broken_presigned_url_of_version_2_is_refused(raw, shared, case):
    change, expected = V2_QUERY_CASES[case]
    assert outcome(raw.send("GET", change(s3_signing.presign_v2(raw, "GET", f"/{shared}/k")))) == expected


def test_a_presigned_url_of_version_2_expires(raw, shared):
    target = s3_signing.presign_v2(raw, "GET", f"/{shared}/k", expires=-1)
    assert outcome(raw.send("GET", target)) == DENIED
    assert outcome(raw.send("PUT", s3_signing.presign_v2(raw, "GET", f"/{shared}/k"), body=b"x")) == WRONG


def test_parameters_that_version_2_does_not_sign_are_no_headers(account, raw, client, bucket):
    client.put_object(Bucket=bucket, Key="private", Body=b"secret")
    for version in ("s3", "s3-query"):
        signer = s3.client(account, signature_version=version)
        url = signer.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": "upload"})
        target = url.split(account.address, 1)[1]
        assert "AWSAccessKeyId=" in target
        more = f"&X-Amz-Signature=&x-amz-acl=public-read&x-amz-copy-source=%2F{bucket}%2Fprivate"
        assert raw.send("PUT", target + more, body=b"own").status == 200
        assert client.get_object(Bucket=bucket, Key="upload")["Body"].read() == b"own"
        assert len(client.get_object_acl(Bucket=bucket, Key="upload")["Grants"]) == 1


def test_a_web_page_posts_nothing_under_the_development_key(raw, client, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"x")
    body = b"<Delete><Object><Key>k</Key></Object></Delete>"
    digest = {"content-md5": base64.b64encode(hashlib.md5(body).digest()).decode()}
    target = raw.presign("POST", f"/{bucket}", [("delete", "")])
    answer = raw.send("POST", target, {**digest, "origin": "https://evil.example"}, body)
    assert (answer.status, answer.code()) == (403, "AccessForbidden")
    assert client.head_object(Bucket=bucket, Key="k")["ContentLength"] == 1
    assert raw.send("POST", target, digest, body).status == 200

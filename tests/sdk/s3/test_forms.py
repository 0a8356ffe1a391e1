"""Browser forms: POST Object."""

import base64
import hashlib
import io
import json
import socket
import urllib.parse
import urllib.request

import pytest

from lib import multipart, s3, s3_forms
from lib.account import Account
from lib.multipart import BOUNDARY, KIND
from lib.s3_forms import Form

CONTENT = b"content"
ETAG = f'"{hashlib.md5(CONTENT).hexdigest()}"'
POLICY, DENIED = "Invalid Policy: ", "Invalid according to Policy: "
TAGGING = "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag><Tag><Key>b</Key><Value>x y</Value></Tag></TagSet></Tagging>"


@pytest.fixture
def form(account, bucket):
    """A form for the key `k`."""
    return Form(account, bucket)


def outcome(answer):
    """Status, code and text of a refusal."""
    return answer.status, answer.code(), answer.text("Message")


def is_empty(client, bucket):
    return "Contents" not in client.list_objects_v2(Bucket=bucket)


def stored(client, bucket, key="k"):
    return client.get_object(Bucket=bucket, Key=key)["Body"].read()


def send(url, fields, file=CONTENT, filename="a.txt"):
    """Sends the fields that boto3 made."""
    request = urllib.request.Request(url, multipart.body(fields.items(), file, filename), {"content-type": KIND}, method="POST")
    with urllib.request.urlopen(request) as answer:
        return answer.status


# What SDKs make.

@pytest.mark.parametrize("signature", ["s3v4", "s3"])
def test_forms_of_boto3(account, bucket, client, signature):
    presigning = s3.client(account, signature_version=signature)
    made = presigning.generate_presigned_post(bucket, "up/${filename}", Fields={"acl": "private", "Content-Type": "text/x"},
                                              Conditions=[{"acl": "private"}, ["starts-with", "$Content-Type", "text/"],
                                                          ["content-length-range", 1, 100]])
    assert send(made["url"], made["fields"]) == 204
    head = client.head_object(Bucket=bucket, Key="up/a.txt")
    assert (head["ContentType"], head["ContentLength"], head["ETag"]) == ("text/x", 7, ETAG)


def test_a_form_to_the_host_of_the_bucket(account, bucket, client):
    made = s3.client(account).generate_presigned_post(bucket, "k")
    host = f"{bucket}.s3.{account.name}.localhost"
    answer = s3.Raw(account).send("POST", "/", {"host": host, "content-type": KIND}, multipart.body(made["fields"].items()))
    assert (answer.status, answer.headers["location"]) == (204, f"http://{host}/k")
    assert stored(client, bucket) == CONTENT


def test_blob_reads_what_a_form_wrote(form, raw, service, bucket):
    form.fields.update({"Content-Type": "text/x", "x-amz-meta-Color": "green"})
    assert form.post(raw).status == 204
    blob = service.get_blob_client(bucket, "k")
    found = blob.get_blob_properties()
    assert (blob.download_blob().readall(), found.content_settings.content_type) == (CONTENT, "text/x")
    assert found.metadata == {"color": "green"}


# The object.

def test_fields_are_the_properties_of_the_object(form, raw, client, bucket):
    wanted = {"Content-Type": "text/plain", "Cache-Control": "max-age=60", "Content-Disposition": "attachment",
              "Content-Encoding": "gzip", "Content-Language": "de", "Expires": "Wed, 21 Oct 2037 07:28:00 GMT",
              "x-amz-meta-a": "1", "X-Amz-Meta-B": "two words", "x-amz-storage-class": "STANDARD_IA",
              "x-amz-website-redirect-location": "/other"}
    form.fields.update({**wanted, "acl": "public-read", "tagging": TAGGING})
    assert form.post(raw).status == 204
    answer = raw.call("HEAD", f"/{bucket}/k")
    assert {name: answer.headers[name.lower()] for name in wanted} == wanted
    assert answer.headers["x-amz-tagging-count"] == "2"
    tags = client.get_object_tagging(Bucket=bucket, Key="k")["TagSet"]
    assert tags == [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "x y"}]
    host = f"{bucket}.s3.{raw.account.name}.localhost"
    assert raw.send("GET", "/k", {"host": host}).body == CONTENT


def test_a_name_of_a_file_in_the_encoding_of_an_old_page(form, raw, client, bucket):
    form.fields["key"] = "in/${filename}"
    form.uncovered, form.conditions = {"key"}, [["starts-with", "$key", "in/"]]
    body = multipart.body(form.all()).replace(b'filename="a.txt"', b'filename="\xe4.txt"')
    assert raw.send("POST", f"/{bucket}", {"content-type": KIND}, body).status == 204
    assert stored(client, bucket, "in/ä.txt") == CONTENT


def test_the_type_of_the_part_is_not_that_of_the_object(form, raw, bucket):
    body = multipart.body(form.all()).replace(b'filename="a.txt"', b'filename="a.txt"\r\nContent-Type: image/png')
    assert raw.send("POST", f"/{bucket}", {"content-type": KIND}, body).status == 204
    assert raw.call("HEAD", f"/{bucket}/k").headers["content-type"] == "binary/octet-stream"


@pytest.mark.parametrize("filename, key", [
    ("a.txt", "in/a.txt"), ("C:\\dir\\a b.txt", "in/a b.txt"), ("/x/y/ä.txt", "in/ä.txt"), ("", "in/"), (None, "in/${filename}"),
    ('q\\"q', 'in/q"q'),
])
def test_the_name_of_the_file_takes_its_place(form, raw, client, bucket, filename, key):
    form.fields.update({"key": "in/${filename}", "x-ignore-x": "${filename}"})
    form.uncovered = {"key", "x-ignore-x"}
    form.conditions = [{"key": key}]
    assert form.post(raw, filename=filename).status == 204
    assert stored(client, bucket, key) == CONTENT


@pytest.mark.parametrize("key", ["a/b", "/a", "a//b", "a/../b", "ä €", "a+b%20c", "a?b#c", "x" * 1024, "k<&>\"'"])
def test_keys_are_what_the_field_says(form, raw, client, bucket, key):
    form.fields.update(key=key, success_action_status="201")
    answer = form.post(raw)
    assert (answer.status, answer.text("Key")) == (201, key)
    assert urllib.parse.unquote(answer.text("Location").split(f"/{bucket}/", 1)[1]) == key
    assert [found["Key"] for found in client.list_objects_v2(Bucket=bucket)["Contents"]] == [key]


@pytest.mark.parametrize("size", [0, 1, 511, 4096, 70000, 1 << 20, (1 << 20) + 1, (9 << 20) + 5])
def test_files_of_every_size(form, raw, client, bucket, size):
    content = (bytes(range(256)) + b"\r\n--" + BOUNDARY[:9].encode()) * (size // 256 + 1)
    content = content[:size]
    answer = form.post(raw, file=content)
    assert (answer.status, answer.headers["etag"]) == (204, f'"{hashlib.md5(content).hexdigest()}"')
    assert stored(client, bucket) == content


def test_a_body_in_chunks(form, raw, client, bucket):
    content = b"x" * (3 << 20)
    whole = multipart.body(form.all(), file=content)
    pieces = [whole[at:at + 10007] for at in range(0, len(whole), 10007)]
    assert raw.send("POST", f"/{bucket}", {"content-type": KIND}, iter(pieces)).status == 204
    assert stored(client, bucket) == content


@pytest.mark.parametrize("content", [b"\r\n", b"\r", b"--" + BOUNDARY.encode(), b"\r\n--" + BOUNDARY[:-1].encode(), b"\r\n" * 9])
@pytest.mark.parametrize("size", [1, 7, 64])
def test_what_looks_like_a_boundary(form, raw, client, bucket, content, size):
    whole = multipart.body(form.all(), file=content)
    head = whole.index(b'name="file"')
    pieces = [whole[:head], *(whole[at:at + size] for at in range(head, len(whole), size))]
    assert raw.send("POST", f"/{bucket}", {"content-type": KIND}, iter(pieces)).status == 204
    assert stored(client, bucket) == content


def test_fields_behind_the_file_are_ignored(form, raw, client, bucket):
    after = [("key", "other"), ("acl", "no list"), ("anything", "1"), ("file", "second")]
    assert form.post(raw, after=after).status == 204
    assert [found["Key"] for found in client.list_objects_v2(Bucket=bucket)["Contents"]] == ["k"]
    assert stored(client, bucket) == CONTENT


def test_names_of_fields_in_every_case(account, bucket, raw, client):
    form = Form(account, bucket)
    form.fields = {"KEY": "k", "content-TYPE": "text/x", "X-Ignore-Me": "1"}
    form.uncovered = {"X-Ignore-Me"}
    fields = [(name.upper() if name in ("policy", "x-amz-date") else name, value) for name, value in form.all()]
    body = multipart.body(fields).replace(b'name="file"', b'name="File"')
    assert raw.send("POST", f"/{bucket}", {"content-type": KIND}, body).status == 204
    assert client.head_object(Bucket=bucket, Key="k")["ContentType"] == "text/x"


@pytest.mark.parametrize("kind", ['multipart/form-data; boundary="{}"', "Multipart/Form-Data; charset=utf-8; Boundary={}"])
def test_spellings_of_the_kind(form, raw, kind):
    assert form.post(raw, {"content-type": kind.format(BOUNDARY)}).status == 204


def test_an_object_is_overwritten(form, raw, client, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"old", Metadata={"a": "b"})
    assert form.post(raw).status == 204
    assert client.head_object(Bucket=bucket, Key="k")["Metadata"] == {}
    assert stored(client, bucket) == CONTENT


def test_conditions_of_writes(form, raw, client, bucket):
    form.fields["If-None-Match"] = "*"
    assert form.post(raw).status == 204
    again = form.post(raw)
    assert (again.status, again.code()) == (412, "PreconditionFailed")
    form.fields = {"key": "k", "If-Match": ETAG}
    assert form.post(raw, file=b"new").status == 204
    assert form.post(raw, file=b"newer").status == 412
    assert stored(client, bucket) == b"new"


@pytest.mark.parametrize("field, value, expected", [
    ("x-amz-checksum-sha256", base64.b64encode(hashlib.sha256(CONTENT).digest()).decode(), None),
    ("x-amz-checksum-sha1", base64.b64encode(hashlib.sha1(CONTENT).digest()).decode(), None),
    ("Content-MD5", base64.b64encode(hashlib.md5(CONTENT).digest()).decode(), None),
    ("x-amz-checksum-sha256", base64.b64encode(hashlib.sha256(b"other").digest()).decode(), (400, "BadDigest")),
    ("x-amz-checksum-sha256", "sailorjerry", (400, "BadDigest")),
    ("x-amz-checksum-crc32", "AAAAAA==", (400, "BadDigest")),
    ("x-amz-checksum-crc32c", "AAAAAA==", (400, "BadDigest")),
    ("x-amz-checksum-crc64nvme", "AAAAAAAAAAA=", (400, "BadDigest")),
    ("x-amz-checksum-md9", "AAAAAA==", (400, "InvalidRequest")),
    ("Content-MD5", base64.b64encode(hashlib.md5(b"other").digest()).decode(), (400, "BadDigest")),
    ("Content-MD5", "no", (400, "InvalidDigest")),
])
def test_checksums_of_the_file(form, raw, client, bucket, field, value, expected):
    form.fields[field] = value
    answer = form.post(raw)
    if expected:
        assert (answer.status, answer.code()) == expected
        assert is_empty(client, bucket)
        return
    assert answer.status == 204
    if field != "Content-MD5":
        assert answer.headers[field] == value
        head = raw.call("HEAD", f"/{bucket}/k", headers={"x-amz-checksum-mode": "ENABLED"})
        assert head.headers[field] == value


def test_a_checksum_that_the_server_computes(form, raw, bucket):
    answer = form.post(raw)
    assert answer.headers["x-amz-checksum-type"] == "FULL_OBJECT" and answer.headers["x-amz-checksum-crc64nvme"]


def test_a_customer_key(form, raw, client, bucket):
    key = b"k" * 32
    md5 = base64.b64encode(hashlib.md5(key).digest()).decode()
    own = "x-amz-server-side-encryption-customer-"
    form.fields.update({own + "algorithm": "AES256", own + "key": base64.b64encode(key).decode(), own + "key-md5": md5})
    answer = form.post(raw)
    assert (answer.status, answer.headers[own + "key-md5"]) == (204, md5)
    got = client.get_object(Bucket=bucket, Key="k", SSECustomerAlgorithm="AES256", SSECustomerKey=key)
    assert got["Body"].read() == CONTENT
    # Each chunk is bound to the length, which a form does not state.
    large = form.post(raw, file=b"x" * (9 << 20))
    assert (large.status, large.code()) == (411, "MissingContentLength")


@pytest.mark.parametrize("fields, expected", [
    ({"x-amz-storage-class": "FakeClass"}, (400, "InvalidStorageClass")),
    ({"acl": "public"}, (400, "InvalidArgument")),
    ({"acl": "public-read-write"}, (501, "NotImplemented")),
    ({"x-amz-grant-read": "id=1"}, (501, "NotImplemented")),
    ({"x-amz-server-side-encryption": "aws:kms"}, (501, "NotImplemented")),
    ({"x-amz-object-lock-mode": "COMPLIANCE"}, (400, "InvalidArgument")),
    ({"x-amz-object-lock-legal-hold": "ON"}, (400, "InvalidRequest")),
    ({"x-amz-write-offset-bytes": "1"}, (501, "NotImplemented")),
    ({"x-amz-copy-source": "/b/k"}, (501, "NotImplemented")),
    ({"x-amz-website-redirect-location": "other"}, (400, "InvalidArgument")),
    ({"x-amz-meta-a": "x" * 2048}, (400, "MetadataTooLarge")),
    ({"x-amz-meta-a": "one\r\ntwo"}, (400, "InvalidArgument")),
    ({"x-amz-meta-a b": "1"}, (400, "InvalidArgument")),
    ({"x-amz-expected-bucket-owner": "000000000000"}, (403, "AccessDenied")),
    ({"tagging": "a=1"}, (400, "MalformedXML")),
    ({"tagging": "<Tagging><TagSet><Tag><Key>aws:a</Key><Value>1</Value></Tag></TagSet></Tagging>"}, (400, "InvalidTag")),
    ({"tagging": TAGGING, "x-amz-tagging": "a=1"}, (400, "InvalidArgument")),
    ({"tagging": "<Tagging><TagSet>" + "".join(f"<Tag><Key>{i}</Key><Value/></Tag>" for i in range(11)) + "</TagSet></Tagging>"},
     (400, "BadRequest")),
    ({"x-amz-checksum-sha1": "x", "x-amz-checksum-sha256": "x"}, None),
    ({"key": "x" * 1025}, (400, "KeyTooLongError")),
])
def test_fields_that_are_refused(form, raw, client, bucket, fields, expected):
    form.fields.update(fields)
    answer = form.post(raw)
    assert 400 <= answer.status < 502 and answer.status != 500
    if expected:
        assert (answer.status, answer.code()) == expected
    assert is_empty(client, bucket)


@pytest.mark.parametrize("header", ["x-amz-acl", "x-amz-meta-a", "x-amz-server-side-encryption", "x-amz-security-token", "if-none-match"])
def test_headers_that_only_fields_may_be(form, raw, client, bucket, header):
    answer = form.post(raw, {header: "x"})
    assert (answer.status, answer.code()) == (501, "NotImplemented")
    assert is_empty(client, bucket)


# The answer.

@pytest.mark.parametrize("status, expected", [(None, 204), ("200", 200), ("201", 201), ("204", 204), ("404", 204), ("", 204), ("x", 204)])
def test_status_of_the_answer(form, raw, bucket, status, expected):
    form.fields["key"] = "dir/k"
    if status is not None:
        form.fields["success_action_status"] = status
    answer = form.post(raw)
    location = f"http://{raw.address}/{bucket}/dir%2Fk"
    assert (answer.status, answer.headers["etag"], answer.headers["location"]) == (expected, ETAG, location)
    if expected == 201:
        assert answer.headers["content-type"] == "application/xml"
        found = [(element.tag, element.text) for element in answer.tree()]
        assert answer.tree().tag == "PostResponse"
        assert found == [("Location", location), ("Bucket", bucket), ("Key", "dir/k"), ("ETag", ETAG)]
    else:
        assert answer.body == b""
        assert answer.headers.get("content-length", "0") == "0"


@pytest.mark.parametrize("field", ["success_action_redirect", "redirect"])
@pytest.mark.parametrize("url, joint", [("http://h.example/done", "?"), ("https://h.example/?a=b", "&")])
def test_the_browser_goes_on(form, raw, client, bucket, field, url, joint):
    form.fields.update({"key": "a/b c", field: url, "success_action_status": "201"})
    answer = form.post(raw)
    etag = ETAG.strip('"')
    assert (answer.status, answer.body) == (303, b"")
    assert answer.headers["location"] == f"{url}{joint}bucket={bucket}&key=a%2Fb+c&etag=%22{etag}%22"
    assert stored(client, bucket, "a/b c") == CONTENT


@pytest.mark.parametrize("url", ["/relative", "ftp://h/", "javascript:alert(1)", "no url", "http://", "//h/"])
def test_what_is_no_url_of_http_is_not_gone_on_to(form, raw, url):
    form.fields["success_action_redirect"] = url
    answer = form.post(raw)
    assert answer.status == 204 and answer.headers["location"].startswith(f"http://{raw.address}/")


def test_a_refused_form_does_not_go_on(form, raw):
    form.fields["success_action_redirect"] = "http://h.example/"
    form.conditions = [{"acl": "private"}]
    answer = form.post(raw)
    assert answer.status == 403 and "location" not in answer.headers


# The policy.

@pytest.mark.parametrize("version", [4, 2])
@pytest.mark.parametrize("fields, conditions", [
    ({}, []),
    ({"acl": "private"}, [["eq", "$acl", "private"]]),
    ({"acl": "private"}, [["EQ", "$ACL", "private"]]),
    ({"key": "user/eric/a"}, [["starts-with", "$key", "user/eric/"]]),
    ({"key": "user/eric/a"}, [["StArTs-WiTh", "$KeY", ""]]),
    ({"Content-Type": "image/png, image/gif"}, [["starts-with", "$Content-Type", "image/"]]),
    ({"x-amz-meta-a": ""}, [["starts-with", "$x-amz-meta-a", ""]]),
    ({"x-unknown": "1"}, []),
    ({}, [["content-length-range", 7, 7]]),
    ({}, [["content-length-range", "0", "7"]]),
    ({}, [["content-length-range", 0, 10], ["content-length-range", 5, 5368709120]]),
    ({"success_action_status": "200"}, [["starts-with", "$success_action_status", "2"]]),
])
def test_conditions_that_hold(form, raw, client, bucket, version, fields, conditions):
    form.version, form.conditions = version, conditions
    form.fields.update(fields)
    assert form.post(raw).status in (200, 204)
    assert stored(client, bucket, form.fields["key"]) == CONTENT


@pytest.mark.parametrize("version", [4, 2])
@pytest.mark.parametrize("fields, conditions, text", [
    ({"acl": "private"}, [{"acl": "public-read"}], 'Policy Condition failed: ["eq", "$acl", "public-read"]'),
    ({}, [{"acl": "private"}], 'Policy Condition failed: ["eq", "$acl", "private"]'),
    ({}, [["starts-with", "$acl", ""]], 'Policy Condition failed: ["starts-with", "$acl", ""]'),
    ({"key": "A"}, [["eq", "$key", "a"]], 'Policy Condition failed: ["eq", "$key", "a"]'),
    ({"key": "k"}, [["eq", "key", "k"]], 'Policy Condition failed: ["eq", "key", "k"]'),
    ({"key": "other/a"}, [["starts-with", "$key", "user/"]], 'Policy Condition failed: ["starts-with", "$key", "user/"]'),
    ({"Content-Type": "image/png,text/html"}, [["starts-with", "$Content-Type", "image/"]],
     'Policy Condition failed: ["starts-with", "$Content-Type", "image/"]'),
    ({}, [{"bucket": "another"}], 'Policy Condition failed: ["eq", "$bucket", "another"]'),
    ({}, [{"x": 'a"b'}], 'Policy Condition failed: ["eq", "$x", "a\\"b"]'),
])
def test_conditions_that_fail(form, raw, client, bucket, version, fields, conditions, text):
    form.version, form.conditions = version, conditions
    form.fields.update(fields)
    assert outcome(form.post(raw)) == (403, "AccessDenied", DENIED + text)
    assert is_empty(client, bucket)


@pytest.mark.parametrize("version, name", [
    (4, "key"), (4, "bucket"), (4, "x-amz-date"), (4, "x-amz-credential"), (4, "x-amz-algorithm"), (4, "acl"), (4, "Content-Type"),
    (4, "tagging"), (4, "x-amz-meta-a"), (4, "success_action_status"), (4, "submit"), (4, "x-amz-checksum-sha256"), (2, "key"),
    (2, "bucket"), (2, "acl"),
])
def test_each_field_needs_a_condition(form, raw, client, bucket, version, name):
    form.version, form.uncovered = version, {name}
    if name.startswith("x-amz-") and name in ("x-amz-date", "x-amz-credential", "x-amz-algorithm") or name == "bucket":
        pass
    else:
        form.fields.setdefault(name, "1")
    assert outcome(form.post(raw)) == (403, "AccessDenied", f"{DENIED}Extra input fields: {name}")
    assert is_empty(client, bucket)


def test_several_fields_without_a_condition(form, raw):
    form.fields.update({"one": "1", "two": "2"})
    form.uncovered = {"one", "two"}
    assert outcome(form.post(raw))[2] == f"{DENIED}Extra input fields: one, two"


@pytest.mark.parametrize("seconds", [-1, -86400 * 400])
def test_expired_policies(form, raw, client, bucket, seconds):
    form.expiration = s3_forms.later(seconds)
    assert outcome(form.post(raw)) == (403, "AccessDenied", f"{DENIED}Policy expired.")
    assert is_empty(client, bucket)


END = "2999-01-01T00:00:00.000Z"


@pytest.mark.parametrize("policy, text", [
    ("", "Invalid JSON."), ("no json", "Invalid JSON."), ("[]", "Invalid JSON."), ('{"a": 1', "Invalid JSON."),
    ({"conditions": []}, "Policy missing expiration."),
    ({"expiration": END}, "Policy missing conditions."),
    ({"EXPIRATION": END, "conditions": []}, "Unexpected: 'expiration'"),
    ({"expiration": END, "CONDITIONS": []}, "Unexpected: 'conditions'"),
    ({"expiration": END, "conditions": [], "Statement": []}, "Unexpected: 'statement'"),
    ({"expiration": 1, "conditions": []}, "Invalid JSON."),
    ({"expiration": "tomorrow", "conditions": []}, "Invalid 'expiration' value: 'tomorrow'"),
    ({"expiration": "2999-01-01 00:00:00", "conditions": []}, "Invalid 'expiration' value: '2999-01-01 00:00:00'"),
    ({"expiration": "2999-01-01T00:00:00+02:00", "conditions": []}, "Invalid 'expiration' value: '2999-01-01T00:00:00+02:00'"),
    ({"expiration": "2999-02-30T00:00:00Z", "conditions": []}, "Invalid 'expiration' value: '2999-02-30T00:00:00Z'"),
    ({"expiration": END, "conditions": {}}, "Invalid 'conditions' value: must be a List."),
    ({"expiration": END, "conditions": [{}]},
     "Invalid Simple-Condition: Simple-Conditions must have exactly one property specified."),
    ({"expiration": END, "conditions": [{"a": "b", "c": "d"}]},
     "Invalid Simple-Condition: Simple-Conditions must have exactly one property specified."),
    ({"expiration": END, "conditions": [{"Content-Length": 5}]}, "Invalid Simple-Condition: value must be a string."),
    ({"expiration": END, "conditions": ["bucket"]}, "Invalid Condition: must be a List or Object."),
    ({"expiration": END, "conditions": [[]]}, "Invalid Condition: missing operation identifier."),
    ({"expiration": END, "conditions": [["ends-with", "$key", "k"]]}, "Invalid Condition: unknown operation 'ends-with'."),
    ({"expiration": END, "conditions": [["eq", "$key"]]}, "Invalid eq: wrong number of arguments."),
    ({"expiration": END, "conditions": [["content-length-range", 0]]}, "Invalid content-length-range: wrong number of arguments."),
    ({"expiration": END, "conditions": [["content-length-range", -1, 0]]}, None),
    ({"expiration": END, "conditions": [["content-length-range", 0, "x"]]}, None),
    ({"expiration": END, "conditions": [["content-length-range", 0, 1.5]]}, None),
    ('{"expiration": "' + END + '", "conditions": ' + "[" * 500 + "]" * 500 + "}", "Invalid JSON."),
])
def test_policies_that_cannot_be_read(form, raw, client, bucket, policy, text):
    form.policy = policy
    answer = form.post(raw)
    if policy == "":
        assert outcome(answer) == (400, "InvalidArgument", missing("policy"))
        return
    assert (answer.status, answer.code()) == (400, "InvalidPolicyDocument")
    assert answer.text("Message").startswith(POLICY) and text in (None, answer.text("Message")[len(POLICY):])
    assert is_empty(client, bucket)


def test_escapes_of_policies(form, raw, client, bucket):
    form.fields.update({"key": "$k", "x-other": "a\x0bb"})
    conditions = [{name: value} for name, value in (("bucket", bucket),)]
    form.version = 2
    form.policy = (json.dumps({"expiration": END, "conditions": conditions})[:-2]
                   + r', ["eq", "\$key", "\$k"], {"x-other": "a\vb"}]}')
    assert form.post(raw).status == 204
    assert stored(client, bucket, "$k") == CONTENT


@pytest.mark.parametrize("low, high, size, expected", [
    (5, 10, 4, (400, "EntityTooSmall")), (5, 10, 5, None), (5, 10, 10, None), (5, 10, 11, (400, "EntityTooLarge")),
    (0, 0, 0, None), (0, 0, 1, (400, "EntityTooLarge")), (9, 3, 5, (400, "EntityTooLarge")),
    (0, 2 << 20, (2 << 20) + 1, (400, "EntityTooLarge")), (3 << 20, 4 << 20, 2 << 20, (400, "EntityTooSmall")),
])
def test_the_length_of_the_file_has_limits(form, raw, client, bucket, low, high, size, expected):
    form.conditions = [["content-length-range", low, high]]
    answer = form.post(raw, file=b"x" * size)
    if expected is None:
        assert answer.status == 204
        return
    assert (answer.status, answer.code()) == expected
    assert "allowed size" in answer.text("Message")
    assert is_empty(client, bucket)


# Who signs.

def missing(name):
    return f"Bucket POST must contain a field named '{name}'.  If it is specified, please check the order of the fields."


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


# Bodies that are wrong.

@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/mixed; boundary=x", "text/html", None])
def test_what_is_no_form(form, raw, bucket, kind):
    headers = {"host": f"{bucket}.s3.{raw.account.name}.localhost", **({"content-type": kind} if kind else {})}
    answer = raw.send("POST", "/", headers, b"key=k")
    assert (answer.status, answer.code()) == (412, "PreconditionFailed")
    assert answer.text("Condition") == "Bucket POST must be of the enclosure-type multipart/form-data"


MALFORMED = "The body of your POST request is not well-formed multipart/form-data."
LONG = "Your POST request fields preceding the upload file were too large."


@pytest.mark.parametrize("body, code, text", [
    (b"", "MalformedPOSTRequest", MALFORMED),
    (b"key=k&file=x", "MalformedPOSTRequest", MALFORMED),
    (f"--{BOUNDARY}".encode(), "MalformedPOSTRequest", MALFORMED),
    (f"--{BOUNDARY}x\r\n".encode(), "MalformedPOSTRequest", MALFORMED),
    (f"--{BOUNDARY}\r\n\r\nx\r\n--{BOUNDARY}--".encode(), "MalformedPOSTRequest", MALFORMED),
    (f"--{BOUNDARY}\r\nContent-Disposition: file; name=\"file\"\r\n\r\nx\r\n--{BOUNDARY}--".encode(), "MalformedPOSTRequest", MALFORMED),
    (f"--{BOUNDARY}\nContent-Disposition: form-data; name=\"key\"\n\nk\n--{BOUNDARY}--\n".encode(), "MalformedPOSTRequest", MALFORMED),
    (multipart.body([("key", b"\xff")]), "MalformedPOSTRequest", MALFORMED),
    (multipart.body([("key", "k")], file=None, end=""), "MalformedPOSTRequest", MALFORMED),
    (multipart.body([("key", "k")], file=None), "InvalidArgument", "POST requires exactly one file upload per request."),
    (multipart.body([("key", "k")], file=None, after=[("upload", "x")]), "InvalidArgument",
     "POST requires exactly one file upload per request."),
    (f"--{BOUNDARY}--".encode(), "InvalidArgument", "POST requires exactly one file upload per request."),
    (multipart.body([]), "InvalidArgument", missing("key")),
    (multipart.body([], after=[("key", "k")]), "InvalidArgument", missing("key")),
    (multipart.body([("key", "")]), "InvalidArgument", "User key must have a length greater than 0."),
    (multipart.body([("key", "k"), ("KEY", "l")]), "InvalidArgument", "The form has several fields of the name 'key'."),
    (multipart.body([("key", "k"), ("x-ignore-a", "x" * 20480)]), "MaxPostPreDataLengthExceeded", LONG),
    (multipart.body([("key", "k"), *((f"x-ignore-{number}", "x") for number in range(400))]), "MaxPostPreDataLengthExceeded", LONG),
    (multipart.body([("key", "k"), ("not-file", "x" * (3 << 20))], file=None), "MaxPostPreDataLengthExceeded", LONG),
])
def test_bodies_that_cannot_be_read(raw, client, bucket, body, code, text):
    headers = {"host": f"{bucket}.s3.{raw.account.name}.localhost", "content-type": KIND}
    answer = raw.send("POST", "/", headers, body)
    assert outcome(answer) == (400, code, text)
    assert is_empty(client, bucket)


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary=", f"multipart/form-data; boundary={'x' * 300}"])
def test_boundaries_that_are_none(form, raw, kind):
    answer = form.post(raw, {"content-type": kind})
    assert (answer.status, answer.code()) == (400, "MalformedPOSTRequest")


@pytest.mark.parametrize("file", [CONTENT, b"x" * (5 << 20)])
@pytest.mark.parametrize("end", ["", f"--{BOUNDARY}", f"--{BOUNDARY}-", f"--{BOUNDARY}\r\n", f"--{BOUNDARY}xx--"])
def test_forms_without_an_end(form, raw, client, bucket, file, end):
    answer = form.post(raw, file=file, end=end)
    assert (answer.status, answer.code()) == (400, "MalformedPOSTRequest")
    assert is_empty(client, bucket)


def test_too_much_behind_the_file(form, raw, client, bucket):
    answer = form.post(raw, after=[("more", "x" * 30000)])
    assert (answer.status, answer.code()) == (400, "MalformedPOSTRequest")
    assert is_empty(client, bucket)


@pytest.mark.parametrize("keep", [200, 900, -40, -3])
def test_a_client_that_goes_away(form, raw, client, bucket, keep):
    body = multipart.body(form.all(), file=b"x" * 100000)
    host, port = raw.address.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        head = f"POST /{bucket} HTTP/1.1\r\nHost: {raw.address}\r\nContent-Type: {KIND}\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body[:keep])
        connection.shutdown(socket.SHUT_WR)
        answer = io.BytesIO(connection.recv(65536)).readline()
    assert answer == b"" or answer.split()[1].startswith(b"4")
    assert is_empty(client, bucket)


@pytest.mark.parametrize("method, path", [("POST", "/{}/k"), ("POST", "/")])
def test_forms_are_for_buckets(form, raw, bucket, method, path):
    host = f"s3.{raw.account.name}.localhost"
    answer = form.post(raw, {"host": host}, path.format(bucket))
    assert answer.status in (403, 405) and answer.code() in ("MethodNotAllowed", "AccessDenied")


@pytest.mark.parametrize("query", ["acl", "versioning", "uploads", "cors"])
def test_a_query_asks_for_something_else(form, raw, client, bucket, query):
    host = f"{bucket}.s3.{raw.account.name}.localhost"
    answer = form.post(raw, {"host": host}, f"/?{query}")
    assert answer.status in (403, 405)
    assert is_empty(client, bucket)


def test_a_bucket_that_is_not_there(form, raw):
    form.bucket = "no-such-bucket-at-all"
    answer = form.post(raw)
    assert (answer.status, answer.code()) == (404, "NoSuchBucket")


def test_names_that_are_no_bucket(form, raw):
    form.bucket = "No_Bucket"
    answer = form.post(raw)
    assert answer.status in (400, 404) and answer.code() in ("InvalidBucketName", "NoSuchBucket")


def test_expect_continue(form, raw, client, bucket):
    assert form.post(raw, {"expect": "100-continue"}).status in (204,)
    assert stored(client, bucket) == CONTENT

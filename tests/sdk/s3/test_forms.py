"""Browser forms: POST Object. What SDKs make, the object, the answer."""

import base64
import hashlib
import urllib.parse
import urllib.request

import pytest

from lib import multipart, s3
from lib.multipart import BOUNDARY, KIND
from lib.s3_forms import CONTENT, Form, is_empty, stored

ETAG = f'"{hashlib.md5(CONTENT).hexdigest()}"'
TAGGING = "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag><Tag><Key>b</Key><Value>x y</Value></Tag></TagSet></Tagging>"


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

"""Bodies of browser forms that are wrong, and forms to URLs that are not buckets."""

import io
import socket

import pytest

from lib import multipart
from lib.multipart import BOUNDARY, KIND
from lib.s3_forms import CONTENT, is_empty, missing, outcome, stored


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

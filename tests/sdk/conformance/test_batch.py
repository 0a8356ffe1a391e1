"""Blob Batch: many deletions in one request, each with its own signature and answer."""

import datetime

import pytest
import requests
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import PartialBatchErrorException, generate_container_sas
from conftest import put_many
from lib.wire import VERSION


def test_batch_deletes_what_it_names(container):
    names = [f"dir/b {n:03}\u00e4" for n in range(100)]
    put_many(container, names + ["kept"])
    answers = list(container.delete_blobs(*names))
    assert [answer.status_code for answer in answers] == [202] * 100
    assert [blob.name for blob in container.list_blobs()] == ["kept"]


def test_parts_fail_alone_and_are_answered_in_order(container):
    put_many(container, ["a", "c"])
    with pytest.raises(PartialBatchErrorException) as caught:
        container.delete_blobs("a", "b", "c")
    assert [part.status_code for part in caught.value.parts] == [202, 404, 202]
    assert not list(container.list_blobs())
    put_many(container, ["a"])
    answers = list(container.delete_blobs("b", "a", raise_on_any_failure=False))
    assert [(part.status_code, part.headers.get("x-ms-error-code")) for part in answers] == \
        [(404, "BlobNotFound"), (202, None)]


def test_conditions_hold_part_by_part(container):
    made = {name: container.upload_blob(name, b"x").get_blob_properties() for name in ("a", "b")}
    answers = list(container.delete_blobs(
        {"name": "a", "etag": made["a"].etag}, {"name": "b", "etag": made["a"].etag}, raise_on_any_failure=False))
    assert [part.status_code for part in answers] == [202, 412]


def test_parts_without_a_body_end_with_their_headers(account, container):
    """As recorded answers do. azure-storage-blob-batch for Java takes two more bytes for a body, and a body for a failure."""
    put_many(container, ["a"])
    signature = generate_container_sas(account.name, container.container_name, account_key=account.key, permission="d",
                                       expiry=datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1))
    paths = [f"/{container.container_name}/{name}?{signature}" for name in ("a", "missing")]
    parts = "".join(f"--b\r\nContent-Type: application/http\r\n\r\nDELETE {path} HTTP/1.1\r\n\r\n" for path in paths)
    answer = requests.post(f"{container.url}?restype=container&comp=batch&{signature}", timeout=60, data=f"{parts}--b--\r\n",
                           headers={"content-type": "multipart/mixed; boundary=b", "x-ms-version": VERSION})
    boundary = answer.headers["content-type"].partition("boundary=")[2]
    _, deleted, missing, end = answer.text.split(f"--{boundary}")
    assert "HTTP/1.1 202 Accepted\r\n" in deleted and deleted.count("\r\n\r\n") == 2
    assert deleted.endswith("\r\n\r\n") and not deleted.endswith("\r\n\r\n\r\n")
    assert missing.endswith("</Error>\r\n") and end == "--\r\n"


def test_batch_on_the_account(service, container, wire):
    """The account's own batch takes parts of any of its containers."""
    put_many(container, ["a"])
    part = (f"--b\r\nContent-Type: application/http\r\nContent-ID: x\r\n\r\n"
            f"DELETE /{container.container_name}/a HTTP/1.1\r\n\r\n--b--\r\n").encode()
    answer = wire.request("POST", "/", {"comp": "batch"}, {"content-type": "multipart/mixed; boundary=b"}, part)
    assert answer.status == 202 and answer.headers["content-type"].startswith("multipart/mixed; boundary=")
    assert b"Content-ID: x" in answer.body
    assert b"HTTP/1.1 401" in answer.body or b"HTTP/1.1 404" in answer.body, "an unsigned part is not let in"
    assert service.get_blob_client(container.container_name, "a").exists()


def test_other_operations_are_refused(container, wire):
    put_many(container, ["a"])
    part = (f"--b\r\nContent-Type: application/http\r\n\r\nGET /{container.container_name}/a HTTP/1.1\r\n\r\n"
            "--b--\r\n").encode()
    for body in (part[:-5], b"", b"nothing"):
        answer = batch(wire, container, "multipart/mixed; boundary=b", body)
        assert fault(answer) == ("400 One of the request inputs is not valid.", "InvalidInput"), answer


def batch(wire, container, content_type, body):
    """A Blob Batch on a container."""
    query = {"restype": "container", "comp": "batch"}
    return wire.request("POST", f"/{container.container_name}", query, {"content-type": content_type}, body)


def fault(answer):
    """Status and words, and the code, of the only part of an answer."""
    assert answer.status == 202 and answer.headers["content-type"].startswith("multipart/mixed; boundary=batchresponse_")
    boundary = answer.headers["content-type"].partition("boundary=")[2].encode()
    assert answer.body.count(b"--" + boundary) == 2 and b"Content-ID" not in answer.body
    inside = answer.body.partition(b"HTTP/1.1 ")[2].decode()
    headers = dict(line.split(": ", 1) for line in inside.partition("\r\n\r\n")[0].split("\r\n")[1:])
    code = headers["x-ms-error-code"]
    assert f"<Code>{code}</Code>" in inside and headers["content-type"] == "application/xml"
    return inside.partition("\r\n")[0], code


def test_errors_of_the_whole_batch_are_returned_in_a_part(container, wire):
    part = f"--b\r\nContent-Type: application/http\r\n\r\nDELETE /{container.container_name}/a HTTP/1.1\r\n\r\n"
    body = (part + "--b--\r\n").encode()
    format_of_header = "400 The value for one of the HTTP headers is not in the correct format."
    for content_type in ("multipart/mixed", "multipart/mixed; boundary="):
        assert fault(batch(wire, container, content_type, body)) == (format_of_header, "InvalidHeaderValue"), content_type
    twice = batch(wire, container, "multipart/mixed; boundary=b; boundary=c", body)
    assert fault(twice) == ("400 One of the request inputs is not valid.", "InvalidInput")
    many = batch(wire, container, "multipart/mixed; boundary=b", (257 * part + "--b--\r\n").encode())
    assert fault(many)[1] == "ExceedsMaxBatchRequestCount"
    unusual = "===============530=="
    answer = batch(wire, container, f"multipart/mixed;  Boundary={unusual}", body.replace(b"--b", f"--{unusual}".encode()))
    assert answer.status == 202 and b"HTTP/1.1 40" in answer.body, "an unsigned part is not let in"


def test_too_many_parts(container):
    with pytest.raises(HttpResponseError):
        container.delete_blobs(*[f"b{n}" for n in range(257)])

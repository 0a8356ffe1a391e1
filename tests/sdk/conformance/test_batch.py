"""Blob Batch: many deletions in one request, each with its own signature and answer."""

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import PartialBatchErrorException
from conftest import put_many


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
        answer = wire.request("POST", f"/{container.container_name}", {"restype": "container", "comp": "batch"},
                              {"content-type": "multipart/mixed; boundary=b"}, body)
        assert (answer.status, answer.code) == (400, "InvalidInput")


def test_too_many_parts(container):
    with pytest.raises(HttpResponseError) as caught:
        container.delete_blobs(*[f"b{n}" for n in range(257)])
    assert caught.value.status_code == 400

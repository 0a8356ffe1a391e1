"""Blob names: every unusual one is stored, listed, read and deleted under exactly its own name."""

import email.utils
import http.client
import urllib.parse

import pytest
from lib.content import content
from lib.wire import signature

NAMES = [
    "plain", "with space", " leading", "trailing ", "two  spaces", "plus+plus", "a+b c", "percent%", "percent%41", "%2F",
    "%", "%z", "slash/inside", "slash/at/end/", "//", "/leading", "a//b", "dot.", "dots..",
    "question?mark", "hash#mark", "amp&ersand", "equals=", "semi;colon", "comma,", "colon:", "at@", "excl!", "quote'",
    'double"quote', "tilde~", "paren()", "brackets[]", "braces{}", "less<more>", "pipe|", "caret^", "grave`", "star*",
    "dollar$", "grüße", "e\u0301", "é", "日本語", "кириллица", "עברית", "\U0001f600", "\uff5e", "\u00a0", "\u200b",
    "a" * 1024, "ü" * 1024, "d/" * 250 + "end", "$root", "$web", "comp=list", "?restype=container", "index.html", "-", "_",
]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: urllib.parse.quote(name)[:30])
def test_round_trip(container, name):
    data = content(name, 100)
    blob = container.get_blob_client(name)
    blob.upload_blob(data, metadata={"a": "b"})
    assert blob.download_blob().readall() == data
    listed = list(container.list_blobs())
    assert [(b.name, b.size) for b in listed] == [(name, 100)]
    assert [b.name for b in container.list_blobs(name_starts_with=name[:3])] == [name]
    blob.stage_block("AAAA", b"other")
    blob.commit_block_list(["AAAA"])
    assert blob.download_blob().readall() == b"other"
    blob.delete_blob()
    assert list(container.list_blobs()) == []


def test_all_together(container):
    for name in NAMES:
        container.upload_blob(name, content(name, 64))
    assert [b.name for b in container.list_blobs()] == sorted(NAMES, key=lambda name: name.encode("utf-16-be"))
    for name in NAMES:
        assert container.download_blob(name).readall() == content(name, 64)


def test_different_spellings_of_one_name(account, container):
    """A slash sent as %2F and a plus sent as it is are what AzCopy does."""
    container.upload_blob("dir/a+b", b"here")
    # Sent exactly as spelled, which no SDK lets one do.
    for spelling in ("dir/a+b", "dir%2Fa+b", "dir%2fa%2Bb", "%64ir/a%2Bb"):
        path = f"/{account.name}/{container.container_name}/{spelling}"
        headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2025-07-05"}
        headers["authorization"] = f"SharedKey {account.name}:" + \
            signature(account.name, account.key, "GET", path, {}, headers)
        connection = http.client.HTTPConnection(account.address)
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"here"), spelling


def test_too_long(wire, container):
    answer = wire.request("PUT", f"/{container.container_name}/" + "a" * 1025, headers={"x-ms-blob-type": "BlockBlob"})
    assert (answer.status, answer.code) == (400, "OutOfRangeInput")

"""Bodies of objects: sizes, lengths, Expect, ranges."""

import hashlib
import socket

import pytest

from lib import s3

from conftest import outcome

CONTENT = b"0123456789"


# Bodies.

@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 4095, 4096, 4097, 65536, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_bodies_of_any_size_come_back(raw, bucket, size):
    body = (hashlib.sha256(str(size).encode()).digest() * (size // 32 + 1))[:size]
    put = raw.call("PUT", f"/{bucket}/k", body=body)
    assert put.headers["etag"] == f'"{hashlib.md5(body).hexdigest()}"'
    got = raw.call("GET", f"/{bucket}/k")
    assert got.body == body and got.headers["content-length"] == str(size)
    assert got.headers["etag"] == put.headers["etag"]


@pytest.mark.parametrize("size", [0, 10, 100000])
def test_a_body_in_chunks_of_http_needs_no_length(raw, bucket, size):
    pieces = [b"x" * 1000] * (size // 1000) if size >= 1000 else [b"x" * size] if size else []
    signed = raw.sign("PUT", f"/{bucket}/k")
    assert raw.send("PUT", f"/{bucket}/k", signed, iter(pieces)).status == 200
    assert raw.call("GET", f"/{bucket}/k").body == b"".join(pieces)


def test_neither_length_nor_chunks_is_411(raw, bucket):
    signed = raw.sign("PUT", f"/{bucket}/k")
    head = f"PUT /{bucket}/k HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in signed.items()) + "\r\n"
    answer = talk(raw, head.encode())
    assert b" 411 " in answer.split(b"\r\n")[0] and b"MissingContentLength" in answer


def talk(raw, sent, close=False):
    """Sends bytes and returns what comes until the other side is silent or closes."""
    host, port = raw.address.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(sent)
        if close:
            connection.shutdown(socket.SHUT_WR)
        connection.settimeout(1.5)
        out = b""
        try:
            while piece := connection.recv(65536):
                out += piece
        except TimeoutError:
            pass
        return out


def test_a_body_that_ends_early_stores_nothing(raw, bucket):
    signed = {**raw.sign("PUT", f"/{bucket}/k"), "content-length": "100"}
    head = f"PUT /{bucket}/k HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in signed.items()) + "\r\n"
    answer = talk(raw, head.encode() + b"short", close=True)
    assert not answer or b"IncompleteBody" in answer
    assert raw.call("GET", f"/{bucket}/k").status == 404


def test_a_body_beyond_five_gib_is_refused_before_it_comes(raw, bucket):
    signed = {**raw.sign("PUT", f"/{bucket}/k"), "content-length": str((5 << 30) + 1), "expect": "100-continue"}
    head = f"PUT /{bucket}/k HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in signed.items()) + "\r\n"
    answer = talk(raw, head.encode())
    assert b" 400 " in answer.split(b"\r\n")[0] and b"<Code>EntityTooLarge</Code>" in answer
    assert b"<MaxSizeAllowed>5368709120</MaxSizeAllowed>" in answer


@pytest.mark.parametrize("length", ["x", "-1", "1, 2"])
def test_a_broken_length_is_refused(raw, bucket, length):
    signed = {**raw.sign("PUT", f"/{bucket}/k"), "content-length": length}
    head = f"PUT /{bucket}/k HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in signed.items()) + "\r\n"
    assert b" 400 " in talk(raw, head.encode() + b"x").split(b"\r\n")[0]


def expecting(raw, path, headers):
    """Sends a head with Expect, and the body only when it is asked for; the status lines."""
    signed = {**headers, "content-length": "4", "expect": "100-continue"}
    host, port = raw.address.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        head = f"PUT {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in signed.items()) + "\r\n"
        connection.sendall(head.encode())
        first = connection.recv(65536)
        if b" 100 " not in first.split(b"\r\n")[0]:
            return [first.split(b"\r\n")[0]]
        connection.sendall(b"body")
        return [first.split(b"\r\n")[0], connection.recv(65536).split(b"\r\n")[0]]


def test_who_is_let_in_is_asked_for_the_body(raw, bucket):
    path = f"/{bucket}/k"
    lines = expecting(raw, path, raw.sign("PUT", path))
    assert b" 100 " in lines[0] and b" 200 " in lines[1]
    assert raw.call("GET", path).body == b"body"


@pytest.mark.parametrize("case, status", [("wrong key", b"403"), ("no bucket", b"404"), ("condition", b"412"), ("header", b"501"),
                                          ("length", b"400")])
def test_who_is_not_let_in_is_not_asked_for_the_body(raw, account, bucket, case, status):
    path = f"/{bucket}/k"
    raw.call("PUT", path, body=b"old")
    signed = {
        "wrong key": lambda: s3.Raw(account, secret="wrong").sign("PUT", path),
        "no bucket": lambda: raw.sign("PUT", "/no-such-bucket/k"),
        "condition": lambda: raw.sign("PUT", path, headers={"if-none-match": "*"}),
        "header": lambda: raw.sign("PUT", path, headers={"x-amz-write-offset-bytes": "1"}),
        "length": lambda: raw.sign("PUT", path, headers={"x-amz-storage-class": "SNOW"}),
    }[case]()
    lines = expecting(raw, "/no-such-bucket/k" if case == "no bucket" else path, signed)
    if case == "condition":
        # The partition decides, when the body is in.
        assert status in lines[-1]
    else:
        assert len(lines) == 1 and status in lines[0]
    assert raw.call("GET", path).body == b"old"


# Ranges.

@pytest.mark.parametrize("value, expected", [
    ("bytes=0-0", (0, 0)), ("bytes=0-", (0, 9)), ("bytes=3-5", (3, 5)), ("bytes=9-9", (9, 9)), ("bytes=5-100", (5, 9)),
    ("bytes=-1", (9, 9)), ("bytes=-3", (7, 9)), ("bytes=-10", (0, 9)), ("bytes=-100", (0, 9)),
    ("bytes=0-99999999999999999999", (0, 9)), ("Bytes=1-2", (1, 2))])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_range_is_a_part(raw, bucket, method, value, expected):
    raw.call("PUT", f"/{bucket}/k", body=CONTENT)
    answer = raw.call(method, f"/{bucket}/k", headers={"range": value})
    first, last = expected
    assert answer.status == 206 and answer.headers["content-range"] == f"bytes {first}-{last}/10"
    assert answer.headers["content-length"] == str(last - first + 1)
    assert answer.body == (CONTENT[first:last + 1] if method == "GET" else b"")


@pytest.mark.parametrize("value", [
    "bytes=0-1,3-4", "bytes=0-1, -2", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-3", "bytes 0-1", "lines=0-1", "0-1", "bytes=1--2",
    "bytes=+1-2", "bytes=0x1-2"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_other_ranges_give_the_whole(raw, bucket, method, value):
    raw.call("PUT", f"/{bucket}/k", body=CONTENT)
    answer = raw.call(method, f"/{bucket}/k", headers={"range": value})
    assert answer.status == 200 and answer.headers["content-length"] == "10" and "content-range" not in answer.headers


@pytest.mark.parametrize("value", ["bytes=10-", "bytes=10-10", "bytes=100-200", "bytes=-0", "bytes=99999999999999999999-"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_range_beyond_the_end_is_416_with_the_length(raw, bucket, method, value):
    raw.call("PUT", f"/{bucket}/k", body=CONTENT)
    answer = raw.call(method, f"/{bucket}/k", headers={"range": value})
    assert outcome(answer) == (416, "InvalidRange") and answer.headers["content-range"] == "bytes */10"
    if method == "GET":
        assert answer.text("ActualObjectSize") == "10"


@pytest.mark.parametrize("value", ["bytes=0-0", "bytes=0-", "bytes=-1"])
def test_an_empty_object_has_no_range(raw, bucket, value):
    raw.call("PUT", f"/{bucket}/k", body=b"")
    assert outcome(raw.call("GET", f"/{bucket}/k", headers={"range": value})) == (416, "InvalidRange")

"""Bodies in chunks, their signatures and trailers, and hashes of payloads, broken in turn."""

import pytest

from lib import s3, s3_signing
from lib.s3_signing import SIGNED, SIGNED_TRAILER, UNSIGNED_TRAILER, crc32

from conftest import outcome

WRONG = (403, "SignatureDoesNotMatch")
ARGUMENT = (400, "InvalidArgument")

CONTENT = [b"a" * 8192, b"b" * 100]
TRAILER = [("x-amz-checksum-crc32", crc32(b"".join(CONTENT)))]
FORMS = {SIGNED: [], SIGNED_TRAILER: TRAILER, UNSIGNED_TRAILER: TRAILER}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("contents", [CONTENT, [b""], [b"x"], [b"x" * 70000]], ids=["two", "empty", "one", "large"])
def test_bodies_in_chunks_are_stored(raw, bucket, form, contents):
    contents = [piece for piece in contents if piece]
    whole = b"".join(contents)
    trailers = [("x-amz-checksum-crc32", crc32(whole))] if FORMS[form] else []
    answer = s3_signing.put(raw, f"/{bucket}/k", contents, form, trailers)
    assert answer.status == 200, answer.body
    got = raw.call("GET", f"/{bucket}/k", headers={"x-amz-checksum-mode": "ENABLED"})
    assert got.body == whole and "content-encoding" not in got.headers
    if trailers:
        assert got.headers["x-amz-checksum-crc32"] == trailers[0][1]


def flip(text):
    """Another signature."""
    return ("0" if text[0] != "0" else "1") + text[1:]


def sign_chunk(number, value):
    """Sets or changes the signature of a chunk."""
    def change(body):
        old = body.chunks[number].signature
        body.chunks[number].signature = value(old) if callable(value) else value
    return change


def of_chunk(number, **fields):
    """Changes a chunk."""
    return lambda body: [setattr(body.chunks[number], name, value) for name, value in fields.items()]


def swap(body):
    """The chunks in another order."""
    body.chunks[0], body.chunks[1] = body.chunks[1], body.chunks[0]


SHORT = (400, "IncompleteBody")
BROKEN_CHUNKS = {
    "signature of the first chunk": (sign_chunk(0, flip), WRONG),
    "signature of the second chunk": (sign_chunk(1, flip), WRONG),
    "signature of the last chunk": (sign_chunk(2, flip), WRONG),
    "no signature of the first chunk": (sign_chunk(0, None), SHORT),
    "no signature of the last chunk": (sign_chunk(2, None), SHORT),
    "empty signature": (sign_chunk(0, ""), WRONG),
    "content of the first chunk": (of_chunk(0, content=b"z" * 8192), WRONG),
    "content of the second chunk": (of_chunk(1, content=b"z" * 100), WRONG),
    "chunks swapped": (swap, WRONG),
    "a chunk left out": (lambda body: body.chunks.pop(0), WRONG),
    "a chunk twice": (lambda body: body.chunks.insert(0, body.chunks[0]), WRONG),
    "no last chunk": (lambda body: body.chunks.pop(), SHORT),
    "a size that is too small": (of_chunk(0, size="1fff"), SHORT),
    "a size that is too large": (of_chunk(0, size="2001"), SHORT),
    "a size that is not hexadecimal": (of_chunk(0, size="zz"), SHORT),
    "a negative size": (of_chunk(0, size="-1"), SHORT),
    "an empty size": (of_chunk(0, size=""), SHORT),
    "a huge size": (of_chunk(0, size="ffffffffffffffff"), SHORT),
    "a size of too many digits": (of_chunk(0, size="0" * 300), SHORT),
    "no end": (lambda body: setattr(body, "tail", b""), SHORT),
    "bytes after the end": (lambda body: setattr(body, "tail", b"\r\nmore"), SHORT),
}
EITHER = {"a chunk left out", "a chunk twice", "chunks swapped", "a size that is too large"}


@pytest.mark.parametrize("form", [SIGNED, SIGNED_TRAILER])
@pytest.mark.parametrize("case", BROKEN_CHUNKS)
def test_a_broken_signed_body_is_refused_and_nothing_is_stored(raw, shared, form, case):
    change, expected = BROKEN_CHUNKS[case]
    path = f"/{shared}/new"
    found = outcome(s3_signing.put(raw, path, CONTENT, form, FORMS[form], change))
    assert found == expected or case in EITHER and found in (WRONG, SHORT)
    assert raw.call("GET", path).status == 404


def set_trailers(*trailers, signature=True):
    """Replaces the trailers; with `signature` that of the old ones stays."""
    def change(body):
        body.trailers = list(trailers)
        if not signature:
            body.trailer_signature = None
    return change


BROKEN_TRAILERS = {
    (SIGNED_TRAILER, "signature"): (lambda body: setattr(body, "trailer_signature", flip(body.trailer_signature)), WRONG),
    (SIGNED_TRAILER, "empty signature"): (lambda body: setattr(body, "trailer_signature", ""), WRONG),
    (SIGNED_TRAILER, "no signature"): (lambda body: setattr(body, "trailer_signature", None), SHORT),
    (SIGNED_TRAILER, "other value"): (set_trailers(("x-amz-checksum-crc32", crc32(b"other"))), WRONG),
    (SIGNED_TRAILER, "missing"): (set_trailers(), WRONG),
    (SIGNED_TRAILER, "a further one"): (set_trailers(*TRAILER, ("x-amz-meta-a", "1")), WRONG),
    (UNSIGNED_TRAILER, "other value"): (set_trailers(("x-amz-checksum-crc32", crc32(b"other"))), (400, "BadDigest")),
    (UNSIGNED_TRAILER, "not base64"): (set_trailers(("x-amz-checksum-crc32", "*")), (400, "BadDigest")),
    (UNSIGNED_TRAILER, "too short"): (set_trailers(("x-amz-checksum-crc32", "AAA=")), (400, "BadDigest")),
    (UNSIGNED_TRAILER, "missing"): (set_trailers(), SHORT),
    (UNSIGNED_TRAILER, "twice"): (set_trailers(*TRAILER, *TRAILER), SHORT),
    (UNSIGNED_TRAILER, "of another algorithm"): (set_trailers(("x-amz-checksum-sha1", "AAAA")), (400, "BadDigest")),
    (UNSIGNED_TRAILER, "too long"): (set_trailers(*TRAILER, ("x-amz-meta-a", "1" * 5000)), SHORT),
    (UNSIGNED_TRAILER, "too many"): (set_trailers(*TRAILER, *((f"x-amz-meta-{n}", "1") for n in range(20))), SHORT),
    (UNSIGNED_TRAILER, "signed chunk"): (sign_chunk(0, "0" * 64), SHORT),
    (UNSIGNED_TRAILER, "no end"): (lambda body: setattr(body, "tail", b""), SHORT),
    (UNSIGNED_TRAILER, "content"): (of_chunk(1, content=b"z" * 100), (400, "BadDigest")),
}


@pytest.mark.parametrize("form, case", BROKEN_TRAILERS)
def test_broken_trailers_are_refused_and_nothing_is_stored(raw, shared, form, case):
    change, expected = BROKEN_TRAILERS[form, case]
    path = f"/{shared}/new"
    assert outcome(s3_signing.put(raw, path, CONTENT, form, FORMS[form], change)) == expected
    assert raw.call("GET", path).status == 404


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("length, expected", [
    (None, (411, "MissingContentLength")), ("8291", SHORT), ("8293", SHORT), ("x", ARGUMENT), ("-1", ARGUMENT),
    (str((5 << 30) + 1), (400, "EntityTooLarge"))])
def test_a_body_in_chunks_has_the_length_that_was_announced(raw, shared, form, length, expected):
    headers = {"x-amz-decoded-content-length": length}
    answer = s3_signing.put(raw, f"/{shared}/new", CONTENT, form, FORMS[form], headers=headers)
    assert outcome(answer) == expected


def test_a_trailer_that_was_not_announced_is_refused(raw, shared):
    answer = s3_signing.put(raw, f"/{shared}/new", CONTENT, UNSIGNED_TRAILER, TRAILER, headers={"x-amz-trailer": None})
    assert outcome(answer) == SHORT


@pytest.mark.parametrize("body", [b"", b"x", b"y" * 100000], ids=["empty", "one", "large"])
def test_a_hash_of_the_payload_is_verified(raw, shared, body):
    answer = raw.call("PUT", f"/{shared}/new", body=body, sha256="0" * 64)
    assert outcome(answer) == (400, "XAmzContentSHA256Mismatch")
    assert raw.call("GET", f"/{shared}/new").status == 404


def test_a_hash_that_version_2_signs_is_that_of_the_body(account, bucket):
    signer = s3.client(account, signature_version="s3")
    def state(request, **_):
        request.headers["x-amz-content-sha256"] = "0" * 64
    signer.meta.events.register("before-sign.s3.PutObject", state)
    with pytest.raises(Exception) as refused:
        signer.put_object(Bucket=bucket, Key="k", Body=b"other")
    assert s3.code(refused.value) == (400, "XAmzContentSHA256Mismatch")

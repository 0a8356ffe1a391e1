"""Bodies in chunks and signatures of version 2, as a test wants them: each piece can be changed before it is sent."""

import base64
import dataclasses
import datetime
import hashlib
import hmac
import re
import zlib

from lib import s3

SIGNED = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
SIGNED_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"


def crc32(content):
    """The CRC-32 of bytes as headers have it."""
    return base64.b64encode(zlib.crc32(content).to_bytes(4, "big")).decode()


def md5(content):
    """The MD5 of bytes as headers have it."""
    return base64.b64encode(hashlib.md5(content).digest()).decode()


def sha(name, content):
    """A digest of bytes as headers have it."""
    return base64.b64encode(hashlib.new(name, content).digest()).decode()


def _crc(content, polynomial, bits):
    """A reflected CRC, bit by bit: only for short contents."""
    crc = mask = (1 << bits) - 1
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (polynomial if crc & 1 else 0)
    return base64.b64encode((crc ^ mask).to_bytes(bits // 8, "big")).decode()


# The algorithms of checksums: name in the API -> header, function.
ALGORITHMS = {
    "CRC32": ("x-amz-checksum-crc32", crc32),
    "CRC32C": ("x-amz-checksum-crc32c", lambda content: _crc(content, 0x82F63B78, 32)),
    "CRC64NVME": ("x-amz-checksum-crc64nvme", lambda content: _crc(content, 0x9A6C9329AC4BC9B5, 64)),
    "SHA1": ("x-amz-checksum-sha1", lambda content: sha("sha1", content)),
    "SHA256": ("x-amz-checksum-sha256", lambda content: sha("sha256", content)),
}


@dataclasses.dataclass
class Chunk:
    """A chunk before it is written. `size` is the text of its size."""

    content: bytes
    size: str
    signature: str | None

    def write(self):
        """Its bytes, without the line break behind the content."""
        sign = "" if self.signature is None else f";chunk-signature={self.signature}"
        return f"{self.size}{sign}\r\n".encode() + self.content


@dataclasses.dataclass
class Body:
    """A body in chunks. The last chunk is empty."""

    chunks: list
    trailers: list
    trailer_signature: str | None
    tail: bytes = b"\r\n"

    def write(self):
        """Its bytes."""
        *chunks, last = self.chunks
        out = b"".join(chunk.write() + b"\r\n" for chunk in chunks) + last.write()
        lines = [f"{name}:{value}" for name, value in self.trailers]
        if self.trailer_signature is not None:
            lines.append(f"x-amz-trailer-signature:{self.trailer_signature}")
        return out + "".join(f"{line}\r\n" for line in lines).encode() + self.tail


def body(raw, headers, contents, trailers=()):
    """The body that `headers`, which are signed, announce."""
    time = headers["x-amz-date"]
    form = headers["x-amz-content-sha256"]
    scope = re.search(r"Credential=[^/]*/([^,]*)", headers["authorization"]).group(1)
    previous = re.search(r"Signature=(\w+)", headers["authorization"]).group(1)
    key = s3.signing_key(raw.secret, time[:8])

    def sign(kind, *lines):
        nonlocal previous
        text = "\n".join([f"AWS4-HMAC-SHA256-{kind}", time, scope, previous, *lines])
        previous = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        return previous

    is_signed = form != UNSIGNED_TRAILER
    chunks = []
    for content in [*contents, b""]:
        signature = sign("PAYLOAD", s3.EMPTY_SHA256, hashlib.sha256(content).hexdigest()) if is_signed else None
        chunks.append(Chunk(content, f"{len(content):x}", signature))
    of_trailers = None
    if form == SIGNED_TRAILER:
        lines = "".join(f"{name}:{value}\n" for name, value in trailers)
        of_trailers = sign("TRAILER", hashlib.sha256(lines.encode()).hexdigest())
    return Body(chunks, list(trailers), of_trailers)


def put(raw, path, contents, form, trailers=(), change=None, headers=None):
    """Puts an object in chunks. `change` gets the body before it is sent, and changes it."""
    content = b"".join(contents)
    announced = {"content-encoding": "aws-chunked", "x-amz-decoded-content-length": str(len(content)), **(headers or {})}
    if trailers and "x-amz-trailer" not in announced:
        announced["x-amz-trailer"] = ",".join(name for name, _ in trailers)
    signed = raw.sign("PUT", path, headers={name: value for name, value in announced.items() if value is not None},
                      sha256=form)
    made = body(raw, signed, contents, trailers)
    if change:
        change(made)
    return raw.send("PUT", path, signed, made.write())


SUBRESOURCES = {"acl", "delete", "location", "partNumber", "tagging", "uploadId", "uploads", "versionId", "versions",
                "response-content-type", "response-expires", "attributes", "restore"}


def http_date(shift=0):
    """The time now, or so many seconds later, as HTTP writes it."""
    time = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=shift)
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT")


def string_to_sign_v2(method, path, query, headers, date):
    """What version 2 signs."""
    amz = sorted((name, value) for name, value in headers.items() if name.startswith("x-amz-"))
    pairs = sorted((name, value) for name, value in query if name in SUBRESOURCES)
    resource = "&".join(f"{name}={value}" if value else name for name, value in pairs)
    lines = [method, headers.get("content-md5", ""), headers.get("content-type", ""), date]
    return "\n".join(lines) + "\n" + "".join(f"{n}:{v}\n" for n, v in amz) + path + (f"?{resource}" if resource else "")


def sign_v2(raw, text):
    """A signature of version 2."""
    return base64.b64encode(hmac.new(raw.secret.encode(), text.encode(), hashlib.sha1).digest()).decode()


def headers_v2(raw, method, path, query=(), headers=None, date=None):
    """The headers of a request that is signed with version 2."""
    headers = {"date": http_date() if date is None else date,
               **{name.lower(): value for name, value in (headers or {}).items()}}
    date = "" if "x-amz-date" in headers else headers["date"]
    signature = sign_v2(raw, string_to_sign_v2(method, path, query, headers, date))
    return {**headers, "authorization": f"AWS {raw.key_id}:{signature}"}


def presign_v2(raw, method, path, query=(), expires=300):
    """The target of a request that is presigned with version 2; `expires` is in seconds from now."""
    end = str(int(datetime.datetime.now(datetime.timezone.utc).timestamp()) + expires)
    signature = sign_v2(raw, string_to_sign_v2(method, path, query, {}, end))
    pairs = [*query, ("AWSAccessKeyId", raw.key_id), ("Expires", end), ("Signature", signature)]
    return path + "?" + "&".join(f"{s3.quoted(name)}={s3.quoted(value)}" for name, value in pairs)

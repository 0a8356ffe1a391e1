#!/usr/bin/env python3
"""An attacker who can write to the disks changes content under a customer-provided key.

Changed ciphertext gets right checksums: CRC-32C is linear, so that a change by a multiple of its polynomial is not seen by any
checksum of a frame or a row. Chunks are also exchanged within a blob and between two blobs, with all checksums of their frames
computed anew. Reads must then fail with 500 or a cut connection; a wrong byte is a failure. Other blobs read well, and a wrong
key still gets the documented 409. The data directories are searched for MD5 and CRC-64 of the plain text.
"""

import base64
import hashlib
import pathlib
import struct

from azure.core.exceptions import AzureError, HttpResponseError
from azure.storage.blob import ContentSettings

from lib import cli
from lib.content import content
from lib.report import Verdicts
from lib.server import Server

CONTAINER = "forged"
CHUNK, HEADER, FIRST_PAGE, DATA = 16_384, 48, 4_096, 1
POLYNOMIAL = 0x1EDC6F41
MIB = 1 << 20


def table():
    """The byte table of CRC-32C."""
    reflected = int(f"{POLYNOMIAL:032b}"[::-1], 2)
    entries = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (reflected if value & 1 else 0)
        entries.append(value)
    return entries


TABLE = table()


def crc32c(data):
    """CRC-32C of bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def unseen():
    """Bytes that change no CRC-32C when they are added: the polynomial, first bit lowest."""
    bits = "1" + f"{POLYNOMIAL:032b}"
    return bytes(int(bits[at:at + 8][::-1], 2) for at in range(0, len(bits), 8))


class Frame:
    """A frame of a data extent."""

    def __init__(self, path, at, data):
        self.path, self.at = path, at
        self.chunks, = struct.unpack_from("<H", data, at + 6)
        self.len, = struct.unpack_from("<I", data, at + 24)
        self.payload_at = at + HEADER + 4 * self.chunks
        self.payload = data[self.payload_at:self.payload_at + self.len]

    def write(self, payload):
        """Replaces the payload by one of the same length. All checksums of the frame are right."""
        with open(self.path, "r+b") as file:
            file.seek(self.at)
            head = bytearray(file.read(HEADER + 4 * self.chunks))
            parts = [payload[at:at + CHUNK] for at in range(0, len(payload), CHUNK)]
            struct.pack_into("<I", head, 28, crc32c(payload))
            struct.pack_into(f"<{len(parts)}I", head, HEADER, *map(crc32c, parts))
            struct.pack_into("<I", head, 44, crc32c(bytes(head[:44] + head[HEADER:])))
            file.seek(self.at)
            file.write(head + payload)


def frames(server):
    """All frames of the server's data extents, by extent and offset."""
    found = []
    for path in sorted(p for folder in server.data for p in pathlib.Path(folder).rglob("*.x")):
        data = path.read_bytes()
        if data[6] != DATA:
            continue
        at = data.find(b"BYFR", FIRST_PAGE)
        while at >= 0:
            frame = Frame(path, at, data)
            found.append(frame)
            at = data.find(b"BYFR", frame.payload_at + frame.len)
    return found


def key(byte):
    """The headers of a key of 32 equal bytes."""
    secret = bytes([byte]) * 32
    digest = base64.b64encode(hashlib.sha256(secret).digest()).decode()
    return {"x-ms-encryption-key": base64.b64encode(secret).decode(), "x-ms-encryption-key-sha256": digest,
            "x-ms-encryption-algorithm": "AES256"}


KEY = key(1)


def outcome(blob, data, start=0, length=None):
    """What reading a blob gives: 'right', 'error STATUS', 'broken connection' or 'WRONG BYTES'."""
    length = len(data) - start if length is None else length
    try:
        got = blob.download_blob(offset=start, length=length, headers=KEY).readall()
    except HttpResponseError as error:
        return f"error {error.status_code}" if error.status_code else "broken connection"
    except AzureError:
        return "broken connection"
    return "right" if got == data[start:start + length] else "WRONG BYTES"


def put(blob, data):
    """Put Blob."""
    blob.upload_blob(data, headers=KEY, content_settings=ContentSettings(content_type="text/plain"))


def put_blocks(blob, data):
    """Blocks of a third each, and a list of them."""
    third = len(data) // 3
    ids = []
    for number in range(3):
        ids.append(base64.b64encode(b"%03d" % number).decode())
        end = len(data) if number == 2 else (number + 1) * third
        blob.stage_block(ids[-1], data[number * third:end], headers=KEY)
    blob.commit_block_list(ids, headers=KEY)


def append(blob, data):
    """An append blob in two appends."""
    blob.create_append_blob(headers=KEY)
    half = len(data) // 2
    for part in (data[:half], data[half:]):
        blob.append_block(part, headers=KEY)


def put_pages(blob, data):
    """Pages, some of which are written over."""
    blob.create_page_blob(len(data), headers=KEY)
    blob.upload_page(bytes(len(data)), 0, len(data), headers=KEY)
    blob.upload_page(data, 0, len(data), headers=KEY)
    blob.upload_page(data[512:1024], 512, 512, headers=KEY)


WAYS = {"large": (put, 5 * MIB), "middle": (put, 100_000), "blocks": (put_blocks, 3 * 1_300_000),
        "appended": (append, 300_000), "pages": (put_pages, 1 << 20)}


def flipped(options, scratch, verdicts):
    """Ciphertext is changed so that no CRC-32C sees it."""
    change = unseen()
    assert crc32c(b"1" * 9) != crc32c(b"1" * 8 + b"2") and crc32c(bytes(9)) == crc32c(b"\0\0" + change + b"\0\0")
    for kind, (write, size) in WAYS.items():
        data = content(kind, size)
        with cli.server(options, scratch, data=[scratch / kind]) as server:
            container = server.account.service().create_container(CONTAINER)
            blob, other = container.get_blob_client(kind), container.get_blob_client("other")
            put(other, data)
            before = {(frame.path, frame.at) for frame in frames(server)}
            write(blob, data)
            wrong = dict(headers=key(2))
            server.stop()
            attacked = [frame for frame in frames(server) if (frame.path, frame.at) not in before]
            verdicts.check(f"{kind}: frames found", attacked, "some", len(attacked))
            for frame in attacked:
                payload = bytearray(frame.payload)
                at = len(payload) // 2 // CHUNK * CHUNK + 100
                for offset, byte in enumerate(change):
                    payload[at + offset] ^= byte
                frame.write(bytes(payload))
            code, _ = server.check()
            verdicts.equal(f"{kind}: exit code of check, which has no key", code, 0)
            server.start()
            verdicts.equal(f"{kind}: the blob that was not attacked", outcome(other, data), "right")
            seen = outcome(blob, data)
            verdicts.check(f"{kind}: the whole blob", seen.startswith(("error 500", "broken")), "a failure", seen)
            # Every part of the blob is either right or refused.
            step = 8_000
            parts = [outcome(blob, data, start, min(step, size - start)) for start in range(0, min(size, 2 * MIB), step)]
            verdicts.equal(f"{kind}: ranges with wrong bytes", parts.count("WRONG BYTES"), 0)
            verdicts.check(f"{kind}: ranges refused", "error 500" in parts, "some", sorted(set(parts)))
            verdicts.check(f"{kind}: ranges read", "right" in parts, "some", sorted(set(parts)))
            try:
                blob.download_blob(**wrong)
                verdicts.check(f"{kind}: another key is refused", False)
            except HttpResponseError as error:
                verdicts.equal(f"{kind}: another key", error.error_code, "BlobCustomerSpecifiedEncryptionMismatch")


def exchanged(options, scratch, verdicts):
    """Whole chunks are exchanged within a blob and between blobs; all checksums of the frames are right."""
    one, two = content("one", 5 * MIB), content("two", 5 * MIB)
    with cli.server(options, scratch, data=[scratch / "exchanged"]) as server:
        container = server.account.service().create_container(CONTAINER)
        first, second = container.get_blob_client("one"), container.get_blob_client("two")
        put(first, one)
        known = {(frame.path, frame.at) for frame in frames(server)}
        put(second, two)
        server.stop()
        mine = [frame for frame in frames(server) if (frame.path, frame.at) in known and frame.len == MIB]
        theirs = [frame for frame in frames(server) if (frame.path, frame.at) not in known and frame.len == MIB]
        verdicts.check("exchanged: full frames of two blobs", min(len(mine), len(theirs)) >= 3, ">= 3", (len(mine), len(theirs)))
        within, between = mine[0], mine[1]
        payload = within.payload
        within.write(payload[CHUNK:2 * CHUNK] + payload[:CHUNK] + payload[2 * CHUNK:])
        between.write(theirs[1].payload[:CHUNK] + between.payload[CHUNK:])
        # A frame elsewhere in the same blob, with all that its head says put right.
        mine[2].write(mine[3].payload)
        server.start()
        # The chunks were exchanged at the beginning of frames: ranges as they were in the blob.
        for what, start in (("within a blob", 0), ("between blobs", MIB), ("whole frames", 2 * MIB + 50_000)):
            seen = outcome(first, one, start + 1_000, 200)
            verdicts.check(f"exchanged {what}", seen.startswith(("error 500", "broken")), "a failure", seen)
        verdicts.equal("exchanged: past what was exchanged", outcome(first, one, 4 * MIB + 500_000, 5_000), "right")
        verdicts.equal("exchanged: the blob that was copied from", outcome(second, two), "right")


def varint(number):
    """A number as rows have it."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def checksums(options, scratch, verdicts):
    """MD5 and CRC-64 of the plain text are nowhere on the disks; with the key, Get Blob still answers the MD5."""
    data = content("plain", 70_000)
    md5 = hashlib.md5(data).digest()
    seen = {}

    def note(response):
        seen.update(response.http_response.headers)

    with cli.server(options, scratch, data=[scratch / "checksums"]) as server:
        container = server.account.service().create_container(CONTAINER)
        blob = container.get_blob_client("whole")
        put(blob, data)
        staged = container.get_blob_client("blocks")
        staged.stage_block("YQ==", data, headers=KEY, raw_response_hook=note)
        crc64 = base64.b64decode(seen["x-ms-content-crc64"])
        staged.commit_block_list(["YQ=="], headers=KEY, content_settings=ContentSettings(content_md5=bytearray(md5)))
        needles = {"MD5": md5, "CRC-64": crc64, "CRC-64 in a row": varint(int.from_bytes(crc64, "little")),
                   "CRC-64 in a row, turned": varint(int.from_bytes(crc64, "big"))}
        for name in ("whole", "blocks"):
            found = container.get_blob_client(name).get_blob_properties(headers=KEY)
            verdicts.equal(f"checksums: MD5 of {name} with the key", bytes(found.content_settings.content_md5 or b""), md5)
        listed = [item.content_settings.content_md5 for item in container.list_blobs()]
        verdicts.equal("checksums: MD5 in a list, which has no key", listed, [None, None])
        for when, act in (("while it runs", lambda: None), ("after a stop", server.stop)):
            act()
            files = [p for folder in server.data for p in pathlib.Path(folder).rglob("*") if p.is_file()]
            leaks = [f"{what} in {path.name}" for path in files for what, needle in needles.items()
                     if needle in path.read_bytes()]
            verdicts.none(f"checksums: of the plain text on disk {when}", leaks)


def earlier(options, scratch, verdicts):
    """A store of a release that did not authenticate content: blobs are read, and changed from here on."""
    folder, held = [scratch / "earlier"], {}
    with Server(options.old, folder, scratch / "earlier.log") as server:
        server.start()
        container = server.account.service().create_container(CONTAINER)
        for kind, (write, size) in WAYS.items():
            held[kind] = content(kind, size)
            write(container.get_blob_client(kind), held[kind])
        put(container.get_blob_client("small"), held.setdefault("small", b"in the row"))
        server.stop()
    with cli.server(options, scratch, data=folder) as server:
        container = server.account.service().get_container_client(CONTAINER)
        for kind, data in held.items():
            blob = container.get_blob_client(kind)
            verdicts.equal(f"earlier: {kind}", outcome(blob, data), "right")
            verdicts.equal(f"earlier: a range of {kind}", outcome(blob, data, 3, 5), "right")
        appended, pages = container.get_blob_client("appended"), container.get_blob_client("pages")
        appended.append_block(b"more", headers=KEY)
        verdicts.equal("earlier: appended to", outcome(appended, held["appended"] + b"more"), "right")
        page = b"new page".ljust(512, b".")
        pages.upload_page(page, 1024, 512, headers=KEY)
        verdicts.equal("earlier: a page written over", outcome(pages, held["pages"][:1024] + page + held["pages"][1536:]), "right")
        server.stop()
        verdicts.sound(server, "earlier: blockyard check")


def main(options, scratch):
    """Runs everything; the exit code."""
    verdicts = Verdicts("forged content")
    if options.old:
        earlier(options, scratch, verdicts)
    flipped(options, scratch, verdicts)
    exchanged(options, scratch, verdicts)
    checksums(options, scratch, verdicts)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--old", type=pathlib.Path, help="a program that did not authenticate content, of before ADR 0025")
    cli.run(main, cli.parse(flags))

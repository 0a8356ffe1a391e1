#!/usr/bin/env python3
"""Bounded memory.

64 uploads of 16 MiB at once keep the server's resident memory at or below 300 MiB; one block of 4000 MiB streams in, is
committed and streams out with at most 150 MiB. Memory is sampled every 50 ms over the whole of each part, reading back
included, and each part starts with a fresh process so that the parts do not affect each other.
"""

import base64
import concurrent.futures
import hashlib
import threading

from lib import cli
from lib.content import pieces
from lib.measure import RssSampler
from lib.report import Progress, Verdicts, mib
from lib.wire import Wire

CONTAINER = "memory"
PIECE_BYTES = 1 << 20
SEND_BYTES = 64 << 10
READ_BYTES = 1 << 20
UPLOADS_LIMIT = 300 << 20
BLOCK_LIMIT = 150 << 20


class Counted:
    """An iterator over a body that counts and hashes what passes."""

    def __init__(self, label, size, progress):
        self.label, self.size, self.progress = label, size, progress
        self.hash = hashlib.sha256()

    def __iter__(self):
        for piece in pieces(self.label, self.size, PIECE_BYTES):
            self.hash.update(piece)
            for at in range(0, len(piece), SEND_BYTES):
                yield piece[at:at + SEND_BYTES]
            self.progress.advance(len(piece) / (1 << 20))


def read_back(wire, path, progress):
    """Streams a blob and returns (status, length, SHA-256) without holding it."""
    response = wire.open("GET", path)
    seen, length = hashlib.sha256(), 0
    while data := response.read(READ_BYTES):
        seen.update(data)
        length += len(data)
        progress.advance(len(data) / (1 << 20))
    return response.status, length, seen.hexdigest()


def many_uploads(server, count, size, verdicts):
    """`count` uploads of `size` at once: none starts sending before all are connected."""
    together = threading.Barrier(count)

    def upload(number):
        wire = Wire(server.account, timeout=600)
        body = Counted(("upload", number), size, progress)
        together.wait()
        answer = wire.request("PUT", f"/{CONTAINER}/upload-{number:03}", body=iter(body), headers={
            "x-ms-blob-type": "BlockBlob", "content-length": size})
        return number, answer.status, answer.code, body.hash.hexdigest()

    with RssSampler(server.process.pid) as memory:
        with Progress(f"{count} uploads of {mib(size)} at once", count * size >> 20, "MiB") as progress:
            with concurrent.futures.ThreadPoolExecutor(count) as pool:
                done = list(pool.map(upload, range(count)))
    verdicts.none(f"{count} uploads of {mib(size)} answered 201", [row[:3] for row in done if row[1] != 201])
    verdicts.check(f"resident memory, {count} uploads of {mib(size)}", memory.peak <= UPLOADS_LIMIT,
                   f"<= {mib(UPLOADS_LIMIT)}", f"{mib(memory.peak)} ({memory.samples} samples)")
    verdicts.figure("resident memory before", mib(memory.first))
    wrong = []
    with Progress("read them back", count * size >> 20, "MiB") as progress:
        for number, _, _, digest in done:
            found = read_back(Wire(server.account), f"/{CONTAINER}/upload-{number:03}", progress)
            if found != (200, size, digest):
                wrong.append((number, found))
    verdicts.none(f"{count} uploads read back by hash", wrong)


def one_block(server, size, verdicts):
    """One block of `size`: staged as a stream, committed, read back as a stream."""
    path, block = f"/{CONTAINER}/one-block", base64.b64encode(b"the-only-block").decode()
    wire = Wire(server.account, timeout=1800)
    with RssSampler(server.process.pid) as memory:
        with Progress(f"one block of {mib(size)}, in", size >> 20, "MiB") as progress:
            body = Counted(("block",), size, progress)
            answer = wire.request("PUT", path, {"comp": "block", "blockid": block}, body=iter(body),
                                  headers={"content-length": size})
        verdicts.check(f"Put Block of {mib(size)}", answer.status == 201, 201, f"{answer.status} {answer.code}")
        staged_peak = memory.peak
        xml = f'<?xml version="1.0" encoding="utf-8"?><BlockList><Latest>{block}</Latest></BlockList>'
        answer = wire.request("PUT", path, {"comp": "blocklist"}, body=xml.encode())
        verdicts.check("Put Block List", answer.status == 201, 201, f"{answer.status} {answer.code}")
        with Progress(f"one block of {mib(size)}, out", size >> 20, "MiB") as progress:
            found = read_back(wire, path, progress)
    verdicts.check("block read back by hash", found == (200, size, body.hash.hexdigest()),
                   f"{size} bytes", f"{found[0]}, {found[1]} bytes")
    verdicts.check(f"resident memory, one block of {mib(size)}", memory.peak <= BLOCK_LIMIT,
                   f"<= {mib(BLOCK_LIMIT)}", f"{mib(memory.peak)} ({memory.samples} samples)")
    verdicts.figure("resident memory while the block came in", mib(staged_peak))


def main(options, scratch):
    verdicts = Verdicts("bounded memory")
    with cli.server(options, scratch) as server:
        server.account.service().create_container(CONTAINER)
        many_uploads(server, options.uploads, options.upload_mib << 20, verdicts)
        verdicts.equal("exit code after SIGTERM", server.stop(), 0)
        server.start()
        one_block(server, options.block_mib << 20, verdicts)
        verdicts.equal("exit code after SIGTERM", server.stop(), 0)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--uploads", type=int, default=64, help="uploads at once")
    flags.add_argument("--upload-mib", type=int, default=16, help="size of each upload")
    flags.add_argument("--block-mib", type=int, help="size of the one block (default 4000; 400 with --small)")
    parsed = cli.parse(flags)
    parsed.block_mib = parsed.block_mib or (400 if parsed.small else 4000)
    cli.run(main, parsed)

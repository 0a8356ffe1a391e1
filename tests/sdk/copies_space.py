#!/usr/bin/env python3
"""Copies within one server take no space, and all space is freed after they are deleted.

Writes a blob of 1 GiB in blocks and a page blob of a tenth of it, makes 10 copies of each by Copy Blob, and looks at what the
data folder occupies: not more than before. Then the originals go, which frees nothing, for the copies show the same bytes;
then the copies, and within a limit all is free again, without a restart.
"""

import time

from azure.storage.blob import BlobBlock

from lib import cli
from lib.content import content, sha256
from lib.report import Verdicts, mib
from space import occupied

CONTAINER = "copies"
COPIES = 10
BLOCK = 8 << 20
PAGES = 4 << 20
# Rows, logs and the rest of open extents.
SLACK = 24 << 20
# The audit that frees shared content runs some time after it was dropped.
WAIT_SECONDS = 300


def write(container, size):
    """The originals: name to bytes' hash."""
    blob, whole = container.get_blob_client("blob"), content(("blob", 0), size)
    blocks = []
    for at in range(0, size, BLOCK):
        blocks.append(BlobBlock(f"{at:012}"))
        blob.stage_block(blocks[-1].id, whole[at:at + BLOCK])
    blob.commit_block_list(blocks)
    disk, pages = container.get_blob_client("disk"), content(("disk", 0), size // 10 // 512 * 512)
    # Sparse: what is written stands at its end.
    start = 1 << 40
    disk.create_page_blob(start + len(pages))
    for at in range(0, len(pages), PAGES):
        part = pages[at:at + PAGES]
        disk.upload_page(part, offset=start + at, length=len(part))
    return {"blob": (0, len(whole), sha256(whole)), "disk": (start, len(pages), sha256(pages))}


def wait_until_free(server, wanted, seconds):
    """Waits until not more is occupied; what is in the end."""
    began = time.monotonic()
    while True:
        now, _ = occupied(server)
        if now <= wanted or time.monotonic() - began > seconds:
            return now, time.monotonic() - began
        time.sleep(1)


def main(options, scratch):
    verdicts = Verdicts("copies cost no bytes")
    with cli.server(options, scratch) as server:
        container = server.account.service().create_container(CONTAINER)
        empty, _ = occupied(server)
        originals = write(container, options.mib << 20)
        before, _ = occupied(server)
        logical = sum(size for _, size, _ in originals.values())
        verdicts.figure("bytes of the originals", mib(logical))
        verdicts.figure("occupied by the originals", mib(before - empty))

        began, late = time.monotonic(), []
        for name in originals:
            for number in range(COPIES):
                copy = container.get_blob_client(f"{name}-{number}")
                if copy.start_copy_from_url(container.get_blob_client(name).url)["copy_status"] != "success":
                    late.append(copy.blob_name)
        verdicts.none("copies not there when answered", late)
        verdicts.figure(f"{COPIES} copies of each took", f"{time.monotonic() - began:.2f} s")
        after, _ = occupied(server)
        verdicts.check("occupied after the copies", after <= before + SLACK, f"<= {mib(before + SLACK)}", mib(after))

        for name in originals:
            container.delete_blob(name)
        time.sleep(options.settle_seconds)
        wrong = []
        for name, (start, size, wanted) in originals.items():
            for number in (0, COPIES - 1):
                copy = container.get_blob_client(f"{name}-{number}")
                if sha256(copy.download_blob(offset=start, length=size).readall()) != wanted:
                    wrong.append(copy.blob_name)
        verdicts.none("copies read back without their originals", wrong)
        for name in originals:
            for number in range(COPIES):
                container.delete_blob(f"{name}-{number}")
        wanted = empty + SLACK
        left, waited = wait_until_free(server, wanted, WAIT_SECONDS)
        verdicts.figure("waited for the space", f"{waited:.0f} s", f"<= {WAIT_SECONDS} s")
        verdicts.check("occupied when all are gone", left <= wanted, f"<= {mib(wanted)}", mib(left))
        verdicts.equal("exit code after SIGTERM", server.stop(), 0)
        verdicts.sound(server)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--gib", type=float, help="size of the block blob (default 1; 0.125 with --small)")
    flags.add_argument("--settle-seconds", type=float, default=5, help="time for reclaim to do what it must not")
    parsed = cli.parse(flags)
    parsed.mib = int((parsed.gib or (0.125 if parsed.small else 1)) * 1024)
    cli.run(main, parsed)

#!/usr/bin/env python3
"""A full disk, seen through S3.

Runs the server on a small file system of its own, as `disk_full.py`, fills it by S3 clients, and checks:

* a write without room is 507 `InsufficientStorage` with an XML error, and leaves nothing half-made: no object, and of an upload
  only the parts that were acknowledged;
* GET, HEAD and lists go on, and everything acknowledged is there; kill -9 while full changes nothing of it;
* DeleteObject, DeleteObjects and AbortMultipartUpload work on a full disk, and once their space is back writes succeed again;
* an upload that was begun before completes then.
"""

import collections
import random

from botocore.exceptions import BotoCoreError, ClientError

from disk_full import SKIPPED, CannotMount, free, small_file_system
from lib import cli, s3
from lib.content import content, sha256
from lib.measure import wait_until
from lib.report import Progress, Verdicts, mib

BUCKET, UPLOAD = "full", "upload"
SIZES = (1 << 20, 1 << 20, 1 << 20, 100 << 10, 20 << 10, 2 << 10)
PART_BYTES = 5 << 20
REFUSALS_IN_A_ROW = 24
FULL = "507 InsufficientStorage"


class Store:
    """The acknowledged requests, and how the rest was refused."""

    def __init__(self, account):
        self.client = s3.client(account, read_timeout=60)
        self.client.create_bucket(Bucket=BUCKET)
        self.objects, self.parts, self.refused = {}, {}, collections.Counter()
        self.upload = self.client.create_multipart_upload(Bucket=BUCKET, Key=UPLOAD)["UploadId"]

    def attempt(self, call):
        """Whether it was acknowledged; counts how it was refused."""
        try:
            call()
        except ClientError as error:
            status, code = s3.code(error)
            self.refused[f"{status} {code}"] += 1
            return False
        except BotoCoreError as error:
            self.refused[type(error).__name__] += 1
            return False
        return True

    def put(self, name, size):
        """Writes one object."""
        body = content(name, size)
        done = self.attempt(lambda: self.client.put_object(Bucket=BUCKET, Key=name, Body=body))
        if done:
            self.objects[name] = size
        return done

    def part(self, number):
        """Sends one part of the upload."""
        body = content(("part", number), PART_BYTES)
        done = self.attempt(lambda: self.client.upload_part(Bucket=BUCKET, Key=UPLOAD, UploadId=self.upload, PartNumber=number,
                                                            Body=body))
        if done:
            self.parts[number] = PART_BYTES
        return done

    def fill(self, folder):
        """Writes until many in a row were refused."""
        dice, number, in_a_row, room = random.Random(20), 0, 0, free(folder)
        with Progress("fill the disk", room >> 20, "MiB") as progress:
            while in_a_row < REFUSALS_IN_A_ROW:
                number += 1
                done = self.part(number) if number % 20 == 1 else self.put(f"fill/{number:06}", dice.choice(SIZES))
                in_a_row = 0 if done else in_a_row + 1
                progress.move_to((room - free(folder)) / (1 << 20))

    def complaints(self):
        """What does not read back, is listed without being acknowledged, or is missing."""
        wrong = []
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        listed = {one["Key"]: one["Size"] for page in pages for one in page.get("Contents", ())}
        if listed != self.objects:
            wrong.append(f"listed and acknowledged differ: {sorted(set(listed.items()) ^ set(self.objects.items()))[:5]}")
        for name, size in self.objects.items():
            body = self.client.get_object(Bucket=BUCKET, Key=name)["Body"].read()
            head = self.client.head_object(Bucket=BUCKET, Key=name)
            if sha256(body) != sha256(content(name, size)) or head["ContentLength"] != size:
                wrong.append(name)
        if self.upload:
            found = self.client.list_parts(Bucket=BUCKET, Key=UPLOAD, UploadId=self.upload).get("Parts", ())
            if {part["PartNumber"]: part["Size"] for part in found} != self.parts:
                wrong.append(f"parts {found}, acknowledged {self.parts}")
        return wrong

    def delete_half(self):
        """Deletes every second object, some by one request. Returns complaints."""
        doomed = sorted(self.objects)[::2]
        one_by_one, together = doomed[:len(doomed) // 2], doomed[len(doomed) // 2:]
        for name in one_by_one:
            self.client.delete_object(Bucket=BUCKET, Key=name)
        wrong = []
        for at in range(0, len(together), 1000):
            keys = [{"Key": name} for name in together[at:at + 1000]]
            wrong += self.client.delete_objects(Bucket=BUCKET, Delete={"Objects": keys}).get("Errors", ())
        self.objects = {name: size for name, size in self.objects.items() if name not in set(doomed)}
        return wrong

    def complete(self):
        """Completes the upload."""
        found = self.client.list_parts(Bucket=BUCKET, Key=UPLOAD, UploadId=self.upload)["Parts"]
        parts = [{"PartNumber": part["PartNumber"], "ETag": part["ETag"]} for part in found]
        self.client.complete_multipart_upload(Bucket=BUCKET, Key=UPLOAD, UploadId=self.upload, MultipartUpload={"Parts": parts})
        body = self.client.get_object(Bucket=BUCKET, Key=UPLOAD)["Body"].read()
        return body == b"".join(content(("part", number), size) for number, size in sorted(self.parts.items()))


def scenario(server, folder, options, verdicts):
    """Fill, read, kill, read, delete, write again."""
    store = Store(server.account)
    store.fill(folder)
    verdicts.check("disk filled, then writes refused", bool(store.objects) and bool(store.refused), "both",
                   f"{len(store.objects):,} objects and {len(store.parts)} parts acknowledged")
    verdicts.equal("how writes were refused", set(store.refused), {FULL})
    verdicts.figure("free space when full", mib(free(folder)))
    verdicts.none("full: everything acknowledged, nothing else", store.complaints())
    server.kill()
    verdicts.figure("restart on the full disk", f"{server.start():.2f} s")
    verdicts.none("full, after kill -9: everything acknowledged, nothing else", store.complaints())
    other = store.client.create_multipart_upload(Bucket=BUCKET, Key="other")["UploadId"]
    store.client.abort_multipart_upload(Bucket=BUCKET, Key="other", UploadId=other)
    verdicts.none("deletes on a full disk", store.delete_half())
    store.refused.clear()
    numbers = iter(range(1_000_000))
    resumed = wait_until(lambda: all(store.put(f"resumed/{next(numbers):04}", 100 << 10) for _ in range(8)),
                         options.wait_seconds, every=1)
    verdicts.check("writes resume without a restart", resumed, f"<= {options.wait_seconds} s", bool(resumed))
    verdicts.check("meanwhile refusals had the code", set(store.refused) <= {FULL}, FULL, dict(store.refused))
    verdicts.equal("the upload that was begun before completes", store.complete(), True)
    store.client.delete_object(Bucket=BUCKET, Key=UPLOAD)
    store.upload = None
    verdicts.none("in the end: everything acknowledged, nothing else", store.complaints())
    verdicts.equal("exit code after SIGTERM", server.stop(), 0)
    verdicts.sound(server)


def main(options, scratch):
    verdicts = Verdicts("full disk, through S3")
    try:
        with small_file_system(scratch, options.mib) as (folder, kind):
            verdicts.figure("file system", f"{kind}, {options.mib} MiB")
            with cli.server(options, scratch, data=[folder / "data"]) as server:
                scenario(server, folder, options, verdicts)
    except CannotMount as error:
        print(f"skipped: no small file system can be mounted here ({error})")
        return SKIPPED
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--mib", type=int, default=300, help="size of the file system")
    flags.add_argument("--wait-seconds", type=float, default=120, help="longest wait for writes to resume")
    cli.run(main, cli.parse(flags))

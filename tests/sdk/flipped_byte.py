#!/usr/bin/env python3
"""A flipped byte on disk is never served.

Writes blobs of several sizes, stops the server, flips one byte inside the stored bytes of two of them, and checks:

* `blockyard check` finds the damage and says so with its exit code; it names the container, of three, and how many of its blobs
  are affected and how many are intact;
* the server still starts, reads of a damaged blob fail (an error code, or a connection broken before the end: never a
  wrong byte, never a short body that looks whole), also for a range that covers the byte; every other blob reads well;
* the same through S3: 500 InternalError or a broken connection; what needs no content (HEAD, lists, deletes) goes on;
* the scrub finds damage that no request has read and counts it in /metrics.

Bytes in the journal are not changed: they are a copy for an extent, and readers get the bytes of the extent.
"""

import json
import mmap
import pathlib
import subprocess

from azure.core.exceptions import AzureError, HttpResponseError
from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError as Urllib3Error

from lib import cli, s3
from lib.account import DEV_NAME, PerThread
from lib.content import content
from lib.measure import wait_until
from lib.report import Progress, Verdicts

CONTAINER, OTHERS = "flipped", ("before", "later")
# Blobs above the size that is kept inline in an index row: their bytes are in an extent of their own.
SIZES = {"large": 1 << 20, "larger": 5 << 20, "middle": 100 << 10, "small": 20 << 10, "inline": 1 << 10}
COPIES = 4
READ_VICTIM, SCRUB_VICTIM = "larger-2", "large-1"
NEEDLE_BYTES = 256


def find(folder, needle):
    """Every place of `needle` in the files below `folder`: [(path, offset)]."""
    places = []
    for path in sorted(p for p in pathlib.Path(folder).rglob("*") if p.is_file() and p.stat().st_size):
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            at = view.find(needle)
            while at >= 0:
                places.append((path, at))
                at = view.find(needle, at + 1)
    return places


def flip(path, offset):
    """Inverts one bit in place."""
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))


def outcome(clients, name, data, **window):
    """What reading a blob gives: 'right', 'error CODE', 'broken connection' or 'WRONG BYTES'."""
    try:
        got = clients.blob(name).download_blob(**window).readall()
    except HttpResponseError as error:
        return f"error {error.error_code}" if error.status_code else "broken connection"
    except AzureError:
        return "broken connection"
    start = window.get("offset", 0)
    return "right" if got == data[start:start + window.get("length", len(data))] else "WRONG BYTES"


def s3_outcome(client, name, data, window=None):
    """What reading an object through S3 gives, as `outcome`. `window` is a range of bytes, its end not in it."""
    start, end = window or (0, len(data))
    more = {"Range": f"bytes={start}-{end - 1}"} if window else {}
    try:
        got = client.get_object(Bucket=CONTAINER, Key=name, **more)["Body"].read()
    except ClientError as error:
        return f"error {error.response['ResponseMetadata']['HTTPStatusCode']} {error.response['Error']['Code']}"
    except (BotoCoreError, Urllib3Error):
        return "broken connection"
    return "right" if got == data[start:end] else "WRONG BYTES"


def s3_refusal(client, name, window):
    """The id of a refused read of a range, as its answer has it."""
    try:
        client.get_object(Bucket=CONTAINER, Key=name, Range=f"bytes={window[0]}-{window[1] - 1}")["Body"].read()
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPHeaders"]["x-amz-request-id"]
    except (BotoCoreError, Urllib3Error):
        pass
    return None


def through_s3(server, verdicts, blobs, flipped_at):
    """The same damage, seen through S3."""
    client = s3.client(server.account)
    data, at = blobs[READ_VICTIM], flipped_at[READ_VICTIM]
    fails = ("error 500 InternalError", "broken connection")
    for what, window in {"whole object": None, "range over the byte": (at - 100, at + 100)}.items():
        found = s3_outcome(client, READ_VICTIM, data, window)
        verdicts.check(f"S3: read of the damaged object, {what}", found in fails, " or ".join(fails), found)
    request = s3_refusal(client, READ_VICTIM, (at - 100, at + 100))
    lines = [line for line in server.log_tail(2000).splitlines() if "stored bytes are damaged" in line]
    verdicts.check("the log names the request as the answer does", request and any(f"request={request}" in line for line in lines),
                   f"request={request}", lines[-1:])
    verdicts.equal("S3: range before the byte's frame", s3_outcome(client, READ_VICTIM, data, (0, 100)), "right")
    states = {name: s3_outcome(client, name, body) for name, body in blobs.items() if name not in flipped_at}
    verdicts.none("S3: other objects read well", [row for row in states.items() if row[1] != "right"])
    verdicts.equal("S3: HEAD of the damaged object", client.head_object(Bucket=CONTAINER, Key=READ_VICTIM)["ContentLength"], len(data))
    listed = [one["Key"] for one in client.list_objects_v2(Bucket=CONTAINER)["Contents"]]
    verdicts.equal("S3: objects listed", sorted(set(blobs) - set(listed)), [])
    client.put_object(Bucket=CONTAINER, Key="after-s3", Body=b"still writing")
    verdicts.equal("S3: writes go on", s3_outcome(client, "after-s3", b"still writing"), "right")
    deleted = client.delete_objects(Bucket=CONTAINER, Delete={"Objects": [{"Key": name} for name in flipped_at]})
    verdicts.equal("S3: damaged objects deleted", sorted(one["Key"] for one in deleted["Deleted"]), sorted(flipped_at))


def affected_as_reported(text, report, verdicts, blobs):
    """What `blockyard check` reports about affected blobs, as text and as JSON."""
    affected, whole = report["affected"], f"{DEV_NAME}/{CONTAINER}"
    verdicts.equal("blobs that check finds", report["index"]["blobs"], blobs)
    verdicts.equal("affected blobs", affected["blobs"], 2)
    verdicts.equal("partitions whose rows cannot be read", len(affected["unread"]), 0)
    counts = {}
    for extent in affected["extents"]:
        verdicts.equal("blobs of one damaged extent", sum(of["blobs"] for of in extent["containers"]), extent["blobs"])
        for of in extent["containers"]:
            counts[of["container"]] = counts.get(of["container"], 0) + of["blobs"]
    verdicts.check("affected containers", counts == {whole: 2}, {whole: 2}, counts)
    lines = [line for line in text.splitlines() if "blobs are affected: " in line]
    verdicts.check("lines that name the container", len(lines) == len(affected["extents"]) > 0
                   and all(line.endswith(f" in {whole}") for line in lines), f"... in {whole}", lines)
    last = f"bodies: 2 affected; all others are intact: {blobs - 2} blobs"
    verdicts.check("the line that sums it up", last in text.splitlines(), last,
                   [line for line in text.splitlines() if line.startswith("bodies:")])


def corrupt_counters(server):
    """Counters about corruption: {name: value}."""
    return {name: value for name, value in server.metrics().items() if "corrupt" in name.lower()}


def main(options, scratch):
    verdicts = Verdicts("flipped byte")
    blobs = {f"{kind}-{n}": content((kind, n), size) for kind, size in SIZES.items() for n in range(COPIES)}
    with cli.server(options, scratch) as server:
        server.account.service().create_container(CONTAINER)
        clients = PerThread(server.account, CONTAINER)
        with Progress("write", len(blobs), "blobs") as progress:
            for name, data in blobs.items():
                clients.blob(name).upload_blob(data)
                progress.advance()
        for other in OTHERS:
            server.account.service().create_container(other)
            PerThread(server.account, other).blob("whole").upload_blob(content(other, 1 << 20))
        verdicts.equal("exit code after SIGTERM", server.stop(), 0)
        code, output = server.check()
        verdicts.check("check before the flip", code == 0, "exit 0", f"exit {code}")

        flipped_at = {}
        for victim in (READ_VICTIM, SCRUB_VICTIM):
            middle = len(blobs[victim]) // 2  # A stamp begins there: no other blob has the same bytes.
            needle = blobs[victim][middle:middle + NEEDLE_BYTES]
            places = [place for folder in server.data for place in find(folder, needle)]
            for path, offset in places:
                if "journal" not in str(path.relative_to(scratch)):
                    flip(path, offset + NEEDLE_BYTES // 2)
                    flipped_at[victim] = middle + NEEDLE_BYTES // 2
        if not verdicts.equal("stored bytes found in extents and flipped", len(flipped_at), 2):
            return verdicts.exit_code()
        code, output = server.check()
        verdicts.check("check after the flip", code == 1, "exit 1 (damaged)", f"exit {code}")
        asked = subprocess.run([server.binary, "check", "--json", *server.data], capture_output=True, text=True, check=False)
        affected_as_reported(output, json.loads(asked.stdout), verdicts, len(blobs) + len(OTHERS))
        print("what check said:\n" + "\n".join(output.strip().splitlines()[-12:]))

        server.start()
        scrub_found = wait_until(lambda: any(corrupt_counters(server).values()), options.scrub_seconds)
        verdicts.check("scrub counts the damage nobody read", scrub_found, "> 0", corrupt_counters(server) or "no counter")
        data, at = blobs[READ_VICTIM], flipped_at[READ_VICTIM]
        windows = {"whole blob": {}, "range over the byte": {"offset": at - 100, "length": 200}}
        for what, window in windows.items():
            found = outcome(clients, READ_VICTIM, data, **window)
            verdicts.check(f"read of the damaged blob, {what}", found.startswith(("error ", "broken")), "a failure", found)
        found = outcome(clients, SCRUB_VICTIM, blobs[SCRUB_VICTIM])
        verdicts.check("read of the other damaged blob", found.startswith(("error ", "broken")), "a failure", found)
        states = {name: outcome(clients, name, data) for name, data in blobs.items()
                  if name not in (READ_VICTIM, SCRUB_VICTIM)}
        verdicts.none(f"{len(states)} other blobs read well", [row for row in states.items() if row[1] != "right"])
        clients.blob("after").upload_blob(b"still writing")
        verdicts.equal("writes go on", outcome(clients, "after", b"still writing"), "right")
        through_s3(server, verdicts, blobs, flipped_at)
        verdicts.check("counters about corruption", any(corrupt_counters(server).values()), "> 0",
                       corrupt_counters(server) or "no counter")
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--scrub-seconds", type=float, default=60, help="longest wait for the scrub")
    cli.run(main, cli.parse(flags))

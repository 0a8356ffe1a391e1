#!/usr/bin/env python3
"""Large things through S3: an object of 10,000 parts, copies of 1 GiB, many buckets, many versions of one key.

The parts are copies of one object of 5 MiB, so that they take no space. The object is completed in one request, and read back by
part and by range, through Blob too. Buckets are listed in pages. The versions are written by many clients, listed, read by their ids
and removed. The figures are processor time of the server; nothing fails because of them.
"""

import base64
import concurrent.futures
import hashlib
import os
import random

from lib import cli
from lib.faces import Faces, S3Face
from lib.report import Progress, Verdicts

PART = 5 << 20
GIB = 1 << 30
WRITERS = 8
# A clock tick is 10 ms: one copy is too short to be measured.
COPIES = 50
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """User and system time of a process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def copied_parts(faces, key, sources):
    """A new upload of parts that are copies of other objects. Returns its id and the tags of the parts."""
    upload = faces.s3.call("POST", key, [("uploads", "")]).text("UploadId")
    tags = []
    with Progress("copy parts", len(sources), "parts") as progress:
        for number, source in enumerate(sources, 1):
            query = [("partNumber", str(number)), ("uploadId", upload)]
            answer = faces.s3.call("PUT", key, query, {"x-amz-copy-source": f"/{faces.container}/{source}"})
            assert answer.status == 200, answer
            tags.append(answer.text("ETag").strip('"'))
            progress.advance()
    return upload, tags


def complete(faces, key, upload, tags):
    """Completes an upload of these tags."""
    parts = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>{tag}</ETag></Part>" for n, tag in enumerate(tags, 1))
    document = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
    return faces.s3.call("POST", key, [("uploadId", upload)], body=document)


def large_object(faces, server, verdicts, count, draw):
    """An object of `count` parts."""
    body = draw.randbytes(PART)
    faces.s3.call("PUT", "part", body=body)
    upload, tags = copied_parts(faces, "large", ["part"] * count)
    before = cpu_seconds(server.process.pid)
    answer = complete(faces, "large", upload, tags)
    verdicts.figure(f"processor time of the completion of {count:,} parts, ms",
                    f"{1000 * (cpu_seconds(server.process.pid) - before):.0f}", "100 for 10,000")
    digest = hashlib.md5(b"".join(bytes.fromhex(tag) for tag in tags)).hexdigest()
    verdicts.equal("tag", answer.text("ETag"), f'"{digest}-{count}"')
    verdicts.equal("the same tag from a second completion", complete(faces, "large", upload, tags).text("ETag"), f'"{digest}-{count}"')
    head = faces.s3.call("HEAD", "large").headers
    verdicts.equal("length", int(head["content-length"]), count * PART)
    wrong = []
    for number in [1, count, *(draw.randrange(1, count + 1) for _ in range(10))]:
        answer = faces.s3.call("GET", "large", [("partNumber", str(number))])
        if (answer.status, answer.body, answer.headers["x-amz-mp-parts-count"]) != (206, body, str(count)):
            wrong.append(f"part {number}: {answer.status}, {len(answer.body)} bytes")
    for _ in range(20):
        first = draw.randrange(count * PART - 100_000)
        want = (body * 2)[first % PART:first % PART + 100_000]
        ranged = f"bytes={first}-{first + 99_999}"
        if faces.s3.call("GET", "large", headers={"range": ranged}).body != want:
            wrong.append(f"S3 {ranged}")
        if faces.blob.call("GET", "large", headers={"x-ms-range": ranged}).body != want:
            wrong.append(f"Blob {ranged}")
    verdicts.none("parts and ranges that read wrong", wrong)


def large_copies(faces, server, verdicts):
    """Copies of an object of 1 GiB, as an object and as a part. Made after `large_object`, of its parts."""
    upload, tags = copied_parts(faces, "gib", ["part"] * (GIB // PART + 1))
    assert complete(faces, "gib", upload, tags).status == 200
    source = {"x-amz-copy-source": f"/{faces.container}/gib"}
    upload = faces.s3.call("POST", "part-of-gib", [("uploads", "")]).text("UploadId")
    query = [("partNumber", "1"), ("uploadId", upload)]
    for what, key, query in (("CopyObject", "copy-of-gib", ()), ("UploadPartCopy", "part-of-gib", query)):
        before = cpu_seconds(server.process.pid)
        for _ in range(COPIES):
            assert faces.s3.call("PUT", key, query, source).status == 200
        seconds = (cpu_seconds(server.process.pid) - before) / COPIES
        verdicts.figure(f"processor time of a {what} of 1 GiB, ms", f"{1000 * seconds:.1f}", "5")
    lengths = {key: faces.s3.call("HEAD", key).headers["content-length"] for key in ("gib", "copy-of-gib")}
    verdicts.equal("length of the copy", lengths["copy-of-gib"], lengths["gib"])


def many_buckets(faces, server, verdicts, count):
    """Buckets, listed in pages of 1,000."""
    names = [f"bucket-{number:05}" for number in range(count)]
    with Progress("create buckets", count, "buckets") as progress:
        for name in names:
            faces.s3.container = name
            assert faces.s3.call("PUT", "").status == 200
            progress.advance()
    faces.s3.container = ""
    before, found, token = cpu_seconds(server.process.pid), [], None
    while token != "":
        query = [("max-buckets", "1000"), *([("continuation-token", token)] if token else [])]
        answer = faces.s3.call("GET", "", query)
        found += [bucket.findtext("Name") for bucket in answer.tree().iter("Bucket")]
        token = answer.text("ContinuationToken") or ""
    verdicts.figure(f"processor time of a list of {count:,} buckets, ms", f"{1000 * (cpu_seconds(server.process.pid) - before):.0f}")
    verdicts.equal("buckets listed", [name for name in found if name in set(names)] == names, True)


def written_versions(server, key, numbers, progress):
    """Puts of one key, one after the other. The numbers that are their contents, by version id."""
    face, written = S3Face(server.account, "versions"), {}
    for number in numbers:
        answer = face.call("PUT", key, body=str(number).encode())
        assert answer.status == 200, answer
        written[answer.headers["x-amz-version-id"]] = number
        progress.advance()
    return written


def listed_versions(faces, key):
    """The versions of a key in the order of their list: (id, whether it is the latest)."""
    found, marker = [], []
    while marker is not None:
        page = faces.s3.call("GET", "", [("versions", ""), ("prefix", key), *marker])
        found += [(one.findtext("VersionId"), one.findtext("IsLatest")) for one in page.tree().iter("Version")]
        marker = None
        if page.text("IsTruncated") == "true":
            marker = [("key-marker", page.text("NextKeyMarker")), ("version-id-marker", page.text("NextVersionIdMarker"))]
    return found


def many_versions(server, verdicts, count, draw):
    """One key with many versions."""
    faces = Faces(server.account, "versions")
    enabled = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
    assert faces.s3.call("PUT", "", [("versioning", "")], body=enabled).status == 200
    with Progress("versions of one key", count, "versions") as progress, concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
        parts = pool.map(lambda first: written_versions(server, "one", range(first, count, WRITERS), progress), range(WRITERS))
        written = {version: number for part in parts for version, number in part.items()}
    # The server has closed the old connections, which were idle for longer than its time for a head.
    faces.reconnect()
    before = cpu_seconds(server.process.pid)
    found = listed_versions(faces, "one")
    verdicts.figure(f"processor time of a list of {count:,} versions, ms", f"{1000 * (cpu_seconds(server.process.pid) - before):.0f}")
    verdicts.equal("versions of one key", len(written), count)
    verdicts.equal("each is listed once", sorted(version for version, _ in found) == sorted(written), True)
    verdicts.equal("the first is the latest, and only it", [latest for _, latest in found] == ["true"] + ["false"] * (count - 1), True)
    for writer in range(WRITERS):
        # A writer's own puts are one after the other, so their order is known.
        own = [written[version] for version, _ in found if written[version] % WRITERS == writer]
        verdicts.equal(f"newest first, writer {writer}", own == sorted(own, reverse=True), True)
    wrong = []
    for version in draw.sample(sorted(written), min(count, 500)):
        body = faces.s3.call("GET", "one", [("versionId", version)]).body
        if body != str(written[version]).encode():
            wrong.append(f"{version}: {body[:40]}")
    verdicts.none("versions that read wrong", wrong)
    verdicts.equal("the current one", faces.blob.call("GET", "one").body, str(written[found[0][0]]).encode())
    # The page of a list ends early among many deleted versions, and has to go on within the key. A page looks at 16,384 rows at
    # least, so that this needs the full count.
    oldest = found[count * 9 // 10:]
    delete_versions(faces, [version for version, _ in found[:-len(oldest)]])
    left = [version for version, _ in listed_versions(faces, "one")]
    verdicts.equal("the oldest versions are left", left == [version for version, _ in oldest], True)
    delete_versions(faces, [version for version, _ in oldest])
    verdicts.equal("versions left", listed_versions(faces, "one"), [])
    verdicts.equal("the bucket is empty and can be deleted", faces.s3.call("DELETE", "").status, 204)


def delete_versions(faces, versions):
    """Deletes versions of the key, 1,000 per request."""
    for start in range(0, len(versions), 1_000):
        named = "".join(f"<Object><Key>one</Key><VersionId>{version}</VersionId></Object>" for version in versions[start:start + 1_000])
        document = f"<Delete><Quiet>true</Quiet>{named}</Delete>".encode()
        answer = faces.s3.call("POST", "", [("delete", "")], {"content-md5": md5_of(document)}, document)
        assert (answer.status, b"<Error>" in answer.body) == (200, False), answer


def md5_of(document):
    """The value of Content-MD5."""
    return base64.b64encode(hashlib.md5(document).digest()).decode()


def main(options, scratch):
    verdicts = Verdicts("sizes of S3")
    with cli.server(options, scratch) as server:
        faces = Faces(server.account, "large")
        large_object(faces, server, verdicts, 1_000 if options.small else 10_000, random.Random(1))
        large_copies(faces, server, verdicts)
        many_buckets(faces, server, verdicts, 500 if options.small else 10_000)
        many_versions(server, verdicts, 3_000 if options.small else 100_000, random.Random(2))
        server.stop()
        verdicts.sound(server)
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

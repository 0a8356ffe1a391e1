#!/usr/bin/env python3
"""aws (awscli, version 1) over S3: cp in parts, sync, mv, streams, presigned URLs, s3api, rb --force."""

import json
import pathlib
import sys
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import cli, s3_clients, trees
from lib.content import content
from lib.judged import Judged, equal, must, parse

BUCKET = "aws-cli"


def main(options, scratch):
    tree = trees.make(scratch / "tree", {**trees.FILES, "large.bin": 20 << 20})
    with cli.server(options, scratch) as server:
        account = server.account
        aws = lambda *words: must([s3_clients.program("aws"), *words], env=s3_clients.environment(account))
        judged = Judged("aws cli v1", aws("--version").split()[0].split("/")[1], options)
        with judged.group("mb and cp --recursive, in parts"):
            aws("s3", "mb", f"s3://{BUCKET}")
            aws("s3", "cp", "--recursive", "--only-show-errors", tree, f"s3://{BUCKET}/in/")
            s3_clients.seen_by_blob(account, BUCKET, "in/", tree)
            aws("s3", "cp", "--recursive", "--only-show-errors", f"s3://{BUCKET}/in/", scratch / "back")
            trees.same(tree, scratch / "back")
        with judged.group("sync and ls"):
            (tree / "plain.txt").write_bytes(b"changed, and longer")
            (tree / "empty").unlink()
            aws("s3", "sync", "--delete", "--only-show-errors", tree, f"s3://{BUCKET}/in/")
            s3_clients.seen_by_blob(account, BUCKET, "in/", tree)
            found = aws("s3", "ls", "--recursive", f"s3://{BUCKET}/in/").splitlines()
            equal(sorted(line.split(maxsplit=3)[3] for line in found), sorted(f"in/{name}" for name in trees.read(tree)))
        with judged.group("mv, copy on the server"):
            aws("s3", "cp", "--only-show-errors", f"s3://{BUCKET}/in/large.bin", f"s3://{BUCKET}/copy.bin")
            aws("s3", "mv", "--only-show-errors", f"s3://{BUCKET}/copy.bin", f"s3://{BUCKET}/moved.bin")
            equal(s3_clients.through_blob(account, BUCKET, "moved.bin"), {"": (tree / "large.bin").read_bytes()})
        with judged.group("what Blob wrote, streamed and presigned"):
            data = s3_clients.written_by_blob(account, BUCKET)
            aws("s3", "cp", "--only-show-errors", f"s3://{BUCKET}/from-blob.bin", scratch / "from-blob.bin")
            equal((scratch / "from-blob.bin").read_bytes() == data, True, "bytes:")
            with urllib.request.urlopen(aws("s3", "presign", f"s3://{BUCKET}/from-blob.bin").strip(), timeout=60) as answer:
                equal(answer.read() == data, True, "bytes of the presigned URL:")
        with judged.group("s3api"):
            (scratch / "one").write_bytes(content("one", 5000))
            aws("s3api", "put-object", "--bucket", BUCKET, "--key", "one", "--body", scratch / "one", "--metadata", "a=b",
                "--tagging", "k=v", "--checksum-algorithm", "SHA256")
            head = json.loads(aws("s3api", "head-object", "--bucket", BUCKET, "--key", "one"))
            equal((head["ContentLength"], head["Metadata"]), (5000, {"a": "b"}))
            tags = json.loads(aws("s3api", "get-object-tagging", "--bucket", BUCKET, "--key", "one"))
            equal(tags["TagSet"], [{"Key": "k", "Value": "v"}])
            equal(account.service().get_blob_client(BUCKET, "one").get_blob_tags(), {"k": "v"})
            attributes = json.loads(aws("s3api", "get-object-attributes", "--bucket", BUCKET, "--key", "one",
                                        "--object-attributes", "ETag", "Checksum", "ObjectSize"))
            equal(attributes["ObjectSize"], 5000)
        with judged.group("rb --force"):
            aws("s3", "rb", "--force", f"s3://{BUCKET}")
            equal(aws("s3", "ls").split(), [])
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

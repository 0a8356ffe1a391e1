#!/usr/bin/env python3
"""s3cmd over S3: put, get, sync, copies, info, ACLs, multipart uploads, signatures of versions 4 and 2."""

import importlib.metadata
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import cli, s3_clients, trees
from lib.judged import Judged, equal, must, parse

BUCKET = "s3cmd"


def main(options, scratch):
    tree = trees.make(scratch / "tree", {**trees.FILES, "large.bin": 18 << 20})
    with cli.server(options, scratch) as server:
        account = server.account
        flags = ["--config", scratch / "none", "--no-ssl", f"--access_key={account.name}", f"--secret_key={account.key}",
                 f"--host={account.address}", f"--host-bucket={account.address}", "--no-progress", "--multipart-chunk-size-mb=5"]
        (scratch / "none").touch()
        s3cmd = lambda *words: must([sys.executable, s3_clients.program("s3cmd"), *flags, *words])
        judged = Judged("s3cmd", importlib.metadata.version("s3cmd"), options)
        with judged.group("mb, put and get, in parts"):
            s3cmd("mb", f"s3://{BUCKET}")
            s3cmd("put", "--recursive", f"{tree}/", f"s3://{BUCKET}/in/")
            s3_clients.seen_by_blob(account, BUCKET, "in/", tree)
            (scratch / "back").mkdir()
            s3cmd("get", "--recursive", f"s3://{BUCKET}/in/", f"{scratch}/back/")
            trees.same(tree, scratch / "back")
        with judged.group("sync"):
            (tree / "plain.txt").write_bytes(b"changed")
            (tree / "empty").unlink()
            s3cmd("sync", "--delete-removed", f"{tree}/", f"s3://{BUCKET}/in/")
            s3_clients.seen_by_blob(account, BUCKET, "in/", tree)
        with judged.group("cp, mv, info, modify, setacl"):
            s3cmd("cp", f"s3://{BUCKET}/in/large.bin", f"s3://{BUCKET}/copy.bin")
            s3cmd("mv", f"s3://{BUCKET}/copy.bin", f"s3://{BUCKET}/moved.bin")
            s3cmd("modify", "--add-header=Cache-Control: max-age=9", f"s3://{BUCKET}/moved.bin")
            found = account.service().get_blob_client(BUCKET, "moved.bin").get_blob_properties()
            equal((found.size, found.content_settings.cache_control), (18 << 20, "max-age=9"))
            s3cmd("setacl", "--acl-private", f"s3://{BUCKET}/moved.bin")
            equal("18874368" in s3cmd("info", f"s3://{BUCKET}/moved.bin"), True)
        with judged.group("signatures of version 2, what Blob wrote"):
            data = s3_clients.written_by_blob(account, BUCKET)
            s3cmd("--signature-v2", "get", f"s3://{BUCKET}/from-blob.bin", scratch / "from-blob.bin")
            equal((scratch / "from-blob.bin").read_bytes() == data, True, "bytes:")
        with judged.group("ls, du, del, rb"):
            equal(len(s3cmd("ls", "--recursive", f"s3://{BUCKET}").splitlines()), len(trees.read(tree)) + 2)
            s3cmd("rb", "--recursive", "--force", f"s3://{BUCKET}")
            equal(s3cmd("ls").split(), [])
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

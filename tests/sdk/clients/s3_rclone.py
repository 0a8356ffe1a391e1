#!/usr/bin/env python3
"""rclone over S3: copy, check --download, sync, server-side copies, streams; and between `azureblob` and `s3` in one store."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import accounts, cli, s3, s3_clients, trees
from lib.judged import Judged, equal, must, parse

CHUNKS = ("--s3-chunk-size", "5M", "--s3-upload-cutoff", "5M", "--azureblob-chunk-size", "4M")


def environment(server, scratch):
    """The remotes `s3`, of the first account, and `blob`, the same account, and `other`, the second one through S3."""
    made = {**os.environ, "RCLONE_CONFIG": str(scratch / "rclone.conf"), "RCLONE_RETRIES": "1", "RCLONE_LOW_LEVEL_RETRIES": "1",
            "RCLONE_CACHE_DIR": str(scratch / "rclone-cache"), "RCLONE_CONFIG_BLOB_TYPE": "azureblob",
            "RCLONE_CONFIG_BLOB_ACCOUNT": server.account.name, "RCLONE_CONFIG_BLOB_KEY": server.account.key,
            "RCLONE_CONFIG_BLOB_ENDPOINT": server.account.url}
    for remote, account in (("S3", server.account), ("OTHER", accounts.second(server))):
        settings = {"TYPE": "s3", "PROVIDER": "Other", "ACCESS_KEY_ID": account.name, "SECRET_ACCESS_KEY": account.key,
                    "ENDPOINT": s3_clients.endpoint(account), "FORCE_PATH_STYLE": "true", "REGION": s3_clients.REGION}
        made |= {f"RCLONE_CONFIG_{remote}_{name}": value for name, value in settings.items()}
    return made


def main(options, scratch):
    tree = trees.make(scratch / "tree", {**trees.FILES, "large.bin": (12 if options.small else 64) << 20})
    with cli.server(options, scratch, extra=accounts.BOTH) as server:
        account, variables = server.account, environment(server, scratch)
        rclone = lambda *words: must([s3_clients.program("rclone"), *words, *CHUNKS], env=variables)
        judged = Judged("rclone (s3)", rclone("version").split()[1].lstrip("v"), options)
        with judged.group("copy and check --download"):
            rclone("mkdir", "s3:copied")
            rclone("copy", tree, "s3:copied/in")
            rclone("check", "--download", tree, "s3:copied/in")
            rclone("check", tree, "s3:copied/in")
            s3_clients.seen_by_blob(account, "copied", "in/", tree)
            rclone("copy", "s3:copied/in", scratch / "back")
            trees.same(tree, scratch / "back")
        with judged.group("sync and purge"):
            synced = trees.make(scratch / "synced")
            rclone("sync", synced, "s3:synced/in")
            (synced / "plain.txt").write_bytes(b"changed")
            (synced / "empty").unlink()
            rclone("sync", synced, "s3:synced/in")
            rclone("check", "--download", synced, "s3:synced/in")
            rclone("purge", "s3:synced/in")
            equal(rclone("lsf", "-R", "s3:synced").split(), [])
            rclone("rmdir", "s3:synced")
        with judged.group("server-side copy and move, rcat"):
            rclone("copy", "s3:copied/in", "s3:copied/b")
            rclone("moveto", "s3:copied/b", "s3:copied/c")
            rclone("check", "--download", tree, "s3:copied/c")
            equal(rclone("lsf", "-R", "s3:copied/b", "--files-only").split(), [])
            rclone("copy", "s3:copied/in/plain.txt", "other:taken")
            equal(s3_clients.through_blob(accounts.second(server), "taken"), {"plain.txt": (tree / "plain.txt").read_bytes()})
        with judged.group("azureblob to s3 and back, in one store"):
            rclone("mkdir", "blob:through")
            rclone("copy", tree, "blob:through/in", "--azureblob-access-tier", "Cool")
            rclone("check", "--download", "blob:through/in", "s3:through/in")
            listed = s3.client(account).list_objects_v2(Bucket="through")["Contents"]
            equal({one["StorageClass"] for one in listed}, {"STANDARD_IA"})
            rclone("copy", "s3:through/in", "blob:through/again")
            rclone("copy", "blob:through/again", "s3:through/third")
            rclone("check", "--download", tree, "s3:through/third")
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

#!/usr/bin/env python3
"""restic (Debian's) over S3: two backups, check --read-data, restore, forget with prune."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import cli, s3_clients, trees
from lib.install import Unavailable, debian
from lib.judged import Judged, equal, must, parse

BUCKET = "restic"


def main(options, scratch):
    try:
        debian(["restic"])
    except Unavailable as missing:
        judged = Judged("restic", "", options)
        judged.not_run("all", str(missing))
        return judged.exit_code()
    tree = trees.make(scratch / "tree", {**trees.FILES, "large.bin": 20 << 20})
    with cli.server(options, scratch) as server:
        account = server.account
        where = f"s3:{s3_clients.endpoint(account)}/{BUCKET}/repository"
        settings = s3_clients.environment(account, RESTIC_PASSWORD="password", RESTIC_REPOSITORY=where,
                                          RESTIC_CACHE_DIR=str(scratch / "cache"))
        restic = lambda *words: must(["restic", *words], env=settings, cwd=tree)
        judged = Judged("restic", restic("version").split()[1], options)
        with judged.group("init and backups"):
            restic("init")
            restic("backup", ".")
            (tree / "plain.txt").write_bytes(b"changed")
            restic("backup", ".")
        with judged.group("check --read-data"):
            equal("no errors were found" in restic("check", "--read-data"), True)
        with judged.group("restore"):
            restic("restore", "latest", "--target", scratch / "back")
            trees.same(tree, scratch / "back")
        with judged.group("forget and prune"):
            restic("forget", "--keep-last", "1", "--prune")
            restic("check")
            equal(len(s3_clients.through_blob(account, BUCKET, "repository/snapshots/")), 1)
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

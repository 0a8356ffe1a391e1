#!/usr/bin/env python3
"""rclone: copy, sync, check --download, server-side copy, move, mount. With the account key and with a signature.

Its configuration is in the environment, so nothing of the person who runs this is read or written.
"""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import accounts, cli, mounted, trees
from lib.content import content
from lib.judged import Judged, equal, must, parse
from lib.measure import wait_until

# With "0s" rclone 1.75.2 uploads while a file is closed and cannot take that upload back: a rename right then leaves the
# upload without its cached file ("hash: failed to open ... no such file"), and the file stays under both names. It does so
# against its own local backend and against any server. With a delay it renames what waits.
WRITE_BACK = "1s"
WRITTEN_BACK_SECONDS = 60


class Rclone:
    """The program beside this Python, with three remotes: the first account, the second, the first by signature."""

    def __init__(self, server, scratch):
        self.binary = pathlib.Path(sys.executable).parent / "rclone"
        first, other = server.account, accounts.second(server)
        self.environment = {
            **os.environ, "RCLONE_CONFIG": str(scratch / "rclone.conf"), "RCLONE_RETRIES": "1",
            "RCLONE_LOW_LEVEL_RETRIES": "1", "RCLONE_CACHE_DIR": str(scratch / "rclone-cache"),
            "RCLONE_CONFIG_SIGNED_TYPE": "azureblob", "RCLONE_CONFIG_SIGNED_SAS_URL": f"{first.url}?{accounts.sas(first)}",
        }
        for remote, account in (("ONE", first), ("TWO", other)):
            made = f"RCLONE_CONFIG_{remote}_"
            self.environment |= {f"{made}TYPE": "azureblob", f"{made}ACCOUNT": account.name, f"{made}KEY": account.key,
                                 f"{made}ENDPOINT": account.url}

    def __call__(self, *arguments):
        return must([self.binary, *arguments], env=self.environment)


def copy(rclone, tree, scratch, remote):
    """In, checked by bytes and by MD5, out again."""
    where = f"{remote}:copy{remote}/in"
    rclone("mkdir", f"{remote}:copy{remote}")
    rclone("copy", tree, where, "--azureblob-chunk-size", "4M")
    rclone("check", "--download", tree, where)
    rclone("check", tree, where)
    equal(sorted(rclone("lsf", "-R", "--files-only", where).splitlines()), sorted(trees.read(tree)))
    rclone("copy", where, scratch / f"back-{remote}")
    trees.same(tree, scratch / f"back-{remote}")
    equal(rclone("cat", "--offset", "3", "--count", "4", f"{where}/plain.txt"),
          content("plain.txt", 1200)[3:7].decode("utf-8", "replace"))


def sync(rclone, scratch):
    """A change and a removal follow; purge leaves nothing."""
    tree = trees.make(scratch / "synced")
    rclone("mkdir", "one:synced")
    rclone("sync", tree, "one:synced/in")
    (tree / "plain.txt").write_bytes(b"changed")
    (tree / "empty").unlink()
    rclone("sync", tree, "one:synced/in")
    rclone("check", "--download", tree, "one:synced/in")
    rclone("purge", "one:synced/in")
    equal(rclone("lsf", "-R", "one:synced").split(), [])
    rclone("rmdir", "one:synced")


def server_side(rclone, tree):
    """Copy and move inside the account and between two, without the bytes coming here."""
    rclone("mkdir", "one:side")
    rclone("copy", tree, "one:side/a", "--azureblob-chunk-size", "4M")
    text = rclone("copy", "one:side/a", "one:side/b", "-v", "--stats-one-line", "--use-json-log")
    rclone("check", "--download", "one:side/a", "one:side/b")
    rclone("moveto", "one:side/b", "one:side/c")
    equal(rclone("lsf", "-R", "one:side/b", "--files-only").split(), [])
    rclone("check", "--download", tree, "one:side/c")
    rclone("mkdir", "two:side")
    rclone("copy", "one:side/a", "two:side/a", "--server-side-across-configs")
    rclone("check", "--download", tree, "two:side/a")
    return text


def mount(rclone, judged, scratch):
    """A folder that is a container, and what is left on the server."""
    rclone("mkdir", "one:mounted")
    command = [rclone.binary, "mount", "one:mounted", scratch / "mounted", "--vfs-cache-mode", "writes",
               "--vfs-write-back", WRITE_BACK]
    wanted = sorted([*(f"tree/{name}" for name in trees.FILES), "large.bin",
                     *(f"process{n}/{count}" for n in range(mounted.PROCESSES) for count in range(1, 20))])
    left = lambda: sorted(rclone("lsf", "-R", "--files-only", "one:mounted").splitlines())
    with mounted.at(scratch / "mounted", command, rclone.environment, scratch / "mount.log") as point:
        mounted.groups(judged, point, scratch, "mount")
        # Files that are in the cache when a mount ends are uploaded only by the next mount.
        wait_until(lambda: left() == wanted, WRITTEN_BACK_SECONDS)
    equal(left(), wanted)
    rclone("copy", "one:mounted/tree", scratch / "mounted-tree")
    trees.same(trees.make(scratch / "mounted-wanted"), scratch / "mounted-tree")


def main(options, scratch):
    tree = trees.make(scratch / "tree", {**trees.FILES, "large.bin": (12 if options.small else 64) << 20})
    with cli.server(options, scratch, extra=accounts.BOTH) as server:
        rclone = Rclone(server, scratch)
        judged = Judged("rclone", rclone("version").split()[1].lstrip("v"), options)
        with judged.group("copy and check --download"):
            copy(rclone, tree, scratch, "one")
        with judged.group("copy with a SAS"):
            copy(rclone, tree, scratch, "signed")
        with judged.group("sync and purge"):
            sync(rclone, scratch)
        with judged.group("server-side copy and move"):
            server_side(rclone, tree)
        with judged.group("mount: what is left"):
            mount(rclone, judged, scratch)
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

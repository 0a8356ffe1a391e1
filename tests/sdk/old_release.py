#!/usr/bin/env python3
"""A store of an older release: the program of `--old` writes it, the program of `--binary` opens it.

The older program fills a store through the SDK, with everything that a client can make (`lib/heirloom.py`). It is stopped with
SIGTERM, and in a second store killed with SIGKILL under uploads. Then the newer program serves the store:

* every blob, snapshot, list, lease, tag, policy and setting reads as it did before; every upload that was acknowledged is there;
* what was begun is finished: staged blocks are committed, a pending copy completes, a lease is renewed;
* every kind of blob is written to, which adds rows of today to rows of then; after kill -9 all of it is there;
* `blockyard check` finds nothing;
* the older program refuses the store, says why, and changes nothing in it.

    git archive 3029b62 | tar x -C FOLDER && (cd FOLDER && cargo build --release)
    tests/sdk/old_release.py --old FOLDER/target/release/blockyard
"""

import json
import pathlib
import subprocess
import sys
import threading

from lib import accounts, cli, heirloom
from lib.account import Account
from lib.content import content
from lib.report import Verdicts
from lib.server import Server

SKIPPED = 77
UPLOADERS, UPLOADS_MIN = 4, 30
# The copy source is on loopback and slow. A blob that is rehydrated stays so while the script runs.
FLAGS = [*accounts.BOTH, "--split-requests=0", "--initial-partitions=4", "--index-hosts=2",
         "--copy-source-allow=127.0.0.1", "--copy-source-bytes-per-second-min=0", "--rehydration-seconds=3600"]


class Uploads:
    """Uploads that go on until the server dies, and which of them were acknowledged."""

    def __init__(self, account):
        self.container = account.service().get_container_client(heirloom.UPLOADED)
        self.container.create_container()
        self.acknowledged, self._lock = [], threading.Lock()
        self._enough = threading.Event()
        self._threads = [threading.Thread(target=self._upload, args=(number,)) for number in range(UPLOADERS)]

    def _upload(self, number):
        for turn in range(10_000):
            name = f"{number}-{turn:05}"
            try:
                self.container.upload_blob(name, content(name, (100, 30_000, 1_500_000)[turn % 3]))
            except Exception:  # pylint: disable=broad-except  # the server was killed
                return
            with self._lock:
                self.acknowledged.append(name)
                if len(self.acknowledged) >= UPLOADS_MIN:
                    self._enough.set()

    def until_killed(self, server):
        """Uploads for a while, then kills the server under them."""
        for thread in self._threads:
            thread.start()
        enough = self._enough.wait(120)
        server.kill()
        for thread in self._threads:
            thread.join()
        return enough


def lost(account, names):
    """The acknowledged uploads that are not as they were sent."""
    container = account.service().get_container_client(heirloom.UPLOADED)
    listed = {blob.name for blob in container.list_blobs()}
    wrong = []
    for name in names:
        size = (100, 30_000, 1_500_000)[int(name.split("-")[1]) % 3]
        if name not in listed or container.download_blob(name).readall() != content(name, size):
            wrong.append(name)
    return wrong


def fill(options, data, end, verdicts, source):
    """The older program writes a store. Returns an account that it made, its picture, the uploads that must be there."""
    with Server(options.old, [data], data.with_suffix(".old.log"), FLAGS) as server:
        server.start()
        everyone = all_accounts(server, created(server))
        heirloom.make(everyone, source)
        picture = heirloom.picture(everyone)
        verdicts.check(f"{end}: the older program wrote", len(picture) > 100, "> 100 facts", len(picture))
        if end == "stopped":
            verdicts.equal("stopped: exit code of the older program", server.stop(), 0)
            return everyone["created"], picture, []
        uploads = Uploads(server.account)
        verdicts.check("killed: under uploads", uploads.until_killed(server), f">= {UPLOADS_MIN}", len(uploads.acknowledged))
        return everyone["created"], picture, uploads.acknowledged


def created(server):
    """An account that the running program makes, one of whose keys was rotated."""
    for words in (["create", "thethird"], ["rotate", "thethird", "key1"]):
        command = [server.binary, "account", *words, "--json", "--admin-listen", server.admin_address, "--data", server.data[0]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return Account(server.blob_address, "thethird", json.loads(done.stdout)["keys"][0])


def all_accounts(server, made):
    """Two accounts that the command line names, and the one that was made, at this server."""
    made = Account(server.blob_address, made.name, made.key)
    return {"first": server.account, "second": accounts.second(server), "created": made}


def same(verdicts, what, found, wanted):
    """Records that two pictures are the same."""
    wrong = [f"{fact}: {found.get(fact)!r}, was {wanted.get(fact)!r}"[:300]
             for fact in sorted(found.keys() | wanted.keys(), key=str) if found.get(fact) != wanted.get(fact)]
    verdicts.none(f"{what}: {len(wanted)} facts", wrong)


def refused(options, data, verdicts, end):
    """The older program refuses the store and names what it cannot read."""
    with Server(options.old, [data], data.with_suffix(".refused.log"), FLAGS) as server:
        server.launch()
        try:
            code = server.process.wait(60)
        except subprocess.TimeoutExpired:
            code = None
        said = server.log_tail(20)
    advised = any(words in said for words in ("use the program that wrote it", "so run that release"))
    named = advised and "format 5" in said and str(data) in said
    verdicts.check(f"{end}: the older program does not start", code not in (0, None), "an error", f"exit {code}")
    verdicts.check(f"{end}: and says why", named, "the format, the directory, what to do", said.strip().splitlines()[-1])


def one(options, scratch, end, verdicts):
    """One store: filled, opened, written to, checked, refused."""
    data = scratch / f"store-{end}"
    with heirloom.Gate() as source:
        made, picture, uploaded = fill(options, data, end, verdicts, source)
        with Server(options.binary, [data], data.with_suffix(".new.log"), [*options.serve_arg, *FLAGS]) as server:
            server.start()
            everyone = all_accounts(server, made)
            same(verdicts, f"{end}: reads equal", heirloom.picture(everyone), picture)
            if uploaded:
                verdicts.none(f"{end}: {len(uploaded)} acknowledged uploads", lost(everyone["first"], uploaded))
            source.open()
            verdicts.none(f"{end}: what was begun is finished", heirloom.finish(everyone["first"]))
            verdicts.none(f"{end}: writes go on", heirloom.change(everyone))
            changed = heirloom.picture(everyone)
            server.kill()
            server.start()
            same(verdicts, f"{end}: equal after kill -9", heirloom.picture(everyone), changed)
            verdicts.equal(f"{end}: exit code after SIGTERM", server.stop(), 0)
            verdicts.sound(server, f"{end}: blockyard check")
            refused(options, data, verdicts, end)
            server.start()
            same(verdicts, f"{end}: equal after the refusal", heirloom.picture(everyone), changed)
            server.stop()
            verdicts.sound(server, f"{end}: blockyard check once more")


def main(options, scratch):
    if not options.old:
        print("not run: it needs the program of an older release, see --help", flush=True)
        return SKIPPED
    verdicts = Verdicts("a store of an older release")
    for end in ("stopped", "killed"):
        one(options, scratch, end, verdicts)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--old", "--old-binary", type=pathlib.Path, help="the program of the older release, such as of 3029b62")
    parsed = cli.parse(flags)
    if parsed.old and not parsed.old.exists():
        sys.exit(f"no program {parsed.old}")
    parsed.old = parsed.old and parsed.old.resolve()
    cli.run(main, parsed)

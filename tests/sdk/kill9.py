#!/usr/bin/env python3
"""Repeated kill -9 of the real process, under concurrent load.

Every worker has blobs of its own and knows, for each of them, what the server acknowledged and what was in doubt
when the connection broke. After each restart every blob must be in a state the worker can explain:

* an acknowledged write is present, with its bytes and its metadata;
* an acknowledged delete stays deleted;
* of the one operation in doubt, all or nothing happened: never a mix of two versions, never a half-made blob;
* everything that belongs to a blob is as acknowledged: staged blocks, appended pieces, page ranges, snapshots, leases, tags;
* the listing shows the very blobs that reads show.

The load is mixed (`lib/killed/`, a file for each kind): block, append and page blobs, snapshots, copies, leases, tags.
Meanwhile the partition map changes: splits, merges, moves, stripes, so that kills strike in the middle of those too.
The run ends with `blockyard check` of the stopped data. Times from start to serving are reported, not judged.
"""

from lib import cli
from lib.changes import Admin, Changer
from lib.killed import load
from lib.report import Verdicts
from lib.server import Server

CONTAINER = "kill9"


def main(options, scratch):
    verdicts = Verdicts(f"kill -9, {options.cycles} cycles, {options.threads} threads")
    disks = [scratch / f"disk-{number}" for number in range(options.disks)]
    other = Server(options.binary, [scratch / "other"], scratch / "other.log")
    with other, cli.server(options, scratch, extra=load.SERVED_WITH, data=disks) as server:
        other.start()
        everything = load.everything(server, other, CONTAINER, options.threads)
        changer = Changer(Admin(server), load.keys(server, CONTAINER, everything), options.seed)
        store = load.AzureStore(server.account, CONTAINER)
        cycles = load.Cycles(server, store, everything, options.seed, options.load_seconds, changer)
        cycles.run_all("load, kill -9, restart, verify", options.cycles, lambda _: server.kill())
        verdicts.equal("exit code after SIGTERM", server.stop(), 0)
        verdicts.sound(server)
    cycles.verdicts(verdicts)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--cycles", type=int, help="kills (default 50; 10 with --small)")
    flags.add_argument("--threads", type=int, default=12, help="workers, each with its own blobs")
    flags.add_argument("--load-seconds", type=float, default=2.0, help="longest load before a kill")
    flags.add_argument("--disks", type=int, default=1, help="data directories of the server")
    flags.add_argument("--seed", default="20", help="makes the same sequence of operations again")
    parsed = cli.parse(flags)
    parsed.cycles = parsed.cycles or (10 if parsed.small else 50)
    cli.run(main, parsed)

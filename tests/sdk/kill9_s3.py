#!/usr/bin/env python3
"""Repeated kill -9 of the real process, under concurrent load of S3 clients.

As `kill9.py`, with the operations of S3: PutObject and overwrites, UploadPart and CompleteMultipartUpload, AbortMultipartUpload,
DeleteObject and DeleteObjects, CopyObject; versions, delete markers and legal holds in a bucket with object lock. After each
restart:

* an acknowledged write is present, with its bytes, its metadata and its ETag; an acknowledged delete stays deleted;
* of the one operation in doubt, all or nothing happened; of DeleteObjects each key by itself;
* the parts of an upload are as acknowledged; a completion that was acknowledged, and one in doubt, is repeated and answers what
  the first did, and nothing changes by it;
* every version is there, with its bytes and its legal hold, and one that is held is not deleted;
* the listing shows the very objects that reads show.

Meanwhile the partition map changes. The run ends with `blockyard check` of the stopped data.
"""

from lib import cli
from lib.changes import Admin, Changer
from lib.killed import kept, load, s3
from lib.report import Verdicts

BUCKET = "kill9"


def main(options, scratch):
    verdicts = Verdicts(f"kill -9 over S3, {options.cycles} cycles, {options.threads} threads")
    with cli.server(options, scratch, extra=load.SERVED_WITH) as server:
        account = server.account
        store = s3.Store(f"http://{account.address}", (account.name, account.key), BUCKET)
        clients = store.clients()
        clients.create_bucket()
        clients.boto.create_bucket(Bucket=kept.BUCKET, ObjectLockEnabledForBucket=True)
        everything = [load.subjects(worker, (*s3.KINDS, *kept.KINDS)) for worker in range(options.threads)]
        keys = [key for bucket in (BUCKET, kept.BUCKET) for key in load.keys(server, bucket, everything)]
        changer = Changer(Admin(server), keys, options.seed)
        cycles = load.Cycles(server, store, everything, options.seed, options.load_seconds, changer)
        cycles.run_all("load, kill -9, restart, verify", options.cycles, lambda _: server.kill())
        verdicts.equal("exit code after SIGTERM", server.stop(), 0)
        verdicts.sound(server)
    cycles.verdicts(verdicts)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--cycles", type=int, help="kills (default 300; 6 with --small)")
    flags.add_argument("--threads", type=int, default=8, help="workers, each with its own objects")
    flags.add_argument("--load-seconds", type=float, default=2.0, help="longest load before a kill")
    flags.add_argument("--seed", default="20", help="makes the same sequence of operations again")
    parsed = cli.parse(flags)
    parsed.cycles = parsed.cycles or (6 if parsed.small else 300)
    cli.run(main, parsed)

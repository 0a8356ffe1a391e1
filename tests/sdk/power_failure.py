#!/usr/bin/env python3
"""Repeated power failures under the real program, under concurrent load.

The data folders lie on a file system of the tests (`tests/power`) that keeps what was not synced
in memory. The server is killed in the middle of a load (the one of kill9.py: every kind of blob,
changes of the partition map), and the file system loses power with it: what was not synced is
gone, names included (`forget`), or a prefix or some sectors of it are left (`torn`), or some
operations without those before them (`reordered`). The server starts again; in one of three cycles
the power fails a second time while it does. Then, as after kill -9:

* what was acknowledged is there: bytes, metadata, tags, snapshots, staged blocks, leases; what was
  deleted stays deleted;
* an operation in doubt happened whole or not at all;
* the listing shows the very blobs that reads show.

The run ends with `blockyard check` of the stopped data. Each failure's mode and seed are printed.
`--seed` and `--modes` bring the same moments and choices again, but not the order of threads.

With `--peer` another server runs under the part of the load that it can carry out, on new blobs in
each cycle, and what it loses is counted, not judged. `--peer blockyard` is the row beside it.

Where /dev/fuse cannot be opened the script says "not run" and exits with 77.
"""

import functools
import random
import time

from lib import accounts, cli, peers, power
from lib.changes import Admin, Changer
from lib.judged import NotRun
from lib.killed import load
from lib.report import Progress, Verdicts
from lib.server import Server

CONTAINER = "power"
START_SECONDS_MAX = 0.5


class Failures:
    """Ends the server, and drops bytes that were not synced."""

    def __init__(self, mount, server, seed, modes):
        self.mount, self.server, self.seed, self.modes = mount, server, seed, modes
        # Of each mode that struck: unsynced changes, and how many of them survived.
        self.met = {}

    def strike(self, cycle):
        """One power failure, and in one of three cycles another one during the next start."""
        draw = random.Random(f"{self.seed}/{cycle}/power")
        self._one(cycle, self.modes[cycle % len(self.modes)], draw)
        if draw.random() < 1 / 3:
            self.server.launch()
            time.sleep(draw.uniform(0, START_SECONDS_MAX))
            self._one(cycle, draw.choice(self.modes), draw)

    def _one(self, cycle, mode, draw):
        self.server.kill()
        seed = draw.getrandbits(48)
        text = self.mount.lose_power(mode, seed)
        print(f"cycle {cycle}: {mode}, seed {seed}: {text}", flush=True)
        found = {word: int(number) for word, number in (part.split("=") for part in text.split())}
        met = self.met.setdefault(mode, [0, 0])
        met[0] += found["changes"] + found["names"]
        met[1] += found["survived"] + found["names_survived"]

    def verdicts(self, verdicts):
        """What the failures discarded. A failure that discards nothing proves nothing."""
        for mode, (changes, survived) in self.met.items():
            what = f"{mode}: unsynced changes met, survivors"
            verdicts.figure(what, f"{changes:,}, {survived:,}")
        met = {mode: changes for mode, (changes, _) in self.met.items()}
        what = "failures met unsynced changes"
        verdicts.check(what, all(met.values()), "in every mode", str(met))


def blockyard(options, scratch, mount, verdicts):
    """The whole load on blockyard."""
    disks = [mount.point / f"disk-{number}" for number in range(options.disks)]
    other = Server(options.binary, [scratch / "other"], scratch / "other.log")
    served = cli.server(options, scratch, extra=load.SERVED_WITH, data=disks)
    with other, served as server:
        other.start()
        everything = load.everything(server, other, CONTAINER, options.threads)
        changer = Changer(Admin(server), load.keys(server, CONTAINER, everything), options.seed)
        store = load.AzureStore(server.account, CONTAINER)
        seconds = options.load_seconds
        cycles = load.Cycles(server, store, everything, options.seed, seconds, changer)
        failures = Failures(mount, server, options.seed, options.modes)
        cycles.run_all("load, power failure, restart, verify", options.cycles, failures.strike)
        verdicts.equal("exit code after SIGTERM", server.stop(), 0)
        verdicts.sound(server)
    cycles.verdicts(verdicts)
    failures.verdicts(verdicts)


def peer(options, scratch, mount, verdicts):
    """Part of the load on another server; after each cycle its losses are forgotten."""
    lost = {mode: 0 for mode in options.modes}
    blobs = refused = acknowledged = 0
    with peers.start(options.peer, options, mount.point, scratch / "peer.log") as server:
        failures = Failures(mount, server, options.seed, options.modes)
        orderly = _peer_cycle(server, options, "orderly", server.stop)
        verdicts.figure("not explained after an orderly stop", len(orderly.complaints))
        with Progress("load, power failure, restart, verify", options.cycles, "cycles") as progress:
            for cycle in range(options.cycles):
                strike = functools.partial(failures.strike, cycle)
                try:
                    done = _peer_cycle(server, options, cycle, strike)
                except peers.Unusable as error:
                    print(f"cycle {cycle}: started and takes nothing: {error}"[:300], flush=True)
                    refused += 1
                    _anew(server)
                    done = _peer_cycle(server, options, cycle, strike)
                if not server.running():
                    refused += 1
                    _anew(server)
                lost[options.modes[cycle % len(options.modes)]] += bool(done.complaints)
                blobs += len(done.complaints)
                acknowledged += done.acknowledged.total()
                progress.move_to(cycle + 1, f"{blobs} complaints")
    verdicts.figure("server", server.name)
    verdicts.figure("cycles, operations acknowledged", f"{options.cycles}, {acknowledged:,}")
    verdicts.figure("cycles with a loss, of each mode", str(lost))
    verdicts.figure("blobs and listings that cannot be explained", f"{blobs:,}")
    verdicts.figure("starts that failed, or after which nothing was taken", refused)
    failures.verdicts(verdicts)


def _anew(server):
    """A start without data."""
    server.kill()
    server.wipe()
    server.start()


def _peer_cycle(server, options, cycle, crash):
    """One cycle on new blobs; the cycle's books."""
    store = server.store(f"{CONTAINER}-{cycle}")
    everything = [load.subjects(worker, server.kinds) for worker in range(options.threads)]
    done = load.Cycles(server, store, everything, options.seed, options.load_seconds)
    for complaint in done.run(cycle, crash)[:2]:
        print(f"cycle {cycle}: {complaint}"[:300], flush=True)
    return done


def main(options, scratch):
    verdicts = Verdicts(f"power failure, {options.cycles} cycles, {options.threads} threads")
    try:
        program = options.file_system or power.program()
        with power.PowerMount(program, scratch, sync_ms=options.sync_ms) as mount:
            (peer if options.peer else blockyard)(options, scratch, mount, verdicts)
    except NotRun as reason:
        print(f"not run: {reason}")
        return power.NOT_RUN
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--cycles", type=int, help="power failures (default 100; 5 with --small)")
    flags.add_argument("--threads", type=int, default=8, help="workers, each with its own blobs")
    flags.add_argument("--load-seconds", type=float, default=2.0,
                       help="longest load before a failure")
    flags.add_argument("--disks", type=int, help="data directories (default 2; 1 with --small)")
    flags.add_argument("--sync-ms", type=int, default=4, help="longest time a sync takes")
    flags.add_argument("--modes", nargs="+", choices=power.MODES, default=list(power.MODES),
                       help="in turns")
    flags.add_argument("--file-system", help="the program of tests/power (default: built here)")
    flags.add_argument("--seed", default="20", help="makes the same moments and choices again")
    flags.add_argument("--peer", choices=peers.NAMES, help="this server instead, losses counted")
    parsed = cli.parse(flags)
    parsed.cycles = parsed.cycles or (5 if parsed.small else 100)
    parsed.disks = parsed.disks or (1 if parsed.small else 2)
    cli.run(main, parsed)

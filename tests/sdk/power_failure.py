#!/usr/bin/env python3
"""Power failures under the real program, again and again, under concurrent load.

The data folders lie on a file system of the tests (`tests/power`) that keeps what was not synced in memory. The server is
killed in the middle of a load (the one of kill9.py: every kind of blob, changes of the partition map), and the file system
loses power with it: what was not synced is gone, names included (`forget`), or a prefix or some sectors of it are left (`torn`), or
some operations without those before them (`reordered`). The server starts again; in one of three cycles the power
fails a second time while it does. Then, as after kill -9:

* what was acknowledged is there: bytes, metadata, tags, snapshots, staged blocks, leases; what was deleted stays deleted;
* an operation in doubt happened whole or not at all;
* the listing shows the very blobs that reads show.

The run ends with `blockyard check` of the stopped data. Each failure's mode and seed are printed. `--seed` and `--modes` bring
the same moments and choices again; how threads interleave they cannot bring again.

Where /dev/fuse cannot be opened the script says "not run" and exits with 77.
"""

import random
import time

from lib import accounts, cli, power
from lib.changes import Admin, Changer
from lib.judged import NotRun
from lib.killed import load
from lib.report import Progress, Verdicts
from lib.server import Server

CONTAINER = "power"
START_SECONDS_MAX = 0.5


class Failures:
    """Ends the server together with what was not synced."""

    def __init__(self, mount, server, seed, modes):
        self.mount, self.server, self.seed, self.modes = mount, server, seed, modes
        self.met = {mode: [0, 0] for mode in modes}

    def strike(self, cycle):
        """One power failure, and in one of three cycles another one during the start that follows."""
        draw = random.Random(f"{self.seed}/{cycle}/power")
        mode = self.modes[cycle % len(self.modes)]
        self._one(cycle, mode, draw)
        if draw.random() < 1 / 3:
            self.server.launch()
            time.sleep(draw.uniform(0, START_SECONDS_MAX))
            self._one(cycle, draw.choice(self.modes), draw)

    def _one(self, cycle, mode, draw):
        self.server.kill()
        seed = draw.getrandbits(48)
        text = self.mount.lose_power(mode, seed)
        print(f"cycle {cycle}: {mode}, seed {seed}: {text}", flush=True)
        found = dict(part.split("=") for part in text.split())
        self.met[mode][0] += int(found["changes"]) + int(found["names"])
        self.met[mode][1] += int(found["survived"]) + int(found["names_survived"])

    def figures(self, verdicts):
        """What the failures met. A run whose failures lose nothing shows nothing."""
        for mode, (changes, survived) in self.met.items():
            verdicts.figure(f"{mode}: unsynced changes met, survivors", f"{changes:,}, {survived:,}")
        verdicts.check("failures met unsynced changes", all(met[0] for met in self.met.values()), "in every mode",
                       str({mode: met[0] for mode, met in self.met.items()}))


def run_cycles(cycles, failures, options):
    """All cycles; ends early when there is much to complain of."""
    with Progress("load, power failure, restart, verify", options.cycles, "cycles") as progress:
        for cycle in range(options.cycles):
            found = cycles.run(cycle, lambda: failures.strike(cycle))
            for complaint in found[:5]:
                print(f"cycle {cycle}: {complaint}", flush=True)
            progress.move_to(cycle + 1, f"{cycles.acknowledged.total():,} acknowledged, {len(cycles.complaints)} complaints")
            if len(cycles.complaints) > load.COMPLAINTS_MAX:
                break


def blockyard(options, scratch, mount, verdicts):
    """The whole load on blockyard."""
    disks = [mount.point / f"disk-{number}" for number in range(options.disks)]
    other = Server(options.binary, [scratch / "other"], scratch / "other.log")
    with other, cli.server(options, scratch, extra=load.SERVED_WITH, data=disks) as server:
        other.start()
        elsewhere = load.sources(other, CONTAINER)
        signature = accounts.sas(server.account)
        everything = [load.subjects(worker, signature, elsewhere) for worker in range(options.threads)]
        server.account.service().create_container(CONTAINER)
        keys = [[f"{server.account.name}/{CONTAINER}/{subject.name}" for subject in mine] for mine in everything]
        changer = Changer(Admin(server), keys, options.seed)
        store = load.AzureStore(server.account, CONTAINER)
        cycles = load.Cycles(server, store, everything, options.seed, options.load_seconds, changer)
        failures = Failures(mount, server, options.seed, options.modes)
        run_cycles(cycles, failures, options)
        verdicts.equal("exit code after SIGTERM", server.stop(), 0)
        verdicts.sound(server)
    return cycles, failures


def main(options, scratch):
    verdicts = Verdicts(f"power failure, {options.cycles} cycles, {options.threads} threads")
    try:
        binary = options.file_system or power.program()
        with power.PowerMount(binary, scratch, sync_ms=options.sync_ms) as mount:
            cycles, failures = blockyard(options, scratch, mount, verdicts)
    except NotRun as reason:
        print(f"not run: {reason}")
        return power.NOT_RUN
    cycles.verdicts(verdicts)
    failures.figures(verdicts)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--cycles", type=int, help="power failures (default 100; 5 with --small)")
    flags.add_argument("--threads", type=int, default=8, help="workers, each with its own blobs")
    flags.add_argument("--load-seconds", type=float, default=2.0, help="longest load before a failure")
    flags.add_argument("--disks", type=int, default=2, help="data directories of the server")
    flags.add_argument("--sync-ms", type=int, default=4, help="longest time a sync takes")
    flags.add_argument("--modes", nargs="+", choices=power.MODES, default=list(power.MODES), help="in turns")
    flags.add_argument("--file-system", help="the program of tests/power (default: built here)")
    flags.add_argument("--seed", default="20", help="makes the same moments and choices again")
    parsed = cli.parse(flags)
    parsed.cycles = parsed.cycles or (5 if parsed.small else 100)
    cli.run(main, parsed)

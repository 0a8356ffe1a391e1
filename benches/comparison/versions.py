"""Two containers of one server with the same names: in one each name has old versions, and as many deleted names lie between
them. What a list takes for each key, and a read."""

import os
import shutil
import statistics
import subprocess
import sys
import time

from comparison import measure
from comparison.driver import Driver
from comparison.report import figure, line
from comparison.run import about, options, write
from comparison.servers import Blockyard, BlockyardS3, say, target_dir

PLAIN, VERSIONED = CONTAINERS = ("plain", "versioned")
ACCOUNT = "devstoreaccount1"
PAGE = 1_000
READS = 20_000
# The connections that fill the store. With more of them a sync of the journal covers more writes.
FILLERS = "192"
# Processor time is counted in hundredths of a second: short lists are read several times.
PAGES_MIN = 2_000
BAR = 1.1
# The server is at rest when it took less of a processor than this several times in a row, each time over a second. It compacts
# partitions ten seconds after their last write (ADR 0048).
REST_CPU_US, REST_TIMES, REST_MOST = 30_000, 15, 900
# Without automatic splits both containers lie in one partition. Otherwise the one that is written more is split more often, and
# its lists merge more partitions.
NO_SPLITS = ("--split-requests", "0")


def main():
    """Fills both containers, lists them in turns and writes benches/results/versions.{md,json}."""
    args = arguments()
    driver = Driver(1, args.driver)
    server = Blockyard(None, args.port)
    server.program, server.serve_args = args.binary, [*NO_SPLITS, *args.serve_arg]
    version = server.install()
    s3 = BlockyardS3(None, args.port)
    work = target_dir().resolve() / "bench-data" / "versions"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    results = {
        **about(), "version": version, "load": f"{os.getloadavg()[0]:.1f}", "names": args.names, "versions": args.versions,
        "rounds": {face: {container: [] for container in CONTAINERS} for face in ("Blob", "S3")},
    }
    page = ""
    try:
        data = measure.fresh(work)
        server.start(data)
        time.sleep(2)
        # Twice, so that times of creation and of the last change differ in both containers: a list spells out both.
        for _ in range(2):
            fill(driver, server, PLAIN, args.names)
        subprocess.run(
            [server.program, "account", "set", ACCOUNT, "--versioning=on", "--admin-listen", f"127.0.0.1:{args.port + 1}", "--data", str(data)],
            check=True, stdout=subprocess.DEVNULL)
        for number in range(args.versions + 1):
            say(f"version {number + 1} of {args.versions + 1}")
            fill(driver, server, VERSIONED, args.names)
        say(f"{args.names} names between them, deleted")
        succeeded(driver.run(server, ["gone"], ["--container", VERSIONED, "--concurrency", FILLERS, "--ops", str(args.names)]))
        rest(driver, server)
        for number in range(args.rounds):
            if args.hold:
                say(f"round {number + 1} of {args.rounds} waits for a line of standard input")
                sys.stdin.readline()
            for face, kind in (("Blob", server), ("S3", s3)):
                for container in CONTAINERS if number % 2 == 0 else reversed(CONTAINERS):
                    say(f"round {number + 1} of {args.rounds}: {face}, {container}")
                    results["rounds"][face][container].append(one_round(driver, kind, server, container, args.names))
            page = write(args.out, "versions", results, render)
    finally:
        server.stop()
        shutil.rmtree(work, ignore_errors=True)
    print(page)
    return 0


def arguments():
    """The command line."""
    parser = options(__doc__, 22600)
    parser.add_argument("--names", type=int, default=1_000_000, help="names in each container (default 1,000,000)")
    parser.add_argument("--versions", type=int, default=20, help="old versions of each name (default 20)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of lists and reads (default 3)")
    parser.add_argument("--hold", action="store_true", help="wait for a line of standard input before each round")
    return parser.parse_args()


def fill(driver, server, container, names):
    """Writes every name once."""
    succeeded(driver.run(server, ["fill"], ["--container", container, "--concurrency", FILLERS, "--ops", str(names)]))


def one_round(driver, face, server, container, names):
    """A list of all names, and reads of some."""
    common = ["--container", container, "--pid", str(server.process.pid), "--ops"]
    pages = driver.run(face, ["pages"], [*common, str(max(PAGES_MIN, -(-names // PAGE)))])
    reads = driver.run(face, ["audit"], [*common, str(min(names, READS))])
    return {**succeeded(pages), **succeeded(reads)}


def succeeded(figures):
    """The figures, none of which has a failed operation."""
    for name, one in figures.items():
        if one["errors"]:
            raise RuntimeError(f"{one['errors']} operations of {name} failed")
    return figures


def rest(driver, server):
    """Waits until deferred work of the server has ended."""
    say("waiting until the server is at rest")
    quiet = 0
    for _ in range(REST_MOST):
        idle = driver.run(server, ["idle"], ["--pid", str(server.process.pid)])["idle"]
        quiet = quiet + 1 if idle["server"]["cpu_us_per_unit"] < REST_CPU_US else 0
        if quiet == REST_TIMES:
            return


def render(results):
    """Markdown of a whole run."""
    parts = [
        "# Lists beside old versions", "",
        f"{results['date']}, {results['machine']}, {results['version']}, load average {results['load']} at the start. Two containers of "
        f"one server have the same {results['names']:,} names. In one of them each name has {results['versions']} old versions, and "
        f"{results['names']:,} deleted names, each with a delete marker and a version, lie between them. Server CPU in microseconds, "
        f"the median of {len(results['rounds']['Blob'][PLAIN])} rounds that take turns. Automatic splits are off, so both lie in one "
        f"partition. The bar is {BAR}.", "",
        line(["operation", *CONTAINERS, "ratio", "met"]), line(["---"] + ["---:"] * 3 + ["---"]),
    ]
    for face, containers in results["rounds"].items():
        for workload, title in (("pages", "list in pages of 1,000, for each key"), ("audit", "read of 64 bytes")):
            plain, versioned = (
                statistics.median(one[workload]["server"]["cpu_us_per_unit"] for one in containers[container])
                for container in CONTAINERS)
            ratio = versioned / plain
            parts.append(line([f"{face}: {title}", figure(plain), figure(versioned), f"{ratio:.2f}", "yes" if ratio <= BAR else "NO"]))
    return "\n".join(parts) + "\n"

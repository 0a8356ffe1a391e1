"""What the place of small bodies costs: the operations that write, read or pass over bodies of 4 KiB, on two programs of this
server. Both run all the time and take turns at each workload. Two scenes: rows in memory, and rows in runs."""

import os
import shutil
import statistics
import time
from dataclasses import dataclass

from comparison import measure
from comparison.driver import Driver
from comparison.report import figure, line
from comparison.run import about, options, write
from comparison.servers import Blockyard, say, target_dir
from comparison.turns import SIDES

# The median of the pairs may be this much for the workloads that are held to it (issue 13).
BAR = 1.06


@dataclass(frozen=True)
class Row:
    """One workload: its name in the driver, words for the table, its number of operations if not the driver's, whether it is
    held to the bar."""

    workload: str
    title: str
    ops: int | None = None
    held: bool = False


# Rows stay in memory for the most part.
MEMORY = [
    Row("put4k", "PUT 4 KiB of new names (per op)", 10_000, True),
    Row("get4k", "GET 4 KiB (per op)", 20_000, True),
    Row("head", "HEAD (per op)", 20_000),
    Row("delete", "DELETE (per op)", 5_000),
    Row("list4k", "LIST of 4 KiB blobs, page of 1000 (per key)", 200),
    Row("list", "LIST of 64 byte blobs, page of 1000 (per key)", 200),
    Row("mixed", "mixed 45 get / 30 head / 15 put / 10 delete (per op)", 10_000),
]
# Memtables of 4 MiB: nearly all rows are in runs, and the runs are merged again and again.
RUNS = [
    Row("put4k", "PUT 4 KiB of new names (per op)", 20_000),
    Row("get4k", "GET 4 KiB (per op)", 20_000),
    Row("head", "HEAD (per op)", 20_000),
    Row("list4k", "LIST of 4 KiB blobs, page of 1000 (per key)", 200),
]
SCENES = {"memory": ("Rows in memory", MEMORY, []), "runs": ("Rows in runs", RUNS, ["--memtable-bytes=4MiB"])}


def main():
    """Runs the rounds and writes benches/results/bodies.{md,json}."""
    args = arguments()
    driver = Driver(1, args.driver)
    work = target_dir().resolve() / "bench-data" / "bodies"
    results = {**about(), "load": f"{os.getloadavg()[0]:.1f}", "about": args.about, "scenes": {}}
    page = ""
    try:
        for name in args.scene:
            rounds = results["scenes"][name] = {side: [{} for _ in range(args.rounds)] for side in SIDES}
            for number in scene(args, driver, work / name, name, rounds):
                page = write(args.out, "bodies", results, render)
                say(f"{name}: {number} of {args.rounds} rounds")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(page)
    return 0


def scene(args, driver, work, name, rounds):
    """The rounds of one scene; yields after each."""
    _, rows, serve = SCENES[name]
    rows = [row for row in rows if not args.only or row.workload in args.only]
    servers = {"before": Blockyard(None, args.port + 2), "now": Blockyard(None, args.port)}
    servers["before"].program, servers["now"].program = args.before, args.binary
    shutil.rmtree(work, ignore_errors=True)
    try:
        for side, server in servers.items():
            server.name, server.serve_args = side, [*serve, *args.serve_arg]
            server.install()
            (work / side).mkdir(parents=True)
            server.start(measure.fresh(work / side))
        time.sleep(2)
        for number in range(args.rounds):
            for row in rows:
                # Each goes first as often as second.
                for side in SIDES if number % 2 == 0 else reversed(SIDES):
                    extra = ["--pid", str(servers[side].process.pid)]
                    extra += ["--ops", str(row.ops)] if row.ops else []
                    extra += ["--prefix", f"put4k-{number}"] if row.workload == "put4k" else []
                    rounds[side][number].update(driver.run(servers[side], [row.workload], extra))
            yield number + 1
    finally:
        for server in servers.values():
            server.stop()


def arguments():
    """The command line."""
    parser = options(__doc__, 22500)
    parser.add_argument("--before", type=lambda text: os.path.abspath(text), required=True, help="the program it is compared with")
    parser.add_argument("--rounds", type=int, default=10, help="rounds of each scene (default 10)")
    parser.add_argument("--scene", nargs="+", choices=list(SCENES), default=list(SCENES), help="which scenes (default both)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these workloads")
    parser.add_argument("--about", default="", help="a sentence for the page: what the two programs are")
    return parser.parse_args()


def pairs(rounds, workload, field):
    """The figures of both programs in each round in which both had no failure."""
    found = []
    for before, now in zip(rounds["before"], rounds["now"]):
        both = [one.get(workload) for one in (before, now)]
        if all(one and one["ops"] and not one["errors"] for one in both):
            found.append(tuple(one["server"][field] for one in both))
    return found


def render(results):
    """Markdown of a whole run."""
    parts = [
        "# The place of small bodies", "",
        f"{results['date']}, {results['machine']}, load average {results['load']} at the start. {results['about']}",
        "Server CPU in microseconds for each operation or key, flushes and merges of runs included: the medians, the median of the "
        "ratios of all pairs, and the quartiles of these ratios. Written: bytes sent to storage for each operation, in KiB. "
        f"PUT and GET with rows in memory are held to {BAR}.",
    ]
    for name, rounds in results["scenes"].items():
        title, rows, serve = SCENES[name]
        parts += ["", f"## {title}" + (f" (`{' '.join(serve)}`)" if serve else ""), ""]
        parts.append(line(["workload", "pairs", "before", "now", "ratio", "quartiles", "met", "written before", "written now"]))
        parts.append(line(["---"] + ["---:"] * 5 + ["---", "---:", "---:"]))
        for row in rows:
            cpu = pairs(rounds, row.workload, "cpu_us_per_unit")
            if len(cpu) < 2:
                continue
            ratios = [now / before for before, now in cpu]
            low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
            before, now = (statistics.median(side) for side in zip(*cpu))
            wrote = [statistics.median(side) / 1024 for side in zip(*pairs(rounds, row.workload, "written_per_op"))]
            met = ("yes" if middle <= BAR else "NO") if row.held else ""
            parts.append(line([
                row.title, str(len(cpu)), figure(before), figure(now), f"{middle:.3f}", f"{low:.2f} to {high:.2f}", met,
                *[f"{kib:.1f}" for kib in wrote],
            ]))
    return "\n".join(parts) + "\n"

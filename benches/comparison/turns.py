"""Two programs of this server in turns under the workloads of the table: the CPU that each takes for an operation, and the
ratio. Rounds that take turns, and medians of them, keep the machine's other work out of the ratio."""

import os
import shutil
import statistics
import sys
import time
from pathlib import Path

from comparison import measure, memory
from comparison.budgets import ROWS, WRITES
from comparison.driver import Driver
from comparison.report import figure, line
from comparison.run import about, options, write
from comparison.servers import Blockyard, say, target_dir

SIDES = ("before", "now")
# Ratios above this one are reported.
BAR = 1.05


def main():
    """Runs the rounds and writes benches/results/turns.{md,json}."""
    args = arguments()
    driver = Driver(args.divide, args.driver)
    work = target_dir().resolve() / "bench-data" / "turns"
    now, before = Blockyard(None, args.port), Blockyard(None, args.port + 2)
    now.program, now.serve_args = args.binary, args.serve_arg
    before.program = args.before
    servers = {"before": before, "now": now}
    for side, server in servers.items():
        server.name = side
    now.install()
    before.install()
    results = {
        **about(), "divide": args.divide, "load": f"{os.getloadavg()[0]:.1f}", "about": args.about,
        "serve_args": args.serve_arg, "rounds": {side: [] for side in SIDES},
    }
    memory.warm()
    page = ""
    try:
        if args.interleave:
            interleave(servers, driver, work, results["rounds"], args)
            page = write(args.out, "turns", results, render)
        for number in range(0 if args.interleave else args.rounds):
            # Each goes first as often as second.
            for side in SIDES if number % 2 == 0 else reversed(SIDES):
                say(f"round {number + 1} of {args.rounds}: {side}")
                shutil.rmtree(work, ignore_errors=True)
                work.mkdir(parents=True)
                results["rounds"][side].append(measure.speed(servers[side], driver, work))
            page = write(args.out, "turns", results, render)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(page)
    return 0


def interleave(servers, driver, work, rounds, args):
    """Both programs run all the time and take turns at each workload. What changes on the machine within minutes, such as the
    speed of its disk, affects both."""
    rounds.update({side: [{} for _ in range(args.rounds)] for side in SIDES})
    try:
        for side, server in servers.items():
            (work / side).mkdir(parents=True, exist_ok=True)
            server.start(measure.fresh(work / side))
        time.sleep(2)
        for name, workload in measure.steps():
            for number in range(args.rounds if not args.workload or name in args.workload else 0):
                for side in SIDES if number % 2 == 0 else reversed(SIDES):
                    extra = ["--pid", str(servers[side].process.pid)]
                    extra += ["--prefix", f"{name}-{number}"] if workload in WRITES else []
                    one = driver.run(servers[side], [workload], extra).get(workload)
                    rounds[side][number].update({name: one} if one else {})
    finally:
        for server in servers.values():
            server.stop()


def arguments():
    """The command line."""
    parser = options(__doc__, 22400)
    parser.add_argument("--before", type=Path, required=True, help="the program it is compared with")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each (default 5)")
    parser.add_argument("--interleave", action="store_true", help="take turns at each workload instead of at the whole table")
    names = [name for name, _ in measure.steps()]
    parser.add_argument("--workload", action="append", choices=names, help="with --interleave: a workload to run (default: all)")
    parser.add_argument("--divide", type=int, default=1, help="divide the number of operations by this")
    parser.add_argument("--about", default="", help="a sentence for the page: what the two programs are")
    args = parser.parse_args()
    if args.workload and not (args.interleave and "--out" in sys.argv):
        parser.error("--workload needs --interleave, and --out, because the page in the tree has all workloads")
    return args


def cpu(rounds, workload):
    """Of each round without failures, the server's CPU for an operation, in microseconds."""
    found = [one[workload] for one in rounds if workload in one]
    return [one["server"]["cpu_us_per_unit"] for one in found if one["ops"] and not one["errors"]]


def failed(rounds, workload):
    """Operations that failed in all rounds."""
    return sum(one[workload]["errors"] for one in rounds if workload in one)


def render(results):
    """Markdown of a whole run."""
    rounds = results["rounds"]
    parts = [
        "# Two programs in turns", "",
        f"{results['date']}, {results['machine']}, load average {results['load']} at the start. {results['about']}",
        f"Server CPU in microseconds for each operation, key or MiB: the median of {len(rounds['now'])} rounds, "
        f"1/{results['divide']} of the operations. The ratio is that of the medians. In brackets: the least and the greatest "
        f"ratio of two runs of one round. Last, the ratio of the least CPU of each: other work on the machine only adds. The bar "
        f"is {BAR}.", "",
        line(["workload", "before", "now", "ratio", "least to greatest", "failed", "met", "ratio of the least"]),
        line(["---"] + ["---:"] * 5 + ["---", "---:"]),
    ]
    for row in ROWS:
        old, new = (cpu(rounds[side], row.name) for side in SIDES)
        if not old or not new:
            continue
        ratio = statistics.median(new) / statistics.median(old)
        each = [ours / theirs for theirs, ours in zip(old, new)]
        errors = sum(failed(rounds[side], row.name) for side in SIDES)
        parts.append(line([
            f"{row.title} (per {row.unit})", figure(statistics.median(old)), figure(statistics.median(new)), f"{ratio:.3f}",
            f"({min(each):.2f} to {max(each):.2f})", str(errors), "yes" if ratio <= BAR else "NO", f"{min(new) / min(old):.3f}",
        ]))
    memory = [
        ("RSS idle, MiB", "idle", "rss_mib"), ("RSS peak, 64 x 16 MiB PUT at once, MiB", "burst16m", "rss_peak_mib")]
    for title, workload, key in memory:
        sizes = [[one[workload]["server"][key] for one in rounds[side] if workload in one] for side in SIDES]
        if not all(sizes):
            continue
        old, new = map(statistics.median, sizes)
        parts.append(line([title, figure(old), figure(new), f"{new / old:.3f}", "", "", "", ""]))
    return "\n".join(parts) + "\n"

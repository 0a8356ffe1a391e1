"""The command line, and the order of the turns."""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cluster.report import render
from cluster.sides import serving, start
from cluster.turn import Workload, idle, make_container, measure
from comparison import memory
from comparison.run import about
from comparison.servers import say, target_dir

SIDES = "abc"


def main():
    """Runs all turns, prints the tables and writes the figures. The exit code is 1 if an operation failed."""
    args = arguments()
    # An end from outside must not leave a process behind: unwinding ends them.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    args.work.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as ends:
        work = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="cluster-", dir=args.work.resolve())))
        try:
            results = run(args, work, ends)
        except Exception:
            # They go with the folder.
            for log in sorted(work.glob("*.log")):
                say(f"the last lines of {log.name}:\n" + "\n".join(log.read_text(errors="replace").splitlines()[-12:]))
            raise
    print(render(results))
    return int(any(turn["errors"] for row in results["rows"] for turns in row["turns"].values() for turn in turns))


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description="A cluster of three nodes beside one process, in turns.")
    parser.add_argument("--binary", type=Path, default=target_dir() / "release" / "blockyard",
                        help="the blockyard program (default: target/release/blockyard)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the figures of every turn are written (default: nowhere)")
    parser.add_argument("--turns", type=int, default=3, help="turns of each workload on each side (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=3, help="seconds of a turn (default %(default)s)")
    parser.add_argument("--clients", type=int, default=8, help="connections, each with one request at a time (default %(default)s)")
    parser.add_argument("--size", default="4KiB", help="size of a small blob, for put, get and head (default %(default)s)")
    parser.add_argument("--large-size", default="64KiB", help="size of a blob for large (default %(default)s)")
    parser.add_argument("--block-size", default="8MiB", help="size of a block (default %(default)s)")
    parser.add_argument("--only", action="append", metavar="NAME", help="a workload: put, get, head, large or block (default: all)")
    parser.add_argument("--serve-arg", action="append", default=[], metavar="=ARG",
                        help="further argument of all server processes (default: none)")
    parser.add_argument("--work", type=Path, default=target_dir() / "bench-data",
                        help="folder on the disk to be measured, for about 30 GiB of temporary data (default: target/bench-data)")
    args = parser.parse_args()
    args.binary = args.binary.resolve()
    if not args.binary.exists():
        parser.error(f"no program {args.binary}: build it with `cargo build --release`, or name one with --binary")
    if not shutil.which("etcd"):
        parser.error("etcd is needed (Debian: etcd-server)")
    known = workloads(args)
    if set(args.only or ()) - set(known):
        parser.error(f"--only: there are {', '.join(known)}")
    args.workloads = [known[name] for name in args.only or known]
    return args


def workloads(args):
    """All workloads by their name for `--only`, with what a cluster with three copies may take."""
    return {
        "put": Workload("PUT", "put", args.size, 3.0),
        "get": Workload("GET", "get", args.size, 2.0),
        "head": Workload("HEAD", "head", args.size, 2.0),
        "large": Workload("PUT", "put", args.large_size),
        # A blob of one block: the commit is small beside it.
        "block": Workload("Put Block", "blocks", args.block_size),
    }


def run(args, work, ends):
    """Starts everything and takes the turns; the results."""
    memory.warm()
    say("starting one process, etcd and three nodes")
    sides = start(args.binary, work, args.serve_arg, ends)
    for letter in "ab":
        make_container(args.binary, sides[letter])
    time.sleep(2)
    version = subprocess.run([args.binary, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    rows = [{"title": one.title, "target": one.target, "writes": one.writes, "turns": {side: [] for side in SIDES}} for one in args.workloads]
    results = {
        **about(), "version": version, "load": "", "seconds": args.seconds, "turns": args.turns, "clients": args.clients,
        "sides": {letter: side.title for letter, side in sides.items()},
        "idle_cpu_ms_per_second": idle(sides, args.seconds), "rows": rows,
    }
    load, server = os.getloadavg()[0], sides["b"].front.name
    every = args.turns * len(rows) * len(SIDES)
    number, began = 0, time.monotonic()
    for round_number in range(args.turns):
        # Each goes first at times, since what one side leaves undone disturbs the next.
        order = SIDES[round_number % 3:] + SIDES[:round_number % 3]
        for row, workload in zip(rows, args.workloads):
            for letter in order:
                figures = measure(args.binary, sides[letter], workload, args.seconds, args.clients)
                row["turns"][letter].append(figures)
                number += 1
                left = (time.monotonic() - began) / number * (every - number)
                say(f"turn {number} of {every}, {left:.0f} s left: {workload.title}, {letter}: {figures['ops_per_second']:.0f}/s, "
                    f"p50 {figures['p50_us'] / 1e3:.2f} ms, CPU {figures['cpu_us']:.0f} us")
        if serving(args.binary, sides["b"].etcd) != server:
            raise RuntimeError(f"{server} does not serve the index any more: the figures of b and c are mixed")
        results["load"] = f"{load:.1f} at the start and {os.getloadavg()[0]:.1f} at the end"
        if args.json:
            args.json.write_text(json.dumps(results, indent=1) + "\n")
    return results

"""Two programs of this server: the instructions of each operation and their cycles in simulated caches, counted by callgrind,
and its system calls, counted by strace. The machine's other work does not change the instructions, and the cycles little: the
threads of a program share one simulated cache. The counts leave out what the kernel does in a call."""

import itertools
import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from comparison.budgets import ROWS
from comparison.driver import Driver
from comparison.report import figure, line
from comparison.run import about, options, write
from comparison.servers import Blockyard, BlockyardS3, say, target_dir
from comparison.turns import BAR, SIDES

# A program under callgrind is slow, which would look like load and split partitions.
SERVE_ARGS = ["--split-requests", "0"]
# Under callgrind a request takes milliseconds: fewer operations of each workload.
OPS = {"list": 20, "put1m": 24, "block8m": 1, "part8m": 1, "get1m": 60, "get16m": 6, "idle": 1}
DEFAULT_OPS = 1_000
# A list after the writes would count the same as the first: under callgrind no range is striped.
COUNTED = [row for row in ROWS if not row.again]
WORKLOADS = ["idle", *[row.workload for row in COUNTED]]
# What is counted of a program, and what of it the bar is for.
COUNTS = ["instructions", "cycles", "code misses", "calls"]
BOUND = ["instructions", "cycles"]
# Bytes, ways and bytes of a line: of code, of data, of the last level.
CACHES = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"]
# The events of callgrind with simulated caches, in its order.
EVENTS = [
    "instructions", "reads", "writes", "first, code", "first, reads", "first, writes", "last, code", "last, reads", "last, writes",
]


class Callgrind:
    """Counts instructions between `begin` and `end`, and estimates cycles with simulated caches: an instruction is one, a miss of
    the first level 10, of the last level 100, as KCachegrind does it. The caches are the same on every machine. The misses
    of code matter: a request runs through 200 KiB of it."""

    def __init__(self, server, profiles):
        self.profiles = profiles
        self.wrap = [
            "valgrind", "--tool=callgrind", "--instr-atstart=no", "--fair-sched=yes", "--error-limit=no", "--cache-sim=yes",
            *CACHES, f"--callgrind-out-file={profiles}/callgrind.out.%p",
        ]
        self.server = server

    def control(self, *args):
        """One command to the running program."""
        command = ["callgrind_control", *args, str(self.server.process.pid)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def begin(self, _workload):
        """Starts counting."""
        self.control("--instr=on")
        self.control("--zero")

    def end(self, workload):
        """Ends counting; the counts by name. Keeps the profile as NAME.WORKLOAD."""
        self.control(f"--dump={workload}")
        self.control("--instr=off")
        dump, found = self.dumped()
        dump.rename(self.profiles / f"{self.server.name}.{workload}")
        # Zeros at the end of the line are left out.
        of = dict(itertools.zip_longest(EVENTS, map(int, found.group(1).split()), fillvalue=0))
        first, last = (sum(of[event] for event in EVENTS if event.startswith(level)) for level in ("first", "last"))
        return {
            "instructions": of["instructions"], "code misses": of["first, code"],
            "cycles": of["instructions"] + 10 * first + 100 * last,
        }


    def dumped(self):
        """The newest dump and its sums. On a busy machine it is complete a while after the command."""
        for _ in range(100):
            dumps = sorted(self.profiles.glob("callgrind.out.*"), key=lambda path: path.stat().st_mtime)
            found = dumps and re.search(r"^(?:summary|totals): ([\d ]+)", dumps[-1].read_text(), re.MULTILINE)
            if found:
                return dumps[-1], found
            time.sleep(0.1)
        raise RuntimeError(f"{self.server.name}: callgrind wrote no profile")


class Strace:
    """Counts system calls between `begin` and `end`."""

    wrap = ()

    def __init__(self, server, profiles):
        self.server = server
        self.profiles = profiles
        self.tracer = None

    def begin(self, workload):
        """Attaches to every thread."""
        self.out = self.profiles / f"{self.server.name}.{workload}.calls"
        command = ["strace", "-c", "-f", "-q", "-U", "calls,name", "-o", str(self.out), "-p", str(self.server.process.pid)]
        self.tracer = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        time.sleep(0.5)

    def end(self, _workload):
        """Detaches; the number of calls, by name."""
        self.tracer.send_signal(signal.SIGINT)
        self.tracer.wait()
        return {"calls": int(re.search(r"^\s*(\d+)\s+total$", self.out.read_text(), re.MULTILINE).group(1))}


def main():
    """Counts both programs and writes benches/results/instructions.{md,json}."""
    args = arguments()
    work = target_dir().resolve() / "bench-data" / "instructions"
    profiles = args.profiles or target_dir().resolve() / "instructions"
    profiles.mkdir(parents=True, exist_ok=True)
    results = {**about(), "about": args.about, "rounds": args.rounds, "counts": {}}
    driver = Driver(1, args.driver)
    programs = {"before": (args.before, []), "now": (args.binary, args.serve_arg)}
    page = ""
    try:
        for number, side in itertools.product(range(args.rounds), SIDES):
            server = (BlockyardS3 if args.s3 and side == "now" else Blockyard)(None, args.port)
            server.name = side
            server.program, more = programs[side]
            server.serve_args = [*SERVE_ARGS, *more]
            server.install()
            for what, counter in (("instructions", Callgrind), ("calls", Strace)):
                say(f"round {number + 1} of {args.rounds}: {side}, {what}")
                shutil.rmtree(work, ignore_errors=True)
                found = count(server, driver, work, counter(server, profiles), args)
                for workload, counts in found.items():
                    for name, counted in counts.items():
                        kept = results["counts"].setdefault(side, {}).setdefault(name, {})
                        kept.setdefault(workload, []).append(counted)
                page = write(args.out, "instructions-s3" if args.s3 else "instructions", results, render)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(page)
    return 0


def arguments():
    """The command line."""
    parser = options(__doc__, 22500)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--before", type=Path, help="the program it is compared with")
    what.add_argument("--s3", action="store_true", help="compare S3 (now) with Blob (before) of one program; writes instructions-s3")
    parser.add_argument("--workload", action="append", help="a workload to count (default: all)")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of each (default 2)")
    parser.add_argument("--ops", type=int, help="operations of each workload, in place of its own number")
    parser.add_argument("--profiles", type=Path, help="where callgrind's and strace's files are kept (default: in target/)")
    parser.add_argument("--about", default="", help="a sentence for the page: what the two programs are")
    args = parser.parse_args()
    args.before = args.before or args.binary
    return args


def count(server, driver, work, counter, args):
    """Counts of one program by workload and name: per unit of the workload; of `idle`, per second."""
    work.mkdir(parents=True)
    server.start(work / "data", counter.wrap)
    counts = {}
    try:
        time.sleep(2)
        for workload in args.workload or WORKLOADS:
            counts[workload] = one(server, driver, counter, workload, args.ops or OPS.get(workload, DEFAULT_OPS))
    finally:
        server.stop()
    return counts


def one(server, driver, counter, workload, ops):
    """One workload of one program."""
    process = subprocess.Popen(
        [driver.program, "--bench", *server.driver_args(), "--workload", workload, "--ops", str(ops), "--hold"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    totals = {}
    for answer in process.stdout:
        message = json.loads(answer)
        if message.get("hold") == "begin":
            counter.begin(workload)
            began = time.monotonic()
        elif message.get("hold") == "end":
            seconds = time.monotonic() - began
            totals = counter.end(workload)
        else:
            if message["errors"]:
                raise RuntimeError(f"{server.name}: {message['errors']} operations of {workload} failed")
            units = seconds if workload == "idle" else message["units"]
            process.wait()
            of_all = {"units": units, "seconds": seconds}
            return {name: {"total": total, **of_all, "per_unit": total / units} for name, total in totals.items()}
        process.stdin.write("\n")
        process.stdin.flush()
    raise RuntimeError(f"{server.name}: the driver ended early with {process.wait()} in {workload}")


def render(results):
    """Markdown of a whole run."""
    parts = [
        "# Instructions, cycles and system calls of two programs", "",
        f"{results['date']}, {results['machine']}. {results['about']}", "",
        "For each operation, key or MiB: instructions of the program itself, what they take in cycles by callgrind's simulated",
        "caches, and the misses of code in the first level (the kernel's are in none of them); system calls (strace). The least of",
        f"{results['rounds']} rounds, since background work of the same time is counted too. The first row says how much that is.",
        f"The bar for instructions and for cycles is {BAR}. Caches: {' '.join(CACHES)}.",
        "",
        line(["workload", *[cell for name in COUNTS for cell in (f"{name} before", "now", "ratio")], "met"]),
        line(["---"] + ["---:"] * 3 * len(COUNTS) + ["---"]),
    ]
    titles = [("idle", "nothing to do", "second"), *[(row.workload, row.title, row.unit) for row in COUNTED]]
    for workload, title, unit in titles:
        counts = {name: [per_unit(results, side, name, workload) for side in SIDES] for name in COUNTS}
        known = {name: pair for name, pair in counts.items() if all(pair)}  # nothing has a ratio to 0
        if not known:
            continue
        cells = [f"{title} (per {unit})"]
        for name in COUNTS:
            cells += [figure(known[name][0]), figure(known[name][1]), ratio(known[name])] if name in known else [""] * 3
        bound = [pair for name, pair in known.items() if name in BOUND]
        met = "yes" if all(new / old <= BAR for old, new in bound) else "NO"
        parts.append(line([*cells, met if bound and workload != "idle" else ""]))
    return "\n".join(parts) + "\n"


def ratio(pair):
    """The second of a pair to the first."""
    return f"{pair[1] / pair[0]:.3f}"


def per_unit(results, side, what, workload):
    """The least count of all rounds, or none where it was not taken."""
    found = results["counts"].get(side, {}).get(what, {}).get(workload)
    return found and min(one["per_unit"] for one in found)

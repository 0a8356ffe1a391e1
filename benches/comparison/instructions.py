"""Two programs of this server: the instructions of each operation, counted by callgrind, and its system calls, counted by
strace. The counts do not depend on the machine's other work. They leave out what the kernel does in a call."""

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


class Callgrind:
    """Counts instructions between `begin` and `end`."""

    def __init__(self, server, profiles):
        self.profiles = profiles
        self.wrap = [
            "valgrind", "--tool=callgrind", "--instr-atstart=no", "--fair-sched=yes", "--error-limit=no",
            f"--callgrind-out-file={profiles}/callgrind.out.%p",
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
        """Ends counting; the instructions. Keeps the profile as NAME.WORKLOAD."""
        self.control(f"--dump={workload}")
        self.control("--instr=off")
        dumps = sorted(self.profiles.glob("callgrind.out.*"), key=lambda path: path.stat().st_mtime)
        found = re.search(r"^(?:summary|totals): (\d+)", dumps[-1].read_text(), re.MULTILINE)
        dumps[-1].rename(self.profiles / f"{self.server.name}.{workload}")
        return int(found.group(1))


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
        """Detaches; the number of calls."""
        self.tracer.send_signal(signal.SIGINT)
        self.tracer.wait()
        return int(re.search(r"^\s*(\d+)\s+total$", self.out.read_text(), re.MULTILINE).group(1))


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
                kept = results["counts"].setdefault(side, {}).setdefault(what, {})
                for workload, counted in found.items():
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
    """Counts of one program by workload: per unit of the workload; of `idle`, per second."""
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
    counted = 0
    for answer in process.stdout:
        message = json.loads(answer)
        if message.get("hold") == "begin":
            counter.begin(workload)
            began = time.monotonic()
        elif message.get("hold") == "end":
            seconds = time.monotonic() - began
            counted = counter.end(workload)
        else:
            if message["errors"]:
                raise RuntimeError(f"{server.name}: {message['errors']} operations of {workload} failed")
            units = seconds if workload == "idle" else message["units"]
            process.wait()
            return {"total": counted, "units": units, "seconds": seconds, "per_unit": counted / units}
        process.stdin.write("\n")
        process.stdin.flush()
    raise RuntimeError(f"{server.name}: the driver ended early with {process.wait()} in {workload}")


def render(results):
    """Markdown of a whole run."""
    parts = [
        "# Instructions and system calls of two programs", "",
        f"{results['date']}, {results['machine']}. {results['about']}", "",
        "For each operation, key or MiB: instructions of the program itself (callgrind; the kernel's are not in it) and its",
        f"system calls (strace), the least of {results['rounds']} rounds, since background work of the same time is counted too.",
        f"The first row says how much that is. The bar is {BAR}.",
        "",
        line(["workload", "before", "now", "ratio", "met", "calls before", "calls now", "ratio"]),
        line(["---"] + ["---:"] * 3 + ["---"] + ["---:"] * 3),
    ]
    titles = [("idle", "nothing to do", "second"), *[(row.workload, row.title, row.unit) for row in COUNTED]]
    for workload, title, unit in titles:
        cells = [f"{title} (per {unit})"]
        for what in ("instructions", "calls"):
            old, new = (per_unit(results, side, what, workload) for side in SIDES)
            known = old and new
            cells += [figure(old) if old else "", figure(new) if new else "", f"{new / old:.3f}" if known else ""]
            if what == "instructions":
                met = "yes" if known and new / old <= BAR else "NO"
                cells.append(met if known and workload != "idle" else "")
        parts.append(line(cells))
    return "\n".join(parts) + "\n"


def per_unit(results, side, what, workload):
    """The least count of all rounds, or none where it was not taken."""
    found = results["counts"].get(side, {}).get(what, {}).get(workload)
    return found and min(one["per_unit"] for one in found)

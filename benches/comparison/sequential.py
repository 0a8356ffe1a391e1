"""Names that only grow against names in no order: full speed, in slices that take turns, on two servers of the same build."""

import os
import shutil
import subprocess
import time

from comparison.driver import Driver
from comparison.partitions import Watch
from comparison.report import figure, line
from comparison.run import about, options, write
from comparison.servers import Blockyard, say, target_dir

KINDS = ("sequential", "random")
BAR = 0.8


def main():
    """Runs the slices and writes benches/results/sequential.{md,json}."""
    args = arguments()
    driver = Driver(1, args.driver)
    work = target_dir().resolve() / "bench-data" / "sequential"
    shutil.rmtree(work, ignore_errors=True)
    servers, version = {}, None
    for number, kind in enumerate(KINDS):
        server = Blockyard(None, args.port + 2 * number)
        server.name, server.serve_args = f"blockyard-{kind}", args.serve_arg
        server.program = servers[KINDS[0]].program if servers else args.binary
        version = version or server.install()
        servers[kind] = server
    results = {
        **about(), "version": version, "load": f"{os.getloadavg()[0]:.1f}", "slice_seconds": args.slice, "slices": {kind: [] for kind in KINDS},
    }
    page = ""
    try:
        for kind, server in servers.items():
            (work / kind).mkdir(parents=True)
            server.start(work / kind / "data")
        time.sleep(2)
        for number in range(args.slices):
            # Each kind goes first as often as second.
            for kind in KINDS if number % 2 == 0 else reversed(KINDS):
                results["slices"][kind].append(one_slice(servers[kind], driver, work / kind, kind, args.slice, results))
                page = write(args.out, "sequential", results, render)
    finally:
        for server in servers.values():
            server.stop()
        shutil.rmtree(work, ignore_errors=True)
    print(page)
    return 0


def arguments():
    """The command line."""
    parser = options(__doc__, 22300)
    parser.add_argument("--slices", type=int, default=10, help="slices of each kind (default 10)")
    parser.add_argument("--slice", type=float, default=30, help="seconds of each (default 30)")
    return parser.parse_args()


def one_slice(server, driver, work, kind, seconds, results):
    """One slice, going on where the last of its kind ended; its figures."""
    before = results["slices"][kind]
    first = before[-1]["next"] if before else 0
    say(f"{kind}: slice {len(before) + 1}, from number {first}")
    # Dirty pages of the other server must not delay this one.
    subprocess.run(["sync"], check=False)
    watch = Watch(server, work / "data")
    try:
        figures = driver.run(
            server, [kind], ["--seconds", str(seconds), "--first", str(first), "--pid", str(server.process.pid)])[kind]
    finally:
        seen = watch.stop()
    figures["partitions"] = seen.spread(figures["began_unix_ms"] / 1e3, figures["ended_unix_ms"] / 1e3)
    figures["load"] = os.getloadavg()[0]
    return figures


def render(results):
    """Markdown of a whole run."""
    slices = results["slices"]
    per_second = {kind: total(of, "ops") / max(total(of, "seconds"), 1e-9) for kind, of in slices.items()}
    ratio = per_second["sequential"] / max(per_second["random"], 1e-9)
    parts = [
        "# Names that only grow", "",
        f"{results['date']}, {results['machine']}, {results['version']}, load average {results['load']} at the start. PUT of 1 KiB by 32 "
        f"clients at full speed, in slices of {results['slice_seconds']:g} seconds that take turns: names of sixteen digits from one "
        "counter that goes on over all slices, and the same numbers scattered over all names of sixteen hexadecimal digits. "
        "Each kind has a server of its own, both of the same build.", "",
        line(["names", "seconds", "requests/s", "server CPU us", "p50 ms, median", "p99 ms, median", "max ms", "failed", "changes of the map",
              "partitions with load at the end"]),
        line(["---"] + ["---:"] * 9),
        *[row(kind, of, per_second[kind]) for kind, of in slices.items() if of], "",
        f"**Throughput of growing over scattered names: {ratio:.2f}** (the bar is {BAR}: {'met' if ratio >= BAR else 'NOT met'}).", "",
        line(["slice", *[f"{kind}, requests/s" for kind in KINDS], "ratio", "load average"]), line(["---:"] * 5),
    ]
    for number, (growing, scattered) in enumerate(zip(*(slices[kind] for kind in KINDS)), 1):
        one = growing["ops_per_second"] / max(scattered["ops_per_second"], 1e-9)
        parts.append(line([str(number), figure(growing["ops_per_second"]), figure(scattered["ops_per_second"]), f"{one:.2f}",
                           f"{max(growing['load'], scattered['load']):.1f}"]))
    return "\n".join(parts) + "\n"


def row(kind, of, per_second):
    """The line of a kind of names."""
    cpu = sum(one["server"]["cpu_us_per_unit"] * one["ops"] for one in of) / max(total(of, "ops"), 1)
    looks = of[-1]["partitions"]["looks"]
    return line([
        kind, figure(total(of, "seconds")), figure(per_second), figure(cpu), figure(median(of, "p50_us") / 1e3),
        figure(median(of, "p99_us") / 1e3), figure(max(one["max_us"] for one in of) / 1e3), str(total(of, "errors")),
        str(sum(one["partitions"]["changes"] for one in of)), str(looks[-1]["partitions"]) if looks else "-",
    ])


def total(of, key):
    """The sum over slices."""
    return sum(one[key] for one in of)


def median(of, key):
    """The middle one of the slices."""
    return sorted(one[key] for one in of)[len(of) // 2]

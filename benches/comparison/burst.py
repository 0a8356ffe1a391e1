"""A burst: 2,000 clients open one new prefix at once, first to read, then to write, on Blockyard and on Azurite in one run."""

import os
import resource
import shutil
import subprocess
import time

from comparison.driver import Driver
from comparison.partitions import Watch
from comparison.report import figure, line
from comparison.run import about, options, write
from comparison.servers import Azurite, Blockyard, say, target_dir

CLIENTS = 2_000
# Open files of the driver and of a server, each: its connections and what else it needs.
FILES = CLIENTS + 2_000
# Scheduled requests arrive at this part of the rate at full speed, so that no queue grows without end.
SHARE = 0.4
BAR = 10


def main():
    """Runs the bursts and writes benches/results/burst.{md,json}."""
    args = arguments()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FILES:
        say(f"a process may open {hard} files here; {FILES} are needed")
        return 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, FILES), hard))
    cache = target_dir().resolve() / "bench-peers"
    driver = Driver(1, args.driver)
    results, page = {**about(), "seconds": args.seconds, "servers": {}}, ""
    for kind in (Blockyard, Azurite):
        if args.only and kind.name != args.only:
            continue
        server = kind(cache, args.port)
        if kind is Blockyard:
            server.program, server.serve_args = args.binary, args.serve_arg
        version = server.install()
        work = target_dir().resolve() / "bench-data" / f"burst-{server.name}"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        subprocess.run(["sync"], check=False)
        before = os.getloadavg()[0]
        server.start(work / "data")
        try:
            time.sleep(2)
            bursts = list(all_bursts(server, driver, work, args.seconds))
        finally:
            server.stop()
            shutil.rmtree(work / "data", ignore_errors=True)
        load = f"{before:.1f} to {os.getloadavg()[0]:.1f}"
        results["servers"][server.name] = {"version": version, "load": load, "bursts": bursts}
        page = write(args.out, "burst", results, render)
    print(page)
    return 0


def arguments():
    """The command line."""
    parser = options(__doc__, 22200)
    parser.add_argument("--only", choices=[Blockyard.name, Azurite.name], help="just this server")
    parser.add_argument("--seconds", type=float, default=10, help="length of each burst (default 10)")
    return parser.parse_args()


def all_bursts(server, driver, work, seconds):
    """Readers and writers, each at full speed and then on a schedule of their own, each on a prefix of its own."""
    for number, workload in enumerate(("burst-get", "burst-put")):
        closed = burst(server, driver, work, seconds, workload, f"step-{900 + 2 * number:04}")
        yield closed
        rate = int(closed["figures"]["ops"] / closed["figures"]["seconds"] * SHARE)
        yield burst(server, driver, work, seconds, workload, f"step-{901 + 2 * number:04}", max(rate, 1))


def burst(server, driver, work, seconds, workload, prefix, rate=None):
    """One burst; its figures and what the partitions did."""
    say(f"{server.name}: {workload}, {f'{rate} a second' if rate else 'as fast as answered'}")
    extra = ["--concurrency", str(CLIENTS), "--seconds", str(seconds), "--each-second", "--prefix", prefix,
             "--pid", str(server.process.pid), *(["--rate", str(rate)] if rate else [])]
    watch = Watch(server, work / "data") if isinstance(server, Blockyard) else None
    try:
        figures = driver.run(server, [workload], extra)[workload]
    finally:
        seen = watch.stop() if watch else None
    spread = seen and seen.spread(figures["began_unix_ms"] / 1e3, figures["ended_unix_ms"] / 1e3)
    return {"workload": workload, "prefix": prefix, "rate": rate, "figures": figures, "partitions": spread}


def render(results):
    """Markdown of a whole run."""
    parts = [
        "# A burst on one new prefix", "",
        f"{results['date']}, {results['machine']}. {CLIENTS:,} clients connect at the same instant to a prefix nobody has used, "
        f"for {results['seconds']:g} seconds: readers of its 2,000 shards of 4 KiB, written just before, then writers of "
        "blobs of 1 KiB whose names ascend over all clients. At full speed each client's next request follows its last answer; at "
        f"a rate all connect at once too, then requests begin on a schedule, {SHARE:.0%} of what was answered at full speed, and are "
        "counted from when they were due. The driver, one thread, shares the machine with the server: the ratio p99 / p50 within a second is "
        "what to look at. A latency is from the first moment a client wants something, connecting included, to the last byte.", "",
        *[f"- {name}: {one['version']}, load average {one['load']}" for name, one in results["servers"].items()], "",
        *summary(results["servers"]), "",
    ]
    for name, server in results["servers"].items():
        for one in server["bursts"]:
            parts += ["", f"## {name}: {title(one)}", "", *seconds_table(one["figures"]), "", *partitions_text(one["partitions"])]
    return "\n".join(parts).rstrip() + "\n"


def title(one):
    """A burst in words."""
    what = "readers" if one["workload"] == "burst-get" else "writers"
    return f"{what}, {one['rate']:,} a second" if one["rate"] else f"{what}, full speed"


def worst(figures, of):
    """The largest p99 / p50 of a second, and which second."""
    ratios = [(second[of]["p99_us"] / max(second[of]["p50_us"], 1), number)
              for number, second in enumerate(figures["each_second"]) if second["ops"]]
    return max(ratios, default=(0, 0))


def summary(servers):
    """The table of bursts. Failed requests and the ratio are judged."""
    yield line(["burst", "server", "requests/s", "failed", "p50 ms", "p99 ms", "max ms", "worst second's p99 / p50",
                "the same without connecting", f"<= {BAR} in every second"])
    yield line(["---", "---"] + ["---:"] * 7 + ["---"])
    for name, server in servers.items():
        for one in server["bursts"]:
            figures = one["figures"]
            ratio, second = worst(figures, "latency")
            yield line([
                title(one), name, figure(figures["ops_per_second"]), str(figures["errors"]), figure(figures["p50_us"] / 1e3),
                figure(figures["p99_us"] / 1e3), figure(figures["max_us"] / 1e3), f"{ratio:.1f} (second {second})",
                f"{worst(figures, 'connected')[0]:.1f}",
                "yes" if ratio <= BAR and not figures["errors"] else "NO",
            ])


def seconds_table(figures):
    """Each second of a burst."""
    connecting = figures["connecting"]
    yield (f"{figures['concurrency'] + figures['reconnects']:,} connections; connecting took p50 {connecting['p50_us'] / 1e3:.1f} ms, "
           f"p99 {connecting['p99_us'] / 1e3:.1f} ms, at most {connecting['max_us'] / 1e3:.1f} ms. "
           + (f"Failures: {figures['failures']}." if figures["failures"] else "No failures."))
    yield ""
    yield line(["second", "answered", "failed", "p50 ms", "p99 ms", "max ms", "p99 / p50", "without connecting: p50", "p99", "max"])
    yield line(["---:"] * 10)
    for number, second in enumerate(figures["each_second"]):
        whole, alone = second["latency"], second["connected"]
        yield line([
            str(number), str(second["ops"]), str(second["errors"]),
            *[figure(whole[key] / 1e3) for key in ("p50_us", "p99_us", "max_us")],
            f"{whole['p99_us'] / max(whole['p50_us'], 1):.1f}",
            *[figure(alone[key] / 1e3) for key in ("p50_us", "p99_us", "max_us")],
        ])


def partitions_text(spread):
    """How the partitions spread."""
    if spread is None:
        return
    first = spread["first_split_ms"]
    yield ("Partitions that served the burst: " + ", ".join(
        f"{look['partitions']} after {look['at']:g} s (busiest {look['busiest']:.0%})" for look in spread["looks"]) + ". "
        + (f"First split after {first:.0f} ms; " if first is not None else "No split; ")
        + f"{spread['changes']} in all, longest pause {spread['pause_ms']:.1f} ms.")

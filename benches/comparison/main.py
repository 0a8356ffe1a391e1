"""The command line, and the order of the steps."""

import argparse
import json
import os
import platform
import shutil
import time
from pathlib import Path

from comparison import measure, memory, report
from comparison.driver import Driver
from comparison.servers import ALL, ROOT, Blockyard, BlockyardS3, say, target_dir

QUICK = 20


def main():
    """Measures the servers asked for and writes benches/results/latest.{md,json}."""
    args = arguments()
    divide = args.divide or (QUICK if args.quick else 1)
    cache = target_dir().resolve() / "bench-peers"
    results = {
        "date": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "machine": machine(),
        "load": f"{os.getloadavg()[0]:.1f}",
        "divide": divide,
        "md5_us_per_mib": measure.md5_us_per_mib(),
        "sha256_us_per_mib": measure.sha256_us_per_mib(),
        "servers": {},
    }
    driver = Driver(divide)
    memory.warm()
    failed = False
    of_s3 = None
    for kind in ALL:
        if args.only and kind.name not in args.only:
            continue
        server = kind(cache, args.port)
        version = server.install()
        work = target_dir().resolve() / "bench-data" / server.name
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        one = {"version": version, "divide": divide * server.divide, "durability": server.durability}
        results["servers"][server.name] = one
        try:
            before = os.getloadavg()[0]
            both = kind is Blockyard and (not args.only or BlockyardS3.name in args.only)
            if both:
                one["speed"], of_s3 = measure.both_protocols(server, BlockyardS3(cache, args.port), driver, work)
            elif kind is BlockyardS3 and of_s3:
                one["speed"] = of_s3
            else:
                one["speed"] = measure.speed(server, driver, work)
            one["load"] = f"{before:.1f} to {os.getloadavg()[0]:.1f}"
            if not args.speed_only and kind is not BlockyardS3:
                counts = measure.syncs(server, driver, work)
                one["syncs"] = counts and {str(c): value for c, value in counts.items()}
                objects = args.restart_objects or server.restart_objects // divide // server.divide
                one["crash"] = measure.crash(server, driver, work, objects)
        except (RuntimeError, KeyError) as error:
            say(f"{server.name}: {error!r}")
            failed = True
        finally:
            shutil.rmtree(work / "data", ignore_errors=True)
        save(results, args.out)
    text = report.render(results)
    print(text)
    say(f"written to {args.out}/latest.md and latest.json")
    return 1 if failed else 0


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description="Measures Blockyard and its peers in one run.")
    parser.add_argument("--quick", action="store_true", help=f"a {QUICK}th of the operations")
    parser.add_argument("--divide", type=int, help="divide the number of operations by this")
    parser.add_argument("--only", action="append", choices=[kind.name for kind in ALL], help="just this server")
    parser.add_argument("--speed-only", action="store_true", help="no sync count, crash and restart")
    parser.add_argument("--restart-objects", type=int, help="objects in the store when it is restarted")
    parser.add_argument("--port", type=int, default=22100, help="first of ten loopback ports to use")
    parser.add_argument("--out", type=Path, default=ROOT / "benches" / "results", help="where results are written")
    return parser.parse_args()


def save(results, out):
    """Writes the figures measured so far, so that an interrupted run leaves them."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "latest.json").write_text(json.dumps(results, indent=1) + "\n")
    (out / "latest.md").write_text(report.render(results))


def machine():
    """Processor and system in words."""
    model = platform.machine()
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for entry in info:
            if entry.startswith("model name"):
                model = entry.split(":", 1)[1].strip()
                break
    return f"{os.cpu_count()} x {model}, {platform.system()} {platform.release()}"

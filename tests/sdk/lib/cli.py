"""The flags every script has, and the scratch folder it works in."""

import argparse
import contextlib
import logging
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile

from . import report
from .binary import default_binary
from .server import Server


def parser(doc):
    """An argument parser with the shared flags; `doc` is the script's own documentation."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--binary", type=pathlib.Path, default=default_binary(),
                      help="the blockyard program (default: the one cargo built in this checkout)")
    made.add_argument("--work", type=pathlib.Path, help="scratch folder (default: a new one, removed when all is well)")
    made.add_argument("--keep", action="store_true", help="keep the scratch folder even when all is well")
    made.add_argument("--verdicts", type=pathlib.Path, metavar="FILE",
                      help="append the verdicts to this file as Markdown (benches/results/attackers.md is made so)")
    made.add_argument("--small", action="store_true", help="the setting continuous integration runs")
    made.add_argument("--serve-arg", action="append", default=[], metavar="=ARG",
                      help="further argument of `blockyard serve`, such as --serve-arg=--initial-partitions=16")
    return made


def parse(made):
    """Parses the command line and refuses a missing binary."""
    # The SDK logs every refused request as a warning; here refusals are often the point.
    logging.getLogger("azure").setLevel(logging.ERROR)
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    options = made.parse_args()
    if not options.binary or not options.binary.exists():
        made.error("no blockyard binary: build it with `cargo build --release`, or name one with --binary")
    options.binary = options.binary.resolve()
    report.keep_in(options.verdicts)
    return options


def run(main, options):
    """Runs `main(options, scratch)`, which answers an exit code, and ends the process with it."""
    scratch = options.work or pathlib.Path(tempfile.mkdtemp(prefix="blockyard-sdk-"))
    scratch.mkdir(parents=True, exist_ok=True)
    # An end from outside must not leave a server behind: unwinding ends it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    code = 1
    try:
        code = main(options, scratch)
    finally:
        # 77 is the exit code of a script that found what it needs missing.
        if code in (0, 77) and not options.keep and not options.work:
            shutil.rmtree(scratch, ignore_errors=True)
        else:
            print(f"scratch folder kept: {scratch}", flush=True)
    sys.exit(code)


def remember_operations(running):
    """Adds the operations a server carried out to the file that `tests/sdk/run` names, when it asks for them."""
    place = os.environ.get("JUDGED_OPERATIONS")
    if not place or not running.running():
        return
    labels = [re.search(r'requests_total\{operation="(\w+)",status="[23]', name) for name in running.metrics()]
    with open(place, "a", encoding="utf-8") as out:
        out.writelines(f"{found[1]}\n" for found in labels if found)


@contextlib.contextmanager
def server(options, scratch, extra=(), data=None):
    """A started server on a data folder in the scratch folder; killed when the block ends."""
    with Server(options.binary, data or [scratch / "data"], scratch / "server.log", [*options.serve_arg, *extra]) as made:
        try:
            made.start()
            yield made
            remember_operations(made)
        except BaseException:
            print(f"--- the server's last lines\n{made.log_tail()}", file=sys.stderr, flush=True)
            raise

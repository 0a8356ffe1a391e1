"""The options that all benches of this server share, and where they write their results."""

import argparse
import json
import time
from pathlib import Path

from comparison.main import machine
from comparison.servers import ROOT


def options(doc, port):
    """A parser of the options they share; `port` is the first loopback port to use unless given."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--binary", type=Path, help="the blockyard program (default: built here in release)")
    parser.add_argument("--driver", type=Path, help="the load driver's program (default: built here)")
    parser.add_argument("--serve-arg", action="append", default=[], metavar="=ARG", help="further argument of `blockyard serve`")
    parser.add_argument("--port", type=int, default=port, help="first of four loopback ports to use")
    parser.add_argument("--out", type=Path, default=ROOT / "benches" / "results", help="where results are written")
    return parser


def about():
    """When and where a run is."""
    return {"date": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()), "machine": machine()}


def write(out, name, results, render):
    """Writes the results so far as JSON and as Markdown. Returns the Markdown."""
    out.mkdir(parents=True, exist_ok=True)
    page = render(results)
    (out / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")
    (out / f"{name}.md").write_text(page)
    return page

"""A binary of clients/rust: built, run, its lines as groups."""

import json
import pathlib
import subprocess

from .install import Unavailable, cargo

PROJECT = pathlib.Path(__file__).resolve().parents[1] / "clients" / "rust"


def version(crate):
    """The version of a crate that the project's lock file names."""
    lines = (PROJECT / "Cargo.lock").read_text().splitlines()
    return lines[lines.index(f'name = "{crate}"') + 1].split('"')[1]


def built(judged, binary):
    """The program, or None with a row that says why there is none."""
    try:
        return cargo(PROJECT, binary)
    except Unavailable as missing:
        judged.not_run("all", str(missing))
        return None


def run(judged, program, environment, seconds=900):
    """Runs a suite; a row for each group. Returns the other lines."""
    done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=seconds,
                          stdin=subprocess.DEVNULL)
    print(done.stderr[-6000:])
    others = []
    for line in done.stdout.splitlines():
        row = json.loads(line)
        if "group" not in row:
            others.append(row)
            continue
        with judged.group(row["group"]):
            if row["error"]:
                raise AssertionError(row["error"])
    with judged.group("ran to its end"):
        if done.returncode:
            raise AssertionError(f"exit {done.returncode}")
    return others

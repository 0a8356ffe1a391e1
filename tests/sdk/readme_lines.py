#!/usr/bin/env python3
"""What the README and the banner tell a new user to paste works, verbatim: Python, rclone, AzCopy and curl lines.

They rely on the default ports, so the server runs there; where something else already listens on one of them the
script says so and exits with 77 (skipped).
"""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from lib import azcopy, cli
from lib.install import Unavailable
from lib.measure import wait_until
from lib.report import Verdicts

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"
BLOB_PORT, ADMIN_PORT = 10_000, 10_080
READY_SECONDS = 60
# What is run when a line starts with it; `az` needs an installation of its own.
PROGRAMS = ("rclone", "curl", "azcopy")


def listening(port):
    """Whether something accepts connections on this port of the loopback address."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def fenced(text, language):
    """The code blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def programs(scratch, binary):
    """A folder with what the lines call by name: the server's own program, and AzCopy where it can be had."""
    folder = scratch / "bin"
    folder.mkdir()
    (folder / "blockyard").symlink_to(binary)
    try:
        (folder / "azcopy").symlink_to(azcopy.program())
    except Unavailable as error:
        print(f"no AzCopy: {error}")
    return folder


def run_lines(text, banner, scratch, options, verdicts):
    """Runs the lines of the README, then those of the banner, against the default ports."""
    path = [programs(scratch, pathlib.Path(options.binary).resolve()), pathlib.Path(sys.executable).parent]
    environment = {**azcopy.AzCopy(None, scratch).environment(), "RCLONE_CONFIG": str(scratch / "rclone.conf"),
                   "PATH": ":".join([*map(str, path), os.environ["PATH"]])}

    def works(what, command, wanted=""):
        done = subprocess.run(command, env=environment, cwd=scratch, capture_output=True, text=True, timeout=120)
        passed = done.returncode == 0 and wanted in done.stdout
        verdicts.check(what, passed, f"exit 0 {wanted!r}", f"exit {done.returncode} {done.stdout.strip()[:60]!r}")
        if not passed:
            print(done.stdout[-2000:] + done.stderr[-2000:])

    def one_line(line, program):
        if shutil.which(program, path=environment["PATH"]):
            line_run = line.replace("curl", "curl -fsS", 1) if program == "curl" else line
            works(line[:60], ["bash", "-c", line_run])
        else:
            verdicts.figure(line[:60], f"no {program} here", "not run")

    scripts = fenced(text, "python")
    verdicts.check("README has Python lines", bool(scripts), "some", len(scripts))
    for number, script in enumerate(scripts, 1):
        works(f"Python lines {number}", [sys.executable, "-c", script], "committed" if number == 1 else "")
    (scratch / "docs").mkdir(exist_ok=True)
    (scratch / "docs" / "page.md").write_text("a page\n")
    for block in fenced(text, "sh"):
        for line in block.splitlines():
            program = line.split()[0] if line.split() else ""
            if program in PROGRAMS:
                one_line(line, program)
    for line in banner().splitlines():
        program = line.split()[0] if line.startswith("  ") and line.split() else ""
        if program in (*PROGRAMS, "python3"):
            one_line(line.strip(), program)


def main(options, scratch):
    taken = [port for port in (BLOB_PORT, ADMIN_PORT) if listening(port)]
    if taken:
        print(f"skipped: something already listens on {', '.join(map(str, taken))}")
        return 77
    verdicts = Verdicts("the README's lines")
    text = README.read_text(encoding="utf-8")
    log_path = scratch / "server.log"
    with open(log_path, "wb") as log:
        process = subprocess.Popen([options.binary, "serve", *options.serve_arg], cwd=scratch, stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL)
    try:
        began = time.monotonic()
        ready = wait_until(lambda: process.poll() is not None or (listening(BLOB_PORT) and listening(ADMIN_PORT)),
                           READY_SECONDS, every=0.02)
        verdicts.check("`blockyard serve` with no flag serves", ready and process.poll() is None, "serves",
                       f"{time.monotonic() - began:.2f} s" if process.poll() is None else f"exit {process.returncode}")
        run_lines(text, lambda: log_path.read_text(errors="replace"), scratch, options, verdicts)
        process.send_signal(signal.SIGTERM)
        verdicts.equal("exit code after SIGTERM", process.wait(60), 0)
        banner = log_path.read_text(errors="replace")
        verdicts.check("the banner shows a connection string", "AccountName=devstoreaccount1" in banner, "shown",
                       "shown" if "AccountName=" in banner else banner[:80])
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if verdicts.failures:
            print(log_path.read_text(errors="replace")[-3000:])
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

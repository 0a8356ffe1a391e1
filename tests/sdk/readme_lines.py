#!/usr/bin/env python3
"""The lines to paste of the README and the banner work verbatim: Python, rclone, AzCopy and curl.

They rely on the default ports, so the server runs there; where something else already listens on one of them the
script says so and exits with 77 (skipped).
"""

import http.client
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
from lib.issuer import Issuer, Site
from lib.measure import wait_until
from lib.report import Verdicts
from lib.wire import VERSION

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"
BLOB_PORT, ADMIN_PORT = 10_000, 10_080
READY_SECONDS = 60
# What is run when a line starts with it; `az` needs an installation of its own.
PROGRAMS = ("rclone", "curl", "azcopy")
# Commands to a running server that end by themselves.
COMMANDS = ("blockyard account", "blockyard user", "blockyard fault", "blockyard partitions list")
# The principal that the README gives a role, and the group.
READER, EDITORS = "5f0c...", "editors"


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


def answer(token, method, path, body=None, **headers):
    """The status of one request with a token."""
    connection = http.client.HTTPConnection("127.0.0.1", BLOB_PORT, timeout=20)
    every = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body=body, headers={"Authorization": f"Bearer {token}", "x-ms-version": VERSION, **every})
    status = connection.getresponse().status
    connection.close()
    return status


def roles(block, works, administered, issuer, verdicts):
    """The lines that give roles: before them a token permits nothing, after them what they say."""
    reader = issuer.token(role=None, oid=READER)
    editor = issuer.token(role=None, oid="somebody", groups=[EDITORS])

    def permitted():
        """Whether the reader may list the account, and the editor make blobs in the containers `uploads` and `other`."""
        written = [answer(editor, "PUT", f"/photos/{container}/b", b"x", x_ms_blob_type="BlockBlob") for container in
                   ("uploads", "other")]
        return [answer(reader, "GET", "/photos?comp=list"), *written]

    works("an account again", ["bash", "-c", "blockyard account create photos"])
    verdicts.equal("before a role is granted", permitted(), [403, 403, 403])
    administered(block)
    # The container does not exist. Who may write gets 404, who may not gets 403.
    verdicts.equal("after the README's lines", permitted(), [200, 404, 403])


def run_lines(text, banner, scratch, issuer, options, verdicts):
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

    def administered(block):
        """The lines of one block that go to the running server, verbatim."""
        for line in block.splitlines():
            if line.startswith(COMMANDS):
                works(line.split("#")[0].strip(), ["bash", "-c", line])

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
    for block in fenced(text, "sh"):
        if "account grant " in block:
            # The permissions are checked between its lines.
            roles(block, works, administered, issuer, verdicts)
        else:
            administered(block)
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
    issuer = Issuer()
    with Site(issuer.key_set()) as site:
        issuer.name = site.url
        return judged(text, log_path, issuer, options, scratch, verdicts)


def judged(text, log_path, issuer, options, scratch, verdicts):
    """Runs everything against one server, which takes the tokens of an issuer as the README says."""
    with open(log_path, "wb") as log:
        process = subprocess.Popen([options.binary, "serve", *options.serve_arg], cwd=scratch, stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL, env={**os.environ, "BLOCKYARD_OIDC": f"issuer={issuer.name}"})
    try:
        began = time.monotonic()
        ready = wait_until(lambda: process.poll() is not None or (listening(BLOB_PORT) and listening(ADMIN_PORT)),
                           READY_SECONDS, every=0.02)
        verdicts.check("`blockyard serve` with no flag serves", ready and process.poll() is None, "serves",
                       f"{time.monotonic() - began:.2f} s" if process.poll() is None else f"exit {process.returncode}")
        run_lines(text, lambda: log_path.read_text(errors="replace"), scratch, issuer, options, verdicts)
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

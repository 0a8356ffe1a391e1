#!/usr/bin/env python3
"""The lines to paste of the README, of three guides and of the banner work verbatim and in order: Python, rclone, AzCopy, aws, curl
and the program's own commands.

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

from lib import azcopy, cli, install, pictures
from lib.issuer import Issuer, Site
from lib.measure import wait_until
from lib.report import Verdicts
from lib.wire import VERSION

ROOT = pathlib.Path(__file__).resolve().parents[2]
# In the order in which a new user reads them.
PAGES = ("README.md", "docs/clients.md", "docs/administer.md", "docs/commands.md")
# The AWS CLI, with the version that its own script has.
AWS = pathlib.Path(__file__).resolve().parent / "clients" / "requirements-s3.txt"
BLOB_PORT, ADMIN_PORT = 10_000, 10_080
READY_SECONDS = 60
# What is run when a line starts with it, if this machine has it.
PROGRAMS = ("rclone", "curl", "azcopy")
# Commands to a running server that end by themselves.
COMMANDS = ("blockyard account", "blockyard user", "blockyard fault", "blockyard partitions list", "blockyard status", "blockyard cp",
            "blockyard ls", "blockyard cat", "blockyard stat", "blockyard rm", "blockyard disk list", "blockyard key rotate", "tar c ")
# Lines that are not run, and why.
NOT_RUN = {
    "blockyard serve": "started once, for all other lines",
    "tests/run": "this script is a part of it",
    "az ": "clients/azure_cli.py installs and runs it",
    "blockyard backup /mnt": "the folder is one of the reader's machine; backup.py runs it",
    "blockyard trace": "it has no end; reach.py runs it",
    "blockyard bench": "it takes minutes; bench.py runs it",
    "cargo install": "it builds the program; `tests/run dist` builds what users install",
    "docker ": "there is no Docker here; dist/image.py makes the image's root",
    "pip install": "the packages are those of this script",
}
# The principal that the README gives a role, and the group.
READER, EDITORS = "5f0c...", "editors"


def listening(port):
    """Whether something accepts connections on this port of the loopback address."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def fenced(text):
    """The code blocks with their languages, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def programs(scratch, binary):
    """A folder with what the lines call by name: the server's own program, and AzCopy where it can be had."""
    folder = scratch / "bin"
    folder.mkdir()
    (folder / "blockyard").symlink_to(binary)
    for name, program in (("azcopy", azcopy.program), ("aws", lambda: install.python(AWS).parent / "aws")):
        try:
            (folder / name).symlink_to(program())
        except install.Unavailable as error:
            print(f"no {name}: {error}")
    return folder


def answer(token, method, path, body=None, **headers):
    """The status of one request with a token."""
    connection = http.client.HTTPConnection("127.0.0.1", BLOB_PORT, timeout=20)
    every = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body=body, headers={"Authorization": f"Bearer {token}", "x-ms-version": VERSION, **every})
    status = connection.getresponse().status
    connection.close()
    return status


def permitted(issuer):
    """Whether the reader may list the account, and the editor make blobs in the containers `uploads` and `other`."""
    reader = issuer.token(role=None, oid=READER)
    editor = issuer.token(role=None, oid="somebody", groups=[EDITORS])
    written = [answer(editor, "PUT", f"/photos/{container}/b", b"x", x_ms_blob_type="BlockBlob") for container in ("uploads", "other")]
    return [answer(reader, "GET", "/photos?comp=list"), *written]


def before_roles(works, issuer, verdicts):
    """Before the lines that give roles, a token permits nothing."""
    works("an account again", ["bash", "-c", "blockyard account create photos"])
    verdicts.equal("before a role is granted", permitted(issuer), [403, 403, 403])


def run_lines(pages, banner, scratch, issuer, options, verdicts):
    """Runs the lines of the pages, then those of the banner, against the default ports."""
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

    def administered(line):
        """One line that goes to the running server, verbatim."""
        works(line.split("#")[0].strip(), ["bash", "-o", "pipefail", "-c", line])

    def left_out(line):
        """A line that is not run must be known."""
        why = next((why for start, why in NOT_RUN.items() if line.startswith(start)), None)
        if why is None:
            verdicts.check(line[:60], False, "run, or a reason in NOT_RUN", "no reason")
        else:
            verdicts.figure(line[:60], why, "not run")

    def shell(block):
        """The lines of one block that this machine has the programs for."""
        if "aws " in block:
            # The lines before it say who signs.
            if shutil.which("aws", path=environment["PATH"]):
                works("the lines of the AWS CLI", ["bash", "-ec", block], "from-s3.md")
            else:
                verdicts.figure("the lines of the AWS CLI", "no aws here", "not run")
            return
        # The permissions are checked before and after the lines that give roles.
        gives_roles = "account grant " in block
        if gives_roles:
            before_roles(works, issuer, verdicts)
        for line in block.splitlines():
            program = line.split()[0] if line.split() else ""
            if program in PROGRAMS:
                one_line(line, program)
            elif line.startswith(COMMANDS):
                administered(line)
            elif program and not line.startswith("#"):
                left_out(line)
        if gives_roles:
            # The container does not exist. Who may write gets 404, who may not gets 403.
            verdicts.equal("after the guide's lines", permitted(issuer), [200, 404, 403])

    (scratch / "docs").mkdir(exist_ok=True)
    (scratch / "docs" / "page.md").write_text("a page\n")
    (scratch / "README.md").write_text("read me\n")
    for line in re.findall(r"`((?:cargo|docker|pip) [^`]+)`", pages["README.md"]):
        left_out(line)
    for name, text in pages.items():
        blocks = fenced(text)
        verdicts.check(f"{name} has lines", bool(blocks), "some", len(blocks))
        for number, (language, block) in enumerate(blocks, 1):
            if language == "python":
                works(f"{name}: Python lines {number}", [sys.executable, "-c", block], "two protocols")
            elif language == "sh":
                shell(block)
    for line in banner().splitlines():
        program = line.split()[0] if line.startswith("  ") and line.split() else ""
        if program in (*PROGRAMS, "python3"):
            one_line(line.strip(), program)


def shown(banner):
    """The first lines of the banner, up to the connection string."""
    lines = banner.splitlines()
    first = next((at for at, line in enumerate(lines) if line.startswith("Blockyard ")), 0)
    last = next((at for at, line in enumerate(lines) if "connection string" in line), first)
    # The issuer of tokens is one of this script.
    return [line for line in lines[first:last + 1] if not line.startswith("  tokens ")]


def main(options, scratch):
    taken = [port for port in (BLOB_PORT, ADMIN_PORT) if listening(port)]
    if taken:
        print(f"skipped: something already listens on {', '.join(map(str, taken))}")
        return 77
    verdicts = Verdicts("the README's lines")
    pages = {name: (ROOT / name).read_text(encoding="utf-8") for name in PAGES}
    log_path = scratch / "server.log"
    issuer = Issuer()
    with Site(issuer.key_set()) as site:
        issuer.name = site.url
        return judged(pages, log_path, issuer, options, scratch, verdicts)


def judged(pages, log_path, issuer, options, scratch, verdicts):
    """Runs everything against one server, which takes the tokens of an issuer as the README says."""
    first = fenced(pages["README.md"])[0][1].split()
    verdicts.equal("the first line of the README", first, ["blockyard", "serve"])
    with open(log_path, "wb") as log:
        process = subprocess.Popen([options.binary, *first[1:], *options.serve_arg], cwd=scratch, stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL, env={**os.environ, "BLOCKYARD_OIDC": f"issuer={issuer.name}"})
    try:
        began = time.monotonic()
        ready = wait_until(lambda: process.poll() is not None or (listening(BLOB_PORT) and listening(ADMIN_PORT)),
                           READY_SECONDS, every=0.02)
        verdicts.check("`blockyard serve` with no flag serves", ready and process.poll() is None, "serves",
                       f"{time.monotonic() - began:.2f} s" if process.poll() is None else f"exit {process.returncode}")
        run_lines(pages, lambda: log_path.read_text(errors="replace"), scratch, issuer, options, verdicts)
        process.send_signal(signal.SIGTERM)
        verdicts.equal("exit code after SIGTERM", process.wait(60), 0)
        banner = log_path.read_text(errors="replace")
        verdicts.check("the banner shows a connection string", "AccountName=devstoreaccount1" in banner, "shown",
                       "shown" if "AccountName=" in banner else banner[:80])
        pictures.terminal("blockyard serve", shown(banner), scratch, "banner.png")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        if verdicts.failures:
            print(log_path.read_text(errors="replace")[-3000:])
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

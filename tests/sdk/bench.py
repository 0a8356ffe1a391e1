#!/usr/bin/env python3
"""`blockyard bench` counts what the server counts, verifies, and leaves nothing behind. No time is judged.

Every workload runs briefly through Blob and through S3. The requests that the command says it sent are those that /metrics has,
by operation. It refuses a container that exists, and with --existing removes only its own blobs. Ctrl-C ends it cleanly, also while it
waits. A container whose creation was not answered is removed. A shared access signature, https, injected faults; Azurite and SeaweedFS in
the place of Blockyard.
"""

import json
import os
import re
import signal
import subprocess
import time

from lib import cli, peers
from lib.commands import command
from lib.install import Unavailable
from lib.measure import wait_until
from lib.report import Verdicts

WORKLOADS = ["put", "get", "range", "head", "list", "mixed", "blocks", "delete"]
# The operation of each, where there is one: Blob, S3.
OPERATIONS = {"put": ("PutBlob", "PutObject"), "head": ("GetBlobProperties", "HeadObject"), "list": ("ListBlobs", "ListObjectsV2")}
SMALL = ["--clients", "4", "--blobs", "30", "--size", "4KiB"]
SECONDS = 120


class Bench:
    """Runs the command against one server."""

    def __init__(self, binary, where):
        self.binary = binary
        self.environment = {**{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "AZURE_", "BLOCKYARD_"))},
                            **where}

    def start(self, *words):
        """Starts one run."""
        return subprocess.Popen([self.binary, "bench", *words], env=self.environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def run(self, *words):
        """One run: exit code, lines of JSON, errors."""
        return ended(self.start(*words, "--json"))


def ended(process):
    """What a run says when it ends."""
    out, errors = process.communicate(timeout=SECONDS)
    return process.returncode, [json.loads(line) for line in out.splitlines()], errors


def counted(server):
    """Requests by operation that the server has answered."""
    found = {}
    for name, value in server.metrics().items():
        labels = re.fullmatch(r'blockyard_(?:frontend_)?requests_total\{operation="(\w+)",status="\d+"\}', name)
        if labels:
            found[labels[1]] = found.get(labels[1], 0) + int(value)
    return found


def difference(before, after):
    """The counts in between."""
    return {name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)}


def containers(server):
    """The containers of the development account."""
    return {item.name for item in server.account.service().list_containers()}


def workloads(bench, server, place, verdicts):
    """Each workload alone: its figures agree with each other and with the server's."""
    protocol = "s3" if place.startswith("s3:") else "blob"
    for workload in WORKLOADS:
        size = ["--size", "5MiB", "--blocks", "2", "--ops", "3"] if workload == "blocks" else ["--ops", "40"]
        before = counted(server)
        code, lines, errors = bench.run(place, "--workload", workload, *SMALL[:4], *(SMALL[4:] if workload != "blocks" else []), *size)
        answered = difference(before, counted(server))
        if code != 0 or len(lines) != 2:
            verdicts.check(f"{protocol} {workload}", False, "exit 0, two lines", f"exit {code}: {errors[-200:]}")
            continue
        figures, rest = lines
        wanted = 3 if workload == "blocks" else 40
        verdicts.equal(f"{protocol} {workload}: operations, errors", (figures["ops"], figures["errors"], figures["failures"]),
                       (wanted, 0, {}))
        sent = figures["requests"] + rest["prepared_requests"] + rest["other_requests"]
        verdicts.equal(f"{protocol} {workload}: requests that were sent and answered", sent, sum(answered.values()))
        if workload in OPERATIONS:
            name = OPERATIONS[workload][protocol == "s3"]
            least = figures["requests"] + (rest["prepared_requests"] if workload == "put" else 0)
            found = max((count for known, count in answered.items() if known in OPERATIONS[workload]), default=0)
            verdicts.check(f"{protocol} {workload}: {name} was counted", found >= least, f">= {least}", str(answered))
        ordered = figures["p50_us"] <= figures["p90_us"] <= figures["p99_us"] <= figures["max_us"]
        rate = figures["ops"] / figures["seconds"]
        verdicts.check(f"{protocol} {workload}: figures agree", ordered and abs(figures["ops_per_second"] - rate) < 0.01 * rate)
        bodies = {"put": 40 * 4096, "get": 40 * 4096, "range": 40 * 256, "blocks": 3 * 2 * (5 << 20)}
        if workload in bodies:
            verdicts.equal(f"{protocol} {workload}: bytes", figures["bytes"], bodies[workload])
    verdicts.equal(f"{protocol}: containers that are left", containers(server), set())


def manners(bench, server, place, verdicts):
    """What exists is not touched unless asked for; and then only its own blobs are removed."""
    protocol, name = "s3" if place.startswith("s3:") else "blob", "kept"
    container = server.account.service().create_container(name)
    container.upload_blob("blockyard-bench-is-mine", b"kept")
    container.upload_blob("other/blob", b"kept")
    code, lines, errors = bench.run(f"{place}{name}", "--ops", "5", *SMALL)
    verdicts.check(f"{protocol}: a container that exists is refused", code == 2 and not lines and "--existing" in errors,
                   found=f"exit {code}: {errors.strip()[-100:]}")
    code, lines, errors = bench.run(f"{place}{name}", "--existing", "--ops", "20", "--workload", "put,mixed", *SMALL)
    left = sorted(blob.name for blob in container.list_blobs())
    verdicts.equal(f"{protocol}: with --existing only its own blobs go", (code, left), (0, ["blockyard-bench-is-mine", "other/blob"]))
    code, _, errors = bench.run(place, "--existing", "--ops", "5")
    verdicts.check(f"{protocol}: --existing needs a name", code == 2, found=errors.strip()[-80:])
    container.delete_container()


def interrupted(bench, server, place, verdicts):
    """Ctrl-C: the figures so far, exit code 1, nothing is left, blocks without a blob neither."""
    protocol = "s3" if place.startswith("s3:") else "blob"
    size = ["--size", "5MiB", "--blocks", "50"]
    kept = server.account.service().create_container("kept")
    for words in ([place, "--workload", "put", "--duration", "1h", *SMALL], [f"{place}kept", "--existing", "--workload", "blocks",
                                                                             "--duration", "1h", "--clients", "2", *size]):
        process = bench.start(*words, "--json")
        before = sum(counted(server).values())
        wait_until(lambda: sum(counted(server).values()) >= before + 10, 60)
        process.send_signal(signal.SIGINT)
        code, lines, errors = ended(process)
        flags = [line["interrupted"] for line in lines if "interrupted" in line]
        verdicts.check(f"{protocol}: Ctrl-C ends {words[0]}", code == 1 and flags in ([True], []) and lines[-1]["left"] is None,
                       found=f"exit {code}: {errors.strip()[-100:]}")
    names = [blob.name for blob in kept.list_blobs(include=["uncommittedblobs"])]
    verdicts.equal(f"{protocol}: Ctrl-C leaves", (containers(server), names), ({"kept"}, []))
    kept.delete_container()


def rests(bench, server, place, verdicts):
    """Ctrl-C ends a workload that waits for the next operation of its rate, long before that is due."""
    protocol = "s3" if place.startswith("s3:") else "blob"
    written = lambda: sum(count for name, count in counted(server).items() if name in OPERATIONS["put"])
    before = written()
    process = bench.start(place, "--workload", "put", "--rate", "0.001", "--ops", "50", "--clients", "1", "--json")
    wait_until(lambda: written() > before, 60)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    code, lines, errors = ended(process)
    # The next operation is due in a quarter of an hour. A workload that has not ended after ten seconds is given up, and says so.
    verdicts.check(f"{protocol}: Ctrl-C ends the wait for the next operation", code == 1 and lines[0]["interrupted"] and lines[-1]["left"] is None
                   and "ended by" not in errors, found=f"exit {code}: {errors.strip()[-100:]}")


def doubtful(bench, server, place, verdicts):
    """A creation of the container that has no answer: the container goes, or the command says that it may be there."""
    protocol, operation = ("s3", "CreateBucket") if place.startswith("s3:") else ("blob", "CreateContainer")
    for name, message, left in (("", "nothing is left", set()), ("doubtful", "nothing is left" if protocol == "s3" else "may have been made",
                                                             set() if protocol == "s3" else {"doubtful"})):
        command(server, "fault", "set", "lost", "--operation", operation, "--count", "1")
        code, lines, errors = bench.run(f"{place}{name}", "--ops", "5", *SMALL)
        verdicts.check(f"{protocol}: no answer to the creation of {name or 'a container'}", code == 1 and not lines and message in errors,
                       message, f"exit {code}: {errors.strip()[-160:]}")
        verdicts.equal(f"{protocol}: what it leaves", containers(server), left)
        command(server, "fault", "clear")
        for rest in left:
            server.account.service().delete_container(rest)


def few(bench, place, verdicts):
    """Workloads of few blobs and several of one kind: each has blobs of its own, and enough of them."""
    protocol = "s3" if place.startswith("s3:") else "blob"
    code, lines, errors = bench.run(place, "--workload", "mixed,mixed,put,put,delete,delete", "--ops", "300", "--blobs", "1", "--clients", "8",
                                    "--size", "1KiB")
    done = [(line["workload"], line["ops"], line["errors"]) for line in lines[:-1]]
    wanted = [(name, 300, 0) for name in ("mixed", "mixed", "put", "put", "delete", "delete")]
    verdicts.check(f"{protocol}: few blobs, and workloads that are repeated", code == 0 and done == wanted, found=f"{done} {errors[-120:]}")


def failures(bench, server, verdicts):
    """Refused operations are counted by code; the exit code is 1."""
    command(server, "fault", "set", "busy", "--operation", "PutBlob", "--rate", "0.5", "--seed", "7")
    code, lines, _ = bench.run("by://", "--workload", "put", "--ops", "40", *SMALL)
    command(server, "fault", "clear")
    figures = lines[0]
    busy = [count for reason, count in figures["failures"].items() if reason.startswith("503") and "ServerBusy" in reason]
    verdicts.check("503s are counted by their code", code == 1 and busy == [figures["errors"]] and figures["errors"] > 0,
                   found=str(figures["failures"]))
    verdicts.equal("what failed and what succeeded", figures["ops"] + figures["errors"], 40)
    verdicts.equal("requests of these", figures["requests"], 40)


def signed(options, server, verdicts):
    """A URL with a shared access signature needs no key."""
    url = subprocess.run([options.binary, "sas", "signed", "--permissions", "racwdl", "--account", server.account.name,
                          "--endpoint", server.account.url],
                         capture_output=True, text=True, check=True).stdout.strip()
    container = server.account.service().create_container("signed")
    code, lines, errors = Bench(options.binary, {}).run(url, "--existing", "--workload", "put,get,blocks", "--ops", "5", "--blocks", "2",
                                                        *SMALL)
    verdicts.equal("a signature in the URL", (code, [line.get("ops") for line in lines[:-1]], list(container.list_blobs())),
                   (0, [5, 5, 5], []))
    verdicts.check("no signature is printed", "sig=" not in json.dumps(lines) + errors)
    container.delete_container()


def for_people(bench, verdicts):
    """Without a terminal: values with tabs between them, no colours, no progress."""
    process = bench.start("by://", "--workload", "put,head", "--duration", "200ms", *SMALL)
    out, errors = process.communicate(timeout=SECONDS)
    rows = [line.split("\t") for line in out.splitlines()]
    verdicts.check("no terminal: columns with tabs", process.returncode == 0 and [row[0] for row in rows] == ["workload", "put", "head"]
                   and len({len(row) for row in rows}) == 1 and "\x1b" not in out + errors, found=out + errors)


def elsewhere(options, scratch, verdicts):
    """Other servers, each in its protocol."""
    for name in ("azurite", "seaweedfs"):
        (scratch / name).mkdir()
        try:
            peer = peers.start(name, options, scratch, scratch / f"{name}.log")
        except Unavailable as error:
            verdicts.figure(f"{name}: not run", str(error)[:60])
            continue
        try:
            if name == "azurite":
                bench, place = Bench(options.binary, {"BLOCKYARD_ENDPOINT": peer.account.url}), "by://"
            else:
                peer.store("first")
                access_key, secret = peer.keys
                bench, place = Bench(options.binary, {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{peer.ports['s3.port']}",
                                                      "AWS_ACCESS_KEY_ID": access_key, "AWS_SECRET_ACCESS_KEY": secret}), "s3://"
            code, lines, errors = bench.run(place, "--workload", "put,get,list,mixed", "--ops", "40", *SMALL)
            blocks, more, worse = bench.run(place, "--workload", "blocks", "--ops", "2", "--size", "5MiB", "--blocks", "2")
            done = [(line["ops"], line["errors"]) for line in (lines + more) if "ops" in line]
            verdicts.check(f"{name} is measured too", (code, blocks, done) == (0, 0, [(40, 0)] * 4 + [(2, 0)]), found=f"{done} {errors}{worse}"[-120:])
        finally:
            peer.kill()


def main(options, scratch):
    """Both protocols on one server."""
    verdicts = Verdicts("blockyard bench")
    with cli.server(options, scratch, ["--tls", "auto"]) as server:
        address = server.blob_address
        bench = Bench(options.binary, {"BLOCKYARD_ENDPOINT": f"http://{address}", "AWS_ENDPOINT_URL": f"http://{address}"})
        for place in ("by://", "s3://"):
            workloads(bench, server, place, verdicts)
            manners(bench, server, place, verdicts)
            interrupted(bench, server, place, verdicts)
            rests(bench, server, place, verdicts)
            doubtful(bench, server, place, verdicts)
            few(bench, place, verdicts)
        failures(bench, server, verdicts)
        signed(options, server, verdicts)
        for_people(bench, verdicts)
        authority = str(scratch / "data" / "tls" / "ca.pem")
        secure = Bench(options.binary, {"BLOCKYARD_ENDPOINT": f"https://{address}", "AWS_ENDPOINT_URL": f"https://{address}",
                                        "BLOCKYARD_CA": authority})
        found = [secure.run(place, "--ops", "10", *SMALL)[0] for place in ("by://", "s3://")]
        verdicts.equal("over https", found, [0, 0])
        verdicts.equal("containers that are left", containers(server), set())
    if not options.small:
        elsewhere(options, scratch, verdicts)
    return verdicts.exit_code()


if __name__ == "__main__":
    chosen = cli.parse(cli.parser(__doc__))
    cli.run(main, chosen)

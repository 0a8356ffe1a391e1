#!/usr/bin/env python3
"""The audit log: an attacker looks for secrets in it, an operator for what happened.

* every change has exactly one line, with the correct principal (Shared Key, SAS, bearer, anonymous, admin token, the node);
* no key, signature, token or copy source is in it, whatever clients send and however they are refused;
* every request has exactly one line through rotation under load, with the id that its answer, the log and `blockyard trace` show, and
  with its trace, if it has one;
* kill -9 tears nothing; files are for their owner alone; standard output works;
* a full disk under the log stops no request; the counted and the logged number of dropped lines are correct.

The last part needs root, for mounting; without root the script skips it and says so.
"""

import collections
import concurrent.futures
import datetime
import http.client
import itertools
import json
import os
import re
import subprocess
import time
from urllib.parse import unquote

from azure.storage.blob import (AccessPolicy, AccountSasPermissions, BlobClient, BlobSasPermissions, ContainerClient,
                                ContainerSasPermissions, ResourceTypes, generate_account_sas, generate_blob_sas,
                                generate_container_sas)

from disk_full import CannotMount, free, small_file_system
from lib import cli
from lib.commands import command
from lib.account import Account
from lib.issuer import ISSUER, Issuer
from lib.measure import wait_until
from lib.report import Verdicts
from lib.wire import VERSION, Wire

ME = "11111111-2222-3333-4444-555555555555"
THREADS = 8


class Log:
    """The files of an audit log."""

    def __init__(self, path):
        self.path = path

    def files(self):
        """All files, oldest first."""
        moved = [p for p in self.path.parent.glob(self.path.name + ".*") if p.suffix[1:].isdigit()]
        return sorted(moved, key=lambda p: -int(p.suffix[1:])) + [self.path]

    def text(self):
        """Everything."""
        while True:
            files = self.files()
            try:
                parts = [path.read_bytes() for path in files]
            except FileNotFoundError:
                continue  # moved aside meanwhile
            if files == self.files():
                return b"".join(parts)

    def lines(self):
        """All lines that are whole, and how many are not."""
        whole, broken = [], 0
        for line in self.text().splitlines():
            try:
                whole.append(json.loads(line))
            except ValueError:
                broken += 1
        return whole, broken

    def settled(self, wanted, seconds=20):
        """The lines, once `wanted` is true of them."""
        wait_until(lambda: wanted(self.lines()[0]), seconds, every=0.1)
        return self.lines()[0]


def later():
    """An expiry."""
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)


def bearer(server, token, method, path, **headers):
    """One request with a token: (status, request id)."""
    connection = http.client.HTTPConnection(server.blob_address, timeout=20)
    every = {"x-ms-version": VERSION, "Authorization": f"Bearer {token}", "Content-Length": "0",
             **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request(method, path, headers=every)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.getheader("x-ms-request-id")


class Changes:
    """The changes that were made, as the log must show them."""

    def __init__(self):
        self.wanted = collections.Counter()

    def add(self, of, operation, principal, account=None, resource=None):
        """One change that was answered well."""
        self.wanted[of, operation, principal, account, resource] += 1

    def compare(self, lines, verdicts, what):
        """Compares the log with them."""
        found = collections.Counter(
            (line["of"], line["operation"], line["principal"]["kind"], line["account"], line["resource"])
            for line in lines if line["kind"] == "change")
        wrong = [f"{row}: {self.wanted[row]} made, {found[row]} logged"
                 for row in sorted(set(self.wanted) | set(found), key=str) if self.wanted[row] != found[row]]
        verdicts.none(f"{what}: each change has one line ({sum(self.wanted.values())} changes)", wrong, 20)


def changes(server, issuer, log, verdicts):
    """Every kind of change by every kind of principal. Returns the secrets that were used."""
    made, secrets = Changes(), set()
    made.add("account", "CreateAccount", "node", "devstoreaccount1")
    created = command(server, "account", "create", "acct")
    keys = created["keys"]
    secrets.update(keys)
    made.add("account", "CreateAccount", "admin_token", "acct")
    own = "c2VjcmV0IGtleSB0aGF0IHRoZSBvcGVyYXRvciBnaXZlcw=="
    secrets.update([own, *command(server, "account", "rotate", "acct", "key2", "--value", own)["keys"]])
    made.add("key", "RotateKey", "admin_token", "acct")
    command(server, "account", "set", "acct", "--anonymous", "on")
    made.add("account", "SetAnonymousAccess", "admin_token", "acct")
    command(server, "account", "grant", "acct", "contributor", ME, "--issuer", ISSUER)
    made.add("grant", "GrantRole", "admin_token", "acct")
    account = Account(server.blob_address, "acct", keys[0])

    service = account.service()
    container = service.create_container("shared", public_access="blob")
    made.add("container", "CreateContainer", "shared_key", "acct", "shared")
    container.set_container_metadata({"a": "b"})
    made.add("container", "SetContainerMetadata", "shared_key", "acct", "shared")
    policy = AccessPolicy(ContainerSasPermissions(read=True, write=True, list=True), later())
    container.set_container_access_policy({"stored": policy}, public_access="blob")
    made.add("policy", "SetContainerAcl", "shared_key", "acct", "shared")
    lease = container.acquire_lease()
    lease.release()
    for _ in range(2):
        made.add("container", "LeaseContainer", "shared_key", "acct", "shared")
    service.set_service_properties(hour_metrics={"version": "1.0", "enabled": False, "retention_policy": {"enabled": False}})
    made.add("account", "SetServiceProperties", "shared_key", "acct")

    sas = generate_account_sas("acct", keys[0], ResourceTypes(service=True, container=True, object=True),
                               AccountSasPermissions(read=True, write=True, delete=True, list=True, create=True), later())
    stored = generate_container_sas("acct", "shared", keys[0], policy_id="stored")
    for signed in (sas, stored):
        secrets.add(re.search(r"sig=([^&]+)", signed)[1])
    ContainerClient.from_container_url(f"{account.url}/by-sas?{sas}").create_container()
    made.add("container", "CreateContainer", "sas", "acct", "by-sas")
    blob = BlobClient.from_blob_url(f"{account.url}/shared/blob?{stored}")
    blob.upload_blob(b"x" * 5000)

    token = issuer.token(role="", oid=ME)
    secrets.update([token, token.split(".")[2]])
    status, _ = bearer(server, token, "PUT", "/acct/by-token?restype=container")
    verdicts.equal("container made with a token", status, 201)
    made.add("container", "CreateContainer", "bearer", "acct", "by-token")

    # Refused: no change line, and nothing that was sent is in the log.
    wrong = Account(server.blob_address, "acct", own[::-1].replace("=", "A") + "==")
    refused = Wire(wrong).request("PUT", "/nothing", {"restype": "container"})
    verdicts.equal("wrong key", (refused.status, refused.code), (403, "AuthenticationFailed"))
    status, _ = bearer(server, token[:-4] + "AAAA", "PUT", "/acct/nothing?restype=container")
    verdicts.equal("forged token", status, 401)
    anonymous = Wire(account).request("PUT", "/nothing", {"restype": "container"}, sign=False)
    verdicts.check("nobody makes a container", anonymous.status in (401, 404), "refused", str(anonymous.status))

    # Copies: the source is a URL with a signature, and a header with a token.
    source_sas = generate_blob_sas("acct", "shared", "blob", account_key=keys[0],
                                   permission=BlobSasPermissions(read=True), expiry=later())
    secrets.add(re.search(r"sig=([^&]+)", source_sas)[1])
    container.get_blob_client("copy").upload_blob_from_url(f"{account.url}/shared/blob?{source_sas}")
    container.get_blob_client("copy2").upload_blob_from_url(
        f"{account.url}/shared/blob", source_authorization=f"Bearer {token}")
    # A key of the customer.
    customer = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    secrets.add(customer)
    Wire(account).request("PUT", "/shared/locked", headers={
        "x-ms-blob-type": "BlockBlob", "x-ms-encryption-key": customer, "x-ms-encryption-algorithm": "AES256",
        "x-ms-encryption-key-sha256": "Yw3NKWbEM2aRElRIu7JbT/QSpJxzLbLIq8G4WBvXEN0="}, body=b"secret content")

    status, asked = bearer(server, token, "GET", "/acct/shared/blob")
    verdicts.equal("read with a token", status, 200)
    open_read = Wire(account).request("GET", "/shared/blob", sign=False)
    verdicts.equal("read by anybody", open_read.status, 200)

    rule = command(server, "fault", "set", "busy", "--container", "nowhere", "--count", "1")["id"]
    made.add("fault", "SetFault", "admin_token", None, str(rule))
    command(server, "fault", "clear", str(rule))
    made.add("fault", "ClearFault", "admin_token", None, str(rule))
    lasting = command(server, "fault", "set", "error", "--container", "shared", "--operation", "GetBlob", "--count", "1")["id"]
    made.add("fault", "SetFault", "admin_token", None, str(lasting))
    struck = Wire(account).request("GET", "/shared/blob")
    verdicts.equal("the fault strikes", struck.status, 500)
    made.add("fault", "EndFault", "node", None, str(lasting))
    first = command(server, "partitions", "list")["partitions"][0]["id"]
    command(server, "partitions", "split", "acct/shared/m")
    made.add("partition_map", "SplitPartition", "admin_token", None, "acct/shared/m")
    verdicts.check("there was a partition to split", first is not None, "one", str(first))

    service.delete_container("by-sas")
    made.add("container", "DeleteContainer", "shared_key", "acct", "by-sas")
    command(server, "account", "ungrant", "acct", "contributor", ME, "--issuer", ISSUER)
    made.add("grant", "RevokeRole", "admin_token", "acct")
    command(server, "account", "revoke", "acct")
    made.add("key", "RevokeDelegationKeys", "admin_token", "acct")

    total = sum(made.wanted.values())
    lines = log.settled(lambda lines: sum(line["kind"] == "change" for line in lines) >= total)
    made.compare(lines, verdicts, "all kinds")
    kinds = {line["request_id"]: line["principal"]["kind"] for line in lines if line["kind"] == "request"}
    verdicts.equal("a read with a token", kinds.get(asked), "bearer")
    verdicts.equal("a read by anybody", kinds.get(open_read.headers["x-ms-request-id"]), "anonymous")
    verdicts.equal("a wrong key", kinds.get(refused.headers["x-ms-request-id"]), "unknown")
    named = [line["principal"] for line in lines if line["principal"].get("policy")]
    verdicts.check("a signature names its stored policy", any(p["policy"] == "stored" for p in named), "stored", str(named[:1]))
    subjects = {line["principal"].get("subject") for line in lines if line["principal"]["kind"] == "bearer"}
    verdicts.equal("a token names its subject", subjects, {ME})
    return account, secrets, refused


def leaks(log, server, secrets, verdicts):
    """Looks for secrets in the files."""
    text = log.text().decode()
    token = open(f"{server.data[0]}/admin-token", encoding="utf-8").read().strip()
    spelled = set()
    for secret in secrets | {token, server.account.key}:
        spelled |= {secret, unquote(secret)}
    verdicts.none(f"secrets in the log ({len(spelled)} looked for)", [s for s in spelled if s in text])
    verdicts.none("words of secrets in the log", [word for word in ("sig=", "SharedKey ", "Bearer ", "Authorization",
                                                                    "copy-source", "?sv=") if word in text])
    wide = [f"{p}: {p.stat().st_mode & 0o777:o}" for p in log.path.parent.iterdir() if p.stat().st_mode & 0o077]
    verdicts.none("files that others may read", wide)


def ids(server, log, account, refused, verdicts):
    """The id of a request is in the log and in the trace."""
    text = server.log_path.read_text(errors="replace")
    wanted = refused.headers["x-ms-request-id"]
    lines = [line for line in text.splitlines() if wanted in line]
    verdicts.check("the log line of a refused request carries its id", any("refused" in line for line in lines), "a line",
                   f"{len(lines)} lines")
    trace = subprocess.Popen(
        [server.binary, "trace", "--admin-listen", server.admin_address, "--data", server.data[0]],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        time.sleep(1)
        answer = Wire(account).request("GET", "/shared/missing")
        line = trace.stdout.readline()
    finally:
        trace.terminate()
        trace.wait()
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    traced = Wire(account).request("GET", "/shared/missing", headers={"traceparent": f"00-{trace_id}-00f067aa0ba902b7-00"})
    wanted = {traced.headers["x-ms-request-id"]: trace_id, answer.headers["x-ms-request-id"]: None}
    found = lambda lines: {line["request_id"]: line.get("trace_id") for line in lines if line.get("request_id") in wanted}
    lines = log.settled(lambda lines: len(found(lines)) == 2)
    verdicts.equal("a line has the trace of its request, if there is one", found(lines), wanted)
    verdicts.check("trace shows the server's id", answer.headers["x-ms-request-id"] in line, "the id", line.strip()[:90])


def load(server, account, log, count, verdicts):
    """Rotation under load loses no line, and doubles none; written lines survive kill -9."""
    sent = []

    def run(worker):
        wire = Wire(account)
        for number in range(count // THREADS):
            answer = wire.request("PUT", f"/shared/load/{worker}/{number}", headers={"x-ms-blob-type": "BlockBlob"}, body=b"x")
            sent.append((answer.headers["x-ms-request-id"], answer.status))
        wire.close()

    before = len(log.files())
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(run, range(THREADS)))
    logged_ids = lambda lines: {line["request_id"] for line in lines if line["kind"] == "request"}
    lines = log.settled(lambda lines: {row[0] for row in sent} <= logged_ids(lines))
    found = collections.Counter(line["request_id"] for line in lines if line["kind"] == "request")
    verdicts.none(f"rotation: each of {len(sent):,} requests has one line", [row for row in sent if found[row[0]] != 1])
    verdicts.equal("rotation: lost", server.metrics().get('blockyard_audit_log_lost_total{kind="request"}', 0), 0)
    verdicts.check("rotation: files", len(log.files()) > before + 2, f"> {before + 2}", str(len(log.files())))
    large = [f"{p}: {p.stat().st_size}" for p in log.files() if p.stat().st_size > 65536]
    verdicts.none("rotation: no file is larger than it may be", large)
    server.kill()
    server.start()
    again, broken = log.lines()
    after = logged_ids(again)
    verdicts.none("kill -9: lines that were written are there", [row for row in sent if row[0] not in after])
    verdicts.check("kill -9: torn lines", broken <= 1, "<= 1", str(broken))
    answer = Wire(account).request("HEAD", "/shared/load/0/0")
    lines = log.settled(lambda lines: answer.headers["x-ms-request-id"] in logged_ids(lines))
    verdicts.check("kill -9: the log goes on", answer.headers["x-ms-request-id"] in logged_ids(lines), "a line", "")


def full_disk(options, scratch, verdicts):
    """The disk of the log is full; the data is elsewhere."""
    with small_file_system(scratch, 24) as (folder, kind):
        verdicts.figure("file system of the log", kind)
        log = Log(folder / "audit.jsonl")
        extra = ["--audit-log", str(log.path), "--audit-requests"]
        with cli.server(options, scratch, extra, data=[scratch / "full-data"]) as server:
            account = server.account
            account.service().create_container("full", public_access="container")
            log.settled(lambda lines: any(line["kind"] == "request" for line in lines))
            with open(folder / "ballast", "wb") as ballast:
                try:
                    while True:
                        ballast.write(b"\0" * 4096)
                        ballast.flush()
                except OSError:
                    pass
            verdicts.figure("free under the log", f"{free(folder):,} bytes")
            # Lines of 2 KiB each: their queue holds 8 MiB.
            slow, wrong, longest = itertools.count(), [], 0.0

            def run(worker):
                nonlocal longest
                wire = Wire(account)
                for number in range(1000):
                    began = time.monotonic()
                    answer = wire.request("GET", "/full/" + f"{worker}-{number}-" + '"' * 1000, sign=False)
                    longest = max(longest, time.monotonic() - began)
                    if answer.status != 404:
                        wrong.append(f"{answer.status} {answer.code}")
                    next(slow)
                wire.close()

            with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(run, range(THREADS)))
            verdicts.none(f"full: {next(slow):,} requests are answered", wrong)
            verdicts.figure("full: slowest request", f"{longest:.2f} s")
            Wire(account).request("PUT", "/during", {"restype": "container"})
            lost = server.metrics().get('blockyard_audit_log_lost_total{kind="request"}', 0)
            verdicts.check("full: dropped lines are counted", lost > 0, "> 0", f"{lost:,.0f}")
            verdicts.check("full: it is logged", "lines of the audit log are dropped" in server.log_path.read_text(), "a line", "")
            os.unlink(folder / "ballast")
            done = lambda lines: sum(line["kind"] == "lost" for line in lines)
            lines = log.settled(done, seconds=60)
            dropped = sum(line["requests"] for line in lines if line["kind"] == "lost")
            lost = server.metrics()['blockyard_audit_log_lost_total{kind="request"}']
            verdicts.equal("space again: the log says how many were dropped", dropped, int(lost))
            # The balancer may have split a partition meanwhile: that is a change too.
            made = [line["resource"] for line in lines if line["kind"] == "change" and line["of"] == "container"]
            verdicts.equal("space again: no change was dropped", sorted(made), ["during", "full"])
            requests = [line for line in lines if line["kind"] == "request" and line["resource"] != "full"]
            verdicts.equal("space again: lines and dropped ones are all requests", len(requests) + dropped, 1000 * THREADS + 1)
            verdicts.equal("lines that are not whole", log.lines()[1], 0)


def standard_output(options, scratch, verdicts):
    """Lines on standard output, and nothing else there."""
    with cli.server(options, scratch, ["--audit-log", "-"], data=[scratch / "stdout-data"]) as server:
        server.account.service().create_container("out")
        is_logged = lambda: any('"operation":"CreateContainer"' in line for line in server.log_path.read_text().splitlines())
        verdicts.check("standard output: a change", wait_until(is_logged, 10, every=0.1), "a line", "")
        server.stop()


def main(options, scratch):
    """Runs everything; the exit code."""
    verdicts = Verdicts("audit log")
    issuer = Issuer()
    (scratch / "keys.json").write_text(issuer.key_set())
    folder = scratch / "audit"
    folder.mkdir(mode=0o700)
    log = Log(folder / "audit.jsonl")
    extra = [f"--oidc=issuer={ISSUER};jwks={scratch / 'keys.json'}", "--audit-log", str(log.path), "--audit-requests",
             "--audit-log-bytes=65536", "--audit-log-files=10000", "--split-requests=0",
             "--log=info,blockyard::frontend=debug"]
    with cli.server(options, scratch, extra) as server:
        account, secrets, refused = changes(server, issuer, log, verdicts)
        ids(server, log, account, refused, verdicts)
        load(server, account, log, 2_000 if options.small else 20_000, verdicts)
        leaks(log, server, secrets, verdicts)
    standard_output(options, scratch, verdicts)
    try:
        full_disk(options, scratch, verdicts)
    except CannotMount as error:
        verdicts.figure("full disk", f"left out: no small file system can be mounted here ({error})")
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

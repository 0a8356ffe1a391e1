#!/usr/bin/env python3
"""https beside http on one port, HTTP/2, names in hosts, accounts made while the server runs, live requests, faults.

The judges are azure-storage-blob and curl, trusting the server's own authority, and the program's own commands.
"""

import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import threading

from azure.core.exceptions import HttpResponseError, ServiceResponseError
from azure.storage.blob import BlobServiceClient
from lib import cli
from lib.commands import command
from lib.measure import wait_until
from lib.report import Verdicts


def resolve_localhost():
    """Has names below `localhost` mean this machine, as RFC 6761 wants and not every resolver does."""
    asked = socket.getaddrinfo

    def answered(host, *rest, **named):
        name = host if isinstance(host, str) else ""
        return asked("127.0.0.1" if name.endswith(".localhost") else host, *rest, **named)

    socket.getaddrinfo = answered


def sdk(url, name, key, authority):
    """An SDK client of the account at `url`, which trusts the server's authority."""
    return BlobServiceClient(url, credential={"account_name": name, "account_key": key},
                             connection_verify=str(authority), retry_total=0)


def round_trip(service, container):
    """Whether a blob with an awkward name comes back through this client."""
    client = service.get_container_client(container)
    if not client.exists():
        client.create_container()
    name = "a folder/b+c %2F%25 d.txt"
    client.upload_blob(name, b"there", overwrite=True)
    return client.download_blob(name).readall() == b"there" and [b.name for b in client.list_blobs()] == [name]


def schemes_and_names(server, account, authority, verdicts):
    """The same account by path and by host, over both schemes, on the same port."""
    name, key, port = account["name"], account["keys"][0], server.blob_address.rsplit(":", 1)[1]
    for scheme in ("http", "https"):
        for url in (f"{scheme}://127.0.0.1:{port}/{name}", f"{scheme}://localhost:{port}/{name}",
                    f"{scheme}://{name}.blob.localhost:{port}"):
            service = sdk(url, name, key, authority)
            verdicts.check(f"{url.replace(port, 'PORT')} serves the Python SDK", round_trip(service, "reach"))
    second = sdk(f"https://127.0.0.1:{port}/{name}-secondary", name, key, authority)
    verdicts.check("the secondary reads", bool(list(second.get_container_client("reach").list_blobs())))
    try:
        second.create_container("never")
        verdicts.check("the secondary refuses writes", False)
    except HttpResponseError as error:
        verdicts.check("the secondary refuses writes", error.status_code == 403, found=error.error_code)


def http_versions(server, account, authority, verdicts):
    """curl over HTTP/1.1 and HTTP/2, by ALPN and with prior knowledge, reads what a signature allows."""
    curl = shutil.which("curl")
    if not curl:
        print("no curl: HTTP/2 is not judged")
        return
    name, key = account["name"], account["keys"][0]
    made = subprocess.run([server.binary, "sas", "reach/big", "--permissions", "rcw", "--expiry", "1h", "--account",
                           f"{name}:{key}", "--endpoint", f"http://{server.blob_address}/{name}"],
                          capture_output=True, text=True, timeout=60)
    if made.returncode != 0:
        raise RuntimeError(made.stdout + made.stderr)
    url = made.stdout.strip().splitlines()[-1]
    content = os.urandom(5 << 20)
    folder = pathlib.Path(server.log_path).parent
    (folder / "sent").write_bytes(content)
    cases = [("http", "--http1.1", "1.1"), ("http", "--http2-prior-knowledge", "2"), ("https", "--http1.1", "1.1"),
             ("https", "--http2", "2")]
    for scheme, flag, version in cases:
        target = url.replace("http://", f"{scheme}://", 1)
        common = [curl, "--silent", "--show-error", "--fail", "--cacert", authority, flag, "--write-out", "%{http_version}"]
        for expect in ("Expect: 100-continue", "Expect:"):
            sent = subprocess.run([*common, "--upload-file", folder / "sent", "-H", "x-ms-blob-type: BlockBlob", "-H", expect,
                                   target], capture_output=True, text=True, timeout=120)
            verdicts.check(f"curl {scheme} {flag} puts with '{expect}'", sent.stdout == version, found=sent.stderr.strip())
        got = subprocess.run([*common, "--output", folder / "got", target], capture_output=True, text=True, timeout=120)
        same = got.stdout == version and (folder / "got").read_bytes() == content
        verdicts.check(f"curl {scheme} {flag} gets the same bytes", same, found=got.stderr.strip())


def keys_rotate(server, account, authority, verdicts):
    """A new key is valid and the old one invalid from the next request on; the other key stays valid."""
    name, old = account["name"], account["keys"]
    url = f"https://{server.blob_address}/{name}"
    new = command(server, "account", "rotate", name, "key1")["keys"]

    def let_in(key):
        try:
            list(sdk(url, name, key, authority).list_containers())
            return True
        except HttpResponseError as error:
            return error.status_code != 403

    verdicts.check("the rotated key is refused at once", not let_in(old[0]))
    verdicts.check("the new key and the second one are let in", let_in(new[0]) and let_in(old[1]))
    return new[0]


def accounts_end(server, verdicts):
    """An account with containers is not deleted without --force."""
    try:
        command(server, "account", "delete", "reach1")
        kept = False
    except RuntimeError as error:
        kept = "--force" in str(error)
    verdicts.check("an account with containers is not deleted", kept)
    command(server, "account", "delete", "reach1", "--force")
    names = [row["name"] for row in command(server, "account", "list")["accounts"]]
    verdicts.check("with --force it is", "reach1" not in names, found=str(names))


def trace_and_faults(server, account, key, authority, verdicts):
    """A struck request fails as the rule says, and a watcher sees it."""
    name = account["name"]
    service = sdk(f"https://{server.blob_address}/{name}", name, key, authority)
    container = service.get_container_client("reach")
    watch = subprocess.Popen([server.binary, "trace", "--json", "--operation", "PutBlob", "--admin-listen", server.admin_address,
                              "--data", server.data[0]], stdout=subprocess.PIPE, text=True)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(map(json.loads, watch.stdout)), daemon=True)
    reader.start()
    # The watcher is there once a request of ours reaches it.
    wait_until(lambda: container.upload_blob("seen", b"x", overwrite=True) and lines, 30)

    def put():
        try:
            container.upload_blob("struck", b"y", overwrite=True)
            return 201
        except HttpResponseError as error:
            return error.status_code
        except ServiceResponseError:
            return 0

    rule = ["fault", "set", "busy", "--operation", "PutBlob", "--container", "reach", "--rate", "0.5", "--seed", "7"]
    runs = []
    for _ in range(2):
        command(server, *rule)
        runs.append([put() for _ in range(20)])
        command(server, "fault", "clear")
    verdicts.check("busy at a rate of 0.5 answers some 503", set(runs[0]) == {201, 503}, found=str(runs[0]))
    verdicts.check("the same seed strikes the same requests", runs[0] == runs[1])
    command(server, "fault", "set", "timeout", "--operation", "PutBlob", "--count", "1")
    verdicts.check("timeout cuts the connection once", [put(), put()] == [0, 201])
    verdicts.check("a rule ends by its count", command(server, "fault", "list") == [])
    wait_until(lambda: any(line["status"] == 0 for line in lines), 30)
    watch.terminate()
    watch.wait(30)
    busy = [line for line in lines if line["status"] == 503]
    verdicts.check("trace shows every struck request", len(busy) == 2 * runs[0].count(503), found=f"{len(busy)} lines")
    verdicts.check("trace names the fault of each", all(line["fault"] == "busy" and line["admission_ms"] > 0 for line in busy))
    verdicts.check("trace shows only what was asked for", {line["operation"] for line in lines} == {"PutBlob"})
    seen = lines[0]
    verdicts.check("a line has account, container, blob, scheme",
                   (seen["account"], seen["container"], seen["blob"], seen["scheme"]) == (name, "reach", "seen", "https"))


def stages_and_ids(server, account, key, verdicts):
    """A watcher sees where requests waited, and finds one by any of its ids."""
    name, trace = account["name"], "4bf92f3577b34da6a3ce929d0e0e4736"
    service = sdk(f"http://{server.blob_address}/{name}", name, key, True)
    container = service.create_container("stages")
    watch = subprocess.Popen([server.binary, "trace", "--json", "--admin-listen", server.admin_address,
                              "--data", server.data[0]], stdout=subprocess.PIPE, text=True)
    found = subprocess.Popen([server.binary, "trace", "--id", trace, "--admin-listen", server.admin_address,
                              "--data", server.data[0]], stdout=subprocess.PIPE, text=True)
    lines, one = [], []
    threading.Thread(target=lambda: lines.extend(map(json.loads, watch.stdout)), daemon=True).start()
    threading.Thread(target=lambda: one.extend(found.stdout), daemon=True).start()
    traced = {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
    wait_until(lambda: container.upload_blob("seen", b"x", overwrite=True, headers=traced) and lines and one, 30)
    body = os.urandom(300_000)
    container.upload_blob("large", body, headers={"traceparent": f"00-{trace.upper()}-00f067aa0ba902b7-01"})
    container.download_blob("large", headers=traced).readall()
    bare = http.client.HTTPConnection(server.blob_address, timeout=30)
    bare.request("GET", "/stages/large", headers={"Authorization": f"AWS4-HMAC-SHA256 Credential={name}/20260101/us-east-1/s3/aws4_request, "
                                                                    "SignedHeaders=host, Signature=00"})
    address = bare.sock.getsockname()
    answer = bare.getresponse()
    refused = answer.headers["x-amz-request-id"]
    answer.read()
    bare.close()

    def found_lines():
        return [line for line in lines if line["blob"] == "large" or line["request_id"] == refused]

    wait_until(lambda: len(found_lines()) >= 3, 30)
    for process in (watch, found):
        process.terminate()
        process.wait(30)
    put, get, foreign = found_lines()
    parts = ("admission_ms", "body_ms", "index_ms", "journal_ms", "read_ms")
    verdicts.check("a Put waits for index and journal", put["index_ms"] > 0 and put["journal_ms"] > 0 and put["read_ms"] == 0,
                   found=str([put[part] for part in parts]))
    verdicts.check("a Get waits for index and read", get["index_ms"] > 0 and get["journal_ms"] == 0 and get["read_ms"] > 0,
                   found=str([get[part] for part in parts]))
    verdicts.check("stages are parts of the whole", all(line["ms"] >= line[part] for line in (put, get) for part in parts))
    verdicts.check("a wrong traceparent is ignored", "trace_id" not in put and get["trace_id"] == trace)
    verdicts.check("S3's request id is the line's", refused == foreign["request_id"] != "", found=refused)
    verdicts.equal("the client's address is that of its socket", foreign["client"], "{}:{}".format(*address[:2]))
    verdicts.check("--id finds the requests of a trace", one and all(f"trace {trace}" in line for line in one))


def main(options, scratch):
    """Everything on one server, which is killed once in between."""
    resolve_localhost()
    verdicts = Verdicts("reach, accounts, faults")
    with cli.server(options, scratch, ["--tls", "auto"]) as server:
        authority = scratch / "data" / "tls" / "ca.pem"
        account = command(server, "account", "create", "reach1")
        schemes_and_names(server, account, authority, verdicts)
        http_versions(server, account, authority, verdicts)
        key = keys_rotate(server, account, authority, verdicts)
        trace_and_faults(server, account, key, authority, verdicts)
        stages_and_ids(server, account, key, verdicts)
        before = authority.read_bytes()
        server.kill()
        server.start()
        verdicts.check("after kill -9 account and authority are the same",
                       authority.read_bytes() == before and
                       bool(list(sdk(f"https://{server.blob_address}/reach1", "reach1", key, authority).list_containers())))
        accounts_end(server, verdicts)
    return verdicts.exit_code()


if __name__ == "__main__":
    chosen = cli.parse(cli.parser(__doc__))
    cli.run(main, chosen)

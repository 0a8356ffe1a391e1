#!/usr/bin/env python3
"""A web page whose name leads here (DNS rebinding), requests that do not say which host they are for, plain http where only https
is served, a certificate that is replaced while the server runs, the admin listener over TLS and over a Unix socket, and a port for S3 alone.

The requests are bytes on bare sockets, signed here. The SDK and the program's own commands are used where they can be.
"""

import datetime
import email.utils
import os
import pathlib
import shutil
import socket
import ssl
import stat
import subprocess

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lib import accounts, cli, s3
from lib.account import Account
from lib.measure import wait_until
from lib.report import Verdicts
from lib.ports import free_port
from lib.wire import VERSION, signature

EVIL = "rebound.example"


def exchange(address, data):
    """The answer to bytes on a new connection: (status, head and body as text)."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30) as stream:
        stream.sendall(data)
        answer = b""
        while True:
            piece = stream.recv(1 << 16)
            if not piece:
                break
            answer += piece
    text = answer.decode("latin-1")
    return int(text.split(" ")[1]) if text else 0, text


def signed(account, hosts):
    """A signed List Containers request with these Host lines."""
    path, query = f"/{account.name}/", {"comp": "list"}
    headers = {"x-ms-version": VERSION, "x-ms-date": email.utils.formatdate(usegmt=True)}
    mark = signature(account.name, account.key, "GET", path, query, headers)
    lines = [f"Host: {host}" for host in hosts] + [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Authorization: SharedKey {account.name}:{mark}", "Connection: close"]
    return (f"GET {path}?comp=list HTTP/1.1\r\n" + "".join(f"{line}\r\n" for line in lines) + "\r\n").encode()


def names(options, scratch, verdicts):
    """Checks which host names the server answers."""
    extra = (*accounts.BOTH, "--allow-host=azurite", "--blob-domain=store.test")
    with cli.server(options, scratch, extra, [scratch / "data"]) as server:
        known, other = server.account, accounts.second(server)
        ask = lambda account, *hosts: exchange(server.blob_address, signed(account, hosts))
        for host in ("localhost", "a.localhost:1", server.blob_address, "[::1]:1", "azurite:10000", "x.blob.store.test"):
            # Names of the domain name their account themselves, and this path does not name a blob there.
            wanted = (200,) if not host.startswith("x.") else (400, 403)
            status, text = ask(known, host)
            verdicts.check(f"the development account under {host.replace(server.blob_address, 'ADDRESS')}",
                           status in wanted and "--allow-host" not in text, wanted, status)
        status, text = ask(known, EVIL)
        verdicts.check("a page's name is refused for the development account; the answer says how to allow it",
                       status == 403 and f"--allow-host {EVIL}" in text and "AuthorizationFailure" in text, 403, status)
        verdicts.equal("another account is served under every name", ask(other, EVIL)[0], 200)
        for what, hosts in (("no Host", ()), ("two of it", ("localhost", "localhost")), ("a malformed one", ("local host",)),
                            ("an empty one", ("",)), ("a port that is none", ("localhost:x",))):
            verdicts.equal(f"a request with {what}", ask(other, *hosts)[0], 400)
        admin = lambda host: exchange(
            server.admin_address, f"GET /healthz HTTP/1.1\r\n{host}Connection: close\r\n\r\n".encode())
        for host, wanted in ((f"Host: {server.admin_address}\r\n", 200), ("Host: localhost\r\n", 200), ("Host: azurite\r\n", 200),
                             (f"Host: {EVIL}\r\n", 403), ("", 400), ("Host: localhost\r\nHost: localhost\r\n", 400)):
            status, text = admin(host)
            what = host.replace("\r\n", " ").replace(server.admin_address, "ADDRESS").strip() or "no Host"
            verdicts.equal(f"the admin listener: {what}", status, wanted)
            verdicts.check(f"the admin listener: {what}: nosniff", "x-content-type-options: nosniff" in text.lower())
        for status, text in (ask(known, "localhost"), ask(known, EVIL), ask(known)):
            verdicts.check(f"nosniff on an answer {status}", "x-content-type-options: nosniff" in text.lower())


def certificate(folder, name):
    """A new self-signed certificate for this machine, and its key, put in place of those there; returns the serial number."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=2))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), False).sign(key, hashes.SHA256()))
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    put(folder / "key.pem", pem)
    put(folder / "cert.pem", made.public_bytes(serialization.Encoding.PEM))
    return made.serial_number


def put(path, data):
    """Replaces a file whole."""
    new = path.with_suffix(".new")
    new.write_bytes(data)
    new.rename(path)


def shown(address):
    """The serial number of the certificate shown to a new connection."""
    host, port = address.rsplit(":", 1)
    return x509.load_pem_x509_certificate(ssl.get_server_certificate((host, int(port))).encode()).serial_number


def https(options, scratch, verdicts):
    """Only https, with a certificate that is replaced."""
    first = certificate(scratch, "first")
    extra = (f"--tls-cert={scratch / 'cert.pem'}", f"--tls-key={scratch / 'key.pem'}", "--https-only")
    with cli.server(options, scratch, extra, [scratch / "data"]) as server:
        status, text = exchange(server.blob_address, signed(server.account, (server.blob_address,)))
        verdicts.check("plain http with --https-only", status == 400 and "AccountRequiresHttps" in text,
                       "400 AccountRequiresHttps", text.split("\r\n")[0])
        verdicts.check("and what is served there", f"This address serves https only. Use https://{server.blob_address}." in text, found=text[-160:])
        credential = f"AWS4-HMAC-SHA256 Credential={server.account.name}/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=00"
        data = f"GET /bucket/key HTTP/1.1\r\nHost: {server.blob_address}\r\nAuthorization: {credential}\r\nConnection: close\r\n\r\n"
        status, text = exchange(server.blob_address, data.encode())
        verdicts.check("the same through S3", status == 400 and "<Code>InvalidRequest</Code>" in text and "Use https." in text,
                       "400 InvalidRequest", text.split("\r\n")[0])
        # Plain http to the admin listener is another thing: readiness was asked there.
        verdicts.equal("the certificate shown at first", shown(server.blob_address), first)
        second = certificate(scratch, "second")
        verdicts.check("a new certificate is shown without a restart",
                       wait_until(lambda: shown(server.blob_address) == second, 60))
        put(scratch / "cert.pem", b"no certificate")
        verdicts.check("a useless file is logged", wait_until(lambda: "stays in use" in server.log_tail(200), 60))
        verdicts.equal("and the old certificate is shown on", shown(server.blob_address), second)
        third = certificate(scratch, "third")
        verdicts.check("and a good pair after it is shown", wait_until(lambda: shown(server.blob_address) == third, 60))
        service = BlobServiceClient(f"https://{server.blob_address}/{server.account.name}", retry_total=0, connection_verify=False,
                                    credential={"account_name": server.account.name, "account_key": server.account.key})
        try:
            service.create_container("secure")
            verdicts.check("https serves the Python SDK", True)
        except HttpResponseError as error:
            verdicts.check("https serves the Python SDK", False, found=error.error_code)


def admin_elsewhere(options, scratch, verdicts):
    """The admin listener over TLS and over a Unix socket; plain where others reach it."""
    def run(*words):
        return subprocess.run([options.binary, *words], capture_output=True, text=True, timeout=60)

    # A path of a socket is short: its folder is not below the scratch folder, which may be deep.
    place = pathlib.Path(f"/tmp/blockyard-hosts-{os.getpid()}")
    place.mkdir(mode=0o700)
    port = free_port()
    try:
        for what, listen, more in (("TLS", f"127.0.0.1:{port}", ["--admin-tls"]), ("a Unix socket", f"unix:{place}/admin", [])):
            data = scratch / what.replace(" ", "-")
            serve = [options.binary, "serve", "--data", data, "--blob-listen", "127.0.0.1:0", "--tls", "auto", *options.serve_arg]
            with open(scratch / "server.log", "ab") as log:
                process = subprocess.Popen([*serve, "--admin-listen", listen, *more], stdout=log, stderr=log)
            try:
                reach = ["--admin-listen", listen, "--data", data, *more]
                verdicts.check(f"health over {what}", wait_until(lambda: run("health", *reach).returncode == 0, 60))
                made = run("account", "create", "elsewhere", "--json", *reach)
                verdicts.check(f"a command over {what}", made.returncode == 0, found=made.stderr)
                if more:
                    status, _ = exchange(f"127.0.0.1:{port}", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    verdicts.equal("plain http where the admin listener speaks TLS", status, 400)
                    untrusted = run("health", "--admin-listen", listen, "--admin-tls", "--data", scratch / "nothing")
                    verdicts.equal("a certificate nobody trusts", untrusted.returncode, 1)
                else:
                    mode = stat.S_IMODE((place / "admin").stat().st_mode)
                    verdicts.equal("the socket's mode", oct(mode), "0o600")
            finally:
                process.terminate()
                verdicts.equal(f"{what}: exit code after SIGTERM", process.wait(60), 0)
        verdicts.check("the socket is gone with the server", not (place / "admin").exists())
        open_to_all = run("serve", "--data", scratch / "never", "--blob-listen", "127.0.0.1:0", "--admin-listen", "0.0.0.0:0")
        verdicts.check("a plain admin listener for other machines is refused",
                       open_to_all.returncode == 2 and "--admin-plain" in open_to_all.stderr, 2, open_to_all.returncode)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def only_s3(options, scratch, verdicts):
    """A port where every request is S3: unsigned requests read public objects, and a Blob request is answered with the right port."""
    address = f"127.0.0.1:{free_port()}"
    with cli.server(options, scratch, (f"--s3-listen={address}",), [scratch / "data"]) as server:
        account = server.account
        raw = s3.Raw(Account(address, account.name, account.key))
        verdicts.equal("a bucket is made at the port of S3", raw.call("PUT", "/public").status, 200)
        made = raw.call("PUT", "/public/key", headers={"x-amz-acl": "public-read"}, body=b"x")
        verdicts.equal("and an object", made.status, 200)
        answer = raw.send("GET", "/public/key")
        verdicts.equal("read without a signature", (answer.status, answer.body), (200, b"x"))
        verdicts.equal("what is not there", raw.send("GET", "/public/none").code(), "AccessDenied")
        status, text = exchange(address, signed(account, [address]))
        verdicts.check("a Blob request", status == 400 and "Azure Blob is served at the port of --blob-listen" in text, 400, text[-300:])
        blob = account.service().get_blob_client("public", "key")
        verdicts.equal("Blob reads the object at its own port", blob.download_blob().readall(), b"x")


def main(options, scratch):
    """Each part with a server of its own."""
    verdicts = Verdicts("hosts, https, admin")
    for folder in ("names", "https", "admin", "s3"):
        (scratch / folder).mkdir(exist_ok=True)
    names(options, scratch / "names", verdicts)
    https(options, scratch / "https", verdicts)
    admin_elsewhere(options, scratch / "admin", verdicts)
    only_s3(options, scratch / "s3", verdicts)
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

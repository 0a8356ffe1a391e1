#!/usr/bin/env python3
"""The program in the place of Azurite, as Testcontainers' modules for Java, Node, Go, .NET and Python start it.

Each start has the entrypoint, arguments and variables that the module gives, and waits for the ports or lines that the module waits
for. The Docker image is replayed: its variables come from docker/Dockerfile, its commands are links to the program. The script has a
network of its own, so that the program can listen on all addresses and on the default ports.
"""

import base64
import datetime
import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import time

from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError
from azure.storage.blob import BlobClient, BlobServiceClient, generate_blob_sas

from lib import cli
from lib.report import Verdicts
from lib.testcontainers import HOSTS, KEY, LINES, MODULES, NAME, PORTS, image_links, image_variables, is_open, own_network

SECONDS = 60


def moved(text, scratch):
    """A variable with the volumes in the scratch folder."""
    return f"{scratch}{text}" if text == "/data" or text.startswith(("/data/", "/key/")) else text


class Container:
    """A process that is started as in a container of the image."""

    def __init__(self, options, scratch, command, variables):
        scratch.mkdir(parents=True)
        (scratch / "key").mkdir()
        (scratch / "tmp").mkdir()
        for link in image_links():
            (scratch / link).symlink_to(options.binary)
        program = {"entrypoint": str(options.binary), "azurite": str(scratch / "azurite")}[command[0]]
        image = {name: moved(value, scratch) for name, value in {**image_variables(), **variables}.items()}
        environment = {"PATH": os.environ["PATH"], "TMPDIR": str(scratch / "tmp"), **image}
        self.log = scratch / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([program, *command[1:]], env=environment, cwd=scratch, stdout=log, stderr=log)

    def text(self):
        """What it printed."""
        return self.log.read_text(errors="replace")

    def wait(self, lines, ports):
        """Waits for lines and ports. Returns what did not come."""
        until = time.monotonic() + SECONDS
        while missing := [line for line in lines if line not in self.text()] + [port for port in ports if not is_open(port)]:
            if self.process.poll() is not None or time.monotonic() > until:
                return missing
            time.sleep(0.02)
        return []

    def stop(self):
        """Ends it as Docker does. Returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)


def connection(name=NAME, key=KEY):
    """The connection string that the modules make."""
    return (f"DefaultEndpointsProtocol=http;AccountName={name};AccountKey={key};BlobEndpoint=http://127.0.0.1:10000/{name};"
            f"QueueEndpoint=http://127.0.0.1:10001/{name};TableEndpoint=http://127.0.0.1:10002/{name};")


def round_trip(text, **options):
    """What comes back of a blob."""
    with BlobServiceClient.from_connection_string(text, **options) as service:
        container = service.get_container_client("replayed")
        if not container.exists():
            container.create_container()
        container.upload_blob("a", b"hello", overwrite=True)
        return container.download_blob("a").readall()


def asked(port, host="127.0.0.1"):
    """Status, error code and body of a request that is not signed."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    client.request("GET", f"/{NAME}?comp=list", headers={"Host": host})
    answer = client.getresponse()
    found = answer.status, answer.getheader("x-ms-error-code"), answer.read().decode()
    client.close()
    return found


def modules(options, scratch, verdicts):
    """The start of each module, and a round trip by its connection string."""
    for number, (module, (command, variables, lines, ports)) in enumerate(MODULES.items()):
        folder = scratch / f"module{number}"
        container = Container(options, folder, command, variables)
        verdicts.none(f"{module}: what did not come", container.wait(lines, ports))
        verdicts.equal(f"{module}: a round trip", round_trip(connection()), b"hello")
        status, code, _ = asked(10000, "azurite:10000")
        verdicts.check(f"{module}: another host name is taken", code != "AuthorizationFailure", "another code", f"{status} {code}")
        verdicts.equal(f"{module}: it says who has access", "whoever reaches the port" in container.text(), True)
        if len(lines) == 3 or len(ports) == 3:
            verdicts.equal(f"{module}: Queue Storage", asked(10001)[:2], (501, "NotImplemented"))
            table = asked(10002)
            verdicts.equal(f"{module}: Table Storage", (table[0], json.loads(table[2])["odata.error"]["code"]), (501, "NotImplemented"))
        verdicts.equal(f"{module}: exit code", container.stop(), 0)
        verdicts.equal(f"{module}: what is left in the folder for temporary files", os.listdir(folder / "tmp"), [])


def accounts(options, scratch, verdicts):
    """AZURITE_ACCOUNTS: keys of any length, two keys, no development account."""
    variables = {"AZURITE_ACCOUNTS": "one:a2V5:c2Vjb25k;two:a2V5"}
    container = Container(options, scratch / "accounts", ["azurite", *HOSTS, "--silent", "--new", "flag"], variables)
    verdicts.none("accounts: what did not come", container.wait(LINES, PORTS))
    for name, key in (("one", "a2V5"), ("one", "c2Vjb25k"), ("two", "a2V5")):
        verdicts.equal(f"account {name} with key {key}", round_trip(connection(name, key)), b"hello")
    for name, key in ((NAME, KEY), ("two", "c2Vjb25k")):
        try:
            round_trip(connection(name, key), retry_total=0)
            found = "let in"
        except ClientAuthenticationError as error:
            found = error.error_code
        verdicts.equal(f"account {name} with another key", found, "AuthenticationFailed")
    verdicts.equal("an unknown flag is named", "--new is not known" in container.text(), True)
    verdicts.equal("exit code", container.stop(), 0)


def delegated():
    """The content that can be read with a signature by a key that was issued for an unsigned token."""
    service = BlobServiceClient(f"https://127.0.0.1:10000/{NAME}", credential=Unsigned(), connection_verify=False, retry_total=0)
    start = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=5)
    end = start + datetime.timedelta(hours=1)
    key = service.get_user_delegation_key(start, end)
    signed = generate_blob_sas(NAME, "of-a-token", "a", user_delegation_key=key, permission="r", start=start, expiry=end)
    url = f"https://127.0.0.1:10000/{NAME}/of-a-token/a?{signed}"
    return BlobClient.from_blob_url(url, connection_verify=False, retry_total=0).download_blob().readall()


class Unsigned:
    """A credential whose tokens are unsigned."""

    def __init__(self, **claims):
        now = int(time.time())
        self.claims = {"iss": "https://sts.windows.net/tenant/", "aud": "https://storage.azure.com", "iat": now, "nbf": now - 60,
                       "exp": now + 3_600, "oid": "somebody", **claims}

    def get_token(self, *_scopes, **_more):
        part = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
        return AccessToken(f"{part({'alg': 'RS256', 'typ': 'JWT'})}.{part(self.claims)}.c2lnbmVk", self.claims["exp"])


def tokens(options, scratch, verdicts):
    """--oauth basic: audience and time of a token are verified, its signature is not. Without the flag no such token is taken."""
    wrong = {"expired": {"exp": int(time.time()) - 4_000}, "of later": {"nbf": int(time.time()) + 4_000},
             "for another audience": {"aud": "https://graph.microsoft.com"}}

    def found(credential):
        # Over http the SDK sends no token.
        service = BlobServiceClient(f"https://127.0.0.1:10000/{NAME}", credential=credential, connection_verify=False, retry_total=0)
        try:
            service.create_container("of-a-token")
            service.get_blob_client("of-a-token", "a").upload_blob(b"hello")
            return service.get_blob_client("of-a-token", "a").download_blob().readall()
        except ClientAuthenticationError as error:
            return error.error_code

    for name, more in (("basic", ["--oauth", "basic"]), ("none", [])):
        container = Container(options, scratch / name, ["azurite", "--silent", *more], {"BLOCKYARD_TLS": "auto"})
        verdicts.none(f"--oauth {name}: what did not come", container.wait(LINES, PORTS))
        right = b"hello" if more else "InvalidAuthenticationInfo"
        verdicts.equal(f"--oauth {name}: a token nobody signed", found(Unsigned()), right)
        if more:
            verdicts.equal("--oauth basic: a user delegation SAS", delegated(), b"hello")
        for what, claims in wrong.items():
            verdicts.equal(f"--oauth {name}: a token {what}", found(Unsigned(**claims)), "InvalidAuthenticationInfo")
        verdicts.equal(f"--oauth {name}: a warning", "without verifying their signature" in container.text(), bool(more))
        verdicts.equal(f"--oauth {name}: exit code", container.stop(), 0)


def openssl(*arguments):
    """Runs openssl."""
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"openssl {arguments[0]}: {done.stderr}")
    return done.stdout


def pfx_files(scratch):
    """A certificate in PEM, and PFX files of it: name, password, further arguments of openssl."""
    scratch.mkdir(parents=True)
    key, cert = scratch / "key.pem", scratch / "cert.pem"
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    kinds = {"new": ("right word", []), "legacy": ("right word", ["-legacy"]), "without a password": ("", []),
             "legacy without a password": ("", ["-legacy"]), "without a MAC": ("right word", ["-nomac"])}
    for name, (password, more) in kinds.items():
        openssl("pkcs12", "-export", "-in", cert, "-inkey", key, "-out", scratch / f"{name}.pfx", "-passout", f"pass:{password}", *more)
    openssl("pkcs12", "-export", "-in", cert, "-nokeys", "-out", scratch / "keyless.pfx", "-passout", "pass:right word")
    whole = (scratch / "new.pfx").read_bytes()
    (scratch / "cut.pfx").write_bytes(whole[:len(whole) // 2])
    return cert.read_text(), {name: password for name, (password, _) in kinds.items()}


def certificates(options, scratch, verdicts):
    """--cert and --pwd: PFX files of openssl serve https; a wrong password and useless files are named."""
    cert, kinds = pfx_files(scratch)
    expected = ssl.PEM_cert_to_DER_cert(cert)
    for number, (name, password) in enumerate(kinds.items()):
        command = ["azurite", "--silent", "--cert", str(scratch / f"{name}.pfx"), "--pwd", password]
        container = Container(options, scratch / f"served{number}", command, {})
        verdicts.none(f"a PFX file, {name}: what did not come", container.wait(LINES, PORTS))
        shown = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", 10000)))
        verdicts.check(f"a PFX file, {name}: its certificate is served", shown == expected)
        verdicts.equal(f"a PFX file, {name}: exit code", container.stop(), 0)
        leaked = [word for word in ("right word", "PRIVATE KEY") if word in container.text()]
        verdicts.none(f"a PFX file, {name}: secrets in the log", leaked)
    for number, (name, password, text) in enumerate((
            ("new", "wrong word", "give its password with --pwd"), ("keyless", "right word", "it has no private key"),
            ("cut", "right word", "it is not a PFX file, or is damaged"), ("cert.pem", "right word", "PEM files with --cert and --key"),
            ("missing", "right word", "No such file"))):
        file = scratch / (name if "." in name else f"{name}.pfx")
        container = Container(options, scratch / f"refused{number}", ["azurite", "--silent", "--cert", str(file), "--pwd", password], {})
        code = container.process.wait(SECONDS)
        said = container.text()
        verdicts.check(f"a PFX file, {file.name} with {password}: the refusal says what to do", code != 0 and text in said and file.name in said
                       and password not in said, text, said)


def location(options, scratch, verdicts):
    """--location keeps data, and nothing is served to other machines without a host."""
    for start in ("first", "second"):
        container = Container(options, scratch / start, ["azurite", "-l", str(scratch), "--silent"], {})
        verdicts.none(f"{start} start: what did not come", container.wait(LINES, PORTS))
        verdicts.equal(f"{start} start: keys elsewhere", os.listdir(scratch / start / "key"), [])
        found = [blob.name for blob in blobs()] if start == "second" else []
        verdicts.equal(f"{start} start: what is there", found, ["a"] if start == "second" else [])
        round_trip(connection())
        verdicts.equal(f"{start} start: on loopback only", "http://127.0.0.1:10000" in container.text(), True)
        verdicts.equal(f"{start} start: exit code", container.stop(), 0)
    verdicts.equal("the data is in its own folder", (scratch / "blockyard-data").is_dir(), True)


def blobs():
    """The blobs of the round trip."""
    with BlobServiceClient.from_connection_string(connection()) as service:
        return list(service.get_container_client("replayed").list_blobs())


def main(options, scratch):
    why = own_network()
    if why:
        print(f"skipped: this script needs a network of its own, which the system refuses: {why}", file=sys.stderr)
        return 77
    verdicts = Verdicts("in the place of Azurite")
    modules(options, scratch, verdicts)
    accounts(options, scratch, verdicts)
    tokens(options, scratch / "tokens", verdicts)
    certificates(options, scratch / "certificates", verdicts)
    location(options, scratch / "location", verdicts)
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

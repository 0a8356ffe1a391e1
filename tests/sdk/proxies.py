#!/usr/bin/env python3
"""The configurations of docs/tls.md for nginx, HAProxy and Caddy, as they stand but for their ports: the Azure SDK and boto3 work
through each. Names that need escaping, large bodies, signatures that need https, conditions, uploads in parts."""

import pathlib
import re
import shutil
import subprocess
import tempfile

import boto3
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobClient, BlobServiceClient, ContentSettings
from botocore.config import Config
from lib import accounts, cli, install, s3
from lib.account import DEV_KEY, DEV_NAME
from lib.content import content, sha256
from lib.report import Verdicts
from lib.ports import free_port
from lib.server import Program

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "tls.md"
LARGE = 40 << 20
BLOCK = 16 << 20
NAMES = ("plain.txt", "a folder/b+c %2F%25 d.txt", "two//slashes", "grüße-日本-😀", "quo'te&amp;?#", "trailing/")
PACKAGES = {"nginx": "nginx-light", "haproxy": "haproxy", "caddy": "caddy"}
# How each spells the header of a metadata name.
SPELLED = {"nginx": "CamelCase", "haproxy": "camelcase", "caddy": "Camelcase"}


class Proxy(Program):
    """One of the three, on a port of its own, in front of a server that speaks https."""

    def __init__(self, kind, scratch, address, certificate):
        super().__init__(scratch / f"{kind}.log")
        self.kind, self.folder, self.port = kind, scratch / kind, free_port()
        self.folder.mkdir()
        text = re.search(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[1]
        text = re.sub(r"\b844[345]\b", str(self.port), text).replace("127.0.0.1:10000", address)
        for name in ("chain.pem", "key.pem", "both.pem"):
            text = text.replace(name, str(certificate / name))
        if kind == "nginx":
            text = f"daemon off; pid {self.folder}/pid; error_log stderr; events {{}} http {{ access_log off; {self._folders()} {text} }}"
        self.config = self.folder / "config"
        self.config.write_text(text)

    def _folders(self):
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        return " ".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in kinds)

    def command(self):
        program = shutil.which(self.kind) or f"/usr/sbin/{self.kind}"
        return {"nginx": [program, "-p", str(self.folder), "-c", str(self.config)],
                "haproxy": [program, "-db", "-f", str(self.config)],
                "caddy": ["env", f"HOME={self.folder}", program, "run", "--adapter", "caddyfile", "--config", str(self.config)]}[self.kind]

    def ready(self):
        try:
            BlobServiceClient(f"https://localhost:{self.port}/{DEV_NAME}", connection_verify=False, retry_total=0).get_account_information()
        except HttpResponseError as error:
            return error.status_code is not None and error.status_code < 500
        except Exception:  # pylint: disable=broad-except
            return False
        return True


def blob(verdicts, kind, port, authority):
    """What the Azure SDK does through the proxy."""
    url = f"https://localhost:{port}/{DEV_NAME}"
    service = BlobServiceClient(url, credential={"account_name": DEV_NAME, "account_key": DEV_KEY}, connection_verify=str(authority),
                                retry_total=0, max_single_put_size=BLOCK, max_block_size=BLOCK)
    container = service.create_container(kind)
    for name in NAMES:
        container.upload_blob(name, name.encode(), metadata={"CamelCase": "a  b"}, content_settings=ContentSettings(content_type="text/x"))
    verdicts.equal(f"{kind}: names", sorted(one.name for one in container.list_blobs()), sorted(NAMES))
    wrong = [name for name in NAMES if container.download_blob(name).readall() != name.encode()]
    verdicts.none(f"{kind}: blobs of these names", wrong)
    verdicts.equal(f"{kind}: metadata", container.get_blob_client(NAMES[0]).get_blob_properties().metadata, {SPELLED[kind]: "a  b"})
    large = content("large", LARGE)
    container.upload_blob("large", large, max_concurrency=3)
    verdicts.equal(f"{kind}: blocks of 16 MiB", sha256(container.download_blob("large", max_concurrency=3).readall()), sha256(large))
    try:
        container.upload_blob("plain.txt", b"again", overwrite=False)
        status = 201
    except HttpResponseError as error:
        status = (error.status_code, error.error_code)
    verdicts.equal(f"{kind}: a failed condition", status, (409, "BlobAlreadyExists"))


def signature(verdicts, kind, port, authority, options):
    """A signature that needs https."""
    done = subprocess.run([options.binary, "sas", f"{kind}/plain.txt", "--account", DEV_NAME, "--https-only", "--endpoint",
                           f"https://localhost:{port}/{DEV_NAME}"], capture_output=True, text=True, check=True)
    signed = BlobClient.from_blob_url(done.stdout.strip(), connection_verify=str(authority), retry_total=0)
    verdicts.equal(f"{kind}: a signature with spr=https", signed.download_blob().readall(), b"plain.txt")


def objects(verdicts, kind, port, authority):
    """What boto3 does through the proxy."""
    client = boto3.client("s3", endpoint_url=f"https://localhost:{port}", aws_access_key_id=DEV_NAME, aws_secret_access_key=DEV_KEY,
                          region_name=s3.REGION, verify=str(authority),
                          config=Config(retries={"max_attempts": 0}, s3={"addressing_style": "path"}))
    wrong = []
    for name in NAMES:
        client.put_object(Bucket=kind, Key=f"s3/{name}", Body=name.encode(), Metadata={"m": "a b"})
        if client.get_object(Bucket=kind, Key=f"s3/{name}")["Body"].read() != name.encode():
            wrong.append(name)
    verdicts.none(f"{kind}: objects of these names", wrong)
    large = content("parts", LARGE)
    with tempfile.TemporaryFile() as body:
        body.write(large)
        body.seek(0)
        client.upload_fileobj(body, kind, "s3/parts")
    verdicts.equal(f"{kind}: an upload in parts", sha256(client.get_object(Bucket=kind, Key="s3/parts")["Body"].read()), sha256(large))


def main(options, scratch):
    verdicts = Verdicts("reverse proxies")
    certificate = scratch / "certificate"
    certificate.mkdir()
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
            "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", certificate / "key.pem", "-out",
            certificate / "chain.pem"]
    subprocess.run(made, check=True, capture_output=True)
    (certificate / "both.pem").write_text((certificate / "chain.pem").read_text() + (certificate / "key.pem").read_text())
    with cli.server(options, scratch, (*accounts.BOTH, "--tls", "auto")) as server:
        for kind, package in PACKAGES.items():
            try:
                install.debian([package])
            except install.Unavailable as error:
                verdicts.figure(kind, str(error), "not run")
                continue
            with Proxy(kind, scratch, server.blob_address, certificate) as proxy:
                proxy.start(60)
                authority = certificate / "chain.pem"
                blob(verdicts, kind, proxy.port, authority)
                signature(verdicts, kind, proxy.port, authority, options)
                objects(verdicts, kind, proxy.port, authority)
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

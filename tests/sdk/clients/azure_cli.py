#!/usr/bin/env python3
"""The Azure CLI: the guide's `az` line verbatim on the default port, and a round of `az storage` by connection string."""

import os
import pathlib
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import cli
from lib.content import content
from lib.install import Unavailable, python
from lib.judged import Judged, NotRun, equal, must, parse
from lib.measure import wait_until

HERE = pathlib.Path(__file__).parent
TREE = HERE.parents[2]
GUIDE = TREE / "docs" / "clients.md"
REQUIREMENTS = HERE / "requirements-az.txt"
BLOB_PORT, ADMIN_PORT = 10_000, 10_080
READY_SECONDS = 60


def listening(port):
    """Whether something accepts connections on this port of the loopback address."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def verbatim(options, scratch, environment, folder):
    """The line of docs/clients.md against `blockyard serve` without a flag."""
    if listening(BLOB_PORT) or listening(ADMIN_PORT):
        raise NotRun(f"something already listens on {BLOB_PORT} or {ADMIN_PORT}")
    lines = [line for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("az ")]
    equal(bool(lines), True, "the guide has az lines:")
    (scratch / "README.md").write_bytes((TREE / "README.md").read_bytes())
    with open(scratch / "default.log", "wb") as log:
        process = subprocess.Popen([options.binary, "serve", *options.serve_arg], cwd=scratch, stdout=log, stderr=log,
                                   stdin=subprocess.DEVNULL)
    try:
        equal(wait_until(lambda: listening(BLOB_PORT), READY_SECONDS, 0.05), True, "serves:")
        must([folder / "az", "storage", "container", "create", "--connection-string", "UseDevelopmentStorage=true", "-n",
              "first"], env=environment)
        for line in lines:
            must(["bash", "-c", line], env=environment, cwd=scratch)
    finally:
        process.kill()
        process.wait()


def main(options, scratch):
    version = next(line.split("==")[1] for line in REQUIREMENTS.read_text().splitlines() if line.startswith("azure-cli="))
    judged = Judged("az (azure-cli)", version, options)
    try:
        folder = python(REQUIREMENTS).parent
    except Unavailable as missing:
        judged.not_run("all", str(missing))
        return judged.exit_code()
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "AZURE_CONFIG_DIR": str(scratch / "az"),
                   "AZURE_CORE_COLLECT_TELEMETRY": "false", "AZURE_CORE_NO_COLOR": "true",
                   "AZURE_CORE_LOGIN_EXPERIENCE_V2": "false"}
    with judged.group("the guide's line"):
        verbatim(options, scratch, environment, folder)
    with cli.server(options, scratch) as server:
        environment["AZURE_STORAGE_CONNECTION_STRING"] = server.account.connection_string
        az = lambda *arguments: must([folder / "az", "storage", *arguments, "-o", "tsv"], env=environment)
        source = scratch / "large.bin"
        source.write_bytes(content("az", 70 << 20))
        with judged.group("upload, list, download"):
            az("container", "create", "-n", "azure")
            az("blob", "upload", "-c", "azure", "-n", "dir/large.bin", "-f", source, "--metadata", "a=b")
            equal(az("blob", "list", "-c", "azure", "--query", "[].name").split(), ["dir/large.bin"])
            az("blob", "download", "-c", "azure", "-n", "dir/large.bin", "-f", scratch / "back.bin")
            equal((scratch / "back.bin").read_bytes() == source.read_bytes(), True, "bytes:")
        with judged.group("snapshot, lease, tier, metadata"):
            az("blob", "snapshot", "-c", "azure", "-n", "dir/large.bin")
            lease = az("blob", "lease", "acquire", "-c", "azure", "-b", "dir/large.bin").strip()
            az("blob", "lease", "release", "-c", "azure", "-b", "dir/large.bin", "--lease-id", lease)
            az("blob", "set-tier", "-c", "azure", "-n", "dir/large.bin", "--tier", "Cool")
            az("blob", "metadata", "update", "-c", "azure", "-n", "dir/large.bin", "--metadata", "k=v")
            equal(az("blob", "show", "-c", "azure", "-n", "dir/large.bin", "--query", "[metadata.k, properties.blobTier]").split(),
                  ["v", "Cool"])
        with judged.group("tags, conditions"):
            az("blob", "upload", "-c", "azure", "-n", "tagged", "-f", __file__, "--tags", "kind=az")
            equal(az("blob", "show", "-c", "azure", "-n", "tagged", "--query", "tagCount").strip(), "1")
            failed = subprocess.run([folder / "az", "storage", "blob", "upload", "-c", "azure", "-n", "dir/large.bin", "-f", source,
                                     "--overwrite", "--if-none-match", "*"], env=environment, capture_output=True, text=True, check=False)
            equal((failed.returncode != 0, "BlobAlreadyExists" in failed.stderr), (True, True), "it exists:")
        with judged.group("append and page blobs, folders"):
            tree = scratch / "tree"
            (tree / "sub").mkdir(parents=True)
            for name in ("a.txt", "sub/b.txt"):
                (tree / name).write_bytes(content(name, 4096))
            for kind in ("append", "page"):
                az("blob", "upload", "-c", "azure", "-n", f"kinds/{kind}", "-f", tree / "a.txt", "--type", kind)
            equal(az("blob", "list", "-c", "azure", "--prefix", "kinds/", "--query", "[].properties.blobType").split(), ["AppendBlob", "PageBlob"])
            az("blob", "upload-batch", "-d", "azure/tree", "-s", tree)
            (scratch / "back").mkdir()
            az("blob", "download-batch", "-s", "azure", "-d", scratch / "back", "--pattern", "tree/*")
            equal([(scratch / "back" / "tree" / name).read_bytes() == content(name, 4096) for name in ("a.txt", "sub/b.txt")], [True, True], "bytes:")
        with judged.group("soft delete, policies of containers"):
            az("blob", "service-properties", "delete-policy", "update", "--enable", "true", "--days-retained", "7")
            az("blob", "delete", "-c", "azure", "-n", "kinds/append")
            az("blob", "undelete", "-c", "azure", "-n", "kinds/append")
            equal(az("blob", "exists", "-c", "azure", "-n", "kinds/append", "--query", "exists").strip(), "true")
            az("container", "policy", "create", "-c", "azure", "-n", "reader", "--permissions", "rl", "--expiry", "2099-01-01T00:00Z")
            equal(az("container", "policy", "show", "-c", "azure", "-n", "reader", "--query", "permission").strip(), "rl")
            lease = az("container", "lease", "acquire", "-c", "azure").strip()
            az("container", "lease", "release", "-c", "azure", "--lease-id", lease)
            az("blob", "service-properties", "delete-policy", "update", "--enable", "false")
        with judged.group("copy, SAS, batch delete"):
            signed = az("blob", "generate-sas", "-c", "azure", "-n", "dir/large.bin", "--permissions", "r", "--expiry",
                        "2099-01-01T00:00Z", "--full-uri").strip()
            equal(signed.startswith(server.account.url), True, "address:")
            # From a name alone az makes an address at the public service, whatever the connection string says.
            az("blob", "copy", "start", "--destination-container", "azure", "--destination-blob", "copied", "--source-uri",
               signed)
            az("blob", "download", "-c", "azure", "-n", "copied", "-f", scratch / "copied.bin")
            equal((scratch / "copied.bin").read_bytes() == source.read_bytes(), True, "bytes:")
            az("blob", "delete-batch", "-s", "azure", "--pattern", "copied")
            az("container", "delete", "-n", "azure")
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

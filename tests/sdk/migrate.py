#!/usr/bin/env python3
"""The lines of docs/migrate.md work as they stand: from Azurite, from a store that speaks Azure Blob, from one of S3.

The store of S3 is SeaweedFS, and another Blockyard is in Azure's place. Everything that was in the old store is then compared
with what the new one has, and the lines are run a second time, when nothing is left to be copied.
"""

import os
import pathlib
import re
import subprocess

import boto3
from azure.storage.blob import ContentSettings
from lib import accounts, azcopy, cli, peers, s3_clients, trees
from lib.content import content
from lib.install import Unavailable
from lib.report import Verdicts
from lib.server import Server

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "migrate.md"
AZURE = "https://NAME.blob.core.windows.net/CONTAINER?SAS"
BOTH_SIDES = "Names for both sides"
CONTAINER = "moved"
NAMES = ("plain.txt", "dir/inner.bin", "with space.txt", "plus+sign.txt", "percent%41.txt", "grüße-日本-😀.txt")
SECONDS = 300


def blocks(text):
    """{heading: its lines for a shell}."""
    found = re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return {heading: "\n".join(re.findall(r"^```sh\n(.*?)^```$", body, re.MULTILINE | re.DOTALL)) for heading, body in found}


class Lines:
    """Runs the lines of the page against a new store."""

    def __init__(self, options, scratch, target, verdicts):
        self.pages, self.verdicts, self.target, self.scratch = blocks(PAGE.read_text(encoding="utf-8")), verdicts, target, scratch
        tools = scratch / "bin"
        tools.mkdir()
        (tools / "blockyard").symlink_to(options.binary)
        try:
            (tools / "azcopy").symlink_to(azcopy.program())
        except Unavailable as error:
            print(f"no AzCopy: {error}", flush=True)
        self.has_azcopy = (tools / "azcopy").exists()
        path = f"{tools}:{s3_clients.program('rclone').parent}:{os.environ['PATH']}"
        self.environment = {**azcopy.AzCopy(None, scratch).environment(), "PATH": path, "RCLONE_CONFIG": str(scratch / "rclone.conf"),
                            "BY": f"http://{target.blob_address}", "KEY": accounts.SECOND_KEY}

    def run(self, heading, variables, replaced=()):
        """The lines below a heading, after those that name both sides. Their account is the target's second one."""
        script = f"set -e\n{self.pages[BOTH_SIDES]}\n{self.pages[heading]}"
        for old, new in (("photos", accounts.SECOND_NAME), *replaced):
            script = script.replace(old, new)
        done = subprocess.run(["bash", "-c", script], env={**self.environment, **variables}, capture_output=True, text=True, timeout=SECONDS,
                              cwd=self.scratch, check=False)
        self.verdicts.check(f"{heading}: the lines", done.returncode == 0, "exit 0", f"exit {done.returncode}")
        if done.returncode:
            print(done.stdout[-2000:], done.stderr[-3000:], flush=True)

    def judge(self, heading, variables, wanted, replaced=()):
        """Runs the lines twice and compares what is there."""
        self.run(heading, variables, replaced)
        account = accounts.second(self.target)
        self.verdicts.equal(f"{heading}: names and bytes", s3_clients.through_blob(account, CONTAINER) == wanted, True)
        before = self.target.metrics()["blockyard_capacity_appended_bytes_total"]
        self.run(heading, variables, replaced)
        written = self.target.metrics()["blockyard_capacity_appended_bytes_total"] - before
        largest = max(map(len, wanted.values()))
        self.verdicts.check(f"{heading}: a second run copies no content", written < largest, f"< {largest:,} bytes", f"{written:,.0f}")


def fill_blob(account):
    """A container of an old store that speaks Azure Blob; {name: bytes}."""
    container = account.service().create_container(CONTAINER)
    made = {name: content(name, trees.FILES[name]) for name in NAMES}
    for name, data in made.items():
        settings = ContentSettings(content_type="text/x-old", cache_control="max-age=7")
        container.upload_blob(name, data, content_settings=settings, metadata={"origin": "old"})
    return made


def properties_moved(lines, heading, wanted=("text/x-old", "old")):
    """Content type and metadata of a moved blob."""
    account = accounts.second(lines.target)
    found = account.service().get_blob_client(CONTAINER, "plain.txt").get_blob_properties()
    metadata = {name.lower(): value for name, value in found.metadata.items()}
    lines.verdicts.equal(f"{heading}: content type and metadata", (found.content_settings.content_type, metadata.get("origin")), wanted)


def empty(lines):
    """Removes what the last move made."""
    accounts.second(lines.target).service().delete_container(CONTAINER)


def from_azurite(lines, scratch):
    (scratch / "azurite").mkdir()
    with peers.Azurite(scratch / "azurite", scratch / "azurite.log") as old:
        old.start()
        made = fill_blob(old.account)
        lines.judge("From Azurite", {"OLD_URL": old.account.url}, made)
        properties_moved(lines, "From Azurite")
    empty(lines)


def from_azure(lines, options, scratch):
    """Another Blockyard is in the place of the service, so its address replaces that of the page."""
    with Server(options.binary, [scratch / "azure"], scratch / "azure.log") as old:
        old.start()
        made = fill_blob(old.account)
        signed = f"{old.account.url}/{CONTAINER}?{accounts.sas(old.account)}"
        variables = {"OLD_KEY": old.account.key, "RCLONE_CONFIG_OLD_ENDPOINT": old.account.url}
        replaced = ((AZURE, signed), ("ACCOUNT=NAME", f"ACCOUNT={old.account.name}"), ("CONTAINER", CONTAINER))
        for heading in ("From Azure, through your machine", "From Azure, from server to server"):
            if "azcopy" in lines.pages[heading] and not lines.has_azcopy:
                lines.verdicts.figure(heading, "no AzCopy here", "not run")
                continue
            lines.judge(heading, variables, made, replaced)
            properties_moved(lines, heading)
            empty(lines)


def from_s3(lines, scratch):
    heading = "From MinIO, and other S3 stores"
    (scratch / "seaweedfs").mkdir()
    with peers.SeaweedFS(scratch / "seaweedfs", scratch / "seaweedfs.log") as old:
        old.start()
        # Usable, which it is not as soon as it is ready.
        old.store(CONTAINER)
        made = {name: content(name, trees.FILES[name]) for name in NAMES}
        place = f"http://127.0.0.1:{old.ports['s3.port']}"
        client = boto3.client("s3", endpoint_url=place, aws_access_key_id=old.keys[0], aws_secret_access_key=old.keys[1],
                              region_name="us-east-1")
        for name, data in made.items():
            client.put_object(Bucket=CONTAINER, Key=name, Body=data, ContentType="text/x-old", Metadata={"origin": "old"})
        variables = {"OLD_URL": place, "OLD_ID": old.keys[0], "OLD_SECRET": old.keys[1]}
        lines.judge(heading, variables, made)
        properties_moved(lines, heading)


def main(options, scratch):
    verdicts = Verdicts("moves from other stores")
    extra = [*accounts.BOTH, "--copy-source-allow=127.0.0.1", *options.serve_arg]
    with Server(options.binary, [scratch / "data"], scratch / "server.log", extra) as target:
        target.start()
        lines = Lines(options, scratch, target, verdicts)
        from_azure(lines, options, scratch)
        for move in (from_azurite, from_s3):
            try:
                move(lines, scratch)
            except (Unavailable, peers.Unusable) as error:
                verdicts.figure(move.__name__, str(error), "not run")
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

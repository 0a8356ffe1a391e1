#!/usr/bin/env python3
"""Versions of a few names through both protocols, against lists of them, through kill -9.

Random puts, block lists, appends, pages, metadata, snapshots, copies, deletions of blobs and of versions, while versions
are enabled and suspended; in the middle the process is killed. Every few steps each name must have the versions, in
their order, that its list says, each with its bytes; then `blockyard check` must find the store sound, with the versions
and again without them.
"""

import itertools
import random

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobBlock
from botocore.exceptions import ClientError

from lib import cli, s3
from lib.report import Progress, Verdicts

BUCKET, NAMES, PAGE = "versions", ("a", "a/x", "b"), 512
LARGE = 70_000  # More than is kept in a row.


class Chain:
    """One name: its versions as (id, content or None for a delete marker), oldest first, and its snapshots."""

    def __init__(self, container, objects, name):
        self.blob, self.objects, self.name = container.get_blob_client(name), objects, name
        self.versions, self.snapshots, self.kind = [], {}, {}

    def current(self):
        """The content of the current version, or None."""
        return self.versions[-1][1] if self.versions else None

    def push(self, content, kind, enabled):
        """A new version on top. Its id is what the server says it is."""
        if not enabled:
            self.versions = [kept for kept in self.versions if kept[0] != "null"]
        self.versions.append((self.listed()[2], content))
        self.kind[content] = kind

    def listed(self):
        """What the server lists, oldest first: ids of versions, ids of delete markers; the id of the latest of them."""
        found = {"Versions": [], "DeleteMarkers": []}
        for page in self.objects.get_paginator("list_object_versions").paginate(
                Bucket=BUCKET, Prefix=self.name, PaginationConfig={"PageSize": 7}):
            for group, listed in found.items():
                listed += [kept for kept in page.get(group, []) if kept["Key"] == self.name]
        ids = [[kept["VersionId"] for kept in reversed(listed)] for listed in found.values()]
        latest = [kept["VersionId"] for listed in found.values() for kept in listed if kept["IsLatest"]]
        assert len(latest) <= 1, f"{self.name}: the latest are {latest}"
        return (*ids, *latest)

    def step(self, draw, enabled, unique):
        """One random change."""
        ways = [self.put, self.put, self.blocks, self.appended, self.pages, self.metadata, self.snapshot, self.delete,
                self.delete, self.remove, self.remove, self.again]
        draw.choice(ways)(draw, enabled, f"{unique:08}".encode())

    def put(self, draw, enabled, unique):
        """Put Object."""
        content = unique + bytes(draw.choice([0, LARGE]))
        self.objects.put_object(Bucket=BUCKET, Key=self.name, Body=content)
        self.push(content, "block", enabled)

    def blocks(self, draw, enabled, unique):
        """A block list that takes what the blob before has."""
        old = []
        if self.current() is not None and self.kind[self.current()] == "list":
            old = [block.id for block in self.blob.get_block_list("committed")[0]]
        elif self.current() is not None and self.kind[self.current()] != "block":
            return
        kept = old[:draw.choice([0, 1, 100])] * draw.choice([1, 1, 40])
        before = {block: part for block, part in zip(old, chunks(self.current()))} if old else {}
        name = unique.decode()
        data = unique + bytes(LARGE)
        self.blob.stage_block(name, data)
        self.blob.commit_block_list([BlobBlock(block) for block in [*kept, name]][:3000])
        content = b"".join(before[block] for block in kept) + data
        self.push(content, "list", enabled)

    def appended(self, draw, enabled, unique):
        """An append blob with some blocks."""
        self.blob.create_append_blob()
        parts = [unique + bytes([number]) for number in range(draw.choice([1, 80]))]
        for part in parts:
            self.blob.append_block(part)
        self.push(b"".join(parts), "append", enabled)

    def pages(self, _draw, enabled, unique):
        """A page blob with a written page."""
        self.blob.create_page_blob(4 * PAGE)
        self.blob.upload_page(unique * 64, PAGE, PAGE)
        self.push(bytes(PAGE) + unique * 64 + bytes(2 * PAGE), "page", enabled)

    def metadata(self, _draw, enabled, unique):
        """Set Blob Metadata makes a version; the null version changes while versions are suspended."""
        if self.current() is None:
            return
        content, is_null = self.current(), self.versions[-1][0] == "null"
        self.blob.set_blob_metadata({"k": unique.decode()})
        if enabled or not is_null:
            self.push(content, self.kind[content], enabled)

    def snapshot(self, _draw, enabled, _unique):
        """Snapshot Blob makes a version too."""
        if self.current() is None:
            return
        content, is_null = self.current(), self.versions[-1][0] == "null"
        self.snapshots[self.blob.create_snapshot()["snapshot"]] = content
        if enabled or not is_null:
            self.push(content, self.kind[content], enabled)

    def again(self, draw, enabled, _unique):
        """A copy of a version becomes the current one."""
        kept = [version for version in self.versions if version[1] is not None and self.kind[version[1]] == "block"]
        if kept:
            version, content = draw.choice(kept)
            source = {"Bucket": BUCKET, "Key": self.name, "VersionId": version}
            self.objects.copy_object(Bucket=BUCKET, Key=self.name, CopySource=source, MetadataDirective="REPLACE")
            self.push(content, "block", enabled)

    def delete(self, _draw, enabled, _unique):
        """DeleteObject: a delete marker."""
        self.objects.delete_object(Bucket=BUCKET, Key=self.name)
        self.push(None, None, enabled)

    def remove(self, draw, _enabled, _unique):
        """DeleteObject of a version."""
        if self.versions:
            at = draw.randrange(len(self.versions))
            last = len(self.versions) == 1 and self.snapshots
            try:
                self.objects.delete_object(Bucket=BUCKET, Key=self.name, VersionId=self.versions[at][0])
                assert not last, "snapshots would be left alone"
                del self.versions[at]
            except ClientError:
                assert last

    def wrong(self):
        """What is not as the list says."""
        found = self.listed()
        wanted = ([version for version, content in self.versions if content is not None],
                  [version for version, content in self.versions if content is None],
                  *(version for version, _ in self.versions[-1:]))
        if found != wanted:
            return [f"{self.name}: {found} not {wanted}"]
        wrong = []
        for version, content in self.versions:
            if content is not None:
                body = self.objects.get_object(Bucket=BUCKET, Key=self.name, VersionId=version)["Body"].read()
                wrong += [] if body == content else [f"{self.name} {version}: {len(body)} bytes, not {len(content)}"]
        for taken, content in self.snapshots.items():
            body = self.blob.from_blob_url(self.blob.url, credential=self.blob.credential, snapshot=taken)
            wrong += [] if body.download_blob().readall() == content else [f"{self.name} snapshot {taken}"]
        try:
            body = self.blob.download_blob().readall()
        except HttpResponseError as error:
            assert error.status_code == 404
            body = None
        return wrong if body == self.current() else [*wrong, f"{self.name}: the current blob"]


def chunks(content):
    """The blocks of a list: each is 8 bytes of a number and zeros."""
    size = LARGE + 8
    return [content[at:at + size] for at in range(0, len(content), size)]


def main(options, scratch):
    verdicts = Verdicts("version histories")
    draw, steps = random.Random(options.seed), 200 if options.small else 1000
    with cli.server(options, scratch) as server:
        container = server.account.service().create_container(BUCKET)
        objects = s3.client(server.account)
        chains, wrong, enabled, numbers = [Chain(container, objects, name) for name in NAMES], [], True, itertools.count()

        def switch(status):
            objects.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": status})

        switch("Enabled")
        with Progress("change", steps, "steps") as progress:
            for number in range(steps):
                if draw.random() < 0.05 and options.suspended:
                    enabled = not enabled
                    switch("Enabled" if enabled else "Suspended")
                draw.choice(chains).step(draw, enabled, next(numbers))
                if number == steps // 2:
                    server.kill()
                    server.start()
                if number % 20 == 19 or number == steps // 2:
                    wrong = [name for chain in chains for name in chain.wrong()]
                    if wrong:
                        break
                progress.advance()
        verdicts.none("wrong while it changed", wrong)
        server.stop()
        verdicts.equal("check with the versions", server.check()[0], 0)
        server.start()
        verdicts.none("wrong after a restart", [name for chain in chains for name in chain.wrong()])
        container.delete_container()
        server.stop()
        verdicts.equal("check without them", server.check()[0], 0)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--seed", type=int, default=1, help="another history")
    flags.add_argument("--suspended", action="store_true", help="suspend versions at times")
    cli.run(main, cli.parse(flags))

#!/usr/bin/env python3
"""Encryption scopes with keys of their own.

Everything that is written under a scope, by every operation of both protocols, is read back, and none of it is on the disks in the
clear. A disabled scope refuses reads and writes with 403 until it is enabled. A rotation of the master key rewrites no content,
and after it, kill -9 and a restart everything is still read. Copies between scopes are equal to their sources and are under the
scope of their own. What was written under the name before the scope had a key stays as it is.
"""

import hashlib
import pathlib
import subprocess

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobBlock, BlobClient, ContentSettings
from botocore.exceptions import ClientError
from lib import accounts, cli, s3
from lib.commands import command
from lib.content import content, sha256
from lib.report import Verdicts
from lib.wire import Wire

MARK = b"the plain text of a secret "
SIZES = (0, 27, 500, 4_000, 70_000, 3 << 20)
PAGE = 512
MIB = 1 << 20


def marked(label, size):
    """Bytes that a search of the disks finds, should they be there in the clear."""
    body = bytearray(content(label, size))
    for at in range(0, size - len(MARK), 1 << 16):
        body[at:at + len(MARK)] = MARK
    return bytes(body)


def on_disk(folder, text=MARK):
    """The files that have a text."""
    files = (path for path in pathlib.Path(folder).rglob("*") if path.is_file())
    return [path.name for path in files if text in path.read_bytes()]


def refused(call):
    """Status and code of a refusal, or nothing."""
    try:
        call()
    except HttpResponseError as error:
        return error.status_code, error.error_code
    except ClientError as error:
        return s3.code(error)
    return None


class Written:
    """The written blobs, and how they are read back."""

    def __init__(self, server, verdicts):
        self.account, self.verdicts = server.account, verdicts
        self.blobs = {}

    @property
    def service(self):
        return self.account.service()

    def keep(self, container, name, data):
        self.blobs[container, name] = data

    def wrong(self):
        """The blobs that are not read as they were written, whole and in part, through both protocols."""
        service, client, wrong = self.service, s3.client(self.account), []
        for (container, name), data in self.blobs.items():
            blob = service.get_blob_client(container, name)
            part = data[100:70_000]
            good = blob.download_blob().readall() == data
            good = good and (not part or blob.download_blob(offset=100, length=len(part)).readall() == part)
            good = good and client.get_object(Bucket=container, Key=name)["Body"].read() == data
            if not good:
                wrong.append(f"{container}/{name}")
        return wrong


def write(written, scope):
    """By every operation of Blob, in a container without a default scope."""
    service, named = written.service, {"encryption_scope": scope}
    container = service.create_container(f"named-{scope}")
    for size in SIZES:
        data = marked(f"put {size}", size)
        container.upload_blob(f"put-{size}", data, content_settings=ContentSettings(content_type="text/x"), **named)
        written.keep(container.container_name, f"put-{size}", data)
    blob, parts = container.get_blob_client("blocks"), [marked(f"block {n}", 200_000 + n) for n in range(3)]
    for number, part in enumerate(parts):
        blob.stage_block(str(number), part, **named)
    blob.commit_block_list([BlobBlock(str(number)) for number in range(3)], **named)
    written.keep(container.container_name, "blocks", b"".join(parts))
    log = container.get_blob_client("log")
    log.create_append_blob(**named)
    lines = [marked(f"line {n}", 5_000 * n + 27) for n in range(3)]
    for line in lines:
        log.append_block(line, **named)
    written.keep(container.container_name, "log", b"".join(lines))
    disk, pages = container.get_blob_client("disk"), bytearray(64 * PAGE)
    disk.create_page_blob(64 * PAGE, **named)
    for at, count in ((0, 20), (4, 3), (40, 8)):
        part = marked(f"pages {at}", count * PAGE)
        disk.upload_page(part, at * PAGE, count * PAGE, **named)
        pages[at * PAGE:(at + count) * PAGE] = part
    written.keep(container.container_name, "disk", bytes(pages))
    return container


def write_by_default(written, scope):
    """In a container whose default is the scope: requests name none, those of S3 never do."""
    container = written.service.create_container(f"default-{scope}", container_encryption_scope={
        "default_encryption_scope": scope, "prevent_encryption_scope_override": True})
    name, client = container.container_name, s3.client(written.account)
    for size in SIZES:
        data = marked(f"plain put {size}", size)
        container.upload_blob(f"put-{size}", data)
        written.keep(name, f"put-{size}", data)
        client.put_object(Bucket=name, Key=f"object-{size}", Body=data)
        written.keep(name, f"object-{size}", data)
    upload = client.create_multipart_upload(Bucket=name, Key="parts")["UploadId"]
    parts = [marked(f"part {n}", 5 * MIB + n) for n in range(2)]
    tags = [client.upload_part(Bucket=name, Key="parts", UploadId=upload, PartNumber=n, Body=part)["ETag"]
            for n, part in enumerate(parts, 1)]
    client.complete_multipart_upload(Bucket=name, Key="parts", UploadId=upload, MultipartUpload={
        "Parts": [{"PartNumber": n, "ETag": tag} for n, tag in enumerate(tags, 1)]})
    written.keep(name, "parts", b"".join(parts))
    return container


def increments(server, written, source, verdicts):
    """Incremental copies of a page blob with a Content-MD5: within the scope; a copy of the copy goes to another one."""
    service, signature = written.service, accounts.sas(written.account)
    disk, md5 = source.get_blob_client("disk"), hashlib.md5(b"disk").digest()
    disk.set_http_headers(ContentSettings(content_md5=bytearray(md5)))
    snapshot = disk.create_snapshot(encryption_scope="ours")["snapshot"]
    default = {"default_encryption_scope": "ours", "prevent_encryption_scope_override": False}
    service.create_container("increments", container_encryption_scope=default)
    made = service.get_blob_client("increments", "disk")
    made.start_copy_from_url(f"{disk.url}?snapshot={snapshot}&{signature}", incremental_copy=True)
    taken = made.get_blob_properties()["copy"]["destination_snapshot"]
    there = service.get_blob_client("increments", "disk", snapshot=taken)
    verdicts.equal("incremental copy: bytes", there.download_blob().readall() == written.blobs[source.container_name, "disk"], True)
    for target in ("copied-other", "copied-none"):
        blob = service.get_blob_client(target, "of-an-increment")
        blob.start_copy_from_url(f"{made.url}?snapshot={taken}&{signature}")
        written.keep(target, "of-an-increment", written.blobs[source.container_name, "disk"])
        found = blob.get_blob_properties().content_settings.content_md5
        verdicts.equal(f"{target}: Content-MD5 of a copy of an incremental copy", found and bytes(found), md5)
    other = service.get_blob_client("copied-other", "increment")
    found = refused(lambda: other.start_copy_from_url(f"{disk.url}?snapshot={snapshot}&{signature}", incremental_copy=True))
    verdicts.equal("an incremental copy into another scope", found, (409, "BlobCustomerSpecifiedEncryptionMismatch"))


def copy(server, written, containers, verdicts):
    """Copies within the scope, to another one and to none."""
    source, service = containers[0], written.service
    signature = accounts.sas(written.account)
    for target, scope in (("same", "ours"), ("other", "theirs"), ("none", None)):
        # The SDK names a scope in synchronous copies only.
        default = {"default_encryption_scope": scope, "prevent_encryption_scope_override": False} if scope else None
        container = service.create_container(f"copied-{target}", container_encryption_scope=default)
        for name in ("put-500", "put-70000", f"put-{3 * MIB}", "blocks", "log", "disk"):
            url = f"{source.url}/{name}?{signature}"
            blob = container.get_blob_client(name)
            before = server.metrics()["blockyard_capacity_appended_bytes_total"]
            blob.start_copy_from_url(url)
            grown = server.metrics()["blockyard_capacity_appended_bytes_total"] - before
            if target == "same" and name == f"put-{3 * MIB}":
                verdicts.check("a copy within a scope moves no bytes", grown < MIB, f"< {MIB:,}", f"{grown:,.0f}")
            data = written.blobs[source.container_name, name]
            written.keep(container.container_name, name, data)
            verdicts.equal(f"copy to {target}: {name}: scope", blob.get_blob_properties().encryption_scope, scope)
        if scope:
            blob = container.get_blob_client("synchronous")
            blob.start_copy_from_url(f"{source.url}/put-70000?{signature}", requires_sync=True, encryption_scope=scope)
            written.keep(container.container_name, "synchronous", written.blobs[source.container_name, "put-70000"])
            blob = container.get_blob_client("from-url")
            blob.upload_blob_from_url(f"{source.url}/put-70000?{signature}", encryption_scope=scope)
            written.keep(container.container_name, "from-url", written.blobs[source.container_name, "put-70000"])
    increments(server, written, containers[0], verdicts)
    client = s3.client(written.account)
    for name in ("put-500", "put-70000", "blocks"):
        client.copy_object(Bucket=containers[1].container_name, Key=f"copy-of-{name}",
                           CopySource={"Bucket": source.container_name, "Key": name})
        written.keep(containers[1].container_name, f"copy-of-{name}", written.blobs[source.container_name, name])
    upload = client.create_multipart_upload(Bucket=containers[1].container_name, Key="copied-part")["UploadId"]
    made = client.upload_part_copy(Bucket=containers[1].container_name, Key="copied-part", UploadId=upload, PartNumber=1,
                                   CopySource={"Bucket": source.container_name, "Key": "blocks"})
    client.complete_multipart_upload(Bucket=containers[1].container_name, Key="copied-part", UploadId=upload, MultipartUpload={
        "Parts": [{"PartNumber": 1, "ETag": made["CopyPartResult"]["ETag"]}]})
    written.keep(containers[1].container_name, "copied-part", written.blobs[source.container_name, "blocks"])


def shown(server, written, container, verdicts):
    """What properties and lists show."""
    listed = {blob.name: blob for blob in container.list_blobs()}
    blob = container.get_blob_client("put-70000").get_blob_properties()
    md5 = blob.content_settings.content_md5
    verdicts.check("properties show Content-MD5", bool(md5), found=md5)
    verdicts.equal("a list shows the same Content-MD5", listed["put-70000"].content_settings.content_md5, md5)
    verdicts.equal("a list shows the scope", listed["put-70000"].encryption_scope, "ours")
    blob = container.get_blob_client("put-4000")
    md5 = hashlib.md5(b"any").digest()
    blob.set_http_headers(ContentSettings(content_type="text/z", content_md5=bytearray(md5)))
    verdicts.equal("a Content-MD5 that is set without the scope", bytes(blob.get_blob_properties().content_settings.content_md5), md5)
    verdicts.check("is not on the disks in the clear", not on_disk(server.data[0], md5))
    refusals = {
        "an append without the scope": lambda: container.get_blob_client("log").append_block(b"x"),
        "pages without the scope": lambda: container.get_blob_client("disk").upload_page(bytes(PAGE), 0, PAGE),
        "a block list without the scope": lambda: container.get_blob_client("blocks").commit_block_list([]),
    }
    for what, call in refusals.items():
        verdicts.equal(what, refused(call), (409, "BlobUsesCustomerSpecifiedEncryption"))
    blob = container.get_blob_client("half")
    blob.stage_block("a", b"x", encryption_scope="ours")
    verdicts.equal("blocks of a scope in a plain list", refused(lambda: blob.commit_block_list([BlobBlock("a")])),
                   (409, "BlobUsesCustomerSpecifiedEncryption"))
    anonymous = BlobClient.from_blob_url(f"{container.url}/put-500?{accounts.sas(written.account)}")
    verdicts.equal("who may read need not name the scope", anonymous.download_blob().readall() == marked("put 500", 500), True)


def disabled(server, written, containers, verdicts):
    """403 for reads and writes, until it is enabled."""
    account, service, client = written.account.name, written.service, s3.client(written.account)
    begun = client.create_multipart_upload(Bucket=containers[1].container_name, Key="late")["UploadId"]
    part = client.upload_part(Bucket=containers[1].container_name, Key="late", UploadId=begun, PartNumber=1, Body=b"late")
    command(server, "scope", "disable", f"{account}/ours")
    container, default = containers
    blob = container.get_blob_client("put-70000")
    target = service.get_container_client("copied-none").get_blob_client("refused")
    url = f"{blob.url}?{accounts.sas(written.account)}"
    calls = {
        "Get Blob": blob.download_blob, "Get Blob Properties": blob.get_blob_properties,
        "Put Blob": lambda: container.upload_blob("new", b"x", encryption_scope="ours"),
        "Put Blob by default": lambda: default.upload_blob("new", b"x"),
        "Put Block": lambda: container.get_blob_client("n").stage_block("a", b"x", encryption_scope="ours"),
        "Append Block": lambda: container.get_blob_client("log").append_block(b"x", encryption_scope="ours"),
        "Set Blob Metadata": lambda: blob.set_blob_metadata({"a": "b"}, encryption_scope="ours"),
        "Snapshot Blob": lambda: blob.create_snapshot(encryption_scope="ours"),
        "Set Blob Properties": lambda: blob.set_http_headers(ContentSettings(content_type="text/y")),
        "Append Blob Seal": lambda: container.get_blob_client("log").seal_append_blob(),
        "Get Block List": lambda: container.get_blob_client("blocks").get_block_list(),
        "Get Page Ranges": lambda: container.get_blob_client("disk").get_page_ranges(),
        "a blob of before the key": lambda: service.get_blob_client("before", "labelled").download_blob(),
    }
    for what, call in calls.items():
        found = refused(call)
        verdicts.check(f"disabled: {what}", found and found[0] == 403, 403, found)
    found = refused(lambda: target.start_copy_from_url(url))
    verdicts.check("disabled: as a copy source", found and found[0] == 403, 403, found)
    late = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    for what, call in {"CompleteMultipartUpload": lambda: client.complete_multipart_upload(
            Bucket=default.container_name, Key="late", UploadId=begun, MultipartUpload=late), "PutObject": lambda: client.put_object(Bucket=default.container_name, Key="new", Body=b"x"),
                       "GetObject": lambda: client.get_object(Bucket=default.container_name, Key="object-500")}.items():
        verdicts.equal(f"disabled: {what}", refused(call), (403, "AccessDenied"))
    verdicts.check("disabled: the list shows the blob", "put-70000" in [one.name for one in container.list_blobs()])
    container.get_blob_client("put-27").delete_blob()
    del written.blobs[container.container_name, "put-27"]
    others = service.get_container_client("copied-other").get_blob_client("put-500")
    verdicts.equal("disabled: another scope is read", others.download_blob().readall() == marked("put 500", 500), True)
    command(server, "scope", "enable", f"{account}/ours")
    verdicts.none("enabled again: all is read", written.wrong())


def commands(server, account, verdicts):
    """The commands, and their refusals."""
    made = command(server, "scope", "create", f"{account}/ours")
    verdicts.equal("a scope is made", (made["name"], made["enabled"]), ("ours", True))
    command(server, "scope", "create", f"{account}/theirs")
    verdicts.equal("scope list", [one["name"] for one in command(server, "scope", "list", account)], ["ours", "theirs"])
    for words, wanted in ((("create", f"{account}/ours"), "has the encryption scope ours already"),
                          (("create", f"{account}/a_b"), "3 to 63 letters"), (("disable", f"{account}/none"), "has no encryption scope"),
                          (("create", "nobody/ours"), "there is no account")):
        done = subprocess.run([server.binary, "scope", *words, "--admin-listen", server.admin_address, "--data", server.data[0]],
                              capture_output=True, text=True, check=False)
        verdicts.check(f"scope {' '.join(words)} is refused", done.returncode == 1 and wanted in done.stderr, wanted, done.stderr.strip()[:90])


def main(options, scratch):
    verdicts = Verdicts("encryption scopes with keys")
    extra = ["--journal-bytes=4194304", "--copy-source-allow=127.0.0.1"]
    with cli.server(options, scratch, extra) as server:
        written = Written(server, verdicts)
        account = server.account.name
        label = written.service.create_container("before")
        label.upload_blob("labelled", b"a label, and plain " + MARK[:5], encryption_scope="ours")
        label.upload_blob("log", b"one", blob_type="AppendBlob", encryption_scope="ours")
        commands(server, account, verdicts)
        written.keep("before", "labelled", b"a label, and plain " + MARK[:5])
        verdicts.equal("a blob of before the key takes no content under the key", refused(
            lambda: label.get_blob_client("log").append_block(b"x", encryption_scope="ours")),
            (409, "BlobCustomerSpecifiedEncryptionMismatch"))
        containers = [write(written, "ours"), write_by_default(written, "ours")]
        verdicts.none("all is read back", written.wrong())
        shown(server, written, containers[0], verdicts)
        verdicts.none("no file has the plain text", on_disk(scratch / "data"))
        copy(server, written, containers, verdicts)
        verdicts.none("copies are read back", written.wrong())
        verdicts.check("the search of files finds the copies that are under no scope", bool(on_disk(scratch / "data")))
        disabled(server, written, containers, verdicts)

        before = server.metrics()["blockyard_capacity_appended_bytes_total"]
        command(server, "key", "rotate")
        grown = server.metrics()["blockyard_capacity_appended_bytes_total"] - before
        verdicts.check("a rotation of the master key rewrites no content", grown < MIB, f"< {MIB:,} bytes", f"{grown:,.0f}")
        verdicts.none("after the rotation all is read", written.wrong())
        server.kill()
        server.start()
        verdicts.none("after kill -9 all is read", written.wrong())
        verdicts.equal("scopes after kill -9", [one["enabled"] for one in command(server, "scope", "list", account)], [True, True])
        wire = Wire(server.account)
        head = wire.request("HEAD", f"/{containers[0].container_name}/put-500").headers
        verdicts.equal("the answer names the scope", head.get("x-ms-encryption-scope"), "ours")
        wire.close()
        server.stop()
        verdicts.sound(server)
    print(f"{len(written.blobs)} blobs, {sha256(b''.join(written.blobs.values()))[:8]}")
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

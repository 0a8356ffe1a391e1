#!/usr/bin/env python3
"""azure-storage-blob for Python, one pass over all its operations, with the account key and with a signature.

`conformance/` tests each operation in depth; this is the client's row in the table.
"""

import importlib.metadata
import pathlib
import sys
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient, BlobType, ContentSettings, CorsRule, StandardBlobTier
from lib import accounts, cli
from lib.content import content
from lib.judged import Judged, equal, parse
from lib.measure import wait_until


def refused(call, code):
    """Raises unless the call is refused with this code."""
    try:
        call()
    except HttpResponseError as error:
        equal(str(getattr(error.error_code, "value", error.error_code)), code, "error code:")
    else:
        raise AssertionError(f"not refused: wanted {code}")


def blocks(container):
    """Single-shot and blocks, properties, ranges, conditions."""
    for size in (0, 1, 70_000, 9 << 20):
        data = content(size, size)
        container.upload_blob(f"b{size}", data, metadata={"a": "b"}, max_concurrency=4,
                              content_settings=ContentSettings(content_type="x/y", cache_control="no-store"))
        equal(container.download_blob(f"b{size}", max_concurrency=4).readall() == data, True, "bytes:")
    found = container.get_blob_client("b70000").get_blob_properties()
    equal((found.metadata, found.content_settings.cache_control), ({"a": "b"}, "no-store"))
    equal(container.download_blob("b70000", offset=5, length=7).readall(), content(70_000, 70_000)[5:12])
    refused(lambda: container.upload_blob("b1", b"x"), "BlobAlreadyExists")
    refused(lambda: container.upload_blob("b1", b"x", overwrite=True, etag='"0x1"',
                                          match_condition=MatchConditions.IfNotModified), "ConditionNotMet")


def listing(container):
    """Pages, prefixes, metadata."""
    for number in range(25):
        container.upload_blob(f"l/{number % 5}/{number:02}", b"x", metadata={"n": str(number)})
    pages = list(container.list_blobs(name_starts_with="l/", results_per_page=7, include=["metadata"]).by_page())
    names = [[(b.name, b.metadata["n"]) for b in page] for page in pages]
    equal(sum(map(len, names)), 25)
    equal([p.name for p in container.walk_blobs("l/", delimiter="/")], [f"l/{n}/" for n in range(5)])


def append(container):
    """Create, append, size and position conditions, seal."""
    blob = container.get_blob_client("append")
    blob.create_append_blob()
    blob.append_block(b"one,")
    blob.append_block(b"two,", appendpos_condition=4)
    refused(lambda: blob.append_block(b"x", appendpos_condition=4), "AppendPositionConditionNotMet")
    refused(lambda: blob.append_block(b"x", maxsize_condition=8), "MaxBlobSizeConditionNotMet")
    container.upload_blob("append", b"three", blob_type=BlobType.APPENDBLOB)
    equal(blob.download_blob().readall(), b"one,two,three")
    blob.seal_append_blob()
    refused(lambda: blob.append_block(b"x"), "BlobIsSealed")


def page(container):
    """Create, write, clear, ranges, difference to a snapshot, resize, sequence number."""
    blob = container.get_blob_client("page")
    data = content("page", 8192)
    blob.create_page_blob(1 << 20)
    blob.upload_page(data, 512 * 4, len(data))
    equal([(r.start, r.end) for r in blob.list_page_ranges()], [(2048, 2048 + 8191)])
    before = blob.create_snapshot()
    blob.clear_page(2048, 512)
    blob.upload_page(data[:512], 16384, 512)
    changed = [(r.start, r.end, r.cleared) for r in blob.list_page_ranges(previous_snapshot=before)]
    equal(sorted(changed), [(2048, 2559, True), (16384, 16895, False)])
    equal(blob.download_blob(offset=2048, length=1024).readall(), bytes(512) + data[512:1024])
    blob.resize_blob(2048)
    blob.set_sequence_number("max", "7")
    found = blob.get_blob_properties()
    equal((found.size, found.page_blob_sequence_number), (2048, 7))


def snapshots(container):
    """Make, list, read, delete with the blob."""
    blob = container.get_blob_client("snap")
    blob.upload_blob(b"old")
    taken = blob.create_snapshot()["snapshot"]
    blob.upload_blob(b"new", overwrite=True)
    equal(container.get_blob_client("snap", snapshot=taken).download_blob().readall(), b"old")
    listed = [b.snapshot for b in container.list_blobs("snap", include=["snapshots"])]
    equal(sorted(listed, key=str), sorted([None, taken], key=str))
    refused(blob.delete_blob, "SnapshotsPresent")
    blob.delete_blob(delete_snapshots="include")


def tags(container, service):
    """Set, get, condition, find."""
    mark = uuid.uuid4().hex
    blob = container.get_blob_client("tagged")
    blob.upload_blob(b"x", tags={"mark": mark, "kind": "a"})
    equal(blob.get_blob_tags(), {"mark": mark, "kind": "a"})
    blob.set_blob_tags({"mark": mark, "kind": "b"})
    refused(lambda: blob.download_blob(if_tags_match_condition="\"kind\"='a'"), "ConditionNotMet")
    # The service documents that its index follows a write with a short delay.
    found = wait_until(lambda: [b.name for b in service.find_blobs_by_tags(f"\"mark\"='{mark}'")], 10)
    equal(found, ["tagged"])
    equal([b.name for b in container.find_blobs_by_tags(f"\"mark\"='{mark}' AND \"kind\"='b'")], ["tagged"])


def leases(container):
    """All five actions on a blob and on the container."""
    container.upload_blob("leased", b"x")
    for client in (container.get_blob_client("leased"), container):
        lease = client.acquire_lease(lease_duration=15)
        refused(lambda held=client: held.acquire_lease(lease_duration=15), "LeaseAlreadyPresent")
        lease.renew()
        lease.change(str(uuid.uuid4()))
        lease.release()
        lease = client.acquire_lease()
        equal(lease.break_lease(lease_break_period=0), 0)
    lease = container.get_blob_client("leased").acquire_lease()
    refused(lambda: container.upload_blob("leased", b"y", overwrite=True), "LeaseIdMissing")
    container.upload_blob("leased", b"y", overwrite=True, lease=lease)
    lease.release()


def copies(container, source_url, data):
    """Copy, and the three ways to write from an address."""
    blob = container.get_blob_client("copied")
    blob.start_copy_from_url(source_url)
    state = lambda: blob.get_blob_properties().copy.status
    equal(wait_until(lambda: state() if state() != "pending" else None, 30), "success", "copy status:")
    equal(blob.download_blob().readall() == data, True, "copied bytes:")
    blob = container.get_blob_client("copied-now")
    blob.start_copy_from_url(source_url, requires_sync=True)
    equal(blob.download_blob().readall() == data, True, "bytes copied at once:")
    blob = container.get_blob_client("put-from")
    blob.upload_blob_from_url(source_url)
    equal(blob.download_blob().readall() == data, True, "bytes put from an address:")
    blob = container.get_blob_client("blocks-from")
    blob.stage_block_from_url("MQ==", source_url, source_offset=0, source_length=1000)
    blob.stage_block_from_url("Mg==", source_url, source_offset=1000, source_length=len(data) - 1000)
    blob.commit_block_list(["MQ==", "Mg=="])
    equal(blob.download_blob().readall() == data, True, "bytes of blocks from an address:")
    blob = container.get_blob_client("append-from")
    blob.create_append_blob()
    blob.append_block_from_url(source_url, source_offset=0, source_length=len(data))
    equal(blob.download_blob().readall() == data, True, "bytes appended from an address:")
    blob = container.get_blob_client("pages-from")
    blob.create_page_blob(4096)
    blob.upload_pages_from_url(source_url, 0, 4096, 0)
    equal(blob.download_blob().readall(), data[:4096])


def tiers(container):
    """Set, list, archive refuses reads, rehydrate."""
    blob = container.get_blob_client("tiered")
    blob.upload_blob(b"x", standard_blob_tier=StandardBlobTier.COOL)
    equal(blob.get_blob_properties().blob_tier, "Cool")
    blob.set_standard_blob_tier("Archive")
    refused(lambda: blob.download_blob(), "BlobArchived")
    blob.set_standard_blob_tier("Hot")


def batch(container):
    """Delete and set the tier of many."""
    names = [f"batch{n}" for n in range(8)]
    for name in names:
        container.upload_blob(name, b"x")
    container.set_standard_blob_tier_blobs("Cool", *names[:4])
    equal({b.blob_tier for b in container.list_blobs("batch") if b.name in names[:4]}, {"Cool"})
    container.delete_blobs(*names)
    equal(list(container.list_blobs("batch")), [])


def properties(service):
    """Service properties, account information, statistics."""
    service.set_service_properties(cors=[CorsRule(["*"], ["GET"], max_age_in_seconds=60)])
    equal([rule.allowed_origins for rule in service.get_service_properties()["cors"]], ["*"])
    service.set_service_properties(cors=[])
    equal(service.get_account_information()["account_kind"], "StorageV2")


def signed(account):
    """An account signature reads and writes."""
    service = BlobServiceClient(account.url, credential=accounts.sas(account))
    container = service.create_container(f"s{uuid.uuid4().hex[:8]}")
    container.upload_blob("b", b"signed")
    equal(container.download_blob("b").readall(), b"signed")
    equal([b.name for b in container.list_blobs()], ["b"])
    container.delete_container()


def main(options, scratch):
    judged = Judged("azure-storage-blob (Python)", importlib.metadata.version("azure-storage-blob"), options)
    with cli.server(options, scratch, extra=accounts.BOTH) as server:
        account, other = server.account, accounts.second(server)
        service = account.service()
        container = service.create_container(f"c{int(time.time())}")
        source = other.service().create_container("source")
        data = content("source", 70_144)
        source.upload_blob("dir/from + here%.bin", data)
        source_url = f"{source.get_blob_client('dir/from + here%.bin').url}?{accounts.sas(other)}"
        groups = [
            ("block blobs", lambda: blocks(container)), ("listing", lambda: listing(container)),
            ("append blobs", lambda: append(container)), ("page blobs", lambda: page(container)),
            ("snapshots", lambda: snapshots(container)), ("tags", lambda: tags(container, service)),
            ("leases", lambda: leases(container)), ("copy and from URL", lambda: copies(container, source_url, data)),
            ("tiers", lambda: tiers(container)), ("batch", lambda: batch(container)),
            ("service properties", lambda: properties(service)), ("SAS", lambda: signed(account)),
        ]
        for name, run in groups:
            with judged.group(name):
                run()
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))

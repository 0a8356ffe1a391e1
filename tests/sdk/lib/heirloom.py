"""Everything that a client can leave in a store: made, shown as facts, finished and changed.

A picture is a dictionary of facts. Two pictures of one store are equal if nothing was changed between them.
"""

import datetime
import threading
import time
import uuid

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    AccessPolicy, BlobBlock, BlobClient, BlobLeaseClient, BlobType, ContentSettings, CorsRule, StandardBlobTier, StaticWebsite,
    generate_container_sas,
)

from .content import content, sha256
from .source import Source

KIB, MIB = 1 << 10, 1 << 20
CONTAINER, PUBLIC, OTHER = "heirloom", "public", "of-every-account"
# In no picture: it changes until the server is killed.
UPLOADED = "uploaded"
# Sizes of bodies in rows, in shared appends, and in extents of their own. The last one takes
# several frames.
SIZES = (0, 1, 500, 4_000, 60_000, 900_000, 5 * MIB)
NAMES = ("plain", "with/slashes/and//two", "Größe und 東京", "a b+c%20d&e=f", "UPPER", "upper", "z" * 1_000)
# A customer-provided key. The SDK sends one over https only, so the headers are given by hand.
KEY = {"x-ms-encryption-key": "MDEyMzQ1NjcwMTIzNDU2NzAxMjM0NTY3MDEyMzQ1Njc=",
       "x-ms-encryption-key-sha256": "3QFFFpRA5+XANHqwwbT4yXDmrT/2JaLt/FKHjzhOdoE=", "x-ms-encryption-algorithm": "AES256"}
HEADERS = ContentSettings(content_type="text/x", content_encoding="identity", content_language="de",
                          content_disposition="inline", cache_control="no-cache")
BLOCK_LEASE, BREAKING = str(uuid.UUID(int=1)), str(uuid.UUID(int=2))
COPIED = content("copied from outside", 300_000)
MOMENT = datetime.datetime(2031, 1, 1, tzinfo=datetime.timezone.utc)
LOCK = "immutable_storage_with_versioning_enabled"


class Gate(Source):
    """A copy source that holds its body back until it is opened."""

    def __init__(self):
        super().__init__(len(COPIED), self._send)
        self._opened = threading.Event()

    def open(self):
        """Lets all bodies through."""
        self._opened.set()

    def _send(self, source, _path, write):
        while not source.closing.is_set() and not self._opened.wait(0.1):
            pass
        write(COPIED)


def make(all_accounts, source):
    """Writes it all into the accounts, a dictionary by what they are called here: `first`, and any others."""
    service = all_accounts["first"].service()
    container = service.create_container(CONTAINER, metadata={"made": "then"})
    service.create_container(PUBLIC, public_access="blob").upload_blob("shown", content("shown", 3_000))
    _blocks(container)
    _appends_and_pages(container)
    _beside(container)
    _begun(container, source)
    policy = AccessPolicy(permission="rl", expiry=MOMENT, start=MOMENT - datetime.timedelta(days=4000))
    container.set_container_access_policy({"readers": policy, "nobody": AccessPolicy(permission="d", expiry=MOMENT)})
    rule = CorsRule(["http://example.org"], ["GET", "PUT"], max_age_in_seconds=100)
    service.set_service_properties(cors=[rule], static_website=StaticWebsite(enabled=True, index_document="index.html"))
    service.get_container_client("$web").upload_blob("index.html", b"<p>then</p>")
    gone = service.create_container("gone")
    gone.upload_blob("with-it", content("gone", 70_000))
    gone.delete_container()
    service.create_container("leased").acquire_lease(lease_id=BREAKING)
    for which, account in all_accounts.items():
        other = account.service().create_container(OTHER)
        other.upload_blob("same name", content(which, 50_000), metadata={"of": which})


def _blocks(container):
    """Block blobs: of every size and name, of one Put Blob and of blocks, replaced and deleted."""
    for size in SIZES:
        container.upload_blob(f"size-{size}", content(size, size), metadata={"size": str(size)})
    for name in NAMES:
        container.upload_blob(name, content(name, 700), tags={"kind": "named", "length": str(len(name))})
    full = container.get_blob_client("everything")
    full.upload_blob(content("full", 20_000), content_settings=HEADERS, metadata={"a": "1", "B": "zwei"},
                     tags={"kind": "full", "of": "then"}, standard_blob_tier=StandardBlobTier.COOL)
    blocks = container.get_blob_client("blocks")
    _commit(blocks, [(f"block-{number}", 300_000 if number % 2 else 200) for number in range(7)])
    many = container.get_blob_client("many-blocks")
    _commit(many, [(f"many-{number:05}", 60) for number in range(1_200)])
    replaced = container.get_blob_client("replaced")
    for turn in range(3):
        replaced.upload_blob(content(("replaced", turn), 80_000), overwrite=True)
    container.upload_blob("deleted", content("deleted", 80_000))
    container.delete_blob("deleted")
    container.upload_blob("archived", content("archived", 9_000), standard_blob_tier=StandardBlobTier.ARCHIVE)
    container.upload_blob("with-a-key", content("key", 100_000), headers=KEY)


def _commit(blob, blocks):
    """Stages these blocks and commits them."""
    for name, size in blocks:
        blob.stage_block(name, content(name, size))
    blob.commit_block_list([BlobBlock(name) for name, _ in blocks])


def _appends_and_pages(container):
    """Append and page blobs."""
    log = container.get_blob_client("log")
    log.create_append_blob(metadata={"kind": "append"})
    for number in range(20):
        log.append_block(content(("log", number), 100 if number % 2 else 50_000))
    sealed = container.get_blob_client("sealed")
    sealed.create_append_blob()
    sealed.append_block(b"the end")
    sealed.seal_append_blob()
    disk = container.get_blob_client("disk")
    disk.create_page_blob(8 * MIB, sequence_number=7)
    for number in range(12):
        disk.upload_page(content(("page", number), 4 * KIB * (number + 1)), number * 128 * KIB, 4 * KIB * (number + 1))
    disk.clear_page(128 * KIB, 4 * KIB)
    disk.create_snapshot()
    disk.upload_page(content("after the snapshot", 64 * KIB), 0, 64 * KIB)
    disk.resize_blob(6 * MIB)


def _beside(container):
    """Snapshots, leases, copies within the store."""
    shot = container.get_blob_client("snapped")
    for turn in range(4):
        shot.upload_blob(content(("snapped", turn), 40_000 + turn), overwrite=True, metadata={"turn": str(turn)})
        shot.create_snapshot(metadata={"of": str(turn)} if turn % 2 else None)
    container.upload_blob("leased", content("leased", 1_000))
    container.get_blob_client("leased").acquire_lease(lease_id=BLOCK_LEASE)
    container.upload_blob("was-leased", b"1").acquire_lease(lease_id=BREAKING)
    BlobLeaseClient(container.get_blob_client("was-leased"), BREAKING).break_lease(0)
    for name in ("size-5242880", "blocks", "disk"):
        container.get_blob_client(f"copy-of-{name}").start_copy_from_url(container.get_blob_client(name).url)


def _begun(container, source):
    """What waits for its end: staged blocks, of a new blob and of an old one, and copies from outside."""
    for name in ("staged", "blocks"):
        for number in range(3):
            container.get_blob_client(name).stage_block(f"waits-{number}", content((name, "waits", number), 90_000))
    copy = container.get_blob_client("pending").start_copy_from_url(source.url("slow"), metadata={"from": "outside"})
    assert copy["copy_status"] == "pending", copy


def picture(all_accounts):
    """All facts of the accounts."""
    facts, first = {}, all_accounts["first"]
    for which, account in all_accounts.items():
        service = account.service()
        properties = service.get_service_properties()
        facts[which, "cors"] = [(rule.allowed_origins, rule.allowed_methods, rule.max_age_in_seconds)
                                for rule in properties["cors"]]
        facts[which, "website"] = vars(properties["static_website"])
        for shown in service.list_containers(include_metadata=True):
            if shown.name == UPLOADED:
                continue
            facts[which, shown.name] = _plain(shown)
            _container(facts, which, service.get_container_client(shown.name))
    facts["search"] = sorted((found.container_name, found.name)
                             for found in first.service().find_blobs_by_tags("\"kind\" >= ''"))
    facts["anonymous"] = _anonymous(f"{first.url}/{PUBLIC}/shown")
    facts["by the policy"] = _by_policy(first)
    return facts


def _container(facts, which, container):
    """The facts of one container."""
    policy = container.get_container_access_policy()
    facts[which, container.container_name, "policy"] = (
        policy["public_access"], [(one.id, vars(one.access_policy)) for one in policy["signed_identifiers"]])
    include = ["snapshots", "metadata", "uncommittedblobs", "copy", "tags", "deleted"]
    for shown in container.list_blobs(include=include):
        at = (which, container.container_name, shown.name, shown.snapshot)
        facts[(*at, "listed")] = _plain(shown)
        _blob(facts, at, container.get_blob_client(shown.name, snapshot=shown.snapshot))
    facts[which, container.container_name, "by prefix"] = [
        entry.name for entry in container.walk_blobs(delimiter="/")]


def _blob(facts, at, blob):
    """The facts of one blob: its properties, bytes and lists."""
    key = {"headers": KEY} if at[2] == "with-a-key" else {}
    try:
        properties = blob.get_blob_properties(**key)
    except HttpResponseError as error:
        # Only staged blocks.
        facts[(*at, "properties")] = error.error_code
        facts[(*at, "blocks")] = _blocks_of(blob)
        return
    facts[(*at, "properties")] = _plain(properties)
    try:
        body = blob.download_blob(**key).readall()
        facts[(*at, "bytes")] = (len(body), sha256(body))
    except HttpResponseError as error:
        facts[(*at, "bytes")] = error.error_code
    if not key and at[3] is None:
        facts[(*at, "tags")] = blob.get_blob_tags()
    if properties.blob_type == BlobType.BLOCKBLOB:
        facts[(*at, "blocks")] = _blocks_of(blob)
    elif properties.blob_type == BlobType.PAGEBLOB:
        facts[(*at, "pages")] = [(one.start, one.end, one.cleared) for one in blob.list_page_ranges()]


def _blocks_of(blob):
    """The committed and uncommitted blocks."""
    return [[(block.id, block.size) for block in blocks] for blocks in blob.get_block_list("all")]


def _plain(shown):
    """Properties as values that can be compared."""
    found = {}
    for name, value in dict(shown).items():
        nested = hasattr(value, "__dict__") and not isinstance(value, (str, bytes, datetime.datetime))
        found[name] = str(sorted(vars(value).items(), key=str)) if nested else str(value)
    # Releases before object lock do not say that there is none.
    if found.get(LOCK) == "None":
        found[LOCK] = "False"
    # Of the request, or of its moment.
    for name in ("request_id", "client_request_id", "date", "last_accessed_on", "version"):
        found.pop(name, None)
    return found


def _anonymous(url):
    """What an anonymous reader gets."""
    body = BlobClient.from_blob_url(url).download_blob().readall()
    return sha256(body)


def _by_policy(account):
    """What a signature of a stored policy may read, and what it may not."""
    signature = generate_container_sas(account.name, CONTAINER, account.key, policy_id="readers")
    blob = BlobClient.from_blob_url(f"{account.url}/{CONTAINER}/plain?{signature}", retry_total=0)
    body = sha256(blob.download_blob().readall())
    try:
        blob.upload_blob(b"not allowed", overwrite=True)
    except HttpResponseError as error:
        return body, error.error_code
    return body, "a reader may write"


def finish(account):
    """Completes the begun work. Returns the errors."""
    container, wrong = account.service().get_container_client(CONTAINER), []
    for name, before in (("staged", []), ("blocks", ["block-1", "block-3"])):
        blob = container.get_blob_client(name)
        waits = [f"waits-{number}" for number in range(3)]
        blob.commit_block_list([BlobBlock(block) for block in [*before, *waits]])
        wanted = b"".join(content(block, 300_000) for block in before)
        wanted += b"".join(content((name, "waits", number), 90_000) for number in range(3))
        if blob.download_blob().readall() != wanted:
            wrong.append(f"{name}: other bytes than were staged")
    pending, until = container.get_blob_client("pending"), time.monotonic() + 120
    while (state := pending.get_blob_properties().copy.status) == "pending" and time.monotonic() < until:
        time.sleep(0.2)
    if state != "success" or pending.download_blob().readall() != COPIED:
        wrong.append(f"the copy from outside: {state}")
    leased = container.get_blob_client("leased")
    wrong += _refused("a leased blob", "LeaseIdMissing", lambda: leased.upload_blob(b"no lease", overwrite=True))
    lease = BlobLeaseClient(leased, BLOCK_LEASE)
    lease.renew()
    leased.upload_blob(b"with the lease", overwrite=True, lease=lease)
    lease.release()
    holder = account.service().get_container_client("leased")
    wrong += _refused("a leased container", "LeaseIdMissing", holder.delete_container)
    holder.delete_container(lease=BREAKING)
    return wrong


def _refused(what, code, call):
    """Nothing if the call is refused with this code."""
    try:
        call()
    except HttpResponseError as error:
        return [] if error.error_code == code else [f"{what}: {error.error_code}"]
    return [f"{what}: was not refused"]


def change(all_accounts):
    """Writes to existing blobs of every kind, and new ones. Returns the errors."""
    first, wrong = all_accounts["first"], []
    container = first.service().get_container_client(CONTAINER)
    for name, size in (("size-500", 600), ("size-60000", 70_000), ("new", 2 * MIB), ("deleted", 10)):
        container.upload_blob(name, content(("now", name), size), overwrite=True, metadata={"made": "now"})
    container.get_blob_client("everything").set_blob_metadata({"a": "2"})
    container.get_blob_client("everything").set_blob_tags({"kind": "changed"})
    container.get_blob_client("plain").set_http_headers(HEADERS)
    container.get_blob_client("size-900000").set_standard_blob_tier("Cool")
    container.get_blob_client("archived").set_standard_blob_tier("Hot")
    log = container.get_blob_client("log")
    before = log.download_blob().readall()
    log.append_block(b"and now")
    if log.download_blob().readall() != before + b"and now":
        wrong.append("log: other bytes than before and now")
    wrong += _refused("a sealed blob", "BlobIsSealed", lambda: container.get_blob_client("sealed").append_block(b"x"))
    disk = container.get_blob_client("disk")
    disk.upload_page(content("now", 8 * KIB), 256 * KIB, 8 * KIB)
    shot = container.get_blob_client("snapped")
    shot.create_snapshot()
    shot.upload_blob(content("snapped now", 100), overwrite=True)
    snapshots = [one for one in container.list_blobs("snapped", include=["snapshots"]) if one.snapshot]
    container.get_blob_client("snapped", snapshot=snapshots[0].snapshot).delete_blob()
    if len(snapshots) != 5:
        wrong.append(f"{len(snapshots)} snapshots, not 5")
    copied = container.get_blob_client("copied-now")
    copied.start_copy_from_url(container.get_blob_client("many-blocks").url)
    if len(copied.get_block_list()[0]) != 1_200:
        wrong.append("a copy of a long list has other blocks")
    container.delete_blob("size-5242880")
    if container.download_blob("copy-of-size-5242880").readall() != content(5 * MIB, 5 * MIB):
        wrong.append("a copy lost bytes with its source")
    container.set_container_metadata({"made": "now"})
    first.service().create_container("gone").upload_blob("again", b"now")
    if [blob.name for blob in first.service().get_container_client("gone").list_blobs()] != ["again"]:
        wrong.append("a container of a deleted one's name shows its blobs")
    for account in all_accounts.values():
        account.service().get_container_client(OTHER).upload_blob("same name", b"now", overwrite=True)
    return wrong

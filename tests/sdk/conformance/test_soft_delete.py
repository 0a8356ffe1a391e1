"""Soft delete of blobs, with the Python SDK's own calls: deletion, lists, Undelete, permanent deletion."""

import base64
import datetime
import time
import uuid

import pytest
from azure.storage.blob import (BlobClient, BlobServiceClient, BlobType, ContainerClient, RetentionPolicy,
                                generate_blob_sas)
from conftest import block_id, refused
from lib import commands, s3
from lib.account import DEV_KEY, DEV_NAME, Account
from lib.server import Server
from lib.wire import Wire

NAME = "softly"
KEY = base64.b64encode(b"the key of an account that keeps").decode()
HOUR = datetime.timedelta(hours=1)
DAYS = 7


@pytest.fixture(scope="module")
def softly(server):
    """An account of its own whose blobs can be restored for a week."""
    commands.command(server, "account", "create", NAME, f"--key1={KEY}")
    account = Account(server.blob_address, NAME, KEY)
    turn(account, True)
    return account


def turn(account, on, **more):
    """Turns soft delete on or off."""
    policy = RetentionPolicy(True, DAYS, **more) if on else RetentionPolicy(False)
    account.service().set_service_properties(delete_retention_policy=policy)


@pytest.fixture
def kept(softly):
    """A container of that account."""
    turn(softly, True)
    return softly.service().create_container(f"c{uuid.uuid4().hex}")


@pytest.fixture
def blob(kept):
    """A blob client of a name that nothing is stored under."""
    return kept.get_blob_client("the-blob")


def listed(container, *include):
    """What a list shows of each entry: name, snapshot, whether it was deleted."""
    found = container.list_blobs(include=list(include))
    return [(b.name, bool(b.snapshot), bool(b.deleted)) for b in found]


def test_the_policy_is_shown(softly):
    policy = softly.service().get_service_properties()["delete_retention_policy"]
    assert (policy.enabled, policy.days) == (True, DAYS)


def test_a_deleted_blob_comes_back(kept, blob):
    blob.upload_blob(b"one", metadata={"a": "b"}, tags={"t": "u"})
    before = blob.get_blob_properties()
    blob.delete_blob()
    refused(blob.get_blob_properties, 404, "BlobNotFound")
    assert listed(kept) == []
    assert listed(kept, "deleted") == [("the-blob", False, True)]
    shown = next(kept.list_blobs(include=["deleted"]))
    assert (shown.remaining_retention_days, shown.size, shown.etag) == (DAYS - 1, 3, before.etag.strip('"'))
    now = datetime.datetime.now(datetime.timezone.utc)
    assert abs(now - shown.deleted_time) < datetime.timedelta(minutes=1)
    blob.undelete_blob()
    after = blob.get_blob_properties()
    assert (after.etag, after.last_modified, after.metadata) == (before.etag, before.last_modified, before.metadata)
    assert blob.download_blob().readall() == b"one"
    assert blob.get_blob_tags() == {"t": "u"}
    assert listed(kept, "deleted") == [("the-blob", False, False)]


def test_an_overwritten_blob_becomes_a_deleted_snapshot(kept, blob):
    blob.upload_blob(b"one")
    blob.upload_blob(b"two", overwrite=True)
    assert listed(kept, "deleted") == [("the-blob", False, False)]
    assert listed(kept, "deleted", "snapshots") == [("the-blob", True, True), ("the-blob", False, False)]
    gone = next(b for b in kept.list_blobs(include=["deleted", "snapshots"]) if b.deleted)
    old = kept.get_blob_client("the-blob", snapshot=gone.snapshot)
    refused(old.download_blob, 404, "BlobNotFound")
    blob.undelete_blob()
    assert (old.download_blob().readall(), blob.download_blob().readall()) == (b"one", b"two")
    assert listed(kept, "snapshots") == [("the-blob", True, False), ("the-blob", False, False)]
    blob.delete_blob(delete_snapshots="include")


def test_a_block_list_keeps_what_it_takes_over(blob):
    for number in range(3):
        blob.stage_block(block_id(number), b"%d" % number)
    blob.commit_block_list([block_id(0), block_id(1), block_id(2)])
    blob.stage_block(block_id(3), b"3")
    blob.commit_block_list([block_id(3), block_id(1)])
    blob.undelete_blob()
    container = ContainerClient.from_container_url(
        blob.url.rsplit("/", 1)[0], credential={"account_name": NAME, "account_key": KEY})
    (taken,) = [b.snapshot for b in container.list_blobs(include=["snapshots"]) if b.snapshot]
    assert container.get_blob_client("the-blob", snapshot=taken).download_blob().readall() == b"012"
    assert blob.download_blob().readall() == b"31"


def test_snapshots_come_back(kept, blob):
    blob.upload_blob(b"one")
    taken = blob.create_snapshot()["snapshot"]
    blob.upload_blob(b"two", overwrite=True)
    refused(blob.delete_blob, 409, "SnapshotsPresent")
    blob.delete_blob(delete_snapshots="include")
    assert listed(kept, "deleted", "snapshots") == [("the-blob", True, True)] * 2 + [("the-blob", False, True)]
    blob.undelete_blob()
    snapshot = kept.get_blob_client("the-blob", snapshot=taken)
    assert (snapshot.download_blob().readall(), blob.download_blob().readall()) == (b"one", b"two")
    snapshot.delete_blob()
    refused(snapshot.get_blob_properties, 404, "BlobNotFound")
    blob.undelete_blob()
    assert snapshot.download_blob().readall() == b"one"
    blob.delete_blob(delete_snapshots="only")
    assert listed(kept, "snapshots") == [("the-blob", False, False)]
    blob.delete_blob()


def test_a_later_blob_stays_current(kept, blob):
    blob.upload_blob(b"one")
    blob.delete_blob()
    blob.upload_blob(b"two")
    assert listed(kept, "deleted") == [("the-blob", False, False)]
    blob.undelete_blob()
    assert blob.download_blob().readall() == b"two"
    (taken,) = [b.snapshot for b in kept.list_blobs(include=["snapshots"]) if b.snapshot]
    assert kept.get_blob_client("the-blob", snapshot=taken).download_blob().readall() == b"one"


@pytest.mark.parametrize("kind", [BlobType.PAGEBLOB, BlobType.APPENDBLOB])
def test_other_kinds_come_back_and_can_be_written(blob, kind):
    if kind == BlobType.PAGEBLOB:
        blob.create_page_blob(1024)
        blob.upload_page(b"1" * 512, 0, 512)
    else:
        blob.create_append_blob()
        blob.append_block(b"1" * 512)
    blob.delete_blob()
    blob.undelete_blob()
    if kind == BlobType.PAGEBLOB:
        blob.upload_page(b"2" * 512, 512, 512)
    else:
        blob.append_block(b"2" * 512)
    assert blob.download_blob().readall() == b"1" * 512 + b"2" * 512


def test_a_lease_does_not_keep_snapshots_from_coming_back(kept, blob):
    blob.upload_blob(b"1")
    taken = blob.create_snapshot()["snapshot"]
    lease = blob.acquire_lease()
    kept.get_blob_client("the-blob", snapshot=taken).delete_blob()
    blob.undelete_blob()
    assert kept.get_blob_client("the-blob", snapshot=taken).download_blob().readall() == b"1"
    lease.release()


def test_undelete_of_what_is_not_deleted(blob):
    refused(blob.undelete_blob, 404, "BlobNotFound")
    blob.upload_blob(b"1")
    blob.undelete_blob()
    assert blob.download_blob().readall() == b"1"


def test_the_answer_tells_whether_it_can_be_restored(softly, kept):
    wire = Wire(softly)
    def delete():
        answer = wire.request("DELETE", f"/{kept.container_name}/b")
        assert answer.status == 202
        return answer.headers["x-ms-delete-type-permanent"]
    client = kept.get_blob_client("b")
    client.upload_blob(b"1")
    assert delete() == "false"
    turn(softly, False)
    client.upload_blob(b"1")
    assert delete() == "true"
    client.undelete_blob()
    wire.close()


def test_permanent_deletion(softly, kept, blob):
    blob.upload_blob(b"one")
    taken = blob.create_snapshot()["snapshot"]
    snapshot = kept.get_blob_client("the-blob", snapshot=taken)
    snapshot.delete_blob()
    end = lambda: snapshot.delete_blob(params={"deletetype": "permanent"})
    refused(end, 409, "FeatureNotSupportedForAccount")
    turn_permanent(softly)
    snapshot_url = snapshot.url
    def sign(permission):
        token = generate_blob_sas(NAME, kept.container_name, "the-blob", snapshot=taken, account_key=KEY,
                                  permission=permission, expiry=datetime.datetime.now(datetime.timezone.utc) + HOUR)
        return BlobClient.from_blob_url(f"{snapshot_url}&{token}")
    refused(lambda: sign("d").delete_blob(params={"deletetype": "permanent"}), 403, "AuthorizationPermissionMismatch")
    sign("y").delete_blob(params={"deletetype": "permanent"})
    blob.undelete_blob()
    refused(snapshot.get_blob_properties, 404, "BlobNotFound")
    refused(end, 404, "BlobNotFound")
    taken = blob.create_snapshot()["snapshot"]
    live = kept.get_blob_client("the-blob", snapshot=taken)
    refused(lambda: live.delete_blob(params={"deletetype": "permanent"}), 409, "BlobSnapshotNotSoftDeleted")
    refused(lambda: blob.delete_blob(params={"deletetype": "permanent"}), 409, "BlobSnapshotNotSoftDeleted")


def turn_permanent(account):
    """Allows permanent deletion."""
    body = (f"<StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>{DAYS}</Days>"
            "<AllowPermanentDelete>true</AllowPermanentDelete></DeleteRetentionPolicy></StorageServiceProperties>")
    wire = Wire(account)
    query = {"restype": "service", "comp": "properties"}
    answer = wire.request("PUT", "/", query, body=body.encode())
    assert answer.status == 202
    shown = wire.request("GET", "/", query).body
    assert b"<AllowPermanentDelete>true</AllowPermanentDelete>" in shown
    wire.close()


def test_versions_and_soft_delete(softly, kept, blob):
    s3.client(softly).put_bucket_versioning(Bucket=kept.container_name, VersioningConfiguration={"Status": "Enabled"})
    first = blob.upload_blob(b"one")["version_id"]
    second = blob.upload_blob(b"two", overwrite=True)["version_id"]
    assert listed(kept, "deleted", "snapshots") == [("the-blob", False, False)]
    version = kept.get_blob_client("the-blob", version_id=first)
    version.delete_blob()
    refused(version.get_blob_properties, 404, "BlobNotFound")
    found = [(b.version_id, bool(b.deleted)) for b in kept.list_blobs(include=["versions", "deleted"])]
    assert found == [(first, True), (second, False)]
    blob.delete_blob()
    assert listed(kept, "deleted") == []
    only = list(kept.list_blobs(include=["deletedwithversions"]))
    assert [(b.name, b.has_versions_only, b.version_id) for b in only] == [("the-blob", True, None)]
    blob.undelete_blob()
    assert version.download_blob().readall() == b"one"
    refused(blob.get_blob_properties, 404, "BlobNotFound")
    assert [b.version_id for b in kept.list_blobs(include=["versions"])] == [first, second]


def test_s3_obeys_and_shows_nothing(softly, kept):
    client = s3.client(softly)
    bucket = kept.container_name
    client.put_object(Bucket=bucket, Key="k", Body=b"one")
    client.put_object(Bucket=bucket, Key="k", Body=b"two")
    client.delete_object(Bucket=bucket, Key="k")
    client.put_object(Bucket=bucket, Key="l", Body=b"l")
    client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "l"}]})
    assert "Contents" not in client.list_objects_v2(Bucket=bucket)
    shown = client.list_object_versions(Bucket=bucket)
    assert "Versions" not in shown and "DeleteMarkers" not in shown
    kept.get_blob_client("k").undelete_blob()
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"two"
    kept.get_blob_client("k").delete_blob(delete_snapshots="include")
    client.delete_bucket(Bucket=bucket)


def test_pages_go_on_among_deleted_rows(kept):
    for name in ("a", "b", "c"):
        blob = kept.get_blob_client(name)
        for data in (b"1", b"2", b"3"):
            blob.upload_blob(data, overwrite=True)
        if name != "b":
            blob.delete_blob()
    include = ["deleted", "snapshots"]
    whole = [(b.name, b.snapshot, bool(b.deleted)) for b in kept.list_blobs(include=include)]
    assert [(name, deleted) for name, _, deleted in whole] == [("a", True)] * 3 + [("b", True)] * 2 + [("b", False)] + [("c", True)] * 3
    for size in (1, 2, 4):
        pages = kept.list_blobs(include=include, results_per_page=size).by_page()
        assert [(b.name, b.snapshot, bool(b.deleted)) for page in pages for b in page] == whole


@pytest.fixture
def kept_containers(server, softly):
    """The account, whose containers can be restored for five days."""
    commands.command(server, "account", "set", NAME, "--container-retention=5")
    yield softly.service()
    commands.command(server, "account", "set", NAME, "--container-retention=0")


def containers(service, name):
    """What a list shows of each container of a name: whether it was deleted."""
    return [c for c in service.list_containers(name_starts_with=name, include_deleted=True) if c.name == name]


def test_a_deleted_container_comes_back(kept_containers):
    service, name = kept_containers, f"c{uuid.uuid4().hex}"
    container = service.create_container(name, metadata={"a": "b"})
    key = f"k{uuid.uuid4().hex}"
    container.upload_blob("b", b"1", tags={key: "v"})
    find = lambda: [b.name for b in service.find_blobs_by_tags(f"{key} = 'v'")]
    assert find() == ["b"]
    container.delete_container()
    assert find() == []
    refused(container.get_container_properties, 404, "ContainerNotFound")
    refused(lambda: container.get_blob_client("b").download_blob(), 404, "ContainerNotFound")
    assert not [c for c in service.list_containers(name_starts_with=name)]
    (gone,) = containers(service, name)
    assert (gone.deleted, len(gone.version)) == (True, 16)
    again = service.create_container(name)
    refused(lambda: service.undelete_container(name, gone.version), 409, "ContainerAlreadyExists")
    again.delete_container()
    first, second = containers(service, name)
    assert (first.version, second.deleted) == (gone.version, True) and first.version < second.version
    back = service.undelete_container(name, gone.version)
    assert back.get_container_properties().metadata == {"a": "b"}
    assert back.get_blob_client("b").download_blob().readall() == b"1"
    assert find() == ["b"]
    assert [c.deleted for c in containers(service, name)] == [True, None]
    refused(lambda: service.undelete_container(name, second.version), 409, "ContainerAlreadyExists")


def test_a_container_comes_back_under_another_name(softly, kept_containers):
    service, name = kept_containers, f"c{uuid.uuid4().hex}"
    client = s3.client(softly)
    client.create_bucket(Bucket=name)
    client.put_bucket_tagging(Bucket=name, Tagging={"TagSet": [{"Key": "k", "Value": "v"}]})
    client.delete_bucket(Bucket=name)
    (gone,) = containers(service, name)
    wire = Wire(softly)
    headers = {"x-ms-deleted-container-name": name, "x-ms-deleted-container-version": gone.version}
    query = {"restype": "container", "comp": "undelete"}
    answer = wire.request("PUT", f"/{name}-new", query, headers)
    assert answer.status == 201
    assert client.get_bucket_tagging(Bucket=f"{name}-new")["TagSet"] == [{"Key": "k", "Value": "v"}]
    wrong = wire.request("PUT", f"/{name}", query, {**headers, "x-ms-deleted-container-version": "yesterday"})
    assert (wrong.status, wrong.headers["x-ms-error-code"]) == (400, "InvalidHeaderValue")
    wire.close()
    client.delete_bucket(Bucket=f"{name}-new")


def test_an_account_goes_with_its_deleted_containers(server):
    name = f"gone{uuid.uuid4().hex[:8]}"
    commands.command(server, "account", "create", name, f"--key1={KEY}")
    commands.command(server, "account", "set", name, "--container-retention=5")
    service = Account(server.blob_address, name, KEY).service()
    service.create_container("con").delete_container()
    assert "such as con" in commands.refused(server, "account", "delete", name)
    commands.command(server, "account", "delete", name, "--force")


def test_the_days_end(request, tmp_path):
    """A day of two seconds: soft-deleted blobs expire after it."""
    extra = [f"--account={DEV_NAME}:{DEV_KEY}", "--retention-day=2"]
    with Server(request.config.getoption("--binary"), [tmp_path / "data"], tmp_path / "log", extra) as server:
        server.start()
        service = server.account.service()
        service.set_service_properties(delete_retention_policy=RetentionPolicy(True, 1))
        container = service.create_container("con")
        blob = container.get_blob_client("b")
        blob.upload_blob(b"1")
        blob.delete_blob()
        assert listed(container, "deleted") == [("b", False, True)]
        deadline = time.monotonic() + 30
        while listed(container, "deleted"):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        refused(blob.undelete_blob, 404, "BlobNotFound")
        assert server.stop() == 0

"""Versions of blobs, with the Python SDK. S3 turns them on for a container."""

import datetime
import subprocess
import uuid

import pytest
from azure.storage.blob import BlobBlock, BlobClient, BlobType, StandardBlobTier, generate_blob_sas
from conftest import block_id, refused
from lib import s3

HOUR = datetime.timedelta(hours=1)


@pytest.fixture
def kept(account, container):
    """A container that keeps versions."""
    set_versions(account, container, "Enabled")
    return container


def set_versions(account, container, state):
    """Turns versions on or off."""
    s3.client(account).put_bucket_versioning(Bucket=container.container_name,
                                             VersioningConfiguration={"Status": state})


def versions(container, **more):
    """Name, id and content of all versions in a list, and whether each is current."""
    found = container.list_blobs(include=["versions"], **more)
    return [(b.name, b.version_id, bool(b.is_current_version)) for b in found]


def of(container, version, name="the-blob"):
    """A client of a version."""
    return container.get_blob_client(name, version_id=version)


def put(container, data, name="the-blob", **more):
    """Puts a blob. Returns the id of the version."""
    return container.get_blob_client(name).upload_blob(data, overwrite=True, **more)["version_id"]


def test_a_container_without_versions_shows_none(container):
    answer = container.get_blob_client("b").upload_blob(b"1")
    assert answer.get("version_id") is None
    found = container.get_blob_client("b").get_blob_properties()
    assert (found.version_id, found.is_current_version) == (None, None)
    assert [name for name, _, _ in versions(container)] == ["b"]


def test_an_overwritten_blob_stays(kept):
    ids = [put(kept, data) for data in (b"one", b"two", b"three")]
    assert ids == sorted(set(ids))
    assert versions(kept) == [("the-blob", ids[0], False), ("the-blob", ids[1], False), ("the-blob", ids[2], True)]
    for version, data in zip(ids, (b"one", b"two", b"three")):
        blob = of(kept, version)
        assert blob.download_blob().readall() == data
        found = blob.get_blob_properties()
        assert (found.version_id, found.size) == (version, len(data))
        assert bool(found.is_current_version) == (version == ids[2])
    current = kept.get_blob_client("the-blob")
    assert current.download_blob().readall() == b"three"
    assert current.get_blob_properties().is_current_version
    assert [b.name for b in kept.list_blobs()] == ["the-blob"]


def test_ranges_of_a_version(kept):
    first = put(kept, b"0123456789" * 1000)
    put(kept, b"x")
    assert of(kept, first).download_blob(offset=9_995, length=5).readall() == b"56789"


def test_a_deleted_blob_stays_as_a_version(kept):
    first = put(kept, b"one")
    blob = kept.get_blob_client("the-blob")
    blob.delete_blob()
    refused(blob.download_blob, 404, "BlobNotFound")
    refused(blob.delete_blob, 404, "BlobNotFound")
    assert list(kept.list_blobs()) == []
    assert versions(kept) == [("the-blob", first, False)]
    assert of(kept, first).download_blob().readall() == b"one"
    again = put(kept, b"again")
    assert versions(kept) == [("the-blob", first, False), ("the-blob", again, True)]


def test_a_version_is_deleted_for_ever(kept):
    first, second = put(kept, b"one"), put(kept, b"two")
    refused(of(kept, second).delete_blob, 403, "OperationNotAllowedOnRootBlob")
    of(kept, first).delete_blob()
    assert of(kept, first).exists() is False
    refused(of(kept, first).download_blob, 404, "BlobNotFound")
    refused(of(kept, first).delete_blob, 404, "BlobNotFound")
    assert versions(kept) == [("the-blob", second, True)]


def test_metadata_makes_a_version_and_properties_do_not(kept):
    first = put(kept, b"one", metadata={"a": "1"})
    blob = kept.get_blob_client("the-blob")
    second = blob.set_blob_metadata({"a": "2"})["version_id"]
    assert second > first
    blob.set_http_headers()
    assert blob.get_blob_properties().version_id == second
    assert of(kept, first).get_blob_properties().metadata == {"a": "1"}
    assert of(kept, first).download_blob().readall() == b"one"
    assert blob.get_blob_properties().metadata == {"a": "2"}


def test_a_snapshot_makes_a_version(kept):
    first = put(kept, b"one")
    blob = kept.get_blob_client("the-blob")
    blob.create_snapshot()
    assert blob.get_blob_properties().version_id > first
    found = list(kept.list_blobs(include=["versions", "snapshots"]))
    assert len(found) == 3
    refused(blob.delete_blob, 409, "SnapshotsPresent")
    blob.delete_blob(delete_snapshots="include")
    assert len(versions(kept)) == 2


def test_blocks_of_versions(kept):
    blob = kept.get_blob_client("the-blob")
    for number in range(100):
        blob.stage_block(block_id(number), bytes([number]) * 3000)
    first = blob.commit_block_list([BlobBlock(block_id(number)) for number in range(100)])["version_id"]
    blob.commit_block_list([BlobBlock(block_id(7))])
    blob.commit_block_list([BlobBlock(block_id(7)), BlobBlock(block_id(7))])
    whole = b"".join(bytes([number]) * 3000 for number in range(100))
    assert of(kept, first).download_blob().readall() == whole
    assert blob.download_blob().readall() == bytes([7]) * 6000
    assert len(versions(kept)) == 3


def test_appends_and_pages_change_the_current_version(kept):
    appended = kept.get_blob_client("appended")
    made = appended.create_append_blob()["version_id"]
    appended.append_block(b"one")
    assert appended.get_blob_properties().version_id == made
    appended.set_blob_metadata({"k": "v"})
    appended.append_block(b"two")
    assert of(kept, made, "appended").download_blob().readall() == b"one"
    assert appended.download_blob().readall() == b"onetwo"
    pages = kept.get_blob_client("pages")
    made = pages.create_page_blob(1024)["version_id"]
    pages.upload_page(b"1" * 512, 0, 512)
    pages.set_blob_metadata({"k": "v"})
    pages.upload_page(b"2" * 512, 0, 512)
    assert of(kept, made, "pages").download_blob().readall() == b"1" * 512 + bytes(512)
    assert pages.download_blob().readall() == b"2" * 512 + bytes(512)


def test_tags_of_a_version(kept):
    first = put(kept, b"one", tags={"k": "1"})
    put(kept, b"two", tags={"k": "2"})
    old = of(kept, first)
    assert old.get_blob_tags() == {"k": "1"}
    old.set_blob_tags({"k": "3"})
    assert old.get_blob_tags() == {"k": "3"}
    assert kept.get_blob_client("the-blob").get_blob_tags() == {"k": "2"}


def test_tier_of_a_version(kept):
    first = put(kept, b"one")
    put(kept, b"two")
    of(kept, first).set_standard_blob_tier(StandardBlobTier.COOL)
    assert of(kept, first).get_blob_properties().blob_tier == "Cool"
    assert kept.get_blob_client("the-blob").get_blob_properties().blob_tier == "Hot"


def test_a_version_is_the_source_of_a_copy(account, kept):
    first = put(kept, b"one")
    put(kept, b"two")
    blob = kept.get_blob_client("the-blob")
    blob.start_copy_from_url(f"{blob.url}?versionid={first}")
    assert blob.download_blob().readall() == b"one"
    assert len(versions(kept)) == 3


@pytest.mark.parametrize("name", ["", "x", "2020-13-01T00:00:00.0000000Z", "null"])
def test_a_malformed_version_is_refused(kept, wire, name):
    put(kept, b"one")
    answer = wire.request("GET", f"/{kept.container_name}/the-blob", {"versionid": name})
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")


def test_a_version_that_does_not_exist(kept):
    put(kept, b"one")
    refused(of(kept, "2020-01-01T00:00:00.0000000Z").download_blob, 404, "BlobNotFound")


@pytest.mark.parametrize("size", [1, 2, 3])
def test_versions_in_pages(kept, size):
    expected = []
    for name in ("a", "b"):
        ids = [put(kept, bytes([number]), name) for number in range(4)]
        expected += [(name, version, version == ids[-1]) for version in ids]
    pages = kept.list_blobs(include=["versions"], results_per_page=size).by_page()
    found = [(b.name, b.version_id, bool(b.is_current_version)) for page in pages for b in page]
    assert found == expected


def test_versions_stay_when_they_are_suspended(account, kept):
    first = put(kept, b"one")
    set_versions(account, kept, "Suspended")
    assert put(kept, b"two") is None
    assert put(kept, b"three") is None
    assert of(kept, first).download_blob().readall() == b"one"
    assert len(versions(kept)) == 2
    assert kept.get_blob_client("the-blob").download_blob().readall() == b"three"


def signed(account, container, version, permission):
    """A client with a signature of one version."""
    made = generate_blob_sas(account.name, container.container_name, "the-blob", account_key=account.key,
                             permission=permission, version_id=version,
                             expiry=datetime.datetime.now(datetime.timezone.utc) + HOUR)
    return BlobClient(account.url, container.container_name, "the-blob", credential=made, version_id=version,
                      retry_total=0)


def test_signature_of_a_version(account, kept):
    first, second = put(kept, b"one"), put(kept, b"two")
    assert signed(account, kept, first, "r").download_blob().readall() == b"one"
    refused(signed(account, kept, first, "rd").delete_blob, 403, "AuthorizationPermissionMismatch")
    signed(account, kept, first, "x").delete_blob()
    assert versions(kept) == [("the-blob", second, True)]


def test_a_page_blob_is_an_upload_too(kept):
    blob = kept.get_blob_client("the-blob")
    blob.upload_blob(b"1" * 512, blob_type=BlobType.PAGEBLOB)
    first = blob.get_blob_properties().version_id
    put(kept, b"2", blob_type=BlobType.BLOCKBLOB)
    assert of(kept, first).download_blob().readall() == b"1" * 512


def set_account(server, name, state):
    """Turns versions of an account on or off."""
    subprocess.run([server.binary, "account", "set", name, f"--versioning={state}", "--admin-listen",
                    server.admin_address, "--data", server.data[0]], check=True, capture_output=True, timeout=60)


def test_an_account_keeps_versions(server, two_keys):
    account = two_keys[0]
    container = account.service().create_container(f"c{uuid.uuid4().hex}")
    blob = container.get_blob_client("the-blob")
    assert put(container, b"before") is None
    try:
        set_account(server, account.name, "on")
        first = put(container, b"one")
        second = put(container, b"two")
        assert (of(container, first).download_blob().readall(), blob.download_blob().readall()) == (b"one", b"two")
        assert [current for _, _, current in versions(container)] == [False, False, True]
        assert s3.client(account).get_bucket_versioning(Bucket=container.container_name).get("Status") is None
        set_account(server, account.name, "off")
        assert put(container, b"three") is None
        assert of(container, second).download_blob().readall() == b"two"
        set_versions(account, container, "Enabled")
        assert put(container, b"four") is not None
    finally:
        set_account(server, account.name, "off")
        container.delete_container()

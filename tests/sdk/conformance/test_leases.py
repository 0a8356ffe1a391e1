"""Leases on blobs and containers: the five actions, and what a lease prevents."""

import time
import uuid

import pytest
from azure.storage.blob import BlobLeaseClient
from conftest import refused


def test_holder_writes_others_do_not(blob):
    blob.upload_blob(b"1")
    lease = blob.acquire_lease(15)
    found = blob.get_blob_properties()
    assert (found.lease.status, found.lease.state, found.lease.duration) == ("locked", "leased", "fixed")
    refused(lambda: blob.upload_blob(b"2", overwrite=True), 412, "LeaseIdMissing")
    refused(lambda: blob.set_blob_metadata({"a": "b"}), 412, "LeaseIdMissing")
    refused(lambda: blob.stage_block("YQ==", b"x"), 412, "LeaseIdMissing")
    refused(blob.delete_blob, 412, "LeaseIdMissing")
    other = str(uuid.uuid4())
    refused(lambda: blob.delete_blob(lease=other), 412, "LeaseIdMismatchWithBlobOperation")
    refused(lambda: blob.get_blob_properties(lease=other), 412, "LeaseIdMismatchWithBlobOperation")
    assert blob.download_blob(lease=lease).readall() == b"1"
    blob.upload_blob(b"2", overwrite=True, lease=lease)
    assert blob.get_blob_properties().lease.state == "leased"
    blob.delete_blob(lease=lease)


def test_tag_and_time_stay(blob):
    blob.upload_blob(b"1")
    before = blob.get_blob_properties()
    lease = blob.acquire_lease(-1)
    assert lease.etag == before.etag
    lease.renew()
    lease.change(str(uuid.uuid4()))
    lease.release()
    after = blob.get_blob_properties()
    assert (after.etag, after.last_modified) == (before.etag, before.last_modified)
    assert (after.lease.status, after.lease.state, after.lease.duration) == ("unlocked", "available", None)


def test_actions_on_others_leases(blob):
    blob.upload_blob(b"1")
    lease = blob.acquire_lease(-1)
    refused(lambda: blob.acquire_lease(15), 409, "LeaseAlreadyPresent")
    stranger = BlobLeaseClient(blob, str(uuid.uuid4()))
    refused(stranger.renew, 409, "LeaseIdMismatchWithLeaseOperation")
    refused(stranger.release, 409, "LeaseIdMismatchWithLeaseOperation")
    refused(lambda: stranger.change(str(uuid.uuid4())), 409, "LeaseIdMismatchWithLeaseOperation")
    assert blob.acquire_lease(20, lease_id=lease.id).id == lease.id
    held = lease.id
    lease.release()
    refused(BlobLeaseClient(blob, held).renew, 409, "LeaseNotPresentWithLeaseOperation")
    refused(lambda: blob.upload_blob(b"2", overwrite=True, lease=held), 412, "LeaseNotPresentWithBlobOperation")


def test_break(blob):
    blob.upload_blob(b"1")
    lease = blob.acquire_lease(-1)
    assert lease.break_lease(lease_break_period=5) in (4, 5)
    assert blob.get_blob_properties().lease.state == "breaking"
    refused(lambda: blob.acquire_lease(15, lease_id=lease.id), 409, "LeaseIsBreakingAndCannotBeAcquired")
    refused(lease.renew, 409, "LeaseIsBrokenAndCannotBeRenewed")
    refused(lambda: lease.change(str(uuid.uuid4())), 409, "LeaseIsBreakingAndCannotBeChanged")
    assert lease.break_lease(lease_break_period=0) == 0
    assert blob.get_blob_properties().lease.state == "broken"
    refused(lambda: blob.set_blob_metadata({}, lease=lease), 412, "LeaseLost")
    blob.set_blob_metadata({})
    assert blob.get_blob_properties().lease.state == "available"


def test_expiry(blob):
    blob.upload_blob(b"1")
    lease = blob.acquire_lease(15)
    deadline = time.monotonic() + 60
    while blob.get_blob_properties().lease.state != "expired" and time.monotonic() < deadline:
        time.sleep(0.5)
    refused(lambda: blob.set_blob_metadata({}, lease=lease), 412, "LeaseLost")
    lease.renew()
    assert blob.get_blob_properties().lease.state == "leased"


@pytest.mark.parametrize("duration", [14, 61, 0, -2])
def test_durations_have_limits(blob, duration):
    blob.upload_blob(b"1")
    refused(lambda: blob.acquire_lease(duration), 400, "InvalidHeaderValue")


def test_container_lease_guards_deletion_alone(container):
    lease = container.acquire_lease(-1)
    found = container.get_container_properties()
    assert (found.lease.status, found.lease.state, found.lease.duration) == ("locked", "leased", "infinite")
    container.set_container_metadata({"a": "b"})
    container.upload_blob("x", b"1")
    refused(container.delete_container, 412, "LeaseIdMissing")
    other = str(uuid.uuid4())
    refused(lambda: container.delete_container(lease=other), 412, "LeaseIdMismatchWithContainerOperation")
    refused(lambda: container.get_container_properties(lease=other), 412, "LeaseIdMismatchWithContainerOperation")
    assert lease.break_lease() == 0
    lease = container.acquire_lease(15)
    container.delete_container(lease=lease)

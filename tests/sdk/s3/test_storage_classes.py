"""Storage classes of objects, and restores of archived ones."""

import time

import pytest
from azure.storage.blob import StandardBlobTier

from conftest import outcome

CONTENT = b"0123456789"
CLASSES = {"STANDARD": "Hot", "REDUCED_REDUNDANCY": "Hot", "INTELLIGENT_TIERING": "Smart", "STANDARD_IA": "Cool",
           "ONEZONE_IA": "Cool", "GLACIER_IR": "Cold", "GLACIER": "Archive", "DEEP_ARCHIVE": "Archive"}


@pytest.mark.parametrize("name", CLASSES)
def test_a_storage_class_is_a_tier(client, service, bucket, name):
    client.put_object(Bucket=bucket, Key="k", Body=CONTENT, StorageClass=name)
    assert client.head_object(Bucket=bucket, Key="k").get("StorageClass", "STANDARD") == name
    assert service.get_blob_client(bucket, "k").get_blob_properties().blob_tier == CLASSES[name]
    assert client.list_objects_v2(Bucket=bucket)["Contents"][0]["StorageClass"] == name


@pytest.mark.parametrize("tier, name", [("Hot", "STANDARD"), ("Cool", "STANDARD_IA"), ("Cold", "GLACIER_IR"), ("Archive", "GLACIER")])
def test_a_tier_is_a_storage_class(client, service, raw, bucket, tier, name):
    assert raw.call("PUT", f"/{bucket}/k", headers={"x-amz-storage-class": tier}, body=CONTENT).status == 200
    assert client.head_object(Bucket=bucket, Key="k").get("StorageClass", "STANDARD") == name
    service.get_blob_client(bucket, "b").upload_blob(CONTENT, standard_blob_tier=StandardBlobTier(tier))
    assert client.head_object(Bucket=bucket, Key="b").get("StorageClass", "STANDARD") == name


@pytest.mark.parametrize("name", ["SNOW", "OUTPOSTS", "standard", "EXPRESS_ONEZONE", "P4", "x"])
def test_an_unknown_class_is_refused(raw, bucket, name):
    answer = raw.call("PUT", f"/{bucket}/k", headers={"x-amz-storage-class": name}, body=CONTENT)
    assert outcome(answer) == (400, "InvalidStorageClass")


def restore(raw, path, inner="<Days>1</Days>", body=None):
    """Status and code of a restore."""
    body = f"<RestoreRequest>{inner}</RestoreRequest>".encode() if body is None else body
    answer = raw.call("POST", path, [("restore", "")], body=body)
    return answer.status, answer.code()


@pytest.mark.parametrize("name", ["GLACIER", "DEEP_ARCHIVE"])
def test_an_archived_object_is_read_after_its_restore(client, raw, bucket, name):
    path = f"/{bucket}/k"
    client.put_object(Bucket=bucket, Key="k", Body=CONTENT, StorageClass=name)
    answer = raw.call("GET", path)
    assert outcome(answer) == (403, "InvalidObjectState") and answer.text("StorageClass") == name
    assert raw.call("HEAD", path).status == 200
    assert restore(raw, path) == (202, None)
    assert client.head_object(Bucket=bucket, Key="k")["Restore"] == 'ongoing-request="true"'
    assert restore(raw, path) == (409, "RestoreAlreadyInProgress")
    assert restore(raw, path, "<Days>1</Days><Tier>Bulk</Tier>") == (409, "RestoreAlreadyInProgress")
    faster = "<Days>1</Days><GlacierJobParameters><Tier>Expedited</Tier></GlacierJobParameters>"
    assert restore(raw, path, faster) == (202, None)
    assert restore(raw, path, faster) == (409, "RestoreAlreadyInProgress")
    answer = raw.call("GET", path)
    assert outcome(answer) == (403, "InvalidObjectState") or answer.body == CONTENT
    for _ in range(200):
        if client.head_object(Bucket=bucket, Key="k")["Restore"].startswith('ongoing-request="false"'):
            break
        time.sleep(0.1)
    assert raw.call("GET", path).body == CONTENT
    assert restore(raw, path) == (200, None)


@pytest.mark.parametrize("name", ["STANDARD", "STANDARD_IA", "GLACIER_IR", "INTELLIGENT_TIERING"])
def test_what_is_not_archived_is_not_restored(client, raw, bucket, name):
    client.put_object(Bucket=bucket, Key="k", Body=CONTENT, StorageClass=name)
    assert restore(raw, f"/{bucket}/k") == (403, "InvalidObjectState")
    assert restore(raw, f"/{bucket}/missing") == (404, "NoSuchKey")


@pytest.mark.parametrize("body, expected", [
    (b"", (400, "MalformedXML")), (b"x", (400, "MalformedXML")), (b"<Other/>", (400, "MalformedXML")),
    (b"<RestoreRequest/>", (400, "MalformedXML")),
    (b"<RestoreRequest><Days>x</Days></RestoreRequest>", (400, "MalformedXML")),
    (b"<RestoreRequest><Days/></RestoreRequest>", (400, "MalformedXML")),
    (b"<RestoreRequest><Days>0</Days></RestoreRequest>", (400, "InvalidArgument")),
    (b"<RestoreRequest><Days>-1</Days></RestoreRequest>", (400, "InvalidArgument")),
    (b"<RestoreRequest><Days>1</Days><Tier>Fast</Tier></RestoreRequest>", (400, "MalformedXML")),
    (b"<RestoreRequest><Days>1</Days><Days>1</Days></RestoreRequest>", (400, "MalformedXML")),
    (b"<RestoreRequest><Days>1</Days><GlacierJobParameters/></RestoreRequest>", (400, "MalformedXML")),
    (b"<RestoreRequest><Type>SELECT</Type></RestoreRequest>", (501, "NotImplemented")),
    (b"<RestoreRequest><Days>1</Days><OutputLocation/></RestoreRequest>", (501, "NotImplemented")),
])
def test_a_malformed_restore_is_refused(client, raw, bucket, body, expected):
    client.put_object(Bucket=bucket, Key="k", Body=CONTENT, StorageClass="GLACIER")
    assert restore(raw, f"/{bucket}/k", body=body) == expected
    assert "Restore" not in client.head_object(Bucket=bucket, Key="k")


def test_an_archived_object_is_replaced_and_deleted(client, raw, bucket):
    for key in ("a", "b"):
        client.put_object(Bucket=bucket, Key=key, Body=CONTENT, StorageClass="GLACIER")
    client.put_object(Bucket=bucket, Key="a", Body=b"new")
    assert raw.call("GET", f"/{bucket}/a").body == b"new"
    assert raw.call("DELETE", f"/{bucket}/b").status == 204

"""Object lock: configurations of buckets, retention, legal hold, and what a held version refuses, through both protocols."""

import datetime
import time
import uuid

import pytest
from azure.core.exceptions import HttpResponseError
from botocore.exceptions import ClientError

from lib import s3, s3_forms, s3_users

DENIED = (403, "AccessDenied")
MISSING = (400, "InvalidRequest")
DAY = datetime.timedelta(days=1)


def now():
    """The present, in whole seconds."""
    return datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)


def soon(seconds=4):
    """A time that comes within the test."""
    return now() + datetime.timedelta(seconds=seconds)


START = now()


def later(days=1):
    """A time that does not: the same whenever it is asked for."""
    return START + days * DAY


@pytest.fixture
def locked(client):
    """A bucket with object lock. It stays: what is in it may be held."""
    name = f"lock{uuid.uuid4().hex}"
    client.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    return name


def refused(call, **arguments):
    """Status and code of a refusal."""
    with pytest.raises(ClientError) as error:
        call(**arguments)
    return s3.code(error.value)


def refused_by_blob(call, *arguments, **options):
    """Status and code of a refusal of the other protocol."""
    with pytest.raises(HttpResponseError) as error:
        call(*arguments, **options)
    return error.value.status_code, error.value.response.headers["x-ms-error-code"]


def put(client, bucket, key="k", **options):
    """The version that a PUT makes."""
    return client.put_object(Bucket=bucket, Key=key, Body=b"body", **options)["VersionId"]


def retain(client, bucket, mode, until, key="k", **options):
    """Sets the retention of an object."""
    client.put_object_retention(Bucket=bucket, Key=key, Retention={"Mode": mode, "RetainUntilDate": until}, **options)


def hold(client, bucket, status, key="k", **options):
    """Sets the legal hold of an object."""
    client.put_object_legal_hold(Bucket=bucket, Key=key, LegalHold={"Status": status}, **options)


def default(client, bucket, **retention):
    """Sets the default retention of a bucket."""
    rule = {"Rule": {"DefaultRetention": retention}} if retention else {}
    client.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled", **rule})


def test_a_new_bucket_with_object_lock_keeps_versions(client, raw, locked):
    found = client.get_object_lock_configuration(Bucket=locked)["ObjectLockConfiguration"]
    assert found == {"ObjectLockEnabled": "Enabled"}
    assert client.get_bucket_versioning(Bucket=locked)["Status"] == "Enabled"
    assert refused(client.put_bucket_versioning, Bucket=locked,
                   VersioningConfiguration={"Status": "Suspended"}) == (409, "InvalidBucketState")
    client.put_bucket_versioning(Bucket=locked, VersioningConfiguration={"Status": "Enabled"})
    assert client.get_bucket_versioning(Bucket=locked)["Status"] == "Enabled"
    # The same again is the same bucket.
    assert raw.call("PUT", f"/{locked}", headers={"x-amz-bucket-object-lock-enabled": "true"}).status == 200
    wrong = raw.call("PUT", "/" + uuid.uuid4().hex, headers={"x-amz-bucket-object-lock-enabled": "yes"})
    assert (wrong.status, wrong.code()) == (400, "InvalidArgument")


def test_object_lock_needs_versions(client, bucket):
    configuration = {"ObjectLockEnabled": "Enabled"}
    assert refused(client.get_object_lock_configuration, Bucket=bucket) == (404, "ObjectLockConfigurationNotFoundError")
    assert refused(client.put_object_lock_configuration, Bucket=bucket,
                   ObjectLockConfiguration=configuration) == (409, "InvalidBucketState")
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    assert refused(client.put_object_lock_configuration, Bucket=bucket,
                   ObjectLockConfiguration=configuration) == (409, "InvalidBucketState")
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    client.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=configuration)
    assert client.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"] == configuration
    assert refused(client.put_object_lock_configuration, Bucket="no-such-bucket",
                   ObjectLockConfiguration=configuration) == (404, "NoSuchBucket")


@pytest.mark.parametrize("retention", [
    {"Mode": "GOVERNANCE", "Days": 1}, {"Mode": "COMPLIANCE", "Years": 1}, {"Mode": "COMPLIANCE", "Days": 36_500}, {}])
def test_a_default_retention_is_kept_and_replaced(client, locked, retention):
    default(client, locked, Mode="COMPLIANCE", Days=9)
    default(client, locked, **retention)
    rule = {"Rule": {"DefaultRetention": retention}} if retention else {}
    found = client.get_object_lock_configuration(Bucket=locked)["ObjectLockConfiguration"]
    assert found == {"ObjectLockEnabled": "Enabled", **rule}


ENABLED = "<ObjectLockEnabled>Enabled</ObjectLockEnabled>"


@pytest.mark.parametrize("inner, wanted", [
    ("", "MalformedXML"),
    ("<ObjectLockEnabled>Disabled</ObjectLockEnabled>", "MalformedXML"),
    (ENABLED + "<Rule/>", "MalformedXML"),
    (ENABLED + "<Rule><DefaultRetention/></Rule>", "MalformedXML"),
    (ENABLED + "<Rule><DefaultRetention><Mode>abc</Mode><Days>1</Days></DefaultRetention></Rule>", "MalformedXML"),
    (ENABLED + "<Rule><DefaultRetention><Mode>governance</Mode><Days>1</Days></DefaultRetention></Rule>", "MalformedXML"),
    (ENABLED + "<Rule><DefaultRetention><Mode>GOVERNANCE</Mode></DefaultRetention></Rule>", "MalformedXML"),
    (ENABLED + "<Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>1</Days><Years>1</Years></DefaultRetention></Rule>", "MalformedXML"),
    (ENABLED + "<Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>0</Days></DefaultRetention></Rule>", "InvalidRetentionPeriod"),
    (ENABLED + "<Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Years>-1</Years></DefaultRetention></Rule>", "InvalidRetentionPeriod"),
    (ENABLED + "<Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>36501</Days></DefaultRetention></Rule>", "InvalidRetentionPeriod"),
    (ENABLED + "<Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Years>101</Years></DefaultRetention></Rule>", "InvalidRetentionPeriod"),
    (ENABLED + "<Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>a</Days></DefaultRetention></Rule>", "MalformedXML"),
])
def test_a_wrong_configuration_changes_nothing(client, raw, locked, inner, wanted):
    default(client, locked, Mode="GOVERNANCE", Days=3)
    document = f"<ObjectLockConfiguration>{inner}</ObjectLockConfiguration>".encode()
    answer = raw.call("PUT", f"/{locked}", [("object-lock", "")], body=document)
    assert (answer.status, answer.code()) == (400, wanted)
    found = client.get_object_lock_configuration(Bucket=locked)["ObjectLockConfiguration"]
    assert found["Rule"]["DefaultRetention"] == {"Mode": "GOVERNANCE", "Days": 3}


def test_a_new_object_has_the_default_retention(client, service, locked):
    default(client, locked, Mode="GOVERNANCE", Days=2)
    version = put(client, locked)
    head = client.head_object(Bucket=locked, Key="k")
    assert head["ObjectLockMode"] == "GOVERNANCE" and "ObjectLockLegalHoldStatus" not in head
    assert abs(head["ObjectLockRetainUntilDate"] - (head["LastModified"] + 2 * DAY)) < datetime.timedelta(seconds=2)
    assert refused(client.delete_object, Bucket=locked, Key="k", VersionId=version) == DENIED
    # What a request says comes before the default.
    stated = {"Mode": "COMPLIANCE", "RetainUntilDate": later(9)}
    own = put(client, locked, ObjectLockMode=stated["Mode"], ObjectLockRetainUntilDate=stated["RetainUntilDate"])
    assert client.get_object_retention(Bucket=locked, Key="k", VersionId=own)["Retention"] == stated
    # It is for what Blob writes too, and for uploads and copies.
    blob = service.get_blob_client(locked, "by-blob")
    blob.upload_blob(b"x")
    assert blob.get_blob_properties().immutability_policy.policy_mode == "unlocked"
    client.copy_object(Bucket=locked, Key="copy", CopySource=f"{locked}/k")
    assert client.head_object(Bucket=locked, Key="copy")["ObjectLockMode"] == "GOVERNANCE"
    upload = client.create_multipart_upload(Bucket=locked, Key="parts")["UploadId"]
    part = client.upload_part(Bucket=locked, Key="parts", UploadId=upload, PartNumber=1, Body=b"x")
    client.complete_multipart_upload(Bucket=locked, Key="parts", UploadId=upload,
                                     MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    assert client.head_object(Bucket=locked, Key="parts")["ObjectLockMode"] == "GOVERNANCE"
    default(client, locked)
    put(client, locked, "free")
    assert "ObjectLockMode" not in client.head_object(Bucket=locked, Key="free")


@pytest.mark.parametrize("mode", ["GOVERNANCE", "COMPLIANCE"])
def test_headers_of_writes_protect(client, locked, mode):
    until = later(3)
    protection = {"ObjectLockMode": mode, "ObjectLockRetainUntilDate": until, "ObjectLockLegalHoldStatus": "ON"}
    put(client, locked, "put", **protection)
    client.copy_object(Bucket=locked, Key="copy", CopySource=f"{locked}/put", **protection)
    upload = client.create_multipart_upload(Bucket=locked, Key="parts", **protection)["UploadId"]
    part = client.upload_part(Bucket=locked, Key="parts", UploadId=upload, PartNumber=1, Body=b"x")
    client.complete_multipart_upload(Bucket=locked, Key="parts", UploadId=upload,
                                     MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    for key in ("put", "copy", "parts"):
        for answer in (client.head_object(Bucket=locked, Key=key), client.get_object(Bucket=locked, Key=key)):
            shown = (answer["ObjectLockMode"], answer["ObjectLockRetainUntilDate"], answer["ObjectLockLegalHoldStatus"])
            assert shown == (mode, until, "ON"), key
        assert client.get_object_retention(Bucket=locked, Key=key)["Retention"] == {"Mode": mode, "RetainUntilDate": until}
        assert client.get_object_legal_hold(Bucket=locked, Key=key)["LegalHold"] == {"Status": "ON"}
    # A copy does not take the protection of its source along.
    client.copy_object(Bucket=locked, Key="plain", CopySource=f"{locked}/put")
    assert "ObjectLockMode" not in client.head_object(Bucket=locked, Key="plain")


@pytest.mark.parametrize("headers", [
    {"x-amz-object-lock-mode": "GOVERNANCE"},
    {"x-amz-object-lock-retain-until-date": "2099-01-01T00:00:00Z"},
    {"x-amz-object-lock-mode": "governance", "x-amz-object-lock-retain-until-date": "2099-01-01T00:00:00Z"},
    {"x-amz-object-lock-mode": "GOVERNANCE", "x-amz-object-lock-retain-until-date": "soon"},
    {"x-amz-object-lock-mode": "GOVERNANCE", "x-amz-object-lock-retain-until-date": "2020-01-01T00:00:00Z"},
    {"x-amz-object-lock-legal-hold": "on"},
    {"x-amz-object-lock-legal-hold": ""},
    {"x-amz-object-lock-mode": "", "x-amz-object-lock-retain-until-date": "2099-01-01T00:00:00Z"},
    {"x-amz-object-lock-mode": "GOVERNANCE", "x-amz-object-lock-retain-until-date": ""},
])
def test_wrong_headers_store_nothing(raw, client, locked, headers):
    answer = raw.call("PUT", f"/{locked}/k", headers={**headers, "content-md5": "1B2M2Y8AsgTpgAmY7PhCfg=="})
    assert (answer.status, answer.code()) == (400, "InvalidArgument")
    start = raw.call("POST", f"/{locked}/k", [("uploads", "")], headers=headers)
    assert (start.status, start.code()) == (400, "InvalidArgument")
    assert "Versions" not in client.list_object_versions(Bucket=locked)
    assert "Uploads" not in client.list_multipart_uploads(Bucket=locked)


@pytest.mark.parametrize("name", ["x-amz-object-lock-legal-holds", "x-amz-object-lock", "x-amz-object-lock-until"])
def test_a_misspelt_header_stores_nothing(raw, client, locked, name):
    answer = raw.call("PUT", f"/{locked}/k", headers={name: "ON", "content-md5": "1B2M2Y8AsgTpgAmY7PhCfg=="})
    assert (answer.status, answer.code()) == (501, "NotImplemented")
    assert "Versions" not in client.list_object_versions(Bucket=locked)


def test_a_protected_put_needs_a_checksum(raw, client, locked):
    hold_on = {"x-amz-object-lock-legal-hold": "ON"}
    answer = raw.call("PUT", f"/{locked}/k", headers=hold_on, body=b"")
    assert (answer.status, answer.code()) == MISSING
    assert raw.call("PUT", f"/{locked}/k", headers={**hold_on, "content-md5": "1B2M2Y8AsgTpgAmY7PhCfg=="}).status == 200
    assert client.get_object_legal_hold(Bucket=locked, Key="k")["LegalHold"]["Status"] == "ON"


def test_a_bucket_without_object_lock_protects_nothing(client, bucket):
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    put(client, bucket)
    of = {"Bucket": bucket, "Key": "k"}
    for call, arguments in [
            (client.get_object_retention, of), (client.get_object_legal_hold, of),
            (client.put_object_retention, {**of, "Retention": {"Mode": "GOVERNANCE", "RetainUntilDate": later()}}),
            (client.put_object_legal_hold, {**of, "LegalHold": {"Status": "ON"}}),
            (client.put_object, {**of, "ObjectLockLegalHoldStatus": "ON"}),
            (client.create_multipart_upload, {**of, "ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": later()}),
            (client.copy_object, {**of, "CopySource": f"{bucket}/k", "ObjectLockLegalHoldStatus": "ON"})]:
        assert refused(call, **arguments) == MISSING, call
    assert "Uploads" not in client.list_multipart_uploads(Bucket=bucket)


def test_an_object_without_protection_has_none_to_show(client, locked):
    put(client, locked)
    nothing = (404, "NoSuchObjectLockConfiguration")
    assert refused(client.get_object_retention, Bucket=locked, Key="k") == nothing
    assert refused(client.get_object_legal_hold, Bucket=locked, Key="k") == nothing
    for call in (client.get_object_retention, client.get_object_legal_hold):
        assert refused(call, Bucket=locked, Key="none") == (404, "NoSuchKey")
        assert refused(call, Bucket="no-such-bucket", Key="k") == (404, "NoSuchBucket")
    until = {"Mode": "GOVERNANCE", "RetainUntilDate": later()}
    assert refused(client.put_object_retention, Bucket=locked, Key="none", Retention=until) == (404, "NoSuchKey")
    assert refused(client.put_object_legal_hold, Bucket=locked, Key="none", LegalHold={"Status": "ON"}) == (404, "NoSuchKey")


@pytest.mark.parametrize("what, document, wanted", [
    ("retention", b"<Retention><Mode>abc</Mode><RetainUntilDate>2099-01-01T00:00:00Z</RetainUntilDate></Retention>", "MalformedXML"),
    ("retention", b"<Retention><Mode>GOVERNANCE</Mode></Retention>", "MalformedXML"),
    ("retention", b"<Retention><RetainUntilDate>2099-01-01T00:00:00Z</RetainUntilDate></Retention>", "MalformedXML"),
    ("retention", b"<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>soon</RetainUntilDate></Retention>", "MalformedXML"),
    ("retention", b"<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>2020-01-01T00:00:00Z</RetainUntilDate></Retention>", "InvalidArgument"),
    ("retention", b"<Retention><Days>1</Days></Retention>", "MalformedXML"),
    ("retention", b"", "MalformedXML"),
    ("retention", b"<Retention", "MalformedXML"),
    ("legal-hold", b"<LegalHold><Status>abc</Status></LegalHold>", "MalformedXML"),
    ("legal-hold", b"<LegalHold><Status>on</Status></LegalHold>", "MalformedXML"),
    ("legal-hold", b"<LegalHold/>", "MalformedXML"),
    ("legal-hold", b"<Hold><Status>ON</Status></Hold>", "MalformedXML"),
    ("legal-hold", b"", "MalformedXML"),
])
def test_a_wrong_document_changes_nothing(raw, client, locked, what, document, wanted):
    put(client, locked)
    answer = raw.call("PUT", f"/{locked}/k", [(what, "")], body=document)
    assert (answer.status, answer.code()) == (400, wanted)
    assert raw.call("GET", f"/{locked}/k", [(what, "")]).status == 404


@pytest.mark.parametrize("mode", ["GOVERNANCE", "COMPLIANCE"])
def test_a_retained_version_is_not_deleted(client, locked, mode):
    version = put(client, locked)
    until = soon()
    retain(client, locked, mode, until)
    gone = {"Bucket": locked, "Key": "k", "VersionId": version}
    assert refused(client.delete_object, **gone) == DENIED
    # A delete without a version puts a marker, and a write puts another version on top.
    marker = client.delete_object(Bucket=locked, Key="k")["VersionId"]
    assert refused(client.delete_object, **gone) == DENIED
    other = put(client, locked)
    assert refused(client.delete_object, **gone) == DENIED
    assert client.get_object(**gone)["Body"].read() == b"body"
    # Neither the marker nor the other version is held.
    client.delete_object(Bucket=locked, Key="k", VersionId=marker)
    client.delete_object(Bucket=locked, Key="k", VersionId=other)
    time.sleep(max(0.0, (until - datetime.datetime.now(datetime.timezone.utc)).total_seconds() + 0.1))
    client.delete_object(**gone)
    assert "Versions" not in client.list_object_versions(Bucket=locked)


def test_delete_objects_says_what_is_held(client, locked):
    held, free = put(client, locked, "held", ObjectLockLegalHoldStatus="ON"), put(client, locked, "free")
    governed = put(client, locked, "governed", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=later())
    objects = [{"Key": "held", "VersionId": held}, {"Key": "free", "VersionId": free}, {"Key": "governed", "VersionId": governed}]
    answer = client.delete_objects(Bucket=locked, Delete={"Objects": objects})
    assert [one["Key"] for one in answer["Deleted"]] == ["free"]
    assert [(one["Key"], one["Code"]) for one in answer["Errors"]] == [("held", "AccessDenied"), ("governed", "AccessDenied")]
    answer = client.delete_objects(Bucket=locked, Delete={"Objects": objects}, BypassGovernanceRetention=True)
    assert sorted(one["Key"] for one in answer["Deleted"]) == ["free", "governed"]
    assert [(one["Key"], one["Code"]) for one in answer["Errors"]] == [("held", "AccessDenied")]


def test_governance_is_bypassed_and_compliance_is_not(client, locked):
    governed = put(client, locked, "g", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=later())
    bound = put(client, locked, "c", ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=later())
    assert refused(client.delete_object, Bucket=locked, Key="g", VersionId=governed) == DENIED
    client.delete_object(Bucket=locked, Key="g", VersionId=governed, BypassGovernanceRetention=True)
    assert refused(client.delete_object, Bucket=locked, Key="c", VersionId=bound, BypassGovernanceRetention=True) == DENIED
    held = put(client, locked, "h", ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=later(), ObjectLockLegalHoldStatus="ON")
    assert refused(client.delete_object, Bucket=locked, Key="h", VersionId=held, BypassGovernanceRetention=True) == DENIED


def test_a_retention_is_extended_and_not_shortened(client, locked):
    put(client, locked)
    retain(client, locked, "GOVERNANCE", later(2))
    retain(client, locked, "GOVERNANCE", later(3))
    shorter = {"Bucket": locked, "Key": "k", "Retention": {"Mode": "GOVERNANCE", "RetainUntilDate": later(1)}}
    assert refused(client.put_object_retention, **shorter) == DENIED
    assert refused(client.put_object_retention, Bucket=locked, Key="k", Retention={}) == DENIED
    other = {"Bucket": locked, "Key": "k", "Retention": {"Mode": "COMPLIANCE", "RetainUntilDate": later(4)}}
    assert refused(client.put_object_retention, **other) == DENIED
    client.put_object_retention(**shorter, BypassGovernanceRetention=True)
    client.put_object_retention(Bucket=locked, Key="k", Retention={}, BypassGovernanceRetention=True)
    assert refused(client.get_object_retention, Bucket=locked, Key="k") == (404, "NoSuchObjectLockConfiguration")
    client.put_object_retention(**other)
    longer = {"Mode": "COMPLIANCE", "RetainUntilDate": later(5)}
    client.put_object_retention(Bucket=locked, Key="k", Retention=longer)
    assert client.get_object_retention(Bucket=locked, Key="k")["Retention"] == longer
    for less in (shorter["Retention"], {}, {"Mode": "COMPLIANCE", "RetainUntilDate": later(4)}, {"Mode": "GOVERNANCE", "RetainUntilDate": later(9)}):
        assert refused(client.put_object_retention, Bucket=locked, Key="k", Retention=less, BypassGovernanceRetention=True) == DENIED


def test_each_version_has_a_protection_of_its_own(client, locked):
    first, second = put(client, locked), put(client, locked)
    retain(client, locked, "GOVERNANCE", later(), VersionId=first)
    hold(client, locked, "ON", VersionId=second)
    head = client.head_object(Bucket=locked, Key="k", VersionId=first)
    assert head["ObjectLockMode"] == "GOVERNANCE" and "ObjectLockLegalHoldStatus" not in head
    head = client.head_object(Bucket=locked, Key="k")
    assert head["ObjectLockLegalHoldStatus"] == "ON" and "ObjectLockMode" not in head
    assert refused(client.get_object_legal_hold, Bucket=locked, Key="k", VersionId=first) == (404, "NoSuchObjectLockConfiguration")
    assert refused(client.delete_object, Bucket=locked, Key="k", VersionId=second) == DENIED
    hold(client, locked, "OFF")
    assert client.get_object_legal_hold(Bucket=locked, Key="k")["LegalHold"]["Status"] == "OFF"
    client.delete_object(Bucket=locked, Key="k", VersionId=second)
    # The first one is current again, and still held.
    assert client.head_object(Bucket=locked, Key="k")["ObjectLockMode"] == "GOVERNANCE"
    assert refused(client.delete_object, Bucket=locked, Key="k", VersionId=first) == DENIED


def test_protection_changes_neither_tag_nor_time(client, locked):
    put(client, locked, Metadata={"a": "b"}, Tagging="t=u")
    before = client.head_object(Bucket=locked, Key="k")
    retain(client, locked, "COMPLIANCE", later())
    hold(client, locked, "ON")
    after = client.head_object(Bucket=locked, Key="k")
    for name in ("ETag", "LastModified", "VersionId", "Metadata"):
        assert before[name] == after[name]
    # Tags and access are not part of what is held.
    client.put_object_tagging(Bucket=locked, Key="k", Tagging={"TagSet": [{"Key": "t", "Value": "v"}]})
    client.put_object_acl(Bucket=locked, Key="k", ACL="private")


def test_a_held_version_is_held_in_blob_too(client, service, locked):
    version = put(client, locked, ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=later(), ContentType="text/plain")
    blob = service.get_blob_client(locked, "k")
    properties = blob.get_blob_properties()
    assert properties.immutability_policy.policy_mode == "locked" and not properties.has_legal_hold
    immutable = (409, "BlobImmutableDueToPolicy")
    assert refused_by_blob(blob.set_blob_metadata, {"a": "b"}) == immutable
    assert refused_by_blob(blob.set_http_headers) == immutable
    assert refused_by_blob(blob.delete_immutability_policy) == immutable
    assert blob.set_legal_hold(True)["legal_hold"] is True
    assert client.get_object_legal_hold(Bucket=locked, Key="k")["LegalHold"]["Status"] == "ON"
    assert refused_by_blob(blob.set_blob_metadata, {"a": "b"}) == (409, "BlobImmutableDueToLegalHold")
    blob.upload_blob(b"other", overwrite=True)
    assert client.get_object(Bucket=locked, Key="k", VersionId=version)["Body"].read() == b"body"
    old = next(b for b in service.get_container_client(locked).list_blobs(include=["versions"]) if not b.is_current_version)
    assert refused_by_blob(blob.delete_blob, version_id=old.version_id) == (409, "BlobImmutableDueToLegalHold")
    assert refused_by_blob(service.delete_container, locked) == (409, "ContainerProtectedFromDeletion")


def test_a_bucket_with_held_objects_is_not_deleted(client, service, locked):
    version = put(client, locked, ObjectLockLegalHoldStatus="ON")
    client.delete_object(Bucket=locked, Key="k")
    assert refused(client.delete_bucket, Bucket=locked) == (409, "BucketNotEmpty")
    assert refused_by_blob(service.delete_container, locked) == (409, "ContainerProtectedFromDeletion")
    hold(client, locked, "OFF", VersionId=version)
    for one in client.list_object_versions(Bucket=locked)["Versions"] + client.list_object_versions(Bucket=locked)["DeleteMarkers"]:
        client.delete_object(Bucket=locked, Key="k", VersionId=one["VersionId"])
    client.delete_bucket(Bucket=locked)
    assert refused(client.head_bucket, Bucket=locked)[0] == 404


def test_a_write_over_a_held_version_leaves_it_behind(client, locked):
    first = put(client, locked, ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=later())
    second = put(client, locked)
    upload = client.create_multipart_upload(Bucket=locked, Key="k")["UploadId"]
    part = client.upload_part(Bucket=locked, Key="k", UploadId=upload, PartNumber=1, Body=b"x")
    client.complete_multipart_upload(Bucket=locked, Key="k", UploadId=upload,
                                     MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    client.copy_object(Bucket=locked, Key="k", CopySource={"Bucket": locked, "Key": "k", "VersionId": first})
    assert "ObjectLockMode" not in client.head_object(Bucket=locked, Key="k")
    assert "ObjectLockMode" not in client.head_object(Bucket=locked, Key="k", VersionId=second)
    assert client.head_object(Bucket=locked, Key="k", VersionId=first)["ObjectLockMode"] == "COMPLIANCE"
    assert len(client.list_object_versions(Bucket=locked)["Versions"]) == 4


def test_protection_is_for_owners(client, server, account, locked):
    """A user that may write may neither protect nor bypass; it may look."""
    held = put(client, locked, ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=later())
    user = s3_users.create(server, account)
    user.grant("contributor")
    writer = user.client()
    of = {"Bucket": locked, "Key": "k"}
    governed = {"Mode": "GOVERNANCE", "RetainUntilDate": later()}
    writer.put_object(**of, Body=b"x")
    assert refused(writer.put_object, **of, Body=b"x", ObjectLockLegalHoldStatus="ON") == DENIED
    assert refused(writer.create_multipart_upload, **of, ObjectLockLegalHoldStatus="ON") == DENIED
    assert refused(writer.copy_object, **of, CopySource=f"{locked}/k", MetadataDirective="REPLACE", ObjectLockLegalHoldStatus="ON") == DENIED
    assert refused(writer.put_object_retention, **of, Retention=governed) == DENIED
    assert refused(writer.put_object_retention, **of, VersionId=held, Retention={}, BypassGovernanceRetention=True) == DENIED
    assert refused(writer.put_object_legal_hold, **of, LegalHold={"Status": "ON"}) == DENIED
    assert refused(writer.put_object_lock_configuration, Bucket=locked, ObjectLockConfiguration={"ObjectLockEnabled": "Enabled"}) == DENIED
    assert refused(writer.get_object_retention, **of) == (404, "NoSuchObjectLockConfiguration")
    assert writer.get_object_retention(**of, VersionId=held)["Retention"] == governed
    assert refused(writer.delete_object, **of, VersionId=held) == DENIED
    assert refused(writer.delete_object, **of, VersionId=held, BypassGovernanceRetention=True) == DENIED
    objects = {"Objects": [{"Key": "k", "VersionId": held}]}
    for bypass in (True, False):
        answer = writer.delete_objects(Bucket=locked, Delete=objects, BypassGovernanceRetention=bypass)
        assert [one["Code"] for one in answer["Errors"]] == ["AccessDenied"] and "Deleted" not in answer
    assert client.get_object_retention(**of, VersionId=held)["Retention"] == governed
    user.delete()


def test_a_user_does_everything_in_a_bucket_of_its_own(server, account):
    user = s3_users.create(server, account)
    user.grant("contributor")
    writer = user.client()
    own = f"lock{uuid.uuid4().hex}"
    writer.create_bucket(Bucket=own, ObjectLockEnabledForBucket=True)
    version = put(writer, own, ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=later())
    writer.delete_object(Bucket=own, Key="k", VersionId=version, BypassGovernanceRetention=True)
    writer.delete_bucket(Bucket=own)
    user.delete()


def test_a_reader_looks_at_protection_and_changes_none(client, server, account, locked):
    put(client, locked, ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=later(), ObjectLockLegalHoldStatus="ON")
    user = s3_users.create(server, account)
    user.grant("reader")
    reader = user.client()
    of = {"Bucket": locked, "Key": "k"}
    assert reader.get_object_retention(**of)["Retention"]["Mode"] == "GOVERNANCE"
    assert reader.get_object_legal_hold(**of)["LegalHold"]["Status"] == "ON"
    assert reader.get_object_lock_configuration(Bucket=locked)["ObjectLockConfiguration"]["ObjectLockEnabled"] == "Enabled"
    assert refused(reader.put_object_retention, **of, Retention={"Mode": "GOVERNANCE", "RetainUntilDate": later(2)}) == DENIED
    assert refused(reader.put_object_legal_hold, **of, LegalHold={"Status": "OFF"}) == DENIED
    user.delete()


def test_the_date_that_is_shown_may_be_sent_back(client, locked):
    default(client, locked, Mode="COMPLIANCE", Days=1)
    put(client, locked)
    shown = client.get_object_retention(Bucket=locked, Key="k")["Retention"]
    client.put_object_retention(Bucket=locked, Key="k", Retention=shown)
    assert client.get_object_retention(Bucket=locked, Key="k")["Retention"] == shown


def test_a_form_protects_too(account, client, raw, locked):
    form = s3_forms.Form(account, locked)
    until = later().strftime("%Y-%m-%dT%H:%M:%SZ")
    form.fields.update({"x-amz-object-lock-mode": "COMPLIANCE", "x-amz-object-lock-retain-until-date": until})
    assert form.post(raw).status == 204
    head = client.head_object(Bucket=locked, Key="k")
    assert (head["ObjectLockMode"], head["ObjectLockRetainUntilDate"]) == ("COMPLIANCE", later())

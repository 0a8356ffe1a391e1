"""Settings of buckets that no bucket has, or that all have with the same value."""

import pytest
from botocore.exceptions import ClientError

from lib import s3

NAMESPACE = b' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'

# Sub-resource, code, method of boto3.
ABSENT = [
    ("policy", "NoSuchBucketPolicy", "get_bucket_policy"),
    ("policyStatus", "NoSuchBucketPolicy", "get_bucket_policy_status"),
    ("lifecycle", "NoSuchLifecycleConfiguration", "get_bucket_lifecycle_configuration"),
    ("website", "NoSuchWebsiteConfiguration", "get_bucket_website"),
    ("encryption", "ServerSideEncryptionConfigurationNotFoundError", "get_bucket_encryption"),
    ("replication", "ReplicationConfigurationNotFoundError", "get_bucket_replication"),
    ("publicAccessBlock", "NoSuchPublicAccessBlockConfiguration", "get_public_access_block"),
    ("object-lock", "ObjectLockConfigurationNotFoundError", "get_object_lock_configuration"),
    ("tagging", "NoSuchTagSet", "get_bucket_tagging"),
    ("cors", "NoSuchCORSConfiguration", "get_bucket_cors"),
]
# Sub-resource, root element and content.
FIXED = [
    ("accelerate", "AccelerateConfiguration", b""),
    ("logging", "BucketLoggingStatus", b""),
    ("notification", "NotificationConfiguration", b""),
    ("versioning", "VersioningConfiguration", b""),
    ("requestPayment", "RequestPaymentConfiguration", b"<Payer>BucketOwner</Payer>"),
    ("ownershipControls", "OwnershipControls", b"<Rule><ObjectOwnership>ObjectWriter</ObjectOwnership></Rule>"),
    ("analytics", "ListBucketAnalyticsConfigurationResult", b"<IsTruncated>false</IsTruncated>"),
    ("inventory", "ListInventoryConfigurationsResult", b"<IsTruncated>false</IsTruncated>"),
    ("metrics", "ListMetricsConfigurationsResult", b"<IsTruncated>false</IsTruncated>"),
    ("intelligent-tiering", "ListBucketIntelligentTieringConfigurationsOutput", b"<IsTruncated>false</IsTruncated>"),
]
OF_AN_ID = ("analytics", "inventory", "metrics", "intelligent-tiering")


@pytest.mark.parametrize("name, code, method", ABSENT)
def test_what_no_bucket_has_is_404_with_its_own_code(client, raw, bucket, name, code, method):
    answer = raw.call("GET", f"/{bucket}", [(name, "")])
    assert (answer.status, answer.code()) == (404, code)
    assert answer.text("Message")
    with pytest.raises(ClientError) as refused:
        getattr(client, method)(Bucket=bucket)
    assert s3.code(refused.value) == (404, code)
    answer = raw.call("GET", "/no-such-bucket", [(name, "")])
    assert (answer.status, answer.code()) == (404, "NoSuchBucket")


@pytest.mark.parametrize("name, root, content", FIXED)
def test_what_all_buckets_have(raw, bucket, name, root, content):
    answer = raw.call("GET", f"/{bucket}", [(name, "")])
    assert answer.status == 200 and answer.headers["content-type"] == "application/xml"
    document = answer.body.partition(b"?>")[2].strip()
    assert document == b"<" + root.encode() + NAMESPACE + b">" + content + b"</" + root.encode() + b">"
    answer = raw.call("GET", "/no-such-bucket", [(name, "")])
    assert (answer.status, answer.code()) == (404, "NoSuchBucket")


def test_boto3_reads_what_all_buckets_have(client, bucket):
    assert "Status" not in client.get_bucket_versioning(Bucket=bucket)
    assert "Status" not in client.get_bucket_accelerate_configuration(Bucket=bucket)
    assert "LoggingEnabled" not in client.get_bucket_logging(Bucket=bucket)
    assert client.get_bucket_request_payment(Bucket=bucket)["Payer"] == "BucketOwner"
    notification = client.get_bucket_notification_configuration(Bucket=bucket)
    assert set(notification) == {"ResponseMetadata"}
    controls = client.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"]
    assert controls == {"Rules": [{"ObjectOwnership": "ObjectWriter"}]}
    for method in ("list_bucket_metrics_configurations", "list_bucket_analytics_configurations",
                   "list_bucket_inventory_configurations", "list_bucket_intelligent_tiering_configurations"):
        assert getattr(client, method)(Bucket=bucket)["IsTruncated"] is False


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("name", OF_AN_ID)
def test_configurations_of_an_id(raw, bucket, name, method):
    answer = raw.call(method, f"/{bucket}", [("id", "one"), (name, "")])
    assert (answer.status, answer.code()) == (404, "NoSuchConfiguration")
    answer = raw.call(method, "/no-such-bucket", [("id", "one"), (name, "")])
    assert (answer.status, answer.code()) == (404, "NoSuchBucket")


@pytest.mark.parametrize("name", OF_AN_ID)
def test_a_configuration_without_an_id_is_not_removed(raw, bucket, name):
    assert raw.call("DELETE", f"/{bucket}", [(name, "")]).status == 400


@pytest.mark.parametrize("name", ["policy", "lifecycle", "website", "encryption", "replication", "publicAccessBlock",
                                  "tagging", "cors"])
def test_removing_nothing_succeeds(raw, bucket, name):
    answer = raw.call("DELETE", f"/{bucket}", [(name, "")])
    assert (answer.status, answer.body) == (204, b"")
    answer = raw.call("DELETE", "/no-such-bucket", [(name, "")])
    assert (answer.status, answer.code()) == (404, "NoSuchBucket")
    assert raw.call("HEAD", f"/{bucket}").status == 200, "the bucket is still there"


@pytest.mark.parametrize("name", ["policy", "lifecycle", "website", "encryption", "replication", "publicAccessBlock",
                                  "accelerate", "logging", "notification", "requestPayment", "ownershipControls",
                                  *OF_AN_ID])
def test_nothing_is_merely_stored(raw, bucket, name):
    answer = raw.call("PUT", f"/{bucket}", [("id", "one"), (name, "")] if name in OF_AN_ID else [(name, "")],
                      body=b"<X/>")
    assert (answer.status, answer.code()) == (501, "NotImplemented")


def test_select_and_torrent(raw, bucket):
    raw.call("PUT", f"/{bucket}/k", body=b"x")
    answer = raw.call("POST", f"/{bucket}/k", [("select", ""), ("select-type", "2")], body=b"<X/>")
    assert (answer.status, answer.code()) == (501, "NotImplemented")
    assert raw.call("GET", f"/{bucket}/k", [("torrent", "")]).status == 404


@pytest.mark.parametrize("name", ["policy", "versioning", "cors", "acl", "tagging", "ownershipControls"])
def test_settings_are_for_the_account(raw, account, bucket, name):
    assert account.service().get_container_client(bucket).set_container_access_policy({}, public_access="container")
    raw.call("PUT", f"/{bucket}/k", body=b"x")
    host = {"host": f"s3.{account.name}.localhost"}
    assert raw.send("GET", f"/{bucket}/k", host).status == 200
    answer = raw.send("GET", f"/{bucket}?{name}", host)
    assert (answer.status, answer.code()) == (403, "AccessDenied")

"""CopyObject: names of sources, directives, conditions, refusals, signatures."""

import datetime
import hashlib
import urllib.parse

import pytest
from azure.storage.blob import BlobType, StandardBlobTier

from lib.s3_copies import copy, missing

from conftest import refusal

ITSELF = ("This copy request is illegal because it is trying to copy an object to itself without changing the object's "
          "metadata, storage class, website redirect location or encryption attributes.")
DAY = datetime.timedelta(days=1)


def http_date(time):
    """A time as HTTP writes it."""
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT")


def test_a_copy_has_what_its_source_has(client, bucket, made):
    answer = client.copy_object(Bucket=bucket, Key="to", CopySource={"Bucket": bucket, "Key": "from"})["CopyObjectResult"]
    head = client.head_object(Bucket=bucket, Key="to")
    assert answer["ETag"] == made["ETag"] == head["ETag"]
    assert answer["LastModified"].replace(microsecond=0) == head["LastModified"]
    assert client.get_object(Bucket=bucket, Key="to")["Body"].read() == b"hello"
    assert head["Metadata"] == {"k": "v"} and head["ContentType"] == "text/plain"
    assert head["ContentEncoding"] == "identity" and head["ContentLanguage"] == "de"
    assert head["ContentDisposition"] == "inline" and head["CacheControl"] == "no-cache"
    assert head["ExpiresString"] == "Tue, 01 Jan 2030 00:00:00 GMT"


def test_a_copy_has_neither_class_nor_redirect_of_its_source(client, bucket, made):
    assert made
    client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from")
    head = client.head_object(Bucket=bucket, Key="to")
    assert "StorageClass" not in head and "WebsiteRedirectLocation" not in head
    client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from", StorageClass="GLACIER_IR",
                       WebsiteRedirectLocation="/here")
    head = client.head_object(Bucket=bucket, Key="to")
    assert head["StorageClass"] == "GLACIER_IR" and head["WebsiteRedirectLocation"] == "/here"


def test_properties_of_the_request_count_only_with_replace(client, bucket, made):
    given = {"ContentType": "image/png", "CacheControl": "max-age=1", "Metadata": {"other": "w"}}
    client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from", MetadataDirective="COPY", **given)
    head = client.head_object(Bucket=bucket, Key="to")
    assert head["Metadata"] == {"k": "v"} and head["ContentType"] == "text/plain" and head["CacheControl"] == "no-cache"
    client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from", MetadataDirective="REPLACE", **given)
    head = client.head_object(Bucket=bucket, Key="to")
    assert head["Metadata"] == {"other": "w"} and head["ContentType"] == "image/png"
    assert head["CacheControl"] == "max-age=1" and "ContentLanguage" not in head and "ExpiresString" not in head
    assert head["ETag"] == made["ETag"]
    client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from", MetadataDirective="REPLACE")
    head = client.head_object(Bucket=bucket, Key="to")
    assert head["Metadata"] == {} and head["ContentType"] == "binary/octet-stream"


def test_tags_are_copied_or_dropped(client, service, raw, bucket, made):
    assert made
    service.get_blob_client(bucket, "from").set_blob_tags({"a": "1", "b": "2"})
    of_copy = service.get_blob_client(bucket, "to").get_blob_tags
    client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from")
    assert of_copy() == {"a": "1", "b": "2"}
    assert copy(raw, bucket, f"{bucket}/from", x_amz_tagging_directive="REPLACE").status == 200
    assert of_copy() == {}
    assert copy(raw, bucket, f"{bucket}/from", x_amz_tagging_directive="COPY").status == 200
    assert of_copy() == {"a": "1", "b": "2"}


@pytest.mark.parametrize("header, message", [("x-amz-metadata-directive", "Unknown metadata directive."),
                                             ("x-amz-tagging-directive", "Unknown tagging directive.")])
@pytest.mark.parametrize("value", ["copy", "Replace", "KEEP", "COPY,REPLACE"])
def test_other_directives_are_refused(raw, bucket, made, header, message, value):
    assert made
    answer = copy(raw, bucket, f"{bucket}/from", **{header: value})
    assert (answer.status, answer.code(), answer.text("Message")) == (400, "InvalidArgument", message)
    assert missing(raw, bucket)


@pytest.mark.parametrize("key", ["plain", "a b", "a+b", "a%2Bb", "a%b", "\u20ac/\u00e4", "a?b", "a?versionId=7", "a//b", "/a",
                                 "a/", "a/../b", "a&b=c;d", "x" * 1024, "d/" * 300])
def test_keys_are_decoded_once(client, bucket, key):
    client.put_object(Bucket=bucket, Key=key, Body=key.encode())
    client.copy_object(Bucket=bucket, Key="to", CopySource={"Bucket": bucket, "Key": key})
    assert client.get_object(Bucket=bucket, Key="to")["Body"].read() == key.encode()


@pytest.mark.parametrize("form", ["{bucket}/from", "/{bucket}/from", "{bucket}%2Ffrom", "%2F{bucket}/from",
                                  "{bucket}/%66r%6Fm", "{bucket}/from?versionId=null"])
def test_forms_of_a_source(raw, bucket, made, form):
    assert made
    assert copy(raw, bucket, form.format(bucket=bucket)).status == 200
    assert raw.call("GET", f"/{bucket}/to").body == b"hello"


def test_a_plus_in_a_source_is_a_space(client, raw, bucket):
    client.put_object(Bucket=bucket, Key="a b", Body=b"space")
    assert copy(raw, bucket, f"{bucket}/a+b").status == 200
    assert raw.call("GET", f"/{bucket}/to").body == b"space"


@pytest.mark.parametrize("form, code", [
    ("{bucket}", "InvalidArgument"), ("/{bucket}", "InvalidArgument"), ("{bucket}/", "InvalidArgument"),
    ("/", "InvalidArgument"), ("//{bucket}/from", "InvalidArgument"), ("{bucket}/%zz", "InvalidArgument"),
    ("{bucket}/%", "InvalidArgument"), ("{bucket}/%ff", "InvalidArgument"), ("{bucket}/a%00", "InvalidArgument"),
    ("$root/from", "InvalidArgument"), ("No_Bucket!/from", "InvalidArgument"),
    ("arn:aws:s3:::{bucket}/from", "InvalidArgument"), ("http://host/{bucket}/from", "InvalidArgument"),
    ("{bucket}/from?versionId=", "InvalidArgument"), ("{bucket}/from?versionId=nonsense", "InvalidArgument"),
    ("{bucket}/" + "k" * 1025, "KeyTooLongError"),
])
def test_malformed_sources_are_refused(raw, bucket, made, form, code):
    assert made
    answer = copy(raw, bucket, form.format(bucket=bucket))
    assert (answer.status, answer.code()) == (400, code)
    assert missing(raw, bucket)


def test_what_does_not_exist_is_not_copied(client, bucket, made):
    assert made
    for source, target, expected in [
        (f"{bucket}/none", bucket, (404, "NoSuchKey")), ("no-such-bucket/from", bucket, (404, "NoSuchBucket")),
        (f"{bucket}/from", "no-such-bucket", (404, "NoSuchBucket")),
    ]:
        assert refusal(client.copy_object, Bucket=target, Key="to", CopySource=source) == expected
    assert refusal(client.head_object, Bucket=bucket, Key="to") == (404, "404")


@pytest.mark.parametrize("parameters", [
    {"MetadataDirective": "REPLACE"}, {"MetadataDirective": "REPLACE", "Metadata": {"n": "w"}}, {"StorageClass": "GLACIER_IR"},
    {"StorageClass": "STANDARD"}, {"WebsiteRedirectLocation": "/x"}, {"ChecksumAlgorithm": "SHA1"},
])
def test_an_object_is_copied_onto_itself_with_a_change(client, bucket, made, parameters):
    before = client.head_object(Bucket=bucket, Key="from")
    client.copy_object(Bucket=bucket, Key="from", CopySource=f"{bucket}/from", **parameters)
    got = client.get_object(Bucket=bucket, Key="from")
    assert got["Body"].read() == b"hello" and got["ETag"] == made["ETag"] == before["ETag"]
    replaced = "MetadataDirective" in parameters
    assert got["Metadata"] == (parameters.get("Metadata", {}) if replaced else {"k": "v"})
    assert got.get("StorageClass", "STANDARD") == parameters.get("StorageClass", "STANDARD")


@pytest.mark.parametrize("headers", [
    {}, {"x-amz-metadata-directive": "COPY"}, {"x-amz-tagging-directive": "REPLACE"}, {"content-type": "image/png"},
    {"x-amz-meta-k": "other"},
])
def test_an_object_is_not_copied_onto_itself_without_a_change(raw, bucket, made, headers):
    assert made
    answer = copy(raw, bucket, f"/{bucket}/from", key="from", **headers)
    assert (answer.status, answer.code(), answer.text("Message")) == (400, "InvalidRequest", ITSELF)


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 70_000, 3 << 20])
def test_sources_of_every_size_are_taken(client, bucket, size):
    body = bytes(range(251)) * (size // 251) + b"x" * (size % 251)
    put = client.put_object(Bucket=bucket, Key="from", Body=body)
    answer = client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from")["CopyObjectResult"]
    assert answer["ETag"] == put["ETag"] == f'"{hashlib.md5(body).hexdigest()}"'
    client.delete_object(Bucket=bucket, Key="from")
    assert client.get_object(Bucket=bucket, Key="to")["Body"].read() == body


def test_copies_of_copies_stay_when_what_they_came_from_goes(client, bucket):
    body = b"c" * 200_000
    client.put_object(Bucket=bucket, Key="0", Body=body)
    for number in range(4):
        client.copy_object(Bucket=bucket, Key=str(number + 1), CopySource=f"{bucket}/{number}")
        client.put_object(Bucket=bucket, Key=str(number), Body=b"new")
    assert client.get_object(Bucket=bucket, Key="4")["Body"].read() == body


def test_a_copy_replaces_what_is_there(client, service, bucket, made):
    service.get_blob_client(bucket, "to").upload_blob(b"page" * 128, blob_type=BlobType.PAGEBLOB, metadata={"old": "1"})
    client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from")
    head = client.head_object(Bucket=bucket, Key="to")
    assert head["Metadata"] == {"k": "v"} and head["ETag"] == made["ETag"]
    assert service.get_blob_client(bucket, "to").get_blob_properties().blob_type == BlobType.BLOCKBLOB


def test_copies_go_to_other_buckets(client, bucket, made):
    assert made
    client.create_bucket(Bucket=f"{bucket}-2")
    client.copy_object(Bucket=f"{bucket}-2", Key="to", CopySource=f"{bucket}/from")
    assert client.get_object(Bucket=f"{bucket}-2", Key="to")["Body"].read() == b"hello"
    client.delete_object(Bucket=f"{bucket}-2", Key="to")
    client.delete_bucket(Bucket=f"{bucket}-2")


OTHER = '"d41d8cd98f00b204e9800998ecf8427e"'
MATCH, NONE = "x-amz-copy-source-if-match", "x-amz-copy-source-if-none-match"
SINCE, UNTIL = "x-amz-copy-source-if-modified-since", "x-amz-copy-source-if-unmodified-since"


@pytest.mark.parametrize("conditions, status", [
    ({MATCH: "own"}, 200), ({MATCH: "bare"}, 200), ({MATCH: "*"}, 200), ({MATCH: OTHER}, 412), ({MATCH: '"nonsense"'}, 412),
    ({NONE: "own"}, 412), ({NONE: "bare"}, 412), ({NONE: "*"}, 412), ({NONE: OTHER}, 200), ({NONE: '"nonsense"'}, 200),
    ({SINCE: "before"}, 200), ({SINCE: "after"}, 412), ({UNTIL: "before"}, 412), ({UNTIL: "after"}, 200),
    ({SINCE: "nonsense"}, 200), ({UNTIL: "nonsense"}, 200),
    # The tag decides, the date beside it is ignored.
    ({MATCH: "own", UNTIL: "before"}, 200), ({MATCH: OTHER, UNTIL: "after"}, 412),
    ({NONE: "own", SINCE: "before"}, 412), ({NONE: OTHER, SINCE: "after"}, 200),
    # Both kinds must hold.
    ({MATCH: "own", NONE: "own"}, 412), ({MATCH: "own", NONE: OTHER}, 200), ({MATCH: OTHER, NONE: OTHER}, 412),
    ({MATCH: "own", SINCE: "after"}, 412), ({UNTIL: "after", SINCE: "before"}, 200), ({UNTIL: "before", NONE: OTHER}, 412),
])
def test_conditions_of_the_source(raw, bucket, made, conditions, status):
    now = datetime.datetime.now(datetime.timezone.utc)
    words = {"own": made["ETag"], "bare": made["ETag"].strip('"'), "before": http_date(now - DAY), "after": http_date(now + DAY)}
    answer = copy(raw, bucket, f"{bucket}/from", **{name: words.get(value, value) for name, value in conditions.items()})
    assert answer.status == status
    if status == 412:
        assert answer.code() == "PreconditionFailed" and missing(raw, bucket)


def test_conditions_of_the_destination(client, bucket, made):
    source = f"{bucket}/from"
    assert refusal(client.copy_object, Bucket=bucket, Key="to", CopySource=source, IfMatch=made["ETag"]) == (404, "NoSuchKey")
    client.copy_object(Bucket=bucket, Key="to", CopySource=source, IfNoneMatch="*")
    failed = (412, "PreconditionFailed")
    assert refusal(client.copy_object, Bucket=bucket, Key="to", CopySource=source, IfNoneMatch="*") == failed
    assert refusal(client.copy_object, Bucket=bucket, Key="to", CopySource=source, IfNoneMatch=made["ETag"]) == failed
    assert refusal(client.copy_object, Bucket=bucket, Key="to", CopySource=source, IfMatch=OTHER) == failed
    client.copy_object(Bucket=bucket, Key="to", CopySource=source, IfMatch=made["ETag"])
    client.copy_object(Bucket=bucket, Key="to", CopySource=source, IfNoneMatch=OTHER)


def test_a_leased_destination_is_in_the_way(client, service, bucket, made):
    assert made
    service.get_blob_client(bucket, "to").upload_blob(b"x")
    lease = service.get_blob_client(bucket, "to").acquire_lease(15)
    assert refusal(client.copy_object, Bucket=bucket, Key="to", CopySource=f"{bucket}/from") == (409, "OperationAborted")
    lease.release()


def test_a_leased_source_is_read(client, service, bucket, made):
    assert made
    lease = service.get_blob_client(bucket, "from").acquire_lease(15)
    client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from")
    lease.release()


def test_an_archived_destination_is_replaced(client, bucket, made):
    client.put_object(Bucket=bucket, Key="to", Body=b"x", StorageClass="GLACIER")
    client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from")
    assert client.head_object(Bucket=bucket, Key="to")["ETag"] == made["ETag"]


@pytest.mark.parametrize("how", ["GLACIER", "DEEP_ARCHIVE", "Archive"])
def test_an_archived_source_is_not_copied(client, service, bucket, how):
    if how == "Archive":
        service.get_blob_client(bucket, "from").upload_blob(b"x", standard_blob_tier=StandardBlobTier.ARCHIVE)
    else:
        client.put_object(Bucket=bucket, Key="from", Body=b"x", StorageClass=how)
    for target in ("to", "from"):
        assert refusal(client.copy_object, Bucket=bucket, Key=target, CopySource=f"{bucket}/from",
                       MetadataDirective="REPLACE") == (403, "InvalidObjectState")


def test_an_unknown_storage_class_is_refused(raw, bucket, made):
    assert made
    answer = copy(raw, bucket, f"{bucket}/from", x_amz_storage_class="LUKEWARM")
    assert (answer.status, answer.code()) == (400, "InvalidStorageClass")


@pytest.mark.parametrize("headers", [
    {"x-amz-server-side-encryption": "AES256"}, {"x-amz-server-side-encryption": "aws:kms"}, {"x-amz-mfa": "1 2"},
    {"x-amz-grant-read": "id=1"},
    {"x-amz-server-side-encryption-aws-kms-key-id": "k"}, {"x-amz-server-side-encryption-context": "e30="},
])
def test_headers_that_are_not_served_are_refused(raw, bucket, made, headers):
    assert made
    answer = copy(raw, bucket, f"{bucket}/from", **headers)
    assert (answer.status, answer.code()) == (501, "NotImplemented")
    assert missing(raw, bucket)


@pytest.mark.parametrize("method, target", [("GET", "/{bucket}/from"), ("DELETE", "/{bucket}/from"), ("PUT", "/{bucket}")])
def test_a_source_where_nothing_is_copied_is_refused(raw, bucket, made, method, target):
    assert made
    answer = raw.call(method, target.format(bucket=bucket), headers={"x-amz-copy-source": f"{bucket}/from"})
    assert (answer.status, answer.code()) == (501, "NotImplemented")
    assert not missing(raw, bucket, "from")


def test_only_a_half_of_a_part_is_refused(raw, bucket, made):
    assert made
    for query in ([("partNumber", "1")], [("uploadId", "x")]):
        answer = raw.call("PUT", f"/{bucket}/to", query, headers={"x-amz-copy-source": f"{bucket}/from"})
        assert (answer.status, answer.code()) == (400, "InvalidRequest")


def test_the_copy_needs_a_signature(raw, client, bucket, made):
    assert made and client
    answer = raw.send("PUT", f"/{bucket}/to", {"x-amz-copy-source": f"{bucket}/from", "authorization": "AWS4-HMAC-SHA256 x"})
    assert answer.status in (400, 403)
    assert missing(raw, bucket)
    unsigned = raw.sign("PUT", f"/{bucket}/to")
    answer = raw.send("PUT", f"/{bucket}/to", {**unsigned, "x-amz-copy-source": f"{bucket}/from"})
    assert (answer.status, answer.code()) == (403, "AccessDenied")
    assert missing(raw, bucket)


def test_a_presigned_copy_works(raw, bucket, made):
    assert made
    headers = {"x-amz-copy-source": f"{bucket}/from"}
    assert raw.send("PUT", raw.presign("PUT", f"/{bucket}/to", headers=headers), headers).status == 200
    assert raw.call("GET", f"/{bucket}/to").body == b"hello"


def test_a_copy_that_is_presigned_as_a_whole_works(raw, bucket, made):
    """Some clients put all headers of S3 into the query."""
    assert made
    query = [("x-amz-copy-source", f"{bucket}/from"), ("x-amz-copy-source-if-match", made["ETag"])]
    assert raw.send("PUT", raw.presign("PUT", f"/{bucket}/to", query)).text("ETag") == made["ETag"]
    query = [("x-amz-copy-source", f"{bucket}/from"), ("x-amz-copy-source-if-none-match", made["ETag"])]
    answer = raw.send("PUT", raw.presign("PUT", f"/{bucket}/to", query))
    assert (answer.status, answer.code()) == (412, "PreconditionFailed")


def test_the_answer_is_the_documented_document(raw, bucket, made):
    answer = copy(raw, bucket, urllib.parse.quote(f"{bucket}/from"))
    assert answer.headers["content-type"] == "application/xml"
    tree = answer.tree()
    assert tree.tag == "CopyObjectResult" and tree.findtext("ETag") == made["ETag"]
    assert datetime.datetime.strptime(tree.findtext("LastModified"), "%Y-%m-%dT%H:%M:%S.%fZ")
    assert "x-amz-copy-source-version-id" not in answer.headers and "etag" not in answer.headers

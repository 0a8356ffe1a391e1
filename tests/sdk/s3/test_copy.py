"""CopyObject: names of sources, directives, conditions, checksums, keys, and sources that Blob made."""

import base64
import datetime
import hashlib
import urllib.parse
import zlib

import pytest
from azure.storage.blob import BlobType, CustomerProvidedEncryptionKey, StandardBlobTier
from botocore.exceptions import ClientError

from lib import s3
from lib.wire import Wire

ITSELF = ("This copy request is illegal because it is trying to copy an object to itself without changing the object's "
          "metadata, storage class, website redirect location or encryption attributes.")
DAY = datetime.timedelta(days=1)


def copy(raw, bucket, source, key="to", **headers):
    """The raw answer to a copy; headers are written with underscores."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return raw.call("PUT", f"/{bucket}/{key}", headers={"x-amz-copy-source": source, **sent})


def refusal(call, **parameters):
    """Status and code of a refused call."""
    with pytest.raises(ClientError) as refused:
        call(**parameters)
    return s3.code(refused.value)


def missing(raw, bucket, key="to"):
    """Whether there is no object."""
    return raw.call("HEAD", f"/{bucket}/{key}").status == 404


def http_date(time):
    """A time as HTTP writes it."""
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT")


def key_headers(key, prefix=""):
    """The headers of a customer-provided key."""
    start = f"x-amz-{prefix}server-side-encryption-customer-"
    return {f"{start}algorithm": "AES256", f"{start}key": base64.b64encode(key).decode(),
            f"{start}key-md5": base64.b64encode(hashlib.md5(key).digest()).decode()}


def blob_key(key):
    """The same key as Blob has it."""
    return CustomerProvidedEncryptionKey(base64.b64encode(key).decode(),
                                         base64.b64encode(hashlib.sha256(key).digest()).decode())


def keyed(service, bucket, name):
    """A Blob client that sends keys. The SDK does so over https only; the loopback interface is as safe."""
    made = service.get_blob_client(bucket, name)
    made.scheme = "https"
    return made


@pytest.fixture(name="made")
def fixture_made(client, bucket):
    """An object with everything that a copy may take over."""
    return client.put_object(
        Bucket=bucket, Key="from", Body=b"hello", ContentType="text/plain", ContentEncoding="identity",
        ContentLanguage="de", ContentDisposition="inline", CacheControl="no-cache", Metadata={"k": "v"},
        Expires=datetime.datetime(2030, 1, 1), WebsiteRedirectLocation="/there", StorageClass="STANDARD_IA")


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


ALGORITHMS = {
    "CRC32": lambda body: zlib.crc32(body).to_bytes(4, "big"), "SHA1": lambda body: hashlib.sha1(body).digest(),
    "SHA256": lambda body: hashlib.sha256(body).digest(),
}


@pytest.mark.parametrize("kept", [None, *ALGORITHMS])
@pytest.mark.parametrize("wanted", [None, *ALGORITHMS])
def test_checksums_are_kept_or_made_anew(client, account, bucket, kept, wanted):
    body = b"checked" * 20_000
    plain = s3.client(account, request_checksum_calculation="when_required")
    plain.put_object(Bucket=bucket, Key="from", Body=body, **({"ChecksumAlgorithm": kept} if kept else {}))
    answer = client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from",
                                **({"ChecksumAlgorithm": wanted} if wanted else {}))["CopyObjectResult"]
    head = client.head_object(Bucket=bucket, Key="to", ChecksumMode="ENABLED")
    name = wanted or kept
    for shown in (answer, head):
        assert shown["ChecksumType"] == "FULL_OBJECT"
        found = {word for word in ("CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256") if f"Checksum{word}" in shown}
        assert found == {name or "CRC64NVME"}
        if name:
            assert shown[f"Checksum{name}"] == base64.b64encode(ALGORITHMS[name](body)).decode()
    assert answer["ETag"] == f'"{hashlib.md5(body).hexdigest()}"'


@pytest.mark.parametrize("name", ["CRC32C", "CRC64NVME"])
def test_other_checksums_of_a_copy_are_of_its_content(client, account, bucket, name):
    # boto3 computes neither without an extension: the value of one is known, of the other that of a plain PUT.
    plain = s3.client(account, request_checksum_calculation="when_required")
    plain.put_object(Bucket=bucket, Key="from", Body=b"123456789")
    head = client.head_object(Bucket=bucket, Key="from", ChecksumMode="ENABLED")
    expected = {"CRC64NVME": head["ChecksumCRC64NVME"], "CRC32C": base64.b64encode(bytes.fromhex("e3069283")).decode()}
    client.put_object(Bucket=bucket, Key="other", Body=b"123456789", ChecksumAlgorithm="SHA256")
    for source in ("from", "other"):
        answer = client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/{source}", ChecksumAlgorithm=name)
        assert answer["CopyObjectResult"][f"Checksum{name}"] == expected[name]


def test_an_unknown_checksum_is_refused(raw, bucket, made):
    assert made
    answer = copy(raw, bucket, f"{bucket}/from", x_amz_checksum_algorithm="MD4")
    assert (answer.status, answer.code()) == (400, "InvalidRequest")


ONE, TWO = b"1" * 32, b"2" * 32


@pytest.mark.parametrize("size", [5, 70_000])
@pytest.mark.parametrize("source, target", [(None, ONE), (ONE, None), (ONE, ONE), (ONE, TWO)])
def test_content_is_encrypted_anew_when_keys_differ(raw, service, bucket, source, target, size):
    body = b"k" * size
    under = {"cpk": blob_key(source)} if source else {}
    keyed(service, bucket, "from").upload_blob(body, metadata={"k": "v"}, **under)
    headers = {**(key_headers(source, "copy-source-") if source else {}), **(key_headers(target) if target else {})}
    answer = copy(raw, bucket, f"{bucket}/from", **headers)
    assert answer.status == 200, answer.body
    tag = answer.text("ETag").strip('"')
    if target:
        assert tag != hashlib.md5(body).hexdigest() and "-" in tag
    else:
        assert tag == hashlib.md5(body).hexdigest()
    service.get_blob_client(bucket, "from").delete_blob()
    blob = keyed(service, bucket, "to")
    under = {"cpk": blob_key(target)} if target else {}
    got = blob.download_blob(**under)
    assert got.readall() == body and got.properties.metadata == {"k": "v"}
    for wrong in (None, ONE, TWO):
        if wrong != target:
            with pytest.raises(Exception):
                blob.download_blob(**({"cpk": blob_key(wrong)} if wrong else {})).readall()


@pytest.mark.parametrize("size", [5, 70_000])
def test_the_key_of_an_object_is_changed_in_place(raw, service, bucket, size):
    body = b"k" * size
    keyed(service, bucket, "from").upload_blob(body, cpk=blob_key(ONE))
    headers = {**key_headers(ONE, "copy-source-"), **key_headers(TWO)}
    assert copy(raw, bucket, f"{bucket}/from", key="from", **headers).status == 200
    assert keyed(service, bucket, "from").download_blob(cpk=blob_key(TWO)).readall() == body


@pytest.mark.parametrize("algorithm", ["SHA256", "CRC32"])
@pytest.mark.parametrize("target", [ONE, TWO])
def test_checksums_under_keys_are_of_the_content(raw, service, bucket, algorithm, target):
    body = b"k" * 70_000
    keyed(service, bucket, "from").upload_blob(body, cpk=blob_key(ONE))
    answer = copy(raw, bucket, f"{bucket}/from", x_amz_checksum_algorithm=algorithm,
                  **key_headers(ONE, "copy-source-"), **key_headers(target))
    assert answer.text(f"Checksum{algorithm}") == base64.b64encode(ALGORITHMS[algorithm](body)).decode()
    again = copy(raw, bucket, f"{bucket}/to", key="third", **key_headers(target, "copy-source-"), **key_headers(target))
    assert again.text(f"Checksum{algorithm}") == base64.b64encode(ALGORITHMS[algorithm](body)).decode()


@pytest.mark.parametrize("given", [{}, key_headers(TWO, "copy-source-")])
def test_a_source_under_another_key_is_refused(raw, service, bucket, given):
    keyed(service, bucket, "from").upload_blob(b"secret", cpk=blob_key(ONE))
    answer = copy(raw, bucket, f"{bucket}/from", **given)
    assert (answer.status, answer.code()) == (400, "InvalidRequest")
    assert missing(raw, bucket)


def test_a_key_for_a_plain_source_is_refused(raw, bucket, made):
    assert made
    answer = copy(raw, bucket, f"{bucket}/from", **key_headers(ONE, "copy-source-"))
    assert (answer.status, answer.code()) == (400, "InvalidRequest")


@pytest.mark.parametrize("prefix", ["", "copy-source-"])
@pytest.mark.parametrize("field, value", [
    ("algorithm", None), ("algorithm", "AES128"), ("algorithm", "aws:kms"), ("key", None), ("key", "nonsense!"),
    ("key", base64.b64encode(b"1" * 31).decode()), ("key", base64.b64encode(TWO).decode()), ("key-md5", None),
    ("key-md5", "nonsense"), ("key-md5", base64.b64encode(hashlib.md5(TWO).digest()).decode()),
])
def test_malformed_keys_are_refused(raw, bucket, made, prefix, field, value):
    assert made
    headers = key_headers(ONE, prefix)
    name = f"x-amz-{prefix}server-side-encryption-customer-{field}"
    if value is None:
        del headers[name]
    else:
        headers[name] = value
    answer = copy(raw, bucket, f"{bucket}/from", **headers)
    is_other = field == "algorithm" and value is not None
    code = "InvalidEncryptionAlgorithmError" if is_other else "InvalidArgument"
    assert (answer.status, answer.code()) == (400, code)
    assert base64.b64encode(ONE) not in answer.body and missing(raw, bucket)


def test_what_blob_stored_under_a_key_is_copied(account, raw, bucket):
    body = b"k" * 70_000
    keys = {"x-ms-encryption-key": base64.b64encode(ONE).decode(), "x-ms-encryption-algorithm": "AES256",
            "x-ms-encryption-key-sha256": base64.b64encode(hashlib.sha256(ONE).digest()).decode()}
    wire = Wire(account)
    put = wire.request("PUT", f"/{bucket}/from", headers={"x-ms-blob-type": "BlockBlob", **keys}, body=body)
    assert put.status == 201, put.body
    for target in (None, ONE, TWO):
        headers = {**key_headers(ONE, "copy-source-"), **(key_headers(target) if target else {})}
        assert copy(raw, bucket, f"{bucket}/from", **headers).status == 200
        assert raw.call("GET", f"/{bucket}/to", headers=key_headers(target) if target else {}).body == body
    assert copy(raw, bucket, f"{bucket}/from", **key_headers(ONE, "copy-source-"), **key_headers(ONE)).status == 200
    got = wire.request("GET", f"/{bucket}/to", headers=keys)
    assert got.status == 200 and got.body == body
    wire.close()


def test_block_blobs_of_blob_are_copied(client, service, bucket):
    blob = service.get_blob_client(bucket, "from")
    parts = [b"one" * 1000, b"two", b"three" * 50_000]
    for number, part in enumerate(parts):
        blob.stage_block(f"{number:08}", part)
    blob.commit_block_list([f"{number:08}" for number in range(3)], metadata={"k": "v"})
    tag = client.head_object(Bucket=bucket, Key="from")["ETag"]
    answer = client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from")["CopyObjectResult"]
    assert answer["ETag"] == tag == client.head_object(Bucket=bucket, Key="to")["ETag"]
    blob.delete_blob()
    assert client.get_object(Bucket=bucket, Key="to")["Body"].read() == b"".join(parts)
    committed, _ = service.get_blob_client(bucket, "to").get_block_list("all")
    assert [one.size for one in committed] == [len(part) for part in parts]


@pytest.mark.parametrize("sizes", [[], [3], [5, 7], [100_000, 3, 100_000]])
def test_append_blobs_are_copied_as_objects(client, service, bucket, sizes):
    blob = service.get_blob_client(bucket, "from")
    blob.create_append_blob(metadata={"k": "v"})
    for number, size in enumerate(sizes):
        blob.append_block(bytes([65 + number]) * size)
    whole = b"".join(bytes([65 + number]) * size for number, size in enumerate(sizes))
    answer = client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from")["CopyObjectResult"]
    blob.append_block(b"more")
    head = client.head_object(Bucket=bucket, Key="to")
    assert head["ETag"] == answer["ETag"] and head["Metadata"] == {"k": "v"}
    assert client.get_object(Bucket=bucket, Key="to")["Body"].read() == whole
    assert service.get_blob_client(bucket, "to").get_blob_properties().blob_type == BlobType.BLOCKBLOB
    assert service.get_blob_client(bucket, "to").download_blob().readall() == whole


@pytest.mark.parametrize("size", [512, 1 << 20])
def test_page_blobs_are_copied_as_objects(client, service, bucket, size):
    blob = service.get_blob_client(bucket, "from")
    blob.create_page_blob(size)
    blob.upload_page(b"p" * 512, offset=size - 512, length=512)
    whole = b"\0" * (size - 512) + b"p" * 512
    answer = client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from")["CopyObjectResult"]
    assert answer["ETag"] == f'"{hashlib.md5(whole).hexdigest()}"'
    assert client.get_object(Bucket=bucket, Key="to")["Body"].read() == whole
    assert service.get_blob_client(bucket, "to").get_blob_properties().blob_type == BlobType.BLOCKBLOB


def test_a_content_md5_that_blob_merely_set_is_no_tag(client, service, bucket):
    blob = service.get_blob_client(bucket, "from")
    blob.stage_block("AAAA", b"content")
    from azure.storage.blob import ContentSettings  # pylint: disable=import-outside-toplevel
    claimed = hashlib.md5(b"other").digest()
    blob.commit_block_list(["AAAA"], content_settings=ContentSettings(content_md5=bytearray(claimed)))
    answer = client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from")["CopyObjectResult"]
    assert answer["ETag"].strip('"') != claimed.hex() and "-" in answer["ETag"]
    properties = service.get_blob_client(bucket, "to").get_blob_properties()
    assert bytes(properties.content_settings.content_md5) == claimed


def test_blob_copies_what_s3_copied(client, service, bucket, made):
    client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from")
    source = service.get_blob_client(bucket, "to")
    service.get_blob_client(bucket, "third").start_copy_from_url(source.url)
    head = client.head_object(Bucket=bucket, Key="third")
    assert head["ETag"] == made["ETag"] and head["Metadata"] == {"k": "v"}
    assert service.get_blob_client(bucket, "to").get_blob_properties().copy.id is None
    client.copy_object(Bucket=bucket, Key="fourth", CopySource=f"{bucket}/third")
    assert client.get_object(Bucket=bucket, Key="fourth")["Body"].read() == b"hello"
    assert service.get_blob_client(bucket, "fourth").get_blob_properties().copy.id is None


def test_snapshots_stay_what_they_are(client, service, bucket):
    body = b"s" * 100_000
    client.put_object(Bucket=bucket, Key="from", Body=body)
    snapshot = service.get_blob_client(bucket, "from").create_snapshot()["snapshot"]
    client.copy_object(Bucket=bucket, Key="to", CopySource=f"{bucket}/from")
    client.put_object(Bucket=bucket, Key="from", Body=b"new")
    assert service.get_blob_client(bucket, "from", snapshot=snapshot).download_blob().readall() == body
    assert client.get_object(Bucket=bucket, Key="to")["Body"].read() == body


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

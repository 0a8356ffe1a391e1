"""UploadPartCopy: whole sources, ranges, conditions, checksums, keys, and what is read back."""

import base64
import datetime
import hashlib
import zlib

import pytest
from azure.storage.blob import BlobType, CustomerProvidedEncryptionKey, generate_blob_sas
from botocore.exceptions import ClientError

from lib import s3

MIB = 1 << 20
BODY = b"".join(bytes([number]) * MIB for number in range(7)) + b"the end"


def start(client, bucket, **parameters):
    """Begins an upload of the key `to`."""
    return client.create_multipart_upload(Bucket=bucket, Key="to", **parameters)["UploadId"]


def take(client, bucket, upload, number, source="from", **parameters):
    """Copies a part."""
    answer = client.upload_part_copy(Bucket=bucket, Key="to", UploadId=upload, PartNumber=number,
                                     CopySource={"Bucket": bucket, "Key": source}, **parameters)
    return answer["CopyPartResult"]


def complete(client, bucket, upload, parts):
    """Completes an upload with these answers to parts."""
    named = [{"PartNumber": number + 1, **{key: part[key] for key in part if key == "ETag" or key.startswith("Checksum")}}
             for number, part in enumerate(parts)]
    return client.complete_multipart_upload(Bucket=bucket, Key="to", UploadId=upload, MultipartUpload={"Parts": named})


def body_of(client, bucket, key="to"):
    """What an object holds."""
    return client.get_object(Bucket=bucket, Key=key)["Body"].read()


def copy(raw, bucket, upload, source, number="1", **headers):
    """The raw answer to the copy of a part; headers are written with underscores."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return raw.call("PUT", f"/{bucket}/to", [("partNumber", number), ("uploadId", upload)],
                    headers={"x-amz-copy-source": source, **sent})


def md5_of(body):
    """A tag as an object of one piece has it."""
    return f'"{hashlib.md5(body).hexdigest()}"'


@pytest.fixture(name="made")
def fixture_made(client, bucket):
    """An object of 7 MiB and a bit."""
    return client.put_object(Bucket=bucket, Key="from", Body=BODY)


def test_an_object_becomes_a_part(client, bucket, made):
    upload = start(client, bucket)
    part = take(client, bucket, upload, 1)
    assert part["ETag"] == made["ETag"] == md5_of(BODY)
    assert abs(part["LastModified"] - datetime.datetime.now(datetime.timezone.utc)) < datetime.timedelta(minutes=5)
    listed = client.list_parts(Bucket=bucket, Key="to", UploadId=upload)["Parts"]
    assert [(one["PartNumber"], one["Size"], one["ETag"]) for one in listed] == [(1, len(BODY), made["ETag"])]
    done = complete(client, bucket, upload, [part])
    assert done["ETag"] == f'"{hashlib.md5(hashlib.md5(BODY).digest()).hexdigest()}-1"'
    client.delete_object(Bucket=bucket, Key="from")
    assert body_of(client, bucket) == BODY


@pytest.mark.parametrize("first, last", [
    (0, len(BODY) - 1), (0, 0), (5, 9), (len(BODY) - 1, len(BODY) - 1),
    # Whole frames.
    (0, MIB - 1), (MIB, 3 * MIB - 1), (6 * MIB, len(BODY) - 1), (7 * MIB, len(BODY) - 1),
    # They are cut.
    (MIB, 3 * MIB), (MIB - 1, 3 * MIB - 1), (1, MIB), (3 * MIB, len(BODY) - 2),
])
def test_a_range_becomes_a_part(client, bucket, made, first, last):
    assert made
    wanted = BODY[first:last + 1]
    upload = start(client, bucket)
    part = take(client, bucket, upload, 1, CopySourceRange=f"bytes={first}-{last}")
    assert part["ETag"] == md5_of(wanted)
    complete(client, bucket, upload, [part])
    client.put_object(Bucket=bucket, Key="from", Body=b"new")
    assert body_of(client, bucket) == wanted


def test_ranges_and_bodies_are_put_together(client, bucket, made):
    assert made
    upload = start(client, bucket)
    sent = client.upload_part(Bucket=bucket, Key="to", UploadId=upload, PartNumber=2, Body=b"b" * (5 * MIB))
    parts = [take(client, bucket, upload, 1, CopySourceRange=f"bytes={MIB}-{6 * MIB - 1}"), sent, take(client, bucket, upload, 3)]
    whole = BODY[MIB:6 * MIB] + b"b" * (5 * MIB) + BODY
    done = complete(client, bucket, upload, parts)
    digests = b"".join(hashlib.md5(part).digest() for part in (BODY[MIB:6 * MIB], b"b" * (5 * MIB), BODY))
    assert done["ETag"] == f'"{hashlib.md5(digests).hexdigest()}-3"'
    assert body_of(client, bucket) == whole
    ranged = client.get_object(Bucket=bucket, Key="to", Range=f"bytes={5 * MIB - 3}-{5 * MIB + 2}")["Body"].read()
    assert ranged == whole[5 * MIB - 3:5 * MIB + 3]
    assert client.get_object(Bucket=bucket, Key="to", PartNumber=3)["Body"].read() == BODY


def test_parts_of_an_upload_become_parts(client, bucket, made):
    assert made
    upload = start(client, bucket)
    first, second = b"1" * (5 * MIB + 1), b"2" * (5 * MIB + 1)
    parts = [client.upload_part(Bucket=bucket, Key="to", UploadId=upload, PartNumber=number + 1, Body=body)
             for number, body in enumerate((first, second))]
    complete(client, bucket, upload, parts)
    upload = client.create_multipart_upload(Bucket=bucket, Key="third")["UploadId"]
    source = {"CopySource": f"{bucket}/to", "Bucket": bucket, "Key": "third", "UploadId": upload}
    middle = f"bytes={len(first)}-{len(first) + len(second) - 1}"
    one = client.upload_part_copy(PartNumber=1, CopySourceRange=middle, **source)["CopyPartResult"]
    assert one["ETag"] == md5_of(second)
    # Of two parts together no MD5 is known without reading them.
    both = client.upload_part_copy(PartNumber=2, **source)["CopyPartResult"]
    named = [{"PartNumber": number + 1, "ETag": part["ETag"]} for number, part in enumerate((one, both))]
    client.complete_multipart_upload(Bucket=bucket, Key="third", UploadId=upload, MultipartUpload={"Parts": named})
    assert body_of(client, bucket, "third") == second + first + second


def test_a_copied_upload_still_has_its_parts(client, bucket, made):
    assert made
    upload = start(client, bucket)
    bodies = [b"1" * (5 * MIB), b"2" * 10]
    parts = [client.upload_part(Bucket=bucket, Key="to", UploadId=upload, PartNumber=number + 1, Body=body)
             for number, body in enumerate(bodies)]
    done = complete(client, bucket, upload, parts)
    answer = client.copy_object(Bucket=bucket, Key="third", CopySource=f"{bucket}/to")["CopyObjectResult"]
    assert answer["ETag"] == done["ETag"]
    for number, body in enumerate(bodies):
        got = client.get_object(Bucket=bucket, Key="third", PartNumber=number + 1)
        assert got["Body"].read() == body and got["PartsCount"] == 2 and got["ETag"] == done["ETag"]
    upload = client.create_multipart_upload(Bucket=bucket, Key="fourth")["UploadId"]
    first = client.upload_part_copy(Bucket=bucket, Key="fourth", UploadId=upload, PartNumber=1, CopySource=f"{bucket}/third",
                                    CopySourceRange=f"bytes=0-{5 * MIB - 1}")["CopyPartResult"]
    assert first["ETag"] == parts[0]["ETag"]


def test_of_a_part_copied_twice_the_last_counts(client, bucket, made):
    assert made
    upload = start(client, bucket)
    take(client, bucket, upload, 1)
    part = take(client, bucket, upload, 1, CopySourceRange="bytes=0-9")
    complete(client, bucket, upload, [part])
    assert body_of(client, bucket) == BODY[:10]


@pytest.mark.parametrize("value", ["0-2", "bytes=0", "bytes=-2", "bytes=2-", "bytes=hello-world", "bytes=0-bar", "bytes=hello-",
                                   "bytes=2-1", "bytes=0-2,3-5", "bytes=+0-2", "Bytes=0-2", "bytes=0-18446744073709551616"])
def test_malformed_ranges_are_refused(raw, client, bucket, made, value):
    assert made
    upload = start(client, bucket)
    answer = copy(raw, bucket, upload, f"{bucket}/from", x_amz_copy_source_range=value)
    assert (answer.status, answer.code()) == (400, "InvalidArgument")
    assert "Parts" not in client.list_parts(Bucket=bucket, Key="to", UploadId=upload)


@pytest.mark.parametrize("value", [f"bytes=0-{len(BODY)}", f"bytes={len(BODY)}-{len(BODY)}", "bytes=100000000-200000000",
                                   "bytes=0-18446744073709551615"])
def test_ranges_beyond_the_end_are_refused(raw, client, bucket, made, value):
    assert made
    upload = start(client, bucket)
    answer = copy(raw, bucket, upload, f"{bucket}/from", x_amz_copy_source_range=value)
    assert (answer.status, answer.code()) == (416, "InvalidRange")
    assert "Parts" not in client.list_parts(Bucket=bucket, Key="to", UploadId=upload)


def test_a_range_of_nothing_is_refused_and_nothing_is_taken(raw, client, bucket):
    client.put_object(Bucket=bucket, Key="from", Body=b"")
    upload = start(client, bucket)
    assert copy(raw, bucket, upload, f"{bucket}/from", x_amz_copy_source_range="bytes=0-0").code() == "InvalidRange"
    part = take(client, bucket, upload, 1)
    complete(client, bucket, upload, [part])
    assert body_of(client, bucket) == b""


def test_a_range_is_not_for_whole_copies(raw, bucket, made):
    assert made
    answer = raw.call("PUT", f"/{bucket}/to", headers={"x-amz-copy-source": f"{bucket}/from", "x-amz-copy-source-range": "bytes=0-1"})
    assert (answer.status, answer.code()) == (501, "NotImplemented")


@pytest.mark.parametrize("number", ["0", "-1", "10001", "x", "1.5", ""])
def test_wrong_part_numbers_are_refused(raw, client, bucket, made, number):
    assert made
    answer = copy(raw, bucket, start(client, bucket), f"{bucket}/from", number=number)
    assert (answer.status, answer.code()) == (400, "InvalidArgument")


def test_what_does_not_exist_is_no_part(raw, client, bucket, made):
    assert made
    upload = start(client, bucket)
    for source, expected in [(f"{bucket}/none", (404, "NoSuchKey")), ("no-such-bucket/from", (404, "NoSuchBucket")),
                             (bucket, (400, "InvalidArgument")), (f"{bucket}/from?versionId=x", (400, "InvalidArgument"))]:
        answer = copy(raw, bucket, upload, source)
        assert (answer.status, answer.code()) == expected
    client.abort_multipart_upload(Bucket=bucket, Key="to", UploadId=upload)
    for gone in (upload, "nonsense"):
        answer = copy(raw, bucket, gone, f"{bucket}/from")
        assert (answer.status, answer.code()) == (404, "NoSuchUpload")
    answer = raw.call("PUT", "/no-such-bucket/to", [("partNumber", "1"), ("uploadId", upload)],
                      headers={"x-amz-copy-source": f"{bucket}/from"})
    assert (answer.status, answer.code()) == (404, "NoSuchBucket")


OTHER = '"d41d8cd98f00b204e9800998ecf8427e"'


@pytest.mark.parametrize("header, value, status", [
    ("x-amz-copy-source-if-match", "own", 200), ("x-amz-copy-source-if-match", OTHER, 412),
    ("x-amz-copy-source-if-none-match", "own", 412), ("x-amz-copy-source-if-none-match", OTHER, 200),
    ("x-amz-copy-source-if-modified-since", "Tue, 01 Jan 2030 00:00:00 GMT", 412),
    ("x-amz-copy-source-if-modified-since", "Wed, 01 Jan 2020 00:00:00 GMT", 200),
    ("x-amz-copy-source-if-unmodified-since", "Wed, 01 Jan 2020 00:00:00 GMT", 412),
    ("x-amz-copy-source-if-unmodified-since", "Fri, 01 Jan 2100 00:00:00 GMT", 200),
])
def test_conditions_of_the_source(raw, client, bucket, made, header, value, status):
    if "if-modified-since" in header and "2030" in value:
        value = "Fri, 01 Jan 2100 00:00:00 GMT"
    answer = copy(raw, bucket, start(client, bucket), f"{bucket}/from", **{header: made["ETag"] if value == "own" else value})
    assert answer.status == status
    if status != 200:
        assert answer.code() == "PreconditionFailed"


def test_an_archived_source_is_no_part(raw, client, bucket):
    client.put_object(Bucket=bucket, Key="from", Body=b"x", StorageClass="GLACIER")
    answer = copy(raw, bucket, start(client, bucket), f"{bucket}/from")
    assert (answer.status, answer.code()) == (403, "InvalidObjectState")


@pytest.mark.parametrize("first, last", [(0, len(BODY) - 1), (MIB, 2 * MIB - 1), (3, 1000)])
@pytest.mark.parametrize("algorithm, function", [("SHA256", lambda body: hashlib.sha256(body).digest()),
                                                 ("CRC32", lambda body: zlib.crc32(body).to_bytes(4, "big"))])
def test_parts_have_the_checksum_of_their_upload(client, bucket, made, algorithm, function, first, last):
    assert made
    wanted = BODY[first:last + 1]
    upload = start(client, bucket, ChecksumAlgorithm=algorithm)
    part = take(client, bucket, upload, 1, CopySourceRange=f"bytes={first}-{last}")
    assert part[f"Checksum{algorithm}"] == base64.b64encode(function(wanted)).decode()
    assert part["ETag"] == md5_of(wanted)
    done = complete(client, bucket, upload, [part])
    assert done[f"Checksum{algorithm}"] == base64.b64encode(function(function(wanted))).decode() + "-1"
    assert body_of(client, bucket) == wanted


def test_a_checksum_that_the_source_has_is_taken_over(client, bucket):
    put = client.put_object(Bucket=bucket, Key="from", Body=BODY, ChecksumAlgorithm="SHA256")
    upload = start(client, bucket, ChecksumAlgorithm="SHA256")
    part = take(client, bucket, upload, 1)
    assert part["ChecksumSHA256"] == put["ChecksumSHA256"] and part["ETag"] == put["ETag"]


def test_an_upload_of_crc64_copies_without_reading(client, account, bucket, made):
    assert made
    upload = start(client, bucket, ChecksumAlgorithm="CRC64NVME", ChecksumType="FULL_OBJECT")
    parts = [take(client, bucket, upload, 1), take(client, bucket, upload, 2)]
    done = complete(client, bucket, upload, parts)
    plain = s3.client(account, request_checksum_calculation="when_required")
    plain.put_object(Bucket=bucket, Key="same", Body=BODY + BODY)
    same = client.head_object(Bucket=bucket, Key="same", ChecksumMode="ENABLED")
    assert done["ChecksumCRC64NVME"] == same["ChecksumCRC64NVME"]


def blob_key(key):
    """A customer-provided key as Blob has it."""
    return CustomerProvidedEncryptionKey(base64.b64encode(key).decode(), base64.b64encode(hashlib.sha256(key).digest()).decode())


def keyed(service, bucket, name):
    """A Blob client that sends keys. The SDK does so over https only; the loopback interface is as safe."""
    made = service.get_blob_client(bucket, name)
    made.scheme = "https"
    return made


def test_a_source_under_a_key_is_decrypted(raw, client, service, bucket):
    key = b"k" * 32
    keyed(service, bucket, "from").upload_blob(BODY[:3 * MIB], cpk=blob_key(key))
    upload = start(client, bucket)
    assert copy(raw, bucket, upload, f"{bucket}/from").code() == "InvalidRequest"
    begin = "x-amz-copy-source-server-side-encryption-customer-"
    headers = {f"{begin}algorithm": "AES256", f"{begin}key": base64.b64encode(key).decode(),
               f"{begin}key-md5": base64.b64encode(hashlib.md5(key).digest()).decode()}
    answer = copy(raw, bucket, upload, f"{bucket}/from", **headers)
    assert answer.status == 200 and answer.text("ETag") == md5_of(BODY[:3 * MIB])
    complete(client, bucket, upload, [{"ETag": answer.text("ETag")}])
    assert body_of(client, bucket) == BODY[:3 * MIB]


def key_headers(key, prefix=""):
    """The headers of a customer-provided key."""
    begin = f"x-amz-{prefix}server-side-encryption-customer-"
    return {f"{begin}algorithm": "AES256", f"{begin}key": base64.b64encode(key).decode(),
            f"{begin}key-md5": base64.b64encode(hashlib.md5(key).digest()).decode()}


ONE, TWO = b"1" * 32, b"2" * 32


@pytest.mark.parametrize("given", [None, "bytes=0-2097151", "bytes=7-1048583"])
@pytest.mark.parametrize("source, target", [(ONE, None), (None, ONE), (ONE, ONE), (ONE, TWO)])
def test_parts_are_encrypted_as_their_upload(raw, bucket, source, target, given):
    body = BODY[:3 * MIB]
    of_source = key_headers(source, "copy-source-") if source else {}
    of_target = key_headers(target) if target else {}
    put = raw.call("PUT", f"/{bucket}/from", headers=key_headers(source) if source else {}, body=body)
    assert put.status == 200
    upload = raw.call("POST", f"/{bucket}/to", [("uploads", "")], headers=of_target).text("UploadId")
    if source:
        assert copy(raw, bucket, upload, f"{bucket}/from", **of_target).code() == "InvalidRequest"
    if target:
        assert copy(raw, bucket, upload, f"{bucket}/from", **of_source).code() == "InvalidRequest"
    sent = {"x-amz-copy-source-range": given} if given else {}
    part = copy(raw, bucket, upload, f"{bucket}/from", **sent, **of_source, **of_target)
    assert part.status == 200, part.body
    wanted = body
    if given:
        first, last = given.removeprefix("bytes=").split("-")
        wanted = body[int(first):int(last) + 1]
    if not target:
        assert part.text("ETag") == md5_of(wanted)
    document = (f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{part.text('ETag')}</ETag></Part>"
                "</CompleteMultipartUpload>").encode()
    done = raw.call("POST", f"/{bucket}/to", [("uploadId", upload)], headers=of_target, body=document)
    assert done.status == 200, done.body
    assert raw.call("GET", f"/{bucket}/to", headers=of_target).body == wanted


def test_blobs_of_every_kind_become_parts(client, service, bucket):
    append = service.get_blob_client(bucket, "append")
    append.create_append_blob()
    for letter in b"ab":
        append.append_block(bytes([letter]) * (3 * MIB))
    page = service.get_blob_client(bucket, "page")
    page.create_page_blob(5 * MIB)
    page.upload_page(b"p" * 512, offset=512, length=512)
    blocks = service.get_blob_client(bucket, "blocks")
    blocks.stage_block("AAAA", b"c" * (3 * MIB))
    blocks.stage_block("BBBB", b"d" * (3 * MIB))
    blocks.commit_block_list(["AAAA", "BBBB"])
    upload = start(client, bucket)
    parts = [take(client, bucket, upload, number + 1, source) for number, source in enumerate(("append", "page", "blocks"))]
    parts.append(take(client, bucket, upload, 4, "blocks", CopySourceRange=f"bytes={3 * MIB}-{6 * MIB - 1}"))
    complete(client, bucket, upload, parts)
    pages = b"\0" * 512 + b"p" * 512 + b"\0" * (5 * MIB - 1024)
    whole = b"a" * (3 * MIB) + b"b" * (3 * MIB) + pages + b"c" * (3 * MIB) + 2 * b"d" * (3 * MIB)
    for name in ("append", "page", "blocks"):
        service.get_blob_client(bucket, name).delete_blob()
    assert body_of(client, bucket) == whole
    assert service.get_blob_client(bucket, "to").get_blob_properties().blob_type == BlobType.BLOCKBLOB


def test_blob_takes_whole_frames_too(client, service, account, bucket, made):
    assert made and client
    expiry = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    sas = generate_blob_sas(account.name, bucket, "from", account_key=account.key, permission="r", expiry=expiry)
    source = f"{service.get_blob_client(bucket, 'from').url}?{sas}"
    target = service.get_blob_client(bucket, "blob")
    for offset, length in ((MIB, 2 * MIB), (MIB + 1, MIB)):
        target.stage_block_from_url("AAAA", source, source_offset=offset, source_length=length)
        target.commit_block_list(["AAAA"])
        assert target.download_blob().readall() == BODY[offset:offset + length]


def test_a_part_copied_by_a_sdk_transfer(client, bucket, made):
    """boto3's own transfer copies a large object in parts."""
    assert made
    from boto3.s3.transfer import TransferConfig  # pylint: disable=import-outside-toplevel
    config = TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB)
    client.copy({"Bucket": bucket, "Key": "from"}, bucket, "to", Config=config)
    assert body_of(client, bucket) == BODY
    assert client.head_object(Bucket=bucket, Key="to")["ETag"].endswith('-2"')


def test_the_answer_is_the_documented_document(raw, client, bucket, made):
    answer = copy(raw, bucket, start(client, bucket), f"{bucket}/from")
    tree = answer.tree()
    assert tree.tag == "CopyPartResult" and [element.tag for element in tree] == ["LastModified", "ETag"]
    assert tree.findtext("ETag") == made["ETag"]


def test_a_client_error_is_raised(client, bucket, made):
    assert made
    with pytest.raises(ClientError) as refused:
        take(client, bucket, start(client, bucket), 1, CopySourceIfMatch=OTHER)
    assert s3.code(refused.value) == (412, "PreconditionFailed")

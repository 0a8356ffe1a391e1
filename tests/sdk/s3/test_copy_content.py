"""The content of copies: checksums, keys, and sources that Blob made."""

import base64
import hashlib
import zlib

import pytest
from azure.storage.blob import BlobType, CustomerProvidedEncryptionKey

from lib import s3
from lib.s3_copies import copy, missing
from lib.wire import Wire


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

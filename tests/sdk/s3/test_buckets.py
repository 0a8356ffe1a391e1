"""Buckets: made, found, listed, deleted when they are empty and only then."""

import concurrent.futures
import uuid

import pytest
from botocore.exceptions import ClientError

from lib import s3

CONFIGURATION = (b'<CreateBucketConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
                 b"<LocationConstraint>%s</LocationConstraint></CreateBucketConfiguration>")


def fresh(prefix="b"):
    """A name that no bucket has."""
    return f"{prefix}{uuid.uuid4().hex}"


def refusal(call, **arguments):
    """Status and code with which boto3's call is refused."""
    with pytest.raises(ClientError) as refused:
        call(**arguments)
    return s3.code(refused.value)


@pytest.fixture
def made(service):
    """Names of buckets that are deleted in the end."""
    names = []
    yield names
    for name in names:
        try:
            service.delete_container(name)
        except Exception:  # pylint: disable=broad-except
            pass  # The test deleted it itself.


def test_a_bucket_has_the_region_it_was_made_in(client, raw, made):
    plain, far, old = fresh(), fresh(), fresh()
    made += [plain, far, old]
    client.create_bucket(Bucket=plain)
    client.create_bucket(Bucket=far, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    client.create_bucket(Bucket=old, CreateBucketConfiguration={"LocationConstraint": "EU"})
    for name, location, region in ((plain, None, "us-east-1"), (far, "eu-central-1", "eu-central-1"), (old, "EU", "EU")):
        assert client.get_bucket_location(Bucket=name)["LocationConstraint"] == location
        assert client.head_bucket(Bucket=name)["BucketRegion"] == region
        listed = client.list_buckets(Prefix=name)["Buckets"]
        assert [(one["Name"], one["BucketRegion"]) for one in listed] == [(name, region)]
    assert [one["Name"] for one in client.list_buckets(BucketRegion="eu-central-1", Prefix=far)["Buckets"]] == [far]
    assert client.list_buckets(BucketRegion="eu-west-9", Prefix=far)["Buckets"] == []
    answer = raw.call("GET", f"/{plain}", [("location", "")])
    assert answer.status == 200 and b"<LocationConstraint" in answer.body and answer.tree().text is None


def test_one_s_own_bucket_is_made_again_only_with_the_same_settings(client, raw, made):
    name = fresh()
    made.append(name)
    assert client.create_bucket(Bucket=name)["Location"] == f"/{name}"
    client.put_object(Bucket=name, Key="kept", Body=b"x")
    client.create_bucket(Bucket=name)
    assert client.get_object(Bucket=name, Key="kept")["Body"].read() == b"x"
    far = {"LocationConstraint": "eu-central-1"}
    assert refusal(client.create_bucket, Bucket=name, CreateBucketConfiguration=far) == (409, "BucketAlreadyExists")
    assert raw.call("PUT", f"/{name}", body=b"").status == 200


def test_a_container_of_blob_is_a_bucket(client, service, made):
    name = fresh()
    made.append(name)
    service.create_container(name)
    client.create_bucket(Bucket=name)
    assert name in [one["Name"] for one in client.list_buckets(Prefix=name)["Buckets"]]
    client.delete_bucket(Bucket=name)
    assert not service.get_container_client(name).exists()


def test_documents_of_new_buckets_are_read_strictly(raw, made):
    name = fresh()
    made.append(name)
    for body, code in (
        (b"<CreateBucketConfiguration>", "MalformedXML"),
        (b"<Other/>", "MalformedXML"),
        (b"<CreateBucketConfiguration><X/></CreateBucketConfiguration>", "MalformedXML"),
        (CONFIGURATION % b"not a region", "InvalidLocationConstraint"),
        (CONFIGURATION % b"UPPER", "InvalidLocationConstraint"),
        (CONFIGURATION % (b"a" * 65), "InvalidLocationConstraint"),
        (b"<CreateBucketConfiguration><Bucket><Type>Directory</Type></Bucket></CreateBucketConfiguration>", "NotImplemented"),
        (b"<CreateBucketConfiguration>" + b" " * 20_000 + b"</CreateBucketConfiguration>", "EntityTooLarge"),
    ):
        assert raw.call("PUT", f"/{name}", body=body).code() == code, body[:80]
    assert raw.call("HEAD", f"/{name}").status == 404
    assert raw.call("PUT", f"/{name}", body=CONFIGURATION % b"").status == 200


@pytest.mark.parametrize("name", ["ab", "k" * 64, "Abc", "a_b", "abc-", ".abc", "a..b", "192.168.5.4", "xn--abc", "sthree-abc",
                                  "amzn-s3-demo-abc", "abc-s3alias", "abc--ol-s3", "abc.mrap", "abc--x-s3", "abc--table-s3",
                                  "%24web", "a%20b"])
def test_names_that_s3_forbids_are_refused(raw, name):
    answer = raw.call("PUT", f"/{name}")
    assert (answer.status, answer.code()) == (400, "InvalidBucketName")


def test_dots_and_double_hyphens_are_allowed(client, made):
    for name in (f"a.{uuid.uuid4().hex}", f"a--{uuid.uuid4().hex}", f"1{uuid.uuid4().hex}"):
        made.append(name)
        client.create_bucket(Bucket=name)
        client.put_object(Bucket=name, Key="k", Body=b"x")
        assert client.list_objects_v2(Bucket=name)["KeyCount"] == 1


def test_dollar_containers_are_hidden(client, service, raw):
    for name in ("$root", "$web"):
        try:
            service.create_container(name)
        except Exception:  # pylint: disable=broad-except
            pass  # Another test made it.
    assert not [one for one in client.list_buckets()["Buckets"] if one["Name"].startswith("$")]
    assert raw.call("GET", "/%24web").code() == "InvalidBucketName"


def test_buckets_are_listed_in_pages(client, raw, made):
    prefix = fresh("p")[:20]
    names = sorted(f"{prefix}{number}" for number in range(7))
    for name in names:
        made.append(name)
        client.create_bucket(Bucket=name)
    for size in (1, 2, 3, 6, 7, 8):
        found, token, pages = [], None, 0
        while True:
            more = {"ContinuationToken": token} if token else {}
            page = client.list_buckets(Prefix=prefix, MaxBuckets=size, **more)
            assert page["Prefix"] == prefix and len(page["Buckets"]) <= size
            found += [one["Name"] for one in page["Buckets"]]
            token, pages = page.get("ContinuationToken"), pages + 1
            if not token:
                break
        assert found == names and pages == -(-7 // size), size
    for query in ([("max-buckets", "0")], [("max-buckets", "10001")], [("max-buckets", "x")], [("continuation-token", "%")],
                  [("continuation-token", "")], [("continuation-token", "QUFB")]):
        assert raw.call("GET", "/", query).code() == "InvalidArgument", query


def test_a_bucket_with_objects_is_not_deleted(client, service, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"x")
    assert refusal(client.delete_bucket, Bucket=bucket) == (409, "BucketNotEmpty")
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"
    client.delete_object(Bucket=bucket, Key="k")
    # Staged blocks are not objects.
    service.get_blob_client(bucket, "staged").stage_block("AAAA", b"x")
    client.delete_bucket(Bucket=bucket)
    assert refusal(client.delete_bucket, Bucket=bucket) == (404, "NoSuchBucket")
    assert refusal(client.head_bucket, Bucket=bucket) == (404, "404")
    assert refusal(client.put_object, Bucket=bucket, Key="k", Body=b"x") == (404, "NoSuchBucket")


def test_a_bucket_with_a_snapshot_is_not_deleted(client, service, bucket):
    blob = service.get_blob_client(bucket, "k")
    blob.upload_blob(b"x")
    blob.create_snapshot()
    assert refusal(client.delete_bucket, Bucket=bucket) == (409, "BucketNotEmpty")
    blob.delete_blob(delete_snapshots="include")
    client.delete_bucket(Bucket=bucket)


def test_a_body_that_arrives_after_its_bucket_was_deleted_is_refused(raw, client, service, bucket):
    def slow():
        yield b"first"
        client.delete_bucket(Bucket=bucket)
        yield b"last"

    answer = raw.call("PUT", f"/{bucket}/late", body=slow())
    assert (answer.status, answer.code()) == (404, "NoSuchBucket")
    assert not service.get_container_client(bucket).exists()
    # One made anew under the name is another bucket.
    client.create_bucket(Bucket=bucket)

    def again():
        yield b"first"
        client.delete_bucket(Bucket=bucket)
        client.create_bucket(Bucket=bucket)
        yield b"last"

    assert raw.call("PUT", f"/{bucket}/late", body=again()).status == 404
    assert client.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_no_deletion_swallows_a_put(account, made):
    client = s3.client(account, max_pool_connections=16)

    def put(name, number):
        try:
            client.put_object(Bucket=name, Key=f"k{number}", Body=b"x")
            return f"k{number}"
        except ClientError as error:
            assert s3.code(error) in ((404, "NoSuchBucket"), (503, "SlowDown")), error
            return None

    def delete(name):
        try:
            client.delete_bucket(Bucket=name)
            return True
        except ClientError as error:
            assert s3.code(error) in ((404, "NoSuchBucket"), (409, "BucketNotEmpty"), (503, "SlowDown")), error
            return False

    deletions = 0
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for _ in range(40):
            name = fresh()
            made.append(name)
            client.create_bucket(Bucket=name)
            tasks = [pool.submit(delete, name)] + [pool.submit(put, name, number) for number in range(8)]
            tasks.append(pool.submit(delete, name))
            gone = tasks[0].result() or tasks[-1].result()
            kept = sorted(filter(None, (task.result() for task in tasks[1:-1])))
            deletions += gone
            if gone:
                assert not kept, f"{kept} were acknowledged in a bucket whose deletion was acknowledged"
            else:
                assert [one["Key"] for one in client.list_objects_v2(Bucket=name).get("Contents", [])] == kept
    print(f"{deletions} of 40 buckets were deleted")


def test_of_many_who_make_a_bucket_all_have_it(account, made):
    client = s3.client(account, max_pool_connections=16)
    name = fresh()
    made.append(name)
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for answer in pool.map(lambda _: client.create_bucket(Bucket=name), range(12)):
            assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200

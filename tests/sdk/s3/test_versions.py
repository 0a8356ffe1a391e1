"""Versions of objects: what is kept, what is current, delete markers, the null version, lists."""

import pytest
from botocore.exceptions import ClientError

from lib import s3


@pytest.fixture
def versioned(client, bucket):
    """A bucket that keeps versions."""
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    return bucket


def suspend(client, bucket):
    """Suspends versioning."""
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})


def put(client, bucket, key, body):
    """The id of the version that a PUT makes."""
    return client.put_object(Bucket=bucket, Key=key, Body=body).get("VersionId")


def body(client, bucket, key, **of):
    """The content of an object or a version."""
    return client.get_object(Bucket=bucket, Key=key, **of)["Body"].read()


def listed(client, bucket, **options):
    """Versions and delete markers in the order of the list: (key, id, whether latest, whether a marker)."""
    page = client.list_object_versions(Bucket=bucket, **options)
    entries = [(one["Key"], one["VersionId"], one["IsLatest"], False) for one in page.get("Versions", [])]
    entries += [(one["Key"], one["VersionId"], one["IsLatest"], True) for one in page.get("DeleteMarkers", [])]
    return sorted(entries, key=lambda entry: entry[0])


def refused(call, **arguments):
    """Status and code of a refusal."""
    with pytest.raises(ClientError) as error:
        call(**arguments)
    return s3.code(error.value)


def test_a_bucket_says_whether_it_keeps_versions(client, bucket):
    assert "Status" not in client.get_bucket_versioning(Bucket=bucket)
    for status in ("Enabled", "Suspended", "Enabled"):
        client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})
        assert client.get_bucket_versioning(Bucket=bucket)["Status"] == status


@pytest.mark.parametrize("document, wanted", [
    (b"<VersioningConfiguration/>", (400, "IllegalVersioningConfigurationException")),
    (b"<VersioningConfiguration><Status>enabled</Status></VersioningConfiguration>", (400, "MalformedXML")),
    (b"<VersioningConfiguration><Status>Off</Status></VersioningConfiguration>", (400, "MalformedXML")),
    (b"<VersioningConfiguration><Status>Enabled</Status><MfaDelete>Enabled</MfaDelete></VersioningConfiguration>", (501, "NotImplemented")),
    (b"<Versioning/>", (400, "MalformedXML")),
    (b"", (400, "MalformedXML")),
    (b"<VersioningConfiguration", (400, "MalformedXML")),
])
def test_a_wrong_document_is_refused(raw, bucket, document, wanted):
    answer = raw.call("PUT", f"/{bucket}", [("versioning", "")], body=document)
    assert (answer.status, answer.code()) == wanted
    assert b"<Status>" not in raw.call("GET", f"/{bucket}", [("versioning", "")]).body


def test_a_missing_bucket_has_no_versioning(client):
    assert refused(client.get_bucket_versioning, Bucket="no-such-bucket") == (404, "NoSuchBucket")
    assert refused(client.put_bucket_versioning, Bucket="no-such-bucket",
                   VersioningConfiguration={"Status": "Enabled"}) == (404, "NoSuchBucket")


def test_an_overwrite_keeps_what_it_replaces(client, versioned):
    ids = [put(client, versioned, "k", f"body {number}".encode()) for number in range(3)]
    assert len(set(ids)) == 3 and "null" not in ids
    assert body(client, versioned, "k") == b"body 2"
    for number, version in enumerate(ids):
        assert body(client, versioned, "k", VersionId=version) == f"body {number}".encode()
        head = client.head_object(Bucket=versioned, Key="k", VersionId=version)
        assert (head["VersionId"], head["ContentLength"]) == (version, 6)
    assert client.get_object(Bucket=versioned, Key="k")["VersionId"] == ids[2]
    assert listed(client, versioned) == [("k", ids[2], True, False), ("k", ids[1], False, False), ("k", ids[0], False, False)]
    assert [one["Key"] for one in client.list_objects_v2(Bucket=versioned)["Contents"]] == ["k"]


def test_a_large_object_and_one_of_blocks_are_kept(client, service, versioned):
    first = put(client, versioned, "k", b"x" * (3 << 20))
    blob = service.get_blob_client(versioned, "k")
    blob.stage_block("MDAx", b"y" * 5_000)
    blob.commit_block_list(["MDAx"])
    second = client.head_object(Bucket=versioned, Key="k")["VersionId"]
    # It takes a block of what it replaces: both have the bytes.
    blob.stage_block("MDAy", b"z")
    blob.commit_block_list(["MDAx", "MDAy"])
    assert body(client, versioned, "k") == b"y" * 5_000 + b"z"
    assert body(client, versioned, "k", VersionId=second) == b"y" * 5_000
    assert body(client, versioned, "k", VersionId=first) == b"x" * (3 << 20)
    client.delete_object(Bucket=versioned, Key="k", VersionId=second)
    assert body(client, versioned, "k") == b"y" * 5_000 + b"z"


def test_a_delete_puts_a_marker(client, raw, versioned):
    version = put(client, versioned, "k", b"1")
    answer = client.delete_object(Bucket=versioned, Key="k")
    marker = answer["VersionId"]
    assert answer["DeleteMarker"] is True and marker != version
    gone = raw.call("GET", f"/{versioned}/k")
    assert (gone.status, gone.code(), gone.headers["x-amz-delete-marker"], gone.headers["x-amz-version-id"]) == (404, "NoSuchKey", "true", marker)
    head = raw.call("HEAD", f"/{versioned}/k")
    assert (head.status, head.headers["x-amz-delete-marker"]) == (404, "true")
    assert "Contents" not in client.list_objects_v2(Bucket=versioned)
    assert listed(client, versioned) == [("k", version, False, False), ("k", marker, True, True)]
    assert body(client, versioned, "k", VersionId=version) == b"1"
    of_marker = raw.call("GET", f"/{versioned}/k", [("versionId", marker)])
    assert (of_marker.status, of_marker.code(), of_marker.headers["x-amz-delete-marker"]) == (405, "MethodNotAllowed", "true")
    assert "last-modified" in of_marker.headers and of_marker.headers["allow"] == "DELETE"
    assert raw.call("HEAD", f"/{versioned}/k", [("versionId", marker)]).status == 405


def test_a_marker_that_is_deleted_brings_the_object_back(client, versioned):
    version = put(client, versioned, "k", b"1")
    marker = client.delete_object(Bucket=versioned, Key="k")["VersionId"]
    answer = client.delete_object(Bucket=versioned, Key="k", VersionId=marker)
    assert (answer["DeleteMarker"], answer["VersionId"]) == (True, marker)
    assert body(client, versioned, "k") == b"1"
    assert client.head_object(Bucket=versioned, Key="k")["VersionId"] == version
    assert listed(client, versioned) == [("k", version, True, False)]


def test_the_current_version_is_deleted_and_the_one_before_is_current(client, versioned):
    ids = [put(client, versioned, "k", f"{number}".encode()) for number in range(3)]
    answer = client.delete_object(Bucket=versioned, Key="k", VersionId=ids[2])
    assert answer["VersionId"] == ids[2] and "DeleteMarker" not in answer
    assert body(client, versioned, "k") == b"1"
    client.delete_object(Bucket=versioned, Key="k", VersionId=ids[0])
    assert listed(client, versioned) == [("k", ids[1], True, False)]
    client.delete_object(Bucket=versioned, Key="k", VersionId=ids[1])
    assert listed(client, versioned) == []
    assert refused(client.get_object, Bucket=versioned, Key="k") == (404, "NoSuchKey")


def test_deleting_nothing_puts_a_marker_too(client, versioned):
    first, second = (client.delete_object(Bucket=versioned, Key="k") for _ in range(2))
    assert first["DeleteMarker"] and second["DeleteMarker"] and first["VersionId"] != second["VersionId"]
    assert [entry[2:] for entry in listed(client, versioned)] == [(True, True), (False, True)]


def test_a_version_that_is_not_there(client, raw, versioned, bucket):
    version = put(client, versioned, "k", b"1")
    client.delete_object(Bucket=versioned, Key="k", VersionId=version)
    for call in (client.get_object, client.get_object_tagging):
        assert refused(call, Bucket=versioned, Key="k", VersionId=version) == (404, "NoSuchVersion")
    assert raw.call("HEAD", f"/{bucket}/k", [("versionId", version)]).status == 404
    assert raw.call("DELETE", f"/{bucket}/k", [("versionId", version)]).status == 204


@pytest.mark.parametrize("version", ["x", "undefined", "Null", "AAAA", "CNqhnqazAAE=", "2026-11-27T00:00:00.0000000Z", "%00"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_what_is_no_id_is_refused(client, raw, versioned, method, version):
    put(client, versioned, "k", b"1")
    answer = raw.call(method, f"/{versioned}/k", [("versionId", version)])
    assert answer.status == 400 and answer.code() in ("InvalidArgument", None if method == "HEAD" else "InvalidArgument")
    assert body(client, versioned, "k") == b"1"


@pytest.mark.parametrize("method, query", [
    ("PUT", []), ("POST", [("uploads", "")]), ("GET", [("uploadId", "x")]), ("PUT", [("partNumber", "1"), ("uploadId", "x")])])
def test_operations_without_versions_refuse_one(raw, versioned, method, query):
    answer = raw.call(method, f"/{versioned}/k", [*query, ("versionId", "null")])
    assert (answer.status, answer.code()) == (400, "InvalidArgument")


def test_an_empty_id_is_refused(raw, versioned):
    answer = raw.call("GET", f"/{versioned}/k", [("versionId", "")])
    assert (answer.status, answer.code()) == (400, "InvalidArgument")


def test_what_was_there_before_is_the_null_version(client, bucket):
    put(client, bucket, "k", b"before")
    assert "VersionId" not in client.head_object(Bucket=bucket, Key="k")
    assert body(client, bucket, "k", VersionId="null") == b"before"
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    assert client.head_object(Bucket=bucket, Key="k")["VersionId"] == "null"
    version = put(client, bucket, "k", b"after")
    assert listed(client, bucket) == [("k", version, True, False), ("k", "null", False, False)]
    assert body(client, bucket, "k", VersionId="null") == b"before"
    client.delete_object(Bucket=bucket, Key="k", VersionId="null")
    assert listed(client, bucket) == [("k", version, True, False)]


def test_a_suspended_bucket_replaces_the_null_version(client, versioned):
    version = put(client, versioned, "k", b"1")
    suspend(client, versioned)
    assert put(client, versioned, "k", b"2") == "null"
    assert put(client, versioned, "k", b"3") == "null"
    assert listed(client, versioned) == [("k", "null", True, False), ("k", version, False, False)]
    assert (body(client, versioned, "k"), body(client, versioned, "k", VersionId=version)) == (b"3", b"1")
    client.put_bucket_versioning(Bucket=versioned, VersioningConfiguration={"Status": "Enabled"})
    newest = put(client, versioned, "k", b"4")
    assert listed(client, versioned) == [("k", newest, True, False), ("k", "null", False, False), ("k", version, False, False)]
    suspend(client, versioned)
    put(client, versioned, "k", b"5")
    assert listed(client, versioned) == [("k", "null", True, False), ("k", newest, False, False), ("k", version, False, False)]
    assert body(client, versioned, "k", VersionId="null") == b"5"


def test_a_delete_in_a_suspended_bucket_puts_a_null_marker(client, versioned):
    version = put(client, versioned, "k", b"1")
    suspend(client, versioned)
    put(client, versioned, "k", b"2")
    answer = client.delete_object(Bucket=versioned, Key="k")
    assert (answer["DeleteMarker"], answer["VersionId"]) == (True, "null")
    assert listed(client, versioned) == [("k", version, False, False), ("k", "null", True, True)]
    client.delete_object(Bucket=versioned, Key="k")
    assert listed(client, versioned) == [("k", version, False, False), ("k", "null", True, True)]
    client.delete_object(Bucket=versioned, Key="k", VersionId="null")
    assert body(client, versioned, "k") == b"1"


def test_a_bucket_without_versions_has_none(client, bucket):
    assert put(client, bucket, "k", b"1") is None
    put(client, bucket, "k", b"2")
    answer = client.delete_object(Bucket=bucket, Key="k")
    assert "VersionId" not in answer and "DeleteMarker" not in answer
    assert listed(client, bucket) == []


def test_uploads_and_copies_make_versions(client, versioned):
    first = put(client, versioned, "k", b"1")
    upload = client.create_multipart_upload(Bucket=versioned, Key="k")["UploadId"]
    part = client.upload_part(Bucket=versioned, Key="k", UploadId=upload, PartNumber=1, Body=b"parts")
    done = client.complete_multipart_upload(
        Bucket=versioned, Key="k", UploadId=upload, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    assert done["VersionId"] not in (None, first)
    copied = client.copy_object(Bucket=versioned, Key="k", CopySource={"Bucket": versioned, "Key": "k", "VersionId": first})
    assert copied["CopySourceVersionId"] == first and copied["VersionId"] not in (first, done["VersionId"])
    assert body(client, versioned, "k") == b"1"
    assert [entry[1] for entry in listed(client, versioned)] == [copied["VersionId"], done["VersionId"], first]
    assert body(client, versioned, "k", VersionId=done["VersionId"]) == b"parts"


@pytest.mark.parametrize("suffix, wanted", [("?versionId=", (400, "InvalidArgument")), ("?versionId=x", (400, "InvalidArgument")),
                                            ("?versionId=AAAAAAAAAAE", (404, "NoSuchVersion")), ("?versionId=null", (404, "NoSuchVersion"))])
def test_the_source_of_a_copy_names_a_version_that_is_there(client, raw, versioned, suffix, wanted):
    put(client, versioned, "k", b"1")
    answer = raw.call("PUT", f"/{versioned}/copy", headers={"x-amz-copy-source": f"/{versioned}/k{suffix}"})
    assert (answer.status, answer.code()) == wanted


def test_tags_lists_and_attributes_are_of_a_version(client, versioned):
    first, second = put(client, versioned, "k", b"1"), put(client, versioned, "k", b"22")
    client.put_object_tagging(Bucket=versioned, Key="k", VersionId=first, Tagging={"TagSet": [{"Key": "a", "Value": "1"}]})
    assert client.get_object_tagging(Bucket=versioned, Key="k", VersionId=first)["TagSet"] == [{"Key": "a", "Value": "1"}]
    assert client.get_object_tagging(Bucket=versioned, Key="k")["TagSet"] == []
    client.delete_object_tagging(Bucket=versioned, Key="k", VersionId=first)
    assert client.get_object_tagging(Bucket=versioned, Key="k", VersionId=first)["TagSet"] == []
    attributes = client.get_object_attributes(Bucket=versioned, Key="k", VersionId=first, ObjectAttributes=["ObjectSize"])
    assert attributes["ObjectSize"] == 1
    client.put_object_acl(Bucket=versioned, Key="k", VersionId=first, ACL="public-read")
    assert len(client.get_object_acl(Bucket=versioned, Key="k", VersionId=first)["Grants"]) == 2
    assert len(client.get_object_acl(Bucket=versioned, Key="k", VersionId=second)["Grants"]) == 1


def test_many_are_deleted_by_version(client, versioned):
    first, second = put(client, versioned, "a", b"1"), put(client, versioned, "a", b"2")
    put(client, versioned, "b", b"3")
    answer = client.delete_objects(Bucket=versioned, Delete={"Objects": [
        {"Key": "a", "VersionId": first}, {"Key": "b"}, {"Key": "c"}, {"Key": "a", "VersionId": "AAAAAAAAAAE"}, {"Key": "a", "VersionId": "x"}]})
    deleted = {(one["Key"], one.get("VersionId")): one for one in answer["Deleted"]}
    assert set(deleted) == {("a", first), ("b", None), ("c", None), ("a", "AAAAAAAAAAE")}
    assert deleted["b", None]["DeleteMarker"] and deleted["b", None]["DeleteMarkerVersionId"]
    assert [(one["Key"], one["VersionId"], one["Code"]) for one in answer["Errors"]] == [("a", "x", "NoSuchVersion")]
    assert listed(client, versioned)[0] == ("a", second, True, False)
    marker = deleted["b", None]["DeleteMarkerVersionId"]
    again = client.delete_objects(Bucket=versioned, Delete={"Objects": [{"Key": "b", "VersionId": marker}]})["Deleted"][0]
    assert (again["VersionId"], again["DeleteMarker"], again["DeleteMarkerVersionId"]) == (marker, True, marker)
    assert body(client, versioned, "b") == b"3"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_pages_have_every_version_once(client, versioned, size):
    wanted = []
    for key in ("a", "a/b", "a/c", "d"):
        ids = [put(client, versioned, key, b"x") for _ in range(3)]
        wanted += [(key, version) for version in reversed(ids)]
        if key in ("a/b", "d"):
            marker = client.delete_object(Bucket=versioned, Key=key)["VersionId"]
            wanted.insert(len(wanted) - 3, (key, marker))
    found, markers = [], {}
    while True:
        page = client.list_object_versions(Bucket=versioned, MaxKeys=size, **markers)
        entries = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        assert len(entries) <= size
        found += [(one["Key"], one["VersionId"]) for one in entries]
        if not page["IsTruncated"]:
            break
        markers = {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page["NextVersionIdMarker"]}
    assert len(found) == len(wanted) and set(found) == set(wanted)
    folded = client.list_object_versions(Bucket=versioned, Delimiter="/")
    assert [one["Prefix"] for one in folded["CommonPrefixes"]] == ["a/"]
    assert {one["Key"] for one in folded["Versions"]} == {"a", "d"}


def test_latest_is_said_of_the_newest_only(client, versioned):
    for key in ("a", "b"):
        for _ in range(3):
            put(client, versioned, key, b"x")
    client.delete_object(Bucket=versioned, Key="b")
    latest, markers = [], {}
    while True:
        page = client.list_object_versions(Bucket=versioned, MaxKeys=1, **markers)
        latest += [one["Key"] for one in [*page.get("Versions", []), *page.get("DeleteMarkers", [])] if one["IsLatest"]]
        if not page["IsTruncated"]:
            break
        markers = {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page["NextVersionIdMarker"]}
    assert latest == ["a", "b"]


def test_latest_is_right_on_a_page_that_begins_at_a_delete_marker(client, versioned):
    """A page that begins within a key asks what is before it now, not what an earlier page showed."""
    oldest = client.delete_object(Bucket=versioned, Key="a/k")["VersionId"]
    second = put(client, versioned, "a/k", b"x")
    newest = client.delete_object(Bucket=versioned, Key="a/k")["VersionId"]
    after = {"KeyMarker": "a/k", "VersionIdMarker": second}
    assert listed(client, versioned, **after) == [("a/k", oldest, False, True)]
    for version in (newest, second):
        client.delete_object(Bucket=versioned, Key="a/k", VersionId=version)
    assert listed(client, versioned, **after) == [("a/k", oldest, True, True)]
    put(client, versioned, "a/k", b"y")
    assert listed(client, versioned, **after) == [("a/k", oldest, False, True)]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_bucket_is_emptied_page_by_page(client, versioned, size):
    """A version that becomes current because the page before was deleted is not left out."""
    for key in ("a", "b/c"):
        for _ in range(5):
            put(client, versioned, key, b"x")
    client.delete_object(Bucket=versioned, Key="b/c")
    markers, left = {}, True
    while left:
        page = client.list_object_versions(Bucket=versioned, MaxKeys=size, **markers)
        for one in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]:
            client.delete_object(Bucket=versioned, Key=one["Key"], VersionId=one["VersionId"])
        left = page["IsTruncated"]
        markers = {"KeyMarker": page.get("NextKeyMarker"), "VersionIdMarker": page.get("NextVersionIdMarker")}
    assert listed(client, versioned) == []
    client.delete_bucket(Bucket=versioned)
    client.create_bucket(Bucket=versioned)


def test_a_promoted_version_is_folded_too(client, versioned):
    ids = [put(client, versioned, "b/c", b"x") for _ in range(3)]
    client.delete_object(Bucket=versioned, Key="b/c", VersionId=ids[2])
    after = {"KeyMarker": "b/c", "VersionIdMarker": ids[2]}
    assert [one[1] for one in listed(client, versioned, **after)] == [ids[1], ids[0]]
    assert [one[1] for one in listed(client, versioned, MaxKeys=1, **after)] == [ids[1]]
    again = {"KeyMarker": "b/c", "VersionIdMarker": ids[1]}
    assert [one[1] for one in listed(client, versioned, **again)] == [ids[0]]


def test_the_null_version_is_a_marker(client, versioned):
    old = put(client, versioned, "k", b"1")
    client.put_bucket_versioning(Bucket=versioned, VersioningConfiguration={"Status": "Suspended"})
    put(client, versioned, "k", b"2")
    client.put_bucket_versioning(Bucket=versioned, VersioningConfiguration={"Status": "Enabled"})
    new = put(client, versioned, "k", b"3")
    other = put(client, versioned, "l", b"4")
    after = {"KeyMarker": "k", "VersionIdMarker": "null"}
    assert [one[1] for one in listed(client, versioned)] == [new, "null", old, other]
    assert [one[1] for one in listed(client, versioned, **after)] == [old, other]
    client.put_bucket_versioning(Bucket=versioned, VersioningConfiguration={"Status": "Suspended"})
    client.delete_object(Bucket=versioned, Key="k")
    assert [one[1] for one in listed(client, versioned, **after)] == [new, old, other], "a null delete marker has a place too"
    client.delete_object(Bucket=versioned, Key="k", VersionId="null")
    assert [one[1] for one in listed(client, versioned, **after)] == [other], "without a null version there is no such place"


@pytest.mark.parametrize("marker", ["", "x", "nul"])
def test_a_wrong_version_marker_is_refused(raw, versioned, marker):
    answer = raw.call("GET", f"/{versioned}", [("versions", ""), ("key-marker", "k"), ("version-id-marker", marker)])
    assert (answer.status, answer.code()) == (400, "InvalidArgument")


def test_a_bucket_with_versions_or_markers_is_not_empty(client, versioned):
    version = put(client, versioned, "k", b"1")
    marker = client.delete_object(Bucket=versioned, Key="k")["VersionId"]
    assert refused(client.delete_bucket, Bucket=versioned) == (409, "BucketNotEmpty")
    client.delete_object(Bucket=versioned, Key="k", VersionId=version)
    assert refused(client.delete_bucket, Bucket=versioned) == (409, "BucketNotEmpty")
    client.delete_object(Bucket=versioned, Key="k", VersionId=marker)
    client.delete_bucket(Bucket=versioned)


def test_conditions_are_those_of_the_current_object(client, versioned):
    put(client, versioned, "k", b"1")
    client.delete_object(Bucket=versioned, Key="k")
    version = client.put_object(Bucket=versioned, Key="k", Body=b"2", IfNoneMatch="*")["VersionId"]
    assert refused(client.put_object, Bucket=versioned, Key="k", Body=b"3", IfNoneMatch="*") == (412, "PreconditionFailed")
    etag = client.head_object(Bucket=versioned, Key="k")["ETag"]
    assert refused(client.put_object, Bucket=versioned, Key="k", Body=b"3", IfMatch='"0"') == (412, "PreconditionFailed")
    client.put_object(Bucket=versioned, Key="k", Body=b"3", IfMatch=etag)
    assert body(client, versioned, "k", VersionId=version) == b"2"


def test_blob_writes_and_deletes_keep_versions(client, service, versioned):
    blob = service.get_blob_client(versioned, "k")
    blob.upload_blob(b"1")
    blob.upload_blob(b"2", overwrite=True)
    blob.set_blob_metadata({"a": "b"})
    entries = listed(client, versioned)
    assert len(entries) == 3 and [body(client, versioned, "k", VersionId=entry[1]) for entry in entries] == [b"2", b"2", b"1"]
    blob.delete_blob()
    assert not blob.exists()
    assert [entry[3] for entry in listed(client, versioned)].count(True) == 1
    service.get_blob_client(versioned, "k").upload_blob(b"3")
    assert body(client, versioned, "k") == b"3"


def test_snapshots_are_hidden_and_do_not_stop_a_delete(client, service, versioned):
    version = put(client, versioned, "k", b"1")
    service.get_blob_client(versioned, "k").create_snapshot()
    answer = client.delete_object(Bucket=versioned, Key="k")
    assert answer["DeleteMarker"]
    assert all(entry[0] == "k" for entry in listed(client, versioned))
    assert body(client, versioned, "k", VersionId=version) == b"1"


def test_an_archived_version_is_not_read(client, versioned):
    version = client.put_object(Bucket=versioned, Key="k", Body=b"1", StorageClass="GLACIER")["VersionId"]
    put(client, versioned, "k", b"2")
    assert refused(client.get_object, Bucket=versioned, Key="k", VersionId=version) == (403, "InvalidObjectState")
    assert body(client, versioned, "k") == b"2"


def test_versions_survive_a_restart(client, versioned, server):
    first, second = put(client, versioned, "k", b"1"), put(client, versioned, "k", b"2")
    marker = client.delete_object(Bucket=versioned, Key="k")["VersionId"]
    server.kill()
    server.start()
    assert [entry[1] for entry in listed(client, versioned)] == [second, first, marker]
    client.delete_object(Bucket=versioned, Key="k", VersionId=marker)
    assert body(client, versioned, "k") == b"2"


def test_a_listed_key_may_have_many_versions(client, versioned):
    for key in ("a", "b", "c"):
        for number in range(25):
            put(client, versioned, key, f"{number}".encode())
    page = client.list_objects_v2(Bucket=versioned, MaxKeys=2)
    assert [one["Key"] for one in page["Contents"]] == ["a", "b"] and page["IsTruncated"]
    assert len(listed(client, versioned)) == 75

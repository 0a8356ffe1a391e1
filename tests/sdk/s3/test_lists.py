"""Lists of objects: order, pages, markers, tokens, delimiters, encodings."""

import random
import urllib.parse
import uuid

import pytest
from botocore.exceptions import ClientError

from lib import s3

KEYS = ["a", "a/", "a//b", "a/../b", "a/b", "a/b/c", "a/d", "a0", "b", "b/c", "c-d", "c/d/e", "c/f", "z", "\u00e9", "\uffe6", "\U0001f600"]


@pytest.fixture
def filled(client, bucket):
    """A bucket with these keys."""
    for key in KEYS:
        client.put_object(Bucket=bucket, Key=key, Body=key.encode())
    return bucket


def in_order(keys):
    """As S3 orders keys."""
    return sorted(keys, key=lambda key: key.encode())


def expected(keys, prefix="", delimiter="", after=""):
    """Keys and common prefixes, in order."""
    found = []
    for key in in_order(keys):
        if not key.startswith(prefix) or key.encode() <= after.encode() and after:
            continue
        at = key.find(delimiter, len(prefix)) if delimiter else -1
        name = key if at < 0 else key[:at + len(delimiter)]
        if name not in found:
            found.append(name)
    return found


def entries(page):
    """What a page shows, in order of keys."""
    return in_order([one["Key"] for one in page.get("Contents", [])] + [one["Prefix"] for one in page.get("CommonPrefixes", [])])


def all_pages(call, next_of, **arguments):
    """Follows a list to its end; returns its pages."""
    pages = []
    while True:
        pages.append(call(**arguments))
        assert len(pages) < 200
        if not pages[-1]["IsTruncated"]:
            return pages
        arguments |= next_of(pages[-1])


def next_v1(page):
    """The marker of the next page, as clients find it."""
    return {"Marker": page.get("NextMarker") or page["Contents"][-1]["Key"]}


def next_v2(page):
    """The token of the next page."""
    return {"ContinuationToken": page["NextContinuationToken"]}


def next_versions(page):
    """The markers of the next page of versions."""
    more = {"VersionIdMarker": page["NextVersionIdMarker"]} if "NextVersionIdMarker" in page else {}
    return {"KeyMarker": page["NextKeyMarker"], **more}


def refused(call, **arguments):
    """Status and code of a refusal."""
    with pytest.raises(ClientError) as error:
        call(**arguments)
    return s3.code(error.value)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 16, 17, 18, 1000])
@pytest.mark.parametrize("prefix,delimiter", [("", ""), ("a", ""), ("a/", ""), ("", "/"), ("a/", "/"), ("", "/d"), ("", "//"), ("c", "-"),
                                              ("nothing", "/"), ("", "\u00e9"), ("", "b/c")])
def test_pages_show_everything_once_and_in_order(client, filled, size, prefix, delimiter):
    wanted = expected(KEYS, prefix, delimiter)
    query = {"Bucket": filled, "MaxKeys": size, "Prefix": prefix, **({"Delimiter": delimiter} if delimiter else {})}
    for call, next_of in ((client.list_objects, next_v1), (client.list_objects_v2, next_v2)):
        pages = all_pages(call, next_of, **query)
        assert [name for page in pages for name in entries(page)] == wanted
        assert len(pages) == max(1, -(-len(wanted) // size)), "the last page says that it is the last"
        for page in pages:
            assert page["MaxKeys"] == size and page["Prefix"] == prefix and page.get("Delimiter", "") == delimiter
    assert all(page["KeyCount"] == len(entries(page)) for page in pages)
    pages = all_pages(client.list_object_versions, next_versions, **query)
    assert [name for page in pages
            for name in in_order([one["Key"] for one in page.get("Versions", [])]
                                 + [one["Prefix"] for one in page.get("CommonPrefixes", [])])] == wanted


def test_random_keys_are_listed_as_s3_lists_them(client, bucket):
    draw = random.Random(7)
    keys = {"".join(draw.choice(["a", "b", "/", "-", "\u00e9"]) for _ in range(draw.randint(1, 6))) for _ in range(60)}
    for key in keys:
        client.put_object(Bucket=bucket, Key=key, Body=b"")
    for _ in range(40):
        prefix = "".join(draw.choice(["a", "b", "/"]) for _ in range(draw.randint(0, 2)))
        delimiter = draw.choice(["", "/", "-", "b", "a/", "\u00e9"])
        query = {"Bucket": bucket, "Prefix": prefix, "MaxKeys": draw.randint(1, 9), **({"Delimiter": delimiter} if delimiter else {})}
        for call, next_of in ((client.list_objects, next_v1), (client.list_objects_v2, next_v2)):
            pages = all_pages(call, next_of, **query)
            assert [name for page in pages for name in entries(page)] == expected(keys, prefix, delimiter), query


def test_a_marker_passes_over_the_prefix_it_is_in(client, filled):
    for marker in ("a/", "a/b", "a/b/c", "a/zzz"):
        page = client.list_objects(Bucket=filled, Delimiter="/", Marker=marker)
        assert page["Marker"] == marker and entries(page)[0] == "a0", marker
    page = client.list_objects(Bucket=filled, Delimiter="/", Marker="a")
    assert entries(page)[0] == "a/"
    page = client.list_objects(Bucket=filled, Marker="a/b")
    assert entries(page) == expected(KEYS, after="a/b")
    assert entries(client.list_objects(Bucket=filled, Marker="\U0010ffff")) == []


def test_start_after_is_a_key(client, filled):
    for after in ("a", "a/", "a/b", "a/zz", "0", "zzz", "a\u00e9"):
        page = client.list_objects_v2(Bucket=filled, StartAfter=after)
        assert page["StartAfter"] == after and entries(page) == expected(KEYS, after=after), after
    page = client.list_objects_v2(Bucket=filled, StartAfter="a/b", Delimiter="/")
    assert entries(page)[0] == "a/", "there are keys after it in the prefix"
    first = client.list_objects_v2(Bucket=filled, StartAfter="b", MaxKeys=1)
    second = client.list_objects_v2(Bucket=filled, StartAfter="z", ContinuationToken=first["NextContinuationToken"], MaxKeys=1)
    assert "StartAfter" not in second and entries(second) == ["c-d"], "a token is stronger"


def test_next_markers_are_shown_where_s3_shows_them(client, filled):
    page = client.list_objects(Bucket=filled, MaxKeys=2)
    assert page["IsTruncated"] and "NextMarker" not in page
    page = client.list_objects(Bucket=filled, MaxKeys=2, Delimiter="/")
    assert page["NextMarker"] == "a/" and entries(page) == ["a", "a/"]
    page = client.list_objects(Bucket=filled, MaxKeys=1000, Delimiter="/")
    assert not page["IsTruncated"] and "NextMarker" not in page


def test_max_keys(client, raw, filled):
    page = client.list_objects_v2(Bucket=filled, MaxKeys=0)
    assert (page["KeyCount"], page["IsTruncated"], page["MaxKeys"]) == (0, False, 0)
    assert client.list_objects_v2(Bucket=filled, MaxKeys=5000)["MaxKeys"] == 5000
    assert raw.call("GET", f"/{filled}", [("max-keys", "")]).text("MaxKeys") == "1000"
    assert raw.call("GET", f"/{filled}", [("max-keys", "05")]).text("MaxKeys") == "5"
    for value in ("x", "-1", " 5", "2147483648", "99999999999999999999", "1.5"):
        for version in ([], [("list-type", "2")], [("versions", "")]):
            answer = raw.call("GET", f"/{filled}", [*version, ("max-keys", value)])
            assert (answer.status, answer.code()) == (400, "InvalidArgument"), (value, version)
    assert refused(client.list_objects_v2, Bucket="no-such-bucket", MaxKeys=0) == (404, "NoSuchBucket")


def test_malformed_arguments_are_refused(raw, client, filled):
    other = f"b{uuid.uuid4().hex}"
    client.create_bucket(Bucket=other)
    client.put_object(Bucket=other, Key="a", Body=b"")
    client.put_object(Bucket=other, Key="b", Body=b"")
    foreign = client.list_objects_v2(Bucket=other, MaxKeys=1)["NextContinuationToken"]
    v2, versions = ("list-type", "2"), ("versions", "")
    for query in (
        [v2, ("continuation-token", "")],
        [v2, ("continuation-token", "%%%")],
        [v2, ("continuation-token", "QUFB")],
        [v2, ("continuation-token", foreign)],
        [v2, ("encoding-type", "base64")],
        [("encoding-type", "")],
        [v2, ("marker", "a")],
        [("start-after", "a")],
        [("continuation-token", "QUFB")],
        [("allow-unordered", "true"), ("delimiter", "/")],
        [versions, ("version-id-marker", "null")],
        [versions, ("key-marker", "a"), ("version-id-marker", "")],
        [versions, ("key-marker", "a"), ("version-id-marker", "x")],
    ):
        answer = raw.call("GET", f"/{filled}", query)
        assert (answer.status, answer.code()) == (400, "InvalidArgument"), query
    for query in ([("allow-unordered", "true")], [("allow-unordered", "false"), ("delimiter", "/")]):
        assert raw.call("GET", f"/{filled}", query).status == 200
    for key in ("a", "b"):
        client.delete_object(Bucket=other, Key=key)
    client.delete_bucket(Bucket=other)


def test_another_list_type_is_the_first(raw, filled):
    answer = raw.call("GET", f"/{filled}", [("list-type", "1"), ("max-keys", "1")])
    assert answer.status == 200 and answer.text("Marker") == "" and answer.text("KeyCount") is None


def test_keys_are_encoded_or_escaped(raw, client, bucket):
    keys = ["a b", "a+b", "a%b", "a&<b>", "\u00e9/x", "tab\there", "line\nbreak\r", "bell\x07", "~*"]
    for key in keys:
        client.put_object(Bucket=bucket, Key=key, Body=b"")
    answer = raw.call("GET", f"/{bucket}", [("list-type", "2"), ("encoding-type", "url"), ("delimiter", "/"), ("prefix", ""),
                                            ("start-after", " ")])
    assert answer.text("EncodingType") == "url" and answer.text("StartAfter") == "+"
    shown = [one.text for one in answer.tree().findall("Contents/Key")]
    assert [urllib.parse.unquote_plus(key) for key in shown] == in_order(key for key in keys if "/" not in key)
    assert "a+b" in shown and "a%2Bb" in shown and "%7E*" in shown
    assert [one.text for one in answer.tree().findall("CommonPrefixes/Prefix")] == ["%C3%A9/"]
    plain = raw.call("GET", f"/{bucket}").body
    assert b"<Key>bell&#x7;</Key>" in plain and b"<Key>a&amp;&lt;b&gt;</Key>" in plain and b"line&#xA;break&#xD;" in plain
    assert in_order(one["Key"] for one in client.list_objects_v2(Bucket=bucket)["Contents"]) == in_order(keys)


def test_entries_have_what_s3_shows(client, raw, account, filled):
    listed = {one["Key"]: one for one in client.list_objects(Bucket=filled)["Contents"]}
    for key in ("a", "a/b/c", "\U0001f600"):
        head, one = client.head_object(Bucket=filled, Key=key), listed[key]
        assert (one["ETag"], one["Size"], one["StorageClass"]) == (head["ETag"], head["ContentLength"], "STANDARD")
        assert one["LastModified"].replace(microsecond=0) == head["LastModified"]
        assert one["Owner"]["ID"] == s3.canonical_id(account.name)
    assert "Owner" not in client.list_objects_v2(Bucket=filled)["Contents"][0]
    assert client.list_objects_v2(Bucket=filled, FetchOwner=True)["Contents"][0]["Owner"]["ID"] == s3.canonical_id(account.name)
    version = client.list_object_versions(Bucket=filled)["Versions"][0]
    assert (version["VersionId"], version["IsLatest"], version["Owner"]["ID"]) == ("null", True, s3.canonical_id(account.name))
    answer = raw.call("GET", f"/{filled}")
    assert answer.text("Name") == filled and answer.text("Prefix") == "" and answer.text("Marker") == ""
    assert answer.text("Delimiter") is None and answer.text("EncodingType") is None and answer.text("KeyCount") is None


def test_a_page_that_ends_among_deleted_keys_has_a_marker(client, service, bucket):
    """The budget of a scan ends a page. The next one goes on behind the deleted keys, inside the prefix."""
    container = service.get_container_client(bucket)
    names = [f"d/{number:05}" for number in range(2_000)]
    for name in [*names, "d/live", "e"]:
        container.upload_blob(name, b"")
    for at in range(0, len(names), 200):
        container.delete_blobs(*names[at:at + 200])
    for call, next_of in ((client.list_objects, next_v1), (client.list_objects_v2, next_v2)):
        for delimiter, wanted in (("/", ["d/", "e"]), ("", ["d/live", "e"])):
            query = {"Bucket": bucket, "MaxKeys": 1, **({"Delimiter": delimiter} if delimiter else {})}
            assert [name for page in all_pages(call, next_of, **query) for name in entries(page)] == wanted

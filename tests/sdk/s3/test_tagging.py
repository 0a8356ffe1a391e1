"""Tags of objects and of buckets."""

import pytest
from botocore.exceptions import ClientError

from lib import s3

DOCUMENT = "<Tagging><TagSet>{}</TagSet></Tagging>"


def tag(key, value):
    return f"<Tag><Key>{key}</Key><Value>{value}</Value></Tag>"


def tag_set(*pairs):
    return {"TagSet": [{"Key": key, "Value": value} for key, value in pairs]}


def pairs_of(answer):
    return [(one["Key"], one["Value"]) for one in answer["TagSet"]]


def put(raw, path, document):
    return raw.call("PUT", path, [("tagging", "")], body=document.encode())


def test_tags_of_an_object_are_set_read_and_removed(client, bucket):
    client.put_object(Bucket=bucket, Key="k", Body=b"x")
    before = client.head_object(Bucket=bucket, Key="k")
    assert pairs_of(client.get_object_tagging(Bucket=bucket, Key="k")) == []
    done = client.put_object_tagging(Bucket=bucket, Key="k", Tagging=tag_set(("b", "2"), ("a", "")))
    assert done["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert pairs_of(client.get_object_tagging(Bucket=bucket, Key="k")) == [("a", ""), ("b", "2")]
    after = client.get_object(Bucket=bucket, Key="k")
    assert after["ResponseMetadata"]["HTTPHeaders"]["x-amz-tagging-count"] == "2"
    assert (after["ETag"], after["LastModified"]) == (before["ETag"], before["LastModified"])
    client.put_object_tagging(Bucket=bucket, Key="k", Tagging=tag_set(("c", "3")))
    assert pairs_of(client.get_object_tagging(Bucket=bucket, Key="k")) == [("c", "3")]
    assert client.delete_object_tagging(Bucket=bucket, Key="k")["ResponseMetadata"]["HTTPStatusCode"] == 204
    assert client.delete_object_tagging(Bucket=bucket, Key="k")["ResponseMetadata"]["HTTPStatusCode"] == 204
    assert pairs_of(client.get_object_tagging(Bucket=bucket, Key="k")) == []


@pytest.mark.parametrize("header, expected", [
    ("a=1&b=2", [("a", "1"), ("b", "2")]),
    ("a=x%20y+z", [("a", "x y z")]),
    ("name%40host=a%2Bb", [("name@host", "a+b")]),
    ("a", [("a", "")]),
    ("a=", [("a", "")]),
    ("k%C3%A4se=gr%C3%B6%C3%9Fe", [("käse", "größe")]),
    ("&".join(f"k{n}={n}" for n in range(10)), [(f"k{n}", str(n)) for n in range(10)]),
])
def test_tags_come_with_an_object(client, raw, bucket, header, expected):
    answer = raw.call("PUT", f"/{bucket}/k", headers={"x-amz-tagging": header}, body=b"x")
    assert answer.status == 200
    assert pairs_of(client.get_object_tagging(Bucket=bucket, Key="k")) == expected
    client.put_object(Bucket=bucket, Key="k", Body=b"y")
    assert pairs_of(client.get_object_tagging(Bucket=bucket, Key="k")) == [], "a new object has its own tags"


@pytest.mark.parametrize("header, code", [
    ("a=1&a=2", "InvalidArgument"),
    ("a=%2", "InvalidArgument"),
    ("a=%FF", "InvalidArgument"),
    ("=1", "InvalidTag"),
    ("a=%3C", "InvalidTag"),
    ("a%0A=1", "InvalidTag"),
    ("aws:a=1", "InvalidTag"),
    ("k" * 129 + "=1", "InvalidTag"),
    ("k=" + "v" * 257, "InvalidTag"),
    ("&".join(f"k{n}={n}" for n in range(11)), "BadRequest"),
])
def test_bad_tags_in_a_header_store_nothing(raw, bucket, header, code):
    answer = raw.call("PUT", f"/{bucket}/k", headers={"x-amz-tagging": header}, body=b"x")
    assert (answer.status, answer.code()) == (400, code)
    assert raw.call("GET", f"/{bucket}/k").status == 404


@pytest.mark.parametrize("inner", [
    tag("k" * 128, "v" * 256),
    tag("a b+c-d.e/f:g=h_i@j", "0 9"),
    tag("ключ", "значение"),
    "".join(tag(f"k{n}", "") for n in range(10)),
    "",
])
def test_tags_of_any_allowed_form(raw, bucket, inner):
    raw.call("PUT", f"/{bucket}/k", body=b"x")
    answer = put(raw, f"/{bucket}/k", DOCUMENT.format(inner))
    assert (answer.status, answer.body) == (200, b"")
    got = raw.call("GET", f"/{bucket}/k", [("tagging", "")])
    assert got.status == 200 and got.tree().tag == "Tagging"
    assert len(got.tree().findall("TagSet/Tag")) == inner.count("<Tag>")
    put(raw, f"/{bucket}/k", got.body.decode())
    assert raw.call("GET", f"/{bucket}/k", [("tagging", "")]).body == got.body, "an answer can be sent back"


BAD_DOCUMENTS = [
    (DOCUMENT.format(tag("", "v")), "InvalidTag"),
    (DOCUMENT.format(tag("k" * 129, "v")), "InvalidTag"),
    (DOCUMENT.format(tag("k", "v" * 257)), "InvalidTag"),
    (DOCUMENT.format(tag("k", "&lt;")), "InvalidTag"),
    (DOCUMENT.format(tag("aws:k", "v")), "InvalidTag"),
    (DOCUMENT.format(tag("k", "1") + tag("k", "2")), "InvalidTag"),
    (DOCUMENT.format("<Tag><Key>k</Key></Tag>"), "MalformedXML"),
    (DOCUMENT.format("<Tag><Value>v</Value></Tag>"), "MalformedXML"),
    (DOCUMENT.format("<Tag><Key>k</Key><Key>l</Key><Value/></Tag>"), "MalformedXML"),
    (DOCUMENT.format("<Other/>"), "MalformedXML"),
    ("<Tagging/>", "MalformedXML"),
    ("<Tagging><TagSet/><TagSet/></Tagging>", "MalformedXML"),
    ("<Other><TagSet/></Other>", "MalformedXML"),
    ("<Tagging>", "MalformedXML"),
    ("no document", "MalformedXML"),
    ("", "MalformedXML"),
    ("<!DOCTYPE a [<!ENTITY b 'c'>]><Tagging><TagSet/></Tagging>", "MalformedXML"),
    ("<Tagging>" * 20 + "</Tagging>" * 20, "MalformedXML"),
]


@pytest.mark.parametrize("document, code", BAD_DOCUMENTS)
def test_bad_documents_change_nothing(raw, bucket, document, code):
    raw.call("PUT", f"/{bucket}/k", headers={"x-amz-tagging": "a=1"}, body=b"x")
    put(raw, f"/{bucket}", DOCUMENT.format(tag("a", "1")))
    for path in (f"/{bucket}/k", f"/{bucket}"):
        answer = put(raw, path, document)
        assert (answer.status, answer.code()) == (400, code), path
        kept = raw.call("GET", path, [("tagging", "")])
        assert kept.text("TagSet/Tag/Value") == "1", path


def test_an_object_has_ten_tags_and_a_bucket_fifty(raw, bucket):
    raw.call("PUT", f"/{bucket}/k", body=b"x")
    eleven = DOCUMENT.format("".join(tag(f"k{n}", "") for n in range(11)))
    answer = put(raw, f"/{bucket}/k", eleven)
    assert (answer.status, answer.code()) == (400, "BadRequest")
    assert answer.text("Message") == "Object tags cannot be greater than 10"
    assert put(raw, f"/{bucket}", DOCUMENT.format("".join(tag(f"k{n}", "") for n in range(50)))).status == 200
    answer = put(raw, f"/{bucket}", DOCUMENT.format("".join(tag(f"k{n}", "") for n in range(51))))
    assert (answer.status, answer.code()) == (400, "BadRequest")
    assert len(raw.call("GET", f"/{bucket}", [("tagging", "")]).tree().findall("TagSet/Tag")) == 50


def test_a_wrong_checksum_of_a_document_changes_nothing(raw, bucket):
    raw.call("PUT", f"/{bucket}/k", body=b"x")
    document = DOCUMENT.format(tag("a", "1")).encode()
    wrong = {"content-md5": "XUFAKrxLKna5cZ2REBfFkg=="}
    for path in (f"/{bucket}/k", f"/{bucket}"):
        answer = raw.call("PUT", path, [("tagging", "")], headers=wrong, body=document)
        assert (answer.status, answer.code()) == (400, "BadDigest")
        answer = raw.call("PUT", path, [("tagging", "")], headers={"content-md5": "x"}, body=document)
        assert (answer.status, answer.code()) == (400, "InvalidDigest")
    assert raw.call("GET", f"/{bucket}/k", [("tagging", "")]).tree().find("TagSet/Tag") is None
    assert raw.call("GET", f"/{bucket}", [("tagging", "")]).code() == "NoSuchTagSet"


def test_tags_of_what_does_not_exist(raw, bucket):
    for method, body in (("GET", b""), ("PUT", DOCUMENT.format("").encode()), ("DELETE", b"")):
        answer = raw.call(method, f"/{bucket}/none", [("tagging", "")], body=body)
        assert (answer.status, answer.code()) == (404, "NoSuchKey"), method
        for path in ("/no-such-bucket/none", "/no-such-bucket"):
            answer = raw.call(method, path, [("tagging", "")], body=body)
            assert (answer.status, answer.code()) == (404, "NoSuchBucket"), (method, path)


def test_both_protocols_show_the_same_tags(client, service, bucket):
    blob = service.get_blob_client(bucket, "k")
    blob.upload_blob(b"x", tags={"of": "blob"})
    assert pairs_of(client.get_object_tagging(Bucket=bucket, Key="k")) == [("of", "blob")]
    client.put_object_tagging(Bucket=bucket, Key="k", Tagging=tag_set(("of", "s3"), ("mail", "a@b"), ("ö", "ä")))
    assert blob.get_blob_tags() == {"of": "s3", "mail": "a@b", "ö": "ä"}
    found = [one.name for one in service.find_blobs_by_tags(f"@container='{bucket}' AND of='s3'")]
    assert found == ["k"]
    found = [one.name for one in service.find_blobs_by_tags(f"@container='{bucket}' AND mail='a@b'")]
    assert found == ["k"]
    client.delete_object_tagging(Bucket=bucket, Key="k")
    assert not list(service.find_blobs_by_tags(f"@container='{bucket}' AND of='s3'"))


def test_azure_keeps_its_own_rule_of_characters(service, bucket):
    blob = service.get_blob_client(bucket, "k")
    blob.upload_blob(b"x")
    for key, value in (("a@b", "1"), ("a", "ö")):
        with pytest.raises(Exception) as refused:
            blob.set_blob_tags({key: value})
        assert refused.value.status_code == 400


def test_tags_of_a_bucket_are_set_read_and_removed(client, bucket):
    with pytest.raises(ClientError) as refused:
        client.get_bucket_tagging(Bucket=bucket)
    assert s3.code(refused.value) == (404, "NoSuchTagSet")
    client.put_bucket_tagging(Bucket=bucket, Tagging=tag_set(("z", "1"), ("a", "2")))
    assert sorted(pairs_of(client.get_bucket_tagging(Bucket=bucket))) == [("a", "2"), ("z", "1")]
    client.put_bucket_tagging(Bucket=bucket, Tagging=tag_set(("b", "3")))
    assert pairs_of(client.get_bucket_tagging(Bucket=bucket)) == [("b", "3")]
    for _ in range(2):
        assert client.delete_bucket_tagging(Bucket=bucket)["ResponseMetadata"]["HTTPStatusCode"] == 204
    with pytest.raises(ClientError) as refused:
        client.get_bucket_tagging(Bucket=bucket)
    assert s3.code(refused.value) == (404, "NoSuchTagSet")


def test_a_new_bucket_of_the_name_has_no_tags(client, bucket):
    client.put_bucket_tagging(Bucket=bucket, Tagging=tag_set(("a", "1")))
    client.delete_bucket(Bucket=bucket)
    client.create_bucket(Bucket=bucket)
    with pytest.raises(ClientError) as refused:
        client.get_bucket_tagging(Bucket=bucket)
    assert s3.code(refused.value) == (404, "NoSuchTagSet")


def test_an_empty_set_of_tags_is_none(raw, bucket):
    put(raw, f"/{bucket}", DOCUMENT.format(tag("a", "1")))
    assert put(raw, f"/{bucket}", DOCUMENT.format("")).status == 200
    assert raw.call("GET", f"/{bucket}", [("tagging", "")]).code() == "NoSuchTagSet"

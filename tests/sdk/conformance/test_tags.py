"""Blob index tags: set, get, on writes, in lists, as conditions, and found again."""

import datetime
import uuid

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobBlock, ContainerClient, generate_container_sas
from conftest import block_id, put_many, refused


def found(pages):
    """(container, name) of what a search found, in order."""
    return [(blob.container_name, blob.name) for blob in pages]


def names(pages):
    """Names of what a search found, sorted."""
    return sorted(blob.name for blob in pages)


@pytest.fixture(name="key")
def _key():
    """A tag key that no other test uses."""
    return f"k{uuid.uuid4().hex}"


def test_tags_are_set_and_replaced_and_leave_the_blob_alone(blob):
    made = blob.upload_blob(b"x")
    assert blob.get_blob_tags() == {}
    blob.set_blob_tags({"a": "1", "b c": "x/y z", "empty": ""})
    assert blob.get_blob_tags() == {"a": "1", "b c": "x/y z", "empty": ""}
    properties = blob.get_blob_properties()
    assert (properties.etag, properties.last_modified, properties.tag_count) == \
        (made["etag"], made["last_modified"], 3)
    assert blob.download_blob().properties.tag_count == 3
    blob.set_blob_tags({"d": "4"})
    assert blob.get_blob_tags() == {"d": "4"}
    blob.set_blob_tags({})
    assert blob.get_blob_tags() == {}
    assert blob.get_blob_properties().tag_count is None


def test_tags_come_with_writes_and_go_with_them(blob):
    blob.upload_blob(b"x", tags={"by": "put"})
    assert blob.get_blob_tags() == {"by": "put"}
    blob.stage_block(block_id(1), b"block")
    blob.commit_block_list([BlobBlock(block_id(1))], tags={"by": "list", "n": "1"})
    assert blob.get_blob_tags() == {"by": "list", "n": "1"}
    blob.set_blob_metadata({"m": "1"})
    assert blob.get_blob_tags() == {"by": "list", "n": "1"}
    blob.upload_blob(b"y", overwrite=True)
    assert blob.get_blob_tags() == {}


def test_lists_show_tags_when_asked(container):
    container.upload_blob("with", b"x", tags={"a": "1", "b": "2"})
    container.upload_blob("without", b"x")
    plain = {b.name: (b.tags, b.tag_count) for b in container.list_blobs()}
    asked = {b.name: (b.tags, b.tag_count) for b in container.list_blobs(include=["tags"])}
    assert plain == {"with": (None, 2), "without": (None, None)}
    assert asked == {"with": ({"a": "1", "b": "2"}, 2), "without": (None, None)}


def test_lists_show_tags_only_to_who_may_read_them(account, container):
    container.upload_blob("with", b"x", tags={"a": "1"})
    def with_rights(permission):
        token = generate_container_sas(account.name, container.container_name, account_key=account.key,
                                       permission=permission, expiry=datetime.datetime.now(datetime.timezone.utc)
                                       + datetime.timedelta(hours=1))
        return ContainerClient.from_container_url(f"{container.url}?{token}")
    assert [b.tags for b in with_rights("lt").list_blobs(include=["tags"])] == [{"a": "1"}]
    refused(lambda: list(with_rights("l").list_blobs(include=["tags"])), 403, "AuthorizationPermissionMismatch")
    container.set_container_access_policy({}, public_access="container")
    anyone = ContainerClient.from_container_url(container.url)
    assert [b.name for b in anyone.list_blobs()] == ["with"]
    with pytest.raises(HttpResponseError) as caught:
        list(anyone.list_blobs(include=["tags"]))
    assert caught.value.status_code in (401, 403, 404)


def test_conditions_on_tags(blob):
    blob.upload_blob(b"x", tags={"state": "ready", "n": "5"})
    holds, fails = "state = 'ready' AND n > '4'", "state = 'done' OR n <> '5'"
    assert blob.get_blob_properties(if_tags_match_condition=holds).size == 1
    refused(lambda: blob.get_blob_properties(if_tags_match_condition=fails), 412, "ConditionNotMet")
    refused(lambda: blob.download_blob(if_tags_match_condition=fails), 412, "ConditionNotMet")
    refused(lambda: blob.set_blob_metadata({"a": "b"}, if_tags_match_condition=fails), 412, "ConditionNotMet")
    refused(lambda: blob.set_blob_tags({}, if_tags_match_condition=fails), 412, "ConditionNotMet")
    refused(lambda: blob.get_blob_tags(if_tags_match_condition=fails), 412, "ConditionNotMet")
    refused(lambda: blob.upload_blob(b"y", overwrite=True, if_tags_match_condition=fails), 412, "ConditionNotMet")
    refused(lambda: blob.delete_blob(if_tags_match_condition=fails), 412, "ConditionNotMet")
    refused(lambda: blob.get_blob_properties(if_tags_match_condition="state is ready"), 400, "InvalidHeaderValue")
    blob.set_blob_tags({"state": "done"}, if_tags_match_condition=holds)
    blob.delete_blob(if_tags_match_condition="state = 'done'")


@pytest.mark.parametrize("tags,code", [
    ({"a&b": "1"}, "InvalidTag"), ({"k" * 129: "1"}, "InvalidTag"), ({"k": "v" * 257}, "InvalidTag"),
    ({"": "1"}, "EmptyTagName"), ({f"k{n}": "" for n in range(11)}, "TagsTooLarge")])
def test_bad_tags_are_refused(blob, tags, code):
    blob.upload_blob(b"x", tags={"good": "1"})
    refused(lambda: blob.set_blob_tags(tags), 400, code)
    refused(lambda: blob.upload_blob(b"y", overwrite=True, tags=tags), 400, code)
    assert blob.get_blob_tags() == {"good": "1"}


def test_limits_of_tags(blob):
    tags = {("k" * 126) + f"{n:02}": "v" * 256 for n in range(10)}
    blob.upload_blob(b"x", tags=tags)
    assert blob.get_blob_tags() == tags


def test_missing_blob_has_no_tags(blob):
    refused(blob.get_blob_tags, 404, "BlobNotFound")
    refused(lambda: blob.set_blob_tags({"a": "1"}), 404, "BlobNotFound")


def test_find_on_container_and_account(service, container, key):
    other = service.create_container(f"c{uuid.uuid4().hex}")
    try:
        container.upload_blob("a/one", b"x", tags={key: "1", "more": "yes"})
        container.upload_blob("two \u00e4\U0001f600", b"x", tags={key: "2"})
        container.upload_blob("ten", b"x", tags={key: "10"})
        other.upload_blob("one", b"x", tags={key: "1"})
        assert names(container.find_blobs_by_tags(f"\"{key}\" = '1'")) == ["a/one"]
        assert names(service.find_blobs_by_tags(f"\"{key}\" = '1'")) == ["a/one", "one"]
        here = f"@container = '{container.container_name}' AND \"{key}\" = '1'"
        assert found(service.find_blobs_by_tags(here)) == [(container.container_name, "a/one")]
        nowhere = f"@container = 'no-such-container' AND \"{key}\" = '1'"
        assert not found(service.find_blobs_by_tags(nowhere))
        assert names(service.find_blobs_by_tags(f"\"{key}\" > '1' AND \"{key}\" <= '2'")) == \
            ["ten", "two \u00e4\U0001f600"]
        assert names(service.find_blobs_by_tags(f"{key} >= '' AND more = 'yes'")) == ["a/one"]
        match = list(container.find_blobs_by_tags(f"\"{key}\" = '1'"))[0]
        assert match.tags == {key: "1"}
        assert not names(service.find_blobs_by_tags(f"\"{key}\" = '3'"))
    finally:
        other.delete_container()


def test_find_follows_every_change(service, container, key):
    def search():
        return names(service.find_blobs_by_tags(f"\"{key}\" = '1'"))
    container.upload_blob("b", b"x", tags={key: "1"})
    assert search() == ["b"]
    container.get_blob_client("b").set_blob_tags({key: "2"})
    assert not search()
    container.get_blob_client("b").set_blob_tags({key: "1"})
    assert search() == ["b"]
    container.upload_blob("b", b"x", overwrite=True)
    assert not search()
    container.upload_blob("b", b"x", overwrite=True, tags={key: "1"})
    assert search() == ["b"]
    container.delete_blob("b")
    assert not search()
    container.upload_blob("c", b"x", tags={key: "1"})
    container.delete_container()
    assert not search()


def test_find_in_pages(container, key):
    put_many(container, [f"b{n:03}" for n in range(50)])
    for n in range(50):
        container.get_blob_client(f"b{n:03}").set_blob_tags({key: "x", "odd": str(n % 2)})
    pages = container.find_blobs_by_tags(f"{key} = 'x' AND odd = '1'", results_per_page=7).by_page()
    sizes = [[blob.name for blob in page] for page in pages]
    assert [name for page in sizes for name in page] == [f"b{n:03}" for n in range(1, 50, 2)]
    assert max(len(page) for page in sizes) <= 7


def test_bad_searches_are_refused(service, container):
    for where in ["", "a", "a = 1", "a = '1' OR a = '2'", "a <> '1'", "@container = 'x'", "= '1'"]:
        code = "InvalidQueryParameterValue" if where else "MissingRequiredQueryParameter"
        refused(lambda where=where: list(service.find_blobs_by_tags(where)), 400, code)
    refused(lambda: list(container.find_blobs_by_tags("@container = 'x' AND a = '1'")), 400,
            "InvalidQueryParameterValue")


def test_tags_of_a_snapshot(container, blob):
    blob.upload_blob(b"1", tags={"of": "blob"})
    taken = blob.create_snapshot()["snapshot"]
    kept = container.get_blob_client(blob.blob_name, snapshot=taken)
    assert kept.get_blob_tags() == {"of": "blob"}
    blob.set_blob_tags({"of": "later"})
    assert kept.get_blob_tags() == {"of": "blob"}
    # The SDK does not offer it; the service takes it since 2020-08-04.
    custom = {"raw_request_hook": lambda request: request.http_request.format_parameters({"snapshot": taken})}
    blob.set_blob_tags({"of": "snapshot"}, **custom)
    assert (kept.get_blob_tags(), blob.get_blob_tags()) == ({"of": "snapshot"}, {"of": "later"})

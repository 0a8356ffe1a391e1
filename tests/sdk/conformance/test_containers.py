"""Containers: create, properties, metadata, list, delete, and how they are listed."""

import datetime
import uuid

import pytest
from azure.core.exceptions import ResourceExistsError
from conftest import refused
from lib.measure import wait_until


def unique(prefix="c"):
    return f"{prefix}{uuid.uuid4().hex}"


def test_create_read_delete(service):
    name = unique()
    container = service.get_container_client(name)
    made = container.create_container(metadata={"colour": "green"})
    assert made["etag"] and made["last_modified"].tzinfo
    found = container.get_container_properties()
    assert found.name == name
    assert found.metadata == {"colour": "green"}
    assert (found.etag, found.last_modified) == (made["etag"], made["last_modified"])
    assert (found.lease.status, found.lease.state) == ("unlocked", "available")
    assert not found.has_immutability_policy and not found.has_legal_hold
    assert container.exists()
    container.delete_container()
    assert not container.exists()
    refused(container.get_container_properties, 404, "ContainerNotFound")
    refused(container.delete_container, 404, "ContainerNotFound")


def test_create_twice(container):
    refused(container.create_container, 409, "ContainerAlreadyExists")


def test_metadata_is_replaced_and_moves_the_etag(container):
    before = container.get_container_properties()
    container.set_container_metadata({"one": "1", "two": "2"})
    container.set_container_metadata({"two": "II"})
    after = container.get_container_properties()
    assert after.metadata == {"two": "II"}
    assert after.etag != before.etag
    container.set_container_metadata(None)
    assert not container.get_container_properties().metadata


def test_metadata_of_a_missing_container(service):
    missing = service.get_container_client(unique())
    refused(lambda: missing.set_container_metadata({"a": "b"}), 404, "ContainerNotFound")


@pytest.mark.parametrize("operation", ["upload_blob", "list", "get_blob"])
def test_operations_in_a_missing_container(service, operation):
    missing = service.get_container_client(unique())
    call = {
        "upload_blob": lambda: missing.upload_blob("b", b"x"),
        "list": lambda: list(missing.list_blobs()),
        "get_blob": lambda: missing.download_blob("b").readall(),
    }[operation]
    refused(call, 404, "ContainerNotFound")


@pytest.mark.parametrize("name, code", [
    ("ab", "OutOfRangeInput"), ("a" * 64, "OutOfRangeInput"), ("Upper", "InvalidResourceName"),
    ("a--b", "InvalidResourceName"), ("-ab", "InvalidResourceName"), ("ab-", "InvalidResourceName"),
    ("a_b", "InvalidResourceName"),
])
def test_bad_names(wire, name, code):
    answer = wire.request("PUT", f"/{name}", {"restype": "container"})
    assert (answer.status, answer.code) == (400, code)


@pytest.mark.parametrize("name", ["abc", "a-1", "0" * 63, "$root", "$web"])
def test_good_names(wire, name):
    answer = wire.request("PUT", f"/{name}", {"restype": "container"})
    assert (answer.status, answer.code) in [(201, ""), (409, "ContainerAlreadyExists")]
    assert wire.request("DELETE", f"/{name}", {"restype": "container"}).status == 202


def test_recreate_is_empty(service):
    container = service.create_container(unique())
    container.upload_blob("old", b"old")
    container.delete_container()
    # The service may answer ContainerBeingDeleted for a while.
    assert wait_until(lambda: created(container), 60, every=1)
    assert list(container.list_blobs()) == []
    refused(container.get_blob_client("old").get_blob_properties, 404, "BlobNotFound")
    container.delete_container()


def created(container):
    """Whether the container could be made while another one of its name is being deleted."""
    try:
        container.create_container()
    except ResourceExistsError as error:
        assert error.error_code == "ContainerBeingDeleted"
        return False
    return True


def test_list_with_prefix_metadata_and_paging(service):
    prefix = unique("list")[:20]
    names = [f"{prefix}-{n:02}" for n in range(11)]
    for n, name in enumerate(names):
        service.create_container(name, metadata={"n": str(n)})
    for size in (1, 2, 3, 5, 11, 100):
        pages = [list(page) for page in
                 service.list_containers(name_starts_with=prefix, results_per_page=size, include_metadata=True).by_page()]
        assert [c.name for page in pages for c in page] == names
        assert all(len(page) <= size for page in pages)
    listed = list(service.list_containers(name_starts_with=prefix, include_metadata=True))
    assert [c.metadata for c in listed] == [{"n": str(n)} for n in range(11)]
    assert all(c.etag and c.last_modified and c.lease.state == "available" for c in listed)
    assert not any(c.metadata for c in service.list_containers(name_starts_with=prefix))
    for name in names:
        service.delete_container(name)
    assert list(service.list_containers(name_starts_with=prefix)) == []


def test_date_conditions(container):
    past = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)
    future = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    container.set_container_metadata({"a": "b"}, if_modified_since=past)
    refused(lambda: container.set_container_metadata({"a": "c"}, if_modified_since=future), 412, "ConditionNotMet")
    assert container.get_container_properties().metadata == {"a": "b"}
    refused(lambda: container.delete_container(if_unmodified_since=past), 412, "ConditionNotMet")
    refused(lambda: container.delete_container(if_modified_since=future), 412, "ConditionNotMet")
    container.delete_container(if_unmodified_since=future)


def test_account_information(service, container):
    for found in (service.get_account_information(), container.get_account_information()):
        assert (found["sku_name"], found["account_kind"]) == ("Standard_LRS", "StorageV2")

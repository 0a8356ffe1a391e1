"""Authentication: keys, signatures, clocks, versions, and both ways of addressing an account."""

import base64
import email.utils
import time
import uuid

import pytest
from azure.core.exceptions import HttpResponseError
from conftest import refused
from lib.account import Account
from lib.wire import Wire


def test_both_keys(two_keys):
    first, second = (account.service() for account in two_keys)
    container = first.create_container(f"c{uuid.uuid4().hex}")
    container.upload_blob("b", b"by the first key")
    seen = second.get_blob_client(container.container_name, "b")
    assert seen.download_blob().readall() == b"by the first key"
    seen.delete_blob()
    container.delete_container()


def test_accounts_do_not_see_each_other(account, two_keys, container):
    container.upload_blob("b", b"mine")
    other = two_keys[0].service()
    refused(other.get_container_client(container.container_name).get_container_properties, 404, "ContainerNotFound")
    assert container.container_name not in [c.name for c in other.list_containers()]
    crossed = Account(account.address, account.name, two_keys[0].key).service()
    refused(lambda: list(crossed.list_containers()), 403, "AuthenticationFailed")


def test_wrong_key(account, container):
    wrong = Account(account.address, account.name, base64.b64encode(b"not the key of this account.....").decode())
    client = wrong.service().get_container_client(container.container_name)
    refused(lambda: client.upload_blob("b", b"x"), 403, "AuthenticationFailed")
    refused(client.get_container_properties, 403, "AuthenticationFailed")
    assert list(container.list_blobs()) == []


def test_unknown_account(account):
    nobody = Account(account.address, "nobody", account.key)
    with pytest.raises(HttpResponseError) as caught:
        list(nobody.service().list_containers())
    assert caught.value.status_code in (403, 404) and caught.value.error_code


def test_anonymous(wire, container):
    answer = wire.request("GET", f"/{container.container_name}/b", sign=False)
    assert answer.status in (401, 403, 404, 409) and answer.code


def test_changed_after_signing(wire, container, account):
    """A changed header invalidates the signature."""
    headers = {"x-ms-blob-type": "BlockBlob", "authorization": f"SharedKey {account.name}:{'A' * 43}="}
    answer = wire.request("PUT", f"/{container.container_name}/b", headers=headers, body=b"x", sign=False)
    assert (answer.status, answer.code) == (403, "AuthenticationFailed")


@pytest.mark.parametrize("minutes", [-20, 20])
def test_clock_skew(wire, container, minutes):
    date = email.utils.formatdate(time.time() + 60 * minutes, usegmt=True)
    answer = wire.request("GET", f"/{container.container_name}", {"restype": "container"}, {"x-ms-date": date})
    assert (answer.status, answer.code) == (403, "AuthenticationFailed")


@pytest.mark.parametrize("minutes", [-10, 10])
def test_a_clock_a_little_off(wire, container, minutes):
    date = email.utils.formatdate(time.time() + 60 * minutes, usegmt=True)
    answer = wire.request("GET", f"/{container.container_name}", {"restype": "container"}, {"x-ms-date": date})
    assert answer.status == 200


@pytest.mark.parametrize("version", ["2015-02-21", "2019-12-12", "2021-12-02", "2026-10-06", "2031-01-01"])
def test_any_well_formed_version(wire, container, version):
    answer = wire.request("GET", f"/{container.container_name}", {"restype": "container"}, {"x-ms-version": version})
    assert answer.status == 200


def test_malformed_version(wire, container):
    answer = wire.request("GET", f"/{container.container_name}", {"restype": "container"}, {"x-ms-version": "newest"})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")


@pytest.mark.parametrize("host", ["{name}.blob.localhost", "{name}.blob.storage.example"])
def test_host_style(server, account, container, host):
    """The account in the host name, nothing of it in the path."""
    port = server.blob_address.split(":")[1]
    wire = Wire(account, host=f"{host.format(name=account.name)}:{port}", path_style=False)
    answer = wire.request("PUT", f"/{container.container_name}/b", headers={"x-ms-blob-type": "BlockBlob"}, body=b"host")
    assert answer.status == 201, answer
    assert container.download_blob("b").readall() == b"host"
    answer = wire.request("GET", "/", {"comp": "list"})
    assert answer.status == 200 and container.container_name.encode() in answer.body


def test_expect_continue_and_kept_connections(wire, container):
    for number in range(50):
        answer = wire.request("PUT", f"/{container.container_name}/{number}", headers={"x-ms-blob-type": "BlockBlob"},
                              body=b"x" * number)
        assert answer.status == 201
    assert wire.request("GET", f"/{container.container_name}/49").body == b"x" * 49

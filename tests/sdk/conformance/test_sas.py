"""Shared access signatures of every kind, as the SDK makes them: what they permit, what they refuse, and how."""

import datetime
import uuid

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.storage.blob import (BlobBlock, BlobClient, BlobServiceClient, ContainerClient, generate_account_sas,
                                generate_blob_sas, generate_container_sas)
from conftest import refused
from lib.account import Account

NOW = datetime.datetime.now(datetime.timezone.utc)
HOUR = datetime.timedelta(hours=1)
PERMISSION, RESOURCE = "AuthorizationPermissionMismatch", "AuthorizationResourceTypeMismatch"


def account_sas(account, permission="rwdlactf", types="sco", **more):
    """A signature for the account."""
    more.setdefault("expiry", NOW + HOUR)
    return generate_account_sas(account.name, account.key, types, permission, **more)


def by_account(account, *arguments, **more):
    """A service client that signs so."""
    return BlobServiceClient(account.url, credential=account_sas(account, *arguments, **more), retry_total=0)


def by_container(account, name, permission="racwdlt", **more):
    """A container client with a signature for the container."""
    if "policy_id" not in more:
        more.setdefault("expiry", NOW + HOUR)
    made = generate_container_sas(account.name, name, account_key=account.key, permission=permission, **more)
    return ContainerClient(account.url, name, credential=made, retry_total=0)


def by_blob(account, container, name, permission="racwdt", **more):
    """A blob client with a signature for the blob."""
    more.setdefault("expiry", NOW + HOUR)
    made = generate_blob_sas(account.name, container, name, account_key=account.key, permission=permission, **more)
    return BlobClient(account.url, container, name, credential=made, retry_total=0)


def test_account_signature_does_everything(account):
    service = by_account(account)
    container = service.create_container(f"c{uuid.uuid4().hex}")
    blob = container.upload_blob("dir/a b+c%25?.txt", b"by signature", metadata={"k": "v"})
    assert blob.download_blob().readall() == b"by signature"
    assert [b.name for b in container.list_blobs()] == ["dir/a b+c%25?.txt"]
    assert container.container_name in [c.name for c in service.list_containers()]
    blob.set_blob_metadata({"k": "w"})
    blob.delete_blob()
    container.delete_container()


def test_both_keys_sign(two_keys):
    name = f"c{uuid.uuid4().hex}"
    by_account(two_keys[0]).create_container(name)
    by_account(two_keys[1]).delete_container(name)


def test_signature_of_another_key_or_account(account, two_keys, container):
    wrong = Account(account.address, account.name, two_keys[0].key)
    error = refused(lambda: list(by_account(wrong).list_containers()), 403, "AuthenticationFailed")
    assert "String to sign used was" in str(error)
    foreign = generate_container_sas(two_keys[0].name, container.container_name, account_key=two_keys[0].key,
                                     permission="rl", expiry=NOW + HOUR)
    client = ContainerClient(account.url, container.container_name, credential=foreign, retry_total=0)
    refused(lambda: list(client.list_blobs()), 403, "AuthenticationFailed")


# (permission, what is tried)
OPERATIONS = {
    "list containers": ("l", "s", lambda s, c, b: next(iter(s.list_containers()), None)),
    "create container": ("c", "c", lambda s, c, b: s.create_container(f"c{uuid.uuid4().hex}")),
    "container properties": ("r", "c", lambda s, c, b: c.get_container_properties()),
    "container metadata": ("w", "c", lambda s, c, b: c.set_container_metadata({"a": "b"})),
    "list blobs": ("l", "c", lambda s, c, b: list(c.list_blobs())),
    "get blob": ("r", "o", lambda s, c, b: b.download_blob().readall()),
    "blob properties": ("r", "o", lambda s, c, b: b.get_blob_properties()),
    "block list": ("r", "o", lambda s, c, b: b.get_block_list()),
    "put blob": ("w", "o", lambda s, c, b: b.upload_blob(b"new", overwrite=True)),
    "put block": ("w", "o", lambda s, c, b: b.stage_block("MQ==", b"x")),
    "blob metadata": ("w", "o", lambda s, c, b: b.set_blob_metadata({"a": "b"})),
    "http headers": ("w", "o", lambda s, c, b: b.set_http_headers()),
    "delete blob": ("d", "o", lambda s, c, b: b.delete_blob()),
}
EVERY = "rwdlac"


def clients(account, container, permission, types="sco"):
    """Service, container and blob of one account signature."""
    service = by_account(account, permission, types)
    mine = service.get_container_client(container.container_name)
    return service, mine, mine.get_blob_client("b")


@pytest.mark.parametrize("name", OPERATIONS)
def test_account_permission_of_each_operation(account, container, name):
    letter, kind, call = OPERATIONS[name]
    container.upload_blob("b", b"x")
    if name == "list containers":
        call = lambda s, c, b: list(s.list_containers(results_per_page=5).by_page().__next__())  # noqa: E731
    others = EVERY.replace(letter, "")
    if name in ("create container", "put blob", "put block"):
        others = others.replace("w", "").replace("c", "")
    refused(lambda: call(*clients(account, container, others)), 403, PERMISSION)
    refused(lambda: call(*clients(account, container, EVERY, "sco".replace(kind, ""))), 403, RESOURCE)
    call(*clients(account, container, letter, kind))


SERVICE_OPERATIONS = {name: row for name, row in OPERATIONS.items() if row[1] == "o" or name == "list blobs"}


@pytest.mark.parametrize("name", SERVICE_OPERATIONS)
def test_service_permission_of_each_operation(account, container, name):
    letter, kind, call = SERVICE_OPERATIONS[name]
    container.upload_blob("b", b"x")

    def run(permission):
        mine = by_container(account, container.container_name, permission)
        return call(None, mine, mine.get_blob_client("b"))

    alike = f"{letter}c" if name in ("put blob", "put block") else letter
    others = "".join(p for p in "racwdl" if p not in alike)
    refused(lambda: run(others), 403, PERMISSION)
    if kind == "o":
        permission = others.replace("l", "")
        refused(lambda: call(None, None, by_blob(account, container.container_name, "b", permission)), 403, PERMISSION)
        call(None, None, by_blob(account, container.container_name, "b", letter))
        container.upload_blob("b", b"x", overwrite=True)
    run(letter)


def test_service_signature_never_reaches_the_container_itself(account, container):
    mine = by_container(account, container.container_name, "racwdl")
    refused(mine.get_container_properties, 403, "AuthorizationFailure")
    refused(lambda: mine.set_container_metadata({"a": "b"}), 403, "AuthorizationFailure")
    refused(mine.delete_container, 403, "AuthorizationFailure")
    other = generate_container_sas(account.name, container.container_name, account_key=account.key, permission="rl",
                                   expiry=NOW + HOUR)
    service = BlobServiceClient(account.url, credential=other, retry_total=0)
    refused(lambda: list(service.list_containers()), 403, "AuthenticationFailed")
    refused(service.get_blob_client("other", "b").get_blob_properties, 403, "AuthenticationFailed")


def test_blob_signature_is_for_that_blob(account, container):
    container.upload_blob("a", b"a")
    container.upload_blob("b", b"b")
    made = generate_blob_sas(account.name, container.container_name, "a", account_key=account.key, permission="r",
                             expiry=NOW + HOUR)
    client = ContainerClient(account.url, container.container_name, credential=made, retry_total=0)
    assert client.download_blob("a").readall() == b"a"
    refused(lambda: client.download_blob("b"), 403, "AuthenticationFailed")
    refused(lambda: list(client.list_blobs()), 403, "AuthenticationFailed")


def test_create_alone_makes_but_does_not_replace(account, container):
    new = by_blob(account, container.container_name, "new", "c")
    new.upload_blob(b"first")
    refused(lambda: new.upload_blob(b"second", overwrite=True), 403, "UnauthorizedBlobOverwrite")
    refused(lambda: new.upload_blob(b"second"), 409, "BlobAlreadyExists")
    refused(lambda: new.commit_block_list([]), 403, "UnauthorizedBlobOverwrite")
    assert container.download_blob("new").readall() == b"first"
    refused(new.delete_blob, 403, PERMISSION)


def test_time_window(account, container):
    late = by_container(account, container.container_name, expiry=NOW - datetime.timedelta(seconds=5))
    error = refused(lambda: list(late.list_blobs()), 403, "AuthenticationFailed")
    assert "time frame" in str(error)
    early = by_container(account, container.container_name, start=NOW + HOUR / 2)
    refused(lambda: list(early.list_blobs()), 403, "AuthenticationFailed")
    now = by_container(account, container.container_name, start=NOW - HOUR)
    assert list(now.list_blobs()) == []


def test_addresses(account, container):
    elsewhere = by_container(account, container.container_name, ip="10.0.0.1-10.0.0.9")
    error = refused(lambda: list(elsewhere.list_blobs()), 403, "AuthorizationSourceIPMismatch")
    assert "127.0.0.1" in str(error)
    for here in ("127.0.0.1", "127.0.0.0-127.0.0.255"):
        assert list(by_container(account, container.container_name, ip=here).list_blobs()) == []


def test_protocol(account, container):
    refused(lambda: list(by_container(account, container.container_name, protocol="https").list_blobs()), 403,
            "AuthorizationProtocolMismatch")
    assert list(by_container(account, container.container_name, protocol="https,http").list_blobs()) == []


def test_other_service(account):
    refused(lambda: list(by_account(account, services="q").list_containers()), 403, "AuthorizationServiceMismatch")


def test_response_headers(account, container):
    container.upload_blob("b", b"x" * 10)
    mine = by_blob(account, container.container_name, "b", "r", cache_control="no-store",
                   content_disposition='attachment; filename="ä b.txt"'.encode("ascii", "ignore").decode(),
                   content_encoding="identity", content_language="de", content_type="text/x-own; charset=utf-8")
    for settings in (mine.get_blob_properties().content_settings,
                     mine.download_blob(offset=2, length=3).properties.content_settings):
        assert settings.cache_control == "no-store"
        assert settings.content_disposition == 'attachment; filename=" b.txt"'
        assert settings.content_encoding == "identity"
        assert settings.content_language == "de"
        assert settings.content_type == "text/x-own; charset=utf-8"
    assert container.get_blob_client("b").get_blob_properties().content_settings.cache_control is None


def test_forged_parameters(account, container):
    made = generate_container_sas(account.name, container.container_name, account_key=account.key, permission="l",
                                  expiry=NOW + HOUR)
    for changed in (made.replace("sp=l", "sp=rwdl"), made.replace("sr=c", "sr=b"), made + "&sp=rwdl", made + "&sip=1.1.1.1",
                    made.replace("se=2", "se=3"), made[:-4] + "AA%3D"):
        client = ContainerClient(account.url, container.container_name, credential=changed, retry_total=0)
        refused(lambda c=client: list(c.list_blobs()), 403, "AuthenticationFailed")


def test_version_of_the_signature_is_that_of_the_request(account, container, wire):
    made = generate_container_sas(account.name, container.container_name, account_key=account.key, permission="l",
                                  expiry=NOW + HOUR)
    import http.client  # pylint: disable=import-outside-toplevel
    connection = http.client.HTTPConnection(account.address)
    path = f"/{account.name}/{container.container_name}?restype=container&comp=list&{made}"
    connection.request("GET", path)
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("x-ms-version")) == (200, made.split("sv=")[1][:10])
    answer.read()
    connection.request("GET", path + "&api-version=2021-02-12")
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("x-ms-version")) == (200, "2021-02-12")
    answer.read()
    connection.request("GET", path + "&api-version=newest")
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("x-ms-error-code")) == (400, "InvalidQueryParameterValue")
    connection.close()


def test_key_credential_still_signs(account, container):
    named = ContainerClient(account.url, container.container_name,
                            credential=AzureNamedKeyCredential(account.name, account.key), retry_total=0)
    named.upload_blob("b", b"by key")
    assert by_container(account, container.container_name).download_blob("b").readall() == b"by key"


def test_writes_are_under_the_scope_that_the_signature_names(account, container):
    """`ses`: the request need not name the scope again and must not name another one; reads are not checked against it."""
    name = container.container_name
    signers = {
        "account": by_account(account, encryption_scope="ours").get_container_client(name),
        "container": by_container(account, name, encryption_scope="ours"),
    }
    for kind, signed in signers.items():
        blob = signed.get_blob_client(f"{kind}/put")
        blob.upload_blob(b"put")
        assert blob.get_blob_properties().encryption_scope == "ours"
        blob.upload_blob(b"again", overwrite=True, encryption_scope="ours")
        blocks = signed.get_blob_client(f"{kind}/blocks")
        blocks.stage_block("MQ==", b"block")
        blocks.commit_block_list([BlobBlock("MQ==")])
        assert container.get_blob_client(blocks.blob_name).get_blob_properties().encryption_scope == "ours"
        other = signed.get_blob_client(f"{kind}/other")
        error = refused(lambda: other.upload_blob(b"x", encryption_scope="theirs"), 400, "InvalidHeaderValue")  # pylint: disable=cell-var-from-loop
        assert "x-ms-encryption-scope" in str(error)
        assert not other.exists()
        plain = container.get_blob_client(f"{kind}/plain")
        plain.upload_blob(b"plain")
        assert signed.get_blob_client(plain.blob_name).download_blob().readall() == b"plain"
        assert plain.get_blob_properties().encryption_scope is None
        assert len(list(signed.list_blobs(name_starts_with=f"{kind}/"))) == 3


def test_scope_in_a_blob_signature_is_signed(account, container):
    made = generate_blob_sas(account.name, container.container_name, "b", account_key=account.key, permission="cw",
                             expiry=NOW + HOUR, encryption_scope="ours")
    forged = made.replace("ses=ours", "ses=theirs")
    assert forged != made
    client = BlobClient(account.url, container.container_name, "b", credential=forged, retry_total=0)
    refused(lambda: client.upload_blob(b"x"), 403, "AuthenticationFailed")
    BlobClient(account.url, container.container_name, "b", credential=made, retry_total=0).upload_blob(b"x")
    assert container.get_blob_client("b").get_blob_properties().encryption_scope == "ours"

"""Stored access policies and public access: what they permit, and that revoking takes effect immediately."""

import datetime
import http.client
import uuid

import pytest
from azure.storage.blob import AccessPolicy, ContainerClient, ContainerSasPermissions, generate_container_sas
from conftest import refused

NOW = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
HOUR = datetime.timedelta(hours=1)


def by_policy(account, container, policy, **more):
    """A container client that signs by a stored policy."""
    made = generate_container_sas(account.name, container.container_name, account_key=account.key, policy_id=policy, **more)
    return ContainerClient(account.url, container.container_name, credential=made, retry_total=0)


def anyone(account, container):
    """A container client that signs nothing."""
    return ContainerClient(account.url, container.container_name, retry_total=0)


def test_policies_are_kept(container):
    policies = {"first": AccessPolicy("rl", expiry=NOW + HOUR, start=NOW), "ä & <two>": AccessPolicy(expiry=NOW + HOUR),
                "empty": AccessPolicy()}
    before = container.get_container_properties()
    changed = container.set_container_access_policy(policies)
    assert changed["etag"] != before.etag
    found = container.get_container_access_policy()
    assert found["public_access"] is None
    kept = {entry.id: entry.access_policy for entry in found["signed_identifiers"]}
    assert list(kept) == list(policies)
    assert (kept["first"].permission, kept["first"].start[:19], kept["first"].expiry[:19]) == (
        "rl", NOW.isoformat()[:19], (NOW + HOUR).isoformat()[:19])
    container.set_container_access_policy({})
    assert container.get_container_access_policy()["signed_identifiers"] == []


def test_policies_have_limits(container):
    refused(lambda: container.set_container_access_policy({"i" * 65: AccessPolicy("r", NOW + HOUR)}), 400,
            "InvalidXmlNodeValue")
    container.set_container_access_policy({"i" * 64: AccessPolicy("r", NOW + HOUR)})


def test_conditions_and_lease(container):
    later = NOW + HOUR
    refused(lambda: container.set_container_access_policy({}, if_modified_since=later), 412, "ConditionNotMet")
    refused(lambda: container.set_container_access_policy({}, if_unmodified_since=NOW - HOUR), 412, "ConditionNotMet")
    container.set_container_access_policy({}, if_modified_since=NOW - HOUR)
    refused(lambda: container.get_container_access_policy(lease=str(uuid.uuid4())), 412,
            "LeaseNotPresentWithContainerOperation")
    lease = container.acquire_lease(15)
    container.set_container_access_policy({}, lease=lease)
    refused(lambda: container.set_container_access_policy({}, lease=str(uuid.uuid4())), 412,
            "LeaseIdMismatchWithContainerOperation")
    lease.release()


def test_policy_signs_and_revokes_at_once(account, container):
    container.upload_blob("b", b"x")
    container.set_container_access_policy({"p": AccessPolicy(ContainerSasPermissions(read=True), NOW + HOUR)})
    mine = by_policy(account, container, "p")
    assert mine.download_blob("b").readall() == b"x"
    refused(lambda: mine.upload_blob("c", b"x"), 403, "AuthorizationPermissionMismatch")
    refused(lambda: list(mine.list_blobs()), 403, "AuthorizationPermissionMismatch")
    container.set_container_access_policy({"p": AccessPolicy("rl", NOW + HOUR)})
    assert [b.name for b in mine.list_blobs()] == ["b"]
    container.set_container_access_policy({"p": AccessPolicy("rl", NOW - HOUR)})
    refused(lambda: list(mine.list_blobs()), 403, "AuthenticationFailed")
    container.set_container_access_policy({"p": AccessPolicy("rl", NOW + HOUR, NOW + HOUR / 2)})
    refused(lambda: list(mine.list_blobs()), 403, "AuthenticationFailed")
    container.set_container_access_policy({"q": AccessPolicy("rl", NOW + HOUR)})
    error = refused(lambda: mine.download_blob("b"), 403, "AuthenticationFailed")
    assert "no access policy" in str(error)


def test_policy_and_signature_share_the_work(account, container):
    container.set_container_access_policy({"until": AccessPolicy(expiry=NOW + HOUR), "what": AccessPolicy("l"),
                                           "all": AccessPolicy("l", NOW + HOUR)})
    assert list(by_policy(account, container, "until", permission="l").list_blobs()) == []
    assert list(by_policy(account, container, "what", expiry=NOW + HOUR).list_blobs()) == []
    for policy, more in (("until", {}), ("what", {}), ("until", {"permission": "l", "expiry": NOW + HOUR}),
                         ("all", {"permission": "l"}), ("all", {"expiry": NOW + HOUR}), ("none", {})):
        refused(lambda p=policy, m=more: list(by_policy(account, container, p, **m).list_blobs()), 403,
                "AuthenticationFailed")


def test_policies_are_for_key_holders(account, container):
    mine = by_policy(account, container, None, permission="racwdl", expiry=NOW + HOUR)
    refused(mine.get_container_access_policy, 403, "AuthorizationFailure")
    refused(lambda: mine.set_container_access_policy({}), 403, "AuthorizationFailure")


def test_private_container_is_closed(account, container):
    container.upload_blob("b", b"x")
    stranger = anyone(account, container)
    refused(lambda: stranger.download_blob("b"), 401, "NoAuthenticationInformation")
    refused(lambda: list(stranger.list_blobs()), 401, "NoAuthenticationInformation")
    refused(lambda: stranger.upload_blob("c", b"x"), 401, "NoAuthenticationInformation")


def test_blob_access(account, container):
    container.upload_blob("b", b"x", metadata={"k": "v"})
    container.set_container_access_policy({}, public_access="blob")
    assert container.get_container_properties().public_access == "blob"
    assert container.get_container_access_policy()["public_access"] == "blob"
    stranger = anyone(account, container)
    assert stranger.download_blob("b").readall() == b"x"
    assert stranger.get_blob_client("b").get_blob_properties().metadata == {"k": "v"}
    refused(lambda: stranger.download_blob("missing"), 404, "BlobNotFound")
    refused(lambda: list(stranger.list_blobs()), 401, "NoAuthenticationInformation")
    refused(stranger.get_container_properties, 401, "NoAuthenticationInformation")
    refused(lambda: stranger.upload_blob("c", b"x"), 401, "NoAuthenticationInformation")
    refused(lambda: stranger.delete_blob("b"), 401, "NoAuthenticationInformation")
    container.set_container_access_policy({})
    refused(lambda: stranger.download_blob("b"), 401, "NoAuthenticationInformation")


def test_container_access(account, service):
    container = service.create_container(f"c{uuid.uuid4().hex}", public_access="container", metadata={"k": "v"})
    container.upload_blob("b", b"x")
    stranger = anyone(account, container)
    assert [b.name for b in stranger.list_blobs()] == ["b"]
    assert stranger.get_container_properties().metadata == {"k": "v"}
    assert stranger.download_blob("b").readall() == b"x"
    refused(lambda: stranger.set_container_metadata({}), 401, "NoAuthenticationInformation")
    refused(stranger.get_container_access_policy, 401, "NoAuthenticationInformation")
    refused(stranger.delete_container, 401, "NoAuthenticationInformation")
    container.delete_container()
    refused(lambda: stranger.download_blob("b"), 401, "NoAuthenticationInformation")


@pytest.mark.parametrize("version,status,code", [(None, 404, "ResourceNotFound"), ("2019-07-07", 404, "ResourceNotFound"),
                                                 ("2019-12-12", 401, "NoAuthenticationInformation")])
def test_what_a_stranger_hears(account, container, version, status, code):
    """For private and for missing containers, old clients get 404, new ones a challenge to authenticate."""
    connection = http.client.HTTPConnection(account.address)
    for path in (f"/{container.container_name}/b", "/nosuchcontainer/b", f"/{container.container_name}?restype=container"):
        connection.request("GET", f"/{account.name}{path}", headers={"x-ms-version": version} if version else {})
        answer = connection.getresponse()
        answer.read()
        assert (answer.status, answer.getheader("x-ms-error-code")) == (status, code), path
    connection.close()

"""Immutability policies and legal holds of versions, with the Python SDK's own calls."""

import base64
import datetime
import time
import uuid

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobClient, BlobSasPermissions, ImmutabilityPolicy, RetentionPolicy, generate_blob_sas
from conftest import block_id
from lib import commands
from lib.account import Account
from lib.wire import Wire

NAME = "immutable"
KEY = base64.b64encode(b"the key of an account that locks").decode()
POLICY, HOLD = (409, "BlobImmutableDueToPolicy"), (409, "BlobImmutableDueToLegalHold")
PROTECTED = (409, "ContainerProtectedFromDeletion")
DAY = datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def immutable(server):
    """An account of its own whose new containers have object lock."""
    assert commands.run(server, "account", "create", NAME, f"--key1={KEY}")[0] == 0
    assert commands.run(server, "account", "set", NAME, "--versioning", "on", "--object-lock", "on")[0] == 0
    return Account(server.blob_address, NAME, KEY)


@pytest.fixture
def locked(immutable):
    """A container of that account. It stays: what is in it may be held."""
    return immutable.service().create_container(f"c{uuid.uuid4().hex}")


@pytest.fixture
def blob(locked):
    """A blob client of a name that nothing is stored under."""
    return locked.get_blob_client("the-blob")


def now():
    """The present, in whole seconds."""
    return datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)


START = now()


def later(days=1):
    """A time that does not come within the test: the same whenever it is asked for."""
    return START + days * DAY


def policy(until, mode="Unlocked"):
    """A policy."""
    return ImmutabilityPolicy(expiry_time=until, policy_mode=mode)


def refused(call, *arguments, **options):
    """Status and code of a refusal."""
    with pytest.raises(HttpResponseError) as error:
        call(*arguments, **options)
    return error.value.status_code, error.value.response.headers["x-ms-error-code"]


def shown(blob, **of):
    """Mode, date and legal hold of a blob, as its properties show them."""
    found = blob.get_blob_properties(**of)
    return found.immutability_policy.policy_mode, found.immutability_policy.expiry_time, found.has_legal_hold


def versions(container):
    """The ids of all versions, oldest first."""
    return [found.version_id for found in container.list_blobs(include=["versions"])]


def test_an_account_says_whether_containers_have_it(server, account, immutable, locked):
    assert locked.get_container_properties().immutable_storage_with_versioning_enabled is True
    listed = next(c for c in immutable.service().list_containers() if c.name == locked.container_name)
    assert listed.immutable_storage_with_versioning_enabled is True
    other = account.service().create_container(f"c{uuid.uuid4().hex}")
    assert other.get_container_properties().immutable_storage_with_versioning_enabled is False
    other.delete_container()
    text = commands.refused(server, "account", "set", account.name, "--object-lock", "on")
    assert "--versioning on" in text
    # A request that is refused in part changes nothing.
    text = commands.refused(server, "account", "set", account.name, "--object-lock", "on", "--container-retention", "3")
    assert "--versioning on" in text
    _, text, _ = commands.run(server, "account", "show", account.name)
    assert "object lock" not in text and "container retention" not in text
    _, text, _ = commands.run(server, "account", "show", NAME)
    assert "object lock        on" in text


def test_a_policy_is_set_replaced_and_deleted(blob):
    blob.upload_blob(b"one")
    before = blob.get_blob_properties()
    assert shown(blob) == (None, None, None)
    for until, mode in [(later(3), "Unlocked"), (later(1), "Unlocked"), (later(2), "Unlocked")]:
        answer = blob.set_immutability_policy(policy(until, mode))
        assert (answer["immutability_policy_until_date"], answer["immutability_policy_mode"]) == (until, mode.lower())
        assert shown(blob) == (mode.lower(), until, None)
    after = blob.get_blob_properties()
    assert (before.etag, before.last_modified, before.version_id) == (after.etag, after.last_modified, after.version_id)
    blob.delete_immutability_policy()
    assert shown(blob) == (None, None, None)
    blob.delete_immutability_policy()
    blob.set_blob_metadata({"a": "b"})


def test_a_locked_policy_only_gets_longer(blob):
    blob.upload_blob(b"one")
    blob.set_immutability_policy(policy(later(1)))
    blob.set_immutability_policy(policy(later(2), "Locked"))
    for until, mode in [(later(1), "Locked"), (later(9), "Unlocked"), (later(1), "Unlocked")]:
        assert refused(blob.set_immutability_policy, policy(until, mode)) == POLICY
    assert refused(blob.delete_immutability_policy) == POLICY
    blob.set_immutability_policy(policy(later(3), "Locked"))
    assert shown(blob)[:2] == ("locked", later(3))


def test_a_legal_hold_comes_and_goes(blob):
    blob.upload_blob(b"one")
    assert shown(blob)[2] is None
    for on in (True, True, False, True, False):
        assert blob.set_legal_hold(on)["legal_hold"] is on
        assert shown(blob)[2] is on
        assert blob.download_blob().properties.has_legal_hold is on


def test_lists_show_protection_where_they_are_asked(locked, blob):
    blob.upload_blob(b"one")
    blob.set_immutability_policy(policy(later(1), "Locked"))
    blob.set_legal_hold(True)
    of = lambda *include: next(locked.list_blobs(include=list(include)))
    plain = of()
    assert (plain.immutability_policy.policy_mode, plain.has_legal_hold) == (None, None)
    assert of("immutabilitypolicy").immutability_policy.policy_mode == "locked"
    assert of("immutabilitypolicy").immutability_policy.expiry_time == later(1)
    assert of("immutabilitypolicy").has_legal_hold is None
    assert of("legalhold").has_legal_hold is True
    assert of("legalhold", "immutabilitypolicy").immutability_policy.policy_mode == "locked"


@pytest.mark.parametrize("protect, code", [
    (lambda blob: blob.set_immutability_policy(policy(later(1))), POLICY),
    (lambda blob: blob.set_immutability_policy(policy(later(1), "Locked")), POLICY),
    (lambda blob: blob.set_legal_hold(True), HOLD)])
def test_a_held_version_is_neither_changed_nor_removed(locked, blob, protect, code):
    blob.upload_blob(b"one", metadata={"a": "b"})
    protect(blob)
    version = blob.get_blob_properties().version_id
    assert refused(blob.set_blob_metadata, {"c": "d"}) == code
    assert refused(blob.set_http_headers) == code
    # Tags, tier and lease are not part of what is held.
    blob.set_blob_tags({"t": "u"})
    blob.set_standard_blob_tier("Cool")
    blob.acquire_lease().release()
    # Writes and deletions leave it behind.
    blob.upload_blob(b"two", overwrite=True)
    assert shown(blob) == (None, None, None)
    assert refused(blob.delete_blob, version_id=version) == code
    blob.delete_blob()
    assert refused(blob.delete_blob, version_id=version) == code
    old = locked.get_blob_client("the-blob")
    assert old.download_blob(version_id=version).readall() == b"one"
    assert refused(locked.delete_container) == PROTECTED


def test_a_current_version_is_deleted_and_stays(locked, blob):
    blob.upload_blob(b"one", immutability_policy=policy(later(1), "Locked"))
    version = blob.get_blob_properties().version_id
    blob.delete_blob()
    assert blob.download_blob(version_id=version).readall() == b"one"
    assert shown(blob, version_id=version)[0] == "locked"
    assert versions(locked) == [version]


def test_append_and_page_blobs_do_not_grow_while_they_are_held(locked):
    append, page = locked.get_blob_client("append"), locked.get_blob_client("page")
    append.create_append_blob()
    append.append_block(b"one")
    page.create_page_blob(1024)
    page.upload_page(b"x" * 512, 0, 512)
    for blob in (append, page):
        blob.set_legal_hold(True)
    assert refused(append.append_block, b"two") == HOLD
    assert refused(append.seal_append_blob) == HOLD
    assert refused(page.upload_page, b"y" * 512, 512, 512) == HOLD
    assert refused(page.clear_page, 0, 512) == HOLD
    assert refused(page.resize_blob, 512) == HOLD
    assert refused(page.set_sequence_number, "increment") == HOLD
    for blob in (append, page):
        blob.set_legal_hold(False)
    append.append_block(b"two")
    page.upload_page(b"y" * 512, 512, 512)
    assert append.download_blob().readall() == b"onetwo"
    assert page.download_blob().readall() == b"x" * 512 + b"y" * 512


def test_headers_of_writes_protect(locked):
    until = later(2)
    options = {"immutability_policy": policy(until, "Locked"), "legal_hold": True}
    block, listed, append, page, copied, url = (locked.get_blob_client(name) for name in ("block", "list", "append", "page", "copy", "url"))
    block.upload_blob(b"x", **options)
    listed.stage_block(block_id(1), b"x")
    listed.commit_block_list([block_id(1)], **options)
    append.create_append_blob(**options)
    page.create_page_blob(512, **options)
    copied.start_copy_from_url(block.url, **options)
    for blob in (block, listed, append, page, copied):
        assert shown(blob) == ("locked", until, True), blob.blob_name
    # What protects a source does not come along.
    url.start_copy_from_url(block.url)
    assert shown(url) == (None, None, None)


def test_a_snapshot_has_a_protection_of_its_own(blob):
    blob.upload_blob(b"one", legal_hold=True)
    taken = blob.create_snapshot()["snapshot"]
    snapshot = BlobClient.from_blob_url(f"{blob.url}?snapshot={taken}", credential=blob.credential)
    assert shown(snapshot) == (None, None, None)
    snapshot.set_immutability_policy(policy(later(1)))
    assert refused(snapshot.delete_blob) == POLICY
    assert refused(blob.delete_blob, delete_snapshots="include") == POLICY
    assert refused(blob.delete_blob, delete_snapshots="only") == POLICY
    snapshot.delete_immutability_policy()
    snapshot.delete_blob()


def test_an_old_version_is_protected_by_its_id(locked, blob):
    blob.upload_blob(b"one")
    old = blob.get_blob_properties().version_id
    blob.upload_blob(b"two", overwrite=True)
    former = locked.get_blob_client("the-blob", version_id=old)
    former.set_immutability_policy(policy(later(1)), version_id=old)
    former.set_legal_hold(True, version_id=old)
    assert shown(former, version_id=old) == ("unlocked", later(1), True)
    assert shown(blob) == (None, None, None)
    former.set_legal_hold(False, version_id=old)
    assert refused(blob.delete_blob, version_id=old) == POLICY
    former.delete_immutability_policy(version_id=old)
    blob.delete_blob(version_id=old)
    assert versions(locked) == [blob.get_blob_properties().version_id]


def test_a_policy_ends(locked, blob):
    blob.upload_blob(b"one")
    until = now() + datetime.timedelta(seconds=5)
    blob.set_immutability_policy(policy(until, "Locked"))
    version = blob.get_blob_properties().version_id
    blob.delete_blob()
    assert refused(blob.delete_blob, version_id=version) == POLICY
    time.sleep(max(0.0, (until - datetime.datetime.now(datetime.timezone.utc)).total_seconds() + 0.1))
    blob.delete_blob(version_id=version)
    locked.delete_container()


def test_a_held_version_outlives_soft_delete(immutable, locked, blob):
    service = immutable.service()
    service.set_service_properties(delete_retention_policy=RetentionPolicy(True, 7))
    try:
        blob.upload_blob(b"one", legal_hold=True)
        version = blob.get_blob_properties().version_id
        blob.delete_blob()
        assert refused(blob.delete_blob, version_id=version) == HOLD
        held = locked.get_blob_client("the-blob", version_id=version)
        held.set_legal_hold(False, version_id=version)
        blob.delete_blob(version_id=version)
        blob.undelete_blob()
        assert blob.download_blob(version_id=version).readall() == b"one"
    finally:
        service.set_service_properties(delete_retention_policy=RetentionPolicy(False))


def test_what_does_not_exist(blob):
    for call, arguments in [(blob.set_immutability_policy, [policy(later(1))]), (blob.delete_immutability_policy, []),
                            (blob.set_legal_hold, [True])]:
        assert refused(call, *arguments) == (404, "BlobNotFound")
    blob.upload_blob(b"x")
    assert refused(blob.set_legal_hold, True, version_id="2020-01-01T00:00:00.0000000Z") == (404, "BlobNotFound")


def test_a_container_without_it_protects_nothing(container):
    blob = container.get_blob_client("b")
    blob.upload_blob(b"x")
    nothing = (409, "FeatureNotSupportedForAccount")
    assert refused(blob.set_immutability_policy, policy(later(1))) == nothing
    assert refused(blob.set_legal_hold, True) == nothing
    assert refused(blob.delete_immutability_policy) == nothing
    assert refused(blob.upload_blob, b"y", overwrite=True, legal_hold=True) == nothing
    assert refused(blob.start_copy_from_url, blob.url, immutability_policy=policy(later(1))) == nothing
    assert blob.download_blob().readall() == b"x"


DATE = "Wed, 07 Jul 2055 09:33:36 GMT"


@pytest.mark.parametrize("method, comp, headers, wanted", [
    ("PUT", "immutabilityPolicies", {}, (400, "MissingRequiredHeader")),
    ("PUT", "immutabilityPolicies", {"x-ms-immutability-policy-mode": "locked"}, (400, "MissingRequiredHeader")),
    ("PUT", "immutabilityPolicies", {"x-ms-immutability-policy-until-date": "tomorrow"}, (400, "InvalidHeaderValue")),
    ("PUT", "immutabilityPolicies", {"x-ms-immutability-policy-until-date": "2055-07-07T09:33:36Z"}, (400, "InvalidHeaderValue")),
    ("PUT", "immutabilityPolicies", {"x-ms-immutability-policy-until-date": "Wed, 07 Jul 2021 09:33:36 GMT"}, (400, "InvalidHeaderValue")),
    ("PUT", "immutabilityPolicies", {"x-ms-immutability-policy-until-date": DATE, "x-ms-immutability-policy-mode": "mutable"}, (400, "InvalidHeaderValue")),
    ("PUT", "immutabilityPolicies", {"x-ms-immutability-policy-until-date": DATE, "if-match": "*"}, (400, "ConditionHeadersNotSupported")),
    ("PUT", "immutabilityPolicies", {"x-ms-immutability-policy-until-date": DATE, "if-unmodified-since": "Wed, 07 Jul 2021 09:33:36 GMT"},
     (412, "ConditionNotMet")),
    ("PUT", "immutabilityPolicies", {"x-ms-immutability-policy-until-date": DATE, "x-ms-legal-hold": "true"}, (400, "UnsupportedHeader")),
    ("GET", "immutabilityPolicies", {}, (405, "UnsupportedHttpVerb")),
    ("PUT", "legalhold", {}, (400, "MissingRequiredHeader")),
    ("PUT", "legalhold", {"x-ms-legal-hold": "on"}, (400, "InvalidHeaderValue")),
    ("DELETE", "legalhold", {}, (405, "UnsupportedHttpVerb")),
    ("PUT", "metadata", {"x-ms-legal-hold": "true"}, (400, "UnsupportedHeader")),
    ("PUT", "tier", {"x-ms-access-tier": "Cool", "x-ms-immutability-policy-until-date": DATE}, (400, "UnsupportedHeader")),
    ("PUT", "snapshot", {"x-ms-legal-hold": "true"}, (400, "UnsupportedHeader")),
    ("PUT", "", {"x-ms-blob-type": "BlockBlob", "x-ms-immutability-policy-mode": "locked"}, (400, "MissingRequiredHeader")),
    ("PUT", "", {"x-ms-blob-type": "BlockBlob", "x-ms-immutability-policy-until-date": "Wed, 07 Jul 2021 09:33:36 GMT"}, (400, "InvalidHeaderValue")),
    ("PUT", "", {"x-ms-blob-type": "BlockBlob", "x-ms-legal-hold": "maybe"}, (400, "InvalidHeaderValue")),
    ("PUT", "", {"x-ms-blob-type": "BlockBlob", "x-ms-legal-hold": ""}, (400, "InvalidHeaderValue")),
    ("PUT", "", {"x-ms-blob-type": "BlockBlob", "x-ms-immutability-policy-until-date": ""}, (400, "InvalidHeaderValue")),
    ("PUT", "", {"x-ms-blob-type": "BlockBlob", "x-ms-immutability-policy-until": DATE}, (400, "UnsupportedHeader")),
    ("PUT", "", {"x-ms-blob-type": "BlockBlob", "x-ms-legal-holds": "true"}, (400, "UnsupportedHeader")),
])
def test_wrong_requests_change_nothing(immutable, locked, blob, method, comp, headers, wanted):
    blob.upload_blob(b"one")
    before = blob.get_blob_properties()
    query = {"comp": comp} if comp else {}
    answer = Wire(immutable).request(method, f"/{locked.container_name}/the-blob", query, headers)
    assert (answer.status, answer.code) == wanted
    after = blob.get_blob_properties()
    assert (before.etag, shown(blob)) == (after.etag, (None, None, None))


@pytest.mark.parametrize("name, value", [("x-ms-legal-hold", "true"), ("x-ms-immutability-policy-until-date", DATE)])
def test_a_container_is_not_made_with_the_headers_of_a_blob(immutable, name, value):
    container = f"c{uuid.uuid4().hex}"
    answer = Wire(immutable).request("PUT", f"/{container}", {"restype": "container"}, {name: value})
    assert (answer.status, answer.code) == (400, "UnsupportedHeader")
    assert not immutable.service().get_container_client(container).exists()


@pytest.mark.parametrize("letters, may", [("rwdx", False), ("i", True)])
def test_a_signature_needs_the_letter(immutable, locked, blob, letters, may):
    blob.upload_blob(b"one")
    token = generate_blob_sas(immutable.name, locked.container_name, "the-blob", account_key=immutable.key,
                              permission=BlobSasPermissions.from_string(letters), expiry=later(1))
    signed = BlobClient.from_blob_url(f"{blob.url}?{token}")
    mismatch = (403, "AuthorizationPermissionMismatch")
    if may:
        signed.set_immutability_policy(policy(later(1)))
        signed.set_legal_hold(True)
        signed.set_legal_hold(False)
        signed.delete_immutability_policy()
    else:
        assert refused(signed.set_immutability_policy, policy(later(1))) == mismatch
        assert refused(signed.set_legal_hold, True) == mismatch
        assert refused(signed.delete_immutability_policy) == mismatch
        assert refused(signed.upload_blob, b"x", overwrite=True, legal_hold=True) == mismatch
        signed.upload_blob(b"x", overwrite=True)
    assert shown(blob)[0] is None


def test_a_write_with_a_policy_needs_the_letter_too(immutable, locked, blob):
    token = generate_blob_sas(immutable.name, locked.container_name, "the-blob", account_key=immutable.key,
                              permission=BlobSasPermissions.from_string("rcwi"), expiry=later(1))
    signed = BlobClient.from_blob_url(f"{blob.url}?{token}")
    signed.upload_blob(b"x", legal_hold=True)
    assert shown(blob)[2] is True


def test_an_account_with_locked_containers_is_not_deleted(server):
    name = f"locks{uuid.uuid4().hex[:8]}"
    assert commands.run(server, "account", "create", name, f"--key1={KEY}")[0] == 0
    account = Account(server.blob_address, name, KEY)
    plain = account.service().create_container("plain")
    plain.upload_blob("b", b"kept")
    assert commands.run(server, "account", "set", name, "--versioning", "on", "--object-lock", "on")[0] == 0
    container = account.service().create_container("locked")
    container.upload_blob("b", b"x", immutability_policy=policy(later(1), "Locked"))
    text = commands.refused(server, "account", "delete", name, "--force")
    assert "container locked" in text and "object lock" in text
    assert container.download_blob("b").readall() == b"x"
    assert plain.download_blob("b").readall() == b"kept", "nothing of the account was deleted"


def test_switching_it_off_keeps_what_is_locked(server, immutable):
    before = immutable.service().create_container(f"c{uuid.uuid4().hex}")
    try:
        assert commands.run(server, "account", "set", NAME, "--object-lock", "off", "--versioning", "off")[0] == 0
        after = immutable.service().create_container(f"c{uuid.uuid4().hex}")
        assert after.get_container_properties().immutable_storage_with_versioning_enabled is False
        assert before.get_container_properties().immutable_storage_with_versioning_enabled is True
        blob = before.get_blob_client("b")
        blob.upload_blob(b"one", legal_hold=True)
        blob.upload_blob(b"two", overwrite=True)
        assert len(versions(before)) == 2, "its versions do not depend on the account"
    finally:
        assert commands.run(server, "account", "set", NAME, "--versioning", "on", "--object-lock", "on")[0] == 0

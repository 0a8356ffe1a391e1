"""Access tiers of page blobs in premium accounts, and of accounts that have none."""

import uuid

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobType, PremiumPageBlobTier, StandardBlobTier
from conftest import refused
from lib import commands
from lib.account import Account
from lib.wire import Wire

GIB = 1 << 30


def new_account(server, name, *words):
    """A new account."""
    made = commands.command(server, "account", "create", name, *words)
    return Account(server.blob_address, made["name"], made["keys"][0])


@pytest.fixture(name="premium_account", scope="module")
def _premium_account(server):
    return new_account(server, "premiumpages", "--sku", "Premium_LRS")


@pytest.fixture(name="premium")
def _premium(premium_account):
    """A container of a premium account, deleted in the end."""
    container = premium_account.service().create_container(f"c{uuid.uuid4().hex}")
    yield container
    container.delete_container()


def disk(container, name, size=GIB, **options):
    """A page blob of zeros."""
    blob = container.get_blob_client(name)
    blob.create_page_blob(size, **options)
    return blob


def tier_of(blob):
    """The tier as Get Blob Properties shows it, and whether it follows from the size."""
    found = blob.get_blob_properties()
    assert found.blob_tier_change_time is None
    return found.blob_tier, bool(found.blob_tier_inferred)


@pytest.mark.parametrize("size, tier", [
    (0, "P10"), (128 * GIB, "P10"), (128 * GIB + 512, "P20"), (512 * GIB, "P20"), (1024 * GIB, "P30"),
    (2048 * GIB, "P40"), (4096 * GIB, "P50"), (8192 * GIB, "P60")])
def test_tier_follows_from_the_size_until_it_is_set(premium, size, tier):
    assert tier_of(disk(premium, "disk", size)) == (tier, True)
    listed, = premium.list_blobs()
    assert (listed.blob_tier, listed.blob_tier_inferred) == (tier, True)


def test_tier_is_set_and_only_raised(premium):
    blob = disk(premium, "disk")
    etag = blob.get_blob_properties().etag
    blob.set_premium_page_blob_tier(PremiumPageBlobTier.P4)
    assert tier_of(blob) == ("P4", False)
    blob.set_premium_page_blob_tier(PremiumPageBlobTier.P4)
    blob.set_premium_page_blob_tier("p40")
    assert tier_of(blob) == ("P40", False)
    refused(lambda: blob.set_premium_page_blob_tier(PremiumPageBlobTier.P30), 409, "CannotChangeToLowerTier")
    blob.set_premium_page_blob_tier("P80")
    assert tier_of(blob) == ("P80", False)
    assert blob.get_blob_properties().etag == etag
    listed, = premium.list_blobs()
    assert (listed.blob_tier, listed.blob_tier_inferred) == ("P80", None)


def test_tier_has_room_for_the_content(premium):
    blob = disk(premium, "disk", 32 * GIB + 512)
    refused(lambda: blob.set_premium_page_blob_tier(PremiumPageBlobTier.P4), 409, "BlobTierInadequateForContentLength")
    refused(lambda: disk(premium, "other", 64 * GIB + 512, premium_page_blob_tier=PremiumPageBlobTier.P6), 409,
            "BlobTierInadequateForContentLength")
    assert not premium.get_blob_client("other").exists()
    blob.set_premium_page_blob_tier(PremiumPageBlobTier.P6)
    refused(lambda: blob.resize_blob(64 * GIB + 512), 409, "ContentLengthLargerThanTierLimit")
    blob.resize_blob(64 * GIB)
    inferred = disk(premium, "inferred")
    inferred.resize_blob(8192 * GIB)
    assert tier_of(inferred) == ("P60", True)


def test_put_blob_gives_a_tier(premium):
    assert tier_of(disk(premium, "disk", premium_page_blob_tier=PremiumPageBlobTier.P15)) == ("P15", False)
    uploaded = premium.upload_blob("uploaded", bytes(512), blob_type=BlobType.PageBlob,
                                   premium_page_blob_tier=PremiumPageBlobTier.P6)
    assert tier_of(uploaded) == ("P6", False)
    assert tier_of(disk(premium, "disk")) == ("P10", True)


def test_copy_gives_a_tier(premium, premium_account):
    source = disk(premium, "source", premium_page_blob_tier=PremiumPageBlobTier.P30)
    source.upload_page(b"7" * 512, offset=0, length=512)
    copied = premium.get_blob_client("copied")
    assert copied.start_copy_from_url(source.url)["copy_status"] == "success"
    assert tier_of(copied) == ("P10", True), "the tier of the source stays with it"
    copied.start_copy_from_url(source.url, premium_page_blob_tier=PremiumPageBlobTier.P6)
    assert tier_of(copied) == ("P6", False)
    assert copied.download_blob(0, 512).readall() == b"7" * 512
    large = disk(premium, "large", 33 * GIB)
    refused(lambda: copied.start_copy_from_url(large.url, premium_page_blob_tier=PremiumPageBlobTier.P4), 409,
            "BlobTierInadequateForContentLength")
    assert tier_of(copied) == ("P6", False)
    assert premium_account.service().get_account_information()["sku_name"] == "Premium_LRS"


def test_snapshots_keep_their_tier(premium):
    blob = disk(premium, "disk", premium_page_blob_tier=PremiumPageBlobTier.P6)
    taken = premium.get_blob_client("disk", snapshot=blob.create_snapshot())
    blob.set_premium_page_blob_tier(PremiumPageBlobTier.P20)
    assert (tier_of(taken), tier_of(blob)) == (("P6", False), ("P20", False))


def test_standard_tiers_are_none_of_a_premium_account(premium, premium_account):
    blob = disk(premium, "disk")
    for tier in ("Hot", "Cool", "Cold", "Archive", "Smart"):
        refused(lambda: blob.set_standard_blob_tier(tier), 409,  # pylint: disable=cell-var-from-loop
                "BlobAccessTierNotSupportedForAccountType")
    refused(lambda: premium.upload_blob("block", b"x", standard_blob_tier=StandardBlobTier.COOL), 409,
            "BlobAccessTierNotSupportedForAccountType")
    block = premium.upload_blob("block", b"x")
    assert block.get_blob_properties().blob_tier is None
    refused(lambda: block.set_premium_page_blob_tier(PremiumPageBlobTier.P4), 409, "InvalidBlobType")
    wire = Wire(premium_account)
    path = f"/{premium.container_name}/disk"
    answer = wire.request("PUT", path, {"comp": "tier"}, {"x-ms-access-tier": "P5"})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    wire.close()


@pytest.mark.parametrize("name, words", [
    ("untieredv1", ("--kind", "Storage")), ("untieredblocks", ("--kind", "BlockBlobStorage", "--sku", "Premium_LRS"))])
def test_accounts_without_tiers(server, name, words):
    container = new_account(server, name, *words).service().create_container("box")
    blob = container.upload_blob("blob", b"x")
    assert (blob.get_blob_properties().blob_tier, blob.get_blob_properties().blob_tier_inferred) == (None, None)
    assert [(one.blob_tier, one.blob_tier_inferred) for one in container.list_blobs()] == [(None, None)]
    for tier in ("Hot", "Archive", "P10"):
        refused(lambda: blob.set_standard_blob_tier(tier), 409,  # pylint: disable=cell-var-from-loop
                "BlobAccessTierNotSupportedForAccountType")
    with pytest.raises(HttpResponseError):
        container.upload_blob("other", b"x", standard_blob_tier=StandardBlobTier.HOT)


def test_premium_tiers_are_none_of_a_standard_account(container):
    blob = disk(container, "disk")
    refused(lambda: blob.set_premium_page_blob_tier(PremiumPageBlobTier.P10), 409,
            "BlobAccessTierNotSupportedForAccountType")
    refused(lambda: disk(container, "other", premium_page_blob_tier=PremiumPageBlobTier.P10), 409,
            "BlobAccessTierNotSupportedForAccountType")
    assert blob.get_blob_properties().blob_tier is None
    refused(lambda: blob.set_standard_blob_tier(StandardBlobTier.COOL), 409, "InvalidBlobType")

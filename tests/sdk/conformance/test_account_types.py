"""Kinds and SKUs of accounts."""

import pytest
from lib import commands
from lib.account import Account


def make(server, name, *words):
    """A new account: what the command shows of it."""
    return commands.command(server, "account", "create", name, *words)


def account_of(server, made):
    """The account of what a command showed."""
    return Account(server.blob_address, made["name"], made["keys"][0])


@pytest.mark.parametrize("name, kind, sku", [
    ("typegrs", "StorageV2", "Standard_GRS"), ("typeragrs", "BlobStorage", "Standard_RAGRS"),
    ("typezrs", "Storage", "Standard_ZRS"), ("typeblocks", "BlockBlobStorage", "Premium_ZRS"),
    ("typepages", "StorageV2", "Premium_LRS")])
def test_account_information_has_kind_and_sku(server, name, kind, sku):
    made = make(server, name, "--kind", kind, "--sku", sku)
    assert (made["kind"], made["sku"]) == (kind, sku)
    shown = commands.command(server, "account", "show", name)
    assert (shown["kind"], shown["sku"]) == (kind, sku)
    listed = {one["name"]: one for one in commands.command(server, "account", "list")["accounts"]}
    assert (listed[name]["kind"], listed[name]["sku"]) == (kind, sku)
    found = account_of(server, made).service().get_account_information()
    assert (found["account_kind"], found["sku_name"]) == (kind, sku)


def test_pairs_that_the_service_has_not_are_refused(server):
    said = commands.refused(server, "account", "create", "typenone", "--kind", "BlockBlobStorage")
    assert "Premium_LRS, Premium_ZRS" in said
    said = commands.refused(server, "account", "create", "typenone", "--kind", "BlobStorage", "--sku", "Premium_LRS")
    assert "Standard_RAGRS" in said
    assert "typenone" not in [one["name"] for one in commands.command(server, "account", "list")["accounts"]]


def test_type_changes_while_there_are_no_containers(server):
    made = make(server, "typechanged")
    assert (made["kind"], made["sku"]) == ("StorageV2", "Standard_LRS")
    service = account_of(server, made).service()
    commands.command(server, "account", "set", "typechanged", "--sku", "Premium_LRS")
    assert service.get_account_information()["sku_name"] == "Premium_LRS"
    service.create_container("box")
    assert "has containers, such as box" in commands.refused(
        server, "account", "set", "typechanged", "--sku", "Standard_LRS")
    assert service.get_account_information()["sku_name"] == "Premium_LRS"

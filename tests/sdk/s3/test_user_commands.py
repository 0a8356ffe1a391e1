"""The commands about users and their roles."""

import re

import pytest

from lib import commands, s3, s3_users

from conftest import refusal


def test_a_user_is_made_shown_and_deleted(server, account):
    made = commands.command(server, "user", "create", f"{account.name}/Alice.B", "--display-name", "Alice B")
    key, = made["access_keys"]
    assert (made["account"], made["name"], made["display_name"]) == (account.name, "Alice.B", "Alice B")
    assert re.fullmatch("[0-9a-f]{64}", made["canonical_id"]) and made["keys_from"] == "store"
    assert re.fullmatch("BY[A-Z2-7]{18}", key["access_key_id"]) and len(key["secret_key"]) == 40
    assert made["arn"] == f"arn:aws:iam::{s3.account_number(account.name)}:user/Alice.B"
    shown = commands.command(server, "user", "show", f"{account.name}/Alice.B")
    assert "secret_key" not in shown["access_keys"][0] and shown["created"]
    with_keys = commands.command(server, "user", "show", f"{account.name}/Alice.B", "--keys")
    assert with_keys["access_keys"] == made["access_keys"]
    listed = commands.command(server, "user", "list", account.name)
    assert shown in listed
    assert commands.command(server, "user", "delete", f"{account.name}/Alice.B") == {"deleted": f"{account.name}/Alice.B"}
    assert "has no user Alice.B" in commands.refused(server, "user", "show", f"{account.name}/Alice.B")
    assert shown not in commands.command(server, "user", "list", account.name)


def test_commands_print_text(server, account):
    code, out, _ = commands.run(server, "user", "create", f"{account.name}/texts")
    assert code == 0 and f"{account.name}/texts" in out and "secret key 1" in out and "access key id 1" in out
    secret = re.search(r"secret key 1 +(\S+)", out).group(1)
    code, out, _ = commands.run(server, "user", "show", f"{account.name}/texts")
    assert code == 0 and "access key id 1" in out and secret not in out
    code, out, _ = commands.run(server, "user", "list", account.name)
    assert code == 0 and f"{account.name}/texts" in out and secret not in out
    code, out, _ = commands.run(server, "user", "rotate", f"{account.name}/texts", "key2")
    assert code == 0 and "secret key 2" in out
    code, out, _ = commands.run(server, "user", "delete", f"{account.name}/texts")
    assert (code, out) == (0, f"user {account.name}/texts deleted\n")


@pytest.mark.parametrize("words, says", [
    (["create", "devstoreaccount1/a b"], "not a user name"),
    (["create", "devstoreaccount1/" + "x" * 65], "not a user name"),
    (["create", "devstoreaccount1/a:b"], "not a user name"),
    (["create", "nobodyhere/a"], "no account"),
    (["create", "UPPER/a"], "not an account name"),
    (["create", "devstoreaccount1"], "ACCOUNT/NAME"),
    (["create", "devstoreaccount1/a/b"], "ACCOUNT/NAME"),
    (["create", "devstoreaccount1/ok1", "--access-key-id", "account1"], "not an access key id"),
    (["create", "devstoreaccount1/ok1", "--access-key-id", "A/B"], "not an access key id"),
    (["create", "devstoreaccount1/ok1", "--access-key-id", "AB"], "not an access key id"),
    (["create", "devstoreaccount1/ok1", "--access-key-id", "K" * 129], "not an access key id"),
    (["create", "devstoreaccount1/ok1", "--secret-key", "short"], "secret key"),
    (["create", "devstoreaccount1/ok1", "--secret-key", "x" * 129], "secret key"),
    (["create", "devstoreaccount1/ok1", "--secret-key", "with a space in it"], "secret key"),
    (["create", "devstoreaccount1/ok1", "--display-name", ""], "display name"),
    (["create", "devstoreaccount1/ok1", "--display-name", "a\nb"], "display name"),
    (["create", "devstoreaccount1/ok1", "--display-name", "x" * 129], "display name"),
    (["show", "devstoreaccount1/nobody"], "no user nobody"),
    (["rotate", "devstoreaccount1/nobody", "key1"], "no user nobody"),
    (["delete", "devstoreaccount1/nobody"], "no user nobody"),
    (["list", "nobodyhere"], "no account"),
])
def test_wrong_commands_say_what_is_wrong(server, words, says):
    assert says in commands.refused(server, "user", *words)


def test_names_and_ids_are_there_once(server, account, other_account, user):
    assert "has a user" in commands.refused(server, "user", "create", user.place)
    elsewhere = ["user", "create", f"{other_account.name}/x{user.name}", "--access-key-id", user.key_id]
    assert "in use" in commands.refused(server, *elsewhere)
    assert "in use" in commands.refused(server, "user", "rotate", user.place, "key2", "--access-key-id", user.key_id)
    same = s3_users.create(server, other_account, name=user.name)
    assert same.canonical != user.canonical
    same.delete()
    assert user.client().list_buckets()["Buckets"] == [], "a user of another account is another one"


def test_given_keys_are_taken(server, account):
    made = s3_users.create(server, account, "--access-key-id", "GK31c2-f218.a_2e", "--secret-key", "moved/from+elsewhere=")
    assert (made.key_id, made.secret) == ("GK31c2-f218.a_2e", "moved/from+elsewhere=")
    assert made.client().list_buckets()["Buckets"] == []
    made.delete()
    again = s3_users.create(server, account, "--access-key-id", "GK31c2-f218.a_2e")
    assert again.secret != made.secret, "the id is free again"
    assert refusal(made.client().list_buckets) == (403, "SignatureDoesNotMatch")
    again.delete()


@pytest.mark.parametrize("words", [["--user"], []])
def test_roles_are_shown_as_those_of_users(server, account, user, words):
    who = user.name if words else f"user:{user.name}"
    made = commands.command(server, "account", "grant", account.name, "reader", who, *words)
    assert (made["kind"], made["principal"], made["role"], made["issuer"]) == ("user", user.name, "reader", None)
    assert made in commands.command(server, "account", "grants", account.name)
    code, out, _ = commands.run(server, "account", "grants", account.name)
    assert code == 0 and f"reader\tuser\t{user.name}\t-\t-\n" in out
    commands.command(server, "account", "ungrant", account.name, "reader", who, *words)
    assert made not in commands.command(server, "account", "grants", account.name)


@pytest.mark.parametrize("words, says", [
    (["grant", "devstoreaccount1", "reader", "nobody", "--user"], "no user nobody"),
    (["grant", "devstoreaccount1", "reader", "a b", "--user"], "not a user name"),
    (["ungrant", "devstoreaccount1", "reader", "nobody", "--user"], "no such role"),
    (["grant", "devstoreaccount1", "king", "nobody", "--user"], "reader, contributor or owner"),
    (["grant", "devstoreaccount1", "reader", "x", "--issuer", "blockyard:user"], "no issuer"),
    (["grant", "devstoreaccount1", "reader", "x", "--user", "--group"], "cannot be used with"),
    (["grant", "devstoreaccount1", "reader", "x", "--user", "--issuer", "i"], "cannot be used with"),
])
def test_wrong_roles_of_users_are_refused(server, words, says):
    assert says in commands.refused(server, "account", *words)


def test_deleting_a_user_takes_its_roles(server, account, user):
    user.grant("owner")
    user.delete()
    grants = commands.command(server, "account", "grants", account.name)
    assert not any(grant["principal"] == user.name for grant in grants)
    again = s3_users.create(server, account, name=user.name)
    assert refusal(again.client().list_objects, Bucket="nothing") == (404, "NoSuchBucket")
    assert again.client().list_buckets()["Buckets"] == []

"""Further accounts of one server, and the signatures that clients without an account key use."""

import base64
import datetime
import hashlib
import json
import subprocess

from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

from .account import DEV_KEY, DEV_NAME, Account

SECOND_NAME = "secondaccount"
SECOND_KEY = base64.b64encode(hashlib.sha256(b"the key of the second account").digest()).decode()
# As arguments of `blockyard serve`.
BOTH = (f"--account={DEV_NAME}:{DEV_KEY}", f"--account={SECOND_NAME}:{SECOND_KEY}")


def second(server):
    """The second account of a server started with `BOTH`."""
    return Account(server.blob_address, SECOND_NAME, SECOND_KEY)


def sas(account, hours=4):
    """A signature that allows everything in the account, without the question mark."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return generate_account_sas(
        account.name, account.key, ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, create=True, update=True,
                              process=True, tag=True, filter_by_tags=True, set_immutability_policy=True),
        expiry=now + datetime.timedelta(hours=hours), start=now - datetime.timedelta(minutes=5), services="b")


def locking(server):
    """An account that keeps versions and deleted containers, and whose new containers have object lock."""
    def command(*words):
        done = subprocess.run([server.binary, "account", *words, "--json", "--admin-listen", server.admin_address, "--data",
                               server.data[0]], capture_output=True, text=True, timeout=60, check=True)
        return json.loads(done.stdout)
    key = command("create", "locking")["keys"][0]
    command("set", "locking", "--versioning", "on", "--object-lock", "on", "--container-retention", "7")
    return Account(server.blob_address, "locking", key)

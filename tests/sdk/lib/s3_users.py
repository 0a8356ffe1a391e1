"""Users of an account: made by the program's own commands, and clients that sign with their keys."""

import dataclasses
import uuid

import boto3
import botocore.config

from . import s3
from .account import Account
from .commands import command


@dataclasses.dataclass
class User:
    """A user with its first access key."""

    server: object
    account: Account
    name: str
    canonical: str
    key_id: str
    secret: str

    @property
    def place(self):
        """As commands name it."""
        return f"{self.account.name}/{self.name}"

    def client(self, service="s3", **options):
        """A boto3 client that signs with the user's key."""
        return keyed(self.account, self.key_id, self.secret, service=service, **options)

    def raw(self):
        """A bare client."""
        return s3.Raw(self.account, self.key_id, self.secret)

    def grant(self, role, container=None):
        """Gives it a role."""
        more = ["--container", container] if container else []
        return command(self.server, "account", "grant", self.account.name, role, self.name, "--user", *more)

    def ungrant(self, role, container=None):
        """Takes a role back."""
        more = ["--container", container] if container else []
        return command(self.server, "account", "ungrant", self.account.name, role, self.name, "--user", *more)

    def rotate(self, key="key1"):
        """Replaces a key; the user with the new one."""
        made = command(self.server, "user", "rotate", self.place, key)
        new = made["access_keys"][0 if key == "key1" else 1]
        return dataclasses.replace(self, key_id=new["access_key_id"], secret=new["secret_key"])

    def delete(self):
        """Deletes it."""
        return command(self.server, "user", "delete", self.place)


def keyed(account, key_id, secret, token=None, service="s3", **options):
    """A boto3 client with these keys."""
    config = {"retries": {"max_attempts": 0}, **options}
    if service == "s3":
        config = {"s3": {"addressing_style": "path"}, **config}
    return boto3.client(service, endpoint_url=f"http://{account.address}", aws_access_key_id=key_id,
                        aws_secret_access_key=secret, aws_session_token=token, region_name=s3.REGION,
                        config=botocore.config.Config(**config))


def create(server, account, *words, name=None):
    """A new user."""
    name = name or f"u{uuid.uuid4().hex[:12]}"
    made = command(server, "user", "create", f"{account.name}/{name}", *words)
    key = made["access_keys"][0]
    return User(server, account, name, made["canonical_id"], key["access_key_id"], key["secret_key"])

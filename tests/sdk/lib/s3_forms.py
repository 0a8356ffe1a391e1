"""Browser forms for a bucket, built and signed by hand."""

import base64
import datetime
import hashlib
import hmac
import json

from lib import s3
from lib.multipart import KIND, body

# The file of a form, unless a test sends another one.
CONTENT = b"content"
# A time that policies end at, far in the future.
END = "2999-01-01T00:00:00.000Z"


def later(seconds=600):
    """A time in the future, or in the past, as policies write it."""
    time = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def encoded(policy):
    """A policy in base64; a text as it is."""
    text = policy if isinstance(policy, str) else json.dumps(policy)
    return base64.b64encode(text.encode()).decode()


def signed(account, policy, version=4, scope=None, time=None):
    """The fields of a policy in base64 and its signature."""
    if version == 2:
        mac = hmac.new(account.key.encode(), policy.encode(), hashlib.sha1).digest()
        return {"AWSAccessKeyId": account.name, "policy": policy, "signature": base64.b64encode(mac).decode()}
    credential = credential_of(account, time := time or s3.now(), scope)
    key = s3.signing_key(account.key, *credential.split("/")[1:4])
    return {"x-amz-algorithm": "AWS4-HMAC-SHA256", "x-amz-credential": credential, "x-amz-date": time,
            "policy": policy, "x-amz-signature": hmac.new(key, policy.encode(), hashlib.sha256).hexdigest()}


def credential_of(account, time, scope=None):
    """The credential of a signature of version 4."""
    return f"{account.name}/{scope or f'{time[:8]}/{s3.REGION}/s3/aws4_request'}"


class Form:
    """A form that its policy permits, unless a test changes something."""

    def __init__(self, account, bucket, **fields):
        self.account, self.bucket, self.version = account, bucket, 4
        self.fields = {"key": "k", **{name.replace("_", "-"): value for name, value in fields.items()}}
        self.conditions, self.uncovered = [], set()
        self.expiration, self.policy = later(), None
        self.change = {}

    def all(self):
        """All fields with the signature; `change` replaces fields, None leaves one out."""
        time = s3.now()
        own = {} if self.version == 2 else {"x-amz-algorithm": "AWS4-HMAC-SHA256", "x-amz-date": time,
                                            "x-amz-credential": credential_of(self.account, time)}
        covered = {"bucket": self.bucket, **self.fields, **own}
        conditions = [{name: value} for name, value in covered.items() if name not in self.uncovered]
        policy = self.policy
        if policy is None:
            policy = {"expiration": self.expiration, "conditions": conditions + self.conditions}
        fields = {**self.fields, **signed(self.account, encoded(policy), self.version, time=time), **self.change}
        return [(name, value) for name, value in fields.items() if value is not None]

    def post(self, raw, headers=None, target=None, **parts):
        """Sends it."""
        return raw.send("POST", target or f"/{self.bucket}", {"content-type": KIND, **(headers or {})}, body(self.all(), **parts))


def outcome(answer):
    """Status, code and text of a refusal."""
    return answer.status, answer.code(), answer.text("Message")


def missing(name):
    """What a refusal says when a field is not there."""
    return f"Bucket POST must contain a field named '{name}'.  If it is specified, please check the order of the fields."


def is_empty(client, bucket):
    """Whether a bucket has no objects."""
    return "Contents" not in client.list_objects_v2(Bucket=bucket)


def stored(client, bucket, key="k"):
    """What an object holds."""
    return client.get_object(Bucket=bucket, Key=key)["Body"].read()

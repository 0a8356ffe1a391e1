"""One container as two protocols show it: a bare client for each, and what each says of a blob."""

import base64
import dataclasses
import hashlib
import http.client
import time
import xml.etree.ElementTree
from urllib.parse import quote

from . import s3
from .wire import Wire

# Names of access tiers, and the storage classes that S3 has for them.
CLASSES = {"Hot": "STANDARD", "Cool": "STANDARD_IA", "Cold": "GLACIER_IR", "Archive": "GLACIER"}


@dataclasses.dataclass
class Shown:
    """A blob as a protocol shows it. Without the right key, or archived, only `refusal`."""

    refusal: tuple = None
    data: bytes = b""
    type: str = ""
    metadata: dict = dataclasses.field(default_factory=dict)
    tags: dict = dataclasses.field(default_factory=dict)
    tier: str = "Hot"
    etag: str = ""


def tags_of(body):
    """The tags of a document of either protocol."""
    root = xml.etree.ElementTree.fromstring(body)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return {tag.findtext("Key"): tag.findtext("Value") or "" for tag in root.iter("Tag")}


def key_headers(prefix, key):
    """The headers of a customer-provided key."""
    if key is None:
        return {}
    sums = {"x-ms-": ("-sha256", hashlib.sha256(key)), "x-amz-server-side-encryption-customer-": ("-md5", hashlib.md5(key))}
    name, digest = sums[prefix]
    names = {"x-ms-": "x-ms-encryption-", "x-amz-server-side-encryption-customer-": prefix}[prefix]
    return {f"{names}key": base64.b64encode(key).decode(), f"{names}key{name}": base64.b64encode(digest.digest()).decode(),
            f"{names}algorithm": "AES256"}


class BlobFace:
    """The container through Azure Blob."""

    name = "Blob"

    def __init__(self, account, container):
        self.account, self.container = account, container
        self.wire = Wire(account)

    def call(self, method, key, query=None, headers=None, body=b""):
        """One request about a blob, or about the container where the key is empty."""
        return self.wire.request(method, f"/{self.container}/{key}".rstrip("/"), query, headers, body)

    def code(self, answer):
        """The code of a refusal."""
        return answer.code

    def headers_of_key(self, key):
        """The headers of a customer-provided key."""
        return key_headers("x-ms-", key)

    def read(self, key, secret=None):
        """What a reader sees, or None."""
        answer = self.call("GET", key, headers=self.headers_of_key(secret))
        if answer.status == 404:
            return None
        tags = tags_of(self.call("GET", key, {"comp": "tags"}).body)
        if answer.status != 200:
            return Shown(refusal=(answer.status, answer.code), tags=tags)
        metadata = {name[10:]: value for name, value in answer.headers.items() if name.startswith("x-ms-meta-")}
        # Only Get Blob Properties shows the tier.
        head = self.call("HEAD", key, headers=self.headers_of_key(secret)).headers
        return Shown(None, answer.body, answer.headers["content-type"], metadata, tags,
                     head.get("x-ms-access-tier", "Hot"), answer.headers["etag"])

    def list(self):
        """All names."""
        names, marker = [], ""
        while True:
            query = {"restype": "container", "comp": "list", "maxresults": "3", **({"marker": marker} if marker else {})}
            root = xml.etree.ElementTree.fromstring(self.call("GET", "", query).body)
            names += [(blob.findtext("Name"), int(blob.findtext("Properties/Content-Length"))) for blob in root.iter("Blob")]
            marker = root.findtext("NextMarker")
            if not marker:
                return names


class S3Face:
    """The container through S3."""

    name = "S3"

    def __init__(self, account, container):
        self.container = container
        self.raw = s3.Raw(account)
        self.connection = http.client.HTTPConnection(account.address, timeout=120)

    def call(self, method, key, query=(), headers=None, body=b""):
        """One request about an object, or about the bucket where the key is empty."""
        path = quote(f"/{self.container}/{key}".rstrip("/"), safe="/-_.~") or "/"
        signed = self.raw.sign(method, path, query, headers)
        if body or method in ("PUT", "POST"):
            signed["content-length"] = str(len(body))
        target = path + ("?" + s3.canonical_query(query) if query else "")
        self.connection.request(method, target, body=body or None, headers=signed)
        answer = self.connection.getresponse()
        return s3.Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())

    def code(self, answer):
        """The code of a refusal."""
        return answer.code()

    def headers_of_key(self, key):
        """The headers of a customer-provided key."""
        return key_headers("x-amz-server-side-encryption-customer-", key)

    def read(self, key, secret=None):
        """What a reader sees, or None."""
        answer = self.call("GET", key, headers=self.headers_of_key(secret))
        if answer.status == 404:
            return None
        tags = tags_of(self.call("GET", key, [("tagging", "")]).body)
        if answer.status != 200:
            return Shown(refusal=(answer.status, answer.code()), tags=tags)
        metadata = {name[11:]: value for name, value in answer.headers.items() if name.startswith("x-amz-meta-")}
        tier = {name: tier for tier, name in CLASSES.items()}[answer.headers.get("x-amz-storage-class", "STANDARD")]
        return Shown(None, answer.body, answer.headers["content-type"], metadata, tags, tier, answer.headers["etag"].strip('"'))

    def list(self):
        """All names."""
        names, token = [], ""
        while True:
            query = [("list-type", "2"), ("max-keys", "3"), *([("continuation-token", token)] if token else [])]
            root = self.call("GET", "", query).tree()
            names += [(item.findtext("Key"), int(item.findtext("Size"))) for item in root.iter("Contents")]
            token = root.findtext("NextContinuationToken")
            if not token:
                return names


class Faces:
    """Both, on one new container."""

    def __init__(self, account, container):
        self.account, self.container = account, container
        self.reconnect()
        made = self.blob.call("PUT", "", {"restype": "container"})
        assert made.status == 201, made

    def reconnect(self):
        """New connections."""
        self.blob, self.s3 = BlobFace(self.account, self.container), S3Face(self.account, self.container)

    @staticmethod
    def wait():
        """Lets a rehydration end, which takes a second."""
        time.sleep(1.1)

"""S3 clients of an account: boto3, and a bare client that signs given requests with version 4."""

import dataclasses
import datetime
import hashlib
import hmac
import http.client
import urllib.parse
import xml.etree.ElementTree

import boto3
import botocore.config

REGION = "us-east-1"
UNSIGNED = "UNSIGNED-PAYLOAD"
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


def client(account, **options):
    """A boto3 client of the account, path-style and without retries unless `options` say otherwise."""
    config = {"retries": {"max_attempts": 0}, "s3": {"addressing_style": "path"}, **options}
    return boto3.client("s3", endpoint_url=f"http://{account.address}", aws_access_key_id=account.name,
                        aws_secret_access_key=account.key, region_name=REGION,
                        config=botocore.config.Config(**config))


def canonical_id(name):
    """The canonical user id of an account."""
    return hashlib.sha256(b"canonical user id\0" + name.encode()).hexdigest()


def account_number(name):
    """The account number of an account."""
    digest = hashlib.sha256(b"account number\0" + name.encode()).digest()
    return f"{int.from_bytes(digest[:8], 'big') % 10**12:012d}"


def code(error):
    """Status and code of a refusal that boto3 raised."""
    return error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Code"]


@dataclasses.dataclass
class Answer:
    """An answer: status, headers in lower case, body."""

    status: int
    headers: dict
    body: bytes

    def tree(self):
        """The document in the body, without name spaces."""
        root = xml.etree.ElementTree.fromstring(self.body)
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
        return root

    def text(self, path):
        """The text of an element of the document, or None."""
        return self.tree().findtext(path)

    def code(self):
        """The code of a refusal, in body and header; they have to agree."""
        in_header = self.headers.get("x-amz-error-code")
        if self.body:
            assert self.text("Code") == in_header, (self.text("Code"), in_header)
            assert self.text("RequestId") == self.headers["x-amz-request-id"]
        return in_header


def quoted(text):
    """Percent-encoded as version 4 signs it."""
    return urllib.parse.quote(text, safe="-_.~")


def canonical_query(pairs):
    """The query as version 4 signs it."""
    return "&".join(f"{name}={value}" for name, value in sorted((quoted(n), quoted(v)) for n, v in pairs))


def _mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signing_key(secret, date, region=REGION, service="s3"):
    """The key of one day."""
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, "aws4_request"):
        key = _mac(key, part)
    return key


def now():
    """The time as version 4 writes it."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")


class Raw:
    """Sends requests byte for byte. What a test does not say is signed as a correct client would."""

    def __init__(self, account, key_id=None, secret=None):
        self.account, self.address = account, account.address
        self.key_id, self.secret = key_id or account.name, secret or account.key

    def sign(self, method, path, query=(), headers=None, sha256=UNSIGNED, time=None, signed=None):
        """The headers of a request with its signature. `path` is percent-encoded already."""
        time = time or now()
        headers = {"host": self.address, "x-amz-date": time, "x-amz-content-sha256": sha256,
                   **{name.lower(): value for name, value in (headers or {}).items()}}
        names = sorted(signed or [name for name in headers
                                  if name in ("host", "content-md5", "content-type") or name.startswith("x-amz-")])
        lines = "".join(f"{name}:{' '.join(str(headers[name]).split())}\n" for name in names)
        request = "\n".join([method, path, canonical_query(query), lines, ";".join(names), headers["x-amz-content-sha256"]])
        scope = f"{time[:8]}/{REGION}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        signature = hmac.new(signing_key(self.secret, time[:8]), text.encode(), hashlib.sha256).hexdigest()
        headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={self.key_id}/{scope}, "
                                    f"SignedHeaders={';'.join(names)}, Signature={signature}")
        return headers

    def presign(self, method, path, query=(), expires=300, time=None, headers=None):
        """The target of a presigned request."""
        time = time or now()
        headers = {"host": self.address, **(headers or {})}
        names = sorted(headers)
        scope = f"{time[:8]}/{REGION}/s3/aws4_request"
        query = [*query, ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"), ("X-Amz-Credential", f"{self.key_id}/{scope}"),
                 ("X-Amz-Date", time), ("X-Amz-Expires", str(expires)), ("X-Amz-SignedHeaders", ";".join(names))]
        lines = "".join(f"{name}:{headers[name]}\n" for name in names)
        request = "\n".join([method, path, canonical_query(query), lines, ";".join(names), UNSIGNED])
        text = f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        signature = hmac.new(signing_key(self.secret, time[:8]), text.encode(), hashlib.sha256).hexdigest()
        return f"{path}?{canonical_query(query)}&X-Amz-Signature={signature}"

    def send(self, method, target, headers=None, body=b""):
        """Sends a request as it is; `body` is bytes, or an iterable that is sent in HTTP's chunks."""
        connection = http.client.HTTPConnection(self.address, timeout=60)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            sent = {"host": self.address, **{name.lower(): value for name, value in (headers or {}).items()}}
            is_whole = isinstance(body, bytes)
            if is_whole and "content-length" not in sent and (body or method in ("PUT", "POST")):
                sent["content-length"] = str(len(body))
            if not is_whole:
                sent["transfer-encoding"] = "chunked"
            for name, value in sent.items():
                for one in value if isinstance(value, list) else [value]:
                    connection.putheader(name, one)
            connection.endheaders(body if is_whole else iter(body), encode_chunked=not is_whole)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def call(self, method, path, query=(), headers=None, body=b"", **signing):
        """Signs and sends. `path` is percent-encoded already; `query` is pairs."""
        headers = self.sign(method, path, query, headers, **signing)
        target = path + ("?" + canonical_query(query) if query else "")
        return self.send(method, target, headers, body)

"""Requests for `contract.py`: what schemathesis draws from the description, moved onto things that exist.

A `World` is a container with a blob of each kind and state, made anew every few requests. `Draft` turns a drawn case into
one request: each parameter is left out, taken from what makes sense here, or kept as drawn; some are then malformed in
ways no schema describes.
"""

import base64
import dataclasses
import email.utils
import hashlib
import http.client
import itertools
import time
from urllib.parse import quote, unquote

from . import accounts
from .wire import Answer, Wire, signature

LEASE = "6c1f7a1e-2f3c-4f5e-9d3b-0a1b2c3d4e5f"
OTHER_LEASE = "11111111-2222-3333-4444-555555555555"
KEY = base64.b64encode(bytes(range(32))).decode()
KEY_HEADERS = {"x-ms-encryption-key": KEY, "x-ms-encryption-algorithm": "AES256",
               "x-ms-encryption-key-sha256": base64.b64encode(hashlib.sha256(bytes(range(32))).digest()).decode()}
CONTENT = bytes(range(256)) * 4
BLOCK_IDS = [base64.b64encode(f"block-{number:02}".encode()).decode() for number in range(3)]
BLOBS = ("block", "append", "sealed", "page", "leased", "archived", "secret", "scoped", "staged", "tagged", "folder/deep",
         "no such blob", "new é")


class World:
    """One container's worth of fixtures on a server."""

    _numbers = itertools.count(1)

    def __init__(self, account):
        self.account, self.wire = account, Wire(account)
        self.sas = accounts.sas(account)
        self.container = f"fuzz-{next(self._numbers):05}"
        self.snapshot = self.etag = self.copy_id = ""
        self._made = {"block"}
        self._make()

    def must(self, method, path, query=None, headers=None, body=b""):
        """A request that has to succeed, but for what earlier requests did to the container."""
        answer = self.wire.request(method, path, query, headers, body)
        if answer.status >= 300 and (self.snapshot == "" or answer.status not in (404, 409, 412)):
            raise RuntimeError(f"fixture {method} {path} {query}: {answer.status} {answer.code} {answer.body[:300]}")
        return answer

    def _put(self, name, kind="BlockBlob", body=b"", **headers):
        names = {key.replace("_", "-"): value for key, value in headers.items()}
        return self.must("PUT", f"/{self.container}/{name}", None, {"x-ms-blob-type": kind, **names}, body)

    def _make(self):
        self.must("PUT", f"/{self.container}", {"restype": "container"}, {"x-ms-meta-a": "b"})
        self.etag = self._put("block", body=CONTENT, x_ms_meta_a="b").headers["etag"]
        self.snapshot = self.must("PUT", f"/{self.container}/block", {"comp": "snapshot"}).headers["x-ms-snapshot"]

    def container_leased(self):
        """A container under `LEASE`, made when it is first asked for."""
        name = f"{self.container}-leased"
        if name not in self._made:
            self._made.add(name)
            self.must("PUT", f"/{name}", {"restype": "container"})
            self.must("PUT", f"/{name}", {"restype": "container", "comp": "lease"},
                      {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": LEASE})
        return name

    def blob(self, name):
        """The name of a blob, which is made when it is first asked for and is one of those that exist."""
        here, at = f"/{self.container}", f"/{self.container}/{name}"
        if name in self._made:
            return name
        self._made.add(name)
        if name in ("append", "sealed"):
            self._put(name, "AppendBlob")
            self.must("PUT", at, {"comp": "appendblock"}, None, CONTENT)
        if name == "sealed":
            self.must("PUT", at, {"comp": "seal"})
        elif name == "page":
            self._put(name, "PageBlob", x_ms_blob_content_length="4096")
            self.must("PUT", at, {"comp": "page"}, {"x-ms-page-write": "update", "x-ms-range": "bytes=0-1023"}, CONTENT)
        elif name == "leased":
            self._put(name, body=CONTENT)
            self.must("PUT", at, {"comp": "lease"},
                      {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "60", "x-ms-proposed-lease-id": LEASE})
        elif name == "archived":
            self._put(name, body=CONTENT, x_ms_access_tier="Archive")
        elif name == "secret":
            self.must("PUT", at, None, {"x-ms-blob-type": "BlockBlob", **KEY_HEADERS}, CONTENT)
        elif name == "scoped":
            self._put(name, body=CONTENT, x_ms_encryption_scope="scope-one")
        elif name == "staged":
            for block_id in BLOCK_IDS:
                self.must("PUT", at, {"comp": "block", "blockid": block_id}, None, CONTENT)
        elif name == "tagged":
            self._put(name, body=CONTENT, x_ms_tags="colour=red&size=1")
        elif name == "folder/deep":
            copied = self.must("PUT", at, None, {"x-ms-copy-source": f"{self.account.url}{here}/block"})
            self.copy_id = copied.headers.get("x-ms-copy-id", "")
        return name

    def allow_origins(self):
        """A rule for pages from elsewhere, so that preflights and answers to them are judged too."""
        self.must("PUT", "", {"restype": "service", "comp": "properties"}, None, _BODIES["SetServiceProperties"][1])

    def url(self, blob, signed=False):
        """A blob's URL; the blob is made when the value is used."""
        return f"@{blob}@{self.account.url}/{self.container}/{quote(blob)}" + (f"?{self.sas}" if signed else "")


def _pools(world):
    """Values that mean something here, by parameter."""
    now = lambda seconds: email.utils.formatdate(time.time() + seconds, usegmt=True)
    wrong_md5, url = base64.b64encode(bytes(16)).decode(), world.url
    conditions = {"match": [world.etag, "*", '"0x8DFFFFFFFFFFFFF"', "0x1", '"a", "b"', "*, *"],
                  "since": [now(-3600), now(3600), "yesterday", "Thu, 01 Jan 1970 00:00:00 GMT"]}
    tags = ["\"colour\" = 'red'", "\"colour\" <> 'red'", "@container = 'a'", "\"size\" > '0' AND \"size\" < '5'", "\"colour\"", "'"]
    ranges = ["bytes=0-511", "bytes=512-1023", "bytes=0-", "bytes=4096-", "bytes=9-3", "bytes=0-0,2-2", "bytes=-5", "bytes=100000-",
              "bytes=0-18446744073709551615", "bytes=99999999999999999999-"]
    numbers = ["0", "1", "2", "1024", "-1", "9223372036854775807", "9223372036854775808", "18446744073709551616", "1.5", "x"]
    return {
        "x-ms-version": ["2026-10-06", "2021-12-02", "2009-09-19", "2026-13-40", "latest", "2099-01-01"],
        "x-ms-date": [now(0), now(60), now(-4000), "now"],
        "x-ms-client-request-id": ["one", "x" * 1024, "x" * 1025],
        "timeout": ["30", "0", "-1", "4294967295", "4294967296", "soon"],
        "x-ms-lease-id": [LEASE, LEASE, OTHER_LEASE, "nonsense"],
        "x-ms-proposed-lease-id": [LEASE, OTHER_LEASE, f"{{{LEASE}}}", "nonsense"],
        "x-ms-lease-action": ["acquire", "renew", "change", "release", "break", "ACQUIRE", "keep"],
        "x-ms-lease-duration": ["15", "-1", "60", "61", "14", "x"],
        "x-ms-lease-break-period": ["0", "60", "61", "-1"],
        "If-Match": conditions["match"], "If-None-Match": conditions["match"],
        "If-Modified-Since": conditions["since"], "If-Unmodified-Since": conditions["since"],
        "x-ms-source-if-match": conditions["match"], "x-ms-source-if-none-match": conditions["match"],
        "x-ms-source-if-modified-since": conditions["since"], "x-ms-source-if-unmodified-since": conditions["since"],
        "x-ms-if-tags": tags, "x-ms-source-if-tags": tags,
        "where": [f"@container = '{world.container}' AND \"colour\" = 'red'", "\"colour\" = 'red'", *tags],
        "x-ms-tags": ["a=b", "a=b&c=d", "a=b&a=c", "=b", "a", "a=%zz", "&".join(f"k{n}=v" for n in range(11))],
        "x-ms-meta-*": ["value", "", " spaced ", "x" * 9000],
        "x-ms-blob-public-access": ["blob", "container", "Blob", "private"],
        "x-ms-default-encryption-scope": ["scope-one", "scope-one", "$account-encryption-key", "no_scope"],
        "x-ms-deny-encryption-scope-override": ["true", "false", "maybe"],
        "x-ms-encryption-key": [KEY, "c2hvcnQ="], "x-ms-encryption-scope": ["scope-one", "scope-one", "other", "no_scope"],
        "x-ms-encryption-key-sha256": [KEY_HEADERS["x-ms-encryption-key-sha256"], KEY], "x-ms-encryption-algorithm": ["AES256", "AES256", "ROT13"],
        "x-ms-source-encryption-key": [KEY, "c2hvcnQ="], "x-ms-source-encryption-key-sha256": [KEY_HEADERS["x-ms-encryption-key-sha256"], KEY],
        "x-ms-source-encryption-algorithm": ["AES256", "AES256", "ROT13"],
        "prefix": ["", "f", "folder/", "\u00e9", "\ufffe"], "delimiter": ["/", "//", "e"], "startFrom": ["b", "z"],
        "marker": ["", "", "2!4!block", "nonsense", "512"], "maxresults": ["1", "2", "5000", "5001", "0", "-3", "many", "99999999999999999999"],
        "include": ["metadata", "snapshots,metadata", "tags,copy,uncommittedblobs", "deleted", "everything"],
        "snapshot": [world.snapshot, "2020-01-01T00:00:00.0000000Z", "yesterday", ""],
        "prevsnapshot": [world.snapshot, "2020-01-01T00:00:00.0000000Z", "yesterday"],
        "deletetype": ["permanent", "soft"], "x-ms-delete-snapshots": ["include", "only", "none"],
        "x-ms-blob-type": ["BlockBlob", "BlockBlob", "AppendBlob", "PageBlob", "blockblob", "Blob"],
        "x-ms-blob-content-length": ["4096", "512", "0", "513", "8796093022208", "8796093022720", "x"],
        "x-ms-blob-sequence-number": numbers, "x-ms-sequence-number-action": ["max", "update", "increment", "reset"],
        "x-ms-if-sequence-number-le": numbers, "x-ms-if-sequence-number-lt": numbers, "x-ms-if-sequence-number-eq": numbers,
        "x-ms-blob-condition-appendpos": numbers, "x-ms-blob-condition-maxsize": numbers,
        "x-ms-page-write": ["update", "update", "clear", "Update", "erase"], "x-ms-range": ["bytes=0-511", *ranges], "Range": ranges, "x-ms-source-range": ["bytes=0-511", *ranges],
        "x-ms-range-get-content-md5": ["true", "false", "yes"], "x-ms-range-get-content-crc64": ["true", "false", "yes"],
        "Content-MD5": ["@md5", "@md5", wrong_md5, "nonsense"], "x-ms-blob-content-md5": ["@md5", wrong_md5, "nonsense"],
        "x-ms-content-crc64": ["AAAAAAAAAAA=", "nonsense"], "x-ms-source-content-crc64": ["AAAAAAAAAAA=", "nonsense"],
        "x-ms-source-content-md5": [base64.b64encode(hashlib.md5(CONTENT).digest()).decode(), wrong_md5],
        "x-ms-structured-body": ["XSM/1.0; properties=crc64", "XSM/2.0"], "x-ms-structured-content-length": ["1024", "0", "x"],
        "x-ms-blob-content-type": ["text/plain", "a/b", "a" * 300, "\u00e9"], "x-ms-blob-cache-control": ["no-cache"],
        "x-ms-access-tier": ["Hot", "Cool", "Cold", "Archive", "hot", "P10", "Smart", "Tepid"],
        "x-ms-rehydrate-priority": ["Standard", "High", "Now"],
        "blockid": [*BLOCK_IDS, "YQ==", "nonsense", "", base64.b64encode(bytes(65)).decode(), base64.b64encode(bytes(64)).decode()],
        "blocklisttype": ["committed", "uncommitted", "all", "both"],
        "copyid": [world.copy_id or OTHER_LEASE, LEASE, "nonsense"], "x-ms-copy-action": ["abort", "abort", "resume"],
        "x-ms-copy-source": [url("block"), url("block", True), url("append"), url("page"), f"{url('block')}?snapshot={quote(world.snapshot)}",
                             url("archived"), url("secret"), url("tagged"), url("no such blob"), "http://10.0.0.1/a/b/c", "/a/b/c", "ftp://a/b",
                             "http://", f"{world.account.url}/nosuchcontainer/block",
                             "http://127.0.0.1:1/x/y/z"],
        "x-ms-copy-source-authorization": ["Bearer nonsense", "Basic x"], "x-ms-source-lease-id": [LEASE, "nonsense"],
        "x-ms-copy-source-blob-properties": ["true", "false", "yes"], "x-ms-copy-source-tag-option": ["COPY", "REPLACE", "MERGE"],
        "x-ms-requires-sync": ["true", "true", "true", "false"],
        "x-ms-deleted-container-name": ["gone", world.container], "x-ms-deleted-container-version": ["1"],
        "Origin": ["http://a"], "Access-Control-Request-Method": ["GET", "BREW"], "Access-Control-Request-Headers": ["x-ms-meta-a", "*"],
    }


def _xml(inner):
    return f'<?xml version="1.0" encoding="utf-8"?>{inner}'.encode()


_LATEST = "".join(f"<Latest>{block_id}</Latest>" for block_id in BLOCK_IDS)
_BROKEN = [b"", b"<", b"<a>", _xml("<Wrong/>"), b"\xff\xfe<\x00", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"]
_BODIES = {
    "PutBlockList": [_xml(f"<BlockList>{_LATEST}</BlockList>"), _xml("<BlockList/>"), _xml("<BlockList><Latest>YQ==</Latest></BlockList>"),
                     _xml("<BlockList><Latest>%</Latest></BlockList>")],
    "SetBlobTags": [_xml("<Tags><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tags>"), _xml("<Tags><TagSet/></Tags>"), _xml("<Tags/>"),
                    _xml("<Tags><TagSet><Tag><Key></Key><Value>b</Value></Tag></TagSet></Tags>")],
    "SetContainerAcl": [b"", _xml("<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy><Permission>rw</Permission></AccessPolicy>"
                                  "</SignedIdentifier></SignedIdentifiers>"), _xml("<SignedIdentifiers><SignedIdentifier/></SignedIdentifiers>")],
    "SetServiceProperties": [_xml("<StorageServiceProperties/>"), _xml("<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>http://a</AllowedOrigins>"
                             "<AllowedMethods>GET</AllowedMethods><AllowedHeaders>*</AllowedHeaders><ExposedHeaders>*</ExposedHeaders>"
                             "<MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>"),
                             _xml("<StorageServiceProperties><Cors><CorsRule/></Cors></StorageServiceProperties>")],
    "GetUserDelegationKey": [_xml("<KeyInfo><Expiry>2030-01-01T00:00:00Z</Expiry></KeyInfo>")],
}
_BINARY = [b"", b"x", CONTENT[:512], CONTENT, CONTENT * 5]


@dataclasses.dataclass
class Sent:
    """One request as it goes out."""

    method: str
    path: str
    query: list
    headers: list
    body: bytes
    # Whether it holds something the description has not.
    stranger: bool = False

    def shown(self):
        """One line that says it all."""
        query = "&".join(f"{name}={value}" for name, value in self.query)
        headers = " ".join(f"{name}: {value!r}"[:160] for name, value in self.headers if name.lower() not in ("authorization", "x-ms-date"))
        return f"{self.method} {self.path[:300]}?{query[:400]} [{headers}] {self.body[:120]!r}"


class Draft:
    """Turns cases of one operation into requests."""

    def __init__(self, operation, method, path, world, rng):
        self.operation, self.method, self.world, self.rng = operation, method.upper(), world, rng
        # Half of the requests are such that most of them succeed: what is behind the first checks is asked too.
        self.plain = rng.random() < 0.45
        target, _, _ = path.partition("#")
        self.template, _, fixed = target.partition("?")
        self.fixed = [tuple(pair.split("=")) for pair in fixed.split("&") if pair]
        self.pools = _pools(world)

    def _blob(self):
        name = self.operation["operationId"]
        likely = {"AppendBlock": "append", "AppendBlockFromUrl": "append", "SealBlob": "append", "PutPage": "page", "PutPageFromUrl": "page", "GetPageRanges": "page", "PutBlockList": "staged",
                  "GetBlockList": "staged", "AbortCopy": "folder/deep"}.get(name)
        if self.plain:
            return likely or self.rng.choice(["block", "block", "tagged", "append", "page", "scoped", "folder/deep"])
        return likely if likely and self.rng.random() < 0.5 else self.rng.choice(BLOBS)

    def _path(self, drawn):
        rng, path = self.rng, self.template
        account = self.world.account.name + ("-secondary" if self.operation["operationId"] == "GetServiceStats" else "")
        fresh = self.operation["operationId"] == "CreateContainer"
        container, blob = self.world.container, self.world.blob(self._blob())
        generated = lambda name: unquote(str(drawn.get(name, "x")))
        if not self.plain:
            if rng.random() < 0.3:
                container = rng.choice([self.world.container_leased(), "nosuchcontainer", "$root", "Bad_Name", generated("container")])
            if rng.random() < 0.15:
                blob = generated("blob")
            if rng.random() < 0.03:
                account = generated("account")
        if fresh and (self.plain or rng.random() < 0.7):
            container = f"{self.world.container}-{rng.randrange(10 ** 9)}"
        for name, value in (("account", account), ("container", container), ("blob", blob)):
            path = path.replace(f"{{{name}}}", quote(value, safe="/$"))
        return path

    def _value(self, name, drawn):
        # A drawn source would only ask name servers.
        kept = drawn is not None and name != "x-ms-copy-source"
        if kept and not self.plain and self.rng.random() < 0.35 or name not in self.pools:
            return None if drawn is None else str(drawn)
        pool = self.pools[name]
        value = self.rng.choice(pool[:2] if self.plain else pool)
        if value.startswith("@") and value.count("@") > 1:
            _, blob, value = value.split("@")
            self.world.blob(blob)
        return value

    def _parameters(self, where, drawn):
        found = []
        for parameter in self.operation["parameters"]:
            name = parameter["name"]
            if parameter["in"] != where or name == "Content-Length":
                continue
            required = 1 if self.plain else 0.95
            if self.rng.random() > (required if parameter.get("required") else self._share(name)):
                continue
            value = self._value(name, drawn.get(name))
            if value is not None:
                found.append((name.replace("*", self.rng.choice(["a", "b_c", "1x", "a-b"])), value))
        for prefix in ("x-ms-encryption", "x-ms-source-encryption"):
            if where == "header" and self.rng.random() < 0.5 and any(n == f"{prefix}-key" for n, _ in found):
                whole = [(name.replace("x-ms-encryption", prefix), value) for name, value in KEY_HEADERS.items()]
                found = [pair for pair in found if not pair[0].startswith(prefix)] + whole
        return found

    def _share(self, name):
        """How often an optional parameter is there."""
        needed = {"x-ms-range": 0.9, "x-ms-lease-duration": 0.8, "x-ms-proposed-lease-id": 0.5, "x-ms-encryption-key": 0.1}
        if self.operation["operationId"] in ("PutBlockFromUrl", "AppendBlockFromUrl"):
            return 0.03  # There are twenty of them, most of which refuse the request.
        if name == "x-ms-lease-id" and "Lease" in self.operation["operationId"]:
            return 0.7
        if name == "x-ms-source-range" and self.operation["operationId"] == "PutPageFromUrl":
            return 0.95
        if name == "x-ms-range" and self.operation["operationId"] == "GetBlob":
            return 0.3
        return needed.get(name, 0.07)

    def _body(self, drawn):
        name = self.operation["operationId"]
        if "requestBody" not in self.operation:
            return b"x" if not self.plain and self.rng.random() < 0.05 else b""
        if self.plain:
            return _BODIES[name][0] if name in _BODIES else CONTENT[:512]
        if name == "BlobBatch":
            return b""
        if name not in _BODIES:
            return drawn if isinstance(drawn, bytes) and self.rng.random() < 0.4 else self.rng.choice(_BINARY)
        if isinstance(drawn, bytes) and self.rng.random() < 0.4:
            return drawn
        return self.rng.choice(_BODIES[name] * 3 + _BROKEN)

    def _malform(self, sent):
        """What no schema describes: names twice, strange names, text that is no text."""
        rng = self.rng
        kind = rng.randrange(8)
        sent.stranger = True
        if kind == 0 and sent.headers:
            sent.headers.append(rng.choice(sent.headers))
        elif kind == 1 and sent.query:
            sent.query.append(rng.choice(sent.query))
        elif kind == 2:
            sent.headers.append((rng.choice(["x-ms-nonsense", "x-ms-expiry-option", "x-ms-legal-hold", "x-ms-meta-"]), "1"))
        elif kind == 3:
            sent.query.append((rng.choice(["nonsense", "versionid", "prevsnapshot", "restype", "comp", "resource"]), rng.choice(["", "1", "container"])))
        elif kind == 4 and sent.headers:
            at = rng.randrange(len(sent.headers))
            sent.headers[at] = (sent.headers[at][0], rng.choice(["", " ", "\xff\xfe", "x" * 5000, "\t", "0x10", "NaN", "1e3", "+5"]))
        elif kind == 5 and sent.query:
            at = rng.randrange(len(sent.query))
            sent.query[at] = (sent.query[at][0], rng.choice(["", "%00", "%ff", "%zz", "%", "%E2%82", "x" * 5000, "+"]))
        elif kind == 6:
            sent.path += rng.choice(["%00", "%ff", "%zz", "/", "//", "/.", "/..", "%2e", "?", "%20", "a" * 1100])
        else:
            sent.method = rng.choice(["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH", "BREW"])

    def request(self, case, body):
        """A request from a case; `body` is the case's body as bytes."""
        drawn_headers = {name: value for name, value in (case.headers or {}).items()}
        query = self.fixed + self._parameters("query", case.query or {})
        sent = Sent(self.method, self._path(case.path_parameters or {}), [(n, quote(str(v), safe="-_.~!*'(),")) for n, v in query],
                    self._parameters("header", drawn_headers), self._body(body))
        if self.operation["operationId"] == "BlobBatch":
            self._batch(sent)
        if self.rng.random() < 0.05 and self.method != "OPTIONS":
            sent.headers.append(("Origin", self.rng.choice(["http://a", "http://b"])))
        if not self.plain and self.rng.random() < 0.25:
            self._malform(sent)
        digest = base64.b64encode(hashlib.md5(sent.body).digest()).decode()
        sent.headers = [(name, digest if value == "@md5" else value) for name, value in sent.headers]
        self._sign(sent)
        return sent

    def faithful(self, case, body):
        """A request with just the parameters of a case, about a blob that exists; `body` is the case's body as bytes."""
        self.plain = True
        pairs = lambda values: [(name, each) for name, value in (values or {}).items()
                                for each in (value if isinstance(value, list) else [value])]
        query = self.fixed + [pair for pair in pairs(case.query) if pair not in self.fixed]
        headers = [(name, str(value)) for name, value in pairs(case.headers)
                   if name.lower() not in ("content-length", "authorization", "host", "x-ms-meta-*")]
        sent = Sent(case.method.upper(), self._path({}), [(name, quote(str(value), safe="-_.~!*'(),")) for name, value in query], headers,
                    body if body is not None else self._body(None))
        sent.stranger = sent.method != self.method
        if self.operation["operationId"] in ("SetContainerAcl", "GetContainerAcl"):
            self._shared_key(sent)
        else:
            sent.query += [tuple(pair.split("=", 1)) for pair in self.world.sas.split("&")]
        return sent

    def _batch(self, sent):
        """One deletion, or something that is no batch."""
        self.world.blob("tagged")
        part = f"DELETE /{self.world.account.name}/{self.world.container}/tagged?{self.world.sas} HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
        whole = f"--b\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\n{part}\r\n--b--\r\n".encode()
        sent.body = whole if self.plain else self.rng.choice([whole, whole, whole, b"", whole[:40], b"\xff" * 50, whole.replace(b"DELETE", b"GET"), whole * 2])
        sent.headers.append(("Content-Type", self.rng.choice(["multipart/mixed; boundary=b"] * 4 + ([] if self.plain else ["multipart/mixed", "text/plain"]))))

    def _sign(self, sent):
        names = [name.lower() for name, _ in sent.headers]
        if "x-ms-date" not in names:
            sent.headers.append(("x-ms-date", email.utils.formatdate(usegmt=True)))
        if self.method == "OPTIONS":
            return
        how = self.rng.random()
        stats = self.operation["operationId"] == "GetServiceStats"
        # Before 2015-02-21 an empty body was signed otherwise.
        old = any(name.lower() == "x-ms-version" and value < "2015-02-21" for name, value in sent.headers)
        odd = stats or sent.stranger or old or len(set(names)) < len(names)
        if self.plain and not stats:
            self._shared_key(sent)
        elif how < 0.03:
            sent.headers.append(("Authorization", self.rng.choice(["SharedKey a:b", "Bearer x", "nonsense", "SharedKey devstoreaccount1:AAAA"])))
        elif how < 0.05:
            return
        elif (odd or how < 0.3) and "Acl" not in self.operation["operationId"]:
            sent.query += [tuple(pair.split("=", 1)) for pair in self.world.sas.split("&")]
        else:
            self._shared_key(sent)

    def _shared_key(self, sent):
        headers = {name.lower(): value.strip() for name, value in sent.headers}
        if sent.body or sent.method in ("PUT", "POST"):
            headers["content-length"] = str(len(sent.body))
        query = {name: unquote(value) for name, value in sent.query}
        mark = signature(self.world.account.name, self.world.account.key, sent.method, sent.path, query, headers)
        sent.headers.append(("Authorization", f"SharedKey {self.world.account.name}:{mark}"))


class Connection:
    """Sends requests as they are, malformed or not, on one connection."""

    def __init__(self, address):
        self._address, self._connection = address, None

    def send(self, sent):
        """The answer, or None when the request cannot be put on the wire at all."""
        for attempt in (0, 1):
            if self._connection is None:
                self._connection = http.client.HTTPConnection(self._address, timeout=30)
            try:
                return self._once(sent)
            except ValueError:
                # http.client refuses line breaks in names and values.
                self.close()
                return None
            except (http.client.RemoteDisconnected, ConnectionError, BrokenPipeError):
                self.close()
                if attempt:
                    raise
        return None

    def _once(self, sent):
        connection = self._connection
        query = "&".join(f"{name}={value}" for name, value in sent.query)
        connection.putrequest(sent.method, sent.path + (f"?{query}" if query else ""), skip_accept_encoding=True)
        for name, value in sent.headers:
            connection.putheader(name, value.encode("latin-1", "replace"))
        if sent.body or sent.method in ("PUT", "POST", "PATCH"):
            connection.putheader("Content-Length", str(len(sent.body)))
        connection.endheaders(sent.body or None)
        response = connection.getresponse()
        data = response.read()
        if response.getheader("connection", "").lower() == "close":
            self.close()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, data)

    def close(self):
        """Ends the connection; the next request opens another."""
        if self._connection:
            self._connection.close()
        self._connection = None

#!/usr/bin/env python3
"""Every documented limit at its edge: one value at the limit is taken, one past it is refused with the documented code.

Sizes of bodies are asked by their heads alone: a client that sends `Expect: 100-continue` is asked to continue, or refused before
a byte of a body that is too large. 50,000 blocks are really staged and committed, and what such a commit costs in log bytes
and memory is measured. --full adds 100,000 staged blocks, 50,000 appended ones, and bodies of 4000 and 5000 MiB sent whole.
"""

import base64
import concurrent.futures
import email.utils
import socket
import threading
import time
from urllib.parse import quote

from lib import accounts, cli
from lib.content import pieces
from lib.measure import RssSampler
from lib.report import Progress, Verdicts, mib
from lib.wire import VERSION, Wire, signature

MIB = 1 << 20
TIB = 1 << 40
PAGE_BLOB_MAX = 8 * TIB
HERE = "/limits"
CLIENTS = 8
# What 50,000 blocks may cost the server in memory beyond what it had: their rows and the record that commits them.
COMMIT_RSS_LIMIT = 250 * MIB


def xml(root, inner):
    """A small document."""
    return f'<?xml version="1.0" encoding="utf-8"?><{root}>{inner}</{root}>'.encode()


def block_list(ids):
    """The body of Put Block List."""
    return xml("BlockList", "".join(f"<Latest>{block_id}</Latest>" for block_id in ids))


def block_id(number, length=8):
    """A base64 block id of `length` bytes."""
    return base64.b64encode(f"{number:0{length}}".encode()).decode()


class Edge:
    """Judges pairs of requests on both sides of a limit."""

    def __init__(self, account, verdicts):
        self.wire, self.account, self.verdicts = Wire(account), account, verdicts

    def taken(self, what, *request, **more):
        """A request at the limit, which succeeds."""
        answer = self.wire.request(*request, **more)
        self.verdicts.check(what, answer.status < 300, "2xx", f"{answer.status} {answer.code}")
        return answer

    def refused(self, what, status, code, *request, **more):
        """A request past the limit."""
        answer = self.wire.request(*request, **more)
        self.verdicts.check(what, (answer.status, answer.code) == (status, code), f"{status} {code}", f"{answer.status} {answer.code}")
        return answer

    def length(self, what, size, wanted, path, query=None, headers=None, version=VERSION):
        """A PUT that declares a body of `size` bytes and waits; `wanted` is 100, or the (status, code) it is refused with."""
        query, path = query or {}, f"/{self.account.name}{path}"
        sent = {"x-ms-version": version, "x-ms-date": email.utils.formatdate(usegmt=True), "content-length": str(size), **(headers or {})}
        mark = signature(self.account.name, self.account.key, "PUT", path, query, sent)
        sent |= {"authorization": f"SharedKey {self.account.name}:{mark}", "host": self.account.address, "expect": "100-continue"}
        target = path + ("?" + "&".join(f"{name}={quote(value)}" for name, value in query.items()) if query else "")
        head = f"PUT {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in sent.items()) + "\r\n"
        host, port = self.account.address.split(":")
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(head.encode())
            answer = connection.recv(8192).decode("latin-1")
        status = int(answer.split(" ")[1])
        code = next((line.split(": ")[1] for line in answer.split("\r\n") if line.lower().startswith("x-ms-error-code")), "")
        found = status if status == 100 else (status, code)
        self.verdicts.check(what, found == wanted, wanted, found)


def bodies(edge):
    """Bytes of one body, by operation and version."""
    too_large, block = (413, "RequestBodyTooLarge"), {"comp": "block", "blockid": block_id(1)}
    kind = {"x-ms-blob-type": "BlockBlob"}
    versions = ((VERSION, 5000, 4000), ("2019-12-12", 5000, 4000), ("2019-07-07", 256, 100), ("2016-05-31", 256, 100), ("2015-12-11", 64, 4))
    for version, put_blob, put_block in versions:
        edge.length(f"Put Blob of {put_blob} MiB at {version}", put_blob * MIB, 100, f"{HERE}/b", None, kind, version)
        edge.length(f"Put Blob of {put_blob} MiB and a byte at {version}", put_blob * MIB + 1, too_large, f"{HERE}/b", None, kind, version)
        edge.length(f"Put Block of {put_block} MiB at {version}", put_block * MIB, 100, f"{HERE}/b", block, None, version)
        edge.length(f"Put Block of {put_block} MiB and a byte at {version}", put_block * MIB + 1, too_large, f"{HERE}/b", block, None, version)
    edge.taken("an append blob", "PUT", f"{HERE}/append", None, {"x-ms-blob-type": "AppendBlob"})
    for version, limit in ((VERSION, 100), ("2022-11-02", 100), ("2021-12-02", 4)):
        append = {"comp": "appendblock"}
        edge.length(f"Append Block of {limit} MiB at {version}", limit * MIB, 100, f"{HERE}/append", append, None, version)
        edge.length(f"Append Block of {limit} MiB and a byte at {version}", limit * MIB + 1, too_large, f"{HERE}/append", append, None, version)


def pages(edge):
    """8 TiB of a page blob, which take no room, and 4 MiB of one write."""
    make = lambda size: {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(size)}
    put = lambda first, size: {"x-ms-page-write": "update", "x-ms-range": f"bytes={first}-{first + size - 1}"}
    path, page = f"{HERE}/pages", bytes(range(256)) * 2
    edge.taken("a page blob of 8 TiB", "PUT", path, None, make(PAGE_BLOB_MAX))
    edge.refused("a page blob of 8 TiB and a page", 400, "InvalidHeaderValue", "PUT", f"{HERE}/more", None, make(PAGE_BLOB_MAX + 512))
    edge.taken("its last page is written", "PUT", path, {"comp": "page"}, put(PAGE_BLOB_MAX - 512, 512), page)
    edge.refused("a page behind its last", 416, "InvalidPageRange", "PUT", path, {"comp": "page"}, put(PAGE_BLOB_MAX, 512), page)
    last = edge.taken("its last page is read", "GET", path, None, {"x-ms-range": f"bytes={PAGE_BLOB_MAX - 1024}-"})
    edge.verdicts.check("zeros, then the page", last.body == bytes(512) + page, "equal", "equal" if last.body == bytes(512) + page else "other bytes")
    edge.taken("Put Page of 4 MiB", "PUT", path, {"comp": "page"}, put(0, 4 * MIB), bytes(4 * MIB))
    edge.refused("Put Page of 4 MiB and a page", 413, "RequestBodyTooLarge", "PUT", path, {"comp": "page"}, put(0, 4 * MIB + 512), bytes(4 * MIB + 512))
    resize = lambda size: {"x-ms-blob-content-length": str(size)}
    edge.taken("a page blob of nothing", "PUT", f"{HERE}/grown", None, make(0))
    edge.taken("it grows to 8 TiB", "PUT", f"{HERE}/grown", {"comp": "properties"}, resize(PAGE_BLOB_MAX))
    edge.refused("it grows further", 400, "InvalidHeaderValue", "PUT", f"{HERE}/grown", {"comp": "properties"}, resize(PAGE_BLOB_MAX + 512))


def names(edge):
    """Lengths of names."""
    kind, container = {"x-ms-blob-type": "BlockBlob"}, {"restype": "container"}
    for what, name in (("1,024 characters", "n" * 1024), ("1,024 of two bytes", "\u00e9" * 1024), ("512 of two units", "\U0001f600" * 512),
                       ("254 segments", "/".join("s" * 254))):
        edge.taken(f"a blob name of {what}", "PUT", f"{HERE}/{name}", None, kind, b"x")
    for what, name in (("1,025 characters", "n" * 1025), ("1,025 of two bytes", "\u00e9" * 1025), ("513 of two units", "\U0001f600" * 513),
                       ("255 segments", "/".join("s" * 255))):
        edge.refused(f"a blob name of {what}", 400, "OutOfRangeInput", "PUT", f"{HERE}/{name}", None, kind, b"x")
    for length in (3, 63):
        edge.taken(f"a container name of {length}", "PUT", f"/{'c' * length}", container)
    for length in (2, 64):
        edge.refused(f"a container name of {length}", 400, "OutOfRangeInput", "PUT", f"/{'c' * length}", container)
    for name in ("a--b", "-ab", "ab-", "aB1", "a_b"):
        edge.refused(f"a container called {name}", 400, "InvalidResourceName", "PUT", f"/{name}", container)


def metadata_and_tags(edge):
    """8 KiB of metadata; 10 tags of 128 and 256 characters; ids of requests."""
    kind, path = {"x-ms-blob-type": "BlockBlob"}, f"{HERE}/described"
    # 8 pairs: names and values count.
    pairs = lambda last: {**{f"x-ms-meta-k{n}": "v" * 1022 for n in range(7)}, "x-ms-meta-k7": "v" * (1022 + last)}
    edge.taken("8 KiB of metadata", "PUT", path, None, {**kind, **pairs(0)}, b"x")
    edge.refused("8 KiB and a byte", 400, "MetadataTooLarge", "PUT", path, None, {**kind, **pairs(1)}, b"x")
    edge.taken("8 KiB by Set Blob Metadata", "PUT", path, {"comp": "metadata"}, pairs(0))
    edge.refused("8 KiB and a byte by Set Blob Metadata", 400, "MetadataTooLarge", "PUT", path, {"comp": "metadata"}, pairs(1))
    edge.taken("8 KiB of a container", "PUT", HERE, {"restype": "container", "comp": "metadata"}, pairs(0))
    edge.refused("8 KiB and a byte of a container", 400, "MetadataTooLarge", "PUT", HERE, {"restype": "container", "comp": "metadata"}, pairs(1))
    body = lambda tags: xml("Tags", "<TagSet>" + "".join(f"<Tag><Key>{k}</Key><Value>{v}</Value></Tag>" for k, v in tags) + "</TagSet>")
    longest = [(f"{n}".ljust(128, "k"), "v" * 256) for n in range(10)]
    for what, tags, code in (("10 tags of 128 and 256 characters", longest, ""), ("11 tags", [(f"k{n}", "v") for n in range(11)], "TagsTooLarge"),
                             ("a key of 129", [("k" * 129, "v")], "InvalidTag"), ("a value of 257", [("k", "v" * 257)], "InvalidTag"),
                             ("an empty key", [("", "v")], "EmptyTagName"), ("an empty value", [("k", "")], "")):
        header = {**kind, "x-ms-tags": "&".join(f"{k}={v}" for k, v in tags)}
        for how, request in (("Set Blob Tags", ("PUT", path, {"comp": "tags"}, None, body(tags))), ("x-ms-tags", ("PUT", path, None, header, b"x"))):
            if code:
                edge.refused(f"{what}, by {how}", 400, code, *request)
            else:
                edge.taken(f"{what}, by {how}", *request)
    edge.taken("a client request id of 1 KiB", "GET", path, None, {"x-ms-client-request-id": "i" * 1024})
    edge.refused("one of 1 KiB and a byte", 400, "InvalidHeaderValue", "GET", path, None, {"x-ms-client-request-id": "i" * 1025})


def batches(edge):
    """256 parts, 4 MiB."""
    account = edge.account
    part = lambda n: (f"--b\r\nContent-Type: application/http\r\nContent-ID: {n}\r\n\r\nDELETE /{account.name}{HERE}/none{n}?{signed} HTTP/1.1\r\n"
                      "Content-Length: 0\r\n\r\n\r\n")
    signed = accounts.sas(account)
    whole = lambda count: ("".join(part(n) for n in range(count)) + "--b--\r\n").encode()
    ask = ("POST", "", {"comp": "batch"}, {"content-type": "multipart/mixed; boundary=b"})
    answer = edge.taken("a batch of 256", *ask, body=whole(256))
    edge.verdicts.equal("answers of a batch of 256", answer.body.count(b"HTTP/1.1 404"), 256)
    # The answer of a batch is 202. Its only part describes the error of the whole batch.
    answer = edge.taken("a batch of 257", *ask, body=whole(257))
    part_lines = [line for line in answer.body.decode().split("\r\n") if line.startswith(("HTTP/1.1 ", "x-ms-error-code: "))]
    edge.verdicts.equal("the only part of its answer", [part_lines[0][:12], *part_lines[1:]], ["HTTP/1.1 400", "x-ms-error-code: ExceedsMaxBatchRequestCount"])
    padded = lambda size: b" " * (size - len(whole(1)) - 2) + b"\r\n" + whole(1)
    full = padded(4 * MIB)
    edge.verdicts.equal("bytes of the padded batch", len(full), 4 * MIB)
    edge.taken("a batch of 4 MiB", *ask, body=full)
    edge.refused("a batch of 4 MiB and a byte", 413, "RequestBodyTooLarge", *ask, body=padded(4 * MIB + 1))


def policies_and_rules(edge):
    """5 stored access policies with ids of 64 characters; 5 CORS rules."""
    acl = {"restype": "container", "comp": "acl"}
    ids = lambda count, length=64: xml("SignedIdentifiers", "".join(
        f"<SignedIdentifier><Id>{str(n).ljust(length, 'i')}</Id></SignedIdentifier>" for n in range(count)))
    edge.taken("5 access policies with ids of 64", "PUT", HERE, acl, None, ids(5))
    edge.refused("6 access policies", 400, "InvalidXmlDocument", "PUT", HERE, acl, None, ids(6))
    edge.refused("an id of 65", 400, "InvalidXmlNodeValue", "PUT", HERE, acl, None, ids(1, 65))
    service = {"restype": "service", "comp": "properties"}
    rule = lambda origin="http://a", age="5": (f"<CorsRule><AllowedOrigins>{origin}</AllowedOrigins><AllowedMethods>GET</AllowedMethods><AllowedHeaders/>"
                                               f"<ExposedHeaders/><MaxAgeInSeconds>{age}</MaxAgeInSeconds></CorsRule>")
    rules = lambda *each: xml("StorageServiceProperties", f"<Cors>{''.join(each)}</Cors>")
    origins = lambda count, length=20: ",".join(f"http://{n}".ljust(length, "a") for n in range(count))
    edge.taken("5 CORS rules", "PUT", "", service, None, rules(*[rule()] * 5))
    edge.refused("6 CORS rules", 400, "InvalidXmlDocument", "PUT", "", service, None, rules(*[rule()] * 6))
    edge.taken("64 origins", "PUT", "", service, None, rules(rule(origins(64))))
    edge.refused("65 origins", 400, "InvalidXmlNodeValue", "PUT", "", service, None, rules(rule(origins(65))))
    edge.taken("an origin of 256", "PUT", "", service, None, rules(rule(origins(1, 256))))
    edge.refused("an origin of 257", 400, "InvalidXmlNodeValue", "PUT", "", service, None, rules(rule(origins(1, 257))))
    edge.taken("no CORS rules", "PUT", "", service, None, xml("StorageServiceProperties", "<Cors/>"))


def leases(edge):
    """15 to 60 seconds, or infinite; a break period of at most 60."""
    path, query = f"{HERE}/leased", {"comp": "lease"}
    edge.taken("a blob", "PUT", path, None, {"x-ms-blob-type": "BlockBlob"}, b"x")
    acquire = lambda seconds: {"x-ms-lease-action": "acquire", "x-ms-lease-duration": str(seconds)}
    release = lambda got: edge.taken("released", "PUT", path, query, {"x-ms-lease-action": "release", "x-ms-lease-id": got.headers.get("x-ms-lease-id", "")})
    for seconds in (15, 60, -1):
        release(edge.taken(f"a lease of {seconds} s", "PUT", path, query, acquire(seconds)))
    for seconds in (14, 61, 0, -2):
        edge.refused(f"a lease of {seconds} s", 400, "InvalidHeaderValue", "PUT", path, query, acquire(seconds))
    edge.taken("a lease to break", "PUT", path, query, acquire(60))
    end = lambda seconds: {"x-ms-lease-action": "break", "x-ms-lease-break-period": str(seconds)}
    for seconds in (61, -1):
        edge.refused(f"a break of {seconds} s", 400, "InvalidHeaderValue", "PUT", path, query, end(seconds))
    edge.taken("a break of 60 s", "PUT", path, query, end(60))
    edge.taken("a break at once", "PUT", path, query, end(0))


def ranges_and_sources(edge):
    """Checksums of 4 MiB; URLs of 2 KiB; the longest block id."""
    path = f"{HERE}/five"
    edge.taken("5 MiB", "PUT", path, None, {"x-ms-blob-type": "BlockBlob"}, bytes(5 * MIB))
    for kind in ("md5", "crc64"):
        ask = lambda size: {"x-ms-range": f"bytes=0-{size - 1}", f"x-ms-range-get-content-{kind}": "true"}
        edge.taken(f"the {kind} of 4 MiB", "GET", path, None, ask(4 * MIB))
        edge.refused(f"the {kind} of 4 MiB and a byte", 400, "OutOfRangeInput", "GET", path, None, ask(4 * MIB + 1))
    source = f"{edge.account.url}{HERE}/none?a="
    copy = lambda size: {"x-ms-copy-source": source.ljust(size, "a")}
    edge.refused("a source URL of 2 KiB, which is looked up", 404, "CannotVerifyCopySource", "PUT", f"{HERE}/copy", None, copy(2048))
    edge.refused("a source URL of 2 KiB and a byte", 400, "InvalidHeaderValue", "PUT", f"{HERE}/copy", None, copy(2049))
    stage = lambda length: ("PUT", f"{HERE}/ids{length}", {"comp": "block", "blockid": block_id(1, length)}, None, b"x")
    edge.taken("a block id of 64 bytes", *stage(64))
    edge.refused("a block id of 65 bytes", 400, "InvalidBlockId", *stage(65))


class Crowd:
    """Many small requests from a few connections at once."""

    def __init__(self, account):
        self._account, self._local = account, threading.local()

    def wire(self):
        """This thread's connection."""
        if not hasattr(self._local, "wire"):
            self._local.wire = Wire(self._account)
        return self._local.wire

    def all(self, title, count, one):
        """Calls `one(wire, number)` for each number; what it answered other than 201, as texts."""
        wrong = []
        with Progress(title, count) as progress:
            def ask(numbers):
                for number in numbers:
                    answer = one(self.wire(), number)
                    if answer.status != 201:
                        wrong.append(f"{number}: {answer.status} {answer.code}")
                    progress.advance()
            with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
                list(pool.map(ask, [range(start, count, CLIENTS) for start in range(CLIENTS)]))
        return wrong


def pages_of_lists(edge, crowd):
    """5,000 entries a page, asked for or not."""
    kind, query = {"x-ms-blob-type": "BlockBlob"}, {"restype": "container", "comp": "list"}
    edge.taken("a container", "PUT", "/listed", {"restype": "container"})
    wrong = crowd.all("5,001 blobs", 5001, lambda wire, n: wire.request("PUT", f"/listed/{n:05}", None, kind, b"x"))
    edge.verdicts.none("5,001 blobs", wrong)
    edge.wire.close()  # the server may have closed it: it was idle for as long as that took
    for asked, found in ((None, 5000), ("5000", 5000), ("5001", 5000), ("99999", 5000), ("4999", 4999), ("1", 1)):
        answer = edge.taken(f"a page of {asked or 'any size'}", "GET", "/listed", query | ({"maxresults": asked} if asked else {}))
        edge.verdicts.equal(f"entries when asked for {asked or 'no number'}", answer.body.count(b"<Blob>"), found)
    for asked in ("0", "-1"):
        edge.refused(f"a page of {asked}", 400, "OutOfRangeQueryParameterValue", "GET", "/listed", query | {"maxresults": asked})


def many_blocks(edge, crowd, server):
    """50,000 blocks in one list: what it costs, and that one more is refused."""
    path, ids = f"{HERE}/many", [block_id(n) for n in range(50_000)]
    # The largest that the rows themselves keep, so that the record of the commit is as large as it can be.
    block = lambda number: b"%05d" % number + bytes(507)
    wrong = crowd.all("50,000 blocks staged", 50_000, lambda wire, n: wire.request("PUT", path, {"comp": "block", "blockid": ids[n]}, None, block(n)))
    edge.verdicts.none("50,000 blocks staged", wrong)
    # The connection of before was idle for longer than the server keeps one.
    edge.wire = Wire(edge.account)
    edge.refused("a list of 50,001 blocks", 400, "BlockListTooLong", "PUT", path, {"comp": "blocklist"}, None, block_list([*ids, ids[0]]))
    written = lambda: sum(value for name, value in server.metrics().items() if "index_log_bytes" in name)
    before = written()
    with RssSampler(server.process.pid) as memory:
        began = time.monotonic()
        edge.taken("a list of 50,000 blocks", "PUT", path, {"comp": "blocklist"}, None, block_list(ids))
        took = time.monotonic() - began
        whole = edge.wire.request("GET", path)
        listed = edge.wire.request("GET", path, {"comp": "blocklist"})
    expected = b"".join(block(n) for n in range(50_000))
    edge.verdicts.check("it reads back", whole.body == expected, "equal", "equal" if whole.body == expected else f"{len(whole.body)} bytes")
    edge.verdicts.equal("blocks of its list", listed.body.count(b"<Block>"), 50_000)
    grown = memory.peak - memory.first
    edge.verdicts.check("memory that the commit took", grown <= COMMIT_RSS_LIMIT, f"<= {mib(COMMIT_RSS_LIMIT)}", mib(grown))
    edge.verdicts.figure("resident memory before and at most", f"{mib(memory.first)}, {mib(memory.peak)}")
    edge.verdicts.figure("log bytes of the commit", mib(written() - before))
    edge.verdicts.figure("time of the commit", f"{took:.2f} s")


def full_size(edge, crowd, account):
    """What takes minutes."""
    staged = crowd.all("100,000 blocks staged", 100_000, lambda wire, n: wire.request(
        "PUT", f"{HERE}/staged", {"comp": "block", "blockid": block_id(n)}, None, b"x"))
    edge.verdicts.none("100,000 blocks staged", staged)
    edge.wire = Wire(account)
    edge.refused("one more staged block", 409, "BlockCountExceedsLimit", "PUT", f"{HERE}/staged", {"comp": "block", "blockid": block_id(100_000)}, None, b"x")
    edge.taken("a staged block again", "PUT", f"{HERE}/staged", {"comp": "block", "blockid": block_id(5)}, None, b"y")
    edge.taken("an append blob", "PUT", f"{HERE}/appended", None, {"x-ms-blob-type": "AppendBlob"})
    appended = crowd.all("50,000 blocks appended", 50_000, lambda wire, n: wire.request("PUT", f"{HERE}/appended", {"comp": "appendblock"}, None, b"x"))
    edge.verdicts.none("50,000 blocks appended", appended)
    edge.wire = Wire(account)
    edge.refused("one more appended block", 409, "BlockCountExceedsLimit", "PUT", f"{HERE}/appended", {"comp": "appendblock"}, None, b"x")
    for what, size, query, headers in (("Put Blob of 5000 MiB", 5000 * MIB, None, {"x-ms-blob-type": "BlockBlob"}),
                                       ("Put Block of 4000 MiB", 4000 * MIB, {"comp": "block", "blockid": block_id(1)}, {})):
        with Progress(what, size // MIB, "MiB") as progress:
            def body(size=size, progress=progress):
                for piece in pieces(("limits",), size, MIB):
                    progress.advance()
                    yield piece
            answer = Wire(account, timeout=1800).request("PUT", f"{HERE}/whole", query, {**headers, "content-length": str(size)}, body())
        edge.verdicts.check(what, answer.status == 201, 201, f"{answer.status} {answer.code}")


def main(options, scratch):
    verdicts = Verdicts("limits")
    with cli.server(options, scratch) as server:
        edge, crowd = Edge(server.account, verdicts), Crowd(server.account)
        edge.taken("the container", "PUT", HERE, {"restype": "container"})
        for group in (bodies, pages, names, metadata_and_tags, batches, policies_and_rules, leases, ranges_and_sources):
            group(edge)
        pages_of_lists(edge, crowd)
        many_blocks(edge, crowd, server)
        if not options.small:
            full_size(edge, crowd, server.account)
        verdicts.equal("exit code after SIGTERM", server.stop(), 0)
        verdicts.sound(server)
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

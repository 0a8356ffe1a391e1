"""Conditional headers, on every operation that takes them: those that hold, those that do not, and the answers.

Reads answer 304 or 412, writes always 412, and `If-None-Match: *` on making a blob that exists answers 409.
"""

import datetime
import email.utils

import pytest
from conftest import block_id

PAST = email.utils.formatdate(datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc).timestamp(), usegmt=True)
# Within a minute: this is no test of whether dates far in the future are ignored (RFC 9110).
OTHER = '"0x8D0000000000001"'


def future():
    """A date a minute from now."""
    return email.utils.formatdate(datetime.datetime.now().timestamp() + 60, usegmt=True)


class Target:
    """A blob that exists, and the operations on it as raw requests."""

    def __init__(self, wire, container):
        self.wire, self.path = wire, f"/{container.container_name}/conditional"
        wire.request("PUT", self.path, headers={"x-ms-blob-type": "BlockBlob"}, body=b"content")
        wire.request("PUT", self.path, {"comp": "block", "blockid": block_id(0)}, body=b"staged")
        head = wire.request("HEAD", self.path)
        self.etag, self.modified = head.headers["etag"], head.headers["last-modified"]

    def ask(self, operation, headers, path=None):
        """Performs an operation with conditions. Returns (status, code)."""
        path = path or self.path
        xml = f"<BlockList><Latest>{block_id(0)}</Latest></BlockList>".encode()
        method, query, more, body = {
            "get": ("GET", {}, {}, b""),
            "head": ("HEAD", {}, {}, b""),
            "put": ("PUT", {}, {"x-ms-blob-type": "BlockBlob"}, b"new"),
            "commit": ("PUT", {"comp": "blocklist"}, {}, xml),
            "metadata": ("PUT", {"comp": "metadata"}, {"x-ms-meta-a": "b"}, b""),
            "properties": ("PUT", {"comp": "properties"}, {"x-ms-blob-content-type": "a/b"}, b""),
            "delete": ("DELETE", {}, {}, b""),
        }[operation]
        answer = self.wire.request(method, path, query, {**more, **headers}, body)
        return answer.status, answer.code

    def unchanged(self):
        """Whether the blob still has its first ETag."""
        return self.wire.request("HEAD", self.path).headers.get("etag") == self.etag


READS = ["get", "head"]
WRITES = ["put", "commit", "metadata", "properties", "delete"]
SUCCESS = {"get": 200, "head": 200, "put": 201, "commit": 201, "metadata": 200, "properties": 200, "delete": 202}


@pytest.fixture
def target(wire, container):
    """A new target."""
    return Target(wire, container)


@pytest.mark.parametrize("operation", READS + WRITES)
@pytest.mark.parametrize("condition", [
    "if-match: same", "if-match: *", "if-none-match: other", "if-modified-since: past", "if-unmodified-since: future",
    "if-unmodified-since: same",
])
def test_holds(target, operation, condition):
    name, _, value = condition.partition(": ")
    value = {"same": target.modified if "since" in name else target.etag, "other": OTHER, "past": PAST,
             "future": future()}.get(value, value)
    assert target.ask(operation, {name: value}) == (SUCCESS[operation], "")


@pytest.mark.parametrize("operation", READS + WRITES)
@pytest.mark.parametrize("condition", [
    "if-match: other", "if-none-match: same", "if-modified-since: same", "if-modified-since: future",
    "if-unmodified-since: past",
])
def test_does_not_hold(target, operation, condition):
    name, _, value = condition.partition(": ")
    value = {"same": target.modified if "since" in name else target.etag, "other": OTHER, "past": PAST,
             "future": future()}[value]
    not_modified = operation in READS and name in ("if-none-match", "if-modified-since")
    status, code = target.ask(operation, {name: value})
    assert (status, code) == ((304, "ConditionNotMet") if not_modified else (412, "ConditionNotMet"))
    assert target.unchanged()


@pytest.mark.parametrize("operation", ["put", "commit"])
def test_create_only(target, operation):
    assert target.ask(operation, {"if-none-match": "*"}) == (409, "BlobAlreadyExists")
    assert target.unchanged()


@pytest.mark.parametrize("operation", ["metadata", "properties", "delete"])
def test_star_on_other_writes(target, operation):
    status, code = target.ask(operation, {"if-none-match": "*"})
    assert status in (400, 412) and code
    assert target.unchanged()


@pytest.mark.parametrize("operation", READS)
def test_star_on_reads(target, operation):
    assert target.ask(operation, {"if-none-match": "*"}) == (400, "UnsatisfiableCondition")


@pytest.mark.parametrize("headers", [{"if-match": OTHER}, {"if-match": "*"}])
def test_match_on_a_missing_blob(wire, container, headers):
    path = f"/{container.container_name}/missing"
    answer = wire.request("PUT", path, headers={"x-ms-blob-type": "BlockBlob", **headers}, body=b"x")
    assert (answer.status, answer.code) == (412, "ConditionNotMet")
    assert wire.request("HEAD", path).status == 404


@pytest.mark.parametrize("headers", [{"if-none-match": "*"}, {"if-none-match": OTHER}])
def test_none_match_on_a_missing_blob(wire, container, headers):
    path = f"/{container.container_name}/missing"
    assert wire.request("PUT", path, headers={"x-ms-blob-type": "BlockBlob", **headers}, body=b"x").status == 201


@pytest.mark.parametrize("operation", READS)
def test_missing_blob_is_missing_whatever_the_condition(wire, container, operation):
    answer = wire.request(operation.upper(), f"/{container.container_name}/missing", headers={"if-none-match": OTHER})
    assert (answer.status, answer.code) == (404, "BlobNotFound")


@pytest.mark.parametrize("operation", READS)
def test_read_groups(target, operation):
    """If-Match and If-Unmodified-Since both must hold; of the other two one is enough."""
    ask = lambda **headers: target.ask(operation, {k.replace("_", "-"): v for k, v in headers.items()})[0]
    assert ask(if_match=target.etag, if_unmodified_since=PAST) == 412
    assert ask(if_match=OTHER, if_unmodified_since=future()) == 412
    assert ask(if_match=target.etag, if_unmodified_since=future()) == 200
    assert ask(if_none_match=OTHER, if_modified_since=target.modified) == 200
    assert ask(if_none_match=target.etag, if_modified_since=target.modified) == 304


def test_etag_without_quotes(target):
    assert target.ask("get", {"if-match": target.etag.strip('"')}) == (200, "")


def test_unusable_combination_on_a_write(target):
    status, code = target.ask("put", {"if-match": target.etag, "if-none-match": OTHER})
    assert (status, code) == (400, "MultipleConditionHeadersNotSupported")
    assert target.unchanged()


def test_bad_date(target):
    """An unreadable date is refused, or ignored as HTTP demands; it never makes a condition fail."""
    status, _ = target.ask("get", {"if-modified-since": "yesterday"})
    assert status in (200, 400)


def test_block_list_reads_take_no_part_in_etags(target):
    answer = target.wire.request("GET", target.path, {"comp": "blocklist", "blocklisttype": "all"})
    assert (answer.status, answer.headers["etag"]) == (200, target.etag)

"""If-* headers of reads, writes and deletions."""

import concurrent.futures
import datetime
import email.utils
import itertools

import pytest
from botocore.exceptions import ClientError

from lib import s3

OTHER = '"d41d8cd98f00b204e9800998ecf8427e"'
FAILED = (412, "PreconditionFailed")


def later(seconds):
    """A time so many seconds from now, as HTTP writes it."""
    time = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return email.utils.format_datetime(time.replace(tzinfo=datetime.timezone.utc), usegmt=True)


@pytest.fixture
def tag(client, bucket):
    """The tag of the object `k`."""
    return client.put_object(Bucket=bucket, Key="k", Body=b"content")["ETag"]


# RFC 9110, 13.2.2: If-Match, else If-Unmodified-Since; then If-None-Match, else If-Modified-Since.
MATCH = {"same": True, "other": False, "*": True, "both": True, "bare": True, None: None}
UNMODIFIED = {"after": True, "before": False, "nonsense": None, None: None}
NONE_MATCH = {"same": False, "other": True, "*": False, None: None}
MODIFIED = {"after": False, "before": True, None: None}


def tags(word, own):
    """The value of a header."""
    return {"same": own, "other": OTHER, "*": "*", "both": f"{OTHER}, {own}", "bare": own.strip('"')}[word]


def date(word):
    """The value of a header."""
    return {"after": later(100), "before": later(-100), "nonsense": "yesterday"}[word]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("match, unmodified, none_match, modified", [
    case for case in itertools.product(MATCH, UNMODIFIED, NONE_MATCH, MODIFIED)
    # All pairs, and the values of one header alone.
    if sum(value is not None for value in case) <= 2])
def test_reads_follow_the_precedence_of_http(raw, bucket, tag, method, match, unmodified, none_match, modified):
    headers = {}
    if match:
        headers["if-match"] = tags(match, tag)
    if unmodified:
        headers["if-unmodified-since"] = date(unmodified)
    if none_match:
        headers["if-none-match"] = tags(none_match, tag)
    if modified:
        headers["if-modified-since"] = date(modified)
    first = MATCH[match] if MATCH[match] is not None else UNMODIFIED[unmodified]
    second = NONE_MATCH[none_match] if NONE_MATCH[none_match] is not None else MODIFIED[modified]
    expected = 412 if first is False else 304 if second is False else 200
    answer = raw.call(method, f"/{bucket}/k", headers=headers)
    assert answer.status == expected
    if expected == 200:
        assert answer.body == (b"content" if method == "GET" else b"")
    elif expected == 304:
        assert answer.headers["etag"] == tag and answer.body == b""
    elif method == "GET":
        assert answer.code() == "PreconditionFailed"


@pytest.mark.parametrize("headers", [
    {"if-match": OTHER}, {"if-match": "*"}, {"if-none-match": OTHER}, {"if-none-match": "*"},
    {"if-modified-since": later(-100)}, {"if-unmodified-since": later(100)}], ids=str)
def test_conditions_of_a_read_of_nothing_do_not_matter(raw, bucket, headers):
    answer = raw.call("GET", f"/{bucket}/missing", headers=headers)
    assert (answer.status, answer.code()) == (404, "NoSuchKey")


def test_conditions_and_ranges(raw, bucket, tag):
    path = f"/{bucket}/k"
    assert raw.call("GET", path, headers={"if-match": tag, "range": "bytes=0-1"}).status == 206
    assert raw.call("GET", path, headers={"if-none-match": tag, "range": "bytes=0-1"}).status == 304
    assert raw.call("GET", path, headers={"if-match": OTHER, "range": "bytes=0-1"}).status == 412
    # A range with a condition may be answered with all of the object.
    for value in (tag, OTHER, later(100)):
        answer = raw.call("GET", path, headers={"if-range": value, "range": "bytes=0-1"})
        assert (answer.status, answer.body) == (200, b"content")


def put(raw, bucket, headers, key="k"):
    """Status and code of a put."""
    answer = raw.call("PUT", f"/{bucket}/{key}", headers=headers, body=b"new")
    return answer.status, answer.code()


def test_a_write_with_if_none_match_creates_only(raw, bucket, tag):
    assert put(raw, bucket, {"if-none-match": "*"}) == FAILED
    assert put(raw, bucket, {"if-none-match": tag}) == FAILED
    assert raw.call("GET", f"/{bucket}/k").body == b"content"
    assert put(raw, bucket, {"if-none-match": OTHER}) == (200, None)
    assert put(raw, bucket, {"if-none-match": "*"}, "fresh") == (200, None)
    assert put(raw, bucket, {"if-none-match": tag}, "fresher") == (200, None)


def test_a_write_with_if_match_replaces_only(raw, bucket, tag):
    assert put(raw, bucket, {"if-match": OTHER}) == FAILED
    assert put(raw, bucket, {"if-match": tag.strip('"') + "-1"}) == FAILED
    assert put(raw, bucket, {"if-match": "nonsense"}) == FAILED
    assert raw.call("GET", f"/{bucket}/k").body == b"content"
    assert put(raw, bucket, {"if-match": tag}) == (200, None)
    assert put(raw, bucket, {"if-match": tag}) == FAILED
    assert put(raw, bucket, {"if-match": "*"}) == (200, None)


@pytest.mark.parametrize("value", ["*", OTHER])
def test_a_write_with_if_match_on_nothing_is_not_found(raw, bucket, value):
    assert put(raw, bucket, {"if-match": value}) == (404, "NoSuchKey")
    assert raw.call("GET", f"/{bucket}/k").status == 404


@pytest.mark.parametrize("headers", [
    {"if-modified-since": later(-100)}, {"if-unmodified-since": later(100)}, {"if-match": "*", "if-none-match": "*"},
    {"x-amz-if-match-size": "1"}], ids=str)
def test_conditions_that_writes_do_not_have_are_refused(raw, bucket, headers):
    assert put(raw, bucket, headers) == (501, "NotImplemented")
    assert raw.call("GET", f"/{bucket}/k").status == 404


def test_a_condition_does_not_read_the_body(raw, bucket, tag):
    body = (b"x" * 65536 for _ in range(16))
    headers = raw.sign("PUT", f"/{bucket}/k", headers={"if-none-match": tag})
    assert raw.send("PUT", f"/{bucket}/k", headers, body).status == 412


@pytest.mark.parametrize("writers", [8])
def test_one_of_many_writers_creates(account, bucket, writers):
    def write(number):
        try:
            s3.client(account).put_object(Bucket=bucket, Key="race", Body=str(number).encode(), IfNoneMatch="*")
            return number
        except ClientError as error:
            assert s3.code(error) == FAILED
            return None
    with concurrent.futures.ThreadPoolExecutor(writers) as pool:
        winners = [number for number in pool.map(write, range(writers)) if number is not None]
    assert len(winners) == 1
    got = s3.client(account).get_object(Bucket=bucket, Key="race")["Body"].read()
    assert got == str(winners[0]).encode()


def test_one_of_many_writers_replaces(account, client, bucket, tag):
    def write(number):
        try:
            s3.client(account).put_object(Bucket=bucket, Key="k", Body=str(number).encode(), IfMatch=tag)
            return number
        except ClientError as error:
            assert s3.code(error) == FAILED
            return None
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        winners = [number for number in pool.map(write, range(8)) if number is not None]
    assert len(winners) == 1
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == str(winners[0]).encode()


def delete(raw, bucket, headers, key="k"):
    """Status and code of a deletion."""
    answer = raw.call("DELETE", f"/{bucket}/{key}", headers=headers)
    return answer.status, answer.code()


def test_a_deletion_with_a_tag(raw, bucket, tag):
    assert delete(raw, bucket, {"if-match": OTHER}) == FAILED
    assert raw.call("HEAD", f"/{bucket}/k").status == 200
    assert delete(raw, bucket, {"if-match": tag}) == (204, None)
    assert delete(raw, bucket, {"if-match": tag}) == (404, "NoSuchKey")
    assert delete(raw, bucket, {"if-match": "*"}) == (404, "NoSuchKey")
    assert delete(raw, bucket, {}) == (204, None)


def test_a_deletion_with_a_size_or_a_time(client, raw, bucket, tag):
    modified = client.head_object(Bucket=bucket, Key="k")["LastModified"]
    http = email.utils.format_datetime(modified.astimezone(datetime.timezone.utc), usegmt=True)
    size, time = "x-amz-if-match-size", "x-amz-if-match-last-modified-time"
    assert delete(raw, bucket, {size: "6"}) == FAILED
    assert delete(raw, bucket, {time: later(-100)}) == FAILED
    assert delete(raw, bucket, {size: "7", time: later(-100)}) == FAILED
    assert delete(raw, bucket, {size: "6", time: http}) == FAILED
    assert delete(raw, bucket, {size: "7", time: http, "if-match": OTHER}) == FAILED
    assert raw.call("HEAD", f"/{bucket}/k").status == 200
    assert delete(raw, bucket, {size: "7", time: http, "if-match": tag}) == (204, None)
    assert delete(raw, bucket, {size: "7", time: http}) == (204, None)


@pytest.mark.parametrize("headers, expected", [
    ({"if-none-match": "*"}, (501, "NotImplemented")), ({"if-none-match": OTHER}, (501, "NotImplemented")),
    ({"if-modified-since": later(-100)}, (501, "NotImplemented")),
    ({"if-unmodified-since": later(100)}, (501, "NotImplemented")),
    ({"x-amz-if-match-size": "x"}, (400, "InvalidArgument")),
    ({"x-amz-if-match-size": "-1"}, (400, "InvalidArgument")),
    ({"x-amz-if-match-last-modified-time": "x"}, (400, "InvalidArgument"))], ids=str)
def test_conditions_that_deletions_do_not_have_are_refused(raw, bucket, tag, headers, expected):
    assert delete(raw, bucket, headers) == expected
    assert raw.call("HEAD", f"/{bucket}/k").headers["etag"] == tag


def test_each_protocol_compares_its_own_tag(client, service, raw, bucket, tag):
    blob = service.get_blob_client(bucket, "k")
    theirs = blob.get_blob_properties().etag
    assert theirs != tag
    assert put(raw, bucket, {"if-match": theirs}) == FAILED
    blob.set_blob_metadata({"a": "1"})
    # The content is the same, so S3's tag is.
    assert raw.call("GET", f"/{bucket}/k", headers={"if-match": tag}).status == 200
    assert client.head_object(Bucket=bucket, Key="k")["ETag"] == tag


@pytest.mark.parametrize("method, header", [
    ("DELETE", "if-match"), ("PUT", "if-match"), ("PUT", "if-none-match"), ("DELETE", "x-amz-if-match-size"),
    ("DELETE", "x-amz-if-match-last-modified-time"), ("DELETE", "x-amz-expected-bucket-owner"),
    ("GET", "if-none-match"),
])
@pytest.mark.parametrize("value", ["", ","])
def test_a_condition_without_a_value_is_refused(raw, client, bucket, tag, method, header, value):
    answer = raw.call(method, f"/{bucket}/k", headers={header: value}, body=b"new" if method == "PUT" else b"")
    assert answer.status == 400, (answer.status, answer.body)
    assert client.head_object(Bucket=bucket, Key="k")["ETag"] == tag

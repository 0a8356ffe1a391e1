"""Rules of names, block ids, cross-origin requests, tags, batches and checksums where emulators differ."""

import base64
import http.client
import re
import time
import urllib.parse
import uuid

import pytest
from azure.storage.blob import BlobLeaseClient, CorsRule
from conftest import put_many, refused
from lib import accounts
from lib.wire import VERSION, Wire
from test_batch import batch, fault
from test_cors import preflight
from test_recorded import BLOCK_BLOB, base64_md5, path_of, signed_url

SHORT, LONG = (base64.b64encode(name).decode() for name in (b"aaaa", b"aaaaaaaaa"))


def part(account, method, path, query=(), **headers):
    """A part of a batch, signed for the account."""
    signature = dict(urllib.parse.parse_qsl(accounts.sas(account)))
    target = f"/{account.name}{path}?{urllib.parse.urlencode({**dict(query), **signature})}"
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"--b\r\nContent-Type: application/http\r\n\r\n{method} {target} HTTP/1.1\r\n{lines}\r\n\r\n"


def answers(wire, container, *parts):
    """Status and code of each part of a batch."""
    body = ("".join(parts) + "--b--\r\n").encode()
    answer = batch(wire, container, "multipart/mixed; boundary=b", body)
    assert answer.status == 202, answer
    heads = [text.partition("\r\n\r\n")[0] for text in answer.body.decode().split("HTTP/1.1 ")[1:]]
    codes = [re.search(r"x-ms-error-code: (\w+)", head) for head in heads]
    return [(int(head[:3]), code and code[1]) for head, code in zip(heads, codes)]


def test_blocks_from_urls_obey_the_length_of_ids_too(account, container, blob, wire):
    source = container.get_blob_client("source")
    source.upload_blob(b"15 bytes of it.")
    blob.stage_block("old", b"old")
    blob.commit_block_list(["old"])
    stage = lambda name: wire.request(  # noqa: E731
        "PUT", path_of(blob), {"comp": "block", "blockid": name}, {"x-ms-copy-source": signed_url(account, source)})
    assert stage(LONG).status == 201, "the committed block has a shorter id"
    other = stage(SHORT)
    assert (other.status, other.code) == (400, "InvalidBlobOrBlock")
    listed = wire.request("GET", path_of(blob), {"comp": "blocklist", "blocklisttype": "all"}).body
    assert b"<Name>b2xk</Name><Size>3</Size>" in listed and f"<Name>{LONG}</Name><Size>15</Size>".encode() in listed


def test_names_with_backslashes_in_batches_and_lists(account, container, wire):
    put_many(container, ["a/b/c", "a/b/d", "kept"])
    path = f"/{container.container_name}"
    assert answers(wire, container, part(account, "DELETE", f"{path}/a%5Cb%5Cc")) == [(202, None)]
    assert [blob.name for blob in container.list_blobs()] == ["a/b/d", "kept"]
    # Parameters of lists are texts, not names.
    assert list(container.list_blobs(name_starts_with="a\\b")) == []
    assert [item.name for item in container.walk_blobs(delimiter="\\")] == ["a/b/d", "kept"]
    assert [blob.name for blob in container.list_blobs(start_from="a\\b")] == ["kept"], "a backslash is after a slash"


def test_the_limit_of_segments_counts_backslashes(container, wire):
    for count, status in ((254, 201), (255, 400)):
        name = "\\".join("d" * count)
        answer = wire.request("PUT", f"/{container.container_name}/{name}", None, BLOCK_BLOB, b"x")
        assert (answer.status, answer.code) == (status, "" if status == 201 else "OutOfRangeInput"), count
    assert [blob.name for blob in container.list_blobs()] == ["/".join("d" * 254)]


@pytest.fixture(name="subdomains")
def _subdomains(service):
    """Rules whose origins name all subdomains."""
    service.set_service_properties(cors=[
        CorsRule(["http://*.contoso.com", "https://Exact.example"], ["GET", "PUT"], allowed_headers=["x-ms-*"]),
        CorsRule(["*.bare.example"], ["GET"]), CorsRule(["https://a.*.example", "https://*"], ["GET"])])
    yield
    service.set_service_properties(cors=[])


def test_an_origin_may_name_all_subdomains(wire, blob, subdomains):
    blob.upload_blob(b"x")
    for origin, fits in (
            ("http://a.contoso.com", True), ("http://a.b.contoso.com", True), ("http://A.Contoso.com", True),
            ("http://contoso.com", False), ("http://notcontoso.com", False), ("https://a.contoso.com", False),
            ("http://a.contoso.com:81", False), ("http://a.contoso.com.evil.example", False),
            ("https://Exact.example", True), ("https://exact.example", False), ("https://a.bare.example", True),
            ("https://bare.example", False), ("https://a.b.example", False), ("https://any.example", False)):
        asked = preflight(wire, origin, "GET", "")
        assert (asked.status, asked.code) == ((200, "") if fits else (403, "CorsPreflightFailure")), origin
        actual = wire.request("GET", path_of(blob), headers={"origin": origin})
        for answer in (asked, actual):
            allowed = answer.headers.get("access-control-allow-origin")
            assert allowed == (origin if fits else None), origin
            if fits:
                assert answer.headers["access-control-allow-credentials"] == "true"
                assert answer.headers["vary"] == "Origin"


@pytest.mark.parametrize("headers", [{"origin": "https://a.example"}, {"access-control-request-method": "GET"}])
def test_a_preflight_needs_origin_and_method(wire, headers):
    answer = wire.request("OPTIONS", "/any", headers=headers, sign=False)
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    assert b"A required CORS header is not present." in answer.body


def test_a_blob_made_without_a_type_has_the_default(account, container, wire):
    name = container.container_name
    source = container.get_blob_client("source")
    source.upload_blob(b"x")
    wire.request("PUT", f"/{name}/list", {"comp": "block", "blockid": SHORT}, body=b"x")
    blocks = f"<BlockList><Latest>{SHORT}</Latest></BlockList>".encode()
    for made, query, headers, body in (
            ("block", None, BLOCK_BLOB, b"x"), ("append", None, {"x-ms-blob-type": "AppendBlob"}, b""),
            ("page", None, {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}, b""),
            ("list", {"comp": "blocklist"}, {}, blocks),
            ("url", None, {**BLOCK_BLOB, "x-ms-copy-source": signed_url(account, source)}, b"")):
        assert wire.request("PUT", f"/{name}/{made}", query, headers, body).status == 201, made
        assert wire.request("HEAD", f"/{name}/{made}").headers["content-type"] == "application/octet-stream", made
        assert wire.request("PUT", f"/{name}/{made}", {"comp": "properties"}).status == 200
        assert "content-type" not in wire.request("HEAD", f"/{name}/{made}").headers, made


def test_set_blob_properties_removes_every_property(blob, wire):
    given = {"content-encoding": "gzip", "content-language": "de", "cache-control": "no-cache",
             "content-disposition": "inline", "content-type": "text/plain", "content-md5": base64_md5(b"x")}
    blob.upload_blob(b"x")
    query = {"comp": "properties"}
    assert wire.request("PUT", path_of(blob), query, {f"x-ms-blob-{name}": value for name, value in given.items()}).status == 200
    assert {name: wire.request("HEAD", path_of(blob)).headers[name] for name in given} == given
    assert wire.request("PUT", path_of(blob), query).status == 200
    for method in ("HEAD", "GET"):
        assert not given.keys() & wire.request(method, path_of(blob)).headers.keys(), method


@pytest.mark.parametrize("expression, message", [
    ("a is '1'", "Error parsing query at or near character position 3: unexpected 'is'"),
    ("a = '1' b = '2'", "Error parsing query at or near character position 9: unexpected 'b'"),
    ("\"\" = '1'", "Error parsing query at or near character position 1: tag must be between 1 and 128 characters in length"),
    (f"\"{'k' * 129}\" = '1'",
     "Error parsing query at or near character position 1: tag must be between 1 and 128 characters in length"),
    (f"k = '{'v' * 257}'",
     "Error parsing query at or near character position 1: tag value must be between 0 and 256 characters in length"),
    ("\"a!b\" = '1'", "'!' not permitted in tag name or value"),
    ("a = 'x#y'", "'#' not permitted in tag name or value"),
    ("\"Rank\" > '10' AND \"Rank\" >= '15'", "Error parsing query: "),
    ("\"Rank\" < '10' AND \"Rank\" <= '15'", "Error parsing query: "),
])
def test_refused_searches_quote_what_was_asked(wire, container, expression, message):
    for path, query in (("/", {}), (f"/{container.container_name}", {"restype": "container"})):
        answer = wire.request("GET", path, {**query, "comp": "blobs", "where": expression})
        assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")
        text = answer.body.decode()
        for name, expected in (("Message", message), ("QueryParameterName", "where"), ("QueryParameterValue", expression)):
            found = re.search(f"<{name}>(.*?)</{name}>", text, re.DOTALL)[1]
            found = found.replace("&gt;", ">").replace("&lt;", "<").replace("&quot;", '"').replace("&apos;", "'")
            assert found.startswith(expected) or name == "Message" and expected in found, text


def test_searches_within_limits(container, wire):
    tags = {f"k{n}": "0100" for n in range(10)}
    container.upload_blob("b", b"x", tags=tags)
    every = " AND ".join(f"{name} >= '010' AND {name} < '02'" for name in tags)
    assert [blob.name for blob in container.find_blobs_by_tags(every)] == ["b"], "a range is one tag, ten are allowed"
    name = container.container_name
    found = wire.request("GET", "/", {"comp": "blobs", "where": f"@container = '{name}' AND {every}"})
    assert found.status == 200 and b"<Name>b</Name>" in found.body, "@container is none of the ten"
    query = {"restype": "container", "comp": "blobs", "where": f"@container = '{name}' AND k0 = '0100'"}
    twice = wire.request("GET", f"/{name}", query)
    assert (twice.status, twice.code) == (400, "InvalidQueryParameterValue")
    assert b"Error parsing query: Cannot have container in both uri and query" in twice.body


def test_conditions_by_tags_that_a_blob_does_not_have(blob, wire):
    blob.upload_blob(b"x", tags={"k": "v"})
    ask = lambda expression: wire.request("HEAD", path_of(blob), headers={"x-ms-if-tags": expression})  # noqa: E731
    assert ask("k <> 'w'").status == 200
    for expression in ("other <> 'w'", f"\"{'k' * 140}\" = 'v'", f"k = '{'v' * 270}'"):
        assert (ask(expression).status, ask(expression).code) == (412, "ConditionNotMet"), expression[:20]
    many = " OR ".join(["k = 'v'"] * 800)
    assert len(many) > 8 << 10 and ask(many).status == 200
    blob.stage_block(SHORT, b"y")
    blob.commit_block_list([SHORT])
    assert (ask("k <> 'w'").status, ask("k <> 'w'").code) == (412, "ConditionNotMet"), "the list cleared the tags"


@pytest.mark.parametrize("expression", ["\"a!b\" = '1'", "k = 'x#y'", "@container = 'x'", "k is 'v'"])
def test_malformed_conditions_by_tags(blob, wire, expression):
    blob.upload_blob(b"x", tags={"k": "v"})
    answer = wire.request("GET", path_of(blob), headers={"x-ms-if-tags": expression})
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    assert b"<HeaderName>x-ms-if-tags</HeaderName>" in answer.body and b"<HeaderValue>" in answer.body


def test_set_blob_tier_by_tags_in_a_batch(account, container, wire):
    for name in ("a", "b"):
        container.upload_blob(name, b"x", tags={"of": name})
    tiers = [part(account, "PUT", f"/{container.container_name}/{name}", {"comp": "tier"}, x_ms_access_tier="Cool",
                  x_ms_if_tags="of = 'a'", content_length=0) for name in ("a", "b")]
    assert answers(wire, container, *tiers) == [(200, None), (412, "ConditionNotMet")]
    assert [blob.blob_tier for blob in container.list_blobs()] == ["Cool", "Hot"]


def test_the_part_of_a_wrong_batch_has_the_headers_of_an_answer(account, container):
    mark, wire = str(uuid.uuid4()), Wire(account)
    for path, query in (("/", {}), (f"/{container.container_name}", {"restype": "container"})):
        answer = wire.request("POST", path, {**query, "comp": "batch"}, {
            "content-type": "multipart/mixed", "x-ms-client-request-id": mark, "x-ms-version": "2024-08-04"}, b"x")
        assert fault(answer)[1] == "InvalidHeaderValue"
        head, _, document = answer.body.decode().partition("HTTP/1.1 ")[2].partition("\r\n\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:])
        assert uuid.UUID(headers["x-ms-request-id"])
        assert (headers["x-ms-version"], headers["x-ms-client-request-id"]) == ("2024-08-04", mark)
        document = document.partition("\r\n--batchresponse_")[0]
        assert int(headers["content-length"]) == len(document) and document.endswith("</Error>")
        assert headers["server"] and headers["content-type"] == "application/xml"
    unsigned = wire.request("POST", "/", {"comp": "batch"}, {"content-type": "multipart/mixed"}, b"x", sign=False)
    assert (unsigned.status, unsigned.code) == (401, "NoAuthenticationInformation"), "nothing is revealed to anonymous callers"


def test_a_property_md5_of_any_length_where_it_is_not_compared(container, wire):
    name, four = container.container_name, "AAECAw=="
    own = {"x-ms-blob-content-md5": four}
    wire.request("PUT", f"/{name}/list", {"comp": "block", "blockid": SHORT}, body=b"x")
    blocks = f"<BlockList><Latest>{SHORT}</Latest></BlockList>".encode()
    for made, query, headers, body in (
            ("append", None, {"x-ms-blob-type": "AppendBlob"}, b""),
            ("page", None, {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}, b""),
            ("list", {"comp": "blocklist"}, {}, blocks)):
        assert wire.request("PUT", f"/{name}/{made}", query, {**headers, **own}, body).status == 201, made
        assert wire.request("HEAD", f"/{name}/{made}").headers["content-md5"] == four, made
    container.upload_blob("whole", b"x")
    assert wire.request("PUT", f"/{name}/whole", {"comp": "properties"}, own).status == 200
    assert wire.request("GET", f"/{name}/whole").headers["content-md5"] == four
    for ignored in (four, base64_md5(b"other"), "no base64!"):
        staged = wire.request("PUT", f"/{name}/b", {"comp": "block", "blockid": SHORT}, {"x-ms-blob-content-md5": ignored}, b"x")
        assert staged.status == 201, "Put Block has no such header"


def sent(account, blob, *lines):
    """Status and code of a Get Blob with header lines that may repeat a name."""
    connection = http.client.HTTPConnection(account.address)
    url = urllib.parse.urlsplit(signed_url(account, blob))
    connection.putrequest("GET", f"{url.path}?{url.query}")
    for name, value in (("x-ms-version", VERSION), *lines):
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.getheader("x-ms-error-code")


def test_any_among_several_values_of_a_read(account, blob):
    blob.upload_blob(b"x")
    etag = blob.get_blob_properties().etag
    assert sent(account, blob, ("if-match", "*"), ("if-match", '"0x1"')) == (200, None)
    assert sent(account, blob, ("if-match", '"0x1"'), ("if-match", "*")) == (200, None)
    assert sent(account, blob, ("if-match", '"0x1", "0x2"')) == (412, "ConditionNotMet")
    assert sent(account, blob, ("if-match", f'"0x1", {etag}')) == (200, None)
    alone = sent(account, blob, ("if-none-match", "*"))
    assert alone == (400, "UnsatisfiableCondition")
    assert sent(account, blob, ("if-none-match", '*, "0x1"')) == alone
    assert sent(account, blob, ("if-none-match", '"0x1"'), ("if-none-match", "*")) == alone


def test_only_names_of_containers_have_the_text_of_their_length(container, wire):
    long = wire.request("PUT", f"/{container.container_name}/{'b' * 1025}", None, BLOCK_BLOB, b"x")
    assert (long.status, long.code) == (400, "OutOfRangeInput")
    assert b"The specified resource name length" not in long.body
    for name in ("abc", "a" * 63):
        assert wire.request("HEAD", f"/{name}", {"restype": "container"}).status == 404


def test_every_change_of_a_sealed_blob_says_so(account, container, blob, wire):
    source = container.get_blob_client("source")
    source.upload_blob(b"x")
    blob.create_append_blob()
    blob.seal_append_blob()
    for headers, body in (({}, b"x"), ({"x-ms-copy-source": signed_url(account, source)}, b"")):
        answer = wire.request("PUT", path_of(blob), {"comp": "appendblock"}, headers, body)
        assert (answer.status, answer.code) == (409, "BlobIsSealed")
        assert b"<Message>The blob is sealed and its contents cannot be modified." in answer.body


def test_a_lease_of_every_state_beside_create_only(blob):
    blob.upload_blob(b"1")
    lease = blob.acquire_lease(-1)
    assert lease.break_lease(lease_break_period=60) in (59, 60)
    refused(lambda: blob.upload_blob(b"2", overwrite=False), 412, "LeaseIdMissing")
    blob.upload_blob(b"2", overwrite=False, lease=lease)
    assert blob.download_blob().readall() == b"2", "the holder writes while the lease is breaking"
    assert lease.break_lease(lease_break_period=0) == 0
    refused(lambda: blob.upload_blob(b"3", overwrite=False, lease=lease), 412, "LeaseLost")
    refused(lambda: blob.upload_blob(b"3", overwrite=False, lease=BlobLeaseClient(blob, str(uuid.uuid4()))), 412, "LeaseLost")
    refused(lambda: blob.upload_blob(b"3", overwrite=False), 409, "BlobAlreadyExists")


def test_put_blob_from_url_by_the_holder_of_a_lease(account, container, blob, wire):
    source = container.get_blob_client("source")
    source.upload_blob(b"new")
    blob.upload_blob(b"old")
    lease = blob.acquire_lease(-1)
    put = lambda held: wire.request("PUT", path_of(blob), None, {  # noqa: E731
        **BLOCK_BLOB, "x-ms-copy-source": signed_url(account, source), "if-none-match": "*", **held})
    assert (put({}).status, put({}).code) == (412, "LeaseIdMissing")
    other = put({"x-ms-lease-id": str(uuid.uuid4())})
    assert (other.status, other.code) == (412, "LeaseIdMismatchWithBlobOperation")
    assert blob.download_blob().readall() == b"old"
    assert put({"x-ms-lease-id": lease.id}).status == 201
    assert blob.download_blob().readall() == b"new"
    lease.release()
    assert (put({}).status, put({}).code) == (409, "BlobAlreadyExists")


def test_a_lease_breaks_at_its_exact_end(blob):
    """Answers have whole seconds, rounded down, and the lease is there until its last one has passed."""
    blob.upload_blob(b"x")
    period, lease, answers = 3, blob.acquire_lease(-1), set()
    before = time.monotonic()
    assert lease.break_lease(lease_break_period=period) == period
    latest = time.monotonic() + period
    while blob.get_blob_properties().lease.state == "breaking":
        asked = time.monotonic()
        left = lease.break_lease()
        assert left <= max(latest - asked, 0), "rounded down"
        answers.add(left)
        time.sleep(0.05)
    assert time.monotonic() - before >= period and answers

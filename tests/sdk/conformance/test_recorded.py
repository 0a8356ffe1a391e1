"""Answers that the service was seen to give, or that its reference documents, where emulators differ."""

import base64
import datetime
import email.utils
import hashlib
import hmac
import time
import urllib.parse
import uuid

import pytest
from azure.storage.blob import AccessPolicy, ContentSettings, StandardBlobTier, generate_blob_sas
from conftest import refused
from lib import s3
from lib.wire import Wire, signature

OLD, NEW = {"x-ms-version": "2021-08-06"}, {"x-ms-version": "2026-10-06"}
BLOCK_BLOB = {"x-ms-blob-type": "BlockBlob"}
NOW = datetime.datetime.now(datetime.timezone.utc)


def path_of(blob):
    """Its path below the account."""
    return f"/{blob.container_name}/{blob.blob_name}"


def base64_md5(data):
    """The value of Content-MD5."""
    return base64.b64encode(hashlib.md5(data).digest()).decode()


def test_a_backslash_is_a_slash(account, container, wire):
    name = container.container_name
    assert wire.request("PUT", f"/{name}/a\\b\\c", None, BLOCK_BLOB, b"x").status == 201
    assert [blob.name for blob in container.list_blobs(name_starts_with="a/b")] == ["a/b/c"]
    for spelled in ("a\\b\\c", "a/b/c", "a/b\\c"):
        assert wire.request("GET", f"/{name}/{spelled}").body == b"x", spelled
    sas = generate_blob_sas(account.name, name, "a/b/c", account_key=account.key, permission="r",
                            expiry=NOW + datetime.timedelta(hours=1))
    reader = Wire(account)
    query = dict(urllib.parse.parse_qsl(sas))
    assert reader.request("GET", f"/{name}/a\\b\\c", query, sign=False).body == b"x", "signed with slashes"
    copy = container.get_blob_client("copy")
    copy.start_copy_from_url(f"{container.url}/a%5Cb%5Cc")
    assert copy.download_blob().readall() == b"x"
    assert wire.request("DELETE", f"/{name}/a\\b/c").status == 202


def test_a_stored_backslash_stays_reachable(account, container, wire):
    """S3 makes such keys. A URL with a backslash means them where the name with slashes is not there."""
    bucket, name = s3.client(account), container.container_name
    bucket.put_object(Bucket=name, Key="a\\b", Body=b"stored")
    assert wire.request("GET", f"/{name}/a\\b").body == b"stored"
    assert [blob.name for blob in container.list_blobs()] == ["a\\b"]
    reader = Wire(account)
    for signed_name, status in (("a\\b", 200), ("a/b", 404)):
        sas = generate_blob_sas(account.name, name, signed_name, account_key=account.key, permission="r",
                                expiry=NOW + datetime.timedelta(hours=1))
        query = dict(urllib.parse.parse_qsl(sas))
        assert reader.request("GET", f"/{name}/a\\b", query, sign=False).status == status, "good for the name that it signs only"
    forged = reader.request("GET", f"/{name}/a\\b", {**query, "sig": "A" * 43 + "="}, sign=False)
    assert forged.status == 403 and b"a\\b" not in forged.body.partition(b"String to sign")[2], "strangers do not learn of it"
    container.upload_blob("a/b", b"slash")
    assert wire.request("GET", f"/{name}/a\\b").body == b"slash"
    container.delete_blob("a/b")
    assert wire.request("DELETE", f"/{name}/a\\b").status == 202
    assert [blob.name for blob in container.list_blobs()] == []


def test_set_blob_properties_takes_away_what_it_does_not_name(container, blob, wire):
    blob.upload_blob(b"x", content_settings=ContentSettings(content_type="text/plain", content_language="de"))
    blob.set_http_headers(ContentSettings(cache_control="no-cache"))
    for method in ("HEAD", "GET"):
        headers = wire.request(method, path_of(blob)).headers
        assert "content-type" not in headers and "content-language" not in headers
        assert headers["cache-control"] == "no-cache"
    listed = wire.request("GET", f"/{container.container_name}", {"restype": "container", "comp": "list"}).body
    assert b"<Content-Type/>" in listed or b"<Content-Type />" in listed
    blob.upload_blob(b"y", overwrite=True)
    assert wire.request("HEAD", path_of(blob)).headers["content-type"] == "application/octet-stream"


def test_a_set_md5_has_any_length(blob, wire):
    blob.upload_blob(b"x")
    set_md5 = {"x-ms-blob-content-md5": "TURBd01EQXdNREE9"}
    assert wire.request("PUT", path_of(blob), {"comp": "properties"}, set_md5).status == 200
    assert wire.request("GET", path_of(blob)).headers["content-md5"] == "TURBd01EQXdNREE9"
    part = wire.request("GET", path_of(blob), headers={"x-ms-range": "bytes=0-0"})
    assert (part.status, part.headers["x-ms-blob-content-md5"]) == (206, "TURBd01EQXdNREE9")
    broken = wire.request("PUT", path_of(blob), {"comp": "properties"}, {"x-ms-blob-content-md5": "no base64!"})
    assert (broken.status, broken.code) == (400, "InvalidMd5")
    short = wire.request("PUT", path_of(blob), headers={**BLOCK_BLOB, "x-ms-blob-content-md5": "AAAA"}, body=b"x")
    assert (short.status, short.code) == (400, "InvalidMd5"), "Put Blob compares it"


def test_the_property_md5_precedes_content_md5(blob, wire):
    right, wrong = base64_md5(b"x"), base64_md5(b"other")
    put = lambda own, plain: wire.request(  # noqa: E731
        "PUT", path_of(blob), headers={**BLOCK_BLOB, "x-ms-blob-content-md5": own, "content-md5": plain}, body=b"x")
    made = put(right, wrong)
    assert (made.status, made.headers["content-md5"]) == (201, right)
    assert (put(wrong, right).status, put(wrong, right).code) == (400, "Md5Mismatch")


def test_checksums_of_answers(account, container, wire):
    name, md5 = container.container_name, {"content-md5": base64_md5(b"x")}
    shown = lambda answer: ("content-md5" in answer.headers, "x-ms-content-crc64" in answer.headers)  # noqa: E731
    block = {"comp": "block", "blockid": "AAAA"}
    for version, with_md5 in ((OLD, (True, False)), (NEW, (True, True))):
        assert shown(wire.request("PUT", f"/{name}/b", block, {**version, **md5}, b"x")) == with_md5
        assert shown(wire.request("PUT", f"/{name}/b", block, version, b"x")) == (False, True)
        assert shown(wire.request("PUT", f"/{name}/b", None, {**version, **BLOCK_BLOB}, b"x")) == (True, True)
    empty = wire.request("PUT", f"/{name}/empty", None, BLOCK_BLOB)
    assert empty.headers["x-ms-content-crc64"] == "AAAAAAAAAAA="
    source = signed_url(account, container.get_blob_client("b"))
    from_url = {**BLOCK_BLOB, "x-ms-copy-source": source}
    assert shown(wire.request("PUT", f"/{name}/copy", None, from_url)) == (False, True)
    with_source_md5 = {**from_url, "x-ms-source-content-md5": base64_md5(b"x")}
    assert shown(wire.request("PUT", f"/{name}/copy", None, {**OLD, **with_source_md5})) == (True, True)


def test_the_holder_of_a_lease_may_replace_what_must_not_exist(blob):
    blob.upload_blob(b"1")
    lease = blob.acquire_lease(-1)
    refused(lambda: blob.upload_blob(b"2", overwrite=False), 412, "LeaseIdMissing")
    blob.upload_blob(b"2", overwrite=False, lease=lease)
    assert blob.download_blob().readall() == b"2"
    other = str(uuid.uuid4())
    refused(lambda: blob.upload_blob(b"3", overwrite=False, lease=other), 412, "LeaseIdMismatchWithBlobOperation")
    lease.release()
    refused(lambda: blob.upload_blob(b"3", overwrite=False), 409, "BlobAlreadyExists")


def test_a_signature_that_may_only_create_replaces_nothing_under_a_lease(account, blob):
    blob.upload_blob(b"1")
    lease = blob.acquire_lease(-1)
    sas = generate_blob_sas(account.name, blob.container_name, blob.blob_name, account_key=account.key, permission="c",
                            expiry=NOW + datetime.timedelta(hours=1))
    query = dict(urllib.parse.parse_qsl(sas))
    headers = {**BLOCK_BLOB, "x-ms-lease-id": lease.id, "if-none-match": "*"}
    answer = Wire(account).request("PUT", path_of(blob), query, headers, b"2", sign=False)
    assert (answer.status, answer.code) == (409, "BlobAlreadyExists")
    assert blob.download_blob().readall() == b"1"


def test_the_seconds_of_a_break_are_rounded_down(blob):
    blob.upload_blob(b"x")
    lease = blob.acquire_lease(15)
    assert lease.break_lease() in (13, 14)


def test_any_among_tags_matches_a_read(blob, wire):
    blob.upload_blob(b"x")
    assert wire.request("GET", path_of(blob), headers={"if-match": '*, "0x1"'}).status == 200
    several = wire.request("PUT", path_of(blob), {"comp": "metadata"}, {"if-match": '*, "0x1"'})
    assert (several.status, several.code) == (400, "MultipleConditionHeadersNotSupported")


def test_delete_by_the_time_of_the_tier(blob, wire):
    blob.upload_blob(b"x")
    dates = [(NOW + datetime.timedelta(hours=hours)).strftime("%a, %d %b %Y %H:%M:%S GMT") for hours in (-1, 1)]
    since, until = "x-ms-access-tier-if-modified-since", "x-ms-access-tier-if-unmodified-since"
    delete = lambda headers: wire.request("DELETE", path_of(blob), headers=headers)  # noqa: E731
    assert (delete({since: dates[0]}).status, delete({since: dates[0]}).code) == (412, "ConditionNotMet"), "it was never set"
    blob.set_standard_blob_tier("Cool")
    for unmet in ({since: dates[1]}, {until: dates[0]}):
        assert (delete(unmet).status, delete(unmet).code) == (412, "ConditionNotMet"), unmet
    both = delete({since: dates[0], until: dates[1]})
    assert (both.status, both.code) == (400, "MultipleConditionHeadersNotSupported")
    assert delete({since: dates[0]}).status == 202


def test_conditions_of_tags_have_names_of_their_own(blob, wire):
    etag = blob.upload_blob(b"x", tags={"k": "v"})["etag"]
    ask = lambda method, headers, body=b"": wire.request(  # noqa: E731
        method, path_of(blob), {"comp": "tags"}, headers, body)
    document = b"<Tags><TagSet><Tag><Key>k</Key><Value>w</Value></Tag></TagSet></Tags>"
    unmet = {"x-ms-blob-if-match": '"0x1"'}
    assert (ask("GET", unmet).status, ask("GET", unmet).code) == (412, "ConditionNotMet")
    assert (ask("PUT", unmet, document).status, ask("PUT", unmet, document).code) == (412, "ConditionNotMet")
    assert ask("GET", {"x-ms-blob-if-match": etag}).status == 200
    later = (NOW + datetime.timedelta(hours=1)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    assert ask("PUT", {"x-ms-blob-if-modified-since": later}, document).status == 412
    assert ask("PUT", {"x-ms-blob-if-match": etag}, document).status == 204
    assert blob.get_blob_tags() == {"k": "w"}


def test_set_blob_tier_by_tags(blob, wire):
    blob.upload_blob(b"x", tags={"k": "v"})
    set_tier = lambda headers: wire.request(  # noqa: E731
        "PUT", path_of(blob), {"comp": "tier"}, {"x-ms-access-tier": "Cool", **headers})
    unmet = set_tier({"x-ms-if-tags": "k = 'w'"})
    assert (unmet.status, unmet.code) == (412, "ConditionNotMet")
    missing = set_tier({"x-ms-if-tags": "other <> 'w'"})
    assert (missing.status, missing.code) == (412, "ConditionNotMet"), "a missing tag satisfies no comparison"
    assert set_tier({"x-ms-if-tags": "k = 'v'"}).status == 200
    dated = set_tier({"if-match": "*"})
    assert (dated.status, dated.code) == (400, "ConditionHeadersNotSupported")


@pytest.mark.parametrize("expression, message", [
    ("a = '1' OR b = '2'", "Error parsing query at or near character position 9: unexpected or"),
    ("a <> '1'", "Error parsing query at or near character position 1: unexpected <>"),
    ("@x = '1'", "Error parsing query at or near character position 1: unsupported parameter '@x'"),
    (" AND ".join(f"k{n} = ''" for n in range(11)), "Error parsing query: there can be at most 10 unique tags in a query"),
])
def test_refused_searches_say_why(wire, expression, message):
    answer = wire.request("GET", "/", {"comp": "blobs", "where": expression})
    assert (answer.status, answer.code) == (400, "InvalidQueryParameterValue")
    text = answer.body.decode()
    for expected in (message, "<QueryParameterName>where</QueryParameterName>"):
        assert expected.replace("<>", "&lt;&gt;") in text or expected in text, text


def signed_url(account, blob, permission="r"):
    """Its URL with a signature."""
    sas = generate_blob_sas(account.name, blob.container_name, blob.blob_name, account_key=account.key,
                            permission=permission, expiry=NOW + datetime.timedelta(hours=1))
    return f"{blob.url}?{sas}"


def test_only_copy_blob_trusts_its_own_account(container, wire):
    """The other operations need a source that is public or signed, also when the request is signed with the account's key."""
    source = container.get_blob_client("source")
    source.upload_blob(b"x")
    container.get_blob_client("log").create_append_blob()
    container.get_blob_client("disk").create_page_blob(512)
    name, url = container.container_name, {"x-ms-copy-source": source.url}
    for target, query, headers in (
            ("put", None, BLOCK_BLOB),
            ("block", {"comp": "block", "blockid": "AAAA"}, {}),
            ("log", {"comp": "appendblock"}, {}),
            ("disk", {"comp": "page"}, {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511", "x-ms-source-range": "bytes=0-511"}),
            ("copy", None, {"x-ms-requires-sync": "true"})):
        answer = wire.request("PUT", f"/{name}/{target}", query, {**headers, **url})
        assert (answer.status, answer.code) == (401, "CannotVerifyCopySource"), target
        assert answer.headers["x-ms-copy-source-status-code"] == "401"
        assert answer.headers["x-ms-copy-source-error-code"] == "NoAuthenticationInformation"
        text = answer.body.decode()
        assert "<CopySourceStatusCode>401<" in text and "<CopySourceErrorCode>NoAuthenticationInformation<" in text
        assert "<CopySourceErrorMessage>Server failed to authenticate the request." in text
    assert wire.request("PUT", f"/{name}/copy", None, url).status == 202


def test_source_conditions(account, container, wire):
    source = container.get_blob_client("source")
    source.upload_blob(b"x", tags={"k": "v"})
    container.get_blob_client("log").create_append_blob()
    name = container.container_name
    later = (NOW + datetime.timedelta(hours=1)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    earlier = (NOW - datetime.timedelta(hours=1)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    etag = source.get_blob_properties().etag
    url = {"x-ms-copy-source": signed_url(account, source, "rt")}
    cannot, source_unmet = "CannotVerifyCopySource", (412, "SourceConditionNotMet")
    conditions = [("if-match", '"0x1"'), ("if-none-match", etag), ("if-modified-since", later), ("if-unmodified-since", earlier)]
    wanted = {
        "append": [(412, cannot), (304, cannot), (304, cannot), (412, cannot)],
        "block": [(412, cannot), (304, cannot), (304, cannot), (412, cannot)],
        "put": [source_unmet, (304, cannot), (304, cannot), (412, cannot)],
        "copy": [source_unmet] * 4,
    }
    calls = {
        "append": (f"/{name}/log", {"comp": "appendblock"}, {}),
        "block": (f"/{name}/block", {"comp": "block", "blockid": "AAAA"}, {}),
        "put": (f"/{name}/put", None, BLOCK_BLOB),
        "copy": (f"/{name}/copy", None, {}),
    }
    for operation, answers in wanted.items():
        path, query, headers = calls[operation]
        for (condition, value), expected in zip(conditions, answers):
            answer = wire.request("PUT", path, query, {**headers, **url, f"x-ms-source-{condition}": value})
            assert (answer.status, answer.code) == expected, (operation, condition)
            if answer.status == 304:
                assert answer.body == b""
    part = wire.request("PUT", *calls["append"][:2], {**url, "x-ms-source-if-match": '"0x1"'})
    assert b"Could not verify the copy source within the specified time." in part.body
    put = wire.request("PUT", *calls["put"][:2], {**BLOCK_BLOB, **url, "x-ms-source-if-unmodified-since": earlier})
    assert b"The condition specified using HTTP conditional header(s) is not met." in put.body
    tags = wire.request("PUT", *calls["copy"][:2], {**url, "x-ms-source-if-tags": "k = 'w'"})
    assert (tags.status, tags.code) == (412, "ConditionNotMet")


def test_destination_conditions_of_copies(container, wire):
    source, copy = container.get_blob_client("source"), container.get_blob_client("copy")
    source.upload_blob(b"x")
    copy.upload_blob(b"old", tags={"k": "v"})
    url = {"x-ms-copy-source": source.url}
    later = (NOW + datetime.timedelta(hours=1)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    dated = wire.request("PUT", path_of(copy), None, {**url, "if-modified-since": later})
    assert (dated.status, dated.code) == (412, "TargetConditionNotMet")
    for unmet in ({"x-ms-if-tags": "k = 'w'"}, {"if-match": '"0x1"'}):
        answer = wire.request("PUT", path_of(copy), None, {**url, **unmet})
        assert (answer.status, answer.code) == (412, "ConditionNotMet"), unmet


def test_a_copy_that_may_only_create_is_refused_before_its_source_is_asked(account, container):
    copy = container.get_blob_client("copy")
    copy.upload_blob(b"x")
    query = dict(urllib.parse.parse_qsl(signed_url(account, copy, "c").partition("?")[2]))
    answer = Wire(account).request("PUT", path_of(copy), query, {"x-ms-copy-source": "http://127.0.0.1:9/a/b/c"}, sign=False)
    assert (answer.status, answer.code) == (403, "UnauthorizedBlobOverwrite")


def test_an_archived_blob_is_copied_to_an_online_tier(account, container, wire):
    source, copy = container.get_blob_client("source"), container.get_blob_client("copy")
    source.upload_blob(b"archived")
    source.set_standard_blob_tier("Archive")
    url = {"x-ms-copy-source": source.url}
    for headers in ({}, {"x-ms-access-tier": "Archive"}):
        assert wire.request("PUT", path_of(copy), None, {**url, **headers}).status == 409, headers
    sync = {"x-ms-copy-source": signed_url(account, source), "x-ms-requires-sync": "true", "x-ms-access-tier": "Hot"}
    assert wire.request("PUT", path_of(copy), None, sync).status == 409
    made = wire.request("PUT", path_of(copy), None, {**url, "x-ms-access-tier": "Cool", "x-ms-rehydrate-priority": "High"})
    assert made.status == 202
    head = wire.request("HEAD", path_of(copy)).headers
    if head["x-ms-access-tier"] == "Archive":
        assert head["x-ms-archive-status"] == "rehydrate-pending-to-cool"
        assert head["x-ms-rehydrate-priority"] == "High"
    time.sleep(1.5)
    assert wire.request("HEAD", path_of(copy)).headers["x-ms-access-tier"] == "Cool"
    assert copy.download_blob().readall() == b"archived"
    assert source.get_blob_properties().blob_tier == "Archive"


def test_identifiers_without_a_policy_come_back_as_they_came(container, wire):
    document = b"<SignedIdentifiers><SignedIdentifier><Id>empty</Id></SignedIdentifier></SignedIdentifiers>"
    query = {"restype": "container", "comp": "acl"}
    assert wire.request("PUT", f"/{container.container_name}", query, body=document).status == 200
    found = wire.request("GET", f"/{container.container_name}", query).body
    assert b"<Id>empty</Id></SignedIdentifier>" in found and b"AccessPolicy" not in found
    container.set_container_access_policy({"p": AccessPolicy(permission="r", expiry=NOW + datetime.timedelta(hours=1))})
    assert container.get_container_access_policy()["signed_identifiers"][0].id == "p"


def test_get_blob_shows_the_tier_of_newer_versions(blob, wire):
    blob.upload_blob(b"x", standard_blob_tier=StandardBlobTier.COOL)
    assert "x-ms-access-tier" not in wire.request("GET", path_of(blob), headers=OLD).headers
    headers = wire.request("GET", path_of(blob), headers=NEW).headers
    assert headers["x-ms-access-tier"] == "Cool" and "x-ms-access-tier-change-time" in headers


def test_whether_answers_say_encrypted(account, container, wire):
    blob = container.get_blob_client("b")
    blob.upload_blob(b"x")
    snapshot = wire.request("PUT", path_of(blob), {"comp": "snapshot"})
    assert snapshot.headers["x-ms-request-server-encrypted"] == "false"
    sync = {"x-ms-copy-source": signed_url(account, blob), "x-ms-requires-sync": "true"}
    copied = wire.request("PUT", f"/{container.container_name}/copy", None, sync)
    assert (copied.status, copied.headers["x-ms-request-server-encrypted"]) == (202, "true")


@pytest.mark.parametrize("name", ["ab", "a" * 64])
def test_the_length_of_a_container_name(wire, name):
    answer = wire.request("PUT", f"/{name}", {"restype": "container"})
    assert (answer.status, answer.code) == (400, "OutOfRangeInput")
    assert b"The specified resource name length is not within the permissible limits." in answer.body


def test_a_sealed_blob_says_so(blob, wire):
    blob.create_append_blob()
    blob.seal_append_blob()
    answer = wire.request("PUT", path_of(blob), {"comp": "appendblock"}, body=b"x")
    assert (answer.status, answer.code) == (409, "BlobIsSealed")
    assert b"The blob is sealed and its contents cannot be modified." in answer.body


@pytest.mark.parametrize("version, status", [("2026-02-06", 403), ("2026-04-06", 201)])
def test_create_is_enough_for_put_block(account, container, version, status):
    """Since `sv=2026-04-06`."""
    blob = container.get_blob_client("b")
    query = dict(urllib.parse.parse_qsl(resigned(account, blob, "c", version)))
    answer = Wire(account).request("PUT", path_of(blob), {"comp": "block", "blockid": "AAAA", **query}, body=b"x", sign=False)
    assert answer.status == status, answer


def resigned(account, blob, permission, version):
    """A service signature of the blob, of any version since 2020-12-06."""
    expiry = (NOW + datetime.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    resource = f"/blob/{account.name}/{blob.container_name}/{blob.blob_name}"
    text = "\n".join([permission, "", expiry, resource, "", "", "", version, "b", "", "", "", "", "", "", ""])
    digest = hmac.digest(base64.b64decode(account.key), text.encode(), hashlib.sha256)
    return urllib.parse.urlencode({"sp": permission, "se": expiry, "sv": version, "sr": "b", "sig": base64.b64encode(digest).decode()})


def test_an_empty_preflight_is_malformed(wire):
    answer = wire.request("OPTIONS", "/any", sign=False)
    assert (answer.status, answer.code) == (400, "InvalidHeaderValue")
    assert b"A required CORS header is not present." in answer.body


def test_metadata_names_keep_their_case(account, container, service):
    given = {"UP": "1", "Mixed_Case": "2", "low": "3"}
    blob, copy = container.get_blob_client("b"), container.get_blob_client("copy")
    blob.upload_blob(b"x", metadata=given)
    assert blob.get_blob_properties().metadata == given
    assert blob.download_blob().properties.metadata == given
    assert next(container.list_blobs(include=["metadata"])).metadata == given
    copy.start_copy_from_url(blob.url)
    assert copy.get_blob_properties().metadata == given
    blob.set_blob_metadata({"up": "4"})
    assert blob.get_blob_properties().metadata == {"up": "4"}
    blob.stage_block("AAAA", b"x")
    blob.commit_block_list(["AAAA"], metadata={"LIST": "5"})
    snapshot = blob.create_snapshot(metadata={"Snap": "6"})
    assert blob.get_blob_properties().metadata == {"LIST": "5"}
    assert container.get_blob_client("b", snapshot["snapshot"]).get_blob_properties().metadata == {"Snap": "6"}
    container.set_container_metadata({"Of": "7"})
    assert container.get_container_properties().metadata == {"Of": "7"}
    listed = service.list_containers(name_starts_with=container.container_name, include_metadata=True)
    assert next(listed).metadata == {"Of": "7"}
    bucket = s3.client(account)
    assert bucket.head_object(Bucket=container.container_name, Key="copy")["Metadata"] == {name.lower(): v for name, v in given.items()}


def test_metadata_names_keep_their_case_after_a_refused_body(container, service):
    """On one connection, which clients of one service share. The body has lines like those of a head."""
    name = container.container_name
    body = b"GET /x HTTP/1.1\r\nx-ms-meta-FIRST: 1\r\n\r\n" * 3_000
    made = service.get_blob_client(name, "b")
    for spelled in ("First", "fiRST"):
        refused(lambda: service.get_blob_client(f"{name}-none", "b").upload_blob(body), 404, "ContainerNotFound")
        made.upload_blob(body, metadata={spelled: "2"}, overwrite=True)
        assert made.get_blob_properties().metadata == {spelled: "2"}


def test_metadata_names_that_differ_in_case_only(blob, wire):
    """Two such headers are one, twice."""
    blob.upload_blob(b"x")
    wire.request("HEAD", path_of(blob))
    connection = wire._connection  # pylint: disable=protected-access
    headers = {"x-ms-version": "2026-10-06", "x-ms-date": email.utils.formatdate(usegmt=True)}
    signed = {**headers, "x-ms-meta-a": "1,2"}
    full = f"/{wire.account.name}{path_of(blob)}"
    mark = signature(wire.account.name, wire.account.key, "PUT", full, {"comp": "metadata"}, signed)
    connection.putrequest("PUT", f"{full}?comp=metadata")
    for name, value in (*headers.items(), ("x-ms-meta-A", "1"), ("x-ms-meta-a", "2"), ("content-length", "0"),
                        ("authorization", f"SharedKey {wire.account.name}:{mark}")):
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    answer.read()
    assert (answer.status, answer.getheader("x-ms-error-code")) == (400, "InvalidMetadata")


def test_requests_of_other_services_learn_what_is_served(account, container):
    lake = Wire(account, host=f"{account.name}.dfs.localhost", path_style=False).request("GET", "/", {"resource": "account"})
    assert (lake.status, lake.code) == (501, "NotImplemented")
    assert b"It serves Azure Blob at ACCOUNT.blob.DOMAIN" in lake.body
    file_system = Wire(account).request("GET", f"/{container.container_name}", {"resource": "filesystem", "recursive": "true"})
    assert (file_system.status, file_system.code) == (501, "NotImplemented")
    to_s3 = Wire(account, host="s3.localhost", path_style=False).request("GET", "/", {"comp": "list"})
    assert to_s3.status == 400 and b"<Code>InvalidRequest</Code>" in to_s3.body
    assert b"Azure Blob is served at the port of --blob-listen" in to_s3.body


def test_control_characters_in_names(container, wire):
    """Where Blob makes a blob. Keys that S3 made are read, and listed encoded."""
    name = container.container_name
    for query, headers in ((None, BLOCK_BLOB), ({"comp": "block", "blockid": "AAAA"}, {})):
        made = wire.request("PUT", f"/{name}/a\u0001b", query, headers, b"x")
        assert (made.status, made.code) == (400, "InvalidResourceName"), query
    assert wire.request("GET", f"/{name}/a\u0001b").status in (400, 404)

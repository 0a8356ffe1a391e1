"""Rules of sources, conditions of copies, checksums, rehydration and scopes where emulators differ."""

import datetime
import urllib.parse
import uuid

import pytest
from azure.storage.blob import BlobBlock, StandardBlobTier, generate_container_sas
from conftest import refused
from lib.account import DEV_KEY, DEV_NAME, Account
from lib.server import Server
from lib.wire import Wire
from test_outside_copies import Handler, opened, source as elsewhere  # pylint: disable=unused-import
from test_recorded import BLOCK_BLOB, NEW, NOW, OLD, base64_md5, path_of, resigned, signed_url
from test_sas import by_account, by_container

PAGE = 512
PAGES = {"x-ms-page-write": "update", "x-ms-range": f"bytes=0-{PAGE - 1}"}
BLOCK = {"comp": "block", "blockid": "AAAA"}
BYTES = b"x" * PAGE
HOUR = datetime.timedelta(hours=1)
LATER, EARLIER = ((NOW + hours * HOUR).strftime("%a, %d %b %Y %H:%M:%S GMT") for hours in (1, -1))


def parts(name):
    """The operations that make a blob or a part of one from a URL: path, query, headers. Logs and disks must be there."""
    return {
        "Put Blob From URL": (f"/{name}/put", None, BLOCK_BLOB),
        "Put Block From URL": (f"/{name}/block", BLOCK, {}),
        "Append Block From URL": (f"/{name}/log", {"comp": "appendblock"}, {}),
        "Put Page From URL": (f"/{name}/disk", {"comp": "page"}, {**PAGES, "x-ms-source-range": f"bytes=0-{PAGE - 1}"}),
    }


@pytest.fixture(name="source")
def _source(container):
    """A blob of one page, beside an append blob and a page blob that wait for it."""
    container.get_blob_client("log").create_append_blob()
    container.get_blob_client("disk").create_page_blob(PAGE)
    blob = container.get_blob_client("source")
    blob.upload_blob(BYTES, tags={"k": "v"})
    return blob


@pytest.fixture(name="slow", scope="module")
def _slow(request, tmp_path_factory):
    """A server where a rehydration does not end within the tests, with two accounts."""
    folder = tmp_path_factory.mktemp("slow")
    extra = [f"--account={DEV_NAME}:{DEV_KEY}", f"--account=other:{DEV_KEY}", "--rehydration-seconds=3600",
             *request.config.getoption("--serve-arg")]
    with Server(request.config.getoption("--binary"), [folder / "data"], folder / "server.log", extra) as made:
        made.start()
        yield made
        assert made.stop() == 0


def archived(account):
    """An archived blob in a new container."""
    container = account.service().create_container(f"c{uuid.uuid4().hex}")
    source = container.upload_blob("source", b"archived", standard_blob_tier=StandardBlobTier.ARCHIVE)
    return container, source


@pytest.mark.parametrize("tier", ["Hot", "Cool", "Cold"])
def test_a_copy_of_an_archived_blob_is_pending(slow, tier):
    container, source = archived(slow.account)
    wire = Wire(slow.account)
    copy = container.get_blob_client("copy")
    made = wire.request("PUT", path_of(copy), None, {"x-ms-copy-source": source.url, "x-ms-access-tier": tier})
    assert made.status == 202, made
    shown = lambda: [wire.request("HEAD", path_of(copy)).headers.get(f"x-ms-{name}")  # noqa: E731
                     for name in ("access-tier", "archive-status", "rehydrate-priority")]
    assert shown() == ["Archive", f"rehydrate-pending-to-{tier.lower()}", "Standard"]
    refused(lambda: copy.download_blob().readall(), 409, "BlobBeingRehydrated")
    raised = {"x-ms-access-tier": tier, "x-ms-rehydrate-priority": "High"}
    assert wire.request("PUT", path_of(copy), {"comp": "tier"}, raised).status == 202
    assert shown() == ["Archive", f"rehydrate-pending-to-{tier.lower()}", "High"]
    facts = source.get_blob_properties()
    assert (facts.blob_tier, facts.archive_status) == ("Archive", None), "the source stays as it is"


@pytest.mark.parametrize("version, status", [("2020-10-02", 409), ("2021-02-12", 202)])
def test_an_archived_source_in_another_account(slow, version, status):
    """Since 2021-02-12."""
    other = Account(slow.blob_address, "other", DEV_KEY)
    _, source = archived(other)
    wire = Wire(slow.account)
    container = slow.account.service().create_container(f"c{uuid.uuid4().hex}")
    headers = {"x-ms-copy-source": signed_url(other, source), "x-ms-access-tier": "Cool", "x-ms-version": version}
    assert wire.request("PUT", f"/{container.container_name}/copy", None, headers).status == status


def test_only_copy_blob_takes_an_archived_source(account, source, container, wire):
    source.set_standard_blob_tier("Archive")
    url = {"x-ms-copy-source": signed_url(account, source)}
    for operation, (path, query, headers) in parts(container.container_name).items():
        tier = {"x-ms-access-tier": "Hot"} if query is None else {}
        answer = wire.request("PUT", path, query, {**headers, **url, **tier})
        assert answer.status == 409, operation
        assert answer.headers["x-ms-copy-source-error-code"] == "BlobArchived", operation
    sync = {**url, "x-ms-requires-sync": "true", "x-ms-access-tier": "Hot"}
    assert wire.request("PUT", f"/{container.container_name}/copy", None, sync).status == 409


def test_sources_that_need_no_signature(source, container, wire):
    """Public ones, for every operation."""
    container.set_container_access_policy({}, public_access="blob")
    url = {"x-ms-copy-source": source.url}
    for operation, (path, query, headers) in parts(container.container_name).items():
        assert wire.request("PUT", path, query, {**headers, **url}).status == 201, operation
    sync = wire.request("PUT", f"/{container.container_name}/copy", None, {**url, "x-ms-requires-sync": "true"})
    assert sync.status == 202
    container.set_container_access_policy({})


def test_a_signature_of_the_destination_says_nothing_of_the_source(account, source, container):
    sas = generate_container_sas(account.name, container.container_name, account_key=account.key, permission="racw",
                                 expiry=NOW + HOUR)
    query, wire = dict(urllib.parse.parse_qsl(sas)), Wire(account)
    ask = lambda headers: wire.request(  # noqa: E731
        "PUT", f"/{container.container_name}/copy", query, headers, sign=False)
    for headers in ({}, {"x-ms-requires-sync": "true"}):
        answer = ask({**headers, "x-ms-copy-source": source.url})
        assert (answer.status, answer.code) == (401, "CannotVerifyCopySource"), headers
        assert b"Please refer to the information in the www-authenticate header." in answer.body
        answer = ask({**headers, "x-ms-copy-source": signed_url(account, source, "w")})
        assert (answer.status, answer.code) == (403, "CannotVerifyCopySource"), headers
        assert ask({**headers, "x-ms-copy-source": signed_url(account, source)}).status == 202


@pytest.mark.parametrize("what, status, cause", [
    ("unsigned", 401, "NoAuthenticationInformation"), ("write only", 403, "AuthorizationPermissionMismatch"),
    ("missing", 404, "BlobNotFound")])
def test_refused_copies_say_what_the_source_said(two_keys, account, source, container, what, status, cause):
    """Of Copy Blob the source is in another account, which the key of the request says nothing of."""
    other = two_keys[0].service().create_container(f"c{uuid.uuid4().hex}")
    url = {"unsigned": source.url, "write only": signed_url(account, source, "w"),
           "missing": signed_url(account, container.get_blob_client("missing"))}[what]
    other.get_blob_client("log").create_append_blob()
    other.get_blob_client("disk").create_page_blob(PAGE)
    wire = Wire(two_keys[0])
    copies = {"Copy Blob": (f"/{other.container_name}/copy", None, {}),
              "Copy Blob From URL": (f"/{other.container_name}/copy", None, {"x-ms-requires-sync": "true"})}
    for operation, (path, query, headers) in {**parts(other.container_name), **copies}.items():
        answer = wire.request("PUT", path, query, {**headers, "x-ms-copy-source": url})
        assert (answer.status, answer.code) == (status, "CannotVerifyCopySource"), operation
        assert answer.headers["x-ms-copy-source-status-code"] == str(status), operation
        assert answer.headers["x-ms-copy-source-error-code"] == cause, operation
        text = answer.body.decode()
        for element, value in (("Status", status), ("Error", cause)):
            assert f"<CopySource{element}Code>{value}</CopySource{element}Code>" in text, operation
        assert "<CopySourceErrorMessage>" in text, operation
    other.delete_container()


@pytest.mark.parametrize("synchronous", [{}, {"x-ms-requires-sync": "true"}])
def test_a_missing_source_is_reported_before_a_blob_in_the_way(account, source, container, wire, synchronous):
    """`object_store` copies so without overwriting."""
    blob = container.get_blob_client("there")
    blob.upload_blob(b"x")
    query = dict(urllib.parse.parse_qsl(signed_url(account, blob, "c").partition("?")[2]))
    bare = Wire(account)
    for ask in (lambda headers: wire.request("PUT", path_of(blob), headers=headers),
                lambda headers: bare.request("PUT", path_of(blob), query, headers, sign=False)):
        for copied, wanted in ((container.get_blob_client("missing"), (404, "CannotVerifyCopySource")),
                               (source, (409, "BlobAlreadyExists"))):
            url = {"x-ms-copy-source": signed_url(account, copied)}
            answer = ask({"if-none-match": "*", **url, **synchronous})
            assert (answer.status, answer.code) == wanted


def test_a_source_whose_host_has_no_address(container, wire):
    answer = wire.request("PUT", f"/{container.container_name}/copy", None, {"x-ms-copy-source": "http://nowhere.invalid/c/b"})
    assert (answer.status, answer.code) == (500, "CannotVerifyCopySource")


def test_dates_and_tags_of_destinations(account, source, container, wire):
    name = container.container_name
    container.upload_blob("copy", b"old", tags={"k": "v"})
    url = {"x-ms-copy-source": signed_url(account, source)}
    for condition in ({"if-modified-since": LATER}, {"if-unmodified-since": EARLIER}):
        answer = wire.request("PUT", f"/{name}/copy", None, {**url, **condition})
        assert (answer.status, answer.code) == (412, "TargetConditionNotMet"), condition
        put = wire.request("PUT", f"/{name}/copy", None, {**url, **BLOCK_BLOB, **condition})
        assert (put.status, put.code) == (412, "ConditionNotMet"), "Put Blob From URL has another code"
    tags = wire.request("PUT", f"/{name}/copy", None, {**url, **BLOCK_BLOB, "x-ms-if-tags": "k = 'w'"})
    assert (tags.status, tags.code) == (412, "ConditionNotMet")
    assert container.download_blob("copy").readall() == b"old"


def test_conditions_of_tags_by_dates_and_other_etags(blob, wire):
    etag = blob.upload_blob(b"x", tags={"k": "v"})["etag"]
    document = b"<Tags><TagSet><Tag><Key>k</Key><Value>w</Value></Tag></TagSet></Tags>"
    unmet = [{"x-ms-blob-if-none-match": etag}, {"x-ms-blob-if-modified-since": LATER}, {"x-ms-blob-if-unmodified-since": EARLIER}]
    met = [{"x-ms-blob-if-none-match": '"0x1"'}, {"x-ms-blob-if-modified-since": EARLIER}, {"x-ms-blob-if-unmodified-since": LATER}]
    ask = lambda condition: [  # noqa: E731
        (answer.status, answer.code) for answer in (
            wire.request("GET", path_of(blob), {"comp": "tags"}, condition),
            wire.request("PUT", path_of(blob), {"comp": "tags"}, condition, document))]
    for condition in unmet:
        (read, code), changed = ask(condition)
        assert read in (304, 412) and code == "ConditionNotMet", "which of the two is not documented"
        assert changed == (412, "ConditionNotMet"), condition
    assert blob.get_blob_tags() == {"k": "v"}
    for condition in met:
        assert ask(condition) == [(200, ""), (204, "")], condition
    assert blob.get_blob_properties().etag == etag, "tags are none of it"


@pytest.mark.parametrize("version, with_md5", [(OLD, (True, False)), (NEW, (True, True))])
def test_checksums_of_appends_pages_and_sources(account, source, container, wire, version, with_md5):
    """Of the four From URL operations, Put Blob From URL has the CRC-64 in every version."""
    name, md5 = container.container_name, {"content-md5": base64_md5(BYTES)}
    shown = lambda answer: (  # noqa: E731
        answer.status, "content-md5" in answer.headers, "x-ms-content-crc64" in answer.headers)
    for path, query, headers in (("log", {"comp": "appendblock"}, {}), ("disk", {"comp": "page"}, PAGES),
                                 ("block", BLOCK, {})):
        ask = lambda more: wire.request("PUT", f"/{name}/{path}", query, {**version, **headers, **more}, BYTES)  # noqa: E731
        assert shown(ask(md5)) == (201, *with_md5), path
        assert shown(ask({})) == (201, False, True), path
    assert shown(wire.request("PUT", f"/{name}/b", None, {**version, **BLOCK_BLOB, **md5}, BYTES)) == (201, True, True)
    url = {"x-ms-copy-source": signed_url(account, source)}
    for operation, (path, query, headers) in parts(name).items():
        ask = lambda more: wire.request("PUT", path, query, {**version, **headers, **url, **more})  # noqa: E731
        asked = shown(ask({"x-ms-source-content-md5": base64_md5(BYTES)}))
        assert asked == ((201, True, True) if query is None else (201, *with_md5)), operation
        assert shown(ask({})) == (201, False, True), operation


@pytest.mark.parametrize("version, status", [("2026-02-06", 403), ("2026-04-06", 201)])
def test_create_is_enough_for_blocks_and_their_list(account, source, container, version, status):
    """Since `sv=2026-04-06`."""
    blob, wire = container.get_blob_client("new"), Wire(account)
    query = dict(urllib.parse.parse_qsl(resigned(account, blob, "c", version)))
    url = {"x-ms-copy-source": signed_url(account, source)}
    assert wire.request("PUT", path_of(blob), {**BLOCK, **query}, url, sign=False).status == status
    if status == 201:
        listed = b"<BlockList><Latest>AAAA</Latest></BlockList>"
        assert wire.request("PUT", path_of(blob), {"comp": "blocklist", **query}, body=listed, sign=False).status == 201
        assert blob.download_blob().readall() == BYTES


def test_answers_name_the_scope_of_a_signature(account, source, container):
    name = container.container_name
    url = signed_url(account, source)
    for signed in (by_account(account, encryption_scope="ours").get_container_client(name),
                   by_container(account, name, encryption_scope="ours")):
        copy = signed.get_blob_client(f"copy{uuid.uuid4()}")
        assert copy.upload_blob(b"x")["encryption_scope"] == "ours"
        assert copy.stage_block("a", b"x")["encryption_scope"] == "ours"
        assert copy.commit_block_list([BlobBlock("a")])["encryption_scope"] == "ours"
        seen = {}
        copy.start_copy_from_url(url, requires_sync=True, raw_response_hook=lambda r: seen.update(r.http_response.headers))
        assert seen["x-ms-encryption-scope"] == "ours"
        assert copy.get_blob_properties().encryption_scope == "ours"
        theirs = {"encryption_scope": "theirs"}
        for call, arguments in ((copy.stage_block, {"block_id": "a", "data": b"x"}), (copy.commit_block_list, {"block_list": []}),
                                (copy.start_copy_from_url, {"source_url": url, "requires_sync": True})):
            error = refused(lambda: call(**arguments, **theirs), 400, "InvalidHeaderValue")  # pylint: disable=cell-var-from-loop
            assert "<HeaderName>x-ms-encryption-scope</HeaderName>" in error.response.text()


def test_a_snapshot_under_a_scope_is_not_said_to_be_encrypted(blob, wire):
    blob.upload_blob(b"x", encryption_scope="ours")
    answer = wire.request("PUT", path_of(blob), {"comp": "snapshot"}, {"x-ms-encryption-scope": "ours"})
    assert (answer.status, answer.headers["x-ms-request-server-encrypted"]) == (201, "false")


def test_get_blob_shows_the_facts_of_the_tier_that_its_properties_show(blob, wire):
    """Since 2026-10-06."""
    of_tier = ("x-ms-access-tier", "x-ms-access-tier-inferred", "x-ms-access-tier-change-time")
    shown = lambda method, version: {  # noqa: E731
        name: value for name, value in wire.request(method, path_of(blob), headers=version).headers.items() if name in of_tier}
    blob.upload_blob(b"x")
    for change in (lambda: None, lambda: blob.set_standard_blob_tier("Cool")):
        change()
        assert shown("GET", OLD) == {} and shown("GET", NEW) == shown("HEAD", NEW) == shown("HEAD", OLD)
    assert shown("GET", NEW).keys() == {"x-ms-access-tier", "x-ms-access-tier-change-time"}
    blob.upload_blob(b"y", overwrite=True)
    assert shown("GET", NEW)["x-ms-access-tier-inferred"] == "true"


def test_containers_say_that_they_lock_no_versions(container, wire):
    path = f"/{container.container_name}"
    for method in ("HEAD", "GET"):
        answer = wire.request(method, path, {"restype": "container"}, OLD)
        assert answer.headers["x-ms-immutable-storage-with-versioning-enabled"] == "false", method
    listed = wire.request("GET", "/", {"comp": "list", "prefix": container.container_name}, OLD).body
    flag = "ImmutableStorageWithVersioningEnabled"
    assert f"<HasLegalHold>false</HasLegalHold><{flag}>false</{flag}>".encode() in listed


@pytest.mark.parametrize("port", ["", ":8443"])
def test_a_source_at_the_port_of_the_request_is_in_this_store(account, two_keys, source, port):
    """Behind a balancer: the names do not resolve here, and nothing listens on the port."""
    other = two_keys[0].service().create_container(f"c{uuid.uuid4().hex}")
    wire = Wire(two_keys[0], host=f"{two_keys[0].name}.blob.storage.example{port}", path_style=False)
    query = signed_url(account, source).partition("?")[2]
    for scheme in ("http", "https"):
        url = f"{scheme}://{account.name}.blob.storage.example{port}{path_of(source)}?{query}"
        answer = wire.request("PUT", f"/{other.container_name}/copy", None, {"x-ms-copy-source": url})
        assert answer.status == 202 and answer.headers["x-ms-copy-status"] == "success", answer
    assert other.download_blob("copy").readall() == BYTES
    elsewhere = f"http://{account.name}.blob.storage.example:9443{path_of(source)}?{query}"
    answer = wire.request("PUT", f"/{other.container_name}/copy", None, {"x-ms-copy-source": elsewhere})
    assert answer.code == "CannotVerifyCopySource", "that is another server"
    other.delete_container()


class Refusing(Handler):
    """Answers a GET with the status that its path names, as storage would, or with bytes."""

    def do_GET(self):  # pylint: disable=invalid-name
        """Answers without a look at conditions."""
        status = int(self.path.split("/")[1])
        self.server.asked.append((self.path, dict(self.headers)))
        self.send_response(status)
        self.send_header("Content-Length", "1" if status == 200 else "0")
        if status != 200:
            self.send_header("x-ms-error-code", {404: "BlobNotFound"}.get(status, "ConditionNotMet"))
        self.end_headers()
        self.wfile.write(b"x" if status == 200 else b"")


def test_sources_on_other_servers_refuse_in_their_own_words(opened, elsewhere):  # pylint: disable=redefined-outer-name
    elsewhere.RequestHandlerClass = Refusing
    container = opened.account.service().create_container(f"c{uuid.uuid4().hex}")
    container.get_blob_client("log").create_append_blob()
    container.get_blob_client("disk").create_page_blob(PAGE)
    wire, cannot = Wire(opened.account), "CannotVerifyCopySource"
    every = {**parts(container.container_name), "Copy Blob": (f"/{container.container_name}/copy", None, {})}
    for condition, value, status in (("if-match", '"0x1"', 412), ("if-none-match", '"0x1"', 304), ("if-modified-since", LATER, 304),
                                     ("if-unmodified-since", EARLIER, 412)):
        for operation, (path, query, headers) in every.items():
            answer = wire.request("PUT", path, query, {
                **headers, "x-ms-copy-source": elsewhere.url(f"/{status}"), f"x-ms-source-{condition}": value})
            is_own = operation == "Copy Blob" or (operation, condition) == ("Put Blob From URL", "if-match")
            wanted = (412, "SourceConditionNotMet") if is_own else (status, cannot)
            assert (answer.status, answer.code) == wanted, (operation, condition)
            sent = {name.lower(): text for name, text in elsewhere.asked[-1][1].items()}
            assert sent[condition] == value, operation
    for operation, (path, query, headers) in every.items():
        answer = wire.request("PUT", path, query, {**headers, "x-ms-copy-source": elsewhere.url("/404")})
        assert (answer.status, answer.code) == (404, cannot), operation
        reported = answer.headers["x-ms-copy-source-status-code"], answer.headers["x-ms-copy-source-error-code"]
        assert reported == ("404", "BlobNotFound"), operation

"""Copies from another server, a real one on loopback: pending, aborted, through kill -9, and servers that misbehave."""

import hashlib
import http.server
import threading
import time
import uuid

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobType, ContentSettings, StandardBlobTier

from lib.server import Server

MIB = 1 << 20


def data(size, salt=0):
    """Bytes that do not repeat soon."""
    return b"".join(hashlib.sha256(f"{salt}:{n}".encode()).digest() for n in range(size // 32 + 1))[:size]


class Source(http.server.ThreadingHTTPServer):
    """Serves what its `answers` say by path; `gate` holds back the second half of bodies under /slow."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.gate, self.asked = {}, threading.Event(), []
        self.daemon_threads = True
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, path):
        """Where a path is."""
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers GETs."""

    def do_GET(self):  # pylint: disable=invalid-name
        """Answers as the path demands: /plain, /slow, /cut, /hang, /redirect, /long, /short, /refuse."""
        server, path = self.server, self.path.split("?")[0]
        server.asked.append((path, dict(self.headers)))
        kind = path.split("/")[1]
        body, headers = server.answers.get(path, (b"", {}))
        if kind == "hang":
            server.gate.wait(30)
            return
        if kind == "redirect":
            self.send_response(302)
            self.send_header("Location", server.url("/plain/a"))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if kind == "refuse":
            self.send_response(403)
            self.send_header("x-ms-error-code", "AuthenticationFailed")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if "If-Match" in self.headers and self.headers["If-Match"] != headers.get("ETag"):
            self.send_response(412)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if "Range" in self.headers:
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            body = body[int(first):int(last) + 1]
        self.send_response(206 if "Range" in self.headers else 200)
        for name, value in headers.items():
            self.send_header(name, value)
        length = {"long": len(body) - 1, "short": len(body) + 1}.get(kind, len(body))
        self.send_header("Content-Length", str(length))
        self.end_headers()
        half = len(body) // 2
        try:
            self.wfile.write(body[:half])
            if kind == "slow":
                server.gate.wait(60)
            if kind != "cut":
                self.wfile.write(body[half:])
        except OSError:
            pass
        self.close_connection = True

    def log_message(self, *_arguments):  # pylint: disable=arguments-differ
        """Silence."""


@pytest.fixture
def source():
    """The other server."""
    with Source() as made:
        yield made
        made.gate.set()
        made.shutdown()


@pytest.fixture(scope="module")
def opened(request, tmp_path_factory):
    """A server that may copy from loopback, and from a network that nobody has."""
    folder = tmp_path_factory.mktemp("outside")
    extra = ["--copy-source-allow=127.0.0.0/8,192.0.2.0/24", "--body-idle-seconds=2"]
    with Server(request.config.getoption("--binary"), [folder / "data"], folder / "server.log", extra) as made:
        made.start()
        yield made
        assert made.stop() == 0
        code, output = made.check()
        assert code == 0, output


@pytest.fixture
def place(opened):
    """A container of its own."""
    return opened.account.service().create_container(f"c{uuid.uuid4().hex}")


def settled(blob, seconds=30):
    """The properties once no copy is pending."""
    for _ in range(seconds * 20):
        facts = blob.get_blob_properties()
        if facts.copy.status != "pending":
            return facts
        time.sleep(0.05)
    raise AssertionError(f"still {facts.copy.status} {facts.copy.progress}")


def refusal(call, *arguments, **options):
    """Status and code of a call that must fail."""
    with pytest.raises(HttpResponseError) as refused:
        call(*arguments, **options)
    return refused.value.status_code, refused.value.error_code


def offer(source, path, size=3 * MIB, **headers):
    """Has the source serve bytes; they."""
    body = data(size, path)
    source.answers[path] = (body, {"ETag": f'"{hashlib.md5(body).hexdigest()}"', "Content-Type": "text/x", **headers})
    return body


def test_copy_is_pending_then_done(source, place):
    body = offer(source, "/slow/a", **{"x-ms-meta-of": "source", "x-ms-blob-type": "BlockBlob"})
    blob = place.get_blob_client("copy")
    blob.upload_blob(b"before", metadata={"old": "one"})
    started = blob.start_copy_from_url(source.url("/slow/a?sig=secret"), tags={"t": "1"}, standard_blob_tier=StandardBlobTier.COOL)
    assert started["copy_status"] == "pending"
    for _ in range(200):
        facts = blob.get_blob_properties()
        if facts.copy.progress != f"0/{len(body)}":
            break
        time.sleep(0.05)
    copied, total = map(int, facts.copy.progress.split("/"))
    assert 0 < copied < total == len(body) and facts.copy.status == "pending" and facts.copy.completion_time is None
    assert facts.copy.id == started["copy_id"] and "secret" not in facts.copy.source
    assert facts.size == 0 and facts.metadata == {"of": "source"} and blob.download_blob().readall() == b""
    source.gate.set()
    facts = settled(blob)
    assert facts.copy.status == "success" and facts.copy.progress == f"{len(body)}/{len(body)}"
    assert facts.copy.completion_time is not None and facts.etag != started["etag"]
    assert facts.content_settings.content_type == "text/x" and facts.metadata == {"of": "source"}
    assert facts.blob_tier == "Cool" and blob.get_blob_tags() == {"t": "1"}
    assert blob.download_blob().readall() == body


def test_nobody_writes_to_the_destination_meanwhile(source, place):
    offer(source, "/slow/a")
    blob = place.get_blob_client("copy")
    started = blob.start_copy_from_url(source.url("/slow/a"))
    locked = (409, "PendingCopyOperation")
    assert refusal(blob.upload_blob, b"x", overwrite=True) == locked
    assert refusal(blob.set_blob_metadata, {"a": "b"}) == locked
    assert refusal(blob.set_http_headers, ContentSettings(content_type="a/b")) == locked
    assert refusal(blob.set_blob_tags, {"a": "b"}) == locked
    assert refusal(blob.create_snapshot) == locked
    assert refusal(blob.set_standard_blob_tier, "Cool") == locked
    assert refusal(blob.stage_block, "MQ==", b"x") == locked
    assert refusal(blob.start_copy_from_url, source.url("/plain/a"))[0] in (404, 409)
    assert refusal(blob.delete_blob) == locked
    other = place.get_blob_client("other")
    assert refusal(other.start_copy_from_url, blob.url) == (409, "CannotVerifyCopySource")
    assert refusal(blob.abort_copy, str(uuid.uuid4())) == (409, "CopyIdMismatch")
    source.gate.set()
    assert settled(blob).copy.status == "success"
    assert refusal(blob.abort_copy, started["copy_id"]) == (409, "NoPendingCopyOperation")
    blob.upload_blob(b"x", overwrite=True)
    blob.delete_blob()


def test_abort(source, place):
    offer(source, "/slow/a", **{"x-ms-meta-of": "source"})
    blob = place.get_blob_client("copy")
    started = blob.start_copy_from_url(source.url("/slow/a"))
    lease = blob.acquire_lease()
    assert refusal(blob.abort_copy, started["copy_id"]) == (412, "LeaseIdMissing")
    blob.abort_copy(started["copy_id"], lease=lease)
    facts = blob.get_blob_properties()
    assert (facts.copy.status, facts.size, facts.metadata) == ("aborted", 0, {"of": "source"})
    source.gate.set()
    lease.release()
    time.sleep(0.2)
    assert blob.get_blob_properties().copy.status == "aborted" and blob.download_blob().readall() == b""
    blob.upload_blob(b"mine", overwrite=True)
    assert blob.get_blob_properties().copy.status is None


def test_pending_copy_survives_kill(source, opened, place):
    body = offer(source, "/slow/a")
    disk = bytes(MIB) + offer(source, "/slow/disk", 512 * 1024) + bytes(MIB)
    source.answers["/slow/disk"] = (disk, {"x-ms-blob-type": "PageBlob", "x-ms-blob-sequence-number": "9"})
    plain, pages = place.get_blob_client("copy"), place.get_blob_client("pages")
    started = plain.start_copy_from_url(source.url("/slow/a"))
    pages.start_copy_from_url(source.url("/slow/disk"))
    assert pages.get_blob_properties().size == len(disk)
    opened.kill()
    code, output = opened.check()
    assert code == 0, output
    source.gate.set()
    opened.start()
    facts = settled(plain)
    assert (facts.copy.status, facts.copy.id) == ("success", started["copy_id"])
    assert plain.download_blob().readall() == body
    facts = settled(pages)
    assert (facts.copy.status, facts.blob_type, facts.page_blob_sequence_number) == ("success", BlobType.PAGEBLOB, 9)
    assert pages.download_blob().readall() == disk
    assert [(r.start, r.end) for r in pages.list_page_ranges()] == [(MIB, MIB + 512 * 1024 - 1)]


def test_source_that_changed_meanwhile_fails_the_copy(source, opened, place):
    offer(source, "/slow/a")
    blob = place.get_blob_client("copy")
    blob.start_copy_from_url(source.url("/slow/a"))
    opened.kill()
    offered, headers = source.answers["/slow/a"]
    source.answers["/slow/a"] = (offered, {**headers, "ETag": '"other"'})
    source.gate.set()
    opened.start()
    facts = settled(blob)
    assert facts.copy.status == "failed" and "412 SourceConditionNotMet" in facts.copy.status_description


@pytest.mark.parametrize("path", ["/cut/a", "/short/a", "/hang/a"])
def test_source_that_dies_midway_fails_the_copy(source, place, path):
    body = offer(source, path)
    if path == "/hang/a":
        # Its head comes, then half of the body, then nothing.
        path = "/slow/a"
        source.answers[path] = (body, {})
    blob = place.get_blob_client("copy")
    assert blob.start_copy_from_url(source.url(path))["copy_status"] == "pending"
    facts = settled(blob)
    assert facts.copy.status == "failed" and facts.copy.status_description.startswith("500 CannotVerifyCopySource")
    assert facts.size == 0 and blob.download_blob().readall() == b""
    for call in [lambda: blob.start_copy_from_url(source.url(path), requires_sync=True),
                 lambda: place.get_blob_client("put").upload_blob_from_url(source.url(path)),
                 lambda: place.get_blob_client("block").stage_block_from_url("MQ==", source.url(path))]:
        assert refusal(call) == (500, "CannotVerifyCopySource")
    assert [found.name for found in place.list_blobs()] == ["copy"]
    assert blob.get_blob_properties().copy.status == "failed"


def test_servers_that_misbehave_are_refused(source, place):
    body = offer(source, "/plain/a")
    offer(source, "/long/a")
    blob = place.get_blob_client("copy")
    for path, expected in [("/redirect/a", 409), ("/refuse/a", 403)]:
        assert refusal(blob.start_copy_from_url, source.url(path)) == (expected, "CannotVerifyCopySource")
        assert refusal(blob.upload_blob_from_url, source.url(path)) == (expected, "CannotVerifyCopySource")
    assert [path for path, _ in source.asked] == ["/redirect/a"] * 2 + ["/refuse/a"] * 2, "no redirect was followed"
    wrong = bytearray(hashlib.md5(b"other").digest())
    assert refusal(blob.upload_blob_from_url, source.url("/plain/a"), source_content_md5=wrong) == (400, "Md5Mismatch")
    assert not blob.exists()
    blob.upload_blob_from_url(source.url("/plain/a"), source_content_md5=bytearray(hashlib.md5(body).digest()))
    assert blob.download_blob().readall() == body
    # Bytes beyond the announced length are ignored.
    blob.upload_blob_from_url(source.url("/long/a"), overwrite=True)
    assert blob.get_blob_properties().size == 3 * MIB - 1


def test_kinds_from_elsewhere(source, place):
    body = offer(source, "/plain/log", **{"x-ms-blob-type": "AppendBlob", "x-ms-blob-sealed": "true"})
    blob = place.get_blob_client("log")
    blob.start_copy_from_url(source.url("/plain/log"), seal_destination_blob=False)
    assert settled(blob).blob_type == BlobType.APPENDBLOB
    blob.append_block(b"more")
    assert blob.download_blob().readall() == body + b"more"
    sealed = place.get_blob_client("sealed")
    sealed.start_copy_from_url(source.url("/plain/log"))
    assert settled(sealed).is_append_blob_sealed
    page = place.get_blob_client("page")
    page.create_page_blob(1024)
    page.upload_pages_from_url(source.url("/plain/log"), 512, 512, 0)
    assert page.download_blob().readall() == bytes(512) + body[:512]


def test_many_copies_and_their_container_goes(source, opened):
    place = opened.account.service().create_container(f"c{uuid.uuid4().hex}")
    offer(source, "/slow/a", 100_000)
    for number in range(20):
        place.get_blob_client(f"copy{number}").start_copy_from_url(source.url("/slow/a"))
    place.delete_container()
    source.gate.set()
    again = opened.account.service().create_container(f"c{uuid.uuid4().hex}")
    body = offer(source, "/plain/b", 100_000)
    blobs = [again.get_blob_client(f"copy{number}") for number in range(20)]
    for blob in blobs:
        blob.start_copy_from_url(source.url("/plain/b"))
    for blob in blobs:
        assert settled(blob).copy.status == "success" and blob.download_blob().readall() == body

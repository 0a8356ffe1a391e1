#!/usr/bin/env python3
"""`blockyard cp`, `ls`, `cat`, `stat` and `rm` against a real server, killed halfway and run again.

(a) a tree of files up and down: each run is killed with SIGKILL halfway, the next one copies the rest, and both trees are equal;
(b) one large file up and down: the next run takes over what is there, and sends or receives less than the whole;
(c) a file or blob that was changed between two runs: no byte of the old one is in the new one;
(d) a hostile server: names that lead out of the folder, links in the folder, lists without end, texts that control a terminal;
(e) exit codes, --json, ranges, standard input and output, deletions; refused and failing requests; https; two servers.
"""

import contextlib
import fcntl
import hashlib
import http.server
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

from lib import cli, local_files
from lib.account import DEV_KEY, DEV_NAME
from lib.commands import command
from lib.content import content, pieces
from lib.loud import Loud
from lib.report import Verdicts, mib
from lib.server import Server
from lib.trees import read

BOX = "box"
WAIT_SECONDS = 600


class Client:
    """The program as a client of one server."""

    def __init__(self, options, server, extra=()):
        self.binary, self.address, self.extra = str(options.binary), server.blob_address, list(extra)
        names = [name for name in os.environ if name.startswith(("BLOCKYARD_", "AZURE_STORAGE_"))]
        self.env = {name: value for name, value in os.environ.items() if name not in names}
        self.env["BLOCKYARD_ENDPOINT"] = f"http://{self.address}"

    def signed(self, address, name):
        """The URL of a container or blob with a shared access signature."""
        words = [self.binary, "sas", name, "--account", DEV_NAME, "--endpoint", address]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

    def begin(self, *words, **more):
        """Starts a command."""
        command_line = [self.binary, *[str(word) for word in words], *self.extra]
        return subprocess.Popen(command_line, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def run(self, *words, stdin=b""):
        """Runs a command: exit code, output, errors."""
        process = self.begin(*words, stdin=subprocess.PIPE)
        out, errors = process.communicate(stdin, timeout=WAIT_SECONDS)
        return process.returncode, out, errors.decode()

    def good(self, *words, stdin=b""):
        """Runs a command that must succeed; its output."""
        code, out, errors = self.run(*words, stdin=stdin)
        if code != 0:
            raise RuntimeError(f"{' '.join(map(str, words))}: exit {code}: {errors}")
        return out

    def copy(self, *words):
        """Runs `cp --json`: exit code and the counts, with the failures under "failures"."""
        code, out, errors = self.run("cp", *words, "--json")
        lines = [json.loads(line) for line in out.splitlines()]
        if not lines or "files" not in lines[-1]:
            raise RuntimeError(f"cp {' '.join(map(str, words))}: exit {code}: {errors}")
        return code, {**lines[-1], "failures": lines[:-1]}


def killed_when(process, is_time):
    """Kills a command as soon as `is_time()`; whether it was still running then."""
    began = time.monotonic()
    while process.poll() is None and not is_time():
        if time.monotonic() - began > WAIT_SECONDS:
            raise RuntimeError("the command got nowhere")
        time.sleep(0.002)
    running = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return running


def counted(server, operation):
    """How many requests of an operation succeeded."""
    samples = server.metrics().items()
    return sum(value for name, value in samples if f'requests_total{{operation="{operation}",status="2' in name)


def after(server, operation, count):
    """A function: whether so many more requests of an operation have succeeded."""
    before = counted(server, operation)
    return lambda: counted(server, operation) - before >= count


def make_tree(folder, count):
    """Files of 0 to 20 KiB in many folders, with names that need care."""
    for number in range(count):
        name = f"d{number % 17}/ü {number % 5}/f#{number}%41.bin"
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(("file", number), number * 7919 % 20_480))
    return folder


def make_file(path, size, label="large"):
    """A large file; its MD5."""
    digest = hashlib.md5()
    with open(path, "wb") as out:
        for piece in pieces(label, size, 4 << 20):
            out.write(piece)
            digest.update(piece)
    return digest.digest()


def file_md5(path):
    """The MD5 of a file."""
    digest = hashlib.md5()
    with open(path, "rb") as file:
        while piece := file.read(4 << 20):
            digest.update(piece)
    return digest.digest()


def unfinished(folder):
    """Names of unfinished downloads."""
    return [path.name for path in folder.rglob(".blockyard-*")]


def trees(client, server, verdicts, scratch, count):
    """(a) A tree up and down, each killed halfway."""
    source, target, place = make_tree(scratch / "tree", count), scratch / "tree-back", f"by://{BOX}/tree"
    total = sum(len(data) for data in read(source).values())
    half = after(server, "PutBlob", count // 2)
    verdicts.check("(a) upload killed halfway", killed_when(client.begin("cp", "-r", source, place), half))
    code, found = client.copy("-r", source, place)
    verdicts.equal("(a) second upload, exit code", code, 0)
    verdicts.equal("(a) second upload, copied and skipped", found["files"] + found["skipped"], count)
    verdicts.check("(a) second upload skips what is there", found["skipped"] >= count // 2, f">= {count // 2:,}",
                   f"{found['skipped']:,}")
    verdicts.check("(a) second upload sends less than the whole", found["sent_bytes"] < total, f"< {mib(total)}",
                   mib(found["sent_bytes"]))
    half = after(server, "GetBlob", count // 2)
    process = client.begin("cp", "-r", place, target)
    verdicts.check("(a) download killed halfway", killed_when(process, half))
    there = len(read(target)) - len(unfinished(target))
    code, found = client.copy("-r", place, target)
    verdicts.equal("(a) second download, exit code", code, 0)
    verdicts.equal("(a) second download skips what is there", found["skipped"], there)
    verdicts.equal("(a) second download copies the rest", found["files"], count - there)
    verdicts.check("(a) trees are equal", read(source) == read(target), f"{count:,} files", f"{len(read(target)):,}")
    verdicts.equal("(a) nothing is left of the killed run", unfinished(target), [])
    code, found = client.copy("-r", source, place)
    verdicts.equal("(a) third upload copies nothing", (code, found["files"], found["bytes"]), (0, 0, 0))
    code, found = client.copy("-r", place, f"by://{BOX}/tree-copy")
    verdicts.equal("(a) copy of the tree in the server", (code, found["files"], found["received_bytes"] < total), (0, count, True))
    client.good("cp", "-r", f"by://{BOX}/tree-copy", scratch / "tree-copy")
    verdicts.check("(a) the copy is equal", read(source) == read(scratch / "tree-copy"))


def large(client, server, verdicts, scratch, size, block):
    """(b) One large file up and down, each killed halfway."""
    source, target, place = scratch / "large.bin", scratch / "large-back.bin", f"by://{BOX}/large.bin"
    digest, count = make_file(source, size), size // block
    words = ["--block-size", block, "--parallel", 4]
    half = after(server, "PutBlock", count // 2)
    verdicts.check("(b) upload killed halfway", killed_when(client.begin("cp", source, place, *words), half))
    blob = server.account.service().get_blob_client(BOX, "large.bin")
    verdicts.check("(b) the blob is not there before all of it is", not blob.exists())
    code, found = client.copy(source, place, *words)
    verdicts.equal("(b) second upload, exit code", code, 0)
    verdicts.check("(b) second upload takes blocks over", found["reused_bytes"] >= size // 3, f">= {mib(size // 3)}",
                   mib(found["reused_bytes"]))
    verdicts.check("(b) second upload sends less than the whole", found["sent_bytes"] <= size * 2 // 3,
                   f"<= {mib(size * 2 // 3)}", mib(found["sent_bytes"]))
    stored = blob.get_blob_properties()
    verdicts.equal("(b) the blob has the file's length and MD5",
                   (stored.size, bytes(stored.content_settings.content_md5)), (size, digest))
    half = after(server, "GetBlob", count // 2)
    verdicts.check("(b) download killed halfway", killed_when(client.begin("cp", place, target, *words), half))
    verdicts.check("(b) the file is not there before all of it is", not target.exists())
    code, found = client.copy(place, target, *words)
    verdicts.equal("(b) second download, exit code", code, 0)
    verdicts.check("(b) second download takes pieces over", found["reused_bytes"] >= size // 3, f">= {mib(size // 3)}",
                   mib(found["reused_bytes"]))
    verdicts.check("(b) second download receives less than the whole", found["received_bytes"] <= size * 2 // 3,
                   f"<= {mib(size * 2 // 3)}", mib(found["received_bytes"]))
    verdicts.check("(b) the file is equal", file_md5(target) == digest)
    verdicts.equal("(b) nothing is left of the killed run", unfinished(scratch), [])
    target.unlink()
    both = [client.begin("cp", place, target, *words) for _ in range(2)]
    for process in both:
        process.communicate(timeout=WAIT_SECONDS)
    codes = [process.returncode for process in both]
    verdicts.check("(b) two commands with one target at once", 0 in codes and set(codes) <= {0, 1}, found=codes)
    verdicts.check("(b) the file is whole", file_md5(target) == digest and unfinished(scratch) == [])
    target.unlink()
    note = scratch / f".blockyard-{hashlib.md5(target.name.encode()).hexdigest()[:16]}.note"
    with open(note, "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, _, errors = client.run("cp", place, target, *words)
        verdicts.check("(b) another command has the target", code == 1 and "another command" in errors and not target.exists())
    client.good("cp", place, target, *words)
    verdicts.check("(b) and then no more", file_md5(target) == digest and unfinished(scratch) == [])


def changed(client, server, verdicts, scratch):
    """(c) The source is changed between a killed run and the next one."""
    size, block = 32 << 20, 1 << 20
    source, target, place = scratch / "changed.bin", scratch / "changed-back.bin", f"by://{BOX}/changed.bin"
    words = ["--block-size", block, "--parallel", 2]
    make_file(source, size, "one")
    half = after(server, "PutBlock", 16)
    verdicts.check("(c) upload killed halfway", killed_when(client.begin("cp", source, place, *words), half))
    times = source.stat()
    with open(source, "r+b") as file:
        file.seek(5 * block)
        file.write(b"changed")
    # The same size and the same time: only the bytes tell.
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    code, found = client.copy(source, place, *words)
    verdicts.check("(c) upload of a file that was changed unseen", code == 0 and found["reused_bytes"] < 31 * block)
    digest = hashlib.md5(server.account.service().get_blob_client(BOX, "changed.bin").download_blob().readall()).digest()
    verdicts.check("(c) the blob has the new bytes", digest == file_md5(source))
    half = after(server, "GetBlob", 16)
    verdicts.check("(c) download killed halfway", killed_when(client.begin("cp", place, target, *words), half))
    make_file(source, size, "two")
    client.good("cp", source, place)
    code, found = client.copy(place, target, *words)
    verdicts.equal("(c) download of a blob that was changed takes nothing over", (code, found["reused_bytes"]), (0, 0))
    verdicts.check("(c) the file has the new bytes", file_md5(target) == file_md5(source))


class Hostile(http.server.BaseHTTPRequestHandler):
    """A server that lists names that no client should write, and sends bytes for all of them."""

    names = ["../outside", "a/../../outside", "/tmp/absolute", "b//c", "./d", "link/inside", "good", "nul\0", "x" * 300,
             ".blockyard-0011223344556677.note"]
    protocol_version = "HTTP/1.1"
    endless = False

    def do_GET(self):  # pylint: disable=invalid-name
        """A list, or a blob."""
        if "comp=list" not in self.path:
            return self.answer(206, b"hostile")
        blobs = "".join(f'<Blob><Name Encoded="true">{self.escaped(name)}</Name><Properties><Content-Length>7</Content-Length>'
                        "<Etag>0x1</Etag></Properties></Blob>" for name in self.names)
        marker = "<NextMarker>again</NextMarker>" if self.endless else "<NextMarker/>"
        return self.answer(200, f"<EnumerationResults><Blobs>{blobs}</Blobs>{marker}</EnumerationResults>".encode())

    @staticmethod
    def escaped(name):
        """Every byte of a name as an escape."""
        return "".join(f"%{byte:02X}" for byte in name.encode())

    def answer(self, status, body):
        """One answer."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Nothing is logged."""


@contextlib.contextmanager
def hostile_server(endless):
    """The address of a hostile server."""
    handler = type("Chosen", (Hostile,), {"endless": endless})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{made.server_address[1]}/{DEV_NAME}/{BOX}?sig=any"
        finally:
            made.shutdown()


def hostile(client, verdicts, scratch):
    """(d) A server that wants to write outside of the folder."""
    folder, outside = scratch / "in" / "folder", scratch / "in" / "elsewhere"
    folder.mkdir(parents=True)
    outside.mkdir()
    (folder / "link").symlink_to(outside)
    with hostile_server(endless=False) as url:
        code, found = client.copy("-r", url, folder)
    verdicts.equal("(d) exit code", code, 1)
    verdicts.equal("(d) refused names", len(found["failures"]), len(Hostile.names) - 1)
    verdicts.check("(d) each failure says what to do", all(line["why"] for line in found["failures"]))
    there = sorted(str(path.relative_to(scratch / "in")) for path in (scratch / "in").rglob("*"))
    verdicts.equal("(d) only the good name is written", there, ["elsewhere", "folder", "folder/good", "folder/link"])
    verdicts.check("(d) nothing is written outside", not pathlib.Path("/tmp/absolute").exists())
    with hostile_server(endless=True) as url:
        code, _, errors = client.run("ls", "-r", url)
    verdicts.check("(d) a list that does not go on ends", code == 1 and "does not go on" in errors, found=errors[-80:])


def loud(client, verdicts, scratch):
    """(d) A server whose names, codes and messages would control a terminal."""
    (scratch / "small-one").write_bytes(b"x")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Loud) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        root = f"http://127.0.0.1:{made.server_address[1]}/{DEV_NAME}"
        url, refused = f"{root}/{BOX}?sig=any", f"{root}/{BOX}/refuse?sig=any"
        for words in (["ls", "-r", url], ["ls", "-r", "--json", url], ["ls", refused], ["cat", refused], ["stat", refused], ["rm", refused],
                      ["rm", "--json", refused], ["cp", scratch / "small-one", refused], ["cp", "-r", "--json", url, scratch / "loud"],
                      ["bench", f"{root}/bench?sig=any", "--ops", "2"], ["bench", url, "--existing", "--ops", "2"],
                      ["bench", url, "--existing", "--ops", "2", "--json"]):
            extra = [] if words[0] == "bench" else ["--retries", "0"]
            _, out, errors = client.run(*words, *extra)
            said = out.decode() + errors
            wrong = {f"{ord(c):x}" for c in said if c not in "\n\t" and (ord(c) < 32 or 126 < ord(c) < 160 or c in "\u202e\u2066")}
            verdicts.check(f"(d) {' '.join(map(str, words[:-1]))[:40]}: no control characters", said and not wrong, found=f"{wrong} {said[:80]!a}")
        made.shutdown()


def commands(client, server, verdicts, scratch):
    """(e) Exit codes, JSON, ranges, standard input and output."""
    service = server.account.service()
    data = content("small", 100_000)
    client.good("cp", "-", f"by://{BOX}/odd/a b#%41?.json", stdin=data)
    blob = service.get_blob_client(BOX, "odd/a b#%41?.json")
    verdicts.check("(e) standard input becomes a blob", blob.download_blob().readall() == data)
    stored = blob.get_blob_properties().content_settings
    verdicts.equal("(e) type and MD5", (stored.content_type, bytes(stored.content_md5)), ("application/json", hashlib.md5(data).digest()))
    verdicts.check("(e) cat and cp to standard output", client.good("cat", f"by://{BOX}/odd/a b#%41?.json") == data
                   and client.good("cp", f"by://{BOX}/odd/a b#%41?.json", "-") == data)
    for text, part in (("10-19", data[10:20]), ("99990-", data[99_990:]), ("-7", data[-7:])):
        verdicts.check(f"(e) cat --range {text}", client.good("cat", f"by://{BOX}/odd/a b#%41?.json", "--range", text) == part)
    url = blob.url
    verdicts.check("(e) the SDK's URL is read", client.good("cat", url) == data)
    signed = client.signed(server.account.url, f"{BOX}/odd/a b#%41?.json")
    verdicts.check("(e) a URL with a signature", client.good("cat", signed) == data)
    blob.set_blob_metadata({"owner": "me"})
    blob.set_blob_tags({"kind": "odd"})
    shown = json.loads(client.good("stat", "--json", url))
    verdicts.equal("(e) stat", (shown["name"], shown["size"], shown["metadata"], shown["tags"]),
                   ("odd/a b#%41?.json", 100_000, {"owner": "me"}, {"kind": "odd"}))
    for number in range(3):
        client.good("cp", "-", f"by://{BOX}/many/{number}", stdin=b"x")
    lines = [json.loads(line) for line in client.good("ls", "--json", f"by://{BOX}").splitlines()]
    verdicts.check("(e) ls shows one level", {"odd/", "many/"} <= {line.get("folder") for line in lines}
                   and "many/0" not in {line.get("name") for line in lines})
    lines = [json.loads(line) for line in client.good("ls", "-r", "--json", f"by://{BOX}").splitlines()]
    wanted = [found.name for found in service.get_container_client(BOX).list_blobs()]
    verdicts.check("(e) ls -r shows all in order", [line["name"] for line in lines] == wanted, f"{len(wanted):,}", f"{len(lines):,}")
    plain = client.good("ls", f"by://{BOX}/many").decode().splitlines()
    verdicts.check("(e) ls without a terminal has tabs", len(plain) == 3 and plain[0].split("\t")[0::2] == ["1", "0"], found=plain[:1])
    names = [json.loads(line)["container"] for line in client.good("ls", "--json").splitlines()]
    verdicts.check("(e) ls shows containers", BOX in names)
    (scratch / "small").write_bytes(b"small")
    for words, code in ((["cat", f"by://{BOX}/none"], 1), (["ls", "by://nobox"], 1), (["stat", f"by://{BOX}/none"], 1),
                        (["ls", scratch / "none"], 1), (["cat", scratch / "none"], 1), (["stat", scratch / "none"], 1), (["rm", scratch / "none"], 1),
                        (["ls", "-"], 2), (["cat", scratch / "small", "-"], 2), (["rm", "by:box"], 2), (["cat", scratch], 2),
                        (["cp", "a", "b"], 2), (["cp", f"by://{BOX}", "x"], 2), (["cat", "s3://x/y"], 2),
                        (["cp", scratch, f"by://{BOX}/x"], 2), (["cp", scratch / "none", f"by://{BOX}/x"], 1),
                        (["cp", scratch / "small", "by://nobox/x"], 1), (["rm", f"by://{BOX}"], 2), (["rm", "-r", f"by://{BOX}"], 2),
                        (["rm", f"by://{BOX}/many/"], 2), (["rm", f"by://{BOX}/none"], 1), (["rm", "-r", f"by://{BOX}/none"], 1)):
        found, _, errors = client.run(*words)
        verdicts.check(f"(e) exit code of {words[0]} {str(words[-1])[-14:]}", found == code and errors, code, f"{found} {errors[-60:]}")
    sources(client, verdicts, scratch)
    deletions(client, service, verdicts, scratch)
    local_files.commands(client, verdicts, scratch, BOX)


def sources(client, verdicts, scratch):
    """Sources and targets that need care."""
    for name in ("one", "two"):
        client.good("cp", "-", f"by://{BOX}/same/{name}/file", stdin=name.encode())
        (scratch / "same" / name).mkdir(parents=True)
        (scratch / "same" / name / "file").write_bytes(name.encode())
    (scratch / "same-back").mkdir()
    blobs = [f"by://{BOX}/same/{name}/file" for name in ("one", "two")]
    files = [scratch / "same" / name / "file" for name in ("one", "two")]
    for words in ([*blobs, scratch / "same-back"], [*files, f"by://{BOX}/same-up/"], [*blobs, f"by://{BOX}/same-up/"]):
        code, _, errors = client.run("cp", *words)
        verdicts.check(f"(e) two sources with one target, to {str(words[-1])[-10:]}", code == 2 and "two sources" in errors, 2, code)
    verdicts.equal("(e) and nothing is written", list((scratch / "same-back").iterdir()), [])
    if pathlib.Path("/proc/cpuinfo").exists():
        client.good("cp", "/proc/cpuinfo", f"by://{BOX}/made-up")
        verdicts.check("(e) a file that seems empty", b"processor" in client.good("cat", f"by://{BOX}/made-up"))
    os.mkfifo(scratch / "pipe")
    process = client.begin("cp", scratch / "pipe", f"by://{BOX}/pipe", "--block-size", "1MiB")
    with open(scratch / "pipe", "wb") as pipe:
        pipe.write(content("pipe", 3 << 20))
    process.communicate(timeout=WAIT_SECONDS)
    verdicts.check("(e) a pipe", process.returncode == 0 and client.good("cat", f"by://{BOX}/pipe") == content("pipe", 3 << 20))


def deletions(client, service, verdicts, scratch):
    """What `rm` deletes, and nothing else."""
    there = lambda: {found.name for found in service.get_container_client(BOX).list_blobs(name_starts_with="many")}
    client.good("cp", scratch / "small", f"by://{BOX}/manyother")
    shown = client.good("rm", "-r", "--dry-run", f"by://{BOX}/many").decode().splitlines()
    verdicts.check("(e) rm --dry-run deletes nothing", len(shown) == 3 and len(there()) == 4)
    client.good("rm", f"by://{BOX}/many/0")
    verdicts.equal("(e) rm deletes one", there(), {"many/1", "many/2", "manyother"})
    lines = client.good("rm", "-r", "--json", f"by://{BOX}/many").splitlines()
    verdicts.equal("(e) rm -r deletes a folder", (there(), len(lines)), ({"manyother"}, 2))
    client.good("cp", "--make-container", scratch / "small", "by://made/small")
    client.good("rm", "-r", "--container", "by://made")
    verdicts.check("(e) rm deletes a container", not service.get_container_client("made").exists())


def failing(client, server, verdicts, scratch, options):
    """Requests that are refused as busy, refused for good, or not answered."""
    source = make_tree(scratch / "busy", 100)
    command(server, "fault", "set", "busy", "--rate", "0.3", "--seed", "7")
    command(server, "fault", "set", "lost", "--rate", "0.05", "--seed", "8")
    code, found = client.copy("-r", source, f"by://{BOX}/busy")
    command(server, "fault", "clear")
    verdicts.check("(e) busy and lost answers are tried again", code == 0 and found["repeated_requests"] > 10,
                   found=f"exit {code}, {found['repeated_requests']} again")
    client.good("cp", "-r", f"by://{BOX}/busy", scratch / "busy-back")
    verdicts.check("(e) and the trees are equal", read(source) == read(scratch / "busy-back"))
    wrong = f"{DEV_NAME}:{'A' * 86}=="
    code, _, errors = client.run("ls", "--account", wrong)
    verdicts.check("(e) a wrong key is refused once, and not shown", code == 1 and "--account" in errors and "AAAA" not in errors)
    refused = sum(value for name, value in server.metrics().items() if 'requests_total{' in name and 'status="403"' in name)
    verdicts.equal("(e) refusals are not tried again", refused, 1)
    begun = time.monotonic()
    code, _, errors = client.run("ls", "--endpoint", "http://127.0.0.1:1", "--retries", 1)
    verdicts.check("(e) nothing listens", code == 1 and "--endpoint" in errors, found=f"{time.monotonic() - begun:.1f} s")
    client.env["AZURE_STORAGE_CONNECTION_STRING"] = server.account.connection_string
    endpoint = client.env.pop("BLOCKYARD_ENDPOINT")
    verdicts.check("(e) AZURE_STORAGE_CONNECTION_STRING", BOX.encode() in client.good("ls"))
    client.env["BLOCKYARD_ENDPOINT"] = endpoint
    del client.env["AZURE_STORAGE_CONNECTION_STRING"]
    status = json.loads(subprocess.run(
        [str(options.binary), "status", "--json", "--admin-listen", server.admin_address, "--data", server.data[0]],
        capture_output=True, check=True).stdout)
    # The disk of the machine may be full.
    others = [line for line in status["warnings"] if "full" not in line and "available" not in line]
    verdicts.equal("(e) blockyard status", (status["phase"], len(status["disks"]), others), ("ready", 1, []))


def second_server(options, client, server, verdicts, scratch):
    """https, and copies from one server to another."""
    data = scratch / "second"
    arguments = ["--tls", "auto", "--copy-source-allow=127.0.0.1"]
    with Server(options.binary, [data], scratch / "second.log", arguments) as other:
        other.start()
        secure = Client(options, other, ["--ca", data / "tls" / "ca.pem"])
        secure.env["BLOCKYARD_ENDPOINT"] = f"https://{other.blob_address}"
        (scratch / "secure").write_bytes(content("secure", 3 << 20))
        secure.good("cp", "--make-container", scratch / "secure", f"by://{BOX}/secure", "--block-size", "1MiB")
        verdicts.check("(e) https, trusted by --ca", secure.good("cat", f"by://{BOX}/secure") == content("secure", 3 << 20))
        secure.extra = []
        code, _, errors = secure.run("ls", "--retries", 0)
        verdicts.check("(e) https, not trusted", code == 1 and "certificate" in errors.lower(), found=errors[-80:])
        secure.extra = ["--ca", data / "tls" / "ca.pem"]
        client.good("cp", scratch / "secure", f"by://{BOX}/across")
        plain = server.account.service().get_blob_client(BOX, "across").url
        code, _, errors = secure.run("cat", plain)
        verdicts.check("(e) the key does not go to another host", code == 2 and "--endpoint" in errors, found=errors[-80:])
        url = client.signed(server.account.url, f"{BOX}/across")
        code, found = secure.copy(url, f"by://{BOX}/across", "--block-size", "1MiB", "--account", f"{DEV_NAME}:{DEV_KEY}")
        verdicts.check("(e) from server to server", code == 0 and found["sent_bytes"] + found["received_bytes"] < 1 << 20,
                       found=f"exit {code}")
        verdicts.check("(e) its bytes", secure.good("cat", f"by://{BOX}/across") == content("secure", 3 << 20))


def main(options, scratch):
    verdicts = Verdicts("files")
    with cli.server(options, scratch) as server:
        client = Client(options, server)
        server.account.service().create_container(BOX)
        trees(client, server, verdicts, scratch, options.files)
        large(client, server, verdicts, scratch, options.mib << 20, options.block_mib << 20)
        changed(client, server, verdicts, scratch)
        hostile(client, verdicts, scratch)
        loud(client, verdicts, scratch)
        commands(client, server, verdicts, scratch)
        failing(client, server, verdicts, scratch, options)
        second_server(options, client, server, verdicts, scratch)
        server.stop()
        verdicts.sound(server)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--files", type=int, help="files of the tree (default 10000; 500 with --small)")
    flags.add_argument("--mib", type=int, help="MiB of the large file (default 5120; 96 with --small)")
    flags.add_argument("--block-mib", type=int, help="MiB of its blocks (default 8; 1 with --small)")
    parsed = cli.parse(flags)
    parsed.files = parsed.files or (500 if parsed.small else 10_000)
    parsed.mib = parsed.mib or (96 if parsed.small else 5_120)
    parsed.block_mib = parsed.block_mib or (1 if parsed.small else 8)
    cli.run(main, parsed)

"""Where programs are tried: roots of their own, servers on loopback, and requests to them."""

import os
import pathlib
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Other addresses need network namespaces; port 0 is a free port.
LOCAL = ["--blob-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
SECONDS = 120


class Skipped(Exception):
    """The machine lacks something."""


def done(text):
    """Prints the tried steps."""
    print(f"   {text}", flush=True)


def expect(condition, text):
    """Fails with the text."""
    if not condition:
        raise AssertionError(text)


def need(program, package):
    """Skips the step without this program."""
    if not shutil.which(program):
        raise Skipped(f"{program} is missing (Debian package {package})")


def need_chroot():
    """Only root changes its root."""
    if os.geteuid() != 0:
        raise Skipped("chroot needs root")


def chrooted(root, user, program):
    """The command that runs a program in a root."""
    return ["chroot", f"--userspec={user}", str(root), program]


def libc():
    """The loader and the C library of this machine."""
    found = subprocess.run(["ldd", "/bin/true"], capture_output=True, text=True, check=True).stdout
    return [pathlib.Path(path) for path in re.findall(r"(/\S+)", found)]


def run(command, code=0, **more):
    """Runs a command of at most minutes and returns what it says."""
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, **more)
    expect(ended.returncode == code, f"{command} ended with {ended.returncode}: {ended.stdout}{ended.stderr}")
    return ended.stdout + ended.stderr


def printed(command):
    """Runs a command and returns the last line that it prints. Its other output is not shown."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1]


class Server:
    """A server that has printed where it serves. Leaving the block drains it."""

    def __init__(self, command, arguments, log):
        self.log = log.open("w")
        self.process = subprocess.Popen([*command, "serve", *LOCAL, *arguments], stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.banner, wanted = "", {"blob": None, "admin": None}
        for line in self.process.stdout:
            self.banner += line
            for name, pattern in (("blob", r"serves .* on (127\.0\.0\.1:\d+)"), ("admin", r"http://(127\.0\.0\.1:\d+)/readyz")):
                if found := re.search(pattern, line):
                    wanted[name] = found[1]
            # The line of the admin listener comes after that of the others.
            if wanted["admin"]:
                break
        if not all(wanted.values()):
            self.process.kill()
            raise AssertionError(f"it did not start: {self.banner}{log.read_text()}")
        self.blob, self.admin = wanted["blob"], wanted["admin"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        # The pipe must not fill while it drains.
        self.process.communicate(timeout=SECONDS)
        self.log.close()
        expect(self.process.returncode == 0, f"the drain ended with {self.process.returncode}")


def ask(method, url, body=None, **headers):
    """The status and body of a request."""
    request = urllib.request.Request(url, data=body, method=method)
    for name, value in headers.items():
        request.add_header(name.replace("_", "-"), value)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def signed(command, server, path, account):
    """A URL that may do everything with a path, a container and its blobs."""
    endpoint = f"http://{server.blob}/{account.split(':')[0]}"
    made = [*command, "sas", *path, "--account", account, "--permissions", "rcwl", "--expiry", "1h", "--endpoint", endpoint]
    return run(made).strip()


def container_url(command, server, account):
    """The URL that makes the container."""
    return signed(command, server, [], account).replace("/?", "/first?restype=container&", 1)


def put(command, server, account):
    """Makes a container and a blob."""
    expect(ask("PUT", container_url(command, server, account), b"")[0] == 201, "the container was not made")
    url = signed(command, server, ["first/hello.txt"], account)
    status, body = ask("PUT", url, b"hello", x_ms_blob_type="BlockBlob")
    expect(status == 201, f"the blob was not stored: {status} {body}")


def get(command, server, account):
    """Reads the blob."""
    status, body = ask("GET", signed(command, server, ["first/hello.txt"], account))
    expect((status, body) == (200, b"hello"), f"the blob was not read: {status} {body}")


def round_trip(command, data, key, account="devstoreaccount1"):
    """A blob is stored, and read after a restart."""
    log = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"dist-{os.getpid()}.log"
    arguments = ["--data", data, "--master-key-file", key]
    try:
        with Server(command, arguments, log) as server:
            put(command, server, account)
        with Server(command, arguments, log) as server:
            get(command, server, account)
    finally:
        log.unlink(missing_ok=True)


def first_account(command, root):
    """A store without an account starts, refuses all requests, and serves the account that a command makes."""
    (root / "accounts").touch(mode=0o600)
    os.chown(root / "accounts", 10001, 10001)
    log = root / "log"
    places = ["--data", "/data/fresh", "--master-key-file", "/key/fresh.key", "--account-file", "/accounts"]
    with Server(command, places, log) as server:
        expect("blockyard account create NAME" in server.banner, f"the banner names no command: {server.banner}")
        url = container_url(command, server, "devstoreaccount1")
        expect(ask("PUT", url, b"")[0] == 403, "the development account is served")
        account = made_account(command, server.admin, "/data/fresh")
        put(command, server, account)
        get(command, server, account)


def made_account(command, admin, data):
    """Makes the account `photos`; its name and first key."""
    text = run([*command, "account", "create", "photos", "--admin-listen", admin, "--data", data])
    return "photos:" + re.search(r"key1 +(\S+)", text)[1]


def empty_compiler(folder):
    """A C compiler and an archiver that make empty files."""
    scripts = {
        "cc": '#!/bin/sh\nwhile [ $# -gt 0 ]; do\n  if [ "$1" = -o ]; then : >"$2"; fi\n  shift\ndone\n',
        "ar": '#!/bin/sh\nfor word in "$@"; do\n  case "$word" in *.a | *.lib) : >"$word" ;; esac\ndone\n',
    }
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return str(folder / "cc"), str(folder / "ar")


def waited(condition, text):
    """Waits until a condition holds."""
    end = time.monotonic() + SECONDS
    while not condition():
        expect(time.monotonic() < end, text)
        time.sleep(0.1)

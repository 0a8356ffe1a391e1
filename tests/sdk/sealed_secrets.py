#!/usr/bin/env python3
"""An attacker who has the disks, and other users of the machine, find no secret of the store.

Accounts get known keys, and copies wait for sources with a signature and a token. Then every byte of the data directories is
searched for them: as bytes, in base64, in hex and percent-encoded; while the server runs, after kill -9 and after a stop. Modes
of all files are looked at. The store must not start without its master key file, with another store's, or with one from before
a rotation; `check` must say the same. Rotation is done while the server serves and while it is stopped. A store of a release
that kept secrets plain, made with the program given by --old, must hold none of them after one start.
"""

import base64
import json
import os
import pathlib
import shutil
import stat
import subprocess
import tarfile
import time
from urllib.parse import quote

from lib import cli
from lib.account import Account
from lib.report import Verdicts
from lib.server import Server
from lib.source import Source
from lib.wire import Wire

KEYS = [base64.b64encode(bytes((n * 37 + at * 11 + at * at) % 256 for at in range(64))).decode() for n in range(4)]
SIGNATURE = "s1GnAtUrE+oF/a/PeNdInG=cOpY0123456789abcdefgh="
TOKEN = "Bearer t0kEn-oF-a-pEnDiNg-cOpY-0123456789abcdefgh"
# The secret of an access key of a user: text, whatever it encodes.
USER_SECRET = "uSeR/sEcReT+oF=aN-aCcEsS-kEy-0123456789"
# Small journals, so that the search of all bytes is fast.
FLAGS = ["--journal-bytes=1048576", "--copy-source-allow=127.0.0.0/8"]
SEALED_SECONDS = 60
FIXTURE = pathlib.Path(__file__).parent / "fixtures" / "plain-store.tar.xz"


def silent(source, _path, _write):
    """Sends no byte of a body as long as the script runs, so that copies stay pending."""
    source.closing.wait(600)


def signed(source):
    """A URL of the source with a shared access signature."""
    return source.url(f"box/blob?sv=2024-11-04&sr=b&sp=r&sig={quote(SIGNATURE, safe='')}")


def spellings(secret):
    """How a secret may stand in a file."""
    found = {secret.encode(), quote(secret, safe="").encode(), base64.b64encode(secret.encode()).rstrip(b"=")}
    try:
        raw = base64.b64decode(secret, validate=True)
        found |= {raw, raw.hex().encode(), base64.urlsafe_b64encode(raw)}
    except ValueError:
        pass
    return found


SECRETS = {**{f"account key {n}": spellings(key) for n, key in enumerate(KEYS)},
           "user's secret": spellings(USER_SECRET), "signature": spellings(SIGNATURE), "token": spellings(TOKEN) | {TOKEN.removeprefix("Bearer ").encode()}}


def leaks(folders):
    """Every secret that a file below the folders holds."""
    found = []
    for path in (path for folder in folders for path in pathlib.Path(folder).rglob("*") if path.is_file()):
        try:
            held = path.read_bytes()
        except FileNotFoundError:
            continue
        found += [f"{name} in {path.name}" for name, texts in SECRETS.items() if any(text in held for text in texts)]
    return found


def command(server, *words, code=0):
    """One of the program's own commands: its JSON."""
    done = subprocess.run(
        [server.binary, *words, "--json", "--admin-listen", server.admin_address, "--data", server.data[0]],
        capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != code:
        raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout) if code == 0 else done.stderr


def furnish(server, source):
    """An account with known keys, and a pending copy in it; the status that began the copy."""
    command(server, "account", "create", "vault", "--key1", KEYS[0], "--key2", KEYS[1])
    command(server, "account", "rotate", "vault", "key2", "--value", KEYS[2])
    wire = Wire(Account(server.blob_address, "vault", KEYS[0]))
    wire.request("PUT", "/box", {"restype": "container"})
    headers = {"x-ms-copy-source": signed(source), "x-ms-copy-source-authorization": TOKEN}
    status = wire.request("PUT", "/box/copied", headers=headers).status
    wire.request("PUT", "/box/own", headers={"x-ms-blob-type": "BlockBlob"}, body=b"x" * 100_000)
    wire.close()
    return status


def opens(server):
    """What the keys of the account are, and whether requests signed with them are answered."""
    keys = command(server, "account", "show", "vault", "--keys")["keys"]
    wire = Wire(Account(server.blob_address, "vault", keys[1]))
    body = wire.request("GET", "/box/own").body
    copy = wire.request("HEAD", "/box/copied").headers.get("x-ms-copy-status")
    wire.close()
    return keys, body == b"x" * 100_000, copy


def user_secret(server):
    """The secret of the user's access key."""
    return command(server, "user", "show", "vault/alice", "--keys")["access_keys"][0]["secret_key"]


def refused(server):
    """The last words of a start that fails; None when it serves."""
    try:
        server.start(60)
    except RuntimeError:
        return server.log_tail(3)
    server.kill()
    return None


def wide(folders):
    """Files and folders that others may use."""
    paths = [path for folder in folders for path in [pathlib.Path(folder), *pathlib.Path(folder).rglob("*")]]
    return [f"{path} {stat.S_IMODE(path.lstat().st_mode):o}" for path in paths
            if not path.is_symlink() and stat.S_IMODE(path.lstat().st_mode) & 0o077]


def fresh(options, scratch, source, verdicts):
    """A store of this program."""
    data = [scratch / "one", scratch / "two"]
    key = scratch / "one.key"
    with Server(options.binary, data, scratch / "serve.log", FLAGS + options.serve_arg) as server:
        server.start()
        verdicts.equal("a copy waits for its source", furnish(server, source), 202)
        command(server, "user", "create", "vault/alice", "--secret-key", USER_SECRET)
        verdicts.none("secrets in files while it serves", leaks(data))
        verdicts.none("files and folders others may use", wide([*data, key]))
        server.kill()
        verdicts.none("secrets in files after kill -9", leaks(data))
        for path in (data[0], data[0] / "coordinator.redb", key):
            if path.exists():
                os.chmod(path, 0o755)
        server.start()
        verdicts.none("wide modes after a start", wide([*data, key]))
        wanted = ([KEYS[0], KEYS[2]], True, "pending")
        verdicts.equal("keys, content and copy are there", opens(server), wanted)
        verdicts.equal("the user's key is there", user_secret(server), USER_SECRET)
        server.stop()
        verdicts.none("secrets in files after a stop", leaks(data))
        verdicts.sound(server)

        old = key.read_bytes()
        key.unlink()
        said = refused(server) or ""
        verdicts.check("no start without the key file, which is named", "one.key is missing" in said, "a refusal", said[-120:])
        code, said = server.check()
        verdicts.check("and check says so", code == 1 and "one.key is missing" in said, "exit 1", said[-120:])
        verdicts.check("nor is another one made", not key.exists())
        key.write_bytes(other_ring(options, scratch))
        key.chmod(0o600)
        said = refused(server) or ""
        verdicts.check("nor with another store's", "one.key holds key ring" in said, "a refusal", said[-120:])
        key.write_bytes(old)

        server.start()
        rotated = command(server, "key", "rotate")
        verdicts.check("rotation seals all secrets anew", rotated["resealed"] >= 4, "4 or more", str(rotated["resealed"]))
        verdicts.equal("keys, content and copy after a rotation", opens(server), wanted)
        verdicts.equal("the user's key after a rotation", user_secret(server), USER_SECRET)
        server.kill()
        newest = key.read_bytes()
        key.write_bytes(old)
        said = refused(server) or ""
        verdicts.check("no start with the file of before", "lacks master key 2" in said, "a refusal", said[-120:])
        code, said = server.check()
        verdicts.check("and check says so", code == 1 and "lacks master key 2" in said, "exit 1", said[-120:])
        key.write_bytes(newest)
        stopped = subprocess.run([options.binary, "key", "rotate", "--stopped", "--json", "--data", data[0]],
                                 capture_output=True, text=True, check=True)
        states = [one["state"] for one in json.loads(stopped.stdout)["keys"]]
        verdicts.equal("rotation of a stopped node", states, ["retired", "retired", "active"])
        server.start()
        verdicts.equal("keys, content and copy after it", opens(server), wanted)
        verdicts.equal("the user's key after it", user_secret(server), USER_SECRET)
        server.stop()
        verdicts.none("secrets in files in the end", leaks(data))
        verdicts.sound(server)


def other_ring(options, scratch):
    """The key file of another store."""
    with Server(options.binary, [scratch / "other"], scratch / "other.log", FLAGS) as server:
        server.start()
        server.stop()
    return (scratch / "other.key").read_bytes()


def unpacked(scratch):
    """The store of the fixture: `furnish`, two starts, two rotations of the first key, kill -9."""
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(scratch / "fixture")
    return scratch / "fixture" / "store"


def made(options, scratch, source, end):
    """A store as that of the fixture, made now and ended in one way or the other."""
    data = scratch / f"old-{end}"
    with Server(options.old, [data], scratch / "old.log", FLAGS) as server:
        server.start()
        furnish(server, source)
        server.stop()
        server.start()
        command(server, "account", "rotate", "vault", "key1", "--value", KEYS[3])
        command(server, "account", "rotate", "vault", "key1", "--value", KEYS[0])
        getattr(server, end)()
    return data


def earlier(options, scratch, data, verdicts):
    """A store of a release that kept secrets plain."""
    what = data.name
    held = {entry.partition(" in ")[0] for entry in leaks([data])}
    # Users came later.
    verdicts.equal(f"{what}: secrets that its files hold", len(held), len(SECRETS) - 1)
    with Server(options.binary, [data], scratch / f"{what}.log", FLAGS) as server:
        server.start()
        until = time.monotonic() + SEALED_SECONDS
        while "hold no plain secret" not in server.log_tail(500) and time.monotonic() < until:
            time.sleep(0.2)
        verdicts.none(f"{what}: secrets in files after its first start", leaks([data]))
        verdicts.none(f"{what}: files and folders others may use", wide([data, data.with_name(f"{what}.key")]))
        wanted = ([KEYS[0], KEYS[2]], True)
        verdicts.equal(f"{what}: its keys and content", opens(server)[:2], wanted)
        server.kill()
        verdicts.none(f"{what}: secrets in files after kill -9", leaks([data]))
        server.start()
        verdicts.equal(f"{what}: its keys and content after one more start", opens(server)[:2], wanted)
        server.stop()
        verdicts.none(f"{what}: secrets in files in the end", leaks([data]))
        verdicts.sound(server, f"{what}: blockyard check")


def file_of_accounts(options, scratch, verdicts):
    """Keys in a file, and on the command line."""
    path = scratch / "accounts"
    path.write_text(f"# ours\nvault:{KEYS[0]}\n")
    path.chmod(0o644)
    with Server(options.binary, [scratch / "three"], scratch / "three.log", [f"--account-file={path}"]) as server:
        said = refused(server) or ""
        verdicts.check("an account file open to others is refused", "is open to other users" in said, "a refusal", said[-120:])
        path.chmod(0o600)
        server.start()
        wire = Wire(Account(server.blob_address, "vault", KEYS[0]))
        verdicts.equal("its accounts are served", wire.request("PUT", "/box", {"restype": "container"}).status, 201)
        wire.close()
        verdicts.check("and nothing is warned about", "can be read by others" not in server.log_tail(100))
        server.stop()
    with Server(options.binary, [scratch / "three"], scratch / "flag.log", [f"--account=vault:{KEYS[0]}"]) as server:
        server.start()
        verdicts.check("a key on the command line works and is warned about", "use --account-file" in server.log_tail(100))
        server.stop()


def main(options, scratch):
    """Runs everything; the exit code."""
    verdicts = Verdicts("secrets at rest")
    shutil.rmtree(scratch / "one", ignore_errors=True)
    with Source(4096, silent) as source:
        fresh(options, scratch, source, verdicts)
        earlier(options, scratch, unpacked(scratch), verdicts)
        for end in ("kill", "stop") if options.old else ():
            earlier(options, scratch, made(options, scratch, source, end), verdicts)
    file_of_accounts(options, scratch, verdicts)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--old", type=pathlib.Path, help="a program that kept secrets plain, such as one of before ADR 0023")
    cli.run(main, cli.parse(flags))

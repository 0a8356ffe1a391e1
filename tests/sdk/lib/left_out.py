"""A missing disk, or one whose file system became read-only, makes only its own content unavailable."""

import concurrent.futures
import contextlib
import pathlib
import subprocess

from azure.core.exceptions import AzureError, HttpResponseError

from . import cli
from .content import content

CONTAINER = "left-out"
# Bodies of at most 4 KiB lie in rows, the others in data extents.
SIZES = (100, 30_000, 300_000, 2 << 20, 5 << 20)
COPIES = 12
THREADS = 6
# One partition that stays one: few extents are logs or runs, so that a disk with data alone is found.
SMALL_STORE = ("--journal-bytes=8388608", "--index-hosts=1", "--initial-partitions=1")
# The byte of an extent's first page that holds its kind, and the kind of data.
KIND_AT, DATA = 6, 1
OUT = "out of service"


def kinds(folder):
    """The kinds of the extents below a data directory."""
    files = [path for path in (pathlib.Path(folder) / "extents").rglob("*") if path.is_file()]
    return {path.read_bytes()[KIND_AT] for path in files if path.stat().st_size > KIND_AT}


def outcome(clients, name, body):
    """What a read gives: 'right', 'error STATUS' or 'WRONG'."""
    try:
        return "right" if clients.get_blob_client(name).download_blob().readall() == body else "WRONG"
    except HttpResponseError as error:
        return f"error {error.status_code}"
    except AzureError as error:
        return f"error {type(error).__name__}"


@contextlib.contextmanager
def read_only(folder):
    """Makes a folder a read-only file system while the block runs. Yields whether this machine could."""
    commands = (["mount", "--bind", folder, folder], ["mount", "-o", "remount,bind,ro", folder])
    done = []
    try:
        with contextlib.suppress(FileNotFoundError):
            for command in commands:
                if subprocess.run(list(map(str, command)), capture_output=True, check=False).returncode:
                    break
                done.append(command)
        yield len(done) == len(commands)
    finally:
        if done:
            subprocess.run(["umount", str(folder)], check=False)


class LeftOut:
    """A store of four disks, and what is read of it while one is left out."""

    def __init__(self, server, verdicts):
        self.server, self.verdicts = server, verdicts
        self.blobs = {f"{size}-{copy:02}": content((size, copy), size) for size in SIZES for copy in range(COPIES)}

    def container(self):
        """A client of the container."""
        return self.server.account.service().get_container_client(CONTAINER)

    def write(self):
        """Uploads everything from several clients at a time, so that several data extents are open."""
        put = lambda item: self.container().upload_blob(*item)
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(put, self.blobs.items()))

    def reads(self):
        """What reading each blob gives."""
        container = self.container()
        return {name: outcome(container, name, body) for name, body in self.blobs.items()}

    def all_right(self, what):
        """Every blob reads well."""
        self.verdicts.none(f"{what}: {len(self.blobs)} blobs read well",
                           [row for row in self.reads().items() if row[1] != "right"])

    def serves_the_rest(self, what, folder):
        """Starts the node, which serves what does not lie below `folder`, and names the disk. Returns what is not served."""
        self.server.start()
        found = self.reads()
        lost = {name: state for name, state in found.items() if state != "right"}
        self.verdicts.none(f"{what}: what is not served is refused as a failure of the server",
                           [row for row in lost.items() if row[1] not in ("error 500", "error 503")])
        self.verdicts.check(f"{what}: what lies there is not served", lost, "> 0", len(lost))
        self.verdicts.none(f"{what}: small blobs, whose bytes are in rows, are served",
                           [name for name in lost if name.startswith(f"{SIZES[0]}-")])
        self.verdicts.check(f"{what}: so are others", len(found) - len(lost) > COPIES, f"> {COPIES}", len(found) - len(lost))
        names = {blob.name for blob in self.container().list_blobs()}
        self.verdicts.equal(f"{what}: blobs listed", len(names & set(self.blobs)), len(self.blobs))
        self.container().upload_blob(what, content(what, 1 << 20))
        self.blobs[what] = content(what, 1 << 20)
        status, text = self.server.admin("/readyz?verbose")
        self.verdicts.check(f"{what}: /readyz names the disk", status == 200 and OUT in text, OUT, f"{status}: {text[:80]}")
        self.verdicts.equal(f"{what}: exit code after SIGTERM", self.server.stop(), 0)
        self.verdicts.equal(f"{what}: files left on the disk", self.files(folder), self.before[folder])
        return lost

    def reported_as_lost(self, what, lost, folder):
        """`check` without the disk of the stopped node names the blobs whose reads failed, and no others."""
        code, report = self.server.check_report(f"--without-disk={folder}")
        affected, problems = report["affected"], report["problems"]
        self.verdicts.equal(f"{what}: exit code of check", code, 1)
        named = {name for name in self.blobs if any(problem.startswith(f'"{name}": ') for problem in problems)}
        self.verdicts.none(f"{what}: check names the blobs whose reads failed, and no others", sorted(named ^ set(lost)))
        self.verdicts.equal(f"{what}: blobs that check counts as affected", affected["blobs"], len(lost))
        self.verdicts.equal(f"{what}: rows that check cannot read", affected["unread"], [])
        containers = {of["container"] for extent in affected["extents"] for of in extent["containers"]}
        self.verdicts.equal(f"{what}: containers that check names", containers, {f"{self.server.account.name}/{CONTAINER}"})
        self.verdicts.check(f"{what}: check names the disk", any(str(folder) in one for one in problems), folder, problems[:1])

    def verified_all_the_same(self, what, folder):
        """`check` says that the disk of the stopped node is not writable, and nothing else: all bytes are there."""
        code, report = self.server.check_report()
        self.verdicts.equal(f"{what}: exit code of check", code, 1)
        self.verdicts.equal(f"{what}: problems that check reports", report["problems"], [f"{folder}: not writable; bytes verified"])
        self.verdicts.equal(f"{what}: blobs that check counts as affected", report["affected"]["blobs"], 0)

    def files(self, folder):
        """Files of extents below a folder, and their bytes on the disk."""
        found = [path for path in (folder / "extents").rglob("*") if path.is_file()]
        return len(found), sum(path.stat().st_blocks for path in found)


def run(options, scratch, verdicts):
    """The whole of it, on a store of its own."""
    folders = [scratch / f"disk-{number}" for number in range(4)]
    with cli.server(options, scratch, SMALL_STORE, data=folders[:1]) as server:
        server.account.service().create_container(CONTAINER)
        server.stop()
        extra = server.extra
        server.extra = [*extra, *(f"--add-disk={folder}" for folder in folders[1:])]
        server.start()
        server.extra = extra
        store = LeftOut(server, verdicts)
        store.write()
        server.data = [str(folder) for folder in folders]
        server.stop()
        of_data = [folder for folder in folders[1:] if kinds(folder) == {DATA}]
        if not verdicts.check("of three added disks one has data and no part of the index", of_data, "> 0", len(of_data)):
            return
        out = of_data[0]
        store.before = {out: store.files(out)}
        server.data.remove(str(out))
        refused = subprocess.run(server.command(), capture_output=True, text=True, timeout=60, check=False)
        text = refused.stdout + refused.stderr
        named = all(word in text for word in (str(out), "--without-disk"))
        verdicts.check("a start that lacks a disk is refused and names it", refused.returncode != 0 and named,
                       "refused", f"exit {refused.returncode}: {text.strip()[-100:]}")
        server.extra = [*extra, f"--without-disk={out}"]
        lost = store.serves_the_rest("without-disk", out)
        store.reported_as_lost("without-disk", lost, out)
        server.extra, server.data = extra, [str(folder) for folder in folders]
        server.start()
        store.all_right("the disk is back")
        server.stop()
        verdicts.sound(server, "blockyard check after that")
        store.before[out] = store.files(out)
        with read_only(out) as could:
            if could:
                store.serves_the_rest("read-only", out)
                store.verified_all_the_same("read-only", out)
                errors = [line for line in server.log_path.read_text().splitlines() if "ERROR" in line and str(out) in line]
                verdicts.check("read-only: an ERROR line names the directory", any(OUT in line for line in errors), "1 line",
                               errors[:1])
        if not could:
            verdicts.figure("a disk with a read-only file system", "not run: this machine does not allow mounting")
            return
        server.start()
        store.all_right("the disk can be written to again")
        server.stop()
        verdicts.sound(server, "blockyard check after that, too")

"""Which of our files a request executes. A debug build runs under callgrind, which counts every call of a function, with
its source file and that of its caller. A function is on the path of a request if it is called at least once for each of them,
and rarely while the server is idle. In a debug build no function of ours is inlined into another file's."""

import argparse
import dataclasses
import http.client
import json
import re
import secrets
import shutil
import sys
import time
from base64 import b64encode
from collections import Counter, defaultdict
from pathlib import Path

from comparison.instructions import Callgrind
from comparison.report import line
from comparison.run import about, write
from comparison.servers import ROOT, Blockyard, say, target_dir

sys.path.insert(0, str(ROOT / "tests" / "sdk"))

from lib.wire import Wire  # noqa: E402

# Nothing but the requests themselves: no change of the map by load, one host, no audit while it counts.
SERVE_ARGS = ["--split-requests", "0"]
REQUESTS = {"Put Block": 20, "Get Blob": 20, "split": 5}
BODY = secrets.token_bytes(64 << 10)
CONTAINER = "path"
PORT = 22600
# Calls of one request that may be missing: the first one of a count may have begun before it.
MISSED = 1
# What every round shows is no background work.
ROUNDS = 3


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """The well-known development account at a server."""

    address: str
    name: str = "devstoreaccount1"
    key: str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class Server(Blockyard):
    """A program under callgrind, and the requests that are counted."""

    def __init__(self, name, program, source):
        super().__init__(None, PORT)
        self.name, self.program, self.serve_args = name, str(Path(program).resolve()), SERVE_ARGS
        self.source = source

    def ports(self):
        return [self.base, self.base + 1]

    def connect(self, data):
        """Prepares what the requests need."""
        self.wire = Wire(Endpoint(f"127.0.0.1:{self.base}"))
        self.wait_until_ready()
        self.token = (data / "admin-token").read_text().strip()
        self.must(self.wire.request("PUT", f"/{CONTAINER}", {"restype": "container"}), 201)
        blob = {"x-ms-blob-type": "BlockBlob"}
        self.must(self.wire.request("PUT", f"/{CONTAINER}/read", headers=blob, body=BODY), 201)

    def wait_until_ready(self):
        """Waits until it serves: under callgrind that takes seconds."""
        for _ in range(600):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.base + 1, timeout=60)
                connection.request("GET", "/readyz")
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.2)
        raise RuntimeError(f"{self.name} is not ready")

    @staticmethod
    def must(answer, status):
        """Fails unless the answer has this status."""
        if answer.status != status:
            raise RuntimeError(f"{answer.status} {answer.code}: {answer.body[:200]}")
        return answer

    def request(self, what, number):
        """Sends one request."""
        if what == "Put Block":
            block = {"comp": "block", "blockid": b64encode(b"%08d" % number).decode()}
            self.must(self.wire.request("PUT", f"/{CONTAINER}/staged", block, body=BODY), 201)
        elif what == "Get Blob":
            if self.must(self.wire.request("GET", f"/{CONTAINER}/read"), 200).body != BODY:
                raise RuntimeError("other bytes than were written")
        else:
            self.split(f"devstoreaccount1/{CONTAINER}/{number:08}")

    def split(self, key):
        """Splits the partition of a key at it."""
        connection = http.client.HTTPConnection("127.0.0.1", self.base + 1, timeout=60)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        connection.request("POST", "/admin/partitions/split", json.dumps({"at": [key]}), headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"split: {answer.status} {text[:200]}")


class Profile:
    """The calls in one dump of callgrind: how often each of our functions was called, and from where."""

    def __init__(self, text, source):
        self.names = {"fl": {}, "fn": {}}
        self.source = source
        self.sources = {}
        # The line at which each function was first seen.
        self.lines = {}
        self.calls = Counter()
        # Calls from one of our files, and from a library, into a function of another file.
        self.from_ours, self.from_others = Counter(), Counter()
        self.read(text)

    def named(self, kind, value):
        """A name, which callgrind writes once and numbers."""
        found = re.match(r"\((\d+)\)(?: (.*))?$", value)
        if not found:
            return value
        if found[2] is not None:
            self.names[kind][found[1]] = found[2]
        return self.names[kind][found[1]]

    def read(self, text):
        """Reads a dump (callgrind's format, version 1)."""
        # The file of the function, and of the code at hand, which may be inlined.
        caller = here = called = within = function = ""
        at = 0
        for row in text.splitlines():
            key, _, value = row.partition("=")
            if key == "fl":
                caller = here = called = self.ours(self.named("fl", value))
            elif key in ("fi", "fe"):
                here = called = self.ours(self.named("fl", value))
            elif key in ("cfi", "cfl"):
                called = self.ours(self.named("fl", value))
            elif key == "fn":
                within = self.named("fn", value)
            elif key == "cfn":
                function = self.named("fn", value)
            elif key == "calls":
                if called:
                    self.count((called, function), caller, int(value.split()[0]))
                called = here
            elif key[:1] in tuple("+-*0123456789"):
                step = key.split()[0]
                at = at if step == "*" else at + int(step) if step[0] in "+-" else int(step)
                if caller and caller == here:
                    self.lines.setdefault((caller, within), at)

    def is_async(self, one):
        """Whether this is the body of an async function or block, or a closure in one."""
        file, function = one
        if not function.endswith("{{closure}}") or one not in self.lines:
            return False
        if file not in self.sources:
            self.sources[file] = (self.source / "src" / file).read_text().splitlines()
        before = self.sources[file][:self.lines[one]]
        head = next((row for row in reversed(before) if re.search(r"\bfn \w", row)), "")
        return re.search(r"\basync\b", head + before[-1]) is not None

    def ours(self, path):
        """The path below `src/`, or nothing for a library's file."""
        found = re.search(r"(?:^|/)src/(.+\.rs)$", path)
        library = "/.cargo/" in path or "/rustc/" in path
        return found[1] if found and not library and (self.source / "src" / found[1]).is_file() else ""

    def count(self, callee, caller, calls):
        """Adds calls of a function."""
        self.calls[callee] += calls
        if caller and caller != callee[0]:
            self.from_ours[callee] += calls
        elif not caller:
            self.from_others[callee] += calls


def on_path(busy, idle, requests):
    """The functions that each request calls."""
    return {one for one, calls in busy.calls.items()
            if calls >= requests - MISSED and idle.calls[one] < calls / 2}


def entries(busy, on, requests, into_types):
    """How often a request enters a file from another of ours: of values (`types/`), or of all else."""
    return sum(busy.from_ours[one] for one in on if one[0].startswith("types/") == into_types) / requests


def path_of(rounds, requests):
    """What a request passes in each of the rounds: its files, and how often it enters one from another of ours, and from a
    library, at least. `rounds` are pairs of a busy profile and an idle one."""
    on = set.intersection(*(on_path(busy, idle, requests) for busy, idle in rounds))
    first = rounds[0][0]
    return {
        "files": sorted({file for file, _ in on}),
        "async": sorted({one[0] for one in on if first.is_async(one)}),
        "functions": len(on),
        "entered": min(entries(busy, on, requests, False) for busy, _ in rounds),
        "values": min(entries(busy, on, requests, True) for busy, _ in rounds),
        "by_library": min(sum(busy.from_others[one] for one in on) / requests for busy, _ in rounds),
    }


def main():
    """Counts every program and writes benches/results/path_of.{md,json}."""
    args = arguments()
    results = {**about(), "about": args.about, "trees": {}}
    work = target_dir().resolve() / "bench-data" / "path-of"
    page = ""
    try:
        for tree in args.trees:
            name, program, source = re.match(r"([^=]+)=([^:]+):(.+)$", tree).groups()
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir(parents=True)
            results["trees"][name] = count(Server(name, program, Path(source)), work)
            page = write(args.out, "path_of", results, render)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(page)
    return 0


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="+", metavar="NAME=PROGRAM:TREE",
                        help="a name, a debug build, and the tree it was built from")
    parser.add_argument("--about", default="", help="a sentence for the page: what the trees are")
    parser.add_argument("--out", type=Path, default=ROOT / "benches" / "results", help="where results are written")
    return parser.parse_args()


def count(server, work):
    """The path of each request through one program."""
    counter = Callgrind(server, work)
    server.start(work / "data", counter.wrap)
    paths = {}
    try:
        server.connect(work / "data")
        for what, requests in REQUESTS.items():
            say(f"{server.name}: {requests} of {what}")
            for number in range(3):
                server.request(what, number)
            paths[what] = path_of([one_round(counter, what, number) for number in range(ROUNDS)], requests)
    finally:
        server.stop()
    return paths


def one_round(counter, what, number):
    """The profiles of the requests, and of as much time without any."""
    began = time.monotonic()
    numbers = range(100 * (number + 1), 100 * (number + 1) + REQUESTS[what])
    busy = profile(counter, lambda: [counter.server.request(what, number) for number in numbers])
    seconds = time.monotonic() - began
    return busy, profile(counter, lambda: time.sleep(seconds))


def profile(counter, work):
    """The calls while `work` runs."""
    counter.begin("path")
    work()
    counter.control("--dump=path")
    counter.control("--instr=off")
    dumps = sorted(counter.profiles.glob("callgrind.out.*"), key=lambda path: path.stat().st_mtime)
    found = Profile(dumps[-1].read_text(errors="replace"), counter.server.source)
    for dump in dumps:
        dump.unlink()
    return found


def render(results):
    """Markdown of a whole run."""
    trees = results["trees"]
    parts = [
        "# Files that a request passes", "",
        f"{results['date']}, {results['machine']}. {results['about']}", "",
        f"A Put Block of {len(BODY) >> 10} KiB, a Get Blob of as much, a split of a partition by the admin listener. Callgrind counts the",
        "calls of a debug build. *Files* are files of `src/` of which a request calls at least one function. *Async files* are those",
        "with an async function that it runs: they pass the request on or wait for something, the others are values and pure",
        "functions. *Functions* are all called functions. *Entries* are calls of a function of one file from another of our files,",
        "for each request; *of values*, into `types/`, which release builds inline; *by libraries*, from a library, such as the poll",
        "of a boxed future. Background work is left out.", "",
        line(["request", "tree", "files", "async files", "functions", "entries", "of values", "by libraries"]),
        line(["---", "---"] + ["---:"] * 6),
    ]
    for what in REQUESTS:
        for name, paths in trees.items():
            one = paths[what]
            cells = [len(one["files"]), len(one["async"]), one["functions"], *(round(one[kind]) for kind in ("entered", "values", "by_library"))]
            parts.append(line([what, name, *map(str, cells)]))
    parts += ["", "Files by folder of `src/`:", "",
              line(["folder", *[f"{what}, {name}" for what in REQUESTS for name in trees]]),
              line(["---"] + ["---:"] * (len(REQUESTS) * len(trees)))]
    folders = defaultdict(list)
    columns = [paths[what] for what in REQUESTS for paths in trees.values()]
    for number, one in enumerate(columns):
        for file, files in Counter(file.split("/")[0] for file in one["files"]).items():
            folders[file].append((number, files))
    for folder, found in sorted(folders.items()):
        found = dict(found)
        parts.append(line([folder, *[str(found.get(number, 0)) for number in range(len(columns))]]))
    return "\n".join(parts) + "\n"

#!/usr/bin/env python3
"""Partitions as operators see them: every `blockyard partitions` command under load, and the page in headless Chromium.

Two hosts of the index. While threads put blobs, partitions are split, merged, moved and prepared by the program's own commands;
no request may fail, and LIST and GET must stay exact. The login of the console and its page are judged too (lib/partition_login.py
and lib/partition_page.py). The page needs Debian's chromium and chromium-driver, or --no-page. UPDATE_DOCS=1 writes its pictures.
"""

import json
import os
import pty
import re
import select
import signal
import subprocess
import threading
import time

from lib import cli, partition_login, partition_page
from lib.browser import Browser
from lib.measure import wait_until
from lib.report import Verdicts

ACCOUNT = "devstoreaccount1"


class Commands:
    """The program's commands against one server."""

    def __init__(self, server):
        self.server = server

    def started(self, *words, **options):
        """The process of a command."""
        command = [self.server.binary, "partitions", *map(str, words), "--admin-listen", self.server.admin_address,
                   "--data", self.server.data[0]]
        return subprocess.Popen(command, text=True, **options)

    def text(self, *words):
        """What a command prints for people; (exit code, text)."""
        process = self.started(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text, _ = process.communicate(timeout=120)
        return process.returncode, text

    def json(self, *words):
        """The answer of a command that must succeed."""
        code, text = self.text(*words, "--json")
        if code != 0:
            raise RuntimeError(f"partitions {' '.join(map(str, words))}: {text}")
        return json.loads(text)

    def list(self):
        """All partitions, in key order."""
        return self.json("list")["partitions"]


class Load:
    """Threads that put blobs until they must end; what they put, and what failed."""

    def __init__(self, server, container, threads=3):
        self.container, self.put, self.failed, self.ended = container, {}, [], threading.Event()
        self._clients = [server.account.service().get_container_client(container) for _ in range(threads)]
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(threads)]

    def _run(self, thread):
        number = 0
        while not self.ended.is_set():
            name, content = f"load/{(number * 37) % 1000:04d}-{thread}-{number}", f"{thread} {number}".encode()
            try:
                self._clients[thread].upload_blob(name, content)
                self.put[name] = content
            except Exception as error:  # noqa: BLE001 - whatever a client sees is what is judged
                self.failed.append(f"{name}: {error}"[:200])
            number += 1

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc):
        self.ended.set()
        for thread in self._threads:
            thread.join(60)
        return False


def exact(verdicts, client, wanted, when):
    """LIST names exactly the blobs that were put, in order, once; GET answers their bytes."""
    listed = [blob.name for blob in client.list_blobs(results_per_page=97)]
    verdicts.check(f"{when}: LIST is exact", listed == sorted(wanted), f"{len(wanted):,} names", f"{len(listed):,}")
    some = sorted(wanted)[::max(1, len(wanted) // 40)]
    wrong = [name for name in some if client.download_blob(name).readall() != wanted[name]]
    verdicts.none(f"{when}: GET answers what was put", wrong)


def tiles(partitions):
    """Whether ranges follow each other without a gap from the lowest key to the highest."""
    ends = [partition["high"] for partition in partitions]
    return partitions[0]["low"] == "" and ends == [partition["low"] for partition in partitions[1:]] + [None]


def changes(commands, load, verdicts):
    """Every command that changes the map, while the load runs."""
    key = f"{ACCOUNT}/{load.container}/load/0500"
    verdicts.check("one partition at the start", len(commands.list()) == 1)
    split = commands.json("split", key, f"{ACCOUNT}/{load.container}")
    verdicts.check("split at keys makes three", len(split["partitions"]) == 3)
    froms = [partition["from"] for partition in commands.list()]
    verdicts.check("list shows where they begin", froms == ["", f"{ACCOUNT}/{load.container}/", key], found=froms)
    wait_until(lambda: len(load.put) > 100, 120)
    _, below, above = split["partitions"]
    parts = commands.json("split", "--partition", below, "--ways", 4)
    verdicts.check("split into even parts makes four", len(parts["partitions"]) == 4, found=parts)
    moved = commands.json("move", parts["partitions"][1], "--host", 1)
    hosts = {partition["id"]: partition["host"] for partition in commands.list()}
    verdicts.check("move changes the host", hosts[moved["partitions"][0]] == 1, found=hosts)
    merged = commands.json("merge", above, *parts["partitions"])
    verdicts.check("merge makes one of five", len(merged["partitions"]) == 1 and len(commands.list()) == 2)
    some = commands.json("split", key, f"{ACCOUNT}/{load.container}/load/0750")["partitions"]
    striped = commands.json("stripe", some[1], "--stripes", 4)["partitions"]
    stripes = [(partition["stripe"], partition["from"]) for partition in commands.list() if partition["id"] in striped]
    verdicts.check("stripe deals a range out to four", stripes == [({"number": n, "of": 4}, key) for n in range(4)], found=stripes)
    whole = commands.json("unstripe", striped[2])["partitions"]
    verdicts.check("unstripe makes them one", len(whole) == 1 and not any(partition["stripe"] for partition in commands.list()), found=whole)
    commands.json("merge", some[0], *whole, some[2])
    prepared = commands.json("prepare", f"{ACCOUNT}/{load.container}", "--prefix", "next/", "--like", "load/", "--ways", 8, "--spread")
    verdicts.check("prepare like a sibling makes eight", len(prepared["partitions"]) == 8, found=prepared)
    hosts = [partition["host"] for partition in commands.list() if partition["id"] in prepared["partitions"]]
    verdicts.check("which are dealt out to the hosts", hosts == [0, 1] * 4, found=hosts)
    again = commands.json("prepare", f"{ACCOUNT}/{load.container}", "--prefix", "next/", "--like", "load/", "--ways", 8)
    verdicts.figure("a second preparation makes", f"{again['changes']} more changes")
    even = commands.json("prepare", f"{ACCOUNT}/{load.container}", "--prefix", "hex/", "--characters", "0123456789abcdef", "--ways", 16)
    froms = [partition["from"] for partition in commands.list()]
    verdicts.check("prepare by characters cuts at them", f"{ACCOUNT}/{load.container}/hex/c" in froms and len(even["partitions"]) == 16)
    verdicts.check("the partitions are the whole key space", tiles(commands.list()))
    looked = commands.json("list")
    verdicts.check("every change is listed with its pause", [change["number"] for change in looked["changes"]] == list(range(1, looked["latest_change"] + 1))
                   and {change["kind"] for change in looked["changes"]} == {"split", "merge", "move", "stripe", "unstripe"})


def refusals(commands, verdicts):
    """A refused command says what to do, with exit code 1 or more."""
    for words, expected in [
        (("move", 1, "--host", 9), "no such partition"),
        (("move", commands.list()[0]["id"], "--host", 9), "--index-hosts"),
        (("merge", commands.list()[0]["id"], commands.list()[2]["id"]), "side by side"),
        (("split", "nobody/none/x"), "account list"),
        (("split", f"{ACCOUNT}/none/x"), "make it first"),
        (("split", "--partition", 1), "--ways"),
    ]:
        code, text = commands.text(*words)
        verdicts.check(f"refused: {' '.join(map(str, words[:1]))} says {expected}", code != 0 and expected in text, found=text.strip()[-90:])


def for_people(commands, verdicts):
    """Tables and lines; watch on a terminal, until ctrl-C."""
    code, text = commands.text("list")
    count = len(commands.list())
    rows = [line.split("\t") for line in text.splitlines()]
    verdicts.check("list is a table", code == 0 and len(rows) == count + 1 and {len(row) for row in rows} == {14}
                   and "(the beginning)" in text, found=text[:80])
    code, text = commands.text("watch", "--seconds", 2)
    looked = commands.list()
    total = {what: sum(partition[what] for partition in looked) for what in ("reads", "writes", "lists", "refused", "cpu_us", "log_bytes")}
    verdicts.check("list has the load by class", all(total[what] > 0 for what in ("reads", "writes", "cpu_us", "log_bytes")), found=total)
    verdicts.check("classes add up", all(p["requests"] == p["reads"] + p["writes"] + p["lists"] for p in looked))
    verdicts.check("nothing was refused", total["refused"] == 0, found=total)
    verdicts.check("waits are shown", all(p["queue_age_us"] < 10_000_000 for p in looked), found=[p["queue_age_us"] for p in looked])
    verdicts.check("watch prints lines without a terminal", code == 0 and len(re.findall("requests/s", text)) == 3 and "\x1b" not in text,
                   found=text[:160])
    process = commands.started("watch", "--json", stdout=subprocess.PIPE)
    printed = [json.loads(process.stdout.readline()) for _ in range(3)]
    process.send_signal(signal.SIGINT)
    verdicts.check("watch --json prints the partitions until ctrl-C", process.wait(30) == 0 and len(printed[2]["partitions"]) == count)
    process.stdout.close()

    ours, theirs = pty.openpty()
    process = commands.started("watch", stdout=theirs, stdin=theirs, stderr=theirs)
    os.close(theirs)
    seen, end = b"", time.monotonic() + 60
    while seen.count(b"busiest") < 3 and time.monotonic() < end:
        if select.select([ours], [], [], 1)[0]:
            seen += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    code = process.wait(30)
    while select.select([ours], [], [], 1)[0]:
        try:
            seen += os.read(ours, 65536)
        except OSError:
            break
    os.close(ours)
    text = seen.decode()
    verdicts.check("watch draws a heat map on a terminal", "\x1b[48;5;" in text or ";48;5;" in text)
    verdicts.check("and gives the terminal back on ctrl-C", code == 0 and text.rstrip().endswith("\x1b[?25h\x1b[?1049l"), found=repr(text[-40:]))


def main(options, scratch):
    """Everything on one server."""
    missing = [] if options.no_page else Browser.missing()
    if missing:
        print(f"{' and '.join(missing)} not installed: apt-get install chromium chromium-driver, or give --no-page")
        return 1
    verdicts = Verdicts("partitions")
    with cli.server(options, scratch, ["--index-hosts", "2", "--initial-partitions", "1", "--split-requests", "0"]) as server:
        client = server.account.service().create_container("judged")
        commands = Commands(server)
        with Load(server, "judged") as load:
            changes(commands, load, verdicts)
            refusals(commands, verdicts)
            for_people(commands, verdicts)
            partition_login.judge(server, verdicts)
            partition_login.banner(server.binary, scratch / "terminal", verdicts)
            if not options.no_page:
                partition_page.judge(commands, server, load, scratch, verdicts)
        verdicts.none("no request failed", load.failed)
        verdicts.check("the load put blobs all the while", len(load.put) > 300, found=f"{len(load.put):,}")
        exact(verdicts, client, load.put, "after all changes")
        if options.no_page:
            server.kill()
            server.start()
        else:
            partition_page.judge_restart(server, verdicts)
        verdicts.check("after kill -9 the map is the whole key space", tiles(commands.list()))
        exact(verdicts, server.account.service().get_container_client("judged"), load.put, "after kill -9")
        server.stop()
        verdicts.equal("check finds the store sound", server.check()[0], 0)
    return verdicts.exit_code()


if __name__ == "__main__":
    made = cli.parser(__doc__)
    made.add_argument("--no-page", action="store_true", help="leave the page out, which needs chromium")
    cli.run(main, cli.parse(made))

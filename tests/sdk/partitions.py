#!/usr/bin/env python3
"""Partitions as operators see them: every `blockyard partitions` command under load, and the page in headless Chromium.

Two hosts of the index. While threads put blobs, partitions are split, merged, moved and prepared by the program's own commands;
no request may fail, and LIST and GET must stay exact. The page must draw the map, the hosts, the changes and the pauses, ask for
the token, obey the keyboard, and write nothing to its console. Needs Debian's chromium and chromium-driver, or --no-page.
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

from lib import cli, pictures
from lib.browser import Browser
from lib.measure import wait_until
from lib.report import Verdicts
from lib.server import free_port

ACCOUNT = "devstoreaccount1"
ARROW_UP, ARROW_LEFT = "\ue013", "\ue012"
# Red, green, blue of every pixel of a canvas, as {colour: count}.
COLOURS = """
const canvas = document.getElementById(arguments[0]), counts = {};
const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
for (let i = 0; i < data.length; i += 4) { const key = data.slice(i, i + 4).join(); counts[key] = (counts[key] || 0) + 1; }
return counts;
"""
ROWS = "return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map(row => [...row.cells].map(cell => cell.textContent));"


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
    """Threads that put blobs until they are told to end; what they put, and what failed."""

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
    """LIST names just what was put, in order, once; GET answers what was put."""
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
    verdicts.check("every change is told with its pause", [change["number"] for change in looked["changes"]] == list(range(1, looked["latest_change"] + 1))
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
    verdicts.check("list is a table", code == 0 and len(text.splitlines()) == count + 2 and "(the beginning)" in text, found=text[:80])
    code, text = commands.text("watch", "--seconds", 2)
    looked = commands.list()
    total = {what: sum(partition[what] for partition in looked) for what in ("reads", "writes", "lists", "refused", "cpu_us", "log_bytes")}
    verdicts.check("list has the load by class", all(total[what] > 0 for what in ("reads", "writes", "cpu_us", "log_bytes")), found=total)
    verdicts.check("classes add up", all(p["requests"] == p["reads"] + p["writes"] + p["lists"] for p in looked))
    verdicts.check("nothing was refused", total["refused"] == 0, found=total)
    verdicts.check("waits are told", all(p["queue_age_us"] < 10_000_000 for p in looked), found=[p["queue_age_us"] for p in looked])
    verdicts.check("watch prints lines without a terminal", code == 0 and len(re.findall("requests/s", text)) == 3 and "\x1b" not in text,
                   found=text[:160])
    process = commands.started("watch", "--json", stdout=subprocess.PIPE)
    looks = [json.loads(process.stdout.readline()) for _ in range(3)]
    process.send_signal(signal.SIGINT)
    verdicts.check("watch --json prints looks until ctrl-C", process.wait(30) == 0 and len(looks[2]["partitions"]) == count)
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


def page(commands, server, load, scratch, verdicts, look):
    """The page: asks for the token, draws everything, obeys keys, is silent."""
    token = (scratch / "data" / "admin-token").read_text().strip()
    url = f"http://{server.admin_address}/partitions"
    with Browser(free_port()) as browser:
        browser.prefer(look)
        browser.open(url)
        verdicts.check(f"{look}: the page asks for the token first", browser.run("return !document.getElementById('ask').hidden && "
                       "document.querySelector('main').hidden && document.activeElement.id === 'token'"))
        browser.keys("#token", "not the token\n")
        wait_until(lambda: "not the admin token" in browser.run("return document.getElementById('trouble').textContent"), 30)
        # Chromium itself notes the 401 in the console.
        noted = browser.console()
        verdicts.check(f"{look}: a wrong token is refused", all("401" in entry["message"] for entry in noted), found=str(noted)[:200])
        browser.keys("#token", f"{token}\n")
        wait_until(lambda: browser.run("return typeof looks !== 'undefined' && looks.length > 2"), 60)
        # Changes while the page looks: cut and merged again.
        key = f"{ACCOUNT}/{load.container}/load/0250"
        for _ in range(3):
            made = commands.json("split", key)
            time.sleep(1)
            commands.json("merge", *made["partitions"])
        # And striped and unstriped.
        cut = commands.json("split", key, f"{ACCOUNT}/{load.container}/load/0300")["partitions"]
        striped = commands.json("stripe", cut[1], "--stripes", 4)["partitions"]
        wait_until(lambda: striped[0] in browser.run("return looks[looks.length - 1].map.ids"), 60)
        told = browser.run(POINT, striped[1])
        wide = browser.run("const { map } = looks[looks.length - 1]; return columns(map, axis(), 1000).map(([a, b]) => b - a)")
        verdicts.check(f"{look}: stripes lie side by side", " stripe 2 of 4 " in told and min(wide) > 5, found=f"{told} {wide}")
        commands.json("merge", cut[0], *commands.json("unstripe", striped[1])["partitions"], cut[2])
        number = commands.json("list")["latest_change"]
        wait_until(lambda: browser.run("return latest") >= number and browser.run("return looks.length") > 8, 60)

        heat, owners, pauses = (browser.run(COLOURS, name) for name in ("map", "owners", "pauses"))
        drawn = lambda colours, hexes: [one for one in hexes if any(
            colour.split(",")[:3] == [str(int(one[i:i + 2], 16)) for i in (1, 3, 5)] for colour in colours)]
        ramp = browser.run("return palette()")
        verdicts.check(f"{look}: the map is drawn, hot and cold", len(drawn(heat, ramp)) >= 2 and sum(heat.values()) - heat.get("0,0,0,0", 0) > 30_000,
                       found=f"{len(heat)} colours")
        marks = browser.run("return Object.values(KINDS)")
        verdicts.check(f"{look}: splits and merges are marked on it", len(drawn(heat, marks)) >= 2, found=drawn(heat, marks))
        verdicts.check(f"{look}: both hosts are drawn", len(drawn(owners, browser.run("return HOSTS.slice(0, 2)"))) == 2)
        verdicts.check(f"{look}: the histogram is drawn", len(drawn(pauses, [browser.run("return style('--accent')")] )) == 1)
        rows = browser.run(ROWS, "#changes")
        wanted = commands.json("list")["changes"]
        told = [[str(c["number"]), c["at"][11:19], c["kind"], f"{c['pause_ms']:.3f}"] for c in reversed(wanted)][:100]
        verdicts.check(f"{look}: the table tells every change", [row[:4] for row in rows] == told,
                       found=str(rows[:1]))
        busiest = browser.run(ROWS, "#busiest")
        verdicts.check(f"{look}: the busiest partition is named", any(ACCOUNT in row[10] for row in busiest[:3]), found=str(busiest[:1]))
        # Somebody puts blobs all the while; most requests may be those for the account's row, which are looks.
        told = {what: sum(float(row[column].replace(",", "")) for row in busiest)
                for what, column in (("reads", 3), ("writes", 4), ("processor", 6), ("log", 8))}
        verdicts.check(f"{look}: with their requests by class, processor time and log", all(told.values()), found=told)
        browser.keys("#map", ARROW_UP, ARROW_LEFT)
        told = browser.run("return document.getElementById('told').textContent")
        verdicts.check(f"{look}: arrow keys tell what is where", " on host " in told, found=told)
        browser.screenshot(scratch / f"partitions-{look}.png")
        if look == "light":
            pictures.keep(scratch / "partitions-light.png", "partitions.png")
        contrast = browser.run(CONTRAST)
        verdicts.check(f"{look}: text stands out 4.5 to 1", contrast >= 4.5, found=f"{contrast:.1f}")
        outside = browser.run("return performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith(location.origin))")
        verdicts.none(f"{look}: nothing is loaded from elsewhere", [name for name in outside if not name.startswith("data:")])
        verdicts.none(f"{look}: nothing on the console", browser.console())
        if look == "light":
            browser.open("about:blank")
            browser.open(f"{url}#token={token}")
            wait_until(lambda: browser.run("return looks.length > 0"), 30)
            verdicts.check("a token in the address is used and taken out", browser.run("return location.hash") == "")


# What is told of the middle of a partition's column at the latest look.
POINT = """
const { map } = looks[looks.length - 1], [a, b] = columns(map, axis(), 1000)[map.place.get(arguments[0])];
point((a + b) / 2000, 0.9999);
return document.getElementById('told').textContent;
"""

# The least contrast of any text on the page's or a pane's ground.
CONTRAST = """
const light = text => { const [r, g, b] = text.match(/[\\d.]+/g).map(n => { n /= 255; return n <= 0.03928 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ground = node => { for (; node; node = node.parentElement) { const c = getComputedStyle(node).backgroundColor; if (!/, 0\\)$|transparent/.test(c)) return c; } return "rgb(255,255,255)"; };
let least = 21;
for (const node of document.querySelectorAll("h1,h2,p,dt,dd,th,td,span,label,button,#told")) {
  if (!node.textContent.trim() || !node.offsetParent) continue;
  const [a, b] = [light(getComputedStyle(node).color), light(ground(node))].sort((x, y) => y - x);
  least = Math.min(least, (a + 0.05) / (b + 0.05));
}
return least;
"""


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
            for look in [] if options.no_page else ["light", "dark"]:
                page(commands, server, load, scratch, verdicts, look)
        verdicts.none("no request failed", load.failed)
        verdicts.check("the load put blobs all the while", len(load.put) > 300, found=f"{len(load.put):,}")
        exact(verdicts, client, load.put, "after all changes")
        server.kill()
        server.start()
        verdicts.check("after kill -9 the map is the whole key space", tiles(commands.list()))
        exact(verdicts, server.account.service().get_container_client("judged"), load.put, "after kill -9")
        server.stop()
        verdicts.equal("check finds the store sound", server.check()[0], 0)
    return verdicts.exit_code()


if __name__ == "__main__":
    made = cli.parser(__doc__)
    made.add_argument("--no-page", action="store_true", help="leave the page out, which needs chromium")
    cli.run(main, cli.parse(made))

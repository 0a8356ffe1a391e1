"""The page of partitions in headless Chromium: what it draws and says, at three widths, light and dark."""

import datetime
import re
import time

from . import pictures
from .browser import Browser
from .measure import wait_until
from .partition_login import ask, link
from .ports import free_port

ACCOUNT = "devstoreaccount1"
ARROW_UP, ARROW_LEFT = "\ue013", "\ue012"
WIDTHS = {390: 844, 1024: 1100, 1920: 1080}
PICTURES = {(1024, "light"): "partitions.png", (1024, "dark"): "partitions-dark.png", (390, "light"): "partitions-phone.png"}
PAGE_BYTES_MAX = 150_000

# Every pixel of a canvas, as {"red,green,blue": count}.
COLOURS = """
const canvas = document.getElementById(arguments[0]), counts = {};
const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
for (let i = 0; i < data.length; i += 4) { const key = data.slice(i, i + 3).join(); counts[key] = (counts[key] || 0) + 1; }
return counts;
"""
# Computed colours of elements, as "red,green,blue".
STYLES = """
return [...document.querySelectorAll(arguments[0])].map(e => getComputedStyle(e)[arguments[1]].match(/\\d+/g).slice(0, 3).join());
"""
ROWS = "return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map(row => [...row.cells].map(cell => cell.textContent.trim()));"
TEXT = "return document.querySelector(arguments[0])?.textContent ?? '';"
# As the page is when it was opened.
TIDY = "document.querySelectorAll('.more[aria-expanded=true]').forEach(e => e.click()); document.activeElement.blur();"
CLICK = "document.querySelector(arguments[0]).click();"
# What does not fit: elements beyond the screen or cut by their own box. Names of bands may be cut: a table has them in full.
CLIPPED = """
const found = [], wide = document.scrollingElement.scrollWidth;
if (wide > innerWidth) found.push(`the page is ${wide} wide`);
for (const e of document.querySelectorAll("body *")) {
  const box = e.getBoundingClientRect();
  if (!box.width || e.closest("#bands") || e.closest("thead")) continue;
  const what = `${e.tagName} ${e.id || e.className} ${e.textContent.slice(0, 30)}`;
  if (box.right > innerWidth + 0.5 || box.left < -0.5) found.push(`${what}: ${box.left} to ${box.right}`);
  const style = getComputedStyle(e);
  if (e.clientWidth && e.scrollWidth > e.clientWidth + 1) found.push(`${what} needs ${e.scrollWidth} pixels, has ${e.clientWidth}`);
  if (style.overflowY !== "visible" && e.scrollHeight > e.clientHeight + 1) found.push(`${what} is cut below`);
}
return found.slice(0, 5);
"""
# The least contrast of any text with its ground, and which.
CONTRAST = """
const light = text => { const [r, g, b] = text.match(/[\\d.]+/g).map(n => { n /= 255; return n <= 0.03928 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ground = node => { for (; node; node = node.parentElement) { const c = getComputedStyle(node).backgroundColor; if (!/, 0\\)$|transparent/.test(c)) return c; } return "rgb(255,255,255)"; };
let least = [21, ""];
for (const node of document.querySelectorAll("body *")) {
  if (![...node.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !node.getClientRects().length || node.tagName === "NOSCRIPT") continue;
  const [a, b] = [light(getComputedStyle(node).color), light(ground(node))].sort((x, y) => y - x);
  const contrast = (a + 0.05) / (b + 0.05);
  if (contrast < least[0]) least = [contrast, `${node.tagName} ${node.id} ${node.textContent.slice(0, 30)}`];
}
return least;
"""
LOADED = """
const all = performance.getEntriesByType("resource").filter(e => e.name.includes("/console/"));
return [performance.getEntriesByType("navigation")[0], ...all].map(e => [e.name, e.decodedBodySize]);
"""
# Controls without a name, which a screen reader could not tell.
NAMELESS = """
return [...document.querySelectorAll("button, canvas, table")].filter(e => !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby")
  || (e.tagName === "BUTTON" && e.textContent.trim()))).map(e => e.outerHTML.slice(0, 60));
"""


def judge(commands, server, load, scratch, verdicts):
    """Everything that the page shows of a running server."""
    for name in ("side-a", "side-b"):
        server.account.service().create_container(name)
    token = (scratch / "data" / "admin-token").read_text().strip()
    history = ask(server, "GET", "/admin/partitions/history", Authorization=f"Bearer {token}")
    verdicts.equal("the history is answered with the token", history[0], 200)
    with Browser(free_port()) as browser:
        opened = datetime.datetime.now(datetime.timezone.utc)
        logged_in(browser, server, verdicts)
        wait_until(lambda: browser.run(ROWS, "#changes"), 60)
        first = browser.run(TEXT, "#span")
        verdicts.check("a young history says how long it is, and why", "the server started at" in first and "keeps ten minutes" in first, found=first)
        before = commands.json("list")["changes"][0]
        verdicts.check("changes from before the page are there", before["at"] < opened.isoformat() and
                       any(row[-1] == str(before["number"]) for row in all_rows(browser, "#changes")), found=before)
        drawn(commands, load, browser, verdicts)
        filtered(browser, verdicts)
        labelled(browser, load, verdicts)
        keyboard(browser, verdicts)
        browser.run(TIDY)
        for look in ("light", "dark"):
            browser.prefer(look)
            for width, height in WIDTHS.items():
                fits(browser, (width, height, look), scratch, verdicts)
        weighed(browser, verdicts)


def logged_in(browser, server, verdicts):
    """Without a session the page says what to do; a link works once."""
    base = f"http://{server.admin_address}"
    browser.open(f"{base}/")
    wait_until(lambda: browser.run("return location.pathname") == "/login", 30)
    verdicts.check("without a login the page says how to", "blockyard console" in browser.run(TEXT, "main"))
    # Chromium itself notes the 401 in the console.
    noted = browser.console()
    verdicts.check("and nothing is on its console but the refusal", all("401" in entry["message"] for entry in noted), found=str(noted)[:200])
    url = link(server)
    # The page of the login is shown already: only what is behind # changes.
    browser.open(url)
    wait_until(lambda: browser.run("return location.pathname") == "/partitions", 30)
    verdicts.equal("a link logs in, and its code is taken out of the address", browser.run("return location.href"), f"{base}/partitions")
    verdicts.equal("no script can read the cookie", browser.run("return document.cookie"), "")
    browser.open("about:blank")
    browser.open(url)
    wait_until(lambda: browser.run(TEXT, "#trouble"), 30)
    trouble = browser.run(TEXT, "#trouble")
    verdicts.check("the same link a second time is refused", "run `blockyard console` again" in trouble, found=trouble)
    browser.console()
    browser.open(f"{base}/partitions")


def all_rows(browser, table):
    """The rows of a table, all of which are asked for."""
    button = f"{table} ~ .more[aria-expanded=false]"
    if browser.run("return !!document.querySelector(arguments[0])", button):
        browser.run(CLICK, button)
        wait_until(lambda: not browser.run("return !!document.querySelector(arguments[0])", button), 30)
    return browser.run(ROWS, table)


def drawn(commands, load, browser, verdicts):
    """Load, hosts, changes and pauses of what happens while the page looks."""
    key = f"{ACCOUNT}/{load.container}/load/0250"
    for _ in range(2):
        made = commands.json("split", key)
        time.sleep(2.5)
        commands.json("merge", *made["partitions"])
    cut = commands.json("split", key, f"{ACCOUNT}/{load.container}/load/0300")["partitions"]
    striped = commands.json("stripe", cut[1], "--stripes", 4)["partitions"]
    time.sleep(3)
    commands.json("merge", cut[0], *commands.json("unstripe", striped[1])["partitions"], cut[2])
    latest = commands.json("list")["latest_change"]
    wait_until(lambda: browser.run(TEXT, "#f-changes") == f"{latest:,}", 60)
    heat, hosts = browser.run(COLOURS, "map"), browser.run(COLOURS, "hosts")
    colours = browser.run(STYLES, ".legend i", "backgroundColor")
    seen = [colour for colour in colours if heat.get(colour, 0) > 50]
    verdicts.check("the map is drawn, hot and cold", colours[0] in seen and len(seen) >= 3, found=f"{len(seen)} of {len(colours)} colours")
    verdicts.check("both hosts are drawn", sum(count > 200 for count in hosts.values()) >= 2, found=len(hosts))
    wanted, rows, pauses = [], [], []

    def is_shown():
        # The server may make a change of its own between the two looks.
        wanted[:] = commands.json("list")["changes"]
        rows[:] = [[row[0], row[1].split()[-1], row[2]] for row in all_rows(browser, "#changes")]
        pauses[:] = [browser.run(TEXT, "#p-summary")]
        return pauses[0].startswith(f"{len(wanted)} changes") and rows == [[c["at"][11:19], c["kind"], f"{c['pause_ms']:.3f}"] for c in reversed(wanted)]

    verdicts.check("the table has every change, and how many", wait_until(is_shown, 30), found=f"{rows[:1]} {pauses}")
    verdicts.check("the pauses are summed up", "the longest" in pauses[0], found=pauses)
    rows = browser.run(ROWS, "#busiest")
    verdicts.check("the busiest partition is named", any(ACCOUNT in row[10] for row in rows[:3]), found=str(rows[:1]))
    # Somebody puts blobs all the while, on a slow machine two a second: one sample may show none of a kind.
    most = {"reads": 0.0, "writes": 0.0, "processor": 0.0, "log": 0.0}

    def are_shown():
        rows = browser.run(ROWS, "#busiest")
        for what, column in (("reads", 3), ("writes", 4), ("processor", 6), ("log", 8)):
            most[what] = max(most[what], sum(float(row[column].replace(",", "")) for row in rows))
        return all(most.values())

    verdicts.check("with their requests by class, processor time and log", wait_until(are_shown, 60), found=most)


def filtered(browser, verdicts):
    """A kind of change can be left out, on the map and in the tables."""
    kinds = ["split", "merge", "stripe", "unstripe", "move"]
    counts = {kind: int(browser.run(TEXT, f"#show-{kind} small")) for kind in kinds}
    verdicts.check("each kind of change can be chosen, and how many there are is shown", min(counts.values()) > 0, found=counts)
    colour = browser.run(STYLES, "#show-merge i", "color")[0]

    def pixels():
        return browser.run(COLOURS, "map").get(colour, 0)

    # A split drawn over a merge may hide it. A change is on the map once a sample is as young as it.
    others = [kind for kind in kinds if kind != "merge"]
    for kind in others:
        press(browser, kind, "false")
    wait_until(lambda: pixels() > 20, 30)
    with_it = pixels()
    press(browser, "merge", "false")
    without = pixels()
    verdicts.check("a kind that is left out is not on the map", with_it > 20 and without == 0, found=f"{with_it}, {without} pixels")
    for kind in others:
        press(browser, kind, "true")
    shown = {row[1].split()[-1] for row in all_rows(browser, "#changes")}
    verdicts.check("nor in the table", "merge" not in shown and "split" in shown, found=shown)
    press(browser, "merge", "true")


def press(browser, kind, then):
    """Presses the button of a kind of change and waits until it says that it is pressed, or is not."""
    browser.run(CLICK, f"#show-{kind}")
    wait_until(lambda: browser.run("return document.querySelector(arguments[0]).getAttribute('aria-pressed')", f"#show-{kind}") == then, 30)


def labelled(browser, load, verdicts):
    """Bands of keys have the names of their containers; times have ticks."""
    bands = "return [...document.querySelectorAll('#bands li')].map(e => e.title);"
    wait_until(lambda: any(" more" in title for title in browser.run(bands)), 60)
    titles, rows = browser.run(bands), browser.run(ROWS, "#key-bands")
    one = f"{ACCOUNT}/{load.container}"
    verdicts.check("a band has the name of its container", one in titles, found=titles)
    verdicts.check("one of several containers names the first and how many more", any(re.search(r" and \d+ more$", title) for title in titles), found=titles)
    verdicts.check("a table has every band in words", set(titles) <= {row[0] for row in rows} and len(rows) >= 3, found=rows)
    ticks = browser.run("return [...document.querySelectorAll('.ticks span')].map(e => e.textContent);")
    verdicts.check("the axis of time has ticks", 2 <= len(ticks) <= 11 and all(":" in tick for tick in ticks), found=ticks)
    label = browser.run("return document.querySelector('#map').getAttribute('aria-label');")
    verdicts.check("the map has a text for those who do not see it", "Heat map of" in label and "changes of the map" in label, found=label)
    verdicts.none("every control has a name", browser.run(NAMELESS))


def keyboard(browser, verdicts):
    """The map and the filters obey keys."""
    browser.keys("#map", ARROW_UP, ARROW_LEFT)
    reading = browser.run(TEXT, "#reading")
    verdicts.check("arrow keys show what is where", " on host " in reading and "requests/s" in reading, found=reading)
    browser.keys("#show-move", " ")
    pressed = browser.run("return document.querySelector('#show-move').getAttribute('aria-pressed')")
    verdicts.equal("the space bar leaves a kind out", pressed, "false")
    browser.keys("#show-move", " ")


def fits(browser, screen, scratch, verdicts):
    """Nothing is cut at one width and look, and text stands out."""
    width, height, look = screen
    browser.screen(width, height)
    wait_until(lambda: browser.run("return innerWidth") == width, 30)
    # The canvas follows in the next frame.
    time.sleep(0.5)
    what = f"{width} pixels, {look}"
    verdicts.none(f"{what}: nothing is cut", browser.run(CLIPPED))
    least, where = browser.run(CONTRAST)
    verdicts.check(f"{what}: text stands out 4.5 to 1", least >= 4.5, found=f"{least:.2f} {where}")
    used = browser.run("const b = document.querySelector('main').getBoundingClientRect(); return b.width / innerWidth")
    verdicts.check(f"{what}: the width is used", used > 0.9, found=f"{used:.2f}")
    path = scratch / f"partitions-{width}-{look}.png"
    # A phone shows the first screen of it.
    (browser.screenshot if width < 1000 else browser.whole_page)(path)
    if (width, look) in PICTURES:
        pictures.keep(path, PICTURES[width, look])


def weighed(browser, verdicts):
    """The page is small, loads nothing from elsewhere and writes nothing to its console."""
    loaded = browser.run(LOADED)
    total = sum(size for _, size in loaded)
    verdicts.check("the page is below 150 KB", 0 < total < PAGE_BYTES_MAX and len(loaded) >= 10, found=f"{total:,} bytes in {len(loaded)} files")
    outside = browser.run("return performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith(location.origin))")
    verdicts.none("nothing is loaded from elsewhere", [name for name in outside if not name.startswith("data:")])
    # Chromium notes that this script reads canvases.
    verdicts.none("nothing on the console", [entry for entry in browser.console() if "willReadFrequently" not in entry["message"]])


def judge_restart(server, verdicts):
    """The page says when no data comes, and sessions end with the server, which is killed and started again."""
    with Browser(free_port()) as browser:
        browser.open(link(server))
        wait_until(lambda: browser.run(ROWS, "#busiest"), 60)
        server.kill()
        wait_until(lambda: "No data since" in browser.run(TEXT, "#trouble"), 60)
        trouble = browser.run(TEXT, "#trouble")
        verdicts.check("the page says when no data comes", "does not answer" in trouble and "Trying again" in trouble, found=trouble)
        server.start()
        wait_until(lambda: browser.run("return location.pathname") == "/login", 60)
        verdicts.check("sessions end with the server", "blockyard console" in browser.run(TEXT, "main"))

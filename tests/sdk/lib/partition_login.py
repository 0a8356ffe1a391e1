"""The login of the console: `blockyard console`, its link, and what a session may do. Speaks HTTP, needs no browser."""

import http.client
import json
import os
import pty
import re
import select
import subprocess
import time
import types
import urllib.parse

COOKIE_PARTS = {"Path=/", "Max-Age=28800", "HttpOnly", "SameSite=Strict"}
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; "
          "base-uri 'none'; form-action 'none'")


def link(server):
    """The link that `blockyard console` prints."""
    command = [server.binary, "console", "--admin-listen", server.admin_address, "--data", server.data[0], "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)["url"]


def ask(server, method, path, body=None, **headers):
    """(status, headers, text) of a request to the admin listener."""
    connection = http.client.HTTPConnection(server.admin_address, timeout=30)
    try:
        if "Cookie" in headers:
            # What the page's own scripts send.
            headers = {"X_Blockyard_Console": "1", **headers}
        headers = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def log_in(server, code, **headers):
    """As `ask`, for an exchange of a code."""
    return ask(server, "POST", "/login", {"code": code}, **headers)


def judge(server, verdicts):
    """Everything about the login."""
    url = link(server)
    base, _, code = url.partition("#")
    verdicts.equal("the link leads to the login, its code behind #", base, f"http://{server.admin_address}/login")
    verdicts.check("a code cannot be guessed", len(code) == 43, found=len(code))
    other = "http://page.test"
    status, _, text = log_in(server, code, Origin=other)
    verdicts.check("a page of another site cannot log in", status == 403 and "OtherSite" in text, found=text)
    status, headers, _ = log_in(server, code, Origin=f"http://{server.admin_address}", Sec_Fetch_Site="same-origin")
    name, *parts = [part.strip() for part in (headers["Set-Cookie"] or "").split(";")]
    verdicts.check("a code opens a session", status == 204 and set(parts) == COOKIE_PARTS, found=f"{status} {parts}")
    port = urllib.parse.urlsplit(url).port
    verdicts.check("the cookie is named for the port", name.startswith(f"blockyard_console_{port}="), found=name.split("=")[0])
    for what, used in [("a used code", code), ("a made-up code", "x" * 43), ("an empty code", "")]:
        status, headers, text = log_in(server, used)
        refused = status == 403 and "run `blockyard console` again" in text and headers["Set-Cookie"] is None
        verdicts.check(f"{what} is refused and says what to do", refused, found=f"{status} {text}")
    session(server, name, verdicts)
    pages(server, verdicts)
    status, headers, _ = ask(server, "POST", "/logout", Cookie=name)
    verdicts.check("a logout takes the cookie away", status == 204 and "Max-Age=0" in headers["Set-Cookie"], found=headers["Set-Cookie"])
    verdicts.equal("and ends the session", ask(server, "GET", "/admin/partitions", Cookie=name)[0], 401)


def session(server, cookie, verdicts):
    """A session reads what the page shows, for the page, and nothing else."""
    for method, path, body, headers, expected in [
        ("GET", "/admin/partitions", None, {}, 200),
        ("GET", "/admin/partitions/history", None, {"Sec_Fetch_Site": "same-origin"}, 200),
        ("GET", "/admin/partitions", None, {"X_Blockyard_Console": None}, 401),
        ("GET", "/admin/partitions", None, {"Sec_Fetch_Site": "same-site"}, 401),
        ("GET", "/admin/partitions", None, {"Sec_Fetch_Site": "cross-site"}, 401),
        ("GET", "/admin/partitions", None, {"Origin": "http://127.0.0.1:1"}, 401),
        ("GET", "/admin/partitions", None, {"Authorization": "Bearer wrong"}, 401),
        ("POST", "/admin/partitions/split", {"partition": 1, "ways": 2}, {}, 401),
        ("POST", "/admin/console", None, {}, 401),
        ("GET", "/admin/accounts", None, {}, 401),
        ("GET", "/admin/keys", None, {}, 401),
        ("GET", "/admin/trace", None, {}, 401),
    ]:
        status, _, text = ask(server, method, path, body, Cookie=cookie, **headers)
        verdicts.check(f"a session: {method} {path} {headers or ''} {expected}", status == expected, found=f"{status} {text[:80]}")
    verdicts.equal("without a session nothing is read", ask(server, "GET", "/admin/partitions/history")[0], 401)


def pages(server, verdicts):
    """The first page, and the headers of all."""
    status, headers, _ = ask(server, "GET", "/")
    verdicts.check("/ leads to the page of partitions", status == 303 and headers["Location"] == "partitions", found=headers["Location"])
    for path in ["/partitions", "/login", "/console/partitions.mjs", "/console/console.css", "/console/vendor/preact.mjs"]:
        status, headers, text = ask(server, "GET", path)
        policy = [headers[name] for name in ("Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy")]
        verdicts.check(f"{path} is served under the policy", status == 200 and policy == [POLICY, "nosniff", "no-referrer"], found=policy)
        verdicts.check(f"{path} has no code of its own text", "<script>" not in text and "<style" not in text)
    verdicts.equal("other files are not served", ask(server, "GET", "/console/../partitions.html")[0], 404)


def banner(binary, folder, verdicts):
    """`blockyard serve` on a terminal prints a link that opens one session."""
    ours, terminal = pty.openpty()
    listeners = ["--blob-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
    process = subprocess.Popen([binary, "serve", "--data", folder, *listeners], stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal)
    os.close(terminal)
    try:
        shown, until, found = b"", time.monotonic() + 60, None
        while found is None and time.monotonic() < until and process.poll() is None:
            if select.select([ours], [], [], 1)[0]:
                try:
                    shown += os.read(ours, 4096)
                except OSError:
                    break
                found = re.search(rb"http://([^/\s]+)/login#([\w-]{43})\s", shown)
        verdicts.check("the banner on a terminal has a login link", found, found=shown[-200:])
        if found:
            address, code = (part.decode() for part in found.groups())
            opened = types.SimpleNamespace(admin_address=address)
            verdicts.equal("it opens a session once", [log_in(opened, code)[0] for _ in range(2)], [204, 403])
    finally:
        # Nobody reads its terminal any more.
        process.kill()
        process.wait(60)
        os.close(ours)

#!/usr/bin/env python3
"""Browser forms of a real browser: pages of another origin post files to a bucket, in headless Chromium.

* a page that posts a form with a policy of an account's own key stores the file, by `<form>` and by `fetch`, and goes on to the URL
  that the form names, with bucket, key and ETag in the query;
* with the well-known key of the development account, which every page knows, nothing is stored, unless a rule of the bucket allows
  POST from the origin of the page; then `fetch` reads the answer too.

Needs Debian's chromium and chromium-driver; without them the script says so and exits with 77 (skipped).
"""

import hashlib
import http.server
import json
import threading
import urllib.parse

from lib import accounts, cli, s3, s3_clients
from lib.browser import Browser
from lib.measure import wait_until
from lib.report import Verdicts
from lib.s3_forms import Form
from lib.ports import free_port

BUCKET, SKIPPED = "forms", 77
CONTENT = "of a browser: \r\n--x\r\n ä"
PAGE = "<!doctype html><title>page</title><p>A page of another origin."
# Posts a form as a user does who chose a file; the window goes where the answer says.
SUBMIT = """
const [url, fields, content, name] = arguments;
const form = document.createElement('form');
Object.assign(form, {method: 'POST', enctype: 'multipart/form-data', action: url});
for (const [key, value] of Object.entries(fields)) {
  form.append(Object.assign(document.createElement('input'), {type: 'hidden', name: key, value}));
}
const input = Object.assign(document.createElement('input'), {type: 'file', name: 'file'});
const chosen = new DataTransfer();
chosen.items.add(new File([content], name));
input.files = chosen.files;
form.append(input);
document.body.append(form);
form.submit();
"""
# Posts one by script, without asking first, and without a right to read the answer.
FETCH = """
const [url, fields, content, name] = arguments;
const form = new FormData();
for (const [key, value] of Object.entries(fields)) form.append(key, value);
form.append('file', new File([content], name));
window.came = 'waiting';
fetch(url, {method: 'POST', body: form}).then(answer => window.came = 'status ' + answer.status, () => window.came = 'unread');
"""


class Pages(http.server.BaseHTTPRequestHandler):
    """A page at every path; that at /legacy does not say its encoding."""

    def do_GET(self):  # pylint: disable=invalid-name
        """The page."""
        self.send_response(200)
        charset = "; charset=utf-8" if self.path != "/legacy" else ""
        self.send_header("Content-Type", f"text/html{charset}")
        self.end_headers()
        self.wfile.write(PAGE.encode())

    def log_message(self, *_):  # pylint: disable=arguments-differ
        """Nothing."""


class Visitor:
    """A browser on a page of another origin, and the buckets it posts to."""

    def __init__(self, browser, origin):
        self.browser, self.origin = browser, origin

    def posts(self, account, script, key, page="page", **fields):
        """Posts a form of a page with the key of an account."""
        form = Form(account, BUCKET)
        form.fields = {"key": key + "/${filename}", **fields}
        form.uncovered, form.conditions = {"key"}, [["starts-with", "$key", key]]
        self.browser.open(f"{self.origin}/{page}")
        self.browser.run(script, f"{s3_clients.endpoint(account)}/{BUCKET}", dict(form.all()), CONTENT, "dir ä.txt")

    def came(self):
        """What came of a fetch."""
        wait_until(lambda: self.browser.run("return window.came") != "waiting", 30, every=0.1)
        return self.browser.run("return window.came")

    def place(self):
        """Where the window is."""
        return self.browser.run("return window.location.href")


def stored(account):
    """{key: bytes} of the bucket, through Blob."""
    return s3_clients.through_blob(account, BUCKET)


def own_key(visitor, account, verdicts):
    """An account with a key that pages do not know."""
    done = f"{visitor.origin}/done?from=form"
    visitor.posts(account, SUBMIT, "submitted", success_action_redirect=done)
    wait_until(lambda: "/done" in visitor.place(), 30, every=0.1)
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(visitor.place()).query))
    etag = f'"{hashlib.md5(CONTENT.encode()).hexdigest()}"'
    verdicts.equal("own key: the window goes on", query,
                   {"from": "form", "bucket": BUCKET, "key": "submitted/dir ä.txt", "etag": etag})
    visitor.posts(account, FETCH, "fetched")
    verdicts.equal("own key: a fetch without a rule cannot read the answer", visitor.came(), "unread")
    visitor.posts(account, SUBMIT, "legacy", page="legacy", success_action_redirect=done)
    wait_until(lambda: "/done" in visitor.place(), 30, every=0.1)
    verdicts.equal("own key: a page without a charset", stored(account).pop("legacy/dir ä.txt", None), CONTENT.encode())
    s3.client(account).delete_object(Bucket=BUCKET, Key="legacy/dir ä.txt")
    verdicts.equal("own key: stored", stored(account), dict.fromkeys(["submitted/dir ä.txt", "fetched/dir ä.txt"], CONTENT.encode()))


def known_key(visitor, account, verdicts):
    """The development account."""
    visitor.posts(account, SUBMIT, "submitted")
    wait_until(lambda: BUCKET in visitor.place(), 30, every=0.1)
    refused = visitor.browser.run("return document.documentElement.textContent")
    verdicts.check("known key: a form is refused", "AccessForbidden" in refused, "AccessForbidden", json.dumps(refused)[-300:])
    visitor.posts(account, FETCH, "fetched")
    verdicts.equal("known key: a fetch is refused", visitor.came(), "unread")
    verdicts.equal("known key: nothing stored", stored(account), {})
    rule = {"AllowedOrigins": [visitor.origin], "AllowedMethods": ["POST"], "ExposeHeaders": ["ETag"]}
    s3.client(account).put_bucket_cors(Bucket=BUCKET, CORSConfiguration={"CORSRules": [rule]})
    visitor.posts(account, FETCH, "fetched", success_action_status="201")
    verdicts.equal("known key: a fetch from an origin of a rule", visitor.came(), "status 201")
    visitor.posts(account, SUBMIT, "submitted", success_action_redirect=f"{visitor.origin}/done")
    verdicts.check("known key: a form from an origin of a rule", wait_until(lambda: "/done" in visitor.place(), 30, every=0.1),
                   "goes on", visitor.place())
    verdicts.equal("known key: stored by a rule", sorted(stored(account)), ["fetched/dir ä.txt", "submitted/dir ä.txt"])


def main(options, scratch):
    missing = Browser.missing()
    if missing:
        print(f"skipped: no {' and no '.join(missing)}")
        return SKIPPED
    verdicts = Verdicts("browser forms")
    with cli.server(options, scratch, extra=accounts.BOTH) as server, Browser(free_port()) as browser:
        for account in (server.account, accounts.second(server)):
            s3.client(account).create_bucket(Bucket=BUCKET)
        pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        visitor = Visitor(browser, f"http://localhost:{pages.server_port}")
        own_key(visitor, accounts.second(server), verdicts)
        known_key(visitor, server.account, verdicts)
        pages.shutdown()
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

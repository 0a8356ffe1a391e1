#!/usr/bin/env python3
"""Metrics, alert rules and dashboard against a real Prometheus (docs/monitoring/).

Starts Blockyard and Prometheus on loopback, makes load, and checks:

* `promtool check metrics` finds nothing; counters are typed as counters and end in `_total` once;
* the counts are correct: requests, bytes, failed authentications, partitions, disks;
* every expression of the dashboard returns data, and every metric that it names exists;
* every alert rule evaluates without error, and `promtool` accepts and tests the rules.

Needs Prometheus and promtool (Debian's package `prometheus`); without them the script says so and
exits with 77 (skipped).
"""

import json
import math
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request

from azure.core.exceptions import HttpResponseError

from lib import cli
from lib.account import DEV_NAME, Account
from lib.content import content
from lib.install import ROOT
from lib.measure import wait_until
from lib.report import Verdicts
from lib.ports import free_port

MONITORING = ROOT / "docs" / "monitoring"
CONTAINER = "monitored"
SKIPPED = 77
BLOBS, BLOB_BYTES = 40, 20_000
WRONG_KEY = "d3Jvbmcga2V5IHdyb25nIGtleSB3cm9uZyBrZXkgd3Jvbmcga2V5IQ=="
WRONG_REQUESTS = 7
PARTITIONS = 4
SERVED_WITH = ("--index-hosts=2", f"--initial-partitions={PARTITIONS}", "--split-requests=0", "--tls=auto",
               "--journal-bytes=8388608")
# Expressions that are empty as long as all is well.
EMPTY = {"Panics of tasks"}
# Scraped each second; rates look back this far.
WINDOW, SCRAPES = "15s", 16
NAMES = re.compile(r"\b(?:blockyard|process)_[a-z0-9_]+\b")


class Prometheus:
    """One process that scrapes one server; ended when the block ends."""

    def __init__(self, scratch, server):
        self.scratch, self.server, self.process = scratch, server, None
        self.address = f"127.0.0.1:{free_port()}"

    def __enter__(self):
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(MONITORING / "alerts.yml")],
            "scrape_configs": [{"job_name": "blockyard", "static_configs": [{"targets": [self.server.admin_address]}]}],
        }
        path = self.scratch / "prometheus.yml"
        path.write_text(json.dumps(config))  # JSON is YAML too.
        with open(self.scratch / "prometheus.log", "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={self.scratch / 'tsdb'}",
                 f"--web.listen-address={self.address}"], stdout=log, stderr=log)
        if not wait_until(self.ready, 60, 0.2):
            raise RuntimeError(f"Prometheus is not ready:\n{(self.scratch / 'prometheus.log').read_text()[-2000:]}")
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        return False

    def get(self, path, **query):
        """The JSON answer of its API."""
        url = f"http://{self.address}{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            return json.loads(error.read() or b'{"status": "error"}')

    def ready(self):
        """Whether it answers."""
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=2) as response:
                return response.status == 200
        except OSError:
            return False

    def ask(self, expression):
        """[(labels, value)] of an expression now, or the text of the error."""
        answer = self.get("/api/v1/query", query=expression)
        if answer["status"] != "success":
            return answer.get("error", "an error without text")
        return [(row["metric"], float(row["value"][1])) for row in answer["data"]["result"]]

    def value(self, expression):
        """The one value of an expression; not a number when there is none."""
        found = self.ask(expression)
        return found[0][1] if isinstance(found, list) and len(found) == 1 else math.nan


def load(server):
    """Makes the counted requests. Returns the admitted requests and the bytes sent and received."""
    service = server.account.service()
    container = service.create_container(CONTAINER)
    for number in range(BLOBS):
        container.upload_blob(f"b{number:03}", content(number, BLOB_BYTES))
    taken = sum(len(container.download_blob(f"b{number:03}").readall()) for number in range(BLOBS))
    list(container.list_blobs())
    stranger = Account(server.blob_address, DEV_NAME, WRONG_KEY).service().get_container_client(CONTAINER)
    for _ in range(WRONG_REQUESTS):
        try:
            stranger.get_container_properties()
        except HttpResponseError:
            continue
        raise RuntimeError("a wrong key was let in")
    return 1 + BLOBS + BLOBS + 1, BLOBS * BLOB_BYTES, taken


def promtool(verdicts, what, *arguments, stdin=None):
    """Records that promtool finds nothing."""
    done = subprocess.run(["promtool", *map(str, arguments)], input=stdin, capture_output=True, text=True,
                          cwd=MONITORING, timeout=120, check=False)
    said = (done.stdout + done.stderr).strip()
    if not verdicts.check(what, done.returncode == 0, "exit 0", f"exit {done.returncode}"):
        print(said[-4000:], flush=True)


def types(text):
    """Lines about samples and types that do not fit."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    for name, kind in kinds.items():
        if (kind == "counter") != name.endswith("_total") or name.endswith("_total_total"):
            yield f"{name} is a {kind}"
    for sample in set(re.findall(r"^([a-z_0-9]+)(?:\{| )", text, re.MULTILINE)):
        if sample not in kinds and re.sub(r"_(bucket|sum|count)$", "", sample) not in kinds:
            yield f"{sample} has no type"


def panels():
    """(title, expression) of every target of the dashboard."""
    board = json.loads((MONITORING / "dashboard.json").read_text())
    return [(panel["title"], target["expr"]) for panel in board["panels"] for target in panel.get("targets", [])]


def counts(verdicts, prometheus, done):
    """Checks that the counts are those of the requests."""
    requests, came, went = done
    one = f'{{account="{DEV_NAME}"}}'
    for what, expression, wanted in [
        ("requests of the account", f"blockyard_account_requests_total{one}", requests),
        ("bytes sent to the account", f"blockyard_account_received_bytes_total{one}", came),
        ("requests with a wrong key", 'blockyard_authentication_failures_total{reason="signature"}', WRONG_REQUESTS),
        ("partitions of both hosts", "blockyard_index_open_partitions", PARTITIONS),
        ("disks in use", 'sum(blockyard_disk_state{state="in use"})', 2),
        ("file systems of two disks on one, counted", "max(blockyard_disks_size_bytes) / max(blockyard_disk_size_bytes)", 1),
        ("one version runs", "count(blockyard_build_info)", 1),
    ]:
        verdicts.equal(what, prometheus.value(expression), wanted)
    for what, expression, least in [
        ("bytes answered by the account", f"blockyard_account_sent_bytes_total{one}", went),
        ("bytes over connections, in", "blockyard_received_bytes_total", came),
        ("bytes over connections, out", "blockyard_sent_bytes_total", went),
        ("connections accepted", "blockyard_connections_accepted_total", 2),
        ("syncs of the first disk", 'blockyard_disk_sync_seconds_count{disk="0"}', 2),
        ("days until the certificate ends",
         "(blockyard_certificate_expiry_timestamp_seconds - time()) / 86400", 300),
        ("memory in RAM", 'process_resident_memory_bytes{job="blockyard"}', 10 << 20),
    ]:
        found = prometheus.value(expression)
        verdicts.check(what, found >= least, f">= {least:,}", f"{found:,.0f}")


def dashboard(verdicts, prometheus):
    """Records that every panel shows something."""
    wrong = []
    for title, expression in panels():
        found = prometheus.ask(expression.replace("$__rate_interval", WINDOW).replace("$instance", ".*"))
        if isinstance(found, str):
            wrong.append(f"{title}: {found}: {expression}")
        elif not found and title not in EMPTY:
            wrong.append(f"{title}: no data: {expression}")
    verdicts.none(f"{len(panels())} expressions of the dashboard answer data", wrong)


def names(verdicts, prometheus):
    """Records that every metric named in a panel or a rule is there."""
    text = (MONITORING / "alerts.yml").read_text() + "".join(expression for _, expression in panels())
    wanted = sorted(set(NAMES.findall(text)))
    absent = [name for name in wanted if not prometheus.value(f"count({name})") >= 1]
    verdicts.none(f"{len(wanted)} metrics that panels and rules name are there", absent)


def rules(verdicts, prometheus):
    """Records that every rule evaluates."""
    wait_until(lambda: all(rule["health"] == "ok" for rule in evaluated(prometheus)), 30)
    found = evaluated(prometheus)
    ill = [f"{rule['name']}: {rule['health']}: {rule.get('lastError', '')}" for rule in found if rule["health"] != "ok"]
    verdicts.none(f"{len(found)} alert rules evaluate", ill)
    wanted = (MONITORING / "alerts.yml").read_text().count("- alert: ")
    verdicts.equal("alert rules loaded", len(found), wanted)
    verdicts.none("alerts that fire", [rule["name"] for rule in found if rule["state"] == "firing"])


def evaluated(prometheus):
    """The rules as Prometheus has them."""
    return [rule for group in prometheus.get("/api/v1/rules")["data"]["groups"] for rule in group["rules"]]


def main(options, scratch):
    lacking = [program for program in ("prometheus", "promtool") if not shutil.which(program)]
    if lacking:
        print(f"not run: {' and '.join(lacking)} not installed; Debian has both in the package prometheus", flush=True)
        return SKIPPED
    verdicts = Verdicts("metrics, alerts and dashboard against a real Prometheus")
    for name in ("alerts", "alerts.cluster"):
        promtool(verdicts, f"promtool check rules {name}.yml", "check", "rules", f"{name}.yml")
        promtool(verdicts, f"promtool test rules {name}.test.yml", "test", "rules", f"{name}.test.yml")
    with cli.server(options, scratch, SERVED_WITH, data=[scratch / "one", scratch / "two"]) as server:
        with Prometheus(scratch, server) as prometheus:
            # Rates need samples from before.
            began = wait_until(lambda: prometheus.value('count_over_time(up{job="blockyard"}[1m])') >= 2, 30)
            verdicts.check("Prometheus scrapes the server", began, ">= 2 times", prometheus.ask("up"))
            done = load(server)
            seen = f'sum_over_time(up{{job="blockyard"}}[{WINDOW}])'
            wait_until(lambda: prometheus.value(seen) >= SCRAPES - 2, 60)
            time.sleep(2)
            text = server.admin("/metrics")[1]
            promtool(verdicts, "promtool check metrics", "check", "metrics", stdin=text)
            verdicts.none("counters are counters", list(types(text)))
            counts(verdicts, prometheus, done)
            dashboard(verdicts, prometheus)
            names(verdicts, prometheus)
            rules(verdicts, prometheus)
    return verdicts.exit_code()


if __name__ == "__main__":
    cli.run(main, cli.parse(cli.parser(__doc__)))

#!/usr/bin/env python3
"""Spans of requests reach a collector of OpenTelemetry, and a collector that is dead or slow costs requests nothing.

A tiny collector decodes what comes: each request has one span with its name, account, container, status, request id and stages, in
the trace that its client names, if that is sampled. No span has a key, a signature or the name of a blob. With a ratio of 0 only
sampled traces of clients with a key have spans. What a collector does not take or rejects is counted.
"""

import datetime
import http.client
import json
import os
import socket
import time
import urllib.parse

import boto3
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import generate_container_sas
from botocore.config import Config
from lib import cli
from lib.collector import Collector
from lib.commands import command
from lib.measure import wait_until
from lib.report import Verdicts

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
STAGES = [f"blockyard.{stage}_ms" for stage in ("admission", "body", "index", "journal", "read")]


def traced(sampled, trace=TRACE):
    """A header of W3C Trace Context."""
    return {"traceparent": f"00-{trace}-{PARENT}-0{int(sampled)}"}


def counted(server):
    """Spans that were sent, and dropped by reason."""
    found = server.metrics()
    dropped = {reason: found[f'blockyard_spans_dropped_total{{reason="{reason}"}}'] for reason in ("queue_full", "not_taken", "rejected")}
    return found["blockyard_spans_sent_total"], dropped


def answered(server):
    """Requests that were answered."""
    return sum(value for name, value in server.metrics().items() if name.startswith("blockyard_requests_total"))


def every_request(server, collector, verdicts):
    """Each request has one span, which describes it."""
    container = server.account.service().create_container("spans")
    ids = []
    keep = lambda response: ids.append(response.http_response.headers["x-ms-request-id"])
    container.upload_blob("secret-name", os.urandom(300_000), headers=traced(True), raw_response_hook=keep)
    container.download_blob("secret-name", headers=traced(False)).readall()
    container.download_blob("secret-name").readall()
    try:
        container.download_blob("missing-name")
    except ResourceNotFoundError:
        pass
    command(server, "fault", "set", "busy", "--operation", "GetBlobProperties", "--count", "1")
    try:
        container.get_blob_client("secret-name").get_blob_properties()
    except Exception:  # pylint: disable=broad-except
        pass
    command(server, "fault", "clear")
    account = server.account
    s3 = boto3.client("s3", endpoint_url=f"http://{server.blob_address}", aws_access_key_id=account.name, aws_secret_access_key=account.key,
                      region_name="us-east-1", config=Config(s3={"addressing_style": "path"}))
    s3.put_object(Bucket="spans", Key="of-s3", Body=b"x")
    # All requests but the one whose client does not record it.
    wait_until(lambda: len(collector.spans) >= answered(server) - 1, 60)
    spans = collector.spans
    verdicts.equal("spans, and requests without that of an unsampled trace", len(spans), int(answered(server)) - 1)
    by_name = {span["name"]: span for span in spans}
    put, create = by_name["PutBlob"], by_name["CreateContainer"]
    facts = put["attributes"]
    verdicts.equal("a span of a sampled trace continues it", (put["trace"], put["parent"], create["parent"]), (TRACE, PARENT, ""))
    verdicts.check("other requests begin traces of their own", len({span["trace"] for span in spans if not span["parent"]})
                   == len([span for span in spans if not span["parent"]]) and create["trace"] != TRACE)
    verdicts.check("ids of spans differ", len({span["id"] for span in spans}) == len(spans))
    named = {name: facts.get(f"blockyard.{name}") for name in ("account", "container", "request_id")}
    verdicts.equal("account, container, request id", named, {"account": account.name, "container": "spans", "request_id": ids[0]})
    wire = {name: facts[name] for name in ("http.request.method", "http.response.status_code", "url.scheme", "http.request.body.size")}
    verdicts.equal("method, status, scheme, bytes", wire, {"http.request.method": "PUT", "http.response.status_code": 201,
                                                           "url.scheme": "http", "http.request.body.size": 300_000})
    took = (put["end"] - put["start"]) / 1e6
    verdicts.check("stages are parts of the span", all(0 <= facts[stage] <= took for stage in STAGES) and facts[STAGES[2]] > 0
                   and facts[STAGES[3]] > 0, found=f"{took:.1f} ms: {[round(facts[stage], 2) for stage in STAGES]}")
    verdicts.check("spans are of servers, and of now", all(span["kind"] == 2 and 0 <= time.time() - span["end"] / 1e9 < 300 for span in spans))
    missing = next(span for span in spans if span["attributes"].get("http.response.status_code") == 404)
    failed = next(span for span in spans if span["attributes"].get("http.response.status_code") == 503)
    verdicts.equal("a refusal has its code and is no error", (missing["attributes"]["error.type"], missing["status"]), ("BlobNotFound", 0))
    verdicts.equal("a failure is an error", (failed["attributes"]["error.type"], failed["status"]), ("ServerBusy", 2))
    verdicts.check("S3 has spans too", "PutObject" in by_name, found=str(sorted(by_name)))
    text = json.dumps(spans) + json.dumps(collector.resources)
    wrong = [word for word in (account.key, "secret-name", "missing-name", "sig=", "SharedKey", "AWS4") if word in text]
    verdicts.none("secrets and names of blobs in spans", wrong)
    verdicts.equal("who sends, and how", (collector.paths, collector.resources[0]["service.name"]),
                   ({("/v1/traces", "application/x-protobuf", "tests")}, "blockyard"))
    verdicts.equal("spans are counted", counted(server), (len(spans), {"queue_full": 0, "not_taken": 0, "rejected": 0}))


def dead_and_slow(server, collector, verdicts):
    """Requests are answered; spans that are not accepted are counted; then spans are sent again."""
    container = server.account.service().get_container_client("spans")
    collector.status, collector.answer = 500, b"no room \x1b[2J" + b"x" * 5_000
    sent, _ = counted(server)
    container.upload_blob("while-it-fails", b"x", overwrite=True)
    wait_until(lambda: counted(server)[1]["not_taken"] >= 1, 30)
    collector.status, collector.answer = 200, b""

    def flows():
        container.upload_blob("again", b"x", overwrite=True)
        return counted(server)[0] > sent

    wait_until(flows, 60)
    log = server.log_path.read_text(errors="replace")
    verdicts.check("the log says once that it failed, and that it works again", log.count("the collector does not take spans") == 1
                   and log.count("the collector takes spans again") == 1)
    failed = next((line for line in log.splitlines() if "the collector does not take spans" in line), "")
    verdicts.check("the log has status and text of the answer, shortened and escaped", "500 Internal Server Error: no room" in failed
                   and len(failed) < 1_000 and "\x1b[2J" not in failed, found=failed[:300])
    remark = b"two are too old"
    collector.answer = bytes([0x0a, len(remark) + 4, 0x08, 2, 0x12, len(remark)]) + remark
    container.upload_blob("rejected", b"x")
    wait_until(lambda: counted(server)[1]["rejected"] >= 1, 30)
    container.upload_blob("rejected again", b"x")
    wait_until(lambda: counted(server)[1]["rejected"] >= 2, 30)
    log = server.log_path.read_text(errors="replace")
    verdicts.equal("spans that the collector rejects are counted, and its message is logged once",
                   (counted(server)[1]["rejected"], log.count("two are too old")), (2, 1))
    collector.answer = b""
    collector.pause = 60
    before = answered(server)
    for number in range(200):
        container.upload_blob(f"slow/{number}", b"x")
    verdicts.check("a collector that does not answer stops no request", answered(server) >= before + 200)
    code = server.stop()
    verdicts.equal("nor the end of the node", code, 0)


def strangers(server, collector, verdicts):
    """The flag of a client without a key does not count, nor that of one whose request is refused."""
    def asked(headers):
        client = http.client.HTTPConnection(*server.blob_address.split(":"), timeout=10)
        client.request("GET", f"/{server.account.name}/few/b", headers=headers)
        answer = client.getresponse()
        answer.read()
        client.close()
        return answer.status

    found = {asked(traced(True)), asked({**traced(True), "Authorization": f"SharedKey {server.account.name}:d3Jvbmc=",
                                         "x-ms-date": "Sat, 28 Nov 2026 00:00:00 GMT", "x-ms-version": "2021-12-02"})}
    verdicts.check("strangers are refused", all(400 <= status < 500 for status in found), found=str(found))


def leaving(server, collector, verdicts):
    """A client that leaves before the answer: its span has the known facts of the request."""
    command(server, "fault", "set", "lost", "--operation", "GetBlob", "--count", "1", "--delay-ms", "30000")
    url = urllib.parse.urlsplit(server.account.service().get_blob_client("spans", "secret-name").url)
    permit = generate_container_sas(server.account.name, "spans", account_key=server.account.key, permission="r",
                                    expiry=datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1))
    with socket.create_connection((url.hostname, url.port), 10) as client:
        client.sendall((f"GET {url.path}?{permit} HTTP/1.1\r\nHost: {url.netloc}\r\nx-ms-version: 2021-12-02\r\n"
                        f"traceparent: {traced(True)['traceparent']}\r\n\r\n").encode())
        time.sleep(1)
    left = lambda: [span for span in collector.spans if "http.response.status_code" not in span["attributes"]]
    wait_until(left, 20)
    command(server, "fault", "clear")
    facts = left()[0]["attributes"]
    known = {name: facts.get(name) for name in ("http.request.method", "url.scheme", "blockyard.account")}
    verdicts.equal("a client that leaves: what its span has", (left()[0]["name"], left()[0]["trace"], known),
                   ("GetBlob", TRACE, {"http.request.method": "GET", "url.scheme": "http", "blockyard.account": server.account.name}))
    verdicts.check("a client that leaves: where it waited", facts["blockyard.index_ms"] > 0, found=str(facts))


def main(options, scratch):
    """One server with a collector, and one whose collector is not there."""
    verdicts = Verdicts("spans")
    os.environ["OTEL_EXPORTER_OTLP_HEADERS"] = "x-sender=tests"
    with Collector() as collector:
        with cli.server(options, scratch, ["--otlp-endpoint", collector.url], data=[scratch / "all"]) as server:
            every_request(server, collector, verdicts)
            leaving(server, collector, verdicts)
            dead_and_slow(server, collector, verdicts)
    with Collector() as collector:
        with cli.server(options, scratch, ["--otlp-endpoint", f"{collector.url}/", "--otlp-sample", "0"], data=[scratch / "none"]) as server:
            container = server.account.service().create_container("few")
            for number in range(20):
                container.upload_blob(f"a/{number}", b"x")
            strangers(server, collector, verdicts)
            container.upload_blob("b", b"x", headers=traced(True))
            wait_until(lambda: collector.spans, 30)
            server.stop()
            verdicts.equal("with a ratio of 0 only sampled traces have spans", [span["trace"] for span in collector.spans], [TRACE])
    with cli.server(options, scratch, ["--otlp-endpoint", "http://127.0.0.1:9"], data=[scratch / "dead"]) as server:
        container = server.account.service().create_container("dead")
        for number in range(20):
            container.upload_blob(f"a/{number}", b"x")
        wait_until(lambda: counted(server)[1]["not_taken"] >= 21, 30)
        verdicts.equal("a dead collector costs a counter", (counted(server)[0], answered(server)), (0, 21))
    return verdicts.exit_code()


if __name__ == "__main__":
    chosen = cli.parse(cli.parser(__doc__))
    cli.run(main, chosen)

"""Properties and statistics of the account's Blob service."""

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (BlobAnalyticsLogging, CorsRule, Metrics, RetentionPolicy, StaticWebsite)
from conftest import refused
from lib.wire import Wire


@pytest.fixture(name="restored")
def _restored(service):
    """The account's service, put back as it was."""
    yield service
    service.set_service_properties(
        analytics_logging=BlobAnalyticsLogging(), hour_metrics=Metrics(), minute_metrics=Metrics(), cors=[],
        static_website=StaticWebsite(enabled=False))


def test_properties_are_kept_and_parts_change_alone(restored):
    rule = CorsRule(["https://a.example", "https://b.example"], ["GET", "PUT"], allowed_headers=["x-ms-meta-*"],
                    exposed_headers=["x-ms-request-id"], max_age_in_seconds=77)
    restored.set_service_properties(
        analytics_logging=BlobAnalyticsLogging(read=True, retention_policy=RetentionPolicy(True, 5)),
        hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=RetentionPolicy(True, 6)),
        cors=[rule], static_website=StaticWebsite(enabled=True, index_document="index.html",
                                                  error_document404_path="404.html"))
    restored.set_service_properties(minute_metrics=Metrics(enabled=True, include_apis=False))
    found = restored.get_service_properties()
    logging = found["analytics_logging"]
    assert (logging.read, logging.write, logging.delete) == (True, False, False)
    assert (logging.retention_policy.enabled, logging.retention_policy.days) == (True, 5)
    assert (found["hour_metrics"].enabled, found["hour_metrics"].include_apis) == (True, True)
    assert (found["minute_metrics"].enabled, found["minute_metrics"].include_apis) == (True, False)
    assert [(r.allowed_origins, r.allowed_methods, r.allowed_headers, r.exposed_headers, r.max_age_in_seconds)
            for r in found["cors"]] == \
        [("https://a.example,https://b.example", "GET,PUT", "x-ms-meta-*", "x-ms-request-id", 77)]
    site = found["static_website"]
    assert (site.enabled, site.index_document, site.error_document404_path) == (True, "index.html", "404.html")
    assert not found["delete_retention_policy"].enabled


def test_default_version_is_kept(restored):
    restored.set_service_properties(target_version="2019-07-07")
    assert restored.get_service_properties()["target_version"] == "2019-07-07"


def test_six_rules_are_too_many(service):
    rules = [CorsRule(["*"], ["GET"])] * 6
    refused(lambda: service.set_service_properties(cors=rules), 400, "InvalidXmlDocument")


def test_stats_are_the_secondary_s(account):
    host = f"{account.name}-secondary.blob.localhost"
    secondary = Wire(account, host=host, path_style=False)
    answer = secondary.request("GET", "/", {"restype": "service", "comp": "stats"})
    secondary.close()
    assert answer.status == 200 and b"<Status>live</Status>" in answer.body

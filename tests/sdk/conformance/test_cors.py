"""Cross-origin rules: preflights and the answers to actual requests."""

import pytest
from azure.storage.blob import CorsRule


@pytest.fixture(name="rules")
def _rules(service):
    """One rule for one origin."""
    service.set_service_properties(cors=[CorsRule(["https://a.example"], ["GET", "PUT"], allowed_headers=["x-ms-*"],
                                                  exposed_headers=["x-ms-request-id"], max_age_in_seconds=9)])
    yield
    service.set_service_properties(cors=[])


def preflight(wire, origin="https://a.example", method="PUT", headers="x-ms-date"):
    """Sends the preflight request of a browser."""
    return wire.request("OPTIONS", "/con/b", headers={
        "origin": origin, "access-control-request-method": method, "access-control-request-headers": headers},
        sign=False)


def test_preflight(wire, rules):
    answer = preflight(wire)
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, "https://a.example")
    assert answer.headers["access-control-allow-methods"] == "PUT"
    assert answer.headers["access-control-allow-headers"] == "x-ms-date"
    assert answer.headers["access-control-max-age"] == "9"
    for bad in ({"origin": "https://b.example"}, {"method": "DELETE"}, {"headers": "authorization"}):
        answer = preflight(wire, **bad)
        assert (answer.status, answer.code) == (403, "CorsPreflightFailure")


def test_preflight_without_rules(wire):
    answer = preflight(wire)
    assert (answer.status, answer.code) == (403, "CorsPreflightFailure")


def test_actual_requests(wire, rules, container, blob):
    blob.upload_blob(b"x")
    path = f"/{container.container_name}/the-blob"
    answer = wire.request("GET", path, headers={"origin": "https://a.example"})
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, "https://a.example")
    assert answer.headers["access-control-expose-headers"] == "x-ms-request-id"
    assert answer.headers["access-control-allow-credentials"] == "true"
    assert answer.headers["vary"] == "Origin"
    other = wire.request("GET", path, headers={"origin": "https://b.example"})
    assert other.status == 200 and "access-control-allow-origin" not in other.headers
    assert other.headers["vary"] == "Origin"
    assert "vary" not in wire.request("GET", path).headers

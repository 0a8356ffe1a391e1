"""Static websites: `$web` on the web endpoint, path-style and by host."""

import http.client

import pytest
from azure.storage.blob import ContentSettings, StaticWebsite

INDEX, HELP, LOST = b"<h1>home</h1>", b"<h1>help</h1>", b"<h1>lost</h1>"


@pytest.fixture
def site(service):
    """A site with an index, a folder and a page for what is not there; off again in the end."""
    service.set_service_properties(static_website=StaticWebsite(
        enabled=True, index_document="index.html", error_document404_path="errors/404.html"))
    web = service.get_container_client("$web")
    html = ContentSettings(content_type="text/html", cache_control="max-age=7")
    for name, data in {"index.html": INDEX, "help/index.html": HELP, "errors/404.html": LOST}.items():
        web.upload_blob(name, data, overwrite=True, content_settings=html)
    web.upload_blob("data/ä b.bin", bytes(range(256)) * 300, overwrite=True)
    yield web
    service.set_service_properties(static_website=StaticWebsite(enabled=False))
    web.delete_container()


@pytest.fixture
def get(account):
    """One unsigned request below the site: (status, headers, body)."""
    def ask(path, method="GET", host=None, body=None, **headers):
        connection = http.client.HTTPConnection(account.address, timeout=20)
        target = f"/{account.name}-web{path}" if host is None else path
        every = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, target, body=body, headers={**every, **({"Host": host} if host else {})})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, answer.headers, data
    return ask


def test_documents_are_served_to_everybody(site, get):
    assert site.get_container_access_policy()["public_access"] is None
    for path, wanted in (("/", INDEX), ("", INDEX), ("/index.html", INDEX), ("/help/", HELP), ("/help", HELP),
                         ("/help/index.html?comp=metadata&x=1", HELP)):
        status, headers, data = get(path)
        assert (status, data, headers["content-type"]) == (200, wanted, "text/html"), path
        assert headers["cache-control"] == "max-age=7"
        assert headers["x-ms-blob-type"] is None, "a site does not reveal the type of a blob"
    status, headers, data = get("/data/%C3%A4%20b.bin")
    assert (status, data) == (200, bytes(range(256)) * 300)


def test_heads_ranges_and_conditions(site, get):
    status, headers, data = get("/", "HEAD")
    assert (status, headers["content-length"], data) == (200, str(len(INDEX)), b"")
    status, again, data = get("/data/%C3%A4%20b.bin", Range="bytes=300-309")
    assert (status, data, again["content-range"]) == (206, bytes(range(44, 54)), "bytes 300-309/76800")
    assert get("/", If_None_Match=headers["etag"])[0] == 304
    assert get("/", If_Match='"0x1"')[0] == 412


def test_what_is_not_there(site, get):
    for path in ("/none", "/none/", "/help/none.html"):
        status, headers, data = get(path)
        assert (status, data, headers["content-type"]) == (404, LOST, "text/html"), path
    assert get("/none", "HEAD")[::2] == (404, b"")
    # Conditions and ranges are about the document that was asked for.
    assert get("/none", Range="bytes=9999-", If_Match='"0x1"')[::2] == (404, LOST)
    site.delete_blob("errors/404.html")
    status, headers, data = get("/none")
    assert (status, headers["content-type"], headers["x-ms-error-code"]) == (404, "text/html", "WebContentNotFound")
    assert b"<title>WebContentNotFound</title>" in data and b"The requested content does not exist." in data
    assert get("/%ff")[0] == 404


def test_other_methods_and_accounts_are_refused(site, get, account):
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        status, headers, data = get("/index.html", method, body=b"x" if method in ("PUT", "POST") else None)
        assert (status, headers["content-type"]) == (405, "text/html"), method
    assert get("/", host=f"nobody.web.localhost:{account.address.split(':')[1]}")[0] == 404
    assert site.download_blob("index.html").readall() == INDEX


def test_hosts_name_the_site(site, get, account):
    for host in (f"{account.name}.web.localhost", f"{account.name}.z13.web.localhost",
                 f"{account.name}-secondary.z6.web.localhost"):
        assert get("/help/", host=host)[::2] == (200, HELP), host


def test_no_site_no_documents(service, get):
    service.set_service_properties(static_website=StaticWebsite(enabled=False))
    status, headers, _ = get("/index.html")
    assert (status, headers["x-ms-error-code"]) == (404, "WebContentNotFound")


def test_a_page_for_the_root_alone(site, service, get):
    service.set_service_properties(static_website=StaticWebsite(
        enabled=True, default_index_document_path="help/index.html"))
    assert get("/")[::2] == (200, HELP)
    assert get("/help/")[0] == 404

"""Bearer tokens of a local issuer, user delegation keys, and the signatures made with them."""

import base64
import datetime
import hashlib
import hmac
import http.client
import json
import subprocess
import time
import types
import urllib.parse
import uuid
from xml.etree import ElementTree

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (BlobClient, ContainerClient, UserDelegationKey, generate_account_sas, generate_blob_sas,
                                generate_container_sas)
from conftest import refused
from lib.issuer import AUDIENCE, ISSUER, Issuer, Site
from lib.account import DEV_NAME, Account
from lib.server import Server
from lib.wire import VERSION, Wire

NOW = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
HOUR = datetime.timedelta(hours=1)
READER, CONTRIBUTOR, OWNER = (f"Storage Blob Data {name}" for name in ("Reader", "Contributor", "Owner"))


@pytest.fixture(scope="module")
def issuer():
    """The issuer whose tokens the server takes."""
    return Issuer()


@pytest.fixture(scope="module")
def yard(request, issuer, tmp_path_factory):
    """A server that takes them; its key set stands in `yard.keys`."""
    folder = tmp_path_factory.mktemp("tokens")
    keys = folder / "keys.json"
    keys.write_text(issuer.key_set())
    extra = [f"--oidc=issuer={ISSUER};jwks={keys};account={DEV_NAME}", *request.config.getoption("--serve-arg")]
    with Server(request.config.getoption("--binary"), [folder / "data"], folder / "server.log", extra) as made:
        made.start()
        made.keys = keys
        yield made
        assert made.stop() == 0


@pytest.fixture
def box(yard):
    """A container with one blob, made with the account's key."""
    client = yard.account.service().create_container(f"c{uuid.uuid4().hex}")
    client.upload_blob("b", b"x")
    return client


def ask(yard, token, method, path, body=b"", **headers):
    """One request with a token: (status, code, headers, body)."""
    connection = http.client.HTTPConnection(yard.blob_address, timeout=20)
    every = {"x-ms-version": VERSION, **{name.replace("_", "-"): value for name, value in headers.items()}}
    if token:
        every["Authorization"] = f"Bearer {token}"
    if body or method in ("PUT", "POST"):
        every["Content-Length"] = str(len(body))
    connection.request(method, f"/{yard.account.name}{path}", body=body or None, headers=every)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, answer.getheader("x-ms-error-code", ""), dict(answer.getheaders()), data


def put(yard, token, box, name):
    """A Put Blob."""
    return ask(yard, token, "PUT", f"/{box.container_name}/{name}", b"new", x_ms_blob_type="BlockBlob")[:2]


def test_roles(yard, issuer, box):
    name = box.container_name
    listing, blob, acl = f"/{name}?restype=container&comp=list", f"/{name}/b", f"/{name}?restype=container&comp=acl"
    missing = (403, "AuthorizationPermissionMismatch")
    for role, writes, owns in ((READER, False, False), (CONTRIBUTOR, True, False), (OWNER, True, True)):
        token = issuer.token(role)
        assert ask(yard, token, "GET", blob)[3] == b"x"
        assert ask(yard, token, "GET", listing)[0] == 200
        assert ask(yard, token, "GET", "/?comp=list")[0] == 200
        assert put(yard, token, box, "new") == ((201, "") if writes else missing)
        assert ask(yard, token, "DELETE", f"/{name}/new")[:2] == ((202, "") if writes else missing)
        assert ask(yard, token, "GET", acl)[:2] == ((200, "") if owns else missing)
        assert ask(yard, token, "GET", f"/{name}?restype=account&comp=properties")[0] == 200
    for nobody in ("Storage Queue Data Reader", None):
        assert ask(yard, issuer.token(roles=[nobody] if nobody else None), "GET", blob)[:2] == missing


def test_account_information_by_token(yard, issuer, box):
    for path in ("/", f"/{box.container_name}", f"/{box.container_name}/b"):
        for method in ("GET", "HEAD"):
            status, code, headers, _ = ask(yard, issuer.token(), method, f"{path}?restype=account&comp=properties")
            assert (status, code) == (200, ""), path
            assert (headers["x-ms-sku-name"], headers["x-ms-account-kind"]) == ("Standard_LRS", "StorageV2")


def test_a_source_is_read_with_a_token(yard, issuer, box):
    """For the operations that trust no source of their own account."""
    page, wire, stranger = b"x" * 512, Wire(yard.account), Issuer().token()
    box.upload_blob("source", page)
    box.get_blob_client("log").create_append_blob()
    box.get_blob_client("disk").create_page_blob(512)
    pages = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511", "x-ms-source-range": "bytes=0-511"}
    for name, query, headers, status in (
            ("put", None, {"x-ms-blob-type": "BlockBlob"}, 201), ("block", {"comp": "block", "blockid": "AAAA"}, {}, 201),
            ("log", {"comp": "appendblock"}, {}, 201), ("disk", {"comp": "page"}, pages, 201),
            ("copy", None, {"x-ms-requires-sync": "true"}, 202)):
        for token, wanted in ((issuer.token(READER), status), (issuer.token(roles=None), 403), (stranger, 401)):
            source = {"x-ms-copy-source": f"{box.url}/source", "x-ms-copy-source-authorization": f"Bearer {token}"}
            answer = wire.request("PUT", f"/{box.container_name}/{name}", query, {**headers, **source})
            assert answer.status == wanted, (name, answer)
            assert answer.code == ("" if wanted == status else "CannotVerifyCopySource"), name
    wire.close()
    for name in ("put", "log", "disk", "copy"):
        assert box.download_blob(name).readall() == page, name


def test_challenge_of_whoever_does_not_sign(yard, box):
    status, code, headers, _ = ask(yard, None, "GET", f"/{box.container_name}/b")
    assert (status, code) == (401, "NoAuthenticationInformation")
    assert headers["www-authenticate"] == (
        "Bearer authorization_uri=https://issuer.example/tenant-1/oauth2/authorize resource_id=https://storage.azure.com")


def test_refused_tokens(yard, issuer, box):
    now = int(time.time())
    cases = {
        "expired": issuer.token(exp=now - 3600), "early": issuer.token(nbf=now + 3600), "endless": issuer.token(exp=None),
        "audience": issuer.token(aud="https://vault.azure.net"), "issuer": issuer.token(iss="https://evil.example"),
        "key": Issuer().token(), "nobody": issuer.token(oid=None), "long": "a." * 9000,
        "signature": issuer.token()[:-6] + "AAAAAA",
    }
    for what, token in cases.items():
        status, code, headers, body = ask(yard, token, "GET", f"/{box.container_name}/b")
        assert (status, code) == (401, "InvalidAuthenticationInfo"), what
        assert headers["www-authenticate"].startswith("Bearer authorization_uri="), what
        assert b"AuthenticationErrorDetail" in body, what
    for text in ("garbage", "a.b.c"):
        status, code, headers, body = ask(yard, text, "GET", f"/{box.container_name}/b")
        assert (status, code) == (400, "InvalidAuthenticationInfo"), "another token would not help"
        assert "www-authenticate" not in headers
        assert b"Check the value of Authorization header." in body


def test_audience_with_a_slash_and_among_others(yard, issuer, box):
    for audience in (f"{AUDIENCE}/", ["https://other.example", AUDIENCE]):
        assert ask(yard, issuer.token(aud=audience), "GET", f"/{box.container_name}/b")[0] == 200


def test_tokens_need_a_configured_issuer(account, container, issuer):
    connection = http.client.HTTPConnection(account.address)
    connection.request("GET", f"/{account.name}/{container.container_name}?restype=container",
                       headers={"Authorization": f"Bearer {issuer.token()}", "x-ms-version": VERSION})
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("x-ms-error-code")) == (401, "InvalidAuthenticationInfo")
    connection.close()


def delegation_key(yard, token, start=None, expiry=NOW + HOUR):
    """Get User Delegation Key as the SDK's own object; the SDK's clients send tokens over https only."""
    when = f"<Start>{start.strftime('%Y-%m-%dT%H:%M:%SZ')}</Start>" if start else ""
    body = f"<KeyInfo>{when}<Expiry>{expiry.strftime('%Y-%m-%dT%H:%M:%SZ')}</Expiry></KeyInfo>".encode()
    status, code, _, data = ask(yard, token, "POST", "/?restype=service&comp=userdelegationkey", body)
    if status != 200:
        return status, code
    found = {element.tag: element.text for element in ElementTree.fromstring(data)}
    key = UserDelegationKey()
    key.signed_oid, key.signed_tid = found["SignedOid"], found["SignedTid"]
    key.signed_start, key.signed_expiry = found["SignedStart"], found["SignedExpiry"]
    key.signed_service, key.signed_version, key.value = found["SignedService"], found["SignedVersion"], found["Value"]
    key.signed_delegated_user_tid = found.get("SignedDelegatedUserTid")
    return key


def by_key(yard, box, key, permission, **more):
    """A container client that signs with a user delegation key."""
    more.setdefault("expiry", NOW + HOUR)
    made = generate_container_sas(yard.account.name, box.container_name, user_delegation_key=key, permission=permission,
                                  **more)
    return ContainerClient(yard.account.url, box.container_name, credential=made, retry_total=0)


def test_delegation_key_signs(yard, issuer, box):
    key = delegation_key(yard, issuer.token(), start=NOW - HOUR)
    assert (key.signed_oid, key.signed_tid) == ("11111111-2222-3333-4444-555555555555", "tenant-1")
    mine = by_key(yard, box, key, "racwdl")
    assert mine.download_blob("b").readall() == b"x"
    mine.upload_blob("dir/ä +%", b"by delegation")
    assert [b.name for b in mine.list_blobs()] == ["b", "dir/ä +%"]
    made = generate_blob_sas(yard.account.name, box.container_name, "dir/ä +%", user_delegation_key=key, permission="r",
                             expiry=NOW + HOUR, content_type="text/x-own", correlation_id=str(uuid.uuid4()))
    blob = BlobClient(yard.account.url, box.container_name, "dir/ä +%", credential=made, retry_total=0)
    assert blob.download_blob().properties.content_settings.content_type == "text/x-own"
    refused(lambda: by_key(yard, box, key, "r").upload_blob("c", b"x"), 403, "AuthorizationPermissionMismatch")


def test_delegation_protects_only_for_an_owner(yard, issuer, box):
    mine = by_key(yard, box, delegation_key(yard, issuer.token(CONTRIBUTOR)), "racwdli").get_blob_client("held")
    refused(lambda: mine.upload_blob(b"x", legal_hold=True), 403, "AuthorizationPermissionMismatch")
    mine.upload_blob(b"x")
    with pytest.raises(HttpResponseError) as error:
        mine.set_legal_hold(True)
    assert error.value.response.headers["x-ms-error-code"] == "AuthorizationPermissionMismatch"


def test_delegation_grants_no_more_than_the_role(yard, issuer, box):
    mine = by_key(yard, box, delegation_key(yard, issuer.token(READER)), "racwdl")
    assert mine.download_blob("b").readall() == b"x"
    refused(lambda: mine.upload_blob("c", b"x"), 403, "AuthorizationPermissionMismatch")
    refused(lambda: mine.delete_blob("b"), 403, "AuthorizationPermissionMismatch")


def test_delegation_is_bound_to_the_words_of_the_key(yard, issuer, box):
    key = delegation_key(yard, issuer.token())
    for name, value in (("signed_oid", "22222222-2222-3333-4444-555555555555"), ("signed_tid", "tenant-2"),
                        ("signed_expiry", (NOW + 2 * HOUR).strftime("%Y-%m-%dT%H:%M:%SZ")), ("signed_version", "2021-12-02")):
        old = getattr(key, name)
        setattr(key, name, value)
        refused(lambda: list(by_key(yard, box, key, "rl").list_blobs()), 403, "AuthenticationFailed")
        setattr(key, name, old)
    assert len(list(by_key(yard, box, key, "rl").list_blobs())) == 1


def test_delegation_ends_with_its_key(yard, issuer, box):
    key = delegation_key(yard, issuer.token(), expiry=NOW + datetime.timedelta(days=2))
    late = by_key(yard, box, key, "rl", expiry=NOW + datetime.timedelta(days=8))
    refused(lambda: list(late.list_blobs()), 403, "AuthenticationFailed")
    key = delegation_key(yard, issuer.token(), start=NOW + HOUR, expiry=NOW + 2 * HOUR)
    refused(lambda: list(by_key(yard, box, key, "rl").list_blobs()), 403, "AuthenticationFailed")


def test_delegation_key_has_limits(yard, issuer):
    token = issuer.token()
    assert delegation_key(yard, token, expiry=NOW + datetime.timedelta(days=8)) == (400, "InvalidXmlNodeValue")
    assert delegation_key(yard, token, expiry=NOW - HOUR) == (400, "InvalidXmlNodeValue")
    assert delegation_key(yard, token, start=NOW + 2 * HOUR) == (400, "InvalidXmlNodeValue")
    assert ask(yard, token, "POST", "/?restype=service&comp=userdelegationkey", b"<KeyInfo/>")[:2] == (
        400, "MissingRequiredXmlNode")
    assert ask(yard, token, "GET", "/?restype=service&comp=userdelegationkey")[:2] == (405, "UnsupportedHttpVerb")
    assert delegation_key(yard, issuer.token(roles=None)) == (403, "AuthorizationPermissionMismatch")


def test_delegation_key_needs_a_token(yard):
    """Not with the account's key, not with a signature, and not without anything."""
    made = generate_account_sas(yard.account.name, yard.account.key, "sco", "rwdlacup", expiry=NOW + HOUR)
    signed = ask(yard, None, "POST", f"/?restype=service&comp=userdelegationkey&{made}", b"<KeyInfo/>")
    assert signed[:2] == (403, "AuthenticationFailed") and b"Only authentication scheme Bearer is supported" in signed[3]
    assert delegation_key(yard, None) == (401, "NoAuthenticationInformation")
    asking = Wire(yard.account)
    answer = asking.request("POST", "/", {"restype": "service", "comp": "userdelegationkey"}, body=b"<KeyInfo/>")
    asking.close()
    assert (answer.status, answer.code) == (403, "AuthenticationFailed")
    detail = b"<AuthenticationErrorDetail>Only authentication scheme Bearer is supported</AuthenticationErrorDetail>"
    assert detail in answer.body and detail in signed[3]


def test_keys_are_rotated_without_a_restart(yard, issuer, box):
    """The server reads the key set again when a token names an unknown key."""
    second = Issuer("key-2")
    path = f"/{box.container_name}/b"
    assert ask(yard, second.token(), "GET", path)[0] == 401
    yard.keys.write_text(issuer.key_set(second))
    deadline = time.monotonic() + 30
    while ask(yard, second.token(), "GET", path)[0] != 200:
        assert time.monotonic() < deadline, "the new key is not taken"
        time.sleep(0.5)
    assert ask(yard, issuer.token(), "GET", path)[0] == 200


@pytest.fixture
def asking(request, tmp_path):
    """A server that finds the keys of an issuer by asking it, as `asking.site`, which is down when the server starts."""
    with Site(None) as site:
        extra = [f"--oidc=issuer={site.url};account={DEV_NAME}", *request.config.getoption("--serve-arg")]
        with Server(request.config.getoption("--binary"), [tmp_path / "data"], tmp_path / "server.log", extra) as made:
            made.start()
            made.site = site
            yield made
            assert made.stop() == 0


def test_keys_are_asked_for_and_rotated_without_a_restart(asking, issuer):
    """The issuer is down at the start, then up, then has another key. The server needs no restart and asks it rarely."""
    site, second = asking.site, Issuer("key-2")
    service = asking.account.service()
    service.create_container("box").upload_blob("b", b"x")
    old, new = issuer.token(iss=site.url), second.token(iss=site.url)

    def taken(token):
        begun = time.monotonic()
        while (answer := ask(asking, token, "GET", "/box/b"))[0] != 200:
            assert (answer[:2]) == (401, "InvalidAuthenticationInfo")
            assert answer[2]["www-authenticate"].startswith(f"Bearer authorization_uri={site.url}/oauth2/authorize ")
            assert time.monotonic() < begun + 120, "the key is not taken"
            time.sleep(0.25)
        assert answer[3] == b"x"

    assert ask(asking, old, "GET", "/box/b")[:2] == (401, "InvalidAuthenticationInfo")
    site.key_set = issuer.key_set()
    taken(old)
    before = site.asked
    site.key_set = second.key_set()
    taken(new)
    assert site.asked == before + 1
    assert ask(asking, old, "GET", "/box/b")[:2] == (401, "InvalidAuthenticationInfo"), "its key left the set"
    # The SDK's own clients send tokens over https only; they accept signatures made with a user delegation key.
    mine = by_key(asking, service.get_container_client("box"), delegation_key(asking, new), "r")
    assert mine.download_blob("b").readall() == b"x"


@pytest.fixture
def lodger(yard):
    """The server as seen by an account made while it runs, whose keys can be rotated, and the command that changes it."""
    name = f"lodger{uuid.uuid4().hex[:12]}"

    def command(*words):
        done = subprocess.run(
            [yard.binary, "account", *words, "--json", "--admin-listen", yard.admin_address, "--data", yard.data[0]],
            capture_output=True, text=True, timeout=60, check=True)
        return json.loads(done.stdout)

    made = command("create", name)
    # Claims hold in the account of --oidc alone: here a role has to be given.
    command("grant", name, "contributor", "11111111-2222-3333-4444-555555555555")
    seen = types.SimpleNamespace(blob_address=yard.blob_address, command=command, name=name,
                                 account=Account(yard.blob_address, name, made["keys"][0]))
    yield seen
    command("delete", name, "--force")


def test_delegation_keys_outlive_account_keys_and_end_by_revocation(lodger, issuer):
    box = lodger.account.service().create_container("box")
    box.upload_blob("b", b"x")
    key = delegation_key(lodger, issuer.token())
    mine = by_key(lodger, box, key, "r")
    assert mine.download_blob("b").readall() == b"x"
    for slot in ("key1", "key2"):
        lodger.command("rotate", lodger.name, slot)
    refused(lambda: box.download_blob("b"), 403, "AuthenticationFailed")
    assert mine.download_blob("b").readall() == b"x", "rotation of account keys is no business of delegation keys"
    lodger.command("revoke", lodger.name)
    refused(lambda: mine.download_blob("b"), 403, "AuthenticationFailed")
    assert by_key(lodger, box, delegation_key(lodger, issuer.token()), "r").download_blob("b").readall() == b"x"


def test_signatures_bound_to_a_user_need_its_token(yard, issuer, box):
    user = "99999999-2222-3333-4444-555555555555"
    key = delegation_key(yard, issuer.token())
    made = generate_container_sas(yard.account.name, box.container_name, user_delegation_key=key, permission="r",
                                  expiry=NOW + HOUR, user_delegation_oid=user)
    assert "sduoid=" in made
    path = f"/{box.container_name}/b?{made}"
    # The user needs no role of its own: the signature grants.
    assert ask(yard, issuer.token(oid=user, roles=None), "GET", path)[0] == 200
    assert ask(yard, None, "GET", path)[:2] == (403, "AuthenticationFailed")
    assert ask(yard, issuer.token(), "GET", path)[:2] == (403, "AuthenticationFailed")
    assert ask(yard, Issuer().token(oid=user), "GET", path)[0] == 401
    assert ask(yard, issuer.token(oid=user), "PUT", path, b"y", x_ms_blob_type="BlockBlob")[:2] == (
        403, "AuthorizationPermissionMismatch")
    forged = path.replace(user, "11111111-2222-3333-4444-555555555555")
    assert ask(yard, issuer.token(), "GET", forged)[:2] == (403, "AuthenticationFailed")
    plain = made.replace(f"&sduoid={user}", "").replace(f"sduoid={user}&", "")
    assert ask(yard, None, "GET", f"/{box.container_name}/b?{plain}")[:2] == (403, "AuthenticationFailed")


def directory_query(yard, box, key, directory, permission="r", version="2026-06-06", depth=None):
    """The query of a user delegation signature of a directory."""
    expiry = (NOW + HOUR).strftime("%Y-%m-%dT%H:%M:%SZ")
    words = [key.signed_oid, key.signed_tid, key.signed_start, key.signed_expiry, key.signed_service, key.signed_version]
    resource = f"/blob/{yard.account.name}/{box.container_name}/{directory}"
    lines = [permission, "", expiry, resource, *words, "", "", "", "", "", "", "", version, "d", *[""] * 9]
    signature = hmac.digest(base64.b64decode(key.value), "\n".join(lines).encode(), hashlib.sha256)
    pairs = {"sv": version, "sp": permission, "se": expiry, "sr": "d", "sdd": str(depth or directory.count("/") + 1),
             **dict(zip(("skoid", "sktid", "skt", "ske", "sks", "skv"), words)), "sig": base64.b64encode(signature).decode()}
    return urllib.parse.urlencode(pairs)


def test_signatures_of_directories(yard, issuer, box):
    """Since `sv=2026-06-06`, in accounts without a hierarchical namespace too."""
    for name in ("a/b", "a/b/c", "a/b/c/d", "a/bc", "a/other", "x"):
        box.upload_blob(name, b"x")
    key = delegation_key(yard, issuer.token(OWNER))
    query, name = directory_query(yard, box, key, "a/b", "rl"), box.container_name
    for blob, status in (("a/b", 200), ("a/b/c", 200), ("a/b/c/d", 200), ("a/bc", 403), ("a/other", 403), ("a", 403), ("x", 403)):
        assert ask(yard, None, "GET", f"/{name}/{blob}?{query}")[0] == status, blob
    listing = f"/{name}?restype=container&comp=list&{query}"
    found = ask(yard, None, "GET", f"{listing}&prefix=a/b/")
    assert found[0] == 200 and found[3].count(b"<Blob>") == 2
    for prefix in ("", "&prefix=", "&prefix=a/b", "&prefix=a/", "&prefix=a/bc/", "&prefix=x"):
        assert ask(yard, None, "GET", listing + prefix)[0] == 403, prefix
    assert ask(yard, None, "GET", f"{listing}&Prefix=&prefix=a/b/")[0] in (400, 403)
    for tampered in (query.replace("sdd=2", "sdd=1"), query.replace("sdd=2", "sdd=3"), query.replace("sdd=2", "sdd=0"),
                     query.replace("sdd=2", "sdd=x"), query.replace("&sdd=2", ""), query.replace("sr=d", "sr=c"), query.replace("sr=d", "sr=b")):
        assert ask(yard, None, "GET", f"/{name}/a/b/c?{tampered}")[0] == 403, tampered
    others = (f"/{name}?restype=container&prefix=a/b/", f"/{name}?restype=container&comp=blobs&where=k%3D'v'&prefix=a/b/")
    for path in others:
        assert ask(yard, None, "GET", f"{path}&{directory_query(yard, box, key, 'a/b', 'rlf')}")[0] == 403, path
    older = directory_query(yard, box, key, "a/b", version="2026-04-06")
    assert ask(yard, None, "GET", f"/{name}/a/b/c?{older}")[:2] == (403, "AuthenticationFailed")
    # It writes below the directory, and nowhere else.
    writer = directory_query(yard, box, key, "a/b", "cw")
    for blob, status in (("a/b/new", 201), ("a/new", 403)):
        assert ask(yard, None, "PUT", f"/{name}/{blob}?{writer}", b"x", x_ms_blob_type="BlockBlob")[0] == status, blob


def test_signatures_of_hierarchical_accounts_are_refused(yard, issuer, box):
    key = delegation_key(yard, issuer.token())
    made = generate_container_sas(yard.account.name, box.container_name, user_delegation_key=key, permission="r",
                                  expiry=NOW + HOUR)
    agent = generate_container_sas(yard.account.name, box.container_name, user_delegation_key=key, permission="r",
                                   expiry=NOW + HOUR, preauthorized_agent_object_id=str(uuid.uuid4()))
    assert ask(yard, None, "GET", f"/{box.container_name}/b?{agent}")[0] == 200
    unvouched = agent.replace("saoid=", "suoid=")
    assert ask(yard, None, "GET", f"/{box.container_name}/b?{unvouched}")[:2] == (403, "AuthenticationFailed")
    path = f"/{box.container_name}/b?{made.replace('sr=c', 'sr=d')}&sdd=1"
    assert ask(yard, None, "GET", path)[:2] == (403, "AuthenticationFailed")

#!/usr/bin/env python3
"""An attacker with tokens: forged, stale, of another account, another container, another issuer, or revoked.

The server takes tokens of two issuers. The first is bound to one account (account=), the second to none. The attacker's
requests must be refused with the codes of the service; the same requests of whoever may must be answered, so that a server
that refuses everything fails too.
"""

import base64
import datetime
import hashlib
import hmac
import http.client
import json
import subprocess
import time
from urllib.parse import quote
from xml.etree import ElementTree

from lib import cli
from lib.issuer import ISSUER, Issuer
from lib.report import Verdicts
from lib.wire import VERSION, Wire
from lib.account import Account

OTHER = "https://other.example/tenant-2"
OWNER, CONTRIBUTOR, READER = (f"Storage Blob Data {name}" for name in ("Owner", "Contributor", "Reader"))
ME = "11111111-2222-3333-4444-555555555555"
MISMATCH = (403, "AuthorizationPermissionMismatch")
INVALID = (401, "InvalidAuthenticationInfo")
UNSIGNED = (403, "AuthenticationFailed")


class Yard:
    """The server, its accounts and what the operator does to it."""

    def __init__(self, server):
        self.server = server
        self.accounts = {}

    def command(self, *words, code=0):
        """One of the program's own commands: its JSON, or what it printed when it is to fail."""
        done = subprocess.run(
            [self.server.binary, "account", *words, "--json", "--admin-listen", self.server.admin_address, "--data",
             self.server.data[0]], capture_output=True, text=True, timeout=60)
        if code:
            return done.returncode, done.stderr
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def furnish(self, name):
        """An account with the containers `one` and `two`, each with the blob `b`."""
        made = self.command("create", name)
        self.accounts[name] = Account(self.server.blob_address, name, made["keys"][0])
        wire = Wire(self.accounts[name])
        for container in ("one", "two"):
            wire.request("PUT", f"/{container}", {"restype": "container"})
            wire.request("PUT", f"/{container}/b", headers={"x-ms-blob-type": "BlockBlob"}, body=b"x")
        wire.close()

    def ask(self, token, method, path, body=b"", **headers):
        """One request with a token: (status, code)."""
        return self.answer(token, method, path, body, **headers)[:2]

    def answer(self, token, method, path, body=b"", **headers):
        """One request with a token: (status, code, body)."""
        connection = http.client.HTTPConnection(self.server.blob_address, timeout=20)
        every = {"x-ms-version": VERSION, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if token:
            every["Authorization"] = f"Bearer {token}"
        if body or method in ("PUT", "POST"):
            every["Content-Length"] = str(len(body))
        connection.request(method, path, body=body or None, headers=every)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, answer.getheader("x-ms-error-code", ""), data

    def can(self, token, account, container="one"):
        """What a token can do in a container: the letters r (read), l (list), w (write), a (access policy)."""
        base = f"/{account}/{container}"
        put = self.ask(token, "PUT", f"{base}/new", b"n", x_ms_blob_type="BlockBlob")[0] == 201
        return "".join(letter for letter, done in (
            ("r", self.ask(token, "GET", f"{base}/b")[0] == 200),
            ("l", self.ask(token, "GET", f"{base}?restype=container&comp=list")[0] == 200),
            ("w", put),
            ("a", self.ask(token, "GET", f"{base}?restype=container&comp=acl")[0] == 200)) if done)

    def delegation_key(self, token, account):
        """A user delegation key for an hour, or (status, code)."""
        until = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        path = f"/{account}/?restype=service&comp=userdelegationkey"
        status, code, data = self.answer(token, "POST", path, f"<KeyInfo><Expiry>{until}</Expiry></KeyInfo>".encode())
        if status != 200:
            return status, code
        return {element.tag: element.text for element in ElementTree.fromstring(data)}


def signed_url(key, account, container, permissions="rw"):
    """The query of a container signature by a user delegation key, version 2022-11-02."""
    words = [key[f"Signed{name}"] for name in ("Oid", "Tid", "Start", "Expiry", "Service", "Version")]
    head = [permissions, "", key["SignedExpiry"], f"/blob/{account}/{container}", *words, "", "", "", "", "https,http",
            "2022-11-02", "c", "", ""]
    text = "\n".join(head + [""] * 5)
    made = base64.b64encode(hmac.digest(base64.b64decode(key["Value"]), text.encode(), hashlib.sha256)).decode()
    pairs = {"sv": "2022-11-02", "sp": permissions, "se": key["SignedExpiry"], "spr": "https,http", "sr": "c",
             **dict(zip(("skoid", "sktid", "skt", "ske", "sks", "skv"), words)), "sig": made}
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in pairs.items())


def part(value):
    """A part of a token."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def forged(yard, issuer, other, verdicts):
    """Tokens that the issuer did not make, or not so."""
    now = int(time.time())
    head, claims, signature = issuer.token(OWNER).split(".")
    swapped = issuer.token(READER).split(".")
    public = {"alg": "HS256", "typ": "JWT", "kid": issuer.kid}
    text = f"{part(public)}.{claims}"
    cases = {
        "alg none": f"{part({'alg': 'none'})}.{claims}.",
        "alg None with a signature": f"{part({'alg': 'None', 'kid': issuer.kid})}.{claims}.{signature}",
        "HS256 with the public key": f"{text}.{part(hmac.digest(issuer.public_text(), text.encode(), hashlib.sha256))}",
        "claims of one and signature of another": f"{swapped[0]}.{claims}.{swapped[2]}",
        "no signature": f"{head}.{claims}.",
        "another issuer's key under this one's name": other.token(OWNER),
        "another issuer's key and this one's kid": other.token(OWNER, header={"kid": issuer.kid}),
        "this issuer's key under the other's name": issuer.token(OWNER, iss=OTHER),
        "a kid that is not known": issuer.token(OWNER, header={"kid": "../../dev/null"}),
        "a key of its own in the header": Issuer().token(OWNER, header={"jwk": {"kty": "RSA"}, "jku": "http://127.0.0.1/"}),
        "critical extensions": issuer.token(OWNER, header={"crit": ["b64"], "b64": False}),
        "unknown issuer": issuer.token(OWNER, iss="https://evil.example"),
        "issuer with a slash more": issuer.token(OWNER, iss=f"{ISSUER}/"),
        "issuer as a list": issuer.token(OWNER, iss=[ISSUER]),
        "wrong audience": issuer.token(OWNER, aud="https://vault.azure.net"),
        "audience that begins right": issuer.token(OWNER, aud="https://storage.azure.com.evil.example"),
        "no audience": issuer.token(OWNER, aud=None), "nobody": issuer.token(OWNER, oid=None),
        "expired": issuer.token(OWNER, exp=now - 3600), "not yet": issuer.token(OWNER, nbf=now + 3600),
        "no end": issuer.token(OWNER, exp=None),
    }
    for name in ("exp", "nbf"):
        for what, value in (("text", str(now + 600)), ("negative", -1), ("fraction", now + 600.5), ("1e300", 1e300),
                            ("2^64 - 1", 2**64 - 1), ("2^70", 2**70), ("list", [now + 600]), ("true", True), ("object", {})):
            cases[f"{name} is {what}"] = issuer.token(OWNER, **{name: value})
    # A claim of null is one that cannot be read, too: the library leaves None out.
    body = json.loads(base64.urlsafe_b64decode(claims + "=="))
    cases["nbf is null"] = issuer.signed(json.dumps({**body, "nbf": None}))
    text = yard.ask(f"{head}.{claims}", "GET", "/ruled/one/b")
    verdicts.check("two parts of a token are no token: 400 InvalidAuthenticationInfo", text == (400, INVALID[1]), "400", str(text))
    wrong = [what for what, token in cases.items() if yard.ask(token, "GET", "/ruled/one/b") != INVALID]
    verdicts.check(f"{len(cases)} forged, stale and malformed tokens are 401 InvalidAuthenticationInfo", not wrong,
                   "none taken", ", ".join(wrong) or "none")
    verdicts.check("the same server takes the issuer's own token", yard.can(issuer.token(OWNER), "ruled") == "rlwa")


def claimed(yard, issuer, other, verdicts):
    """Roles that tokens claim: in the issuer's own account, compared as a whole."""
    for name in ("tenant", "closed"):
        verdicts.check(f"an Owner token opens nothing of the account {name}, which is not bound to its issuer",
                       yard.can(issuer.token(OWNER), name) == "" and yard.ask(
                           issuer.token(OWNER), "GET", f"/{name}/?comp=list") == MISMATCH)
    verdicts.check("nor of the development account", yard.ask(
        issuer.token(OWNER), "GET", "/devstoreaccount1/?comp=list") == MISMATCH)
    verdicts.check("an issuer without account= opens nothing anywhere",
                   [yard.can(other.token(OWNER, iss=OTHER), name) for name in yard.accounts] == [""] * len(yard.accounts))
    cases = {
        "text that ends in a role": "Cost Center Owner", "text with a role in it": f"x {OWNER} y", "text of two": "Owner Reader",
        "lower case": "owner", "list of near misses": ["Cost Center Owner", "Ownership", " Owner", "Owner "],
        "list in a list": [["Owner"]], "object": {"Owner": True}, "number": 1, "nothing": [],
    }
    wrong = [what for what, roles in cases.items() if yard.can(issuer.token(roles=roles), "ruled") != ""]
    verdicts.check(f"{len(cases)} claims that are no role grant nothing", not wrong, "none", ", ".join(wrong) or "none")
    verdicts.check("a text and a list that are a role grant it",
                   yard.can(issuer.token(roles="Owner"), "ruled") == "rlwa" and
                   yard.can(issuer.token(roles=["x", READER]), "ruled") == "rl")


def granted(yard, issuer, other, verdicts):
    """Role assignments: of one account, one container, one issuer, one kind of principal; in force and revoked at once."""
    mine = issuer.token(roles=None)
    verdicts.check("nothing is granted before it is", yard.can(mine, "tenant") == "")
    yard.command("grant", "tenant", "contributor", ME, "--container", "one", "--issuer", ISSUER)
    verdicts.check("a container's contributor writes there", yard.can(mine, "tenant") == "rlw")
    verdicts.check("and does nothing in the next container, the account or another account",
                   yard.can(mine, "tenant", "two") == "" and yard.ask(mine, "GET", "/tenant/?comp=list") == MISMATCH and
                   yard.can(mine, "closed") == "" and
                   yard.ask(mine, "PUT", "/tenant/three?restype=container") == MISMATCH)
    url = f"http://{yard.server.blob_address}/tenant/two/b"
    copied = yard.ask(mine, "PUT", "/tenant/one/copy", x_ms_copy_source=url)
    verdicts.check("nor copies from there", copied[0] in (403, 404), "403 or 404", str(copied))
    verdicts.check("nor gets a user delegation key, which is good for the account",
                   yard.delegation_key(mine, "tenant") == MISMATCH)
    twin = other.token(iss=OTHER, oid=ME, tid="tenant-1", roles=None)
    verdicts.check("another issuer's token for the same subject and tenant is nobody's", yard.can(twin, "tenant") == "")
    verdicts.check("a group of that name is not the subject",
                   yard.can(issuer.token(oid="x", roles=None, groups=[ME]), "tenant") == "")
    yard.command("grant", "tenant", OWNER, "blob owners", "--group", "--issuer", ISSUER)
    group = issuer.token(oid="x", roles=None, groups=["blob owners"])
    verdicts.check("a group's owner owns", yard.can(group, "tenant", "two") == "rlwa")
    others = (["blob"], "blob owners and more", ["Blob Owners"], [["blob owners"]], None)
    verdicts.check("whoever is not in the group does not, nor the subject of that name",
                   [yard.can(issuer.token(oid="x", roles=None, groups=value), "tenant", "two") for value in others] ==
                   [""] * len(others) and yard.can(issuer.token(oid="blob owners", roles=None), "tenant", "two") == "")
    verdicts.check("grants are listed", [row["role"] for row in yard.command("grants", "tenant")] == ["contributor", "owner"])
    before = yard.can(mine, "tenant")
    yard.server.kill()
    yard.server.start()
    verdicts.check("grants survive kill -9", (before, yard.can(mine, "tenant")) == ("rlw", "rlw"))
    yard.command("ungrant", "tenant", "contributor", ME, "--container", "one", "--issuer", ISSUER)
    yard.command("ungrant", "tenant", "owner", "blob owners", "--group", "--issuer", ISSUER)
    verdicts.check("a revoked grant is gone for the next request",
                   yard.can(mine, "tenant") == "" and yard.can(group, "tenant") == "")
    refusals = [
        yard.command("grant", "tenant", "reader", ME, code=1), yard.command("grant", "tenant", "admin", ME, code=1),
        yard.command("grant", "nobody", "reader", ME, "--issuer", ISSUER, code=1),
        yard.command("grant", "tenant", "reader", ME, "--issuer", "https://evil.example", code=1),
        yard.command("grant", "tenant", "reader", ME, "--container", "No", "--issuer", ISSUER, code=1),
        yard.command("ungrant", "tenant", "reader", ME, "--issuer", ISSUER, code=1)]
    verdicts.check("commands that make no sense are refused", all(code for code, _ in refusals), "refused",
                   f"{sum(bool(code) for code, _ in refusals)} of {len(refusals)}")


def delegated(yard, issuer, verdicts):
    """Signatures of a user delegation key permit what its holder may do when they are used."""
    mine = issuer.token(roles=None)
    verdicts.check("no key without a grant", yard.delegation_key(mine, "tenant") == MISMATCH)
    verdicts.check("no key for an Owner of another account", yard.delegation_key(issuer.token(OWNER), "tenant") == MISMATCH)

    def use(key, account="tenant", method="GET", name="b"):
        path = f"/{account}/one/{name}?{signed_url(key, account, 'one')}"
        return yard.ask(None, method, path, b"x" if method == "PUT" else b"", x_ms_blob_type="BlockBlob")

    yard.command("grant", "tenant", "contributor", ME, "--issuer", ISSUER)
    key = yard.delegation_key(mine, "tenant")
    verdicts.check("a contributor's key signs", (use(key)[0], use(key, method="PUT", name="d")[0]) == (200, 201))
    verdicts.check("for its account alone", use(key, "closed") == UNSIGNED and use(key, "ruled") == UNSIGNED)
    yard.command("ungrant", "tenant", "contributor", ME, "--issuer", ISSUER)
    verdicts.check("revoked: 403 AuthorizationPermissionMismatch", use(key) == MISMATCH)
    yard.command("grant", "tenant", "reader", ME, "--issuer", ISSUER)
    verdicts.check("a reader now: reads and does not write", (use(key)[0], use(key, method="PUT", name="d")) == (200, MISMATCH))
    yard.command("ungrant", "tenant", "reader", ME, "--issuer", ISSUER)
    yard.command("grant", "tenant", "reader", "team", "--group", "--issuer", ISSUER)
    key = yard.delegation_key(issuer.token(roles=None, groups=["team"]), "tenant")
    verdicts.check("a group's key signs", use(key)[0] == 200)
    forged_key = {**key, "SignedOid": "22222222-2222-3333-4444-555555555555"}
    verdicts.check("and only in the words it was made of", use(forged_key) == UNSIGNED)
    yard.command("ungrant", "tenant", "reader", "team", "--group", "--issuer", ISSUER)
    verdicts.check("until the group's role is revoked", use(key) == UNSIGNED)
    key = yard.delegation_key(issuer.token(READER), "ruled")
    verdicts.check("a claimed role's key grants no more than the role",
                   (use(key, "ruled")[0], use(key, "ruled", "PUT", "d")) == (200, MISMATCH))


def opened(yard, verdicts):
    """New accounts refuse anonymous requests until the operator permits them."""
    wire = Wire(yard.accounts["closed"])

    def open_container():
        return wire.request("PUT", "/one", {"restype": "container", "comp": "acl"}, {"x-ms-blob-public-access": "blob"})

    public = open_container()
    refused = (409, "PublicAccessNotPermitted")
    verdicts.check("a container of a new account cannot be opened", (public.status, public.code) == refused)
    verdicts.check("anonymous reads there are 409", yard.ask(None, "GET", "/closed/one/b") == refused)
    yard.command("set", "closed", "--anonymous", "on")
    verdicts.check("an opened account's can", open_container().status == 200)
    verdicts.check("and is read by anybody", yard.ask(None, "GET", "/closed/one/b")[0] == 200)
    yard.command("set", "closed", "--anonymous", "off")
    verdicts.check("until it is closed again", yard.ask(None, "GET", "/closed/one/b") == refused)
    wire.close()


def main(options, scratch):
    """Runs everything; the exit code."""
    verdicts = Verdicts("wrong tokens")
    issuer, other = Issuer(), Issuer()
    for name, one in (("first", issuer), ("second", other)):
        (scratch / f"{name}.json").write_text(one.key_set())
    extra = [f"--oidc=issuer={ISSUER};jwks={scratch / 'first.json'};account=ruled",
             f"--oidc=issuer={OTHER};jwks={scratch / 'second.json'}"]
    with cli.server(options, scratch, extra) as server:
        yard = Yard(server)
        for name in ("ruled", "tenant", "closed"):
            yard.furnish(name)
        forged(yard, issuer, other, verdicts)
        claimed(yard, issuer, other, verdicts)
        granted(yard, issuer, other, verdicts)
        delegated(yard, issuer, verdicts)
        opened(yard, verdicts)
    return verdicts.exit_code()


if __name__ == "__main__":
    chosen = cli.parse(cli.parser(__doc__))
    cli.run(main, chosen)

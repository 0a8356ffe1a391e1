"""An OpenID Connect issuer for tests: a key, its key set in a file or on a web site, and tokens signed with it.

Signs RS256 with whole numbers, so that nothing but the standard library is needed; not for anything but tests.
"""

import base64
import hashlib
import http.server
import json
import secrets
import threading
import time

ISSUER = "https://issuer.example/tenant-1/v2.0"
AUDIENCE = "https://storage.azure.com"
# DER of "a SHA-256 digest follows", RFC 8017 section 9.2.
_SHA256_PREFIX = bytes.fromhex("3031300d060960864801650304020105000420")
_PUBLIC_EXPONENT = 65537


def _is_prime(number, rounds=24):
    if any(number % small == 0 for small in (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)):
        return False
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(rounds):
        value = pow(secrets.randbelow(number - 3) + 2, odd, number)
        if value in (1, number - 1):
            continue
        for _ in range(twos - 1):
            value = value * value % number
            if value == number - 1:
                break
        else:
            return False
    return True


def _prime(bits):
    while True:
        number = secrets.randbits(bits) | (3 << (bits - 2)) | 1
        if number % _PUBLIC_EXPONENT != 1 and _is_prime(number):
            return number


def _text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Issuer:
    """One RSA key and what it signs."""

    def __init__(self, kid="key-1"):
        first, second = _prime(1024), _prime(1024)
        self.kid, self._modulus, self.name = kid, first * second, ISSUER
        self._private = pow(_PUBLIC_EXPONENT, -1, (first - 1) * (second - 1))

    def key_set(self, *others):
        """The JSON of a key set with this key and those of other issuers."""
        keys = [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": one.kid, "e": "AQAB",
                 "n": _text(one._modulus.to_bytes(256, "big"))} for one in (self, *others)]  # pylint: disable=W0212
        return json.dumps({"keys": keys})

    def public_text(self):
        """The public key as bytes, with which a forger signs HS256."""
        return self._modulus.to_bytes(256, "big")

    def token(self, role="Storage Blob Data Contributor", header=None, **claims):
        """A token for an hour; a claim of None is left out. `header` replaces parts of its header."""
        now = int(time.time())
        every = {"iss": self.name, "aud": AUDIENCE, "nbf": now - 60, "iat": now, "exp": now + 3600, "tid": "tenant-1",
                 "oid": "11111111-2222-3333-4444-555555555555", "roles": role and [role], **claims}
        every = {name: value for name, value in every.items() if value is not None}
        head = {"alg": "RS256", "typ": "JWT", "kid": self.kid, **(header or {})}
        return self.signed(json.dumps(every), head)

    def signed(self, claims, head=None):
        """A token with exactly this JSON for claims."""
        head = head or {"alg": "RS256", "typ": "JWT", "kid": self.kid}
        text = ".".join(_text(part.encode()) for part in (json.dumps(head), claims))
        digest = _SHA256_PREFIX + hashlib.sha256(text.encode()).digest()
        padded = b"\0\1" + b"\xff" * (256 - 3 - len(digest)) + b"\0" + digest
        signature = pow(int.from_bytes(padded, "big"), self._private, self._modulus)
        return f"{text}.{_text(signature.to_bytes(256, 'big'))}"


class Site:
    """The web site of an issuer: its configuration document and its key set; `url` is the issuer's name.

    Change `key_set` while it runs; `None` answers 503. `asked` counts who asked for it.
    """

    def __init__(self, key_set):
        self.key_set, self.asked = key_set, 0
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Answers for the site."""

            def do_GET(self):  # pylint: disable=invalid-name
                """The two documents."""
                if self.path == "/tenant/.well-known/openid-configuration":
                    text = json.dumps({"issuer": site.url, "jwks_uri": f"{site.url}/keys"})
                elif self.path == "/tenant/keys":
                    site.asked += 1
                    text = site.key_set
                else:
                    text = None
                body = (text or "").encode()
                self.send_response(200 if text else 503)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format, *args):  # pylint: disable=redefined-builtin
                """Says nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/tenant"
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

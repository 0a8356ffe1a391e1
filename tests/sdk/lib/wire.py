"""A bare HTTP client that signs with Shared Key.

It retries nothing and hides nothing: one call is one request on a kept connection, and it returns the server's answer.
The SDK is used wherever it can send the request; this client sends the others.
"""

import base64
import dataclasses
import email.utils
import hashlib
import hmac
import http.client
from urllib.parse import quote, urlencode

VERSION = "2026-10-06"
_SIGNED_HEADERS = (
    "content-encoding", "content-language", "content-length", "content-md5", "content-type", "date",
    "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range",
)


def signature(account, key, method, path, query, headers):
    """The Shared Key signature of a request.

    `path` is the request path as sent, `query` is {name: decoded value}, `headers` is {lower-case name: value}.
    """
    lines = [method]
    for name in _SIGNED_HEADERS:
        value = str(headers.get(name, ""))
        if name == "content-length" and value == "0":
            value = ""
        if name == "date" and "x-ms-date" in headers:
            value = ""
        lines.append(value)
    extra = sorted((name, str(value).strip()) for name, value in headers.items() if name.startswith("x-ms-"))
    text = "\n".join(lines) + "\n" + "".join(f"{name}:{value}\n" for name, value in extra)
    text += f"/{account}{path}"
    for name in sorted(query, key=str.lower):
        text += f"\n{name.lower()}:{query[name]}"
    digest = hmac.digest(base64.b64decode(key), text.encode(), hashlib.sha256)
    return base64.b64encode(digest).decode()


@dataclasses.dataclass
class Answer:
    """A status, headers by lower-case name, and the whole body."""

    status: int
    headers: dict
    body: bytes

    @property
    def code(self):
        """The error code, or an empty text."""
        return self.headers.get("x-ms-error-code", "")


class Wire:
    """One connection to the endpoint of one account."""

    def __init__(self, account, timeout=120, host=None, path_style=True):
        self.account, self.host, self.path_style = account, host, path_style
        self._connection = http.client.HTTPConnection(account.address, timeout=timeout)

    def request(self, method, path, query=None, headers=None, body=b"", sign=True):
        """Sends one signed request. `path` starts with a slash and is decoded; `query` values are decoded.

        `body` may be bytes or an iterator, which needs a content-length header.
        """
        response = self.open(method, path, query, headers, body, sign)
        data = response.read()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, data)

    def open(self, method, path, query=None, headers=None, body=b"", sign=True):
        """Like `request`, but hands back the response with its body still unread."""
        query = query or {}
        prefix = f"/{self.account.name}" if self.path_style else ""
        sent_path = prefix + quote(path, safe="/~()*!'-._")
        headers = {name.lower(): str(value) for name, value in (headers or {}).items()}
        headers.setdefault("x-ms-version", VERSION)
        headers.setdefault("x-ms-date", email.utils.formatdate(usegmt=True))
        if isinstance(body, bytes) and (body or method in ("PUT", "POST")):
            headers["content-length"] = str(len(body))
        if sign:
            mark = signature(self.account.name, self.account.key, method, sent_path, query, headers)
            headers["authorization"] = f"SharedKey {self.account.name}:{mark}"
        if self.host:
            headers["host"] = self.host
        target = sent_path + ("?" + urlencode(query, quote_via=quote) if query else "")
        self._connection.request(method, target, body=body if body or method in ("PUT", "POST") else None,
                                 headers=headers)
        return self._connection.getresponse()

    def close(self):
        """Closes the connection."""
        self._connection.close()

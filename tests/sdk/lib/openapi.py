"""The published description: loaded whole, and compared with answers.

`load` follows the references between its files, so that any OpenAPI tool can read the result. `faults` says what of an
answer breaks it: a status or an error code that is not listed, a header that is not described or does not fit, a body
that is not what the schema says.
"""

import json
import pathlib
import re
import xml.etree.ElementTree as ElementTree

import yaml

SPEC = pathlib.Path(__file__).resolve().parents[3] / "api-spec"
# What the connection adds, not the operation.
_TRANSPORT = {"connection", "keep-alive", "transfer-encoding", "content-length", "content-type"}
_FORMATS = {
    "uuid": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "date-time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z",
}


class _Loader:
    """Reads each file once and replaces references by what they name."""

    def __init__(self, folder):
        self.folder, self._files = folder, {}

    def _file(self, path):
        if path not in self._files:
            self._files[path] = yaml.safe_load(path.read_text(encoding="utf-8"))
        return self._files[path]

    def whole(self, node, path):
        """`node` of the file at `path`, without references."""
        if isinstance(node, list):
            return [self.whole(item, path) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            name, _, key = node["$ref"].partition("#/")
            target = (path.parent / name).resolve() if name else path
            return self.whole(self._file(target)[key], target)
        return {key: self.whole(value, path) for key, value in node.items()}

    def index(self, name):
        """A file, whole."""
        path = self.folder / name
        return self.whole(self._file(path), path)


def load(folder=SPEC):
    """The description as one document."""
    return _Loader(folder).index("azure-blob.yaml")


class Judge:
    """Compares answers with the description and the table of errors."""

    def __init__(self, document, folder=SPEC):
        self.document = document
        self.status = {
            row["azure"]["code"]: row["azure"]["status"]
            for row in json.loads((folder / "errors.json").read_text())
        }
        self.common = set(document["x-common-error-codes"])
        self.cors = {name.lower() for name in document["x-cors-headers"]}
        self.common_headers = {name.lower(): value for name, value in document["x-common-headers"].items()}

    def faults(self, operation, method, answer, version=None, client_id=None):
        """What of an answer breaks the description: (rule, what), none when it keeps to it.

        `operation` is its object in the description, `answer` has a status, headers by lower-case name and a body.
        """
        responses = operation["responses"]
        described = responses.get(str(answer.status))
        if described is None and answer.status < 400:
            yield "status", f"{answer.status} is not described"
            return
        yield from self._headers(described or responses["default"], answer, version, client_id)
        if answer.status >= 400 or answer.status == 304:
            yield from self._error(operation, method, answer)
        elif method == "HEAD" or not described.get("content"):
            if answer.body:
                yield "body", f"a body of {len(answer.body)} bytes where none is described"
        else:
            yield from self._body(described["content"], answer)

    def _error(self, operation, method, answer):
        code = answer.headers.get("x-ms-error-code", "")
        if code not in self.status:
            yield "code", f"{answer.status} with the code {code!r}, which errors.json has not"
            return
        if code not in self.common | set(operation["x-error-codes"]) and not (answer.status == 304 and code == "ConditionNotMet"):
            yield "code", f"{code} is not described"
        expected = {self.status[code]}
        if code == "ConditionNotMet":
            expected.add(304)
        if code == "InvalidAuthenticationInfo":
            expected.add(401)
        if code == "CannotVerifyCopySource":
            # That of the source, 304 too; 500 when it cannot be reached, as the service has it.
            expected |= {304, *range(400, 500), 500}
        if answer.status not in expected:
            yield "status", f"{answer.status} for {code}, which is {sorted(expected)[0]}"
        if method == "HEAD" or answer.status == 304:
            if answer.body:
                yield "body", f"{answer.status} with a body"
            return
        yield from self._body({"application/xml": {"schema": self.document["paths"] and _error_schema(operation)}}, answer)
        if f"<Code>{code}</Code>".encode() not in answer.body:
            yield "body", f"its Code is not {code}: {answer.body[:200]!r}"

    def _headers(self, described, answer, version, client_id):
        known = {name.lower(): header for name, header in described.get("headers", {}).items()}
        for name, header in known.items():
            if header.get("required") and name not in answer.headers:
                yield "header", f"{name} is missing"
        for name, value in self.common_headers.items():
            if answer.headers.get(name) != value:
                yield "header", f"{name} is {answer.headers.get(name)!r}, not {value!r}"
        for name, value in answer.headers.items():
            header = known.get("x-ms-meta-*") if name.startswith("x-ms-meta-") else known.get(name)
            if header is None:
                if name not in _TRANSPORT | self.cors | self.common_headers.keys():
                    yield "header", f"{name} is not described for {answer.status}"
            elif not fits(header["schema"], value):
                yield "header", f"{name}: {value!r} does not fit {header['schema']}"
        if version and answer.headers.get("x-ms-version") != version:
            yield "header", f"x-ms-version is {answer.headers.get('x-ms-version')!r}, asked at {version!r}"
        if client_id and answer.headers.get("x-ms-client-request-id") != client_id:
            yield "header", "x-ms-client-request-id is not that of the request"

    def _body(self, content, answer):
        sent = answer.headers.get("content-type", "")
        kind = sent.split(";")[0].strip()
        # The type of a blob is the client's.
        if "application/octet-stream" in content:
            return
        described = content.get(kind)
        if described is None:
            yield "content-type", f"{sent!r}, described is {' or '.join(content)}"
            return
        if kind == "application/xml":
            try:
                root = ElementTree.fromstring(answer.body)
            except ElementTree.ParseError as error:
                yield "body", f"not XML: {error}: {answer.body[:200]!r}"
                return
            yield from (("body", text) for text in _element(described["schema"], root, root.tag, top=True))


def _error_schema(operation):
    return operation["responses"]["default"]["content"]["application/xml"]["schema"]


def fits(schema, text):
    """Whether the text of a header or an element is a value of a plain schema."""
    if "enum" in schema and text not in [str(value) for value in schema["enum"]]:
        return False
    if schema.get("type") == "integer" and not re.fullmatch(r"-?\d+", text):
        return False
    if schema.get("type") == "boolean" and text not in ("true", "false"):
        return False
    if "pattern" in schema and not re.search(schema["pattern"], text):
        return False
    form = _FORMATS.get(schema.get("format"))
    return not form or re.fullmatch(form, text) is not None


def _named(schema, default):
    return schema.get("xml", {}).get("name", default)


def _element(schema, element, path, top=False):
    """What of an element does not fit its schema, as texts."""
    if top and _named(schema, element.tag) != element.tag:
        yield f"the root is {element.tag}, described is {_named(schema, '')}"
    kind = schema.get("type")
    if kind == "array":
        yield from _array(schema, element, path)
    elif kind == "object":
        yield from _object(schema, element, path)
    elif len(element):
        yield f"{path} has elements"
    elif not fits(schema, element.text or ""):
        yield f"{path}: {element.text!r} does not fit {schema}"


def _array(schema, element, path):
    """The children of a wrapped array: all of one name."""
    items = schema["items"]
    for child in element:
        name = _named(items, None)
        if name and child.tag != name:
            yield f"{path}/{child.tag} is not described"
        yield from _element(items, child, f"{path}/{child.tag}")


def _object(schema, element, path):
    """Children and attributes by name; a plain array among the properties may repeat."""
    properties = schema.get("properties", {})
    attributes = {name for name, part in properties.items() if part.get("xml", {}).get("attribute")}
    for name in element.attrib:
        if name not in attributes:
            yield f"{path}@{name} is not described"
        elif not fits(properties[name], element.attrib[name]):
            yield f"{path}@{name}: {element.attrib[name]!r} does not fit"
    names = [child.tag for child in element]
    for name in schema.get("required", []):
        if name not in names and name not in attributes:
            yield f"{path}/{name} is missing"
    plain_text = not properties.keys() - attributes
    for child in element:
        part = properties.get(child.tag)
        repeats = part and part.get("type") == "array" and not part.get("xml", {}).get("wrapped")
        if part is None or child.tag in attributes:
            if "additionalProperties" not in schema:
                yield f"{path}/{child.tag} is not described"
        elif not repeats and names.count(child.tag) > 1:
            yield f"{path}/{child.tag} stands there {names.count(child.tag)} times"
        else:
            yield from _element(part["items"] if repeats else part, child, f"{path}/{child.tag}")
    if element.text and element.text.strip() and not plain_text:
        yield f"{path} has text"

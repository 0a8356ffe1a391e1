"""A collector of OpenTelemetry for tests: takes OTLP over HTTP and decodes the spans of protocol buffers."""

import http.server
import struct
import threading
import time


def varint(data, at):
    """(number, where it ends)."""
    number, shift = 0, 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def fields(data):
    """Yields (number of the field, value) of a message: an int, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at:at + 8], at + 8
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        elif kind == 5:
            value, at = data[at:at + 4], at + 4
        else:
            raise ValueError(f"wire type {kind}")
        yield key >> 3, value


def all_of(data, number):
    """The values of one field."""
    return [value for found, value in fields(data) if found == number]


def value_of(data):
    """An AnyValue: a text, an integer or a double."""
    number, value = next(fields(data))
    readers = {1: lambda v: v.decode(), 3: lambda v: v, 4: lambda v: struct.unpack("<d", v)[0]}
    return readers[number](value)


def attributes(messages):
    """{name: value} of KeyValues."""
    return {all_of(one, 1)[0].decode(): value_of(all_of(one, 2)[0]) for one in messages}


def fixed(data):
    """A fixed64."""
    return struct.unpack("<Q", data)[0]


def span_of(data):
    """A Span as a dictionary."""
    first = {}
    for number, value in fields(data):
        first.setdefault(number, value)
    return {"trace": first[1].hex(), "id": first[2].hex(), "parent": first.get(4, b"").hex(), "name": first[5].decode(), "kind": first[6],
            "start": fixed(first[7]), "end": fixed(first[8]), "attributes": attributes(all_of(data, 9)),
            "status": dict(fields(first.get(15, b""))).get(3, 0)}


class Collector:
    """Listens at a port of its own while its block runs. `spans` has what came, `resources` what sent it; `answer` is the body of answers."""

    def __init__(self):
        self.spans, self.resources, self.paths, self.status, self.pause, self.answer = [], [], set(), 200, 0, b""
        made = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Takes one batch."""

            def do_POST(self):
                """An ExportTraceServiceRequest."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                time.sleep(made.pause)
                made.paths.add((self.path, self.headers["Content-Type"], self.headers.get("x-sender")))
                if made.status == 200:
                    made.take(body)
                self.send_response(made.status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(made.answer)))
                self.end_headers()
                self.wfile.write(made.answer)

            def log_message(self, *_):
                """Nothing."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def take(self, body):
        """The spans of a batch."""
        for of_resource in all_of(body, 1):
            self.resources += [attributes(all_of(one, 1)) for one in all_of(of_resource, 1)]
            for of_scope in all_of(of_resource, 2):
                self.spans += [span_of(one) for one in all_of(of_scope, 2)]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

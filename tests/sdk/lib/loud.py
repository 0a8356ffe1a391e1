"""A server whose names, codes and messages would control a terminal."""

import http.server


class Loud(http.server.BaseHTTPRequestHandler):
    """Lists one blob, refuses everything else, and writes to terminals in names, codes and messages."""

    # What XML permits: C1 (0x9b begins a command of terminals), marks of direction; and what it does not.
    name, says = "a\u009b2J\u202egpj.txt", "no\u009b2J\u2066way\x1b]0;title\x07"

    def do_GET(self):
        """A list, if one is asked for."""
        if "comp=list" in self.path and "refuse" not in self.path:
            body = (f"<EnumerationResults><Blobs><Blob><Name>{self.name}</Name><Properties><Content-Length>1</Content-Length>"
                    "<Etag>0x1</Etag></Properties></Blob></Blobs><NextMarker/></EnumerationResults>")
            self.answer(200, body)
        else:
            self.answer(409, f"<Error><Code>Bad\u009b2J</Code><Message>{self.says}</Message></Error>")

    do_PUT = do_DELETE = do_HEAD = do_GET

    def answer(self, status, body):
        """One answer, after the body of the request."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = body.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        """Nothing."""

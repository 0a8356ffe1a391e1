"""A server on loopback that copies are made from; each script decides how its bodies come."""

import http.server
import threading


class Source(http.server.ThreadingHTTPServer):
    """Answers every GET with a head for `length` bytes and leaves the body to `send(source, path, write)`.

    `send` may wait on `closing`, which is set when the source stops. Use it in a `with` statement.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, length, send):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.length, self.send = length, send
        self.closing = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever)

    def url(self, path):
        """The URL of a path, which may have a query."""
        return f"http://127.0.0.1:{self.server_port}/{path}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers for the source."""

    def do_GET(self):  # pylint: disable=invalid-name
        """Sends the head, then what the script sends."""
        self.send_response(200)
        self.send_header("Content-Length", str(self.server.length))
        self.send_header("ETag", '"e"')
        self.end_headers()
        try:
            self.wfile.flush()
            self.server.send(self.server, self.path, self.wfile.write)
        except OSError:
            # The copy was given up or the server under test has stopped.
            pass

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        """Says nothing."""

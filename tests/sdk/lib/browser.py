"""Headless Chromium, driven through chromedriver's wire protocol: no package but Debian's chromium and chromium-driver."""

import base64
import http.client
import json
import pathlib
import shutil
import subprocess
import tempfile
import time

# The browser loads nothing but the requested page.
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--window-size=1280,1500"]
START_SECONDS = 60


class Browser:
    """One window with a profile of its own; ends the processes it started when its `with` block ends."""

    def __init__(self, port):
        self.port = port
        self.driver, self.session, self.profile = None, None, None

    @staticmethod
    def missing():
        """The programs it needs that are not installed."""
        return [program for program in ("chromium", "chromedriver") if not shutil.which(program)]

    def __enter__(self):
        self.profile = tempfile.mkdtemp(prefix="blockyard-browser-")
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}"], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        try:
            self._wait_for_driver()
            options = {"binary": shutil.which("chromium"), "args": [*FLAGS, f"--user-data-dir={self.profile}"]}
            wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            made = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self.session = made["sessionId"]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        if self.session:
            try:
                self._call("DELETE", f"/session/{self.session}")
            except (OSError, RuntimeError, http.client.HTTPException):
                pass
        if self.driver:
            self.driver.terminate()
            self.driver.wait(30)
        shutil.rmtree(self.profile, ignore_errors=True)
        return False

    def _wait_for_driver(self):
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                return self._call("GET", "/status")
            except (OSError, http.client.HTTPException):
                if time.monotonic() > end or self.driver.poll() is not None:
                    raise
                time.sleep(0.1)

    def _call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            value = json.loads(answer.read())["value"]
        finally:
            connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {value['error']}: {value['message']}")
        return value

    def _devtools(self, command, **parameters):
        return self._call("POST", f"/session/{self.session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def prefer(self, scheme):
        """Has the user prefer `light` or `dark`."""
        self._devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screen(self, width, height):
        """Sets the size of the screen in pixels, with scroll bars that take no room, as on phones."""
        self._devtools("Emulation.setScrollbarsHidden", hidden=True)
        self._devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def whole_page(self, path):
        """Writes the page as a PNG, with what is below the screen."""
        made = self._devtools("Page.captureScreenshot", captureBeyondViewport=True)
        pathlib.Path(path).write_bytes(base64.b64decode(made["data"]))

    def open(self, url):
        """Loads a page."""
        self._call("POST", f"/session/{self.session}/url", {"url": url})

    def run(self, script, *arguments):
        """Runs the body of a function in the page and returns what it returns."""
        return self._call("POST", f"/session/{self.session}/execute/sync", {"script": script, "args": list(arguments)})

    def keys(self, selector, *keys):
        """Types keys into the first element of this CSS selector."""
        element = self._call("POST", f"/session/{self.session}/element", {"using": "css selector", "value": selector})
        (number,) = element.values()
        self._call("POST", f"/session/{self.session}/element/{number}/value", {"text": "".join(keys)})

    def console(self):
        """What the page wrote to its console since the last call."""
        return self._call("POST", f"/session/{self.session}/se/log", {"type": "browser"})

    def picture(self, selector, path):
        """Writes the first element of this CSS selector as a PNG."""
        element = self._call("POST", f"/session/{self.session}/element", {"using": "css selector", "value": selector})
        (number,) = element.values()
        made = self._call("GET", f"/session/{self.session}/element/{number}/screenshot")
        pathlib.Path(path).write_bytes(base64.b64decode(made))

    def screenshot(self, path):
        """Writes what is seen as a PNG."""
        pathlib.Path(path).write_bytes(base64.b64decode(self._call("GET", f"/session/{self.session}/screenshot")))

"""One server process: started, drained, killed, started again on the same data. `Server` is a
`blockyard serve`, whose data can be checked too."""

import http.client
import json
import pathlib
import signal
import subprocess
import time

from .account import Account
from .ports import free_port

READY_SECONDS = 120
DRAIN_SECONDS = 60


class Program:
    """Owns the process it started and nothing else; ends it when its `with` block ends. A class for
    each program says what is started and when it is ready."""

    def __init__(self, log):
        self.log_path = pathlib.Path(log)
        self.process, self.starts = None, 0

    def command(self):
        """What is started."""
        raise NotImplementedError

    def ready(self):
        """Whether it serves now."""
        raise NotImplementedError

    def launch(self):
        """Starts the process and does not wait for it."""
        command = self.command()
        with open(self.log_path, "ab") as log:
            log.write(f"\n--- start {self.starts}: {' '.join(command)}\n".encode())
            log.flush()
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.starts += 1

    def start(self, seconds=READY_SECONDS):
        """Starts the process and waits until it is ready. Returns the seconds that took."""
        began = time.monotonic()
        self.launch()
        while not self.ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"server ended with {self.process.returncode} while starting:\n{self.log_tail()}")
            if time.monotonic() - began > seconds:
                raise RuntimeError(f"server not ready after {seconds} s:\n{self.log_tail()}")
            time.sleep(0.005)
        return time.monotonic() - began

    def running(self):
        """Whether the process lives."""
        return self.process is not None and self.process.poll() is None

    def stop(self, seconds=DRAIN_SECONDS):
        """Sends SIGTERM and waits for the drain to end. Returns the exit code."""
        if not self.running():
            return self.process.returncode if self.process else None
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"server did not stop within {seconds} s of SIGTERM:\n{self.log_tail()}") from None

    def kill(self):
        """Sends SIGKILL: what a crash of the process does, with the operating system living on."""
        if self.running():
            self.process.kill()
            self.process.wait()

    def log_tail(self, lines=30):
        """The last lines the process printed."""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.kill()
        return False


class Server(Program):
    """A `blockyard serve`."""

    def __init__(self, binary, data, log, extra=()):
        super().__init__(log)
        self.binary, self.data = str(binary), [str(d) for d in data]
        self.extra = list(extra)
        self.blob_address, self.admin_address = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"

    @property
    def account(self):
        """The well-known development account at this server."""
        return Account(self.blob_address)

    def command(self):
        """`blockyard serve` with its flags."""
        listen = ["--blob-listen", self.blob_address, "--admin-listen", self.admin_address]
        folders = [word for folder in self.data for word in ("--data", folder)]
        return [self.binary, "serve", *listen, *folders, *self.extra]

    def ready(self):
        """Whether /readyz answers 200 now."""
        try:
            return self.admin("/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def admin(self, path):
        """GETs a path of the admin listener: (status, text)."""
        connection = http.client.HTTPConnection(self.admin_address, timeout=10)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def metrics(self):
        """Every sample of /metrics as {name with labels: value}."""
        found = {}
        for line in self.admin("/metrics")[1].splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                found[name] = float(value)
        return found

    def check(self, seconds=1800):
        """Runs `blockyard check` on the stopped data. Returns (exit code, output)."""
        done = subprocess.run([self.binary, "check", *self.data], capture_output=True, text=True, timeout=seconds)
        return done.returncode, done.stdout + done.stderr

    def check_report(self, *more, seconds=1800):
        """As `check`, with more arguments. Returns (exit code, report); a malformed report fails."""
        command = [self.binary, "check", "--json", *self.data, *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError as error:
            raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()[-200:]}") from error

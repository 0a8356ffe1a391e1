"""The file system of tests/power, which loses power on command: built, mounted, unmounted."""

import os
import pathlib
import socket
import subprocess

from . import install
from .judged import NotRun
from .measure import wait_until

PROJECT = pathlib.Path(__file__).resolve().parents[2] / "power"
NOT_RUN = 77
MOUNT_SECONDS = 30
CONTROL_SECONDS = 60
MODES = ("forget", "torn", "reordered")


def program():
    """The file system's program, built here if need be. Raises `NotRun` where it cannot mount."""
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        raise NotRun(f"cannot open /dev/fuse: {error.strerror}") from error
    return install.cargo(PROJECT, "power")


class PowerMount:
    """A mounted folder, `point`; gone with everything in it when the `with` block ends. A sync
    takes up to `sync_ms`."""

    def __init__(self, binary, scratch, capacity_mib=8 << 10, sync_ms=4):
        self.point, self.socket = scratch / "mount", scratch / "power.sock"
        self.log = scratch / "power.log"
        words = (binary, self.point, self.socket, capacity_mib, sync_ms)
        self.command = [str(word) for word in words]
        self.process = None

    def __enter__(self):
        self.point.mkdir(parents=True, exist_ok=True)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        ended = lambda: self.process.poll() is not None
        wait_until(lambda: os.path.ismount(self.point) or ended(), MOUNT_SECONDS, 0.02)
        if self.process.poll() is not None or not os.path.ismount(self.point):
            code, said = self.process.poll(), self.log.read_text(errors="replace").strip()
            self._end()
            if code == NOT_RUN:
                raise NotRun(said.removeprefix("not run: "))
            raise RuntimeError(f"no mount: {said}")
        return self

    def _ask(self, line):
        with socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(CONTROL_SECONDS)
            stream.connect(str(self.socket))
            stream.sendall(f"{line}\n".encode())
            answer = stream.makefile().readline().strip()
        word, _, rest = answer.partition(" ")
        if word != "ok":
            raise RuntimeError(f"{line}: {answer or 'no answer'}")
        return rest

    def lose_power(self, mode, seed):
        """Forgets what was not synced; nobody may use the folder meanwhile. Returns what it met."""
        return self._ask(f"forget {mode} {seed}")

    def __exit__(self, *exc):
        try:
            self._ask("unmount")
            self.process.wait(CONTROL_SECONDS)
        except (OSError, RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"unmount: {error}", flush=True)
        self._end()
        return False

    def _end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        # A mount whose process ended without an unmount does not look like a mount.
        subprocess.run(["umount", "-l", str(self.point)], check=False, capture_output=True)

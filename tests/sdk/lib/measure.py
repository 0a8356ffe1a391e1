"""Resident memory of a process over time, and the disk blocks a folder really occupies."""

import os
import threading
import time


def rss_bytes(pid):
    """Resident memory of `pid` now, from /proc; 0 once it has ended."""
    try:
        with open(f"/proc/{pid}/status") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


class RssSampler:
    """Samples the resident memory of a process every `interval` seconds while its block runs."""

    def __init__(self, pid, interval=0.05):
        self.pid, self.interval = pid, interval
        self.peak, self.samples, self.first = 0, 0, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while True:
            now = rss_bytes(self.pid)
            self.first = self.first or now
            self.peak = max(self.peak, now)
            self.samples += 1
            if self._stop.wait(self.interval):
                return

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._stop.set()
        self._thread.join()
        return False


def allocated(folder):
    """Allocated bytes (not lengths: holes count nothing) of every file below `folder`, as {relative path: bytes}."""
    found = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            try:
                found[os.path.relpath(path, folder)] = os.lstat(path).st_blocks * 512
            except FileNotFoundError:
                continue  # Removed after it was listed: it occupies nothing.
    return found


def wait_until(condition, seconds, every=0.5):
    """Calls `condition` until it is true or `seconds` have gone; returns what it said last."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer or time.monotonic() >= deadline:
            return answer
        time.sleep(every)

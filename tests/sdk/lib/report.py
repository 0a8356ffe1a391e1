"""Progress while a script runs, and the table of verdicts it ends with."""

import os
import pathlib
import sys
import threading
import time

from rich.progress import (
    BarColumn,
    Progress as RichProgress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

PLAIN_LINE_SECONDS = 5.0


class Progress:
    """A bar on a terminal, one line every few seconds elsewhere. Safe to advance from many threads."""

    def __init__(self, title, total, unit=""):
        self.title, self.total, self.unit = title, total, unit
        self.done, self.note_text = 0, ""
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._last_line = self._started
        self._rich = None

    def __enter__(self):
        if sys.stdout.isatty():
            self._rich = RichProgress(
                TextColumn("{task.description:<34}"),
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("{task.completed:,.0f}/{task.total:,.0f} {task.fields[unit]} {task.fields[note]}"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
            )
            self._rich.start()
            self._task = self._rich.add_task(self.title, total=self.total, unit=self.unit, note="")
        else:
            print(f"{self.title} ...", flush=True)
        return self

    def advance(self, count=1):
        """Adds `count` units to what is done."""
        with self._lock:
            self.done += count
            done = self.done
        self._show(done)

    def move_to(self, done, note=None):
        """Sets what is done, for things that are measured rather than counted."""
        with self._lock:
            self.done = done
            if note is not None:
                self.note_text = note
        self._show(done)

    def _show(self, done):
        if self._rich:
            self._rich.update(self._task, completed=done, note=self.note_text)
            return
        now = time.monotonic()
        with self._lock:
            if now - self._last_line < PLAIN_LINE_SECONDS:
                return
            self._last_line = now
        share = 100 * done / self.total if self.total else 100
        print(
            f"{self.title}: {done:,.0f}/{self.total:,.0f} {self.unit} ({share:.0f} %) "
            f"{self.note_text} {now - self._started:.0f} s",
            flush=True,
        )

    def __exit__(self, *exc):
        seconds = time.monotonic() - self._started
        if self._rich:
            self._rich.stop()
        else:
            print(f"{self.title}: {self.done:,.0f} {self.unit} in {seconds:.1f} s", flush=True)
        return False


def table(title, columns, rows):
    """Prints `rows` under `columns`, aligned, the same on a terminal and in a log."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(column), *(len(row[i]) for row in cells), 0) for i, column in enumerate(columns)]
    line = lambda row: "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
    print(f"\n{title}")
    print(line(columns))
    print(line(["-" * width for width in widths]))
    for row in cells:
        print(line(row))
    print(flush=True)


_kept_in = None


def keep_in(path):
    """Appends the verdicts of this process to the Markdown file at `path` as well; None stops that."""
    global _kept_in
    _kept_in = path


def _keep(title, rows):
    """Appends one table to the Markdown file."""
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    load = os.getloadavg()[0]
    lines = [f"## {title}", "", f"{when}, load average {load:.1f} at the end, `{' '.join(_command())}`", "",
             "| what | wanted | found | verdict |", "| --- | --- | --- | --- |"]
    lines += ["| " + " | ".join(str(cell).replace("|", "/") for cell in row) + " |" for row in rows]
    with _kept_in.open("a", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n\n")


def _command():
    """The script and its flags, without the paths of this machine."""
    flags = [flag for flag in sys.argv[1:] if "/" not in flag and flag not in ("--binary", "--work", "--verdicts")]
    return [f"tests/sdk/{pathlib.Path(sys.argv[0]).name}", *flags]


class Verdicts:
    """The checks, with wanted and found values. The script's exit code is `exit_code()`."""

    def __init__(self, title):
        self.title, self.rows, self.failures = title, [], 0
        self._details = []

    def check(self, what, passed, wanted="", found=""):
        """Records one verdict and returns whether it passed."""
        self.rows.append((what, wanted, found, "passed" if passed else "FAILED"))
        self.failures += 0 if passed else 1
        if not passed:
            print(f"FAILED: {what}: wanted {wanted}, found {found}", flush=True)
        return passed

    def equal(self, what, found, wanted):
        """Records that `found` must equal `wanted`."""
        return self.check(what, found == wanted, f"{wanted:,}" if isinstance(wanted, int) else wanted,
                          f"{found:,}" if isinstance(found, int) else found)

    def none(self, what, wrong, examples=5):
        """Records that the list `wrong` must be empty, and remembers its first entries for the end."""
        self._details += [f"{what}: {entry}" for entry in list(wrong)[:examples]]
        return self.check(what, not wrong, "0 wrong", f"{len(wrong):,} wrong")

    def sound(self, server, what="blockyard check"):
        """Records that `blockyard check` finds nothing in the data of the stopped `server`."""
        code, output = server.check()
        if code:
            print(output)
        return self.check(what, code == 0, "exit 0", f"exit {code}")

    def figure(self, what, found, target=""):
        """Records a measurement that is reported but never fails the run."""
        self.rows.append((what, target, found, "figure"))

    def exit_code(self):
        """Prints everything and answers 0 when nothing failed, else 1."""
        table(self.title, ("what", "wanted", "found", "verdict"), self.rows)
        for detail in self._details:
            print(f"  {detail}")
        passed = sum(row[3] == "passed" for row in self.rows)
        print(f"{self.title}: {passed} passed, {self.failures} failed", flush=True)
        if _kept_in:
            _keep(self.title, self.rows)
        return 1 if self.failures or not passed else 0


def mib(count):
    """Bytes as text in MiB."""
    return f"{count / (1 << 20):,.1f} MiB"

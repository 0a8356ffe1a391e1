"""What one client did, in groups of operations: the rows of the table at the end of `tests/sdk/run`.

    judged = Judged("rclone", "1.75.2", options)
    with judged.group("copy"):
        ...            # raises when something is not as it must be
    return judged.exit_code()

A group that raises has failed and the next one runs all the same. `NotRun` says that the group cannot be asked here.
"""

import contextlib
import json
import pathlib
import re
import subprocess
import time
import traceback

from . import cli
from .report import table

REASON_CHARACTERS = 200


class NotRun(Exception):
    """What the group needs is not on this machine; the text says what."""


def parse(doc):
    """The command line of a client's script."""
    made = cli.parser(doc)
    made.add_argument("--results", type=pathlib.Path, help="where the rows go as JSON, one object a line")
    return cli.parse(made)


def reason(error):
    """The first line that says something, with the service's error code where one is in the text."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    code = re.search(r"<Code>(\w+)</Code>|\[(\w+)\] \d{3} ", text)
    said = f"{code[1] or code[2]}: " if code else ""
    return f"{type(error).__name__}: {said}{lines[0] if lines else ''}"[:REASON_CHARACTERS]


class Judged:
    """One client at one version."""

    def __init__(self, client, version, options):
        self.client, self.version, self.rows = client, version, []
        self._results = options.results
        if self._results:
            self._results.write_text("")

    def _row(self, group, state, why, seconds):
        row = {"client": self.client, "version": self.version, "group": group, "state": state, "why": why,
               "seconds": round(seconds, 1)}
        self.rows.append(row)
        print(f"{self.client}: {group}: {state} {why}".rstrip(), flush=True)
        if self._results:
            with open(self._results, "a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")

    @contextlib.contextmanager
    def group(self, name):
        """Runs one group of operations."""
        began = time.monotonic()
        took = lambda: time.monotonic() - began
        try:
            yield
        except NotRun as missing:
            self._row(name, "not run", str(missing), took())
        except Exception as error:  # pylint: disable=broad-except  # A judge reports whatever the client raises.
            traceback.print_exc()
            self._row(name, "FAILED", reason(error), took())
        else:
            self._row(name, "passed", "", took())

    def not_run(self, group, why):
        """Records a group that cannot be asked here."""
        self._row(group, "not run", why, 0)

    def exit_code(self):
        """Prints the table; 0 when something passed and nothing failed."""
        columns = ("group", "state", "seconds", "why")
        table(f"{self.client} {self.version}", columns, [[row[column] for column in columns] for row in self.rows])
        count = lambda state: sum(row["state"] == state for row in self.rows)
        print(f"{self.client}: {count('passed')} passed, {count('FAILED')} failed, {count('not run')} not run", flush=True)
        if count("FAILED"):
            return 1
        return 0 if count("passed") else 77


class CommandFailed(Exception):
    """A command ended with another code than 0."""


def telling(text):
    """The line of a client's output that says most: the service's error code, else the first that speaks of an error."""
    code = re.search(r"(?:ERROR CODE|ErrorCode)[:=]\s*(\w+)", text)
    request = re.search(r"\b(GET|HEAD|PUT|POST|DELETE|OPTIONS) https?://[^/]+(/[^\s?\"\\\\]*(?:\?(?:comp|restype)=\w+)?)", text)
    if code:
        return f"{code[1]} {request[1] + ' ' + request[2] if request else ''}".strip()
    said = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in said if re.search("error|failed|panicked", line, re.IGNORECASE)), said[0] if said else "")


def must(command, seconds=600, **options):
    """Runs a client's command; its output, or `CommandFailed` with the line that says why."""
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", timeout=seconds, stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        text = done.stderr.strip() + "\n" + done.stdout.strip()
        print(f"$ {' '.join(map(str, command))}\n{text[-3000:]}", flush=True)
        raise CommandFailed(f"exit {done.returncode}: {telling(text)}")
    return done.stdout


def equal(found, wanted, what=""):
    """Raises when two things differ."""
    if found != wanted:
        raise AssertionError(f"{what} wanted {str(wanted)[:90]}, found {str(found)[:90]}")

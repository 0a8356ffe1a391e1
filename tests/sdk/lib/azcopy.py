"""AzCopy: its program, its environment, and what its commands report.

AzCopy takes the account from the path only when the host is an IP address, never guesses the service for one
(`--from-to` always), and signs with a signature in the address only.
"""

import dataclasses
import json
import os
import re
import subprocess
from urllib.parse import quote

from .install import debian, npm
from .judged import CommandFailed, telling

VERSION = "10.32.2"
_BINARY = "node_modules/@azure-tools/azcopy-linux/dist/bin/azcopy_linux_amd64"


def program():
    """The program, installed when it is not there yet."""
    debian(["libsecret-1-0"])
    found = npm([f"@azure-tools/azcopy-linux@{VERSION}"]) / _BINARY
    found.chmod(0o755)
    return found


@dataclasses.dataclass
class AzCopy:
    """One installation with its own plans and logs."""

    binary: object
    folder: object

    def environment(self):
        """Nothing of the person who runs this is read or written."""
        return {**os.environ, "AZCOPY_LOG_LOCATION": str(self.folder / "azcopy-log"),
                "AZCOPY_JOB_PLAN_LOCATION": str(self.folder / "azcopy-plan"), "AZCOPY_DISABLE_SYSLOG": "true",
                "AZCOPY_CONCURRENCY_VALUE": "16", "AZCOPY_BUFFER_GB": "1", "HOME": str(self.folder)}

    def command(self, *arguments):
        """The full command line."""
        return [str(self.binary), *map(str, arguments), "--output-type=json"]

    def run(self, *arguments, seconds=900):
        """Runs a command that must end well; the final job summary, or an empty one where it has none."""
        done = subprocess.run(self.command(*arguments), env=self.environment(), capture_output=True, text=True,
                              errors="replace", timeout=seconds, stdin=subprocess.DEVNULL)
        summary, said = report(done.stdout)
        if done.returncode or int(summary.get("TransfersFailed", 0)):
            print(done.stdout[-3000:], done.stderr[-1000:], flush=True)
            refused = self.refused()
            raise CommandFailed(f"azcopy {arguments[0]}: exit {done.returncode}: {refused or telling(said)}")
        return summary

    def refused(self):
        """What the newest log says about the first request that was refused, or nothing."""
        logs = sorted((self.folder / "azcopy-log").glob("*.log"), key=lambda path: path.stat().st_mtime)
        for log in reversed(logs[-2:]):
            for line in log.read_text(errors="replace").splitlines():
                failed = re.search(r"ERR: .*(?:FAILED|SET-PROP).*?: -?([045]\d\d\b.*?)(?:X-Ms-Request-Id|$)", line)
                if failed:
                    return failed[1].strip(" .-:")
        return ""


def report(text):
    """(the last job summary, the last error text) of AzCopy's JSON lines."""
    summary, said = {}, ""
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            said = line
            continue
        content = entry.get("MessageContent", "")
        if entry.get("MessageType") in ("Init", "EndOfJob", "Progress"):
            try:
                summary = {**summary, **json.loads(content)}
            except json.JSONDecodeError:
                pass
        elif entry.get("MessageType") == "Error":
            said = content
    return summary, said


def address(account, signature, container, name=""):
    """An address AzCopy takes, with its signature."""
    path = f"/{quote(name)}" if name else ""
    return f"{account.url}/{container}{path}?{signature}"

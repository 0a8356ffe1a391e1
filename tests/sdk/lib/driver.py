"""The load driver of benches/load, running beside a script until its input is closed."""

import json
import subprocess


class Driver:
    """One run of a workload against a server."""

    def __init__(self, program, server, container, log, rate):
        account = server.account
        self._log = open(log, "ab")
        command = [program, "--bench", "--endpoint", account.url, "--account", account.name, "--key", account.key,
                   "--container", container, "--workload", "churn", "--rate", str(rate), "--until-closed"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True)

    def failed(self):
        """Whether it has ended by itself."""
        return self._process.poll() is not None

    def stop(self):
        """Ends it: each connection reads all its blobs once more. Returns its figures, None if it failed."""
        out, _ = self._process.communicate(timeout=300)
        self._log.close()
        return json.loads(out) if out.strip() else None

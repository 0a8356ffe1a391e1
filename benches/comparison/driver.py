"""Runs the load driver and reads its JSON lines."""

import json
import subprocess

from comparison.servers import ROOT, executable, say


class Driver:
    """The load driver, built here unless a program is named."""

    def __init__(self, divide, program=None):
        self.divide = divide
        self.program = program and program.resolve()
        if self.program:
            return
        say("building the load driver")
        built = subprocess.run(
            ["cargo", "bench", "--no-run", "--bench", "load", "--message-format=json"],
            cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True,
        )
        self.program = executable(built.stdout, "load")

    def start(self, server, workloads, extra=()):
        """Starts the driver against `server` without waiting for it."""
        return subprocess.Popen(
            [
                self.program, "--bench", *server.driver_args(), "--workload", ",".join(workloads),
                "--divide", str(self.divide * server.divide), *extra,
            ],
            stdout=subprocess.PIPE, text=True,
        )

    def run(self, server, workloads, extra=()):
        """Runs `workloads`; returns their figures by name. Failed operations are in the figures."""
        return finish(self.start(server, workloads, extra))


def finish(process):
    """Waits for a started driver; returns figures by workload."""
    lines, _ = process.communicate()
    figures = [json.loads(line) for line in lines.splitlines()]
    return {figure["workload"]: figure for figure in figures}

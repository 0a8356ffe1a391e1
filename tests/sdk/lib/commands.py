"""The program's own commands, against a server that runs."""

import json
import subprocess


def run(server, *words):
    """One command: exit code, output and errors."""
    done = subprocess.run([server.binary, *words, "--admin-listen", server.admin_address, "--data", server.data[0]],
                          capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def command(server, *words):
    """The same with its JSON; it has to succeed."""
    code, out, errors = run(server, *words, "--json")
    if code != 0:
        raise RuntimeError(f"{' '.join(words)}: exit {code}: {out}{errors}")
    return json.loads(out)


def refused(server, *words):
    """What a command says that has to fail."""
    code, out, errors = run(server, *words)
    if code == 0:
        raise RuntimeError(f"{' '.join(words)} was carried out: {out}")
    return errors

"""The programs of clients/java: built with Maven, run, and judged by the lines that they print."""

import json
import os
import pathlib
import subprocess
from xml.etree import ElementTree

from .install import java, maven
from .judged import equal

PROJECT = pathlib.Path(__file__).parents[1] / "clients" / "java"
SECONDS = 900
# Spark reads what Java 17 hides.
OPENED = {"spark": ["java.io", "java.lang", "java.lang.invoke", "java.lang.reflect", "java.net", "java.nio", "java.util",
                    "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs",
                    "sun.security.action", "sun.util.calendar"]}


def version(name):
    """The version that pom.xml names."""
    return ElementTree.parse(PROJECT / "pom.xml").findtext(f"{{*}}properties/{{*}}{name}.version")


class Program:
    """One module. Making it builds it, or raises `Unavailable`."""

    def __init__(self, module):
        flags = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED.get(module, [])]
        self._module, self._command = module, [java(), *flags, "-cp", maven(PROJECT, module), "Main"]

    def run(self, judged, settings):
        """Runs it with these settings; a row for each of its groups, and one that it came to its end."""
        done = subprocess.run(self._command, env={**os.environ, **{name: str(value) for name, value in settings.items()}},
                              capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
        print(done.stderr[-8000:])
        for line in done.stdout.splitlines():
            row = json.loads(line)
            with judged.group(row["group"]):
                if row["error"]:
                    raise AssertionError(row["error"])
        with judged.group(f"{self._module}: ran to its end"):
            equal(done.returncode, 0, done.stderr[-200:])

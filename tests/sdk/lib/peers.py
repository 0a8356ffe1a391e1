"""Servers that take the place of blockyard."""

import http.client
import pathlib
import shutil

from . import install
from .account import Account
from .server import Program, Server, free_port

AZURITE = "azurite@3.35.0"


class Azurite(Program):
    """Microsoft's emulator of the Blob service. It has no setting for durable writes."""

    name = AZURITE

    def __init__(self, folder, log):
        super().__init__(log)
        self.folder, self.port = pathlib.Path(folder), free_port()
        self.program = install.npm([AZURITE]) / "node_modules" / ".bin" / "azurite-blob"

    @property
    def account(self):
        """The well-known development account at this server."""
        return Account(f"127.0.0.1:{self.port}")

    def command(self):
        """Its blob service alone; newer API versions are not refused."""
        return [str(self.program), "--location", str(self.folder), "--blobHost", "127.0.0.1",
                "--blobPort", str(self.port), "--silent",
                "--skipApiVersionCheck", "--disableTelemetry"]

    def ready(self):
        """Whether anything is answered."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
            return True
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def wipe(self):
        """Removes its data while it is stopped."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()


class Blockyard(Server):
    """Blockyard itself, under the part of the load that peers can carry out."""

    name = "blockyard"

    def wipe(self):
        """Removes its data while it is stopped."""
        for folder in self.data:
            shutil.rmtree(folder, ignore_errors=True)


def start(name, options, folder, log):
    """The peer of this name, started."""
    if name == "azurite":
        made = Azurite(folder / "azurite", log)
    else:
        made = Blockyard(options.binary, [folder / "disk-0"], log)
    made.wipe()
    made.start()
    return made


NAMES = ("azurite", "blockyard")

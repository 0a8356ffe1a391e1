#!/usr/bin/env python3
"""The image without Docker: a root as docker/Dockerfile makes it, in which each module of Testcontainers starts the program.

    tests/dist/image.py PROGRAM ROOT

tests/dist/run calls it in a namespace of its own for mounts; it makes one for the network.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sdk"))

# pylint: disable=wrong-import-position
import place
from lib import testcontainers as modules
from place import done, expect

USER = 10001
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CERTIFICATES = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
# What the Dockerfile puts onto its base, which is busybox.
COPIED = ["/blockyard", "/etc/ssl/certs/ca-certificates.crt", "/data", "/key", "/usr/local/bin"]


def image(program):
    """Each Testcontainers module starts the image: its root, user, variables and shell, without Docker."""
    place.need_chroot()
    place.need("busybox", "busybox-static")
    place.need("unshare", "util-linux")
    headers = ["readelf", "--wide", "--program-headers", shutil.which("busybox")]
    if "INTERP" in subprocess.run(headers, capture_output=True, text=True, check=True).stdout:
        raise place.Skipped("busybox is not linked statically (Debian package busybox-static)")
    # Not below a folder that only root enters.
    root = pathlib.Path(f"/tmp/dist-image-{os.getpid()}")
    try:
        subprocess.run(["unshare", "--mount", sys.executable, __file__, program, root], check=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def build(program, root):
    """Makes the root."""
    text = modules.DOCKERFILE.read_text(encoding="utf-8")
    copied = re.findall(r"^COPY --from=build (?:--chown=\S+ )?\S+ (\S+)$", text, re.MULTILINE)
    expect(copied == COPIED, f"docker/Dockerfile copies {copied}: make the root of this test so too")
    expect(f"\nUSER {USER}:{USER}\n" in text, f"the user of docker/Dockerfile is not {USER}")
    for folder in ("bin", "etc/ssl/certs", "proc", "dev", "root", "usr/local/bin"):
        (root / folder).mkdir(parents=True)
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    shutil.copy(shutil.which("busybox"), root / "bin" / "busybox")
    for applet in ("sh", "grep", "nc", "cat", "awk"):
        (root / "bin" / applet).symlink_to("busybox")
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    if CERTIFICATES.exists():
        shutil.copy(CERTIFICATES, root / "etc/ssl/certs")
    shutil.copy(program, root / "blockyard")
    for link in modules.image_links():
        (root / "usr/local/bin" / link).symlink_to("/blockyard")
    # What Docker adds to each container.
    (root / "etc" / "hosts").write_text("127.0.0.1 localhost\n")
    subprocess.run(["mount", "-t", "proc", "proc", root / "proc"], check=True)
    (root / "dev" / "null").touch()
    subprocess.run(["mount", "--bind", "/dev/null", root / "dev" / "null"], check=True)


def empty_volumes(root, names):
    """As `docker run` makes them."""
    for name in names:
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir()
        os.chown(root / name, USER, USER)


class Container:
    """A process that is started as in a container of the image."""

    def __init__(self, root, command, variables, new=("data", "key")):
        empty_volumes(root, new)
        self.root, self.log = root, root / "log"
        self.environment = {"PATH": PATH, **modules.image_variables(), **variables}
        start = ["/blockyard", *command[1:]] if command[0] == "entrypoint" else command
        with self.log.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.inside(*start), env=self.environment, stdout=log, stderr=log)

    def inside(self, *command):
        """A command in the container, by the image's user."""
        return ["chroot", f"--userspec={USER}:{USER}", self.root, *command]

    def exec(self, *command):
        """`docker exec`: the exit code, and the output."""
        ended = subprocess.run(self.inside(*command), env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        return ended.returncode, ended.stdout + ended.stderr

    def wait(self, lines, ports):
        """Waits for the lines and ports that a module waits for."""
        missing = lambda: ([line for line in lines if line not in self.log.read_text(encoding="utf-8")]
                           + [port for port in ports if not modules.is_open(port)])
        until = time.monotonic() + place.SECONDS
        while left := missing():
            ended = self.process.poll() is not None or time.monotonic() > until
            expect(not ended, f"{left} did not come: {self.log.read_text(encoding='utf-8')}")
            time.sleep(0.02)

    def stop(self):
        """As `docker stop`."""
        self.process.terminate()
        expect(self.process.wait(place.SECONDS) == 0, f"it ended with {self.process.returncode}")


def asks_inside(container, ports):
    """Java's module asks with a shell whether the ports are open: in the kernel's table, else with nc."""
    for port in ports:
        for ask in (f"grep -i ':0*{port:x}' /proc/net/tcp*", f"nc -w 1 localhost {port} </dev/null"):
            code, said = container.exec("/bin/sh", "-c", ask)
            expect(code == 0, f"the shell does not find port {port}: {ask}: {said}")


def main(program, root):
    """Starts each module's container, one after the other."""
    failed = modules.own_network()
    expect(failed is None, f"no network of its own: {failed}")
    root.mkdir()
    build(program, root)
    server = types.SimpleNamespace(blob=f"127.0.0.1:{modules.PORTS[0]}")
    for module, (command, variables, lines, ports) in modules.MODULES.items():
        container = Container(root, command, variables)
        try:
            container.wait(lines, ports or modules.PORTS[:1])
            asks_inside(container, ports)
            place.put(container.inside("/blockyard"), server, modules.NAME)
            place.get(container.inside("/blockyard"), server, modules.NAME)
            code, said = container.exec("/blockyard", "health")
            expect(code == 0, f"the health check fails: {said}")
            container.stop()
            if module == modules.IMAGE:
                expect(not any((root / "key").iterdir()), "there is something in /key")
                container = Container(root, command, variables, new=["key"])
                container.wait(lines, ports)
                code, said = container.exec("/blockyard", "account", "list")
                expect(code == 0 and modules.NAME in said, f"a command in the container: {said}")
                place.get(container.inside("/blockyard"), server, modules.NAME)
                container.stop()
        finally:
            container.process.kill()
        done(f"{module}: started, asked, stored a blob and read it, stopped")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))

"""The service of the package under a real systemd, booted in a clean root with namespaces of its own."""

import os
import pathlib
import shutil
import subprocess
import tempfile

import package
import place
from place import ROOT, Skipped, done, expect, need, printed

# The network is the root's own too: the service has its default ports. systemd learns that it runs in a container, and
# then expects that mounts in it are seen by the namespaces of its services.
BOOT = r"""
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t tmpfs tmpfs run
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mkdir run/old
pivot_root . run/old
umount -l run/old
mount --make-rshared /
exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd
"""
# Only root's: the service gets it as a credential.
FROM_FILE = "umask 077; echo \"fromfile:$(blockyard keygen)\" >/etc/blockyard/accounts; systemctl restart blockyard"
DROP_IN = r"""
mkdir -p /etc/systemd/system/blockyard.service.d
mv /var/lib/blockyard-key/master.key /etc/blockyard/master.key
chown root:root /etc/blockyard/master.key
printf '[Service]\nLoadCredential=master.key:/etc/blockyard/master.key\nEnvironment=BLOCKYARD_MASTER_KEY_FILE=%%d/master.key\n' \
  >/etc/systemd/system/blockyard.service.d/key.conf
systemctl daemon-reload
systemctl restart blockyard
"""


class Machine:
    """A booted root."""

    def __init__(self, root, log):
        command = ["unshare", "--fork", "--pid", "--kill-child", "--mount", "--uts", "--ipc", "--cgroup", "--net",
                   "bash", "-c", BOOT, "bash", str(root)]
        self.log = log
        self.process = subprocess.Popen(command, stdout=log.open("w"), stderr=subprocess.STDOUT)
        self.inside = None

    def __enter__(self):
        try:
            place.waited(lambda: self.running() in ("running", "degraded"), "")
        except AssertionError:
            self.end()
            raise Skipped(f"systemd does not boot in namespaces here: {self.log.read_text()[-500:]}") from None
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        """Ends systemd and all that it started."""
        self.process.kill()
        self.process.wait()

    def running(self):
        """What systemd says of itself."""
        if self.inside is None:
            children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            if not children or b"/systemd" not in pathlib.Path(f"/proc/{children[0]}/cmdline").read_bytes():
                return None
            self.inside = children[0]
        return self.shell("systemctl is-system-running || true").strip()

    def shell(self, script):
        """Runs a script of the shell in it, and returns what it prints."""
        command = ["nsenter", "--target", self.inside, "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd",
                   "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "sh", "-c", script]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=place.SECONDS, check=False)
        expect(ended.returncode == 0, f"{script}: {ended.returncode}: {ended.stdout}{ended.stderr}")
        return ended.stdout

    def ready(self, what):
        """Waits until the service answers."""
        place.waited(lambda: "ready" in self.shell("blockyard health || true").splitlines(), f"{what}: it does not answer")
        expect(self.shell("systemctl is-active blockyard").strip() == "active", f"{what}: it is not active")

    def accounts(self):
        """The names of its accounts."""
        text = self.shell("blockyard account list --data /var/lib/blockyard/data")
        return [line.split("\t")[0] for line in text.splitlines()[1:]]


def service(program):
    """The confined service starts under systemd, gets its credentials, restarts and drains."""
    for tool, debian in (("dpkg-deb", "dpkg"), ("unshare", "util-linux"), ("nsenter", "util-linux"), ("pivot_root", "util-linux")):
        need(tool, debian)
    place.need_chroot()
    with tempfile.TemporaryDirectory(prefix="dist-") as folder:
        folder = pathlib.Path(folder)
        made = printed([ROOT / "docker/debian/build", program, folder])
        root = package.clean_root(folder, "systemd")
        os.makedirs(root / "run", exist_ok=True)
        with Machine(root, folder / "log") as machine:
            shutil.copy(made, root / "package.deb")
            machine.shell("dpkg --install /package.deb")
            machine.ready("the installation")
            expect(machine.accounts() == [], "a new store has accounts")
            machine.shell("blockyard account create photos --data /var/lib/blockyard/data")
            done("the installation started the service; an account was made")
            machine.shell(FROM_FILE)
            machine.ready("the account file")
            expect(machine.accounts() == ["fromfile", "photos"], f"accounts: {machine.accounts()}")
            done("/etc/blockyard/accounts, which only root reads, reached it as a credential")
            machine.shell(DROP_IN)
            machine.ready("the master key as a credential")
            expect(machine.accounts() == ["fromfile", "photos"], "the accounts are lost")
            done("it started with its master key as a credential")
            machine.shell("dpkg --install /package.deb")
            machine.ready("the upgrade")
            machine.shell("systemctl stop blockyard")
            result = machine.shell("systemctl show blockyard -p Result -p ExecMainStatus").split()
            expect(sorted(result) == ["ExecMainStatus=0", "Result=success"], f"the stop: {result}")
            machine.shell("dpkg --purge blockyard; test -d /var/lib/blockyard/data")
            done("an upgrade restarted it, a stop drained it, a purge left the data")

"""The Debian package: its service, and its life in a clean root from the installation to the purge."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import place
from place import ROOT, Server, done, expect, need, printed, run

# The program of the package that is upgraded; main sets it.
OLDER = None
# Of 100; what systemd counts against a service. Without any limits it is 96.
EXPOSURE_MAX = 15
# What a root with a service manager has.
MORE = {"systemd": ("systemd", "systemd-sysv", "dbus")}
DATA, KEY = "var/lib/blockyard/data", "var/lib/blockyard-key/master.key"
CONFIGURATION = "etc/blockyard/blockyard.toml"


def unit(program):
    """The service is one that systemd accepts, and that it counts as confined."""
    need("systemd-analyze", "systemd")
    with tempfile.TemporaryDirectory(prefix="dist-") as folder:
        text = (ROOT / "docker/debian/blockyard.service").read_text()
        service = pathlib.Path(folder) / "blockyard.service"
        service.write_text(text.replace("/usr/bin/blockyard", str(program)))
        said = run(["systemd-analyze", "verify", "--man=no", str(service)])
        # It verifies what the unit needs too, and warns of other units of this machine.
        expect("blockyard" not in said, said)
        done("systemd-analyze verify: no complaint")
        said = run(["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", str(service)])
        done(re.search(r"Overall exposure level.*?: (.*)", said)[0])


def built(program, folder):
    """The package, and one of an older version with the older program."""
    newer, again = (pathlib.Path(printed([ROOT / "docker/debian/build", program, to])) for to in (folder, folder / "again"))
    expect(newer.read_bytes() == again.read_bytes(), "two builds differ")
    done(f"{newer.name}, {newer.stat().st_size / 1e6:.1f} MB, the same byte for byte when built again")
    if shutil.which("lintian"):
        # The program is meant to be static; the others are about packages of Debian's own archive.
        tags = "statically-linked-binary,shared-library-lacks-prerequisites,embedded-library," \
               "bogus-mail-host,bogus-mail-host-in-debian-changelog,initial-upload-closes-no-bugs"
        run(["lintian", "--allow-root", "--fail-on", "error", "--suppress-tags", tags, newer])
        done("lintian: no error")
    else:
        done("skipped lintian: it is not installed")
    tree = folder / "older"
    run(["dpkg-deb", "--raw-extract", newer, tree])
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^Version: .*", "Version: 0.0.1-1", control.read_text()))
    shutil.copy(OLDER, tree / "usr/bin/blockyard")
    # Its sum of the program is of no interest here.
    (tree / "DEBIAN/md5sums").unlink()
    older = folder / "older.deb"
    run(["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", tree, older])
    return older, newer


def clean_root(folder, *more):
    """A new Debian with its essential packages and `more`, made by debootstrap once and then unpacked."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    archive = cache / f"{'-'.join(('blockyard-dist-root', *more))}.tar"
    if not archive.exists():
        need("debootstrap", "debootstrap")
        done("debootstrap makes a clean root, which takes some minutes once")
        sources = run(["apt-get", "indextargets", "--format", "$(REPO_URI)"]).splitlines()
        suite = re.search(r"VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text())[1]
        made = folder / "made"
        packages = [f"--include={','.join(MORE[name])}" for name in more]
        command = ["debootstrap", "--variant=minbase", *packages, suite, made, sources[0]]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        cache.mkdir(parents=True, exist_ok=True)
        partial = archive.with_suffix(".part")
        subprocess.run(["tar", "--one-file-system", "--exclude=./var/cache/apt/*", "--exclude=./dev/*", "-C", made, "-cf", partial, "."],
                       check=True)
        partial.rename(archive)
        shutil.rmtree(made)
    root = folder / "root"
    root.mkdir()
    subprocess.run(["tar", "-C", root, "-xf", archive], check=True)
    os.mknod(root / "dev/null", 0o666 | 0o020000, os.makedev(1, 3))
    os.chmod(root / "dev/null", 0o666)
    return root


def dpkg(root, *arguments):
    """Runs dpkg in the root."""
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    return run(["chroot", root, "dpkg", *arguments], env=env)


def install(root, package):
    """Installs a package file."""
    shutil.copy(package, root / "package.deb")
    return dpkg(root, "--install", "/package.deb")


class Installed:
    """The installed program, run as its service runs it."""

    def __init__(self, root):
        self.root = root
        users = (line.split(":") for line in (root / "etc/passwd").read_text().splitlines())
        self.user = next((f"{fields[2]}:{fields[3]}" for fields in users if fields[0] == "blockyard"), None)
        expect(self.user, "there is no user blockyard")
        self.command = place.chrooted(root, self.user, "/usr/bin/blockyard")
        accounts = root / "accounts"
        accounts.touch(mode=0o600)
        os.chown(accounts, *map(int, self.user.split(":")))

    def server(self):
        """A running server. The credential of the service is an empty file too."""
        return Server(self.command, ["--config", f"/{CONFIGURATION}", "--account-file", "/accounts"], self.root / "log")

    def check(self):
        """The files that are as they should be."""
        for name in ("var/lib/blockyard", "var/lib/blockyard-key"):
            found = (self.root / name).stat()
            expect((found.st_uid, found.st_mode & 0o777) == (int(self.user.split(":")[0]), 0o700), f"{name}: {found}")
        for name in ("usr/share/man/man1/blockyard-serve.1.gz", "usr/share/bash-completion/completions/blockyard",
                     "usr/share/zsh/vendor-completions/_blockyard", "usr/share/fish/vendor_completions.d/blockyard.fish",
                     "usr/share/doc/blockyard/copyright", "usr/share/doc/blockyard/blockyard.cdx.json.gz"):
            # A minimal root leaves out some of them.
            known = dpkg(self.root, "--listfiles", "blockyard")
            expect(f"/{name}" in known, f"{name} is not in the package")
        wanted = self.root / "etc/systemd/system/multi-user.target.wants/blockyard.service"
        expect(wanted.is_symlink(), "the service is not enabled")


def life(program):
    """The package is installed, upgraded over the data of the older one, removed, installed again and purged."""
    need("dpkg-deb", "dpkg")
    place.need_chroot()
    with tempfile.TemporaryDirectory(prefix="dist-") as folder:
        folder = pathlib.Path(folder)
        older, newer = built(program, folder)
        root = clean_root(folder)
        install(root, older)
        installed = Installed(root)
        installed.check()
        account = None
        if OLDER != program:
            # Releases before 0.1 do not start without an account.
            account = "photos:" + printed([program, "keygen"])
            (root / "accounts").write_text(f"{account}\n")
        with installed.server() as server:
            account = account or place.made_account(installed.command, server.admin, f"/{DATA}")
            place.put(installed.command, server, account)
        expect((root / KEY).stat().st_mode & 0o777 == 0o600, "the master key file is open to others")
        done("installed: files, user, service; started, made an account, stored a blob")

        with (root / CONFIGURATION).open("a") as configuration:
            configuration.write("# mine\n")
        install(root, newer)
        expect("# mine" in (root / CONFIGURATION).read_text(), "the upgrade replaced the configuration")
        read(installed, account)
        done("upgraded: the configuration is kept, the blob is read")

        dpkg(root, "--remove", "blockyard")
        expect(not (root / "usr/bin/blockyard").exists(), "the program is still there")
        expect((root / DATA / "coordinator.redb").exists() and (root / KEY).exists(), "the removal deleted data")
        install(root, newer)
        read(installed, account)
        done("removed: data, key and configuration are kept; installed again, the blob is read")

        said = dpkg(root, "--purge", "blockyard")
        expect("/var/lib/blockyard is kept" in said and "/var/lib/blockyard-key is kept" in said, f"it does not say what it keeps: {said}")
        expect((root / DATA / "coordinator.redb").exists() and (root / KEY).exists(), "the purge deleted data")
        expect(not (root / CONFIGURATION).exists(), "the purge left the configuration")
        done("purged: data and key are kept, and it says so; the configuration is gone")


def read(installed, account):
    """The blob is there."""
    with installed.server() as server:
        place.get(installed.command, server, account)

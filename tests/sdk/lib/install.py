"""Where clients come from: virtual environments, npm folders, Debian packages, builds of cargo, Go and Maven. Nothing but the
standard library, because this runs before anything is installed.

Everything is kept in a cache folder under a name that depends on what was asked for, so a second run installs nothing.
A registry that fails once is asked a second time; what fails twice raises `Unavailable`, whose text says why.
Programs that run at the same time install one after another.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import venv

ROOT = pathlib.Path(__file__).resolve().parents[3]
INSTALL_SECONDS = 1200
RETRY_AFTER_SECONDS = 5
JAVA_MAJOR_MIN = 17


class Unavailable(Exception):
    """A client that cannot be had here, and why."""


def cache():
    """The folder that outlives a run."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME", ROOT / "target"))


@contextlib.contextmanager
def _alone(name):
    """Keeps other threads and processes from installing the same at the same time."""
    cache().mkdir(parents=True, exist_ok=True)
    with open(cache() / f"{name}.lock", "w", encoding="ascii") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _place(kind, wanted):
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return cache() / f"{kind}-{version}-{hashlib.sha256(wanted).hexdigest()[:12]}"


def _twice(command, **options):
    """Runs an installer, once more if it fails. Raises `Unavailable` with the last lines it printed."""
    text = ""
    for wait in (0, RETRY_AFTER_SECONDS):
        time.sleep(wait)
        try:
            done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, errors="replace", timeout=INSTALL_SECONDS, stdin=subprocess.DEVNULL,
                                  **options)
        except FileNotFoundError:
            raise Unavailable(f"no {command[0]} on this machine") from None
        except subprocess.TimeoutExpired:
            text = f"{command[0]} took longer than {INSTALL_SECONDS} s"
            continue
        if done.returncode == 0:
            return done.stdout
        text = done.stdout.strip()
    print(text[-3000:], flush=True)
    if "COMPILATION ERROR" in text:
        # A fault of ours, and none of the registry.
        raise RuntimeError(text[-3000:])
    raise Unavailable(f"{pathlib.Path(str(command[0])).name} failed twice: {_reason(text)[:160]}")


def _reason(text):
    """The last line an installer printed; Maven's reason is its first error, its last lines are links to help."""
    lines = text.splitlines() or [""]
    return next((line for line in lines if line.startswith("[ERROR] ")), lines[-1])


def python(requirements):
    """The Python of a virtual environment that has what this requirements file pins."""
    folder = _place("sdk-venv", requirements.read_bytes())
    program, complete = folder / "bin" / "python", folder / "complete"
    with _alone(folder.name):
        if not complete.exists():
            print(f"installing {requirements.name} into {folder} ...", flush=True)
            venv.create(folder, with_pip=True, clear=True)
            _twice([program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--prefer-binary",
                    "-r", requirements])
            complete.touch()
    return program


def npm(packages):
    """A folder whose node_modules has these packages (`name@version`)."""
    folder = _place("sdk-npm", "\n".join(packages).encode())
    complete = folder / "complete"
    with _alone(folder.name):
        if not complete.exists():
            print(f"installing {' '.join(packages)} into {folder} ...", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            (folder / "package.json").write_text('{"private": true}\n')
            _twice(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--save-exact", *packages], cwd=folder)
            complete.touch()
    return folder


def debian(packages):
    """Sees to it that these Debian packages are there."""
    with _alone("debian"):
        missing = [name for name in packages if not _debian_has(name)]
        if not missing:
            return
        if os.geteuid() != 0:
            raise Unavailable(f"needs root to install {' '.join(missing)}")
        settings = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        with _no_services():
            _twice(["apt-get", "update", "-qq"], env=settings)
            _twice(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing], env=settings)


@contextlib.contextmanager
def _no_services():
    """Keeps packages from starting their services: a script starts what it needs, on ports of its own."""
    policy = pathlib.Path("/usr/sbin/policy-rc.d")
    if policy.exists():
        yield
        return
    policy.write_text("#!/bin/sh\nexit 101\n", encoding="ascii")
    policy.chmod(0o755)
    try:
        yield
    finally:
        policy.unlink()


def _debian_has(package):
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Status}", package], capture_output=True, text=True)
    except FileNotFoundError:
        raise Unavailable("not a Debian machine") from None
    return done.stdout.endswith("ok installed")


def cargo(project, binary):
    """A program of a small cargo project, built as its lock file says."""
    target = cache() / "sdk-cargo"
    _twice(["cargo", "build", "--quiet", "--locked", "--bin", binary], cwd=project,
           env={**os.environ, "CARGO_TARGET_DIR": str(target)})
    return target / "debug" / binary


def golang(project):
    """The program of a small Go module, built as its go.sum says. A Go that is too old says so: none is fetched."""
    if not shutil.which("go"):
        raise Unavailable("go is not installed")
    program = cache() / f"sdk-go-{project.name}"
    settings = {**os.environ, "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    _twice(["go", "build", "-o", str(program), "."], cwd=project, env=settings)
    return program


def java():
    """The program, if there is one that is new enough."""
    found = shutil.which("java")
    if not found:
        raise Unavailable("java is not installed")
    said = subprocess.run([found, "-version"], capture_output=True, text=True, check=True).stderr
    major = re.search(r'version "(\d+)', said)
    if not major or int(major[1]) < JAVA_MAJOR_MIN:
        raise Unavailable(f"{said.splitlines()[0]}, needs {JAVA_MAJOR_MIN}")
    return found


def maven(project, module):
    """The class path of a module of a Maven project, built as its pom says, with the modules it needs."""
    if not shutil.which("mvn"):
        raise Unavailable("mvn is not installed")
    built = cache() / f"sdk-maven-{project.name}"
    command = ["mvn", "--batch-mode", "--quiet", f"-Dbuilt={built}", "--projects", module, "--also-make", "package"]
    with _alone(built.name):
        _twice(command, cwd=project)
    return f"{built / module / 'classes'}{os.pathsep}{(built / module / 'classpath').read_text().strip()}"

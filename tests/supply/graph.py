"""The crates that are built, as cargo resolves them. Nothing but the standard library."""

import dataclasses
import pathlib
import subprocess

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True, order=True)
class Crate:
    """One version of one crate."""

    name: str
    version: str
    licence: str


def toml(name):
    """A TOML file of the tree."""
    return tomllib.loads((ROOT / name).read_text(encoding="utf-8"))


def crates(targets, edges):
    """The crates that are built for any of these targets over these kinds of edges (`normal,build,dev`), without our own."""
    found = set()
    for target in targets:
        command = ["cargo", "tree", "--locked", "--offline", "--target", target, "--edges", edges,
                   "--prefix", "none", "--no-dedupe", "--format", "{p}|{l}"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed; run `cargo fetch --locked` first:\n{done.stderr.strip()}")
        for line in done.stdout.splitlines():
            package, _, licence = line.partition("|")
            name, _, rest = package.partition(" ")
            if rest:
                found.add(Crate(name, rest.split(" ")[0].removeprefix("v"), licence))
    own = toml("Cargo.toml")["package"]["name"]
    return sorted(crate for crate in found if crate.name != own)


def locked():
    """Cargo.lock's packages by name and version: source and checksum."""
    packages = toml("Cargo.lock")["package"]
    return {(package["name"], package["version"]): package for package in packages}
